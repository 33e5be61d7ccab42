//! A readable play of events and injection points on a virtual clock.
//!
//! A timeline is a text a product person can write: a time, a verb, what it takes. Playing it gives a [`Report`] of every
//! verdict, notification and block. The same files are tried by hand with `bellwire simulate` and run as this crate's
//! tests.
//!
//! ```text
//! # One tool fails; the agent hears of it with the next tool's result.
//! 0s      event tool.call.failure tool_executor error {"tool_name": "vault_search", "error_type": "timeout"}
//! +500ms  inject after_tool call_1 | File updated.
//! ```
//!
//! | line | does |
//! |---|---|
//! | `start 2026-01-03T15:30:00Z` | the time that `0s` is |
//! | `subscriber NAME.toml:` + indented lines | adds or replaces a subscriber |
//! | `template PATH:` + indented lines | the template it names |
//! | `T event TYPE SOURCE SEVERITY [agent=A] [dedupe=K] [by_agent] {payload}` | publishes an event; `by_agent` = the agent's own doing |
//! | `T user TEXT` | the person says something |
//! | `T burst N event …` · `T burst N user …` | does it N times; `%n` becomes 1, 2, 3 … |
//! | `T inject POINT CALL [agent=A] [items=N] [tokens=N] [style=S] [shape=S] [unseen=CALL,…] [wake_only] [observed={…}] [\| result]` | an agent takes its mail |
//! | `T disable ID,…` · `T enable` | what the user switches off · everything on again |
//! | `T subscriber NAME.toml:` + indented lines · `T remove ID` | the subscriber's file is changed · is deleted |
//! | `T rotate` · `T crash` · `T messages` · `T wait` | a new boundary · save and load · the history · nothing |
//!
//! Times are `0s`, `1.5s`, `200ms`, `2m`, `1h`, `1d`, counted from the start, or with a `+` from the line before.

mod parse;
mod play;
mod report;

pub use parse::{Timeline, TimelineError};
pub use report::{Entry, Report, Tone};
