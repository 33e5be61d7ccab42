//! Twenty full answers that the model never saw are taken back in small steps, whatever else the writer has to do.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use bellwire_core::InjectionPoint::TurnStart;
use bellwire_core::{Event, EventId, Severity};
use bellwire_store::{Caller, CommitReport, IncomingEvent, InjectCommand, InjectResult, Observer, Publish};
use serde_json::json;

use crate::backends::{Backend, event, inject_command, on_every_store};
use crate::neighbours::{Asked, Held};
use crate::work::Reports;

const CALLS: usize = 20;
/// The bound of a mailbox.
const EACH: usize = 200;

/// A note of normal priority. A turn start takes it, shown or folded.
fn note(call: usize, number: usize) -> IncomingEvent {
    let told = json!({ "message": format!("note {call}/{number}") });
    let event = Event::new("agent.self.notify", &format!("agent {number}"), Severity::Info, told).unwrap();
    IncomingEvent::new(event.in_conversation("chat"), None)
}

/// Takes a full mailbox twenty times. Returns the first event of each answer.
async fn twenty_full_answers(backend: &Backend) -> Vec<EventId> {
    let mut first = Vec::new();
    for call in 0..CALLS {
        let events = (0..EACH).map(|number| note(call, number)).collect();
        let publish = Publish { caller: Caller::user("ada"), events, idempotency_key: None };
        first.push(backend.store().publish(publish).await.unwrap()[0].event_id);
        assert_eq!(backend.inject(TurnStart, &format!("c{call}")).await.notifications.len(), EACH);
        backend.pass(1_000);
    }
    first
}

/// Reports all of them as unseen, in an order that is not theirs.
fn reporting_all() -> InjectCommand {
    let unseen = (0..CALLS).map(|call| format!("c{}", (call * 7) % CALLS)).collect();
    InjectCommand { unseen, ..inject_command(TurnStart, "again") }
}

/// The newest notes are shown or folded, and the others are counted.
async fn check(backend: &Backend, first: &[EventId], answer: &InjectResult) {
    assert_eq!(answer.notifications.len(), EACH + 1, "the bound of the mailbox, and what counts the others");
    let left_out = format!("{} notifications (too many waited)", (CALLS - 1) * EACH);
    assert!(answer.block.contains(&left_out), "{}", answer.block);
    assert!(answer.block.contains("note 19/0") && !answer.block.contains("note 18/"), "{}", answer.block);
    assert!(answer.warnings.is_empty(), "{:?}", answer.warnings);
    assert_eq!(backend.store().inject(reporting_all()).await.unwrap(), *answer, "the same call gets the same answer");
    for (call, event) in first.iter().enumerate() {
        let trace = backend.store().trace(Caller::user("ada"), event.to_string()).await.unwrap();
        let (state, shown_by) = match call + 1 == CALLS {
            true => ("injected", Some("again")),
            false => ("folded", None),
        };
        let one = &trace.notifications[0];
        assert_eq!((one.state.as_str(), one.call_id.as_deref()), (state, shown_by), "the first note of call {call}");
    }
}

on_every_store! {
    async fn twenty_full_answers_are_taken_back_in_small_steps(backend: Backend) {
        let reports = Reports::of(&mut backend).await;
        let first = twenty_full_answers(&backend).await;
        if backend.is_durable() {
            backend.restart().await;
        }
        reports.take();
        let answer = backend.store().inject(reporting_all()).await.unwrap();
        let (steps, read) = reports.check("20 unseen answers of 200");
        assert!(steps <= 20 && read <= 6_000, "{steps} steps, {read} rows: nothing is read in circles");
        check(&backend, &first, &answer).await;
    }

    async fn full_answers_come_back_to_a_mailbox_that_must_be_loaded_in_small_steps(backend: Backend) {
        let reports = Reports::of(&mut backend).await;
        twenty_full_answers(&backend).await;
        // A hundred notifications of ten events each.
        let failure = |number: usize| {
            let payload = json!({ "tool_name": format!("tool {number}"), "error_type": "timeout" });
            let event = Event::new("tool.call.failure", &format!("executor {}", number / 100), Severity::Error, payload);
            IncomingEvent::new(event.unwrap().in_conversation("chat"), None)
        };
        let events = (0..1_000).map(failure).collect();
        let publish = Publish { caller: Caller::user("ada"), events, idempotency_key: None };
        backend.store().publish(publish).await.unwrap();
        if backend.is_durable() {
            backend.restart().await;
        }
        reports.take();
        let answer = backend.store().inject(reporting_all()).await.unwrap();
        let (steps, read) = reports.check("20 unseen answers of 200 for a full mailbox");
        assert!(steps <= 20 && read <= 8_000, "{steps} steps, {read} rows: nothing is read in circles");
        let mut blocks = answer.block.clone();
        // The count has a high priority, but the failures are older.
        for number in 0..10 {
            blocks += &backend.inject(TurnStart, &format!("later {number}")).await.block;
        }
        assert!(blocks.contains("3900 notifications (too many waited)"), "{blocks}");
        assert!(answer.block.contains("tool 0,") && !answer.block.contains("no longer stored"), "{}", answer.block);
    }

    async fn a_call_that_reports_full_answers_twice_at_once_takes_them_back_once(backend: Backend) {
        let first = twenty_full_answers(&backend).await;
        let store = backend.store();
        let (one, two) = tokio::join!(store.inject(reporting_all()), store.inject(reporting_all()));
        let one = one.unwrap();
        assert_eq!(one, two.unwrap());
        check(&backend, &first, &one).await;
    }
}

#[tokio::test]
async fn a_call_that_a_crash_cut_in_two_takes_back_the_rest_when_it_is_repeated() {
    let mut backend = Backend::sqlite().await;
    let first = twenty_full_answers(&backend).await;
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (backend.path(), folder.path().join("bellwire.db"));
    let is_copied = Mutex::new(false);
    let observer: Observer = Arc::new(move |report: &CommitReport| {
        let mut is_copied = is_copied.lock().unwrap();
        // The first part: answers are taken back, and none is given yet.
        if report.notifications > 0 && report.injections == 0 && !std::mem::replace(&mut *is_copied, true) {
            for suffix in ["", "-wal"] {
                let named = |path: &Path| PathBuf::from(format!("{}{suffix}", path.display()));
                std::fs::copy(named(&from), named(&to)).unwrap();
            }
        }
    });
    backend.observe(observer).await;
    let answer = backend.store().inject(reporting_all()).await.unwrap();
    let crashed = Backend::sqlite_in(folder).await;
    crashed.pass(backend.now().millis_since(crashed.now()).try_into().unwrap());
    let again = crashed.store().inject(reporting_all()).await.unwrap();
    assert_eq!(again.notifications.len(), answer.notifications.len());
    check(&crashed, &first, &again).await;
}

#[tokio::test]
async fn commands_of_the_same_group_do_not_make_the_step_of_full_answers_larger() {
    let mut held = Held::open().await;
    let first = twenty_full_answers(&held.backend).await;
    held.reports.take();
    let store = held.backend.store();
    // Just less than enough for a commit of its own.
    let publish = |number: usize| -> Asked<Option<InjectResult>> {
        let told =
            |part: usize| event("task.background.completed", Severity::Info, json!({ "task_id": [number, part] }));
        let events = (0..4).map(|part| IncomingEvent::new(told(part), None)).collect();
        let publish = Publish { caller: Caller::user("bob"), events, idempotency_key: None };
        let store = store.clone();
        Box::pin(async move { store.publish(publish).await.map(|_| None).unwrap() })
    };
    let mut asked: Vec<_> = (0..240).map(publish).collect();
    let inject = |command: InjectCommand| -> Asked<Option<InjectResult>> {
        let store = store.clone();
        Box::pin(async move { Some(store.inject(command).await.unwrap()) })
    };
    asked.insert(180, inject(reporting_all()));
    asked.push(inject(reporting_all()));
    let answers: Vec<InjectResult> = held.together(asked).await.into_iter().flatten().collect();
    held.reports.check("20 unseen answers of 200 in a group");
    assert_eq!(answers[0], answers[1]);
    check(&held.backend, &first, &answers[0]).await;
}
