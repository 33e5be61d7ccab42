use bellwire_core::InjectionPoint::AfterTool;
use bellwire_core::{EventDraft, Ids, Severity, Time};
use bellwire_store::{Caller, ClientEventId, ErrorKind};
use serde_json::json;

use crate::backends::{Backend, START, event, failure, on_every_store};

on_every_store! {
    async fn one_events_life_is_told_from_verdict_to_words(backend: Backend) {
        let receipt = backend.publish(failure("grep")).await;
        backend.inject(AfterTool, "c1").await;
        let trace = backend.store().trace(Caller::user("ada"), receipt.event_id.to_string()).await.unwrap();
        assert_eq!(trace.event.kind, "tool.call.failure");
        assert_eq!(trace.verdicts, **receipt.verdicts);
        let notification = &trace.notifications[0];
        assert_eq!((notification.state.as_str(), notification.call_id.as_deref()), ("injected", Some("c1")));
        assert_eq!(notification.content.as_deref(), Some("tool_fail: grep timeout"));
        assert!(notification.ended_at.is_some());
        let injection = &trace.injections[0];
        assert_eq!((injection.call_id.as_str(), injection.point.as_str()), ("c1", "after_tool"));
        assert!(!injection.unseen);
    }

    async fn an_event_whose_place_a_newer_one_took_says_so(backend: Backend) {
        let budget = |used: u64| event("budget.token.warning", Severity::Warning, json!({"used": used, "limit": 100}));
        let older = backend.publish(budget(85)).await;
        let newer = backend.publish(budget(95)).await;
        let trace = backend.store().trace(Caller::user("ada"), older.event_id.to_string()).await.unwrap();
        let superseded: Vec<_> = trace.superseded.iter().map(|one| (one.subscriber.as_str(), one.by)).collect();
        assert_eq!(superseded, [("budget_warning", newer.event_id)]);
        let trace = backend.store().trace(Caller::user("ada"), newer.event_id.to_string()).await.unwrap();
        assert!(trace.superseded.is_empty());
    }

    async fn a_caller_bound_to_one_conversation_learns_nothing_of_the_others(backend: Backend) {
        let store = backend.store();
        for id in ["chat", "secret"] {
            store.put_conversation(Caller::user("ada"), id.into(), "ada".into(), None).await.unwrap();
        }
        let draft = json!({
            "type": "tool.call.failure", "source": "x", "severity": "error", "user_id": "ada",
            "payload": {"tool_name": "grep"},
        });
        let draft: EventDraft = serde_json::from_value(draft).unwrap();
        let event = draft.admit(Time::from_millis(START), &mut Ids::seeded(1)).unwrap();
        let id = backend.publish(event).await.event_id.to_string();
        let bound = Caller { conversation_id: Some("chat".into()), ..Caller::user("ada") };
        let trace = store.trace(bound, id.clone()).await.unwrap();
        assert!(trace.verdicts.iter().all(|one| &*one.conversation_id == "chat") && trace.verdicts.len() == 1);
        assert_eq!(store.trace(Caller::user("ada"), id).await.unwrap().verdicts.len(), 2);
    }

    async fn all_events_of_one_senders_id_are_listed_the_newest_first(backend: Backend) {
        let brought = || Some(ClientEventId { id: "build-17".into(), content: [1; 16] });
        let mut published = Vec::new();
        for user in ["ada", "bob", "carol"] {
            published.push(backend.publish_as(Caller::user(user), failure("grep"), brought()).await.unwrap().event_id);
            backend.pass(1_000);
        }
        published.reverse();
        let store = backend.store();
        let named = store.events_named("build-17".into(), 10).await.unwrap();
        assert_eq!(named.iter().map(|one| one.event_id).collect::<Vec<_>>(), published);
        let newest = &named[0];
        assert_eq!((&*newest.owner, newest.conversation_id.as_deref(), &*newest.kind), ("carol", Some("chat"), "tool.call.failure"));
        assert_eq!(newest.accepted_at, Time::from_millis(START + 2_000));
        assert_eq!(store.events_named("build-17".into(), 2).await.unwrap(), named[..2]);
        assert!(store.events_named("build-18".into(), 2).await.unwrap().is_empty());
        store.erase_user("bob".into()).await.unwrap();
        let left = store.events_named("build-17".into(), 10).await.unwrap();
        assert_eq!(left.iter().map(|one| &*one.owner).collect::<Vec<_>>(), ["carol", "ada"]);
    }

    async fn an_event_is_also_found_by_the_name_its_sender_brought(backend: Backend) {
        let client_event_id = Some(ClientEventId { id: "build-17".into(), content: [1; 16] });
        backend.publish_as(Caller::user("ada"), failure("grep"), client_event_id).await.unwrap();
        let trace = backend.store().trace(Caller::user("ada"), "build-17".into()).await;
        assert!(trace.is_ok());
        let refused = backend.store().trace(Caller::user("bob"), "build-17".into()).await.unwrap_err();
        assert_eq!(refused.kind, ErrorKind::NotFound);
    }
}
