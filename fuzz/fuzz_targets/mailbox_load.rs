//! Any bytes as a saved mailbox: refused, or a mailbox that goes on working and can be saved and loaded again.

#![no_main]

use std::sync::{Arc, LazyLock};

use arbitrary::{Arbitrary, Result, Unstructured};
use bellwire_core::conversation::{InjectMore, ObservedCall, CallOutcome};
use bellwire_core::event::AgentName;
use bellwire_core::{
    Conversation, MailboxContext, Event, Ids, Inject, InjectionPoint, Input, Mailbox, Severity, Subscribers, Time,
};
use libfuzzer_sys::fuzz_target;
use serde_json::json;

static SUBSCRIBERS: LazyLock<Arc<Subscribers>> = LazyLock::new(|| Subscribers::bundled().into());
static SAVED: LazyLock<Vec<u8>> = LazyLock::new(saved);

/// Bytes as they come, or a real mailbox with some of them changed.
#[derive(Debug)]
struct Bytes(Vec<u8>);

fuzz_target!(|bytes: Bytes| {
    let Ok(mut mailbox) = Mailbox::load(&bytes.0, Vec::new()) else { return };
    let again = Mailbox::load(&mailbox.save(), Vec::new()).expect("what was saved can be loaded");
    assert_eq!(again.save(), mailbox.save());

    let mut context = MailboxContext::new(SUBSCRIBERS.clone(), Ids::seeded(1));
    context.now = Time::from_millis(2_000_000);
    let calls = json!({"tool_name": "grep", "arguments": {"a": 1}, "usage": {"tokens_used": 9, "token_limit": 10}});
    for kind in ["tool.call.failure", "tool.call.success", "agent.turn.start", "budget.token.warning", "agent.turn.end"]
    {
        let event = Event::new(kind, "tool_executor", Severity::Error, calls.clone()).expect("it is legal");
        mailbox.handle(Input::Event(&event), &mut context).expect("no person's message");
        mailbox.handle(Input::Time, &mut context).expect("no person's message");
        while context.poll().is_some() {}
        context.now = context.now.plus(1_500);
    }
    mailbox.compact();
    let (_, _) = (mailbox.wakes_at(), mailbox.waiting_wakes(context.now));
    assert!(mailbox.references().count() < 1_000_000);
    Mailbox::load(&mailbox.save(), mailbox.pending().to_vec()).expect("what was saved can be loaded");
});

impl<'a> Arbitrary<'a> for Bytes {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        if u.ratio(1, 3)? {
            let version = [u.int_in_range(1..=2)?];
            return Ok(Self([&version, u.bytes(u.len())?].concat()));
        }
        let mut bytes = SAVED.clone();
        for _ in 0..u.int_in_range(0..=8)? {
            let at = u.choose_index(bytes.len())?;
            match u.int_in_range(0..=3)? {
                0 => bytes.truncate(at.max(1)),
                1 => bytes.insert(at, u.arbitrary()?),
                _ => bytes[at] = u.arbitrary()?,
            }
        }
        Ok(Self(bytes))
    }
}

/// The mailbox of an agent that has seen a little of everything.
fn saved() -> Vec<u8> {
    let mut conversation = Conversation::new(SUBSCRIBERS.clone(), bellwire_core::Randomness::repeatable(1));
    let mut now = Time::from_millis(1_000_000);
    for round in 0..4 {
        let observed = ObservedCall {
            arguments: Some(json!({"query": "x"})),
            usage: Some(json!({"tokens_used": 80 + round, "token_limit": 100})),
            ..ObservedCall::new("grep", CallOutcome::Failure)
        };
        let more = InjectMore { observed: Some(observed), ..InjectMore::default() };
        let inject = Inject::new(InjectionPoint::AfterTool, &format!("call_{round}")).expect("it is legal");
        conversation.inject_with(inject, more, now).expect("the call id is new");
        for kind in ["source.file.changed", "task.checkpoint", "tool.call.success"] {
            let payload = json!({"path": "a", "message": "b"});
            conversation
                .publish(Event::new(kind, "ci", Severity::Info, payload).expect("it is legal"), now)
                .expect("room");
        }
        now = now.plus(700);
    }
    conversation.mailbox(&AgentName::main()).expect("it has mail").save()
}
