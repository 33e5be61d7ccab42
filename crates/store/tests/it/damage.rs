//! A damaged row is an error only for commands that need it. It never ends the writer and stops no other command, timer,
//! reminder or delivery.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bellwire_core::InjectionPoint::AfterTool;
use bellwire_core::event::AgentName;
use bellwire_core::{Event, NotificationId, Severity};
use bellwire_store::{
    Caller, Claim, ClientEventId, CommitReport, ConversationDetails, ErrorKind, IdempotencyKey, IncomingEvent,
    NewReminder, PeopleRules, Publish, RetentionCutoffs, StoreError, Token,
};
use serde_json::json;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _};

use crate::backends::{Backend, email, event, failure, inject_command, with_email};
use crate::delivery_order::{mails, tell};

/// The columns that commands and timers read, each with a table in which Ada has rows. Every one is filled with a text
/// and with bytes that are no such thing.
const COLUMNS: [(&str, &str); 41] = [
    ("conversations", "registered"),
    ("conversations", "title"),
    ("conversations", "boundary"),
    ("conversations", "created_at"),
    ("conversations", "seen_at"),
    ("events", "type"),
    ("events", "severity"),
    ("events", "payload"),
    ("events", "cause"),
    ("events", "verdicts"),
    ("brought_ids", "event_id"),
    ("brought_ids", "content"),
    ("idempotency_keys", "content"),
    ("idempotency_keys", "answer"),
    ("idempotency_keys", "at"),
    ("mailboxes", "state"),
    ("mailboxes", "pending"),
    ("notifications", "waiting"),
    ("injections", "point"),
    ("injections", "answer"),
    ("injections", "taken"),
    ("inbox", "shelf"),
    ("inbox", "type"),
    ("inbox", "message"),
    ("inbox", "created_at"),
    ("inbox", "toast_json"),
    ("inbox", "acted_json"),
    ("inbox_positions", "position"),
    ("deliveries", "notification_id"),
    ("deliveries", "channel"),
    ("deliveries", "target"),
    ("deliveries", "attempts"),
    ("deliveries", "fence"),
    ("deliveries", "letter_id"),
    ("reminders", "type"),
    ("reminders", "message"),
    ("reminders", "asked"),
    ("reminders", "notification_id"),
    ("user_settings", "settings_json"),
    ("user_settings", "disabled_subscribers_json"),
    ("tokens", "created_at"),
];
const NONSENSE: [&str; 2] = ["'nonsense'", "x'ff00fe'"];

fn asks(question: &str) -> Event {
    event("agent.input.needed", Severity::Info, json!({ "message": question }))
}

fn idempotency_key(key: &str) -> IdempotencyKey {
    IdempotencyKey { token_id: "t".into(), route: "r".into(), key: key.into(), content: [1; 32] }
}

fn named(user: &str) -> Publish {
    let client_event_id = Some(ClientEventId { id: "mine".into(), content: [1; 16] });
    let events = vec![IncomingEvent::new(failure("grep"), client_event_id)];
    Publish { caller: Caller::user(user), events, idempotency_key: Some(idempotency_key(user)) }
}

/// Something of this person in every table: mail and reminders that are due in a minute, batches that close then, things
/// that were said, read and answered.
async fn live(backend: &Backend, user: &str) -> Result<(), StoreError> {
    let (store, caller) = (backend.store(), Caller::user(user));
    store.put_conversation(caller.clone(), "chat".into(), user.into(), ConversationDetails::titled("A title")).await?;
    store.publish(named(user)).await?;
    let mut ask = inject_command(AfterTool, "c1");
    ask.caller = caller.clone();
    store.inject(ask).await?;
    backend.publish_as(caller.clone(), failure("sed"), None).await?;
    backend.publish_as(caller.clone(), asks("May I?"), None).await?;
    tell(backend, user, "news").await;
    let reminder = NewReminder {
        caller,
        user_id: user.into(),
        origin: "butler".into(),
        conversation_id: Some("chat".into()),
        correlation_id: None,
        message: "Buy milk".into(),
        at: bellwire_core::Time::from_millis(backend.now().as_millis() + 60_000),
        idempotency_key: None,
    };
    store.remind(reminder).await?;
    let token = Token {
        id: format!("token of {user}"),
        secret_hash: user.as_bytes().to_vec(),
        scope: "user".into(),
        name: None,
        user_id: Some(user.into()),
        origin: None,
        conversation_id: None,
        created_at: backend.now(),
        expires_at: None,
        revoked_at: None,
    };
    store.put_token(token).await
}

/// Everything that can be asked about this person. Those who ask get an answer, whatever it is.
async fn ask_everything(backend: &Backend, user: &str) -> Vec<Result<(), StoreError>> {
    let (store, caller) = (backend.store(), Caller::user(user));
    let (id, mut ask) = (user.to_owned(), inject_command(AfterTool, "c2"));
    (ask.caller, ask.unseen) = (caller.clone(), vec!["c1".into()]);
    let mut again = inject_command(AfterTool, "c1");
    again.caller = caller.clone();
    let nothing = NotificationId(uuid_of(1));
    let query =
        bellwire_store::InboxQuery { state: bellwire_store::InboxState::All, item_type: None, before: None, limit: 10 };
    vec![
        store.conversation(caller.clone(), "chat".into()).await.map(drop),
        store.connect(caller.clone(), "chat".into()).await.map(drop),
        store.inject(again).await.map(drop),
        store.publish(named(user)).await.map(drop),
        backend.publish_as(caller.clone(), failure("awk"), None).await.map(drop),
        backend.publish_as(caller.clone(), asks("And now?"), None).await.map(drop),
        store.inject(ask).await.map(drop),
        store.rotate_boundary(caller.clone(), "chat".into(), AgentName::main(), None).await.map(drop),
        store.messages(caller.clone(), "chat".into(), None, 10).await.map(drop),
        store.trace(caller.clone(), "mine".into()).await.map(drop),
        store.settings(id.clone()).await.map(drop),
        store.inbox(id.clone(), query).await.map(drop),
        store.catch_up(id.clone(), Some(0), 10).await.map(drop),
        store.unread_count(id.clone()).await.map(drop),
        store.mark(id.clone(), nothing, true).await.map(drop),
        store.read_all(id.clone(), None).await.map(drop),
        store.reminders(Some(id.clone()), None, 10).await.map(drop),
        store.deliveries(Some(id.clone()), None, None, 10).await.map(drop),
        store.confirm_target(id.clone(), email(), b"wrong".to_vec(), None).await.map(drop),
        store.unsubscribe(id.clone(), email(), "other@example.org".into()).await,
        store.token_by_secret(user.as_bytes().to_vec()).await.map(drop),
    ]
}

fn uuid_of(number: u128) -> uuid::Uuid {
    uuid::Uuid::from_u128(number)
}

async fn sql(backend: &Backend, sql: String) {
    let mut file = SqliteConnectOptions::new().filename(backend.path()).connect().await.unwrap();
    sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(&mut file).await.unwrap();
    file.close().await.unwrap();
}

/// Fills a column of all rows of Ada; which those are each table says in its own way.
fn damage(table: &str, column: &str, value: &str) -> String {
    let rows = match table {
        "mailboxes" | "events" | "notifications" | "injections" => "owner = 'ada'",
        "brought_ids" => "token_owner = 'user:ada'",
        "idempotency_keys" => "name = 'ada'",
        _ => "user_id = 'ada'",
    };
    format!("UPDATE {table} SET {column} = {value} WHERE {rows}")
}

/// Ada and Bob with the same things going on; the mailboxes are in their table, where they can be damaged.
async fn template() -> Backend {
    let rules = PeopleRules { notifications_per_hour: 1_000, ..with_email() };
    let mut backend = Backend::sqlite_with(rules).await;
    for user in ["ada", "bob"] {
        mails(&backend, user).await;
    }
    for user in ["ada", "bob"] {
        live(&backend, user).await.unwrap();
    }
    // Erasing a person moves all mailboxes from the log to their table.
    let unknown = backend.store().erase_user("nobody".into()).await.unwrap_err();
    assert_eq!(unknown.kind, ErrorKind::NotFound);
    backend.close().await;
    backend
}

async fn bobs_claim(backend: &Backend) -> Vec<Claim> {
    let claims = backend.store().claim(email(), 10).await.expect("damage stops no delivery");
    claims.into_iter().filter(|claim| claim.user_id == "bob").collect()
}

#[tokio::test]
async fn damage_of_one_user_does_not_affect_others() {
    let mut backend = template().await;
    let whole = std::fs::read(backend.path()).unwrap();
    let mut refused = 0;
    for (table, column) in COLUMNS {
        for value in NONSENSE {
            let what = format!("{table}.{column} = {value}");
            std::fs::write(backend.path(), &whole).unwrap();
            sql(&backend, damage(table, column, value)).await;
            backend.open().await;
            backend.pass(120_000);
            backend.store().tick().await.unwrap_or_else(|error| panic!("{what}: a tick failed: {error}"));
            assert_eq!(bobs_claim(&backend).await.len(), 1, "{what}: Bob's mail is sent");
            for answer in ask_everything(&backend, "ada").await {
                let kind = answer.err().map(|error| error.kind);
                refused += usize::from(kind == Some(ErrorKind::Damaged));
                let known = matches!(kind, None | Some(ErrorKind::Damaged | ErrorKind::NotFound | ErrorKind::Conflict));
                assert!(known, "{what}: {kind:?}");
            }
            for (at, answer) in ask_everything(&backend, "bob").await.into_iter().enumerate() {
                let kind = answer.err().map(|error| error.kind);
                // No such notification, and no code to confirm.
                let expected = matches!(kind, None | Some(ErrorKind::NotFound | ErrorKind::Conflict));
                assert!(expected, "{what}: Bob's command {at}: {kind:?}");
            }
            let told = backend.store().catch_up("bob".into(), Some(0), 100).await.unwrap().changes;
            let reminded = told.iter().any(|change| change.item.message == "Buy milk");
            assert!(reminded, "{what}: Bob's reminder is told");
            let now = backend.now();
            let kept = RetentionCutoffs { unread_inbox: now, conversations: now, ..RetentionCutoffs::before(now) };
            backend.store().prune(kept, 100).await.unwrap_or_else(|error| panic!("{what}: retention: {error}"));
            backend.store().check().await.unwrap_or_else(|error| panic!("{what}: the writer: {error}"));
            backend.close().await;
            backend.pass(-120_000);
        }
    }
    // Some of the nonsense is a value that the column may have.
    assert!(refused > COLUMNS.len(), "only {refused} commands came across the damage");
}

#[tokio::test]
async fn each_damaged_row_is_counted_once_and_found_by_an_inspection() {
    let mut backend = template().await;
    sql(&backend, damage("reminders", "message", "x'ff'")).await;
    sql(&backend, damage("deliveries", "fence", "'nonsense'")).await;
    sql(&backend, damage("mailboxes", "state", "x'ff'")).await;
    let found = bellwire_store::SqliteStore::inspect(&backend.path()).await.unwrap().damage;
    for table in ["reminders ", "deliveries ", "mailboxes "] {
        assert!(found.iter().any(|line| line.starts_with(table)), "{table}: {found:?}");
    }
    assert!(found.iter().all(|line| !line.contains("bob")), "{found:?}");
    let counted = Arc::new(AtomicUsize::new(0));
    let count = counted.clone();
    backend.open().await;
    let observer = move |report: &CommitReport| {
        count.fetch_add(report.damaged, Ordering::SeqCst);
    };
    backend.observe(Arc::new(observer)).await;
    backend.pass(120_000);
    let look = async || {
        backend.store().tick().await.unwrap();
        backend.store().claim(email(), 10).await.unwrap();
        counted.load(Ordering::SeqCst)
    };
    let first = look().await;
    assert!(first >= 3, "{first}");
    for _ in 0..3 {
        assert_eq!(look().await, first, "timers come across it again and again");
    }
}

#[tokio::test]
async fn what_was_repaired_is_used_again_without_a_restart() {
    let mut backend = template().await;
    sql(
        &backend,
        "CREATE TABLE whole_mailboxes AS SELECT * FROM mailboxes;
         CREATE TABLE whole_positions AS SELECT * FROM inbox_positions;"
            .to_owned(),
    )
    .await;
    sql(&backend, damage("mailboxes", "state", "x'ff'")).await;
    sql(&backend, damage("inbox_positions", "position", "'nonsense'")).await;
    backend.open().await;
    backend.pass(120_000);
    backend.store().tick().await.unwrap();
    let query = bellwire_store::InboxQuery {
        state: bellwire_store::InboxState::All,
        item_type: None,
        before: None,
        limit: 100,
    };
    let is_reminded = async || {
        let (items, _) = backend.store().inbox("ada".into(), query).await.unwrap();
        items.iter().any(|item| item.message == "Buy milk")
    };
    let pending = async || backend.store().waiting().await.unwrap().0;
    let before = pending().await;
    assert!(!is_reminded().await, "the person cannot be read");
    sql(
        &backend,
        "UPDATE mailboxes SET state = (SELECT whole.state FROM whole_mailboxes AS whole WHERE \
            (whole.owner, whole.conversation_id, whole.agent) = \
            (mailboxes.owner, mailboxes.conversation_id, mailboxes.agent)) WHERE state = x'ff';
         DELETE FROM inbox_positions WHERE user_id = 'ada';
         INSERT INTO inbox_positions SELECT * FROM whole_positions WHERE user_id = 'ada';"
            .to_owned(),
    )
    .await;
    backend.store().tick().await.unwrap();
    assert!(!is_reminded().await, "it is not tried again at once");
    backend.pass(60_000);
    backend.store().tick().await.unwrap();
    assert!(is_reminded().await, "the person can be read again");
    assert!(pending().await > before, "the window of the mailbox has closed");
}

#[tokio::test]
async fn a_person_whose_damaged_rows_were_erased_begins_anew_without_a_restart() {
    let mut backend = template().await;
    sql(&backend, damage("mailboxes", "state", "x'ff'")).await;
    sql(&backend, damage("inbox_positions", "position", "'nonsense'")).await;
    let counted = Arc::new(AtomicUsize::new(0));
    let count = counted.clone();
    backend.open().await;
    let observer = move |report: &CommitReport| {
        count.fetch_add(report.damaged, Ordering::SeqCst);
    };
    backend.observe(Arc::new(observer)).await;
    backend.pass(120_000);
    backend.store().tick().await.unwrap();
    let found = counted.load(Ordering::SeqCst);
    assert!(found >= 2, "{found}");
    backend.store().erase_user("ada".into()).await.unwrap();
    live(&backend, "ada").await.unwrap();
    let receipt = backend.publish_as(Caller::user("ada"), failure("awk"), None).await.unwrap();
    backend.pass(120_000);
    backend.store().tick().await.unwrap();
    let trace = backend.store().trace(Caller::user("ada"), receipt.event_id.to_string()).await.unwrap();
    assert_eq!(trace.notifications[0].state, "pending", "the timer of the new mailbox has fired");
    let query = bellwire_store::InboxQuery {
        state: bellwire_store::InboxState::All,
        item_type: None,
        before: None,
        limit: 100,
    };
    let (items, _) = backend.store().inbox("ada".into(), query).await.unwrap();
    assert!(items.iter().any(|item| item.message == "Buy milk"), "the new reminder was told");
    assert_eq!(counted.load(Ordering::SeqCst), found, "nothing new is damaged");
}

#[tokio::test]
async fn a_remembered_answer_in_another_format_is_a_conflict_and_the_request_is_not_repeated() {
    let mut backend = Backend::sqlite().await;
    let publish = || Publish {
        caller: Caller::user("ada"),
        events: vec![IncomingEvent::new(failure("grep"), None)],
        idempotency_key: Some(idempotency_key("k")),
    };
    backend.store().publish(publish()).await.unwrap();
    for (answer, kind) in [("{\"format\": 0}", ErrorKind::Conflict), ("[{", ErrorKind::Damaged)] {
        backend.close().await;
        sql(&backend, format!("UPDATE idempotency_keys SET answer = '{answer}'")).await;
        backend.open().await;
        let refused = backend.store().publish(publish()).await.unwrap_err();
        assert_eq!(refused.kind, kind, "{refused}");
        assert_eq!(refused.message.contains("another version"), kind == ErrorKind::Conflict, "{refused}");
    }
    let answer = backend.inject(AfterTool, "c1").await;
    assert!(answer.count == 1 && !answer.block.contains("x2"), "{}", answer.block);
}
