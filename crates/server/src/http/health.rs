use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use bellwire_core::Time;
use schemars::JsonSchema;
use serde::Serialize;

use super::{ApiError, Hub};
use crate::channels::{Channel, ChannelStatus};

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
    /// The channels to people; only in the answer of `/readyz`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    channels: Vec<ChannelHealth>,
}

/// The health of a channel.
#[derive(Serialize, JsonSchema)]
struct ChannelHealth {
    /// The name of the channel.
    name: String,
    /// `ready`, `failing`: the hub's log says why, or `off`: it is not configured.
    #[schemars(extend("enum" = ["ready", "failing", "off"]))]
    status: &'static str,
}

/// Liveness: fails after an essential task has died.
pub(super) async fn live(State(hub): State<Hub>) -> Result<Json<Health>, ApiError> {
    check_essential_tasks(&hub)?;
    Ok(Json(Health { status: "ok", degraded: Vec::new(), channels: Vec::new() }))
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
    let mut degraded = Vec::new();
    for channel in hub.channels.configured() {
        let (name, shown) = (channel.name(), channel.settings().display_name);
        if matches!(channel.status(), ChannelStatus::Failing { .. }) {
            degraded.push(format!("{shown} does not work; the log says why"));
        }
        // A delivery that cannot be read delays a channel, but the hub still accepts events.
        degraded.extend(match hub.store.oldest_delivery(name).await {
            Ok(oldest_due) => oldest_due.and_then(|due| slow(shown, due, hub.store.now())),
            Err(error) => Some(format!("deliveries by {shown} cannot be read: {error}")),
        });
    }
    degraded.extend(hub.refusals.status().away.map(|_| REDIS_AWAY.to_owned()));
    let health = |channel: &Arc<dyn Channel>| ChannelHealth {
        name: channel.name().to_string(),
        status: match channel.status() {
            ChannelStatus::Off { .. } => "off",
            ChannelStatus::Ready => "ready",
            ChannelStatus::Failing { .. } => "failing",
        },
    };
    Ok(Json(Health { status: "ready", degraded, channels: hub.channels.iter().map(health).collect() }))
}

fn check_essential_tasks(hub: &Hub) -> Result<(), ApiError> {
    // The response has no details because the endpoint needs no token; the log has them.
    let message = "an essential task of the hub has died; the hub stops";
    let failed = || ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "failed", message);
    hub.supervisor.failure().map_or(Ok(()), |_| Err(failed()))
}

/// The `degraded` entry for deliveries of a channel that have been due for too long.
fn slow(channel: &str, oldest_due: Time, now: Time) -> Option<String> {
    let late = now.millis_since(oldest_due);
    let minutes = late / 60_000;
    (late > OUTBOX_LATE_MS).then(|| format!("{channel} is slow: a delivery has been due for {minutes} minutes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_delivery_is_reported_as_degraded() {
        let now = Time::from_millis(60 * 60_000);
        assert_eq!(slow("Pigeon", now, now), None);
        assert_eq!(slow("Pigeon", Time::from_millis(45 * 60_000), now), None);
        let late = slow("Pigeon", Time::from_millis(40 * 60_000), now);
        assert_eq!(late.as_deref(), Some("Pigeon is slow: a delivery has been due for 20 minutes"));
    }
}
