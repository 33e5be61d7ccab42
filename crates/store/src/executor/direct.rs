//! Messages with their own text: an inbox item that shows the beginning, and one delivery of the whole text on one channel,
//! which is sent alone.

use bellwire_core::notify::Intent;
use bellwire_core::person::ChannelName;
use bellwire_core::{NotificationId, Time};

use super::{Executor, RowSource};
use crate::error::{ErrorKind, StoreError};
use crate::notify::{LedgerDecision, LedgerDraft};
use crate::people::{Delivery, DeliveryContent, DirectMessage, Hold};

impl Executor {
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
