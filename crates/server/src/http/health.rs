use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;

use super::{ApiError, Hub};
use crate::clock;

/// A delivery is tried as soon as it is due, so one that is due for longer means that nobody tries.
const OUTBOX_LATE_MS: u64 = 15 * 60_000;

/// How the hub is.
#[derive(Serialize, JsonSchema)]
pub(super) struct Health {
    /// `ok` for a process that lives, `ready` for a hub that can accept.
    #[schemars(extend("enum" = ["ok", "ready"]))]
    status: &'static str,
    /// What works without, and should not have to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    degraded: Vec<&'static str>,
}

/// The process lives.
pub(super) async fn live() -> Result<Json<Health>, ApiError> {
    Ok(Json(Health { status: "ok", degraded: Vec::new() }))
}

/// The hub can accept: its writer answers, the disk takes a commit, and what is due leaves.
pub(super) async fn ready(State(hub): State<Hub>) -> Result<Json<Health>, ApiError> {
    hub.store.check().await?;
    let (_, oldest) = hub.store.outbox().await?;
    let late = oldest.map_or(0, |due| clock::now().millis_since(due));
    if hub.mails && late > OUTBOX_LATE_MS {
        let message = format!("deliveries have been due for {} minutes and are not sent", late / 60_000);
        return Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "outbox_late", message));
    }
    // Why stands in the log: this is read by anyone.
    let away = hub.refusals.standing().away;
    let degraded = away.map(|_| "redis is away: the database alone refuses what is over an hourly limit");
    Ok(Json(Health { status: "ready", degraded: degraded.into_iter().collect() }))
}
