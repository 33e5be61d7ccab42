use bellwire_core::person::{MessageType, ShowNotification, ToastSeverity, without_addresses};
use bellwire_core::{EventId, NotificationId, Time};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Delivery, Reminder};

/// A notification as its person has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InboxItem {
    /// Its name.
    pub id: NotificationId,
    /// Whose it is.
    pub user_id: String,
    /// Where it came from: a message, a toast, or the hub itself.
    pub kind: InboxItemKind,
    /// What sort of news it is.
    pub level: InboxItemType,
    /// The authenticated name of who tells.
    pub origin: String,
    /// The source that the events name which it tells of, if they name one. It is not authenticated.
    pub source: Option<String>,
    /// In which conversation it came up.
    pub conversation_id: Option<String>,
    /// What stands above it.
    pub title: Option<String>,
    /// What it says.
    pub message: String,
    /// How it appears, if it does.
    pub toast: Option<Toast>,
    /// The thread of work it belongs to.
    pub correlation_id: Option<String>,
    /// When it came.
    pub created_at: Time,
    /// When it was read.
    pub read_at: Option<Time>,
    /// When it was taken out of sight.
    pub dismissed_at: Option<Time>,
    /// The buttons that were pressed.
    pub acted: Vec<ButtonPress>,
    /// The position at which the inbox had it first.
    pub created_sequence: i64,
    /// The position at which it changed last.
    pub changed_sequence: i64,
}

/// Where an item of the inbox came from. Each has an hourly allowance of its own; what the hub says needs none.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum InboxItemKind {
    /// An agent's message, a reminder, news for the person.
    Message,
    /// An agent's toast.
    Toast,
    /// The hub about itself, such as a mail that could not be delivered.
    Note,
}

/// What sort of news an item is.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum InboxItemType {
    /// Something to remember.
    Reminder,
    /// News.
    Info,
    /// Good news.
    Success,
    /// Something to look at.
    Warning,
    /// Something failed.
    Error,
}

/// How an item appears in front of its person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Toast {
    /// How long it stays, in milliseconds; 0 = until it is dismissed.
    pub duration: u32,
    /// Where.
    pub position: String,
    /// Its buttons.
    pub buttons: Vec<ToastButton>,
    /// Whether it may appear: the person wants toasts, and those of this origin.
    pub shown: bool,
}

/// A button of a toast, which the inbox has as well.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToastButton {
    /// What stands on it.
    pub label: String,
    /// What it says to the agent; none = it only dismisses.
    pub prompt: Option<String>,
}

/// A button that was pressed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ButtonPress {
    /// Which, from 0.
    pub index: usize,
    /// When.
    pub at: Time,
    /// The message it became; none = it dismissed.
    pub event_id: Option<EventId>,
}

/// What a press came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PressResult {
    /// The button.
    pub button: ToastButton,
    /// What it came to, now or when it was pressed first.
    pub acted: ButtonPress,
}

/// What became of news for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PersonTrace {
    /// What they were told; none = not yet.
    pub item: Option<InboxItem>,
    /// When they will be, where the hour's allowance is used up.
    pub due_at: Option<Time>,
    /// The ways it went out by.
    pub deliveries: Vec<Delivery>,
}

/// What of an inbox is wanted.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct InboxQuery {
    /// In which state.
    pub state: InboxState,
    /// Of which sort.
    pub level: Option<InboxItemType>,
    /// Older than this one.
    pub before: Option<Uuid>,
    /// How many at most.
    pub limit: usize,
}

/// In which state an item is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum InboxState {
    /// Neither read nor dismissed.
    Unread,
    /// Not dismissed.
    All,
    /// Dismissed.
    Dismissed,
}

/// Something that happened to an inbox: an item came, or was changed. Of several changes the last one is known, and an
/// item is told as it is now. Coming and changing are two, so that whoever stops between them hears the rest as what it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InboxChange {
    /// Where it stands among all that happened to the inbox.
    pub position: i64,
    /// The item.
    pub item: InboxItem,
}

impl InboxChange {
    /// Whether the item came with it.
    pub fn is_news(&self) -> bool {
        self.position == self.item.created_sequence
    }
}

/// What an inbox has changed behind a position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Catchup {
    /// What happened, in order.
    pub changes: Vec<InboxChange>,
    /// The position this leads to.
    pub position: i64,
    /// How many are unread.
    pub unread: usize,
    /// Whether there is more behind it.
    pub more: bool,
}

impl PersonTrace {
    /// Leaves out what only the person may know: the addresses, and what they did about it.
    pub fn hide_the_persons_own(&mut self) {
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

    /// None = no person was told of it, or what they were told is long gone.
    pub(crate) fn of(item: Option<InboxItem>, later: Option<Reminder>, deliveries: Vec<Delivery>) -> Option<Self> {
        let due_at = later.filter(|later| later.ended_at.is_none()).map(|later| later.due_at);
        (item.is_some() || due_at.is_some()).then_some(Self { item, due_at, deliveries })
    }
}

impl InboxItem {
    /// Whether it may still appear as a toast.
    pub fn appears_at(&self, now: Time) -> bool {
        let lasts = |toast: &Toast| toast.duration == 0 || now < self.created_at.plus(toast.duration.into());
        self.read_at.is_none() && self.toast.as_ref().is_some_and(|toast| toast.shown && lasts(toast))
    }

    /// Whether it belongs on this page.
    pub(crate) fn is_wanted(&self, query: &InboxQuery) -> bool {
        let state = match query.state {
            InboxState::Unread => self.read_at.is_none(),
            InboxState::All => self.dismissed_at.is_none(),
            InboxState::Dismissed => self.dismissed_at.is_some(),
        };
        state
            && query.level.is_none_or(|level| level == self.level)
            && query.before.is_none_or(|before| self.id.0 < before)
    }
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

/// Words on the wire and in rows.
macro_rules! words {
    ($($type:ident { $($value:ident = $word:literal,)+ })+) => {$(
        impl $type {
            /// Every one of them.
            pub const ALL: [Self; [$($word),+].len()] = [$(Self::$value),+];

            /// The word for it.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$value => $word,)+
                }
            }

            /// Reads the word.
            pub fn parse(word: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|one| one.as_str() == word)
            }
        }
    )+};
}
pub(super) use words;

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
