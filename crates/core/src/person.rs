//! What an agent says to a person, checked before anything is done about it.
//!
//! Each tool has a file: what its arguments mean, in which order they are checked, and what a refusal says. Arguments come
//! from models, so a number in quotes is a number where it can be nothing else; whatever is refused names the argument,
//! what came and what is allowed, because the reader of the refusal is a model that will try again.

mod argument;
pub use argument::{Argument, Form};

mod arguments;
pub use arguments::ToolArguments;

mod address;
pub use address::without_addresses;

mod text;
pub use text::{clean, one_line, visible_name};

mod send;
pub use send::{MessageType, SendNotification};

mod show;
pub use show::{ActionKind, Position, ShowNotification, ToastAction, ToastSeverity};

mod remind;
pub use remind::Remind;

mod check;
pub use check::CheckNotifications;

mod note;
pub use note::NotifySelf;

mod settings;
pub use settings::{
    EmailSettings, PersonSettings, QuietChange, QuietSettings, SettingsChange, TelegramSettings, ToastSettings,
};

mod words;
pub use words::{PersonMessage, pressed, words};

/// The longest message a person is sent, in characters.
pub const MESSAGE_MAX: usize = 500;
