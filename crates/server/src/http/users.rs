use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;

use super::field::PathId;
use super::shape::NoContent;
use super::{ApiError, Hub};
use crate::auth::Identity;

/// Erases all data of a user and responds when it is gone. If that takes longer than `erase_wait`, the response is 503
/// and the erasure continues; a repeated request waits for the same erasure.
pub(super) async fn erase(
    State(hub): State<Hub>,
    Extension(identity): Extension<Arc<Identity>>,
    PathId(id): PathId,
) -> Result<NoContent, ApiError> {
    identity.check_user(&id)?;
    if id == "*" {
        return Err(ApiError::invalid("id", "is not a user id; in an agent's token * means every user"));
    }
    let wait = hub.erase_wait;
    // A separate task, so that it continues after the client disconnects.
    let erasing = tokio::spawn(erase_user(hub, id));
    match tokio::time::timeout(wait, erasing).await {
        Ok(Ok(erased)) => erased.map(|()| NoContent),
        Ok(Err(_)) => Err(ApiError::of_status(StatusCode::INTERNAL_SERVER_ERROR)),
        Err(_) => {
            let message = "the erasure is under way and goes on; ask again to learn when it is done";
            let error = ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "try_again", message);
            Err(ApiError { retry_after_seconds: Some(1), ..error })
        }
    }
}

async fn erase_user(hub: Hub, id: String) -> Result<(), ApiError> {
    let tokens = hub.store.tokens().await?;
    hub.store.erase_user(id.clone()).await?;
    hub.tokens.forget();
    // End the streams of the user's tokens. Sending fails only if no stream is open.
    for token in tokens.into_iter().filter(|token| token.user_id.as_ref() == Some(&id)) {
        let _ = hub.revoked.send(token.id);
    }
    tracing::info!("a person was erased");
    Ok(())
}
