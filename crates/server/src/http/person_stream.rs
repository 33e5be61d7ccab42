//! The stream of changes in a person's inbox, as server-sent events.
//!
//! The stream reads changes from the store, from the position it read last; the doorbell only says that there is something
//! to read. So a client that reconnects gets every change once, a slow client does not delay others, and a lost ring only
//! delays a change.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{Event as SseEvent, KeepAlive, KeepAliveStream, Sse};
use bellwire_core::Time;
use bellwire_store::{Catchup, Doorbell, InboxChange};
use futures_util::stream::{self, Stream, StreamExt as _};
use schemars::JsonSchema;
use serde::Serialize;

use super::field::PathId;
use super::inbox::{InboxItemBody, with_deliveries};
use super::open_stream::OpenStream;
use super::openapi::Operation;
use super::{ApiError, Hub, shape};
use crate::auth::Identity;

/// Shorter than the idle timeout of common proxies.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// The maximum number of changes read from the store at once.
const STEP: usize = 50;

/// The `data` of `unread`.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Unread")]
struct UnreadData {
    /// How many notifications are unread.
    count: usize,
}

/// The response of a person's stream. It lasts until the client disconnects or its token ends.
pub(super) struct PersonStream(InboxSse);

type InboxSse = Sse<KeepAliveStream<Pin<Box<dyn Stream<Item = Result<SseEvent, Infallible>> + Send>>>>;

impl axum::response::IntoResponse for PersonStream {
    fn into_response(self) -> axum::response::Response {
        self.0.into_response()
    }
}

impl shape::ResponseShape for PersonStream {
    const STATUS: StatusCode = StatusCode::OK;

    fn describe(operation: &mut Operation<'_>) {
        let item = operation.answers.subschema_for::<InboxItemBody>().to_value();
        let unread = operation.answers.subschema_for::<UnreadData>().to_value();
        let schema = serde_json::json!({
            "type": "string", "contentMediaType": "application/json", "contentSchema": { "anyOf": [item, unread] },
            "description": "Server-sent events: `toast` (to be shown now), `notification` (new in the inbox) and \
                            `updated` (read, dismissed or pressed elsewhere), each with a notification, and `unread` \
                            with the count. A first connection begins with a `toast` for each that is still due, at \
                            most the 20 newest. Connect again with the last id in `Last-Event-ID`, and nothing is \
                            missed or repeated.",
        });
        operation.answer("text/event-stream", schema);
    }
}

/// Streams the changes after `Last-Event-ID`. If the header is missing, the stream begins with the toasts that are still due.
pub(super) async fn stream(
    State(hub): State<Hub>,
    Extension(identity): Extension<Arc<Identity>>,
    headers: HeaderMap,
    PathId(id): PathId,
) -> Result<PersonStream, ApiError> {
    identity.check_user(&id)?;
    let after = last_event_id(&headers)?;
    let open = OpenStream::new(&hub, &identity).await?;
    // Subscribe before the first read: a change committed in between rings the doorbell.
    let doorbell = hub.store.doorbell(&id);
    let caught = hub.store.catch_up(id.clone(), after, STEP).await?;
    let mut feed = InboxFeed {
        hub,
        user_id: id,
        position: after.unwrap_or(caught.position),
        unread_sent: None,
        behind: false,
        queued: VecDeque::new(),
        doorbell,
        open,
    };
    feed.queue(caught).await?;
    let events = stream::unfold(feed, |mut feed| async move { feed.next().await.map(|event| (Ok(event), feed)) });
    Ok(PersonStream(Sse::new(events.boxed()).keep_alive(KeepAlive::new().interval(KEEP_ALIVE))))
}

struct InboxFeed {
    hub: Hub,
    user_id: String,
    /// The position up to which changes were read.
    position: i64,
    /// The unread count that was sent last.
    unread_sent: Option<usize>,
    /// Whether the last read left changes unread because of [`STEP`].
    behind: bool,
    queued: VecDeque<SseEvent>,
    doorbell: Doorbell,
    open: OpenStream,
}

impl InboxFeed {
    /// The next event; `None` when the stream ends.
    async fn next(&mut self) -> Option<SseEvent> {
        loop {
            if let Some(event) = self.queued.pop_front() {
                return Some(event);
            }
            if !self.behind && !self.wait().await {
                return None;
            }
            let caught = self.hub.store.catch_up(self.user_id.clone(), Some(self.position), STEP).await.ok()?;
            self.queue(caught).await.ok()?;
        }
    }

    /// Waits until the inbox has changed; returns false if the stream must end.
    async fn wait(&mut self) -> bool {
        tokio::select! {
            rung = self.doorbell.rings() => rung,
            () = self.open.ended() => false,
        }
    }

    /// Queues the events of one read.
    async fn queue(&mut self, caught: Catchup) -> Result<(), ApiError> {
        let now = self.hub.store.now();
        let due = caught.due_toasts.into_iter().map(|item| ("toast", caught.position, item));
        let changes = caught.changes.into_iter().map(|change| (kind(&change, now), change.position, change.item));
        let (heads, items): (Vec<_>, Vec<_>) = due.chain(changes).map(|(kind, at, item)| ((kind, at), item)).unzip();
        let bodies = with_deliveries(&self.hub, self.user_id.clone(), items).await?;
        for ((kind, position), body) in heads.into_iter().zip(bodies) {
            self.queued.push_back(sse_event(kind, position, &body));
        }
        self.position = caught.position;
        self.behind = caught.more;
        // The count is that of the newest position, so it is sent only once all changes were read.
        if !caught.more && self.unread_sent != Some(caught.unread) {
            self.unread_sent = Some(caught.unread);
            self.queued.push_back(sse_event("unread", self.position, &UnreadData { count: caught.unread }));
        }
        Ok(())
    }
}

/// The SSE event type. A new item is a `toast` while it should appear, and a `notification` afterwards.
fn kind(change: &InboxChange, now: Time) -> &'static str {
    match change.is_new() {
        true if change.item.appears_at(now) => "toast",
        true => "notification",
        false => "updated",
    }
}

fn sse_event(kind: &str, position: i64, data: &impl Serialize) -> SseEvent {
    let data = serde_json::to_string(data).expect("ids and numbers can be serialized");
    SseEvent::default().event(kind).id(position.to_string()).data(data)
}

fn last_event_id(headers: &HeaderMap) -> Result<Option<i64>, ApiError> {
    let Some(value) = headers.get("last-event-id") else { return Ok(None) };
    let text = value.to_str().unwrap_or_default().trim();
    match text.parse::<i64>() {
        _ if text.is_empty() => Ok(None),
        Ok(position) if position >= 0 => Ok(Some(position)),
        _ => Err(ApiError::invalid("Last-Event-ID", "is not one of ours; send the id of the last event as it came")),
    }
}
