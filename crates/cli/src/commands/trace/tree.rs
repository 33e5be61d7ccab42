use std::fmt::Write as _;

use bellwire_core::Time;
use serde_json::Value;

use crate::output::{MUTED, STRONG, TEXT, WAITS, WRONG, decided_for, paint, printable, text, verdict_style};

/// A trace as a text tree. Times are seconds after the event was accepted.
pub(crate) fn tree(trace: &Value) -> String {
    let mut tree = Tree { out: String::new(), accepted: time(&trace["accepted_at"]) };
    let head = format!("{} [{}] {}", text(trace, "type"), text(trace, "source"), text(trace, "severity"));
    tree.line("", &paint(STRONG, head));
    tree.line("", &printable(&trace["payload"].to_string()));
    let to = format!("conversation {}, agent {}", text(trace, "conversation_id"), text(trace, "agent"));
    tree.line("", &paint(MUTED, format!("accepted {}, {to}", text(trace, "accepted_at"))));
    let verdicts = list(trace, "verdicts");
    for (number, verdict) in verdicts.iter().enumerate() {
        let last = number + 1 == verdicts.len();
        tree.verdict(verdict, trace, if last { ("└─ ", "   ") } else { ("├─ ", "│  ") });
    }
    for person_trace in list(trace, "told") {
        tree.person_trace(person_trace);
    }
    for one in list(trace, "superseded") {
        let words = format!("for {} by event {} {}", text(one, "subscriber"), text(one, "by"), tree.offset(&one["at"]));
        tree.line("", &format!("{} {words}", paint(MUTED, "superseded")));
    }
    for injection in list(trace, "injections").iter().filter(|one| one["unseen"] == true) {
        let call = format!("{} {}", text(injection, "call_id"), tree.offset(&injection["at"]));
        tree.line(
            "",
            &paint(MUTED, format!("the answer to {call} never reached the model, so it became pending again")),
        );
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
    fn verdict(&mut self, verdict: &Value, trace: &Value, (branch, below): (&str, &str)) {
        let word = text(verdict, "verdict");
        let colour = verdict_style(&word);
        let place = decided_for(verdict, trace).map(|place| format!(" {place}")).unwrap_or_default();
        let head = format!("{}{place} {}", text(verdict, "subscriber"), paint(colour, word));
        self.line(branch, &format!("{head}: {}", text(verdict, "reason")));
        if let Some(hint) = non_empty(verdict, "hint") {
            self.line(below, &paint(WAITS, format!("hint: {hint}")));
        }
        let same = |one: &&Value| ["subscriber", "conversation_id", "agent"].iter().all(|key| one[key] == verdict[key]);
        if let Some(progress) = list(trace, "progress").iter().find(same) {
            self.states(progress, below);
        }
        let mine = |one: &&Value| one["id"] == verdict["notification_id"] && !one["id"].is_null();
        for notification in list(trace, "notifications").iter().filter(mine) {
            self.notification(notification, list(trace, "injections"), below);
        }
    }

    fn notification(&mut self, one: &Value, injections: &[Value], below: &str) {
        let (priority, point) = (text(one, "priority"), text(one, "inject_at"));
        let since = self.offset(&one["created_at"]);
        let what = format!("└─ notification, {priority} at {point}, since {since}");
        self.line(below, &format!("{what} {}", paint(MUTED, text(one, "id"))));
        let below = &format!("{below}   ");
        self.states(one, below);
        let reached = injections.iter().find(|injection| is_injection_of(injection, one)).map(|one| text(one, "point"));
        let point = reached.map(|point| format!(" ({point})")).unwrap_or_default();
        let call = non_empty(one, "call_id").map(|call| format!(" in call {call}{point}")).unwrap_or_default();
        let ended =
            non_empty(one, "ended_at").map(|_| format!(" {}", self.offset(&one["ended_at"]))).unwrap_or_default();
        let reason = non_empty(one, "reason").map(|reason| format!(": {reason}")).unwrap_or_default();
        let state = text(one, "state");
        let colour = verdict_style(&state);
        self.line(below, &format!("{}{ended}{call}{reason}", paint(colour, state)));
        self.template_error(one, below);
        for line in text(one, "content").lines() {
            self.line(below, &format!("│ {}", paint(TEXT, line)));
        }
    }

    /// The person's notification and its deliveries.
    fn person_trace(&mut self, person_trace: &Value) {
        let item = &person_trace["notification"];
        if item.is_null() {
            let due =
                format!("the hourly limit is reached; the person is notified at {}", text(person_trace, "due_at"));
            self.line("", &paint(MUTED, due));
            return self.template_error(person_trace, "   ");
        }
        let state = if !item["dismissed_at"].is_null() {
            "dismissed"
        } else if !item["read_at"].is_null() {
            "read"
        } else {
            "unread"
        };
        let head = format!("in the person's inbox {}, {state}", self.offset(&item["created_at"]));
        self.line("", &format!("{head} {}", paint(MUTED, text(item, "id"))));
        self.template_error(person_trace, "   ");
        for line in text(item, "message").lines() {
            self.line("   ", &format!("│ {}", paint(TEXT, line)));
        }
        for delivery in list(person_trace, "deliveries") {
            let (state, reason) =
                (text(delivery, "state"), non_empty(delivery, "reason").map(|reason| format!(": {reason}")));
            let colour = verdict_style(&state);
            let to = format!("└─ {} to {}", text(delivery, "channel"), text(delivery, "target"));
            let ended = self.offset(&delivery["ended_at"]);
            let ended = if ended.is_empty() { ended } else { format!(" {ended}") };
            self.line("   ", &format!("{to} {}{ended}{}", paint(colour, state), reason.unwrap_or_default()));
        }
    }

    fn template_error(&mut self, of: &Value, below: &str) {
        if let Some(error) = non_empty(of, "template_error") {
            self.line(below, &paint(WRONG, format!("template failed: {error}; built-in form used")));
        }
    }

    /// The lifecycle states of an event or a notification.
    fn states(&mut self, of: &Value, below: &str) {
        let states: Vec<String> = list(of, "states").iter().filter_map(Value::as_str).map(printable).collect();
        if !states.is_empty() {
            self.line(below, &paint(MUTED, states.join(" → ")));
        }
    }

    fn line(&mut self, indent: &str, text: &str) {
        writeln!(self.out, "{indent}{text}").expect("a string takes every text");
    }

    /// The time since the event was accepted; empty if `at` is not a time.
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

/// Whether this injection showed the notification.
fn is_injection_of(injection: &Value, notification: &Value) -> bool {
    ["call_id", "conversation_id", "agent"].iter().all(|key| injection[key] == notification[key])
}

fn non_empty(value: &Value, key: &str) -> Option<String> {
    Some(text(value, key)).filter(|text| !text.is_empty())
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
    fn a_life_shows_its_stages_its_notification_and_what_the_model_never_saw() {
        let trace = json!({
            "type": "tool.call.failure", "source": "tool_executor", "severity": "error", "payload": {"tool_name": "grep"},
            "accepted_at": "2026-01-03T15:30:00Z", "conversation_id": "chat", "agent": "main", "filtered": 14,
            "verdicts": [
                {"subscriber": "audit", "agent": "main", "verdict": "filtered", "reason": "severity error is below"},
                {
                    "subscriber": "tool_failure", "agent": "main", "verdict": "held", "reason": "in a batch",
                    "notification_id": "n1", "hint": "no field is shown",
                },
            ],
            "progress": [
                {"subscriber": "audit", "agent": "main", "states": ["created", "queued", "dispatched"]},
                {"subscriber": "tool_failure", "agent": "main", "states": ["created", "queued", "dispatched", "filtered"]},
            ],
            "notifications": [{
                "id": "n1", "priority": "high", "inject_at": "after_tool", "state": "injected", "call_id": "call_1",
                "reason": "shown to the agent", "content": "tool_fail: grep\u{1b}[31m", "agent": "main",
                "created_at": "2026-01-03T15:30:02Z", "ended_at": "2026-01-03T15:31:02.250Z",
                "states": ["pending", "injected", "persisted"],
                "template_error": "ci.j2:1: a value is missing",
            }],
            "injections": [
                {"call_id": "call_0", "agent": "main", "point": "after_tool", "at": "2026-01-03T15:30:02.100Z", "unseen": true},
                {"call_id": "call_1", "agent": "main", "point": "turn_end", "at": "2026-01-03T15:31:02.250Z", "unseen": false},
            ],
            "superseded": [{"subscriber": "audit", "by": "e2", "at": "2026-01-03T15:30:01Z"}],
            "told": [
                {
                    "notification": {
                        "id": "n2", "message": "butler needs you:\nmay I?", "created_at": "2026-01-03T15:30:00Z",
                        "read_at": "2026-01-03T15:40:00Z", "dismissed_at": null,
                    },
                    "due_at": null, "template_error": "ci.user.j2:2: a value is missing",
                    "deliveries": [{
                        "channel": "email", "target": "ada@example.org", "state": "failed",
                        "reason": "refused at RCPT TO: 550 no such user", "ended_at": "2026-01-03T15:30:01.500Z",
                    }],
                },
                {"notification": null, "due_at": "2026-01-03T16:30:00Z", "template_error": "it printed nothing"},
            ],
        });
        insta::assert_snapshot!(anstream::adapter::strip_str(&tree(&trace)));
    }
}
