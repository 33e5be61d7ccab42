//! The outcome of a delivery attempt, and the notifications about a failed one.

use std::slice;

use bellwire_core::event::HUB;
use bellwire_core::retry::Next;
use bellwire_core::{Event, NotificationId, Severity, Time};
use serde_json::json;
use uuid::Uuid;

use super::people::InboxDraft;
use super::publish::EventTargets;
use super::{Executor, RowSource};
use crate::command::{Caller, IdempotencyKey, IncomingEvent};
use crate::error::{ErrorKind, StoreError};
use crate::notify::LedgerDecision;
use crate::people::{AttemptEnd, AttemptOutcome, Delivery, DeliveryState, InboxItem};
use crate::rows::MailboxKey;

/// How many deliveries of a failed message are ended in one step. Each may publish an event to a conversation.
const FAILED_AT_ONCE: usize = 100;

impl Executor {
    /// Records the outcome of an attempt, unless its fence is outdated. For a large message that failed, this ends only a
    /// part; then the second value is the outcome for the rest. `is_notified` = an earlier part has already notified
    /// the person.
    pub(crate) async fn finish(
        &mut self,
        finish: AttemptEnd,
        is_notified: bool,
        source: &mut impl RowSource,
    ) -> Result<(bool, Option<AttemptOutcome>), StoreError> {
        let limit = match finish.outcome {
            AttemptOutcome::Refused { .. } | AttemptOutcome::Unreachable { .. } | AttemptOutcome::Unknown { .. } => {
                FAILED_AT_ONCE + 1
            }
            AttemptOutcome::Sent
            | AttemptOutcome::TryAgain { .. }
            | AttemptOutcome::Partial { .. }
            | AttemptOutcome::NotStarted { .. }
            | AttemptOutcome::Interrupted => usize::MAX,
        };
        let state = match finish.outcome {
            AttemptOutcome::NotStarted { .. } => DeliveryState::Claimed,
            _ => DeliveryState::Started,
        };
        let mut ours = self.attempt(finish.message_id, finish.fence, state, limit, source).await?;
        if ours.is_empty() {
            return Ok((is_notified, None));
        }
        let now = self.context.now;
        let attempts = ours.iter().map(|one| one.attempts).max().unwrap_or(1);
        let is_unreachable = matches!(finish.outcome, AttemptOutcome::Unreachable { .. });
        let (state, reason) = match finish.outcome {
            AttemptOutcome::Sent => {
                self.settle(&ours, DeliveryState::Sent, None, None);
                self.record_direct(&ours, LedgerDecision::Delivered, None, source).await?;
                return Ok((true, None));
            }
            AttemptOutcome::Partial { sent, progress, rest } => {
                self.note_progress(ours, &sent, progress.as_deref());
                let finish = AttemptEnd { outcome: *rest, ..finish };
                let (_, rest) = Box::pin(self.finish(finish, is_notified, source)).await?;
                return Ok((true, rest));
            }
            AttemptOutcome::Interrupted => {
                ours.iter_mut().for_each(|one| one.attempts = one.attempts.saturating_sub(1));
                self.settle(&ours, DeliveryState::Waiting, None, Some(now));
                return Ok((true, None));
            }
            AttemptOutcome::Refused { reason } | AttemptOutcome::Unreachable { reason } => {
                (DeliveryState::Failed, reason)
            }
            AttemptOutcome::Unknown { reason } => (DeliveryState::Unknown, reason),
            AttemptOutcome::NotStarted { reason, retry_after_ms } => {
                self.settle(&ours, DeliveryState::Waiting, Some(&reason), Some(now.plus(retry_after_ms)));
                return Ok((true, None));
            }
            AttemptOutcome::TryAgain { reason, retry_after_ms } => {
                match self.rules.retry.next(attempts, now, retry_after_ms, finish.jitter) {
                    Next::At(at) => {
                        self.settle(&ours, DeliveryState::Waiting, Some(&reason), Some(at));
                        return Ok((true, None));
                    }
                    Next::GiveUp { attempts } => {
                        (DeliveryState::Failed, format!("given up after {attempts} attempts: {reason}"))
                    }
                }
            }
        };
        let more = ours.len() > FAILED_AT_ONCE;
        ours.truncate(FAILED_AT_ONCE);
        let note = match (is_notified, is_unreachable) {
            (true, _) => FailureNote::Given,
            (false, true) => FailureNote::ChannelIsOff,
            (false, false) => FailureNote::Failed,
        };
        self.end_unsent(&ours, state, &reason, note, source).await?;
        let rest = more.then_some(match state {
            DeliveryState::Unknown => AttemptOutcome::Unknown { reason },
            _ => AttemptOutcome::Refused { reason },
        });
        Ok((true, rest))
    }

    /// Ends the deliveries of a started message whose notifications were sent whole, and keeps the progress of the others.
    fn note_progress(&mut self, deliveries: Vec<Delivery>, sent: &[NotificationId], progress: Option<&str>) {
        let is_sent = |one: &Delivery| one.content.notification_id().is_some_and(|id| sent.contains(&id));
        let (sent, others): (Vec<Delivery>, Vec<Delivery>) = deliveries.into_iter().partition(is_sent);
        self.settle(&sent, DeliveryState::Sent, None, None);
        for delivery in others {
            let delivery = Delivery { progress: progress.map(str::to_owned), ..delivery };
            self.changes.people.deliveries.insert(delivery.id, delivery);
        }
    }

    /// Retries an ended delivery on request.
    pub(crate) async fn retry_delivery(
        &mut self,
        user_id: Option<String>,
        id: Uuid,
        idempotency_key: Option<IdempotencyKey>,
        source: &mut impl RowSource,
    ) -> Result<Delivery, StoreError> {
        use DeliveryState::{Cancelled, Failed, Skipped, Unknown};
        if let Some(known) = self.remembered_answer(idempotency_key.as_ref(), source).await? {
            return Ok(known);
        }
        let delivery = self.own_delivery(user_id, id, source).await?;
        if !matches!(delivery.state, Failed | Unknown | Cancelled | Skipped) {
            let message =
                format!("this delivery is {}; only one that has failed can be retried", delivery.state.as_str());
            return Err(StoreError::new(ErrorKind::Conflict, message));
        }
        let message_id = self.message_id_for_retry(&delivery, source).await?;
        let delivery = Delivery {
            state: DeliveryState::Waiting,
            held_by: None,
            reason: None,
            attempts: 0,
            not_before: self.context.now,
            message_id,
            progress: None,
            ended_at: None,
            ..delivery
        };
        self.changes.people.deliveries.insert(id, delivery.clone());
        self.remember(idempotency_key.as_ref(), &delivery, [&*delivery.user_id]);
        Ok(delivery)
    }

    /// Cancels a waiting delivery.
    pub(crate) async fn cancel_delivery(
        &mut self,
        user_id: Option<String>,
        id: Uuid,
        idempotency_key: Option<IdempotencyKey>,
        source: &mut impl RowSource,
    ) -> Result<Delivery, StoreError> {
        if let Some(known) = self.remembered_answer(idempotency_key.as_ref(), source).await? {
            return Ok(known);
        }
        let delivery = self.give_up(user_id, id, source).await?;
        self.remember(idempotency_key.as_ref(), &delivery, [&*delivery.user_id]);
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
        let reason = "cancelled on request";
        self.settle(slice::from_ref(&delivery), DeliveryState::Cancelled, Some(reason), None);
        self.record_direct(&[delivery], LedgerDecision::Refused, Some(reason), source).await?;
        Ok(self.changes.people.deliveries[&id].clone())
    }

    /// The message id for a retry. A message that may have arrived keeps its id, so that the recipient's server can recognize
    /// a copy. Any other gets a new one, and so does one delivery of several in a message: one id must not stand for
    /// two texts.
    async fn message_id_for_retry(
        &mut self,
        delivery: &Delivery,
        source: &mut impl RowSource,
    ) -> Result<Option<Uuid>, StoreError> {
        let Some(message_id) = delivery.message_id.filter(|_| delivery.state == DeliveryState::Unknown) else {
            return Ok(None);
        };
        let in_it = |one: &Delivery| one.message_id == Some(message_id);
        let stored = source.message_deliveries(&delivery.user_id, message_id).await?;
        let stored = self.damage.readable(stored);
        let alone = self.with_commit_changes(stored, in_it).into_iter().all(|one| one.id == delivery.id);
        Ok(alone.then_some(message_id))
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

    /// Handles deliveries whose lease has ended. A claimed one waits again. A started one may have been sent, so its
    /// state becomes *unknown*. One call handles a part of one message and returns its id; then there may be more.
    /// `notified` = the message whose person an earlier part has already notified.
    pub(crate) async fn settle_leases(
        &mut self,
        notified: Option<Uuid>,
        source: &mut impl RowSource,
    ) -> Result<Option<Uuid>, StoreError> {
        let now = self.context.now;
        let lapsed = source.lapsed_deliveries(now, FAILED_AT_ONCE, &self.erasing.users()).await?;
        let lapsed = self.damage.readable(lapsed);
        let mut lapsed = self.with_commit_changes(lapsed, |_| false);
        lapsed.retain(|one| one.has_lapsed(now));
        let Some((message, state)) = lapsed.first().map(|one| (one.message_id, one.state)) else { return Ok(None) };
        lapsed.retain(|one| one.message_id == message && one.state == state);
        let reason = "the hub stopped while it was being sent";
        if state == DeliveryState::Claimed {
            self.settle(&lapsed, DeliveryState::Waiting, None, Some(now));
        } else if self.is_readable(&lapsed[0].user_id, source).await? {
            let is_notified = notified.is_some() && notified == message;
            let note = if is_notified { FailureNote::Given } else { FailureNote::Failed };
            self.end_unsent(&lapsed, DeliveryState::Unknown, reason, note, source).await?;
        } else {
            // The person's rows are damaged, so no notification is possible. Other people's deliveries must go on.
            self.settle(&lapsed, DeliveryState::Unknown, Some(reason), None);
        }
        Ok(Some(message.unwrap_or_default()))
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
                // A sent delivery says that it was held; one that is tried again is not held.
                held_by: delivery.held_by.filter(|_| next.is_none()),
                reason: reason.map(str::to_owned),
                not_before: next.unwrap_or(delivery.not_before),
                lease_until: None,
                ended_at: next.is_none().then_some(self.context.now),
                ..delivery.clone()
            };
            self.changes.people.deliveries.insert(settled.id, settled);
        }
    }

    /// Ends deliveries of one message as failed or unknown, adds a note to the person's inbox, switches the channel off if
    /// its target cannot be reached, and publishes an event to each conversation that sent one of the notifications. Everything is loaded before anything is staged; if loading
    /// takes several steps, the loaded rows stay in memory.
    async fn end_unsent(
        &mut self,
        deliveries: &[Delivery],
        state: DeliveryState,
        reason: &str,
        note: FailureNote,
        source: &mut impl RowSource,
    ) -> Result<(), StoreError> {
        let Some(first) = deliveries.first() else { return Ok(()) };
        self.person(&first.user_id, source).await?;
        let mailbox = MailboxKey::of_person(&first.user_id.as_str().into(), HUB);
        match self.load_mailbox(&mailbox, source).await {
            // The verdict of the event will say that the mailbox is damaged.
            Err(error) if error.kind == ErrorKind::Damaged => {}
            loaded => drop(loaded?),
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
        let caller = Caller { origin: Some(HUB.to_owned()), ..Caller::user(&first.user_id) };
        let mut events = Vec::new();
        for item in &asking {
            if let Some(event) = failure_event(first, item, state, reason)? {
                events.push((self.open_asking(&caller, &event, source).await?, event));
            }
        }

        self.settle(deliveries, state, Some(reason), None);
        let decision = match state {
            DeliveryState::Unknown => LedgerDecision::Unknown,
            _ => LedgerDecision::Failed,
        };
        self.record_direct(deliveries, decision, Some(reason), source).await?;
        let is_off =
            note == FailureNote::ChannelIsOff && self.switch_off(&first.user_id, &first.channel, &first.target);
        if note != FailureNote::Given {
            let conversation = asking.first().and_then(|item| item.conversation_id.clone());
            let channel = self.rules.display_name(&first.channel);
            let text = failure_note(channel, &first.target, state, is_off, reason);
            let note = InboxDraft::note(&first.user_id, conversation, text);
            // Notes have no hourly limit, so it is always admitted.
            let _ = self.admit(note, source).await?;
        }
        for (address, event) in events {
            let event = event.at(self.context.now);
            if let Some(address) = address {
                self.accept_event(&caller, &mut IncomingEvent::new(event, None), address, source).await?;
            }
        }
        Ok(())
    }

    /// The targets of a failure event; none if its conversation cannot be reached.
    async fn open_asking(
        &mut self,
        caller: &Caller,
        event: &Event,
        source: &mut impl RowSource,
    ) -> Result<Option<EventTargets>, StoreError> {
        match self.open_address(caller, event, source).await {
            // The conversation was deleted or has another owner now.
            Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
            // The person still gets the note, and other deliveries go on.
            Err(error) if error.kind == ErrorKind::Damaged => {
                let owner = caller.user_id.as_deref().unwrap_or_default();
                let row = format!("mailboxes ({owner}, {})", event.conversation_id().unwrap_or_default());
                self.damage.note(owner, row, &error);
                Ok(None)
            }
            address => address.map(Some),
        }
    }
}

/// What the person is told in the inbox about a message that was not sent.
#[derive(Copy, Clone, PartialEq, Eq)]
enum FailureNote {
    /// An earlier part of the same message has already told it.
    Given,
    /// That it failed.
    Failed,
    /// That it failed and that the channel is switched off, because the target cannot be reached.
    ChannelIsOff,
}

/// The text of the inbox note about a failed or unknown message.
pub(super) fn failure_note(channel: &str, target: &str, state: DeliveryState, is_off: bool, reason: &str) -> String {
    let what = match state {
        DeliveryState::Unknown => "may not have arrived",
        _ => "could not be delivered",
    };
    let off = match is_off {
        true => format!(", and {channel} is now switched off in your settings"),
        false => String::new(),
    };
    format!("A message to you by {channel} {what}{off} ({target}): {reason}")
}

/// The event for the conversation that sent the notification; none if it came from no conversation.
fn failure_event(
    delivery: &Delivery,
    item: &InboxItem,
    state: DeliveryState,
    reason: &str,
) -> Result<Option<Event>, StoreError> {
    let Some(conversation) = item.conversation_id.as_deref() else { return Ok(None) };
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
    Ok(Some(event.in_conversation(conversation)))
}
