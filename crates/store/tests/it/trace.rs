use bellwire_core::InjectionPoint::AfterTool;
use std::sync::{Arc, Mutex};

use bellwire_core::subscriber::{SubscriberFile, Subscribers};
use bellwire_core::{EventDraft, Ids, Severity, Time};
use bellwire_store::{Caller, ClientEventId, ConversationDetails, ErrorKind, FailedTemplate};
use serde_json::json;

use crate::backends::{Backend, START, event, failure, on_every_store};
use crate::notify::{message, told};

/// A subscriber for agents and people, with these templates.
fn ci(template: &str, template_user: &str) -> Arc<Subscribers> {
    let text = "[subscriber]\nid = \"ci\"\nname = \"CI\"\ndescription = \"Builds\"\nversion = \"1.0.0\"\n[events]\n\
                types = [\"ci.build.failed\"]\n[batching]\nwindow_ms = 0\n[output]\npriority = \"high\"\n\
                inject_at = \"after_tool\"\naudience = \"both\"\ntemplate = \"agent.j2\"\ntemplate_user = \"user.j2\"\n";
    let templates = [("agent.j2", template), ("user.j2", template_user)];
    let templates = templates.map(|(path, text)| (path.to_owned(), text.to_owned())).into();
    let loaded = Subscribers::load(&[SubscriberFile { path: "ci.toml".into(), text: text.into() }], &templates);
    assert!(loaded.errors.is_empty(), "{:?}", loaded.errors);
    loaded.subscribers.into()
}

const MISSING: &str = "{{ events[0].payload.nothing }}";
const WHY: &str = "a value is missing in `{{ events[0].payload.nothing }}`; give it a default";

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

    async fn a_template_that_fails_is_in_the_trace_and_in_the_report(backend: Backend) {
        let reported = Arc::new(Mutex::new(Vec::new()));
        let seen = reported.clone();
        let observer = move |report: &bellwire_store::CommitReport| {
            seen.lock().unwrap().extend(report.template_failures.clone());
        };
        backend.observe(Arc::new(observer)).await;
        backend.store().set_subscribers(ci(MISSING, MISSING)).await.unwrap();
        let failed = || event("ci.build.failed", Severity::Error, json!({"message": "3 of 80 failed"}));
        // The hour is full, so that the person's notification waits.
        for number in 0..5 {
            told(&backend, message(&format!("message {number}"))).await;
        }
        let receipt = backend.publish(failed()).await;
        let answer = backend.inject(AfterTool, "c1").await;
        assert!(answer.block.contains("ci.build.failed: 3 of 80 failed"), "{}", answer.block);
        if backend.is_durable() {
            backend.restart().await;
            backend.store().set_subscribers(ci(MISSING, MISSING)).await.unwrap();
        }
        let id = receipt.event_id.to_string();
        let store = backend.store();
        let trace = || store.trace(Caller::user("ada"), id.clone());
        let life = trace().await.unwrap();
        let [agent, user] = ["agent.j2", "user.j2"].map(|file| format!("{file}:1: {WHY}"));
        assert_eq!(life.notifications[0].template_error.as_ref(), Some(&agent));
        assert!(life.person_traces[0].due_at.is_some());
        assert_eq!(life.person_traces[0].template_error.as_ref(), Some(&user), "while it waits");
        backend.pass(60 * 60_000);
        backend.store().tick().await.unwrap();
        let life = trace().await.unwrap();
        assert_eq!(life.person_traces[0].item.as_ref().unwrap().message, "Ci build failed: 3 of 80 failed");
        assert_eq!(life.person_traces[0].template_error.as_ref(), Some(&user), "in the inbox");
        let failed = |error| FailedTemplate { subscriber: "ci".into(), is_loaded: true, error };
        assert_eq!(*reported.lock().unwrap(), [user, agent].map(failed));
    }

    async fn a_notification_shown_again_after_its_template_was_corrected_has_no_error(backend: Backend) {
        backend.store().set_subscribers(ci(MISSING, "x")).await.unwrap();
        let receipt = backend.publish(event("ci.build.failed", Severity::Error, json!({"message": "red"}))).await;
        backend.inject(AfterTool, "c1").await;
        backend.store().set_subscribers(ci("build: {{ events[0].message }}", "x")).await.unwrap();
        let again = bellwire_store::InjectCommand {
            unseen: vec!["c1".to_owned()],
            ..crate::backends::inject_command(AfterTool, "c2")
        };
        assert!(backend.store().inject(again).await.unwrap().block.contains("build: red"));
        let trace = backend.store().trace(Caller::user("ada"), receipt.event_id.to_string()).await.unwrap();
        assert_eq!(trace.notifications[0].template_error, None);
    }

    async fn a_caller_bound_to_one_conversation_learns_nothing_of_the_others(backend: Backend) {
        let store = backend.store();
        for id in ["chat", "secret"] {
            store.put_conversation(Caller::user("ada"), id.into(), "ada".into(), ConversationDetails::default()).await.unwrap();
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
        assert!(trace.verdicts.iter().all(|one| one.conversation_id.as_deref() == Some("chat")) && trace.verdicts.len() == 1);
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
