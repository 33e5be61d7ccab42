//! Collects what happens to files until it is quiet, and says what came of it: an editor that saves by renaming a temporary
//! file has changed one file, and a file that came and went is no change.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use jiff::Timestamp;

/// More files are not kept by name; the report then has gaps.
const PATHS_MAX: usize = 50_000;
/// Even if it is never quiet, changes are reported after this many quiet periods.
const PATIENCE: u32 = 5;
/// A chain of renames is followed so far.
const RENAMES_MAX: usize = 10;

/// What happened to a path.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Happening {
    /// It is there, and may not have been before.
    Appeared,
    /// It was changed, or is gone.
    Touched,
}

/// The happenings since the last report.
#[derive(Debug, Default)]
pub(super) struct Changes {
    paths: BTreeMap<PathBuf, PathChange>,
    /// Whether the system has dropped some, or there were too many.
    has_gaps: bool,
    since: Option<(Instant, Instant)>,
}

#[derive(Clone, Debug)]
struct PathChange {
    first: Happening,
    renamed_from: Option<PathBuf>,
    at: Timestamp,
}

/// What came of it.
#[derive(Debug, Default, PartialEq)]
pub(super) struct ChangeReport {
    pub(super) files: Vec<FileChange>,
    /// Whether there were more.
    pub(super) has_gaps: bool,
}

/// A changed file.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FileChange {
    pub(super) path: PathBuf,
    pub(super) outcome: ChangeOutcome,
    pub(super) at: Timestamp,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum ChangeOutcome {
    Changed,
    Removed,
    RenamedFrom(PathBuf),
}

/// What a path is now.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum PathState {
    Missing,
    File,
    Folder,
}

impl Changes {
    pub(super) fn note(&mut self, path: &Path, what: Happening, now: (Instant, Timestamp)) {
        self.since = Some((self.since.map_or(now.0, |(first, _)| first), now.0));
        let is_full = self.paths.len() >= PATHS_MAX;
        match self.paths.get_mut(path) {
            Some(known) => known.at = now.1,
            None if is_full => self.has_gaps = true,
            None => {
                let change = PathChange { first: what, renamed_from: None, at: now.1 };
                self.paths.insert(path.to_owned(), change);
            }
        }
    }

    /// Notes that a file or a folder was renamed. What was noted below a folder's new name is part of that.
    pub(super) fn note_rename(&mut self, from: &Path, to: &Path, now: (Instant, Timestamp)) {
        self.paths.retain(|path, _| path == to || !path.starts_with(to));
        self.note(from, Happening::Touched, now);
        self.note(to, Happening::Appeared, now);
        if let Some(change) = self.paths.get_mut(to) {
            change.renamed_from = Some(from.to_owned());
        }
    }

    /// Notes that the system has dropped happenings.
    pub(super) fn note_gap(&mut self, now: Instant) {
        self.since = Some((self.since.map_or(now, |(first, _)| first), now));
        self.has_gaps = true;
    }

    /// After how long they are to be reported; `None` if there are none.
    pub(super) fn due_in(&self, quiet: Duration, now: Instant) -> Option<Duration> {
        let (first, last) = self.since?;
        Some((last + quiet).min(first + quiet * PATIENCE).saturating_duration_since(now))
    }

    /// Takes what came of the happenings.
    pub(super) fn take(&mut self, state: impl Fn(&Path) -> PathState) -> ChangeReport {
        let taken = std::mem::take(self);
        let mut report = ChangeReport { files: Vec::new(), has_gaps: taken.has_gaps };
        let mut renamed = Vec::new();
        for (path, change) in &taken.paths {
            let outcome = match (state(path), taken.origin(path)) {
                (PathState::Missing, _) if change.first == Happening::Appeared => continue,
                (PathState::Missing, _) => ChangeOutcome::Removed,
                (PathState::File | PathState::Folder, Some(from)) if state(&from) == PathState::Missing => {
                    renamed.push(from.clone());
                    ChangeOutcome::RenamedFrom(from)
                }
                (PathState::File, _) => ChangeOutcome::Changed,
                // What is in it was noted by itself.
                (PathState::Folder, _) => continue,
            };
            report.files.push(FileChange { path: path.clone(), outcome, at: change.at });
        }
        report.files.retain(|file| file.outcome != ChangeOutcome::Removed || !renamed.contains(&file.path));
        report
    }

    /// The path that a renamed file had before any of this; none if it is new.
    fn origin(&self, path: &Path) -> Option<PathBuf> {
        let mut origin = self.paths.get(path)?.renamed_from.clone()?;
        for _ in 0..RENAMES_MAX {
            match self.paths.get(&origin).and_then(|change| change.renamed_from.clone()) {
                Some(before) => origin = before,
                None => break,
            }
        }
        // A file that appeared only now, such as the temporary file of an editor, was nothing before.
        let existed = self.paths.get(&origin).is_none_or(|change| change.first == Happening::Touched);
        (existed && origin != path).then_some(origin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> (Instant, Timestamp) {
        (Instant::now(), Timestamp::UNIX_EPOCH)
    }

    fn taken(changes: &mut Changes, there: &[&str]) -> Vec<String> {
        let state = |path: &Path| match there.iter().any(|one| Path::new(one) == path) {
            true if path.to_string_lossy().ends_with('/') || path.extension().is_none() => PathState::Folder,
            true => PathState::File,
            false => PathState::Missing,
        };
        let files = changes.take(state).files.into_iter();
        let shown = |file: FileChange| match file.outcome {
            ChangeOutcome::Changed => file.path.display().to_string(),
            ChangeOutcome::Removed => format!("-{}", file.path.display()),
            ChangeOutcome::RenamedFrom(from) => format!("{} > {}", from.display(), file.path.display()),
        };
        files.map(shown).collect()
    }

    #[test]
    fn an_atomic_save_is_one_change() {
        let mut changes = Changes::default();
        changes.note(Path::new("a.rs.tmp"), Happening::Appeared, now());
        changes.note(Path::new("a.rs.tmp"), Happening::Touched, now());
        changes.note_rename(Path::new("a.rs.tmp"), Path::new("a.rs"), now());
        assert_eq!(taken(&mut changes, &["a.rs"]), ["a.rs"]);
        // The way of vim: the old file becomes a backup, which is removed at the end.
        changes.note_rename(Path::new("a.rs"), Path::new("a.bak"), now());
        changes.note(Path::new("a.rs"), Happening::Appeared, now());
        changes.note(Path::new("a.bak"), Happening::Touched, now());
        assert_eq!(taken(&mut changes, &["a.rs"]), ["a.rs"]);
    }

    #[test]
    fn a_rename_is_one_change_also_over_several_steps() {
        let mut changes = Changes::default();
        changes.note_rename(Path::new("a.rs"), Path::new("b.rs"), now());
        changes.note_rename(Path::new("b.rs"), Path::new("c.rs"), now());
        assert_eq!(taken(&mut changes, &["c.rs"]), ["a.rs > c.rs"]);
        changes.note_rename(Path::new("a.rs"), Path::new("b.rs"), now());
        changes.note_rename(Path::new("b.rs"), Path::new("a.rs"), now());
        assert_eq!(taken(&mut changes, &["a.rs"]), ["a.rs"]);
        changes.note(Path::new("new/x.rs"), Happening::Appeared, now());
        changes.note_rename(Path::new("old"), Path::new("new"), now());
        assert_eq!(taken(&mut changes, &["new", "new/x.rs"]), ["old > new"]);
    }

    #[test]
    fn what_came_and_went_is_no_change_and_what_is_gone_is_one() {
        let mut changes = Changes::default();
        changes.note(Path::new("tmp.x"), Happening::Appeared, now());
        changes.note(Path::new("tmp.x"), Happening::Touched, now());
        changes.note(Path::new("old.rs"), Happening::Touched, now());
        changes.note(Path::new("folder"), Happening::Appeared, now());
        assert_eq!(taken(&mut changes, &["folder"]), ["-old.rs"]);
        assert_eq!(changes.due_in(Duration::from_secs(1), Instant::now()), None);
    }

    #[test]
    fn a_flood_is_bounded_and_due_although_it_is_never_quiet() {
        let (mut changes, start) = (Changes::default(), Instant::now());
        for at in 0..PATHS_MAX + 5 {
            let later = start + Duration::from_micros(at as u64 * 200);
            changes.note(Path::new(&format!("{at}.rs")), Happening::Touched, (later, Timestamp::UNIX_EPOCH));
        }
        let quiet = Duration::from_secs(1);
        assert_eq!(changes.due_in(quiet, start + Duration::from_secs(2)), Some(Duration::from_secs(3)));
        assert_eq!(changes.due_in(quiet, start + Duration::from_secs(9)), Some(Duration::ZERO));
        let report = changes.take(|_| PathState::File);
        assert_eq!((report.files.len(), report.has_gaps), (PATHS_MAX, true));
    }
}
