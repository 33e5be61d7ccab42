use axum::extract::State;
use axum::{Extension, Json};
use bellwire_core::subscriber::{Preferences, Subscribers};
use schemars::JsonSchema;
use serde::de::Deserializer;
use serde::{Deserialize, Serialize};

use super::body::Body;
use super::field::{Id, Line};
use super::shape::Done;
use super::{ApiError, Hub};
use crate::auth::Identity;

/// How many subscribers one change may name.
const DISABLED_MAX: usize = 1000;

/// What a person prefers.
#[derive(Serialize, JsonSchema)]
pub(super) struct Settings {
    /// The subscribers that are switched off.
    disabled_subscribers: Vec<String>,
}

/// What to change, as a merge patch: what is not named stays, null means back to the default.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = [{ "disabled_subscribers": ["source_stale"] }]))]
pub(super) struct SettingsChange {
    /// The subscribers to switch off, and no others. One that is core is refused by name.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "Option<Vec<Line<64>>>", length(max = DISABLED_MAX))]
    disabled_subscribers: Option<Option<Vec<Line<64>>>>,
}

/// What a person prefers.
pub(super) async fn settings(
    State(hub): State<Hub>,
    Extension(identity): Extension<Identity>,
    Id(id): Id,
) -> Result<Json<Settings>, ApiError> {
    identity.check_user(&id)?;
    let settings = hub.store.settings(id).await?;
    Ok(Json(Settings { disabled_subscribers: settings.disabled_subscribers }))
}

/// Changes what is named and leaves the rest. A core or unknown subscriber is refused by name.
pub(super) async fn patch_settings(
    State(hub): State<Hub>,
    Extension(identity): Extension<Identity>,
    Id(id): Id,
    Body(change): Body<SettingsChange>,
) -> Result<Json<Settings>, ApiError> {
    identity.check_user(&id)?;
    let mut settings = hub.store.settings(id.clone()).await?;
    if let Some(ids) = change.disabled_subscribers {
        // In a merge patch null means back to the default: nothing is switched off.
        settings.disabled_subscribers = disabled(&hub.subscribers(), &ids.unwrap_or_default())?;
    }
    if settings.rest.is_empty() {
        settings.rest = "{}".to_owned();
    }
    hub.store.put_settings(id, settings.clone()).await?;
    Ok(Json(Settings { disabled_subscribers: settings.disabled_subscribers }))
}

/// Erases everything about a person.
pub(super) async fn erase(
    State(hub): State<Hub>,
    Extension(identity): Extension<Identity>,
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

/// A field that was sent, were it as null.
fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

fn disabled(subscribers: &Subscribers, ids: &[Line<64>]) -> Result<Vec<String>, ApiError> {
    const FIELD: &str = "disabled_subscribers";
    if ids.len() > DISABLED_MAX {
        let message = format!("names {} subscribers; at most {DISABLED_MAX} are allowed", ids.len());
        return Err(ApiError::invalid(FIELD, message));
    }
    let checked = Preferences::disabling(ids.iter().map(|id| id.0.as_str()), subscribers);
    let checked = checked.map_err(|refused| ApiError::invalid(FIELD, refused.to_string()))?;
    Ok(checked.disabled().map(ToString::to_string).collect())
}
