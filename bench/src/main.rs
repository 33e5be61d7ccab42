//! Benchmarks: events per second, bytes per mailbox, allocations per event, tokens per block.
//!
//! Each figure is printed next to a reference measured in the same run, in alternating laps, because ratios can be
//! compared between machines and absolute figures cannot. No figure is asserted: a benchmark that fails builds gets
//! ignored. `README.md` explains every figure.

mod measure;

mod counting;

mod events;
mod mailbox_driver;
mod mixes;

mod allocations;
mod full_mailbox;
mod injection;
mod mailbox;
mod many_mailboxes;
mod tokens;
mod toon;

mod hub;
mod load;
mod rows;
mod serving;
mod streams;

mod deliveries;
mod hook;
mod mail_fixtures;
mod notify;
mod people;
#[path = "../../crates/store/tests/peers/redis.rs"]
mod redis_server;
mod refusals;
mod sink;
mod tools;
mod wrap;

use std::process::ExitCode;

use measure::RunMode;

#[global_allocator]
static ALLOCATOR: counting::CountingAllocator = counting::CountingAllocator;

const USAGE: &str = "usage: bellwire-bench [--quick] [section…]

  --quick   few laps and at most 100 000 mailboxes, to see that it runs; the figures are worth little
  section   mailbox, injection, many_mailboxes, allocations, toon, tokens, hub, streams, people, tools,
            deliveries, notify, refusals, hook or wrap; all of them if none is named";

type Run = fn(RunMode);

/// The sections in printing order.
const SECTIONS: [(&str, Run); 15] = [
    ("mailbox", mailbox::run),
    ("injection", injection::run),
    ("many_mailboxes", many_mailboxes::run),
    ("allocations", allocations::run),
    ("toon", toon::run),
    ("tokens", tokens::run),
    ("hub", hub::run),
    ("streams", streams::run),
    ("people", people::run),
    ("tools", tools::run),
    ("deliveries", deliveries::run),
    ("notify", notify::run),
    ("refusals", refusals::run),
    ("hook", hook::run),
    ("wrap", wrap::run),
];

fn main() -> ExitCode {
    if let Some(role) = serving::role() {
        return role.run();
    }
    let (flags, names): (Vec<_>, Vec<_>) = std::env::args().skip(1).partition(|argument| argument.starts_with('-'));
    let known = |name: &String| SECTIONS.iter().any(|(section, _)| section == name);
    if flags.iter().any(|flag| flag != "--quick") || !names.iter().all(known) {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    }
    let mode = if flags.is_empty() { RunMode::Full } else { RunMode::Quick };
    measure::print_header(mode);
    for (name, run) in SECTIONS {
        if names.is_empty() || names.iter().any(|wanted| wanted == name) {
            run(mode);
        }
    }
    ExitCode::SUCCESS
}
