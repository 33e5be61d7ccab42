use bellwire_core::person::{MessageType, ShowNotification, ToastSeverity, one_line, with_repeats, without_addresses};
use bellwire_core::{EventId, NotificationId, Time};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Delivery, Reminder};

/// A notification in a person's inbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InboxItem {
    /// Its id.
    pub id: NotificationId,
    /// The recipient.
    pub user_id: String,
    /// Where it came from. `kind` on the wire.
    pub kind: InboxItemKind,
    /// The type. `type` on the wire.
    pub item_type: InboxItemType,
    /// The authenticated origin.
    pub origin: String,
    /// The source of its events, if there is one. It is not authenticated.
    pub source: Option<String>,
    /// The conversation it comes from.
    pub conversation_id: Option<String>,
    /// The title.
    pub title: Option<String>,
    /// The text, without the repeats.
    pub message: String,
    /// How many repeats of its events were counted since.
    pub repeats: u32,
    /// Why the template of its subscriber failed; the text is a plain sentence then.
    pub template_error: Option<String>,
    /// How it appears as a toast, if it does.
    pub toast: Option<Toast>,
    /// The correlation id.
    pub correlation_id: Option<String>,
    /// When it was created.
    pub created_at: Time,
    /// When it was read.
    pub read_at: Option<Time>,
    /// When it was dismissed.
    pub dismissed_at: Option<Time>,
    /// The buttons that were pressed.
    pub acted: Vec<ButtonPress>,
    /// The inbox position of its creation.
    pub created_sequence: i64,
    /// The inbox position of its last change.
    pub changed_sequence: i64,
}

/// What a list of deliveries says of a notification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemHeading {
    /// The notification.
    pub id: NotificationId,
    /// The authenticated origin.
    pub origin: String,
    /// The title, or the beginning of the message.
    pub title: String,
}

impl ItemHeading {
    /// In characters: how much of a message stands for a missing title.
    pub const TITLE_MAX: usize = 80;

    /// The heading of an item. Of the message, [`ItemHeading::TITLE_MAX`] characters and one more are enough.
    pub(crate) fn new(id: NotificationId, origin: String, title: Option<String>, message: &str) -> Self {
        let title = title.filter(|title| !title.is_empty()).unwrap_or_else(|| {
            let cut = message.char_indices().nth(Self::TITLE_MAX);
            cut.map_or_else(|| one_line(message), |(end, _)| format!("{}...", one_line(&message[..end])))
        });
        Self { id, origin, title }
    }
}

/// Where an inbox item came from. Messages and toasts have separate hourly limits; notes have none.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum InboxItemKind {
    /// An agent's message, a reminder, or a notification of events.
    Message,
    /// An agent's toast.
    Toast,
    /// A note of the hub, such as a failed delivery.
    Note,
}

/// The type of an inbox item.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum InboxItemType {
    /// A reminder.
    Reminder,
    /// Information.
    Info,
    /// Something succeeded.
    Success,
    /// Something needs attention.
    Warning,
    /// Something failed.
    Error,
}

/// How an item appears as a toast.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Toast {
    /// How long it stays, in milliseconds; 0 = until it is dismissed.
    pub duration: u32,
    /// The position on the screen.
    pub position: String,
    /// Its buttons.
    pub buttons: Vec<ToastButton>,
    /// Whether the person's settings allow toasts, and those of this origin.
    pub shown: bool,
}

/// A button of a toast, also shown in the inbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToastButton {
    /// The label.
    pub label: String,
    /// The message it sends to the agent; none = it only dismisses.
    pub prompt: Option<String>,
}

/// A button that was pressed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ButtonPress {
    /// The index of the button, from 0.
    pub index: usize,
    /// When.
    pub at: Time,
    /// The event of the message it sent; none = it only dismissed.
    pub event_id: Option<EventId>,
}

/// The result of a press.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PressResult {
    /// The button.
    pub button: ToastButton,
    /// The press, this one or the first one.
    pub acted: ButtonPress,
}

/// The outcome of pressing a button.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PressOutcome {
    /// The button is pressed, now or before.
    Pressed(PressResult),
    /// The notification was settled by something else; this press changed nothing.
    Settled(Settlement),
}

/// The outcome of restoring a dismissed notification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RestoreOutcome {
    /// It is in the inbox again, and its buttons work.
    Restored(Box<InboxItem>),
    /// A prompt was pressed, which cannot be taken back; nothing has changed.
    Answered(Settlement),
}

/// What settled a notification: its first pressed prompt button, else its dismissal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settlement {
    /// The index of the pressed button, from 0, and the button; none = it was dismissed without one.
    pub pressed: Option<(usize, ToastButton)>,
    /// When.
    pub at: Time,
}

/// A person's notification in an event's trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PersonTrace {
    /// The inbox item; none = not sent yet.
    pub item: Option<InboxItem>,
    /// When it will be sent, if the hourly limit was reached.
    pub due_at: Option<Time>,
    /// Why the template of its subscriber failed; its text is a plain sentence then.
    pub template_error: Option<String>,
    /// Its deliveries.
    pub deliveries: Vec<Delivery>,
}

/// A query of an inbox.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct InboxQuery {
    /// The state of the items.
    pub state: InboxState,
    /// The type of the items; none = all.
    pub item_type: Option<InboxItemType>,
    /// Only items older than this one.
    pub before: Option<Uuid>,
    /// The size of the page.
    pub limit: usize,
}

/// How many items a page of a search looks at.
pub(crate) const SEARCHED_MAX: usize = 5_000;

/// The state of an inbox item in a query.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum InboxState {
    /// Neither read nor dismissed.
    Unread,
    /// Not dismissed.
    All,
    /// Dismissed.
    Dismissed,
}

/// A change of an inbox: an item was created or changed. Only the last of several changes is reported, with the item's current
/// state. Creation and last change are separate, so that a reader that stops between them gets the second one as a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InboxChange {
    /// Its position in the history of the inbox.
    pub position: i64,
    /// The item.
    pub item: InboxItem,
}

impl InboxChange {
    /// Whether it is the creation of the item.
    pub fn is_new(&self) -> bool {
        self.position == self.item.created_sequence
    }
}

/// The changes of an inbox after a position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Catchup {
    /// The changes, in order.
    pub changes: Vec<InboxChange>,
    /// Without a position: the toasts that should appear now, oldest first; at most [`DUE_TOASTS_MAX`], the newest.
    pub due_toasts: Vec<InboxItem>,
    /// The position to continue from.
    pub position: i64,
    /// How many are unread.
    pub unread: usize,
    /// Whether there are more changes.
    pub more: bool,
}

/// The maximum number of toasts with which a stream begins.
pub const DUE_TOASTS_MAX: usize = 20;

impl PersonTrace {
    /// Removes what only the person may see: addresses, and what the person did with the item.
    pub fn redact_for_agents(&mut self) {
        if let Some(item) = &mut self.item {
            (item.read_at, item.dismissed_at) = (None, None);
            item.acted.clear();
        }
        for delivery in &mut self.deliveries {
            let target = std::mem::take(&mut delivery.target);
            // Reasons of older databases still contain the address.
            delivery.reason = delivery.reason.take().map(|reason| without_addresses(&reason, &target));
        }
    }

    /// None = the event reached no person, or the rows have been deleted.
    pub(crate) fn of(item: Option<InboxItem>, later: Option<Reminder>, deliveries: Vec<Delivery>) -> Option<Self> {
        let later = later.filter(|later| later.ended_at.is_none());
        let (due_at, deferred) = later.map(|later| (later.due_at, later.template_error)).unzip();
        let template_error = item.as_ref().and_then(|item| item.template_error.clone()).or(deferred.flatten());
        (item.is_some() || due_at.is_some()).then_some(Self { item, due_at, template_error, deliveries })
    }
}

impl InboxItem {
    /// Its origin and title.
    pub fn heading(&self) -> ItemHeading {
        ItemHeading::new(self.id, self.origin.clone(), self.title.clone(), &self.message)
    }

    /// The message with the number of repeats, as the person reads it.
    pub fn shown_message(&self) -> String {
        with_repeats(&self.message, self.repeats)
    }

    /// What settled it; none = its buttons still work.
    pub fn settlement(&self) -> Option<Settlement> {
        let button = |index: usize| self.toast.as_ref()?.buttons.get(index);
        let mut presses = self.acted.iter().filter_map(|acted| Some((acted, button(acted.index)?)));
        let prompt = presses.clone().find(|(_, button)| button.prompt.is_some());
        let settled = |at: Time, press: Option<(&ButtonPress, &ToastButton)>| {
            let pressed = press.map(|(acted, button)| (acted.index, button.clone()));
            Settlement { pressed, at }
        };
        prompt
            .map(|(acted, button)| settled(acted.at, Some((acted, button))))
            .or_else(|| self.dismissed_at.map(|at| settled(at, presses.next())))
    }

    /// Whether it is a toast that is shown until it is dismissed.
    pub(crate) fn is_persistent(&self) -> bool {
        self.toast.as_ref().is_some_and(|toast| toast.shown && toast.duration == 0)
    }

    /// Whether it may still appear as a toast.
    pub fn appears_at(&self, now: Time) -> bool {
        let lasts = |toast: &Toast| toast.duration == 0 || now < self.created_at.plus(toast.duration.into());
        self.read_at.is_none() && self.toast.as_ref().is_some_and(|toast| toast.shown && lasts(toast))
    }

    /// Whether a text that a person sees of it contains this one, which has small letters.
    pub(crate) fn contains(&self, text: &str) -> bool {
        let optional = [&self.title, &self.source].into_iter().flatten();
        let mut texts = [&self.message, &self.origin].into_iter().chain(optional);
        texts.any(|one| one.to_ascii_lowercase().contains(text))
    }

    /// Whether it matches the query.
    pub(crate) fn is_wanted(&self, query: &InboxQuery) -> bool {
        let state = match query.state {
            InboxState::Unread => self.read_at.is_none(),
            InboxState::All => self.dismissed_at.is_none(),
            InboxState::Dismissed => self.dismissed_at.is_some(),
        };
        state
            && query.item_type.is_none_or(|item_type| item_type == self.item_type)
            && query.before.is_none_or(|before| self.id.0 < before)
    }
}

/// Of these items, the toasts that should appear now: the newest, oldest first.
pub(crate) fn due_toasts(items: impl IntoIterator<Item = InboxItem>, now: Time) -> Vec<InboxItem> {
    let mut due: Vec<InboxItem> = items.into_iter().filter(|item| item.appears_at(now)).collect();
    due.sort_by_key(|item| item.created_sequence);
    due.split_off(due.len().saturating_sub(DUE_TOASTS_MAX))
}

impl Toast {
    pub(crate) fn of(show: &ShowNotification, shown: bool) -> Self {
        let button = |action: &bellwire_core::person::ToastAction| ToastButton {
            label: action.label.clone(),
            prompt: action.prompt().map(str::to_owned),
        };
        Self {
            duration: show.duration,
            position: show.position.as_str().to_owned(),
            buttons: show.actions.iter().map(button).collect(),
            shown,
        }
    }
}

/// Defines the text of each value, on the wire and in rows.
macro_rules! words {
    ($($type:ident { $($value:ident = $word:literal,)+ })+) => {$(
        impl $type {
            /// All values.
            pub const ALL: [Self; [$($word),+].len()] = [$(Self::$value),+];

            /// The text of the value.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$value => $word,)+
                }
            }

            /// Parses the text.
            pub fn parse(word: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|one| one.as_str() == word)
            }
        }
    )+};
}
pub(crate) use words;

words! {
    InboxItemKind { Message = "message", Toast = "toast", Note = "note", }
    InboxItemType { Reminder = "reminder", Info = "info", Success = "success", Warning = "warning", Error = "error", }
    InboxState { Unread = "unread", All = "all", Dismissed = "dismissed", }
}

impl From<MessageType> for InboxItemType {
    fn from(kind: MessageType) -> Self {
        match kind {
            MessageType::Reminder => Self::Reminder,
            MessageType::Info => Self::Info,
            MessageType::Warning => Self::Warning,
        }
    }
}

impl From<ToastSeverity> for InboxItemType {
    fn from(severity: ToastSeverity) -> Self {
        match severity {
            ToastSeverity::Info => Self::Info,
            ToastSeverity::Success => Self::Success,
            ToastSeverity::Warning => Self::Warning,
            ToastSeverity::Error => Self::Error,
        }
    }
}
