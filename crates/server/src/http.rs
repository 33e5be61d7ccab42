//! The API over HTTP: wire types live here and nowhere else.

mod body;
mod conversations;
mod docs;
mod error;
mod events;
mod field;
mod health;
mod inject;
mod new_event;
mod openapi;
pub mod router;
mod shape;
mod stream;
mod subscribers;
mod tokens;
mod trace;
mod users;

pub use error::ApiError;

use std::sync::Arc;

use bellwire_core::subscriber::Subscribers;
use bellwire_store::Store;
use tokio::sync::broadcast;

use crate::auth::Tokens;
use crate::limit::PublishLimit;

/// What every handler may use.
#[derive(Clone)]
pub(crate) struct Hub {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) tokens: Arc<Tokens>,
    pub(crate) subscribers: Arc<Subscribers>,
    pub(crate) limit: Arc<PublishLimit>,
    /// Names of tokens that were just revoked: their streams end.
    pub(crate) revoked: broadcast::Sender<String>,
    /// Closed when the hub stops: streams end.
    pub(crate) stopping: tokio::sync::watch::Receiver<bool>,
}
