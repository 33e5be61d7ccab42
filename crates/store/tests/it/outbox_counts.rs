//! The writer counts the waiting deliveries of each channel, so that a report of their number reads no rows.

use bellwire_core::person::{ChannelName, QuietChange, SettingsChange};
use bellwire_store::{AttemptOutcome, Claim, Delivery, DeliveryState, RetentionCutoffs, WaitingDeliveries};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, Executor as _};

use crate::backends::{Backend, email};
use crate::channels::{change, end, pigeon, reach, set_target, start, stores};
use crate::notify::{message, told};

/// Asserts that the counters equal the waiting rows.
pub(crate) async fn check(backend: &Backend, after: &str) {
    let rows = of_state(backend, DeliveryState::Waiting).await;
    let mut expected: Vec<WaitingDeliveries> = Vec::new();
    for channel in [email(), pigeon()] {
        let due = rows.iter().filter(|row| row.channel == channel).map(|row| row.not_before);
        let (count, oldest) = (due.clone().count(), due.min());
        expected.extend(oldest.map(|oldest| WaitingDeliveries { channel, count, oldest }));
    }
    assert_eq!(backend.store().outbox().await.unwrap(), expected, "after {after}");
}

/// The same, and these numbers of emails and pigeons.
async fn counted(backend: &Backend, after: &str, expected: [usize; 2]) {
    check(backend, after).await;
    let outbox = backend.store().outbox().await.unwrap();
    let count = |channel| outbox.iter().find(|one| one.channel == channel).map_or(0, |one| one.count);
    assert_eq!([count(email()), count(pigeon())], expected, "after {after}");
}

async fn of_state(backend: &Backend, state: DeliveryState) -> Vec<Delivery> {
    let (rows, more) = backend.store().deliveries(None, Some(state), None, 2_000).await.unwrap();
    assert!(more.is_none());
    rows
}

async fn claim(backend: &Backend, channel: ChannelName) -> Claim {
    backend.store().claim(channel, 10).await.unwrap().remove(0)
}

async fn quiet(backend: &Backend, hours: Option<(&str, &str)>) {
    let part = |text: &str| Some(text.to_owned());
    let hours = hours.map(|(start, end)| QuietChange { start: part(start), end: part(end), timezone: part("UTC") });
    change(backend, "ada", SettingsChange { quiet_hours: Some(hours), ..SettingsChange::default() }).await;
}

/// Carries out what may happen to a delivery, and checks the counters after each step.
async fn every_operation(backend: &Backend) {
    let store = backend.store();
    reach(backend, "ada", email(), "ada@example.org").await;
    reach(backend, "ada", pigeon(), "roof of ada").await;
    counted(backend, "two confirmed targets", [0, 0]).await;
    for number in 0..5 {
        told(backend, message(&format!("news {number}"))).await;
    }
    counted(backend, "five created", [5, 5]).await;
    let planned = of_state(backend, DeliveryState::Waiting).await;
    let one = planned.iter().find(|row| row.channel == pigeon()).unwrap();
    store.cancel_delivery(None, one.id, None).await.unwrap();
    counted(backend, "one cancelled", [5, 4]).await;
    let first = claim(backend, email()).await;
    counted(backend, "a claim", [0, 4]).await;
    start(backend, &first).await;
    let later = AttemptOutcome::TryAgain { reason: "greylisted".into(), retry_after_ms: Some(60_000) };
    end(backend, &first, later).await;
    counted(backend, "an attempt that is retried", [5, 4]).await;
    backend.pass(3_600_000);
    let second = claim(backend, email()).await;
    start(backend, &second).await;
    end(backend, &second, AttemptOutcome::Refused { reason: "no".into() }).await;
    counted(backend, "a permanent failure", [0, 4]).await;
    let failed = of_state(backend, DeliveryState::Failed).await;
    store.retry_delivery(None, failed[0].id, None).await.unwrap();
    counted(backend, "a retry that a person asked for", [1, 4]).await;
    ended_leases(backend).await;
    quiet(backend, Some(("00:00", "23:59"))).await;
    told(backend, message("held")).await;
    counted(backend, "one held by quiet hours", [1, 1]).await;
    quiet(backend, None).await;
    counted(backend, "the end of quiet hours", [1, 1]).await;
}

/// A worker that dies before it starts, one that dies while it sends, one that is interrupted, and one that succeeds.
async fn ended_leases(backend: &Backend) {
    claim(backend, email()).await;
    backend.pass(3_600_000);
    let interrupted = claim(backend, email()).await;
    counted(backend, "a lease that ended, and the next claim", [0, 4]).await;
    start(backend, &interrupted).await;
    end(backend, &interrupted, AttemptOutcome::Interrupted).await;
    counted(backend, "an interrupted attempt", [1, 4]).await;
    let sent = claim(backend, email()).await;
    start(backend, &sent).await;
    end(backend, &sent, AttemptOutcome::Sent).await;
    counted(backend, "a sent message", [0, 4]).await;
    let lost = claim(backend, pigeon()).await;
    start(backend, &lost).await;
    backend.pass(3_600_000);
    assert!(backend.store().claim(pigeon(), 10).await.unwrap().is_empty());
    assert_eq!(of_state(backend, DeliveryState::Unknown).await.len(), 4);
    counted(backend, "an attempt of unknown outcome", [0, 0]).await;
}

#[tokio::test]
async fn the_counters_equal_the_rows_after_every_operation() {
    for mut backend in stores().await {
        every_operation(&backend).await;
        backend.pass(1);
        let deleted = backend.store().prune(RetentionCutoffs::before(backend.now()), 1_000).await.unwrap();
        assert!(deleted >= 10, "the ended ones: {deleted}");
        counted(&backend, "retention", [1, 1]).await;
        if backend.is_durable() {
            backend.restart().await;
            counted(&backend, "a restart", [1, 1]).await;
        }
        set_target(&backend, "bob", email(), "bob@example.org").await;
        counted(&backend, "another person's code", [2, 1]).await;
        backend.store().erase_user("ada".into()).await.unwrap();
        counted(&backend, "an erasure", [1, 0]).await;
    }
}

#[tokio::test]
async fn a_large_erasure_is_counted_step_by_step() {
    let [_, mut backend] = stores().await;
    waiting_rows(&backend).await;
    backend.restart().await;
    counted(&backend, "a start", [1_201, 0]).await;
    backend.store().erase_user("ada".into()).await.unwrap();
    counted(&backend, "an erasure in several steps", [1, 0]).await;
}

#[tokio::test]
async fn a_commit_that_fails_does_not_change_the_counters() {
    let [_, backend] = stores().await;
    reach(&backend, "ada", email(), "ada@example.org").await;
    told(&backend, message("stored")).await;
    let fault = "CREATE TRIGGER fault BEFORE INSERT ON deliveries BEGIN SELECT RAISE(ABORT, 'on purpose'); END";
    execute(&backend, fault).await;
    assert!(backend.store().send(message("refused")).await.is_err());
    assert!(backend.store().claim(email(), 10).await.is_err());
    counted(&backend, "failed commits", [1, 0]).await;
    execute(&backend, "DROP TRIGGER fault").await;
    claim(&backend, email()).await;
    counted(&backend, "a claim", [0, 0]).await;
}

#[tokio::test]
async fn a_report_counts_no_rows() {
    let [_, mut backend] = stores().await;
    waiting_rows(&backend).await;
    assert_eq!(backend.store().outbox().await.unwrap(), [], "these rows did not come through the writer");
    backend.restart().await;
    counted(&backend, "a restart, which counts once", [1_201, 0]).await;
}

/// One of Bob and more of Ada than one step of an erasure deletes, written beside the store, which does not count them.
async fn waiting_rows(backend: &Backend) {
    let rows = "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1201)
                INSERT INTO deliveries (id, user_id, channel, target, state, attempts, not_before, fence, created_at)
                SELECT randomblob(16), IIF(i = 1, 'bob', 'ada'), 'email', 'ada@example.org', 'waiting', 0, 7, 0, 7 FROM n";
    execute(backend, rows).await;
}

async fn execute(backend: &Backend, sql: &'static str) {
    let mut file = SqliteConnectOptions::new().filename(backend.path()).connect().await.unwrap();
    file.execute(sql).await.unwrap();
    file.close().await.unwrap();
}
