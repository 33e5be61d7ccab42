//! The list of files that git passes over and does not share: the files of a project are added to it.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use super::changes::{BACKUP_ENDING, FileChange};
use super::git;
use super::places::Place;
use crate::hosts::Host;

/// Our lines in the list of a repository.
pub(super) struct Exclusion {
    /// The list.
    pub(super) file: PathBuf,
    /// Stands above our lines.
    mark: String,
    lines: Vec<String>,
}

impl Exclusion {
    /// The lines for the files of a project and their backups; `None` if it is in no repository. Git is asked for the list: a
    /// worktree and a submodule have theirs elsewhere, and a project may be a part of a repository.
    pub(super) fn of(host: Host, project: &Path, places: &[Place]) -> Result<Option<Self>> {
        let asked = git(project).args(["rev-parse", "--show-prefix", "--git-path", "info/exclude"]).output();
        let answer = match asked {
            Ok(output) if output.status.success() => String::from_utf8(output.stdout).context("git names no text")?,
            _ if !project.join(".git").exists() => return Ok(None),
            Ok(output) => {
                bail!("git does not say what it excludes: {}", String::from_utf8_lossy(&output.stderr).trim())
            }
            Err(error) => return Err(error).context("the project has a .git, but git cannot be started"),
        };
        let (prefix, list) = answer.split_once('\n').context("git answers with two lines")?;
        let inside = places.iter().filter_map(|place| place.path.strip_prefix(project).ok());
        let lines = inside.flat_map(|path| {
            let pattern = format!("/{}{}", escaped(prefix), path.display());
            [format!("{pattern}{BACKUP_ENDING}"), pattern]
        });
        // Another part of the same repository has its own lines.
        let part = if prefix.is_empty() { String::new() } else { format!(" in {prefix}") };
        Ok(Some(Self {
            file: project.join(list.trim_end_matches('\n')),
            mark: format!("# bellwire install {}{part}", host.name()),
            lines: lines.collect(),
        }))
    }

    /// The change that adds our lines, or removes them.
    pub(super) fn change(&self, is_added: bool) -> Result<FileChange> {
        FileChange::of(self.file.clone(), |before| Ok(self.edit(before.unwrap_or_default(), is_added)))
    }

    fn edit(&self, before: &str, is_added: bool) -> Option<String> {
        let mut lines: Vec<&str> = before.split('\n').collect();
        let is_line = |line: &str, ours: &str| line.trim_end_matches('\r') == ours;
        if let Some(at) = lines.iter().position(|line| is_line(line, &self.mark)) {
            let is_ours = |line: &&&str| self.lines.iter().any(|ours| is_line(line, ours));
            let count = lines[at + 1..].iter().take_while(is_ours).count();
            if is_added && count == self.lines.len() {
                return Some(before.to_owned());
            }
            lines.drain(at..=at + count);
        }
        if is_added {
            // Behind the last line, whether or not that has an end.
            let at = if lines.last() == Some(&"") { lines.len() - 1 } else { lines.len() };
            lines.splice(at..at, std::iter::once(&self.mark).chain(&self.lines).map(String::as_str));
        }
        let text = lines.join("\n");
        (!text.is_empty()).then_some(text)
    }
}

/// A folder in a pattern of git.
fn escaped(folder: &str) -> String {
    let escape = |c: char| if "*?[\\".contains(c) { format!("\\{c}") } else { c.to_string() };
    folder.chars().map(escape).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_added_is_removed_again_and_every_other_byte_stays() {
        let list = Exclusion { file: "exclude".into(), mark: "# ours".into(), lines: vec!["/a".into(), "/b".into()] };
        for before in ["", "*.log\n", "*.log", "*.log\r\n\r\n# x\r\n", "/a\n"] {
            let added = list.edit(before, true).expect("a text");
            assert!(added.contains("# ours\n/a\n/b"), "{added}");
            assert_eq!(list.edit(&added, true).as_deref(), Some(added.as_str()), "once is enough");
            assert_eq!(list.edit(&added, false).unwrap_or_default(), before);
            let more = format!("{added}\n*.tmp\n");
            assert_eq!(list.edit(&more, false).unwrap_or_default(), format!("{before}\n*.tmp\n"));
        }
        assert_eq!(escaped("a[1]/*"), "a\\[1]/\\*");
    }
}
