//! Tokens of the same notifications as a block and as JSON, counted with o200k.
//!
//! A template omits fields, which is not a merit of the format. So the block is compared with two kinds of JSON: the full
//! events, as a harness without Bellwire would paste them, and only the fields that the block shows.

use std::slice;
use std::sync::Arc;

use bellwire_core::inject::{Style, estimate_tokens};
use bellwire_core::{Conversation, Event, Inject, InjectionPoint, Severity, Subscribers};
use serde_json::{Map, Value, json};

use crate::events::{START, draft, event, with_ids};
use crate::measure::RunMode;

pub(crate) fn run(_: RunMode) {
    println!("\ntokens: what the same news takes of a context, in tokens of o200k");
    println!("  {:<44} {:>8} {:>8} {:>8}   the block takes", "", "tokens", "bytes/4", "bytes");
    compare("ten failures of tools (aim at least 40 % fewer than JSON)", (0..10).map(tool_failure).collect());
    compare("one failure", vec![tool_failure(0)]);
    compare("a mixed batch of seven", mixed());
}

fn compare(what: &str, events: Vec<Event>) {
    let events = with_ids(events);
    let block = InjectedText::of(&events, Style::Block);
    let in_full: Vec<Value> = events.iter().map(|event| draft(event)).collect();
    let each: Vec<String> =
        events.iter().map(|event| InjectedText::of(slice::from_ref(event), Style::Append).text).collect();
    println!("  {what}");
    TextSize::of("  block", &block.text).print(None);
    for (what, text) in [
        ("  the events as JSON", compact(&in_full)),
        ("  the events as indented JSON", indented(&in_full)),
        ("  only what the block shows, as JSON", compact(&block.shown)),
        ("  the same, indented", indented(&block.shown)),
        ("  one <notification> element per event", each.join("\n\n")),
    ] {
        TextSize::of(what, &text).print(Some(&TextSize::of("", &block.text)));
    }
}

/// The size of a text in tokens, estimated tokens and bytes.
struct TextSize<'a> {
    what: &'a str,
    tokens: usize,
    estimate: usize,
    bytes: usize,
}

impl<'a> TextSize<'a> {
    fn of(what: &'a str, text: &str) -> Self {
        let encoding = tiktoken::get_encoding("o200k_base").expect("the vocabulary is compiled in");
        Self { what, tokens: encoding.count(text), estimate: estimate_tokens(text), bytes: text.len() }
    }

    fn print(&self, block: Option<&TextSize<'_>>) {
        let Self { what, tokens, estimate, bytes } = self;
        let change = block.map(|block| 100.0 * (block.tokens as f64 / *tokens as f64 - 1.0));
        let change = match change {
            Some(percent) if percent < 0.0 => format!("{:.0} % fewer", -percent),
            Some(percent) => format!("{percent:.0} % more"),
            None => String::new(),
        };
        println!("{}", format!("  {what:<44} {tokens:>8} {estimate:>8} {bytes:>8}   {change}").trim_end());
    }
}

fn compact(values: &[Value]) -> String {
    serde_json::to_string(values).expect("JSON can be written")
}

fn indented(values: &[Value]) -> String {
    serde_json::to_string_pretty(values).expect("JSON can be written")
}

/// An injected block, and its items as JSON.
struct InjectedText {
    text: String,
    shown: Vec<Value>,
}

impl InjectedText {
    fn of(events: &[Arc<Event>], style: Style) -> Self {
        let mut conversation =
            Conversation::new(Subscribers::bundled().into(), bellwire_core::Randomness::repeatable(42));
        for event in events {
            conversation.publish(Event::clone(event), START).expect("a few events fit into a mailbox");
        }
        let request = Inject::new(InjectionPoint::TurnStart, "call").expect("a short call id is right");
        let answer = conversation.inject(Inject { style, ..request }, START).expect("the call id is new");
        assert_eq!(answer.count, answer.showing, "all of it must be in the block");
        let shown = answer.shown.iter().map(|item| as_json(&item.source, &item.content)).collect();
        Self { text: answer.block, shown }
    }
}

/// One item of a block as a JSON object with its source.
fn as_json(source: &str, content: &str) -> Value {
    let mut item = Map::from_iter([("source".to_owned(), source.into())]);
    match toon_format::decode_default(content).expect("a block holds TOON") {
        Value::Object(fields) => item.extend(fields),
        text => drop(item.insert("text".to_owned(), text)),
    }
    item.into()
}

const TOOLS: [&str; 10] = [
    "vault_search",
    "vault_write",
    "run_tests",
    "read_file",
    "web_fetch",
    "sql_query",
    "list_files",
    "git_log",
    "send_mail",
    "resize_image",
];

const ERRORS: [(&str, &str); 3] = [
    ("timeout", "no answer within 5000 ms"),
    ("permission_denied", "the token may not write to this folder"),
    ("not_found", "there is no such file or folder"),
];

fn tool_failure(number: usize) -> Event {
    let (kind, message) = ERRORS[number % ERRORS.len()];
    let payload = json!({"tool_name": TOOLS[number % TOOLS.len()], "error_type": kind, "error_message": message});
    event("tool.call.failure", "tool_executor", Severity::Error, payload)
}

fn mixed() -> Vec<Event> {
    let change = |path| {
        event("source.file.changed", "file_watcher", Severity::Info, json!({"path": path, "change": "modified"}))
    };
    let task = json!({"task_id": "build-7", "name": "nightly build", "result_summary": "214 tests passed"});
    let budget = json!({"budget_type": "token", "percentage": 85, "current": 170_000, "limit": 200_000});
    vec![
        tool_failure(0),
        tool_failure(1),
        change("src/lib.rs"),
        change("src/main.rs"),
        event("task.background.completed", "scheduler", Severity::Info, task),
        event("budget.token.warning", "accountant", Severity::Warning, budget),
        Event::user_message("what about this other approach?").expect("a short message is right"),
    ]
}
