use bellwire_core::InjectionPoint::{AfterTool, TurnEnd, TurnStart};
use bellwire_core::conversation::{CallOutcome, ObservedCall};
use bellwire_core::event::AgentName;
use bellwire_core::inject::InjectLimits;
use bellwire_core::{Event, Severity};
use bellwire_store::{Caller, ErrorKind, EventQuery, HintEvent, HintKind, IncomingEvent, InjectCommand, Publish};
use serde_json::json;

use crate::backends::{Backend, event, failure, inject_command, on_every_store};

/// How long a notification of a bundled subscriber may wait.
const DAY_MS: i64 = 24 * 60 * 60 * 1000;

on_every_store! {
    async fn what_waits_is_listed_in_the_order_of_a_block_and_taken_by_no_one(backend: Backend) {
        let agent = || bellwire_core::event::AgentName::main();
        let pending = async |caller: Caller| backend.store().pending(caller, "chat".into(), agent()).await;
        assert_eq!(pending(Caller::user("ada")).await.unwrap_err().kind, ErrorKind::NotFound);
        backend.publish(failure("grep")).await;
        backend.publish(crate::backends::event("budget.token.exceeded", bellwire_core::Severity::Error, json!({}))).await;
        backend.pass(2_000);
        backend.store().tick().await.unwrap();
        if backend.is_durable() {
            backend.restart().await;
        }
        let pending = async |caller: Caller| backend.store().pending(caller, "chat".into(), agent()).await;
        let waiting = pending(Caller::user("ada")).await.unwrap();
        let named: Vec<_> = waiting.iter().map(|one| (&*one.subscriber, one.inject_at.as_str(), one.events)).collect();
        assert_eq!(named, [("budget_exceeded", "immediate", 1), ("tool_failure", "after_tool", 1)]);
        assert_eq!(pending(Caller::anyone()).await.unwrap(), waiting, "looking takes nothing");
        assert_eq!(pending(Caller::user("bob")).await.unwrap_err().kind, ErrorKind::NotFound);
        assert_eq!(backend.inject(AfterTool, "c1").await.showing, 2);
        assert_eq!(pending(Caller::user("ada")).await.unwrap(), []);
    }

    async fn messages_are_listed_backwards_in_the_same_pages(backend: Backend) {
        for number in 0..5 {
            backend.publish(failure(&format!("tool{number}"))).await;
            backend.publish(crate::backends::event("budget.token.exceeded", bellwire_core::Severity::Error, json!({}))).await;
            backend.inject(AfterTool, &format!("c{number}")).await;
        }
        let (forwards, _) = backend.store().messages(Caller::user("ada"), "chat".into(), None, 100).await.unwrap();
        let (mut backwards, mut before) = (Vec::new(), None);
        loop {
            let page = backend.store().messages_before(Caller::user("ada"), "chat".into(), before, 3).await.unwrap();
            assert!(page.0.len() <= 3);
            backwards.extend(page.0);
            match page.1 {
                Some(next) => before = Some(next),
                None => break,
            }
        }
        backwards.reverse();
        assert!(forwards.len() > 6, "{forwards:?}");
        assert_eq!(backwards, forwards);
    }

    /// The store of these tests keeps some 256 KB of mailboxes in memory; this fills it twice over with others.
    async fn an_evicted_mailbox_is_loaded_and_shown(backend: Backend) {
        let done = |task: &str| event("task.background.complete", Severity::Info, json!({ "task_id": task }));
        backend.publish(done("early")).await;
        let unseen = backend.inject(AfterTool, "c0").await;
        assert!(unseen.block.contains("early"), "{}", unseen.block);
        for _ in 0..3 {
            backend.publish(failure("grep")).await;
        }
        backend.publish(done("late")).await;
        for number in 0..20 {
            let told = json!({ "task_id": number, "message": "x".repeat(30_000) });
            let other = event("task.background.complete", Severity::Info, told);
            backend.publish(other.in_conversation(&format!("other-{number}"))).await;
        }
        let mut ask = inject_command(AfterTool, "c1");
        ask.unseen = vec!["c0".into()];
        let told = backend.store().inject(ask).await.unwrap().block;
        assert!(["early", "late", "grep"].iter().all(|one| told.contains(one)), "{told}");
        assert_eq!(backend.publish(failure("grep")).await.verdicts[0].verdict, "duplicate", "its window is still open");
    }

    async fn an_agent_gets_its_mail_once(backend: Backend) {
        backend.publish(failure("grep")).await;
        let first = backend.inject(AfterTool, "c1").await;
        assert_eq!((first.count, first.showing, first.notifications.len()), (1, 1, 1));
        assert!(first.content("ok").starts_with("ok\n\n<notifications id="), "{}", first.block);
        assert_eq!(backend.inject(AfterTool, "c2").await.block, "");
    }

    async fn the_observed_call_is_published_with_the_injection(backend: Backend) {
        let mut ask = inject_command(AfterTool, "c1");
        ask.observed = Some(ObservedCall::new("vault_search", CallOutcome::Failure));
        let answer = backend.store().inject(ask).await.unwrap();
        assert!(answer.block.contains("vault_search"), "{}", answer.block);
    }

    async fn unseen_notifications_become_pending_again(backend: Backend) {
        backend.publish(failure("grep")).await;
        let lost = backend.inject(AfterTool, "c1").await;
        if backend.is_durable() {
            backend.restart().await;
        }
        let mut ask = inject_command(AfterTool, "c2");
        ask.unseen = vec!["c1".into()];
        let answer = backend.store().inject(ask).await.unwrap();
        assert_eq!(answer.notifications, lost.notifications);
        let (messages, _) = backend.store().messages(Caller::user("ada"), "chat".into(), None, 10).await.unwrap();
        let calls: Vec<_> = messages.iter().map(|message| message.call_id.as_str()).collect();
        assert_eq!(calls, ["c2"]);
        let refused = backend.store().inject(inject_command(AfterTool, "c1")).await.unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Conflict);
    }

    async fn what_comes_back_obeys_the_mailboxes_bound_and_unknown_calls_are_named(backend: Backend) {
        for call in 0..2 {
            let note = |number: usize| {
                let told = json!({ "message": format!("note {call}/{number}") });
                let event = Event::new("agent.self.notify", &format!("agent {number}"), Severity::Info, told);
                IncomingEvent::new(event.unwrap().in_conversation("chat"), None)
            };
            let publish = Publish { caller: Caller::user("ada"), events: (0..150).map(note).collect(), idempotency_key: None };
            backend.store().publish(publish).await.unwrap();
            assert_eq!(backend.inject(TurnStart, &format!("c{call}")).await.notifications.len(), 150);
        }
        let mut ask = inject_command(TurnStart, "again");
        ask.unseen = ["c0", "c1", "never"].map(str::to_owned).to_vec();
        let answer = backend.store().inject(ask.clone()).await.unwrap();
        assert_eq!((answer.count, answer.notifications.len()), (201, 201));
        assert!(answer.block.contains("100 notifications (too many waited)"), "{}", answer.block);
        assert!(answer.block.contains("note 0/100") && !answer.block.contains("no longer stored"), "{}", answer.block);
        assert_eq!(answer.warnings, ["unseen[2]: no answer is known under this call_id"]);
        assert_eq!(backend.store().inject(ask).await.unwrap(), answer, "the same call gets the same answer");
    }

    async fn a_sub_agent_gets_only_its_own_mail(backend: Backend) {
        let researcher = AgentName::parse("researcher").unwrap();
        backend.publish(failure("mine")).await;
        backend.publish(failure("theirs").for_agent(researcher.clone())).await;
        let mut ask = inject_command(AfterTool, "c1");
        ask.agent = researcher;
        let answer = backend.store().inject(ask).await.unwrap();
        assert!(answer.block.contains("theirs") && !answer.block.contains("mine"), "{}", answer.block);
    }

    async fn a_new_boundary_does_not_change_old_answers(backend: Backend) {
        backend.publish(failure("grep")).await;
        let old = backend.inject(AfterTool, "c1").await;
        let boundary = backend.store().rotate_boundary(Caller::user("ada"), "chat".into(), AgentName::main(), None).await.unwrap();
        backend.publish(failure("sed")).await;
        assert!(backend.inject(AfterTool, "c2").await.block.contains(boundary.as_str()));
        assert_eq!(backend.inject(AfterTool, "c1").await, old);
    }

    async fn a_sub_agents_boundary_is_its_own_and_outlives_a_new_one_of_main(backend: Backend) {
        let (scout, other) = (AgentName::parse("scout").unwrap(), AgentName::parse("other").unwrap());
        backend.publish(failure("grep").for_agent(scout.clone())).await;
        let boundary_of = async |agent: &AgentName| {
            backend.store().boundary(Caller::user("ada"), "chat".into(), agent.clone()).await.unwrap()
        };
        let rotate = async |agent: &AgentName| {
            backend.store().rotate_boundary(Caller::user("ada"), "chat".into(), agent.clone(), None).await.unwrap()
        };
        let first = boundary_of(&scout).await;
        assert_ne!(boundary_of(&AgentName::main()).await, first);
        assert_ne!(boundary_of(&other).await, first);
        rotate(&AgentName::main()).await;
        let ask = |call_id| InjectCommand { agent: scout.clone(), ..inject_command(AfterTool, call_id) };
        let answer = backend.store().inject(ask("c1")).await.unwrap();
        assert!(answer.block.contains(first.as_str()), "{}", answer.block);

        let (main, second) = (boundary_of(&AgentName::main()).await, rotate(&scout).await);
        assert_ne!(second, first);
        if backend.is_durable() {
            backend.restart().await;
        }
        backend.publish(failure("sed").for_agent(scout.clone())).await;
        let answer = backend.store().inject(ask("c2")).await.unwrap();
        assert!(answer.block.contains(second.as_str()), "{}", answer.block);
        let view = backend.store().conversation(Caller::user("ada"), "chat".into()).await.unwrap();
        assert_eq!(view.boundary, main, "main keeps its own");
    }

    async fn a_result_that_the_agent_read_itself_is_stored_but_not_told(backend: Backend) {
        let seen = ObservedCall { seen: true, ..ObservedCall::new("grep", CallOutcome::Failure) };
        let ask = InjectCommand { observed: Some(seen), ..inject_command(AfterTool, "c1") };
        assert_eq!(backend.store().inject(ask).await.unwrap().block, "");
        backend.pass(10_000);
        assert_eq!(backend.inject(AfterTool, "c2").await.block, "");
        let events = backend.store().events(Caller::user("ada"), EventQuery { limit: 5, ..EventQuery::default() }).await;
        assert_eq!(events.unwrap().0.len(), 1, "it is stored");
    }

    async fn wake_mail_rings_an_idle_conversation_after_its_commit(backend: Backend) {
        let mut hints = backend.store().hints("ada", "chat");
        backend.publish(event("task.background.complete", bellwire_core::Severity::Info, json!({"task_id": "b"}))).await;
        let mut kinds = Vec::new();
        while let Some(HintEvent::Hint(hint)) = hints.try_next() {
            assert_eq!(&*hint.conversation_id, "chat");
            kinds.push(hint.kind);
        }
        assert_eq!(kinds, [HintKind::Pending, HintKind::Wake]);
        let state = backend.store().connect(Caller::user("ada"), "chat".into()).await.unwrap();
        let kinds: Vec<_> = state.iter().map(|hint| hint.kind).collect();
        assert_eq!(kinds, [HintKind::Pending, HintKind::Wake], "the level is told again on connect");
        backend.inject(TurnStart, "c1").await;
        let state = backend.store().connect(Caller::user("ada"), "chat".into()).await.unwrap();
        assert_eq!((state.len(), state[0].count), (1, 0));
    }

    async fn a_hint_follows_when_mail_is_taken_or_expires(backend: Backend) {
        let mut hints = backend.store().hints("ada", "chat");
        let mut heard = || {
            let hints = std::iter::from_fn(|| hints.try_next());
            hints.filter_map(|heard| match heard {
                HintEvent::Hint(hint) if hint.kind == HintKind::Pending => Some((hint.notifications.len(), hint.count)),
                _ => None,
            }).collect::<Vec<_>>()
        };
        for task in ["a", "b"] {
            let payload = json!({"task_id": task});
            let done = Event::new("task.background.complete", task, bellwire_core::Severity::Info, payload).unwrap();
            backend.publish(done.in_conversation("chat")).await;
        }
        assert_eq!(heard(), [(1, 1), (1, 2)]);
        let mut ask = inject_command(TurnStart, "c1");
        ask.request.limits = InjectLimits::new(1, 1000).unwrap();
        backend.store().inject(ask).await.unwrap();
        assert_eq!(heard(), [(0, 1)], "one was taken, one still waits");
        backend.inject(TurnStart, "c2").await;
        assert_eq!(heard(), [(0, 0)]);
        backend.inject(TurnStart, "c3").await;
        assert_eq!(heard(), [], "there was nothing to take");
        backend.publish(event("task.background.complete", bellwire_core::Severity::Info, json!({"task_id": "c"}))).await;
        assert_eq!(heard(), [(1, 1)]);
        backend.pass(DAY_MS - 1);
        backend.store().tick().await.unwrap();
        assert!(heard().iter().all(|(_, count)| *count == 1), "it still waits");
        backend.pass(1);
        backend.store().tick().await.unwrap();
        assert_eq!(heard(), [(0, 0)], "it has expired");
    }

    async fn many_events_in_one_commit_are_one_hint(backend: Backend) {
        let mut hints = backend.store().hints("ada", "chat");
        let done = |task: usize| event("task.background.complete", bellwire_core::Severity::Info, json!({"task_id": task}));
        let events = (0..20).map(|task| IncomingEvent::new(done(task), None)).collect();
        backend.store().publish(Publish { caller: Caller::user("ada"), events, idempotency_key: None }).await.unwrap();
        let mut heard = Vec::new();
        while let Some(HintEvent::Hint(hint)) = hints.try_next() {
            heard.push((hint.kind, hint.notifications.len(), hint.count));
        }
        assert_eq!(heard, [(HintKind::Pending, 20, 20), (HintKind::Wake, 6, 20)]);
    }

    async fn a_stream_that_connects_hears_of_sub_agents_too(backend: Backend) {
        let worker = AgentName::parse("worker").unwrap();
        let done = |agent: AgentName| {
            event("task.background.complete", bellwire_core::Severity::Info, json!({"task_id": agent.as_str()}))
                .for_agent(agent)
        };
        backend.publish(done(worker.clone())).await;
        backend.publish(done(AgentName::parse("idler").unwrap())).await;
        let mut ask = inject_command(TurnStart, "c1");
        ask.agent = AgentName::parse("idler").unwrap();
        backend.store().inject(ask).await.unwrap();
        let state = backend.store().connect(Caller::user("ada"), "chat".into()).await.unwrap();
        let told: Vec<_> = state.iter().map(|hint| (hint.agent.as_str(), hint.kind, hint.count)).collect();
        assert_eq!(told, [("main", HintKind::Pending, 0), ("worker", HintKind::Pending, 1)]);
    }

    async fn presence_is_known_from_the_points(backend: Backend) {
        backend.inject(TurnStart, "c1").await;
        let working = || async {
            backend.store().conversation(Caller::user("ada"), "chat".into()).await.unwrap().working
        };
        assert!(working().await);
        backend.inject(TurnEnd, "c2").await;
        assert!(!working().await);
    }
}
