//! Sends notifications to people. A person in memory has settings, the inbox position, and the notifications of the
//! last hour, which the hourly limits count.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::Future;
use std::sync::Arc;

use bellwire_core::event::HUB;
use bellwire_core::person::{ChannelName, MESSAGE_MAX, PersonSettings};
use bellwire_core::{NotificationId, Time};
use uuid::Uuid;

use super::{Executor, RowSource};
use crate::damage::Found;
use crate::error::StoreError;
use crate::people::{
    Allowance, ConfirmationRow, Delivery, DeliveryState, DirectMessage, InboxItem, InboxItemKind, InboxItemType,
    LoadedPerson, NotificationContent, NotificationDraft, PeopleRules, Quota, Reminder, SendResult, Toast,
};

pub(super) const HOUR_MS: u64 = 60 * 60 * 1000;

/// The id of an inbox item with the item, or why it cannot be read.
pub(crate) type StoredItem = (NotificationId, Result<InboxItem, StoreError>);

/// Loads the rows of people. Part of [`super::RowSource`].
pub(crate) trait PeopleRowSource {
    fn person(&mut self, user_id: &str, since: Time) -> impl Future<Output = Result<LoadedPerson, StoreError>> + Send;
    fn inbox_item(
        &mut self,
        user_id: &str,
        id: NotificationId,
    ) -> impl Future<Output = Result<Option<InboxItem>, StoreError>> + Send;
    /// The inbox items with these ids; an error for each damaged one.
    fn inbox_items(
        &mut self,
        user_id: &str,
        ids: &[NotificationId],
    ) -> impl Future<Output = Result<Vec<StoredItem>, StoreError>> + Send;
    /// The person's unread items, oldest first, at most `limit`.
    fn unread(
        &mut self,
        user_id: &str,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<InboxItem>, StoreError>> + Send;
    fn reminder(&mut self, id: Uuid) -> impl Future<Output = Result<Option<Reminder>, StoreError>> + Send;
    /// The number of committed reminders that wait for this person.
    fn waiting_reminders(&mut self, user_id: &str) -> impl Future<Output = Result<usize, StoreError>> + Send;
    /// The due rows, oldest first, without those of the people in `except`.
    fn due_reminders(
        &mut self,
        now: Time,
        limit: usize,
        except: &BTreeSet<String>,
    ) -> impl Future<Output = Result<Found<Reminder>, StoreError>> + Send;
    fn delivery(&mut self, id: Uuid) -> impl Future<Output = Result<Option<Delivery>, StoreError>> + Send;
    /// The due rows of a channel, oldest first, without those of the people in `except`.
    fn due_deliveries(
        &mut self,
        channel: &ChannelName,
        now: Time,
        limit: usize,
        except: &BTreeSet<String>,
    ) -> impl Future<Output = Result<Found<Delivery>, StoreError>> + Send;
    /// The person's waiting deliveries with an id after `after`, due or not, ordered by id; at most `limit`.
    fn waiting_deliveries(
        &mut self,
        user_id: &str,
        after: Uuid,
        limit: usize,
    ) -> impl Future<Output = Result<Found<Delivery>, StoreError>> + Send;
    /// The person's waiting deliveries on a channel, due or not, ordered by id; at most `limit`.
    fn waiting_on_channel(
        &mut self,
        user_id: &str,
        channel: &ChannelName,
        limit: usize,
    ) -> impl Future<Output = Result<Found<Delivery>, StoreError>> + Send;
    /// The deliveries of a message with this fence and state, ordered by id; at most `limit`.
    fn attempt(
        &mut self,
        message_id: Uuid,
        fence: i64,
        state: DeliveryState,
        limit: usize,
    ) -> impl Future<Output = Result<Found<Delivery>, StoreError>> + Send;
    /// Claimed and started deliveries whose lease has ended, oldest first, except those of some people; at most `limit`.
    fn lapsed_deliveries(
        &mut self,
        now: Time,
        limit: usize,
        except: &BTreeSet<String>,
    ) -> impl Future<Output = Result<Found<Delivery>, StoreError>> + Send;
    /// The claimed and started messages of a channel: recipient and message id, each once.
    fn messages_in_flight(
        &mut self,
        channel: &ChannelName,
    ) -> impl Future<Output = Result<Vec<(String, Option<Uuid>)>, StoreError>> + Send;
    /// All deliveries of this message.
    fn message_deliveries(
        &mut self,
        user_id: &str,
        message_id: Uuid,
    ) -> impl Future<Output = Result<Found<Delivery>, StoreError>> + Send;
    /// The text of a direct delivery.
    fn direct_message(
        &mut self,
        delivery_id: Uuid,
    ) -> impl Future<Output = Result<Option<DirectMessage>, StoreError>> + Send;
    /// The number of confirmation codes planned for this person since then.
    fn codes_since(&mut self, user_id: &str, since: Time) -> impl Future<Output = Result<usize, StoreError>> + Send;
    fn confirmation(
        &mut self,
        user_id: &str,
        channel: &ChannelName,
    ) -> impl Future<Output = Result<Option<ConfirmationRow>, StoreError>> + Send;
    fn secret(&mut self, name: &str) -> impl Future<Output = Result<Option<Vec<u8>>, StoreError>> + Send;
}

/// A person in memory.
pub(super) struct Person {
    pub(super) settings: PersonSettings,
    position: i64,
    /// The times of the notifications within the last hour, per allowance, oldest first.
    sent: BTreeMap<Allowance, VecDeque<Time>>,
}

impl Person {
    fn of(loaded: LoadedPerson, rules: &PeopleRules, now: Time) -> Self {
        let mut sent = BTreeMap::<Allowance, VecDeque<Time>>::new();
        for (kind, item_type, at) in loaded.sent {
            if let Some(allowance) = rules.allowance(kind, item_type) {
                sent.entry(allowance).or_default().push_back(at);
            }
        }
        Self {
            settings: loaded.settings,
            // Positions start at the current time, so that positions of an erased person are never reused.
            position: loaded.position.unwrap_or_else(|| now.as_millis()),
            sent,
        }
    }

    /// Counts one notification against the hourly limit. If the limit is reached, returns when the next one is allowed.
    /// Every period of 60 minutes is limited, not every hour of the clock.
    fn spend(&mut self, quota: &Quota, now: Time) -> Result<(), Time> {
        let sent = self.sent.entry(quota.allowance).or_default();
        while sent.front().is_some_and(|at| now.millis_since(*at) >= HOUR_MS) {
            sent.pop_front();
        }
        let max = usize::try_from(quota.per_hour).unwrap_or(usize::MAX);
        match sent.len().checked_sub(max) {
            // If the limit was lowered, several notifications must become older than an hour first.
            Some(beyond) => Err(sent[beyond].plus(HOUR_MS)),
            None => {
                sent.push_back(now);
                Ok(())
            }
        }
    }
}

/// A new inbox item, before the hourly limit is checked.
pub(super) struct InboxDraft {
    pub(super) id: Option<NotificationId>,
    pub(super) user_id: Arc<str>,
    pub(super) kind: InboxItemKind,
    pub(super) item_type: InboxItemType,
    pub(super) origin: String,
    pub(super) source: Option<String>,
    pub(super) conversation_id: Option<String>,
    pub(super) correlation_id: Option<String>,
    pub(super) title: Option<String>,
    pub(super) message: String,
    pub(super) repeats: u32,
    pub(super) template_error: Option<String>,
    pub(super) toast: Option<Toast>,
    /// Whether the caller delivers it, so that no delivery is planned.
    pub(super) is_delivered_elsewhere: bool,
}

impl Executor {
    /// Sends a notification, or returns when the hourly limit allows the next one. A repeated call gets its first
    /// answer.
    pub(crate) async fn send(
        &mut self,
        draft: Box<NotificationDraft>,
        source: &mut impl RowSource,
    ) -> Result<SendResult, StoreError> {
        draft.caller.check_person(&draft.user_id, draft.conversation_id.as_deref())?;
        if let Some(known) = self.remembered_answer(draft.idempotency_key.as_ref(), source).await? {
            return Ok(known);
        }
        let (idempotency_key, person) = (draft.idempotency_key.clone(), draft.user_id.clone());
        let now = self.context.now;
        match self.admit(InboxDraft::of(*draft), source).await? {
            Ok(id) => {
                let sent = SendResult::Stored { id, at: now };
                self.remember(idempotency_key.as_ref(), &sent, [&*person]);
                Ok(sent)
            }
            Err(free) => Ok(SendResult::Limited { retry_after_seconds: free.millis_since(now).div_ceil(1000).max(1) }),
        }
    }

    /// Adds an item to the inbox and plans its deliveries. The inner error is the time when the hourly limit allows the
    /// next one.
    pub(super) async fn admit(
        &mut self,
        draft: InboxDraft,
        source: &mut impl RowSource,
    ) -> Result<Result<NotificationId, Time>, StoreError> {
        let now = self.context.now;
        let rules = self.rules.clone();
        let person = self.person(&draft.user_id, source).await?;
        let quota = rules.allowance(draft.kind, draft.item_type);
        let quota = quota.and_then(|allowance| rules.quota_of(&draft.user_id, allowance));
        if let Some(Err(free)) = quota.as_ref().map(|quota| person.spend(quota, now)) {
            self.changes.people.refused.extend(quota.map(|quota| (quota, free)));
            return Ok(Err(free));
        }
        let muted = person.settings.mutes(&draft.origin);
        let shown = person.settings.toasts.enabled && !muted;
        let id = draft.id.unwrap_or_else(|| self.context.ids.notification(now));
        let position = self.advance(&draft.user_id);
        let item = InboxItem {
            id,
            user_id: draft.user_id.to_string(),
            kind: draft.kind,
            item_type: draft.item_type,
            origin: draft.origin,
            source: draft.source,
            conversation_id: draft.conversation_id,
            title: draft.title,
            message: fitting(draft.message),
            repeats: draft.repeats,
            template_error: draft.template_error,
            toast: draft.toast.map(|toast| Toast { shown, ..toast }),
            correlation_id: draft.correlation_id,
            created_at: now,
            read_at: None,
            dismissed_at: None,
            acted: Vec::new(),
            created_sequence: position,
            changed_sequence: position,
        };
        if !draft.is_delivered_elsewhere {
            self.plan(&item, muted);
        }
        self.changes.people.inbox.insert(id, item);
        self.changes.people.created.push(id);
        Ok(Ok(id))
    }

    /// Loads a person into memory.
    pub(super) async fn person(
        &mut self,
        user_id: &str,
        source: &mut impl RowSource,
    ) -> Result<&mut Person, StoreError> {
        self.erasing.check(user_id)?;
        if !self.people.contains_key(user_id) {
            let now = self.context.now;
            let since = Time::from_millis(now.as_millis().saturating_sub_unsigned(HOUR_MS));
            let loaded = source.person(user_id, since).await?;
            self.people.insert(user_id.into(), Person::of(loaded, &self.rules, now));
        }
        Ok(self.people.get_mut(user_id).expect("it was put there above"))
    }

    /// Assigns the next position of an inbox. Streams report it after the commit.
    pub(super) fn advance(&mut self, user_id: &str) -> i64 {
        let person = self.people.get_mut(user_id).expect("a person is loaded before their inbox changes");
        person.position += 1;
        let position = person.position;
        self.changes.people.positions.insert(user_id.into(), position);
        position
    }

    /// The hub's secret of this name; stores `fresh` if there is none yet.
    pub(crate) async fn secret(
        &mut self,
        name: String,
        fresh: Vec<u8>,
        source: &mut impl RowSource,
    ) -> Result<Vec<u8>, StoreError> {
        let known = match self.changes.people.secrets.get(&name) {
            Some(known) => Some(known.clone()),
            None => source.secret(&name).await?,
        };
        Ok(known.unwrap_or_else(|| {
            self.changes.people.secrets.insert(name, fresh.clone());
            fresh
        }))
    }

    /// An inbox item with the changes of the current commit.
    pub(super) async fn inbox_item(
        &mut self,
        user_id: &str,
        id: NotificationId,
        source: &mut impl RowSource,
    ) -> Result<Option<InboxItem>, StoreError> {
        self.person(user_id, source).await?;
        match self.changes.people.inbox.get(&id) {
            Some(item) => Ok(Some(item.clone()).filter(|item| item.user_id == user_id)),
            None => source.inbox_item(user_id, id).await,
        }
    }

    /// Inbox items with the changes of this commit, read by one query; an error for each damaged one.
    pub(super) async fn inbox_items(
        &mut self,
        user_id: &str,
        ids: &[NotificationId],
        source: &mut impl RowSource,
    ) -> Result<BTreeMap<NotificationId, Result<InboxItem, StoreError>>, StoreError> {
        let mut items: BTreeMap<_, _> = source.inbox_items(user_id, ids).await?.into_iter().collect();
        let fresh =
            ids.iter().filter_map(|id| self.changes.people.inbox.get(id)).filter(|item| item.user_id == user_id);
        items.extend(fresh.map(|item| (item.id, Ok(item.clone()))));
        Ok(items)
    }

    /// Stages a changed item with the next position.
    pub(super) fn put_item(&mut self, mut item: InboxItem) -> InboxItem {
        item.changed_sequence = self.advance(&item.user_id);
        self.changes.people.inbox.insert(item.id, item.clone());
        item
    }
}

/// A text cut to the longest message of an inbox item.
fn fitting(mut message: String) -> String {
    if message.char_indices().nth(MESSAGE_MAX).is_some() {
        let end = message.char_indices().nth(MESSAGE_MAX - 1).map_or(message.len(), |(end, _)| end);
        message.truncate(end);
        message.push('…');
    }
    message
}

impl InboxDraft {
    fn of(draft: NotificationDraft) -> Self {
        let (kind, item_type, title, message, toast) = match draft.content {
            NotificationContent::Message { kind, message } => {
                (InboxItemKind::Message, kind.into(), None, message, None)
            }
            NotificationContent::Toast(show) => {
                let toast = Toast::of(&show, true);
                (InboxItemKind::Toast, show.severity.into(), show.title, show.message, Some(toast))
            }
        };
        Self {
            id: None,
            user_id: draft.user_id.as_str().into(),
            kind,
            item_type,
            origin: draft.origin,
            source: None,
            conversation_id: draft.conversation_id,
            correlation_id: draft.correlation_id,
            title,
            message,
            repeats: 0,
            template_error: None,
            toast,
            is_delivered_elsewhere: false,
        }
    }

    /// A note from the hub itself.
    pub(super) fn note(user_id: &str, conversation_id: Option<String>, message: String) -> Self {
        Self {
            id: None,
            user_id: user_id.into(),
            kind: InboxItemKind::Note,
            item_type: InboxItemType::Warning,
            origin: HUB.to_owned(),
            source: None,
            conversation_id,
            correlation_id: None,
            title: None,
            message,
            repeats: 0,
            template_error: None,
            toast: None,
            is_delivered_elsewhere: false,
        }
    }
}
