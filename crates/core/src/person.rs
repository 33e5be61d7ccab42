//! The tools by which an agent notifies a person, and the settings of a person.
//!
//! Each tool has a file: its arguments, the order in which they are checked, and the texts of refusals. Arguments come
//! from models, so a quoted number is accepted where a number is expected. Every refusal names the argument, the given
//! value and what is allowed, because a model reads it and tries again.

mod argument;
pub(crate) use argument::words_of;
pub use argument::{Argument, Form};

mod arguments;
pub use arguments::ToolArguments;
pub(crate) use arguments::{object, value_kind};

mod address;
pub use address::without_addresses;

mod text;
pub use text::{clean, one_line, visible_name};

mod send;
pub use send::{MessageType, SendNotification};

mod show;
pub use show::{ActionKind, Position, ShowNotification, TOAST_DURATION_MAX, ToastAction, ToastSeverity};

mod remind;
pub use remind::Remind;

mod check;
pub use check::CheckNotifications;

mod note;
pub use note::NotifySelf;

mod channel;
pub use channel::{ChannelChange, ChannelName, ChannelSettings};

mod settings;
pub use settings::{PersonSettings, QuietChange, QuietSettings, SettingsChange, ToastSettings};

mod older_settings;

mod sentence;

mod person_message;
pub use person_message::{PersonMessage, button_press_text, render_message, with_repeats};

/// In characters: the longest message to a person.
pub const MESSAGE_MAX: usize = 500;
