use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::Serialize;

use super::{ApiError, Hub};

/// How the hub is.
#[derive(Serialize, JsonSchema)]
pub(super) struct Health {
    /// `ok` for a process that lives, `ready` for a hub that can accept.
    #[schemars(extend("enum" = ["ok", "ready"]))]
    status: &'static str,
}

/// The process lives.
pub(super) async fn live() -> Result<Json<Health>, ApiError> {
    Ok(Json(Health { status: "ok" }))
}

/// The hub can accept: its writer answers and the disk takes a commit.
pub(super) async fn ready(State(hub): State<Hub>) -> Result<Json<Health>, ApiError> {
    hub.store.check().await?;
    Ok(Json(Health { status: "ready" }))
}
