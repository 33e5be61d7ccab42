//! Memory of an idle mailbox, and the time per event with a million mailboxes compared with ten thousand.
//!
//! Mailboxes are visited in random order, so that nearly every visit among a million misses the CPU caches, as in a hub
//! with a million conversations. The few events stay in the cache, so only the mailboxes are measured.

use std::mem::size_of;
use std::sync::Arc;

use bellwire_core::{Event, Inject, InjectionPoint, Mailbox, Time};

use crate::counting::counted;
use crate::events::{START, change, failure, with_ids};
use crate::mailbox_driver::{MailboxDriver, mailbox};
use crate::measure::{Laps, RunMode, TableRow, grouped, nanos, print_section};

const FEW: usize = 10_000;
const MANY: usize = 1_000_000;
const MANY_QUICK: usize = 100_000;
/// The number of different events, alternately failures and file changes.
const EVENTS: usize = 64;
const HOUR_MS: u64 = 60 * 60 * 1000;

pub(crate) fn run(mode: RunMode) {
    print_section("many_mailboxes", "one event to each mailbox, in random order");
    let events = (0..EVENTS).map(|number| if number % 2 == 0 { failure(number) } else { change(number) });
    let events = with_ids(events);
    let idle = measure_memory(&events);
    let many = if mode == RunMode::Full { MANY } else { MANY_QUICK };
    let among_few = Visits::measure(&idle, FEW, &events, mode.laps(200));
    let among_many = Visits::measure(&idle, many, &events, mode.laps(5));
    compare("opening a batch", [(FEW, &among_few.opening), (many, &among_many.opening)]);
    compare("joining it", [(FEW, &among_few.joining), (many, &among_many.joining)]);
}

fn compare(what: &str, [(few, among_few), (many, among_many)]: [(usize, &Laps); 2]) {
    let row = |count: usize, laps| TableRow::of(format!("{what}, {} mailboxes", grouped(count as f64)), laps, nanos);
    row(few, among_few).print();
    row(many, among_many)
        .against(format!("{:.1} times as long", among_many.best() / among_few.best()))
        .aim("at most 3 times")
        .print();
}

/// Measures the memory of mailboxes with one event in an open batch, and again an hour after its injection. Returns the
/// idle mailboxes.
fn measure_memory(events: &[Arc<Event>]) -> Vec<Mailbox> {
    let mut driver = MailboxDriver::new(events);
    let request = Inject::new(InjectionPoint::AfterTool, "call").expect("a short call id is right");
    let (mut mailboxes, holding) = counted(|| {
        let mut mailboxes: Vec<Mailbox> = (0..FEW).map(mailbox).collect();
        let events = events.iter().cycle();
        mailboxes.iter_mut().zip(events).for_each(|(mailbox, event)| driver.publish(mailbox, event, START));
        mailboxes
    });
    let (_, since) = counted(|| {
        for mailbox in &mut mailboxes {
            drop(driver.inject(mailbox, &request, START.plus(HOUR_MS)));
            mailbox.compact();
        }
    });
    let bytes = |net_bytes: i64| format!("{} bytes", grouped(net_bytes as f64 / FEW as f64));
    TableRow::exact("size of the mailbox itself", bytes((FEW * size_of::<Mailbox>()) as i64)).print();
    TableRow::exact("with one event in an open batch", bytes(holding.net_bytes)).print();
    TableRow::exact("idle: injected, elapsed, at rest", bytes(holding.net_bytes + since.net_bytes))
        .aim("below 1 024 bytes")
        .print();
    mailboxes
}

/// The time of an event that opens a batch in an idle mailbox, and of the next event, which joins that batch.
///
/// A lap has `FEW` visits whatever the number of mailboxes: longer laps among many mailboxes would be disturbed by other
/// processes more often than short ones among few.
struct Visits {
    opening: Laps,
    joining: Laps,
}

impl Visits {
    fn measure(idle: &[Mailbox], count: usize, events: &[Arc<Event>], rounds: usize) -> Self {
        let mut driver = MailboxDriver::new(events);
        let [there, back] = [shuffled(count, 1), shuffled(count, 2)];
        let mut visits = Self { opening: Laps::of(FEW), joining: Laps::of(FEW) };
        for _ in 0..rounds {
            let mut mailboxes: Vec<Mailbox> = idle.iter().cycle().take(count).cloned().collect();
            let now = START.plus(2 * HOUR_MS);
            for order in there.chunks(FEW) {
                visits.opening.time(|| visit(&mut driver, &mut mailboxes, order, |at| &events[at % EVENTS], now));
            }
            // The next event of the same type: no duplicate, and its batch is open.
            let next = |at: usize| &events[(at + 2) % EVENTS];
            for order in back.chunks(FEW) {
                visits.joining.time(|| visit(&mut driver, &mut mailboxes, order, next, now.plus(500)));
            }
        }
        visits
    }
}

fn visit<'a>(
    driver: &mut MailboxDriver,
    mailboxes: &mut [Mailbox],
    order: &[u32],
    event: impl Fn(usize) -> &'a Arc<Event>,
    now: Time,
) {
    for at in order.iter().map(|at| *at as usize) {
        driver.publish(&mut mailboxes[at], event(at), now);
    }
}

/// The numbers below `count` in a pseudo-random order determined by the seed.
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
    fn shuffled_contains_every_number_once_and_is_not_sorted() {
        let mut order = shuffled(1_000, 1);
        assert!(!order.is_sorted());
        order.sort_unstable();
        assert!(order.into_iter().eq(0..1_000));
    }
}
