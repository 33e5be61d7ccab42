//! Paged lists: no item is missing and none appears twice.

use bellwire_core::InjectionPoint::{AfterTool, TurnStart};
use bellwire_core::{Severity, Time};
use bellwire_store::{Caller, InboxItemType, InboxQuery, InboxState, NewReminder};
use serde_json::json;

use crate::backends::{Backend, START, event, failure, on_every_store};
use crate::notify::{message, toast, told};

on_every_store! {
    async fn messages_are_paged_oldest_first(backend: Backend) {
        for number in 1..=5 {
            backend.publish(failure(&format!("tool_{number}"))).await;
            backend.inject(AfterTool, &format!("c{number}")).await;
        }
        let store = backend.store();
        let page = |after| store.messages(Caller::user("ada"), "chat".into(), after, 2);
        let (first, next) = page(None).await.unwrap();
        assert_eq!((first.len(), first[0].call_id.as_str()), (2, "c1"));
        let (second, next) = page(next).await.unwrap();
        assert_eq!(second[0].call_id, "c3");
        let (third, next) = page(next).await.unwrap();
        assert_eq!((third.len(), next), (1, None));
        assert!(third[0].content.contains("tool_5") && third[0].source == "tool_executor");
    }

    async fn a_page_of_what_was_shown_has_at_most_as_many_messages_as_asked_for(backend: Backend) {
        for call in ["c1", "c2"] {
            for kind in ["task.background.complete", "subagent.complete", "source.file.changed"] {
                let payload = json!({"task_id": format!("{kind}{call}"), "path": call});
                backend.publish(event(kind, Severity::Info, payload)).await;
            }
            backend.inject(TurnStart, call).await;
        }
        let store = backend.store();
        let all = store.messages(Caller::user("ada"), "chat".into(), None, 100).await.unwrap().0;
        assert!(all.len() >= 6, "{all:?}");
        for limit in 1..all.len() {
            let (mut pages, mut after) = (Vec::new(), None);
            loop {
                let (page, next) = store.messages(Caller::user("ada"), "chat".into(), after, limit).await.unwrap();
                assert!(!page.is_empty() && page.len() <= limit, "{} messages of {limit}", page.len());
                pages.extend(page);
                after = next;
                if after.is_none() {
                    break;
                }
            }
            assert_eq!(pages, all, "in pages of {limit}");
        }
    }

    async fn an_inbox_is_newest_first_and_goes_on_where_it_ended(backend: Backend) {
        for number in 0..4 {
            told(&backend, message(&format!("{number}"))).await;
            backend.pass(1);
        }
        told(&backend, toast(json!({"message": "good", "severity": "success"}))).await;
        let page = |item_type, before| {
            let query = InboxQuery { state: InboxState::All, item_type, before, limit: 2 };
            let store = backend.store();
            async move { store.inbox("ada".into(), query).await.unwrap() }
        };
        let (items, next) = page(None, None).await;
        assert_eq!((items[0].message.as_str(), items[1].message.as_str()), ("good", "3"));
        let (items, next) = page(None, next).await;
        assert_eq!((items[0].message.as_str(), items[1].message.as_str()), ("2", "1"));
        let (items, next) = page(None, next).await;
        assert_eq!((items.len(), items[0].message.as_str(), next), (1, "0", None));
        let (items, next) = page(Some(InboxItemType::Success), None).await;
        assert_eq!((items.len(), next), (1, None));
    }

    async fn reminders_are_oldest_first_and_go_on_where_they_ended(backend: Backend) {
        let store = backend.store();
        for number in 0..3 {
            let reminder = NewReminder {
                caller: Caller::user("ada"),
                user_id: "ada".into(),
                origin: "butler".into(),
                conversation_id: None,
                correlation_id: None,
                message: format!("{number}"),
                at: Time::from_millis(START + 3_600_000),
                idempotency_key: None,
            };
            store.remind(reminder).await.unwrap();
            backend.pass(1);
        }
        let (first, next) = store.reminders(Some("ada".into()), None, 2).await.unwrap();
        let (rest, end) = store.reminders(Some("ada".into()), next, 2).await.unwrap();
        let seen: Vec<&str> = first.iter().chain(&rest).map(|reminder| reminder.message.as_str()).collect();
        assert_eq!((seen, end), (vec!["0", "1", "2"], None));
    }
}
