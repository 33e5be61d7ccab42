//! The live feed: what commits did, in order, without delaying anyone.

use std::time::Duration;

use bellwire_core::InjectionPoint::AfterTool;
use bellwire_core::{Event, Severity};
use bellwire_store::{
    Caller, ConversationDetails, EventFilter, EventQuery, Fate, ListedEvent, LiveEvent, LiveReceiver,
};
use serde_json::json;

use crate::backends::{Backend, failure, on_every_store};
use crate::notify::{message, told};
use crate::outbox::mail_to;

fn everything(backend: &Backend) -> LiveReceiver {
    backend.store().live(EventQuery::default())
}

/// What the commits so far have left for this reader.
async fn heard(live: &mut LiveReceiver) -> Vec<LiveEvent> {
    let mut heard = Vec::new();
    while let Ok(Some(event)) = tokio::time::timeout(Duration::ZERO, live.next()).await {
        heard.push(event);
    }
    heard
}

async fn events(live: &mut LiveReceiver) -> Vec<ListedEvent> {
    let events = heard(live).await.into_iter();
    events.filter_map(|one| if let LiveEvent::Event(event) = one { Some(*event) } else { None }).collect()
}

async fn fates(live: &mut LiveReceiver) -> Vec<Fate> {
    let events = heard(live).await.into_iter();
    events.filter_map(|one| if let LiveEvent::Fate(fate) = one { Some(*fate) } else { None }).collect()
}

async fn states(live: &mut LiveReceiver) -> Vec<&'static str> {
    fates(live).await.into_iter().map(|fate| fate.state).collect()
}

on_every_store! {
    async fn an_event_comes_with_its_verdicts_and_its_later_fate(backend: Backend) {
        backend.publish(failure("before anyone watched")).await;
        let mut live = everything(&backend);
        let receipt = backend.publish(failure("grep")).await;
        let first = events(&mut live).await;
        assert_eq!(first.len(), 1, "{first:?}");
        assert_eq!((first[0].event.id, first[0].owner.as_str()), (receipt.event_id, "ada"));
        let listed = backend.store().events(Caller::anyone(), EventQuery { limit: 1, ..EventQuery::default() }).await;
        assert_eq!(listed.unwrap().0, first, "as a list shows it");
        let notification_id = receipt.verdicts.iter().find_map(|verdict| verdict.notification_id);
        assert!(notification_id.is_some(), "{receipt:?}");
        backend.inject(AfterTool, "c1").await;
        let shown = fates(&mut live).await;
        let of_it = shown.iter().find(|fate| fate.notification_id == notification_id).expect("its fate");
        assert_eq!((of_it.state, of_it.call_id.as_deref()), ("injected", Some("c1")));
        assert_eq!((of_it.point, of_it.at), (Some(AfterTool), backend.now()));
        assert!(of_it.events.contains(&receipt.event_id), "{of_it:?}");
        assert_eq!(of_it.conversation_id.as_deref(), Some("chat"));
    }

    async fn what_a_person_does_and_what_is_delivered_is_reported(backend: Backend) {
        mail_to(&backend, "ada@example.org").await;
        let mut live = everything(&backend);
        let id = told(&backend, message("news")).await;
        assert_eq!(states(&mut live).await, ["created", "waiting"]);
        backend.store().mark("ada".into(), id, true).await.unwrap();
        backend.pass(1);
        backend.store().dismiss("ada".into(), id).await.unwrap();
        backend.store().restore("ada".into(), id).await.unwrap();
        backend.store().mark("ada".into(), id, false).await.unwrap();
        assert_eq!(states(&mut live).await, ["read", "dismissed", "read", "unread"]);
        crate::outbox::claim(&backend).await;
        let claimed = fates(&mut live).await.remove(0);
        assert_eq!((claimed.state, claimed.channel.as_deref()), ("claimed", Some("email")));
        assert_eq!(claimed.notification_id, Some(id.0));
    }

    async fn filters_choose_events_and_the_fates_of_their_owner(backend: Backend) {
        let of_bob = EventQuery { user_id: Some("bob".into()), ..EventQuery::default() };
        let mut his = backend.store().live(of_bob);
        let other = EventFilter { conversation_id: Some("other".into()), ..EventFilter::default() };
        let mut others = backend.store().live(EventQuery { filter: other, ..EventQuery::default() });
        backend.publish(failure("grep")).await;
        told(&backend, message("news")).await;
        assert_eq!((heard(&mut his).await, heard(&mut others).await), (vec![], vec![]));
        let event = Event::new("tool.call.failure", "x", Severity::Error, json!({"tool_name": "x"})).unwrap();
        backend.publish_as(Caller::user("bob"), event.in_conversation("other"), None).await.unwrap();
        assert_eq!((events(&mut his).await.len(), events(&mut others).await.len()), (1, 1));
    }

    async fn a_reader_that_does_not_read_misses_entries_and_is_told_how_many(backend: Backend) {
        let (mut slow, mut fast) = (everything(&backend), everything(&backend));
        let mut all = 0;
        for number in 0..1_200 {
            let event = Event::new("x.y", "ci", Severity::Info, json!({"number": number})).unwrap();
            backend.publish(event.in_conversation("chat")).await;
            all += heard(&mut fast).await.iter().filter(|one| matches!(one, LiveEvent::Event(_))).count();
        }
        assert_eq!(all, 1_200, "who reads misses nothing");
        let rest = heard(&mut slow).await;
        let LiveEvent::Skipped(count) = rest[0] else { panic!("{:?}", rest[0]) };
        let left = rest.iter().filter(|one| matches!(one, LiveEvent::Event(_))).count() as u64;
        assert!(count > 0 && rest.len() as u64 <= 1_025, "{count} skipped, {} left", rest.len());
        assert_eq!(count + left, 1_200, "each is either there or counted");
    }

    async fn people_are_listed_once_by_id_in_pages(backend: Backend) {
        backend.publish(failure("grep")).await;
        told(&backend, message("news")).await;
        backend.store().put_conversation(Caller::anyone(), "c".into(), "bob".into(), ConversationDetails::default()).await.unwrap();
        backend.store().put_conversation(Caller::anyone(), "d".into(), "bob".into(), ConversationDetails::default()).await.unwrap();
        for name in ["carol", "caroline", "*"] {
            let change = bellwire_core::person::SettingsChange::default();
            let request = bellwire_store::SettingsRequest { user_id: name.into(), change };
            backend.store().change_settings(request).await.unwrap();
        }
        let page = async |prefix: &str, after: Option<&str>, limit: usize| {
            let after = after.map(str::to_owned);
            let (people, next) = backend.store().people(prefix.into(), after, limit).await.unwrap();
            (people.into_iter().map(|person| person.id).collect::<Vec<_>>(), next)
        };
        let (first, next) = page("", None, 2).await;
        assert_eq!((first, next.as_deref()), (vec!["ada".to_owned(), "bob".to_owned()], Some("bob")));
        assert_eq!(page("", next.as_deref(), 2).await, (vec!["carol".to_owned(), "caroline".to_owned()], None));
        assert_eq!(page("carol", None, 1).await, (vec!["carol".to_owned()], Some("carol".to_owned())));
        assert_eq!(page("carol", Some("carol"), 5).await, (vec!["caroline".to_owned()], None));
        assert_eq!(page("b", Some("a"), 5).await, (vec!["bob".to_owned()], None));
        assert_eq!(page("x", None, 5).await, (vec![], None));
        let (people, _) = backend.store().people(String::new(), None, 2).await.unwrap();
        assert_eq!((people[0].unread, people[0].last_seen_at), (1, None));
        assert_eq!((people[1].unread, people[1].last_seen_at), (0, Some(backend.now())));
    }
}
