//! The API over HTTP: wire types live here and nowhere else.

mod api_service;
mod body;
mod cloudevents;
mod conversations;
mod correlation;
mod deliveries;
mod docs;
mod drafts;
mod error;
mod events;
mod field;
mod health;
mod idempotency;
mod inbox;
mod inject;
mod intake;
mod mcp;
mod metrics;
mod new_event;
mod openapi;
mod origin;
mod overload;
mod path;
mod person_stream;
mod pipeline;
mod reminders;
pub mod router;
mod settings;
mod shape;
mod stream;
mod subscribers;
mod tokens;
mod tools;
mod trace;
mod unsubscribe;
mod users;

pub(crate) use api_service::Api;
pub(crate) use correlation::{Correlation, TraceIds};
pub use error::ApiError;
pub(crate) use field::ID_MAX;
pub(crate) use overload::ConcurrencyLimits;
pub(crate) use stream::ConversationFeed;

use std::sync::Arc;

use bellwire_core::subscriber::Subscribers;
use bellwire_store::{RefusalCache, Store};
use tokio::sync::broadcast;

use crate::auth::Authenticator;
use crate::metrics::Metrics;
use crate::supervise::Supervisor;
use crate::tools::MailThrottle;

/// What every handler may use. Every layer of every request has its own, so a copy must cost next to nothing.
#[derive(Clone)]
pub(crate) struct Hub(Arc<Parts>);

/// What a hub is made of.
pub(crate) struct Parts {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) tokens: Arc<Authenticator>,
    /// The subscribers in force; a reload replaces them.
    pub(crate) subscribers_watch: tokio::sync::watch::Receiver<Arc<Subscribers>>,
    /// The most events one call may bring.
    pub(crate) batch_max: usize,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) overload: Arc<ConcurrencyLimits>,
    pub(crate) trace_ids: TraceIds,
    /// Names of tokens that were just revoked: their streams end.
    pub(crate) revoked: broadcast::Sender<String>,
    /// Signs and reads the links that end mail.
    pub(crate) unsubscribe: crate::deliver::UnsubscribeLinks,
    /// Whether mail is configured.
    pub(crate) mails: bool,
    /// Remembers refusals of the hourly limits.
    pub(crate) refusals: Arc<dyn RefusalCache>,
    /// How often what is over a limit carries mail.
    pub(crate) mail_throttle: MailThrottle,
    /// How long a call waits for the end of an erasure.
    pub(crate) erase_wait: std::time::Duration,
    /// The page of `/metrics` and when it was written. Whoever asks while it is written waits for it.
    pub(crate) metrics_page: tokio::sync::Mutex<Option<(std::time::Instant, Arc<str>)>>,
    /// Closed when the hub stops: streams end.
    pub(crate) stopping: tokio::sync::watch::Receiver<bool>,
    /// Knows whether an essential task has died.
    pub(crate) supervisor: Supervisor,
}

impl std::ops::Deref for Hub {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

impl Hub {
    pub(crate) fn new(parts: Parts) -> Self {
        Self(Arc::new(parts))
    }

    /// The subscribers in force now.
    pub(crate) fn subscribers(&self) -> Arc<Subscribers> {
        self.subscribers_watch.borrow().clone()
    }
}
