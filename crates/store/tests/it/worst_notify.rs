//! The worst that can be asked of each command of `notify`, chats and sessions: with full tables, each is a small step.

use bellwire_core::notify::{Intent, NotifyError};
use bellwire_core::person::{ChannelName, SettingsChange};
use bellwire_core::{NotificationId, Time};
use bellwire_store::{
    Caller, ChannelRules, ChannelUpdate, ChatKey, ChatMessage, ChatSender, Claimant, ConversationDetails, EditEnd,
    InboundText, LedgerDecision, LedgerDraft, NewButton, NewSession, NotifyClaim, NotifyClaimed, NotifyEnd,
    NotifyEnding, NotifyRecipient, PeopleRules, SentFrom, SessionOwner, SettingsRequest, SignInCode, UpdateAction,
    UpdateCommand, UpdateOutcome,
};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, Executor as _};
use uuid::Uuid;

use crate::backends::{Backend, email_to, with_email};
use crate::notify_requests::{ADDRESS, send};
use crate::outbox::mail_to;
use crate::work::Reports;

/// The most that one of these commands may do.
const COMMAND_MAX: usize = 300;
/// The chat of ada.
const CHAT: &str = "1815";

fn telegram() -> ChannelName {
    ChannelName::parse("telegram").unwrap()
}

fn chat(target: &str) -> ChatKey {
    ChatKey { channel: telegram(), target: target.to_owned() }
}

/// A hub with thousands of rows of each kind, most of them of Ada, who is connected on both channels.
async fn full() -> (Backend, Reports) {
    let rules = PeopleRules { notifications_per_hour: 10_000, ..with_email() };
    let rules = rules.with_channel(telegram(), ChannelRules { sends_codes: false, ..ChannelRules::new("Telegram") });
    let mut backend = Backend::sqlite_with(rules).await;
    mail_to(&backend, ADDRESS).await;
    backend.store().put_pairing_code("ada".into(), telegram(), b"code".to_vec(), None).await.unwrap();
    handle(&backend, 1, CHAT, UpdateAction::Pair(b"code".to_vec())).await;
    for number in 0..100 {
        let (caller, id) = (Caller::user("ada"), format!("chat-{number}"));
        backend.store().put_conversation(caller, id, "ada".into(), ConversationDetails::default()).await.unwrap();
    }
    let now = backend.now().as_millis();
    let numbers = "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)";
    let key = "unhex(printf('%064x', i))";
    let id = "unhex(printf('%032x', i))";
    let sql = format!(
        "{numbers} INSERT INTO notify_requests (key, request_id, origin, intent, channel, limit_key, state, fence, created_at, \
            ended_at) SELECT {key}, x'00', 'health', 'send', 'email', zeroblob(32), 'ended', 1, {now}, {now} FROM n;
         {numbers} INSERT INTO notify_requests (key, request_id, origin, intent, channel, user_id, state, fence, lease_until, \
            created_at) SELECT unhex(printf('ff%062x', i)), zeroblob(16), 'health', 'send', 'email', 'ada', \
            iif(i % 2, 'claimed', 'started'), 1, 1, {now} FROM n;
         {numbers} INSERT INTO ledger (id, origin, user_id, channel, intent, decision) \
            SELECT {id}, 'health', 'ada', 'email', 'send', 'delivered' FROM n;
         {numbers} INSERT INTO inbound_messages SELECT 'telegram', '{CHAT}:' || i, 'ada', 'c', '{{}}', {now} FROM n;
         {numbers} INSERT INTO chat_messages SELECT 'telegram', '{CHAT}', i, 'ada', 'c', 'health', zeroblob(16), {now}, {now}, 0 \
            FROM n;
         {numbers} INSERT INTO chat_updates (channel, id, body, received_at) SELECT 'telegram', i + 10, '{{}}', {now} FROM n;
         {numbers} INSERT INTO chat_strangers SELECT 'telegram', 's' || i, {now}, NULL, 0, {now} FROM n;
         {numbers} INSERT INTO chat_strangers SELECT 'telegram', 't' || i, {now}, NULL, 0, {now} FROM n;
         {numbers} INSERT INTO sign_in_codes SELECT CAST(i AS BLOB), 'user', 'ada', {now} + 600000 FROM n;
         {numbers} INSERT INTO sessions SELECT 's' || i, CAST(i AS BLOB), 'user', 'ada', NULL, {now}, {now} + 86400000, {now}, \
            {now} + 86400000 FROM n;"
    );
    let mut file = SqliteConnectOptions::new().filename(backend.path()).connect().await.unwrap();
    file.execute(sqlx::AssertSqlSafe(sql)).await.unwrap();
    file.close().await.unwrap();
    let reports = Reports::of(&mut backend).await;
    (backend, reports)
}

async fn handle(backend: &Backend, update_id: i64, target: &str, action: UpdateAction) -> UpdateOutcome {
    let from = Some(ChatSender { target: target.to_owned(), sender: target.to_owned() });
    let command = UpdateCommand { channel: telegram(), update_id, from, action };
    backend.store().handle_update(command).await.unwrap()
}

/// Asserts that every step since the last call was small.
fn small(reports: &Reports, what: &str) {
    for report in reports.take() {
        assert!(report.work.total() <= COMMAND_MAX, "{what}: a step did {:?}", report.work);
    }
}

#[tokio::test]
async fn each_command_of_notify_is_a_small_step() {
    let (backend, reports) = full().await;
    let store = backend.store();
    reports.take();
    let listed = NotifyClaim {
        recipient: NotifyRecipient::Listed { limit_key: [0; 32] },
        on_behalf_of: None,
        key: [201; 32],
        ..send(201)
    };
    let reply = NotifyClaim { intent: Intent::Reply, answer_key: Some([7; 32]), key: [202; 32], ..send(202) };
    for claim in [send(200), listed, reply] {
        let key = claim.key;
        let what = format!("{:?}", claim.recipient);
        let again = NotifyClaim { claimant: Claimant::Messenger, ..claim.clone() };
        let NotifyClaimed::Mine { fence, .. } = store.claim_notify(claim).await.unwrap() else { panic!("{what}") };
        small(&reports, "a claim");
        assert!(store.start_notify(key, fence, SentFrom::Elsewhere).await.unwrap());
        small(&reports, "a start");
        let NotifyClaimed::Mine { fence, .. } = store.claim_notify(again).await.unwrap() else { panic!("{what}") };
        small(&reports, "a request that is taken over");
        assert!(store.start_notify(key, fence, SentFrom::Here).await.unwrap());
        let ending = NotifyEnding::failed(NotifyError::invalid("blocked"), None);
        let further_parts = vec!["7".to_owned(); 16];
        let unreachable_target = Some(ADDRESS.to_owned());
        let end = NotifyEnd { key, fence, ending, duration_ms: 1, further_parts, unreachable_target };
        assert!(store.end_notify(end).await.unwrap().is_some());
        small(&reports, "an end that switches the channel off");
        let on = SettingsChange { channels: email_to(ADDRESS), ..SettingsChange::default() };
        store.change_settings(SettingsRequest { user_id: "ada".into(), change: on }).await.unwrap();
        reports.take();
    }
    let draft = LedgerDraft {
        origin: "health".into(),
        user_id: Some("ada".into()),
        channel: "email".into(),
        intent: Some(Intent::Send),
        decision: LedgerDecision::Refused,
        class: None,
        reason: Some("invalid recipient".into()),
        notification_id: None,
        request_id: None,
    };
    store.record_decision(draft).await.unwrap();
    small(&reports, "a decision");
}

#[tokio::test]
async fn thousands_of_ended_leases_are_settled_in_small_steps() {
    let (backend, reports) = full().await;
    reports.take();
    let store = backend.store();
    for _ in 0..200 {
        store.tick().await.unwrap();
    }
    for report in reports.take() {
        assert!(report.work.total() <= 1_000, "a step did {:?}", report.work);
    }
    let mut file = SqliteConnectOptions::new().filename(backend.path()).connect().await.unwrap();
    let left: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM notify_requests WHERE state IN ('claimed', 'started')")
        .fetch_one(&mut file)
        .await
        .unwrap();
    assert_eq!(left, 0);
}

#[tokio::test]
async fn each_command_of_a_chat_is_a_small_step() {
    let (backend, reports) = full().await;
    let store = backend.store();
    reports.take();
    store.put_pairing_code("ada".into(), telegram(), b"next".to_vec(), None).await.unwrap();
    small(&reports, "a pairing code");
    let lease = store.take_lease("poller".into(), "me".into(), 60_000).await.unwrap().unwrap();
    small(&reports, "a lease");
    let updates = (20_000..20_100).map(|id| ChannelUpdate { id, body: "{}".into() }).collect();
    assert!(store.keep_updates(telegram(), Some(("poller".into(), lease)), updates).await.unwrap());
    small(&reports, "100 updates");
    assert_eq!(store.waiting_updates(telegram(), 50).await.unwrap().len(), 50);
    small(&reports, "updates to handle");
    let text = |reply_to: Option<i64>| {
        UpdateAction::Text(Box::new(InboundText {
            message_id: 9_000,
            text: "hello".into(),
            reply_to,
            endpoint: "telegram:7001".into(),
            thread: format!("{CHAT}:9000"),
            choices: (0..5_u8).map(|number| vec![number]).collect(),
        }))
    };
    let updates = [
        ("a text that asks for its conversation", CHAT, text(None)),
        ("an answer to a message", CHAT, text(Some(7))),
        ("a chosen conversation", CHAT, UpdateAction::Press(vec![0])),
        ("an unknown button", CHAT, UpdateAction::Press(vec![99])),
        ("a list of senders", CHAT, UpdateAction::Mute(None)),
        ("a muted sender", CHAT, UpdateAction::Mute(Some(7))),
        ("help", CHAT, UpdateAction::Help),
        ("no text", CHAT, UpdateAction::NotText),
        ("a start", CHAT, UpdateAction::Start),
        ("a blocked bot", CHAT, UpdateAction::Blocked),
        ("a wrong code", "777", UpdateAction::Pair(b"guess".to_vec())),
        ("a stranger", "778", UpdateAction::Start),
        ("another chat of the same person", "779", UpdateAction::Pair(b"next".to_vec())),
        ("a stop", "779", UpdateAction::Stop),
    ];
    for (id, (what, target, action)) in (30_000..).zip(updates) {
        handle(&backend, id, target, action).await;
        small(&reports, what);
    }
    let button = |index: usize| NewButton {
        token: vec![200, u8::try_from(index).unwrap()],
        chat: chat(CHAT),
        user_id: "ada".into(),
        notification_id: NotificationId(Uuid::nil()),
        index,
    };
    store.put_buttons((0..5).map(button).collect()).await.unwrap();
    small(&reports, "buttons");
    let message = ChatMessage {
        chat: chat(CHAT),
        message_id: 9_001,
        user_id: "ada".into(),
        conversation_id: Some("c".into()),
        origin: Some("health".into()),
        notification_id: Some(NotificationId(Uuid::nil())),
        at: backend.now(),
    };
    store.put_chat_message(message).await.unwrap();
    small(&reports, "a sent message");
    assert_eq!(store.due_edits(telegram(), 50).await.unwrap().len(), 50);
    small(&reports, "edits");
    store.finish_edit(chat(CHAT), 7, EditEnd::Done).await.unwrap();
    small(&reports, "an edit");
    store.release_lease("poller".into(), "me".into()).await.unwrap();
    small(&reports, "the end of a lease");
}

#[tokio::test]
async fn each_command_of_a_session_is_a_small_step() {
    let (backend, reports) = full().await;
    let store = backend.store();
    reports.take();
    let expires_at: Time = backend.now().plus(60_000);
    let code = SignInCode { code: b"code".to_vec(), scope: "user".into(), user_id: "ada".into(), expires_at };
    store.put_sign_in_code(code).await.unwrap();
    small(&reports, "a sign-in code");
    let new = NewSession { id: "new".into(), secret_hash: b"hash".to_vec(), name: None };
    assert!(store.sign_in(b"code".to_vec(), new).await.unwrap().is_some());
    small(&reports, "a session beside thousands");
    backend.pass(2 * 3_600_000);
    store.note_session_use("new".into()).await.unwrap();
    small(&reports, "a session's use");
    let owner = SessionOwner { user_id: Some("ada".into()), scope: "user".into() };
    assert!(store.end_session(owner, "new".into()).await.unwrap());
    small(&reports, "a session's end");
}
