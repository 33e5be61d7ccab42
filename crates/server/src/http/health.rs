use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use bellwire_core::Time;
use schemars::JsonSchema;
use serde::Serialize;

use super::{ApiError, Hub};
use crate::clock;

/// A delivery is tried as soon as it is due. One that has been due for longer is told.
const OUTBOX_LATE_MS: u64 = 15 * 60_000;

/// The reasons are in the log: anyone may read this.
const REDIS_AWAY: &str = "redis is away: the database alone refuses what is over an hourly limit";

/// How the hub is.
#[derive(Serialize, JsonSchema)]
pub(super) struct Health {
    /// `ok` for a process that lives, `ready` for a hub that can accept.
    #[schemars(extend("enum" = ["ok", "ready"]))]
    status: &'static str,
    /// What the hub works without.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    degraded: Vec<String>,
}

/// The process lives, and so does every task it cannot do without.
pub(super) async fn live(State(hub): State<Hub>) -> Result<Json<Health>, ApiError> {
    alive(&hub)?;
    Ok(Json(Health { status: "ok", degraded: Vec::new() }))
}

/// The hub can accept: the writer answers and the disk takes a commit. What only slows deliveries down, or is a
/// convenience, does not make it unready.
pub(super) async fn ready(State(hub): State<Hub>) -> Result<Json<Health>, ApiError> {
    alive(&hub)?;
    hub.store.check().await.map_err(|error| match ApiError::from(error) {
        broken if broken.status == StatusCode::INTERNAL_SERVER_ERROR => {
            ApiError { status: StatusCode::SERVICE_UNAVAILABLE, ..broken }
        }
        other => other,
    })?;
    let (_, oldest_due) = hub.store.outbox().await?;
    let slow = oldest_due.filter(|_| hub.mails).and_then(|due| slow_mail(due, clock::now()));
    let redis = hub.refusals.status().away.map(|_| REDIS_AWAY.to_owned());
    Ok(Json(Health { status: "ready", degraded: slow.into_iter().chain(redis).collect() }))
}

fn alive(hub: &Hub) -> Result<(), ApiError> {
    // The reason is in the log: anyone may read this.
    let message = "an essential task of the hub has died; the hub stops";
    let failed = || ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "failed", message);
    hub.supervisor.failure().map_or(Ok(()), |_| Err(failed()))
}

/// What is said where deliveries have been due for too long. It does not make a hub unready: it accepts all the same.
fn slow_mail(oldest_due: Time, now: Time) -> Option<String> {
    let late = now.millis_since(oldest_due);
    let minutes = late / 60_000;
    (late > OUTBOX_LATE_MS).then(|| format!("mail is slow: a delivery has been due for {minutes} minutes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mail_that_is_slow_is_told() {
        let now = Time::from_millis(60 * 60_000);
        assert_eq!(slow_mail(now, now), None);
        assert_eq!(slow_mail(Time::from_millis(45 * 60_000), now), None);
        let slow = slow_mail(Time::from_millis(40 * 60_000), now);
        assert_eq!(slow.as_deref(), Some("mail is slow: a delivery has been due for 20 minutes"));
    }
}
