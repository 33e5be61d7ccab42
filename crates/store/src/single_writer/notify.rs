use std::future::Future;

use bellwire_core::Time;
use bellwire_core::event::AgentName;
use bellwire_core::notify::RequestContext;
use tokio::sync::watch;
use uuid::Uuid;

use super::{Reader, SingleWriterStore};
use crate::StoreFuture;
use crate::error::StoreError;
use crate::notify::{
    InboundMessage, LedgerDraft, LedgerEntry, LedgerQuery, NotifyAnswer, NotifyClaim, NotifyClaimed, NotifyEnd,
    NotifyKey, NotifyRequests, NotifyRow, OriginSums, SentFrom, sum_up,
};
use crate::people::PeopleCommand;

/// How many people with the same target are read.
const SAME_TARGET_MAX: usize = 8;

/// Queries about `notify` that do not need the writer. They see committed rows only.
pub trait NotifyReader {
    /// The answer of a request that ended after this time.
    fn notify_answer(
        &self,
        key: &NotifyKey,
        since: Time,
    ) -> impl Future<Output = Result<Option<NotifyAnswer>, StoreError>> + Send;
    /// The next entries that the page may read, newest first: of the person or the origin, whatever else is asked for.
    fn ledger(&self, query: &LedgerQuery) -> impl Future<Output = Result<Vec<LedgerEntry>, StoreError>> + Send;
    /// The sums per origin since the day of this time.
    fn ledger_sums(
        &self,
        origin: Option<&str>,
        since: Time,
    ) -> impl Future<Output = Result<Vec<OriginSums>, StoreError>> + Send;
    /// The inbound message with this thread identity.
    fn inbound_message(
        &self,
        channel: &str,
        thread: &str,
    ) -> impl Future<Output = Result<Option<InboundMessage>, StoreError>> + Send;
    /// The newest inbound message that this agent has read.
    fn reply_context(
        &self,
        user_id: &str,
        conversation_id: &str,
        agent: &str,
    ) -> impl Future<Output = Result<Option<RequestContext>, StoreError>> + Send;
    /// The message that was chosen for the oldest request with this key that did not end before this time.
    fn chosen_context(
        &self,
        call_key: &NotifyKey,
        since: Time,
    ) -> impl Future<Output = Result<Option<RequestContext>, StoreError>> + Send;
    /// The people with this target, ordered by id.
    fn people_with_target(
        &self,
        channel: &str,
        target: &str,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<String>, StoreError>> + Send;
}

impl<R: Reader> NotifyRequests for SingleWriterStore<R> {
    fn claim_notify(&self, claim: NotifyClaim) -> StoreFuture<'_, NotifyClaimed> {
        self.command(|reply| PeopleCommand::ClaimNotify { claim: Box::new(claim), reply })
    }

    fn start_notify(&self, key: NotifyKey, fence: i64, from: SentFrom) -> StoreFuture<'_, bool> {
        self.command(move |reply| PeopleCommand::StartNotify { key, fence, from, reply })
    }

    fn end_notify(&self, end: NotifyEnd) -> StoreFuture<'_, Option<NotifyAnswer>> {
        self.command(|reply| PeopleCommand::EndNotify { end: Box::new(end), reply })
    }

    fn notify_answer(&self, key: NotifyKey) -> StoreFuture<'_, Option<NotifyAnswer>> {
        Box::pin(async move {
            let since = self.writer.clock.now().minus(NotifyRow::KEPT_MS);
            self.reader.notify_answer(&key, since).await
        })
    }

    fn notify_changes(&self) -> watch::Receiver<()> {
        self.writer.doorbells.notify()
    }

    fn record_decision(&self, draft: LedgerDraft) -> StoreFuture<'_, ()> {
        self.command(|reply| PeopleCommand::RecordDecision { draft: Box::new(draft), reply })
    }

    fn ledger(&self, query: LedgerQuery) -> StoreFuture<'_, (Vec<LedgerEntry>, Option<Uuid>)> {
        Box::pin(async move {
            query.user_id.as_deref().map_or(Ok(()), |user_id| self.writer.erasing.check(user_id))?;
            let rows = self.reader.ledger(&query).await?;
            let (mut entries, next) = query.page(rows);
            entries.retain(|entry| !entry.decided.user_id.as_deref().is_some_and(|id| self.writer.erasing.has(id)));
            Ok((entries, next))
        })
    }

    fn ledger_sums(
        &self,
        origin: Option<String>,
        user_id: Option<String>,
        since: Time,
    ) -> StoreFuture<'_, Vec<OriginSums>> {
        Box::pin(async move {
            let Some(user_id) = user_id else { return self.reader.ledger_sums(origin.as_deref(), since).await };
            self.writer.erasing.check(&user_id)?;
            // The sums of a day name no person, so those of one person are counted from the newest entries.
            let query = LedgerQuery { user_id: Some(user_id), since: Some(since), ..LedgerQuery::default() };
            let rows = self.reader.ledger(&query).await?.into_iter().map(|entry| entry.decided);
            let of_origin = |decided: &LedgerDraft| origin.as_ref().is_none_or(|origin| *origin == decided.origin);
            Ok(sum_up(rows.filter(of_origin).map(|decided| (decided.origin, decided.decision, 1))))
        })
    }

    fn inbound_message(&self, channel: String, thread: String) -> StoreFuture<'_, Option<InboundMessage>> {
        Box::pin(async move {
            let found = self.reader.inbound_message(&channel, &thread).await?;
            Ok(found.filter(|message| !self.writer.erasing.has(&message.user_id)))
        })
    }

    fn reply_context(
        &self,
        user_id: String,
        conversation_id: String,
        agent: AgentName,
    ) -> StoreFuture<'_, Option<RequestContext>> {
        Box::pin(async move {
            self.writer.erasing.check(&user_id)?;
            self.reader.reply_context(&user_id, &conversation_id, agent.as_str()).await
        })
    }

    fn chosen_context(&self, call_key: NotifyKey) -> StoreFuture<'_, Option<RequestContext>> {
        Box::pin(async move {
            let since = self.writer.clock.now().minus(NotifyRow::KEPT_MS);
            self.reader.chosen_context(&call_key, since).await
        })
    }

    fn people_with_target(&self, channel: String, target: String) -> StoreFuture<'_, Vec<String>> {
        Box::pin(async move { self.reader.people_with_target(&channel, &target, SAME_TARGET_MAX).await })
    }
}
