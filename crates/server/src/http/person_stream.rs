//! A person's stream: what their inbox changes, as it changes.
//!
//! The rows are the truth and the stream only reads them: a hint says that there is something to read, the position of
//! what was read last says from where. So a reader that was away gets everything once, a slow one is behind and slows
//! nobody, and a hint that is lost costs nothing but time.

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
use tokio::sync::broadcast::Receiver;
use tokio::sync::watch;
use tokio::time::Instant;

use super::field::PathId;
use super::inbox::InboxItemBody;
use super::openapi::Operation;
use super::overload::StreamPermit;
use super::stream::{end_of, ended};
use super::{ApiError, Hub, shape};
use crate::auth::Identity;
use crate::metrics::StreamGuard;

/// Proxies close what is silent for longer.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// How many changes are read at once.
const STEP: usize = 50;

/// The `data` of `unread`.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Unread")]
struct UnreadData {
    /// How many notifications are unread.
    count: usize,
}

/// What a person's stream says, for as long as its reader stays.
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
                            with the count. Connect again with the last id in `Last-Event-ID`, and nothing is missed \
                            or repeated.",
        });
        operation.answer("text/event-stream", schema);
    }
}

/// What changes in a person's inbox; from behind `Last-Event-ID` on where there is one.
pub(super) async fn stream(
    State(hub): State<Hub>,
    Extension(identity): Extension<Arc<Identity>>,
    headers: HeaderMap,
    PathId(id): PathId,
) -> Result<PersonStream, ApiError> {
    identity.check_user(&id)?;
    let after = last_event_id(&headers)?;
    let open = (hub.overload.stream(&identity.usage)?, hub.metrics.stream());
    // Subscribe first: what is committed between the two is read by the first look.
    let bell = hub.store.doorbell(&id);
    let revoked = hub.revoked.subscribe();
    // Whoever was revoked while this began is not on the list of those who will be.
    if !hub.tokens.is_still_valid(&identity).await? {
        return Err(ApiError::unauthorized());
    }
    let caught = hub.store.catch_up(id.clone(), after, STEP).await?;
    let mut feed = InboxFeed {
        expires: end_of(&identity),
        stopping: hub.stopping.clone(),
        hub,
        identity,
        user_id: id,
        position: after.unwrap_or(caught.position),
        told: None,
        behind: false,
        lines: VecDeque::new(),
        bell,
        revoked,
        _open: open,
    };
    feed.tell(caught, feed.hub.store.now());
    let lines = stream::unfold(feed, |mut feed| async move { feed.next().await.map(|line| (Ok(line), feed)) });
    Ok(PersonStream(Sse::new(lines.boxed()).keep_alive(KeepAlive::new().interval(KEEP_ALIVE))))
}

struct InboxFeed {
    hub: Hub,
    identity: Arc<Identity>,
    user_id: String,
    /// What was told last.
    position: i64,
    /// The count that was told last.
    told: Option<usize>,
    /// Whether there is more to read than was read.
    behind: bool,
    lines: VecDeque<SseEvent>,
    bell: Doorbell,
    revoked: Receiver<String>,
    /// When its token ends.
    expires: Option<Instant>,
    stopping: watch::Receiver<bool>,
    /// Counted for as long as it lives.
    _open: (StreamPermit, StreamGuard),
}

impl InboxFeed {
    /// The next line; none when the stream ends.
    async fn next(&mut self) -> Option<SseEvent> {
        loop {
            if let Some(line) = self.lines.pop_front() {
                return Some(line);
            }
            if !self.behind && !self.wait().await {
                return None;
            }
            let caught = self.hub.store.catch_up(self.user_id.clone(), Some(self.position), STEP).await.ok()?;
            self.tell(caught, self.hub.store.now());
        }
    }

    /// Waits until the inbox has changed; false = the stream ends.
    async fn wait(&mut self) -> bool {
        loop {
            tokio::select! {
                rung = self.bell.rings() => return rung,
                token = self.revoked.recv() => match token {
                    Ok(token) if token == self.identity.token_id => return false,
                    Ok(_) => {}
                    Err(_) => return false,
                },
                () = ended(self.expires) => return false,
                _ = self.stopping.changed() => return false,
            }
        }
    }

    fn tell(&mut self, caught: Catchup, now: Time) {
        for change in caught.changes {
            let kind = kind(&change, now);
            self.lines.push_back(line(kind, change.position, &InboxItemBody::from(change.item)));
        }
        self.position = caught.position;
        self.behind = caught.more;
        // Only what is whole: a count belongs to a position.
        if !caught.more && self.told != Some(caught.unread) {
            self.told = Some(caught.unread);
            self.lines.push_back(line("unread", self.position, &UnreadData { count: caught.unread }));
        }
    }
}

/// News appears while its time lasts, or is in the inbox.
fn kind(change: &InboxChange, now: Time) -> &'static str {
    match change.is_news() {
        true if change.item.appears_at(now) => "toast",
        true => "notification",
        false => "updated",
    }
}

fn line(kind: &str, position: i64, data: &impl Serialize) -> SseEvent {
    let data = serde_json::to_string(data).expect("names and numbers are JSON");
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
