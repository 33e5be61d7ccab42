//! Notifying a person: once per call, within the hourly limit.

use bellwire_core::person::{MessageType, SettingsChange, ShowNotification, ToolArguments};
use bellwire_core::{Event, Severity, Time};
use bellwire_store::{
    Caller, ConversationDetails, ErrorKind, IdempotencyKey, InboxItem, InboxItemKind, InboxItemType, InboxQuery,
    InboxState, NotificationContent, NotificationDraft, PeopleRules, SendResult,
};
use serde_json::{Value, json};

use crate::backends::{Backend, START, on_every_store};
use crate::settings::change;

const HOUR: i64 = 3_600_000;

pub(crate) fn draft(content: NotificationContent) -> NotificationDraft {
    NotificationDraft {
        caller: Caller::user("ada"),
        user_id: "ada".into(),
        origin: "butler".into(),
        conversation_id: Some("chat".into()),
        correlation_id: Some("thread".into()),
        content,
        idempotency_key: None,
    }
}

pub(crate) fn message(text: &str) -> NotificationDraft {
    draft(NotificationContent::Message { kind: MessageType::Info, message: text.to_owned() })
}

pub(crate) fn toast(arguments: Value) -> NotificationDraft {
    let show = ShowNotification::parse(&ToolArguments::parse(arguments).unwrap()).unwrap();
    draft(NotificationContent::Toast(show))
}

pub(crate) async fn told(backend: &Backend, draft: NotificationDraft) -> bellwire_core::NotificationId {
    match backend.store().send(draft).await.unwrap() {
        SendResult::Stored { id, .. } => id,
        limited => panic!("{limited:?}"),
    }
}

pub(crate) async fn inbox(backend: &Backend, state: InboxState) -> Vec<InboxItem> {
    let query = InboxQuery { state, item_type: None, before: None, limit: 100 };
    backend.store().inbox("ada".into(), query).await.unwrap().0
}

on_every_store! {
    async fn a_sent_notification_is_in_the_inbox_with_its_origin(backend: Backend) {
        let id = told(&backend, message("Buy milk")).await;
        if backend.is_durable() {
            backend.restart().await;
        }
        let item = inbox(&backend, InboxState::Unread).await.remove(0);
        assert_eq!((item.id, item.kind, item.item_type), (id, InboxItemKind::Message, InboxItemType::Info));
        assert_eq!((item.message.as_str(), item.origin.as_str()), ("Buy milk", "butler"));
        assert_eq!(item.conversation_id.as_deref(), Some("chat"));
        assert_eq!(item.correlation_id.as_deref(), Some("thread"));
        assert_eq!(item.created_at, Time::from_millis(START));
    }

    async fn the_same_call_tells_once_and_another_call_under_its_name_is_refused(backend: Backend) {
        let idempotency_key = |content: u8| IdempotencyKey {
            token_id: "t".into(),
            route: "send_notification".into(),
            key: "k".into(),
            content: [content; 32],
        };
        let call = |content: u8| NotificationDraft { idempotency_key: Some(idempotency_key(content)), ..message("Buy milk") };
        let first = backend.store().send(call(1)).await.unwrap();
        backend.pass(1_000);
        if backend.is_durable() {
            backend.restart().await;
        }
        assert_eq!(backend.store().send(call(1)).await.unwrap(), first);
        assert_eq!(inbox(&backend, InboxState::All).await.len(), 1);
        assert_eq!(backend.store().send(call(2)).await.unwrap_err().kind, ErrorKind::Conflict);
    }

    async fn no_sixty_minutes_hold_more_than_the_allowance(backend: Backend) {
        for minute in 0..5 {
            told(&backend, message(&format!("{minute}"))).await;
            backend.pass(60_000);
        }
        let limited = |seconds| SendResult::Limited { retry_after_seconds: seconds };
        assert_eq!(backend.store().send(message("too much")).await.unwrap(), limited(55 * 60));
        if backend.is_durable() {
            backend.restart().await;
        }
        assert_eq!(backend.store().send(message("too much")).await.unwrap(), limited(55 * 60), "rows decide");
        backend.pass(55 * 60_000 - 1);
        assert_eq!(backend.store().send(message("still")).await.unwrap(), limited(1));
        backend.pass(1);
        told(&backend, message("the first is an hour old")).await;
        assert_eq!(backend.store().send(message("the second is not")).await.unwrap(), limited(60));
        assert_eq!(inbox(&backend, InboxState::All).await.len(), 6);
    }

    async fn messages_and_toasts_have_an_allowance_each_and_dismissing_frees_no_place(backend: Backend) {
        for number in 0..5 {
            let id = told(&backend, message(&format!("{number}"))).await;
            backend.store().dismiss("ada".into(), id).await.unwrap();
        }
        assert!(matches!(backend.store().send(message("x")).await.unwrap(), SendResult::Limited { .. }));
        told(&backend, toast(json!({"message": "Saved", "severity": "success"}))).await;
    }

    async fn two_hundred_calls_at_once_are_admitted_exactly_as_often_as_the_hour_allows(backend: Backend) {
        let calls = (0..200).map(|number| {
            let store = backend.store();
            tokio::spawn(async move { store.send(message(&format!("{number}"))).await.unwrap() })
        });
        let mut admitted = 0;
        for call in calls.collect::<Vec<_>>() {
            admitted += usize::from(matches!(call.await.unwrap(), SendResult::Stored { .. }));
        }
        assert_eq!((admitted, inbox(&backend, InboxState::All).await.len()), (5, 5));
    }

    async fn a_caller_cannot_notify_other_users_or_for_other_conversations(backend: Backend) {
        let theirs = NotificationDraft { caller: Caller::user("bob"), ..message("x") };
        assert_eq!(backend.store().send(theirs).await.unwrap_err().kind, ErrorKind::NotFound);
        let caller = Caller { conversation_id: Some("chat".into()), ..Caller::user("ada") };
        let foreign = NotificationDraft { caller, conversation_id: Some("other".into()), ..message("x") };
        assert_eq!(backend.store().send(foreign).await.unwrap_err().kind, ErrorKind::NotFound);
        assert!(inbox(&backend, InboxState::All).await.is_empty());
    }

    async fn a_toast_appears_only_where_it_is_wanted_and_is_in_the_inbox_anyway(backend: Backend) {
        let saved = || toast(json!({"message": "Saved", "severity": "success", "duration": 5000}));
        told(&backend, saved()).await;
        let item = inbox(&backend, InboxState::All).await.remove(0);
        assert!(item.appears_at(Time::from_millis(START + 4_999)));
        assert!(!item.appears_at(Time::from_millis(START + 5_000)), "it is past its duration");
        let muted = SettingsChange { muted_origins: Some(vec!["butler".into()]), ..SettingsChange::default() };
        change(&backend, muted).await.unwrap();
        backend.pass(1);
        told(&backend, saved()).await;
        assert!(!inbox(&backend, InboxState::All).await[0].appears_at(backend.now()), "its origin is muted");
        backend.pass(1);
        let other = NotificationDraft { origin: "gardener".into(), ..saved() };
        told(&backend, other).await;
        assert!(inbox(&backend, InboxState::All).await[0].appears_at(backend.now()));
        let off = SettingsChange { toasts_enabled: Some(false), ..SettingsChange::default() };
        change(&backend, off).await.unwrap();
        backend.pass(1);
        told(&backend, NotificationDraft { origin: "gardener".into(), ..saved() }).await;
        assert!(!inbox(&backend, InboxState::All).await[0].appears_at(backend.now()), "toasts are switched off");
    }

    async fn news_for_the_person_is_told_once_whatever_it_is_addressed_to(backend: Backend) {
        for conversation in ["chat", "other"] {
            let caller = Caller::user("ada");
            backend.store().put_conversation(caller, conversation.into(), "ada".into(), ConversationDetails::default()).await.unwrap();
        }
        let asks = bellwire_core::EventDraft {
            kind: Some("agent.input.needed".into()),
            source: Some("butler".into()),
            severity: Some("warning".into()),
            payload: Some(json!({"message": "May I?"})),
            user_id: Some("ada".into()),
            ..Default::default()
        };
        let asks = asks.admit(backend.now(), &mut bellwire_core::Ids::seeded(1)).unwrap();
        let receipt = backend.publish(asks).await;
        let decided: Vec<_> = receipt.verdicts.iter().filter(|one| &*one.subscriber == "needs_you").collect();
        assert_eq!((decided.len(), &*decided[0].verdict), (1, "queued"), "{receipt:?}");
        let items = inbox(&backend, InboxState::All).await;
        assert_eq!(items.len(), 1);
        assert_eq!(items[0].message, "butler needs you: May I?");
        assert_eq!((items[0].item_type, items[0].origin.as_str()), (InboxItemType::Warning, "butler"));
        assert_eq!(Some(items[0].id.0), decided[0].notification_id);
    }

    async fn news_for_the_person_waits_where_the_hour_has_no_room(backend: Backend) {
        for number in 0..5 {
            told(&backend, message(&format!("{number}"))).await;
        }
        let asks = Event::new("agent.input.needed", "butler", Severity::Info, json!({"message": "May I?"})).unwrap();
        backend.publish(asks.in_conversation("chat")).await;
        assert_eq!(inbox(&backend, InboxState::All).await.len(), 5);
        backend.pass(HOUR - 1);
        if backend.is_durable() {
            backend.restart().await;
        }
        backend.store().tick().await.unwrap();
        assert_eq!(inbox(&backend, InboxState::All).await.len(), 5);
        backend.pass(1);
        backend.store().tick().await.unwrap();
        let items = inbox(&backend, InboxState::All).await;
        assert_eq!((items.len(), items[0].message.as_str()), (6, "butler needs you: May I?"));
        assert!(backend.store().reminders(None, None, 10).await.unwrap().0.is_empty(), "it is no reminder of anybody's");
    }
}

#[tokio::test]
async fn a_thousand_calls_of_fifty_clients_with_repeated_names_make_exactly_the_right_rows() {
    let rules = PeopleRules { notifications_per_hour: 10_000, ..PeopleRules::default() };
    let backend = Backend::sqlite_with(rules).await;
    let clients = (0..50_u32).map(|client| {
        let store = backend.store();
        tokio::spawn(async move {
            let mut answers = Vec::new();
            for call in 0..20_u32 {
                // Every name is used by two calls of this client, and by the same call of its neighbour.
                let name = (client / 2) * 10 + call / 2;
                let idempotency_key = IdempotencyKey {
                    token_id: "t".into(),
                    route: "send_notification".into(),
                    key: name.to_string(),
                    content: [0; 32],
                };
                let draft =
                    NotificationDraft { idempotency_key: Some(idempotency_key), ..message(&format!("news {name}")) };
                answers.push((name, store.send(draft).await.unwrap()));
            }
            answers
        })
    });
    let mut answers = std::collections::BTreeMap::new();
    for client in clients.collect::<Vec<_>>() {
        for (name, sent) in client.await.unwrap() {
            let first = answers.entry(name).or_insert_with(|| sent.clone());
            assert_eq!(*first, sent, "one name, one answer");
        }
    }
    let mut texts: Vec<String> = Vec::new();
    let mut before = None;
    loop {
        let query = InboxQuery { state: InboxState::All, item_type: None, before, limit: 100 };
        let (items, next) = backend.store().inbox("ada".into(), query).await.unwrap();
        texts.extend(items.into_iter().map(|item| item.message));
        before = next;
        if before.is_none() {
            break;
        }
    }
    texts.sort();
    let mut wanted: Vec<String> = (0..250).map(|name| format!("news {name}")).collect();
    wanted.sort();
    assert_eq!(texts, wanted);
}
