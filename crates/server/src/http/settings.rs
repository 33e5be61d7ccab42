//! The endpoints and wire types of a person's settings. The core validates the values, and the channels their targets.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use bellwire_core::person;
use bellwire_core::subscriber::{Preferences, Subscribers};
use bellwire_store::SettingsRequest;
use schemars::JsonSchema;
use serde::de::Deserializer;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::body::{Body, Object};
use super::field::{PathId, SingleLineText};
use super::idempotency::IdempotentBody;
use super::path::ChannelPath;
use super::{ApiError, Hub, channel_settings};
use crate::auth::{self, Identity};
use crate::channels::{ChannelStatus, Channels, Verification};

/// The maximum number of subscribers or origins in one patch.
const NAMES_MAX: usize = 1000;

/// A person's settings.
#[derive(Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "disabled_subscribers": ["source_stale"], "muted_origins": [],
    "quiet_hours": { "start": "22:00", "end": "07:00", "timezone": "Europe/Berlin" }, "toasts": { "enabled": true },
}]))]
#[schemars(rename = "Settings")]
pub(super) struct SettingsBody {
    /// The ids of disabled subscribers.
    disabled_subscribers: Vec<String>,
    /// Muted origins: their notifications go to the inbox only.
    muted_origins: Vec<String>,
    /// An object for each channel.
    #[serde(flatten)]
    #[schemars(skip)]
    channels: Map<String, Value>,
    /// The hours in which nothing is sent; null = none.
    quiet_hours: Option<QuietHoursBody>,
    toasts: Toasts,
}

/// The hours in which nothing is sent.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "QuietHours")]
struct QuietHoursBody {
    /// When they begin, such as `22:00`.
    start: String,
    /// When they end, such as `07:00`.
    end: String,
    /// The IANA name of the time zone.
    timezone: String,
}

/// Toasts.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ToastSettings")]
struct Toasts {
    /// Whether toasts are shown. They are in the inbox in any case.
    enabled: bool,
}

/// A JSON merge patch: omitted fields stay unchanged, null resets a field to its default.
#[derive(Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{ "disabled_subscribers": ["source_stale"] }]))]
#[schemars(rename = "SettingsChange")]
pub(super) struct SettingsPatch {
    /// The ids of all disabled subscribers; replaces the list. A core subscriber cannot be disabled.
    #[serde(default, deserialize_with = "null_is_some")]
    #[schemars(with = "Option<Vec<SingleLineText<64>>>", length(max = NAMES_MAX))]
    disabled_subscribers: Option<Option<Vec<SingleLineText<64>>>>,
    /// All muted origins; replaces the list.
    #[serde(default, deserialize_with = "null_is_some")]
    #[schemars(with = "Option<Vec<SingleLineText<128>>>", length(max = NAMES_MAX))]
    muted_origins: Option<Option<Vec<SingleLineText<128>>>>,
    /// All other fields: the channels. A field that is no channel is refused.
    #[serde(flatten)]
    #[schemars(skip)]
    channels: Map<String, Value>,
    /// The hours in which nothing is sent; null = none.
    #[serde(default, deserialize_with = "null_is_some")]
    #[schemars(with = "Option<QuietHoursChange>")]
    quiet_hours: Option<Option<Object<QuietHoursChange>>>,
    #[serde(default, deserialize_with = "null_is_some")]
    #[schemars(with = "Option<ToastsChange>")]
    toasts: Option<Option<Object<ToastsChange>>>,
}

/// The hours in which nothing is sent. Omitted fields stay unchanged; the first time, all three are required.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct QuietHoursChange {
    /// When they begin, such as `22:00`.
    #[serde(default, deserialize_with = "null_is_some")]
    #[schemars(with = "String", pattern(r"^([01][0-9]|2[0-3]):[0-5][0-9]$"))]
    start: Option<String>,
    /// When they end, such as `07:00`.
    #[serde(default, deserialize_with = "null_is_some")]
    #[schemars(with = "String", pattern(r"^([01][0-9]|2[0-3]):[0-5][0-9]$"))]
    end: Option<String>,
    /// The IANA name of the time zone, such as `Europe/Berlin`.
    #[serde(default, deserialize_with = "null_is_some")]
    #[schemars(with = "SingleLineText<64>")]
    timezone: Option<SingleLineText<64>>,
}

/// Toasts.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ToastsChange {
    /// Whether toasts are shown.
    #[serde(default, deserialize_with = "null_is_some")]
    #[schemars(with = "Option<bool>")]
    enabled: Option<Option<bool>>,
}

/// The code that was sent to a target.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = [{ "code": "493017" }]))]
pub(super) struct Confirmation {
    /// The code from the message.
    code: SingleLineText<64>,
}

/// A person's settings.
pub(super) async fn get(
    State(hub): State<Hub>,
    Extension(identity): Extension<Arc<Identity>>,
    PathId(id): PathId,
) -> Result<Json<SettingsBody>, ApiError> {
    identity.check_user(&id)?;
    Ok(Json(SettingsBody::new(hub.store.settings(id).await?, &hub.channels)))
}

/// Merges the patch into the settings. Disabling a core or unknown subscriber is refused.
pub(super) async fn patch(
    State(hub): State<Hub>,
    Extension(identity): Extension<Arc<Identity>>,
    PathId(id): PathId,
    Body(change): Body<SettingsPatch>,
) -> Result<Json<SettingsBody>, ApiError> {
    identity.check_acts_for(&id)?;
    let change = change.into_core(&hub.subscribers(), &hub.channels)?;
    let changed = hub.store.change_settings(SettingsRequest { user_id: id, change }).await?;
    Ok(Json(SettingsBody::new(changed, &hub.channels)))
}

/// Verifies the user's target on a channel with the code that was sent to it.
pub(super) async fn confirm(
    State(hub): State<Hub>,
    Extension(identity): Extension<Arc<Identity>>,
    ChannelPath { user_id, channel }: ChannelPath,
    IdempotentBody { idempotency_key, body: confirmation }: IdempotentBody<Confirmation>,
) -> Result<Json<SettingsBody>, ApiError> {
    identity.check_acts_for(&user_id)?;
    let channel = hub.channels.get(&channel).filter(|one| one.settings().verification == Verification::Code);
    let channel = channel.ok_or_else(|| ApiError::not_found("channel"))?;
    let name = channel.name();
    let conflict = |message: String| ApiError::new(StatusCode::CONFLICT, "conflict", message);
    if let ChannelStatus::Off { fix } = channel.status() {
        let shown = channel.settings().display_name;
        let message = format!("this hub does not send {shown}, so no code was sent; its operator has to {fix} first");
        return Err(conflict(message));
    }
    let code = auth::hash(confirmation.code.0.trim());
    let settings = hub.store.confirm_target(user_id, name.clone(), code, idempotency_key).await?;
    match settings.channel(name.as_str()).verified {
        true => Ok(Json(SettingsBody::new(settings, &hub.channels))),
        false => Err(conflict("this is not the code that was sent".to_owned())),
    }
}

impl SettingsPatch {
    /// The fields that are no channels.
    const OTHERS: [&str; 4] = ["disabled_subscribers", "muted_origins", "quiet_hours", "toasts"];

    fn into_core(self, subscribers: &Subscribers, channels: &Channels) -> Result<person::SettingsChange, ApiError> {
        let disabled = self.disabled_subscribers.map(|ids| disabled(subscribers, &ids.unwrap_or_default()));
        let names = |names: Option<Vec<SingleLineText<128>>>| {
            names.unwrap_or_default().into_iter().map(|line| line.0).collect()
        };
        let mut change = person::SettingsChange {
            disabled_subscribers: disabled.transpose()?,
            muted_origins: self.muted_origins.map(names),
            channels: channel_settings::changes(self.channels, &Self::OTHERS, channels)?,
            ..person::SettingsChange::default()
        };
        // In a merge patch null restores the default: toasts are on.
        change.toasts_enabled = match self.toasts {
            Some(Some(Object(toasts))) => toasts.enabled.map(|enabled| enabled.unwrap_or(true)),
            toasts => toasts.map(|_| true),
        };
        change.quiet_hours = self.quiet_hours.map(|quiet| quiet.map(|Object(quiet)| quiet.into()));
        Ok(change)
    }
}

impl From<QuietHoursChange> for person::QuietChange {
    fn from(quiet: QuietHoursChange) -> Self {
        Self { start: quiet.start, end: quiet.end, timezone: quiet.timezone.map(|line| line.0) }
    }
}

impl SettingsBody {
    fn new(settings: person::PersonSettings, channels: &Channels) -> Self {
        let quiet = |quiet: person::QuietSettings| QuietHoursBody {
            start: quiet.start,
            end: quiet.end,
            timezone: quiet.timezone,
        };
        Self {
            channels: channel_settings::bodies(&settings, channels),
            disabled_subscribers: settings.disabled_subscribers,
            muted_origins: settings.muted_origins,
            quiet_hours: settings.quiet_hours.map(quiet),
            toasts: Toasts { enabled: settings.toasts.enabled },
        }
    }
}

/// Distinguishes null (`Some(None)`) from a missing field (`None`) in a merge patch.
fn null_is_some<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

fn disabled(subscribers: &Subscribers, ids: &[SingleLineText<64>]) -> Result<Vec<String>, ApiError> {
    const FIELD: &str = "disabled_subscribers";
    if ids.len() > NAMES_MAX {
        let message = format!("names {} subscribers; at most {NAMES_MAX} are allowed", ids.len());
        return Err(ApiError::invalid(FIELD, message));
    }
    let checked = Preferences::disabling(ids.iter().map(|id| id.0.as_str()), subscribers);
    let checked = checked.map_err(|refused| ApiError::invalid(FIELD, refused.to_string()))?;
    Ok(checked.disabled().map(ToString::to_string).collect())
}
