use std::sync::Arc;

use axum::extract::State;
use axum::{Extension, Json};
use bellwire_core::NotificationId;
use bellwire_store::{Delivery, DeliveryState, Hold, ItemHeading};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::field::{EnumText, ID_MAX, Rfc3339Time, SingleLineText};
use super::idempotency::IdempotencyHeader;
use super::inbox::cursor;
use super::path::PathUuid;
use super::query::{PageLimit, Query};
use super::shape::List;
use super::{ApiError, Hub};
use crate::auth::Identity;

/// The delivery of a notification out of the hub.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Delivery")]
pub(super) struct DeliveryBody {
    /// Its id.
    id: Uuid,
    /// The notification; null for a code that confirms an address.
    notification_id: Option<Uuid>,
    /// The origin of the notification; null for a code, and if the notification was deleted.
    origin: Option<String>,
    /// The title of the notification, or the beginning of its message; null where `origin` is.
    title: Option<String>,
    /// The recipient.
    user_id: String,
    /// The name of the channel.
    channel: String,
    /// The address in the channel.
    target: String,
    /// The state. `unknown`: it may have been sent, but no reply came; it is not retried automatically.
    state: EnumText<DeliveryState>,
    /// The reason of the state.
    reason: Option<String>,
    /// The number of attempts.
    attempts: u32,
    /// It is not sent before this time.
    not_before: Rfc3339Time,
    /// When it was planned.
    created_at: Rfc3339Time,
    /// When it ended.
    ended_at: Option<Rfc3339Time>,
}

/// The query of `GET /v1/deliveries`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DeliveryPage {
    /// Only deliveries to this person. A person's token lists its own in any case.
    user_id: Option<SingleLineText<ID_MAX>>,
    /// Only deliveries in this state. `failed` are the dead letters.
    state: Option<EnumText<DeliveryState>>,
    /// The page size. Default: 20.
    limit: Option<PageLimit>,
    /// The `next_cursor` of the previous page.
    #[schemars(extend("format" = "uuid"))]
    cursor: Option<String>,
}

/// Lists deliveries, newest first: those to the token's user, or all for an admin.
pub(super) async fn list(
    State(hub): State<Hub>,
    Extension(identity): Extension<Arc<Identity>>,
    Query(page): Query<DeliveryPage>,
) -> Result<Json<List<DeliveryBody>>, ApiError> {
    let before = page.cursor.as_deref().map(cursor).transpose()?;
    let state = page.state.map(|word| word.0);
    let limit = page.limit.unwrap_or_default().0;
    let named = page.user_id.map(|user| user.0);
    named.as_deref().map_or(Ok(()), |user| identity.check_user(user))?;
    let user_id = named.or_else(|| identity.caller.user_id.clone());
    let (deliveries, next) = hub.store.deliveries(user_id, state, before, limit).await?;
    let items = with_headings(&hub, deliveries).await?;
    Ok(Json(List { items, next_cursor: next.map(|next| next.to_string()) }))
}

/// The bodies of deliveries, with what they are about, which is read together.
async fn with_headings(hub: &Hub, deliveries: Vec<Delivery>) -> Result<Vec<DeliveryBody>, ApiError> {
    let items = deliveries.iter().filter_map(|one| Some((one.user_id.clone(), one.content.notification_id()?)));
    let headings = hub.store.headings(items.collect()).await?;
    let heading = |id: NotificationId| headings.iter().find(|one| one.id == id);
    let body = |one: Delivery| {
        let heading = one.content.notification_id().and_then(heading).cloned();
        DeliveryBody::of(one, heading)
    };
    Ok(deliveries.into_iter().map(body).collect())
}

async fn with_its_heading(hub: &Hub, delivery: Delivery) -> Result<Json<DeliveryBody>, ApiError> {
    let body = with_headings(hub, vec![delivery]).await?.pop();
    body.map(Json).ok_or_else(|| ApiError::not_found("delivery"))
}

/// Retries a delivery that ended without being sent.
pub(super) async fn retry(
    State(hub): State<Hub>,
    Extension(identity): Extension<Arc<Identity>>,
    PathUuid(id): PathUuid,
    IdempotencyHeader(idempotency_key): IdempotencyHeader,
) -> Result<Json<DeliveryBody>, ApiError> {
    let retried = hub.store.retry_delivery(identity.caller.user_id.clone(), id, idempotency_key).await?;
    with_its_heading(&hub, retried).await
}

/// Cancels a waiting delivery.
pub(super) async fn cancel(
    State(hub): State<Hub>,
    Extension(identity): Extension<Arc<Identity>>,
    PathUuid(id): PathUuid,
    IdempotencyHeader(idempotency_key): IdempotencyHeader,
) -> Result<Json<DeliveryBody>, ApiError> {
    let cancelled = hub.store.cancel_delivery(identity.caller.user_id.clone(), id, idempotency_key).await?;
    with_its_heading(&hub, cancelled).await
}

/// The `reason` of a delivery: of its state, or that it is or was on hold.
pub(super) fn reason_of(delivery: &Delivery) -> Option<String> {
    let hold = delivery.held_by.map(|Hold::QuietHours| match delivery.state {
        DeliveryState::Waiting => "quiet hours".to_owned(),
        _ => "after quiet hours".to_owned(),
    });
    delivery.reason.clone().or(hold)
}

impl DeliveryBody {
    /// The body of a delivery; `heading` is that of its notification.
    pub(super) fn of(kept: Delivery, heading: Option<ItemHeading>) -> Self {
        let (origin, title) = heading.map(|heading| (heading.origin, heading.title)).unzip();
        Self {
            origin,
            title,
            reason: reason_of(&kept),
            id: kept.id,
            notification_id: kept.content.notification_id().map(|id| id.0),
            user_id: kept.user_id,
            channel: kept.channel.to_string(),
            target: kept.target,
            state: EnumText(kept.state),
            attempts: kept.attempts,
            not_before: Rfc3339Time(kept.not_before),
            created_at: Rfc3339Time(kept.created_at),
            ended_at: kept.ended_at.map(Rfc3339Time),
        }
    }
}
