//! The endpoints and wire types of a person's inbox.

use std::sync::Arc;

use axum::extract::State;
use axum::{Extension, Json};
use bellwire_store::{InboxItem, InboxItemKind, InboxItemType, InboxQuery, InboxState};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::body::Body;
use super::field::{EnumText, PathId, Rfc3339Time};
use super::idempotency::IdempotencyHeader;
use super::path::{ButtonPath, ItemPath};
use super::shape::{List, PAGE_MAX, Query, limit};
use super::{ApiError, Hub};
use crate::auth::Identity;

/// What a person was told.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Notification")]
#[schemars(extend("examples" = [{
    "id": "0198c0de-0000-7000-8000-000000000000", "kind": "message", "type": "reminder", "origin": "butler", "source": null,
    "conversation_id": "chat", "title": null, "message": "Buy milk", "duration": null, "position": null, "actions": [],
    "correlation_id": null, "created_at": "2026-01-03T15:30:00Z", "read_at": null, "dismissed_at": null,
}]))]
pub(super) struct InboxItemBody {
    /// Its name.
    id: Uuid,
    /// Where it came from: a message, a toast, or the hub itself.
    kind: EnumText<InboxItemKind>,
    /// What sort of news it is.
    #[serde(rename = "type")]
    level: EnumText<InboxItemType>,
    /// The authenticated name of who tells.
    origin: String,
    /// The source that the events name which it tells of; the sender chose it, nobody vouches for it.
    source: Option<String>,
    /// The conversation in which it came up.
    conversation_id: Option<String>,
    /// What stands above it.
    title: Option<String>,
    /// What it says. It is an agent's text, not the hub's.
    message: String,
    /// How long a toast stays, in milliseconds; 0 = until it is dismissed.
    duration: Option<u32>,
    /// Where a toast appears.
    position: Option<String>,
    /// Its buttons, in the order of their indexes.
    actions: Vec<Button>,
    /// The thread of work it belongs to.
    correlation_id: Option<String>,
    /// When it came.
    created_at: Rfc3339Time,
    /// When it was read.
    read_at: Option<Rfc3339Time>,
    /// When it was dismissed.
    dismissed_at: Option<Rfc3339Time>,
}

/// A button.
#[derive(Serialize, JsonSchema)]
struct Button {
    /// What stands on it.
    label: String,
    /// Whether it says something to the agent, or only dismisses.
    #[schemars(extend("enum" = ["prompt", "dismiss"]))]
    action: &'static str,
    /// What it says to the agent. Show it before it is pressed.
    prompt: Option<String>,
    /// When it was pressed.
    pressed_at: Option<Rfc3339Time>,
}

/// The query of `GET …/notifications`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct InboxPage {
    /// unread, all (what is not dismissed; the default) or dismissed.
    state: Option<EnumText<InboxState>>,
    /// Only of this sort.
    #[serde(rename = "type")]
    level: Option<EnumText<InboxItemType>>,
    /// How many at most; 20 where it is left out.
    #[schemars(range(min = 1, max = PAGE_MAX))]
    limit: Option<usize>,
    /// Where to go on: the `next_cursor` of the page before.
    #[schemars(extend("format" = "uuid"))]
    cursor: Option<String>,
}

/// How many are unread.
#[derive(Serialize, JsonSchema)]
pub(super) struct UnreadCount {
    count: usize,
}

/// How many were marked.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Marked")]
pub(super) struct MarkedCount {
    /// How many had not been read.
    updated: usize,
}

/// What to change about a notification.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = [{ "read": true }]))]
#[schemars(rename = "Reading")]
pub(super) struct ReadPatch {
    /// Whether it was read.
    read: bool,
}

/// What pressing a button came to; pressing it again comes to the same.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Press")]
pub(super) struct PressBody {
    /// Which button.
    index: usize,
    /// What it does.
    #[schemars(extend("enum" = ["prompt", "dismiss"]))]
    action: &'static str,
    /// When it was pressed first.
    pressed_at: Rfc3339Time,
    /// The `user.message` it became.
    event_id: Option<Uuid>,
}

/// Returns a page of the inbox, newest first.
pub(super) async fn list(
    State(hub): State<Hub>,
    Extension(identity): Extension<Arc<Identity>>,
    PathId(id): PathId,
    Query(page): Query<InboxPage>,
) -> Result<Json<List<InboxItemBody>>, ApiError> {
    identity.check_user(&id)?;
    let query = InboxQuery {
        state: page.state.map_or(InboxState::All, |word| word.0),
        level: page.level.map(|word| word.0),
        before: page.cursor.as_deref().map(cursor).transpose()?,
        limit: limit(page.limit)?,
    };
    let (items, next) = hub.store.inbox(id, query).await?;
    let next_cursor = next.map(|next| next.to_string());
    Ok(Json(List { items: items.into_iter().map(InboxItemBody::from).collect(), next_cursor }))
}

/// How many are unread.
pub(super) async fn unread_count(
    State(hub): State<Hub>,
    Extension(identity): Extension<Arc<Identity>>,
    PathId(id): PathId,
) -> Result<Json<UnreadCount>, ApiError> {
    identity.check_user(&id)?;
    Ok(Json(UnreadCount { count: hub.store.unread_count(id).await? }))
}

/// Marks a notification as read or unread.
pub(super) async fn mark(
    State(hub): State<Hub>,
    Extension(identity): Extension<Arc<Identity>>,
    path: ItemPath,
    Body(reading): Body<ReadPatch>,
) -> Result<Json<InboxItemBody>, ApiError> {
    identity.check_user(&path.user_id)?;
    Ok(Json(hub.store.mark(path.user_id, path.id, reading.read).await?.into()))
}

/// Marks all notifications as read.
pub(super) async fn read_all(
    State(hub): State<Hub>,
    Extension(identity): Extension<Arc<Identity>>,
    PathId(id): PathId,
    IdempotencyHeader(once): IdempotencyHeader,
) -> Result<Json<MarkedCount>, ApiError> {
    identity.check_user(&id)?;
    Ok(Json(MarkedCount { updated: hub.store.read_all(id, once).await? }))
}

/// Dismisses a notification: it is hidden, counts as read, and its row stays.
pub(super) async fn dismiss(
    State(hub): State<Hub>,
    Extension(identity): Extension<Arc<Identity>>,
    path: ItemPath,
) -> Result<Json<InboxItemBody>, ApiError> {
    identity.check_user(&path.user_id)?;
    Ok(Json(hub.store.dismiss(path.user_id, path.id).await?.into()))
}

/// Presses a button of a notification on behalf of its user.
pub(super) async fn act(
    State(hub): State<Hub>,
    Extension(identity): Extension<Arc<Identity>>,
    path: ButtonPath,
    IdempotencyHeader(once): IdempotencyHeader,
) -> Result<Json<PressBody>, ApiError> {
    let ItemPath { user_id, id } = path.item;
    identity.check_user(&user_id)?;
    let pressed = hub.store.act(user_id, id, path.index, once).await?;
    Ok(Json(PressBody {
        index: pressed.acted.index,
        action: action(pressed.button.prompt.as_deref()),
        pressed_at: Rfc3339Time(pressed.acted.at),
        event_id: pressed.acted.event_id.map(|id| id.0),
    }))
}

/// Parses a cursor, which is the id of an item.
pub(super) fn cursor(text: &str) -> Result<Uuid, ApiError> {
    let message = "is not one of ours; send a next_cursor as it came";
    Uuid::try_parse(text).map_err(|_| ApiError::invalid("cursor", message))
}

fn action(prompt: Option<&str>) -> &'static str {
    if prompt.is_some() { "prompt" } else { "dismiss" }
}

impl From<InboxItem> for InboxItemBody {
    fn from(item: InboxItem) -> Self {
        let pressed =
            |index: usize| item.acted.iter().find(|acted| acted.index == index).map(|acted| Rfc3339Time(acted.at));
        let buttons = item.toast.iter().flat_map(|toast| toast.buttons.iter().enumerate());
        let actions = buttons
            .map(|(index, button)| Button {
                label: button.label.clone(),
                action: action(button.prompt.as_deref()),
                prompt: button.prompt.clone(),
                pressed_at: pressed(index),
            })
            .collect();
        Self {
            id: item.id.0,
            kind: EnumText(item.kind),
            level: EnumText(item.level),
            actions,
            duration: item.toast.as_ref().map(|toast| toast.duration),
            position: item.toast.map(|toast| toast.position),
            origin: item.origin,
            source: item.source,
            conversation_id: item.conversation_id,
            title: item.title,
            message: item.message,
            correlation_id: item.correlation_id,
            created_at: Rfc3339Time(item.created_at),
            read_at: item.read_at.map(Rfc3339Time),
            dismissed_at: item.dismissed_at.map(Rfc3339Time),
        }
    }
}
