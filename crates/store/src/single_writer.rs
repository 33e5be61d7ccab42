//! The [`Store`] implementation over a single writer: commands go to the writer, queries go to a reader.

mod chats;
mod early_refusal;
mod lists;
mod notify;
mod people;
mod sessions;

pub(crate) use notify::NotifyReader;
pub(crate) use people::PeopleReader;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bellwire_core::event::AgentName;
use bellwire_core::render::Boundary;
use bellwire_core::subscriber::Subscribers;
use bellwire_core::{EventId, Time};
use tokio::sync::watch;

use crate::command::{
    Caller, ConversationDetails, ConversationView, Hint, IdempotencyKey, InjectCommand, InjectResult, Message,
    PendingNotification, Publish, Receipt, Seen, Token, Trace,
};
use crate::conversation_list::{ConversationPosition, ConversationQuery, ListedConversation};
use crate::ended::Ended;
use crate::error::StoreError;
use crate::event_list::{EventQuery, ListedEvent, NamedEvent};
use crate::executor::{OPEN_MAX, Publishing, open_since, pick_unambiguous};
use crate::hints::HintReceiver;
use crate::live::LiveReceiver;
use crate::people::PeopleCommand;
use crate::rows::ConversationKey;
use crate::sessions::SessionReader;
use crate::writer::{Job, WriterHandle};
use crate::{RetentionCutoffs, Store, StoreFuture};

/// Queries that do not need the writer. They see committed rows only.
pub trait Reader: PeopleReader + NotifyReader + SessionReader + Send + Sync + 'static {
    /// The owners of conversations with this id, and whether each is the registered one, which comes first; at most
    /// two.
    fn owners(&self, conversation_id: &str) -> impl Future<Output = Result<Vec<(String, bool)>, StoreError>> + Send;
    /// Whether this person has a conversation with this id.
    fn has(&self, user_id: &str, conversation_id: &str) -> impl Future<Output = Result<bool, StoreError>> + Send;
    /// The number of the person's conversations seen at or after `since`, at most `limit`.
    fn open_count(
        &self,
        user_id: &str,
        since: Time,
        limit: usize,
    ) -> impl Future<Output = Result<usize, StoreError>> + Send;
    /// Whether an answer is stored under this idempotency key.
    fn has_idempotency_row(&self, key: &IdempotencyKey) -> impl Future<Output = Result<bool, StoreError>> + Send;
    /// A page of events, newest first, and the position of the next one.
    fn events(
        &self,
        query: &EventQuery,
    ) -> impl Future<Output = Result<(Vec<ListedEvent>, Option<EventId>), StoreError>> + Send;
    /// A page of conversations in order, without what the mailboxes say.
    fn conversations(
        &self,
        query: &ConversationQuery,
    ) -> impl Future<Output = Result<Vec<ListedConversation>, StoreError>> + Send;
    /// The system messages after a position, oldest first.
    fn messages(
        &self,
        owner: &str,
        conversation_id: &str,
        after: i64,
        limit: usize,
    ) -> impl Future<Output = Result<(Vec<Message>, Option<i64>), StoreError>> + Send;
    /// The system messages before a position, newest first.
    fn messages_before(
        &self,
        owner: &str,
        conversation_id: &str,
        before: i64,
        limit: usize,
    ) -> impl Future<Output = Result<(Vec<Message>, Option<i64>), StoreError>> + Send;
    /// The events with this client event id, of all senders, the newest first.
    fn events_named(
        &self,
        client_event_id: &str,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<NamedEvent>, StoreError>> + Send;
    /// The trace of an event, by its id or by the client event id of `token_owner`.
    fn trace(&self, token_owner: &str, id: &str) -> impl Future<Output = Result<Option<Trace>, StoreError>> + Send;
    /// The token with this secret.
    fn token_by_secret(&self, hash: &[u8]) -> impl Future<Output = Result<Option<Token>, StoreError>> + Send;
    /// When the oldest pending notification was created.
    fn oldest_waiting(&self) -> impl Future<Output = Result<Option<Time>, StoreError>> + Send;
    /// Every token, oldest first.
    fn tokens(&self) -> impl Future<Output = Result<Vec<Token>, StoreError>> + Send;
    /// Closes the connections of the readers.
    fn close(&self) -> impl Future<Output = ()> + Send;
}

/// A store that consists of a writer and a reader.
pub struct SingleWriterStore<R> {
    pub(crate) writer: WriterHandle,
    pub(crate) reader: R,
}

impl<R: Reader> SingleWriterStore<R> {
    /// Resolves the owner of a conversation id for this caller, from committed rows.
    async fn owner(&self, caller: &Caller, id: &str) -> Result<Option<String>, StoreError> {
        if caller.conversation_id.as_deref().is_some_and(|bound| bound != id) {
            return Ok(None);
        }
        match &caller.user_id {
            Some(user) => Ok(self.reader.has(user, id).await?.then(|| user.clone())),
            None => Ok(pick_unambiguous(id, self.reader.owners(id).await?, |(_, registered)| *registered)?
                .map(|(owner, _)| owner)),
        }
    }
}

impl<R: Reader> Store for SingleWriterStore<R> {
    fn publish(&self, publish: Publish) -> StoreFuture<'_, Vec<Receipt>> {
        Box::pin(self.writer.ask(|reply| Job::Publish(Box::new(Publishing::new(publish)), reply)))
    }

    fn inject(&self, command: InjectCommand) -> StoreFuture<'_, InjectResult> {
        Box::pin(self.writer.ask(|reply| Job::Inject(Box::new(command), reply)))
    }

    fn put_conversation(
        &self,
        caller: Caller,
        id: String,
        user_id: String,
        details: ConversationDetails,
    ) -> StoreFuture<'_, ConversationView> {
        Box::pin(self.writer.ask(move |reply| Job::PutConversation(caller, id, user_id, details, reply)))
    }

    fn open_conversations(&self, caller: Caller, user_id: String, now: Time) -> StoreFuture<'_, usize> {
        Box::pin(async move {
            if caller.user_id.as_deref().is_some_and(|bound| bound != user_id) {
                return Ok(0);
            }
            // A caller that is bound to a conversation cannot access others.
            let most = if caller.conversation_id.is_some() { 1 } else { OPEN_MAX };
            self.reader.open_count(&user_id, open_since(now), most).await
        })
    }

    fn conversation(&self, caller: Caller, id: String) -> StoreFuture<'_, ConversationView> {
        Box::pin(self.writer.ask(move |reply| Job::Conversation(caller, id, reply)))
    }

    fn pending(&self, caller: Caller, id: String, agent: AgentName) -> StoreFuture<'_, Vec<PendingNotification>> {
        self.command(|reply| PeopleCommand::Pending { caller, id, agent, reply })
    }

    fn conversations(
        &self,
        caller: Caller,
        query: ConversationQuery,
    ) -> StoreFuture<'_, (Vec<ListedConversation>, Option<ConversationPosition>)> {
        Box::pin(self.list_conversations(caller, query))
    }

    fn connect(&self, caller: Caller, id: String) -> StoreFuture<'_, Vec<Hint>> {
        Box::pin(self.writer.ask(move |reply| Job::Connect(caller, id, Seen::Now, reply)))
    }

    fn watch(&self, caller: Caller, id: String) -> StoreFuture<'_, Vec<Hint>> {
        Box::pin(self.writer.ask(move |reply| Job::Connect(caller, id, Seen::AsBefore, reply)))
    }

    fn boundary(&self, caller: Caller, id: String, agent: AgentName) -> StoreFuture<'_, Boundary> {
        Box::pin(self.writer.ask(move |reply| Job::Boundary(caller, id, agent, reply)))
    }

    fn rotate_boundary(
        &self,
        caller: Caller,
        id: String,
        agent: AgentName,
        idempotency_key: Option<IdempotencyKey>,
    ) -> StoreFuture<'_, Boundary> {
        Box::pin(self.writer.ask(move |reply| Job::Rotate(caller, id, agent, idempotency_key, reply)))
    }

    fn messages(
        &self,
        caller: Caller,
        id: String,
        after: Option<i64>,
        limit: usize,
    ) -> StoreFuture<'_, (Vec<Message>, Option<i64>)> {
        Box::pin(async move {
            let owner = self.owner(&caller, &id).await?.ok_or_else(|| StoreError::not_found("conversation"))?;
            self.writer.erasing.check(&owner)?;
            self.reader.messages(&owner, &id, after.unwrap_or(0), limit).await
        })
    }

    fn messages_before(
        &self,
        caller: Caller,
        id: String,
        before: Option<i64>,
        limit: usize,
    ) -> StoreFuture<'_, (Vec<Message>, Option<i64>)> {
        Box::pin(async move {
            let owner = self.owner(&caller, &id).await?.ok_or_else(|| StoreError::not_found("conversation"))?;
            self.writer.erasing.check(&owner)?;
            self.reader.messages_before(&owner, &id, before.unwrap_or(i64::MAX), limit).await
        })
    }

    fn events(&self, caller: Caller, query: EventQuery) -> StoreFuture<'_, (Vec<ListedEvent>, Option<EventId>)> {
        Box::pin(self.list_events(caller, query))
    }

    fn events_named(&self, client_event_id: String, limit: usize) -> StoreFuture<'_, Vec<NamedEvent>> {
        Box::pin(async move {
            let mut named = self.reader.events_named(&client_event_id, limit).await?;
            named.retain(|event| !self.writer.erasing.has(&event.owner));
            Ok(named)
        })
    }

    fn trace(&self, caller: Caller, id: String) -> StoreFuture<'_, Trace> {
        Box::pin(async move {
            let trace = self.reader.trace(&caller.token_owner, &id).await?;
            let mine = |trace: &Trace| match trace.event.conversation_id.as_deref() {
                Some(conversation) => caller.may_see(conversation, &trace.owner),
                None => caller.user_id.as_deref().is_none_or(|user| user == trace.owner),
            };
            let mut trace = trace.filter(mine).ok_or_else(|| StoreError::not_found("event"))?;
            self.writer.erasing.check(&trace.owner)?;
            // An event for a person reaches several conversations. A caller bound to one of them must not see the
            // others.
            if let Some(bound) = &caller.conversation_id {
                // Verdicts for the person have no conversation and stay visible.
                trace.verdicts.retain(|one| one.conversation_id.as_ref().is_none_or(|id| **id == **bound));
                trace.person_traces.retain(|one| {
                    let item = one.item.as_ref().and_then(|item| item.conversation_id.as_ref());
                    item.is_none_or(|conversation| conversation == bound)
                });
                trace.notifications.retain(|one| one.conversation_id == *bound);
                trace.injections.retain(|one| one.conversation_id == *bound);
            }
            Ok(trace)
        })
    }

    fn put_token(&self, token: Token) -> StoreFuture<'_, ()> {
        Box::pin(self.writer.ask(|reply| Job::PutToken(Box::new(token), None, reply)))
    }

    fn put_token_once(&self, token: Token, idempotency_key: IdempotencyKey) -> StoreFuture<'_, ()> {
        Box::pin(self.writer.ask(|reply| Job::PutToken(Box::new(token), Some(idempotency_key), reply)))
    }

    fn answer_once(
        &self,
        idempotency_key: IdempotencyKey,
        answer: String,
        about: Option<String>,
    ) -> StoreFuture<'_, String> {
        Box::pin(self.writer.ask(|reply| Job::AnswerOnce(idempotency_key, answer, about, reply)))
    }

    fn token_by_secret(&self, secret_hash: Vec<u8>) -> StoreFuture<'_, Option<Token>> {
        Box::pin(async move { self.reader.token_by_secret(&secret_hash).await })
    }

    fn tokens(&self) -> StoreFuture<'_, Vec<Token>> {
        Box::pin(self.reader.tokens())
    }

    fn erase_user(&self, user_id: String) -> StoreFuture<'_, ()> {
        Box::pin(self.writer.ask(move |reply| Job::EraseUser(user_id, reply)))
    }

    fn erased(&self) -> watch::Receiver<u64> {
        self.writer.erased.clone()
    }

    fn prune(&self, kept: RetentionCutoffs, limit: usize) -> StoreFuture<'_, usize> {
        Box::pin(self.writer.ask(move |reply| Job::Prune(kept, limit, reply)))
    }

    fn waiting(&self) -> StoreFuture<'_, (usize, Option<Time>)> {
        Box::pin(async move {
            let count = self.writer.waiting.load(std::sync::atomic::Ordering::SeqCst);
            Ok((usize::try_from(count).unwrap_or(0), self.reader.oldest_waiting().await?))
        })
    }

    fn tick(&self) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            while self.writer.ask(Job::Tick).await? {}
            Ok(())
        })
    }

    fn set_subscribers(&self, subscribers: Arc<Subscribers>) -> StoreFuture<'_, ()> {
        Box::pin(self.writer.ask(move |reply| Job::SetSubscribers(subscribers, reply)))
    }

    fn now(&self) -> Time {
        self.writer.clock.now()
    }

    fn check(&self) -> StoreFuture<'_, ()> {
        Box::pin(self.writer.ask(Job::Check))
    }

    fn close(&self) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            // The writer closes last, because the last connection removes the write-ahead log.
            self.reader.close().await;
            self.writer.ask(Job::Close).await
        })
    }

    fn ended(&self) -> Pin<Box<dyn Future<Output = Ended> + Send>> {
        Box::pin(self.writer.ended())
    }

    fn live(&self, query: EventQuery) -> LiveReceiver {
        self.writer.live.listen(query)
    }

    fn hints(&self, user_id: &str, conversation_id: &str) -> HintReceiver {
        self.writer.hints(ConversationKey::new(user_id, conversation_id))
    }
}
