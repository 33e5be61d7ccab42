//! What Bellwire costs: events a second, bytes a mailbox, allocations an event, tokens a block.
//!
//! Every figure stands beside something else that was measured in the same run, lap by lap in turn, because a ratio
//! survives a slow machine and an absolute figure does not. Nothing here is asserted: a benchmark that fails a build
//! teaches people to ignore it. `README.md` says what each figure means.

mod measure;

mod counting;

mod events;
mod mixes;
mod post;

mod allocations;
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
mod letters;
#[path = "../../crates/store/tests/peers/redis.rs"]
mod redis_server;
mod refusals;
mod sink;
mod tools;

use std::process::ExitCode;

use measure::Effort;

#[global_allocator]
static ALLOCATOR: counting::Counting = counting::Counting;

const USAGE: &str = "usage: bellwire-bench [--quick] [section…]

  --quick   few laps and at most 100 000 mailboxes, to see that it runs; the figures are worth little
  section   mailbox, injection, many_mailboxes, allocations, toon, tokens, hub, streams, tools, deliveries or
            refusals; all of them if none is named";

type Run = fn(Effort);

/// The sections, in the order in which they are printed.
const SECTIONS: [(&str, Run); 11] = [
    ("mailbox", mailbox::run),
    ("injection", injection::run),
    ("many_mailboxes", many_mailboxes::run),
    ("allocations", allocations::run),
    ("toon", toon::run),
    ("tokens", tokens::run),
    ("hub", hub::run),
    ("streams", streams::run),
    ("tools", tools::run),
    ("deliveries", deliveries::run),
    ("refusals", refusals::run),
];

fn main() -> ExitCode {
    if let Some(role) = serving::role() {
        return role.play();
    }
    let (flags, names): (Vec<_>, Vec<_>) = std::env::args().skip(1).partition(|argument| argument.starts_with('-'));
    let known = |name: &String| SECTIONS.iter().any(|(section, _)| section == name);
    if flags.iter().any(|flag| flag != "--quick") || !names.iter().all(known) {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    }
    let effort = if flags.is_empty() { Effort::Full } else { Effort::Quick };
    measure::print_header(effort);
    for (name, run) in SECTIONS {
        if names.is_empty() || names.iter().any(|wanted| wanted == name) {
            run(effort);
        }
    }
    ExitCode::SUCCESS
}
