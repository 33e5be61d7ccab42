//! Files that `install` and `uninstall` change: what they become, a difference to read first, and a backup.

use std::fmt::Write as _;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// Lines around a change in a printed difference.
const AROUND: usize = 3;
/// Beyond this many lines, a changed region is printed whole instead of compared line by line.
const COMPARED_MAX: usize = 2_000;

/// A file and what it becomes.
#[derive(Debug)]
pub(crate) struct FileChange {
    pub(crate) path: PathBuf,
    pub(super) before: Option<String>,
    /// `None`: the file is deleted.
    pub(super) after: Option<String>,
    /// Whether the former file is kept beside it.
    pub(super) keeps_former: bool,
}

impl FileChange {
    /// Reads a file and computes what it becomes.
    pub(crate) fn of(path: PathBuf, edit: impl FnOnce(Option<&str>) -> Result<Option<String>>) -> Result<Self> {
        let before = match fs::read_to_string(&path) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
        };
        let after = edit(before.as_deref()).with_context(|| format!("{} cannot be edited", path.display()))?;
        Ok(Self { path, before, after, keeps_former: false })
    }

    pub(crate) fn is_change(&self) -> bool {
        self.before != self.after
    }

    /// Writes the file, and keeps the former one if that is wanted. The file is replaced at once, so that a harness that reads it
    /// meanwhile sees one or the other. A link stays a link.
    pub(crate) fn apply(&self) -> Result<()> {
        let path = fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone());
        let cannot = || format!("cannot write {}", path.display());
        if self.keeps_former && self.before.is_some() {
            // With its mode: it may contain secrets.
            fs::copy(&path, backup(&path)).with_context(cannot)?;
        }
        let Some(after) = &self.after else {
            return fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()));
        };
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).with_context(cannot)?;
        }
        let draft = beside(&path, "new");
        if let Ok(known) = fs::metadata(&path) {
            // Nobody else can read it before it has the mode of the file.
            crate::data_dir::private(&draft, "").with_context(cannot)?;
            fs::set_permissions(&draft, known.permissions()).with_context(cannot)?;
        }
        fs::write(&draft, after).with_context(cannot)?;
        fs::rename(&draft, &path).with_context(cannot)
    }

    /// The change as a unified difference.
    pub(crate) fn difference(&self) -> String {
        let name = |text: &Option<String>| match text {
            Some(_) => self.path.display().to_string(),
            None => "/dev/null".to_owned(),
        };
        let mut out = format!("--- {}\n+++ {}\n", name(&self.before), name(&self.after));
        let lines = |text: &Option<String>| text.as_deref().unwrap_or_default().lines().map(str::to_owned).collect();
        let (old, new): (Vec<String>, Vec<String>) = (lines(&self.before), lines(&self.after));
        for hunk in hunks(&compare(&old, &new)) {
            let count = |kinds: &str| hunk.lines.iter().filter(|(kind, _)| kinds.contains(*kind)).count();
            let _ = writeln!(out, "@@ -{},{} +{},{} @@", hunk.old, count(" -"), hunk.new, count(" +"));
            for (kind, line) in &hunk.lines {
                let _ = writeln!(out, "{kind}{line}");
            }
        }
        out
    }
}

/// Where the file's former content is kept.
pub(super) fn backup(path: &Path) -> PathBuf {
    beside(path, "before-bellwire")
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{ending}"));
    path.with_file_name(name)
}

/// A line of a comparison: `' '` in both, `'-'` only in the old text, `'+'` only in the new one.
type Line = (char, String);

struct Hunk {
    old: usize,
    new: usize,
    lines: Vec<Line>,
}

/// The longest common subsequence of the lines between the common beginning and the common end.
fn compare(old: &[String], new: &[String]) -> Vec<Line> {
    let begin = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let end = old[begin..].iter().rev().zip(new[begin..].iter().rev()).take_while(|(a, b)| a == b).count();
    let (a, b) = (&old[begin..old.len() - end], &new[begin..new.len() - end]);
    let mut lines: Vec<Line> = old[..begin].iter().map(|line| (' ', line.clone())).collect();
    if a.len().max(b.len()) > COMPARED_MAX {
        lines.extend(a.iter().map(|line| ('-', line.clone())).chain(b.iter().map(|line| ('+', line.clone()))));
    } else {
        // `common[i][j]`: the length of the common subsequence of a[i..] and b[j..].
        let mut common = vec![vec![0_u32; b.len() + 1]; a.len() + 1];
        for i in (0..a.len()).rev() {
            for j in (0..b.len()).rev() {
                let best = common[i + 1][j].max(common[i][j + 1]);
                common[i][j] = if a[i] == b[j] { common[i + 1][j + 1] + 1 } else { best };
            }
        }
        let (mut i, mut j) = (0, 0);
        while i < a.len() || j < b.len() {
            if i < a.len() && j < b.len() && a[i] == b[j] {
                lines.push((' ', a[i].clone()));
                (i, j) = (i + 1, j + 1);
            } else if i < a.len() && (j == b.len() || common[i + 1][j] >= common[i][j + 1]) {
                lines.push(('-', a[i].clone()));
                i += 1;
            } else {
                lines.push(('+', b[j].clone()));
                j += 1;
            }
        }
    }
    lines.extend(old[old.len() - end..].iter().map(|line| (' ', line.clone())));
    lines
}

/// The changed lines with some lines around them.
fn hunks(lines: &[Line]) -> Vec<Hunk> {
    let mut hunks: Vec<(usize, usize)> = Vec::new();
    for at in (0..lines.len()).filter(|at| lines[*at].0 != ' ') {
        let (from, to) = (at.saturating_sub(AROUND), (at + AROUND + 1).min(lines.len()));
        match hunks.last_mut() {
            Some(last) if from <= last.1 => last.1 = to,
            _ => hunks.push((from, to)),
        }
    }
    let before = |end: usize, kinds: &str| lines[..end].iter().filter(|(kind, _)| kinds.contains(*kind)).count() + 1;
    let hunk = |(from, to): (usize, usize)| Hunk {
        old: before(from, " -"),
        new: before(from, " +"),
        lines: lines[from..to].to_vec(),
    };
    hunks.into_iter().map(hunk).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_shows_each_change_with_the_lines_around_it() {
        let before: String = (1..=20).map(|line| format!("{line}\n")).collect();
        let after = before.replace("\n5\n", "\n5\nfive\n").replace("\n18\n", "\neighteen\n");
        let change =
            FileChange { path: "a/b.json".into(), before: Some(before), after: Some(after), keeps_former: false };
        insta::assert_snapshot!(change.difference());
    }

    #[test]
    fn a_file_is_replaced_with_its_mode_and_kept_beside() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x/settings.json");
        let make = FileChange::of(path.clone(), |before| Ok(Some(format!("{before:?}")))).expect("it can be read");
        make.apply().expect("it can be written");
        assert_eq!(fs::read_to_string(&path).expect("a file"), "None");
        assert!(!backup(&path).exists(), "there was nothing to keep");
        #[cfg(unix)]
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("its mode can be set");
        let change = FileChange::of(path.clone(), |_| Ok(Some("new".into()))).expect("it can be read");
        FileChange { keeps_former: true, ..change }.apply().expect("it can be written");
        assert_eq!(fs::read_to_string(&path).expect("a file"), "new");
        assert_eq!(fs::read_to_string(backup(&path)).expect("a backup"), "None");
        assert_eq!(crate::data_dir::open_to_others(&path), None);
        assert_eq!(crate::data_dir::open_to_others(&backup(&path)), None);
    }
}
