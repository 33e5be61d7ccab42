//! The outbox at work: letters a second into a mail server, beside what the server can take from a client that does
//! nothing else.
//!
//! Every letter is claimed, recorded as begun, sent over a connection of its own and recorded as sent; letters that are on
//! their way at the same time share the commits for it.

use std::time::{Duration, Instant};

use crate::hub::rate;
use crate::letters;
use crate::measure::{Effort, print_section};
use crate::serving::{self, Server};
use crate::sink::{self, Sink};

const PEOPLE: usize = 2_000;
const DRAINED_MAX: Duration = Duration::from_secs(120);

pub(crate) fn run(effort: Effort) {
    print_section("deliveries", "2 000 letters that wait, drained into a mail server on the same cores");
    let runtime = tokio::runtime::Runtime::new().expect("the system gives threads");
    let sink = Sink::start();
    let mut folder = serving::folder();
    runtime.block_on(letters::invite(folder.path(), PEOPLE));
    for workers in [4, 16] {
        let (mut drained, mut kept, mut single) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..effort.laps(3) {
            runtime.block_on(letters::write(folder.path(), PEOPLE));
            sink.reset();
            let (port, at_once) = (sink.address.port().to_string(), workers.to_string());
            let hub = Server::hub_in(folder, &variables(&port, &at_once));
            let message = drain(&sink, &mut drained);
            folder = hub.stop();
            kept.push(sink::send_bare(&sink, &message, PEOPLE, workers, true));
            single.push(sink::send_bare(&sink, &message, PEOPLE, workers, false));
        }
        let ceiling = print(&format!("bare client, {workers} connections kept"), kept, None);
        print(&format!("bare client, {workers} at once, one mail each"), single, Some(ceiling));
        print(&format!("outbox, {workers} at once"), drained, Some(ceiling));
    }
}

/// Waits until every letter has arrived; gives the last one as it came.
fn drain(sink: &Sink, rates: &mut Vec<f64>) -> Vec<u8> {
    let started = Instant::now();
    loop {
        let taken = sink.taken();
        if taken.count >= PEOPLE {
            rates.push((taken.count - 1) as f64 / taken.elapsed().as_secs_f64());
            return taken.message;
        }
        assert!(started.elapsed() < DRAINED_MAX, "{} of {PEOPLE} letters arrived", taken.count);
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn variables<'a>(port: &'a str, at_once: &'a str) -> [(&'static str, &'a str); 6] {
    [
        ("BELLWIRE_EMAIL_HOST", "127.0.0.1"),
        ("BELLWIRE_EMAIL_PORT", port),
        ("BELLWIRE_EMAIL_TLS", "none"),
        ("BELLWIRE_EMAIL_FROM", "Bellwire <bellwire@example.org>"),
        ("BELLWIRE_EMAIL_WORKERS", at_once),
        ("BELLWIRE_LIMITS_NOTIFICATIONS_PER_HOUR", "10000"),
    ]
}

/// Prints the best lap and the median; gives the best.
fn print(what: &str, mut rates: Vec<f64>, ceiling: Option<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    let (best, median) = (rates[rates.len() - 1], rates[rates.len() / 2]);
    let against = ceiling.map_or(String::new(), |ceiling| format!("{:.2} of the kept connections", best / ceiling));
    println!("  {what:<44} {:>20} {:>20}   {against}", rate(best, "mails"), rate(median, "mails"));
    best
}
