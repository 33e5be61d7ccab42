//! The worst that can be asked of each command, and of what happens by itself, in steps of bounded work.

use std::collections::BTreeSet;

use bellwire_core::Time;
use bellwire_core::person::MessageType;
use bellwire_store::{
    AttemptEnd, AttemptOutcome, AttemptStart, Caller, ConversationDetails, NotificationContent, NotificationDraft,
    PeopleRules, Purpose, RetentionCutoffs,
};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, Executor as _};

use crate::backends::{Backend, email, with_email};
use crate::delivery_order::mails;
use crate::work::Reports;

/// As many notifications as there are to tell, and mail.
const RULES: fn() -> PeopleRules = || PeopleRules { notifications_per_hour: 100_000, ..with_email() };

fn message(user: &str, conversation: usize) -> NotificationDraft {
    NotificationDraft {
        caller: Caller::user(user),
        user_id: user.into(),
        origin: "butler".into(),
        conversation_id: Some(format!("chat-{conversation}")),
        correlation_id: None,
        content: NotificationContent::Message { kind: MessageType::Info, message: format!("message {conversation}") },
        idempotency_key: None,
    }
}

async fn execute(backend: &Backend, sql: &'static str) {
    let mut file = SqliteConnectOptions::new().filename(backend.path()).connect().await.unwrap();
    file.execute(sql).await.unwrap();
    file.close().await.unwrap();
}

async fn count(backend: &Backend, sql: &'static str) -> i64 {
    let mut file = SqliteConnectOptions::new().filename(backend.path()).connect().await.unwrap();
    let count = sqlx::query_scalar(sql).fetch_one(&mut file).await.unwrap();
    file.close().await.unwrap();
    count
}

#[tokio::test]
async fn several_large_mails_are_claimed_whole_and_in_small_steps() {
    const EACH: usize = 990;
    for mut backend in [Backend::memory_with(RULES()).await, Backend::sqlite_with(RULES()).await] {
        let reports = Reports::of(&mut backend).await;
        let mut sending = tokio::task::JoinSet::new();
        for user in ["ada", "bob"] {
            mails(&backend, user).await;
        }
        for user in ["ada", "bob"] {
            for number in 0..EACH {
                let (store, draft) = (backend.store(), message(user, number));
                sending.spawn(async move { store.send(draft).await.unwrap() });
            }
        }
        sending.join_all().await;
        if backend.is_durable() {
            backend.restart().await;
        }
        reports.take();
        let mut sent = BTreeSet::new();
        loop {
            let claims = backend.store().claim(email(), 4).await.unwrap();
            reports.check("a claim of several large mails");
            if claims.is_empty() {
                break;
            }
            for claim in claims {
                let (message_id, fence) = (claim.message_id, claim.fence);
                assert!(backend.store().start(AttemptStart { message_id, fence, code: None }).await.unwrap());
                let outcome = AttemptOutcome::Sent;
                assert!(backend.store().finish(AttemptEnd { message_id, fence, outcome, jitter: 0 }).await.unwrap());
                reports.check("the attempt of a large mail");
                let Purpose::Notifications(items) = claim.purpose else { panic!("no notification is in it") };
                assert!(items.iter().all(|item| sent.insert(item.id)), "each is sent once");
            }
        }
        assert_eq!(sent.len(), 2 * EACH);
    }
}

#[tokio::test]
async fn a_conversation_of_thousands_of_sub_agents_is_deleted_in_small_steps() {
    let mut backend = Backend::sqlite().await;
    let reports = Reports::of(&mut backend).await;
    for id in ["idle", "busy"] {
        backend
            .store()
            .put_conversation(Caller::user("ada"), id.into(), "ada".into(), ConversationDetails::default())
            .await
            .unwrap();
    }
    execute(
        &backend,
        "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 6000)
         INSERT INTO mailboxes (owner, conversation_id, agent, state, pending, due_at)
             SELECT 'ada', iif(i % 2, 'idle', 'busy'), 'helper-' || i, x'01', x'', 9223372036854775807 FROM n;
         UPDATE mailboxes SET pending = x'00000000000000000000000000000000' WHERE agent = 'helper-3000'",
    )
    .await;
    backend.pass(1_000);
    reports.take();
    let old = RetentionCutoffs { conversations: backend.now(), ..RetentionCutoffs::before(Time::ZERO) };
    for _ in 0..120 {
        backend.store().prune(old, 1_000).await.unwrap();
    }
    for report in reports.take() {
        assert!(report.work.total() <= 1_000, "a step did {:?}", report.work);
    }
    assert_eq!(count(&backend, "SELECT COUNT(*) FROM mailboxes").await, 1, "one in which something waits");
    assert!(backend.store().conversation(Caller::user("ada"), "busy".into()).await.is_ok());
    assert!(backend.store().conversation(Caller::user("ada"), "idle".into()).await.is_err());
}
