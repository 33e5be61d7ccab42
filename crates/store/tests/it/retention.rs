use bellwire_core::InjectionPoint::AfterTool;
use bellwire_core::Time;
use bellwire_store::{
    AttemptOutcome, Caller, ClientEventId, ConversationDetails, ErrorKind, IdempotencyKey, InboxState, IncomingEvent,
    NewReminder, Publish, RetentionCutoffs,
};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, Executor as _};

use crate::backends::{Backend, START, failure, on_every_store};
use crate::notify::{inbox, message, told};
use crate::outbox::{claim, finish, mail_to, start};

fn kept(events: Time, answers: Time) -> RetentionCutoffs {
    RetentionCutoffs { answers, ..RetentionCutoffs::before(events) }
}

/// Deletes the conversations and mailboxes that nobody has used until now, in steps of a few.
async fn prune_idle(backend: &Backend) {
    let cutoffs = RetentionCutoffs { conversations: backend.now(), ..RetentionCutoffs::before(Time::ZERO) };
    for _ in 0..10 {
        backend.store().prune(cutoffs, 8).await.unwrap();
    }
}

async fn is_there(backend: &Backend, conversation: &str) -> bool {
    match backend.store().conversation(Caller::user("ada"), conversation.into()).await {
        Ok(_) => true,
        Err(error) => {
            assert_eq!(error.kind, ErrorKind::NotFound);
            false
        }
    }
}

async fn put(backend: &Backend, conversation: &str) {
    backend
        .store()
        .put_conversation(Caller::user("ada"), conversation.into(), "ada".into(), ConversationDetails::default())
        .await
        .unwrap();
}

async fn take_in(backend: &Backend, conversation: &str, call_id: &str) -> String {
    let mut ask = crate::backends::inject_command(AfterTool, call_id);
    ask.conversation_id = conversation.into();
    backend.store().inject(ask).await.unwrap().block
}

on_every_store! {
    async fn conversations_that_nobody_uses_are_deleted_unless_something_waits(backend: Backend) {
        for id in ["old-1", "old-2", "old-3", "reminded"] {
            put(&backend, id).await;
        }
        let reminder = NewReminder {
            caller: Caller::user("ada"),
            user_id: "ada".into(),
            origin: "butler".into(),
            conversation_id: Some("reminded".into()),
            correlation_id: None,
            message: "Call".into(),
            at: backend.now().plus(1_000_000),
            idempotency_key: None,
        };
        backend.store().remind(reminder).await.unwrap();
        backend.publish(failure("grep").in_conversation("window")).await;
        take_in(&backend, "old-1", "c1").await;
        backend.pass(1_000);
        backend.publish(failure("sed").in_conversation("new")).await;
        backend.pass(1_000);
        let used = RetentionCutoffs { conversations: Time::from_millis(START), ..RetentionCutoffs::before(Time::ZERO) };
        assert_eq!(backend.store().prune(used, 100).await.unwrap(), 0, "all were used since");
        prune_idle(&backend).await;
        if backend.is_durable() {
            backend.restart().await;
        }
        for (id, expected) in
            [("old-1", false), ("old-2", false), ("old-3", false), ("reminded", true), ("window", true), ("new", true)]
        {
            assert_eq!(is_there(&backend, id).await, expected, "{id}");
        }
        backend.pass(3_000);
        backend.store().tick().await.unwrap();
        // The window has ended, and its notification is pending.
        prune_idle(&backend).await;
        assert!(take_in(&backend, "window", "c2").await.contains("grep"));
        backend.publish(failure("awk").in_conversation("old-1")).await;
        backend.pass(3_000);
        backend.store().tick().await.unwrap();
        prune_idle(&backend).await;
        assert!(take_in(&backend, "old-1", "c3").await.contains("awk"), "a deleted one may be used again");
    }

    async fn conversations_are_kept_while_a_delivery_to_the_person_is_open(backend: Backend) {
        mail_to(&backend, "ada@example.org").await;
        put(&backend, "chat").await;
        told(&backend, message("news")).await;
        backend.pass(1_000);
        prune_idle(&backend).await;
        assert!(is_there(&backend, "chat").await, "it waits");
        let claim = claim(&backend).await;
        assert!(start(&backend, &claim).await);
        prune_idle(&backend).await;
        assert!(is_there(&backend, "chat").await, "it is under way");
        assert!(finish(&backend, &claim, AttemptOutcome::Sent).await);
        prune_idle(&backend).await;
        assert!(!is_there(&backend, "chat").await);
    }

    async fn unread_items_are_kept_for_their_own_time_and_until_they_are_delivered(backend: Backend) {
        told(&backend, message("unread")).await;
        mail_to(&backend, "ada@example.org").await;
        told(&backend, message("to be mailed")).await;
        backend.pass(1_000);
        let all = RetentionCutoffs { unread_inbox: Time::ZERO, ..RetentionCutoffs::before(backend.now()) };
        backend.store().prune(all, 10).await.unwrap();
        assert_eq!(inbox(&backend, InboxState::All).await.len(), 2);
        let all = RetentionCutoffs { unread_inbox: backend.now(), ..all };
        backend.store().prune(all, 10).await.unwrap();
        let left = inbox(&backend, InboxState::All).await;
        assert_eq!((left.len(), left[0].message.as_str()), (1, "to be mailed"));
        let claim = claim(&backend).await;
        assert!(start(&backend, &claim).await);
        assert!(finish(&backend, &claim, AttemptOutcome::Sent).await);
        backend.store().prune(all, 10).await.unwrap();
        assert!(inbox(&backend, InboxState::All).await.is_empty());
    }

    async fn old_rows_are_deleted_in_small_steps_and_pending_ones_stay(backend: Backend) {
        for number in 0..6 {
            backend.publish(failure(&format!("tool_{number}"))).await;
        }
        backend.inject(AfterTool, "c1").await;
        backend.pass(60_000);
        let waiting = backend.publish(failure("waiting")).await;
        backend.pass(3_000);
        backend.store().tick().await.unwrap();
        let before = Time::from_millis(START + 30_000);
        let mut gone = 0;
        for _ in 0..20 {
            gone += backend.store().prune(kept(before, before), 2).await.unwrap();
        }
        assert!(gone >= 7, "six events and an answer went, not {gone}");
        assert!(backend.store().trace(Caller::user("ada"), waiting.event_id.to_string()).await.is_ok());
        assert!(backend.inject(AfterTool, "c2").await.block.contains("waiting"));
    }

    async fn pending_notifications_keep_their_events(backend: Backend) {
        backend.publish(failure("grep")).await;
        backend.pass(3_000);
        backend.store().tick().await.unwrap();
        let later = Time::from_millis(START + 1_000_000);
        backend.store().prune(kept(later, later), 100).await.unwrap();
        if backend.is_durable() {
            backend.restart().await;
        }
        let told = backend.inject(AfterTool, "c1").await.block;
        assert!(told.contains("grep"), "{told}");
        backend.store().prune(kept(later, later), 100).await.unwrap();
    }

    async fn injections_are_kept_as_long_as_events(backend: Backend) {
        backend.publish(failure("grep")).await;
        backend.inject(AfterTool, "c1").await;
        backend.inject(AfterTool, "c2").await;
        let (never, later) = (Time::from_millis(START), Time::from_millis(START + 1_000_000));
        backend.store().prune(kept(never, later), 100).await.unwrap();
        let store = backend.store();
        let messages = || store.messages(Caller::user("ada"), "chat".into(), None, 10);
        assert_eq!(messages().await.unwrap().0.len(), 1);
        backend.store().prune(kept(later, later), 100).await.unwrap();
        assert_eq!(messages().await.unwrap().0.len(), 0);
    }

    async fn a_name_whose_event_was_forgotten_may_be_used_again(backend: Backend) {
        let client_event_id = |content: u8| Some(ClientEventId { id: "build-17".into(), content: [content; 16] });
        backend.publish_as(Caller::user("ada"), failure("grep"), client_event_id(1)).await.unwrap();
        backend.inject(AfterTool, "c1").await;
        let later = Time::from_millis(START + 1_000_000);
        backend.store().prune(kept(later, Time::from_millis(START)), 100).await.unwrap();
        assert!(backend.publish_as(Caller::user("ada"), failure("sed"), client_event_id(2)).await.is_ok());
    }

    async fn an_erased_person_leaves_nothing(backend: Backend) {
        let receipt = backend.publish(failure("grep")).await;
        backend.inject(AfterTool, "c1").await;
        backend.store().erase_user("ada".into()).await.unwrap();
        let store = backend.store();
        let error = store.conversation(Caller::user("ada"), "chat".into()).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::NotFound);
        assert!(store.trace(Caller::anyone(), receipt.event_id.to_string()).await.is_err());
        let again = backend.publish(failure("grep")).await;
        assert_eq!(again.verdicts[0].verdict, "held", "the old window is forgotten with the rest");
    }

    async fn idempotency_records_about_an_erased_user_are_erased(backend: Backend) {
        let store = backend.store();
        let idempotency_key = |key: &str| {
            let names = ["admin", "POST /v1/events", key].map(str::to_owned);
            let [token_id, route, key] = names;
            Some(IdempotencyKey { token_id, route, key, content: [7; 32] })
        };
        let say = |key: &str, conversations: &[&str]| {
            let told = |id: &&str| IncomingEvent::new(failure("grep").in_conversation(id), None);
            let events = conversations.iter().map(told).collect();
            store.publish(Publish { caller: Caller::anyone(), events, idempotency_key: idempotency_key(key) })
        };
        for (user, id) in [("ada", "adas"), ("bob", "bobs")] {
            store.put_conversation(Caller::anyone(), id.into(), user.into(), ConversationDetails::default()).await.unwrap();
        }
        say("to ada", &["adas"]).await.unwrap();
        say("to both", &["bobs", "adas"]).await.unwrap();
        let to_bob = say("to bob", &["bobs"]).await.unwrap();
        for user in ["ada", "bob"] {
            let about = Some(user.to_owned());
            store.answer_once(idempotency_key(user).unwrap(), "before".into(), about).await.unwrap();
        }
        store.erase_user("ada".into()).await.unwrap();
        for (key, conversations) in [("to ada", &["adas"][..]), ("to both", &["bobs", "adas"])] {
            assert_eq!(say(key, conversations).await.unwrap_err().kind, ErrorKind::NotFound, "{key} is not known");
        }
        assert_eq!(say("to bob", &["bobs"]).await.unwrap(), to_bob);
        for (user, said) in [("ada", "after"), ("bob", "before")] {
            assert_eq!(store.answer_once(idempotency_key(user).unwrap(), "after".into(), None).await.unwrap(), said, "{user}");
        }
    }
}

#[tokio::test]
async fn mailboxes_of_people_who_were_told_nothing_for_long_are_deleted_unless_something_waits() {
    let backend = Backend::sqlite().await;
    told(&backend, message("news")).await;
    backend.pass(1_000);
    let mut file = SqliteConnectOptions::new().filename(backend.path()).connect().await.unwrap();
    file.execute(
        "INSERT INTO mailboxes (owner, conversation_id, agent, state, pending, due_at) VALUES
            ('ada', '', 'told', x'01', x'', 9223372036854775807),
            ('bob', '', 'idle', x'01', x'', 9223372036854775807),
            ('bob', '', 'due', x'01', x'', 5),
            ('bob', '', 'damaged', x'', x'', 9223372036854775807),
            ('bob', '', 'pending', x'01', x'00000000000000000000000000000000', 9223372036854775807)",
    )
    .await
    .unwrap();
    let cutoffs =
        |at: i64| RetentionCutoffs { conversations: Time::from_millis(at), ..RetentionCutoffs::before(Time::ZERO) };
    for _ in 0..10 {
        backend.store().prune(cutoffs(START), 8).await.unwrap();
    }
    let mut left = async || {
        let agents = sqlx::query_scalar("SELECT agent FROM mailboxes WHERE conversation_id = '' ORDER BY agent");
        let agents: Vec<String> = agents.fetch_all(&mut file).await.unwrap();
        agents
    };
    assert_eq!(left().await, ["damaged", "due", "pending", "told"]);
    for _ in 0..10 {
        backend.store().prune(cutoffs(START + 1_000), 8).await.unwrap();
    }
    assert_eq!(left().await, ["damaged", "due", "pending"]);
    file.close().await.unwrap();
}
