//! Sample events of the types that a working agent receives.

use std::sync::Arc;

use bellwire_core::{Event, Ids, Severity, Time};
use serde_json::{Value, json};

/// The virtual start time of every run.
pub(crate) const START: Time = Time::from_millis(1_780_000_000_000);

/// Gives each event an id and a timestamp, one second apart.
pub(crate) fn with_ids(events: impl IntoIterator<Item = Event>) -> Vec<Arc<Event>> {
    let mut ids = Ids::seeded(2);
    let events = events.into_iter().zip(0..).map(|(event, second)| {
        let now = START.plus(second * 1_000);
        Arc::new(event.with_id(ids.event(now)).at(now))
    });
    events.collect()
}

/// The event as JSON in the form of `POST /v1/events`.
pub(crate) fn draft(event: &Event) -> Value {
    json!({
        "type": event.kind().as_str(),
        "source": event.source().as_str(),
        "severity": event.severity().as_str(),
        "timestamp": event.timestamp().to_string(),
        "payload": event.payload().as_map(),
    })
}

pub(crate) fn success(number: usize) -> Event {
    let payload = json!({
        "tool_name": "read_file",
        "arguments": {"path": path(number), "limit": 200},
        "duration_ms": 12 + number % 50,
    });
    event("tool.call.success", "tool_executor", Severity::Info, payload)
}

pub(crate) fn failure(number: usize) -> Event {
    let payload = json!({
        "tool_name": format!("vault_search_{number}"),
        "error_type": "timeout",
        "error_message": "no answer from the index within 5000 ms",
        "duration_ms": 5_000,
    });
    event("tool.call.failure", "tool_executor", Severity::Error, payload)
}

pub(crate) fn change(number: usize) -> Event {
    let payload = json!({"path": path(number), "change": "modified", "bytes": 1_000 + number});
    event("source.file.changed", "file_watcher", Severity::Info, payload)
}

pub(crate) fn command(number: usize) -> Event {
    event("cli.event", "shell", Severity::Info, json!({"message": format!("job {number} done"), "exit_code": 0}))
}

pub(crate) fn task(number: usize) -> Event {
    let payload = json!({
        "task_id": format!("task-{number}"),
        "name": "nightly build",
        "result_summary": "214 tests passed, 3 were ignored",
    });
    event("task.background.completed", "scheduler", Severity::Info, payload)
}

pub(crate) fn subagent(number: usize) -> Event {
    let payload = json!({"task_id": format!("sub-{number}"), "name": "reviewer", "result_summary": "two remarks"});
    event("subagent.completed", "orchestrator", Severity::Info, payload)
}

/// Rare event types: budget and context warnings, checkpoints, failed deliveries.
pub(crate) fn occasional(number: usize) -> Event {
    match number / 20 % 4 {
        0 => {
            let payload = json!({"budget_type": "token", "percentage": 80, "current": number, "limit": 200_000});
            event("budget.token.warning", "accountant", Severity::Warning, payload)
        }
        1 => event("task.checkpoint", "planner", Severity::Info, json!({"message": format!("step {number} is done")})),
        2 => {
            let payload = json!({"channel": "email", "error_class": "bounced", "message_id": number});
            event("delivery.failed", "mailer", Severity::Warning, payload)
        }
        _ => event("context.limit.warning", "accountant", Severity::Warning, json!({"percentage": 75, "used": number})),
    }
}

/// An event that matches no subscriber.
pub(crate) fn unmatched(number: usize) -> Event {
    event("ci.build.finished", "ci", Severity::Info, json!({"build": number, "branch": "main", "passed": true}))
}

fn path(number: usize) -> String {
    format!("crates/core/src/part_{}/file_{number}.rs", number % 17)
}

pub(crate) fn event(kind: &str, source: &str, severity: Severity, payload: Value) -> Event {
    Event::new(kind, source, severity, payload).expect("the events here are well formed")
}
