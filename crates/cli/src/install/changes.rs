//! Files that `install` and `uninstall` change: what they become, a difference to read first, and a backup.

use std::fmt::Write as _;
use std::fs;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

/// Lines around a change in a printed difference.
const AROUND: usize = 3;
/// Beyond this many lines, a changed region is printed whole instead of compared line by line.
const COMPARED_MAX: usize = 2_000;

/// Of the file with the former content.
pub(super) const BACKUP_ENDING: &str = ".before-bellwire";

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
        let before = read(&path)?;
        let after = edit(before.as_deref()).with_context(|| format!("{} cannot be edited", path.display()))?;
        Ok(Self { path, before, after, keeps_former: false })
    }

    pub(crate) fn is_change(&self) -> bool {
        self.before != self.after
    }

    /// Writes the file, and keeps the former one if that is wanted. The file is replaced at once, so that a harness that reads it
    /// meanwhile sees one or the other. A link stays a link.
    pub(crate) fn apply(&self) -> Result<()> {
        let path = target(&self.path);
        let cannot = || format!("cannot write {}", path.display());
        let is_link = fs::symlink_metadata(&path).is_ok_and(|found| found.is_symlink());
        ensure!(!is_link, "{} is a link to a file that is not there", path.display());
        let known = fs::metadata(&path).ok();
        let is_writable = known.as_ref().is_none_or(|known| !known.permissions().readonly());
        ensure!(is_writable, "{} is read-only; allow writing to it, or make the change yourself", path.display());
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).with_context(cannot)?;
        }
        if self.keeps_former && self.before.is_some() {
            // With its mode: it may contain secrets.
            fs::copy(&path, backup(&path)).with_context(cannot)?;
        }
        let draft = self.after.as_ref().map(|after| Draft::write(&path, after, known.as_ref())).transpose();
        let draft = draft.with_context(cannot)?;
        // Harnesses write their files at any time, and what they wrote must not be lost.
        let is_same = read(&path)? == self.before;
        ensure!(is_same, "{} was changed by another program meanwhile; run the command again", path.display());
        match draft {
            Some(draft) => draft.replace(&path).with_context(cannot),
            None => fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display())),
        }
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

/// The new content of a file, in a file beside it that is deleted if it does not replace the other.
struct Draft {
    path: PathBuf,
}

impl Draft {
    /// Writes the content with the mode and the owner of the file that it will replace.
    fn write(path: &Path, content: &str, known: Option<&fs::Metadata>) -> std::io::Result<Self> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let draft = path.with_file_name(format!(".{name}.bellwire-{}", std::process::id()));
        // Of an earlier process with the same id that was killed.
        let _ = fs::remove_file(&draft);
        let mut options = fs::OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        if known.is_some() {
            // Nobody else can read it before it has the mode of the file.
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        }
        let mut file = options.open(&draft)?;
        let draft = Self { path: draft };
        file.write_all(content.as_bytes())?;
        if let Some(known) = known {
            draft.keep_owner(known);
            file.set_permissions(known.permissions())?;
        }
        file.sync_all()?;
        Ok(draft)
    }

    /// Gives the file to its former owner, if that is another and this process may: the operator may run this for a user.
    #[cfg(unix)]
    fn keep_owner(&self, known: &fs::Metadata) {
        use std::os::unix::fs::MetadataExt as _;
        let _ = std::os::unix::fs::chown(&self.path, Some(known.uid()), Some(known.gid()));
    }

    #[cfg(not(unix))]
    fn keep_owner(&self, _known: &fs::Metadata) {}

    fn replace(self, path: &Path) -> std::io::Result<()> {
        fs::rename(&self.path, path)
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // Fails if it has replaced the file.
        let _ = fs::remove_file(&self.path);
    }
}

/// The content of a file; `None` if it is not there.
fn read(path: &Path) -> Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// The file to which a path leads through links.
fn target(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// Where the file's former content is kept.
pub(super) fn backup(path: &Path) -> PathBuf {
    let path = target(path);
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(BACKUP_ENDING);
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
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("its mode can be set");
            let change = FileChange::of(path.clone(), |_| Ok(Some("newer".into()))).expect("it can be read");
            change.apply().expect("it can be written");
            assert_eq!(fs::metadata(&path).expect("a file").permissions().mode() & 0o777, 0o640);
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_a_link_and_nothing_of_others_is_lost() {
        let folder = tempfile::tempdir().expect("a folder");
        let (link, file) = (folder.path().join("settings.json"), folder.path().join("dotfiles/mine.json"));
        fs::create_dir(file.parent().expect("a folder")).expect("it can be made");
        fs::write(&file, "old").expect("it can be written");
        fs::write(link.with_file_name("settings.json.new"), "theirs").expect("it can be written");
        std::os::unix::fs::symlink(&file, &link).expect("a link");
        let change = FileChange::of(link.clone(), |_| Ok(Some("new".into()))).expect("it can be read");
        FileChange { keeps_former: true, ..change }.apply().expect("it can be written");
        assert!(fs::symlink_metadata(&link).expect("a link").is_symlink());
        assert_eq!(fs::read_to_string(&file).expect("a file"), "new");
        assert_eq!(fs::read_to_string(backup(&link)).expect("a backup, beside the file"), "old");
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 3, "nothing else is left or taken");
        fs::remove_file(&file).expect("it can be removed");
        let dangling = FileChange::of(link.clone(), |_| Ok(Some("new".into()))).expect("it can be read");
        assert!(dangling.apply().expect_err("it leads nowhere").to_string().contains("a link to a file"));
    }

    #[cfg(unix)]
    #[test]
    fn a_file_keeps_its_owner() {
        use std::os::unix::fs::{MetadataExt as _, chown};
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("settings.json");
        fs::write(&path, "old").expect("it can be written");
        // Only the operator can give files away; for others there is nothing to test.
        if chown(&path, Some(4711), Some(4712)).is_err() {
            return;
        }
        let change = FileChange::of(path.clone(), |_| Ok(Some("new".into()))).expect("it can be read");
        change.apply().expect("it can be written");
        let after = fs::metadata(&path).expect("a file");
        assert_eq!((after.uid(), after.gid()), (4711, 4712));
    }

    #[test]
    fn a_file_that_changed_meanwhile_or_is_read_only_is_left_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("settings.json");
        fs::write(&path, "old").expect("it can be written");
        for after in [Some("new".to_owned()), None] {
            let change = FileChange::of(path.clone(), |_| Ok(after)).expect("it can be read");
            fs::write(&path, "theirs").expect("it can be written");
            assert!(change.apply().expect_err("it has changed").to_string().contains("changed by another program"));
            assert_eq!(fs::read_to_string(&path).expect("a file"), "theirs");
            fs::write(&path, "old").expect("it can be written");
        }
        let made = FileChange::of(folder.path().join("none"), |_| Ok(Some("new".into()))).expect("it can be read");
        fs::write(&made.path, "theirs").expect("it can be written");
        assert!(made.apply().is_err(), "it was made meanwhile");
        let change = FileChange::of(path.clone(), |_| Ok(Some("new".into()))).expect("it can be read");
        let mut read_only = fs::metadata(&path).expect("a file").permissions();
        read_only.set_readonly(true);
        fs::set_permissions(&path, read_only).expect("its mode can be set");
        assert!(change.apply().expect_err("it is read-only").to_string().contains("is read-only"));
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 2, "no draft is left");
    }
}
