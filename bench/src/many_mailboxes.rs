//! What a mailbox weighs while nothing happens, and whether a million of them make an event dearer than ten thousand.
//!
//! Mailboxes are visited in random order, so nearly every visit at a million misses the caches: that is what a hub with
//! a million conversations does. The events are few and stay in the cache, so the mailboxes alone are measured.

use std::mem::size_of;
use std::sync::Arc;

use bellwire_core::{Event, Inject, InjectionPoint, Mailbox, Time};

use crate::counting::counted;
use crate::events::{START, change, failure, named};
use crate::measure::{Effort, Laps, Row, grouped, nanos, print_section};
use crate::post::{Post, mailbox};

const FEW: usize = 10_000;
const MANY: usize = 1_000_000;
const MANY_QUICK: usize = 100_000;
/// How many different events there are: failures and changes in turn.
const EVENTS: usize = 64;
const HOUR_MS: u64 = 60 * 60 * 1000;

pub(crate) fn run(effort: Effort) {
    print_section("many_mailboxes", "one event to each mailbox, in random order");
    let events = (0..EVENTS).map(|number| if number % 2 == 0 { failure(number) } else { change(number) });
    let events = named(events);
    let idle = weigh(&events);
    let many = if effort == Effort::Full { MANY } else { MANY_QUICK };
    let among_few = Visits::measure(&idle, FEW, &events, effort.laps(200));
    let among_many = Visits::measure(&idle, many, &events, effort.laps(5));
    compare("opening a batch", [(FEW, &among_few.opening), (many, &among_many.opening)]);
    compare("joining it", [(FEW, &among_few.joining), (many, &among_many.joining)]);
}

fn compare(what: &str, [(few, among_few), (many, among_many)]: [(usize, &Laps); 2]) {
    let row = |count: usize, laps| Row::of(format!("{what}, {} mailboxes", grouped(count as f64)), laps, nanos);
    row(few, among_few).print();
    row(many, among_many)
        .against(format!("{:.1} times as long", among_many.best() / among_few.best()))
        .aim("at most 3 times")
        .print();
}

/// Counts the bytes of mailboxes that hold an event, and of the same ones an hour after their agents took it.
fn weigh(events: &[Arc<Event>]) -> Vec<Mailbox> {
    let mut post = Post::new(events);
    let request = Inject::new(InjectionPoint::AfterTool, "call").expect("a short call id is right");
    let (mut mailboxes, holding) = counted(|| {
        let mut mailboxes: Vec<Mailbox> = (0..FEW).map(mailbox).collect();
        let events = events.iter().cycle();
        mailboxes.iter_mut().zip(events).for_each(|(mailbox, event)| post.bring(mailbox, event, START));
        mailboxes
    });
    let (_, since) = counted(|| {
        for mailbox in &mut mailboxes {
            drop(post.inject(mailbox, &request, START.plus(HOUR_MS)));
            mailbox.rest();
        }
    });
    let bytes = |kept: i64| format!("{} bytes", grouped(kept as f64 / FEW as f64));
    Row::exact("size of the mailbox itself", bytes((FEW * size_of::<Mailbox>()) as i64)).print();
    Row::exact("with one event in an open batch", bytes(holding.kept)).print();
    Row::exact("idle: injected, elapsed, at rest", bytes(holding.kept + since.kept)).aim("below 1 024 bytes").print();
    mailboxes
}

/// How long an event takes that finds its mailbox idle, and how long the next one that joins its batch.
///
/// A lap is as many visits as there are mailboxes when there are few, however many there are: were it longer among many,
/// a busy machine would disturb every one of those and not every one of these.
struct Visits {
    opening: Laps,
    joining: Laps,
}

impl Visits {
    fn measure(idle: &[Mailbox], count: usize, events: &[Arc<Event>], rounds: usize) -> Self {
        let mut post = Post::new(events);
        let [there, back] = [shuffled(count, 1), shuffled(count, 2)];
        let mut visits = Self { opening: Laps::of(FEW), joining: Laps::of(FEW) };
        for _ in 0..rounds {
            let mut mailboxes: Vec<Mailbox> = idle.iter().cycle().take(count).cloned().collect();
            let now = START.plus(2 * HOUR_MS);
            for order in there.chunks(FEW) {
                visits.opening.time(|| visit(&mut post, &mut mailboxes, order, |at| &events[at % EVENTS], now));
            }
            // The next event of the same kind: it is no repeat, and its batch is open.
            let next = |at: usize| &events[(at + 2) % EVENTS];
            for order in back.chunks(FEW) {
                visits.joining.time(|| visit(&mut post, &mut mailboxes, order, next, now.plus(500)));
            }
        }
        visits
    }
}

fn visit<'a>(
    post: &mut Post,
    mailboxes: &mut [Mailbox],
    order: &[u32],
    event: impl Fn(usize) -> &'a Arc<Event>,
    now: Time,
) {
    for at in order.iter().map(|at| *at as usize) {
        post.bring(&mut mailboxes[at], event(at), now);
    }
}

/// The numbers below `count` in an order that follows from the seed alone.
fn shuffled(count: usize, seed: u64) -> Vec<u32> {
    let mut order: Vec<u32> = (0..count as u32).collect();
    let mut state = seed;
    for at in (1..count).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        order.swap(at, (state >> 33) as usize % (at + 1));
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mailbox_is_visited_once_and_not_in_order() {
        let mut order = shuffled(1_000, 1);
        assert!(!order.is_sorted());
        order.sort_unstable();
        assert!(order.into_iter().eq(0..1_000));
    }
}
