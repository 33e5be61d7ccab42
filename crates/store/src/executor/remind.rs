//! Reminders, and notifications deferred by the hourly limit; events whose subscribers notify people.

use std::sync::Arc;

use bellwire_core::Time;
use bellwire_core::verdict::VerdictKind;
use bellwire_core::{Event, Input};
use uuid::Uuid;

use super::people::InboxDraft;
use super::repeats::ReadyMessage;
use super::{Executor, RowSource};
use crate::error::{ErrorKind, StoreError};
use crate::packed_event::PackedEvent;
use crate::people::{InboxItemKind, InboxItemType, NewReminder, Reminder};
use crate::rows::MailboxKey;
use crate::verdicts::Decision;

/// The maximum number of waiting reminders per person, so that an agent in a loop cannot create them without end.
const WAITING_MAX: usize = 200;

impl Executor {
    /// Stores a reminder.
    pub(crate) async fn remind(
        &mut self,
        new: Box<NewReminder>,
        source: &mut impl RowSource,
    ) -> Result<Reminder, StoreError> {
        new.caller.check_person(&new.user_id, new.conversation_id.as_deref())?;
        self.erasing.check(&new.user_id)?;
        let known: Option<Uuid> = self.remembered_answer(new.idempotency_key.as_ref(), source).await?;
        if let Some(id) = known {
            return self.reminder(id, source).await?.ok_or_else(|| StoreError::not_found("reminder"));
        }
        let fresh = self.changes.people.reminders.values();
        let fresh = fresh.filter(|one| one.user_id == new.user_id && one.ended_at.is_none() && one.asked).count();
        if fresh + source.waiting_reminders(&new.user_id).await? >= WAITING_MAX {
            let message =
                format!("{WAITING_MAX} reminders wait for this person; cancel some, or wait until some are told");
            return Err(StoreError::new(ErrorKind::Full, message));
        }
        let now = self.context.now;
        let reminder = Reminder {
            id: self.context.ids.next(now),
            user_id: new.user_id,
            origin: new.origin,
            source: None,
            conversation_id: new.conversation_id,
            message: new.message,
            repeats: 0,
            template_error: None,
            item_type: InboxItemType::Reminder,
            asked: true,
            at: new.at,
            due_at: new.at,
            correlation_id: new.correlation_id,
            created_at: now,
            ended_at: None,
            notification_id: None,
        };
        self.remember(new.idempotency_key.as_ref(), &reminder.id, [reminder.user_id.as_str()]);
        self.changes.people.reminders.insert(reminder.id, reminder.clone());
        Ok(reminder)
    }

    /// Cancels a waiting reminder. Does nothing if it was cancelled before; a sent one is a conflict.
    pub(crate) async fn cancel_reminder(
        &mut self,
        user_id: Option<String>,
        id: Uuid,
        source: &mut impl RowSource,
    ) -> Result<(), StoreError> {
        let reminder = self.reminder(id, source).await?;
        let mine = |one: &Reminder| one.asked && user_id.as_deref().is_none_or(|user| user == one.user_id);
        let reminder = reminder.filter(mine).ok_or_else(|| StoreError::not_found("reminder"))?;
        self.erasing.check(&reminder.user_id)?;
        if reminder.notification_id.is_some() {
            return Err(StoreError::new(ErrorKind::Conflict, "this reminder was told already"));
        }
        let ended_at = reminder.ended_at.or(Some(self.context.now));
        self.changes.people.reminders.insert(id, Reminder { ended_at, ..reminder });
        Ok(())
    }

    /// Sends due reminders until `work` is reached. One over the hourly limit waits until the limit allows it. Returns true
    /// if there may be more.
    pub(super) async fn send_due_reminders(
        &mut self,
        limit: usize,
        work: usize,
        source: &mut impl RowSource,
    ) -> Result<bool, StoreError> {
        let due = source.due_reminders(self.context.now, limit, &self.unreachable_people()).await?;
        let due = self.damage.readable(due);
        let mut more = due.len() == limit;
        let enough = source.rows_read() + self.changes.work() + work;
        for reminder in due {
            if self.changes.people.reminders.contains_key(&reminder.id) {
                continue;
            }
            // Each reminder may load all notifications that its person got within the last hour.
            if source.rows_read() + self.changes.work() >= enough {
                more = true;
                break;
            }
            if !self.is_readable(&reminder.user_id, source).await? {
                continue;
            }
            let draft = InboxDraft {
                id: None,
                user_id: reminder.user_id.as_str().into(),
                kind: InboxItemKind::Message,
                item_type: reminder.item_type,
                origin: reminder.origin.clone(),
                source: reminder.source.clone(),
                conversation_id: reminder.conversation_id.clone(),
                correlation_id: reminder.correlation_id.clone(),
                title: None,
                message: reminder.message.clone(),
                repeats: reminder.repeats,
                template_error: reminder.template_error.clone(),
                toast: None,
                is_delivered_elsewhere: false,
            };
            let updated = match self.admit(draft, source).await? {
                Ok(id) => Reminder { notification_id: Some(id), ended_at: Some(self.context.now), ..reminder },
                Err(free) => Reminder { due_at: free, ..reminder },
            };
            self.changes.people.reminders.insert(updated.id, updated);
        }
        Ok(more)
    }

    /// When the next reminder of the current commit is due.
    pub(super) fn next_reminder(&self) -> Time {
        let waiting = self.changes.people.reminders.values().filter(|one| one.ended_at.is_none());
        waiting.map(|one| one.due_at).min().unwrap_or(Time::NEVER)
    }

    /// Lets the person's mailbox for this origin decide on an event, if a subscriber notifies people of its type. This
    /// happens once per event, however many conversations it reaches. Without an authenticated origin the person is not
    /// notified.
    pub(super) async fn publish_to_person(
        &mut self,
        owner: &Arc<str>,
        (event, packed): (&Arc<Event>, &PackedEvent),
        origin: Option<&str>,
        source: &mut impl RowSource,
    ) -> Result<Vec<Decision>, StoreError> {
        if !self.context.subscribers.reaches_person(event.kind()) {
            return Ok(Vec::new());
        }
        let Some(origin) = origin else {
            let listening = self.context.subscribers.for_person(event.kind());
            return Ok(listening.map(|subscriber| Decision::without_origin(&subscriber.id)).collect());
        };
        let key = MailboxKey::of_person(owner, origin);
        let loaded = match self.load_mailbox(&key, source).await {
            // The hourly limits and the inbox position are needed if a batch closes now.
            Ok(_) => self.person(owner, source).await.map(drop),
            Err(error) => Err(error),
        };
        match loaded {
            // The agent's call must not fail. The event's verdict says why its person was not notified.
            Err(error) if error.kind == ErrorKind::Damaged => {
                self.damage.note(owner, format!("mailboxes ({owner})"), &error);
                return Ok(vec![Decision::filtered("the person's mailbox is damaged".to_owned())]);
            }
            loaded => loaded?,
        }
        let hot_mailbox = self.hot_mailboxes.get_mut(&key).expect("it was loaded above");
        hot_mailbox.event_cache.keep(event.id(), packed.clone());
        self.handle(&key, Input::Event(event))?;
        let drained = self.drain(&key);
        // Only after the drain, which needs the events of batches that close now.
        self.hot_mailboxes.get_mut(&key).expect("it was loaded above").drop_unreferenced();
        self.deliver_to_inbox(&key, drained.ready, source).await?;
        Ok(drained.verdicts.into_iter().map(of_person).collect())
    }

    /// The same for detected events and observed tool calls of the current command. They have the origin of the
    /// command's caller.
    pub(super) async fn publish_detected(
        &mut self,
        origin: Option<&str>,
        source: &mut impl RowSource,
    ) -> Result<(), StoreError> {
        for (owner, event, packed) in std::mem::take(&mut self.detected_events) {
            let verdicts = self.publish_to_person(&owner, (&event, &packed), origin, source).await?;
            if let Some(row) = self.changes.events.iter_mut().find(|row| row.event.id() == event.id()) {
                Arc::make_mut(&mut row.verdicts).extend(verdicts);
            }
        }
        Ok(())
    }

    /// Puts the completed notifications of a person's mailbox into the inbox. Those over the hourly limit are deferred
    /// as reminders.
    pub(super) async fn deliver_to_inbox(
        &mut self,
        mailbox: &MailboxKey,
        ready: Vec<ReadyMessage>,
        source: &mut impl RowSource,
    ) -> Result<(), StoreError> {
        let (Some(origin), owner) = (mailbox.origin(), mailbox.owner()) else { return Ok(()) };
        for ReadyMessage { id, subscriber, message, repeats } in ready {
            if let Some(repeats) = &repeats
                && self.count_repeats(owner, repeats, source).await?
            {
                continue;
            }
            if let Some(error) = &message.template_error {
                self.report_failed_template(&subscriber, error);
            }
            let (item_type, now) = (InboxItemType::from(message.kind), self.context.now);
            let draft = InboxDraft {
                id: Some(id),
                user_id: owner.clone(),
                kind: InboxItemKind::Message,
                item_type,
                origin: origin.to_string(),
                source: message.source.clone(),
                conversation_id: message.conversation_id.clone(),
                correlation_id: message.correlation_id.clone(),
                title: None,
                message: message.message.clone(),
                repeats: message.repeats,
                template_error: message.template_error.clone(),
                toast: None,
                is_delivered_elsewhere: false,
            };
            let Err(free) = self.admit(draft, source).await? else { continue };
            let later = Reminder {
                id: id.0,
                user_id: owner.to_string(),
                origin: origin.to_string(),
                source: message.source,
                conversation_id: message.conversation_id,
                message: message.message,
                repeats: message.repeats,
                template_error: message.template_error,
                item_type,
                asked: false,
                at: now,
                due_at: free,
                correlation_id: message.correlation_id,
                created_at: now,
                ended_at: None,
                notification_id: None,
            };
            self.changes.people.reminders.insert(later.id, later);
        }
        Ok(())
    }

    pub(super) async fn reminder(
        &mut self,
        id: Uuid,
        source: &mut impl RowSource,
    ) -> Result<Option<Reminder>, StoreError> {
        match self.changes.people.reminders.get(&id) {
            Some(reminder) => Ok(Some(reminder.clone())),
            None => source.reminder(id).await,
        }
    }
}

/// The decision without conversation and agent, because it was made for a person.
fn of_person(decision: Decision) -> Decision {
    let reason = match decision.verdict == VerdictKind::Queued.as_str() {
        true => "goes to the person's inbox".into(),
        false => decision.reason,
    };
    Decision { reason, ..decision }
}

#[cfg(test)]
mod tests {
    use bellwire_core::subscriber::Subscribers;
    use bellwire_core::{Randomness, Severity, Time};
    use serde_json::json;

    use super::*;
    use crate::command::{Caller, IncomingEvent, Publish};
    use crate::executor::Publishing;
    use crate::memory::Memory;
    use crate::people::PeopleRules;

    #[tokio::test]
    async fn a_person_who_is_asked_again_and_again_costs_no_memory() -> Result<(), Box<dyn std::error::Error>> {
        let (mut post, mut rows) = (
            Executor::new(Subscribers::bundled().into(), Randomness::repeatable(1), PeopleRules::default().into()),
            Memory::default(),
        );
        post.set_now(Time::from_millis(1_000));
        for number in 0..500 {
            let event = Event::new("agent.input.needed", "agent", Severity::Info, json!({ "question": number }))?;
            let events = vec![IncomingEvent::new(event.in_conversation("chat"), None)];
            let publish = Publish { caller: Caller::user("ada"), events, idempotency_key: None };
            post.publish(&mut Publishing::new(publish), &mut rows).await?;
        }
        let kept = post.hot_mailboxes[&MailboxKey::of_person(&"ada".into(), "user")].event_cache.len();
        assert!((1..=300).contains(&kept), "{kept} events");
        Ok(())
    }
}
