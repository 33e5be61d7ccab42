//! The endpoints and wire types of a person's settings. The core validates the values.

use std::fmt;
use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use bellwire_core::person;
use bellwire_core::subscriber::{Preferences, Subscribers};
use bellwire_store::SettingsRequest;
use schemars::JsonSchema;
use serde::de::{Deserializer, Error as _};
use serde::{Deserialize, Serialize};

use super::body::{Body, Object};
use super::field::{PathId, SingleLineText};
use super::idempotency::IdempotentBody;
use super::{ApiError, Hub};
use crate::auth::{self, Identity};
use crate::channels::email::EmailAddress;

/// The maximum number of subscribers or origins in one patch.
const NAMES_MAX: usize = 1000;

/// A person's settings.
#[derive(Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "disabled_subscribers": ["source_stale"], "muted_origins": [],
    "email": { "enabled": true, "address": "ada@example.org", "confirmed": true },
    "telegram": { "enabled": false, "chat_id": null, "paired": false },
    "quiet_hours": { "start": "22:00", "end": "07:00", "timezone": "Europe/Berlin" }, "toasts": { "enabled": true },
}]))]
#[schemars(rename = "Settings")]
pub(super) struct SettingsBody {
    /// The ids of disabled subscribers.
    disabled_subscribers: Vec<String>,
    /// Muted origins: their notifications go to the inbox only.
    muted_origins: Vec<String>,
    email: EmailBody,
    telegram: Telegram,
    /// The hours in which no mail is sent; null = none.
    quiet_hours: Option<QuietHoursBody>,
    toasts: Toasts,
}

/// Email.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "EmailSettings")]
struct EmailBody {
    /// Whether it is enabled.
    enabled: bool,
    /// The address.
    address: Option<String>,
    /// Whether the address was confirmed with the mailed code.
    confirmed: bool,
}

/// Telegram.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "TelegramSettings")]
struct Telegram {
    /// Whether it is enabled.
    enabled: bool,
    /// The id of the chat, if it is known.
    chat_id: Option<i64>,
    /// Whether the chat was confirmed to be the person's.
    paired: bool,
}

/// The hours in which no mail is sent.
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
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = [{ "disabled_subscribers": ["source_stale"], "email": { "enabled": true } }]))]
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
    #[serde(default, deserialize_with = "null_is_some")]
    #[schemars(with = "Option<EmailChange>")]
    email: Option<Option<Object<EmailChange>>>,
    #[serde(default, deserialize_with = "null_is_some")]
    #[schemars(with = "Option<TelegramChange>")]
    telegram: Option<Option<Object<TelegramChange>>>,
    /// The hours in which no mail is sent; null = none.
    #[serde(default, deserialize_with = "null_is_some")]
    #[schemars(with = "Option<QuietHoursChange>")]
    quiet_hours: Option<Option<Object<QuietHoursChange>>>,
    #[serde(default, deserialize_with = "null_is_some")]
    #[schemars(with = "Option<ToastsChange>")]
    toasts: Option<Option<Object<ToastsChange>>>,
}

/// Email.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EmailChange {
    /// Whether it is enabled.
    #[serde(default, deserialize_with = "null_is_some")]
    #[schemars(with = "Option<bool>")]
    enabled: Option<Option<bool>>,
    /// The address. The hub mails a code to it, and sends notifications only after the code was confirmed.
    #[serde(default, deserialize_with = "null_is_some")]
    #[schemars(with = "Option<SingleLineText<254>>")]
    address: Option<Option<SingleLineText<254>>>,
    #[serde(default)]
    #[schemars(skip)]
    #[allow(dead_code, reason = "it is there to be refused by name")]
    confirmed: ReadOnly,
}

/// Telegram.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TelegramChange {
    /// Whether it is enabled.
    #[serde(default, deserialize_with = "null_is_some")]
    #[schemars(with = "Option<bool>")]
    enabled: Option<Option<bool>>,
    #[serde(default)]
    #[schemars(skip)]
    #[allow(dead_code, reason = "it is there to be refused by name")]
    chat_id: ReadOnly,
    #[serde(default)]
    #[schemars(skip)]
    #[allow(dead_code, reason = "it is there to be refused by name")]
    paired: ReadOnly,
}

/// The hours in which no mail is sent. Omitted fields stay unchanged; the first time, all three are required.
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

/// The code that was mailed to an address.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = [{ "code": "493017" }]))]
pub(super) struct Confirmation {
    /// The code from the mail.
    code: SingleLineText<64>,
}

/// A field that requests may not set; deserializing it fails.
#[derive(Default)]
struct ReadOnly;

impl<'de> Deserialize<'de> for ReadOnly {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        serde::de::IgnoredAny::deserialize(deserializer)?;
        Err(D::Error::custom("is read-only; leave it out"))
    }
}

impl fmt::Debug for ReadOnly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("read-only")
    }
}

/// A person's settings.
pub(super) async fn get(
    State(hub): State<Hub>,
    Extension(identity): Extension<Arc<Identity>>,
    PathId(id): PathId,
) -> Result<Json<SettingsBody>, ApiError> {
    identity.check_user(&id)?;
    Ok(Json(hub.store.settings(id).await?.into()))
}

/// Merges the patch into the settings. Disabling a core or unknown subscriber is refused.
pub(super) async fn patch(
    State(hub): State<Hub>,
    Extension(identity): Extension<Arc<Identity>>,
    PathId(id): PathId,
    Body(change): Body<SettingsPatch>,
) -> Result<Json<SettingsBody>, ApiError> {
    identity.check_user(&id)?;
    let change = change.into_core(&hub.subscribers())?;
    Ok(Json(hub.store.change_settings(SettingsRequest { user_id: id, change }).await?.into()))
}

/// Confirms the user's email address with the code that was sent to it.
pub(super) async fn confirm(
    State(hub): State<Hub>,
    Extension(identity): Extension<Arc<Identity>>,
    PathId(id): PathId,
    IdempotentBody { idempotency_key, body: confirmation }: IdempotentBody<Confirmation>,
) -> Result<Json<SettingsBody>, ApiError> {
    identity.check_user(&id)?;
    if !hub.channels.get("email").is_some_and(|channel| channel.status().is_configured()) {
        let message = "this hub sends no mail, so no code went out; its operator has to set up [email] first";
        return Err(ApiError::new(StatusCode::CONFLICT, "conflict", message));
    }
    let settings = hub.store.confirm_address(id, auth::hash(confirmation.code.0.trim()), idempotency_key).await?;
    match settings.email.confirmed {
        true => Ok(Json(settings.into())),
        false => Err(ApiError::new(StatusCode::CONFLICT, "conflict", "this is not the code that was mailed")),
    }
}

/// Checks that the SMTP client can use the address; otherwise the confirmation mail would fail later.
fn mailable(line: SingleLineText<254>) -> Result<String, ApiError> {
    let text = line.0.trim().to_owned();
    EmailAddress::parse(&text).map_err(|why| ApiError::invalid("email.address", why))?;
    Ok(text)
}

impl SettingsPatch {
    fn into_core(self, subscribers: &Subscribers) -> Result<person::SettingsChange, ApiError> {
        let disabled = self.disabled_subscribers.map(|ids| disabled(subscribers, &ids.unwrap_or_default()));
        let names = |names: Option<Vec<SingleLineText<128>>>| {
            names.unwrap_or_default().into_iter().map(|line| line.0).collect()
        };
        let mut change = person::SettingsChange {
            disabled_subscribers: disabled.transpose()?,
            muted_origins: self.muted_origins.map(names),
            ..person::SettingsChange::default()
        };
        // In a merge patch null restores the default: no email, no address, no Telegram, toasts on.
        match self.email {
            Some(Some(Object(email))) => {
                change.email_enabled = email.enabled.map(Option::unwrap_or_default);
                change.email_address = email.address.map(|line| line.map(mailable).transpose()).transpose()?;
            }
            Some(None) => (change.email_enabled, change.email_address) = (Some(false), Some(None)),
            None => {}
        }
        change.telegram_enabled = match self.telegram {
            Some(Some(Object(telegram))) => telegram.enabled.map(Option::unwrap_or_default),
            telegram => telegram.map(|_| false),
        };
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

impl From<person::PersonSettings> for SettingsBody {
    fn from(settings: person::PersonSettings) -> Self {
        let person::PersonSettings { disabled_subscribers, muted_origins, email, telegram, quiet_hours, toasts } =
            settings;
        let person::EmailSettings { enabled, address, confirmed } = email;
        let quiet = |quiet: person::QuietSettings| QuietHoursBody {
            start: quiet.start,
            end: quiet.end,
            timezone: quiet.timezone,
        };
        Self {
            disabled_subscribers,
            muted_origins,
            email: EmailBody { enabled, address, confirmed },
            telegram: Telegram { enabled: telegram.enabled, chat_id: telegram.chat_id, paired: telegram.paired },
            quiet_hours: quiet_hours.map(quiet),
            toasts: Toasts { enabled: toasts.enabled },
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
