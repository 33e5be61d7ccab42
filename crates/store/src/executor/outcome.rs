//! What became of an attempt, and who is told of it.

use bellwire_core::event::HUB;
use bellwire_core::retry::Next;
use bellwire_core::{Event, Severity, Time};
use serde_json::json;
use uuid::Uuid;

use super::people::InboxDraft;
use super::publish::EventTargets;
use super::{Executor, RowSource};
use crate::command::{Caller, IdempotencyKey, Incoming};
use crate::error::{ErrorKind, StoreError};
use crate::people::{AttemptEnd, AttemptOutcome, Delivery, DeliveryState, InboxItem};
use crate::rows::MailboxKey;

/// How many deliveries of a letter that failed are ended in one step: for each a conversation may have to be told.
const FAILED_AT_ONCE: usize = 100;

impl Executor {
    /// Records what became of an attempt, if it is still this attempt that counts. Of a large letter that failed this ends
    /// a part; then the second answer says how the rest ends. `is_told` = the person was told with an earlier part.
    pub(crate) async fn finish(
        &mut self,
        finish: AttemptEnd,
        is_told: bool,
        source: &mut impl RowSource,
    ) -> Result<(bool, Option<AttemptOutcome>), StoreError> {
        let limit = match finish.outcome {
            AttemptOutcome::Refused { .. } | AttemptOutcome::Unknown { .. } => FAILED_AT_ONCE + 1,
            AttemptOutcome::Sent | AttemptOutcome::TryAgain { .. } => usize::MAX,
        };
        let mut ours = self.attempt(finish.letter_id, finish.fence, DeliveryState::Started, limit, source).await?;
        if ours.is_empty() {
            return Ok((is_told, None));
        }
        let now = self.context.now;
        let attempts = ours.iter().map(|one| one.attempts).max().unwrap_or(1);
        let (state, reason) = match finish.outcome {
            AttemptOutcome::Sent => {
                self.settle(&ours, DeliveryState::Sent, None, None);
                return Ok((true, None));
            }
            AttemptOutcome::Refused { reason } => (DeliveryState::Failed, reason),
            AttemptOutcome::Unknown { reason } => (DeliveryState::Unknown, reason),
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
        self.end_unsent(&ours, state, &reason, is_told, source).await?;
        let rest = more.then_some(match state {
            DeliveryState::Unknown => AttemptOutcome::Unknown { reason },
            _ => AttemptOutcome::Refused { reason },
        });
        Ok((true, rest))
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

    /// A claim that ran out goes back; an attempt that ran out may have been sent, and nobody knows. This settles a part of
    /// one letter and gives its id; there may be more then. `told` = the letter whose person was told with an earlier part.
    pub(crate) async fn settle_leases(
        &mut self,
        told: Option<Uuid>,
        source: &mut impl RowSource,
    ) -> Result<Option<Uuid>, StoreError> {
        let now = self.context.now;
        let lapsed = source.lapsed_deliveries(now, FAILED_AT_ONCE).await?;
        let lapsed = self.damage.readable(lapsed);
        let mut lapsed = self.with_commit_changes(lapsed, |_| false);
        lapsed.retain(|one| one.has_lapsed(now));
        let Some((letter, state)) = lapsed.first().map(|one| (one.letter_id, one.state)) else { return Ok(None) };
        lapsed.retain(|one| one.letter_id == letter && one.state == state);
        let reason = "the hub stopped while it was being sent";
        if state == DeliveryState::Claimed {
            self.settle(&lapsed, DeliveryState::Waiting, None, Some(now));
        } else if self.is_readable(&lapsed[0].user_id, source).await? {
            let is_told = told.is_some() && told == letter;
            self.end_unsent(&lapsed, DeliveryState::Unknown, reason, is_told, source).await?;
        } else {
            // Whoever cannot be read cannot be told, and must not stop the deliveries of everybody else.
            self.settle(&lapsed, DeliveryState::Unknown, Some(reason), None);
        }
        Ok(Some(letter.unwrap_or_default()))
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

    /// Ends deliveries of one letter that were not sent, or not for certain, and tells the person, in the inbox, and each
    /// conversation that had asked. Everything is loaded before anything is staged: if that takes several steps, what one
    /// has loaded stays in memory for the next.
    async fn end_unsent(
        &mut self,
        deliveries: &[Delivery],
        state: DeliveryState,
        reason: &str,
        is_told: bool,
        source: &mut impl RowSource,
    ) -> Result<(), StoreError> {
        let Some(first) = deliveries.first() else { return Ok(()) };
        self.person(&first.user_id, source).await?;
        let mailbox = MailboxKey::of_person(&first.user_id.as_str().into(), HUB);
        match self.load_mailbox(&mailbox, source).await {
            // The event says so.
            Err(error) if error.kind == ErrorKind::Damaged => {}
            entered => drop(entered?),
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
        if !is_told {
            let conversation = asking.first().and_then(|item| item.conversation_id.clone());
            let note = InboxDraft::note(&first.user_id, conversation, failure_note(first, state, reason));
            // A note needs no allowance, so it is always taken.
            let _ = self.admit(note, source).await?;
        }
        for (address, event) in events {
            let event = event.at(self.context.now);
            if let Some(address) = address {
                self.accept_event(&caller, &mut Incoming::new(event, None), address, source).await?;
            }
        }
        Ok(())
    }

    /// Where a conversation that had asked is told; none where nobody there can be.
    async fn open_asking(
        &mut self,
        caller: &Caller,
        event: &Event,
        source: &mut impl RowSource,
    ) -> Result<Option<EventTargets>, StoreError> {
        match self.open_address(caller, event, source).await {
            // The conversation went to somebody else's hands, or away.
            Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
            // The person is told, and the deliveries of others go on.
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

/// What a person's inbox says of a letter that was not sent, or not for certain.
fn failure_note(delivery: &Delivery, state: DeliveryState, reason: &str) -> String {
    let what = match state {
        DeliveryState::Unknown => "A mail to you may not have arrived",
        _ => "A mail to you could not be delivered",
    };
    let mut message = format!("{what} ({}): {reason}", delivery.target);
    if let Some((end, _)) = message.char_indices().nth(bellwire_core::person::MESSAGE_MAX - 1) {
        message.truncate(end);
        message.push('…');
    }
    message
}

/// What the conversation that had asked for a notification is told; none where none had.
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
