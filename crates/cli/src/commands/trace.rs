use std::fmt::Write as _;
use std::io::Write as _;

use anyhow::Result;
use bellwire_core::Time;
use clap::Args;
use serde_json::Value;

use crate::client::{Client, Connection, segment};
use crate::output::{MUTED, STRONG, TEXT, paint, print_json, printable, text, verdict_style};

/// Tell one event's life: every verdict and what became of it, with times and reasons
#[derive(Args)]
pub(crate) struct Trace {
    /// The event's id, or the one its sender brought
    id: String,
    /// Print the hub's JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: Connection,
}

pub(crate) fn run(arguments: &Trace) -> Result<bool> {
    let path = format!("/v1/events/{}", segment(&arguments.id));
    let trace = Client::new(&arguments.connection)?.get(&path)?;
    if arguments.json {
        return print_json(&trace);
    }
    write!(anstream::stdout().lock(), "{}", tree(&trace))?;
    Ok(true)
}

/// One event's life as a tree. Times are seconds after the event was accepted.
pub(super) fn tree(trace: &Value) -> String {
    let mut tree = Tree { out: String::new(), accepted: time(&trace["accepted_at"]) };
    let head = format!("{} [{}] {}", text(trace, "type"), text(trace, "source"), text(trace, "severity"));
    tree.line("", &paint(STRONG, head));
    tree.line("", &printable(&trace["payload"].to_string()));
    let to = format!("conversation {}, agent {}", text(trace, "conversation_id"), text(trace, "agent"));
    tree.line("", &paint(MUTED, format!("accepted {}, {to}", text(trace, "accepted_at"))));
    let injections = list(trace, "injections");
    let verdicts = list(trace, "verdicts");
    for (number, verdict) in verdicts.iter().enumerate() {
        let last = number + 1 == verdicts.len();
        tree.verdict(verdict, trace, injections, if last { ("└─ ", "   ") } else { ("├─ ", "│  ") });
    }
    for one in list(trace, "superseded") {
        let words = format!("for {} by event {} {}", text(one, "subscriber"), text(one, "by"), tree.offset(&one["at"]));
        tree.line("", &format!("{} {words}", paint(MUTED, "superseded")));
    }
    for injection in injections.iter().filter(|one| one["unseen"] == true) {
        let call = format!("{} {}", text(injection, "call_id"), tree.offset(&injection["at"]));
        tree.line("", &paint(MUTED, format!("the answer to {call} never reached the model, so it was told again")));
    }
    let filtered = trace["filtered"].as_u64().unwrap_or(0);
    tree.line("", &paint(MUTED, format!("{filtered} other subscribers do not listen for it")));
    tree.out
}

struct Tree {
    out: String,
    accepted: Option<Time>,
}

impl Tree {
    fn verdict(&mut self, verdict: &Value, trace: &Value, injections: &[Value], (branch, below): (&str, &str)) {
        let word = text(verdict, "verdict");
        let colour = verdict_style(&word);
        let line = format!("{} {}: {}", text(verdict, "subscriber"), paint(colour, word), text(verdict, "reason"));
        self.line(branch, &line);
        self.states(verdict, below);
        let mine = |one: &&Value| one["id"] == verdict["notification_id"] && !one["id"].is_null();
        for notification in list(trace, "notifications").iter().filter(mine) {
            self.notification(notification, injections, below);
        }
    }

    fn notification(&mut self, one: &Value, injections: &[Value], below: &str) {
        let what = format!(
            "notification, {} at {}, since {}",
            text(one, "priority"),
            text(one, "inject_at"),
            self.offset(&one["created_at"])
        );
        self.line(below, &format!("└─ {what} {}", paint(MUTED, text(one, "id"))));
        let below = &format!("{below}   ");
        let call = Some(text(one, "call_id")).filter(|call| !call.is_empty());
        let ended = Some(self.offset(&one["ended_at"])).filter(|at| !at.is_empty());
        let call = call.map(|call| format!(" in call {call}")).unwrap_or_default();
        let ended = ended.map(|at| format!(" {at}")).unwrap_or_default();
        let reason = Some(text(one, "reason")).filter(|reason| !reason.is_empty());
        let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
        let state = text(one, "state");
        let colour = verdict_style(&state);
        self.line(below, &format!("{}{ended}{call}{reason}", paint(colour, state)));
        self.states(one, below);
        for injection in injections.iter().filter(|injection| holds(injection, one)) {
            let at = self.offset(&injection["at"]);
            let words = format!("injection {} at {} {at}", text(injection, "call_id"), text(injection, "point"));
            self.line(below, &paint(MUTED, words));
        }
        for line in text(one, "content").lines() {
            self.line(below, &format!("│ {}", paint(TEXT, line)));
        }
    }

    /// The states something went through, where the hub tells them: words, or words with times.
    fn states(&mut self, of: &Value, below: &str) {
        let word = |state: &Value| match state.as_str() {
            Some(word) => printable(word),
            None => format!("{} {}", text(state, "state"), self.offset(&state["at"])).trim().to_owned(),
        };
        let states: Vec<String> = list(of, "states").iter().map(word).collect();
        if !states.is_empty() {
            self.line(below, &paint(MUTED, states.join(" → ")));
        }
    }

    fn line(&mut self, indent: &str, text: &str) {
        writeln!(self.out, "{indent}{text}").expect("a string takes every text");
    }

    /// How long after the event was accepted; nothing where there is no time.
    fn offset(&self, at: &Value) -> String {
        match (time(at), self.accepted) {
            (Some(at), Some(accepted)) => {
                let millis = at.millis_since(accepted);
                format!("+{}.{:03}s", millis / 1000, millis % 1000)
            }
            _ => String::new(),
        }
    }
}

/// Whether an injection is the one that showed this notification.
fn holds(injection: &Value, notification: &Value) -> bool {
    injection["call_id"] == notification["call_id"]
        && injection["agent"] == notification["agent"]
        && injection["unseen"] != true
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn time(value: &Value) -> Option<Time> {
    value.as_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn states_and_injections_are_shown_where_the_hub_tells_them() {
        let trace = json!({
            "type": "tool.call.failure", "source": "tool_executor", "severity": "error", "payload": {"tool_name": "grep"},
            "accepted_at": "2026-01-03T15:30:00Z", "conversation_id": "chat", "agent": "main", "filtered": 14,
            "verdicts": [
                {
                    "subscriber": "audit", "verdict": "filtered", "reason": "severity error is below",
                    "states": ["created", "filtered"],
                },
                {
                    "subscriber": "tool_failure", "verdict": "held", "reason": "in a batch", "notification_id": "n1",
                    "states": [{"state": "queued", "at": "2026-01-03T15:30:00Z"}],
                },
            ],
            "notifications": [{
                "id": "n1", "priority": "high", "inject_at": "after_tool", "state": "injected", "call_id": "call_1",
                "reason": "shown to the agent", "content": "tool_fail: grep\u{1b}[31m", "created_at": "2026-01-03T15:30:02Z",
                "ended_at": "2026-01-03T15:31:02.250Z",
                "states": [
                    {"state": "pending", "at": "2026-01-03T15:30:02Z"},
                    {"state": "injected", "at": "2026-01-03T15:31:02.250Z"},
                ],
            }],
            "injections": [
                {"call_id": "call_0", "point": "after_tool", "at": "2026-01-03T15:30:02.100Z", "unseen": true},
                {"call_id": "call_1", "point": "after_tool", "at": "2026-01-03T15:31:02.250Z", "unseen": false},
            ],
            "superseded": [{"subscriber": "audit", "by": "e2", "at": "2026-01-03T15:30:01Z"}],
        });
        insta::assert_snapshot!(anstream::adapter::strip_str(&tree(&trace)));
    }
}
