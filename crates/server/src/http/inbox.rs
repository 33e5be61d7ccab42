//! The endpoints and wire types of a person's inbox.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use bellwire_store::{
    Delivery, DeliveryState, InboxItem, InboxItemKind, InboxItemType, InboxQuery, InboxState, PressOutcome,
    RestoreOutcome, Settlement,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::body::Body;
use super::error::{Conflict, SettledBy};
use super::field::{EnumText, PathId, Rfc3339Time, SingleLineText};
use super::idempotency::IdempotencyHeader;
use super::path::{ButtonPath, ItemPath};
use super::query::{PageLimit, Query};
use super::shape::List;
use super::{ApiError, Hub, deliveries};
use crate::auth::Identity;

/// A notification in a person's inbox.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Notification")]
#[schemars(extend("examples" = [{
    "id": "0198c0de-0000-7000-8000-000000000000", "kind": "message", "type": "reminder", "origin": "butler", "source": null,
    "conversation_id": "chat", "title": null, "message": "Buy milk", "duration": null, "position": null, "actions": [],
    "correlation_id": null, "created_at": "2026-01-03T15:30:00Z", "read_at": null, "dismissed_at": null,
    "deliveries": [],
}]))]
pub(super) struct InboxItemBody {
    /// Its id.
    id: Uuid,
    /// The kind: a message, a toast, or a note of the hub itself.
    kind: EnumText<InboxItemKind>,
    /// The type.
    #[serde(rename = "type")]
    item_type: EnumText<InboxItemType>,
    /// The authenticated name of the sender.
    origin: String,
    /// The source named by its events. The sender chose it; it is not authenticated.
    source: Option<String>,
    /// The conversation it comes from.
    conversation_id: Option<String>,
    /// The title.
    title: Option<String>,
    /// The text. It was written by an agent, not by the hub.
    message: String,
    /// How long a toast is shown, in milliseconds; 0 = until it is dismissed.
    duration: Option<u32>,
    /// Where a toast appears.
    position: Option<String>,
    /// Its buttons, in the order of their indexes.
    actions: Vec<Button>,
    /// The correlation id of the request that caused it.
    correlation_id: Option<String>,
    /// When it was created.
    created_at: Rfc3339Time,
    /// When it was read.
    read_at: Option<Rfc3339Time>,
    /// When it was dismissed.
    dismissed_at: Option<Rfc3339Time>,
    /// What happened to it outside of the hub, one entry per channel, oldest first.
    deliveries: Vec<ItemDelivery>,
}

/// The delivery of a notification on one channel, without its address.
#[derive(Serialize, JsonSchema)]
struct ItemDelivery {
    /// The name of the channel.
    channel: String,
    /// The state, as in `GET /v1/deliveries`.
    state: EnumText<DeliveryState>,
    /// When it ended; while it is open, the time before which it is not sent.
    at: Rfc3339Time,
    /// The reason of the state.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// A button.
#[derive(Serialize, JsonSchema)]
struct Button {
    /// The label.
    label: String,
    /// `prompt` sends a message to the agent; `dismiss` only dismisses the notification.
    #[schemars(extend("enum" = ["prompt", "dismiss"]))]
    action: &'static str,
    /// The message that it sends to the agent. Show it to the person before the button is pressed.
    prompt: Option<String>,
    /// When it was pressed.
    pressed_at: Option<Rfc3339Time>,
}

/// The longest text to search for, in characters.
const SEARCH_MAX: usize = 100;

/// The query of `GET …/notifications`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct InboxPage {
    /// `unread`, `all` (not dismissed; the default) or `dismissed`.
    state: Option<EnumText<InboxState>>,
    /// Only notifications of this type.
    #[serde(rename = "type")]
    item_type: Option<EnumText<InboxItemType>>,
    /// Only notifications whose title, message, origin or source contains this text; letters A to Z match in upper and lower
    /// case. A page of a search with a `next_cursor` can have fewer items, or none: it looks at 5,000 notifications.
    search: Option<SingleLineText<SEARCH_MAX>>,
    /// The page size. Default: 20.
    limit: Option<PageLimit>,
    /// The `next_cursor` of the previous page.
    #[schemars(extend("format" = "uuid"))]
    cursor: Option<String>,
}

/// The number of unread notifications.
#[derive(Serialize, JsonSchema)]
pub(super) struct UnreadCount {
    count: usize,
}

/// The number of changed notifications.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Marked")]
pub(super) struct MarkedCount {
    /// How many were unread before.
    updated: usize,
}

/// A change of a notification: one of the two fields.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = [{ "read": true }, { "dismissed": false }]))]
#[schemars(extend("minProperties" = 1, "maxProperties" = 1))]
#[schemars(rename = "NotificationPatch")]
pub(super) struct ItemPatch {
    /// Whether it is read.
    #[serde(default)]
    #[schemars(with = "bool")]
    read: Option<bool>,
    /// `false` takes the dismissal back: it is in the inbox again, unread if it was, and its buttons work. 409 if a prompt was
    /// pressed. To dismiss it, use DELETE.
    #[serde(default)]
    #[schemars(with = "bool", extend("const" = false))]
    dismissed: Option<bool>,
}

/// The result of pressing a button. Pressing it again gives the same result.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Press")]
pub(super) struct PressBody {
    /// The index of the button.
    index: usize,
    /// The action of the button.
    #[schemars(extend("enum" = ["prompt", "dismiss"]))]
    action: &'static str,
    /// When it was first pressed.
    pressed_at: Rfc3339Time,
    /// The id of the `user.message` event that it published.
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
        item_type: page.item_type.map(|word| word.0),
        before: page.cursor.as_deref().map(cursor).transpose()?,
        limit: page.limit.unwrap_or_default().0,
    };
    let (items, next) = match page.search {
        Some(text) => hub.store.search_inbox(id.clone(), query, text.0).await?,
        None => hub.store.inbox(id.clone(), query).await?,
    };
    let next_cursor = next.map(|next| next.to_string());
    Ok(Json(List { items: with_deliveries(&hub, id, items).await?, next_cursor }))
}

/// The bodies of a person's items, with their deliveries, which are read together.
pub(super) async fn with_deliveries(
    hub: &Hub,
    user_id: String,
    items: Vec<InboxItem>,
) -> Result<Vec<InboxItemBody>, ApiError> {
    let deliveries = hub.store.deliveries_of(user_id, items.iter().map(|item| item.id).collect()).await?;
    Ok(items.into_iter().map(|item| InboxItemBody::of(item, &deliveries)).collect())
}

async fn with_its_deliveries(hub: &Hub, item: InboxItem) -> Result<Json<InboxItemBody>, ApiError> {
    let deliveries = hub.store.deliveries_of(item.user_id.clone(), vec![item.id]).await?;
    Ok(Json(InboxItemBody::of(item, &deliveries)))
}

/// The number of unread notifications.
pub(super) async fn unread_count(
    State(hub): State<Hub>,
    Extension(identity): Extension<Arc<Identity>>,
    PathId(id): PathId,
) -> Result<Json<UnreadCount>, ApiError> {
    identity.check_user(&id)?;
    Ok(Json(UnreadCount { count: hub.store.unread_count(id).await? }))
}

/// Marks a notification as read or unread, or restores a dismissed one.
pub(super) async fn change(
    State(hub): State<Hub>,
    Extension(identity): Extension<Arc<Identity>>,
    path: ItemPath,
    Body(patch): Body<ItemPatch>,
) -> Result<Json<InboxItemBody>, ApiError> {
    identity.check_acts_for(&path.user_id)?;
    let item = match patch {
        ItemPatch { read: Some(read), dismissed: None } => hub.store.mark(path.user_id, path.id, read).await?,
        ItemPatch { read: None, dismissed: Some(false) } => match hub.store.restore(path.user_id, path.id).await? {
            RestoreOutcome::Restored(item) => *item,
            RestoreOutcome::Answered(settlement) => return Err(settled(settlement)),
        },
        ItemPatch { dismissed: Some(true), .. } => {
            return Err(ApiError::invalid("dismissed", "can only be false here; DELETE dismisses a notification"));
        }
        ItemPatch { .. } => {
            return Err(ApiError::invalid("read", "one change at a time: send either read or dismissed"));
        }
    };
    with_its_deliveries(&hub, item).await
}

/// Marks all notifications as read.
pub(super) async fn read_all(
    State(hub): State<Hub>,
    Extension(identity): Extension<Arc<Identity>>,
    PathId(id): PathId,
    IdempotencyHeader(idempotency_key): IdempotencyHeader,
) -> Result<Json<MarkedCount>, ApiError> {
    identity.check_acts_for(&id)?;
    Ok(Json(MarkedCount { updated: hub.store.read_all(id, idempotency_key).await? }))
}

/// Dismisses a notification: it is hidden, counts as read, and its row stays.
pub(super) async fn dismiss(
    State(hub): State<Hub>,
    Extension(identity): Extension<Arc<Identity>>,
    path: ItemPath,
) -> Result<Json<InboxItemBody>, ApiError> {
    identity.check_acts_for(&path.user_id)?;
    let item = hub.store.dismiss(path.user_id, path.id).await?;
    with_its_deliveries(&hub, item).await
}

/// Presses a button of a notification on behalf of its user. The first pressed button or the dismissal settles it: other
/// buttons then get 409 with `settled_by`.
pub(super) async fn act(
    State(hub): State<Hub>,
    Extension(identity): Extension<Arc<Identity>>,
    path: ButtonPath,
    IdempotencyHeader(idempotency_key): IdempotencyHeader,
) -> Result<Json<PressBody>, ApiError> {
    let ItemPath { user_id, id } = path.item;
    identity.check_acts_for(&user_id)?;
    let pressed = match hub.store.act(user_id, id, path.index, idempotency_key).await? {
        PressOutcome::Pressed(pressed) => pressed,
        PressOutcome::Settled(settlement) => return Err(settled(settlement)),
    };
    Ok(Json(PressBody {
        index: pressed.acted.index,
        action: action(pressed.button.prompt.as_deref()),
        pressed_at: Rfc3339Time(pressed.acted.at),
        event_id: pressed.acted.event_id.map(|id| id.0),
    }))
}

/// The refusal of a button of a notification that is settled.
fn settled(Settlement { pressed, at }: Settlement) -> ApiError {
    let action = action(pressed.as_ref().and_then(|(_, button)| button.prompt.as_deref()));
    let (index, label) = pressed.map(|(index, button)| (index, button.label)).unzip();
    let message = match (&label, action) {
        (Some(label), "prompt") => format!("the button \"{label}\" was pressed at {at}; only one button can be"),
        _ => format!("this notification was dismissed at {at}; its buttons no longer work"),
    };
    let settled = SettledBy { action, index, label, at: Rfc3339Time(at) };
    let conflict = Some(Box::new(Conflict::Settled(settled)));
    ApiError { conflict, ..ApiError::new(StatusCode::CONFLICT, "conflict", message) }
}

/// Parses a cursor, which is the id of an item.
pub(super) fn cursor(text: &str) -> Result<Uuid, ApiError> {
    let message = "is not one of ours; send a next_cursor as it came";
    Uuid::try_parse(text).map_err(|_| ApiError::invalid("cursor", message))
}

fn action(prompt: Option<&str>) -> &'static str {
    if prompt.is_some() { "prompt" } else { "dismiss" }
}

impl InboxItemBody {
    /// The body of an item. `deliveries` may contain those of others.
    pub(super) fn of(item: InboxItem, deliveries: &[Delivery]) -> Self {
        let own = deliveries.iter().filter(|one| one.content.notification_id() == Some(item.id));
        let deliveries = own.map(ItemDelivery::of).collect();
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
        let message = item.shown_message();
        Self {
            id: item.id.0,
            kind: EnumText(item.kind),
            item_type: EnumText(item.item_type),
            actions,
            duration: item.toast.as_ref().map(|toast| toast.duration),
            position: item.toast.map(|toast| toast.position),
            origin: item.origin,
            source: item.source,
            conversation_id: item.conversation_id,
            title: item.title,
            message,
            correlation_id: item.correlation_id,
            created_at: Rfc3339Time(item.created_at),
            read_at: item.read_at.map(Rfc3339Time),
            dismissed_at: item.dismissed_at.map(Rfc3339Time),
            deliveries,
        }
    }
}

impl ItemDelivery {
    fn of(delivery: &Delivery) -> Self {
        Self {
            channel: delivery.channel.to_string(),
            state: EnumText(delivery.state),
            at: Rfc3339Time(delivery.ended_at.unwrap_or(delivery.not_before)),
            reason: deliveries::reason_of(delivery),
        }
    }
}
