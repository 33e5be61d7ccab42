//! The files that an agent has edited itself: it need not be told of them. The hub has them as tool calls that hooks observed.

use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::changes::{ChangeOutcome, FileChange};
use crate::client::{Client, with_query};
use crate::edited_paths::{is_editing, paths_in};
use crate::output::items;

/// A change this near to an edit of the same file is that edit.
const NEAR: SignedDuration = SignedDuration::from_secs(5);

/// Edited files, each with when the hub heard of it.
#[derive(Debug, Default)]
pub(super) struct OwnEdits(Vec<(PathBuf, Timestamp)>);

impl OwnEdits {
    /// The edits of a conversation that are near to a change since this time. Relative paths are below its folder.
    pub(super) fn load(
        client: &Client,
        (id, owner): (&str, Option<&str>),
        folder: Option<&Path>,
        since: Timestamp,
    ) -> anyhow::Result<Self> {
        let since = (since - NEAR).to_string();
        let query = [
            ("conversation_id", Some(id)),
            ("user_id", owner),
            ("type", Some("tool.call.success")),
            ("since", Some(since.as_str())),
            ("limit", Some("100")),
        ];
        let list = client.get(&with_query("/v1/events", &query))?;
        Ok(Self(items(&list).iter().flat_map(|event| edits(event, folder)).collect()))
    }

    /// Whether a change is the agent's own.
    pub(super) fn cover(&self, change: &FileChange) -> bool {
        let is_edited = |path: &Path| {
            let near = |at: Timestamp| at.duration_since(change.at).abs() <= NEAR;
            self.0.iter().any(|(edited, at)| edited == path && near(*at))
        };
        match &change.outcome {
            ChangeOutcome::RenamedFrom(from) => is_edited(&change.path) && is_edited(from),
            _ => is_edited(&change.path),
        }
    }
}

fn edits(event: &Value, folder: Option<&Path>) -> Vec<(PathBuf, Timestamp)> {
    let at = event["accepted_at"].as_str().and_then(|text| text.parse::<Timestamp>().ok());
    let Some(at) = at.filter(|_| event["payload"]["tool_name"].as_str().is_some_and(is_editing)) else {
        return Vec::new();
    };
    let absolute = |path: String| real(&folder.unwrap_or(Path::new("")).join(path));
    paths_in(&event["payload"]["arguments"]).into_iter().map(|path| (absolute(path), at)).collect()
}

/// The path as the watcher reports it: without symbolic links above the file.
fn real(path: &Path) -> PathBuf {
    let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
    match (folder, path.file_name()) {
        (Some(folder), Some(name)) => folder.join(name),
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_edit_covers_changes_of_the_same_file_within_five_seconds() {
        let event = |tool: &str, path: &str| json!({"accepted_at": "2026-01-03T15:30:10Z", "payload": {"tool_name": tool, "arguments": {"file_path": path}}});
        let folder = Path::new("/nowhere/app");
        let known = [event("Edit", "/nowhere/app/a.rs"), event("write_file", "b.rs"), event("Read", "c.rs")];
        let own = OwnEdits(known.iter().flat_map(|event| edits(event, Some(folder))).collect());
        let covers = |name: &str, at: &str| {
            let at = at.parse().expect("a time");
            own.cover(&FileChange { path: folder.join(name), outcome: ChangeOutcome::Changed, at })
        };
        assert!(covers("a.rs", "2026-01-03T15:30:05Z") && covers("b.rs", "2026-01-03T15:30:15Z"));
        assert!(!covers("a.rs", "2026-01-03T15:30:04.9Z") && !covers("b.rs", "2026-01-03T15:30:15.1Z"));
        assert!(!covers("c.rs", "2026-01-03T15:30:10Z"), "it was only read");
        assert!(!covers("d.rs", "2026-01-03T15:30:10Z"));
    }
}
