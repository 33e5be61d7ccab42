//! What a person does with their inbox, and what their streams hear of it.

use bellwire_core::InjectionPoint::AfterTool;
use bellwire_core::{NotificationId, Time};
use bellwire_store::{ErrorKind, InboxQuery, InboxState, Kept, Level, NotificationDraft};
use serde_json::json;

use crate::backends::{Backend, START, on_every_store};
use crate::notify::{inbox, message, toast, told};

async fn unread(backend: &Backend) -> usize {
    backend.store().unread_count("ada".into()).await.unwrap()
}

fn build_failed() -> NotificationDraft {
    toast(json!({
        "message": "Build failed", "severity": "error", "duration": 0,
        "actions": [
            {"label": "View Logs", "action": "prompt", "prompt": "show me the logs"},
            {"label": "Dismiss", "action": "dismiss"},
        ],
    }))
}

on_every_store! {
    async fn read_unread_and_dismissed_are_counted_and_kept(backend: Backend) {
        let store = backend.store();
        let first = told(&backend, message("first")).await;
        let second = told(&backend, message("second")).await;
        assert_eq!(unread(&backend).await, 2);
        store.mark("ada".into(), first, true).await.unwrap();
        assert_eq!(unread(&backend).await, 1);
        store.mark("ada".into(), first, false).await.unwrap();
        assert_eq!(unread(&backend).await, 2);
        let dismissed = store.dismiss("ada".into(), second).await.unwrap();
        assert!(dismissed.read_at.is_some(), "dismissing reads");
        assert_eq!(unread(&backend).await, 1);
        assert_eq!(store.dismiss("ada".into(), second).await.unwrap(), dismissed, "again is the same");
        assert_eq!(store.mark("ada".into(), second, false).await.unwrap_err().kind, ErrorKind::Conflict);
        let ids = |items: Vec<bellwire_store::InboxItem>| items.into_iter().map(|item| item.id).collect::<Vec<_>>();
        assert_eq!(ids(inbox(&backend, InboxState::All).await), [first]);
        assert_eq!(ids(inbox(&backend, InboxState::Dismissed).await), [second]);
        assert_eq!(store.read_all("ada".into()).await.unwrap(), 1);
        assert_eq!((store.read_all("ada".into()).await.unwrap(), unread(&backend).await), (0, 0));
    }

    async fn what_is_not_theirs_is_not_there(backend: Backend) {
        let store = backend.store();
        let id = told(&backend, build_failed()).await;
        for error in [
            store.mark("bob".into(), id, true).await.unwrap_err(),
            store.dismiss("bob".into(), id).await.unwrap_err(),
            store.act("bob".into(), id, 0).await.unwrap_err(),
            store.act("ada".into(), id, 2).await.unwrap_err(),
            store.mark("ada".into(), NotificationId(uuid::Uuid::nil()), true).await.unwrap_err(),
        ] {
            assert_eq!(error.kind, ErrorKind::NotFound);
        }
        assert_eq!(unread(&backend).await, 1);
    }

    async fn pages_are_newest_first_and_go_on_where_they_ended(backend: Backend) {
        for number in 0..4 {
            told(&backend, message(&format!("{number}"))).await;
            backend.pass(1);
        }
        told(&backend, toast(json!({"message": "good", "severity": "success"}))).await;
        let page = |level, before| {
            let query = InboxQuery { state: InboxState::All, level, before, limit: 2 };
            let store = backend.store();
            async move { store.inbox("ada".into(), query).await.unwrap() }
        };
        let (items, next) = page(None, None).await;
        assert_eq!((items[0].message.as_str(), items[1].message.as_str()), ("good", "3"));
        let (items, next) = page(None, next).await;
        assert_eq!((items[0].message.as_str(), items[1].message.as_str()), ("2", "1"));
        let (items, next) = page(None, next).await;
        assert_eq!((items.len(), items[0].message.as_str(), next), (1, "0", None));
        let (items, next) = page(Some(Level::Success), None).await;
        assert_eq!((items.len(), next), (1, None));
    }

    async fn a_prompt_button_works_once_and_says_who_offered_it(backend: Backend) {
        let id = told(&backend, build_failed()).await;
        let store = backend.store();
        let (one, other) = tokio::join!(store.act("ada".into(), id, 0), store.act("ada".into(), id, 0));
        let (one, other) = (one.unwrap(), other.unwrap());
        assert_eq!(one, other);
        assert!(one.acted.event_id.is_some());
        if backend.is_durable() {
            backend.restart().await;
        }
        backend.pass(1_000);
        assert_eq!(backend.store().act("ada".into(), id, 0).await.unwrap(), one, "after a restart as well");
        let block = backend.take(AfterTool, "c1").await.block;
        let said = "pressed \"View Logs\" (offered by butler): show me the logs";
        assert_eq!(block.replace("\\\"", "\"").matches(said).count(), 1, "{block}");
        assert!(block.contains("[user]"), "{block}");
        assert_eq!(unread(&backend).await, 0, "who presses has read");
        let item = inbox(&backend, InboxState::All).await.remove(0);
        assert_eq!(item.acted, [one.acted]);
    }

    async fn a_dismiss_button_dismisses_and_afterwards_no_prompt_is_said(backend: Backend) {
        let id = told(&backend, build_failed()).await;
        let pressed = backend.store().act("ada".into(), id, 1).await.unwrap();
        assert_eq!(pressed.acted.event_id, None);
        assert_eq!(inbox(&backend, InboxState::Dismissed).await.len(), 1);
        assert_eq!(backend.store().act("ada".into(), id, 0).await.unwrap_err().kind, ErrorKind::Conflict);
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
            first.changes.iter().chain(&rest.changes).map(|change| (change.item.id, change.is_news())).collect();
        let happened = [(ids[0], true), (ids[1], true), (ids[2], true), (ids[0], false)];
        assert_eq!(heard, happened, "what was dismissed since is news first all the same");
        for (at, change) in first.changes.iter().chain(&rest.changes).enumerate() {
            let later = store.catch_up("ada".into(), Some(change.position), 10).await.unwrap();
            let later: Vec<_> = later.changes.iter().map(|change| (change.item.id, change.is_news())).collect();
            assert_eq!(later, happened[at + 1..], "wherever somebody stops, the rest is what it was");
        }
        store.mark("ada".into(), ids[1], true).await.unwrap();
        let changed = store.catch_up("ada".into(), Some(rest.position), 2).await.unwrap();
        assert_eq!((changed.changes[0].item.id, changed.changes[0].is_news()), (ids[1], false));
    }

    async fn positions_are_never_used_again_not_even_after_an_erasure(backend: Backend) {
        let store = backend.store();
        told(&backend, message("before")).await;
        let before = store.catch_up("ada".into(), Some(0), 10).await.unwrap().position;
        backend.pass(1_000);
        store.erase_user("ada".into()).await.unwrap();
        assert!(inbox(&backend, InboxState::All).await.is_empty());
        told(&backend, message("after")).await;
        let after = store.catch_up("ada".into(), Some(before), 10).await.unwrap();
        assert_eq!(after.changes.len(), 1);
    }

    async fn what_was_read_long_ago_goes_and_what_is_unread_stays(backend: Backend) {
        let read = told(&backend, message("read")).await;
        told(&backend, message("unread")).await;
        backend.store().mark("ada".into(), read, true).await.unwrap();
        backend.pass(60_000);
        let before = Time::from_millis(START + 1);
        let kept = Kept { events: before, answers: before, inbox: before };
        assert_eq!(backend.store().prune(kept, 10).await.unwrap(), 1);
        let left = inbox(&backend, InboxState::All).await;
        assert_eq!((left.len(), left[0].message.as_str()), (1, "unread"));
    }

    async fn whoever_follows_an_inbox_is_told_after_the_commit(backend: Backend) {
        let (mut hers, mut his) = (backend.store().doorbell("ada"), backend.store().doorbell("bob"));
        told(&backend, message("news")).await;
        assert!(hers.rings().await);
        let silent = tokio::time::timeout(std::time::Duration::ZERO, his.rings()).await;
        assert!(silent.is_err(), "nobody else hears of it");
        backend.store().close().await.unwrap();
        assert!(!his.rings().await, "the store is closed");
    }
}
