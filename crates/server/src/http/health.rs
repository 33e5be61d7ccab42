use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};

use super::{ApiError, Hub};

/// The process lives.
pub(super) async fn healthz() -> Json<Value> {
    Json(json!({ "status": "ok" }))
}

/// The hub can accept: its writer answers and the disk takes a commit.
pub(super) async fn readyz(State(hub): State<Hub>) -> Result<Json<Value>, ApiError> {
    hub.store.check().await?;
    Ok(Json(json!({ "status": "ready" })))
}
