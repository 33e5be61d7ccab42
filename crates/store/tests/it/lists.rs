//! Lists of events and conversations: filters, pages, owners, and how many rows a page reads.

use bellwire_core::event::TypePattern;
use bellwire_core::verdict::VerdictKind;
use bellwire_core::{Event, EventId, Severity, Time};
use bellwire_store::{
    Caller, ConversationDetails, ConversationPosition, ConversationQuery, ErrorKind, EventFilter, EventQuery,
    IncomingEvent, ListedEvent, Publish, Store,
};
use serde_json::json;

use crate::backends::{Backend, START, event, failure, on_every_store};

fn newest(filter: EventFilter) -> EventQuery {
    EventQuery { filter, limit: 100, ..EventQuery::default() }
}

fn types(text: &str) -> EventFilter {
    EventFilter { types: Some(TypePattern::parse(text).unwrap()), ..EventFilter::default() }
}

/// Every page of a list, and how many there were.
async fn pages(store: &dyn Store, caller: &Caller, query: &EventQuery) -> (Vec<ListedEvent>, usize) {
    let (mut all, mut before, mut count) = (Vec::new(), None, 0);
    loop {
        let (page, next) = store.events(caller.clone(), EventQuery { before, ..query.clone() }).await.unwrap();
        assert!(page.len() <= query.limit);
        all.extend(page);
        count += 1;
        let Some(next) = next else { return (all, count) };
        assert!(before.is_none_or(|before| next < before), "a page goes on behind the one before");
        before = Some(next);
    }
}

fn ids(events: &[ListedEvent]) -> Vec<EventId> {
    events.iter().map(|listed| listed.event.id).collect()
}

/// Events of one person in two calls.
async fn publish_many(store: &dyn Store, user: &str, events: Vec<Event>) {
    for events in events.chunks(1000) {
        let events = events.iter().map(|event| IncomingEvent::new(event.clone(), None)).collect();
        store.publish(Publish { caller: Caller::user(user), events, idempotency_key: None }).await.unwrap();
    }
}

on_every_store! {
    async fn events_are_newest_first_and_pages_neither_miss_nor_repeat_one(backend: Backend) {
        let mut published = Vec::new();
        for number in 0..7 {
            published.insert(0, backend.publish(failure(&format!("tool_{number}"))).await.event_id);
        }
        let store = backend.store();
        for limit in 1..=8 {
            let query = EventQuery { limit, ..EventQuery::default() };
            let (all, _) = pages(&*store, &Caller::user("ada"), &query).await;
            assert_eq!(ids(&all), published, "in pages of {limit}");
        }
        let (first, _) = store.events(Caller::anyone(), newest(EventFilter::default())).await.unwrap();
        assert_eq!((first[0].owner.as_str(), first[0].event.kind.as_str()), ("ada", "tool.call.failure"));
        assert_eq!(&*first[0].verdicts[0].subscriber, "tool_failure");
    }

    async fn events_are_found_by_type_time_and_verdict(backend: Backend) {
        let failed = backend.publish(failure("grep")).await.event_id;
        let repeated = backend.publish(failure("grep")).await.event_id;
        backend.pass(60_000);
        let mild = event("tool.call.failure", Severity::Debug, json!({"tool_name": "ls"}));
        let filtered = backend.publish(mild).await.event_id;
        let exceeded = backend.publish(event("budget.token.exceeded", Severity::Error, json!({}))).await.event_id;
        let store = backend.store();
        let list = async |filter: EventFilter| {
            ids(&store.events(Caller::user("ada"), newest(filter)).await.unwrap().0)
        };
        assert_eq!(list(types("tool.call.failure")).await, [filtered, repeated, failed]);
        assert_eq!(list(types("tool.*")).await, [filtered, repeated, failed]);
        assert_eq!(list(types("budget.*.exceeded")).await, [exceeded]);
        assert_eq!(list(types("budget.exceeded")).await, []);
        let verdict = |kind| EventFilter { verdict: Some(kind), ..EventFilter::default() };
        assert_eq!(list(verdict(VerdictKind::Filtered)).await, [filtered]);
        assert_eq!(list(verdict(VerdictKind::Duplicate)).await, [repeated]);
        let since = |millis| EventFilter { since: Some(Time::from_millis(START + millis)), ..EventFilter::default() };
        assert_eq!(list(since(60_000)).await, [exceeded, filtered]);
        assert_eq!(list(since(60_001)).await, []);
        assert_eq!(list(EventFilter { types: types("tool.*").types, ..since(1) }).await, [filtered]);
    }

    async fn a_verdicts_reason_cannot_be_taken_for_its_verdict(backend: Backend) {
        // The reason of a verdict names the event's severity, and its conversation has a name that looks like JSON.
        let id = "x\",\"verdict\":\"suppressed\",\"conversation_id\":\"chat";
        backend.publish(failure("grep").in_conversation(id)).await;
        let store = backend.store();
        let suppressed = EventFilter { verdict: Some(VerdictKind::Suppressed), ..EventFilter::default() };
        assert!(store.events(Caller::user("ada"), newest(suppressed)).await.unwrap().0.is_empty());
        let in_it = EventFilter { conversation_id: Some(id.into()), ..EventFilter::default() };
        assert_eq!(store.events(Caller::user("ada"), newest(in_it)).await.unwrap().0.len(), 1);
    }

    async fn a_conversation_lists_what_was_sent_to_it_and_what_reached_it_through_its_person(backend: Backend) {
        let store = backend.store();
        for id in ["chat", "other"] {
            store.put_conversation(Caller::user("ada"), id.into(), "ada".into(), ConversationDetails::default()).await.unwrap();
        }
        let sent = backend.publish(failure("grep")).await.event_id;
        backend.publish(failure("grep").in_conversation("other")).await;
        let to_person = Event::new("cli.event", "shell", Severity::Info, json!({})).unwrap().for_person("ada");
        let reached = backend.publish(to_person).await.event_id;
        let of_chat = EventFilter { conversation_id: Some("chat".into()), ..EventFilter::default() };
        for caller in [Caller::user("ada"), Caller::anyone()] {
            let (listed, _) = store.events(caller, newest(of_chat.clone())).await.unwrap();
            assert_eq!(ids(&listed), [reached, sent]);
            let foreign = listed[0].verdicts.iter().filter(|verdict| verdict.conversation_id.as_deref() == Some("other"));
            assert_eq!(foreign.count(), 0, "only the verdicts of the conversation: {:?}", listed[0].verdicts);
        }
        let bound = Caller { conversation_id: Some("chat".into()), ..Caller::user("ada") };
        assert_eq!(ids(&store.events(bound.clone(), newest(EventFilter::default())).await.unwrap().0), [reached, sent]);
        let elsewhere = EventFilter { conversation_id: Some("other".into()), ..EventFilter::default() };
        let refused = store.events(bound, newest(elsewhere)).await.unwrap_err();
        assert_eq!(refused.kind, ErrorKind::NotFound);
    }

    async fn a_caller_lists_only_what_is_its_own(backend: Backend) {
        let store = backend.store();
        backend.publish(failure("hers")).await;
        backend.publish_as(Caller::user("bob"), failure("his"), None).await.unwrap();
        let all = newest(EventFilter::default());
        for (user, tool) in [("ada", "hers"), ("bob", "his")] {
            let (listed, next) = store.events(Caller::user(user), all.clone()).await.unwrap();
            assert_eq!((listed.len(), next), (1, None));
            assert!(listed[0].event.payload.contains(tool));
            let (own, _) = store.conversations(Caller::user(user), ConversationQuery { limit: 9, ..Default::default() }).await.unwrap();
            assert_eq!((own.len(), own[0].view.user_id.as_str()), (1, user));
        }
        assert_eq!(store.events(Caller::anyone(), all.clone()).await.unwrap().0.len(), 2);
        let of_bob = EventQuery { user_id: Some("bob".into()), ..all };
        assert_eq!(store.events(Caller::anyone(), of_bob.clone()).await.unwrap().0.len(), 1);
        assert_eq!(store.events(Caller::user("ada"), of_bob).await.unwrap_err().kind, ErrorKind::NotFound);
        let of_bob = ConversationQuery { user_id: Some("bob".into()), limit: 9, ..Default::default() };
        assert_eq!(store.conversations(Caller::user("ada"), of_bob).await.unwrap_err().kind, ErrorKind::NotFound);
    }

    async fn a_rare_event_is_found_in_steps_of_a_bounded_number_of_rows(backend: Backend) {
        let store = backend.store();
        let rare = backend.publish(failure("grep")).await.event_id;
        let common = |_| event("x.y", Severity::Info, json!({}));
        publish_many(&*store, "ada", (0..5_000).map(common).collect()).await;
        for caller in [Caller::user("ada"), Caller::anyone()] {
            let (page, next) = store.events(caller.clone(), newest(types("tool.*"))).await.unwrap();
            assert!(page.is_empty() && next.is_some(), "the rows of one page are used up: {page:?}");
            let (found, count) = pages(&*store, &caller, &newest(types("tool.*"))).await;
            assert_eq!((ids(&found), count), (vec![rare], 2));
        }
        // A person without events is not answered by reading all of them at once, either.
        let (page, next) = store.events(Caller::user("bob"), newest(EventFilter::default())).await.unwrap();
        assert!(page.is_empty() && next.is_some());
        let (none, count) = pages(&*store, &Caller::user("bob"), &newest(EventFilter::default())).await;
        assert!(none.is_empty() && count == 2, "{count} pages");
    }

    async fn a_page_of_large_events_ends_early(backend: Backend) {
        let large = |number: usize| event("x.y", Severity::Info, json!({"text": format!("{number}{}", "x".repeat(60_000))}));
        publish_many(&*backend.store(), "ada", (0..40).map(large).collect()).await;
        let store = backend.store();
        let (page, next) = store.events(Caller::user("ada"), newest(EventFilter::default())).await.unwrap();
        assert!(page.len() < 20 && next.is_some(), "{} events of 60 kB", page.len());
        assert_eq!(pages(&*store, &Caller::user("ada"), &newest(EventFilter::default())).await.0.len(), 40);
    }

    async fn a_page_goes_on_where_an_event_was_deleted_meanwhile(backend: Backend) {
        let store = backend.store();
        let oldest = backend.publish(failure("grep")).await.event_id;
        backend.publish_as(Caller::user("bob"), failure("his"), None).await.unwrap();
        let query = EventQuery { limit: 1, ..EventQuery::default() };
        let (_, next) = store.events(Caller::anyone(), query.clone()).await.unwrap();
        assert!(next.is_some());
        store.erase_user("bob".into()).await.unwrap();
        let (page, next) = store.events(Caller::anyone(), EventQuery { before: next, ..query }).await.unwrap();
        assert_eq!((ids(&page), next), (vec![oldest], None));
    }

    async fn conversations_are_listed_by_their_last_use(backend: Backend) {
        let store = backend.store();
        let put = async |id: &str, user: &str| {
            store.put_conversation(Caller::anyone(), id.into(), user.into(), ConversationDetails::titled("Work")).await.unwrap();
            backend.pass(120_000);
        };
        put("first", "ada").await;
        put("second", "bob").await;
        backend.publish(failure("grep").in_conversation("by_event")).await;
        backend.pass(120_000);
        put("last", "ada").await;
        put("first", "ada").await;
        let list = async |caller: Caller, query: ConversationQuery| {
            let (mut all, mut after): (Vec<String>, Option<ConversationPosition>) = (Vec::new(), None);
            loop {
                let page = ConversationQuery { after: after.take(), limit: 1, ..query.clone() };
                let (page, next) = store.conversations(caller.clone(), page).await.unwrap();
                all.extend(page.into_iter().map(|one| one.view.id));
                after = next;
                if after.is_none() {
                    return all;
                }
            }
        };
        let all = ConversationQuery::default();
        assert_eq!(list(Caller::anyone(), all.clone()).await, ["first", "last", "by_event", "second"]);
        assert_eq!(list(Caller::user("ada"), all.clone()).await, ["first", "last", "by_event"]);
        let recent = ConversationQuery { since: Some(Time::from_millis(START + 250_000)), ..all.clone() };
        assert_eq!(list(Caller::anyone(), recent.clone()).await, ["first", "last"]);
        assert_eq!(list(Caller::user("bob"), recent).await, [""; 0]);
        let named = ConversationQuery { conversation_id: Some("first".into()), ..all };
        assert_eq!(list(Caller::anyone(), named.clone()).await, ["first"]);
        assert_eq!(list(Caller::user("bob"), named).await, [""; 0]);
        store.tick().await.unwrap();
        let (listed, _) = store
            .conversations(Caller::user("ada"), ConversationQuery { limit: 9, ..Default::default() })
            .await
            .unwrap();
        assert_eq!((listed[0].view.title.as_deref(), listed[0].view.pending), (Some("Work"), 0));
        assert_eq!(listed[2].view.pending, 1, "the batch of its event has closed");
        assert!(listed[0].last_used_at > listed[0].created_at);
    }
}
