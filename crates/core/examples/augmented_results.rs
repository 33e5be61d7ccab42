//! A whole agent loop with approach A: news stands behind the result of the tool that has just finished.
//!
//! Run it with `cargo run -p bellwire-core --example augmented_results`. The model is scripted; in your agent it is the
//! provider's API, and `messages` is what you send to it.

#![allow(clippy::disallowed_macros, reason = "the core prints nothing; an example shows what it got")]

use bellwire_core::conversation::{CallOutcome, InjectOptions, ObservedCall};
use bellwire_core::{Conversation, Event, Inject, InjectionPoint, Randomness, Severity, Subscribers, Time};
use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Bring random bits for the seed: they make the ids and the mark of your genuine blocks.
    let mut conversation = Conversation::new(Subscribers::bundled().into(), Randomness::repeatable(0x5eed));
    let mut now: Time = "2026-01-03T15:30:00Z".parse()?;

    // The system prompt says what the blocks are; without it a careful model takes them for an attack.
    let mut messages = vec![
        json!({"role": "system", "content": conversation.system_prompt()}),
        json!({"role": "user", "content": "Find the notes on release 2 and fix the changelog."}),
    ];

    // A turn begins: everything that waits may be said now.
    let start = conversation.inject(Inject::new(InjectionPoint::TurnStart, "turn_1")?, now)?;
    if !start.block.is_empty() {
        messages.push(json!({"role": "user", "content": start.block}));
    }

    for (number, call) in scripted_model().into_iter().enumerate() {
        let call_id = format!("call_{}", number + 1);
        now = now.plus(1_500);
        let (result, observed) = run_tool(&call);

        // Meanwhile the world goes on: anything may publish, at any time.
        for event in meanwhile(number)? {
            conversation.publish(event, now)?;
        }

        // One call: report what happened, take the mail, put it behind the result. Errors are augmented like successes.
        let more = InjectOptions { observed: Some(observed), ..InjectOptions::default() };
        let inject = Inject::new(InjectionPoint::AfterTool, &call_id)?;
        let (answer, _) = conversation.inject_with(inject, more, now)?;
        messages.push(json!({"role": "tool", "tool_call_id": call_id, "content": answer.content(&result)}));
    }

    let end = conversation.inject(Inject::new(InjectionPoint::TurnEnd, "turn_1_end")?, now.plus(100))?;
    messages.push(json!({"role": "user", "content": end.block}));

    for message in &messages {
        println!("--- {}\n{}\n", message["role"].as_str().unwrap_or(""), message["content"].as_str().unwrap_or(""));
    }
    Ok(())
}

fn scripted_model() -> Vec<Value> {
    vec![
        json!({"tool": "vault_search", "arguments": {"query": "release 2"}}),
        json!({"tool": "read_file", "arguments": {"path": "CHANGELOG.md"}}),
    ]
}

fn run_tool(call: &Value) -> (String, ObservedCall) {
    let tool = call["tool"].as_str().unwrap_or("");
    let arguments = Some(call["arguments"].clone());
    match tool {
        "vault_search" => {
            let mut observed = ObservedCall::new(tool, CallOutcome::Timeout);
            observed.arguments = arguments;
            observed.error_message = Some("no answer after 5000ms".to_owned());
            ("error: no answer after 5000ms".to_owned(), observed)
        }
        _ => (
            "# Changelog\n## 2.0.0".to_owned(),
            ObservedCall { arguments, ..ObservedCall::new(tool, CallOutcome::Success) },
        ),
    }
}

fn meanwhile(number: usize) -> Result<Vec<Event>, Box<dyn std::error::Error>> {
    Ok(match number {
        0 => Vec::new(),
        _ => vec![
            Event::new("source.file.changed", "file_watcher", Severity::Info, json!({"path": "CHANGELOG.md"}))?,
            Event::user_message("leave the dates as they are, please")?,
        ],
    })
}
