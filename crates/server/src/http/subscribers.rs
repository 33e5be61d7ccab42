use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use bellwire_core::subscriber::{Activation, Audience, Preferences, SubscriberState};
use bellwire_core::{Boundary, Event, InjectionPoint, Priority, Severity};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::body::Object;
use super::field::{EnumText, PathId};
use super::idempotency::IdempotentBody;
use super::new_event::NewEvent;
use super::shape::List;
use super::{ApiError, Hub};
use crate::auth::Identity;
use crate::clock;

/// The maximum number of events in a dry run.
const SAMPLES_MAX: usize = 100;

/// Who listens for what, and how it tells.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Subscriber")]
pub(super) struct SubscriberBody {
    /// Its name.
    id: String,
    /// What people call it.
    name: String,
    /// What it is for.
    description: String,
    /// Its version.
    version: String,
    /// The event types it listens for; a trailing `.*` is a prefix.
    types: Vec<String>,
    /// The mildest severity it listens for.
    severity_filter: EnumText<Severity>,
    /// The place of its news in the queue.
    priority: EnumText<Priority>,
    /// Where its news enters the context; null where it is for people only.
    inject_at: Option<EnumText<InjectionPoint>>,
    /// How long it gathers events.
    window_ms: u64,
    /// How many events it gathers at most.
    max_size: usize,
    /// For how long an equal event only counts.
    dedupe_window_ms: u64,
    /// Whether its news wakes an idle agent.
    activation: EnumText<Activation>,
    /// Whom it tells.
    audience: EnumText<Audience>,
    /// Whether it cannot be switched off.
    core: bool,
    /// Whether the caller's person has it on.
    enabled: bool,
}

/// Events to try a subscriber with.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = [{
    "events": [{
        "type": "tool.call.failure", "source": "tool_executor", "severity": "error",
        "payload": { "tool_name": "vault_search", "error_type": "timeout" },
    }],
}]))]
pub(super) struct DryRun {
    /// The events, as they would be published; they need no address.
    #[schemars(length(min = 1, max = SAMPLES_MAX))]
    events: Vec<Object<NewEvent>>,
}

/// How the events would read.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(super) struct DryRunResult {
    /// The subscriber.
    subscriber: String,
    /// The words, as TOON; null where the template fails and the news would be told in the built-in form.
    content: Option<String>,
    /// Why the template fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

/// Lists all subscribers, each with whether it is core and whether the token's user has it enabled.
pub(super) async fn list(
    State(hub): State<Hub>,
    Extension(identity): Extension<Arc<Identity>>,
) -> Result<Json<List<SubscriberBody>>, ApiError> {
    let preferences = preferences(&hub, &identity).await?;
    let items = hub.subscribers().iter().map(|one| SubscriberBody::of(one, &preferences)).collect();
    Ok(Json(List::whole(items)))
}

/// Returns one subscriber.
pub(super) async fn get(
    State(hub): State<Hub>,
    Extension(identity): Extension<Arc<Identity>>,
    PathId(id): PathId,
) -> Result<Json<SubscriberBody>, ApiError> {
    let one = hub.subscribers().find(&id).cloned().ok_or_else(|| ApiError::not_found("subscriber"))?;
    Ok(Json(SubscriberBody::of(&one, &preferences(&hub, &identity).await?)))
}

/// Renders the notifications that some events would produce. Nothing is stored or delivered.
pub(super) async fn test(
    State(hub): State<Hub>,
    PathId(id): PathId,
    IdempotentBody { once, body: run }: IdempotentBody<DryRun>,
) -> Result<Json<DryRunResult>, ApiError> {
    let one = hub.subscribers().find(&id).cloned().ok_or_else(|| ApiError::not_found("subscriber"))?;
    if !(1..=SAMPLES_MAX).contains(&run.events.len()) {
        let message = format!("has {} events; 1 to {SAMPLES_MAX} are allowed", run.events.len());
        return Err(ApiError::invalid("events", message));
    }
    let admit = |(at, Object(event)): (usize, Object<NewEvent>)| {
        event.into_event(clock::now()).map(Arc::new).map_err(|invalid| {
            let error = ApiError::from(invalid);
            ApiError { field: error.field.map(|field| format!("events[{at}].{field}")), ..error }
        })
    };
    let events: Vec<Arc<Event>> = run.events.into_iter().enumerate().map(admit).collect::<Result<_, _>>()?;
    let document = one.dry_run(&events, &Boundary::from_seed(0));
    let problem = document.as_ref().err().cloned();
    let content = document.ok().map(|document| document.to_toon());
    let result = DryRunResult { subscriber: id, content, problem };
    let Some(once) = once else { return Ok(Json(result)) };
    let result = serde_json::to_string(&result).expect("strings can be serialized");
    let told = hub.store.answer_once(once, result, None).await?;
    let told = serde_json::from_str(&told).map_err(|_| ApiError::of_status(StatusCode::INTERNAL_SERVER_ERROR))?;
    Ok(Json(told))
}

async fn preferences(hub: &Hub, identity: &Identity) -> Result<Preferences, ApiError> {
    let Some(user) = identity.caller.user_id.clone() else { return Ok(Preferences::default()) };
    let settings = hub.store.settings(user).await?;
    let subscribers = hub.subscribers();
    let known = settings.disabled_subscribers.iter().map(String::as_str);
    let known = known.filter(|id| subscribers.find(id).is_some_and(|one| !one.output.core));
    Ok(Preferences::disabling(known, &subscribers).unwrap_or_default())
}

impl SubscriberBody {
    fn of(one: &bellwire_core::Subscriber, preferences: &Preferences) -> Self {
        let point = (one.output.audience != Audience::User).then_some(one.output.inject_at);
        Self {
            id: one.id.to_string(),
            name: one.name.clone(),
            description: one.description.clone(),
            version: one.version.clone(),
            types: one.types.iter().map(ToString::to_string).collect(),
            severity_filter: EnumText(one.severity_filter),
            priority: EnumText(one.output.priority),
            inject_at: point.map(EnumText),
            window_ms: one.batching.window_ms,
            max_size: one.batching.max_size,
            dedupe_window_ms: one.batching.dedupe_window_ms,
            activation: EnumText(one.output.activation),
            audience: EnumText(one.output.audience),
            core: one.output.core,
            enabled: preferences.state_of(one) == SubscriberState::Active,
        }
    }
}
