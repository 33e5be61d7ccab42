//! `GET /v1/statistics`: what the hub did, per minute.

use axum::Json;
use axum::extract::State;
use bellwire_core::Time;
use bellwire_core::verdict::VerdictKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::field::Rfc3339Time;
use super::query::Query;
use super::{ApiError, Hub};
use crate::statistics::{MINUTES_MAX, Minute, OUTCOMES, Queues};

/// How many minutes are answered by default.
const MINUTES_DEFAULT: usize = 60;

/// The query of `GET /v1/statistics`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct StatisticsQuery {
    /// How many minutes, 1 to 1440, the current one included. Default: 60.
    #[schemars(with = "Option<u16>", range(min = 1, max = MINUTES_MAX))]
    minutes: Option<String>,
}

/// What the hub did, one value per minute in each list, oldest first; the last minute is not over. The hub keeps 24 hours in
/// memory and begins anew when it starts, so that the lists can be shorter than asked for.
#[derive(Serialize, JsonSchema)]
pub(super) struct StatisticsBody {
    /// Since when the hub counts: its start.
    since: Rfc3339Time,
    /// The beginning of the first minute.
    start: Rfc3339Time,
    /// The length of a step: 60 seconds.
    step_seconds: u32,
    /// Stored events.
    events: Vec<u64>,
    /// Verdicts by kind.
    verdicts: VerdictSeries,
    /// Answered injections, without repeated ones.
    injections: Vec<u64>,
    /// Items shown to agents.
    injected_items: Vec<u64>,
    /// The estimated tokens of these items.
    injected_tokens: Vec<u64>,
    /// The estimated tokens that merging repeats has saved, against one element for each event.
    saved_tokens: Vec<u64>,
    /// How long injections took in the hub, in milliseconds; exact to a quarter. Null without injections.
    injection_ms: LatencySeries,
    /// Notifications that waited for agents. Null where the hub did not look.
    pending: Vec<Option<u64>>,
    /// The age of the oldest of them.
    oldest_pending_seconds: Vec<Option<u64>>,
    /// For how long the oldest due delivery has waited.
    oldest_delivery_seconds: Vec<Option<u64>>,
    /// Deliveries that ended, by outcome.
    deliveries: OutcomeSeries,
}

/// Counts by verdict.
#[derive(Serialize, JsonSchema)]
struct VerdictSeries {
    queued: Vec<u64>,
    held: Vec<u64>,
    duplicate: Vec<u64>,
    filtered: Vec<u64>,
    suppressed: Vec<u64>,
}

/// The median and the 99th percentile.
#[derive(Serialize, JsonSchema)]
struct LatencySeries {
    p50: Vec<Option<f64>>,
    p99: Vec<Option<f64>>,
}

/// Counts by outcome of a delivery.
#[derive(Serialize, JsonSchema)]
struct OutcomeSeries {
    sent: Vec<u64>,
    failed: Vec<u64>,
    unknown: Vec<u64>,
    skipped: Vec<u64>,
    cancelled: Vec<u64>,
}

/// Returns the last minutes.
pub(super) async fn get(
    State(hub): State<Hub>,
    Query(query): Query<StatisticsQuery>,
) -> Result<Json<StatisticsBody>, ApiError> {
    let minutes = match query.minutes.as_deref().map(str::parse::<usize>) {
        None => MINUTES_DEFAULT,
        Some(Ok(minutes)) if (1..=MINUTES_MAX).contains(&minutes) => minutes,
        Some(_) => return Err(ApiError::invalid("minutes", format!("must be a whole number from 1 to {MINUTES_MAX}"))),
    };
    look(&hub).await?;
    let series = hub.statistics.series(minutes);
    let of = |value: &dyn Fn(&Minute) -> u64| series.minutes.iter().map(value).collect::<Vec<u64>>();
    let verdict = |kind: VerdictKind| {
        let at = VerdictKind::ALL.iter().position(|one| *one == kind).unwrap_or_default();
        of(&|minute| minute.verdicts[at])
    };
    let outcome = |at: usize| of(&|minute| minute.deliveries[at]);
    let quantile = |part: f64| series.minutes.iter().map(|minute| minute.latencies.quantile(part)).collect();
    let queue = |value: fn(&Queues) -> u64| series.minutes.iter().map(|one| one.queues.as_ref().map(value)).collect();
    let [sent, failed, unknown, skipped, cancelled] = std::array::from_fn::<_, { OUTCOMES.len() }, _>(outcome);
    Ok(Json(StatisticsBody {
        since: Rfc3339Time(series.since),
        start: Rfc3339Time(series.start),
        step_seconds: 60,
        events: of(&|minute| minute.events),
        verdicts: VerdictSeries {
            queued: verdict(VerdictKind::Queued),
            held: verdict(VerdictKind::Held),
            duplicate: verdict(VerdictKind::Duplicate),
            filtered: verdict(VerdictKind::Filtered),
            suppressed: verdict(VerdictKind::Suppressed),
        },
        injections: of(&|minute| minute.injections),
        injected_items: of(&|minute| minute.items),
        injected_tokens: of(&|minute| minute.tokens),
        saved_tokens: of(&|minute| minute.saved_tokens),
        injection_ms: LatencySeries { p50: quantile(0.5), p99: quantile(0.99) },
        pending: queue(|queues| queues.pending),
        oldest_pending_seconds: queue(|queues| queues.oldest_pending_seconds),
        oldest_delivery_seconds: queue(|queues| queues.oldest_delivery_seconds),
        deliveries: OutcomeSeries { sent, failed, unknown, skipped, cancelled },
    }))
}

/// Notes what waits now, for the plots of queues. It reads a few rows, however many wait.
pub(crate) async fn look(hub: &Hub) -> Result<(), ApiError> {
    let ((pending, oldest), outbox) = (hub.store.waiting().await?, hub.store.outbox().await?);
    let now = hub.store.now();
    let seconds = |since: Option<Time>| since.map_or(0, |since| now.millis_since(since) / 1000);
    hub.statistics.looked(Queues {
        pending: pending as u64,
        oldest_pending_seconds: seconds(oldest),
        oldest_delivery_seconds: seconds(outbox.iter().map(|waiting| waiting.oldest).min()),
    });
    Ok(())
}
