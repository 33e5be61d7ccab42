//! Messages with their own text: an inbox item that shows the beginning, and one delivery of the whole text on one channel,
//! which is sent alone.

use bellwire_core::notify::Intent;
use bellwire_core::person::ChannelName;
use bellwire_core::{NotificationId, Time};

use super::people::InboxDraft;
use super::{Executor, RowSource};
use crate::error::{ErrorKind, StoreError};
use crate::notify::{LedgerDecision, LedgerDraft};
use crate::people::{
    Delivery, DeliveryContent, DirectDraft, DirectMessage, DirectResult, Hold, InboxItemKind, InboxItemType,
};

impl Executor {
    /// Plans a message for when the person's quiet hours end. A repeated call gets its first answer.
    pub(crate) async fn plan_direct(
        &mut self,
        draft: Box<DirectDraft>,
        source: &mut impl RowSource,
    ) -> Result<DirectResult, StoreError> {
        let DirectDraft { caller, user_id, conversation_id, correlation_id, channel, message, idempotency_key } =
            *draft;
        caller.check_person(&user_id, conversation_id.as_deref())?;
        if let Some(known) = self.remembered_answer(idempotency_key.as_ref(), source).await? {
            return Ok(known);
        }
        let now = self.context.now;
        let settings = &self.person(&user_id, source).await?.settings;
        let refused = |reason: &str| Ok(DirectResult::Refused { reason: reason.to_owned() });
        if settings.mutes(&message.origin) {
            return refused("the origin is muted");
        }
        let target = settings.usable_target(channel.as_str()).map(str::to_owned);
        let Some(target) = target.filter(|_| self.rules.channels.contains_key(&channel)) else {
            return refused("the channel is off, or its address is not confirmed");
        };
        let item = InboxDraft {
            id: None,
            user_id: user_id.as_str().into(),
            kind: InboxItemKind::Message,
            item_type: InboxItemType::Info,
            origin: message.origin.clone(),
            source: None,
            conversation_id,
            correlation_id,
            title: message.subject.clone(),
            message: message.message.clone(),
            repeats: 0,
            template_error: None,
            toast: None,
            is_delivered_elsewhere: true,
        };
        let id = match self.admit(item, source).await? {
            Ok(id) => id,
            Err(free) => {
                let retry_after_seconds = free.millis_since(now).div_ceil(1000).max(1);
                return Ok(DirectResult::Limited { retry_after_seconds });
            }
        };
        let deliver_at = self.deliver_direct(&user_id, &channel, target, id, message);
        let planned = DirectResult::Planned { id, deliver_at };
        self.remember(idempotency_key.as_ref(), &planned, [&*user_id]);
        Ok(planned)
    }

    /// Plans the delivery of a message whose item is in the inbox of a person, who is loaded. Returns when it is sent.
    pub(super) fn deliver_direct(
        &mut self,
        user_id: &str,
        channel: &ChannelName,
        target: String,
        id: NotificationId,
        message: DirectMessage,
    ) -> Time {
        let now = self.context.now;
        let until = self.people[user_id].settings.quiet_until(now);
        let planned = self.new_delivery(user_id, channel, target, DeliveryContent::Direct(id));
        let not_before = until.unwrap_or(now);
        let delivery = Delivery { held_by: until.map(|_| Hold::QuietHours), not_before, ..planned };
        self.changes.people.direct_messages.insert(delivery.id, message);
        self.changes.people.deliveries.insert(delivery.id, delivery);
        not_before
    }

    /// The text of a direct delivery, or why it is not sent.
    pub(super) async fn direct_message(
        &mut self,
        delivery: &Delivery,
        source: &mut impl RowSource,
    ) -> Result<Result<DirectMessage, &'static str>, StoreError> {
        let message = self.stored_direct_message(delivery, source).await?;
        Ok(message.and_then(|message| {
            let is_allowed = self.rules.allows(&message.origin, &delivery.channel, &delivery.target);
            match message.needs_allowance && !is_allowed {
                true => Err("the address is no longer allowed to the origin"),
                false => Ok(message),
            }
        }))
    }

    /// Records in the ledger how direct deliveries ended. The decision to defer them is there already, and an outage must
    /// not look like quiet hours.
    pub(super) async fn record_direct(
        &mut self,
        deliveries: &[Delivery],
        decision: LedgerDecision,
        reason: Option<&str>,
        source: &mut impl RowSource,
    ) -> Result<(), StoreError> {
        for delivery in deliveries.iter().filter(|one| one.content.is_direct()) {
            let Ok(message) = self.stored_direct_message(delivery, source).await? else { continue };
            let draft = LedgerDraft {
                origin: message.origin,
                user_id: Some(delivery.user_id.clone()),
                channel: delivery.channel.to_string(),
                intent: Some(Intent::Send),
                decision,
                class: None,
                reason: reason.map(LedgerDraft::short),
                notification_id: delivery.content.notification_id().map(|id| id.0),
                request_id: None,
            };
            self.record(draft, source).await?;
        }
        Ok(())
    }

    async fn stored_direct_message(
        &mut self,
        delivery: &Delivery,
        source: &mut impl RowSource,
    ) -> Result<Result<DirectMessage, &'static str>, StoreError> {
        let message = match self.changes.people.direct_messages.get(&delivery.id) {
            Some(message) => Ok(Some(message.clone())),
            None => source.direct_message(delivery.id).await,
        };
        match message {
            Err(error) if error.kind == ErrorKind::Damaged => {
                self.damage.note(&delivery.user_id, format!("direct_messages {}", delivery.id), &error);
                Ok(Err("the message is damaged"))
            }
            message => Ok(message?.ok_or("the message is gone")),
        }
    }
}
