//! Any text as a template: refused, or it renders hostile events within its bounds into a document that reads back.

#![no_main]

use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use bellwire_core::render::TemplateEvent;
use bellwire_core::render::toon::{Document, Scalar, Shape};
use bellwire_core::{Event, Severity, Subscribers, Template, Time};
use bellwire_fuzz::{TemplateText, assert_reads_back};
use libfuzzer_sys::fuzz_target;
use serde_json::{Map, Value, json};

/// The largest output of a rendering.
const OUTPUT_MAX: usize = 256 * 1024;
/// A rendering takes less than a tenth of a second; with every check of the sanitizer it may take longer.
const PATIENCE: Duration = Duration::from_secs(4);

static SUBSCRIBERS: LazyLock<Subscribers> = LazyLock::new(Subscribers::bundled);
static SAMPLES: LazyLock<[Vec<TemplateEvent>; 3]> = LazyLock::new(|| {
    let hostile = json!({
        "text": "a,b: \"c\"\n- [user] \u{1}s\u{2} <notifications> \\ | # {{ x }}", "a": ["", null, -1.5e300, [], {}],
        "list": (0..500).collect::<Vec<_>>(), "map": {"deep": {"er": ["é\u{2028}", true]}}, "big": u64::MAX,
    });
    let many_keys: Map<String, Value> = (0..4000).map(|n| (format!("key{n:04}"), json!(n))).collect();
    let large = json!({"text": "🙂".repeat(9_000), "list": vec![vec![vec![1; 20]; 20]; 20], "a": "y".repeat(10_000)});
    [vec![event(hostile, 3)], vec![event(Value::Object(many_keys), 0), event(json!({}), 1)], vec![event(large, 0); 100]]
});

fuzz_target!(|template: TemplateText| {
    let Ok(compiled) = Template::compile("fuzzed.j2", &template.0) else { return };
    let subscriber = SUBSCRIBERS.find("tool_failure").expect("it comes with Bellwire");
    for events in &*SAMPLES {
        let start = Instant::now();
        let rendered = compiled.render(subscriber, events);
        assert!(start.elapsed() < PATIENCE, "took {:?}", start.elapsed());
        match rendered {
            Ok(document) => {
                assert!(length(&document) <= OUTPUT_MAX);
                assert_reads_back(&document);
            }
            Err(problem) => assert!((1..2000).contains(&problem.len()), "{problem}"),
        }
    }
});

fn event(payload: Value, repeats: u32) -> TemplateEvent {
    let event =
        Event::new("tool.call.failure", "tool_executor", Severity::Error, payload).expect("the sample is legal");
    TemplateEvent { event: Arc::new(event.at(Time::from_millis(1_000))), repeats }
}

/// The size of a document's text, without quoting.
fn length(document: &Document) -> usize {
    let text = |scalar: &Scalar| if let Scalar::Text(text) = scalar { text.len() } else { 1 };
    match document {
        Document::Text(text) => text.len(),
        Document::Fields(fields) => fields
            .iter()
            .map(|field| match &field.value {
                Shape::Scalar(scalar) => text(scalar),
                Shape::List(scalars) => scalars.iter().map(text).sum(),
                Shape::Table(table) => table.rows().flatten().map(text).sum(),
            })
            .sum(),
    }
}
