//! Timers fire when they are due, whatever happens to the wall clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use bellwire_core::InjectionPoint::AfterTool;
use bellwire_core::person::MessageType;
use bellwire_core::subscriber::SubscriberFile;
use bellwire_core::{Severity, Subscribers, Time};
use bellwire_store::{
    AttemptEnd, AttemptOutcome, AttemptStart, Caller, Claim, Clock, InboxQuery, InboxState, MemoryStore, NewReminder,
    NotificationContent, NotificationDraft, People, PeopleRules, SendResult, SqliteStore, Store, StoreOptions,
};
use serde_json::json;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _};
use tokio::time::Instant;

use crate::backends::{Backend, START, email, email_to, event, failure, with_email};

const HOUR_MS: i64 = 60 * 60 * 1000;
const DAY_MS: i64 = 24 * HOUR_MS;
/// How late a timer may be.
const LATE_MS: u64 = 100;

/// A store on the virtual clock of the test's runtime, and how far its wall clock is from that.
struct Virtual {
    store: MemoryStore,
    set: Arc<AtomicI64>,
}

impl Virtual {
    fn open() -> Self {
        let (set, start) = (Arc::new(AtomicI64::new(0)), Instant::now());
        let offset = set.clone();
        let wall = move || Time::from_millis(START + offset.load(Ordering::SeqCst)).plus(millis(start.elapsed()));
        let people = PeopleRules { notifications_per_hour: 1, ..with_email() };
        let clock = Clock::new(wall, move || start.elapsed());
        Self { store: MemoryStore::open(StoreOptions { timers: true, ..opening(clock, people) }), set }
    }

    async fn remind_in(&self, delay_ms: u64) {
        remind(&self.store, self.store.now().plus(delay_ms)).await;
    }

    /// Waits until this is so, and says how many milliseconds that took.
    async fn until<F: Future<Output = bool>>(&self, mut is_so: impl FnMut() -> F) -> u64 {
        let start = Instant::now();
        while !is_so().await {
            assert!(start.elapsed() < Duration::from_secs(100 * 60 * 60), "it never happened");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        millis(start.elapsed())
    }

    async fn pending(&self) -> usize {
        self.store.conversation(Caller::user("ada"), "chat".into()).await.unwrap().pending
    }

    async fn told(&self) -> usize {
        inbox(&self.store).await
    }
}

fn opening(clock: Clock, people: PeopleRules) -> StoreOptions {
    StoreOptions {
        subscribers: Arc::new(Subscribers::bundled()),
        randomness: bellwire_core::Randomness::repeatable(1),
        clock,
        timers: false,
        observer: None,
        people,
        sizes: bellwire_store::Sizes::SMALL,
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap()
}

async fn publish(store: &dyn Store, tool: &str) {
    let events = vec![bellwire_store::IncomingEvent::new(failure(tool), None)];
    let publish = bellwire_store::Publish { caller: Caller::user("ada"), events, idempotency_key: None };
    store.publish(publish).await.unwrap();
}

async fn remind(store: &dyn Store, at: Time) {
    let reminder = NewReminder {
        caller: Caller::user("ada"),
        user_id: "ada".into(),
        origin: "butler".into(),
        conversation_id: None,
        correlation_id: None,
        message: "the tea".into(),
        at,
        idempotency_key: None,
    };
    store.remind(reminder).await.unwrap();
}

async fn send(store: &dyn Store) -> SendResult {
    let draft = NotificationDraft {
        caller: Caller::user("ada"),
        user_id: "ada".into(),
        origin: "butler".into(),
        conversation_id: None,
        correlation_id: None,
        content: NotificationContent::Message { kind: MessageType::Info, message: "done".into() },
        idempotency_key: None,
    };
    store.send(draft).await.unwrap()
}

async fn inbox(store: &dyn Store) -> usize {
    let query = InboxQuery { state: InboxState::All, item_type: None, before: None, limit: 100 };
    store.inbox("ada".into(), query).await.unwrap().0.len()
}

#[tokio::test(start_paused = true)]
async fn a_window_closes_when_it_is_due_whenever_its_event_came() {
    let hub = Virtual::open();
    for (number, pause) in [0, 130, 370, 500, 990, 1_730].into_iter().enumerate() {
        tokio::time::sleep(Duration::from_millis(pause)).await;
        publish(&hub.store, &format!("tool {number}")).await;
        let before = number;
        let took = hub.until(|| async { hub.pending().await > before }).await;
        assert!((2_000..=2_000 + LATE_MS).contains(&took), "a window of 2000 ms closed after {took} ms");
    }
}

#[tokio::test(start_paused = true)]
async fn a_wall_clock_that_is_set_back_holds_up_neither_windows_nor_reminders_nor_people() {
    let hub = Virtual::open();
    assert!(matches!(send(&hub.store).await, SendResult::Stored { .. }));
    publish(&hub.store, "grep").await;
    hub.set.store(-3 * DAY_MS, Ordering::SeqCst);
    let took = hub.until(|| async { hub.pending().await == 1 }).await;
    assert!((2_000..=2_000 + LATE_MS).contains(&took), "the window closed after {took} ms");
    assert!(matches!(send(&hub.store).await, SendResult::Limited { .. }));
    tokio::time::sleep(Duration::from_secs(60 * 60)).await;
    assert!(matches!(send(&hub.store).await, SendResult::Stored { .. }), "the hour's allowance is free after an hour");
    tokio::time::sleep(Duration::from_secs(60 * 60)).await;
    hub.remind_in(10 * 60_000).await;
    let took = hub.until(|| async { hub.told().await == 3 }).await;
    assert!((600_000..=600_000 + LATE_MS).contains(&took), "the reminder came after {took} ms");
}

#[tokio::test(start_paused = true)]
async fn a_wall_clock_that_is_set_forward_makes_timers_due_at_once() {
    let hub = Virtual::open();
    hub.remind_in(30 * 60_000).await;
    tokio::time::sleep(Duration::from_millis(333)).await;
    hub.set.store(HOUR_MS, Ordering::SeqCst);
    let took = hub.until(|| async { hub.told().await == 1 }).await;
    assert!(took <= LATE_MS, "the reminder came after {took} ms");
}

#[tokio::test(start_paused = true)]
async fn the_outbox_is_told_when_a_lease_ends() {
    let hub = Virtual::open();
    let change = bellwire_core::person::SettingsChange { channels: email_to("ada@example.org"), ..Default::default() };
    hub.store.change_settings(bellwire_store::SettingsRequest { user_id: "ada".into(), change }).await.unwrap();
    assert_eq!(hub.store.claim(email(), 1).await.unwrap().len(), 1);
    let mut changes = hub.store.outbox_changes();
    changes.mark_unchanged();
    let start = Instant::now();
    changes.changed().await.unwrap();
    let took = millis(start.elapsed());
    let lease = PeopleRules::default().claim_ms;
    assert!((lease..=lease + LATE_MS).contains(&took), "a lease of {lease} ms ended after {took} ms");
    assert_eq!(hub.store.claim(email(), 1).await.unwrap().len(), 1, "it can be claimed again");
}

#[tokio::test(start_paused = true)]
async fn the_outbox_is_told_when_a_retry_is_due() {
    let hub = Virtual::open();
    let change = bellwire_core::person::SettingsChange { channels: email_to("ada@example.org"), ..Default::default() };
    hub.store.change_settings(bellwire_store::SettingsRequest { user_id: "ada".into(), change }).await.unwrap();
    let Claim { message_id, fence, .. } = hub.store.claim(email(), 1).await.unwrap().remove(0);
    assert!(hub.store.start(AttemptStart { message_id, fence, code: Some(vec![7]) }).await.unwrap());
    let outcome = AttemptOutcome::TryAgain { reason: "greylisted".into(), retry_after_ms: Some(90_000) };
    assert!(hub.store.finish(AttemptEnd { message_id, fence, outcome, jitter: 0 }).await.unwrap());
    let mut changes = hub.store.outbox_changes();
    changes.mark_unchanged();
    let (waiting, _) = hub.store.deliveries(None, None, None, 1).await.unwrap();
    let due = waiting[0].not_before.millis_since(hub.store.now());
    assert!(due >= 90_000, "the server asked for 90 s: {due} ms");
    let start = Instant::now();
    // An earlier ring is allowed, such as for the lease of the claim; there is nothing to claim then.
    while hub.store.claim(email(), 1).await.unwrap().is_empty() {
        changes.changed().await.unwrap();
    }
    let took = millis(start.elapsed());
    assert!((due..=due + LATE_MS).contains(&took), "a retry due in {due} ms was claimed after {took} ms");
}

#[tokio::test]
async fn in_real_time_a_timer_that_fires_does_not_delay_the_next_one() {
    // The later window, in another mailbox, is still open when the earlier one closes.
    let file = include_str!("../../../../subscribers/tool_failure.toml");
    let subscriber = |id: &str, kind: &str, window: &str| {
        let text = file.replace("\"tool_failure\"", id).replace("\"tool.call.failure\", \"tool.call.timeout\"", kind);
        let text = text.replace("window_ms = 2000", window);
        SubscriberFile { path: "quick.toml".into(), text }.parse(&|_| Ok("{{ count }}".into())).unwrap()
    };
    let early = subscriber("\"early\"", "\"tool.call.failure\"", "window_ms = 100");
    let late = subscriber("\"late\"", "\"tool.call.timeout\"", "window_ms = 300");
    let start = std::time::Instant::now();
    let wall = || Time::from_millis(std::time::UNIX_EPOCH.elapsed().unwrap().as_millis() as i64);
    let opening = StoreOptions {
        subscribers: Arc::new(Subscribers::new([early, late])),
        timers: true,
        ..opening(Clock::new(wall, move || start.elapsed()), PeopleRules::default())
    };
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&folder.path().join("bellwire.db"), opening).await.unwrap();
    for round in 1..=3 {
        let asked = std::time::Instant::now();
        publish(&store, &format!("tool {round}")).await;
        let timeout = event("tool.call.timeout", Severity::Error, json!({ "tool_name": round.to_string() }));
        let timeout = timeout.in_conversation("another");
        let events = vec![bellwire_store::IncomingEvent::new(timeout, None)];
        store
            .publish(bellwire_store::Publish { caller: Caller::user("ada"), events, idempotency_key: None })
            .await
            .unwrap();
        while store.conversation(Caller::user("ada"), "another".into()).await.unwrap().pending < round {
            assert!(asked.elapsed() < Duration::from_millis(1_000), "round {round}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert!(asked.elapsed() >= Duration::from_millis(300), "round {round}");
    }
}

#[tokio::test]
async fn after_a_restart_with_the_clock_set_back_rows_from_the_future_count_as_now() {
    let people = PeopleRules { notifications_per_hour: 1, ..with_email() };
    let mut backend = Backend::sqlite_with(people).await;
    backend.pass(3 * DAY_MS);
    let receipt = backend.publish(failure("grep")).await;
    backend.publish(failure("grep")).await;
    assert!(matches!(send(&*backend.store()).await, SendResult::Stored { .. }));
    remind(&*backend.store(), backend.now().plus(2 * HOUR_MS as u64)).await;
    backend.close().await;
    backend.pass(-3 * DAY_MS);
    backend.open().await;
    assert_eq!(backend.store().now(), backend.now(), "the wall clock is followed");
    // The window is due at once, for its row is from the future; the mailbox then counts its 2 s from now.
    backend.store().tick().await.unwrap();
    backend.pass(2_000);
    backend.store().tick().await.unwrap();
    let trace = backend.store().trace(Caller::user("ada"), receipt.event_id.to_string()).await.unwrap();
    assert_eq!(trace.notifications[0].state, "pending");
    assert!(backend.inject(AfterTool, "c1").await.block.contains("grep"));
    // A person is told again when an hour has passed, and reminded two hours after it was asked for.
    assert!(matches!(send(&*backend.store()).await, SendResult::Limited { .. }));
    backend.pass(HOUR_MS);
    assert!(matches!(send(&*backend.store()).await, SendResult::Stored { .. }));
    backend.pass(HOUR_MS);
    backend.store().tick().await.unwrap();
    assert_eq!(inbox(&*backend.store()).await, 3);
    // A dedupe window that opened in the future ends as long from now as it would have.
    backend.pass(HOUR_MS);
    let again = backend.publish(failure("grep")).await;
    assert_ne!(again.verdicts[0].verdict, "duplicate");
}

#[tokio::test]
async fn after_a_restart_with_the_clock_a_little_back_time_goes_on_from_where_it_was() {
    let mut backend = Backend::sqlite().await;
    backend.pass(60_000);
    backend.publish(failure("grep")).await;
    let before = backend.store().now();
    backend.close().await;
    backend.pass(-30_000);
    backend.open().await;
    assert_eq!(backend.store().now(), before);
}

#[tokio::test]
async fn news_that_waits_for_the_hourly_cap_is_told_after_the_clock_was_set_back() {
    let people = PeopleRules { notifications_per_hour: 1, ..PeopleRules::default() };
    let mut backend = Backend::sqlite_with(people).await;
    backend.pass(3 * DAY_MS);
    let asks = |question: &str| event("agent.input.needed", Severity::Info, json!({ "message": question }));
    backend.publish(asks("May I?")).await;
    // Later than the dedupe window, within which it would be a repeat of the first.
    backend.pass(61_000);
    backend.publish(asks("And now?")).await;
    backend.store().tick().await.unwrap();
    assert_eq!(inbox(&*backend.store()).await, 1, "the second waits");
    backend.close().await;
    backend.pass(-3 * DAY_MS);
    backend.open().await;
    for _ in 0..3 {
        backend.pass(HOUR_MS);
        backend.store().tick().await.unwrap();
    }
    assert_eq!(inbox(&*backend.store()).await, 2, "the second is told when the hour has room");
}

#[tokio::test]
async fn the_first_start_after_an_upgrade_notices_rows_from_the_future() {
    let mut backend = Backend::sqlite().await;
    backend.pass(3 * DAY_MS);
    backend.publish(failure("grep")).await;
    backend.close().await;
    // As a version left it that did not note the time.
    let mut file = SqliteConnectOptions::new().filename(backend.path()).connect().await.unwrap();
    let older = "DELETE FROM hub_time; DELETE FROM migrations WHERE name = '0021_time_of_older_rows'";
    sqlx::raw_sql(older).execute(&mut file).await.unwrap();
    file.close().await.unwrap();
    backend.pass(-3 * DAY_MS);
    backend.open().await;
    // The window is due at once, and the mailbox then counts its 2 s from now.
    backend.store().tick().await.unwrap();
    backend.pass(2_000);
    backend.store().tick().await.unwrap();
    assert!(backend.inject(AfterTool, "c1").await.block.contains("grep"));
}
