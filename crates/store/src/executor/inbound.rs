//! Inbound messages of people: which conversation each went to, and which one an agent has read last.

use std::sync::Arc;

use bellwire_core::mailbox::EventLookup as _;
use bellwire_core::{Event, Notification};

use super::Executor;
use crate::notify::{InboundRow, ReplyContextRow, inbound_context};
use crate::rows::MailboxKey;

impl Executor {
    /// Stores where a person's message came from, so that a reply can be checked against it.
    pub(super) fn note_inbound(&mut self, event: &Event, mailboxes: &[MailboxKey]) {
        let Some((context, json)) = inbound_context(event) else { return };
        let Some(thread) = context.source_thread_identity else { return };
        let Some(conversation) = mailboxes.first().and_then(MailboxKey::conversation) else { return };
        let row = InboundRow {
            user_id: conversation.owner.to_string(),
            conversation_id: conversation.id.to_string(),
            context: json,
            at: self.context.now,
        };
        self.changes.notify.inbound.insert((context.source_channel, thread), row);
    }

    /// Stores the newest inbound message among the notifications that an agent takes. Its replies answer that one, unless
    /// they name another.
    pub(super) fn note_reply_context(&mut self, key: &MailboxKey, taken: &[Notification]) {
        let (Some(conversation), Some(agent)) = (key.conversation(), key.agent()) else { return };
        let events = &self.hot_mailboxes[key].event_cache;
        let from_person = taken.iter().filter(|notification| notification.from_person);
        let newest = from_person.flat_map(|notification| &notification.events).max_by_key(|entry| entry.event);
        let event: Option<Arc<Event>> = newest.and_then(|entry| events.event(entry.event));
        let Some((_, context)) = event.as_deref().and_then(inbound_context) else { return };
        let row = ReplyContextRow { context, at: self.context.now };
        let key = (conversation.owner.clone(), conversation.id.clone(), agent.clone());
        self.changes.notify.reply_contexts.insert(key, row);
    }
}
