//! Tells the agents which files changed.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use anyhow::Result;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::WatchArgs;
use super::changes::{ChangeOutcome, ChangeReport, FileChange};
use super::own_edits::OwnEdits;
use crate::client::conversation_path;
use crate::commands::run::target::Targets;
use crate::hosts::Host;
use crate::output::printable;

/// More changes are told as one sum. The subscriber `source_stale` lists as many.
const LISTED_MAX: usize = 20;
/// How many folders a sum names.
const FOLDERS_MAX: usize = 5;

/// The conversations that are told.
pub(super) struct Audience<'a> {
    arguments: &'a WatchArgs,
    targets: Targets,
    /// The folders of conversations, as far as they are known.
    folders: HashMap<String, Option<PathBuf>>,
    here: PathBuf,
}

impl<'a> Audience<'a> {
    pub(super) fn find(arguments: &'a WatchArgs) -> Result<Self> {
        let here = std::env::current_dir()?;
        let here = here.canonicalize().unwrap_or(here);
        Ok(Self { arguments, targets: arguments.targets()?, folders: HashMap::new(), here })
    }

    pub(super) fn describe(&self) -> String {
        let ids: Vec<String> = self.targets.conversations().iter().map(|(id, _)| printable(id)).collect();
        ids.join(", ")
    }

    /// Tells every conversation what changed, except by its own agent. Returns what was told, as lines.
    pub(super) fn tell(&mut self, report: &ChangeReport) -> Result<Vec<String>> {
        if !self.is_fixed() {
            // Sessions come and go while this runs.
            self.targets = self.arguments.targets()?;
        }
        let (mut events, mut lines) = (Vec::new(), Vec::new());
        for (id, owner) in self.targets.conversations().to_vec() {
            for payload in self.payloads(report, &id, owner.as_deref()) {
                let text = payload["path"].as_str().or(payload["message"].as_str()).unwrap_or_default();
                lines.push(format!("{}: {}", printable(&id), printable(text)));
                let mut event = json!({
                    "type": "source.file.changed", "source": "file_watcher", "severity": "info", "payload": payload,
                    "conversation_id": id,
                });
                if let Some(owner) = &owner {
                    event["user_id"] = json!(owner);
                }
                events.push(event);
            }
        }
        // A call publishes at most a thousand events.
        for part in events.chunks(500) {
            self.targets.client().post("/v1/events", &json!(part))?;
        }
        Ok(lines)
    }

    /// Whether the conversation is named, or that of the session in whose shell this runs.
    fn is_fixed(&self) -> bool {
        self.arguments.conversation.is_some() || Host::session_of_shell(|name| std::env::var(name).ok()).is_some()
    }

    fn payloads(&mut self, report: &ChangeReport, id: &str, owner: Option<&str>) -> Vec<Value> {
        let folder = self.folder(id, owner);
        let since = report.files.iter().map(|file| file.at).min().unwrap_or_else(Timestamp::now);
        // If the hub does not say it, an agent may hear of its own edits, which is better than of none.
        let own = OwnEdits::load(self.targets.client(), (id, owner), folder.as_deref(), since).unwrap_or_default();
        let files: Vec<&FileChange> = report.files.iter().filter(|file| !own.cover(file)).collect();
        let base = folder.as_deref().unwrap_or(&self.here);
        match files.len() > LISTED_MAX || report.has_gaps {
            true => vec![sum(&files, report.has_gaps, base)],
            false => files.into_iter().map(|file| listed(file, base)).collect(),
        }
    }

    /// The folder of a conversation, to which its agent relates paths.
    fn folder(&mut self, id: &str, owner: Option<&str>) -> Option<PathBuf> {
        if !self.folders.contains_key(id) {
            let view = self.targets.client().get(&conversation_path(id, "", owner)).ok();
            let folder = view.and_then(|view| view["folder"].as_str().map(PathBuf::from));
            let folder = folder.map(|folder| folder.canonicalize().unwrap_or(folder));
            self.folders.insert(id.to_owned(), folder);
        }
        self.folders.get(id).cloned().flatten()
    }
}

fn listed(file: &FileChange, base: &Path) -> Value {
    let path = shown(&file.path, base);
    match &file.outcome {
        ChangeOutcome::Changed => json!({ "path": path, "change": "changed" }),
        ChangeOutcome::Removed => json!({ "path": format!("{path} (removed)"), "change": "removed" }),
        ChangeOutcome::RenamedFrom(from) => {
            json!({ "path": format!("{} → {path}", shown(from, base)), "change": "renamed" })
        }
    }
}

fn sum(files: &[&FileChange], has_gaps: bool, base: &Path) -> Value {
    let mut folders: BTreeMap<String, usize> = BTreeMap::new();
    for file in files {
        let path = file.path.strip_prefix(base).unwrap_or(&file.path);
        let mut parts = path.components();
        let first = parts.next().map(|part| part.as_os_str().to_string_lossy().into_owned()).unwrap_or_default();
        let folder = if parts.next().is_some() { format!("{first}/") } else { "the folder itself".to_owned() };
        *folders.entry(folder).or_default() += 1;
    }
    let mut folders: Vec<(String, usize)> = folders.into_iter().collect();
    folders.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
    let named: Vec<String> =
        folders.iter().take(FOLDERS_MAX).map(|(folder, count)| format!("{count} in {folder}")).collect();
    let more = folders.len().saturating_sub(FOLDERS_MAX);
    let more = if more > 0 { format!(" and {more} other folders") } else { String::new() };
    let at_least = if has_gaps { "at least " } else { "" };
    let message = format!("{at_least}{} files: {}{more}", files.len(), named.join(", "));
    json!({ "message": message.trim_end_matches([':', ' ']), "count": files.len() })
}

fn shown(path: &Path, base: &Path) -> String {
    path.strip_prefix(base).unwrap_or(path).display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(path: &str) -> FileChange {
        FileChange { path: path.into(), outcome: ChangeOutcome::Changed, at: Timestamp::UNIX_EPOCH }
    }

    #[test]
    fn a_sum_names_the_folders_with_most_changes() {
        let files: Vec<FileChange> = (0..30)
            .map(|at| change(&format!("/app/{}/x{at}.rs", if at % 3 == 0 { "docs" } else { "src" })))
            .chain([change("/app/Cargo.toml")])
            .collect();
        let all: Vec<&FileChange> = files.iter().collect();
        let text = sum(&all, false, Path::new("/app"));
        assert_eq!(text["message"], "31 files: 20 in src/, 10 in docs/, 1 in the folder itself");
        assert_eq!(sum(&[], true, Path::new("/app"))["message"], "at least 0 files");
    }

    #[test]
    fn a_path_is_shown_as_its_agent_would_write_it() {
        let base = Path::new("/app");
        let renamed = FileChange { outcome: ChangeOutcome::RenamedFrom("/app/a.rs".into()), ..change("/app/b.rs") };
        let removed = FileChange { outcome: ChangeOutcome::Removed, ..change("/other/c.rs") };
        assert_eq!(listed(&renamed, base)["path"], "a.rs → b.rs");
        assert_eq!(listed(&removed, base)["path"], "/other/c.rs (removed)");
    }
}
