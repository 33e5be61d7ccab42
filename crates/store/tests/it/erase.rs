//! Erasing a person: in bounded steps, resumed after a restart, and without remains in the file.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bellwire_core::InjectionPoint::{AfterTool, TurnStart};
use bellwire_core::notify::{Intent, NotifyError, RequestContext};
use bellwire_core::person::{ChannelName, MessageType, QuietChange, SettingsChange};
use bellwire_core::{Event, Severity, Time};
use bellwire_store::{
    AttemptStart, Caller, ChannelUpdate, ChatKey, ChatMessage, ChatSender, Claim, Claimant, ClientEventId,
    ConversationDetails, ErrorKind, IdempotencyKey, InboundText, InboxQuery, InboxState, IncomingEvent, NewReminder,
    NotificationContent, NotificationDraft, NotifyClaim, NotifyClaimed, NotifyEnd, NotifyEnding, NotifyRecipient,
    Publish, RetentionCutoffs, SettingsRequest, Store, Token, UpdateAction, UpdateCommand, UpdateOutcome,
};
use serde_json::json;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, Executor as _};

use crate::backends::{Backend, START, email, email_to, on_every_store};

/// In every text about the person, and in nothing else.
const MARK: &str = "lovelace-1815";
/// The person's id.
const ADA: &str = "ada-of-1843";
const LONG: Duration = Duration::from_secs(60);

fn event(user: &str, number: usize) -> Event {
    let text = format!("{} {number} {}", mark_of(user), "x".repeat(number * 37 % 3_000));
    Event::new("tool.call.failure", "tool_executor", Severity::Error, json!({ "tool_name": number, "text": text }))
        .unwrap()
        .at(Time::from_millis(START))
        .in_conversation(&format!("{}-{}", mark_of(user), number % 7))
}

fn mark_of(user: &str) -> &str {
    if user == ADA { MARK } else { "others" }
}

async fn publish(store: &dyn Store, user: &str, numbers: std::ops::Range<usize>) {
    let incoming = |number: usize| {
        let id = format!("{}-{number}", mark_of(user));
        IncomingEvent::new(event(user, number), Some(ClientEventId { id, content: [1; 16] }))
    };
    let publish =
        Publish { caller: Caller::user(user), events: numbers.map(incoming).collect(), idempotency_key: None };
    store.publish(publish).await.unwrap();
}

/// Everything that can be kept about a person, much of it changed or deleted again.
async fn live(backend: &Backend, user: &str, events: usize) {
    let (store, mark) = (backend.store(), mark_of(user));
    let token = Token {
        id: format!("{mark}-token"),
        secret_hash: mark.into(),
        scope: "user".into(),
        name: Some(mark.into()),
        user_id: Some(user.into()),
        origin: None,
        conversation_id: None,
        created_at: backend.now(),
        expires_at: None,
        revoked_at: None,
    };
    store.put_token(token).await.unwrap();
    let idempotency_key = |key: &str| {
        let [token_id, route, key] = ["admin", "POST", &format!("{mark}-{key}")].map(str::to_owned);
        IdempotencyKey { token_id, route, key, content: [7; 32] }
    };
    store
        .answer_once(idempotency_key("one"), format!("{mark} {}", "y".repeat(2_000)), Some(user.into()))
        .await
        .unwrap();
    let change = SettingsChange { channels: email_to(format!("{mark}@example.org")), ..SettingsChange::default() };
    store.change_settings(SettingsRequest { user_id: user.into(), change }).await.unwrap();
    for number in 0..4 {
        let message = format!("{mark} {number} {}", "z".repeat(number * 900));
        let content = NotificationContent::Message { kind: MessageType::Info, message: message.clone() };
        let draft = NotificationDraft {
            caller: Caller::user(user),
            user_id: user.into(),
            origin: "butler".into(),
            conversation_id: None,
            correlation_id: None,
            content,
            idempotency_key: None,
        };
        store.send(draft).await.unwrap();
        let reminder = NewReminder {
            caller: Caller::user(user),
            user_id: user.into(),
            origin: "butler".into(),
            conversation_id: None,
            correlation_id: None,
            message,
            at: backend.now().plus(1_000_000),
            idempotency_key: None,
        };
        store.remind(reminder).await.unwrap();
    }
    store.read_all(user.into(), None).await.unwrap();
    for from in (0..events).step_by(100) {
        publish(&*store, user, from..(from + 100).min(events)).await;
        backend.pass(3_000);
        store.tick().await.unwrap();
        let mut ask = crate::backends::inject_command(AfterTool, &format!("{mark}-{from}"));
        ask.caller = Caller::user(user);
        ask.conversation_id = format!("{mark}-{}", from / 100 % 7);
        store.inject(ask).await.unwrap();
    }
}

/// A message that waits for the end of the person's quiet hours.
async fn is_notified_later(store: &dyn Store, user: &str) {
    let mark = mark_of(user);
    let part = |text: &str| Some(text.to_owned());
    let always = QuietChange { start: part("00:00"), end: part("23:59"), timezone: part("UTC") };
    let channels = email_to(format!("{mark}@example.org"));
    let change = SettingsChange { channels, quiet_hours: Some(Some(always)), ..SettingsChange::default() };
    store.change_settings(SettingsRequest { user_id: user.into(), change }).await.unwrap();
    for Claim { message_id, fence, .. } in store.claim(email(), 10).await.unwrap() {
        assert!(store.start(AttemptStart { message_id, fence, code: Some(mark.into()) }).await.unwrap());
        store.confirm_target(user.into(), email(), mark.into(), None).await.unwrap();
    }
    let claim = NotifyClaim {
        key: [mark.len() as u8; 32],
        recipient: NotifyRecipient::Person { user_id: user.into(), target: format!("{mark}@example.org") },
        subject: Some(mark.into()),
        message: Some(format!("{} {mark} at the end", "w".repeat(9_000))),
        ..request(user)
    };
    let claimed = store.claim_notify(claim).await.unwrap();
    assert!(matches!(claimed, NotifyClaimed::Ended(_)), "{claimed:?}");
}

/// A request on the person's behalf.
fn request(user: &str) -> NotifyClaim {
    let key = [mark_of(user).as_bytes()[0]; 32];
    NotifyClaim {
        key,
        request_id: uuid::Uuid::nil(),
        origin: "health".into(),
        intent: Intent::Send,
        channel: ChannelName::parse("email").unwrap(),
        recipient: NotifyRecipient::Listed { limit_key: key },
        on_behalf_of: Some(user.into()),
        claimant: Claimant::Tool,
        answer_key: None,
        chosen: None,
        conversation_id: None,
        correlation_id: None,
        message: None,
        subject: None,
    }
}

/// A request on the person's behalf whose answer names them, and a message that they sent by a channel.
async fn notifies(store: &dyn Store, user: &str) {
    let mark = mark_of(user);
    let (claim, key) = (request(user), request(user).key);
    let claimed = store.claim_notify(claim).await.unwrap();
    let NotifyClaimed::Mine { fence, .. } = claimed else { panic!("{claimed:?}") };
    let ending = NotifyEnding::failed(NotifyError::invalid(format!("{mark} is unknown")), None);
    let end = NotifyEnd { key, fence, ending, duration_ms: 1, further_parts: Vec::new(), unreachable_target: None };
    store.end_notify(end).await.unwrap();
    let context = RequestContext {
        request_id: uuid::Uuid::nil(),
        source_channel: "telegram".into(),
        source_endpoint_identity: "telegram:1".into(),
        source_sender_identity: mark.into(),
        source_thread_identity: Some(format!("{mark}:1")),
        received_at: None,
    };
    let event = Event::user_message_in(mark, &context).unwrap().in_conversation(&format!("{mark}-0"));
    let events = vec![IncomingEvent::new(event, None)];
    store.publish(Publish { caller: Caller::user(user), events, idempotency_key: None }).await.unwrap();
}

/// Where a text is in the database and in the log beside it, with what stands around it.
fn found_in(folder: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for name in ["bellwire.db", "bellwire.db-wal"] {
        let bytes = std::fs::read(folder.join(name)).unwrap_or_default();
        for at in (0..bytes.len()).filter(|at| bytes[*at..].starts_with(text.as_bytes())) {
            let around = &bytes[at.saturating_sub(60)..(at + 80).min(bytes.len())];
            found.push(format!("{name} page {}: {}", at / 4096 + 1, around.escape_ascii()));
        }
    }
    found
}

async fn is_erased(store: &dyn Store) {
    let query = InboxQuery { state: InboxState::All, item_type: None, before: None, limit: 10 };
    assert!(store.inbox(ADA.into(), query).await.unwrap().0.is_empty());
    assert!(store.token_by_secret(MARK.into()).await.unwrap().is_none());
    let error = store.conversation(Caller::user(ADA), format!("{MARK}-0")).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::NotFound);
}

#[tokio::test]
async fn of_an_erased_person_no_text_is_left_in_the_file_or_its_log() {
    let backend = Backend::sqlite().await;
    let folder = backend.path().parent().unwrap().to_owned();
    for round in 0..3 {
        live(&backend, ADA, 400).await;
        live(&backend, "bob", 400).await;
        let before = Time::from_millis(START + 1_000_000);
        // Some of it is deleted for its age, before anybody asks to erase it.
        backend.store().prune(RetentionCutoffs::before(before), 100).await.unwrap();
        assert!(found_in(&folder, MARK).len() > 100);
        backend.store().erase_user(ADA.into()).await.unwrap();
        assert_eq!(found_in(&folder, MARK), [""; 0], "in round {round}");
        is_erased(&*backend.store()).await;
        let others = found_in(&folder, "others").len();
        assert!(others > 100, "{others} texts of others are left");
    }
}

#[tokio::test]
async fn of_an_erased_person_no_chat_and_no_word_is_left() {
    let backend = Backend::sqlite().await;
    let folder = backend.path().parent().unwrap().to_owned();
    let (store, telegram) = (backend.store(), ChannelName::parse("telegram").unwrap());
    store.put_pairing_code(ADA.into(), telegram.clone(), b"code".into(), None).await.unwrap();
    for conversation in ["one", "two"] {
        store
            .put_conversation(Caller::user(ADA), conversation.into(), ADA.into(), ConversationDetails::default())
            .await
            .unwrap();
    }
    let said = |reply_to| InboundText {
        message_id: 5,
        text: format!("{MARK} says something"),
        reply_to,
        endpoint: format!("{MARK} endpoint"),
        thread: format!("{MARK}:5"),
        choices: vec![b"1".into(), b"2".into()],
    };
    // The first pairs, the second is kept until a conversation is chosen, the third is sent.
    let actions = [
        UpdateAction::Pair(b"code".into()),
        UpdateAction::Text(Box::new(said(None))),
        UpdateAction::Text(Box::new(said(Some(4)))),
    ];
    let chat = ChatKey { channel: telegram.clone(), target: MARK.into() };
    for (id, action) in (1..).zip(actions) {
        let update = ChannelUpdate { id, body: format!("{MARK} as it came") };
        store.keep_updates(telegram.clone(), None, vec![update]).await.unwrap();
        let from = Some(ChatSender { target: MARK.into(), sender: MARK.into() });
        let command = UpdateCommand { channel: telegram.clone(), update_id: id, from, action };
        store.handle_update(command).await.unwrap();
        let message = ChatMessage {
            chat: chat.clone(),
            message_id: 4,
            user_id: ADA.into(),
            conversation_id: Some("two".into()),
            origin: Some("butler".into()),
            notification_id: None,
            at: backend.now(),
        };
        store.put_chat_message(message).await.unwrap();
    }
    assert!(found_in(&folder, MARK).len() > 5);
    store.erase_user(ADA.into()).await.unwrap();
    assert_eq!(found_in(&folder, MARK), [""; 0]);
    let from = Some(ChatSender { target: MARK.into(), sender: MARK.into() });
    let command = UpdateCommand { channel: telegram, update_id: 9, from, action: UpdateAction::Help };
    assert_eq!(store.handle_update(command).await.unwrap(), UpdateOutcome::Stranger { is_answered: true });
}

#[tokio::test]
async fn of_an_erased_person_no_notify_request_and_no_inbound_message_is_left() {
    let backend = Backend::sqlite().await;
    let folder = backend.path().parent().unwrap().to_owned();
    for user in [ADA, "bob"] {
        notifies(&*backend.store(), user).await;
        is_notified_later(&*backend.store(), user).await;
    }
    assert!(found_in(&folder, MARK).len() > 4);
    backend.store().erase_user(ADA.into()).await.unwrap();
    assert_eq!(found_in(&folder, MARK), [""; 0]);
    assert!(found_in(&folder, "others").len() > 4, "texts of others are left");
}

#[tokio::test]
async fn other_commands_go_between_the_steps_and_calls_about_the_person_are_refused() {
    let mut backend = Backend::sqlite().await;
    let steps = Arc::new(AtomicUsize::new(0));
    let count = steps.clone();
    let observer = move |_: &bellwire_store::CommitReport| {
        count.fetch_add(1, Ordering::SeqCst);
    };
    backend.observe(Arc::new(observer)).await;
    live(&backend, ADA, 1_200).await;
    let (store, before) = (backend.store(), steps.load(Ordering::SeqCst));
    let order = Mutex::new(Vec::new());
    let ended = |what: &'static str| order.lock().unwrap().push(what);
    // All of them wait for the writer when it looks.
    tokio::join!(
        async {
            store.erase_user(ADA.into()).await.unwrap();
            ended("erased");
        },
        async {
            publish(&*store, "bob", 0..1).await;
            ended("published");
            // Committed rows are read beside the writer.
            let about = |error: bellwire_store::StoreError| assert_eq!(error.kind, ErrorKind::Conflict, "{error}");
            about(store.settings(ADA.into()).await.unwrap_err());
            about(store.unread_count(ADA.into()).await.unwrap_err());
            about(store.messages(Caller::user(ADA), format!("{MARK}-0"), None, 10).await.unwrap_err());
            about(store.conversation(Caller::anyone(), format!("{MARK}-0")).await.unwrap_err());
            about(store.read_all(ADA.into(), None).await.unwrap_err());
        },
        async {
            let events = vec![IncomingEvent::new(event(ADA, 1), None)];
            let publish = Publish { caller: Caller::user(ADA), events, idempotency_key: None };
            assert_eq!(store.publish(publish).await.unwrap_err().kind, ErrorKind::Conflict);
            ended("refused");
        },
        async {
            store.erase_user(ADA.into()).await.unwrap();
            ended("erased");
        },
    );
    let order = order.into_inner().unwrap();
    assert_eq!(order[2..], ["erased"; 2], "{order:?}");
    let steps = steps.load(Ordering::SeqCst) - before;
    assert!(steps > 5, "{steps} commits and steps");
    is_erased(&*store).await;
    publish(&*store, ADA, 0..1).await;
}

#[tokio::test]
async fn an_erasure_that_a_crash_interrupted_goes_on_by_itself() {
    let mut backend = Backend::sqlite().await;
    let copy = tempfile::tempdir().unwrap();
    let (from, to) = (backend.path().parent().unwrap().to_owned(), copy.path().to_owned());
    let (armed, steps) = (Arc::new(AtomicUsize::new(0)), AtomicUsize::new(0));
    let is_armed = armed.clone();
    // The writer waits for its observer: between two steps, the copy is what a crash would leave.
    let crash = move |_: &bellwire_store::CommitReport| {
        if is_armed.load(Ordering::SeqCst) == 1 && steps.fetch_add(1, Ordering::SeqCst) == 1 {
            for name in ["bellwire.db", "bellwire.db-wal"] {
                std::fs::copy(from.join(name), to.join(name)).unwrap();
            }
        }
    };
    backend.observe(Arc::new(crash)).await;
    live(&backend, ADA, 1_200).await;
    live(&backend, "bob", 50).await;
    armed.store(1, Ordering::SeqCst);
    backend.store().erase_user(ADA.into()).await.unwrap();
    assert!(found_in(copy.path(), MARK).len() > 100, "it was under way");
    // A reader keeps it from ending before the first look at it.
    let mut reader = SqliteConnectOptions::new().filename(copy.path().join("bellwire.db")).connect().await.unwrap();
    reader.execute("BEGIN; SELECT * FROM events").await.unwrap();
    let backend = Backend::sqlite_in(copy).await;
    let store = backend.store();
    assert_eq!(store.settings(ADA.into()).await.unwrap_err().kind, ErrorKind::Conflict);
    reader.execute("ROLLBACK").await.unwrap();
    let mut erased = store.erased();
    tokio::time::timeout(LONG, erased.wait_for(|count| *count == 1)).await.expect("it ends").unwrap();
    is_erased(&*store).await;
    assert_eq!(found_in(backend.path().parent().unwrap(), MARK), [""; 0]);
    let mut ask = crate::backends::inject_command(TurnStart, "c1");
    (ask.caller, ask.conversation_id) = (Caller::user("bob"), "others-3".into());
    assert!(store.inject(ask).await.unwrap().count > 0, "what others wait for is there");
}

#[tokio::test]
async fn an_erasure_ends_when_no_reader_needs_the_old_pages_any_more() {
    let backend = Backend::sqlite().await;
    live(&backend, ADA, 10).await;
    let mut reader = SqliteConnectOptions::new().filename(backend.path()).connect().await.unwrap();
    reader.execute("BEGIN; SELECT * FROM events").await.unwrap();
    let store = backend.store();
    let mut erasing = store.erase_user(ADA.into());
    let ended = tokio::time::timeout(Duration::from_millis(300), &mut erasing).await;
    assert!(ended.is_err(), "the reader still sees her");
    publish(&*store, "bob", 0..1).await;
    reader.execute("ROLLBACK").await.unwrap();
    tokio::time::timeout(LONG, erasing).await.expect("it ends").unwrap();
    reader.close().await.unwrap();
    assert_eq!(found_in(backend.path().parent().unwrap(), MARK), [""; 0]);
}

#[tokio::test]
async fn an_erasure_that_could_not_be_ended_goes_on_and_deletes_nothing_new() {
    let mut backend = Backend::sqlite().await;
    live(&backend, ADA, 10).await;
    let mut file = SqliteConnectOptions::new().filename(backend.path()).connect().await.unwrap();
    let fails = "CREATE TRIGGER fails BEFORE DELETE ON erasures BEGIN SELECT RAISE(ABORT, 'no'); END";
    file.execute(fails).await.unwrap();
    let store = backend.store();
    let waiting = store.waiting().await.unwrap().0;
    assert!(store.erase_user(ADA.into()).await.is_err());
    assert!(store.waiting().await.unwrap().0 < waiting, "the rows are gone");
    // As long as it is recorded in the file, nothing new about the person is taken: a later step would delete it.
    let events = vec![IncomingEvent::new(event(ADA, 1), None)];
    let publish_hers = Publish { caller: Caller::user(ADA), events, idempotency_key: None };
    assert_eq!(store.publish(publish_hers).await.unwrap_err().kind, ErrorKind::Conflict);
    file.execute("DROP TRIGGER fails").await.unwrap();
    file.close().await.unwrap();
    tokio::time::timeout(LONG, store.erase_user(ADA.into())).await.expect("it ends").unwrap();
    publish(&*store, ADA, 0..1).await;
    drop(store);
    backend.restart().await;
    backend.store().conversation(Caller::user(ADA), format!("{MARK}-0")).await.expect("what is new stays");
}

on_every_store! {
    async fn a_person_of_whom_nothing_is_stored_is_not_found_unless_they_were_erased(backend: Backend) {
        let store = backend.store();
        live(&backend, "bob", 5).await;
        assert_eq!(store.erase_user(ADA.into()).await.unwrap_err().kind, ErrorKind::NotFound);
        // A failed request is not remembered.
        assert_eq!(store.erase_user(ADA.into()).await.unwrap_err().kind, ErrorKind::NotFound);
        let change = SettingsChange { toasts_enabled: Some(false), ..SettingsChange::default() };
        store.change_settings(SettingsRequest { user_id: ADA.into(), change }).await.unwrap();
        store.erase_user(ADA.into()).await.unwrap();
        store.erase_user(ADA.into()).await.unwrap();
        if backend.is_durable() {
            drop(store);
            backend.restart().await;
        }
        backend.store().erase_user(ADA.into()).await.unwrap();
        backend.pass(1_000);
        backend.store().prune(RetentionCutoffs::before(backend.now()), 100).await.unwrap();
        assert_eq!(backend.store().erase_user(ADA.into()).await.unwrap_err().kind, ErrorKind::NotFound);
    }

    async fn an_erasure_is_counted_and_what_waited_for_the_person_waits_no_more(backend: Backend) {
        live(&backend, "bob", 20).await;
        let store = backend.store();
        let waiting = store.waiting().await.unwrap();
        live(&backend, ADA, 20).await;
        assert!(store.waiting().await.unwrap().0 > waiting.0);
        store.erase_user(ADA.into()).await.unwrap();
        assert_eq!(store.waiting().await.unwrap(), waiting);
        assert_eq!(*store.erased().borrow(), 1);
        store.erase_user(ADA.into()).await.unwrap();
        assert_eq!(*store.erased().borrow(), 2);
        is_erased(&*store).await;
    }
}
