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
use tokio::time::{Instant, Interval, interval_at};

use super::open_stream::OpenStream;
use super::openapi::Operation;
use super::path::ConversationPath;
use super::{ApiError, Hub, shape};
use crate::auth::Identity;

/// How often an open stream updates the conversation's last-seen time. A conversation counts as open for a day after it.
const TOUCH_EVERY: Duration = Duration::from_secs(6 * 60 * 60);
/// Shorter than the idle timeout of common proxies.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The `data` of one hint, whose `event` is `pending`, `wake` or `immediate`.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Hint")]
struct HintBody {
    /// The agent.
    agent: String,
    /// The ids of the notifications.
    notifications: Vec<String>,
    /// The number of all pending notifications.
    count: usize,
}

/// The SSE response with a conversation's hints.
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

/// Streams a conversation's hints to a harness: first the current state, then changes. Hints have ids and counts, never
/// text: only an injection takes notifications. A client that is too slow gets the current state instead of the hints it
/// missed.
pub(super) async fn stream(
    State(hub): State<Hub>,
    ConversationPath { identity, id }: ConversationPath,
) -> Result<HintStream, ApiError> {
    let (state, feed) = ConversationFeed::open(hub, identity, id).await?;
    let first = stream::iter(state);
    let rest =
        stream::unfold(feed, |mut feed| async move { feed.next().await.map(|hints| (stream::iter(hints), feed)) });
    let events = first.chain(rest.flatten()).map(|hint| Ok(sse_event(&hint))).boxed();
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)))
}

/// The hints of one conversation for one client. It ends when the token is revoked or expires, or when the hub stops.
pub(crate) struct ConversationFeed {
    hub: Hub,
    identity: Identity,
    conversation_id: String,
    /// Whether the client is an operator who watches another person's conversation, which does not open it.
    is_watching: bool,
    hints: HintReceiver,
    /// Ticks when the conversation's last-seen time is to be updated, so that an open stream keeps it open.
    touch: Interval,
    open: OpenStream,
}

impl ConversationFeed {
    /// Returns the current state and the feed of the hints after it.
    pub(crate) async fn open(
        hub: Hub,
        mut identity: Identity,
        conversation_id: String,
    ) -> Result<(Vec<Arc<Hint>>, Self), ApiError> {
        let open = OpenStream::new(&hub, &identity).await?;
        // Resolve the owner once: another user may create a conversation of the same id later.
        let owner = match identity.caller.user_id.take() {
            Some(bound) => bound,
            None => hub.store.conversation(identity.caller.clone(), conversation_id.clone()).await?.user_id,
        };
        // Subscribe before reading the state: a change committed in between is sent twice rather than never.
        let hints = hub.store.hints(&owner, &conversation_id);
        let is_watching = identity.signed_in_admin().is_some_and(|own| own != owner);
        identity.caller.user_id = Some(owner);
        let mut feed = Self {
            touch: interval_at(Instant::now() + TOUCH_EVERY, TOUCH_EVERY),
            hub,
            identity,
            conversation_id,
            is_watching,
            hints,
            open,
        };
        Ok((feed.current_state().await?, feed))
    }

    /// The next hints; `None` when the stream ends.
    pub(crate) async fn next(&mut self) -> Option<Vec<Arc<Hint>>> {
        loop {
            tokio::select! {
                event = self.hints.next() => match event {
                    HintEvent::Hint(hint) => return Some(vec![hint]),
                    HintEvent::Missed => return self.current_state().await.ok(),
                    HintEvent::Closed => return None,
                },
                () = self.open.ended() => return None,
                _ = self.touch.tick() => drop(self.current_state().await.ok()?),
            }
        }
    }

    /// The state now. Asking for it keeps the conversation open, unless the client only watches.
    async fn current_state(&mut self) -> Result<Vec<Arc<Hint>>, ApiError> {
        let (caller, id) = (self.identity.caller.clone(), self.conversation_id.clone());
        let state = match self.is_watching {
            true => self.hub.store.watch(caller, id).await?,
            false => self.hub.store.connect(caller, id).await?,
        };
        Ok(state.into_iter().map(Arc::new).collect())
    }
}

fn sse_event(hint: &Hint) -> SseEvent {
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
    SseEvent::default().event(kind).data(serde_json::to_string(&data).expect("ids and numbers can be serialized"))
}
