//! The laws of a mailbox, checked on random timelines.
//!
//! A timeline is the input of one conversation: events of every type, repeated and in storms, messages of the person,
//! injections of every style and size, sub-agents, reloads, a clock that sleeps, runs and jumps back. After every step
//! the laws compare the core's output with their own models.
//!
//! The seed is fixed. `BELLWIRE_CASES=5000` runs more cases, `PROPTEST_RNG_SEED=1` uses another seed.

mod support;

use bellwire_core::mailbox::BLOB_MAX;
use bellwire_core::render::guard::unguard;
use bellwire_core::{Conversation, Event, Inject, InjectionPoint, Randomness, Subscribers, Time};
use proptest::prop_assert_eq;
use proptest::test_runner::TestRunner;

use support::answers::{Caps, Labels, Order, TakenOnce, Urgent};
use support::bounds::{Bounds, PersonIsHeard};
use support::custom::subscribers;
use support::ledger::Ledger;
use support::person::Person;
use support::player::Player;
use support::punctual::{BatchesEnd, Punctual, Wakes};
use support::rules::Rules;
use support::steps::{Timeline, storms, timelines};
use support::texts::visible_text;
use support::worst::Adversary;
use support::{Action, Law, StepRecord, for_all, page, prove, prove_for, settings};

#[test]
fn nothing_is_lost_and_every_count_adds_up() {
    prove(150, Ledger::default);
}

#[test]
fn every_verdict_is_the_one_the_rules_give() {
    prove(150, Rules::default);
}

#[test]
fn a_storm_is_suppressed_and_counted() {
    prove_for(storms(), 8, || -> Vec<Box<dyn Law>> { vec![Box::<Rules>::default(), Box::<Ledger>::default()] });
}

#[test]
fn nothing_is_taken_twice() {
    prove(60, TakenOnce::default);
}

#[test]
fn asking_twice_gives_the_same_answer() {
    for_all(timelines(), 40, |timeline| {
        let mut player = Player::new(timeline);
        for step in &timeline.steps {
            player.step(step, &mut TakenOnce::default());
            for point in InjectionPoint::ALL {
                (0..3).for_each(|back| player.ask_again(back, *point));
            }
        }
    });
}

#[test]
fn no_limit_is_exceeded_and_no_text_escapes_its_block() {
    prove(150, Caps::default);
}

#[test]
fn the_agent_reads_the_persons_message_unchanged() {
    let mut runner = TestRunner::new(settings::proptest(500));
    let proven = runner.run(&visible_text(), |text| {
        let mut conversation =
            Conversation::new(Subscribers::new(subscribers(&[], &[])).into(), Randomness::repeatable(1));
        let now = Time::from_millis(1_767_000_000_000);
        conversation
            .publish(Event::user_message(&text).expect("the text is not blank"), now)
            .expect("the mailbox is not full");
        let request = Inject::new(InjectionPoint::AfterTool, "call").expect("the call id is short");
        let answer = conversation.inject(request.clone(), now).expect("the call id is new");
        let page = page::read(&request, &answer, conversation.boundary());
        let read: String = toon_format::decode_default(&page.items[0].text).expect("the item is one string");
        // Every line break is a line feed in a block.
        prop_assert_eq!(unguard(&read), text.replace(['\u{2028}', '\u{2029}'], "\n"));
        Ok(())
    });
    proven.unwrap_or_else(|failure| panic!("{failure}"));
}

#[test]
fn the_order_is_stable() {
    prove(100, Order::default);
}

#[test]
fn a_label_is_the_one_source_or_the_subscriber() {
    prove(60, Labels::default);
}

#[test]
fn critical_notifications_never_wait() {
    prove(100, Urgent::default);
}

#[test]
fn every_batch_ends_by_its_window_or_its_point() {
    prove(100, BatchesEnd::default);
}

#[test]
fn time_never_runs_backwards_and_no_timer_is_missed() {
    prove(100, Punctual::default);
}

#[test]
fn a_mailbox_stays_small() {
    prove(60, Bounds::default);
}

#[test]
fn the_largest_possible_mailbox_stays_within_its_bound() {
    let mut adversary = Adversary::new();
    adversary.wake_often();
    adversary.fill_queue();
    adversary.fill_batches();
    adversary.fill_windows();
    adversary.feed_detectors();
    let size = adversary.size();
    assert!(size <= BLOB_MAX, "{size} bytes");
    assert!(size > BLOB_MAX - 2 * 1024, "{size} bytes: this was not the largest possible");
}

#[test]
fn the_persons_messages_are_never_dropped() {
    prove(60, PersonIsHeard::default);
}

#[test]
fn wakes_respect_the_hourly_limit_and_are_not_late() {
    prove(100, Wakes::default);
}

#[test]
fn a_crash_changes_no_result() {
    for_all(timelines(), 60, |timeline| {
        let every = 1 + (timeline.seed % 4) as u32;
        let (steady, crashing) = (transcript(timeline, 0), transcript(timeline, every));
        for (number, (steady, crashing)) in steady.iter().zip(&crashing).enumerate() {
            assert_eq!(steady, crashing, "after {number} steps");
        }
        assert_eq!(steady.len(), crashing.len());
    });
}

/// All observable output of a timeline, with a crash after every `crash_every` steps.
fn transcript(timeline: &Timeline, crash_every: u32) -> Vec<String> {
    let mut player = Player::new(timeline);
    player.crash_every = crash_every;
    let mut transcript = Transcript::default();
    for step in &timeline.steps {
        player.step(step, &mut transcript);
    }
    player.drain(&mut transcript);
    transcript.0.push(format!("{:?}", player.driver.messages()));
    transcript.0
}

#[derive(Default)]
struct Transcript(Vec<String>);

impl Law for Transcript {
    fn observe(&mut self, record: &StepRecord<'_>) {
        let action = match &record.action {
            Action::Published { result, .. } => format!("{result:?}"),
            Action::Injected { answer, .. } => format!("{answer:?}"),
            Action::Waited => String::new(),
        };
        let (wakes_at, rings) = (record.mailbox.wakes_at(), record.mailbox.waiting_wakes(record.given));
        let pending = if record.is_one_of_many { &[] } else { record.mailbox.pending() };
        self.0.push(format!("{action} {:?} {wakes_at} {rings:?} {pending:?}", record.updates));
    }
}

#[test]
fn every_notification_of_a_person_is_delivered_by_the_end_of_its_window() {
    for_all(timelines(), 60, |timeline| {
        let mut person = Person::new(timeline);
        timeline.steps.iter().for_each(|step| person.step(step));
        person.drain();
    });
}

#[test]
fn the_history_equals_what_agents_saw() {
    for_all(timelines(), 60, |timeline| {
        let mut player = Player::new(timeline);
        timeline.steps.iter().for_each(|step| player.step(step, &mut Caps));
        let seen = player.asked.iter().filter(|asked| !asked.unseen);
        let shown = seen.flat_map(|asked| asked.answer.shown.iter().map(|item| (&asked.request.call_id, item)));
        let shown: Vec<_> = shown.map(|(call_id, item)| (call_id, &item.source, &item.content)).collect();
        let messages = player.driver.messages().iter();
        let messages: Vec<_> = messages.map(|message| (&message.call_id, &message.source, &message.content)).collect();
        assert_eq!(shown, messages);
    });
}
