//! A call that is committed in parts happens once, whatever comes between two of its parts.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, mpsc};

use bellwire_core::{Event, Randomness, Severity};
use bellwire_store::{
    Caller, ClientEventId, CommitReport, ConversationDetails, ErrorKind, IdempotencyKey, IncomingEvent, Publish,
    SqliteStore, Store, StoreOptions,
};
use serde_json::json;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _};

use crate::backends::{Backend, event, failure};

/// Carries out something on the writer's thread when the first part of a call is committed.
fn after_the_first_part(backend: &Backend, act: impl Fn() + Send + Sync + 'static) -> StoreOptions {
    let is_done = Mutex::new(false);
    let observer = move |report: &CommitReport| {
        let mut is_done = is_done.lock().unwrap();
        if report.events > 0 && !std::mem::replace(&mut *is_done, true) {
            act();
        }
    };
    StoreOptions { observer: Some(Arc::new(observer)), ..backend.opening() }
}

fn to_person(user: &str, number: usize) -> IncomingEvent {
    let event = Event::new("task.background.completed", "runner", Severity::Info, json!({ "task_id": number }));
    IncomingEvent::new(event.unwrap().for_person(user), None)
}

/// A call that is too large for one part.
fn large(last: Option<IncomingEvent>) -> Publish {
    let idempotency_key =
        IdempotencyKey { token_id: "t".into(), route: "events".into(), key: "k".into(), content: [1; 32] };
    let events = (0..40).map(|number| to_person("ada", number)).chain(last).collect();
    let caller = Caller { origin: Some("butler".into()), ..Caller::anyone() };
    Publish { caller, events, idempotency_key: Some(idempotency_key) }
}

async fn hundred_conversations(backend: &Backend) {
    for number in 0..100 {
        let id = format!("chat-{number}");
        backend
            .store()
            .put_conversation(Caller::anyone(), id, "ada".into(), ConversationDetails::default())
            .await
            .unwrap();
    }
}

async fn stored_events(path: &Path) -> i64 {
    let mut file = SqliteConnectOptions::new().filename(path).connect().await.unwrap();
    let count = sqlx::query_scalar("SELECT COUNT(*) FROM events").fetch_one(&mut file).await.unwrap();
    file.close().await.unwrap();
    count
}

#[tokio::test]
async fn a_call_that_a_crash_cut_in_two_goes_on_where_it_was() {
    let mut backend = Backend::sqlite().await;
    hundred_conversations(&backend).await;
    backend.close().await;
    let folder = tempfile::tempdir().unwrap();
    let copy: PathBuf = folder.path().join("bellwire.db");
    let (from, to) = (backend.path(), copy.clone());
    let opening = after_the_first_part(&backend, move || {
        for suffix in ["", "-wal"] {
            let named = |path: &Path| PathBuf::from(format!("{}{suffix}", path.display()));
            std::fs::copy(named(&from), named(&to)).unwrap();
        }
    });
    let store = SqliteStore::open(&backend.path(), opening).await.unwrap();
    let first = store.publish(large(None)).await.unwrap();
    store.close().await.unwrap();
    let in_first_part = stored_events(&copy).await;
    assert!((1..40).contains(&in_first_part), "the copy holds {in_first_part} of 40 events");
    let in_first_part = usize::try_from(in_first_part).unwrap();

    let opening = StoreOptions { randomness: Randomness::repeatable(99), ..backend.opening() };
    let store = SqliteStore::open(&copy, opening).await.unwrap();
    let again = store.publish(large(None)).await.unwrap();
    assert_eq!(again.len(), 40);
    assert_eq!(again[..in_first_part], first[..in_first_part], "what was committed keeps its receipts");
    assert_eq!(store.publish(large(None)).await.unwrap(), again, "now it has an answer");
    let mut other = large(None);
    other.idempotency_key.as_mut().unwrap().content = [2; 32];
    assert_eq!(store.publish(other).await.unwrap_err().kind, ErrorKind::Conflict);
    store.close().await.unwrap();
    assert_eq!(stored_events(&copy).await, 40);
}

#[tokio::test]
async fn an_addressee_who_is_erased_between_two_parts_does_not_fail_the_rest() {
    let mut backend = Backend::sqlite().await;
    hundred_conversations(&backend).await;
    backend
        .store()
        .put_conversation(Caller::anyone(), "bobs".into(), "bob".into(), ConversationDetails::default())
        .await
        .unwrap();
    backend.close().await;
    let (go, wait) = mpsc::channel::<()>();
    let (reached, part) = tokio::sync::mpsc::unbounded_channel::<()>();
    let wait = Mutex::new(wait);
    let opening = after_the_first_part(&backend, move || {
        reached.send(()).unwrap();
        wait.lock().unwrap().recv().unwrap();
    });
    let store = SqliteStore::open(&backend.path(), opening).await.unwrap();
    let call = large(Some(IncomingEvent::new(failure("grep").in_conversation("bobs"), None)));
    let mut publishing = store.publish(call.clone());
    let mut part = part;
    tokio::select! {
        answer = &mut publishing => panic!("the writer waits behind the first part: {answer:?}"),
        _ = part.recv() => {}
    }
    let mut erasing = store.erase_user("bob".into());
    tokio::select! {
        biased;
        _ = &mut erasing => panic!("the writer waits"),
        () = std::future::ready(()) => go.send(()).unwrap(),
    }
    let (receipts, erased) = tokio::join!(publishing, erasing);
    erased.unwrap();
    let receipts = receipts.unwrap();
    assert_eq!(receipts.len(), 41);
    let reason = &receipts[40].verdicts[0].reason;
    // The erasure may take more than one step.
    assert!(reason.starts_with("erased") || reason.contains("is being erased"), "{reason}");
    assert_eq!(store.publish(call).await.unwrap(), receipts);
    store.close().await.unwrap();
    assert_eq!(stored_events(&backend.path()).await, 40);
}

#[tokio::test]
async fn a_mailbox_that_is_full_does_not_fail_a_call_of_which_a_part_is_committed() {
    for has_key in [false, true] {
        let mut backend = Backend::sqlite().await;
        hundred_conversations(&backend).await;
        let says = |number: usize| {
            let event = Event::user_message(&format!("message {number}")).unwrap();
            IncomingEvent::new(event.in_conversation("chat-7").for_person("ada"), None)
        };
        let said = Publish { events: (0..200).map(says).collect(), idempotency_key: None, ..large(None) };
        backend.store().publish(said).await.unwrap();
        let alone = Publish { events: vec![says(200)], idempotency_key: None, ..large(None) };
        assert_eq!(backend.store().publish(alone).await.unwrap_err().kind, ErrorKind::Full);
        let mut call = large(Some(says(201)));
        if !has_key {
            call.idempotency_key = None;
        }
        let receipts = backend.store().publish(call).await.unwrap();
        assert_eq!(receipts.len(), 41);
        let verdict = &receipts[40].verdicts[0];
        assert!(verdict.reason.starts_with("mailbox_full"), "{verdict:?}");
        backend.close().await;
        assert_eq!(stored_events(&backend.path()).await, 241, "each has its trace");
    }
}

#[tokio::test]
async fn a_call_that_fails_after_a_part_says_how_much_of_it_is_stored() {
    let mut backend = Backend::sqlite().await;
    hundred_conversations(&backend).await;
    backend.close().await;
    let path = backend.path();
    // The table that the second part needs is away for good.
    let opening = after_the_first_part(&backend, move || {
        let file = rusqlite::Connection::open(&path).unwrap();
        file.execute_batch("ALTER TABLE notifications RENAME TO elsewhere").unwrap();
    });
    let store = SqliteStore::open(&backend.path(), opening).await.unwrap();
    let failed = store.publish(Publish { idempotency_key: None, ..large(None) }).await.unwrap_err();
    let stored = stored_events(&backend.path()).await;
    assert!((1..40).contains(&stored), "{stored}");
    assert!(failed.message.contains(&format!("the first {stored} of 40 events are stored")), "{failed}");
    drop(store);
}

#[tokio::test]
async fn damaged_rows_of_the_last_events_person_refuse_the_call_before_its_first_part() {
    for damage in [
        "INSERT INTO user_settings (user_id, settings_json, updated_at) VALUES ('bob', 'nonsense', 0)",
        "INSERT INTO inbox_positions (user_id, position) VALUES ('bob', 'nonsense')",
    ] {
        let mut backend = Backend::sqlite().await;
        hundred_conversations(&backend).await;
        backend
            .store()
            .put_conversation(Caller::anyone(), "bobs".into(), "bob".into(), ConversationDetails::default())
            .await
            .unwrap();
        backend.close().await;
        let mut file = SqliteConnectOptions::new().filename(backend.path()).connect().await.unwrap();
        sqlx::query(damage).execute(&mut file).await.unwrap();
        file.close().await.unwrap();
        backend.open().await;
        let asks = event("agent.input.needed", Severity::Info, json!({ "message": "May I?" })).in_conversation("bobs");
        let refused = backend.store().publish(large(Some(IncomingEvent::new(asks, None)))).await.unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Damaged, "{damage}");
        backend.close().await;
        assert_eq!(stored_events(&backend.path()).await, 0, "{damage}");
    }
}

#[tokio::test]
async fn one_name_for_two_events_of_a_large_call_refuses_all_of_it() {
    let mut backend = Backend::sqlite().await;
    hundred_conversations(&backend).await;
    let mut call = large(None);
    for (at, content) in [(0, 1), (39, 2)] {
        let client_event_id = ClientEventId { id: "same".into(), content: [content; 16] };
        let event = event("task.background.completed", Severity::Info, json!({ "task_id": at }));
        call.events[at] = IncomingEvent::new(event.in_conversation("chat-1"), Some(client_event_id));
    }
    assert_eq!(backend.store().publish(call).await.unwrap_err().kind, ErrorKind::Conflict);
    backend.close().await;
    assert_eq!(stored_events(&backend.path()).await, 0);
}

#[tokio::test]
async fn the_same_call_three_times_at_once_happens_once_while_its_mailboxes_are_in_memory() {
    let mut backend = Backend::sqlite().await;
    hundred_conversations(&backend).await;
    let store = backend.store();
    let (first, second, third) =
        tokio::join!(store.publish(large(None)), store.publish(large(None)), store.publish(large(None)));
    let first = first.unwrap();
    assert_eq!((&second.unwrap(), &third.unwrap()), (&first, &first));
    drop(store);
    backend.close().await;
    assert_eq!(stored_events(&backend.path()).await, 40);
}
