//! Repeats of an event that a person was notified of. They are counted in the item that the inbox has of it, and are no
//! item of their own.

use bellwire_core::notification::{Notification, NotificationKind};
use bellwire_core::person::PersonMessage;
use bellwire_core::subscriber::SubscriberId;
use bellwire_core::{EventId, NotificationId};

use super::{Executor, RowSource};
use crate::error::{ErrorKind, StoreError};
use crate::people::Reminder;

/// A completed notification of a person's mailbox.
pub(super) struct ReadyMessage {
    pub(super) id: NotificationId,
    pub(super) subscriber: SubscriberId,
    pub(super) message: PersonMessage,
    pub(super) repeats: Option<Repeats>,
}

/// Repeats of an event that was in an earlier notification of the same subscriber.
pub(super) struct Repeats {
    event: EventId,
    subscriber: String,
    times: u32,
}

impl Repeats {
    /// None = the notification shows events of its own.
    pub(super) fn of(notification: &Notification) -> Option<Self> {
        let entry = notification.events.first().filter(|_| notification.kind == NotificationKind::Repeats)?;
        Some(Self { event: entry.event, subscriber: notification.subscriber.to_string(), times: entry.merged })
    }
}

impl Executor {
    /// Counts the repeats in the item that shows their event, or in the message that waits for the hourly limit. False = neither exists any more, so the repeats need an item of their own.
    pub(super) async fn count_repeats(
        &mut self,
        user_id: &str,
        repeats: &Repeats,
        source: &mut impl RowSource,
    ) -> Result<bool, StoreError> {
        let counted = self.try_count_repeats(user_id, repeats, source).await;
        match counted {
            Err(error) if error.kind == ErrorKind::Damaged => Ok(false),
            counted => counted,
        }
    }

    async fn try_count_repeats(
        &mut self,
        user_id: &str,
        repeats: &Repeats,
        source: &mut impl RowSource,
    ) -> Result<bool, StoreError> {
        let Some(mut id) = self.notification_of(repeats, source).await? else { return Ok(false) };
        // A message over the hourly limit waits as a reminder with the id of its notification.
        if let Some(waiting) = self.reminder(id.0, source).await?.filter(|one| one.user_id == user_id) {
            match (waiting.ended_at, waiting.notification_id) {
                (None, _) => {
                    let repeats = waiting.repeats.saturating_add(repeats.times);
                    self.changes.people.reminders.insert(waiting.id, Reminder { repeats, ..waiting });
                    return Ok(true);
                }
                (Some(_), Some(sent)) => id = sent,
                (Some(_), None) => {}
            }
        }
        let Some(mut item) = self.inbox_item(user_id, id, source).await? else { return Ok(false) };
        item.repeats = item.repeats.saturating_add(repeats.times);
        self.put_item(item);
        Ok(true)
    }

    /// The person's notification of the repeated event. The verdict on the event names it.
    async fn notification_of(
        &mut self,
        repeats: &Repeats,
        source: &mut impl RowSource,
    ) -> Result<Option<NotificationId>, StoreError> {
        let in_commit = self.changes.events.iter().find(|row| row.event.id() == repeats.event);
        let verdicts = match in_commit.map(|row| row.verdicts.clone()) {
            Some(verdicts) => Some(verdicts),
            None => source.verdicts(repeats.event).await?,
        };
        let of_person = verdicts.iter().flat_map(|verdicts| verdicts.iter());
        let mut of_person = of_person.filter(|one| one.agent.is_none() && *one.subscriber == *repeats.subscriber);
        Ok(of_person.find_map(|decision| decision.notification_id).map(NotificationId))
    }
}
