use std::sync::Arc;

use axum::Extension;
use axum::extract::State;

use super::field::Id;
use super::shape::Done;
use super::{ApiError, Hub};
use crate::auth::Identity;

/// Erases everything about a person.
pub(super) async fn erase(
    State(hub): State<Hub>,
    Extension(identity): Extension<Arc<Identity>>,
    Id(id): Id,
) -> Result<Done, ApiError> {
    identity.check_user(&id)?;
    if id == "*" {
        return Err(ApiError::invalid("id", "is nobody's; * stands for everyone in an agent's token"));
    }
    let tokens = hub.store.tokens().await?;
    hub.store.erase_user(id.clone()).await?;
    hub.tokens.forget();
    // The streams of whoever was theirs end with them; nobody listening is fine.
    for token in tokens.into_iter().filter(|token| token.user_id.as_ref() == Some(&id)) {
        let _ = hub.revoked.send(token.id);
    }
    tracing::info!("a person was erased");
    Ok(Done)
}
