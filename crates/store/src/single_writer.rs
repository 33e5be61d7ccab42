//! The one face of every store with a single writer: writes are asked of the writer, reads go beside it.

mod early_refusal;
mod people;

pub(crate) use people::PeopleReader;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bellwire_core::Time;
use bellwire_core::render::Boundary;
use bellwire_core::subscriber::Subscribers;
use tokio::sync::watch;

use crate::command::{
    Caller, ConversationView, Hint, IdempotencyKey, InjectCommand, InjectResult, Message, Publish, Receipt, Token,
    Trace,
};
use crate::ended::Ended;
use crate::error::StoreError;
use crate::executor::{OPEN_MAX, Publishing, open_since, pick_unambiguous};
use crate::hints::HintReceiver;
use crate::rows::ConversationKey;
use crate::writer::{Job, WriterHandle};
use crate::{RetentionCutoffs, Store, StoreFuture};

/// What can be read without the writer, from committed rows only.
pub trait Reader: PeopleReader + Send + Sync + 'static {
    /// Who has a conversation of this id, and whether it is the registered one, that first; at most two.
    fn owners(&self, conversation_id: &str) -> impl Future<Output = Result<Vec<(String, bool)>, StoreError>> + Send;
    /// Whether this person has a conversation of this id.
    fn has(&self, user_id: &str, conversation_id: &str) -> impl Future<Output = Result<bool, StoreError>> + Send;
    /// How many conversations of this person were seen since then, at most `limit`.
    fn open_count(
        &self,
        user_id: &str,
        since: Time,
        limit: usize,
    ) -> impl Future<Output = Result<usize, StoreError>> + Send;
    /// Whether a call was made under this name and answered; which answer that was, the writer knows.
    fn is_named(&self, once: &IdempotencyKey) -> impl Future<Output = Result<bool, StoreError>> + Send;
    /// What was shown, oldest first, from behind `after` on.
    fn messages(
        &self,
        owner: &str,
        conversation_id: &str,
        after: i64,
        limit: usize,
    ) -> impl Future<Output = Result<(Vec<Message>, Option<i64>), StoreError>> + Send;
    /// One event's life, by our name for it or by the name `token_owner` brought.
    fn trace(&self, token_owner: &str, id: &str) -> impl Future<Output = Result<Option<Trace>, StoreError>> + Send;
    /// The token with this secret.
    fn token_by_secret(&self, hash: &[u8]) -> impl Future<Output = Result<Option<Token>, StoreError>> + Send;
    /// Since when the oldest notification waits.
    fn oldest_waiting(&self) -> impl Future<Output = Result<Option<Time>, StoreError>> + Send;
    /// Every token, oldest first.
    fn tokens(&self) -> impl Future<Output = Result<Vec<Token>, StoreError>> + Send;
    /// Lets the data go.
    fn close(&self) -> impl Future<Output = ()> + Send;
}

/// A store: a writer to ask and rows to read.
pub struct SingleWriterStore<R> {
    pub(crate) writer: WriterHandle,
    pub(crate) reader: R,
}

impl<R: Reader> SingleWriterStore<R> {
    /// Whose conversation of this id the caller means, among those that are committed.
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

    fn take(&self, take: InjectCommand) -> StoreFuture<'_, InjectResult> {
        Box::pin(self.writer.ask(|reply| Job::Inject(Box::new(take), reply)))
    }

    fn put_conversation(
        &self,
        caller: Caller,
        id: String,
        user_id: String,
        title: Option<String>,
    ) -> StoreFuture<'_, ConversationView> {
        Box::pin(self.writer.ask(move |reply| Job::PutConversation(caller, id, user_id, title, reply)))
    }

    fn open_conversations(&self, caller: Caller, user_id: String, now: Time) -> StoreFuture<'_, usize> {
        Box::pin(async move {
            if caller.user_id.as_deref().is_some_and(|bound| bound != user_id) {
                return Ok(0);
            }
            // A caller bound to one conversation reaches no other.
            let most = if caller.conversation_id.is_some() { 1 } else { OPEN_MAX };
            self.reader.open_count(&user_id, open_since(now), most).await
        })
    }

    fn conversation(&self, caller: Caller, id: String) -> StoreFuture<'_, ConversationView> {
        Box::pin(self.writer.ask(move |reply| Job::Conversation(caller, id, reply)))
    }

    fn connect(&self, caller: Caller, id: String) -> StoreFuture<'_, Vec<Hint>> {
        Box::pin(self.writer.ask(move |reply| Job::Connect(caller, id, reply)))
    }

    fn rotate_boundary(&self, caller: Caller, id: String, once: Option<IdempotencyKey>) -> StoreFuture<'_, Boundary> {
        Box::pin(self.writer.ask(move |reply| Job::Rotate(caller, id, once, reply)))
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

    fn trace(&self, caller: Caller, id: String) -> StoreFuture<'_, Trace> {
        Box::pin(async move {
            let trace = self.reader.trace(&caller.token_owner, &id).await?;
            let mine = |trace: &Trace| match trace.event.conversation_id.as_deref() {
                Some(conversation) => caller.may_see(conversation, &trace.owner),
                None => caller.user_id.as_deref().is_none_or(|user| user == trace.owner),
            };
            let mut trace = trace.filter(mine).ok_or_else(|| StoreError::not_found("event"))?;
            self.writer.erasing.check(&trace.owner)?;
            // An event for a person reaches conversations that a caller bound to one of them knows nothing of.
            if let Some(bound) = &caller.conversation_id {
                // What is decided for the person is decided in no conversation.
                trace.verdicts.retain(|one| *one.conversation_id == **bound || one.conversation_id.is_empty());
                trace.told.retain(|one| {
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

    fn put_token_once(&self, token: Token, once: IdempotencyKey) -> StoreFuture<'_, ()> {
        Box::pin(self.writer.ask(|reply| Job::PutToken(Box::new(token), Some(once), reply)))
    }

    fn answer_once(&self, once: IdempotencyKey, answer: String, about: Option<String>) -> StoreFuture<'_, String> {
        Box::pin(self.writer.ask(|reply| Job::AnswerOnce(once, answer, about, reply)))
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
        Box::pin(self.writer.ask(Job::Tick))
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
            // The writer goes last: with it the file is left as one whole, without a log beside it.
            self.reader.close().await;
            self.writer.ask(Job::Close).await
        })
    }

    fn ended(&self) -> Pin<Box<dyn Future<Output = Ended> + Send>> {
        Box::pin(self.writer.ended())
    }

    fn hints(&self, user_id: &str, conversation_id: &str) -> HintReceiver {
        self.writer.hints(ConversationKey::new(user_id, conversation_id))
    }
}
