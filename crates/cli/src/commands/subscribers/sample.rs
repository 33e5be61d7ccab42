//! Made-up events on which templates are tried.

use std::sync::Arc;

use bellwire_core::event::TypePattern;
use bellwire_core::subscriber::Subscriber;
use bellwire_core::{Event, Severity, Time};
use serde_json::json;

/// Sample events of the subscriber's first type, numbered so that they differ.
pub(super) fn samples(one: &Subscriber, count: usize) -> Vec<Arc<Event>> {
    let kind = match one.types.first() {
        Some(TypePattern::Exact(kind)) => kind.to_string(),
        Some(TypePattern::Below(prefix)) => format!("{prefix}sample"),
        Some(TypePattern::Form { parts, below }) => {
            format!("{}{}", parts.replace('*', "sample"), if *below { ".sample" } else { "" })
        }
        None => "sample.event".to_owned(),
    };
    (1..=count).map(|number| Arc::new(sample(&kind, number).at(sample_time().plus(number as u64 * 1000)))).collect()
}

fn sample(kind: &str, number: usize) -> Event {
    if kind == "user.message" {
        return Event::user_message("what about this other approach?").expect("a short text is a message");
    }
    let payload = json!({
        "tool_name": format!("tool_{number}"), "error_type": "timeout", "error_message": "no answer, after 5000ms",
        "message": "something happened", "budget_type": "token", "current": 42_500, "limit": 50_000,
        "percentage": 85, "remaining": 7_500, "pattern": "search → parse", "repetitions": 3, "window_seconds": 60,
        "path": format!("src/file_{number}.rs"), "task_id": format!("task_{number}"), "result_summary": "all green",
        "exchanges": 4, "last_question": "where were we?", "turn": 7, "channel": "email", "error_class": "timeout",
        "text": "a text",
    });
    Event::new(kind, "sample", Severity::Error, payload).expect("the sample is well formed")
}

pub(super) fn sample_time() -> Time {
    "2026-01-03T15:30:00Z".parse().expect("the constant is a time")
}
