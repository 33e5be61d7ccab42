//! Random timelines, the player that plays them on a conversation, and the laws that watch.
//!
//! A law is an independent witness: it keeps its own small model of what must be true and compares it, after every
//! single step, with what the core said and did. No law asks the core how it decides.

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

/// One step as everybody could see it: what was asked, what was answered, what waited before and what waits after.
pub(crate) struct Moment<'a> {
    /// The time the mailbox was given; it may lie before an earlier one.
    pub(crate) given: Time,
    pub(crate) agent: &'a AgentName,
    pub(crate) deed: Deed<'a>,
    /// It is one of very many alike; a law may put off its dearest checks to the last of them.
    pub(crate) glance: bool,
    pub(crate) news: &'a [ConversationUpdate],
    pub(crate) before: &'a [Notification],
    pub(crate) mailbox: &'a Mailbox,
    pub(crate) subscribers: &'a Subscribers,
    pub(crate) disabled: &'a [String],
    pub(crate) boundary: &'a Boundary,
}

pub(crate) enum Deed<'a> {
    Published { event: &'a Event, result: Result<&'a PublishResult, &'a MailboxError> },
    Injected { request: &'a Inject, observed: Option<&'a Event>, unseen: &'a [String], answer: &'a Injection },
    Waited,
}

impl Moment<'_> {
    /// The answer of an injection, with what was asked.
    pub(crate) fn injection(&self) -> Option<(&Inject, &Injection)> {
        match &self.deed {
            Deed::Injected { request, answer, .. } => Some((request, answer)),
            _ => None,
        }
    }

    /// How urgent a subscriber in force is.
    pub(crate) fn priority_of(&self, subscriber: &SubscriberId) -> Priority {
        self.subscribers.find(subscriber.as_str()).expect("a verdict is given for one in force").output.priority
    }

    /// Whether a message was refused. Nothing has happened then.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(self.deed, Deed::Published { result: Err(_), .. })
    }

    /// The earlier answers that this injection gives back.
    pub(crate) fn unseen(&self) -> &[String] {
        match &self.deed {
            Deed::Injected { unseen, .. } => unseen,
            _ => &[],
        }
    }
}

/// Something that must be true of every timeline. A law that is broken panics.
pub(crate) trait Law {
    fn see(&mut self, moment: &Moment<'_>);

    /// Called when everything that waited has been taken.
    fn end(&mut self) {}
}

/// Several laws at once.
impl Law for Vec<Box<dyn Law>> {
    fn see(&mut self, moment: &Moment<'_>) {
        self.iter_mut().for_each(|law| law.see(moment));
    }

    fn end(&mut self) {
        self.iter_mut().for_each(|law| law.end());
    }
}

/// Plays random timelines, each before a fresh law, and drains every mailbox at the end.
pub(crate) fn prove<L: Law>(cases: u32, law: impl Fn() -> L) {
    prove_for(timelines(), cases, law);
}

/// The same, for timelines of some kind.
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

/// Runs a test on random timelines; the smallest one that fails is shown.
pub(crate) fn for_all(timelines: impl Strategy<Value = Timeline>, cases: u32, test: impl Fn(&Timeline)) {
    let mut runner = TestRunner::new(settings::proptest(cases));
    let proven = runner.run(&timelines, |timeline| {
        test(&timeline);
        Ok(())
    });
    proven.unwrap_or_else(|failure| panic!("{failure}"));
}
