//! Any bytes as a subscriber file: an error with a line of the file, or a subscriber whose every value is in its range.

#![no_main]

use bellwire_core::InjectionPoint;
use bellwire_core::subscriber::{Audience, Priority, Subscriber, SubscriberFile};
use libfuzzer_sys::fuzz_target;

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

fuzz_target!(|data: &[u8]| {
    let file = SubscriberFile { path: "fuzz.toml".into(), text: String::from_utf8_lossy(data).into_owned() };
    let find = |path: &str| match path {
        "t" => Ok("ci: {{ events[0].source }}".to_owned()),
        _ => Err("does not exist".to_owned()),
    };
    match file.parse(&find) {
        Ok(subscriber) => assert_in_range(&subscriber),
        Err(error) => {
            assert!(!error.message.is_empty());
            assert!(error.line <= file.text.split('\n').count(), "{error}");
        }
    }
});

fn assert_in_range(subscriber: &Subscriber) {
    let (batching, output) = (&subscriber.batching, &subscriber.output);
    assert!((1..=64).contains(&subscriber.id.as_str().len()));
    assert!((1..=100).contains(&subscriber.name.chars().count()));
    assert!((1..=500).contains(&subscriber.description.chars().count()));
    assert!((5..=64).contains(&subscriber.version.len()));
    assert!((1..=64).contains(&subscriber.types.len()));
    assert!(subscriber.sources.as_ref().is_none_or(|sources| !sources.is_empty()));
    assert!(batching.window_ms <= 10_000);
    assert!((1..=100).contains(&batching.max_size));
    assert!(batching.dedupe_window_ms <= 60_000);
    assert!((1_000..=30 * DAY_MS).contains(&output.ttl_ms));
    let critical = output.priority == Priority::Critical;
    assert!(critical || output.inject_at != InjectionPoint::Immediate);
    let low = output.priority == Priority::Low && output.audience != Audience::User;
    assert!(!low || output.inject_at != InjectionPoint::AfterTool);
}
