//! What one injection costs the store's writer when 200 notifications wait: deciding, rendering and writing, the wait for
//! the disk included and shared by the calls of one commit.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bellwire_core::event::AgentName;
use bellwire_core::{Event, Inject, InjectionPoint, Randomness, Subscribers, Time};
use bellwire_store::{
    Caller, Clock, CommitReport, IncomingEvent, InjectCommand, PeopleRules, Publish, SqliteStore, Store, StoreOptions,
};

use crate::events::{START, change, failure, subagent, task};
use crate::measure::{Laps, RunMode, TableRow, nanos};

/// How many agents ask at once; their answers share commits.
const AGENTS: usize = 64;
const WAITING: usize = 200;

pub(crate) fn measure(mode: RunMode) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("the system gives threads");
    let mut laps = Laps::of(1);
    runtime.block_on(async {
        let bench = FullMailboxes::open().await;
        for lap in 0..mode.laps(25) {
            bench.fill(lap).await;
            let (injections, took) = bench.inject_all(lap).await;
            laps.add(took / injections);
        }
    });
    TableRow::of("writer time, one of 64 full mailboxes", &laps, nanos).aim("at most 300 000 ns").print();
}

struct FullMailboxes {
    store: Arc<SqliteStore>,
    clock: Arc<AtomicI64>,
    /// How many injections were committed, and how long their commits took.
    spent: Arc<Mutex<(u32, Duration)>>,
    _folder: tempfile::TempDir,
}

impl FullMailboxes {
    async fn open() -> Self {
        let folder = tempfile::tempdir_in(".").expect("the folder can be written to");
        let clock = Arc::new(AtomicI64::new(START.as_millis()));
        let spent = Arc::new(Mutex::new((0, Duration::ZERO)));
        let (time, seen) = (clock.clone(), spent.clone());
        let observer = move |report: &CommitReport| {
            if report.injections > 0 {
                let mut spent = seen.lock().expect("nobody panics with it");
                spent.0 += report.injections as u32;
                spent.1 += report.took;
            }
        };
        let opening = StoreOptions {
            subscribers: Arc::new(Subscribers::bundled()),
            randomness: Randomness::repeatable(1),
            clock: Clock::set_by(move || Time::from_millis(time.load(Ordering::Relaxed))),
            timers: false,
            observer: Some(Arc::new(observer)),
            people: PeopleRules::default(),
            sizes: bellwire_store::Sizes::default(),
        };
        let store = SqliteStore::open(&folder.path().join("full.db"), opening).await.expect("the file can be made");
        Self { store: Arc::new(store), clock, spent, _folder: folder }
    }

    /// Fills every mailbox to its bound with notifications of several kinds.
    async fn fill(&self, lap: usize) {
        for part in 0..8 {
            for agent in 0..AGENTS {
                let event = |number: usize| {
                    let number = (lap * AGENTS + agent) * 10_000 + part * 1_000 + number;
                    let event: Event = match number % 4 {
                        0 => failure(number),
                        1 => change(number),
                        2 => task(number),
                        _ => subagent(number),
                    };
                    IncomingEvent::new(event.in_conversation(&format!("conversation-{agent}")), None)
                };
                let publish = Publish {
                    caller: Caller::user("bench"),
                    events: (0..60).map(event).collect(),
                    idempotency_key: None,
                };
                self.store.publish(publish).await.expect("the events are well formed");
            }
            self.clock.fetch_add(11_000, Ordering::Relaxed);
        }
    }

    async fn inject_all(&self, lap: usize) -> (u32, Duration) {
        *self.spent.lock().expect("nobody panics with it") = (0, Duration::ZERO);
        let calls: Vec<_> = (0..AGENTS).map(|agent| tokio::spawn(inject(self.store.clone(), agent, lap))).collect();
        for call in calls {
            let count = call.await.expect("an injection is answered");
            assert!(count > WAITING / 4, "only {count} items were eligible");
        }
        *self.spent.lock().expect("nobody panics with it")
    }
}

async fn inject(store: Arc<SqliteStore>, agent: usize, lap: usize) -> usize {
    let command = InjectCommand {
        caller: Caller::user("bench"),
        conversation_id: format!("conversation-{agent}"),
        agent: AgentName::main(),
        request: Inject::new(InjectionPoint::AfterTool, &format!("call-{lap}")).expect("a short call id is right"),
        observed: None,
        unseen: Vec::new(),
        correlation_id: None,
        unsure: false,
        tool_result_digest: None,
    };
    store.inject(command).await.expect("the injection is answered").count
}
