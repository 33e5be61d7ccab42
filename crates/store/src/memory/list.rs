use std::cmp::Reverse;
use std::collections::BTreeSet;

use bellwire_core::{EventId, Time};

use super::Tables;
use crate::conversation_list::{ConversationQuery, ListedConversation};
use crate::event_list::{EventQuery, ListedEvent, PAGE_BYTES_MAX, SCANNED_MAX};
use crate::rows::{ConversationRow, EventRow};

impl Tables {
    /// A page of events, newest first, and the position of the next one.
    pub(super) fn event_page(&self, query: &EventQuery) -> (Vec<ListedEvent>, Option<EventId>) {
        let since = query.filter.since.unwrap_or(Time::ZERO);
        let is_before = |id: &EventId| query.before.is_none_or(|before| *id < before);
        let rows = self.events.iter().rev().filter(|(id, _)| is_before(id)).map(|(_, row)| row);
        let mut rows = rows.take_while(|row| crate::minted_at(row.event.id().0) >= since);
        let scanned: Vec<&EventRow> = rows.by_ref().take(SCANNED_MAX).collect();
        let (mut page, mut bytes): (Vec<ListedEvent>, usize) = (Vec::new(), 0);
        for row in scanned.iter().filter(|row| query.matches(row)) {
            bytes += row.packed.payload().len() + row.verdicts.json().get().len();
            if page.len() == query.limit || (bytes > PAGE_BYTES_MAX && !page.is_empty()) {
                let next = page.last().map(|listed| listed.event.id);
                return (page, next);
            }
            page.push(query.filter.listed((*row).clone()));
        }
        let rest = rows.next().and(scanned.last()).map(|row| row.event.id());
        (page, rest)
    }

    /// The ids of all people of whom there is something.
    pub(super) fn person_ids(&self) -> BTreeSet<String> {
        let conversations = self.conversations.keys().map(|key| key.owner.to_string());
        let tokens = self.tokens.values().filter_map(|token| token.user_id.clone());
        conversations.chain(tokens).chain(self.people.ids()).chain(self.sessions.people()).collect()
    }

    /// When a conversation of the person was last seen.
    pub(super) fn last_seen(&self, user_id: &str) -> Option<Time> {
        let own = self.conversations.values().filter(|row| *row.key.owner == *user_id);
        own.map(|row| row.seen_at).max().filter(|at| *at > Time::ZERO)
    }

    /// A page of conversations, in order.
    pub(super) fn conversation_page(&self, query: &ConversationQuery) -> Vec<ListedConversation> {
        let is_own = |row: &&ConversationRow| query.user_id.as_deref().is_none_or(|user| *row.key.owner == *user);
        let rows = self.conversations.values().filter(is_own);
        let after = query.after.as_ref();
        if let Some(id) = &query.conversation_id {
            // The keys are in the order of their owners.
            let rows = rows.filter(|row| *row.key.id == **id);
            let rows = rows.filter(|row| after.is_none_or(|after| *row.key.owner > *after.user_id));
            return rows.take(query.limit).cloned().map(ListedConversation::from).collect();
        }
        let since = query.since.unwrap_or(Time::ZERO);
        let is_after = |row: &&ConversationRow| {
            after.is_none_or(|after| {
                (row.last_used_at(), &*row.key.id, &*row.key.owner) < (after.last_used_at, &*after.id, &*after.user_id)
            })
        };
        let mut rows: Vec<_> = rows.filter(|row| row.last_used_at() >= since).filter(is_after).collect();
        rows.sort_by_key(|row| Reverse((row.last_used_at(), row.key.id.clone(), row.key.owner.clone())));
        rows.into_iter().take(query.limit).cloned().map(ListedConversation::from).collect()
    }
}
