use std::collections::HashSet;
use std::sync::Arc;

use bellwire_core::InjectionPoint::TurnStart;
use bellwire_store::{Caller, ConversationDetails};

use crate::backends::{Backend, failure, on_every_store};

on_every_store! {
    async fn two_hundred_askers_at_once_lose_nothing_and_get_nothing_twice(backend: Backend) {
        let backend = Arc::new(backend);
        let publish = |number: u32| {
            let backend = backend.clone();
            tokio::spawn(async move { backend.publish(failure(&format!("tool_{number}_"))).await })
        };
        let published: Vec<_> = (0..200).map(publish).collect();
        for task in published {
            task.await.unwrap();
        }
        let take = |number: u32| {
            let backend = backend.clone();
            tokio::spawn(async move { backend.inject(TurnStart, &format!("c{number}")).await })
        };
        let taken: Vec<_> = (0..20).map(take).collect();
        let mut seen = HashSet::new();
        let mut told = String::new();
        for task in taken {
            let answer = task.await.unwrap();
            for id in &answer.notifications {
                assert!(seen.insert(*id), "{id} was taken twice");
            }
            told.push_str(&answer.block);
        }
        for number in 0..200 {
            assert_eq!(told.matches(&format!("tool_{number}_,")).count(), 1, "tool {number}");
        }
    }

    async fn a_call_sent_again_behind_forty_others_has_its_first_answer(backend: Backend) {
        backend.publish(failure("grep")).await;
        let backend = Arc::new(backend);
        let ask = |number: u32| {
            let backend = backend.clone();
            tokio::spawn(async move { backend.inject(TurnStart, &format!("c{number}")).await })
        };
        // All of them wait for one commit, which cannot look up what it has not written yet.
        let mut asked: Vec<_> = (0..40).chain([0]).map(ask).collect();
        let again = asked.pop().unwrap().await.unwrap();
        let first = asked.swap_remove(0).await.unwrap();
        assert!(first.block.contains("grep"), "{}", first.block);
        assert_eq!(again, first);
        assert_eq!(backend.inject(TurnStart, "c0").await, first, "and later too, when others have been answered since");
    }

    async fn the_same_call_from_many_at_once_has_one_answer(backend: Backend) {
        backend.publish(failure("grep")).await;
        let backend = Arc::new(backend);
        let ask = |_| {
            let backend = backend.clone();
            tokio::spawn(async move { backend.inject(TurnStart, "c1").await })
        };
        let answers: Vec<_> = (0..50).map(ask).collect();
        let mut blocks = HashSet::new();
        for answer in answers {
            blocks.insert(answer.await.unwrap().block);
        }
        assert_eq!(blocks.len(), 1);
        assert!(blocks.iter().next().unwrap().contains("grep"));
    }

    async fn events_accepted_after_an_erasure_stay(backend: Backend) {
        backend.publish(failure("grep")).await;
        let store = backend.store();
        // All three wait for the writer when it looks: they would share a commit.
        let (erased, put, published) = tokio::join!(
            store.erase_user("ada".into()),
            store.put_conversation(Caller::user("ada"), "chat".into(), "ada".into(), ConversationDetails::titled("new")),
            backend.publish_as(Caller::user("ada"), failure("sed"), None),
        );
        erased.unwrap();
        assert_eq!(put.unwrap().title.as_deref(), Some("new"));
        let receipt = published.unwrap();
        store.trace(Caller::user("ada"), receipt.event_id.to_string()).await.unwrap();
        let told = backend.inject(TurnStart, "c1").await.block;
        assert!(told.contains("sed") && !told.contains("grep"), "{told}");
    }
}
