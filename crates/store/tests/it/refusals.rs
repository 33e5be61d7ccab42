//! The hourly limits with and without a refusal cache: the rows decide how many are admitted, whatever the cache does.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::Duration;

use bellwire_core::person::MessageType;
use bellwire_core::{Randomness, Subscribers, Time};
use bellwire_store::{
    Allowance, Clock, ErrorKind, IdempotencyKey, InboxQuery, InboxState, LocalRefusalCache, NoRefusalCache,
    NotificationContent, NotificationDraft, PeopleRules, Quota, RedisRefusalCache, RefusalCache, SendResult,
    SqliteStore, Store, StoreOptions,
};
use serde_json::json;
use tokio::time::timeout;

use crate::backends::{Backend, START};
use crate::notify::{draft, message, toast};
use crate::redis_server::RedisServer;

const HOUR_MS: i64 = 3_600_000;
/// Longer than anything here takes on a machine that is busy.
const LONG: Duration = Duration::from_secs(20);
/// What a hub waits for Redis, and more than that: here it is only to be told from never.
const SHORT: Duration = Duration::from_millis(20);

/// A store on SQLite, how many commands its writer was asked, and its own clock, which begins with the real time because
/// Redis has a clock too.
struct Limited {
    store: Arc<dyn Store>,
    commands: Arc<AtomicUsize>,
    clock: Arc<AtomicI64>,
    folder: tempfile::TempDir,
}

impl Limited {
    async fn open(rules: PeopleRules, refusals: Arc<dyn RefusalCache>) -> Self {
        let real = std::time::UNIX_EPOCH.elapsed().unwrap().as_millis();
        let clock = Arc::new(AtomicI64::new(i64::try_from(real).unwrap()));
        Self::open_in(tempfile::tempdir().unwrap(), clock, rules, refusals).await
    }

    async fn open_in(
        folder: tempfile::TempDir,
        clock: Arc<AtomicI64>,
        people: PeopleRules,
        refusals: Arc<dyn RefusalCache>,
    ) -> Self {
        let commands = Arc::new(AtomicUsize::new(0));
        let (counted, read) = (commands.clone(), clock.clone());
        let opening = StoreOptions {
            subscribers: Arc::new(Subscribers::bundled()),
            randomness: Randomness::repeatable(1),
            clock: Clock::set_by(move || Time::from_millis(read.load(Ordering::SeqCst))),
            timers: false,
            observer: Some(Arc::new(move |report| {
                counted.fetch_add(report.commands, Ordering::SeqCst);
            })),
            people,
            sizes: bellwire_store::Sizes::SMALL,
        };
        let store =
            SqliteStore::open_with_refusal_cache(&folder.path().join("bellwire.db"), opening, refusals).await.unwrap();
        Self { store: Arc::new(store), commands, clock, folder }
    }

    async fn send(&self, draft: NotificationDraft) -> SendResult {
        self.store.send(draft).await.unwrap()
    }

    async fn fill(&self, count: usize) {
        for number in 0..count {
            assert!(
                matches!(self.send(message(&format!("{number}"))).await, SendResult::Stored { .. }),
                "{number} fits"
            );
        }
    }

    /// How many commands the writer was asked meanwhile.
    async fn asked(&self, work: impl Future<Output = ()>) -> usize {
        let before = self.commands.load(Ordering::SeqCst);
        work.await;
        self.commands.load(Ordering::SeqCst) - before
    }

    async fn rows(&self) -> usize {
        let query = InboxQuery { state: InboxState::All, item_type: None, before: None, limit: 1000 };
        self.store.inbox("ada".into(), query).await.unwrap().0.len()
    }
}

fn hourly(count: u64) -> PeopleRules {
    PeopleRules { notifications_per_hour: count, ..PeopleRules::default() }
}

fn named(key: &str, content: u8) -> NotificationDraft {
    let idempotency_key = IdempotencyKey {
        token_id: "t".into(),
        route: "send_notification".into(),
        key: key.into(),
        content: [content; 32],
    };
    NotificationDraft { idempotency_key: Some(idempotency_key), ..message("Buy milk") }
}

fn limited(retry_after_seconds: u64) -> SendResult {
    SendResult::Limited { retry_after_seconds }
}

/// A memory in this Redis that can be used.
async fn connected(redis: &RedisServer, scope: &str, patience: Duration) -> Arc<RedisRefusalCache> {
    let refusals = Arc::new(RedisRefusalCache::open(&redis.url(), scope, patience).unwrap());
    back(&refusals).await;
    refusals
}

/// Waits until Redis is used again.
async fn back(refusals: &RedisRefusalCache) {
    timeout(LONG, refusals.away().wait_for(Option::is_none)).await.expect("Redis is back").unwrap();
}

/// Waits until Redis was found missing.
async fn away(refusals: &RedisRefusalCache) {
    timeout(LONG, refusals.away().wait_for(Option::is_some)).await.expect("Redis is away").unwrap();
}

/// Waits until two more attempts to connect have failed: whatever was to be written before is set aside by then.
async fn failed_twice(refusals: &RedisRefusalCache) {
    let failed = refusals.status().failed;
    let twice = async {
        while refusals.status().failed < failed + 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(LONG, twice).await.expect("attempts fail while Redis is away");
}

/// Waits until a refusal can be recalled: it is written behind the answers.
async fn written(full: &Limited, refusals: &dyn RefusalCache) {
    let recalled = async {
        let before = refusals.status().recalled;
        while refusals.status().recalled == before {
            assert!(matches!(full.send(message("too much")).await, SendResult::Limited { .. }));
        }
    };
    timeout(LONG, recalled).await.expect("the refusal is remembered");
}

/// The duties of every memory: same answers as without one, and the database is left alone.
async fn a_refusal_is_recalled(refusals: Arc<dyn RefusalCache>, asks: bool) {
    let full = Limited::open(hourly(5), refusals.clone()).await;
    let first = full.send(named("first", 1)).await;
    full.fill(4).await;
    full.clock.fetch_add(60_000, Ordering::SeqCst);
    assert_eq!(full.send(message("too much")).await, limited(59 * 60));
    if !asks {
        written(&full, &*refusals).await;
    }
    full.clock.fetch_add(500, Ordering::SeqCst);
    let storm = full.asked(async {
        for _ in 0..50 {
            assert_eq!(full.send(message("too much")).await, limited(59 * 60), "seconds are rounded up");
            assert_eq!(full.send(named("unseen", 1)).await, limited(59 * 60));
        }
    });
    assert_eq!(storm.await, if asks { 100 } else { 0 });
    assert_eq!(full.send(named("first", 1)).await, first, "a repeat gets its first answer");
    let other = full.store.send(named("first", 2)).await.unwrap_err();
    assert_eq!(other.kind, ErrorKind::Conflict, "another call under its name");
    let strange = NotificationDraft { caller: bellwire_store::Caller::user("bob"), ..message("x") };
    assert_eq!(full.store.send(strange).await.unwrap_err().kind, ErrorKind::NotFound);
    assert!(matches!(
        full.send(toast(json!({"message": "Saved", "severity": "success"}))).await,
        SendResult::Stored { .. }
    ));
    full.clock.fetch_add(HOUR_MS - 60_500 - 1, Ordering::SeqCst);
    assert_eq!(full.send(message("a moment too early")).await, limited(1));
    full.clock.fetch_add(1, Ordering::SeqCst);
    full.fill(1).await;
}

#[tokio::test]
async fn without_a_memory_the_rows_refuse() {
    a_refusal_is_recalled(Arc::new(NoRefusalCache), true).await;
}

#[tokio::test]
async fn a_refusal_is_recalled_in_the_process() {
    a_refusal_is_recalled(Arc::new(LocalRefusalCache::default()), false).await;
}

#[tokio::test]
async fn a_refusal_is_recalled_from_redis() {
    let redis = RedisServer::start();
    a_refusal_is_recalled(connected(&redis, "hub", LONG).await, false).await;
}

#[tokio::test]
async fn an_erased_user_is_not_refused_for_earlier_notifications() {
    let redis = RedisServer::start();
    let memories: [Arc<dyn RefusalCache>; 2] =
        [Arc::new(LocalRefusalCache::default()), connected(&redis, "hub", LONG).await];
    for refusals in memories {
        let full = Limited::open(hourly(5), refusals.clone()).await;
        for _ in 0..3 {
            full.fill(5).await;
            written(&full, &*refusals).await;
            full.store.erase_user("ada".into()).await.unwrap();
        }
        full.fill(5).await;
    }
}

/// On one thread the question is on its way before Redis can be told to forget, so that it still answers what it knows.
#[tokio::test(flavor = "current_thread")]
async fn forgotten_refusals_are_hidden_before_redis_deletes_them() {
    let redis = RedisServer::start();
    let refusals = connected(&redis, "hub", LONG).await;
    let quota = Quota { user_id: "ada".into(), allowance: Allowance::Messages, per_hour: 5 };
    let until =
        Time::from_millis(i64::try_from(std::time::UNIX_EPOCH.elapsed().unwrap().as_millis()).unwrap() + 60_000);
    for _ in 0..10 {
        refusals.remember(&quota, until);
        let known = async {
            while refusals.until(&quota).await.is_none() {
                tokio::task::yield_now().await;
            }
        };
        timeout(LONG, known).await.expect("it is written");
        refusals.forget(std::slice::from_ref(&quota));
        assert_eq!(refusals.until(&quota).await, None);
    }
}

#[tokio::test]
async fn a_user_erased_while_redis_hangs_is_not_refused_later() {
    for known in [false, true] {
        let redis = RedisServer::start();
        let refusals = connected(&redis, "hub", SHORT).await;
        let full = Limited::open(hourly(5), refusals.clone()).await;
        full.fill(5).await;
        written(&full, &*refusals).await;
        redis.freeze();
        if known {
            // Nothing is sent to a Redis that is known to be away, so nothing waits for it that could still be read.
            while refusals.status().away.is_none() {
                assert!(matches!(full.send(message("too much")).await, SendResult::Limited { .. }));
            }
        }
        full.store.erase_user("ada".into()).await.unwrap();
        full.fill(1).await;
        away(&refusals).await;
        if known {
            failed_twice(&refusals).await;
        }
        redis.thaw();
        back(&refusals).await;
        full.fill(4).await;
        assert!(matches!(full.send(message("the sixth")).await, SendResult::Limited { .. }));
    }
}

#[tokio::test]
async fn a_refusal_under_another_cap_says_nothing() {
    let redis = RedisServer::start();
    let refusals = connected(&redis, "hub", LONG).await;
    let full = Limited::open(hourly(5), refusals.clone()).await;
    full.fill(5).await;
    written(&full, &*refusals).await;
    full.store.close().await.unwrap();
    let raised = Limited::open_in(full.folder, full.clock, hourly(6), refusals).await;
    raised.fill(1).await;
    assert!(matches!(raised.send(message("the seventh")).await, SendResult::Limited { .. }));
}

#[tokio::test]
async fn foreign_values_in_redis_are_ignored() {
    let redis = RedisServer::start();
    let refusals = connected(&redis, "hub", LONG).await;
    let full = Limited::open(hourly(5), refusals.clone()).await;
    let client = redis::Client::open(redis.url()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let key = "bellwire:hub:full:messages:5:ada";
    let far = full.clock.load(Ordering::SeqCst) + HOUR_MS + 1;
    for value in [far.to_string(), "nonsense".to_owned(), "-1".to_owned()] {
        redis::cmd("SET").arg(key).arg(value).query_async::<()>(&mut connection).await.unwrap();
        full.fill(1).await;
        back(&refusals).await;
    }
    let others = connected(&redis, "another hub", LONG).await;
    full.fill(2).await;
    written(&full, &*refusals).await;
    let elsewhere = Limited::open(hourly(5), others).await;
    elsewhere.fill(5).await;
}

/// What happens to Redis when half of the calls are answered.
#[derive(Copy, Clone)]
enum Blow {
    None,
    Killed,
    Frozen,
}

/// Two hundred calls at once, of which the hour allows some; then Redis comes back, and refuses again.
async fn two_hundred_calls(per_hour: u64, blow: Blow) {
    let mut redis = RedisServer::start();
    // Long enough for a busy machine, and well below what a call is given here: a question that was on its way when Redis
    // was killed may stay without an answer.
    let patience = if matches!(blow, Blow::Frozen) { SHORT } else { LONG / 10 };
    let refusals = connected(&redis, "hub", patience).await;
    let full = Limited::open(hourly(per_hour), refusals.clone()).await;
    let answered = Arc::new(AtomicUsize::new(0));
    let half = Arc::new(tokio::sync::Notify::new());
    let at_once = Arc::new(tokio::sync::Semaphore::new(40));
    let calls = (0..200).map(|number| {
        let (store, answered, half, at_once) = (full.store.clone(), answered.clone(), half.clone(), at_once.clone());
        tokio::spawn(async move {
            let _place = at_once.acquire().await.unwrap();
            let sent = timeout(LONG, store.send(message(&format!("{number}")))).await.expect("nobody waits for Redis");
            if answered.fetch_add(1, Ordering::SeqCst) == 100 {
                half.notify_one();
            }
            usize::from(matches!(sent.unwrap(), SendResult::Stored { .. }))
        })
    });
    let calls: Vec<_> = calls.collect();
    half.notified().await;
    match blow {
        Blow::None => {}
        Blow::Killed => redis.kill(),
        Blow::Frozen => redis.freeze(),
    }
    let mut admitted = 0;
    for call in calls {
        admitted += call.await.unwrap();
    }
    let allowed = usize::try_from(per_hour).unwrap();
    assert_eq!((admitted, full.rows().await), (allowed, allowed));
    match blow {
        Blow::None => {}
        Blow::Killed => {
            away(&refusals).await;
            redis = redis.replace();
        }
        Blow::Frozen => {
            away(&refusals).await;
            redis.thaw();
        }
    }
    back(&refusals).await;
    written(&full, &*refusals).await;
    let recalled = refusals.status().recalled;
    let asked = full.asked(async {
        while refusals.status().recalled < recalled + 50 {
            assert!(matches!(full.send(message("too much")).await, SendResult::Limited { .. }));
        }
    });
    // With so little patience a busy machine may miss a moment; whatever Redis did not answer, the rows did.
    let asked = timeout(LONG, asked).await.expect("Redis refuses again");
    assert!(asked == 0 || matches!(blow, Blow::Frozen), "the writer was asked {asked} times");
    assert_eq!(full.rows().await, allowed);
    drop(redis);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_hundred_calls_with_redis_are_admitted_exactly_as_often_as_the_hour_allows() {
    two_hundred_calls(5, Blow::None).await;
    two_hundred_calls(150, Blow::None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn redis_killed_half_way_changes_nothing_and_is_used_again_when_it_is_back() {
    two_hundred_calls(5, Blow::Killed).await;
    two_hundred_calls(150, Blow::Killed).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn redis_hanging_half_way_changes_nothing_and_is_used_again_when_it_goes_on() {
    two_hundred_calls(5, Blow::Frozen).await;
    two_hundred_calls(150, Blow::Frozen).await;
}

#[tokio::test]
async fn a_redis_that_is_not_there_costs_no_call_any_time() {
    let redis = RedisServer::start();
    let url = redis.url();
    drop(redis);
    let refusals = Arc::new(RedisRefusalCache::open(&url, "hub", LONG).unwrap());
    let full = Limited::open(hourly(5), refusals.clone()).await;
    full.fill(5).await;
    for _ in 0..20 {
        let sent = timeout(LONG, full.send(message("too much"))).await.expect("nobody waits for Redis");
        assert!(matches!(sent, SendResult::Limited { .. }));
    }
    assert!(refusals.status().away.is_some());
    assert_eq!(refusals.status().recalled, 0);
    assert!(RedisRefusalCache::probe(&url).await.is_err());
    assert!(
        RedisRefusalCache::open("http://secret@127.0.0.1", "hub", LONG)
            .is_err_and(|why| !why.message.contains("secret"))
    );
}

#[tokio::test]
async fn a_type_with_a_cap_of_its_own_is_counted_apart_and_survives_a_restart() {
    let rules = PeopleRules { notifications_per_hour: 2, warnings_per_hour: Some(1), ..PeopleRules::default() };
    for mut backend in [Backend::memory_with(rules.clone()).await, Backend::sqlite_with(rules).await] {
        let of = |kind| draft(NotificationContent::Message { kind, message: "news".into() });
        let expected = [
            (MessageType::Warning, true),
            (MessageType::Warning, false),
            (MessageType::Info, true),
            (MessageType::Reminder, true),
            (MessageType::Info, false),
            (MessageType::Reminder, false),
        ];
        for (kind, fits) in expected {
            let sent = backend.store().send(of(kind)).await.unwrap();
            assert_eq!(matches!(sent, SendResult::Stored { .. }), fits, "{kind:?}: {sent:?}");
        }
        if backend.is_durable() {
            backend.restart().await;
        }
        for kind in [MessageType::Info, MessageType::Reminder, MessageType::Warning] {
            assert_eq!(backend.store().send(of(kind)).await.unwrap(), limited(3600), "{kind:?}");
        }
        assert_eq!(backend.now(), Time::from_millis(START));
    }
}

/// Reminders that are due go through the cap of their type too.
#[tokio::test]
async fn a_due_reminder_waits_for_the_cap_of_reminders() {
    let rules = PeopleRules { reminders_per_hour: Some(1), ..PeopleRules::default() };
    let backend = Backend::sqlite_with(rules).await;
    for minute in 1..=2 {
        let reminder = bellwire_store::NewReminder {
            caller: bellwire_store::Caller::user("ada"),
            user_id: "ada".into(),
            origin: "butler".into(),
            conversation_id: None,
            correlation_id: None,
            message: format!("reminder {minute}"),
            at: Time::from_millis(START + minute * 60_000),
            idempotency_key: None,
        };
        backend.store().remind(reminder).await.unwrap();
    }
    backend.pass(2 * 60_000);
    backend.store().tick().await.unwrap();
    assert_eq!(crate::notify::inbox(&backend, InboxState::All).await.len(), 1, "both are due, one fits");
    crate::notify::told(&backend, message("news has room of its own")).await;
    backend.pass(HOUR_MS - 1);
    backend.store().tick().await.unwrap();
    assert_eq!(crate::notify::inbox(&backend, InboxState::All).await.len(), 2);
    backend.pass(1);
    backend.store().tick().await.unwrap();
    assert_eq!(crate::notify::inbox(&backend, InboxState::All).await.len(), 3);
}
