//! Messages with their own text: an inbox item that shows the beginning, and one delivery of the whole text on one channel,
//! which is sent alone.

use bellwire_core::person::ChannelName;
use bellwire_core::{NotificationId, Time};

use super::people::InboxDraft;
use super::{Executor, RowSource};
use crate::error::{ErrorKind, StoreError};
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
        let message = match self.changes.people.direct_messages.get(&delivery.id) {
            Some(message) => Ok(Some(message.clone())),
            None => source.direct_message(delivery.id).await,
        };
        Ok(match message {
            Err(error) if error.kind == ErrorKind::Damaged => {
                self.damage.note(&delivery.user_id, format!("direct_messages {}", delivery.id), &error);
                Err("the message is damaged")
            }
            Err(error) => return Err(error),
            Ok(None) => Err("the message is gone"),
            Ok(Some(message)) => {
                let is_allowed = self.rules.allows(&message.origin, &delivery.channel, &delivery.target);
                match message.needs_allowance && !is_allowed {
                    true => Err("the address is no longer allowed to the origin"),
                    false => Ok(message),
                }
            }
        })
    }
}
