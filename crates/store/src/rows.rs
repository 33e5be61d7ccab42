//! The rows of one commit. Backends write them and decide nothing.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use bellwire_core::notification::EndReason;
use bellwire_core::render::Boundary;
use bellwire_core::{Event, EventId, Notification, NotificationId, Time};

use bellwire_core::person::PersonSettings;

use crate::command::{IdempotencyKey, InjectResult, Message, Superseded, Token};
pub(crate) use crate::keys::{ConversationKey, MailboxKey};
use crate::notify::NotifyChanges;
use crate::packed_event::PackedEvent;
use crate::people::PeopleChanges;
use crate::report::FailedTemplate;
use crate::sessions::SessionChanges;
use crate::verdicts::Verdicts;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ConversationRow {
    pub(crate) key: ConversationKey,
    /// Whether an unbound caller created it. For unbound callers, its id alone means this conversation.
    pub(crate) registered: bool,
    pub(crate) title: Option<String>,
    /// The working directory of the session.
    pub(crate) folder: Option<String>,
    /// The boundary of the main agent.
    pub(crate) boundary: Boundary,
    /// An upgrade changed the boundary, and no injection has mentioned it yet.
    pub(crate) boundary_changed: bool,
    pub(crate) created_at: Time,
    pub(crate) seen_at: Time,
    /// The working sub-agents, each with the time at which it counts as idle; the most recent last.
    pub(crate) workers: Vec<(Arc<str>, Time)>,
    /// The secret from which the boundaries of its sub-agents are derived.
    pub(crate) agent_secret: [u8; 16],
    /// The boundaries of sub-agents that were given a new one; the most recent last.
    pub(crate) agent_boundaries: Vec<(Arc<str>, Boundary)>,
}

#[derive(Clone, Debug)]
pub(crate) struct EventRow {
    pub(crate) event: Arc<Event>,
    pub(crate) packed: PackedEvent,
    pub(crate) owner: Arc<str>,
    pub(crate) accepted_at: Time,
    pub(crate) filtered: u32,
    pub(crate) verdicts: Arc<Verdicts>,
}

#[derive(Clone, Debug)]
pub(crate) struct ClientEventIdRow {
    pub(crate) token_owner: String,
    pub(crate) id: String,
    pub(crate) event_id: EventId,
    pub(crate) content: [u8; 16],
    pub(crate) at: Time,
}

/// The stored answer of a call with an idempotency key.
#[derive(Clone, Debug)]
pub(crate) struct IdempotencyRow {
    pub(crate) key: IdempotencyKey,
    /// JSON of the answer.
    pub(crate) answer: String,
    /// The people the answer mentions; it is erased with any of them.
    pub(crate) people: BTreeSet<String>,
    pub(crate) at: Time,
}

/// A newer event replaced an older one.
#[derive(Clone, Debug)]
pub(crate) struct SupersededRow {
    pub(crate) event_id: EventId,
    pub(crate) subscriber: String,
    pub(crate) by: EventId,
    pub(crate) at: Time,
}

impl SupersededRow {
    pub(crate) fn view(&self) -> Superseded {
        Superseded { subscriber: self.subscriber.clone(), by: self.by, at: self.at }
    }
}

/// A notification of a mailbox, pending or ended.
#[derive(Clone, Debug)]
pub(crate) struct NotificationRow {
    pub(crate) key: MailboxKey,
    pub(crate) notification: Notification,
    pub(crate) end_reason: Option<EndReason>,
    pub(crate) ended_at: Option<Time>,
    pub(crate) content: Option<String>,
    pub(crate) call_id: Option<String>,
    /// Why its template failed; it was shown in the built-in form then.
    pub(crate) template_error: Option<String>,
}

impl NotificationRow {
    pub(crate) fn waiting(key: &MailboxKey, notification: Notification) -> Self {
        Self {
            key: key.clone(),
            notification,
            end_reason: None,
            ended_at: None,
            content: None,
            call_id: None,
            template_error: None,
        }
    }

    pub(crate) fn ended(key: &MailboxKey, notification: Notification, end_reason: EndReason, at: Time) -> Self {
        Self { end_reason: Some(end_reason), ended_at: Some(at), ..Self::waiting(key, notification) }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct InjectionRow {
    pub(crate) key: MailboxKey,
    pub(crate) call_id: String,
    pub(crate) point: bellwire_core::InjectionPoint,
    pub(crate) at: Time,
    pub(crate) unseen: bool,
    pub(crate) tool_result_digest: Option<[u8; 16]>,
    pub(crate) answer: InjectResult,
    pub(crate) taken: Vec<Notification>,
    pub(crate) messages: Vec<Message>,
}

impl InjectionRow {
    /// Its approximate size in memory, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let said = self.messages.iter().map(|message| size_of::<Message>() + message.content.len()).sum::<usize>();
        let taken = size_of_val(self.taken.as_slice());
        // Synthetic messages contain the text of the block.
        let answer = if self.answer.messages.is_empty() { self.answer.block.len() } else { said };
        size_of::<Self>() + said + taken + answer
    }
}

#[derive(Clone, Debug)]
pub(crate) struct MailboxRow {
    pub(crate) state: Vec<u8>,
    /// The pending notifications.
    pub(crate) pending: Vec<NotificationId>,
    pub(crate) due_at: Time,
}

impl MailboxRow {
    /// Whether it has no pending notification and no timer.
    pub(crate) fn is_idle(&self) -> bool {
        self.pending.is_empty() && self.due_at == Time::NEVER
    }
}

/// Everything one commit writes, each row once.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// The hub's time at this commit.
    pub(crate) at: Time,
    pub(crate) conversations: BTreeMap<ConversationKey, ConversationRow>,
    pub(crate) events: Vec<EventRow>,
    pub(crate) client_event_ids: Vec<ClientEventIdRow>,
    /// The client event ids of this commit: their index in `client_event_ids` and in `events`.
    pub(crate) client_event_ids_in_commit: HashMap<(String, String), (usize, usize)>,
    pub(crate) idempotency_rows: Vec<IdempotencyRow>,
    pub(crate) superseded: Vec<SupersededRow>,
    /// The changed mailboxes, in order of their first change. Their rows are made when all commands are decided.
    pub(crate) mailboxes: Vec<MailboxKey>,
    pub(crate) mailbox_rows: Vec<(MailboxKey, MailboxRow)>,
    pub(crate) notifications: BTreeMap<NotificationId, NotificationRow>,
    /// The number of rows of pending notifications that will be added to `notifications` before the commit.
    pub(crate) pending_rows: usize,
    pub(crate) injections: Vec<InjectionRow>,
    pub(crate) unseen: Vec<(MailboxKey, String)>,
    pub(crate) settings: BTreeMap<String, (PersonSettings, Time)>,
    pub(crate) people: PeopleChanges,
    pub(crate) notify: NotifyChanges,
    pub(crate) tokens: BTreeMap<String, Token>,
    pub(crate) sessions: SessionChanges,
    /// The templates that failed, for the report.
    pub(crate) template_failures: Vec<FailedTemplate>,
    /// Items rendered and inputs handled by mailboxes. They write no rows but count as work.
    pub(crate) rendered: usize,
    pub(crate) handled: usize,
    /// The change of the number of pending notifications by this commit.
    pub(crate) waiting: i64,
}

impl Changes {
    /// Adds the row of an ended notification.
    pub(crate) fn end(&mut self, row: NotificationRow) {
        self.notifications.insert(row.notification.id, row);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.conversations.is_empty()
            && self.events.is_empty()
            && self.idempotency_rows.is_empty()
            && self.mailboxes.is_empty()
            && self.notifications.is_empty()
            && self.injections.is_empty()
            && self.unseen.is_empty()
            && self.settings.is_empty()
            && self.people.is_empty()
            && self.notify.is_empty()
            && self.tokens.is_empty()
            && self.sessions.is_empty()
    }

    /// The number of rows so far.
    pub(crate) fn rows(&self) -> usize {
        let common = [
            self.conversations.len(),
            self.events.len(),
            self.client_event_ids.len(),
            self.idempotency_rows.len(),
            self.superseded.len(),
            self.mailboxes.len().max(self.mailbox_rows.len()),
            self.notifications.len(),
            self.pending_rows,
            self.injections.len(),
            self.unseen.len(),
        ];
        let people = [self.settings.len(), self.people.rows(), self.notify.rows()];
        let rare = people.into_iter().chain([self.tokens.len(), self.sessions.rows()]);
        common.into_iter().chain(rare).sum()
    }

    /// The work so far, without reads.
    pub(crate) fn work(&self) -> usize {
        self.rows() + self.rendered + self.handled
    }

    /// Whether there are rows that publishing and injecting do not write.
    pub(crate) fn has_rare(&self) -> bool {
        !(self.unseen.is_empty()
            && self.idempotency_rows.is_empty()
            && self.superseded.is_empty()
            && self.settings.is_empty()
            && self.people.is_empty()
            && self.notify.is_empty()
            && self.tokens.is_empty()
            && self.sessions.is_empty())
    }
}

/// A position in the messages of a conversation is the injection's sequence times this, plus the message's number in the
/// injection, from 1. An injection has fewer messages than this.
const MESSAGES_PER_INJECTION: i64 = 1024;

/// The first injection that may have messages after a position.
pub(crate) fn first_injection(after: i64) -> i64 {
    after / MESSAGES_PER_INJECTION
}

/// The messages before a position, newest first, at most `limit`, and the position of the next page. `rows` are in descending
/// order and begin with the injection of the position.
pub(crate) fn page_before(
    rows: impl Iterator<Item = (i64, Vec<Message>)>,
    before: i64,
    limit: usize,
) -> (Vec<Message>, Option<i64>) {
    let positioned = rows.flat_map(|(sequence, messages)| {
        let first = sequence * MESSAGES_PER_INJECTION + 1;
        (first..).zip(messages).collect::<Vec<_>>().into_iter().rev()
    });
    let mut earlier = positioned.skip_while(|(position, _)| *position >= before).peekable();
    let (mut messages, mut last) = (Vec::new(), before);
    while let Some((position, message)) = earlier.next_if(|_| messages.len() < limit) {
        messages.push(message);
        last = position;
    }
    (messages, earlier.peek().map(|_| last))
}

/// The messages after a position, at most `limit`, and the position of the next page. `rows` begin with [`first_injection`].
pub(crate) fn page(
    rows: impl Iterator<Item = (i64, Vec<Message>)>,
    after: i64,
    limit: usize,
) -> (Vec<Message>, Option<i64>) {
    let positioned = rows.flat_map(|(sequence, messages)| {
        let first = sequence * MESSAGES_PER_INJECTION;
        (first + 1..).zip(messages)
    });
    let mut behind = positioned.skip_while(|(position, _)| *position <= after).peekable();
    let (mut messages, mut last) = (Vec::new(), after);
    while let Some((position, message)) = behind.next_if(|_| messages.len() < limit) {
        messages.push(message);
        last = position;
    }
    (messages, behind.peek().map(|_| last))
}
