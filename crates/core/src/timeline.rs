//! Scripts of events and injection points that run on a virtual clock.
//!
//! A timeline is text that needs no programming to write: each line has a time, a verb and its arguments. Playing it
//! gives a [`TimelineReport`] of every verdict, notification and block. `bellwire simulate` plays timelines, and this crate's
//! scenario tests are timelines.
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
//! | `T user TEXT` | publishes a message of the person |
//! | `T burst N event …` · `T burst N user …` | publishes it N times; `%n` becomes 1, 2, 3 … |
//! | `T inject POINT CALL [agent=A] [items=N] [tokens=N] [style=S] [shape=S] [unseen=CALL,…] [wake_only] [observed={…}] [\| result]` | injects at this point |
//! | `T disable ID,…` · `T enable` | disables these subscribers · enables all again |
//! | `T subscriber NAME.toml:` + indented lines · `T remove ID` | reloads a changed subscriber file · removes a subscriber |
//! | `T rotate` · `T crash` · `T messages` · `T wait` | new boundary · save and load all mailboxes · print the history · only advance the clock |
//!
//! Times are `0s`, `1.5s`, `200ms`, `2m`, `1h`, `1d`, counted from the start, or with a `+` from the line before.

mod parse;
mod play;
mod report;

pub use parse::{Timeline, TimelineError};
pub use report::{ReportEntry, TimelineReport, Tone};
