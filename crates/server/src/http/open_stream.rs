use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{broadcast, watch};
use tokio::time::Instant;

use super::overload::StreamPermit;
use super::{ApiError, Hub};
use crate::auth::{Authenticator, Identity, SessionUse};
use crate::clock;
use crate::metrics::StreamGuard;
use crate::session_use::STORE_USE_MS;

/// How often a stream is a use of its session.
const USE_EVERY: Duration = Duration::from_millis(STORE_USE_MS);

/// An open stream: it counts against the hub's and its token's limit, and ends with its token and with the hub.
pub(crate) struct OpenStream {
    token_id: String,
    revoked: broadcast::Receiver<String>,
    /// When its token expires.
    expires: Option<Instant>,
    session: Option<SessionInUse>,
    stopping: watch::Receiver<bool>,
    _counted: (StreamPermit, StreamGuard),
}

/// The session of a stream. A page that only listens is in use too.
struct SessionInUse {
    session: Arc<SessionUse>,
    tokens: Arc<Authenticator>,
    next_use: Instant,
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
        let session = identity.session.clone().map(|session| SessionInUse {
            session,
            tokens: hub.tokens.clone(),
            next_use: Instant::now() + USE_EVERY,
        });
        Ok(Self {
            token_id: identity.token_id.clone(),
            revoked,
            expires: after.map(|after| Instant::now() + after),
            session,
            stopping: hub.stopping.clone(),
            _counted: counted,
        })
    }

    /// Waits until the token is revoked or expires, or the hub stops. Meanwhile the session of the stream is in use.
    pub(crate) async fn ended(&mut self) {
        loop {
            tokio::select! {
                token = self.revoked.recv() => match token {
                    Ok(token) if token != self.token_id => {}
                    // Which tokens were missed is not known; clients connect again.
                    _ => return,
                },
                () = at(self.expires) => return,
                () = at(self.session.as_ref().map(|session| session.next_use)) => {
                    if !self.session.as_mut().is_some_and(SessionInUse::use_now) {
                        return;
                    }
                },
                _ = self.stopping.changed() => return,
            }
        }
    }
}

impl SessionInUse {
    /// Uses the session. False = it has ended: the hub was suspended for longer than a session may be idle.
    fn use_now(&mut self) -> bool {
        self.next_use = Instant::now() + USE_EVERY;
        self.tokens.use_session(&self.session).is_ok()
    }
}

/// Waits until this time; for ever without one.
async fn at(time: Option<Instant>) {
    match time {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
