//! A seeded simulation of a hub with many conversations and every kind of fault.
//!
//! Commits fail and are retried, processes die between any two inputs and keep only committed data, memory is released,
//! the clocks of the nodes disagree, drivers handle timers late. All laws check every conversation, and in the end
//! every event, repeat and suppressed event has to be accounted for.
//!
//! A simulation depends only on its seed, which a failure prints. `BELLWIRE_SIM_SEEDS=200` runs more seeds,
//! `BELLWIRE_SIM_FIRST=17` starts with that one.

mod support;

use std::sync::Arc;

use bellwire_core::{Subscribers, Time};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use support::Law;
use support::answers::{Caps, Labels, Order, TakenOnce, Urgent};
use support::bounds::{Bounds, PersonIsHeard};
use support::custom::{custom, subscribers};
use support::hub::{Faults, Hub};
use support::ledger::Ledger;
use support::player::Player;
use support::punctual::{BatchesEnd, Punctual, Wakes};
use support::rules::Rules;
use support::settings::setting;
use support::steps::{Step, step};

const SEEDS: u64 = 3;
const CONVERSATIONS: usize = 50;
const STEPS: usize = 12;
const DAYS: i64 = 3;

#[test]
fn days_of_crashes_lose_nothing() {
    let first = setting("BELLWIRE_SIM_FIRST").unwrap_or(1);
    let seeds = setting("BELLWIRE_SIM_SEEDS").unwrap_or(SEEDS);
    for seed in first..first + seeds {
        let failed = std::panic::catch_unwind(|| simulate(seed));
        assert!(failed.is_ok(), "BELLWIRE_SIM_FIRST={seed} BELLWIRE_SIM_SEEDS=1 shows this again");
    }
}

type Laws = Vec<Box<dyn Law>>;

/// Every law.
fn all_laws() -> Laws {
    vec![
        Box::<Ledger>::default(),
        Box::<Rules>::default(),
        Box::<TakenOnce>::default(),
        Box::<Caps>::default(),
        Box::<Order>::default(),
        Box::<Labels>::default(),
        Box::<Urgent>::default(),
        Box::<BatchesEnd>::default(),
        Box::<Punctual>::default(),
        Box::<Bounds>::default(),
        Box::<PersonIsHeard>::default(),
        Box::<Wakes>::default(),
    ]
}

fn simulate(seed: u64) {
    let mut dice = Dice::new(seed);
    let customs: Vec<_> = (0..4).map(|_| dice.draw(&custom())).collect();
    let set = Arc::new(Subscribers::new(subscribers(&customs, &[])));
    let mut conversations: Vec<(Player<Hub>, Laws)> = (0..CONVERSATIONS)
        .map(|_| {
            let faults = Faults { state: dice.next(), failed_commit: 100, restart: 60, rest: 60 };
            let hub = Hub::new(set.clone(), dice.next(), faults);
            (Player::driving(hub, dice.next()), all_laws())
        })
        .collect();
    let start = conversations[0].0.now;
    for turn in 0..CONVERSATIONS * STEPS {
        let at = start.plus(DAYS as u64 * 86_400_000 * turn as u64 / (CONVERSATIONS * STEPS) as u64);
        let (player, laws) = &mut conversations[dice.below(CONVERSATIONS)];
        play_steps(player, laws, at, &mut dice);
    }
    for (player, laws) in &mut conversations {
        player.drain(laws);
        laws.end();
    }
}

/// Plays a few steps of one conversation, close to each other in time.
fn play_steps(player: &mut Player<Hub>, laws: &mut Laws, at: Time, dice: &mut Dice) {
    // Another node may handle it this time, with a clock that is wrong by up to five seconds.
    let skew = dice.below(10_000) as i64 - 5_000;
    let at = Time::from_millis(at.as_millis() + skew);
    match at.as_millis() - player.now.as_millis() {
        // Most of the time the timers are handled when they are due; sometimes they are late.
        passed if passed > 0 && dice.below(4) > 0 => player.run(passed as u64, laws),
        _ => player.now = at,
    }
    for _ in 0..1 + dice.below(3) {
        let step = dice.draw(&step());
        // All conversations of the hub share its subscribers, so that one conversation cannot reload them.
        if !matches!(step, Step::Reload { .. }) {
            player.step(&step, laws);
        }
    }
}

/// Draws from strategies, by a seed.
struct Dice {
    runner: TestRunner,
    state: u64,
}

impl Dice {
    fn new(seed: u64) -> Self {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
        Self { runner: TestRunner::new_with_rng(Config::default(), rng), state: seed }
    }

    fn draw<T>(&mut self, strategy: &impl Strategy<Value = T>) -> T {
        strategy.new_tree(&mut self.runner).expect("no strategy here rejects values").current()
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.state >> 11
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}
