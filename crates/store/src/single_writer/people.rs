use std::future::Future;
use std::sync::PoisonError;

use bellwire_core::person::{ChannelName, PersonSettings};
use bellwire_core::{NotificationId, Time};
use tokio::sync::watch;
use uuid::Uuid;

use super::{Reader, SingleWriterStore};
use crate::StoreFuture;
use crate::command::IdempotencyKey;
use crate::error::StoreError;
use crate::people::{
    AttemptEnd, AttemptStart, Catchup, Claim, DELIVERIES_PER_ITEM_MAX, Delivery, DeliveryState, Doorbell, InboxItem,
    InboxQuery, ItemHeading, KnownPerson, NewReminder, NotificationDraft, People, PeopleCommand, PressOutcome,
    Reminder, RestoreOutcome, SendResult, SettingsRequest, WaitingDeliveries,
};
use crate::reply::PendingReply;
use crate::writer::Job;

/// The maximum number of notifications whose deliveries are read at once: a page.
const ITEMS_MAX: usize = 100;

/// Queries about people that do not need the writer. They see committed rows only.
pub trait PeopleReader {
    /// A person's settings.
    fn settings(&self, user_id: &str) -> impl Future<Output = Result<PersonSettings, StoreError>> + Send;
    /// A page of the inbox, newest first, with one more item than the page size if there is one.
    fn inbox(
        &self,
        user_id: &str,
        query: InboxQuery,
    ) -> impl Future<Output = Result<Vec<InboxItem>, StoreError>> + Send;
    /// The items of a page that contain a text, with one more than the page size if there is one; and the last item looked at
    /// if there are more behind it.
    fn search_inbox(
        &self,
        user_id: &str,
        query: InboxQuery,
        text: &str,
    ) -> impl Future<Output = Result<(Vec<InboxItem>, Option<Uuid>), StoreError>> + Send;
    /// The first people after an id whose ids have this prefix, by id.
    fn people(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<KnownPerson>, StoreError>> + Send;
    /// The number of unread items.
    fn unread_count(&self, user_id: &str) -> impl Future<Output = Result<usize, StoreError>> + Send;
    /// The changes after a position, or without a position the current one and the toasts that are due now. All values are
    /// of one transaction.
    fn catch_up(
        &self,
        user_id: &str,
        after: Option<i64>,
        limit: usize,
        now: Time,
    ) -> impl Future<Output = Result<Catchup, StoreError>> + Send;
    /// The waiting reminders with an id after `after`, ordered by id.
    fn reminders(
        &self,
        user_id: Option<&str>,
        after: Option<Uuid>,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<Reminder>, StoreError>> + Send;
    /// Deliveries older than `before`, newest first.
    fn deliveries(
        &self,
        user_id: Option<&str>,
        state: Option<DeliveryState>,
        before: Option<Uuid>,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<Delivery>, StoreError>> + Send;
    /// The origins and titles of these notifications.
    fn headings(
        &self,
        items: &[(String, NotificationId)],
    ) -> impl Future<Output = Result<Vec<ItemHeading>, StoreError>> + Send;
    /// The deliveries of these notifications, oldest first.
    fn deliveries_of(
        &self,
        user_id: &str,
        ids: &[NotificationId],
        limit: usize,
    ) -> impl Future<Output = Result<Vec<Delivery>, StoreError>> + Send;
    /// The earliest due time of the deliveries that wait on a channel.
    fn oldest_delivery(&self, channel: &ChannelName) -> impl Future<Output = Result<Option<Time>, StoreError>> + Send;
}

impl<R: Reader> SingleWriterStore<R> {
    pub(super) fn command<'a, T: Send + 'a>(
        &'a self,
        command: impl FnOnce(PendingReply<T>) -> PeopleCommand + Send + 'a,
    ) -> StoreFuture<'a, T> {
        Box::pin(self.writer.ask(|reply| Job::People(command(reply))))
    }
}

impl<R: Reader> People for SingleWriterStore<R> {
    fn send(&self, draft: NotificationDraft) -> StoreFuture<'_, SendResult> {
        Box::pin(async move {
            match self.refused_before(&draft).await? {
                Some(refused) => Ok(refused),
                None => self.command(|reply| PeopleCommand::Send { draft: Box::new(draft), reply }).await,
            }
        })
    }

    fn inbox(&self, user_id: String, query: InboxQuery) -> StoreFuture<'_, (Vec<InboxItem>, Option<Uuid>)> {
        Box::pin(async move {
            self.writer.erasing.check(&user_id)?;
            let more = InboxQuery { limit: query.limit + 1, ..query };
            let items = self.reader.inbox(&user_id, more).await?;
            Ok(page(items, query.limit, |item| item.id.0))
        })
    }

    fn search_inbox(
        &self,
        user_id: String,
        query: InboxQuery,
        text: String,
    ) -> StoreFuture<'_, (Vec<InboxItem>, Option<Uuid>)> {
        Box::pin(async move {
            self.writer.erasing.check(&user_id)?;
            let more = InboxQuery { limit: query.limit + 1, ..query };
            let (items, looked) = self.reader.search_inbox(&user_id, more, &text.to_ascii_lowercase()).await?;
            let (items, next) = page(items, query.limit, |item| item.id.0);
            Ok((items, next.or(looked)))
        })
    }

    fn unread_count(&self, user_id: String) -> StoreFuture<'_, usize> {
        Box::pin(async move {
            self.writer.erasing.check(&user_id)?;
            self.reader.unread_count(&user_id).await
        })
    }

    fn catch_up(&self, user_id: String, after: Option<i64>, limit: usize) -> StoreFuture<'_, Catchup> {
        Box::pin(async move {
            self.writer.erasing.check(&user_id)?;
            self.reader.catch_up(&user_id, after, limit, self.writer.clock.now()).await
        })
    }

    fn people(
        &self,
        prefix: String,
        after: Option<String>,
        limit: usize,
    ) -> StoreFuture<'_, (Vec<KnownPerson>, Option<String>)> {
        Box::pin(async move {
            let mut people = self.reader.people(&prefix, after.as_deref(), limit + 1).await?;
            let more = people.len() > limit;
            people.truncate(limit);
            let next = people.last().map(|person| person.id.clone()).filter(|_| more);
            Ok((people, next))
        })
    }

    fn mark(&self, user_id: String, id: NotificationId, read: bool) -> StoreFuture<'_, InboxItem> {
        self.command(move |reply| PeopleCommand::Mark { user_id, id, read, reply })
    }

    fn read_all(&self, user_id: String, idempotency_key: Option<IdempotencyKey>) -> StoreFuture<'_, usize> {
        Box::pin(async move {
            let mut before = 0;
            // Other commands run between two steps.
            loop {
                let (user_id, idempotency_key) = (user_id.clone(), idempotency_key.clone());
                let (all, more) =
                    self.command(|reply| PeopleCommand::ReadSome { user_id, before, idempotency_key, reply }).await?;
                if !more {
                    return Ok(all);
                }
                before = all;
            }
        })
    }

    fn dismiss(&self, user_id: String, id: NotificationId) -> StoreFuture<'_, InboxItem> {
        self.command(move |reply| PeopleCommand::Dismiss { user_id, id, reply })
    }

    fn restore(&self, user_id: String, id: NotificationId) -> StoreFuture<'_, RestoreOutcome> {
        self.command(move |reply| PeopleCommand::Restore { user_id, id, reply })
    }

    fn act(
        &self,
        user_id: String,
        id: NotificationId,
        index: usize,
        idempotency_key: Option<IdempotencyKey>,
    ) -> StoreFuture<'_, PressOutcome> {
        self.command(move |reply| PeopleCommand::Act { user_id, id, index, idempotency_key, reply })
    }

    fn remind(&self, reminder: NewReminder) -> StoreFuture<'_, Reminder> {
        self.command(|reply| PeopleCommand::Remind { reminder: Box::new(reminder), reply })
    }

    fn reminders(
        &self,
        user_id: Option<String>,
        after: Option<Uuid>,
        limit: usize,
    ) -> StoreFuture<'_, (Vec<Reminder>, Option<Uuid>)> {
        Box::pin(async move {
            user_id.as_deref().map_or(Ok(()), |user_id| self.writer.erasing.check(user_id))?;
            let reminders = self.reader.reminders(user_id.as_deref(), after, limit + 1).await?;
            Ok(page(reminders, limit, |reminder| reminder.id))
        })
    }

    fn cancel_reminder(&self, user_id: Option<String>, id: Uuid) -> StoreFuture<'_, ()> {
        self.command(move |reply| PeopleCommand::CancelReminder { user_id, id, reply })
    }

    fn settings(&self, user_id: String) -> StoreFuture<'_, PersonSettings> {
        Box::pin(async move {
            self.writer.erasing.check(&user_id)?;
            self.reader.settings(&user_id).await
        })
    }

    fn change_settings(&self, change: SettingsRequest) -> StoreFuture<'_, PersonSettings> {
        Box::pin(async move {
            let user_id = change.user_id.clone();
            let change = Box::new(change);
            let (settings, mut rest) = self.command(|reply| PeopleCommand::ChangeSettings { change, reply }).await?;
            // Other commands run between two steps.
            while let Some(after) = rest {
                let user_id = user_id.clone();
                rest = self.command(|reply| PeopleCommand::PlanAnew { user_id, after, reply }).await?;
            }
            Ok(settings)
        })
    }

    fn confirm_target(
        &self,
        user_id: String,
        channel: ChannelName,
        code: Vec<u8>,
        idempotency_key: Option<IdempotencyKey>,
    ) -> StoreFuture<'_, PersonSettings> {
        self.command(|reply| PeopleCommand::ConfirmTarget { user_id, channel, code, idempotency_key, reply })
    }

    fn unsubscribe(&self, user_id: String, channel: ChannelName, target: String) -> StoreFuture<'_, ()> {
        self.command(|reply| PeopleCommand::Unsubscribe { user_id, channel, target, reply })
    }

    fn claim(&self, channel: ChannelName, limit: usize) -> StoreFuture<'_, Vec<Claim>> {
        Box::pin(async move {
            let mut notified = None;
            // Other commands run between two steps.
            while let Some(settled) = self.command(|reply| PeopleCommand::SettleLeases { notified, reply }).await? {
                notified = Some(settled);
            }
            let mut claims = Vec::new();
            loop {
                let (channel, limit) = (channel.clone(), limit - claims.len());
                match self.command(|reply| PeopleCommand::Claim { channel, limit, reply }).await {
                    Ok((more_claims, more)) => {
                        claims.extend(more_claims);
                        if !more {
                            return Ok(claims);
                        }
                    }
                    // What is claimed must be sent before its lease ends.
                    Err(_) if !claims.is_empty() => return Ok(claims),
                    Err(error) => return Err(error),
                }
            }
        })
    }

    fn start(&self, start: AttemptStart) -> StoreFuture<'_, bool> {
        self.command(|reply| PeopleCommand::Start { start, reply })
    }

    fn finish(&self, finish: AttemptEnd) -> StoreFuture<'_, bool> {
        Box::pin(async move {
            let (mut finish, mut is_notified) = (finish, false);
            // Other commands run between two steps.
            loop {
                let part = finish.clone();
                let (is_ours, rest) =
                    self.command(|reply| PeopleCommand::AttemptEnd { finish: part, is_notified, reply }).await?;
                let Some(outcome) = rest else { return Ok(is_ours) };
                (finish.outcome, is_notified) = (outcome, true);
            }
        })
    }

    fn deliveries(
        &self,
        user_id: Option<String>,
        state: Option<DeliveryState>,
        before: Option<Uuid>,
        limit: usize,
    ) -> StoreFuture<'_, (Vec<Delivery>, Option<Uuid>)> {
        Box::pin(async move {
            user_id.as_deref().map_or(Ok(()), |user_id| self.writer.erasing.check(user_id))?;
            let deliveries = self.reader.deliveries(user_id.as_deref(), state, before, limit + 1).await?;
            Ok(page(deliveries, limit, |delivery| delivery.id))
        })
    }

    fn deliveries_of(&self, user_id: String, mut ids: Vec<NotificationId>) -> StoreFuture<'_, Vec<Delivery>> {
        Box::pin(async move {
            self.writer.erasing.check(&user_id)?;
            ids.truncate(ITEMS_MAX);
            match ids.is_empty() {
                true => Ok(Vec::new()),
                false => self.reader.deliveries_of(&user_id, &ids, ids.len() * DELIVERIES_PER_ITEM_MAX).await,
            }
        })
    }

    fn headings(&self, mut items: Vec<(String, NotificationId)>) -> StoreFuture<'_, Vec<ItemHeading>> {
        Box::pin(async move {
            items.truncate(ITEMS_MAX);
            match items.is_empty() {
                true => Ok(Vec::new()),
                false => self.reader.headings(&items).await,
            }
        })
    }

    fn retry_delivery(
        &self,
        user_id: Option<String>,
        id: Uuid,
        idempotency_key: Option<IdempotencyKey>,
    ) -> StoreFuture<'_, Delivery> {
        self.command(move |reply| PeopleCommand::RetryDelivery { user_id, id, idempotency_key, reply })
    }

    fn cancel_delivery(
        &self,
        user_id: Option<String>,
        id: Uuid,
        idempotency_key: Option<IdempotencyKey>,
    ) -> StoreFuture<'_, Delivery> {
        self.command(move |reply| PeopleCommand::CancelDelivery { user_id, id, idempotency_key, reply })
    }

    fn recall(&self, idempotency_key: IdempotencyKey) -> StoreFuture<'_, Option<String>> {
        self.command(|reply| PeopleCommand::Recall { idempotency_key, reply })
    }

    fn secret(&self, name: String, fresh: Vec<u8>) -> StoreFuture<'_, Vec<u8>> {
        self.command(|reply| PeopleCommand::Secret { name, fresh, reply })
    }

    fn outbox(&self) -> StoreFuture<'_, Vec<WaitingDeliveries>> {
        Box::pin(async move {
            let waiting = self.writer.outbox.lock().unwrap_or_else(PoisonError::into_inner).waiting();
            let mut outbox = Vec::with_capacity(waiting.len());
            for (channel, count) in waiting {
                // None: the last one was claimed after the count was read.
                if let Some(oldest) = self.reader.oldest_delivery(&channel).await? {
                    outbox.push(WaitingDeliveries { channel, count, oldest });
                }
            }
            Ok(outbox)
        })
    }

    fn oldest_delivery(&self, channel: ChannelName) -> StoreFuture<'_, Option<Time>> {
        Box::pin(async move { self.reader.oldest_delivery(&channel).await })
    }

    fn doorbell(&self, user_id: &str) -> Doorbell {
        self.writer.doorbells.at(user_id)
    }

    fn outbox_changes(&self) -> watch::Receiver<()> {
        self.writer.doorbells.outbox()
    }
}

/// The rows of a page, and the cursor if there are more.
fn page<T>(mut rows: Vec<T>, limit: usize, name: fn(&T) -> Uuid) -> (Vec<T>, Option<Uuid>) {
    let more = rows.len() > limit;
    rows.truncate(limit);
    let next = rows.last().map(name).filter(|_| more);
    (rows, next)
}
