use bellwire_core::{EventDraft, Ids, Severity, Time};
use bellwire_store::{Caller, ClientEventId, ConversationDetails, ErrorKind, IncomingEvent, Publish};
use serde_json::json;

use crate::backends::{Backend, START, event, failure, on_every_store};

on_every_store! {
    async fn an_event_that_no_subscriber_listens_for_says_so(backend: Backend) {
        let unheard = || event("tool.call.failed", Severity::Error, json!({"tool_name": "grep"}));
        let hint: Option<std::sync::Arc<str>> = Some("did you mean tool.call.failure?".into());
        let id = Some(ClientEventId { id: "e1".into(), content: [1; 16] });
        let publish = |event| Publish {
            caller: Caller::user("ada"),
            events: vec![IncomingEvent::new(event, id.clone()).with_hint(hint.clone())],
            idempotency_key: None,
        };
        let receipt = backend.store().publish(publish(unheard())).await.unwrap().remove(0);
        let [verdict] = &receipt.verdicts[..] else { panic!("{:?}", receipt.verdicts) };
        assert_eq!((&*verdict.subscriber, &*verdict.verdict, &verdict.hint), ("*", "filtered", &hint));
        assert_eq!(&*verdict.reason, "no_listener: no subscriber listens for this type");
        assert_eq!(receipt.filtered, 15);
        if backend.is_durable() {
            backend.restart().await;
        }
        let again = backend.store().publish(publish(unheard())).await.unwrap().remove(0);
        assert_eq!(again.verdicts, receipt.verdicts, "the same id gets the first verdicts");
        let trace = backend.store().trace(Caller::user("ada"), "e1".into()).await.unwrap();
        assert_eq!(trace.verdicts, **receipt.verdicts);
        // Types that the hub itself uses are no mistake, and neither are those that a subscriber listens for.
        for kind in ["agent.turn.start", "agent.turn.end", "tool.call.pending"] {
            let receipt = backend.publish(event(kind, Severity::Info, json!({}))).await;
            assert!(receipt.verdicts.is_empty(), "{kind}: {:?}", receipt.verdicts);
        }
        let heard = backend.publish(event("subagent.odd", Severity::Info, json!({}))).await;
        assert_eq!(heard.verdicts.iter().map(|one| &*one.subscriber).collect::<Vec<_>>(), ["subagent_result"]);
    }

    async fn an_accepted_event_has_a_verdict_from_every_subscriber_that_listens(backend: Backend) {
        let receipt = backend.publish(failure("grep")).await;
        assert_eq!(receipt.filtered, 14);
        assert_eq!(receipt.verdicts.len(), 1);
        assert_eq!(&*receipt.verdicts[0].subscriber, "tool_failure");
        assert_eq!(receipt.verdicts[0].verdict, "held");
        assert!(receipt.verdicts[0].notification_id.is_some());
    }

    async fn a_repeat_says_which_event_it_repeats(backend: Backend) {
        let first = backend.publish(failure("grep")).await;
        let second = backend.publish(failure("grep")).await;
        assert_eq!(second.verdicts[0].verdict, "duplicate");
        assert_eq!(second.verdicts[0].of, Some(first.event_id.0));
        assert_eq!(second.verdicts[0].repeats, Some(1));
    }

    async fn events_are_taken_in_together_or_not_at_all(backend: Backend) {
        backend.publish(failure("first")).await;
        let events = vec![
            IncomingEvent::new(failure("second"), None),
            IncomingEvent::new(failure("third").in_conversation("somebody elses"), None),
        ];
        let caller = Caller { conversation_id: Some("chat".into()), ..Caller::user("ada") };
        let refused = backend.store().publish(Publish { caller, events, idempotency_key: None }).await.unwrap_err();
        assert_eq!(refused.kind, ErrorKind::NotFound);
        let answer = backend.inject(bellwire_core::InjectionPoint::AfterTool, "c1").await;
        assert!(answer.block.contains("first") && !answer.block.contains("second"), "{}", answer.block);
    }

    async fn an_event_for_a_person_reaches_every_open_conversation(backend: Backend) {
        let store = backend.store();
        for id in ["one", "two"] {
            store.put_conversation(Caller::user("ada"), id.into(), "ada".into(), ConversationDetails::default()).await.unwrap();
        }
        store.put_conversation(Caller::user("bob"), "three".into(), "bob".into(), ConversationDetails::default()).await.unwrap();
        let text = r#"{"type": "tool.call.failure", "source": "ci", "severity": "error", "user_id": "ada", "payload": {}}"#;
        let draft: bellwire_core::EventDraft = serde_json::from_str(text).unwrap();
        let for_ada = draft.admit(bellwire_core::Time::ZERO, &mut bellwire_core::Ids::seeded(1)).unwrap();
        let receipt = backend.publish_as(Caller::anyone(), for_ada.clone(), None).await.unwrap();
        let reached: Vec<_> = receipt.verdicts.iter().map(|verdict| verdict.conversation_id.as_deref()).collect();
        assert_eq!(reached, [Some("one"), Some("two")]);

        backend.pass(25 * 60 * 60 * 1000);
        let receipt = backend.publish_as(Caller::anyone(), for_ada, None).await.unwrap();
        assert_eq!(receipt.verdicts[0].verdict, "filtered");
        assert_eq!(receipt.verdicts[0].reason, "no_open_conversation");
    }

    async fn how_many_conversations_an_event_for_a_person_reaches_can_be_asked_before(backend: Backend) {
        let store = backend.store();
        let open = |caller: Caller, user: &str| store.open_conversations(caller, user.into(), backend.now());
        assert_eq!(open(Caller::anyone(), "ada").await, Ok(0));
        for number in 0..102 {
            let id = format!("chat {number}");
            store.put_conversation(Caller::user("ada"), id, "ada".into(), ConversationDetails::default()).await.unwrap();
            assert_eq!(open(Caller::user("ada"), "ada").await, Ok((number + 1).min(100)));
        }
        assert_eq!(open(Caller::user("bob"), "ada").await, Ok(0), "nobody learns of another's conversations");
        let bound = Caller { conversation_id: Some("chat 1".into()), ..Caller::user("ada") };
        assert_eq!(open(bound, "ada").await, Ok(1));
        backend.pass(25 * 60 * 60 * 1000);
        assert_eq!(open(Caller::anyone(), "ada").await, Ok(0), "a day later they are no longer open");
    }

    async fn an_unbound_caller_cannot_create_a_conversation(backend: Backend) {
        let refused = backend.publish_as(Caller::anyone(), failure("grep"), None).await.unwrap_err();
        assert_eq!(refused.kind, ErrorKind::NotFound);
    }

    async fn a_detected_event_is_stored_as_an_event(backend: Backend) {
        let usage = json!({"usage": {"tokens_used": 100, "token_limit": 100}});
        backend.publish(event("agent.turn.start", Severity::Info, usage)).await;
        let answer = backend.inject(bellwire_core::InjectionPoint::Immediate, "c1").await;
        assert!(answer.block.contains("budget exceeded"), "{}", answer.block);
    }

    async fn a_message_past_the_bound_is_refused_and_nothing_is_lost(backend: Backend) {
        for number in 0..bellwire_core::mailbox::PENDING_MAX {
            let message = bellwire_core::Event::user_message(&format!("message {number}")).unwrap();
            backend.publish(message.in_conversation("chat")).await;
        }
        let one_more = bellwire_core::Event::user_message("one more").unwrap().in_conversation("chat");
        let refused = backend.publish_as(Caller::user("ada"), one_more, None).await.unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Full);
        let view = backend.store().conversation(Caller::user("ada"), "chat".into()).await.unwrap();
        assert_eq!(view.pending, bellwire_core::mailbox::PENDING_MAX);
    }

    async fn an_event_for_a_person_reaches_the_conversations_seen_last_and_says_that_there_are_more(backend: Backend) {
        let store = backend.store();
        for number in 0..105 {
            backend.pass(1);
            let id = format!("c{number:03}");
            store.put_conversation(Caller::user("ada"), id, "ada".into(), ConversationDetails::default()).await.unwrap();
        }
        let draft = json!({
            "type": "tool.call.failure", "source": "x", "severity": "error", "user_id": "ada",
            "payload": {"tool_name": "grep"},
        });
        let draft: EventDraft = serde_json::from_value(draft).unwrap();
        let event = draft.admit(Time::from_millis(START), &mut Ids::seeded(1)).unwrap();
        let receipt = backend.publish(event).await;
        let told = receipt.verdicts.iter().filter(|one| one.verdict == "held").count();
        assert_eq!(told, 100);
        assert!(receipt.verdicts.iter().any(|one| one.reason.starts_with("too_many_open_conversations")));
        assert!(receipt.verdicts.iter().all(|one| one.conversation_id.as_deref() != Some("c000")), "the one seen first is left out");
    }

    async fn a_token_bound_to_a_conversation_reaches_it_however_many_were_seen_since(backend: Backend) {
        let store = backend.store();
        for number in 0..105 {
            backend.pass(1);
            let id = format!("c{number:03}");
            store.put_conversation(Caller::user("ada"), id, "ada".into(), ConversationDetails::default()).await.unwrap();
        }
        let bound = Caller { conversation_id: Some("c000".into()), ..Caller::user("ada") };
        let event = bellwire_core::Event::new("tool.call.failure", "x", Severity::Error, json!({"tool_name": "grep"}));
        let event = event.unwrap().for_person("ada");
        let receipt = backend.publish_as(bound.clone(), event.clone(), None).await.unwrap();
        let reached: Vec<_> = receipt.verdicts.iter().map(|one| one.conversation_id.as_deref()).collect();
        assert_eq!(reached, [Some("c000")]);
        let closed = Caller { conversation_id: Some("elsewhere".into()), ..bound };
        let receipt = backend.publish_as(closed, event, None).await.unwrap();
        assert_eq!(receipt.verdicts[0].reason, "no_open_conversation");
    }
}
