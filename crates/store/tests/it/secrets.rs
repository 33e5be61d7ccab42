//! A boundary cannot be predicted from other ids and boundaries.
//!
//! An earlier version took secrets and ids from the same two streams of splitmix64. The attack on it is kept here: it
//! recovers both streams from two event ids and two boundaries, and predicts the next boundaries.

use bellwire_core::InjectionPoint::AfterTool;
use bellwire_store::{Caller, ConversationDetails, Receipt};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _};

use crate::backends::{Backend, failure, on_every_store};

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
const ALPHABET: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const BOUNDARIES: u128 = 62u128.pow(8);
/// How many steps of the generator lie between what the attacker sees, at most.
const NEAR: i64 = 6;

/// What an attacker has: two own ids and two own boundaries, in the order boundary, id, boundary, id.
struct Seen {
    ids: [u128; 2],
    boundaries: [String; 2],
}

/// The boundaries that the next steps would give, if the generator is the old one; none if it cannot be.
fn predict(seen: &Seen) -> Vec<String> {
    let Some((first, between)) = first_stream(seen.ids) else { return Vec::new() };
    for offset in -NEAR..0 {
        let high = mix(step(first, offset));
        for low in lows(&seen.boundaries[0], high) {
            let second = step(unmix(low), -offset);
            let fits = |at: i64| boundary(mix(step(first, at)), mix(step(second, at))) == seen.boundaries[1];
            if (between - NEAR..between).any(fits) {
                let next = between + 1..=between + 2 * NEAR;
                return next.map(|at| boundary(mix(step(first, at)), mix(step(second, at)))).collect();
            }
        }
    }
    Vec::new()
}

/// The state that gave the first id, and how many steps later the second came. An id shows 62 bits of the mixed state.
fn first_stream(ids: [u128; 2]) -> Option<(u64, i64)> {
    let states = |id: u128| {
        let shown = id as u64 & (u64::MAX >> 2);
        (0..4u64).map(move |hidden| unmix(hidden << 62 | shown))
    };
    let pairs = states(ids[0]).flat_map(|first| states(ids[1]).map(move |second| (first, second)));
    let steps = |(first, second): (u64, u64)| (first, second.wrapping_sub(first).wrapping_mul(inverse(STEP)) as i64);
    pairs.map(steps).find(|(_, between)| (1..1000).contains(between))
}

/// What the second stream may have given, where the first gave `high` and the boundary came of both.
fn lows(boundary: &str, high: u64) -> impl Iterator<Item = u64> {
    let place = |character: u8| ALPHABET.iter().position(|known| *known == character).unwrap_or(0) as u128;
    let digits = boundary.bytes().rev().fold(0, |number, character| number * 62 + place(character));
    let known = (u128::from(high) << 64) % BOUNDARIES;
    let least = (digits + BOUNDARIES - known) % BOUNDARIES;
    (0..).map(move |times| least + times * BOUNDARIES).map_while(|low| u64::try_from(low).ok())
}

fn boundary(high: u64, low: u64) -> String {
    let mut seed = u128::from(high) << 64 | u128::from(low);
    let character = |_| {
        let byte = ALPHABET[(seed % 62) as usize];
        seed /= 62;
        char::from(byte)
    };
    (0..8).map(character).collect()
}

fn step(state: u64, steps: i64) -> u64 {
    state.wrapping_add(STEP.wrapping_mul(steps as u64))
}

fn mix(state: u64) -> u64 {
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

fn unmix(mixed: u64) -> u64 {
    let state = unshift(mixed, 31).wrapping_mul(inverse(0x94d0_49bb_1331_11eb));
    let state = unshift(state, 27).wrapping_mul(inverse(0xbf58_476d_1ce4_e5b9));
    unshift(state, 30)
}

/// Undoes `x ^ (x >> by)`.
fn unshift(mixed: u64, by: u32) -> u64 {
    mixed ^ (mixed >> by) ^ mixed.checked_shr(2 * by).unwrap_or(0)
}

/// What an odd number is multiplied with to give 1, modulo 2^64.
fn inverse(odd: u64) -> u64 {
    (0..6).fold(odd, |inverse, _| inverse.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(inverse))))
}

/// The generator as it was, and a hub that takes everything from it.
struct OldHub([u64; 2]);

impl OldHub {
    fn bits(&mut self) -> [u64; 2] {
        self.0.each_mut().map(|state| {
            *state = step(*state, 1);
            mix(*state)
        })
    }

    /// A new conversation and its mailbox, which has a secret too.
    fn conversation(&mut self) -> String {
        let [high, low] = self.bits();
        self.bits();
        boundary(high, low)
    }

    /// An event and the notification it becomes.
    fn event(&mut self) -> u128 {
        let mut rest = [0; 10];
        rest[2..].copy_from_slice(&self.bits()[0].to_be_bytes());
        self.bits();
        uuid::Builder::from_unix_timestamp_millis(1, &rest).into_uuid().as_u128()
    }
}

#[test]
fn the_attack_predicts_what_the_old_generator_gives() {
    let mut hub = OldHub([0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210]);
    let (one, first, two, second) = (hub.conversation(), hub.event(), hub.conversation(), hub.event());
    let predicted = predict(&Seen { ids: [first, second], boundaries: [one, two] });
    assert!(predicted.contains(&hub.conversation()), "{predicted:?}");
}

async fn conversation(backend: &Backend, user: &str, id: &str) -> String {
    let view = backend
        .store()
        .put_conversation(Caller::user(user), id.into(), user.into(), ConversationDetails::default())
        .await;
    view.unwrap().boundary.as_str().to_owned()
}

async fn event(backend: &Backend, id: &str) -> u128 {
    let event = failure("grep").in_conversation(id);
    let Receipt { event_id, .. } = backend.publish_as(Caller::user("eve"), event, None).await.unwrap();
    event_id.0.as_u128()
}

#[tokio::test]
async fn the_first_injection_after_an_upgrade_changed_the_boundary_says_so() {
    let mut backend = Backend::sqlite().await;
    assert_eq!(backend.inject(AfterTool, "before").await.warnings, Vec::<String>::new());
    backend.close().await;
    let mut file = SqliteConnectOptions::new().filename(backend.path()).connect().await.unwrap();
    sqlx::raw_sql("UPDATE conversations SET boundary_changed = 1").execute(&mut file).await.unwrap();
    file.close().await.unwrap();
    backend.open().await;
    let first = backend.inject(AfterTool, "first").await;
    assert!(first.warnings.len() == 1 && first.warnings[0].contains("read system_prompt again"), "{first:?}");
    backend.restart().await;
    assert_eq!(backend.inject(AfterTool, "second").await.warnings, Vec::<String>::new(), "it is said once");
    assert_eq!(backend.inject(AfterTool, "first").await, first, "and again to whoever asks again");
}

on_every_store! {
    async fn boundaries_cannot_be_predicted_from_ids_and_other_boundaries(backend: Backend) {
        let one = conversation(&backend, "eve", "one").await;
        let first = event(&backend, "one").await;
        let two = conversation(&backend, "eve", "two").await;
        let second = event(&backend, "two").await;
        let seen = Seen { ids: [first, second], boundaries: [one, two] };
        assert!(first_stream(seen.ids).is_some(), "ids are no secret, and give none away");
        let predicted = predict(&seen);
        let victims = conversation(&backend, "ada", "chat").await;
        assert!(!predicted.contains(&victims), "{victims} was predicted");
    }
}
