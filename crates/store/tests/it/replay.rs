//! A repeated call gets its first answer, also after a restart.

use bellwire_core::InjectionPoint::{AfterTool, TurnStart};
use bellwire_store::{Caller, ErrorKind};

use crate::backends::{Backend, failure, inject_command, on_every_store};
use crate::notify::{message, told};

on_every_store! {
    async fn asking_twice_gives_the_same_answer(backend: Backend) {
        backend.publish(failure("grep")).await;
        let first = backend.inject(AfterTool, "c1").await;
        backend.publish(failure("sed")).await;
        if backend.is_durable() {
            backend.restart().await;
        }
        assert_eq!(backend.inject(AfterTool, "c1").await, first);
        let refused = backend.store().inject(inject_command(TurnStart, "c1")).await.unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Conflict);
    }

    async fn a_call_id_that_returns_with_another_tool_result_gets_a_warning(backend: Backend) {
        let with = |digest: Option<[u8; 16]>| {
            let ask = bellwire_store::InjectCommand { tool_result_digest: digest, ..inject_command(AfterTool, "c1") };
            async { backend.store().inject(ask).await.unwrap() }
        };
        let first = with(Some([1; 16])).await;
        assert_eq!(first.warnings, [""; 0]);
        assert_eq!(with(Some([1; 16])).await, first);
        assert_eq!(with(None).await, first, "without a result nothing can be compared");
        let again = with(Some([2; 16])).await;
        assert!(again.warnings.len() == 1 && again.warnings[0].contains("with another tool_result"), "{again:?}");
        assert_eq!(bellwire_store::InjectResult { warnings: Vec::new(), ..again.clone() }, first);
        if backend.is_durable() {
            backend.restart().await;
            let ask = inject_command(AfterTool, "c1");
            let ask = bellwire_store::InjectCommand { tool_result_digest: Some([2; 16]), ..ask };
            assert_eq!(backend.store().inject(ask).await.unwrap(), again, "after a restart too");
        }
    }

    async fn an_empty_answer_is_remembered_too(backend: Backend) {
        let empty = backend.inject(AfterTool, "c1").await;
        backend.publish(failure("grep")).await;
        assert_eq!(backend.inject(AfterTool, "c1").await, empty);
        assert_eq!(empty.block, "");
    }

    async fn an_answer_reported_as_unseen_before_it_was_even_given_stays_unseen(backend: Backend) {
        backend.publish(failure("grep")).await;
        let store = backend.store();
        // Both wait for the same commit: the first is polled before the second, and neither has been answered.
        let mut second = inject_command(AfterTool, "c2");
        second.unseen = vec!["c1".into()];
        let (first, second) = tokio::join!(store.inject(inject_command(AfterTool, "c1")), store.inject(second));
        assert!(first.unwrap().block.contains("grep") && second.unwrap().block.contains("grep"));
        if backend.is_durable() {
            backend.restart().await;
        }
        let refused = backend.store().inject(inject_command(AfterTool, "c1")).await.unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Conflict);
        let (messages, _) = backend.store().messages(Caller::user("ada"), "chat".into(), None, 10).await.unwrap();
        assert_eq!(messages.iter().map(|one| one.call_id.as_str()).collect::<Vec<_>>(), ["c2"]);
    }

    async fn a_stream_that_catches_up_hears_every_change_once_and_nothing_twice(backend: Backend) {
        let store = backend.store();
        let start = store.catch_up("ada".into(), None, 10).await.unwrap();
        assert!(start.changes.is_empty());
        let mut ids = Vec::new();
        for number in 0..3 {
            ids.push(told(&backend, message(&format!("{number}"))).await);
        }
        store.dismiss("ada".into(), ids[0]).await.unwrap();
        let first = store.catch_up("ada".into(), Some(start.position), 2).await.unwrap();
        assert!(first.more);
        let rest = store.catch_up("ada".into(), Some(first.position), 2).await.unwrap();
        assert_eq!((first.changes.len(), rest.changes.len(), rest.more, rest.unread), (2, 2, false, 2));
        let heard: Vec<_> =
            first.changes.iter().chain(&rest.changes).map(|change| (change.item.id, change.is_new())).collect();
        let happened = [(ids[0], true), (ids[1], true), (ids[2], true), (ids[0], false)];
        assert_eq!(heard, happened, "what was dismissed since is news first all the same");
        for (at, change) in first.changes.iter().chain(&rest.changes).enumerate() {
            let later = store.catch_up("ada".into(), Some(change.position), 10).await.unwrap();
            let later: Vec<_> = later.changes.iter().map(|change| (change.item.id, change.is_new())).collect();
            assert_eq!(later, happened[at + 1..], "wherever somebody stops, the rest is what it was");
        }
        store.mark("ada".into(), ids[1], true).await.unwrap();
        let changed = store.catch_up("ada".into(), Some(rest.position), 2).await.unwrap();
        assert_eq!((changed.changes[0].item.id, changed.changes[0].is_new()), (ids[1], false));
    }
}
