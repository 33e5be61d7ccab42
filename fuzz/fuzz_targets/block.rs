//! Hostile events through a whole conversation: no text makes a tag, a label, an item or a boundary of ours appear where the
//! renderer did not put it, in any style.

#![no_main]

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use arbitrary::Arbitrary;
use bellwire_core::event::{AgentName, Severity};
use bellwire_core::inject::{Injection, InjectLimits, Shape, Style, estimate_tokens};
use bellwire_core::subscriber::{SubscriberFile, bundled_files};
use bellwire_core::{Conversation, Event, Inject, InjectionPoint, Subscribers, Time};
use bellwire_fuzz::{Hostile, Item, Payload, read_block, read_elements, read_synthetic};
use libfuzzer_sys::fuzz_target;

const TYPES: [&str; 20] = [
    "tool.call.failure",
    "tool.call.timeout",
    "tool.call.success",
    "budget.token.warning",
    "budget.token.exceeded",
    "agent.loop.detected",
    "context.limit.warning",
    "source.file.changed",
    "task.background.failed",
    "subagent.completed",
    "agent.self.remind",
    "session.resumed",
    "task.checkpoint",
    "delivery.failed",
    "agent.turn.start",
    "odd.table",
    "odd.text",
    "odd.list",
    "odd.broken",
    "odd.left_out",
];

/// Templates of every form, one that fails, and one whose key the shortening uses too.
const ODD: [(&str, &str); 5] = [
    (
        "table",
        "t[{{ count }}]{a,b}:\n{% for e in events %}\n  {{ e.payload.name|default(none) }} - {{ e.source }},{{ e.payload }}\n{% endfor %}\n",
    ),
    ("text", "{% for e in events %}{{ e.payload.text|default(\"none\") }} and {{ e.message }}\n{% endfor %}"),
    ("list", "l[{{ count }}]: {% for e in events %}{{ e.message }}{% if not loop.last %},{% endif %}{% endfor %}"),
    ("broken", "x: {{ events[0].payload.text }} {{ events[0].payload.no.such.thing }}"),
    (
        "left_out",
        "left_out[{{ count }}]: {% for e in events %}{{ e.message }}{% if not loop.last %},{% endif %}{% endfor %}",
    ),
];

static SUBSCRIBERS: LazyLock<Arc<Subscribers>> = LazyLock::new(subscribers);

#[derive(Arbitrary, Debug)]
enum Action {
    Publish { kind: u8, severity: u8, source: Hostile, payload: Payload, dedupe: Option<Hostile>, times: u8 },
    Say(Hostile),
    Inject { point: u8, style: u8, shape: u8, items: u8, tokens: u16 },
    Wait(u16),
    Crash,
    Rotate,
}

fuzz_target!(|actions: Vec<Action>| {
    let mut conversation = Conversation::new(SUBSCRIBERS.clone(), bellwire_core::Randomness::repeatable(7));
    let mut now = Time::from_millis(1_000_000);
    let mut said = false;
    for (number, action) in actions.iter().take(64).enumerate() {
        let boundary = conversation.boundary().as_str().to_owned();
        now = now.plus(10);
        match action {
            Action::Publish { times, .. } => {
                for _ in 0..=times % 4 {
                    let Some(event) = event(action, &boundary) else { continue };
                    conversation.publish(event, now).expect("only a person's message can be refused");
                }
            }
            Action::Say(text) => {
                // An empty message is refused, and so is one beyond two hundred pending.
                if let Ok(message) = Event::user_message(&text.knowing(&boundary)) {
                    said |= conversation.publish(message, now).is_ok();
                }
            }
            Action::Inject { .. } => {
                let inject = inject(action, number);
                let (style, tokens_max) = (inject.style, inject.limits.tokens_max);
                let answer = conversation.inject(inject, now).expect("the call id is new");
                check(&answer, style, tokens_max, &boundary, said);
            }
            Action::Wait(millis) => now = now.plus(u64::from(*millis)),
            Action::Crash => conversation.crash(),
            Action::Rotate => conversation.rotate_boundary(),
        }
    }
});

fn check(answer: &Injection, style: Style, tokens_max: usize, boundary: &str, said: bool) {
    if answer.showing == 0 {
        return assert!(answer.block.is_empty() && answer.messages.is_empty());
    }
    let items = match style {
        Style::Block => read_block(&answer.block, boundary),
        Style::Append => read_elements(&answer.block, boundary),
        Style::Synthetic => read_synthetic(&answer.messages, boundary),
    };
    assert_eq!(items.len(), answer.showing);
    assert_eq!(answer.count, answer.showing + answer.folded + answer.pending);
    assert!(estimate_tokens(&answer.block) <= tokens_max, "{} of {tokens_max}: {}", answer.block.len(), answer.block);
    let is_count = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let is_person = |item: &Item| {
        let label = item.label.to_ascii_lowercase();
        label == "user" || label.strip_prefix("user x").is_some_and(is_count)
    };
    assert!(said || !items.iter().any(is_person), "nobody borrows the person's voice: {items:?}");
    for item in &answer.shown {
        assert!(!item.content.contains(['<']) && !item.content.contains(boundary) && !item.source.contains(boundary));
    }
}

fn event(action: &Action, boundary: &str) -> Option<Event> {
    let Action::Publish { kind, severity, source, payload, dedupe, .. } = action else { return None };
    let kind = TYPES[usize::from(*kind) % TYPES.len()];
    let source: String = source.knowing(boundary).chars().filter(|c| !"<>\"[]".contains(*c)).take(64).collect();
    let severity = Severity::ALL[usize::from(*severity) % Severity::ALL.len()];
    let event = Event::new(kind, &source, severity, payload.knowing(boundary))
        .or_else(|_| Event::new(kind, "ci", severity, payload.knowing(boundary)))
        .ok()?;
    let event = event.for_agent(AgentName::main());
    match dedupe.as_ref().and_then(|key| event.clone().with_dedupe_key(&key.0).ok()) {
        Some(keyed) => Some(keyed),
        None => Some(event),
    }
}

fn inject(action: &Action, number: usize) -> Inject {
    let Action::Inject { point, style, shape, items, tokens } = action else { unreachable!("the caller looked") };
    fn pick<T: Copy>(all: &[T], number: u8) -> T {
        all[usize::from(number) % all.len()]
    }
    let mut inject = Inject::new(pick(InjectionPoint::ALL, *point), &format!("call_{number}")).expect("it is legal");
    inject.style = pick(Style::ALL, *style);
    inject.shape = pick(Shape::ALL, *shape);
    let (items, tokens) = (1 + usize::from(*items % 20), InjectLimits::TOKENS_MIN + usize::from(*tokens % 4000));
    inject.limits = InjectLimits::new(items, tokens).expect("they are in range");
    inject
}

fn subscribers() -> Arc<Subscribers> {
    let (mut files, mut templates): (_, BTreeMap<String, String>) = bundled_files();
    for (number, (name, template)) in ODD.iter().enumerate() {
        let text = format!(
            "[subscriber]\nid = \"odd_{name}\"\nname = \"Odd\"\ndescription = \"Odd\"\nversion = \"1.0.0\"\n\
             [events]\ntypes = [\"odd.{name}\"]\n[batching]\nwindow_ms = {}\nmax_size = 20\n\
             [output]\npriority = \"normal\"\ninject_at = \"after_tool\"\ntemplate = \"{name}\"\n",
            number * 1000,
        );
        files.push(SubscriberFile { path: format!("odd_{name}.toml"), text });
        templates.insert((*name).to_owned(), (*template).to_owned());
    }
    let loaded = Subscribers::load(&files, &templates);
    assert!(loaded.errors.is_empty(), "{:?}", loaded.errors);
    loaded.subscribers.into()
}
