//! A stand-in for Telegram's Bot API: the methods that Bellwire calls, with the rules that Telegram documents.
//!
//! [`Standin::start`] listens on a free port of loopback in a thread of its own, so that a test, a benchmark or another
//! process can use it. It refuses what Telegram refuses, in Telegram's words: a text that is too long, an entity outside
//! its text, a reply to a message that does not exist, a reaction that is not allowed, a second poller. It records every
//! call ([`Standin::calls`]), lets users act ([`Standin::types`], [`Standin::presses`], …) and fails as told
//! ([`Standin::fail_next`], [`Standin::hold`]).
//!
//! ```
//! # let _ = rustls::crypto::ring::default_provider().install_default();
//! # tokio::runtime::Runtime::new().expect("a runtime").block_on(async {
//! let telegram = telegram_standin::Standin::start();
//! telegram.types(7, "hello");
//! let updates = reqwest::get(format!("{}/bot{}/getUpdates", telegram.url(), telegram.token())).await.expect("an answer");
//! assert!(updates.text().await.expect("a body").contains("hello"));
//! # });
//! ```

mod answer;
mod control;
mod fault;
mod keyboard;
mod methods;
mod parameters;
mod server;
mod text;
mod user;
mod webhook;
mod world;

pub use fault::{Fault, Gate};
pub use methods::ALLOWED_REACTIONS;
pub use world::{Call, Message, Reaction};

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::server::Shared;

/// How long a wait for something takes before the test fails.
const PATIENCE: Duration = Duration::from_secs(20);

/// A running stand-in. It stops when it is dropped.
pub struct Standin {
    address: SocketAddr,
    shared: Arc<Shared>,
    _stop: oneshot::Sender<()>,
}

impl Standin {
    /// The bot's token.
    pub const TOKEN: &'static str = "7001:standin-Token_0123456789abcdefghijk";
    /// The bot's user name.
    pub const USERNAME: &'static str = "standin_bot";
    /// The bot's id.
    pub const BOT_ID: i64 = 7001;

    /// Listens on a free port of loopback.
    pub fn start() -> Self {
        Self::start_at(SocketAddr::from(([127, 0, 0, 1], 0)))
    }

    /// Listens on this address.
    pub fn start_at(address: SocketAddr) -> Self {
        let shared = Arc::new(Shared::new());
        let (stop, stopped) = oneshot::channel();
        let address = server::spawn(address, shared.clone(), stopped);
        Self { address, shared, _stop: stop }
    }

    /// The base URL of the API, without a slash at its end.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The bot's token.
    pub fn token(&self) -> &'static str {
        Self::TOKEN
    }

    /// Every call so far, in the order of their answers.
    pub fn calls(&self) -> Vec<Call> {
        self.shared.read(|world| world.calls.clone())
    }

    /// The calls of one method.
    pub fn calls_of(&self, method: &str) -> Vec<Call> {
        self.shared.read(|world| world.calls.iter().filter(|call| call.is(method)).cloned().collect())
    }

    /// The messages of a chat, oldest first, the user's own too.
    pub fn messages(&self, chat: i64) -> Vec<Message> {
        self.shared.read(|world| world.messages(chat))
    }

    /// The messages that the bot has sent to a chat.
    pub fn sent(&self, chat: i64) -> Vec<Message> {
        self.messages(chat).into_iter().filter(|message| message.from == Self::BOT_ID).collect()
    }

    /// The number of updates that the bot has not confirmed.
    pub fn pending_updates(&self) -> usize {
        self.shared.read(|world| world.updates.len())
    }

    /// The number of long polls that wait for an update.
    pub fn waiting_polls(&self) -> usize {
        self.shared.read(|world| world.waiting_polls)
    }

    /// Waits until the bot has sent `count` messages to a chat, and returns them.
    pub async fn wait_for_sent(&self, chat: i64, count: usize) -> Vec<Message> {
        self.wait_until("messages", |standin| Some(standin.sent(chat)).filter(|sent| sent.len() >= count)).await
    }

    /// Waits until a method was called `count` times, and returns its calls.
    pub async fn wait_for_calls(&self, method: &str, count: usize) -> Vec<Call> {
        self.wait_until(method, |standin| Some(standin.calls_of(method)).filter(|calls| calls.len() >= count)).await
    }

    /// Waits until `found` returns something; it is asked again after every change.
    ///
    /// # Panics
    /// After 20 seconds, with the last calls.
    pub async fn wait_until<T>(&self, what: &str, found: impl Fn(&Self) -> Option<T>) -> T {
        let mut changes = self.shared.changes();
        let waiting = async {
            loop {
                changes.borrow_and_update();
                if let Some(found) = found(self) {
                    return found;
                }
                changes.changed().await.expect("the stand-in runs as long as it is not dropped");
            }
        };
        match tokio::time::timeout(PATIENCE, waiting).await {
            Ok(found) => found,
            Err(_) => {
                let calls = self.calls();
                let last = calls.iter().rev().take(10).rev().map(|call| format!("{call:?}\n")).collect::<String>();
                panic!("waited for {what} in vain; the last calls:\n{last}")
            }
        }
    }

    /// The next call of `method` ends in this fault; `"*"` stands for any method. Faults of one method form a queue.
    pub fn fail_next(&self, method: &str, fault: Fault) {
        self.shared.change(|world| world.faults.push(method, fault));
    }

    /// Forgets the faults that are still to come.
    pub fn clear_faults(&self) {
        self.shared.change(|world| world.faults = fault::Faults::default());
    }

    /// Accepts the next call of `method` and holds its answer back until the gate opens.
    pub fn hold(&self, method: &str) -> Gate {
        let (gate, fault) = Gate::new();
        self.fail_next(method, fault);
        gate
    }

    /// Refuses a message with 429 that comes sooner than this after the one before it in the same chat.
    pub fn limit_chats(&self, interval: Duration) {
        self.shared.change(|world| world.chat_interval = interval);
    }
}
