//! The outbox with a simulated clock: quiet hours, crashes, two workers.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use bellwire_core::person::{ChannelChange, ChannelName, MessageType, QuietChange, SettingsChange};
use bellwire_core::{NotificationId, Randomness, Subscribers, Time};
use bellwire_server::channels::{Channels, NoSlot, OutboundContent, OutboundMessage};
use bellwire_server::deliver::Outbox;
use bellwire_store::{
    AttemptOutcome, Caller, ChannelRules, Clock, DeliveryState, MemoryStore, NotificationContent, NotificationDraft,
    PeopleRules, SendResult, SettingsRequest, SqliteStore, Store, StoreOptions,
};

use crate::scripted_channel::{email, paced, scripted, scripted_as};

/// A store with a simulated clock, and the messages that its outbox sends.
pub(crate) struct Post {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<AtomicI64>,
    sent: Arc<Mutex<Vec<Vec<String>>>>,
    codes: Arc<Mutex<Vec<String>>>,
    folder: Option<tempfile::TempDir>,
    per_hour: u64,
}

impl Post {
    pub(crate) async fn open(durable: bool, now: &str) -> Self {
        Self::open_with(durable, now, 1000).await
    }

    /// Opens it with an hourly limit of notifications per person.
    pub(crate) async fn open_with(durable: bool, now: &str, per_hour: u64) -> Self {
        let clock = Arc::new(AtomicI64::new(time(now).as_millis()));
        let folder = durable.then(|| tempfile::tempdir().unwrap());
        let store = Self::store(&clock, folder.as_ref(), per_hour).await;
        let post = Self { store, clock, sent: Arc::default(), codes: Arc::default(), folder, per_hour };
        post.mail_to("ada@example.org").await;
        post
    }

    async fn store(clock: &Arc<AtomicI64>, folder: Option<&tempfile::TempDir>, per_hour: u64) -> Arc<dyn Store> {
        let read = clock.clone();
        let people = PeopleRules { notifications_per_hour: per_hour, ..PeopleRules::default() };
        let people = people.with_channel(email(), ChannelRules { attempt_ms: 60_000, ..ChannelRules::new("email") });
        let opening = StoreOptions {
            subscribers: Arc::new(Subscribers::bundled()),
            randomness: Randomness::repeatable(read.load(Ordering::SeqCst).unsigned_abs()),
            clock: Clock::set_by(move || Time::from_millis(read.load(Ordering::SeqCst))),
            timers: false,
            observer: None,
            people,
            sizes: bellwire_store::Sizes::SMALL,
        };
        match folder {
            Some(folder) => Arc::new(SqliteStore::open(&folder.path().join("post.db"), opening).await.unwrap()),
            None => Arc::new(MemoryStore::open(opening)),
        }
    }

    /// Reopens the store from disk, as after a crash.
    pub(crate) async fn restart(&mut self) {
        self.store.close().await.unwrap();
        self.store = Self::store(&self.clock, self.folder.as_ref(), self.per_hour).await;
    }

    /// Ada sets an address and confirms it with the code sent there.
    pub(crate) async fn mail_to(&self, address: &str) {
        let change = ChannelChange { enabled: Some(true), target: Some(Some(address.to_owned())) };
        self.change(SettingsChange::of_channel(email(), change)).await;
        assert_eq!(self.outbox(AttemptOutcome::Sent).step().await, 1);
        let code = self.codes.lock().unwrap().pop().expect("a code was mailed");
        let hash = bellwire_server::auth::hash(&code);
        let settings = self.store.confirm_target("ada".into(), email(), hash, None).await.unwrap();
        assert_eq!(settings.usable_target("email"), Some(address));
    }

    pub(crate) async fn change(&self, change: SettingsChange) {
        self.store.change_settings(SettingsRequest { user_id: "ada".into(), change }).await.unwrap();
    }

    pub(crate) async fn quiet(&self, start: &str, end: &str, zone: &str) {
        let part = |text: &str| Some(text.to_owned());
        let hours = QuietChange { start: part(start), end: part(end), timezone: part(zone) };
        self.change(SettingsChange { quiet_hours: Some(Some(hours)), ..SettingsChange::default() }).await;
    }

    pub(crate) async fn tell(&self, message: &str) -> NotificationId {
        match self.try_to_tell(message).await {
            SendResult::Stored { id, .. } => id,
            limited @ SendResult::Limited { .. } => panic!("{limited:?}"),
        }
    }

    pub(crate) async fn try_to_tell(&self, message: &str) -> SendResult {
        let draft = NotificationDraft {
            caller: Caller::user("ada"),
            user_id: "ada".into(),
            origin: "butler".into(),
            conversation_id: None,
            correlation_id: None,
            content: NotificationContent::Message { kind: MessageType::Info, message: message.to_owned() },
            idempotency_key: None,
        };
        self.store.send(draft).await.unwrap()
    }

    pub(crate) fn set(&self, now: Time) {
        self.clock.store(now.as_millis(), Ordering::SeqCst);
    }

    pub(crate) fn outbox(&self, outcome: AttemptOutcome) -> Outbox {
        let (sent, codes) = (self.sent.clone(), self.codes.clone());
        let channels = scripted(move |message| {
            match message.content {
                OutboundContent::Code(code) => codes.lock().unwrap().push(code),
                _ => sent.lock().unwrap().push(texts(&message)),
            }
            let outcome = outcome.clone();
            Box::pin(async move { outcome })
        });
        Outbox::new(self.store.clone(), channels)
    }

    pub(crate) fn sent(&self) -> Vec<Vec<String>> {
        std::mem::take(&mut *self.sent.lock().unwrap())
    }

    pub(crate) async fn states(&self) -> Vec<DeliveryState> {
        let all = self.store.deliveries(None, None, None, 100).await.unwrap().0;
        all.iter().filter(|one| one.content.notification_id().is_some()).map(|one| one.state).collect()
    }
}

fn texts(message: &OutboundMessage) -> Vec<String> {
    match &message.content {
        OutboundContent::Notifications(items) => items.iter().map(|item| item.message.clone()).collect(),
        other => panic!("no notifications: {other:?}"),
    }
}

pub(crate) fn time(text: &str) -> Time {
    text.parse().unwrap()
}

/// Changes to and from daylight saving time: (time zone, start, end, a time in the window, the instant of its end).
const VECTORS: [(&str, &str, &str, &str, &str); 9] = [
    ("Europe/Berlin", "22:00", "07:00", "2026-03-28T21:30:00Z", "2026-03-29T05:00:00Z"),
    ("Europe/Berlin", "22:00", "07:00", "2026-10-24T20:30:00Z", "2026-10-25T06:00:00Z"),
    ("Europe/Berlin", "22:00", "02:30", "2026-03-28T21:30:00Z", "2026-03-29T01:30:00Z"),
    ("Europe/Berlin", "22:00", "02:30", "2026-10-24T20:30:00Z", "2026-10-25T00:30:00Z"),
    ("America/New_York", "22:00", "02:30", "2026-03-08T03:30:00Z", "2026-03-08T07:30:00Z"),
    ("America/New_York", "22:00", "01:30", "2026-11-01T02:30:00Z", "2026-11-01T05:30:00Z"),
    ("Australia/Lord_Howe", "22:00", "02:15", "2026-10-03T12:00:00Z", "2026-10-03T15:45:00Z"),
    ("America/Santiago", "20:00", "00:00", "2026-09-06T00:30:00Z", "2026-09-06T04:00:00Z"),
    ("America/Santiago", "20:00", "23:30", "2026-04-04T23:30:00Z", "2026-04-05T02:30:00Z"),
];

#[tokio::test]
async fn quiet_hours_end_where_the_clocks_say_they_do() {
    for durable in [false, true] {
        for (zone, start, end, within, until) in VECTORS {
            let post = Post::open(durable, within).await;
            post.quiet(start, end, zone).await;
            post.tell("news").await;
            let outbox = post.outbox(AttemptOutcome::Sent);
            assert_eq!(outbox.step().await, 0, "{zone} {within}: it is quiet");
            post.set(Time::from_millis(time(until).as_millis() - 1));
            assert_eq!(outbox.step().await, 0, "{zone} {until}: it is quiet to the last moment");
            post.set(time(until));
            assert_eq!(outbox.step().await, 1, "{zone} {until}: it is over");
            assert_eq!(post.sent(), [["news"]]);
        }
    }
}

#[tokio::test]
async fn two_workers_send_each_message_exactly_once() {
    for durable in [false, true] {
        let post = Post::open(durable, "2026-01-03T12:00:00Z").await;
        let (one, other) = (post.outbox(AttemptOutcome::Sent), post.outbox(AttemptOutcome::Sent));
        for number in 0..40 {
            post.tell(&format!("{number:02}")).await;
            tokio::join!(one.step(), other.step());
        }
        while one.step().await + other.step().await > 0 {}
        let mut sent: Vec<String> = post.sent().concat();
        sent.sort();
        assert_eq!(sent, (0..40).map(|number| format!("{number:02}")).collect::<Vec<_>>());
        assert!(post.states().await.iter().all(|state| *state == DeliveryState::Sent));
    }
}

#[tokio::test]
async fn immediate_mail_is_durable_and_survives_a_crash_before_its_attempt() {
    let post = Post::open(true, "2026-01-03T12:00:00Z").await;
    post.tell("news").await;
    // A worker claims the delivery and dies: its lease expires and another worker sends it.
    post.store.claim(email(), 1).await.unwrap();
    let outbox = post.outbox(AttemptOutcome::Sent);
    assert_eq!(outbox.step().await, 0, "it is claimed");
    post.clock.fetch_add(60_000, Ordering::SeqCst);
    assert_eq!(outbox.step().await, 1);
    assert_eq!(post.sent(), [["news"]]);
}

#[tokio::test]
async fn a_worker_that_dies_while_sending_leaves_an_unknown_outcome_and_no_second_mail() {
    let post = Post::open(true, "2026-01-03T12:00:00Z").await;
    post.tell("news").await;
    let (sent, asked) = (post.sent.clone(), Arc::new(tokio::sync::Notify::new()));
    let begun = asked.clone();
    let hang = scripted(move |message| {
        sent.lock().unwrap().push(texts(&message));
        begun.notify_one();
        Box::pin(std::future::pending())
    });
    let dying = Outbox::new(post.store.clone(), hang);
    let worker = tokio::spawn(async move { dying.step().await });
    asked.notified().await;
    worker.abort();
    assert!(worker.await.unwrap_err().is_cancelled());
    let outbox = post.outbox(AttemptOutcome::Sent);
    post.clock.fetch_add(60_000, Ordering::SeqCst);
    assert_eq!(outbox.step().await, 0);
    assert_eq!(post.states().await, [DeliveryState::Unknown]);
    assert_eq!(post.sent(), [["news"]], "it was handed over once");
}

#[tokio::test]
async fn refused_retried_and_unanswered_deliveries_end_in_the_right_state() {
    let reason = || "because".to_owned();
    let ends = [
        (AttemptOutcome::Refused { reason: reason() }, DeliveryState::Failed),
        (AttemptOutcome::TryAgain { reason: reason(), retry_after_ms: None }, DeliveryState::Waiting),
        (AttemptOutcome::Unknown { reason: reason() }, DeliveryState::Unknown),
    ];
    for (outcome, state) in ends {
        let post = Post::open(false, "2026-01-03T12:00:00Z").await;
        post.tell("news").await;
        assert_eq!(post.outbox(outcome).step().await, 1);
        assert_eq!(post.states().await, [state]);
    }
}

#[tokio::test]
async fn a_channel_that_hangs_does_not_delay_another() {
    let pigeon = ChannelName::parse("pigeon").unwrap();
    let people = PeopleRules::default()
        .with_channel(email(), ChannelRules::new("email"))
        .with_channel(pigeon.clone(), ChannelRules::new("pigeon"));
    let opening = StoreOptions {
        subscribers: Arc::new(Subscribers::bundled()),
        randomness: Randomness::repeatable(1),
        clock: bellwire_server::clock::system(),
        timers: true,
        observer: None,
        people,
        sizes: bellwire_store::Sizes::SMALL,
    };
    let store: Arc<dyn Store> = Arc::new(MemoryStore::open(opening));
    let (arrived, mut arrivals) = tokio::sync::mpsc::unbounded_channel();
    let hanging = scripted_as(email(), |_| Box::pin(std::future::pending()));
    let working = scripted_as(pigeon.clone(), move |message| {
        arrived.send(message.target).unwrap();
        Box::pin(async { AttemptOutcome::Sent })
    });
    let (_stop, stopping) = tokio::sync::watch::channel(false);
    let outbox = Outbox::new(store.clone(), Channels::new(vec![hanging, working]).unwrap());
    let worker = tokio::spawn(outbox.run(stopping));
    // Every code that is mailed hangs, many more than are sent at once.
    for number in 0..20 {
        let to = |target: String| ChannelChange { enabled: Some(true), target: Some(Some(target)) };
        let mail = SettingsChange::of_channel(email(), to(format!("{number}@example.org")));
        let flight = SettingsChange::of_channel(pigeon.clone(), to(format!("roof {number}")));
        for change in [mail, flight] {
            store.change_settings(SettingsRequest { user_id: number.to_string(), change }).await.unwrap();
        }
    }
    let mut roofs = Vec::new();
    let all = async {
        while roofs.len() < 20 {
            roofs.push(arrivals.recv().await.unwrap());
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(20), all).await.expect("the pigeons fly");
    roofs.sort();
    roofs.dedup();
    assert_eq!(roofs.len(), 20);
    worker.abort();
}

#[tokio::test]
async fn a_worker_that_is_killed_while_a_message_waits_for_its_slot_has_sent_nothing() {
    for durable in [false, true] {
        let mut post = Post::open(durable, "2026-01-03T12:00:00Z").await;
        post.tell("news").await;
        let never = Outbox::new(post.store.clone(), paced(|| Box::pin(std::future::pending())));
        let mut working = Box::pin(never.step());
        let mut changes = post.store.outbox_changes();
        // Runs until the message is claimed and waits.
        while post.states().await != [DeliveryState::Claimed] {
            tokio::select! {
                _ = &mut working => panic!("it waits for its slot"),
                rung = changes.changed() => rung.unwrap(),
            }
        }
        drop(working);
        if durable {
            post.restart().await;
        }
        post.set(time("2026-01-03T12:02:00Z"));
        assert_eq!(post.outbox(AttemptOutcome::Sent).step().await, 1);
        assert_eq!((post.sent(), post.states().await), (vec![vec!["news".to_owned()]], vec![DeliveryState::Sent]));
    }
}

#[tokio::test]
async fn a_message_without_a_slot_waits_and_that_is_no_attempt() {
    for durable in [false, true] {
        let post = Post::open(durable, "2026-01-03T12:00:00Z").await;
        post.tell("news").await;
        let busy = || -> crate::scripted_channel::Slot {
            Box::pin(async { Err(NoSlot::Busy(std::time::Duration::from_secs(3))) })
        };
        assert_eq!(Outbox::new(post.store.clone(), paced(busy)).step().await, 1);
        let waiting = post.store.deliveries(None, None, None, 100).await.unwrap().0;
        let waiting = waiting.into_iter().find(|one| one.content.notification_id().is_some()).unwrap();
        assert_eq!((waiting.state, waiting.attempts), (DeliveryState::Waiting, 0), "{waiting:?}");
        assert_eq!((waiting.not_before, waiting.lease_until), (time("2026-01-03T12:00:03Z"), None));
        assert_eq!(post.outbox(AttemptOutcome::Sent).step().await, 0);
        post.set(time("2026-01-03T12:00:03Z"));
        assert_eq!(post.outbox(AttemptOutcome::Sent).step().await, 1);
    }
}
