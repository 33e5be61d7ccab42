use std::collections::BTreeMap;

use super::SubscriberFile;

macro_rules! bundled {
    ($($id:literal)+) => {
        [$((
            concat!($id, ".toml"),
            include_str!(concat!("../../../../subscribers/", $id, ".toml")),
            concat!("templates/", $id, ".toon.j2"),
            include_str!(concat!("../../../../subscribers/templates/", $id, ".toon.j2")),
        ),)+]
    };
}

/// The subscriber files of the folder `subscribers/`, compiled in, and their templates by path.
pub fn bundled_files() -> (Vec<SubscriberFile>, BTreeMap<String, String>) {
    let bundled = bundled![
        "background_task" "budget_exceeded" "budget_warning" "context_limit" "delivery_failed" "loop_detected"
        "needs_you" "self_notify" "session_resumed" "source_stale" "subagent_result" "task_checkpoint" "tool_failure"
        "turn_summary" "user_message"
    ];
    // Templates for people, besides the one that every subscriber has.
    let for_people =
        [("templates/needs_you.user.j2", include_str!("../../../../subscribers/templates/needs_you.user.j2"))];
    let files = bundled.iter().map(|(path, text, ..)| SubscriberFile { path: (*path).into(), text: (*text).into() });
    let templates = bundled.iter().map(|(.., path, text)| (*path, *text)).chain(for_people);
    let templates = templates.map(|(path, text)| (path.to_owned(), text.to_owned()));
    (files.collect(), templates.collect())
}
