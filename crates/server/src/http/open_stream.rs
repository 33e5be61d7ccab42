use std::time::Duration;

use tokio::sync::{broadcast, watch};
use tokio::time::Instant;

use super::overload::StreamPermit;
use super::{ApiError, Hub};
use crate::auth::Identity;
use crate::clock;
use crate::metrics::StreamGuard;

/// An open stream: it counts against the hub's and its token's limit, and ends with its token and with the hub.
pub(crate) struct OpenStream {
    token_id: String,
    revoked: broadcast::Receiver<String>,
    /// When its token expires.
    expires: Option<Instant>,
    stopping: watch::Receiver<bool>,
    _counted: (StreamPermit, StreamGuard),
}

impl OpenStream {
    pub(crate) async fn new(hub: &Hub, identity: &Identity) -> Result<Self, ApiError> {
        let counted = (hub.overload.stream(&identity.usage)?, hub.metrics.stream());
        let revoked = hub.revoked.subscribe();
        // A token that was revoked before the subscription began is not announced by it.
        if !hub.tokens.is_still_valid(identity).await? {
            return Err(ApiError::unauthorized("this token was revoked or has expired"));
        }
        let after = identity.expires_at.map(|at| Duration::from_millis(at.millis_since(clock::now())));
        Ok(Self {
            token_id: identity.token_id.clone(),
            revoked,
            expires: after.map(|after| Instant::now() + after),
            stopping: hub.stopping.clone(),
            _counted: counted,
        })
    }

    /// Waits until the token is revoked or expires, or the hub stops.
    pub(crate) async fn ended(&mut self) {
        loop {
            tokio::select! {
                token = self.revoked.recv() => match token {
                    Ok(token) if token != self.token_id => {}
                    // Which tokens were missed is not known; clients connect again.
                    _ => return,
                },
                () = at(self.expires) => return,
                _ = self.stopping.changed() => return,
            }
        }
    }
}

/// Waits for the end of a token, for ever where it has none.
async fn at(expires: Option<Instant>) {
    match expires {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
