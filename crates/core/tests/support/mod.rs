//! Random timelines, the player that plays them on a conversation, and the laws that check them.
//!
//! A law is independent of the core: it keeps its own small model of the expected state and compares it with the core's
//! output after every step. No law calls the core's decision code.

#![allow(dead_code, reason = "each test binary uses its own part of this")]

pub(crate) mod answers;
pub(crate) mod bounds;
pub(crate) mod custom;
pub(crate) mod driver;
pub(crate) mod hub;
pub(crate) mod ledger;
pub(crate) mod page;
pub(crate) mod person;
pub(crate) mod player;
pub(crate) mod punctual;
pub(crate) mod rules;
pub(crate) mod settings;
pub(crate) mod steps;
pub(crate) mod texts;
pub(crate) mod worst;

use bellwire_core::conversation::{ConversationUpdate, PublishResult};
use bellwire_core::mailbox::MailboxError;
use bellwire_core::subscriber::SubscriberId;
use bellwire_core::{
    AgentName, Boundary, Event, Inject, Injection, Mailbox, Notification, Priority, Subscribers, Time,
};
use proptest::strategy::Strategy;
use proptest::test_runner::TestRunner;

use player::Player;
use steps::{Timeline, timelines};

/// One step as seen from outside: the input, the output, and the pending notifications before and after.
pub(crate) struct StepRecord<'a> {
    /// The time passed to the mailbox; it may be earlier than a previous one.
    pub(crate) given: Time,
    pub(crate) agent: &'a AgentName,
    pub(crate) action: Action<'a>,
    /// The step is one of many similar ones; a law may skip its costly checks until the last of them.
    pub(crate) is_one_of_many: bool,
    pub(crate) updates: &'a [ConversationUpdate],
    pub(crate) before: &'a [Notification],
    pub(crate) mailbox: &'a Mailbox,
    pub(crate) subscribers: &'a Subscribers,
    pub(crate) disabled: &'a [String],
    pub(crate) boundary: &'a Boundary,
}

pub(crate) enum Action<'a> {
    Published { event: &'a Event, result: Result<&'a PublishResult, &'a MailboxError> },
    Injected { request: &'a Inject, observed: Option<&'a Event>, unseen: &'a [String], answer: &'a Injection },
    Waited,
}

impl StepRecord<'_> {
    /// The request and response of an injection.
    pub(crate) fn injection(&self) -> Option<(&Inject, &Injection)> {
        match &self.action {
            Action::Injected { request, answer, .. } => Some((request, answer)),
            _ => None,
        }
    }

    /// The priority of an active subscriber.
    pub(crate) fn priority_of(&self, subscriber: &SubscriberId) -> Priority {
        self.subscribers.find(subscriber.as_str()).expect("only active subscribers give verdicts").output.priority
    }

    /// Whether a message was refused. Nothing has changed then.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(self.action, Action::Published { result: Err(_), .. })
    }

    /// The earlier calls that this injection reports as unseen.
    pub(crate) fn unseen(&self) -> &[String] {
        match &self.action {
            Action::Injected { unseen, .. } => unseen,
            _ => &[],
        }
    }
}

/// A property of every timeline. A violation panics.
pub(crate) trait Law {
    fn observe(&mut self, record: &StepRecord<'_>);

    /// Called after every pending notification has been taken.
    fn end(&mut self) {}
}

/// Several laws, checked together.
impl Law for Vec<Box<dyn Law>> {
    fn observe(&mut self, record: &StepRecord<'_>) {
        self.iter_mut().for_each(|law| law.observe(record));
    }

    fn end(&mut self) {
        self.iter_mut().for_each(|law| law.end());
    }
}

/// Checks random timelines, each with a new law, and drains every mailbox at the end.
pub(crate) fn prove<L: Law>(cases: u32, law: impl Fn() -> L) {
    prove_for(timelines(), cases, law);
}

/// [`prove`] for timelines of a given strategy.
pub(crate) fn prove_for<L: Law>(timelines: impl Strategy<Value = Timeline>, cases: u32, law: impl Fn() -> L) {
    for_all(timelines, cases, |timeline| {
        let mut law = law();
        let mut player = Player::new(timeline);
        for step in &timeline.steps {
            player.step(step, &mut law);
        }
        player.drain(&mut law);
        law.end();
    });
}

/// Runs a test on random timelines; a failure is reduced to the smallest timeline.
pub(crate) fn for_all(timelines: impl Strategy<Value = Timeline>, cases: u32, test: impl Fn(&Timeline)) {
    let mut runner = TestRunner::new(settings::proptest(cases));
    let proven = runner.run(&timelines, |timeline| {
        test(&timeline);
        Ok(())
    });
    proven.unwrap_or_else(|failure| panic!("{failure}"));
}
