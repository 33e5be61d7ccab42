//! `POST /v1/ingest/{source}`: a call of another system, authenticated by the secret of its source.

use std::path::Path as FilePath;
use std::time::Instant;

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts as _, Path, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::{Extension, Json};
use bellwire_core::Time;
use bellwire_store::{ClientEventId, ConversationQuery, IdempotencyKey, IncomingEvent, Publish};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::correlation::Correlation;
use super::field::Rfc3339Time;
use super::openapi::Operation;
use super::shape::{self, Accepted, List};
use super::{ApiError, Hub, body, intake};
use crate::clock;
use crate::config::IngestKind;
use crate::ingest::{BodyProblem, CallOutcome, Mapped, Refusal, Source, WebhookEvent};

/// A call of another system.
pub(super) struct WebhookRequest {
    source: String,
    headers: HeaderMap,
    body: Bytes,
}

/// What became of a call. It does not say who was told.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Ingested")]
pub(super) struct IngestResponse {
    /// The events that were published.
    events: Vec<IngestedEvent>,
    /// Why nothing was published; null if something was.
    skipped: Option<String>,
}

/// An event that a call became.
#[derive(Serialize, JsonSchema)]
struct IngestedEvent {
    /// The id that the call gave it, otherwise the hub's.
    id: String,
    /// The hub's id of the event. A repeated call has the same.
    event_id: Uuid,
}

/// A configured source, without its secret.
#[derive(Serialize, JsonSchema)]
pub(super) struct IngestSourceBody {
    /// The name in its path, `/v1/ingest/NAME`.
    name: String,
    /// The format of its calls.
    #[schemars(extend("enum" = ["github", "alertmanager", "standard_webhooks", "json"]))]
    kind: &'static str,
    /// The origin that people see.
    origin: String,
    /// The person whose agents are told.
    user_id: String,
    /// The only conversation that is told; null if it is not set.
    conversation_id: Option<String>,
    /// The folder whose agents are told; null if it is not set.
    folder: Option<String>,
    /// How many calls were accepted since the hub started.
    accepted: u64,
    /// How many calls were refused since the hub started.
    refused: u64,
    /// When a call was last accepted; null = not since the hub started.
    last_accepted_at: Option<Rfc3339Time>,
    /// When a call was last refused; null = not since the hub started.
    last_refused_at: Option<Rfc3339Time>,
    /// Why it was refused.
    last_refusal: Option<String>,
}

/// How many conversations of a folder are told.
const CONVERSATIONS_MAX: usize = 20;
/// How many conversations are looked at for the folder.
const LISTED_MAX: usize = 100;
/// A conversation is open for so long after its last use.
const OPEN_MS: u64 = 24 * 60 * 60 * 1000;
const ROUTE: &str = "POST /v1/ingest/{source}";

/// Takes a call, and publishes the events that it becomes.
pub(super) async fn receive(
    State(hub): State<Hub>,
    correlation: Extension<Correlation>,
    request: WebhookRequest,
) -> Result<Accepted<IngestResponse>, ApiError> {
    let source = hub.ingest.get(&request.source).ok_or_else(|| ApiError::not_found("source"))?;
    let call = Call { hub: &hub, source, headers: &request.headers, body: &request.body };
    let answered = call.carry_out(&correlation).await;
    let outcome = match &answered {
        Ok(response) if response.events.is_empty() => CallOutcome::Skipped,
        Ok(_) => CallOutcome::Published,
        Err(error) => match error.status {
            StatusCode::UNAUTHORIZED => CallOutcome::Refused,
            StatusCode::TOO_MANY_REQUESTS => CallOutcome::Limited,
            status if status.is_client_error() => CallOutcome::Invalid,
            // The store failed; that is no property of the call.
            _ => return answered.map(Accepted),
        },
    };
    call.note(outcome, answered.as_ref().err());
    answered.map(Accepted)
}

/// Lists the configured sources, and what came from them since the hub started.
pub(super) async fn list(State(hub): State<Hub>) -> Result<Json<List<IngestSourceBody>>, ApiError> {
    Ok(Json(List { items: hub.ingest.iter().map(IngestSourceBody::from).collect(), next_cursor: None }))
}

struct Call<'a> {
    hub: &'a Hub,
    source: &'a Source,
    headers: &'a HeaderMap,
    body: &'a Bytes,
}

impl Call<'_> {
    async fn carry_out(&self, correlation: &Correlation) -> Result<IngestResponse, ApiError> {
        self.source.authenticate(self.headers, self.body, clock::now()).map_err(|refusal| self.refused(refusal))?;
        // Only authentic calls count: others must not use up the source's rate.
        self.source.take_call(Instant::now()).map_err(too_fast)?;
        let events = match self.source.map(self.headers, self.body)? {
            Mapped::Events(events) => events,
            Mapped::Skipped(why) => return Ok(IngestResponse::skipped(why)),
        };
        let targets = self.targets(clock::now()).await?;
        if targets.is_empty() && events.iter().any(|event| event.conversation.is_none()) {
            return Ok(IngestResponse::skipped("no agent works in the source's folder or a folder above it"));
        }
        self.publish(&events, &targets, correlation).await
    }

    /// The conversations that are told; `None` stands for all open conversations of the person.
    async fn targets(&self, now: Time) -> Result<Vec<Option<String>>, ApiError> {
        let settings = &self.source.settings;
        let Some(folder) = &settings.folder else { return Ok(vec![settings.conversation.clone()]) };
        let query = ConversationQuery {
            user_id: Some(self.source.user.clone()),
            since: Some(Time::from_millis(now.as_millis().saturating_sub(OPEN_MS.cast_signed()))),
            limit: LISTED_MAX,
            ..ConversationQuery::default()
        };
        let (conversations, _) = self.hub.store.conversations(self.source.caller(), query).await?;
        let works_there = |of: &str| FilePath::new(folder).starts_with(of);
        let found = conversations.into_iter().filter(|one| one.view.folder.as_deref().is_some_and(works_there));
        Ok(found.take(CONVERSATIONS_MAX).map(|one| Some(one.view.id)).collect())
    }

    async fn publish(
        &self,
        events: &[WebhookEvent],
        targets: &[Option<String>],
        correlation: &Correlation,
    ) -> Result<IngestResponse, ApiError> {
        let (mut ids, mut incoming) = (Vec::new(), Vec::new());
        for event in events {
            // A conversation that the call itself names comes before the source's.
            let named = event.conversation.clone().map(|id| vec![Some(id)]);
            for target in named.as_deref().unwrap_or(targets) {
                ids.push(event.id.clone());
                incoming.push(self.incoming(event, target.as_deref(), correlation)?);
            }
        }
        let publish =
            Publish { caller: self.source.caller(), events: incoming, idempotency_key: self.idempotency_key() };
        let receipts = self.hub.store.publish(publish).await?;
        let event = |(receipt, id): (bellwire_store::Receipt, Option<String>)| IngestedEvent {
            id: id.unwrap_or_else(|| receipt.event_id.to_string()),
            event_id: receipt.event_id.0,
        };
        Ok(IngestResponse { events: receipts.into_iter().zip(ids).map(event).collect(), skipped: None })
    }

    fn incoming(
        &self,
        event: &WebhookEvent,
        conversation: Option<&str>,
        correlation: &Correlation,
    ) -> Result<IncomingEvent, ApiError> {
        let mut made = event.to_event(&self.source.settings.name)?.at(clock::now()).for_person(&self.source.user);
        if let Some(id) = conversation {
            made = made.in_conversation(id);
        }
        // One event for each conversation of a folder, whichever of them are open when a call is repeated.
        let is_one_of_several = self.source.settings.folder.is_some() && event.conversation.is_none();
        let client_event_id = event.id.as_ref().map(|id| ClientEventId {
            id: match conversation.filter(|_| is_one_of_several) {
                Some(conversation) => format!("{id} {conversation}"),
                None => id.clone(),
            },
            content: event.content.unwrap_or_default(),
        });
        Ok(IncomingEvent::new(made.correlated(correlation.id()), client_event_id))
    }

    /// GitHub's delivery id is not signed, so the body itself recognizes a replay under another id.
    fn idempotency_key(&self) -> Option<IdempotencyKey> {
        (self.source.settings.kind == IngestKind::Github).then(|| {
            let content: [u8; 32] = Sha256::digest(self.body).into();
            let key = content.iter().map(|byte| format!("{byte:02x}")).collect();
            IdempotencyKey { token_id: self.source.caller().token_owner, route: ROUTE.to_owned(), key, content }
        })
    }

    fn refused(&self, refusal: Refusal) -> ApiError {
        let Refusal { header, message } = refusal;
        let name = &self.source.settings.name;
        let hint =
            format!("compare the sender's secret with that of [ingest.{name}]; docs/ingest.md shows where it is set");
        let error = ApiError::unauthorized(format!("{header} {message}"));
        ApiError { field: Some(header.to_owned()), hint: Some(hint), ..error }
    }

    /// Counts a call, notes when it came, and logs a refusal at most once a minute.
    fn note(&self, outcome: CallOutcome, error: Option<&ApiError>) {
        let (source, name) = (self.source, &*self.source.settings.name);
        self.hub.metrics.ingested(name, outcome.as_str());
        let Some(error) = error.filter(|_| !outcome.is_accepted()) else {
            return source.activity.accepted(clock::now());
        };
        let reason = format!("{}: {}", outcome.as_str(), reason(outcome, error));
        if source.activity.refused(reason.clone(), clock::now(), Instant::now()) {
            tracing::warn!(source = name, reason, "a webhook call was not taken");
        }
    }
}

/// The reason of a refusal, without anything that was sent: only authentic calls are quoted.
fn reason(outcome: CallOutcome, error: &ApiError) -> String {
    match (&error.field, outcome) {
        (Some(field), CallOutcome::Invalid) => format!("{field} {}", error.message),
        _ => error.message.clone(),
    }
}

fn too_fast(seconds: u64) -> ApiError {
    let message = "this source calls too often (calls_per_second of the source)";
    let error = ApiError::new(StatusCode::TOO_MANY_REQUESTS, "rate_limited", message);
    ApiError { retry_after_seconds: Some(seconds), ..error }
}

/// The JSON of a call. GitHub can send it as the field `payload` of a form.
pub(crate) fn read_webhook_json(headers: &HeaderMap, bytes: &[u8]) -> Result<Value, BodyProblem> {
    let problem = |error: ApiError| BodyProblem {
        field: error.field.unwrap_or_else(|| "body".to_owned()),
        message: error.message,
    };
    body::check_json(headers).map_err(problem)?;
    let is_form = body::media_type(headers) == "application/x-www-form-urlencoded" && bytes.starts_with(b"payload=");
    if !is_form {
        return body::read(bytes).map_err(problem);
    }
    let mut fields = form_urlencoded::parse(bytes).filter(|(name, _)| name == "payload");
    match (fields.next(), fields.next()) {
        (Some((_, json)), None) => body::read(json.as_bytes()).map_err(problem),
        _ => Err(BodyProblem::new("payload", "is not there once in the form")),
    }
}

impl IngestResponse {
    fn skipped(why: impl Into<String>) -> Self {
        Self { events: Vec::new(), skipped: Some(why.into()) }
    }
}

impl From<BodyProblem> for ApiError {
    fn from(problem: BodyProblem) -> Self {
        if problem.field == "Content-Type" {
            let error = Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", problem.message);
            return Self { field: Some(problem.field), ..error };
        }
        Self::invalid(body::clipped(&problem.field), body::clipped(&problem.message))
    }
}

impl From<&Source> for IngestSourceBody {
    fn from(source: &Source) -> Self {
        let (settings, activity) = (&source.settings, source.activity.state());
        let (refused_at, refusal) = activity.last_refusal.unzip();
        Self {
            name: settings.name.clone(),
            kind: settings.kind.as_str(),
            origin: settings.origin.clone(),
            user_id: source.user.clone(),
            conversation_id: settings.conversation.clone(),
            folder: settings.folder.clone(),
            accepted: activity.accepted,
            refused: activity.refused,
            last_accepted_at: activity.last_accepted_at.map(Rfc3339Time),
            last_refused_at: refused_at.map(Rfc3339Time),
            last_refusal: refusal,
        }
    }
}

impl<S: Send + Sync> FromRequest<S> for WebhookRequest {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let (mut parts, body) = intake::whole(request).await?;
        let path = Path::<String>::from_request_parts(&mut parts, state).await;
        let Path(source) = path.map_err(|_| ApiError::not_found("source"))?;
        Ok(Self { source, headers: parts.headers, body })
    }
}

impl shape::HandlerArgument for WebhookRequest {
    type Request = Self;
}

impl shape::RequestShape for WebhookRequest {
    fn describe(operation: &mut Operation<'_>) {
        let schema = serde_json::json!({
            "description": "The call as the sender makes it, in the format of the source's kind.",
        });
        operation.body("application/json", schema);
    }
}
