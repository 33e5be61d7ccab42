//! Repeats of an event that a person was notified of are counted in the item the person has.

use bellwire_core::{Event, Severity, Time};
use bellwire_store::{Caller, InboxItem, InboxState, RetentionCutoffs};
use serde_json::json;

use crate::backends::{Backend, on_every_store};
use crate::notify::{inbox, message, told};

/// Publishes what a waiting agent asks; repeats of a type within a minute are counted.
async fn ask(backend: &Backend, question: &str) {
    let payload = json!({ "message": question });
    let event = Event::new("agent.input.needed", "butler", Severity::Warning, payload).unwrap();
    let caller = Caller { origin: Some("butler".into()), ..Caller::user("ada") };
    backend.publish_as(caller, event.in_conversation("chat"), None).await.unwrap();
}

/// Lets the dedupe window of a minute end.
async fn window_ends(backend: &Backend) {
    backend.pass(60_000);
    backend.store().tick().await.unwrap();
}

async fn items(backend: &Backend) -> Vec<InboxItem> {
    inbox(backend, InboxState::All).await
}

on_every_store! {
    async fn repeats_update_the_item_and_are_no_item_of_their_own(backend: Backend) {
        ask(&backend, "May I?").await;
        ask(&backend, "May I?").await;
        ask(&backend, "May I?").await;
        let [first] = &items(&backend).await[..] else { panic!("one item") };
        assert_eq!(first.shown_message(), "butler needs you: May I?");
        let position = backend.store().catch_up("ada".into(), None, 10).await.unwrap().position;
        backend.store().mark("ada".into(), first.id, true).await.unwrap();
        if backend.is_durable() {
            backend.restart().await;
        }
        window_ends(&backend).await;
        let [counted] = &items(&backend).await[..] else { panic!("one item") };
        assert_eq!(counted.shown_message(), "butler needs you: May I? (2 more times)");
        assert_eq!((&counted.id, &counted.origin, &counted.source), (&first.id, &first.origin, &first.source));
        assert!(counted.read_at.is_some(), "counting does not make it unread");
        let changes = backend.store().catch_up("ada".into(), Some(position), 10).await.unwrap().changes;
        assert!(changes.iter().all(|change| !change.is_new()) && !changes.is_empty(), "{changes:?}");
        // After the window the same event is news again.
        ask(&backend, "May I?").await;
        assert_eq!(items(&backend).await.len(), 2);
    }

    async fn repeats_of_a_message_over_the_hourly_limit_are_counted_while_it_waits(backend: Backend) {
        for number in 0..5 {
            told(&backend, message(&format!("message {number}"))).await;
        }
        ask(&backend, "May I?").await;
        ask(&backend, "May I?").await;
        window_ends(&backend).await;
        assert_eq!(items(&backend).await.len(), 5, "the hour is full");
        backend.pass(60 * 60_000);
        backend.store().tick().await.unwrap();
        let latest = items(&backend).await.remove(0);
        assert_eq!(latest.shown_message(), "butler needs you: May I? (1 more time)");
    }

    async fn repeats_of_an_item_that_is_gone_are_an_item_of_their_own(backend: Backend) {
        ask(&backend, "May I?").await;
        ask(&backend, "May I?").await;
        let first = items(&backend).await.remove(0);
        backend.store().mark("ada".into(), first.id, true).await.unwrap();
        backend.pass(1_000);
        let cutoffs = RetentionCutoffs { inbox: first.created_at.plus(500), ..RetentionCutoffs::before(Time::ZERO) };
        backend.store().prune(cutoffs, 10).await.unwrap();
        assert!(items(&backend).await.is_empty());
        window_ends(&backend).await;
        let [own] = &items(&backend).await[..] else { panic!("one item") };
        assert_eq!(own.shown_message(), "butler needs you: May I? (1 more time)");
    }

    async fn a_text_that_ends_like_a_count_is_no_count(backend: Backend) {
        ask(&backend, "Restart it (9 more times)").await;
        let [first] = &items(&backend).await[..] else { panic!("one item") };
        assert_eq!(first.shown_message(), "butler needs you: Restart it (9 more times)");
        for times in [1, 3] {
            for _ in 0..times {
                ask(&backend, "Restart it (9 more times)").await;
            }
            if backend.is_durable() {
                backend.restart().await;
            }
            window_ends(&backend).await;
            let latest = items(&backend).await.remove(0);
            let counted = if times == 1 { "(1 more time)" } else { "(2 more times)" };
            assert_eq!(latest.shown_message(), format!("butler needs you: Restart it (9 more times) {counted}"));
        }
    }

    async fn a_text_like_a_count_that_waits_for_the_hourly_limit_is_no_count(backend: Backend) {
        for number in 0..5 {
            told(&backend, message(&format!("message {number}"))).await;
        }
        ask(&backend, "Restart it (4294967295 more times)").await;
        ask(&backend, "Restart it (4294967295 more times)").await;
        window_ends(&backend).await;
        if backend.is_durable() {
            backend.restart().await;
        }
        backend.pass(60 * 60_000);
        backend.store().tick().await.unwrap();
        let latest = items(&backend).await.remove(0);
        assert_eq!(latest.shown_message(), "butler needs you: Restart it (4294967295 more times) (1 more time)");
    }
}
