//! Restarting after a killed process loses nothing that was committed. Durable backends only.

use bellwire_core::InjectionPoint::AfterTool;
use bellwire_core::{Event, Severity};
use bellwire_store::{Caller, ErrorKind, IncomingEvent, Publish, SqliteStore};
use serde_json::json;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions as _, Connection as _};

use crate::backends::{Backend, event, failure, inject_command};

#[tokio::test]
async fn everything_that_was_answered_is_there_after_a_restart_at_any_moment() {
    let mut backend = Backend::sqlite().await;
    let mut told = Vec::new();
    for number in 0..12 {
        backend.publish(failure(&format!("tool_{number}"))).await;
        backend.restart().await;
        if number % 3 == 2 {
            told.push(backend.inject(AfterTool, &format!("c{number}")).await);
            backend.restart().await;
        }
    }
    let all: String = told.iter().map(|answer| answer.block.as_str()).collect();
    for number in 0..12 {
        assert_eq!(all.matches(&format!("tool_{number},")).count(), 1, "{all}");
    }
}

#[tokio::test]
async fn repeats_are_counted_across_a_restart() {
    let mut backend = Backend::sqlite().await;
    for _ in 0..3 {
        backend.publish(failure("grep")).await;
        backend.restart().await;
    }
    let answer = backend.inject(AfterTool, "c1").await;
    assert!(answer.block.contains("[tool_executor x3]"), "{}", answer.block);
}

#[tokio::test]
async fn two_processes_cannot_serve_the_same_file() {
    let backend = Backend::sqlite().await;
    let error = SqliteStore::migrate(&backend.path(), bellwire_core::Time::ZERO).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Broken);
    assert!(error.message.contains("another Bellwire"), "{error}");
}

#[tokio::test]
async fn unseen_notifications_are_shown_in_full_after_a_restart() {
    let mut backend = Backend::sqlite().await;
    // A message opens no window of repeats, which would keep its event in the mailbox for a while.
    backend.publish(Event::user_message("look here").unwrap().in_conversation("chat")).await;
    let lost = backend.inject(AfterTool, "c1").await;
    backend.restart().await;
    let mut again = inject_command(AfterTool, "c2");
    again.unseen = vec!["c1".into()];
    let told = backend.store().inject(again).await.unwrap();
    assert_eq!(told.notifications, lost.notifications);
    assert!(told.block.contains("look here"), "{}", told.block);
}

/// Makes nonsense of the state in which a conversation's mailbox came to the log, behind its names and its length.
async fn damage_in_log(file: &mut SqliteConnection, conversation: &str, agent: &str) {
    let counted = |name: &str| format!("{}{name}", char::from(name.len() as u8));
    let names = ["ada", conversation, agent].map(counted).concat() + "\u{0}";
    let rows = sqlx::query_as("SELECT sequence, changes FROM mailbox_log").fetch_all(&mut *file);
    let rows: Vec<(i64, Vec<u8>)> = rows.await.unwrap();
    let mut found = 0;
    for (sequence, mut changes) in rows {
        let Some(at) = changes.windows(names.len()).position(|window| window == names.as_bytes()) else { continue };
        let length = at + names.len();
        let state = length + if changes[length] < 128 { 1 } else { 2 } + 12;
        assert_eq!(changes[state], 3, "the version");
        changes[state] = 0;
        let update = sqlx::query("UPDATE mailbox_log SET changes = $1 WHERE sequence = $2");
        update.bind(changes).bind(sequence).execute(&mut *file).await.unwrap();
        found += 1;
    }
    assert_eq!(found, 1);
}

#[tokio::test]
async fn of_an_erased_person_the_file_keeps_nothing_and_of_the_others_everything() {
    let mut backend = Backend::sqlite().await;
    let bob = Caller::user("bob");
    backend.publish(failure("grep")).await;
    backend.publish_as(bob.clone(), failure("sed"), None).await.unwrap();
    backend.publish_as(bob.clone(), failure("awk"), None).await.unwrap();
    backend.store().erase_user("ada".into()).await.unwrap();
    backend.publish_as(bob.clone(), failure("cut"), None).await.unwrap();
    backend.close().await;
    let left = SqliteStore::mailboxes(&backend.path()).await.unwrap();
    let mut owners: Vec<_> = left.iter().map(|mailbox| mailbox.owner.as_str()).collect();
    owners.dedup();
    assert_eq!(owners, ["bob"]);
    backend.open().await;
    let mut ask = inject_command(AfterTool, "c1");
    ask.caller = bob;
    let told = backend.store().inject(ask).await.unwrap().block;
    assert!(["sed", "awk", "cut"].iter().all(|tool| told.contains(tool)), "{told}");
}

#[tokio::test]
async fn to_look_a_database_over_changes_nothing_of_what_a_crash_left() {
    let backend = Backend::sqlite().await;
    backend.publish(failure("grep")).await;
    let copy = tempfile::tempdir().unwrap();
    let path = copy.path().join("bellwire.db");
    for name in ["bellwire.db", "bellwire.db-wal"] {
        std::fs::copy(backend.path().with_file_name(name), copy.path().join(name)).unwrap();
    }
    let read = || ["bellwire.db", "bellwire.db-wal"].map(|name| std::fs::read(copy.path().join(name)).unwrap());
    let before = read();
    assert_eq!(SqliteStore::inspect(&path).await.unwrap().damage, Vec::<String>::new());
    assert_eq!(SqliteStore::mailboxes(&path).await.unwrap().len(), 1);
    assert!(read() == before);
}

#[tokio::test]
async fn a_log_that_cannot_be_read_is_named_with_what_can_be_done() {
    let mut backend = Backend::sqlite().await;
    backend.publish(failure("grep")).await;
    backend.close().await;
    let mut file = SqliteConnectOptions::new().filename(backend.path()).connect().await.unwrap();
    sqlx::query("UPDATE mailbox_log SET changes = X'05'").execute(&mut file).await.unwrap();
    file.close().await.unwrap();
    let damage = SqliteStore::inspect(&backend.path()).await.unwrap().damage;
    assert!(damage.iter().any(|line| line.contains("mailbox_log 1;")), "{damage:?}");
    let error = backend.try_open().await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Damaged);
    assert!(error.message.contains("mailbox_log 1;") && error.message.contains("restore a backup"), "{error}");
}

#[tokio::test]
async fn a_call_for_a_person_whose_mailbox_is_damaged_is_refused_before_anything_is_decided() {
    let mut backend = Backend::sqlite().await;
    let asks = |question: &str| event("agent.input.needed", Severity::Info, json!({ "message": question }));
    backend.publish(asks("May I?")).await;
    backend.close().await;
    let mut file = SqliteConnectOptions::new().filename(backend.path()).connect().await.unwrap();
    damage_in_log(&mut file, "", "butler").await;
    file.close().await.unwrap();
    backend.open().await;
    let events = [failure("sed"), asks("And now?")].map(|event| IncomingEvent::new(event, None)).into();
    let butler = Caller { origin: Some("butler".into()), ..Caller::user("ada") };
    let publish = Publish { caller: butler, events, idempotency_key: None };
    assert_eq!(backend.store().publish(publish).await.unwrap_err().kind, ErrorKind::Damaged);
    backend.publish(failure("grep")).await;
    let told = backend.inject(AfterTool, "c1").await.block;
    assert!(told.contains("grep") && !told.contains("sed"), "{told}");
}

#[tokio::test]
async fn a_damaged_mailbox_does_not_stop_other_timers() {
    let mut backend = Backend::sqlite().await;
    backend.publish(failure("grep")).await;
    let other = backend.publish(failure("sed").in_conversation("other")).await;
    backend.close().await;
    let mut file = SqliteConnectOptions::new().filename(backend.path()).connect().await.unwrap();
    damage_in_log(&mut file, "chat", "main").await;
    file.close().await.unwrap();
    backend.open().await;
    backend.pass(2_000);
    backend.store().tick().await.unwrap();
    let trace = backend.store().trace(Caller::user("ada"), other.event_id.to_string()).await.unwrap();
    assert_eq!(trace.notifications[0].state, "pending");
    let store = backend.store();
    // Whoever asks for it is told; whoever shares the commit is not concerned.
    let other = Publish {
        caller: Caller::user("ada"),
        events: vec![IncomingEvent::new(failure("awk").in_conversation("other"), None)],
        idempotency_key: None,
    };
    let (refused, accepted) = tokio::join!(store.inject(inject_command(AfterTool, "c1")), store.publish(other));
    assert_eq!(refused.unwrap_err().kind, ErrorKind::Damaged);
    assert!(accepted.is_ok());
}

#[tokio::test]
async fn a_file_that_was_deleted_accepts_nothing() {
    let backend = Backend::sqlite().await;
    backend.publish(failure("grep")).await;
    backend.store().check().await.unwrap();
    std::fs::rename(backend.path(), backend.path().with_extension("away")).unwrap();
    let error = backend.publish_as(Caller::user("ada"), failure("sed"), None).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Broken);
    assert!(error.message.contains("moved or deleted"), "{error}");
    assert_eq!(backend.store().check().await.unwrap_err(), error);
    std::fs::rename(backend.path().with_extension("away"), backend.path()).unwrap();
    backend.publish(failure("sed")).await;
    backend.store().check().await.unwrap();
}

#[tokio::test]
async fn of_a_commit_that_failed_nothing_is_remembered_however_many_shared_it() {
    let backend = std::sync::Arc::new(Backend::sqlite().await);
    backend.publish(failure("grep")).await;
    let mut file = SqliteConnectOptions::new().filename(backend.path()).connect().await.unwrap();
    let fault = "CREATE TRIGGER fault BEFORE INSERT ON injections BEGIN SELECT RAISE(ABORT, 'on purpose'); END";
    sqlx::raw_sql(fault).execute(&mut file).await.unwrap();
    let ask = |number: u32| {
        let backend = backend.clone();
        tokio::spawn(async move { backend.store().inject(inject_command(AfterTool, &format!("c{number}"))).await })
    };
    for asked in (0..40).chain([0]).map(ask).collect::<Vec<_>>() {
        let error = asked.await.unwrap().expect_err("the commit is refused");
        assert!(error.message.contains("on purpose"), "{error}");
    }
    sqlx::raw_sql("DROP TRIGGER fault").execute(&mut file).await.unwrap();
    file.close().await.unwrap();
    let first = backend.inject(AfterTool, "c39").await;
    assert!(first.block.contains("grep"), "{}", first.block);
    assert_eq!(backend.inject(AfterTool, "c0").await.block, "", "it is told once");
    assert_eq!(backend.inject(AfterTool, "c39").await, first);
}

#[tokio::test]
async fn a_damaged_answer_fails_only_its_own_call() {
    let mut backend = Backend::sqlite().await;
    backend.publish(failure("grep")).await;
    backend.inject(AfterTool, "c1").await;
    backend.restart().await;
    let mut file = SqliteConnectOptions::new().filename(backend.path()).connect().await.unwrap();
    sqlx::raw_sql("UPDATE injections SET answer = x'ff'").execute(&mut file).await.unwrap();
    file.close().await.unwrap();
    // Both wait for the writer when it looks: they share a commit.
    let store = backend.store();
    let (again, _) = tokio::join!(store.inject(inject_command(AfterTool, "c1")), backend.publish(failure("sed")));
    assert_eq!(again.expect_err("it cannot be read").kind, ErrorKind::Damaged);
    assert!(backend.inject(AfterTool, "c2").await.block.contains("sed"));
}
