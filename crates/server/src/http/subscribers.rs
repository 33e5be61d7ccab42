use std::sync::Arc;

use axum::extract::{Path, State};
use axum::{Extension, Json};
use bellwire_core::subscriber::{Audience, Preferences, Subscriber, SubscriberState};
use bellwire_core::{Boundary, Event, EventDraft, Ids};
use serde::Deserialize;
use serde_json::{Value, json};

use super::idempotency::Keyed;
use super::{ApiError, Hub};
use crate::auth::Identity;
use crate::clock;

/// How many events a dry run takes.
const SAMPLES_MAX: usize = 100;

/// Every subscriber, with whether it is core and whether the caller's person has it on.
pub(super) async fn list(
    State(hub): State<Hub>,
    Extension(identity): Extension<Identity>,
) -> Result<Json<Value>, ApiError> {
    let preferences = preferences(&hub, &identity).await?;
    let items: Vec<Value> = hub.subscribers().iter().map(|one| describe(one, &preferences)).collect();
    Ok(Json(json!({ "items": items, "next_cursor": null })))
}

/// One subscriber.
pub(super) async fn get(
    State(hub): State<Hub>,
    Extension(identity): Extension<Identity>,
    Path(id): Path<String>,
) -> Result<Json<Value>, ApiError> {
    let one = hub.subscribers().find(&id).cloned().ok_or_else(|| ApiError::not_found("subscriber"))?;
    Ok(Json(describe(&one, &preferences(&hub, &identity).await?)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DryRun {
    events: Vec<EventDraft>,
}

/// How some events would read. Nothing is stored and nobody is told.
pub(super) async fn test(
    State(hub): State<Hub>,
    Path(id): Path<String>,
    Keyed { once, body }: Keyed,
) -> Result<Json<Value>, ApiError> {
    let one = hub.subscribers().find(&id).cloned().ok_or_else(|| ApiError::not_found("subscriber"))?;
    let run: DryRun = serde_json::from_slice(&body).map_err(|error| ApiError::body(&error))?;
    if !(1..=SAMPLES_MAX).contains(&run.events.len()) {
        let message = format!("has {} events; 1 to {SAMPLES_MAX} are allowed", run.events.len());
        return Err(ApiError::invalid("events", message));
    }
    let admit = |mut draft: EventDraft| {
        draft.id = None;
        draft.admit(clock::now(), &mut Ids::seeded(0)).map(Arc::new)
    };
    let events: Vec<Arc<Event>> = run.events.into_iter().map(admit).collect::<Result<_, _>>()?;
    let document = one
        .dry_run(&events, &Boundary::from_seed(0))
        .map_err(|problem| ApiError::invalid("template", format!("the template fails: {problem}")))?;
    let content = match once {
        Some(once) => hub.store.answer_once(once, document.to_toon()).await?,
        None => document.to_toon(),
    };
    Ok(Json(json!({ "subscriber": id, "content": content })))
}

async fn preferences(hub: &Hub, identity: &Identity) -> Result<Preferences, ApiError> {
    let Some(user) = identity.caller.user_id.clone() else { return Ok(Preferences::default()) };
    let settings = hub.store.settings(user).await?;
    let known = settings.disabled_subscribers.iter().map(String::as_str);
    let known = known.filter(|id| hub.subscribers().find(id).is_some_and(|one| !one.output.core));
    Ok(Preferences::disabling(known, &hub.subscribers()).unwrap_or_default())
}

fn describe(one: &Subscriber, preferences: &Preferences) -> Value {
    let types: Vec<String> = one.types.iter().map(ToString::to_string).collect();
    let point = (one.output.audience != Audience::User).then_some(one.output.inject_at);
    json!({
        "id": one.id.as_str(), "name": one.name, "description": one.description, "version": one.version,
        "types": types, "severity_filter": one.severity_filter, "priority": one.output.priority, "inject_at": point,
        "window_ms": one.batching.window_ms, "max_size": one.batching.max_size,
        "dedupe_window_ms": one.batching.dedupe_window_ms, "activation": one.output.activation,
        "audience": one.output.audience, "core": one.output.core,
        "enabled": preferences.state_of(one) == SubscriberState::Active,
    })
}
