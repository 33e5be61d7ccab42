use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use bellwire_core::inject::estimate_tokens;
use bellwire_core::subscriber::{Activation, Audience, Preferences, SubscriberState};
use bellwire_core::{Boundary, Event, InjectionPoint, Priority, Severity, Subscribers};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::body::Object;
use super::field::{EnumText, ID_MAX, PathId, Rfc3339Time, SingleLineText};
use super::idempotency::IdempotentBody;
use super::new_event::NewEvent;
use super::query::Query;
use super::shape::List;
use super::{ApiError, Hub};
use crate::auth::{Identity, Scope};
use crate::clock;
use crate::statistics::LastDay;

/// The maximum number of events in a dry run.
const SAMPLES_MAX: usize = 100;

/// A subscriber.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Subscriber")]
pub(super) struct SubscriberBody {
    /// Its id.
    id: String,
    /// The name for people.
    name: String,
    /// A description for people.
    description: String,
    /// Its version.
    version: String,
    /// The event types it listens for; a trailing `.*` is a prefix.
    types: Vec<String>,
    /// The minimum severity of events it takes.
    severity_filter: EnumText<Severity>,
    /// The priority of its notifications.
    priority: EnumText<Priority>,
    /// The injection point of its notifications; null if it notifies people only.
    inject_at: Option<EnumText<InjectionPoint>>,
    /// How long it collects events into a batch.
    window_ms: u64,
    /// The maximum number of events in a batch.
    max_size: usize,
    /// How long equal events are only counted.
    dedupe_window_ms: u64,
    /// Whether its notifications wake an idle agent.
    activation: EnumText<Activation>,
    /// The audience: agents, people, or both.
    audience: EnumText<Audience>,
    /// Whether it cannot be switched off.
    core: bool,
    /// Whether it is enabled for the caller's person, or for `user_id`.
    enabled: bool,
    /// What it decided in the last 24 hours, for all people. Only for admins.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_24h: Option<LastDayBody>,
    /// Why its file could not be loaded after an edit. This is its last valid version, which stays in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

/// What a subscriber decided in the last 24 hours, counted in memory by hour.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "SubscriberCounts")]
struct LastDayBody {
    /// Since when: about 24 hours ago, or the start of the hub.
    since: Rfc3339Time,
    /// All its verdicts.
    events: u64,
    /// Verdicts by kind.
    queued: u64,
    /// Verdicts by kind.
    held: u64,
    /// Verdicts by kind.
    duplicate: u64,
    /// Verdicts by kind.
    filtered: u64,
    /// Verdicts by kind.
    suppressed: u64,
    /// Its notifications that were shown to agents.
    injected: u64,
}

/// The query of the subscribers.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SubscriberQuery {
    /// Whose `enabled` to tell. Default: the caller's person.
    user_id: Option<SingleLineText<ID_MAX>>,
}

/// Events for a dry run of a subscriber.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = [{
    "events": [{
        "type": "tool.call.failure", "source": "tool_executor", "severity": "error",
        "payload": { "tool_name": "vault_search", "error_type": "timeout" },
    }],
}]))]
pub(super) struct DryRun {
    /// The events as they would be published. They need no conversation and no person.
    #[schemars(length(min = 1, max = SAMPLES_MAX))]
    events: Vec<Object<NewEvent>>,
}

/// The result of a dry run.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(super) struct DryRunResult {
    /// The subscriber.
    subscriber: String,
    /// The rendered text as TOON; null if the template fails. A notification would then use the built-in form.
    content: Option<String>,
    /// The plain text that a person gets; null where the subscriber is for agents only, or where the template fails and
    /// a plain sentence would be sent.
    #[serde(default)]
    content_user: Option<String>,
    /// The estimated tokens of `content`.
    #[serde(default)]
    tokens: Option<usize>,
    /// Why a template fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

/// Lists all subscribers, each with whether it is core and whether the token's user has it enabled.
pub(super) async fn list(
    State(hub): State<Hub>,
    Extension(identity): Extension<Arc<Identity>>,
    Query(query): Query<SubscriberQuery>,
) -> Result<Json<List<SubscriberBody>>, ApiError> {
    let preferences = preferences(&hub, &identity, query).await?;
    let subscribers = hub.subscribers();
    let body = |one: &Arc<bellwire_core::Subscriber>| {
        SubscriberBody::of(one, &subscribers, &preferences).with_counts(&hub, &identity)
    };
    Ok(Json(List::whole(subscribers.iter().map(body).collect())))
}

/// Returns one subscriber.
pub(super) async fn get(
    State(hub): State<Hub>,
    Extension(identity): Extension<Arc<Identity>>,
    PathId(id): PathId,
    Query(query): Query<SubscriberQuery>,
) -> Result<Json<SubscriberBody>, ApiError> {
    let subscribers = hub.subscribers();
    let one = subscribers.find(&id).ok_or_else(|| ApiError::not_found("subscriber"))?;
    let preferences = preferences(&hub, &identity, query).await?;
    Ok(Json(SubscriberBody::of(one, &subscribers, &preferences).with_counts(&hub, &identity)))
}

/// Renders the notifications that some events would produce. Nothing is stored or delivered.
pub(super) async fn test(
    State(hub): State<Hub>,
    PathId(id): PathId,
    IdempotentBody { idempotency_key, body: run }: IdempotentBody<DryRun>,
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
    let for_person = (one.output.audience != Audience::Agent).then(|| one.dry_run_for_person(&events)).transpose();
    let problem = match (&document, &for_person) {
        (Err(problem), _) => Some(problem.clone()),
        (Ok(_), Err(problem)) => Some(format!("template_user: {problem}")),
        (Ok(_), Ok(_)) => None,
    };
    let content = document.ok().map(|document| document.to_toon());
    let tokens = content.as_deref().map(estimate_tokens);
    let content_user = for_person.unwrap_or_default();
    let result = DryRunResult { subscriber: id, content, content_user, tokens, problem };
    let Some(idempotency_key) = idempotency_key else { return Ok(Json(result)) };
    let result = serde_json::to_string(&result).expect("strings can be serialized");
    let stored = hub.store.answer_once(idempotency_key, result, None).await?;
    let first = serde_json::from_str(&stored).map_err(|_| ApiError::of_status(StatusCode::INTERNAL_SERVER_ERROR))?;
    Ok(Json(first))
}

/// The preferences of the named person, or of the caller's.
async fn preferences(hub: &Hub, identity: &Identity, query: SubscriberQuery) -> Result<Preferences, ApiError> {
    let named = query.user_id.map(|user| user.0);
    named.as_deref().map_or(Ok(()), |user| identity.check_user(user))?;
    let Some(user) = named.or_else(|| identity.person().map(str::to_owned)) else { return Ok(Preferences::default()) };
    let settings = hub.store.settings(user).await?;
    let subscribers = hub.subscribers();
    let known = settings.disabled_subscribers.iter().map(String::as_str);
    let known = known.filter(|id| subscribers.find(id).is_some_and(|one| !one.output.core));
    Ok(Preferences::disabling(known, &subscribers).unwrap_or_default())
}

impl SubscriberBody {
    fn of(one: &bellwire_core::Subscriber, all: &Subscribers, preferences: &Preferences) -> Self {
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
            last_24h: None,
            problem: all.outdated(&one.id).map(str::to_owned),
        }
    }

    /// Adds the counts, which tell about all people.
    fn with_counts(self, hub: &Hub, identity: &Identity) -> Self {
        let last_24h = (identity.scope == Scope::Admin).then(|| hub.statistics.last_day(&self.id).into());
        Self { last_24h, ..self }
    }
}

impl From<LastDay> for LastDayBody {
    fn from(day: LastDay) -> Self {
        let [queued, held, duplicate, filtered, suppressed] = day.verdicts;
        Self {
            since: Rfc3339Time(day.since),
            events: day.verdicts.iter().sum(),
            queued,
            held,
            duplicate,
            filtered,
            suppressed,
            injected: day.injected,
        }
    }
}
