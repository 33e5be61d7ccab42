//! Prometheus metrics. No label names a person, a conversation or a token.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bellwire_core::Time;
use bellwire_core::verdict::VerdictKind;
use bellwire_store::{CommitReport, LedgerDecision, OriginSums, RefusalCacheStatus, WaitingDeliveries};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

use crate::channels::{ChannelStatus, Channels};

/// Every metric, and the registry that encodes them.
pub(crate) struct Metrics {
    registry: Registry,
    events_accepted: Counter,
    /// In the order of [`VerdictKind::ALL`]. An array, because looking up a label costs more than counting.
    verdicts: [Counter; 5],
    commits: Counter,
    commits_failed: Counter,
    damaged_rows: Counter,
    commit_commands: Histogram,
    commit_events: Histogram,
    commit_seconds: Histogram,
    wait_seconds: Histogram,
    injections: Counter,
    template_failures: Family<SubscriberLabels, Counter>,
    requests: Family<RequestLabels, Counter>,
    request_seconds: Family<RouteLabels, Histogram>,
    connections_failed: Counter,
    connections_closed_early: Counter,
    streams: Gauge,
    pending: Gauge,
    oldest_seconds: Gauge<f64, AtomicU64>,
    outbox: Family<ChannelLabels, Gauge>,
    outbox_late_seconds: Family<ChannelLabels, Gauge<f64, AtomicU64>>,
    channels_up: Family<ChannelLabels, Gauge>,
    refusals_recalled: Counter,
    refusals_failed: Counter,
    refusals_up: Gauge,
    notify_decisions: Family<DecisionLabels, Gauge>,
    notify_undelivered: Family<OriginLabels, Gauge>,
    ingest_calls: Family<IngestLabels, Counter>,
}

/// How many origins that never get through are named.
const NAMED_ORIGINS_MAX: usize = 100;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    method: &'static str,
    route: &'static str,
    status: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RouteLabels {
    method: &'static str,
    route: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SubscriberLabels {
    subscriber: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ChannelLabels {
    channel: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DecisionLabels {
    decision: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OriginLabels {
    origin: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct IngestLabels {
    source: String,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct VerdictLabels {
    verdict: &'static str,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let verdicts = Family::<VerdictLabels, Counter>::default();
        let by_kind = |kind: VerdictKind| verdicts.get_or_create_owned(&VerdictLabels { verdict: kind.as_str() });
        let mut metrics = Self {
            registry: Registry::with_prefix("bellwire"),
            events_accepted: Counter::default(),
            verdicts: VerdictKind::ALL.map(by_kind),
            commits: Counter::default(),
            commits_failed: Counter::default(),
            damaged_rows: Counter::default(),
            commit_commands: Histogram::new(exponential_buckets(1.0, 2.0, 9)),
            commit_events: Histogram::new(exponential_buckets(1.0, 2.0, 11)),
            commit_seconds: seconds(),
            wait_seconds: seconds(),
            injections: Counter::default(),
            template_failures: Family::default(),
            requests: Family::default(),
            request_seconds: Family::new_with_constructor(seconds),
            connections_failed: Counter::default(),
            connections_closed_early: Counter::default(),
            streams: Gauge::default(),
            pending: Gauge::default(),
            oldest_seconds: Gauge::default(),
            outbox: Family::default(),
            outbox_late_seconds: Family::default(),
            channels_up: Family::default(),
            refusals_recalled: Counter::default(),
            refusals_failed: Counter::default(),
            refusals_up: Gauge::default(),
            notify_decisions: Family::default(),
            notify_undelivered: Family::default(),
            ingest_calls: Family::default(),
        };
        metrics.register(verdicts);
        metrics
    }

    fn register(&mut self, verdicts: Family<VerdictLabels, Counter>) {
        let registry = &mut self.registry;
        registry.register("build", "The version that runs", Info::new([("version", env!("CARGO_PKG_VERSION"))]));
        registry.register("events_accepted", "Events taken in and committed", self.events_accepted.clone());
        registry.register("verdicts", "What events came to, by kind of verdict", verdicts);
        registry.register("commits", "Commits that succeeded", self.commits.clone());
        registry.register(
            "commits_failed",
            "Commits that failed; nothing of them happened",
            self.commits_failed.clone(),
        );
        let help = "Rows of the database that cannot be read and are left out; the log names them";
        registry.register("damaged_rows", help, self.damaged_rows.clone());
        registry.register("commit_commands", "Commands that one commit carried", self.commit_commands.clone());
        registry.register("commit_events", "Events that one commit carried", self.commit_events.clone());
        let took = self.commit_seconds.clone();
        registry.register_with_unit("commit_duration", "Deciding and writing one commit", Unit::Seconds, took);
        let waited = self.wait_seconds.clone();
        let help = "How long the oldest command of a commit waited for its turn";
        registry.register_with_unit("command_wait", help, Unit::Seconds, waited);
        registry.register("injections", "Injections answered anew", self.injections.clone());
        let help = "Notifications shown in the built-in form because the subscriber's template failed";
        registry.register("template_failures", help, self.template_failures.clone());
        registry.register("http_requests", "Answered requests", self.requests.clone());
        let durations = self.request_seconds.clone();
        registry.register_with_unit("http_request_duration", "Answering a request", Unit::Seconds, durations);
        let help = "Connections that could not be accepted, such as for lack of file descriptors";
        registry.register("connections_failed", help, self.connections_failed.clone());
        let help = "Connections that were closed while others waited for a place";
        registry.register("connections_closed_early", help, self.connections_closed_early.clone());
        registry.register("stream_clients", "Open streams", self.streams.clone());
        registry.register("notifications_pending", "Notifications that wait for agents", self.pending.clone());
        let oldest = self.oldest_seconds.clone();
        let help = "How long the oldest pending notification has waited";
        registry.register_with_unit("notifications_oldest", help, Unit::Seconds, oldest);
        registry.register("deliveries_waiting", "Deliveries to people that wait for their time", self.outbox.clone());
        let late = self.outbox_late_seconds.clone();
        let help = "How long the oldest delivery that is due has not been tried";
        registry.register_with_unit("deliveries_late", help, Unit::Seconds, late);
        let help = "Whether a configured channel works, as far as the hub knows: 1 or 0";
        registry.register("channel_up", help, self.channels_up.clone());
        let help = "Calls over an hourly limit that were refused from memory, or known by their idempotency key";
        registry.register("refusals_recalled", help, self.refusals_recalled.clone());
        let help = "How often the memory of refusals gave no answer, or none in time";
        registry.register("refusals_failed", help, self.refusals_failed.clone());
        registry.register("refusals_up", "Whether refusals can be recalled: 1 or 0", self.refusals_up.clone());
        let help = "Decisions on notify requests of the last seven days, by kind";
        registry.register("notify_decisions", help, self.notify_decisions.clone());
        let help = "Origins that tried to notify in the last seven days and never got through, with their attempts";
        registry.register("notify_undelivered", help, self.notify_undelivered.clone());
        let help = "Calls of configured sources of webhooks, by outcome";
        registry.register("ingest_calls", help, self.ingest_calls.clone());
    }

    /// Records one commit of the store.
    pub(crate) fn committed(&self, report: &CommitReport) {
        self.damaged_rows.inc_by(report.damaged as u64);
        if report.failed.is_some() {
            self.commits_failed.inc();
            return;
        }
        for failed in &report.template_failures {
            // Every label value stays in memory, so removed subscribers share one. It is no valid id.
            let subscriber = if failed.is_loaded { &*failed.subscriber } else { "(removed)" }.to_owned();
            self.template_failures.get_or_create(&SubscriberLabels { subscriber }).inc();
        }
        // A writer step without commands and without due timers is no commit.
        if report.commands == 0 && report.events + report.notifications == 0 {
            return;
        }
        self.commits.inc();
        self.commit_commands.observe(report.commands as f64);
        self.commit_events.observe(report.events as f64);
        self.commit_seconds.observe(report.took.as_secs_f64());
        self.wait_seconds.observe(report.waited.as_secs_f64());
        self.events_accepted.inc_by(report.events as u64);
        self.injections.inc_by(report.injections as u64);
        for (kind, count) in &report.verdicts {
            let at = VerdictKind::ALL.iter().position(|one| one == kind);
            at.map(|at| self.verdicts[at].inc_by(*count as u64));
        }
    }

    /// Records a request under its route's pattern, such as `/v1/events/{id}`.
    pub(crate) fn answered(&self, method: &'static str, route: &'static str, status: u16, took: Duration) {
        self.requests.get_or_create(&RequestLabels { method, route, status }).inc();
        self.request_seconds.get_or_create(&RouteLabels { method, route }).observe(took.as_secs_f64());
    }

    /// Counts a call of a configured source of webhooks.
    pub(crate) fn ingested(&self, source: &str, outcome: &'static str) {
        self.ingest_calls.get_or_create(&IngestLabels { source: source.to_owned(), outcome }).inc();
    }

    /// Counts a connection that could not be accepted.
    pub(crate) fn connection_failed(&self) {
        self.connections_failed.inc();
    }

    /// How many connections could not be accepted.
    pub(crate) fn connections_failed(&self) -> u64 {
        self.connections_failed.get()
    }

    /// Counts an idle connection that was closed for a new one.
    pub(crate) fn connection_closed_early(&self) {
        self.connections_closed_early.inc();
    }

    /// Counts a stream for as long as the guard lives.
    pub(crate) fn stream(self: &Arc<Self>) -> StreamGuard {
        self.streams.inc();
        StreamGuard(self.clone())
    }

    /// Sets the metrics of the configured channels, and of others that deliveries still wait on.
    pub(crate) fn set_channels(&self, channels: &Channels, outbox: &[WaitingDeliveries], now: Time) {
        self.outbox.clear();
        self.outbox_late_seconds.clear();
        self.channels_up.clear();
        for channel in channels.configured() {
            let labels = ChannelLabels { channel: channel.name().to_string() };
            self.outbox.get_or_create(&labels).set(0);
            self.outbox_late_seconds.get_or_create(&labels).set(0.0);
            self.channels_up.get_or_create(&labels).set(i64::from(channel.status() == ChannelStatus::Ready));
        }
        for waiting in outbox {
            let labels = ChannelLabels { channel: waiting.channel.to_string() };
            self.outbox.get_or_create(&labels).set(i64::try_from(waiting.count).unwrap_or(i64::MAX));
            let late = now.millis_since(waiting.oldest) as f64 / 1000.0;
            self.outbox_late_seconds.get_or_create(&labels).set(late);
        }
    }

    /// Sets the metrics of the ledger. Only origins that never get through are named.
    pub(crate) fn set_ledger(&self, sums: &[OriginSums]) {
        let gauge = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        for decision in LedgerDecision::ALL {
            let count = sums.iter().map(|one| one.count(decision)).sum();
            self.notify_decisions.get_or_create(&DecisionLabels { decision: decision.as_str() }).set(gauge(count));
        }
        self.notify_undelivered.clear();
        for one in sums.iter().filter(|one| one.never_gets_through()).take(NAMED_ORIGINS_MAX) {
            let labels = OriginLabels { origin: one.origin.clone() };
            self.notify_undelivered.get_or_create(&labels).set(gauge(one.undelivered()));
        }
    }

    /// The metrics in the text format of Prometheus. `(count, oldest)` of pending notifications.
    pub(crate) fn write(
        &self,
        (pending, oldest): (usize, Option<Time>),
        refusals: &RefusalCacheStatus,
        now: Time,
    ) -> String {
        self.refusals_recalled.inner().store(refusals.recalled, Ordering::Relaxed);
        self.refusals_failed.inner().store(refusals.failed, Ordering::Relaxed);
        self.refusals_up.set(i64::from(refusals.away.is_none()));
        self.pending.set(i64::try_from(pending).unwrap_or(i64::MAX));
        self.oldest_seconds.set(oldest.map_or(0.0, |oldest| now.millis_since(oldest) as f64 / 1000.0));
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry).expect("writing to a string cannot fail");
        text
    }
}

/// An open stream; dropping it lowers the count.
pub(crate) struct StreamGuard(Arc<Metrics>);

impl Drop for StreamGuard {
    fn drop(&mut self) {
        self.0.streams.dec();
    }
}

/// Buckets from 0.1 ms to about 6 s.
fn seconds() -> Histogram {
    Histogram::new(exponential_buckets(0.000_1, 2.5, 13))
}
