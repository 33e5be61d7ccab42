//! The rows that publishing and injecting write, table by table.

use bellwire_core::Time;
use bellwire_core::notification::Fate;

use super::script::{ROWS_MAX, Script, Table, Values};
use crate::rows::{
    BroughtRow, Changes, ConversationRow, EventRow, InjectionRow, MailboxKey, MailboxRow, NotificationRow,
};

const CONVERSATIONS: Table = Table {
    name: "conversations",
    columns: &["id", "user_id", "registered", "title", "boundary", "created_at", "seen_at"],
    conflict: "ON CONFLICT (id, user_id) DO UPDATE SET registered = excluded.registered, title = excluded.title, \
               boundary = excluded.boundary, seen_at = excluded.seen_at",
};

const EVENTS: Table = Table {
    name: "events",
    columns: &[
        "id",
        "type",
        "source",
        "severity",
        "timestamp",
        "payload",
        "dedupe_key",
        "conversation_id",
        "agent",
        "user_id",
        "correlation_id",
        "cause",
        "owner",
        "accepted_at",
        "filtered",
        "verdicts",
    ],
    conflict: "",
};

const BROUGHT: Table = Table {
    name: "brought_ids",
    columns: &["token_owner", "id", "event_id", "content", "at"],
    // A name whose event was forgotten may be used again, also while its old row is still there.
    conflict: "ON CONFLICT (token_owner, id) DO UPDATE SET event_id = excluded.event_id, \
               content = excluded.content, at = excluded.at",
};

const MAILBOX_LOG: Table = Table {
    name: "mailbox_log",
    columns: &["sequence", "owner", "conversation_id", "agent", "state", "pending", "due_at"],
    conflict: "",
};

const NOTIFICATIONS: Table = Table {
    name: "notifications",
    columns: &[
        "id",
        "owner",
        "conversation_id",
        "agent",
        "subscriber_id",
        "priority",
        "inject_at",
        "state",
        "reason",
        "content",
        "call_id",
        "created_at",
        "ended_at",
        "waiting",
    ],
    conflict: "ON CONFLICT (id) DO UPDATE SET state = excluded.state, reason = excluded.reason, \
               content = excluded.content, call_id = excluded.call_id, ended_at = excluded.ended_at, \
               waiting = excluded.waiting",
};

const INJECTIONS: Table = Table {
    name: "injections",
    columns: &[
        "sequence",
        "owner",
        "conversation_id",
        "agent",
        "call_id",
        "point",
        "at",
        "unseen",
        "answer",
        "taken",
        "system_messages_json",
    ],
    conflict: "",
};

/// The rows of one commit that are still to be written.
pub(super) struct Rows<'a> {
    conversations: Vec<&'a ConversationRow>,
    events: &'a [EventRow],
    brought: &'a [BroughtRow],
    mailboxes: &'a [(MailboxKey, MailboxRow)],
    notifications: Vec<&'a NotificationRow>,
    injections: &'a [InjectionRow],
    sequence: &'a mut i64,
    /// The number of the next row of the mailboxes' log.
    logged: i64,
}

impl<'a> Rows<'a> {
    pub(super) fn of(changes: &'a Changes, sequence: &'a mut i64, logged: i64) -> Self {
        Self {
            conversations: changes.conversations.values().collect(),
            events: &changes.events,
            brought: &changes.brought,
            mailboxes: &changes.mailbox_rows,
            notifications: changes.notifications.values().collect(),
            injections: &changes.injections,
            sequence,
            logged,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.conversations.is_empty()
            && self.events.is_empty()
            && self.brought.is_empty()
            && self.mailboxes.is_empty()
            && self.notifications.is_empty()
            && self.injections.is_empty()
    }

    /// Puts as many rows of each table into the script as one statement takes.
    pub(super) fn round(&mut self, script: &mut Script) {
        let rest = self.conversations.len().saturating_sub(ROWS_MAX);
        script.insert(&CONVERSATIONS, &self.conversations.split_off(rest), |values, row| conversation(values, row));
        script.insert(&EVENTS, next(&mut self.events), event);
        script.insert(&BROUGHT, next(&mut self.brought), brought);
        script.insert(&MAILBOX_LOG, next(&mut self.mailboxes), |values, row| {
            mailbox(values, row, self.logged);
            self.logged += 1;
        });
        let rest = self.notifications.len().saturating_sub(ROWS_MAX);
        script.insert(&NOTIFICATIONS, &self.notifications.split_off(rest), |values, row| notification(values, row));
        script.insert(&INJECTIONS, next(&mut self.injections), |values, row| {
            *self.sequence += 1;
            injection(values, row, *self.sequence);
        });
    }
}

/// Takes the next statement's worth of rows off.
fn next<'a, T>(rows: &mut &'a [T]) -> &'a [T] {
    let (now, later) = rows.split_at(rows.len().min(ROWS_MAX));
    *rows = later;
    now
}

fn conversation(values: &mut Values<'_>, row: &ConversationRow) {
    values
        .bind(&*row.key.id)
        .bind(&*row.key.owner)
        .bind(i64::from(row.registered))
        .bind(&row.title)
        .bind(row.boundary.as_str())
        .bind(row.created_at.as_millis())
        .bind(row.seen_at.as_millis());
}

fn event(values: &mut Values<'_>, row: &EventRow) {
    let event = row.event.to_stored();
    values
        .bind(event.id.0.as_bytes().to_vec())
        .bind(event.kind)
        .bind(event.source)
        .bind(event.severity.as_str())
        .bind(event.timestamp.as_millis())
        .bind(event.payload)
        .bind(event.dedupe_key)
        .bind(event.conversation_id)
        .bind(event.agent)
        .bind(event.user_id)
        .bind(event.correlation_id)
        .bind(event.cause.as_str())
        .bind(&*row.owner)
        .bind(row.accepted_at.as_millis())
        .bind(i64::from(row.filtered))
        .bind(json(&row.verdicts));
}

fn brought(values: &mut Values<'_>, row: &BroughtRow) {
    values
        .bind(&row.token_owner)
        .bind(&row.id)
        .bind(row.event_id.0.as_bytes().to_vec())
        .bind(row.content.to_vec())
        .bind(row.at.as_millis());
}

fn mailbox(values: &mut Values<'_>, (key, row): &(MailboxKey, MailboxRow), sequence: i64) {
    let pending: Vec<u8> = row.pending.iter().flat_map(|id| *id.0.as_bytes()).collect();
    names(values.bind(sequence), key).bind(&row.state).bind(pending).bind(row.due_at.as_millis());
}

fn notification(values: &mut Values<'_>, row: &NotificationRow) {
    let waiting = match row.fate {
        None => postcard::to_allocvec(&row.notification).unwrap_or_default(),
        Some(_) => Vec::new(),
    };
    names(values.bind(row.notification.id.0.as_bytes().to_vec()), &row.key)
        .bind(row.notification.subscriber.as_str())
        .bind(row.notification.priority.as_str())
        .bind(row.notification.inject_at.as_str())
        .bind(row.fate.as_ref().map_or("pending", Fate::name))
        .bind(row.fate.as_ref().map(Fate::reason))
        .bind(&row.content)
        .bind(&row.call_id)
        .bind(row.notification.since.as_millis())
        .bind(row.ended_at.map(Time::as_millis))
        .bind(waiting);
}

fn injection(values: &mut Values<'_>, row: &InjectionRow, sequence: i64) {
    names(values.bind(sequence), &row.key)
        .bind(&row.call_id)
        .bind(row.point.as_str())
        .bind(row.at.as_millis())
        .bind(i64::from(row.unseen))
        .bind(json(&row.answer))
        .bind(postcard::to_allocvec(&row.taken).unwrap_or_default())
        .bind(json(&row.messages));
}

fn names<'a, 'v>(values: &'a mut Values<'v>, key: &MailboxKey) -> &'a mut Values<'v> {
    values.bind(&**key.owner()).bind(&*key.conversation.id).bind(&*key.agent)
}

pub(super) fn json<T: serde::Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("plain data becomes JSON")
}
