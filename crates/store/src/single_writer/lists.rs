//! Lists of events and conversations: whose rows the caller may list, and what the writer adds to them.

use bellwire_core::EventId;

use super::{Reader, SingleWriterStore};
use crate::command::Caller;
use crate::conversation_list::{ConversationPosition, ConversationQuery, ListedConversation};
use crate::error::StoreError;
use crate::event_list::{EventFilter, EventQuery, ListedEvent};
use crate::rows::MailboxKey;
use crate::writer::Job;

impl<R: Reader> SingleWriterStore<R> {
    pub(super) async fn list_events(
        &self,
        caller: Caller,
        query: EventQuery,
    ) -> Result<(Vec<ListedEvent>, Option<EventId>), StoreError> {
        let (mut user_id, conversation_id) = bounds(&caller, query.user_id, query.filter.conversation_id)?;
        if let Some(id) = &conversation_id {
            let caller = Caller { user_id, ..caller };
            let owner = self.owner(&caller, id).await?;
            user_id = Some(owner.ok_or_else(|| StoreError::not_found("conversation"))?);
        }
        if let Some(user) = &user_id {
            self.writer.erasing.check(user)?;
        }
        let filter = EventFilter { conversation_id, ..query.filter };
        let query = EventQuery { user_id, filter, ..query };
        let (mut events, next) = self.reader.events(&query).await?;
        events.retain(|listed| !self.writer.erasing.has(&listed.owner));
        Ok((events, next))
    }

    pub(super) async fn list_conversations(
        &self,
        caller: Caller,
        query: ConversationQuery,
    ) -> Result<(Vec<ListedConversation>, Option<ConversationPosition>), StoreError> {
        let (user_id, conversation_id) = bounds(&caller, query.user_id, query.conversation_id)?;
        if let Some(user) = &user_id {
            self.writer.erasing.check(user)?;
        }
        let limit = query.limit;
        let query = ConversationQuery { user_id, conversation_id, limit: limit + 1, ..query };
        let mut list = self.reader.conversations(&query).await?;
        let more = list.len() > limit;
        list.truncate(limit);
        let next = list.last().filter(|_| more).map(ListedConversation::position);
        list.retain(|listed| !self.writer.erasing.has(&listed.view.user_id));
        let mailboxes = list.iter().map(|listed| MailboxKey::new(&listed.key(), "main")).collect();
        let summaries = self.writer.ask(|reply| Job::Summaries(mailboxes, reply)).await?;
        for (listed, summary) in list.iter_mut().zip(summaries) {
            (listed.view.working, listed.view.pending) = (summary.working, summary.pending);
        }
        Ok((list, next))
    }
}

/// The person and the conversation that a list is restricted to: those of the query, which must be the caller's own.
fn bounds(
    caller: &Caller,
    user_id: Option<String>,
    conversation_id: Option<String>,
) -> Result<(Option<String>, Option<String>), StoreError> {
    let user_id = own(&caller.user_id, user_id).ok_or_else(|| StoreError::not_found("user"))?;
    let conversation_id = own(&caller.conversation_id, conversation_id);
    Ok((user_id, conversation_id.ok_or_else(|| StoreError::not_found("conversation"))?))
}

/// What is asked for, or what the caller is bound to; none if the caller may not ask for it.
fn own(bound: &Option<String>, asked: Option<String>) -> Option<Option<String>> {
    match (bound, asked) {
        (Some(bound), Some(asked)) if *bound != asked => None,
        (bound, asked) => Some(asked.or_else(|| bound.clone())),
    }
}
