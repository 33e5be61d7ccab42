use std::future::Future;

use bellwire_core::person::PersonSettings;
use bellwire_core::{NotificationId, Time};
use tokio::sync::watch;
use uuid::Uuid;

use super::{Reader, SingleWriterStore};
use crate::StoreFuture;
use crate::command::IdempotencyKey;
use crate::error::StoreError;
use crate::people::{
    AttemptEnd, AttemptStart, Catchup, Claim, Delivery, DeliveryState, Doorbell, InboxItem, InboxQuery, NewReminder,
    NotificationDraft, People, PeopleCommand, PressResult, Reminder, SendResult, SettingsRequest,
};
use crate::reply::PendingReply;
use crate::writer::Job;

/// What of people can be read without the writer, from committed rows only.
pub trait PeopleReader {
    /// What a person prefers.
    fn settings(&self, user_id: &str) -> impl Future<Output = Result<PersonSettings, StoreError>> + Send;
    /// Newest first, one more than the page holds if there is one.
    fn inbox(
        &self,
        user_id: &str,
        query: InboxQuery,
    ) -> impl Future<Output = Result<Vec<InboxItem>, StoreError>> + Send;
    /// How many are not read.
    fn unread_count(&self, user_id: &str) -> impl Future<Output = Result<usize, StoreError>> + Send;
    /// What has changed behind a position, or only where the inbox stands; all of one moment.
    fn catch_up(
        &self,
        user_id: &str,
        after: Option<i64>,
        limit: usize,
    ) -> impl Future<Output = Result<Catchup, StoreError>> + Send;
    /// What is to be told later, oldest first, from behind `after` on.
    fn reminders(
        &self,
        user_id: Option<&str>,
        after: Option<Uuid>,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<Reminder>, StoreError>> + Send;
    /// Newest first, older than `before`.
    fn deliveries(
        &self,
        user_id: Option<&str>,
        state: Option<DeliveryState>,
        before: Option<Uuid>,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<Delivery>, StoreError>> + Send;
    /// How many deliveries wait, and when the first of them is or was due.
    fn outbox(&self) -> impl Future<Output = Result<(usize, Option<Time>), StoreError>> + Send;
    /// When the first of them is or was due.
    fn oldest_delivery(&self) -> impl Future<Output = Result<Option<Time>, StoreError>> + Send;
}

impl<R: Reader> SingleWriterStore<R> {
    fn command<'a, T: Send + 'a>(
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

    fn unread_count(&self, user_id: String) -> StoreFuture<'_, usize> {
        Box::pin(async move {
            self.writer.erasing.check(&user_id)?;
            self.reader.unread_count(&user_id).await
        })
    }

    fn catch_up(&self, user_id: String, after: Option<i64>, limit: usize) -> StoreFuture<'_, Catchup> {
        Box::pin(async move {
            self.writer.erasing.check(&user_id)?;
            self.reader.catch_up(&user_id, after, limit).await
        })
    }

    fn mark(&self, user_id: String, id: NotificationId, read: bool) -> StoreFuture<'_, InboxItem> {
        self.command(move |reply| PeopleCommand::Mark { user_id, id, read, reply })
    }

    fn read_all(&self, user_id: String, once: Option<IdempotencyKey>) -> StoreFuture<'_, usize> {
        Box::pin(async move {
            let mut before = 0;
            // Others have their turn between two steps.
            loop {
                let (user_id, once) = (user_id.clone(), once.clone());
                let (all, more) =
                    self.command(|reply| PeopleCommand::ReadSome { user_id, before, once, reply }).await?;
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

    fn act(
        &self,
        user_id: String,
        id: NotificationId,
        index: usize,
        once: Option<IdempotencyKey>,
    ) -> StoreFuture<'_, PressResult> {
        self.command(move |reply| PeopleCommand::Act { user_id, id, index, once, reply })
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
            // Others have their turn between two steps.
            while let Some(after) = rest {
                let user_id = user_id.clone();
                rest = self.command(|reply| PeopleCommand::PlanAnew { user_id, after, reply }).await?;
            }
            Ok(settings)
        })
    }

    fn confirm_address(
        &self,
        user_id: String,
        code: Vec<u8>,
        once: Option<IdempotencyKey>,
    ) -> StoreFuture<'_, PersonSettings> {
        self.command(|reply| PeopleCommand::ConfirmAddress { user_id, code, once, reply })
    }

    fn unsubscribe(&self, user_id: String, address: String) -> StoreFuture<'_, ()> {
        self.command(|reply| PeopleCommand::Unsubscribe { user_id, address, reply })
    }

    fn claim(&self, limit: usize) -> StoreFuture<'_, Vec<Claim>> {
        Box::pin(async move {
            let mut told = None;
            // Others have their turn between two steps.
            while let Some(letter) = self.command(|reply| PeopleCommand::SettleLeases { told, reply }).await? {
                told = Some(letter);
            }
            self.command(|reply| PeopleCommand::Claim { limit, reply }).await
        })
    }

    fn start(&self, letter: AttemptStart) -> StoreFuture<'_, bool> {
        self.command(|reply| PeopleCommand::Start { letter, reply })
    }

    fn finish(&self, finish: AttemptEnd) -> StoreFuture<'_, bool> {
        Box::pin(async move {
            let (mut finish, mut is_told) = (finish, false);
            // Others have their turn between two steps.
            loop {
                let part = finish.clone();
                let (is_ours, rest) =
                    self.command(|reply| PeopleCommand::AttemptEnd { finish: part, is_told, reply }).await?;
                let Some(outcome) = rest else { return Ok(is_ours) };
                (finish.outcome, is_told) = (outcome, true);
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

    fn retry_delivery(
        &self,
        user_id: Option<String>,
        id: Uuid,
        once: Option<IdempotencyKey>,
    ) -> StoreFuture<'_, Delivery> {
        self.command(move |reply| PeopleCommand::RetryDelivery { user_id, id, once, reply })
    }

    fn cancel_delivery(
        &self,
        user_id: Option<String>,
        id: Uuid,
        once: Option<IdempotencyKey>,
    ) -> StoreFuture<'_, Delivery> {
        self.command(move |reply| PeopleCommand::CancelDelivery { user_id, id, once, reply })
    }

    fn recall(&self, once: IdempotencyKey) -> StoreFuture<'_, Option<String>> {
        self.command(|reply| PeopleCommand::Recall { once, reply })
    }

    fn secret(&self, name: String, fresh: Vec<u8>) -> StoreFuture<'_, Vec<u8>> {
        self.command(|reply| PeopleCommand::Secret { name, fresh, reply })
    }

    fn outbox(&self) -> StoreFuture<'_, (usize, Option<Time>)> {
        Box::pin(self.reader.outbox())
    }

    fn oldest_delivery(&self) -> StoreFuture<'_, Option<Time>> {
        Box::pin(self.reader.oldest_delivery())
    }

    fn doorbell(&self, user_id: &str) -> Doorbell {
        self.writer.doorbells.at(user_id)
    }

    fn outbox_changes(&self) -> watch::Receiver<()> {
        self.writer.doorbells.outbox()
    }
}

/// The rows of a page, and the last of them where there are more.
fn page<T>(mut rows: Vec<T>, limit: usize, name: fn(&T) -> Uuid) -> (Vec<T>, Option<Uuid>) {
    let more = rows.len() > limit;
    rows.truncate(limit);
    let next = rows.last().map(name).filter(|_| more);
    (rows, next)
}
