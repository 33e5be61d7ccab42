use bellwire_core::InjectionPoint::AfterTool;
use bellwire_store::{Caller, ErrorKind};

use crate::backends::{Backend, failure, on_every_store, take};

on_every_store! {
    async fn nobody_reaches_what_is_not_theirs_nor_learns_that_it_is_there(backend: Backend) {
        let receipt = backend.publish(failure("grep")).await;
        let (store, bob) = (backend.store(), Caller::user("bob"));
        let mut ask = take(AfterTool, "c1");
        ask.caller = bob.clone();
        let refused = [
            store.take(ask).await.err(),
            store.conversation(bob.clone(), "chat".into()).await.err(),
            store.connect(bob.clone(), "chat".into()).await.err(),
            store.rotate_boundary(bob.clone(), "chat".into(), None).await.err(),
            store.messages(bob.clone(), "chat".into(), None, 10).await.err(),
            store.trace(bob.clone(), receipt.event_id.to_string()).await.err(),
            store.put_conversation(bob.clone(), "chat".into(), "bob".into(), None).await.err(),
            backend.publish_as(bob.clone(), failure("sed"), None).await.err(),
        ];
        let absent = store.conversation(bob, "absent".into()).await.err().unwrap();
        for error in refused {
            let error = error.expect("it is refused");
            assert_eq!(error.kind, ErrorKind::NotFound);
            assert!(error.message == absent.message || error.message.contains("event"));
        }
    }

    async fn the_owner_of_a_conversation_never_changes(backend: Backend) {
        let store = backend.store();
        store.put_conversation(Caller::anyone(), "chat".into(), "ada".into(), Some("Work".into())).await.unwrap();
        let refused = store.put_conversation(Caller::anyone(), "chat".into(), "bob".into(), None).await.unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Conflict);
        let view = store.put_conversation(Caller::anyone(), "chat".into(), "ada".into(), None).await.unwrap();
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
