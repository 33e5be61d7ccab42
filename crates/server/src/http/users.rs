use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::{Extension, Json};
use bellwire_core::subscriber::Preferences;
use bellwire_store::Settings;
use serde_json::{Map, Value, json};

use super::{ApiError, Hub};
use crate::auth::Identity;

/// What a person prefers.
pub(super) async fn settings(
    State(hub): State<Hub>,
    Extension(identity): Extension<Identity>,
    Path(id): Path<String>,
) -> Result<Json<Value>, ApiError> {
    identity.check_user(&id)?;
    let settings = hub.store.settings(id).await?;
    Ok(Json(json!({ "disabled_subscribers": settings.disabled_subscribers })))
}

/// Changes what is named and leaves the rest. A core or unknown subscriber is refused by name.
pub(super) async fn patch_settings(
    State(hub): State<Hub>,
    Extension(identity): Extension<Identity>,
    Path(id): Path<String>,
    body: Bytes,
) -> Result<Json<Value>, ApiError> {
    identity.check_user(&id)?;
    let patch: Map<String, Value> = serde_json::from_slice(&body).map_err(|error| ApiError::body(&error))?;
    let mut settings: Settings = hub.store.settings(id.clone()).await?;
    for (field, value) in patch {
        match field.as_str() {
            "disabled_subscribers" => settings.disabled_subscribers = disabled(&hub, &value)?,
            _ => return Err(ApiError::invalid(field, "is not a setting; there is disabled_subscribers")),
        }
    }
    if settings.rest.is_empty() {
        settings.rest = "{}".to_owned();
    }
    hub.store.put_settings(id, settings.clone()).await?;
    Ok(Json(json!({ "disabled_subscribers": settings.disabled_subscribers })))
}

/// Erases everything about a person.
pub(super) async fn erase(
    State(hub): State<Hub>,
    Extension(identity): Extension<Identity>,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    identity.check_user(&id)?;
    hub.store.erase_user(id).await?;
    hub.tokens.forget();
    Ok(StatusCode::NO_CONTENT)
}

fn disabled(hub: &Hub, value: &Value) -> Result<Vec<String>, ApiError> {
    const FIELD: &str = "disabled_subscribers";
    // In a merge patch null means back to the default: nothing is switched off.
    let empty = Vec::new();
    let list = match value {
        Value::Null => &empty,
        Value::Array(list) => list,
        _ => return Err(ApiError::invalid(FIELD, "must be a list of subscriber ids")),
    };
    let ids: Option<Vec<&str>> = list.iter().map(Value::as_str).collect();
    let ids = ids.ok_or_else(|| ApiError::invalid(FIELD, "must be a list of subscriber ids"))?;
    let checked = Preferences::disabling(ids, &hub.subscribers());
    let checked = checked.map_err(|refused| ApiError::invalid(FIELD, refused.to_string()))?;
    Ok(checked.disabled().map(ToString::to_string).collect())
}
