//! The example texts from the first specification of notifications for agents, each through the whole path: published,
//! batched, taken at an injection point. The output equals the specification, except for quotes where strict TOON
//! requires them: a value that contains a colon, and a key that starts with `!`.

use std::collections::BTreeMap;

use bellwire_core::conversation::{CallOutcome, InjectOptions, ObservedCall};
use bellwire_core::inject::SystemMessage;
use bellwire_core::subscriber::{Activation, Audience, SubscriberFile, bundled_files};
use bellwire_core::{
    Conversation, Event, Inject, Injection, InjectionPoint, Priority, Randomness, Severity, Subscribers, Time,
};
use serde_json::{Value, json};

#[test]
fn a_single_tool_failure_is_one_line() {
    let mut agent = Agent::new(Subscribers::bundled());
    let payload = json!({"tool_name": "vault_search", "timeout_ms": 5000, "retry_count": 2, "call_id": "tc_abc123"});
    agent.hears("15:30:01", "tool.call.timeout", "tool_executor", Severity::Error, payload);
    assert_eq!(agent.reads_after_tool("15:30:01"), "tool_fail: vault_search timeout after 5000ms");
}

#[test]
fn a_tool_failure_shows_its_message() {
    let mut agent = Agent::new(Subscribers::bundled());
    let payload = json!({
        "tool_name": "vault_search",
        "error_type": "timeout",
        "error_message": "Operation timed out after 5000ms",
        "retry_count": 2,
        "call_id": "tc_abc123",
    });
    agent.hears("15:30:01", "tool.call.failure", "tool_executor", Severity::Error, payload);
    let text = agent.reads_after_tool("15:30:01");
    assert_eq!(text, "tool_fail: vault_search timeout - Operation timed out after 5000ms");
}

#[test]
fn batched_tool_failures_are_a_table() {
    let mut agent = Agent::new(Subscribers::bundled());
    let failures = [
        ("15:30:01", "vault_search", "timeout"),
        ("15:30:02", "coderag_search", "index_missing"),
        ("15:30:05", "vault_write", "permission_denied"),
    ];
    for (clock, tool, error) in failures {
        let payload = json!({"tool_name": tool, "error_type": error});
        agent.hears(clock, "tool.call.failure", "tool_executor", Severity::Error, payload);
    }
    let table = [
        "tool_fails[3]{tool,error,ts}:",
        "  vault_search,timeout,\"15:30:01\"",
        "  coderag_search,index_missing,\"15:30:02\"",
        "  vault_write,permission_denied,\"15:30:05\"",
    ];
    assert_eq!(agent.reads_after_tool("15:30:06"), table.join("\n"));
}

#[test]
fn failed_deliveries_name_the_notification() {
    let failed = |notification: &str| {
        let error = "the server said no";
        json!({"channel": "email", "notification": notification, "error_class": "refused", "error_message": error})
    };
    let mut agent = Agent::new(Subscribers::bundled());
    agent.hears("15:30:01", "delivery.failed", "bellwire", Severity::Warning, failed("Buy milk"));
    let text = agent.reads("15:30:01", InjectionPoint::TurnStart, "turn_1");
    assert_eq!(text, "delivery_failed: email (Buy milk) - the server said no");

    agent.hears("15:31:01", "delivery.failed", "bellwire", Severity::Warning, failed("Buy milk"));
    agent.hears("15:31:02", "delivery.failed", "bellwire", Severity::Warning, failed("Call Ada, then Bob"));
    agent.hears("15:31:02", "delivery.failed", "bellwire", Severity::Warning, json!({"channel": "email"}));
    let table = [
        "deliveries_failed[3]{channel,notification,error,ts}:",
        "  email,Buy milk,refused,\"15:31:01\"",
        "  email,\"Call Ada, then Bob\",refused,\"15:31:02\"",
        "  email,?,error,\"15:31:02\"",
    ];
    assert_eq!(agent.reads("15:31:02", InjectionPoint::TurnStart, "turn_2"), table.join("\n"));
}

#[test]
fn a_published_budget_warning_is_one_line() {
    let mut agent = Agent::new(Subscribers::bundled());
    let payload =
        json!({"budget_type": "token", "current": 42500, "limit": 50000, "percentage": 85, "remaining": 7500});
    agent.hears("15:30:01", "budget.token.warning", "token_monitor", Severity::Warning, payload);
    let text = agent.reads("15:30:02", InjectionPoint::TurnStart, "turn_1");
    assert_eq!(text, "budget_warn: 85% tokens consumed (42500/50000)");
}

#[test]
fn a_budget_warning_that_is_found_in_an_observed_call_is_the_same_line() {
    let mut agent = Agent::new(Subscribers::bundled());
    let usage = Some(json!({"tokens_used": 42500, "token_limit": 50000}));
    let observed = ObservedCall { usage, ..ObservedCall::new("vault_search", CallOutcome::Success) };
    let inject = Inject::new(InjectionPoint::TurnStart, "turn_1").unwrap();
    let more = InjectOptions { observed: Some(observed), ..InjectOptions::default() };
    let (answer, _) = agent.0.inject_with(inject, more, at("15:30:01")).unwrap();
    assert_eq!(items(&answer)[0], "budget_warn: 85% tokens consumed (42500/50000)");
}

#[test]
fn a_mixed_batch_is_one_table_of_type_source_and_message() {
    let mut agent = Agent::new(one_subscriber(
        r#"types = ["tool.call.failure", "budget.token.warning", "agent.loop.detected"]"#,
        r#"notifications[{{ count }}]{type,source,message}:
{% for e in events %}
  {{ "tool_fail" if e.type == "tool.call.failure" else "budget_warn" if e.type == "budget.token.warning" else "loop_detect" }},{{ e.source }},{{ e.message }}
{% endfor %}"#,
    ));
    agent.hears_the_mixed_batch();
    let table = [
        "notifications[4]{type,source,message}:",
        "  tool_fail,vault_search,timeout after 5000ms",
        "  tool_fail,coderag_search,index not found",
        "  budget_warn,token_monitor,85% consumed (42500/50000)",
        "  loop_detect,pattern_analyzer,repeated vault_search 3x",
    ];
    assert_eq!(agent.reads_after_tool("15:30:01"), table.join("\n"));
}

#[test]
fn a_mixed_batch_without_a_working_template_is_the_same_table() {
    let mut agent = Agent::new(one_subscriber(
        r#"types = ["tool.call.failure", "budget.token.warning", "agent.loop.detected"]"#,
        "{{ nobody.set.this }}",
    ));
    agent.hears_the_mixed_batch();
    let table = [
        "notifications[4]{type,source,message}:",
        "  tool.call.failure,vault_search,timeout after 5000ms",
        "  tool.call.failure,coderag_search,index not found",
        "  budget.token.warning,token_monitor,85% consumed (42500/50000)",
        "  agent.loop.detected,pattern_analyzer,repeated vault_search 3x",
    ];
    assert_eq!(agent.reads_after_tool("15:30:01"), table.join("\n"));
}

#[test]
fn a_template_can_put_the_severity_first() {
    let mut agent = Agent::new(Subscribers::bundled());
    let exceeded = json!({"current": 50100, "limit": 50000, "message": "turn will terminate"});
    agent.hears("15:30:01", "budget.token.exceeded", "token_monitor", Severity::Critical, exceeded);
    let repeated = json!({"repetitions": 3});
    agent.hears("15:30:01", "agent.loop.detected", "pattern_analyzer", Severity::Warning, repeated);
    let answer = agent.takes("15:30:01", InjectionPoint::Immediate, "step_1");
    let lines =
        ["\"!critical\": budget exceeded - turn will terminate", "\"!warning\": loop detected - same pattern 3 times"];
    assert_eq!(items(&answer), lines);

    let mut agent = Agent::new(one_subscriber(
        r#"types = ["tool.call.success"]"#,
        "{{ events[0].severity }}: {{ events[0].message }}",
    ));
    let done = json!({"message": "tool completed successfully"});
    agent.hears("15:30:01", "tool.call.success", "tool_executor", Severity::Info, done.clone());
    let rendered_from_a_value = agent.reads_after_tool("15:30:01");
    assert_eq!(rendered_from_a_value, "\"info: tool completed successfully\"", "a value is never structure");

    let mut agent = Agent::new(one_subscriber(r#"types = ["tool.call.success"]"#, "info: {{ events[0].message }}"));
    agent.hears("15:30:01", "tool.call.success", "tool_executor", Severity::Info, done);
    assert_eq!(agent.reads_after_tool("15:30:01"), "info: tool completed successfully");
}

#[test]
fn injected_notifications_stay_as_system_messages() {
    let mut agent = Agent::new(Subscribers::bundled());
    let payload = json!({"tool_name": "vault_search", "error_type": "timeout"});
    agent.hears("15:30:00", "tool.call.failure", "Tool Executor", Severity::Error, payload);
    let answer = agent.takes("15:30:00", InjectionPoint::AfterTool, "call_1");
    let [message] = agent.0.messages() else { panic!("one message was expected") };
    assert_eq!(SystemMessage::ROLE, "system");
    assert_eq!(message.source, "Tool Executor");
    assert_eq!(message.content, "tool_fail: vault_search timeout");
    assert_eq!(message.timestamp.to_string(), "2026-01-03T15:30:00Z");
    assert_eq!(message.notification_id, answer.notifications.first().copied());
}

/// The subscriber file of the first specification.
const TOOL_FAILURE: &str = r#"
[subscriber]
id = "tool_failure"
name = "Tool Failure Notifications"
description = "Notifies agent when tool calls fail or timeout"
version = "1.0.0"

[events]
types = ["tool.call.failure", "tool.call.timeout"]
severity_filter = "warning"

[batching]
window_ms = 2000
max_size = 10
dedupe_key = "type:payload.tool_name"
dedupe_window_ms = 5000

[output]
priority = "high"
inject_at = "after_tool"
template = "templates/tool_failure.toon.j2"
core = true
"#;

#[test]
fn the_tool_failure_subscriber_equals_the_specified_one() {
    let (files, templates) = bundled_files();
    let ours = files.iter().find(|file| file.path == "tool_failure.toml").unwrap();
    let read = |text: &str| toml::from_str::<toml::Table>(text).unwrap();
    assert_eq!(read(&ours.text), read(TOOL_FAILURE));

    let drawn = SubscriberFile { path: "tool_failure.toml".into(), text: TOOL_FAILURE.into() };
    let subscriber = drawn.parse(&|path| Ok(templates[path].clone())).unwrap();
    let types: Vec<String> = subscriber.types.iter().map(ToString::to_string).collect();
    assert_eq!(types, ["tool.call.failure", "tool.call.timeout"]);
    assert_eq!((subscriber.severity_filter, subscriber.sources.is_none()), (Severity::Warning, true));
    let batching = &subscriber.batching;
    assert_eq!((batching.window_ms, batching.max_size, batching.dedupe_window_ms), (2000, 10, 5000));
    assert_eq!(batching.dedupe_key.as_ref().unwrap().to_string(), "type:payload.tool_name");
    let output = &subscriber.output;
    assert_eq!((output.priority, output.inject_at, output.core), (Priority::High, InjectionPoint::AfterTool, true));
    assert_eq!((output.activation, output.audience), (Activation::Passive, Audience::Agent));
    assert!(output.replace_key.is_none());
}

/// An agent on 3 January 2026.
struct Agent(Conversation);

impl Agent {
    fn new(subscribers: Subscribers) -> Self {
        Self(Conversation::new(subscribers.into(), Randomness::repeatable(1)))
    }

    fn hears(&mut self, clock: &str, kind: &str, source: &str, severity: Severity, payload: Value) {
        let event = match source {
            "bellwire" => Event::from_hub(kind, severity, payload),
            source => Event::new(kind, source, severity, payload),
        };
        let event = event.expect("the event is well formed");
        self.0.publish(event, at(clock)).expect("only a person's message can be refused");
    }

    fn hears_the_mixed_batch(&mut self) {
        let events = [
            ("tool.call.failure", "vault_search", Severity::Error, "timeout after 5000ms"),
            ("tool.call.failure", "coderag_search", Severity::Error, "index not found"),
            ("budget.token.warning", "token_monitor", Severity::Warning, "85% consumed (42500/50000)"),
            ("agent.loop.detected", "pattern_analyzer", Severity::Warning, "repeated vault_search 3x"),
        ];
        for (kind, source, severity, message) in events {
            self.hears("15:30:01", kind, source, severity, json!({ "message": message }));
        }
    }

    fn takes(&mut self, clock: &str, point: InjectionPoint, call_id: &str) -> Injection {
        let inject = Inject::new(point, call_id).expect("the call id is well formed");
        self.0.inject(inject, at(clock)).expect("the call id is new")
    }

    /// The text of the only item.
    fn reads(&mut self, clock: &str, point: InjectionPoint, call_id: &str) -> String {
        let answer = self.takes(clock, point, call_id);
        match items(&answer).as_slice() {
            [item] => item.clone(),
            other => panic!("one item was expected, not {other:?}"),
        }
    }

    fn reads_after_tool(&mut self, clock: &str) -> String {
        self.reads(clock, InjectionPoint::AfterTool, "call_1")
    }
}

fn at(clock: &str) -> Time {
    format!("2026-01-03T{clock}Z").parse().expect("the clock is well formed")
}

/// The items of a block as TOON documents: without the label, further lines de-indented by two.
fn items(answer: &Injection) -> Vec<String> {
    let mut items: Vec<String> = Vec::new();
    let lines: Vec<&str> = answer.block.lines().collect();
    for line in &lines[1..lines.len() - 1] {
        match (line.strip_prefix("- ["), line.strip_prefix("  ")) {
            (Some(item), _) => items.push(item.split_once("] ").expect("a label ends").1.to_owned()),
            (None, Some(further)) => {
                let item = items.last_mut().expect("a further line follows a first");
                item.push('\n');
                item.push_str(further);
            }
            (None, None) => panic!("{line:?} belongs to no item"),
        }
    }
    for item in &items {
        let decoded: Value = toon_format::decode_strict(item).expect("every item is TOON");
        assert_eq!(toon_format::encode_default(&decoded).as_ref(), Ok(item), "and has one spelling");
    }
    items
}

fn one_subscriber(types: &str, template: &str) -> Subscribers {
    let text = format!(
        r#"
        [subscriber]
        id = "digest"
        name = "Digest"
        description = "Everything in one place"
        version = "1.0.0"
        [events]
        {types}
        [output]
        priority = "high"
        inject_at = "after_tool"
        template = "digest.toon.j2"
        "#
    );
    let files = [SubscriberFile { path: "digest.toml".into(), text }];
    let loaded = Subscribers::load(&files, &BTreeMap::from([("digest.toon.j2".into(), template.into())]));
    assert!(loaded.errors.is_empty(), "{:?}", loaded.errors);
    loaded.subscribers
}
