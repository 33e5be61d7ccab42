//! The people's side: what agents tell a person, what the person did about it, and how it leaves the hub.
//!
//! Here are the words for it: what is asked, what comes back, and the rows in between. What happens is decided in the
//! executor, in the same commits as everything else. A notification is a row of its person's inbox; a delivery is one
//! way out of the hub, claimed by whoever sends it and finished with what is known of the outcome.

mod allowance;
mod command;
mod delivery;
mod doorbell;
mod inbox;
mod requests;
mod rows;
mod rules;

pub use allowance::{Allowance, Quota};
pub use delivery::{
    AttemptEnd, AttemptOutcome, AttemptStart, Channel, Claim, Delivery, DeliveryContent, DeliveryState, Hold, Purpose,
};
pub use doorbell::Doorbell;
pub use inbox::{
    ButtonPress, Catchup, InboxChange, InboxItem, InboxItemKind, InboxItemType, InboxQuery, InboxState, PersonTrace,
    PressResult, Toast, ToastButton,
};
pub use requests::{NewReminder, NotificationContent, NotificationDraft, SendResult, SettingsRequest};
pub use rules::PeopleRules;

pub(crate) use command::PeopleCommand;
pub(crate) use doorbell::Doorbells;
pub(crate) use rows::{ConfirmationRow, LoadedPerson, PeopleChanges};

use bellwire_core::person::PersonSettings;
use bellwire_core::{NotificationId, Time};
use tokio::sync::watch;
use uuid::Uuid;

use crate::StoreFuture;
use crate::command::IdempotencyKey;

/// Something an agent asked to be told later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reminder {
    /// Its name.
    pub id: Uuid,
    /// Who is told.
    pub user_id: String,
    /// Who asked.
    pub origin: String,
    /// The source that the events of news name; it is not authenticated.
    pub source: Option<String>,
    /// In which conversation.
    pub conversation_id: Option<String>,
    /// What it says.
    pub message: String,
    /// What it becomes: a reminder, or news that waits for the hour's allowance.
    pub level: InboxItemType,
    /// Whether a person set it, or news that could not be told at once.
    pub asked: bool,
    /// When it was to be told.
    pub at: Time,
    /// When it is tried next: later than `at` where the hour's allowance was used up.
    pub due_at: Time,
    /// The thread of work it belongs to.
    pub correlation_id: Option<String>,
    /// When it was asked for.
    pub created_at: Time,
    /// When it was told or cancelled.
    pub ended_at: Option<Time>,
    /// The notification it became; none = it waits or was cancelled.
    pub notification_id: Option<NotificationId>,
}

/// What a store does for people. The same duties as every verb of a store; whose inbox may be asked for is checked
/// by whoever knows the caller.
pub trait People: Send + Sync {
    /// Puts a notification into a person's inbox and plans how else it goes out.
    fn send(&self, draft: NotificationDraft) -> StoreFuture<'_, SendResult>;
    /// A page of the inbox, newest first, and where to go on.
    fn inbox(&self, user_id: String, query: InboxQuery) -> StoreFuture<'_, (Vec<InboxItem>, Option<Uuid>)>;
    /// How many notifications the person has not read.
    fn unread_count(&self, user_id: String) -> StoreFuture<'_, usize>;
    /// What the inbox has changed behind this position, in order, at most `limit`; and where that leads.
    fn catch_up(&self, user_id: String, after: Option<i64>, limit: usize) -> StoreFuture<'_, Catchup>;
    /// Marks a notification as read or not.
    fn mark(&self, user_id: String, id: NotificationId, read: bool) -> StoreFuture<'_, InboxItem>;
    /// Marks everything as read; how much that was.
    fn read_all(&self, user_id: String, once: Option<IdempotencyKey>) -> StoreFuture<'_, usize>;
    /// Takes a notification out of sight. It is kept, and counts as read.
    fn dismiss(&self, user_id: String, id: NotificationId) -> StoreFuture<'_, InboxItem>;
    /// Presses a button. A second press gives the first result.
    fn act(
        &self,
        user_id: String,
        id: NotificationId,
        index: usize,
        once: Option<IdempotencyKey>,
    ) -> StoreFuture<'_, PressResult>;
    /// Keeps something to be told later.
    fn remind(&self, reminder: NewReminder) -> StoreFuture<'_, Reminder>;
    /// What is to be told later, to this person or to everyone, soonest named first; and where to go on.
    fn reminders(
        &self,
        user_id: Option<String>,
        after: Option<Uuid>,
        limit: usize,
    ) -> StoreFuture<'_, (Vec<Reminder>, Option<Uuid>)>;
    /// Cancels what was to be told later.
    fn cancel_reminder(&self, user_id: Option<String>, id: Uuid) -> StoreFuture<'_, ()>;
    /// What a person prefers.
    fn settings(&self, user_id: String) -> StoreFuture<'_, PersonSettings>;
    /// Changes what a person prefers, and nothing that is not named; what is held is planned anew.
    fn change_settings(&self, change: SettingsRequest) -> StoreFuture<'_, PersonSettings>;
    /// Confirms the address by the code that was mailed to it; the code is hashed by the caller.
    fn confirm_address(
        &self,
        user_id: String,
        code: Vec<u8>,
        once: Option<IdempotencyKey>,
    ) -> StoreFuture<'_, PersonSettings>;
    /// Ends all mail to a person, by the link in one.
    fn unsubscribe(&self, user_id: String, address: String) -> StoreFuture<'_, ()>;
    /// Takes deliveries that are due, as letters: everything that is due for one person goes together.
    fn claim(&self, limit: usize) -> StoreFuture<'_, Vec<Claim>>;
    /// Records that an attempt begins. False = the claim is no longer ours, and nothing may be sent.
    fn start(&self, letter: AttemptStart) -> StoreFuture<'_, bool>;
    /// Records what became of an attempt. False = somebody else has decided meanwhile.
    fn finish(&self, finish: AttemptEnd) -> StoreFuture<'_, bool>;
    /// Deliveries of this person or of everyone, newest first, and where to go on.
    fn deliveries(
        &self,
        user_id: Option<String>,
        state: Option<DeliveryState>,
        before: Option<Uuid>,
        limit: usize,
    ) -> StoreFuture<'_, (Vec<Delivery>, Option<Uuid>)>;
    /// Tries a delivery again that had come to its end.
    fn retry_delivery(
        &self,
        user_id: Option<String>,
        id: Uuid,
        once: Option<IdempotencyKey>,
    ) -> StoreFuture<'_, Delivery>;
    /// Gives up a delivery that waits.
    fn cancel_delivery(
        &self,
        user_id: Option<String>,
        id: Uuid,
        once: Option<IdempotencyKey>,
    ) -> StoreFuture<'_, Delivery>;
    /// What a call was answered under this name, if it was made before; [`crate::Store::answer_once`] remembers it.
    fn recall(&self, once: IdempotencyKey) -> StoreFuture<'_, Option<String>>;
    /// The hub's secret of this name; where there is none yet, this one is it from now on.
    fn secret(&self, name: String, fresh: Vec<u8>) -> StoreFuture<'_, Vec<u8>>;
    /// How many deliveries wait, and when the first of them is or was due.
    fn outbox(&self) -> StoreFuture<'_, (usize, Option<Time>)>;
    /// Rings after every commit that changed this person's inbox; what has changed is asked for.
    fn doorbell(&self, user_id: &str) -> Doorbell;
    /// Rings after every commit that changed a delivery.
    fn outbox_changes(&self) -> watch::Receiver<()>;
}
