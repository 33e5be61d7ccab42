//! A failing command changes nothing and fails no other command of its commit, however late it fails.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;

use bellwire_core::InjectionPoint::AfterTool;
use bellwire_core::{Event, Severity};
use bellwire_store::{
    Caller, ClientEventId, CommitReport, ErrorKind, IdempotencyKey, IncomingEvent, Observer, Publish, Receipt, Store,
    StoreError,
};
use serde_json::json;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _};
use tokio::sync::mpsc;

use crate::backends::{Backend, event, failure, inject_command};
use crate::work::Reports;

/// A command that is asked and not yet answered.
pub(crate) type Asked<T> = Pin<Box<dyn Future<Output = T>>>;

/// A SQLite store whose writer can be held, so that what is asked meanwhile becomes one group.
pub(crate) struct Held {
    pub(crate) backend: Backend,
    gate: Arc<Mutex<()>>,
    commits: mpsc::UnboundedReceiver<()>,
    pub(crate) reports: Reports,
}

impl Held {
    pub(crate) async fn open() -> Self {
        let (mut backend, gate) = (Backend::sqlite().await, Arc::new(Mutex::new(())));
        let (seen, commits) = mpsc::unbounded_channel();
        let (at_gate, reports) = (gate.clone(), Reports::default());
        let kept = reports.clone();
        let observer: Observer = Arc::new(move |report: &CommitReport| {
            kept.add(report);
            let _ = seen.send(());
            drop(at_gate.lock());
        });
        backend.observe(observer).await;
        Self { backend, gate, commits, reports }
    }

    /// Publishes all of them in one group.
    async fn publish_together(&mut self, asked: Vec<Publish>) -> Vec<Result<Vec<Receipt>, StoreError>> {
        let publish = |one: Publish| -> Asked<_> {
            let store: Arc<dyn Store> = self.backend.store();
            Box::pin(async move { store.publish(one).await })
        };
        let asked = asked.into_iter().map(publish).collect();
        self.together(asked).await
    }

    /// Sends all of them while the writer is held, lets it go, and waits for their answers.
    pub(crate) async fn together<T: 'static>(&mut self, asked: Vec<Asked<T>>) -> Vec<T> {
        while self.commits.try_recv().is_ok() {}
        let mut held = Some(self.gate.lock().unwrap());
        let store = self.backend.store();
        let check = store.check();
        let mut check = std::pin::pin!(check);
        // The writer has carried out the check when it comes to the gate.
        let reached = std::future::poll_fn(|context| {
            let _ = check.as_mut().poll(context);
            self.commits.poll_recv(context)
        });
        reached.await;
        let mut asked: Vec<(Asked<T>, Option<T>)> = asked.into_iter().map(|one| (one, None)).collect();
        let all = std::future::poll_fn(move |context| {
            for (future, answer) in asked.iter_mut().filter(|(_, answer)| answer.is_none()) {
                if let Poll::Ready(answered) = future.as_mut().poll(context) {
                    *answer = Some(answered);
                }
            }
            held.take();
            match asked.iter().all(|(_, answer)| answer.is_some()) {
                true => Poll::Ready(asked.iter_mut().filter_map(|(_, answer)| answer.take()).collect()),
                false => Poll::Pending,
            }
        });
        // Otherwise Tokio would stop after 128 sends, and the writer would be let go before the others are sent.
        tokio::task::unconstrained(all).await
    }

    pub(crate) async fn sql(&self, sql: &str) {
        let mut file = SqliteConnectOptions::new().filename(self.backend.path()).connect().await.unwrap();
        sqlx::raw_sql(sqlx::AssertSqlSafe(sql.to_owned())).execute(&mut file).await.unwrap();
        file.close().await.unwrap();
    }
}

fn publish(user: &str, events: Vec<Event>) -> Publish {
    let events = events.into_iter().map(|event| IncomingEvent::new(event, None)).collect();
    Publish { caller: Caller::user(user), events, idempotency_key: None }
}

fn asks(question: &str) -> Event {
    event("agent.input.needed", Severity::Info, json!({ "message": question }))
}

fn kinds(answers: &[Result<Vec<Receipt>, StoreError>]) -> Vec<Option<ErrorKind>> {
    answers.iter().map(|answer| answer.as_ref().err().map(|error| error.kind)).collect()
}

#[tokio::test]
async fn a_command_that_fails_after_it_began_to_decide_fails_alone_and_leaves_nothing() {
    let mut held = Held::open().await;
    held.backend.publish(asks("May I?")).await;
    held.backend.restart().await;
    // Loaded when the question is put into the inbox, after the events have been decided on.
    held.sql("UPDATE inbox_positions SET position = 'nonsense'").await;
    held.backend.pass(3_600_000);
    let before = publish("ada", vec![failure("before")]);
    let poisoned = publish("ada", vec![failure("poisoned"), asks("And now?")]);
    let after = publish("ada", vec![failure("after")]);
    let bob = |tool: &str| publish("bob", vec![failure(tool)]);
    let answers = held.publish_together(vec![bob("one"), before, poisoned, after, bob("two")]).await;
    assert_eq!(kinds(&answers), [None, None, Some(ErrorKind::Damaged), None, None], "{answers:?}");
    let block = held.backend.inject(AfterTool, "c1").await.block;
    assert!(block.contains("before") && block.contains("after") && !block.contains("poisoned"), "{block}");
    for answer in answers.iter().flatten() {
        let id = answer[0].event_id.to_string();
        let trace = held.backend.store().trace(Caller::anyone(), id).await.unwrap();
        assert_eq!(*trace.verdicts, **answer[0].verdicts, "what was answered is what is stored");
    }
    let mut ask = inject_command(AfterTool, "c1");
    ask.caller = Caller::user("bob");
    let block = held.backend.store().inject(ask).await.unwrap().block;
    assert!(block.contains("one") && block.contains("two"), "{block}");
}

#[tokio::test]
async fn a_damaged_remembered_answer_fails_the_repeat_alone_every_time() {
    let mut held = Held::open().await;
    let idempotency_key = IdempotencyKey { token_id: "t".into(), route: "r".into(), key: "k".into(), content: [1; 32] };
    let named = || Publish { idempotency_key: Some(idempotency_key.clone()), ..publish("ada", vec![failure("grep")]) };
    held.backend.store().publish(named()).await.unwrap();
    held.sql("UPDATE idempotency_keys SET answer = 'nonsense'").await;
    for round in 0..3 {
        let neighbours = (0..20).map(|number| publish("bob", vec![failure(&format!("{round}_{number}"))]));
        let asked = neighbours.chain([named()]).collect();
        let answers = held.publish_together(asked).await;
        let (poisoned, neighbours) = answers.split_last().unwrap();
        assert_eq!(poisoned.as_ref().unwrap_err().kind, ErrorKind::Damaged);
        assert!(neighbours.iter().all(Result::is_ok), "{neighbours:?}");
    }
}

#[tokio::test]
async fn a_command_whose_rows_the_database_refuses_fails_alone() {
    let mut held = Held::open().await;
    held.sql("CREATE TRIGGER fault BEFORE INSERT ON brought_ids BEGIN SELECT RAISE(ABORT, 'on purpose'); END").await;
    let client_event_id = Some(ClientEventId { id: "mine".into(), content: [1; 16] });
    let poisoned = Publish {
        events: vec![IncomingEvent::new(failure("poisoned"), client_event_id)],
        ..publish("ada", Vec::new())
    };
    let neighbour = |number: usize| publish("ada", vec![failure(&format!("tool_{number}"))]);
    let mut asked: Vec<Publish> = (0..9).map(neighbour).collect();
    asked.insert(4, poisoned);
    let answers = held.publish_together(asked).await;
    let failed: Vec<usize> = (0..10).filter(|at| answers[*at].is_err()).collect();
    assert_eq!(failed, [4], "{answers:?}");
    let block = held.backend.inject(AfterTool, "c1").await.block;
    for number in 0..9 {
        assert_eq!(block.matches(&format!("tool_{number},")).count(), 1, "{block}");
    }
    assert!(!block.contains("poisoned"), "{block}");
}
