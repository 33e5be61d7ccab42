//! Invalid input is refused by field, or shown as harmless text; it is never lost and never breaks a block.

#![allow(clippy::unwrap_used, reason = "a test says what it expects by unwrapping it")]

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;

use bellwire_core::conversation::InjectOptions;
use bellwire_core::event::TypePattern;
use bellwire_core::inject::{InjectLimits, estimate_tokens};
use bellwire_core::mailbox::PENDING_MAX;
use bellwire_core::render::guard::guard;
use bellwire_core::render::toon::Document;
use bellwire_core::subscriber::{Subscriber, SubscriberFile};
use bellwire_core::{
    Boundary, Conversation, Event, EventDraft, Ids, Inject, Injection, InjectionPoint, Randomness, Severity,
    Subscribers, Time,
};
use serde_json::{Map, Value, json};

const FILE: &str = r#"[subscriber]
id = "ci"
name = "CI"
description = "Builds"
version = "1.0.0"

[events]
types = ["ci.failed"]

[batching]
window_ms = 0

[output]
priority = "high"
inject_at = "after_tool"
template = "ci.toon.j2"
"#;

fn load(file: &str, template: &str) -> Result<Arc<Subscribers>, String> {
    let file = SubscriberFile { path: "ci.toml".into(), text: file.into() };
    let loaded = Subscribers::load(&[file], &BTreeMap::from([("ci.toon.j2".to_owned(), template.to_owned())]));
    match loaded.errors.first() {
        Some(error) => Err(error.to_string()),
        None => Ok(loaded.subscribers.into()),
    }
}

#[test]
fn an_unknown_key_and_a_value_out_of_range_are_refused_with_their_line() {
    let file_with = |change: &str| load(&FILE.replace("window_ms = 0", change), "ci: {{ count }}").unwrap_err();
    let unknown = file_with("windov_ms = 2000");
    assert!(unknown.starts_with("ci.toml:11: unknown field `windov_ms`, expected one of `window_ms`"), "{unknown}");
    assert_eq!(file_with("window_ms = 10001"), "ci.toml:11: batching.window_ms is 10001; 0 to 10000 is allowed");
    assert_eq!(file_with("max_size = 0"), "ci.toml:11: batching.max_size is 0; 1 to 100 is allowed");
}

#[test]
fn a_template_that_could_grow_without_limit_is_refused_when_it_is_loaded() {
    let doubling = "{% set a = a ~ a %}".repeat(5);
    let wrong = [
        ("{% for x in [1]recursive %}{{ loop([1]) }}{% endfor %}", "recursive loops are not available"),
        ("{% macro m() %}{{ m() }}{% endmacro %}", "the tag 'macro' is not available"),
        (doubling.as_str(), "~ and + may be used 4 times in a template"),
        ("{% set a = [a, a] %}", "a list may hold constants only"),
        ("{{ '}}' * 50000000 }}", "multiplication is not available"),
        ("{% set a %}{{ a }}{{ a }}{% endset %}", "a set block is not available"),
        ("{% for e in events %}{{ loop.cycle() }}{% endfor %}", "calls are not available"),
    ];
    for (template, message) in wrong {
        let error = load(FILE, &format!("{{% set a = 'x' %}}\n{template}")).unwrap_err();
        assert!(error.starts_with("ci.toon.j2:2: ") && error.contains(message), "{template}: {error}");
    }
    let deep = load(FILE, &format!("x: {{{{ {}1 }}}}", "-".repeat(16_000))).unwrap_err();
    assert!(deep.contains("a tag has no end within 512 bytes"), "{deep}");
}

#[test]
fn a_failing_template_falls_back_to_the_built_in_form() {
    let nested = |body: &str| {
        let open: String = ["a", "b", "c"].map(|name| format!("{{% for {name} in text %}}")).concat();
        format!("{{% set text = events[0].payload.text %}}x: {open}{body}{}", "{% endfor %}".repeat(3))
    };
    let looks = "{% if text|upper|lower|upper|lower %}{% endif %}".repeat(50);
    let failing = [
        ("loops for ever", nested(""), ":1: engine ran out of fuel"),
        ("prints ten megabytes", nested("{{ text }}"), ": it prints more than 262144 bytes"),
        ("looks again and again", nested(&looks), ": it looks at more of its events than one rendering may"),
        (
            "prints what is missing",
            "{{ events[0].payload.x }}".into(),
            ":1: a value is missing in `{{ events[0].payload.x }}`",
        ),
        ("prints nothing", "{% if false %}x{% endif %}".into(), ": the template printed nothing"),
        ("nests named values", "{% set a = x|default(k=count, l=count) %}{{ a }}".into(), ":1: too many arguments"),
        ("declares other rows", "x[3]{a}:\n  1".into(), ": x[3] has 1"),
        ("declares a text", "x[{{ events[0].payload.text }}]: 1".into(), ": x[…] has 1"),
        (
            "mixes forms",
            "x: 1\nsaid {{ events[0].payload.text }}".into(),
            ": the line `said {{ … }}` is neither `key: …` nor a row",
        ),
    ];
    for (name, template, problem) in failing {
        let answer = answer_with(&template, "the build failed");
        let [failure] = answer.template_failures.as_slice() else { panic!("{name}: {:?}", answer.template_failures) };
        assert_eq!((failure.subscriber.as_str(), &failure.notifications), ("ci", &answer.notifications));
        let problem = format!("ci.toon.j2{problem}");
        assert!(failure.error.starts_with(&problem) && failure.error.len() < 400, "{name}: {}", failure.error);
        assert!(!failure.error.contains("the build failed"), "{name}: {} shows an event's value", failure.error);
        let told = json!([{"type": "ci.failed", "source": "jenkins", "message": "the build failed"}, second_event()]);
        assert_eq!(items(&answer.block), [("jenkins".to_owned(), json!({ "notifications": told }))], "{name}");
    }
}

#[test]
fn a_template_with_the_most_joins_stays_small() {
    let doubling = "{% set a = a ~ a %}".repeat(4);
    let answer = answer_with(&format!("{{% set a = events[0].payload.text %}}{doubling}x: {{{{ a }}}}"), "long");
    assert_eq!(answer.template_failures, []);
    assert!(answer.block.len() <= 4000 && answer.block.contains("characters left out"), "{}", answer.block);
}

#[test]
fn items_beyond_the_limit_are_not_rendered() {
    let single = FILE.replace("window_ms = 0", "window_ms = 0\nmax_size = 1");
    let mut conversation = Conversation::new(load(&single, "{{ missing }}").unwrap(), Randomness::repeatable(1));
    let now = Time::from_millis(1_000_000);
    for number in 0..100 {
        let payload = json!({ "message": format!("{number} {}", "y".repeat(100)) });
        conversation.publish(event("ci.failed", payload), now).unwrap();
    }
    let mut inject = Inject::new(InjectionPoint::AfterTool, "call_1").unwrap();
    inject.limits = InjectLimits::new(100, 64).unwrap();
    let answer = conversation.inject(inject, now).unwrap();
    assert_eq!((answer.count, answer.showing, answer.pending), (100, 1, 99));
    assert!(answer.rendered <= 2, "{} items were rendered to show one", answer.rendered);
}

thread_local! {
    /// How often tokens were counted, and for how many bytes in total.
    static COUNTED: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

/// [`estimate_tokens`], with a record of its calls.
fn recording_estimate(text: &str) -> usize {
    COUNTED.with(|counted| counted.set((counted.get().0 + 1, counted.get().1 + text.len())));
    estimate_tokens(text)
}

#[test]
fn the_most_unseen_calls_requeue_at_most_the_bound_with_bounded_work() {
    let file = FILE.replace("window_ms = 0", "window_ms = 0\nmax_size = 1").replace("\"high\"", "\"normal\"");
    let mut conversation =
        Conversation::new(load(&file, "{{ events[0].message }}").unwrap(), Randomness::repeatable(1));
    let mut now = Time::from_millis(1_000_000);
    let mut unseen = Vec::new();
    for call in 0..Inject::UNSEEN_MAX {
        for number in 0..PENDING_MAX {
            // One source per event, so that none is suppressed as a storm and none is coalesced with another.
            let event =
                Event::new("ci.failed", &format!("ci {call} {number}"), Severity::Error, json!({ "n": number }));
            conversation.publish(event.unwrap(), now).unwrap();
        }
        let call_id = format!("call_{call}");
        let taken = conversation.inject(Inject::new(InjectionPoint::TurnStart, &call_id).unwrap(), now).unwrap();
        assert_eq!(taken.notifications.len(), PENDING_MAX);
        unseen.push(call_id);
        now = now.plus(1_000);
    }
    let mut inject = Inject::new(InjectionPoint::TurnStart, "worst").unwrap();
    inject.limits = InjectLimits { count_tokens: recording_estimate, ..InjectLimits::new(100, 1_000).unwrap() };
    let more = InjectOptions { unseen, ..InjectOptions::default() };
    let (answer, updates) = conversation.inject_with(inject, more, now).unwrap();
    let returned = Inject::UNSEEN_MAX * PENDING_MAX;
    assert_eq!(answer.count, PENDING_MAX + 1, "the pending notifications, and the one that counts those left out");
    assert!(answer.block.contains("left_out: 3800 notifications (too many waited)"), "{}", answer.block);
    assert!(answer.rendered <= answer.showing + 1, "{} rendered, {} shown", answer.rendered, answer.showing);
    // Each notification returns once and stays pending or ends; the pending ones end in this injection.
    assert!(updates.len() <= returned + 2 * (PENDING_MAX + 1), "{} effects", updates.len());
    let (counts, bytes) = COUNTED.get();
    assert!(counts <= 2 * answer.rendered + 10 && bytes <= counts * 4_100, "{counts} counts of {bytes} bytes");

    let more = InjectOptions { unseen: vec!["call".into(); Inject::UNSEEN_MAX + 1], ..InjectOptions::default() };
    let inject = Inject::new(InjectionPoint::TurnStart, "too many").unwrap();
    let refused = conversation.inject_with(inject, more, now).unwrap_err();
    assert_eq!(refused.to_string(), "unseen: names 21 calls; at most 20 are allowed");
}

fn second_event() -> Value {
    json!({"type": "ci.failed", "source": "jenkins", "message": "the second build failed"})
}

/// The injection of an agent whose subscriber has this template, after two failed builds with long messages.
fn answer_with(template: &str, message: &str) -> Injection {
    let mut conversation = Conversation::new(load(FILE, template).unwrap(), Randomness::repeatable(1));
    for message in [message, "the second build failed"] {
        let payload = json!({"message": message, "text": "y".repeat(60_000)});
        conversation.publish(event("ci.failed", payload), Time::from_millis(1_000_000)).unwrap();
    }
    let inject = Inject::new(InjectionPoint::AfterTool, "call_1").unwrap();
    conversation.inject(inject, Time::from_millis(1_000_000)).unwrap()
}

#[test]
fn an_event_of_the_wrong_form_is_refused_by_field() {
    let capital = Event::new("Tool.call", "ci", Severity::Info, json!({})).unwrap_err();
    assert_eq!(capital.field, "type");
    assert!(capital.message.starts_with("'Tool.call' must be 2 to 6 parts"), "{capital}");

    let large = json!({"type": "ci.failed", "source": "ci", "severity": "info", "payload": {"x": "y".repeat(1 << 20)}});
    let draft: EventDraft = serde_json::from_value(large).unwrap();
    let large = draft.admit(Time::ZERO, &mut Ids::seeded(1)).unwrap_err();
    assert_eq!(large.to_string(), "payload: has 1048584 bytes as JSON; at most 65536 are allowed");
}

/// Every character with a meaning in TOON, in the block or on a terminal, and some invisible ones.
#[rustfmt::skip]
const DELIMITERS: [&str; 24] = [
    ",", ":", "\"", "'", "\\", "[", "]", "{", "}", "\n", "\r", "\r\n", "\t", "\0", "\u{1}", "\u{2}", "|", "#", "-", "<",
    "&lt;", "\n- [user] ", "\n</notifications>\n", "\u{2028}",
];

/// The payload keys that the bundled templates use.
#[rustfmt::skip]
const KEYS: [&str; 22] = [
    "message", "error_message", "text", "tool_name", "error_type", "error_class", "timeout_ms", "path", "budget_type",
    "percentage", "current", "limit", "remaining", "pattern", "repetitions", "window_seconds", "name", "task_id",
    "result_summary", "turn", "last_question", "channel",
];

#[test]
fn a_delimiter_in_any_value_of_any_bundled_template_stays_inside_it() {
    let boundary = Boundary::parse("k7Qm2x").unwrap();
    for subscriber in Subscribers::bundled().iter() {
        for delimiter in DELIMITERS {
            let mut shown = 0;
            for text in
                [delimiter.to_owned(), format!("a{delimiter}"), format!("{delimiter}z"), format!("a{delimiter}z")]
            {
                let payload: Map<String, Value> = KEYS.iter().map(|key| ((*key).to_owned(), json!(text))).collect();
                let safe = guard(&text, boundary.as_str());
                shown += usize::from(
                    rendered_texts(subscriber, &payload, &boundary).iter().any(|told| told.contains(&*safe)),
                );
            }
            let counts_only = subscriber.id.as_str() == "turn_summary";
            assert!(counts_only || shown == 4, "{} tells {delimiter:?} as it is {shown} times of 4", subscriber.id);
        }
    }
}

/// The texts by which a subscriber shows one event and several events with this payload, decoded from TOON.
fn rendered_texts(subscriber: &Subscriber, payload: &Map<String, Value>, boundary: &Boundary) -> Vec<String> {
    let kinds = subscriber.types.iter().map(|pattern| match pattern {
        TypePattern::Exact(kind) => kind.to_string(),
        TypePattern::Below(prefix) => format!("{prefix}failed"),
        TypePattern::Form { parts, .. } => parts.replace('*', "token"),
    });
    let mut texts = Vec::new();
    for kind in kinds {
        let event = match kind.as_str() {
            // A blank message is refused, so it needs another character.
            "user.message" => Event::user_message(&format!("{}.", payload["text"].as_str().unwrap())).unwrap(),
            kind => event(kind, payload.clone().into()),
        };
        for times in [1, 3] {
            match subscriber.dry_run(&std::iter::repeat_n(Arc::new(event.clone()), times).collect::<Vec<_>>(), boundary)
            {
                Ok(document) => texts_in(&read(&document), &mut texts),
                Err(problem) => assert!(!problem.is_empty()),
            }
        }
    }
    texts
}

fn read(document: &Document) -> Value {
    let toon = document.to_toon();
    let read: Value = toon_format::decode_default(&toon).unwrap_or_else(|error| panic!("{error}: {toon:?}"));
    assert_eq!(toon_format::encode_default(&read).unwrap(), toon);
    assert!(!toon.contains('<'), "{toon}");
    read
}

fn texts_in(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| texts_in(item, texts)),
        Value::Object(map) => map.values().for_each(|item| texts_in(item, texts)),
        _ => {}
    }
}

#[test]
fn delimiters_in_events_leave_one_block_with_the_stated_number_of_items() {
    let types = ["tool.call.failure", "source.file.changed", "task.background.failed", "loop.odd", "agent.self.remind"];
    for delimiter in DELIMITERS {
        let mut conversation = Conversation::new(Subscribers::bundled().into(), Randomness::repeatable(1));
        let now = Time::from_millis(1_000_000);
        for (number, kind) in types.iter().enumerate() {
            let payload: Map<String, Value> =
                KEYS.iter().map(|key| ((*key).to_owned(), json!(format!("{number}{delimiter}{key}")))).collect();
            conversation.publish(event(kind, payload.into()), now).unwrap();
        }
        conversation.publish(Event::user_message(&format!("a{delimiter}b")).unwrap(), now).unwrap();
        let answer = conversation.inject(Inject::new(InjectionPoint::TurnStart, "call_1").unwrap(), now).unwrap();
        assert_eq!(answer.template_failures, []);
        assert_eq!(items(&answer.block).len(), answer.showing, "{}", answer.block);
        assert_eq!(answer.showing, types.len());
        assert_eq!(answer.block.matches('<').count(), 2, "{}", answer.block);
        assert_eq!(answer.block.matches(conversation.boundary().as_str()).count(), 1, "{}", answer.block);
    }
}

fn event(kind: &str, payload: Value) -> Event {
    Event::new(kind, "jenkins", Severity::Error, payload).unwrap()
}

/// The items of a block: label and decoded text.
fn items(block: &str) -> Vec<(String, Value)> {
    let lines = block.strip_suffix("\n</notifications>").and_then(|block| block.split_once('\n')).unwrap().1;
    let items = lines.strip_prefix("- [").unwrap().split("\n- [");
    let read = |item: &str| {
        let (label, text) = item.split_once("] ").unwrap();
        (label.to_owned(), toon_format::decode_default(&text.replace("\n  ", "\n")).unwrap())
    };
    items.map(read).collect()
}
