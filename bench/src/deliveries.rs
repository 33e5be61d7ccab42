//! Mails per second from the outbox into a mail server, next to what that server takes from a bare client.
//!
//! Each mail is claimed, recorded as started, sent over its own connection and recorded as sent; mails in flight at the
//! same time share these commits.

use std::time::{Duration, Instant};

use crate::hub::rate;
use crate::mail_fixtures;
use crate::measure::{RunMode, print_section};
use crate::serving::{self, ChildServer};
use crate::sink::{self, MailSink};

const PEOPLE: usize = 2_000;
const DRAIN_TIMEOUT: Duration = Duration::from_secs(120);

pub(crate) fn run(mode: RunMode) {
    print_section("deliveries", "2 000 waiting mails, drained into a mail server on the same cores");
    let runtime = tokio::runtime::Runtime::new().expect("the system gives threads");
    let sink = MailSink::start();
    let mut folder = serving::folder();
    runtime.block_on(mail_fixtures::add_people(folder.path(), PEOPLE));
    for workers in [4, 16] {
        let (mut drained, mut kept, mut single) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..mode.laps(3) {
            runtime.block_on(mail_fixtures::queue_mail(folder.path(), PEOPLE));
            sink.reset();
            let (port, workers_text) = (sink.address.port().to_string(), workers.to_string());
            let hub = ChildServer::hub_in(folder, &variables(&port, &workers_text));
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

/// Waits until every mail has arrived; returns the last message.
fn drain(sink: &MailSink, rates: &mut Vec<f64>) -> Vec<u8> {
    let started = Instant::now();
    loop {
        let received = sink.received();
        if received.count >= PEOPLE {
            rates.push((received.count - 1) as f64 / received.elapsed().as_secs_f64());
            return received.message;
        }
        assert!(started.elapsed() < DRAIN_TIMEOUT, "{} of {PEOPLE} mails arrived", received.count);
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn variables<'a>(port: &'a str, workers_text: &'a str) -> [(&'static str, &'a str); 6] {
    [
        ("BELLWIRE_EMAIL_HOST", "127.0.0.1"),
        ("BELLWIRE_EMAIL_PORT", port),
        ("BELLWIRE_EMAIL_TLS", "none"),
        ("BELLWIRE_EMAIL_FROM", "Bellwire <bellwire@example.org>"),
        ("BELLWIRE_EMAIL_WORKERS", workers_text),
        ("BELLWIRE_LIMITS_NOTIFICATIONS_PER_HOUR", "10000"),
    ]
}

/// Prints the best and the median lap; returns the best rate.
fn print(what: &str, mut rates: Vec<f64>, ceiling: Option<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    let (best, median) = (rates[rates.len() - 1], rates[rates.len() / 2]);
    let against = ceiling.map_or(String::new(), |ceiling| format!("{:.2} of the kept connections", best / ceiling));
    println!("  {what:<44} {:>20} {:>20}   {against}", rate(best, "mails"), rate(median, "mails"));
    best
}
