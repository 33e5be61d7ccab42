//! Every rule of the mailbox as a scenario: `scenarios/*.timeline` is the input, the snapshot of the same name the
//! output.
//!
//! To add one, write a timeline that starts with its rule as a comment, run `INSTA_UPDATE=always cargo test -p
//! bellwire-core --test scenarios`, and read the new snapshot.
#![expect(clippy::disallowed_methods, reason = "a test reads its own files")]

use std::path::Path;

use bellwire_core::{Subscribers, Timeline};

#[test]
fn every_rule_plays_as_its_snapshot_says() {
    insta::glob!("scenarios/*.timeline", |path| {
        let text = read(path);
        let rule = rule(&text).unwrap_or_else(|| panic!("{} does not start with its rule", path.display()));
        insta::with_settings!({ description => rule, omit_expression => true }, {
            insta::assert_snapshot!("play", play(&text));
        });
    });
}

#[test]
fn a_crash_between_any_two_steps_changes_no_result() {
    insta::glob!("scenarios/*.timeline", |path| {
        let text = read(path);
        let undisturbed = without_crashes(&play(&text));
        assert_eq!(without_crashes(&play(&with_crashes(&text))), undisturbed, "{}", path.display());
    });
}

fn play(text: &str) -> String {
    let timeline = Timeline::parse(text).unwrap_or_else(|error| panic!("{error}"));
    let report = timeline.play(&Subscribers::bundled()).unwrap_or_else(|error| panic!("{error}"));
    report.to_string()
}

/// The comment at the start of a timeline, as one line.
fn rule(text: &str) -> Option<String> {
    let comment: Vec<&str> = text.lines().map_while(|line| line.strip_prefix("# ")).collect();
    (!comment.is_empty()).then(|| comment.join(" "))
}

/// The timeline with a crash before every step but the first.
fn with_crashes(text: &str) -> String {
    let is_step = |line: &&str| line.starts_with(|c: char| c == '+' || c.is_ascii_digit());
    let first = text.lines().position(|line| is_step(&line));
    let crash = |(at, line): (usize, &str)| match is_step(&line) && Some(at) != first {
        true => format!("+0s crash\n{line}\n"),
        false => format!("{line}\n"),
    };
    text.lines().enumerate().map(crash).collect()
}

fn without_crashes(report: &str) -> String {
    let is_kept = |line: &&str| !line.ends_with("crash    saved and loaded");
    report.lines().filter(is_kept).map(|line| format!("{line}\n")).collect()
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
