//! Deliveries: planned with the notification, claimed by a worker as part of a message, and ended with the outcome of the
//! attempt.
//!
//! Every claim increments the fence. An outcome with an older fence is ignored, so two workers never both decide. The
//! start of an attempt is committed before anything is sent. If the lease ends before the start, the delivery waits
//! again; if it ends after the start, the message may have been sent, so the state is *unknown* and there is no automatic
//! retry.

use std::collections::BTreeMap;

use bellwire_core::person::ChannelName;
use uuid::Uuid;

use super::{Executor, RowSource};
use crate::error::StoreError;
use crate::people::{AttemptStart, Delivery, DeliveryContent, DeliveryState, Hold, InboxItem, InboxItemKind};

/// How many waiting deliveries of one person a query reads.
pub(super) const PAGE: usize = 1_000;

impl Executor {
    /// Plans the deliveries of a new notification: one on each configured channel that the person has switched on and
    /// verified. Muted origins and the hub's own notes have none.
    pub(super) fn plan(&mut self, item: &InboxItem, muted: bool) {
        if muted || item.kind == InboxItemKind::Note {
            return;
        }
        let now = self.context.now;
        let rules = self.rules.clone();
        for channel in rules.channels.keys() {
            let settings = &self.people[item.user_id.as_str()].settings;
            let Some(target) = settings.usable_target(channel.as_str()).map(str::to_owned) else { continue };
            let until = settings.quiet_until(now);
            let content = DeliveryContent::Notification(item.id);
            let planned = self.new_delivery(&item.user_id, channel, target, content);
            let delivery =
                Delivery { held_by: until.map(|_| Hold::QuietHours), not_before: until.unwrap_or(now), ..planned };
            self.changes.people.deliveries.insert(delivery.id, delivery);
        }
    }

    /// A delivery that is due now.
    pub(super) fn new_delivery(
        &mut self,
        user_id: &str,
        channel: &ChannelName,
        target: String,
        content: DeliveryContent,
    ) -> Delivery {
        let now = self.context.now;
        Delivery {
            id: self.context.ids.next(now),
            content,
            user_id: user_id.to_owned(),
            channel: channel.clone(),
            target,
            state: DeliveryState::Waiting,
            held_by: None,
            reason: None,
            attempts: 0,
            not_before: now,
            lease_until: None,
            fence: 0,
            message_id: None,
            progress: None,
            created_at: now,
            ended_at: None,
        }
    }

    /// Replans deliveries that quiet hours hold, after the quiet hours have changed, one page per call. Returns the id
    /// to continue after, if there are more.
    pub(crate) async fn replan(
        &mut self,
        user_id: String,
        after: Uuid,
        source: &mut impl RowSource,
    ) -> Result<Option<Uuid>, StoreError> {
        let now = self.context.now;
        let until = self.person(&user_id, source).await?.settings.quiet_until(now);
        let stored = source.waiting_deliveries(&user_id, after, PAGE).await?;
        let stored = self.damage.readable(stored);
        let last = stored.last().map(|one| one.id).filter(|_| stored.len() == PAGE);
        for mut delivery in
            self.with_commit_changes(stored, |one| one.user_id == user_id).into_iter().filter(Delivery::is_held)
        {
            delivery.not_before = until.unwrap_or(now);
            delivery.held_by = until.map(|_| Hold::QuietHours);
            self.changes.people.deliveries.insert(delivery.id, delivery);
        }
        Ok(last)
    }

    /// Records the start of an attempt, if the claim is still valid.
    pub(crate) async fn start(&mut self, start: AttemptStart, source: &mut impl RowSource) -> Result<bool, StoreError> {
        let now = self.context.now;
        let ours = self.attempt(start.message_id, start.fence, DeliveryState::Claimed, usize::MAX, source).await?;
        for mut delivery in ours.iter().cloned() {
            if let (DeliveryContent::ConfirmationCode, Some(code)) = (delivery.content, start.code.clone()) {
                self.keep_code(&delivery, code);
            }
            delivery.state = DeliveryState::Started;
            delivery.attempts += 1;
            delivery.lease_until = Some(now.plus(self.rules.attempt_ms(&delivery.channel)));
            self.changes.people.deliveries.insert(delivery.id, delivery);
        }
        Ok(!ours.is_empty())
    }

    /// The deliveries of a message with this fence and state, about `limit` of them.
    pub(super) async fn attempt(
        &mut self,
        message_id: Uuid,
        fence: i64,
        state: DeliveryState,
        limit: usize,
        source: &mut impl RowSource,
    ) -> Result<Vec<Delivery>, StoreError> {
        let stored = source.attempt(message_id, fence, state, limit).await?;
        let stored = self.damage.readable(stored);
        let ours = |one: &Delivery| one.message_id == Some(message_id) && one.fence == fence && one.state == state;
        Ok(self.with_commit_changes(stored, ours).into_iter().filter(ours).collect())
    }

    /// The stored deliveries with the changes of the current commit, and deliveries of the current commit that match
    /// `wanted`. Skips stored deliveries of people who are being erased.
    pub(super) fn with_commit_changes(
        &self,
        stored: Vec<Delivery>,
        wanted: impl Fn(&Delivery) -> bool,
    ) -> Vec<Delivery> {
        let fresh = &self.changes.people.deliveries;
        let mut all: BTreeMap<Uuid, Delivery> =
            fresh.values().filter(|one| wanted(one)).map(|one| (one.id, one.clone())).collect();
        for delivery in stored.into_iter().filter(|one| !self.erasing.has(&one.user_id)) {
            all.insert(delivery.id, fresh.get(&delivery.id).cloned().unwrap_or(delivery));
        }
        all.into_values().collect()
    }
}
