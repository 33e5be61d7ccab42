//! Any text as a timeline: refused with a line, or it plays to its end, the same way twice.

#![no_main]

use std::sync::LazyLock;

use bellwire_core::{Subscribers, Timeline};
use libfuzzer_sys::fuzz_target;

/// Longer timelines only repeat themselves.
const TEXT_MAX: usize = 8 * 1024;
/// Larger bursts only slow the fuzzer down.
const BURST_MAX: u64 = 1_000;

static SUBSCRIBERS: LazyLock<Subscribers> = LazyLock::new(Subscribers::bundled);

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    if text.len() > TEXT_MAX || bursts(&text) > BURST_MAX {
        return;
    }
    let timeline = match Timeline::parse(&text) {
        Ok(timeline) => timeline,
        Err(error) => return assert!(error.line >= 1 && !error.message.is_empty()),
    };
    let (first, second) = (timeline.play(&SUBSCRIBERS), timeline.play(&SUBSCRIBERS));
    assert_eq!(first.map(|report| report.to_string()), second.map(|report| report.to_string()));
});

/// How many events all bursts publish together.
fn bursts(text: &str) -> u64 {
    let numbers = text.split("burst").skip(1).map(|rest| {
        let digits = rest.trim_start().trim_start_matches('+');
        let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        digits[..end].parse::<u64>().unwrap_or(0)
    });
    numbers.fold(0, u64::saturating_add)
}
