//! The laws of a mailbox, proven on random timelines.
//!
//! A timeline is what a conversation goes through: events of every kind, again and again and in storms, words of the
//! person, injections of every style and size, sub-agents, reloads, a clock that sleeps and runs and jumps back. After
//! every step the laws compare what the core did with what they know themselves.
//!
//! The seed is fixed. `BELLWIRE_CASES=5000` makes a long hunt of it, `PROPTEST_RNG_SEED=1` looks elsewhere.

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
use support::{Deed, Law, Moment, for_all, page, prove, prove_for, settings};

#[test]
fn nothing_is_lost_and_every_count_adds_up() {
    prove(150, Ledger::default);
}

#[test]
fn every_verdict_is_the_one_the_rules_give() {
    prove(150, Rules::default);
}

#[test]
fn a_storm_is_held_off_and_counted() {
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
        conversation.publish(Event::user_message(&text).expect("it says something"), now).expect("there is room");
        let request = Inject::new(InjectionPoint::AfterTool, "call").expect("it is short");
        let answer = conversation.inject(request.clone(), now).expect("the call id is new");
        let page = page::read(&request, &answer, conversation.boundary());
        let read: String = toon_format::decode_default(&page.items[0].text).expect("it is one string");
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
fn critical_news_never_waits() {
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
fn the_worst_that_can_be_done_to_a_mailbox_stays_within_its_bound() {
    let mut adversary = Adversary::new();
    adversary.ring_often();
    adversary.fill_queue();
    adversary.fill_batches();
    adversary.fill_windows();
    adversary.feed_detectors();
    let size = adversary.size();
    assert!(size <= BLOB_MAX, "{size} bytes");
    assert!(size > BLOB_MAX - 2 * 1024, "{size} bytes: this was not the worst");
}

#[test]
fn the_persons_word_is_never_dropped() {
    prove(60, PersonIsHeard::default);
}

#[test]
fn wakes_keep_their_limit_and_their_deadline() {
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

/// Everything anybody could see of a timeline, with a crash after every so many steps.
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
    fn see(&mut self, moment: &Moment<'_>) {
        let said = match &moment.deed {
            Deed::Published { result, .. } => format!("{result:?}"),
            Deed::Injected { answer, .. } => format!("{answer:?}"),
            Deed::Waited => String::new(),
        };
        let (wakes_at, rings) = (moment.mailbox.wakes_at(), moment.mailbox.waiting_wakes(moment.given));
        let pending = if moment.glance { &[] } else { moment.mailbox.pending() };
        self.0.push(format!("{said} {:?} {wakes_at} {rings:?} {pending:?}", moment.news));
    }
}

#[test]
fn a_persons_mail_goes_out_by_its_window_and_all_of_it() {
    for_all(timelines(), 60, |timeline| {
        let mut person = Person::new(timeline);
        timeline.steps.iter().for_each(|step| person.step(step));
        person.drain();
    });
}

#[test]
fn the_history_holds_what_agents_saw_and_nothing_else() {
    for_all(timelines(), 60, |timeline| {
        let mut player = Player::new(timeline);
        timeline.steps.iter().for_each(|step| player.step(step, &mut Caps));
        let seen = player.asked.iter().filter(|asked| !asked.unseen);
        let told = seen.flat_map(|asked| asked.answer.told.iter().map(|told| (&asked.request.call_id, told)));
        let told: Vec<_> = told.map(|(call_id, told)| (call_id, &told.source, &told.content)).collect();
        let messages = player.driver.messages().iter();
        let messages: Vec<_> = messages.map(|message| (&message.call_id, &message.source, &message.content)).collect();
        assert_eq!(told, messages);
    });
}
