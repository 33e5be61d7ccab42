use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use bellwire_core::Time;
use schemars::JsonSchema;
use serde::Serialize;

use super::{ApiError, Hub};

/// A delivery that has been due for longer than this makes the hub `degraded`, in milliseconds.
const OUTBOX_LATE_MS: u64 = 15 * 60_000;

/// The response has no details because the endpoint needs no token; the log has them.
const REDIS_AWAY: &str = "redis is away: the database alone refuses what is over an hourly limit";

/// The health of the hub.
#[derive(Serialize, JsonSchema)]
pub(super) struct Health {
    /// `ok` if the process is alive, `ready` if the hub can accept events.
    #[schemars(extend("enum" = ["ok", "ready"]))]
    status: &'static str,
    /// The parts that do not work; the hub works without them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    degraded: Vec<String>,
}

/// Liveness: fails after an essential task has died.
pub(super) async fn live(State(hub): State<Hub>) -> Result<Json<Health>, ApiError> {
    check_essential_tasks(&hub)?;
    Ok(Json(Health { status: "ok", degraded: Vec::new() }))
}

/// Readiness: the hub can accept events, that is, the writer answers and a commit succeeds. Slow deliveries and a lost
/// Redis connection only appear in `degraded`.
pub(super) async fn ready(State(hub): State<Hub>) -> Result<Json<Health>, ApiError> {
    check_essential_tasks(&hub)?;
    hub.store.check().await.map_err(|error| match ApiError::from(error) {
        broken if broken.status == StatusCode::INTERNAL_SERVER_ERROR => {
            ApiError { status: StatusCode::SERVICE_UNAVAILABLE, ..broken }
        }
        other => other,
    })?;
    // A delivery that cannot be read delays mail, but the hub still accepts events.
    let slow = match hub.store.oldest_delivery().await {
        Ok(oldest_due) => oldest_due
            .filter(|_| hub.channels.configured().next().is_some())
            .and_then(|due| slow_mail(due, hub.store.now())),
        Err(error) => Some(format!("deliveries cannot be read: {error}")),
    };
    let redis = hub.refusals.status().away.map(|_| REDIS_AWAY.to_owned());
    Ok(Json(Health { status: "ready", degraded: slow.into_iter().chain(redis).collect() }))
}

fn check_essential_tasks(hub: &Hub) -> Result<(), ApiError> {
    // The response has no details because the endpoint needs no token; the log has them.
    let message = "an essential task of the hub has died; the hub stops";
    let failed = || ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "failed", message);
    hub.supervisor.failure().map_or(Ok(()), |_| Err(failed()))
}

/// The `degraded` entry for deliveries that have been due for too long.
fn slow_mail(oldest_due: Time, now: Time) -> Option<String> {
    let late = now.millis_since(oldest_due);
    let minutes = late / 60_000;
    (late > OUTBOX_LATE_MS).then(|| format!("mail is slow: a delivery has been due for {minutes} minutes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_delivery_is_reported_as_degraded() {
        let now = Time::from_millis(60 * 60_000);
        assert_eq!(slow_mail(now, now), None);
        assert_eq!(slow_mail(Time::from_millis(45 * 60_000), now), None);
        let slow = slow_mail(Time::from_millis(40 * 60_000), now);
        assert_eq!(slow.as_deref(), Some("mail is slow: a delivery has been due for 20 minutes"));
    }
}
