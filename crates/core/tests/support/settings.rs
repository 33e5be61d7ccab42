//! The number of cases of a test run. The seed is fixed, so that every run has the same result.

use proptest::test_runner::{Config, RngSeed};

const SEED: u64 = 20_260_103;

/// `BELLWIRE_CASES` sets the number of cases, `PROPTEST_RNG_SEED` another seed.
pub(crate) fn proptest(cases: u32) -> Config {
    let default = Config::default();
    let rng_seed = match default.rng_seed {
        RngSeed::Random => RngSeed::Fixed(SEED),
        set @ RngSeed::Fixed(_) => set,
    };
    let cases = setting("BELLWIRE_CASES").map_or(cases, |cases| cases as u32);
    Config { cases, rng_seed, failure_persistence: None, max_shrink_iters: 4096, ..default }
}

/// A number from the environment.
#[expect(clippy::disallowed_methods, reason = "the core has no environment; a test run has")]
pub(crate) fn setting(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().expect("the setting is a whole number"))
}
