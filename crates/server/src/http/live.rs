//! The live stream of events for operators: each event with its verdicts, and what becomes of its notifications.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::sse::{Event as SseEvent, KeepAlive, KeepAliveStream, Sse};
use bellwire_core::InjectionPoint;
use bellwire_core::event::TypePattern;
use bellwire_core::verdict::VerdictKind;
use bellwire_store::{EventFilter, EventQuery, Fate, LiveEvent, LiveReceiver};
use futures_util::stream::{self, Stream, StreamExt as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::OwnedSemaphorePermit;
use uuid::Uuid;

use super::event_list::ListedEventBody;
use super::field::{EnumText, ID_MAX, Rfc3339Time, SingleLineText};
use super::open_stream::OpenStream;
use super::openapi::Operation;
use super::query::Query;
use super::{ApiError, Hub, shape};
use crate::auth::Identity;

/// Shorter than the idle timeout of common proxies.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The query of `GET /v1/events/stream`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct LiveQuery {
    /// Only events and fates of this person.
    user_id: Option<SingleLineText<ID_MAX>>,
    /// Only events that were sent to this conversation or reached it, and its fates.
    conversation_id: Option<SingleLineText<ID_MAX>>,
    /// Only events of this type. `tool.*` is every type below `tool`; any other `*` stands for one part.
    #[serde(rename = "type")]
    types: Option<SingleLineText<ID_MAX>>,
    /// Only events on which a subscriber decided so.
    verdict: Option<EnumText<VerdictKind>>,
}

/// The `data` of `fate`: what became of a notification.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Fate")]
struct FateData {
    /// The notification; null for the delivery of a code.
    notification_id: Option<Uuid>,
    /// The events of an agent's notification. Empty for a person's: `notification_id` is that of the verdict.
    event_ids: Vec<Uuid>,
    /// The person it belongs to.
    user_id: String,
    /// The conversation.
    conversation_id: Option<String>,
    /// The agent of an agent's notification.
    agent: Option<String>,
    /// The subscriber of an agent's notification.
    subscriber: Option<String>,
    /// Of an agent's notification: `pending`, `injected`, `replaced`, `expired`, `folded`; of a person's: `created`,
    /// `pressed`, `dismissed`, `read`, `unread`; of a delivery: its state, as in `GET /v1/deliveries`.
    state: &'static str,
    /// When.
    at: Rfc3339Time,
    /// The injection that showed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    call_id: Option<String>,
    /// The injection point of that injection.
    #[serde(skip_serializing_if = "Option::is_none")]
    point: Option<EnumText<InjectionPoint>>,
    /// The channel of a delivery.
    #[serde(skip_serializing_if = "Option::is_none")]
    channel: Option<String>,
    /// The reason of the state.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// The `data` of `skipped`.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Skipped")]
struct SkippedData {
    /// How many events and fates were left out, counted before the filters.
    count: u64,
}

/// The response of the live stream. It lasts until the client disconnects or its token ends.
pub(super) struct LiveStream(LiveSse);

type LiveSse = Sse<KeepAliveStream<Pin<Box<dyn Stream<Item = Result<SseEvent, Infallible>> + Send>>>>;

impl axum::response::IntoResponse for LiveStream {
    fn into_response(self) -> axum::response::Response {
        self.0.into_response()
    }
}

impl shape::ResponseShape for LiveStream {
    const STATUS: StatusCode = StatusCode::OK;

    fn describe(operation: &mut Operation<'_>) {
        let schemas = [
            operation.answers.subschema_for::<ListedEventBody>().to_value(),
            operation.answers.subschema_for::<FateData>().to_value(),
            operation.answers.subschema_for::<SkippedData>().to_value(),
        ];
        let schema = serde_json::json!({
            "type": "string", "contentMediaType": "application/json", "contentSchema": { "anyOf": schemas },
            "description": "Server-sent events: `event` (a stored event with its verdicts), `fate` (what became of a \
                            notification) and `skipped` (how many were left out because this reader was too slow). The \
                            stream shows what happens from now on in the process it is connected to. It has no ids \
                            and cannot be resumed; `GET /v1/events` lists what was stored.",
        });
        operation.answer("text/event-stream", schema);
    }
}

/// Streams what happens from now on.
pub(super) async fn stream(
    State(hub): State<Hub>,
    Extension(identity): Extension<Arc<Identity>>,
    Query(query): Query<LiveQuery>,
) -> Result<LiveStream, ApiError> {
    let types = query.types.map(|text| TypePattern::parse(&text.0)).transpose();
    let filter = EventFilter {
        conversation_id: query.conversation_id.map(|id| id.0),
        types: types.map_err(|invalid| ApiError::invalid("type", invalid.message))?,
        since: None,
        verdict: query.verdict.map(|verdict| verdict.0),
    };
    let query = EventQuery { user_id: query.user_id.map(|user| user.0), filter, before: None, limit: 0 };
    let permit = hub.overload.live_stream()?;
    let open = OpenStream::new(&hub, &identity).await?;
    let feed = LiveFeed { live: hub.store.live(query), open, _permit: permit };
    let events = stream::unfold(feed, |mut feed| async move { feed.next().await.map(|event| (Ok(event), feed)) });
    Ok(LiveStream(Sse::new(events.boxed()).keep_alive(KeepAlive::new().interval(KEEP_ALIVE))))
}

struct LiveFeed {
    live: LiveReceiver,
    open: OpenStream,
    _permit: OwnedSemaphorePermit,
}

impl LiveFeed {
    /// The next event; `None` when the stream ends.
    async fn next(&mut self) -> Option<SseEvent> {
        let event = tokio::select! {
            event = self.live.next() => event?,
            () = self.open.ended() => return None,
        };
        Some(match event {
            LiveEvent::Event(listed) => sse_event("event", &ListedEventBody::from(*listed)),
            LiveEvent::Fate(fate) => sse_event("fate", &FateData::from(*fate)),
            LiveEvent::Skipped(count) => sse_event("skipped", &SkippedData { count }),
        })
    }
}

fn sse_event(kind: &str, data: &impl Serialize) -> SseEvent {
    SseEvent::default().event(kind).data(serde_json::to_string(data).expect("events and fates can be serialized"))
}

impl From<Fate> for FateData {
    fn from(fate: Fate) -> Self {
        Self {
            notification_id: fate.notification_id,
            event_ids: fate.events.into_iter().map(|id| id.0).collect(),
            user_id: fate.user_id.to_string(),
            conversation_id: fate.conversation_id,
            agent: fate.agent,
            subscriber: fate.subscriber,
            state: fate.state,
            at: Rfc3339Time(fate.at),
            call_id: fate.call_id,
            point: fate.point.map(EnumText),
            channel: fate.channel,
            reason: fate.reason,
        }
    }
}
