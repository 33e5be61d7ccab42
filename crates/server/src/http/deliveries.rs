use std::sync::Arc;

use axum::extract::State;
use axum::{Extension, Json};
use bellwire_store::{Channel, Delivery, DeliveryState, Hold};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::field::{EnumText, Rfc3339Time};
use super::idempotency::IdempotencyHeader;
use super::inbox::cursor;
use super::path::PathUuid;
use super::shape::{List, PAGE_MAX, Query, limit};
use super::{ApiError, Hub};
use crate::auth::Identity;

/// One way of a notification out of the hub, and what became of it.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Delivery")]
pub(super) struct DeliveryBody {
    /// Its name.
    id: Uuid,
    /// What is delivered; null = the code that confirms the address.
    notification_id: Option<Uuid>,
    /// To whom.
    user_id: String,
    /// By which way.
    channel: EnumText<Channel>,
    /// Where to.
    target: String,
    /// Where it stands. `unknown`: it went out and no answer came; it is not sent again by itself.
    state: EnumText<DeliveryState>,
    /// Why it stands there.
    reason: Option<String>,
    /// How often it was tried.
    attempts: u32,
    /// It goes out no earlier.
    not_before: Rfc3339Time,
    /// When it was planned.
    created_at: Rfc3339Time,
    /// When it came to its end.
    ended_at: Option<Rfc3339Time>,
}

/// The query of `GET /v1/deliveries`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DeliveryPage {
    /// Only those that stand here; `failed` are the dead letters.
    state: Option<EnumText<DeliveryState>>,
    /// How many at most; 20 where it is left out.
    #[schemars(range(min = 1, max = PAGE_MAX))]
    limit: Option<usize>,
    /// Where to go on: the `next_cursor` of the page before.
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
    let (deliveries, next) =
        hub.store.deliveries(identity.caller.user_id.clone(), state, before, limit(page.limit)?).await?;
    let items = deliveries.into_iter().map(DeliveryBody::from).collect();
    Ok(Json(List { items, next_cursor: next.map(|next| next.to_string()) }))
}

/// Retries a delivery that ended without being sent.
pub(super) async fn retry(
    State(hub): State<Hub>,
    Extension(identity): Extension<Arc<Identity>>,
    PathUuid(id): PathUuid,
    IdempotencyHeader(once): IdempotencyHeader,
) -> Result<Json<DeliveryBody>, ApiError> {
    Ok(Json(hub.store.retry_delivery(identity.caller.user_id.clone(), id, once).await?.into()))
}

/// Cancels a waiting delivery.
pub(super) async fn cancel(
    State(hub): State<Hub>,
    Extension(identity): Extension<Arc<Identity>>,
    PathUuid(id): PathUuid,
    IdempotencyHeader(once): IdempotencyHeader,
) -> Result<Json<DeliveryBody>, ApiError> {
    Ok(Json(hub.store.cancel_delivery(identity.caller.user_id.clone(), id, once).await?.into()))
}

/// The `reason` of a delivery that is on hold.
fn reason_of(hold: Hold) -> String {
    match hold {
        Hold::QuietHours => "quiet hours".to_owned(),
    }
}

impl From<Delivery> for DeliveryBody {
    fn from(kept: Delivery) -> Self {
        Self {
            id: kept.id,
            notification_id: kept.content.notification_id().map(|id| id.0),
            user_id: kept.user_id,
            channel: EnumText(kept.channel),
            target: kept.target,
            state: EnumText(kept.state),
            reason: kept.reason.or_else(|| kept.held_by.map(reason_of)),
            attempts: kept.attempts,
            not_before: Rfc3339Time(kept.not_before),
            created_at: Rfc3339Time(kept.created_at),
            ended_at: kept.ended_at.map(Rfc3339Time),
        }
    }
}
