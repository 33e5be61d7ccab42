//! Notifications to people: inbox, reminders, settings and deliveries.
//!
//! This module has the types: arguments, results and rows. The executor decides, in the same commits as for agents. A
//! notification is a row of its person's inbox. A delivery sends it out of the hub over one channel: a worker claims the
//! delivery, sends it and reports the outcome.

mod allowance;
mod command;
mod delivery;
mod doorbell;
mod inbox;
mod outbox_counts;
mod requests;
mod rows;
mod rules;

pub use allowance::{Allowance, Quota};
pub use delivery::{
    AttemptEnd, AttemptOutcome, AttemptStart, Claim, DELIVERIES_PER_ITEM_MAX, Delivery, DeliveryContent, DeliveryState,
    DirectMessage, Hold, Purpose, WaitingDeliveries,
};
pub use doorbell::Doorbell;
pub use inbox::{
    ButtonPress, Catchup, DUE_TOASTS_MAX, InboxChange, InboxItem, InboxItemKind, InboxItemType, InboxQuery, InboxState,
    ItemHeading, PersonTrace, PressOutcome, PressResult, RestoreOutcome, Settlement, Toast, ToastButton,
};
pub use requests::{
    KnownPerson, NewReminder, NotificationContent, NotificationDraft, SendResult, SettingsRequest, UNREAD_COUNTED_MAX,
};
pub use rules::{ChannelRules, Grouping, PeopleRules};

pub(crate) use command::PeopleCommand;
pub(crate) use doorbell::Doorbells;
pub(crate) use inbox::{SEARCHED_MAX, due_toasts, words};
pub(crate) use outbox_counts::OutboxCounts;
pub(crate) use rows::{ConfirmationRow, LoadedPerson, PeopleChanges};

use bellwire_core::person::{ChannelName, PersonSettings, with_repeats};
use bellwire_core::{NotificationId, Time};
use tokio::sync::watch;
use uuid::Uuid;

use crate::StoreFuture;
use crate::command::IdempotencyKey;

/// A reminder, or a notification deferred by the hourly limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reminder {
    /// Its id.
    pub id: Uuid,
    /// The recipient.
    pub user_id: String,
    /// The authenticated origin.
    pub origin: String,
    /// The source of the events; it is not authenticated.
    pub source: Option<String>,
    /// The conversation it comes from.
    pub conversation_id: Option<String>,
    /// The text, without the repeats.
    pub message: String,
    /// How many repeats of its events were counted since.
    pub repeats: u32,
    /// Why the template of a deferred notification failed; the text is a plain sentence then.
    pub template_error: Option<String>,
    /// The type of the notification it becomes.
    pub item_type: InboxItemType,
    /// True for a reminder that was set, false for a notification deferred by the hourly limit.
    pub asked: bool,
    /// The requested time.
    pub at: Time,
    /// When it is tried next: later than `at` if the hourly limit was reached.
    pub due_at: Time,
    /// The correlation id.
    pub correlation_id: Option<String>,
    /// When it was created.
    pub created_at: Time,
    /// When it was sent or cancelled.
    pub ended_at: Option<Time>,
    /// The notification it became; none = it is pending or was cancelled.
    pub notification_id: Option<NotificationId>,
}

impl Reminder {
    /// The message with the number of repeats, as the person will read it.
    pub fn shown_message(&self) -> String {
        with_repeats(&self.message, self.repeats)
    }
}

/// The operations on people's data, with the same duties as [`crate::Store`]. The server checks that the caller may access the
/// given `user_id`.
pub trait People: Send + Sync {
    /// Adds a notification to a person's inbox and plans its deliveries.
    fn send(&self, draft: NotificationDraft) -> StoreFuture<'_, SendResult>;
    /// A page of the inbox, newest first, and the cursor of the next page.
    fn inbox(&self, user_id: String, query: InboxQuery) -> StoreFuture<'_, (Vec<InboxItem>, Option<Uuid>)>;
    /// A page of the inbox items of the query that contain a text in their title, message, origin or source; letters A to Z
    /// match in upper and lower case. A page looks at a bounded number of items, so that it may have fewer than asked for,
    /// or none, and still a next one.
    fn search_inbox(
        &self,
        user_id: String,
        query: InboxQuery,
        text: String,
    ) -> StoreFuture<'_, (Vec<InboxItem>, Option<Uuid>)>;
    /// How many notifications the person has not read.
    fn unread_count(&self, user_id: String) -> StoreFuture<'_, usize>;
    /// The changes of the inbox after this position, in order, at most `limit`. Without a position, the current one and the
    /// toasts that should appear now.
    fn catch_up(&self, user_id: String, after: Option<i64>, limit: usize) -> StoreFuture<'_, Catchup>;
    /// People of whom the hub has something, by id, and the cursor of the next page. Only ids with this prefix, after this
    /// one.
    fn people(
        &self,
        prefix: String,
        after: Option<String>,
        limit: usize,
    ) -> StoreFuture<'_, (Vec<KnownPerson>, Option<String>)>;
    /// Marks a notification as read or unread.
    fn mark(&self, user_id: String, id: NotificationId, read: bool) -> StoreFuture<'_, InboxItem>;
    /// Marks all notifications as read and returns how many were unread.
    fn read_all(&self, user_id: String, idempotency_key: Option<IdempotencyKey>) -> StoreFuture<'_, usize>;
    /// Dismisses a notification. It is kept and counts as read.
    fn dismiss(&self, user_id: String, id: NotificationId) -> StoreFuture<'_, InboxItem>;
    /// Takes a dismissal back: the notification is in the inbox again, as read or unread as it was before. Does nothing if
    /// it is not dismissed.
    fn restore(&self, user_id: String, id: NotificationId) -> StoreFuture<'_, RestoreOutcome>;
    /// Presses a button. A second press gives the first result. The press of another button, or the dismissal, that
    /// came first is the outcome otherwise.
    fn act(
        &self,
        user_id: String,
        id: NotificationId,
        index: usize,
        idempotency_key: Option<IdempotencyKey>,
    ) -> StoreFuture<'_, PressOutcome>;
    /// Stores a reminder.
    fn remind(&self, reminder: NewReminder) -> StoreFuture<'_, Reminder>;
    /// The pending reminders of this person or of everyone, oldest id first, and the cursor of the next page.
    fn reminders(
        &self,
        user_id: Option<String>,
        after: Option<Uuid>,
        limit: usize,
    ) -> StoreFuture<'_, (Vec<Reminder>, Option<Uuid>)>;
    /// Cancels a reminder.
    fn cancel_reminder(&self, user_id: Option<String>, id: Uuid) -> StoreFuture<'_, ()>;
    /// A person's settings.
    fn settings(&self, user_id: String) -> StoreFuture<'_, PersonSettings>;
    /// Changes the named settings. Held deliveries are planned again.
    fn change_settings(&self, change: SettingsRequest) -> StoreFuture<'_, PersonSettings>;
    /// Verifies the person's target on a channel with the code that was sent to it, which the caller has hashed.
    fn confirm_target(
        &self,
        user_id: String,
        channel: ChannelName,
        code: Vec<u8>,
        idempotency_key: Option<IdempotencyKey>,
    ) -> StoreFuture<'_, PersonSettings>;
    /// Switches a channel off for a person, by the unsubscribe link. Does nothing if the person has another target now.
    fn unsubscribe(&self, user_id: String, channel: ChannelName, target: String) -> StoreFuture<'_, ()>;
    /// Claims due deliveries of one channel as messages, at most `limit`.
    fn claim(&self, channel: ChannelName, limit: usize) -> StoreFuture<'_, Vec<Claim>>;
    /// Records the start of an attempt. False = the claim has expired, and nothing may be sent.
    fn start(&self, start: AttemptStart) -> StoreFuture<'_, bool>;
    /// Records the outcome of an attempt. False = the fence is outdated, and the outcome is ignored.
    fn finish(&self, finish: AttemptEnd) -> StoreFuture<'_, bool>;
    /// Deliveries of this person or of everyone, newest first, and the cursor of the next page.
    fn deliveries(
        &self,
        user_id: Option<String>,
        state: Option<DeliveryState>,
        before: Option<Uuid>,
        limit: usize,
    ) -> StoreFuture<'_, (Vec<Delivery>, Option<Uuid>)>;
    /// The deliveries of these notifications of a person, oldest first; of each notification at most
    /// [`DELIVERIES_PER_ITEM_MAX`], and of at most a hundred notifications.
    fn deliveries_of(&self, user_id: String, ids: Vec<NotificationId>) -> StoreFuture<'_, Vec<Delivery>>;
    /// The origins and titles of these notifications of people; of at most a hundred, and without those that are deleted.
    fn headings(&self, items: Vec<(String, NotificationId)>) -> StoreFuture<'_, Vec<ItemHeading>>;
    /// Retries an ended delivery.
    fn retry_delivery(
        &self,
        user_id: Option<String>,
        id: Uuid,
        idempotency_key: Option<IdempotencyKey>,
    ) -> StoreFuture<'_, Delivery>;
    /// Cancels a waiting delivery.
    fn cancel_delivery(
        &self,
        user_id: Option<String>,
        id: Uuid,
        idempotency_key: Option<IdempotencyKey>,
    ) -> StoreFuture<'_, Delivery>;
    /// The stored answer of an earlier call with this key; [`crate::Store::answer_once`] stores it.
    fn recall(&self, idempotency_key: IdempotencyKey) -> StoreFuture<'_, Option<String>>;
    /// The hub's secret of this name; if there is none yet, stores `fresh` and returns it.
    fn secret(&self, name: String, fresh: Vec<u8>) -> StoreFuture<'_, Vec<u8>>;
    /// The channels with waiting deliveries: their number, which the writer counts, and the earliest due time.
    fn outbox(&self) -> StoreFuture<'_, Vec<WaitingDeliveries>>;
    /// The earliest due time of the deliveries that wait on a channel: one row of an index, however many wait.
    fn oldest_delivery(&self, channel: ChannelName) -> StoreFuture<'_, Option<Time>>;
    /// Rings after every commit that changed this person's inbox; the reader then queries the changes.
    fn doorbell(&self, user_id: &str) -> Doorbell;
    /// Rings after every commit that changed a delivery.
    fn outbox_changes(&self) -> watch::Receiver<()>;
}
