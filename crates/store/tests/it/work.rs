//! No command does more than a bounded amount of work before other commands get their turn. Work is counted, not
//! timed: rows read and written, items rendered, inputs handled.

use std::sync::{Arc, Mutex, mpsc};

use bellwire_core::InjectionPoint::{AfterTool, TurnStart};
use bellwire_core::event::AgentName;
use bellwire_core::person::{MessageType, QuietChange, SettingsChange};
use bellwire_core::{Event, Inject, Severity};
use bellwire_store::{
    AttemptEnd, AttemptOutcome, AttemptStart, Caller, ChannelRules, ClientEventId, CommitReport, ConversationDetails,
    DeliveryState, ErrorKind, IdempotencyKey, InboxItemKind, InboxItemType, InboxQuery, InboxState, IncomingEvent,
    InjectCommand, NotificationContent, NotificationDraft, PeopleRules, Publish, Purpose, SettingsRequest, SqliteStore,
    Store, StoreOptions,
};
use serde_json::json;

use crate::backends::{Backend, email, email_to, event, failure, inject_command, on_every_store, with_email};
use crate::outbox::mail_to;

/// The most that one step may do.
const STEP_MAX: usize = 5_000;

/// What every commit of a store did.
#[derive(Clone, Default)]
pub(crate) struct Reports(Arc<Mutex<Vec<CommitReport>>>);

impl Reports {
    /// Opens the store anew, with nothing in memory where it has a file, and listens.
    pub(crate) async fn of(backend: &mut Backend) -> Self {
        let reports = Self::default();
        let kept = reports.clone();
        backend.observe(Arc::new(move |report| kept.add(report))).await;
        reports
    }

    pub(crate) fn add(&self, report: &CommitReport) {
        self.0.lock().unwrap().push(report.clone());
    }

    pub(crate) fn take(&self) -> Vec<CommitReport> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    /// Asserts that no step did too much; how many steps there were, and how many rows they read.
    pub(crate) fn check(&self, what: &str) -> (usize, usize) {
        let reports = self.take();
        for report in &reports {
            assert!(report.work.total() <= STEP_MAX, "{what}: a step did {:?}", report.work);
        }
        (reports.len(), reports.iter().map(|report| report.work.read).sum())
    }
}

/// News that becomes a notification of its own.
fn task(number: usize) -> Event {
    event("task.background.completed", Severity::Info, json!({ "task_id": number, "task": "backup" }))
}

pub(crate) fn to_person(number: usize) -> Event {
    Event::new("task.background.completed", "runner", Severity::Info, json!({ "task_id": number }))
        .unwrap()
        .for_person("ada")
}

async fn publish(store: &dyn Store, events: Vec<Event>) -> usize {
    let events = events.into_iter().map(|event| IncomingEvent::new(event, None)).collect();
    let publish = Publish { caller: Caller::anyone(), events, idempotency_key: None };
    store.publish(publish).await.unwrap().len()
}

/// A hundred conversations of one person, each with a full mailbox.
pub(crate) async fn hundred_full_mailboxes(backend: &Backend) {
    let store = backend.store();
    for number in 0..100 {
        store
            .put_conversation(Caller::anyone(), format!("chat-{number}"), "ada".into(), ConversationDetails::default())
            .await
            .unwrap();
    }
    for from in (0..200).step_by(50) {
        publish(&*store, (from..from + 50).map(to_person).collect()).await;
    }
}

#[tokio::test]
async fn a_publish_that_reaches_thousands_of_full_mailboxes_is_done_in_small_steps() {
    let mut backend = Backend::sqlite().await;
    hundred_full_mailboxes(&backend).await;
    let reports = Reports::of(&mut backend).await;
    let events = (1_000..1_050).map(to_person).map(|event| IncomingEvent::new(event, None)).collect();
    let idempotency_key =
        IdempotencyKey { token_id: "t".into(), route: "events".into(), key: "k".into(), content: [1; 32] };
    let call = Publish { caller: Caller::anyone(), events, idempotency_key: Some(idempotency_key) };
    let store = backend.store();
    // The same call twice at once, and another one meanwhile.
    let (first, second, other) = tokio::join!(
        store.publish(call.clone()),
        store.publish(call.clone()),
        backend.publish_as(Caller::user("bob"), failure("grep"), None)
    );
    let (first, second) = (first.unwrap(), second.unwrap());
    assert_eq!(first, second, "a repeat gets the first answer, also while that is not complete");
    assert!(first.iter().all(|receipt| receipt.verdicts.len() >= 100));
    other.unwrap();
    let (steps, read) = reports.check("a publish for 50 x 100 mailboxes");
    assert!(steps > 5 && read > 100 * 200, "{steps} steps, {read} rows: it was cold and full");
    assert_eq!(store.publish(call).await.unwrap(), first);
}

#[tokio::test]
async fn a_publish_that_reaches_too_many_mailboxes_is_refused_with_its_cost() {
    let mut backend = Backend::sqlite().await;
    for number in 0..100 {
        let id = format!("chat-{number}");
        backend
            .store()
            .put_conversation(Caller::anyone(), id, "ada".into(), ConversationDetails::default())
            .await
            .unwrap();
    }
    let reports = Reports::of(&mut backend).await;
    let events = (0..1_000).map(to_person).map(|event| IncomingEvent::new(event, None)).collect();
    let refused = backend.store().publish(Publish { caller: Caller::anyone(), events, idempotency_key: None }).await;
    let refused = refused.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Invalid("events"));
    assert!(refused.message.contains("100000"), "{refused}");
    reports.check("a publish that is refused");
}

#[tokio::test]
async fn a_publish_that_fails_in_its_last_event_has_published_nothing() {
    let mut backend = Backend::sqlite().await;
    hundred_full_mailboxes(&backend).await;
    let reports = Reports::of(&mut backend).await;
    let mut events: Vec<IncomingEvent> =
        (2_000..2_050).map(to_person).map(|event| IncomingEvent::new(event, None)).collect();
    events.push(IncomingEvent::new(task(1).in_conversation("no such"), None));
    let refused = backend.store().publish(Publish { caller: Caller::anyone(), events, idempotency_key: None }).await;
    assert_eq!(refused.unwrap_err().kind, ErrorKind::NotFound);
    assert!(reports.take().iter().all(|report| report.events == 0));
}

on_every_store! {
    async fn the_largest_call_for_one_conversation_is_done_in_small_steps(backend: Backend) {
        let reports = Reports::of(&mut backend).await;
        let client_event_id = |number: usize| Some(ClientEventId { id: format!("e{number}"), content: [1; 16] });
        let events: Vec<IncomingEvent> = (0..1_000).map(|number| IncomingEvent::new(task(number), client_event_id(number))).collect();
        let publish = Publish { caller: Caller::user("ada"), events, idempotency_key: None };
        let receipts = backend.store().publish(publish.clone()).await.unwrap();
        reports.check("1000 events");
        assert_eq!(backend.store().publish(publish).await.unwrap(), receipts);
        reports.check("the same 1000 events again");
        backend.store().conversation(Caller::user("ada"), "chat".into()).await.unwrap();
        backend.store().rotate_boundary(Caller::user("ada"), "chat".into(), AgentName::main(), None).await.unwrap();
        backend.inject(TurnStart, "c1").await;
        reports.check("an injection");
    }

    async fn twenty_unseen_answers_are_requeued_within_a_step(backend: Backend) {
        let reports = Reports::of(&mut backend).await;
        let mut unseen = Vec::new();
        for round in 0..20 {
            publish_in(&backend, (0..100).map(|number| task(round * 100 + number)).collect()).await;
            let call_id = format!("c{round}");
            let mut request = inject_command(AfterTool, &call_id);
            request.request = wide(&call_id);
            backend.store().inject(request).await.unwrap();
            unseen.push(call_id);
        }
        if backend.is_durable() {
            backend.restart().await;
        }
        let last = InjectCommand { request: wide("last"), unseen, ..inject_command(AfterTool, "last") };
        backend.store().inject(last).await.unwrap();
        reports.check("an injection with 20 unseen calls");
    }

    async fn a_call_that_does_not_say_who_makes_it_reads_one_row_for_all_sub_agents(backend: Backend) {
        backend.publish(failure("grep")).await;
        for number in 0..50 {
            at_work(&backend, &format!("helper-{number}"), "c1").await;
        }
        let reports = Reports::of(&mut backend).await;
        if !backend.is_durable() {
            // It forgot everything when it was opened anew.
            backend.publish(failure("grep")).await;
            at_work(&backend, "helper-1", "c1").await;
        }
        reports.take();
        let unsure = |call_id: &str| InjectCommand { unsure: true, ..inject_command(AfterTool, call_id) };
        let given = backend.store().inject(unsure("c1")).await.unwrap();
        assert!(given.withheld.is_some(), "a sub-agent works");
        let (steps, read) = reports.check("a call of nobody in particular");
        // The conversation, the person's preferences, the mailbox with what waits in it, and the call's own answer.
        assert!(steps == 1 && read <= 6, "{read} rows in {steps} steps");
        backend.pass(11 * 60_000);
        assert!(backend.store().inject(unsure("c2")).await.unwrap().withheld.is_none(), "none works any more");
    }

    async fn a_stream_that_connects_loads_few_sub_agents(backend: Backend) {
        backend.publish(failure("grep")).await;
        let reports = Reports::of(&mut backend).await;
        for number in 0..60 {
            let agent = AgentName::parse(&format!("helper-{number}")).unwrap();
            publish_in(&backend, (0..20).map(|task_number| task(task_number).for_agent(agent.clone())).collect()).await;
        }
        reports.take();
        if backend.is_durable() {
            backend.restart().await;
        }
        let hints = backend.store().connect(Caller::user("ada"), "chat".into()).await.unwrap();
        assert!((20..=22).contains(&hints.len()), "{} hints", hints.len());
        reports.check("a stream that connects");
    }
}

#[tokio::test]
async fn views_of_full_mailboxes_read_a_few_rows_each_and_are_reported() {
    let mut backend = Backend::sqlite().await;
    hundred_full_mailboxes(&backend).await;
    let reports = Reports::of(&mut backend).await;
    reports.take();
    let mut views = tokio::task::JoinSet::new();
    for number in 0..100 {
        let (store, caller) = (backend.store(), Caller::user("ada"));
        views.spawn(async move { store.conversation(caller, format!("chat-{number}")).await.unwrap().pending });
    }
    assert!(views.join_all().await.into_iter().all(|pending| pending == 200));
    // Views are reported after they are answered, and before the next command.
    backend.store().check().await.unwrap();
    let (_, read) = reports.check("100 views");
    // The conversation's row and the mailbox's.
    assert!((200..=400).contains(&read), "{read} rows");
}

#[tokio::test]
async fn everything_unread_is_read_in_small_steps() {
    let rules = PeopleRules { notifications_per_hour: 100_000, ..PeopleRules::default() };
    for mut backend in [Backend::memory_with(rules.clone()).await, Backend::sqlite_with(rules).await] {
        let reports = Reports::of(&mut backend).await;
        let mut sending = tokio::task::JoinSet::new();
        for number in 0..2_500 {
            let (store, draft) = (backend.store(), message(number));
            sending.spawn(async move { store.send(draft).await.unwrap() });
        }
        sending.join_all().await;
        reports.check("2500 messages at once");
        assert_eq!(backend.store().read_all("ada".into(), None).await.unwrap(), 2_500);
        let (steps, _) = reports.check("read_all");
        assert!(steps >= 3, "{steps} steps");
        assert_eq!(backend.store().unread_count("ada".into()).await.unwrap(), 0);
    }
}

#[tokio::test]
async fn after_a_pause_overdue_mailboxes_are_handled_in_small_steps_between_requests() {
    const MAILBOXES: usize = 1_000;
    const WAITING: usize = 3;
    let mut backend = Backend::sqlite().await;
    for number in 0..MAILBOXES {
        let chat = format!("chat-{number}");
        let waiting = (0..WAITING).map(|number| task(number).in_conversation(&chat));
        let held = std::iter::once(failure("grep").in_conversation(&chat));
        publish_in(&backend, waiting.chain(held).collect()).await;
    }
    backend.close().await;
    backend.pass(60_000);
    let reports = Reports::default();
    let (go, wait) = mpsc::channel::<()>();
    let (kept, wait) = (reports.clone(), Mutex::new(wait));
    let observer = move |report: &CommitReport| {
        let mut kept = kept.0.lock().unwrap();
        kept.push(report.clone());
        let is_first = kept.len() == 1;
        drop(kept);
        // The first step is over; the next begins when something was asked.
        if is_first {
            wait.lock().unwrap().recv().unwrap();
        }
    };
    let opening = StoreOptions { timers: true, observer: Some(Arc::new(observer)), ..backend.opening() };
    let store = SqliteStore::open(&backend.path(), opening).await.unwrap();
    let publish = Publish {
        caller: Caller::user("bob"),
        events: vec![IncomingEvent::new(failure("grep"), None)],
        idempotency_key: None,
    };
    let mut asked = store.publish(publish);
    tokio::select! {
        biased;
        _ = &mut asked => panic!("the writer waits"),
        () = std::future::ready(()) => go.send(()).unwrap(),
    }
    asked.await.unwrap();
    let answered = reports.0.lock().unwrap().iter().position(|report| report.commands == 1).unwrap();
    assert!(answered <= 2, "it was answered by step {answered}");
    let handled = |reports: &[CommitReport]| reports.iter().map(|report| report.work.handled).sum::<usize>();
    assert!(handled(&reports.0.lock().unwrap()[..answered]) < MAILBOXES / 2, "most mailboxes were still overdue then");
    while handled(&reports.0.lock().unwrap()) < MAILBOXES {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    store.close().await.unwrap();
    let all = reports.take();
    assert!(all.iter().all(|report| report.work.total() <= 2_000), "{all:?}");
    // Each mailbox, what waits in it, its person's preferences at most, and what is due once a step; but no event.
    let read: usize = all.iter().map(|report| report.work.read).sum();
    assert!(read <= MAILBOXES * (WAITING + 2) + all.len() * 300, "{read} rows in {} steps", all.len());
}

#[tokio::test]
async fn mail_that_quiet_hours_held_back_is_planned_and_claimed_in_small_steps() {
    let rules = PeopleRules { notifications_per_hour: 100_000, ..with_email() };
    for mut backend in [Backend::memory_with(rules.clone()).await, Backend::sqlite_with(rules).await] {
        let reports = Reports::of(&mut backend).await;
        let store = backend.store();
        let address = SettingsChange {
            channels: email_to("ada@example.org"),
            quiet_hours: Some(Some(quiet("14:00", "23:00"))),
            ..SettingsChange::default()
        };
        store.change_settings(SettingsRequest { user_id: "ada".into(), change: address }).await.unwrap();
        let code = store.claim(email(), 1).await.unwrap().remove(0);
        let mail = AttemptStart { message_id: code.message_id, fence: code.fence, code: Some(vec![7]) };
        assert!(store.start(mail).await.unwrap());
        store.confirm_target("ada".into(), email(), vec![7], None).await.unwrap();
        let mut sending = tokio::task::JoinSet::new();
        for number in 0..2_500 {
            let (store, draft) = (backend.store(), message(number));
            sending.spawn(async move { store.send(draft).await.unwrap() });
        }
        sending.join_all().await;
        assert!(store.claim(email(), 4).await.unwrap().is_empty(), "quiet hours hold it back");
        reports.check("2500 messages in quiet hours");
        let none = SettingsChange { quiet_hours: Some(None), ..SettingsChange::default() };
        store.change_settings(SettingsRequest { user_id: "ada".into(), change: none }).await.unwrap();
        let (steps, _) = reports.check("settings without quiet hours");
        assert!(steps >= 3, "{steps} steps");
        let mut claimed = 0;
        for _ in 0..5 {
            for claim in store.claim(email(), 4).await.unwrap() {
                let Purpose::Notifications(items) = &claim.purpose else { panic!("{claim:?}") };
                claimed += items.len();
                assert!(
                    store
                        .start(AttemptStart { message_id: claim.message_id, fence: claim.fence, code: None })
                        .await
                        .unwrap()
                );
                let finish = AttemptEnd {
                    message_id: claim.message_id,
                    fence: claim.fence,
                    outcome: AttemptOutcome::Sent,
                    jitter: 0,
                };
                assert!(store.finish(finish).await.unwrap());
            }
        }
        assert_eq!(claimed, 2_500);
        reports.check("mail for 2500 messages");
    }
}

#[tokio::test]
async fn a_mail_of_many_notifications_fails_in_small_steps_and_its_person_is_told_once() {
    const MESSAGES: usize = 250;
    let rules = PeopleRules { notifications_per_hour: 100_000, ..with_email() };
    let mut backend = Backend::sqlite_with(rules).await;
    hundred_full_mailboxes(&backend).await;
    mail_to(&backend, "ada@example.org").await;
    for is_lost in [false, true] {
        for number in 0..MESSAGES {
            let conversation_id = Some(format!("chat-{}", number % 100));
            backend.store().send(NotificationDraft { conversation_id, ..message(number) }).await.unwrap();
        }
        let claim = backend.store().claim(email(), 1).await.unwrap().remove(0);
        assert!(matches!(&claim.purpose, Purpose::Notifications(items) if items.len() == MESSAGES), "{claim:?}");
        let (message_id, fence) = (claim.message_id, claim.fence);
        assert!(backend.store().start(AttemptStart { message_id, fence, code: None }).await.unwrap());
        let reports = Reports::of(&mut backend).await;
        if is_lost {
            backend.pass(i64::try_from(ChannelRules::new("email").attempt_ms).unwrap());
            assert!(backend.store().claim(email(), 4).await.unwrap().is_empty());
        } else {
            let outcome = AttemptOutcome::Refused { reason: "no such mailbox".into() };
            let finish = AttemptEnd { message_id, fence, outcome, jitter: 0 };
            assert!(backend.store().finish(finish.clone()).await.unwrap());
            assert!(!backend.store().finish(finish).await.unwrap(), "it is over");
        }
        let events: usize = reports.0.lock().unwrap().iter().map(|report| report.events).sum();
        assert_eq!(events, MESSAGES, "each message's conversation is told");
        let (steps, read) = reports.check("a mail that failed");
        assert!(steps <= 80 && read < 60_000, "{steps} steps, {read} rows: nothing is read in circles");
        let (state, told) = if is_lost { (DeliveryState::Unknown, 2) } else { (DeliveryState::Failed, 1) };
        let (ended, _) = backend.store().deliveries(Some("ada".into()), Some(state), None, 1_000).await.unwrap();
        assert_eq!(ended.len(), MESSAGES);
        let query =
            InboxQuery { state: InboxState::All, item_type: Some(InboxItemType::Warning), before: None, limit: 100 };
        let (notes, _) = backend.store().inbox("ada".into(), query).await.unwrap();
        let notes = notes.iter().filter(|item| item.kind == InboxItemKind::Note).count();
        assert_eq!(notes, told, "one note for each mail");
    }
}

fn quiet(start: &str, end: &str) -> QuietChange {
    QuietChange { start: Some(start.into()), end: Some(end.into()), timezone: Some("UTC".into()) }
}

async fn publish_in(backend: &Backend, events: Vec<Event>) {
    let events = events.into_iter().map(|event| IncomingEvent::new(event, None)).collect();
    let publish = Publish { caller: Caller::user("ada"), events, idempotency_key: None };
    backend.store().publish(publish).await.unwrap();
}

/// An agent of the conversation `chat` shows that it is at work.
async fn at_work(backend: &Backend, agent: &str, call_id: &str) {
    let agent = AgentName::parse(agent).unwrap();
    backend.store().inject(InjectCommand { agent, ..inject_command(AfterTool, call_id) }).await.unwrap();
}

/// A request that takes as much as one can.
fn wide(call_id: &str) -> Inject {
    let mut request = Inject::new(AfterTool, call_id).unwrap();
    request.limits.items_max = 50;
    request.limits.tokens_max = 100_000;
    request
}

fn message(number: usize) -> NotificationDraft {
    NotificationDraft {
        caller: Caller::user("ada"),
        user_id: "ada".into(),
        origin: "butler".into(),
        conversation_id: None,
        correlation_id: None,
        content: NotificationContent::Message { kind: MessageType::Info, message: format!("message {number}") },
        idempotency_key: None,
    }
}
