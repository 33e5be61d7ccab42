//! Claims due deliveries of one channel as messages: several of one person go into one message, which is always sent whole,
//! and people take turns.

use std::collections::{BTreeMap, BTreeSet};
use std::slice;

use bellwire_core::person::ChannelName;
use bellwire_core::{NotificationId, Time};
use uuid::Uuid;

use super::outbox::PAGE;
use super::{Executor, RowSource};
use crate::error::{ErrorKind, StoreError};
use crate::notify::LedgerDecision;
use crate::people::{
    Claim, Delivery, DeliveryContent, DeliveryState, DirectMessage, Grouping, Hold, InboxItem, Purpose,
};
use crate::rows::ConversationKey;

/// The maximum number of notifications in a new message; more go into another message. It bounds the work of a claim: for
/// each notification a delivery, an inbox item and perhaps a title are read, and a delivery is written.
const MESSAGE_ITEMS_MAX: usize = 500;
/// After this much work no further message is claimed in this step. Messages of older versions have up to 1,000
/// notifications.
const CLAIM_WORK: usize = 600;
/// How many due deliveries are read per requested message, and at most.
const LOOKED_PER_MESSAGE: usize = 20;
const LOOKED_MAX: usize = 200;

/// The due deliveries of one person and target that may share a message.
struct DueMessage {
    key: MessageKey,
    deliveries: Vec<Delivery>,
}

/// What the deliveries of a message have in common, besides the channel.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct MessageKey {
    user_id: String,
    target: String,
    /// None = a new message, not attempted yet.
    message_id: Option<Uuid>,
    is_code: bool,
    /// The delivery, if it shares its message with no other.
    alone: Option<Uuid>,
}

impl MessageKey {
    fn of(delivery: &Delivery) -> Self {
        Self {
            user_id: delivery.user_id.clone(),
            target: delivery.target.clone(),
            message_id: delivery.message_id,
            is_code: delivery.content == DeliveryContent::ConfirmationCode,
            alone: delivery.content.is_direct().then_some(delivery.id),
        }
    }

    /// Whether it is news, which other news may join.
    fn is_open(&self) -> bool {
        self.message_id.is_none() && !self.is_code && self.alone.is_none()
    }
}

impl DueMessage {
    /// When its oldest delivery became due.
    fn due_at(&self) -> Time {
        self.deliveries.iter().map(|one| one.not_before).min().unwrap_or(Time::NEVER)
    }
}

impl Executor {
    /// Claims due deliveries of a channel as messages, oldest first, in turn between people. Returns true if it stopped
    /// because of [`CLAIM_WORK`] and there is more.
    pub(crate) async fn claim(
        &mut self,
        channel: ChannelName,
        limit: usize,
        source: &mut impl RowSource,
    ) -> Result<(Vec<Claim>, bool), StoreError> {
        let look = limit.saturating_mul(LOOKED_PER_MESSAGE).min(LOOKED_MAX);
        let (messages, is_whole) = self.due_messages(&channel, look, source).await?;
        let mut claims = Vec::new();
        for (at, DueMessage { key, deliveries }) in messages.into_iter().enumerate() {
            if claims.len() == limit {
                break;
            }
            if at > 0 && source.rows_read() + self.changes.work() >= CLAIM_WORK {
                return Ok((claims, true));
            }
            if !self.is_readable(&key.user_id, source).await? {
                continue;
            }
            let deliveries = match key.message_id {
                Some(message_id) => self.whole_message(&key.user_id, message_id, source).await?,
                None if is_whole || !key.is_open() => at_most(MESSAGE_ITEMS_MAX, deliveries),
                None => at_most(MESSAGE_ITEMS_MAX, self.all_due(&channel, &key, deliveries, source).await?),
            };
            claims.extend(self.claim_deliveries(&key, deliveries, limit - claims.len(), source).await?);
        }
        Ok((claims, false))
    }

    /// The due messages of a channel in the order in which they are claimed, and whether all due deliveries were read.
    ///
    /// The oldest message comes first, but a person's second message comes after the first message of every other person.
    /// Messages in flight count too, so that one person's backlog does not delay others.
    async fn due_messages(
        &mut self,
        channel: &ChannelName,
        look: usize,
        source: &mut impl RowSource,
    ) -> Result<(Vec<DueMessage>, bool), StoreError> {
        let now = self.context.now;
        let mut turns = self.messages_in_flight(channel, source).await?;
        let mut except = self.unreachable_people();
        let due = source.due_deliveries(channel, now, look, &except).await?;
        let mut due = self.damage.readable(due);
        let is_whole = due.len() < look;
        if !is_whole {
            except.extend(due.iter().map(|one| one.user_id.clone()).chain(turns.keys().cloned()));
            let others = source.due_deliveries(channel, now, look, &except).await?;
            due.append(&mut self.damage.readable(others));
        }
        let is_due =
            |one: &Delivery| one.channel == *channel && one.state == DeliveryState::Waiting && one.not_before <= now;
        let mut messages: BTreeMap<MessageKey, Vec<Delivery>> = BTreeMap::new();
        for delivery in self.with_commit_changes(due, is_due).into_iter().filter(is_due) {
            messages.entry(MessageKey::of(&delivery)).or_default().push(delivery);
        }
        let message = |(key, deliveries)| DueMessage { key, deliveries };
        let mut messages: Vec<DueMessage> = messages.into_iter().map(message).collect();
        messages.sort_by_key(DueMessage::due_at);
        let mut in_turn: Vec<(usize, DueMessage)> = Vec::with_capacity(messages.len());
        for message in messages {
            let turn = turns.entry(message.key.user_id.clone()).or_default();
            in_turn.push((*turn, message));
            *turn += 1;
        }
        // A stable sort keeps the order by age within a turn.
        in_turn.sort_by_key(|(turn, _)| *turn);
        Ok((in_turn.into_iter().map(|(_, message)| message).collect(), is_whole))
    }

    /// The number of claimed or started messages of a channel per person.
    async fn messages_in_flight(
        &mut self,
        channel: &ChannelName,
        source: &mut impl RowSource,
    ) -> Result<BTreeMap<String, usize>, StoreError> {
        let stored = source.messages_in_flight(channel).await?;
        let mut messages: BTreeSet<(String, Option<Uuid>)> = stored.into_iter().collect();
        let fresh = self.changes.people.deliveries.values().filter(|one| one.channel == *channel && one.is_leased());
        messages.extend(fresh.map(|one| (one.user_id.clone(), one.message_id)));
        let mut people = BTreeMap::new();
        messages.into_iter().for_each(|(user_id, _)| *people.entry(user_id).or_default() += 1);
        Ok(people)
    }

    /// The due deliveries of this person and target that are in no message yet. Deliveries that were held together are sent
    /// together, even if the first query read only some of them.
    async fn all_due(
        &mut self,
        channel: &ChannelName,
        key: &MessageKey,
        found: Vec<Delivery>,
        source: &mut impl RowSource,
    ) -> Result<Vec<Delivery>, StoreError> {
        let now = self.context.now;
        let stored = source.waiting_on_channel(&key.user_id, channel, PAGE).await?;
        let stored = self.damage.readable(stored);
        let is_due = |one: &Delivery| {
            let waits = one.state == DeliveryState::Waiting && one.not_before <= now;
            waits && one.channel == *channel && MessageKey::of(one) == *key
        };
        let mut due: Vec<Delivery> = self.with_commit_changes(stored, is_due).into_iter().filter(is_due).collect();
        // The page may be full of deliveries that are not due yet, so add the due ones that were already found.
        due.extend(found);
        due.sort_by_key(|one| one.id);
        due.dedup_by_key(|one| one.id);
        Ok(due)
    }

    /// All waiting deliveries of a message that was attempted before. It must be sent again as a whole: a part of it under
    /// the same id and fence would mark the other deliveries as sent too.
    async fn whole_message(
        &mut self,
        user_id: &str,
        message_id: Uuid,
        source: &mut impl RowSource,
    ) -> Result<Vec<Delivery>, StoreError> {
        let stored = source.message_deliveries(user_id, message_id).await?;
        let stored = self.damage.readable(stored);
        let waits = |one: &Delivery| one.message_id == Some(message_id) && one.state == DeliveryState::Waiting;
        Ok(self.with_commit_changes(stored, waits).into_iter().filter(waits).collect())
    }

    /// Checks each delivery against the current settings, and claims the remaining ones as at most `limit` messages. What is
    /// left stays as it is.
    async fn claim_deliveries(
        &mut self,
        key: &MessageKey,
        deliveries: Vec<Delivery>,
        limit: usize,
        source: &mut impl RowSource,
    ) -> Result<Vec<Claim>, StoreError> {
        let ids: Vec<NotificationId> = deliveries.iter().filter_map(|one| one.content.notification_id()).collect();
        let mut stored = self.inbox_items(&key.user_id, &ids, source).await?;
        let mut wanted = Vec::new();
        for delivery in deliveries {
            let item = delivery.content.notification_id().and_then(|id| stored.remove(&id));
            match self.still_wanted(&delivery, item) {
                DeliveryCheck::Yes(item) if delivery.content.is_direct() => {
                    match self.direct_message(&delivery, source).await? {
                        Ok(text) => wanted.push(Wanted { delivery, item: item.map(|item| *item), text: Some(text) }),
                        Err(reason) => self.skip(delivery, reason, source).await?,
                    }
                }
                DeliveryCheck::Yes(item) => {
                    wanted.push(Wanted { delivery, item: item.map(|item| *item), text: None });
                }
                DeliveryCheck::Later(until) => {
                    let held_by = Some(Hold::QuietHours);
                    let held = Delivery { not_before: until, held_by, reason: None, ..delivery };
                    self.changes.people.deliveries.insert(held.id, held);
                }
                DeliveryCheck::No(reason) => self.skip(delivery, reason, source).await?,
            }
        }
        let mut claims = Vec::new();
        for group in self.groups(key, wanted).into_iter().take(limit) {
            claims.extend(self.claim_message(group, source).await?);
        }
        Ok(claims)
    }

    /// Ends a delivery that is no longer wanted.
    async fn skip(&mut self, delivery: Delivery, reason: &str, source: &mut impl RowSource) -> Result<(), StoreError> {
        self.settle(slice::from_ref(&delivery), DeliveryState::Skipped, Some(reason), None);
        self.record_direct(&[delivery], LedgerDecision::Refused, Some(reason), source).await
    }

    /// Splits deliveries into messages as the channel asks for, the oldest first. A message that was attempted before stays
    /// whole.
    fn groups(&self, key: &MessageKey, wanted: Vec<Wanted>) -> Vec<Vec<Wanted>> {
        let rules = wanted.first().and_then(|first| self.rules.channels.get(&first.delivery.channel));
        let grouping = rules.map_or(Grouping::Digest, |rules| rules.grouping);
        if grouping == Grouping::Digest || !key.is_open() {
            return vec![wanted];
        }
        let mut groups: BTreeMap<GroupKey, Vec<Wanted>> = BTreeMap::new();
        for one in wanted {
            groups.entry(GroupKey::of(one.item.as_ref())).or_default().push(one);
        }
        let mut groups: Vec<Vec<Wanted>> = groups.into_values().collect();
        groups.sort_by_key(|group| group.iter().filter_map(|one| Some(one.item.as_ref()?.created_sequence)).min());
        groups
    }

    /// Claims deliveries as one message.
    async fn claim_message(
        &mut self,
        group: Vec<Wanted>,
        source: &mut impl RowSource,
    ) -> Result<Option<Claim>, StoreError> {
        let now = self.context.now;
        let (mut taken, mut items, mut text) = (Vec::new(), Vec::new(), None);
        for one in group {
            taken.push(one.delivery);
            items.extend(one.item);
            text = one.text;
        }
        let Some(first) = taken.first().cloned() else { return Ok(None) };
        // Ids of one millisecond are not ordered; positions are.
        items.sort_by_key(|item| item.created_sequence);
        let titles = self.titles(&items, source).await?;
        let purpose = match (first.content, text) {
            (DeliveryContent::ConfirmationCode, _) => Purpose::Confirmation,
            (_, Some(text)) => match items.pop() {
                Some(item) => Purpose::Direct(Box::new(item), text),
                None => return Ok(None),
            },
            (_, None) => Purpose::Notifications(items),
        };
        let fence = taken.iter().map(|one| one.fence).max().unwrap_or(0) + 1;
        let message_id = first.message_id.unwrap_or_else(|| self.context.ids.next(now));
        for delivery in taken {
            let lease_until = Some(now.plus(self.rules.claim_ms));
            let state = DeliveryState::Claimed;
            let message_id = Some(message_id);
            let claimed = Delivery { state, lease_until, fence, message_id, ..delivery };
            self.changes.people.deliveries.insert(claimed.id, claimed);
        }
        let settings = &self.people[first.user_id.as_str()].settings;
        let timezone = settings.timezone();
        let created_at = crate::minted_at(message_id);
        Ok(Some(Claim {
            message_id,
            fence,
            user_id: first.user_id,
            channel: first.channel,
            target: first.target,
            purpose,
            titles,
            timezone,
            progress: first.progress,
            created_at,
        }))
    }

    /// The titles of the items' conversations.
    async fn titles(
        &mut self,
        items: &[InboxItem],
        source: &mut impl RowSource,
    ) -> Result<BTreeMap<String, String>, StoreError> {
        let mut titles = BTreeMap::new();
        let mut conversations: Vec<(&str, &str)> =
            items.iter().filter_map(|item| Some((item.user_id.as_str(), item.conversation_id.as_deref()?))).collect();
        conversations.sort_unstable();
        conversations.dedup();
        for (user_id, id) in conversations {
            let row = match self.conversation(&ConversationKey::new(user_id, id), source).await {
                // The message shows the conversation id instead.
                Err(error) if error.kind == ErrorKind::Damaged => {
                    self.damage.note(user_id, format!("conversations ({user_id}, {id})"), &error);
                    continue;
                }
                row => row?,
            };
            titles.extend(row.and_then(|row| row.title.clone()).map(|title| (id.to_owned(), title)));
        }
        Ok(titles)
    }

    /// Checks a delivery against its inbox item and the person's settings, which are loaded.
    fn still_wanted(&mut self, delivery: &Delivery, item: Option<Result<InboxItem, StoreError>>) -> DeliveryCheck {
        let settings = &self.people[delivery.user_id.as_str()].settings;
        let channel = settings.channel(delivery.channel.as_str());
        let is_same = channel.target.as_ref() == Some(&delivery.target);
        let Some(id) = delivery.content.notification_id() else {
            return match is_same && !channel.verified {
                true => DeliveryCheck::Yes(None),
                false => DeliveryCheck::No("the address is no longer to be confirmed"),
            };
        };
        match item {
            Some(Err(error)) => {
                self.damage.note(&delivery.user_id, format!("inbox ({}, {id})", delivery.user_id), &error);
                DeliveryCheck::No("the notification is damaged")
            }
            None => DeliveryCheck::No("the notification is gone"),
            Some(Ok(item)) if item.dismissed_at.is_some() => DeliveryCheck::No("it was dismissed meanwhile"),
            Some(Ok(item)) if item.read_at.is_some() => DeliveryCheck::No("it was read meanwhile"),
            Some(Ok(_)) if !channel.enabled => DeliveryCheck::No("the channel is switched off"),
            Some(Ok(_)) if !(is_same && channel.verified) => DeliveryCheck::No("the address has changed"),
            Some(Ok(item)) if settings.mutes(&item.origin) => DeliveryCheck::No("the origin is muted"),
            Some(Ok(item)) => match settings.quiet_until(self.context.now) {
                Some(until) => DeliveryCheck::Later(until),
                None => DeliveryCheck::Yes(Some(Box::new(item))),
            },
        }
    }
}

/// A delivery to send now.
struct Wanted {
    delivery: Delivery,
    /// Its notification; a code has none.
    item: Option<InboxItem>,
    /// Its own text, if it has one.
    text: Option<DirectMessage>,
}

/// What the notifications of one message have in common on a channel that groups by conversation.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum GroupKey {
    Conversation(Option<String>),
    /// A toast with buttons is alone.
    Buttons(NotificationId),
}

impl GroupKey {
    fn of(item: Option<&InboxItem>) -> Self {
        match item {
            Some(item) if item.toast.as_ref().is_some_and(|toast| !toast.buttons.is_empty()) => Self::Buttons(item.id),
            item => Self::Conversation(item.and_then(|item| item.conversation_id.clone())),
        }
    }
}

/// Whether a due delivery should be sent now, later, or not at all.
enum DeliveryCheck {
    Yes(Option<Box<InboxItem>>),
    Later(Time),
    No(&'static str),
}

fn at_most(limit: usize, mut deliveries: Vec<Delivery>) -> Vec<Delivery> {
    deliveries.truncate(limit);
    deliveries
}
