use bellwire_core::InjectionPoint::AfterTool;
use bellwire_core::event::AgentName;
use bellwire_core::{Event, EventDraft, Ids, Time};
use bellwire_store::{Caller, ConversationDetails, ErrorKind, HintEvent, InjectCommand};
use serde_json::json;

use crate::backends::{Backend, failure, inject_command, on_every_store};

/// An event for `chat` that also says whose it is.
fn for_user(user_id: &str) -> Event {
    let event = json!({
        "type": "tool.call.failure", "source": "ci", "severity": "error", "conversation_id": "chat", "user_id": user_id,
        "payload": { "tool_name": "awk" },
    });
    let draft: EventDraft = serde_json::from_value(event).unwrap();
    draft.admit(Time::ZERO, &mut Ids::seeded(1)).unwrap()
}

on_every_store! {
    async fn other_owners_rows_look_like_missing_ones(backend: Backend) {
        let receipt = backend.publish(failure("grep")).await;
        let (store, bob) = (backend.store(), Caller::user("bob"));
        let refused = [
            store.conversation(bob.clone(), "chat".into()).await.err(),
            store.connect(bob.clone(), "chat".into()).await.err(),
            store.rotate_boundary(bob.clone(), "chat".into(), AgentName::main(), None).await.err(),
            store.messages(bob.clone(), "chat".into(), None, 10).await.err(),
            store.trace(bob.clone(), receipt.event_id.to_string()).await.err(),
            store.put_conversation(bob.clone(), "chat".into(), "ada".into(), ConversationDetails::default()).await.err(),
            backend.publish_as(bob.clone(), for_user("ada"), None).await.err(),
        ];
        let absent = store.conversation(bob, "absent".into()).await.err().unwrap();
        for error in refused {
            let error = error.expect("it is refused");
            assert_eq!(error.kind, ErrorKind::NotFound);
            assert!(error.message == absent.message || error.message.contains("event"));
        }
    }

    async fn two_people_use_the_same_id_and_neither_learns_of_the_other(backend: Backend) {
        let (store, ada, bob) = (backend.store(), Caller::user("ada"), Caller::user("bob"));
        let mut hints = store.hints("ada", "chat");
        backend.publish_as(ada.clone(), failure("grep"), None).await.unwrap();
        let theirs = backend.publish_as(bob.clone(), failure("sed"), None).await.unwrap();
        backend.pass(2_000);
        store.tick().await.unwrap();
        let heard: Vec<_> = std::iter::from_fn(|| hints.try_next()).collect();
        assert!(matches!(&heard[..], [HintEvent::Hint(hint)] if &*hint.user_id == "ada"), "{heard:?}");
        for (caller, tool) in [(&ada, "grep"), (&bob, "sed")] {
            let mut ask = inject_command(AfterTool, "c1");
            ask.caller = caller.clone();
            let given = store.inject(ask).await.unwrap();
            assert!(given.block.contains(tool), "{}", given.block);
            assert_eq!(given.count, 1);
            let (said, _) = store.messages(caller.clone(), "chat".into(), None, 10).await.unwrap();
            assert_eq!(said.len(), 1);
            assert!(said[0].content.contains(tool));
            let view = store.conversation(caller.clone(), "chat".into()).await.unwrap();
            assert_eq!(Some(&view.user_id), caller.user_id.as_ref());
        }
        assert_eq!(store.trace(ada.clone(), theirs.event_id.to_string()).await.err().map(|error| error.kind), Some(ErrorKind::NotFound));
        store.erase_user("ada".into()).await.unwrap();
        assert!(store.conversation(bob, "chat".into()).await.is_ok());
        assert!(store.conversation(ada, "chat".into()).await.is_err());
    }

    async fn an_unbound_caller_must_name_the_owner_of_an_ambiguous_conversation(backend: Backend) {
        let (store, anyone) = (backend.store(), Caller::anyone());
        backend.publish_as(Caller::user("ada"), failure("grep"), None).await.unwrap();
        let view = store.conversation(anyone.clone(), "chat".into()).await.unwrap();
        assert_eq!(view.user_id, "ada", "there is only one");
        backend.publish_as(Caller::user("bob"), failure("sed"), None).await.unwrap();
        let unclear = store.conversation(anyone.clone(), "chat".into()).await.unwrap_err();
        assert_eq!(unclear.kind, ErrorKind::Conflict);
        assert!(unclear.message.contains("user_id"), "{unclear}");
        assert_eq!(store.messages(anyone.clone(), "chat".into(), None, 10).await.unwrap_err(), unclear);
        let receipt = backend.publish_as(anyone.clone(), for_user("bob"), None).await.unwrap();
        assert_eq!(store.trace(Caller::user("bob"), receipt.event_id.to_string()).await.unwrap().owner, "bob");
    }

    async fn a_registered_conversation_cannot_be_replaced(backend: Backend) {
        let (store, anyone) = (backend.store(), Caller::anyone());
        // Somebody uses an id before the service that speaks for everyone gives it to somebody else.
        backend.publish_as(Caller::user("mallory"), failure("grep"), None).await.unwrap();
        store.put_conversation(anyone.clone(), "chat".into(), "ada".into(), ConversationDetails::default()).await.unwrap();
        let view = store.conversation(anyone.clone(), "chat".into()).await.unwrap();
        assert_eq!(view.user_id, "ada");
        assert!(store.messages(anyone.clone(), "chat".into(), None, 10).await.is_ok());
        let receipt = backend.publish_as(anyone, failure("sed"), None).await.unwrap();
        assert_eq!(store.trace(Caller::user("ada"), receipt.event_id.to_string()).await.unwrap().owner, "ada");
    }

    async fn an_event_that_names_both_the_person_and_the_conversation_creates_it(backend: Backend) {
        let (store, anyone) = (backend.store(), Caller::anyone());
        let bound = Caller { conversation_id: Some("other".into()), ..Caller::anyone() };
        let refused = backend.publish_as(bound, for_user("ada"), None).await.unwrap_err();
        assert_eq!(refused.kind, ErrorKind::NotFound, "its token is bound to another conversation");
        backend.publish_as(anyone.clone(), for_user("ada"), None).await.unwrap();
        // Of several with the same id the first is what the id alone means.
        backend.publish_as(anyone.clone(), for_user("bob"), None).await.unwrap();
        assert_eq!(store.conversation(anyone, "chat".into()).await.unwrap().user_id, "ada");
        for user in ["ada", "bob"] {
            let ask = InjectCommand { caller: Caller::user(user), ..inject_command(AfterTool, "c1") };
            assert!(store.inject(ask).await.unwrap().block.contains("awk"), "{user}");
        }
    }

    async fn only_a_point_a_stream_or_a_put_opens_a_conversation(backend: Backend) {
        let store = backend.store();
        let reached = async || {
            let mut event = json!({"type": "cli.event", "source": "ci", "severity": "info", "payload": {}});
            event["user_id"] = json!("ada");
            let draft: EventDraft = serde_json::from_value(event).unwrap();
            let event = draft.admit(Time::ZERO, &mut Ids::seeded(1)).unwrap();
            let receipt = backend.publish_as(Caller::user("ada"), event, None).await.unwrap();
            let reached = receipt.verdicts.iter().filter(|one| one.reason != "no_open_conversation");
            reached.map(|one| one.conversation_id.as_deref().unwrap_or("none").to_owned()).collect::<Vec<String>>()
        };
        backend.publish(failure("grep")).await;
        backend.publish(Event::user_message("are you there?").unwrap().in_conversation("chat")).await;
        assert!(reached().await.is_empty(), "an event or a word of the person opens nothing");
        backend.inject(AfterTool, "c1").await;
        assert_eq!(reached().await, ["chat"]);
        backend.publish(failure("grep").in_conversation("streamed")).await;
        store.connect(Caller::user("ada"), "streamed".into()).await.unwrap();
        assert_eq!(reached().await, ["chat", "streamed"]);
        backend.publish(failure("grep").in_conversation("put")).await;
        store.put_conversation(Caller::user("ada"), "put".into(), "ada".into(), ConversationDetails::default()).await.unwrap();
        assert_eq!(reached().await, ["chat", "put", "streamed"]);
    }

    async fn the_owner_of_a_conversation_never_changes(backend: Backend) {
        let store = backend.store();
        store.put_conversation(Caller::anyone(), "chat".into(), "ada".into(), ConversationDetails::titled("Work")).await.unwrap();
        let refused = store.put_conversation(Caller::anyone(), "chat".into(), "bob".into(), ConversationDetails::default()).await.unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Conflict);
        let view = store.put_conversation(Caller::anyone(), "chat".into(), "ada".into(), ConversationDetails::default()).await.unwrap();
        assert_eq!((view.user_id.as_str(), view.title.as_deref()), ("ada", Some("Work")));
    }

    async fn a_caller_bound_to_one_conversation_has_no_other(backend: Backend) {
        backend.publish(failure("grep")).await;
        let bound = Caller { conversation_id: Some("other".into()), ..Caller::user("ada") };
        let refused = backend.publish_as(bound.clone(), failure("sed"), None).await.unwrap_err();
        assert_eq!(refused.kind, ErrorKind::NotFound);
        assert!(backend.publish_as(bound, failure("sed").in_conversation("other"), None).await.is_ok());
    }
}
