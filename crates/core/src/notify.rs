//! The `notify` tool: an agent sends, replies or reacts over one channel, such as email or Telegram.
//!
//! This module has the rules that need no I/O: the arguments and the order in which they are checked, the context of the
//! inbound message that a reply answers, the classes of errors, the label that texts carry, and the input of the hash
//! that recognises duplicates. The path of a call is in the server: `notify`, Switchboard, Messenger, channel.

mod intent;
pub use intent::Intent;

mod request_context;
pub use request_context::{ContextError, RequestContext};

mod call;
pub use call::{ChannelFacts, InvalidCall, NotifyCall};

mod chat_thread;
pub use chat_thread::ChatThread;

mod label;
pub use label::{DEFAULT_SUBJECT, labelled};

mod dedup;
pub use dedup::{DedupInput, normalized_target};

mod error;
pub use error::{ErrorClass, NotifyError, UNKNOWN_OUTCOME};
