//! The settings of a subscriber in words.

use bellwire_core::Severity;
use bellwire_core::subscriber::{Activation, Audience, Priority, Subscriber};

use super::types;

/// The settings in words, each with its heading.
pub(super) fn settings(one: &Subscriber) -> Vec<(&'static str, String)> {
    let (batching, output) = (&one.batching, &one.output);
    let mut listens = types(one).join(", ");
    if one.severity_filter > Severity::Debug {
        listens += &format!(", of severity {} or worse", one.severity_filter);
    }
    if let Some(sources) = &one.sources {
        let sources: Vec<&str> = sources.iter().map(|source| source.as_str()).collect();
        listens += &format!(", from {} only", sources.join(" or "));
    }
    let batch = match batching.window_ms == 0 || output.priority == Priority::Critical {
        true => "each event is a notification of its own, at once".to_owned(),
        false => {
            let (window, max) = (duration(batching.window_ms), batching.max_size);
            format!("events are collected for {window}, at most {max}; an injection ends the wait")
        }
    };
    let repeats = match (batching.dedupe_window_ms, &batching.dedupe_key) {
        (0, _) => "every event counts as a new one".to_owned(),
        (window, Some(key)) => format!("counted and not shown again for {}, by {key}", duration(window)),
        (window, None) => format!("counted and not shown again for {}, by type, source and payload", duration(window)),
    };
    let to_agent = format!("the agent at {}, priority {}", output.inject_at, output.priority);
    let wakes = if output.activation == Activation::Wake { "; wakes an idle agent" } else { "" };
    let goes_to = match output.audience {
        Audience::Agent => format!("{to_agent}{wakes}"),
        Audience::User => format!("the person, priority {}", output.priority),
        Audience::Both => format!("{to_agent}{wakes}; and the person"),
    };
    let off = if output.core { "no, it is a core subscriber" } else { "yes, each person can" };
    let mut settings = vec![("listens for", listens), ("batches", batch), ("repeats", repeats)];
    if let Some(key) = &output.replace_key {
        settings.push(("replaces", format!("a newer event takes the place of a waiting one with the same {key}")));
    }
    settings.extend([
        ("goes to", goes_to),
        ("waits", format!("at most {}", duration(output.ttl_ms))),
        ("switch off", off.to_owned()),
    ]);
    settings
}

fn duration(ms: u64) -> String {
    match ms {
        ms if ms >= 3_600_000 && ms.is_multiple_of(3_600_000) => format!("{} h", ms / 3_600_000),
        ms if ms >= 1000 && ms.is_multiple_of(1000) => format!("{} s", ms / 1000),
        ms => format!("{ms} ms"),
    }
}
