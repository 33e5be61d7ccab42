use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::sse::{Event as SseEvent, KeepAlive, KeepAliveStream, Sse};
use bellwire_store::{Hint, HintEvent, HintKind, HintReceiver};
use futures_util::Stream;
use futures_util::stream::{self, StreamExt as _};
use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::broadcast::Receiver;
use tokio::sync::watch;
use tokio::time::{Instant, Interval, interval_at};

use super::openapi::Operation;
use super::overload::StreamPermit;
use super::path::ConversationPath;
use super::{ApiError, Hub, shape};
use crate::auth::Identity;
use crate::clock;
use crate::metrics::StreamGuard;

/// A conversation is open for a day after it was last seen.
const SEEN_EVERY: Duration = Duration::from_secs(6 * 60 * 60);
/// Proxies close what is silent for longer.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The `data` of one hint, whose `event` is `pending`, `wake` or `immediate`.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Hint")]
struct HintBody {
    /// The agent meant.
    agent: String,
    /// The notifications meant.
    notifications: Vec<String>,
    /// How many wait in all.
    count: usize,
}

/// Hints, for as long as the reader stays.
pub(super) type HintStream = Sse<KeepAliveStream<Pin<Box<dyn Stream<Item = Result<SseEvent, Infallible>> + Send>>>>;

impl shape::ResponseShape for HintStream {
    const STATUS: StatusCode = StatusCode::OK;

    fn describe(operation: &mut Operation<'_>) {
        let data = operation.answers.subschema_for::<HintBody>().to_value();
        let schema = serde_json::json!({
            "type": "string", "contentMediaType": "application/json", "contentSchema": data,
            "description": "Server-sent events `pending`, `wake` and `immediate`; the data of each is a hint.",
        });
        operation.answer("text/event-stream", schema);
    }
}

/// Hints for a harness: the state now, then what changes. Hints carry ids and counts, never text: only an injection
/// consumes. A reader that is too slow gets the state anew instead of what it missed.
pub(super) async fn stream(
    State(hub): State<Hub>,
    ConversationPath { identity, id }: ConversationPath,
) -> Result<HintStream, ApiError> {
    let (state, feed) = ConversationFeed::open(hub, identity, id).await?;
    let first = stream::iter(state);
    let rest =
        stream::unfold(feed, |mut feed| async move { feed.next().await.map(|hints| (stream::iter(hints), feed)) });
    let lines = first.chain(rest.flatten()).map(|hint| Ok(line(&hint))).boxed();
    Ok(Sse::new(lines).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)))
}

/// What happens in one conversation, for as long as its reader may and wants to know.
pub(crate) struct ConversationFeed {
    hub: Hub,
    identity: Identity,
    conversation_id: String,
    hints: HintReceiver,
    revoked: Receiver<String>,
    stopping: watch::Receiver<bool>,
    /// When its token ends.
    expires: Option<Instant>,
    /// An open stream keeps its conversation open.
    seen: Interval,
    /// Counted for as long as it lives.
    _open: (StreamPermit, StreamGuard),
}

impl ConversationFeed {
    /// The state now, and what follows.
    pub(crate) async fn open(
        hub: Hub,
        mut identity: Identity,
        conversation_id: String,
    ) -> Result<(Vec<Arc<Hint>>, Self), ApiError> {
        let open = (hub.overload.stream(&identity.usage)?, hub.metrics.stream());
        // From here on it follows this person's conversation, whoever else may use the same id later.
        let owner = match identity.caller.user_id.take() {
            Some(bound) => bound,
            None => hub.store.conversation(identity.caller.clone(), conversation_id.clone()).await?.user_id,
        };
        // Subscribe first: what is committed between the two is told twice rather than never.
        let hints = hub.store.hints(&owner, &conversation_id);
        identity.caller.user_id = Some(owner);
        let revoked = hub.revoked.subscribe();
        // Whoever was revoked while this began is not on the list of those who will be.
        if !hub.tokens.is_still_valid(&identity).await? {
            return Err(ApiError::unauthorized());
        }
        let state = hub.store.connect(identity.caller.clone(), conversation_id.clone()).await?;
        let feed = Self {
            expires: end_of(&identity),
            stopping: hub.stopping.clone(),
            seen: interval_at(Instant::now() + SEEN_EVERY, SEEN_EVERY),
            hub,
            identity,
            conversation_id,
            hints,
            revoked,
            _open: open,
        };
        Ok((state.into_iter().map(Arc::new).collect(), feed))
    }

    /// The next hints of this conversation; none when the stream ends: the token is revoked, or the hub stops.
    pub(crate) async fn next(&mut self) -> Option<Vec<Arc<Hint>>> {
        loop {
            tokio::select! {
                heard = self.hints.next() => match heard {
                    HintEvent::Hint(hint) => return Some(vec![hint]),
                    HintEvent::Missed => return self.state_anew().await,
                    HintEvent::Closed => return None,
                },
                token = self.revoked.recv() => match token {
                    Ok(token) if token == self.identity.token_id => return None,
                    Ok(_) => {}
                    Err(_) => return None,
                },
                () = ended(self.expires) => return None,
                _ = self.seen.tick() => drop(self.state_anew().await?),
                _ = self.stopping.changed() => return None,
            }
        }
    }

    async fn state_anew(&mut self) -> Option<Vec<Arc<Hint>>> {
        let state = self.hub.store.connect(self.identity.caller.clone(), self.conversation_id.clone()).await.ok()?;
        Some(state.into_iter().map(Arc::new).collect())
    }
}

/// When a token ends by itself, by the clock that streams wait on.
pub(super) fn end_of(identity: &Identity) -> Option<Instant> {
    let after = identity.expires_at.map(|at| Duration::from_millis(at.millis_since(clock::now())));
    after.map(|after| Instant::now() + after)
}

/// Waits for the end of a token; one that never ends is waited for for ever.
pub(super) async fn ended(expires: Option<Instant>) {
    match expires {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

fn line(hint: &Hint) -> SseEvent {
    let kind = match hint.kind {
        HintKind::Pending => "pending",
        HintKind::Wake => "wake",
        HintKind::Immediate => "immediate",
    };
    let data = HintBody {
        agent: hint.agent.to_string(),
        notifications: hint.notifications.iter().map(ToString::to_string).collect(),
        count: hint.count,
    };
    SseEvent::default().event(kind).data(serde_json::to_string(&data).expect("names and numbers are JSON"))
}
