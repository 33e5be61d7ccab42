//! A whole agent loop with approach B: news stands in the history as a tool call the system made.
//!
//! Run it with `cargo run -p bellwire-core --example synthetic_calls`. The messages have the shape of Anthropic's API;
//! `Shape` names the others. Send [`tool_definition`] along with your own tools, or the provider refuses the calls.

#![allow(clippy::disallowed_macros, reason = "the core prints nothing; an example shows what it got")]

use bellwire_core::inject::{Shape, Style};
use bellwire_core::render::{system_prompt, tool_definition};
use bellwire_core::{Conversation, Event, Inject, InjectionPoint, Randomness, Severity, Subscribers, Time};
use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut conversation = Conversation::new(Subscribers::bundled().into(), Randomness::repeatable(0x5eed));
    let mut now: Time = "2026-01-03T15:30:00Z".parse()?;
    let tools = vec![
        json!({"name": "edit", "description": "Edits a file.", "input_schema": {"type": "object"}}),
        tool_definition(Shape::Anthropic),
    ];
    let system = system_prompt(conversation.boundary(), Style::Synthetic);
    let mut messages = vec![json!({"role": "user", "content": "Rename the function."})];

    for step in 1..=3 {
        // The model calls a tool, and the tool's own result goes into the history unchanged.
        let call_id = format!("toolu_{step}");
        messages.push(json!({"role": "assistant", "content": [
            {"type": "tool_use", "id": call_id, "name": "edit", "input": {"path": "src/lib.rs", "step": step}}
        ]}));
        messages.push(json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": call_id, "content": "ok"}
        ]}));

        now = now.plus(2_000);
        for event in meanwhile(step)? {
            conversation.publish(event, now)?;
        }

        // Whatever waits follows as messages of its own: one synthetic call and result for each item.
        let mut inject = Inject::new(InjectionPoint::AfterTool, &call_id)?;
        inject.style = Style::Synthetic;
        inject.shape = Shape::Anthropic;
        messages.extend(conversation.inject(inject, now)?.messages);
    }

    println!("{}", serde_json::to_string_pretty(&json!({"system": system, "tools": tools, "messages": messages}))?);
    every_call_has_its_result(&messages);
    Ok(())
}

fn meanwhile(step: u32) -> Result<Vec<Event>, Box<dyn std::error::Error>> {
    let failed = json!({"tool_name": "vault_search", "error_type": "timeout", "error_message": "no answer"});
    Ok(match step {
        1 => vec![Event::new("tool.call.failure", "tool_executor", Severity::Error, failed)?],
        2 => vec![Event::new("task.background.complete", "ci", Severity::Info, json!({"task_id": "build-17"}))?],
        _ => Vec::new(),
    })
}

/// What a provider checks: each call is answered by exactly one result.
fn every_call_has_its_result(messages: &[Value]) {
    let ids = |kind: &str, key: &str| -> Vec<String> {
        let parts = messages.iter().filter_map(|message| message["content"].as_array()).flatten();
        parts.filter(|part| part["type"] == kind).map(|part| part[key].to_string()).collect()
    };
    assert_eq!(ids("tool_use", "id"), ids("tool_result", "tool_use_id"));
}
