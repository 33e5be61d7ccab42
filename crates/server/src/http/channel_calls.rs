//! Calls about a channel: a person pairs a chat, a provider delivers an update.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{FromRequest, FromRequestParts as _, Path, Request, State};
use axum::http::{HeaderMap, StatusCode};
use schemars::JsonSchema;
use serde::Serialize;

use super::field::Rfc3339Time;
use super::idempotency::IdempotencyHeader;
use super::openapi::Operation;
use super::path::ChannelPath;
use super::shape::{self, Created, NoContent};
use super::{ApiError, Hub, body, intake};
use crate::auth::{self, Identity};
use crate::channels::{ChannelStatus, Verification, WebhookAnswer, WebhookCall};

/// A code that pairs a chat with a person.
#[derive(Serialize, JsonSchema)]
pub(super) struct PairingCode {
    /// The code. It works once; the person sends it from the chat, on Telegram as `/start CODE`.
    #[schemars(pattern(r"^[A-Za-z0-9_-]{22}$"))]
    code: String,
    /// A link that opens the chat and sends the code; null if the provider cannot be asked now.
    link: Option<String>,
    /// When the code ends, after ten minutes.
    expires_at: Rfc3339Time,
}

/// The body and headers of a provider's call.
pub(super) struct ProviderCall {
    channel: String,
    call: WebhookCall,
}

/// Makes a code that pairs a chat with a person. Only this response contains it.
pub(super) async fn pair(
    State(hub): State<Hub>,
    Extension(identity): Extension<Arc<Identity>>,
    ChannelPath { user_id, channel }: ChannelPath,
    IdempotencyHeader(idempotency_key): IdempotencyHeader,
) -> Result<Created<PairingCode>, ApiError> {
    identity.check_acts_for(&user_id)?;
    let channel = hub.channels.get(&channel).filter(|one| one.settings().verification == Verification::Pairing);
    let channel = channel.ok_or_else(|| ApiError::not_found("channel"))?;
    if let ChannelStatus::Off { fix } = channel.status() {
        let shown = channel.settings().display_name;
        let message = format!("this hub has no {shown}; its operator has to {fix} first");
        return Err(ApiError::new(StatusCode::CONFLICT, "conflict", message));
    }
    let code = auth::new_code();
    let hash = auth::hash(&code);
    let expires_at = hub.store.put_pairing_code(user_id, channel.name(), hash, idempotency_key).await?;
    let link = channel.pairing_link(code.clone()).await;
    Ok(Created(PairingCode { code, link, expires_at: Rfc3339Time(expires_at) }))
}

/// Takes a call of a channel's provider. The channel authenticates it.
pub(super) async fn receive(
    State(hub): State<Hub>,
    ProviderCall { channel, call }: ProviderCall,
) -> Result<NoContent, ApiError> {
    let not_found = || ApiError::not_found("webhook");
    let channel = hub.channels.get(&channel).ok_or_else(not_found)?;
    match channel.receive(call).await {
        WebhookAnswer::Taken => Ok(NoContent),
        WebhookAnswer::NotFound => Err(not_found()),
        WebhookAnswer::Unauthorized => Err(ApiError::unauthorized("the secret of the webhook is missing or wrong")),
        WebhookAnswer::Invalid(message) => Err(ApiError::invalid("body", message)),
        WebhookAnswer::Failed(error) => Err(error.into()),
    }
}

impl<S: Send + Sync> FromRequest<S> for ProviderCall {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        body::check_json(request.headers())?;
        let (mut parts, body) = intake::whole(request).await?;
        let path = Path::<String>::from_request_parts(&mut parts, state).await;
        let Path(channel) = path.map_err(|_| ApiError::not_found("webhook"))?;
        let headers: HeaderMap = parts.headers;
        Ok(Self { channel, call: WebhookCall { headers, body } })
    }
}

impl shape::HandlerArgument for ProviderCall {
    type Request = Self;
}

impl shape::RequestShape for ProviderCall {
    fn describe(operation: &mut Operation<'_>) {
        let schema = serde_json::json!({
            "type": "object",
            "description": "An update as the provider sends it, in the provider's own format.",
        });
        operation.body("application/json", schema);
    }
}
