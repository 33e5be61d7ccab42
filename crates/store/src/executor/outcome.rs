//! What became of an attempt, and who is told of it.

use std::collections::BTreeMap;

use bellwire_core::event::HUB;
use bellwire_core::retry::Next;
use bellwire_core::{Event, Severity, Time};
use serde_json::json;
use uuid::Uuid;

use super::people::InboxDraft;
use super::{Executor, RowSource};
use crate::command::{Caller, IdempotencyKey, Incoming};
use crate::error::{ErrorKind, StoreError};
use crate::people::{AttemptEnd, AttemptOutcome, Delivery, DeliveryState, InboxItem};

impl Executor {
    /// Records what became of an attempt, if it is still this attempt that counts.
    pub(crate) async fn finish(&mut self, finish: AttemptEnd, source: &mut impl RowSource) -> Result<bool, StoreError> {
        let ours = self.leased(finish.letter_id, finish.fence, DeliveryState::Started, source).await?;
        if ours.is_empty() {
            return Ok(false);
        }
        let now = self.context.now;
        let attempts = ours.iter().map(|one| one.attempts).max().unwrap_or(1);
        let (state, reason, not_before) = match finish.outcome {
            AttemptOutcome::Sent => (DeliveryState::Sent, None, None),
            AttemptOutcome::Refused { reason } => (DeliveryState::Failed, Some(reason), None),
            AttemptOutcome::Unknown { reason } => (DeliveryState::Unknown, Some(reason), None),
            AttemptOutcome::TryAgain { reason, retry_after_ms } => {
                match self.rules.retry.next(attempts, now, retry_after_ms, finish.jitter) {
                    Next::At(at) => (DeliveryState::Waiting, Some(reason), Some(at)),
                    Next::GiveUp { attempts } => {
                        let reason = format!("given up after {attempts} attempts: {reason}");
                        (DeliveryState::Failed, Some(reason), None)
                    }
                }
            }
        };
        self.settle(&ours, state, reason.as_deref(), not_before);
        if matches!(state, DeliveryState::Failed | DeliveryState::Unknown) {
            self.notify_failure(&ours, state, reason.as_deref().unwrap_or_default(), source).await?;
        }
        Ok(true)
    }

    /// Tries again what had come to its end without being sent, because somebody asks for it.
    pub(crate) async fn retry_delivery(
        &mut self,
        user_id: Option<String>,
        id: Uuid,
        once: Option<IdempotencyKey>,
        source: &mut impl RowSource,
    ) -> Result<Delivery, StoreError> {
        use DeliveryState::{Cancelled, Failed, Skipped, Unknown};
        if let Some(known) = self.remembered_answer(once.as_ref(), source).await? {
            return Ok(known);
        }
        let delivery = self.own_delivery(user_id, id, source).await?;
        if !matches!(delivery.state, Failed | Unknown | Cancelled | Skipped) {
            let message =
                format!("this delivery is {}; only one that has failed can be retried", delivery.state.as_str());
            return Err(StoreError::new(ErrorKind::Conflict, message));
        }
        let letter_id = self.letter_id_for_retry(&delivery, source).await?;
        let delivery = Delivery {
            state: DeliveryState::Waiting,
            held_by: None,
            reason: None,
            attempts: 0,
            not_before: self.context.now,
            letter_id,
            ended_at: None,
            ..delivery
        };
        self.changes.people.deliveries.insert(id, delivery.clone());
        self.remember(once.as_ref(), &delivery, [&*delivery.user_id]);
        Ok(delivery)
    }

    /// Gives up a delivery that waits.
    pub(crate) async fn cancel_delivery(
        &mut self,
        user_id: Option<String>,
        id: Uuid,
        once: Option<IdempotencyKey>,
        source: &mut impl RowSource,
    ) -> Result<Delivery, StoreError> {
        if let Some(known) = self.remembered_answer(once.as_ref(), source).await? {
            return Ok(known);
        }
        let delivery = self.give_up(user_id, id, source).await?;
        self.remember(once.as_ref(), &delivery, [&*delivery.user_id]);
        Ok(delivery)
    }

    async fn give_up(
        &mut self,
        user_id: Option<String>,
        id: Uuid,
        source: &mut impl RowSource,
    ) -> Result<Delivery, StoreError> {
        let delivery = self.own_delivery(user_id, id, source).await?;
        if delivery.state == DeliveryState::Cancelled {
            return Ok(delivery);
        }
        if delivery.state != DeliveryState::Waiting {
            let message = format!("this delivery is {}; only one that waits can be cancelled", delivery.state.as_str());
            return Err(StoreError::new(ErrorKind::Conflict, message));
        }
        self.settle(&[delivery], DeliveryState::Cancelled, Some("somebody gave it up"), None);
        Ok(self.changes.people.deliveries[&id].clone())
    }

    /// What may have arrived goes as the same letter, so that a copy can be known as one. What has not gets a new one, and
    /// so does one of several that went together: the same name must not stand for another text.
    async fn letter_id_for_retry(
        &mut self,
        delivery: &Delivery,
        source: &mut impl RowSource,
    ) -> Result<Option<Uuid>, StoreError> {
        let Some(letter_id) = delivery.letter_id.filter(|_| delivery.state == DeliveryState::Unknown) else {
            return Ok(None);
        };
        let in_it = |one: &Delivery| one.letter_id == Some(letter_id);
        let stored = source.letter(&delivery.user_id, letter_id).await?;
        let stored = self.damage.readable(stored);
        let alone = self.with_commit_changes(stored, in_it).into_iter().all(|one| one.id == delivery.id);
        Ok(alone.then_some(letter_id))
    }

    async fn own_delivery(
        &mut self,
        user_id: Option<String>,
        id: Uuid,
        source: &mut impl RowSource,
    ) -> Result<Delivery, StoreError> {
        let delivery = match self.changes.people.deliveries.get(&id) {
            Some(delivery) => Some(delivery.clone()),
            None => source.delivery(id).await?,
        };
        let mine = |one: &Delivery| user_id.as_deref().is_none_or(|user| user == one.user_id);
        let delivery = delivery.filter(mine).ok_or_else(|| StoreError::not_found("delivery"))?;
        self.erasing.check(&delivery.user_id)?;
        Ok(delivery)
    }

    /// A claim that ran out goes back; an attempt that ran out may have been sent, and nobody knows.
    pub(super) async fn settle_leases(&mut self, source: &mut impl RowSource) -> Result<(), StoreError> {
        let now = self.context.now;
        let leased = source.leased_deliveries().await?;
        let leased = self.damage.readable(leased);
        let ran_out = |one: &Delivery| one.is_leased() && one.lease_until.is_none_or(|until| until <= now);
        let over: Vec<Delivery> = self.with_commit_changes(leased, |_| false).into_iter().filter(ran_out).collect();
        let (claimed, started): (Vec<_>, Vec<_>) =
            over.into_iter().partition(|one| one.state == DeliveryState::Claimed);
        self.settle(&claimed, DeliveryState::Waiting, None, Some(now));
        let mut letters: BTreeMap<Option<Uuid>, Vec<Delivery>> = BTreeMap::new();
        started.into_iter().for_each(|one| letters.entry(one.letter_id).or_default().push(one));
        for letter in letters.into_values() {
            let reason = "the hub stopped while it was being sent";
            self.settle(&letter, DeliveryState::Unknown, Some(reason), None);
            // Whoever cannot be read cannot be told, and must not stop the deliveries of everybody else.
            if self.is_readable(&letter[0].user_id, source).await? {
                self.notify_failure(&letter, DeliveryState::Unknown, reason, source).await?;
            }
        }
        Ok(())
    }

    pub(super) fn settle(
        &mut self,
        deliveries: &[Delivery],
        state: DeliveryState,
        reason: Option<&str>,
        next: Option<Time>,
    ) {
        for delivery in deliveries {
            let settled = Delivery {
                state,
                held_by: None,
                reason: reason.map(str::to_owned),
                not_before: next.unwrap_or(delivery.not_before),
                lease_until: None,
                ended_at: next.is_none().then_some(self.context.now),
                ..delivery.clone()
            };
            self.changes.people.deliveries.insert(settled.id, settled);
        }
    }

    /// Tells the person, in the inbox, and each conversation that had asked.
    async fn notify_failure(
        &mut self,
        deliveries: &[Delivery],
        state: DeliveryState,
        reason: &str,
        source: &mut impl RowSource,
    ) -> Result<(), StoreError> {
        let Some(first) = deliveries.first() else { return Ok(()) };
        let what = match state {
            DeliveryState::Unknown => "A mail to you may not have arrived",
            _ => "A mail to you could not be delivered",
        };
        let mut message = format!("{what} ({}): {reason}", first.target);
        if let Some((end, _)) = message.char_indices().nth(bellwire_core::person::MESSAGE_MAX - 1) {
            message.truncate(end);
            message.push('…');
        }
        let mut asking: Vec<InboxItem> = Vec::new();
        for id in deliveries.iter().filter_map(|one| one.content.notification_id()) {
            match self.inbox_item(&first.user_id, id, source).await {
                Err(error) if error.kind == ErrorKind::Damaged => {
                    self.damage.note(&first.user_id, format!("inbox ({}, {id})", first.user_id), &error);
                }
                item => asking.extend(item?),
            }
        }
        self.person(&first.user_id, source).await?;
        let note =
            InboxDraft::note(&first.user_id, asking.first().and_then(|item| item.conversation_id.clone()), message);
        // A note needs no allowance, so it is always taken.
        let _ = self.admit(note, source).await?;
        for item in asking {
            self.publish_failure_event(first, &item, state, reason, source).await?;
        }
        Ok(())
    }

    async fn publish_failure_event(
        &mut self,
        delivery: &Delivery,
        item: &InboxItem,
        state: DeliveryState,
        reason: &str,
        source: &mut impl RowSource,
    ) -> Result<(), StoreError> {
        let Some(conversation) = item.conversation_id.as_deref() else { return Ok(()) };
        let shown: String = item.message.chars().take(80).collect();
        let payload = json!({
            "channel": delivery.channel.as_str(),
            "error_class": if state == DeliveryState::Unknown { "unknown_outcome" } else { "refused" },
            "error_message": reason,
            "notification_id": item.id.to_string(),
            "notification": shown,
        });
        let event = Event::from_hub("delivery.failed", Severity::Warning, payload)
            .map_err(|invalid| StoreError::new(ErrorKind::Broken, invalid.to_string()))?;
        let event = event.in_conversation(conversation).at(self.context.now);
        let caller = Caller { origin: Some(HUB.to_owned()), ..Caller::user(&item.user_id) };
        let address = match self.open_address(&caller, &event, source).await {
            // The conversation went to somebody else's hands, or away: then nobody there is to be told.
            Err(error) if error.kind == ErrorKind::NotFound => return Ok(()),
            // The person is told, and the deliveries of others go on.
            Err(error) if error.kind == ErrorKind::Damaged => {
                self.damage.note(&item.user_id, format!("mailboxes ({}, {conversation})", item.user_id), &error);
                return Ok(());
            }
            address => address?,
        };
        self.accept_event(&caller, &mut Incoming::new(event, None), address, source).await.map(drop)
    }
}
