//! The HTTP API: routes, handlers and wire types. Wire types are defined only in this module.

mod api_service;
mod body;
mod catalog;
mod channel_calls;
mod channel_settings;
mod channel_test;
mod cloudevents;
mod console;
mod conversation_list;
mod conversations;
mod correlation;
mod cost;
mod deliveries;
mod docs;
mod drafts;
mod elements;
mod error;
mod event_list;
mod event_lookup;
mod events;
mod field;
mod health;
mod html_page;
mod idempotency;
mod in_progress;
mod inbox;
mod ingest;
mod inject;
mod intake;
mod ledger;
mod live;
mod mcp;
mod metrics;
mod new_event;
mod not_found;
mod open_stream;
mod openapi;
mod origin;
mod overload;
mod own_test;
mod path;
mod person_stream;
mod pipeline;
mod query;
mod reminders;
pub mod router;
mod sessions;
mod settings;
mod shape;
mod static_file;
mod statistics;
mod stored_event;
mod stream;
mod subscribers;
mod system_prompt;
mod tokens;
mod tools;
mod trace;
mod type_suggestions;
mod unsubscribe;
mod users;

pub(crate) use api_service::Api;
pub(crate) use correlation::{Correlation, TraceIds};
pub use error::ApiError;
pub(crate) use field::{ID_MAX, check_single_line};
pub(crate) use in_progress::InProgress;
pub(crate) use ingest::read_webhook_json;
pub(crate) use open_stream::OpenStream;
pub(crate) use overload::ConcurrencyLimits;
pub(crate) use own_test::OwnTests;
pub(crate) use stream::ConversationFeed;

use std::sync::Arc;

use bellwire_core::subscriber::Subscribers;
use bellwire_store::{InjectCommand, InjectResult, RefusalCache, Store, StoreError};
use tokio::sync::broadcast;

use crate::auth::Authenticator;
use crate::channels::{Channels, UnsubscribeLinks};
use crate::metrics::Metrics;
use crate::statistics::Statistics;
use crate::supervise::Supervisor;
use crate::tools::NotificationThrottle;
use crate::wrong_codes::WrongCodes;

/// The shared state of all handlers. Every request clones it several times, so it is one `Arc`.
#[derive(Clone)]
pub(crate) struct Hub(Arc<Parts>);

/// The fields of [`Hub`], which dereferences to them.
pub(crate) struct Parts {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) tokens: Arc<Authenticator>,
    /// The current subscribers; a reload replaces them.
    pub(crate) subscribers_watch: tokio::sync::watch::Receiver<Arc<Subscribers>>,
    /// The maximum number of events in one publish request.
    pub(crate) batch_max: usize,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) statistics: Arc<Statistics>,
    pub(crate) overload: Arc<ConcurrencyLimits>,
    pub(crate) trace_ids: TraceIds,
    /// Sends the id of each revoked token, so that its open streams end.
    pub(crate) revoked: broadcast::Sender<String>,
    /// Signs and verifies unsubscribe links.
    pub(crate) unsubscribe: UnsubscribeLinks,
    /// When people last sent test messages to themselves.
    pub(crate) own_tests: OwnTests,
    /// Wrong sign-in codes.
    pub(crate) wrong_codes: WrongCodes,
    /// The URL that clients use, if the operator has configured one.
    pub(crate) public_url: Option<String>,
    /// The sources of webhooks.
    pub(crate) ingest: crate::ingest::Sources,
    /// The channels to people.
    pub(crate) channels: Channels,
    /// The path of `notify` requests.
    pub(crate) notify: crate::notify::NotifyPath,
    /// How long a test message may take: it is answered before the request times out.
    pub(crate) channel_test_wait: std::time::Duration,
    /// Caches refusals of the hourly limits, so that a repeated call does not reach the database.
    pub(crate) refusals: Arc<dyn RefusalCache>,
    /// Bounds how often rate-limited tool results carry notifications.
    pub(crate) notification_throttle: NotificationThrottle,
    /// How long a request waits for an erasure to finish.
    pub(crate) erase_wait: std::time::Duration,
    /// The cached text of `/metrics` and when it was written. Requests wait on the lock while it is rewritten.
    pub(crate) metrics_page: tokio::sync::Mutex<Option<(std::time::Instant, Arc<str>)>>,
    /// Changes when the hub stops, so that open streams end.
    pub(crate) stopping: tokio::sync::watch::Receiver<bool>,
    /// Reports whether an essential task has died.
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

    /// Answers an injection, and measures how long it takes.
    pub(crate) async fn inject(&self, command: InjectCommand) -> Result<InjectResult, StoreError> {
        let started = std::time::Instant::now();
        let result = self.store.inject(command).await;
        self.statistics.injected(started.elapsed());
        result
    }

    /// Looks at the queues every minute, for the statistics.
    pub(crate) async fn watch_queues(self, mut stopping: tokio::sync::watch::Receiver<bool>) {
        let mut every = tokio::time::interval(std::time::Duration::from_secs(60));
        loop {
            tokio::select! {
                _ = every.tick() => {}
                _ = stopping.changed() => return,
            }
            // A failed read leaves a gap in the plot; requests for data get the error.
            let _ = statistics::look(&self).await;
        }
    }

    /// The current subscribers.
    pub(crate) fn subscribers(&self) -> Arc<Subscribers> {
        self.subscribers_watch.borrow().clone()
    }
}
