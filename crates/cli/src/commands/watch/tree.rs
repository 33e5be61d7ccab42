//! The watched folders. On Linux each folder is watched by itself, so that ignored ones, such as build output, cost nothing.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use jiff::Timestamp;
use notify::event::{EventKind, ModifyKind, RenameMode};
use notify::{ErrorKind, RecommendedWatcher, RecursiveMode, Watcher as _};

use super::changes::{Changes, Happening, PathState};
use super::ignored::IgnoreRules;
use crate::output::warn;

/// More folders are refused: watching them would need much memory of the system.
const FOLDERS_MAX: usize = 100_000;
/// So many unreadable folders are named.
const WARNINGS_MAX: usize = 5;
/// Whether the system watches a folder with all that is below it, at no cost per folder.
const IS_RECURSIVE: bool = !cfg!(any(target_os = "linux", target_os = "android"));

pub(super) struct WatchedTree {
    watcher: RecommendedWatcher,
    roots: Vec<WatchedRoot>,
    folders: BTreeSet<PathBuf>,
    unreadable: usize,
}

/// What the user named.
struct WatchedRoot {
    path: PathBuf,
    /// Whether it is a file: then its folder is watched, because editors replace files.
    is_file: bool,
    rules: IgnoreRules,
}

impl WatchedTree {
    pub(super) fn open(paths: &[PathBuf], watcher: notify::Result<RecommendedWatcher>) -> Result<Self> {
        let watcher = watcher.map_err(|error| explained(&error, "the system's watcher"))?;
        let mut tree = Self { watcher, roots: Vec::new(), folders: BTreeSet::new(), unreadable: 0 };
        for path in paths {
            let real = path.canonicalize().with_context(|| format!("{} cannot be watched", path.display()))?;
            let is_file = !real.is_dir();
            let folder = real.parent().filter(|_| is_file).unwrap_or(&real).to_owned();
            tree.roots.push(WatchedRoot { path: real.clone(), is_file, rules: IgnoreRules::new(&folder) });
            match is_file {
                true => tree.add(&folder, RecursiveMode::NonRecursive)?,
                false => drop(tree.add_below(&real)?),
            }
        }
        Ok(tree)
    }

    /// How many folders are watched, and the roots.
    pub(super) fn describe(&self) -> String {
        let roots: Vec<String> = self.roots.iter().map(|root| root.path.display().to_string()).collect();
        match self.folders.len() {
            1 => roots.join(", "),
            count => format!("{} ({count} folders)", roots.join(", ")),
        }
    }

    /// An error if nothing is left to watch. Names each root that is gone.
    pub(super) fn check_roots(&mut self) -> Result<()> {
        let gone = |root: &WatchedRoot| match root.is_file {
            true => root.path.parent().is_some_and(|folder| !folder.exists()),
            false => !root.path.is_dir(),
        };
        for root in self.roots.iter().filter(|root| gone(root)) {
            warn(&format!("{} is gone, and is not watched any more", root.path.display()));
        }
        self.roots.retain(|root| !gone(root));
        if self.roots.is_empty() {
            bail!("everything that was watched is gone");
        }
        Ok(())
    }

    /// Notes what an event of the system says.
    pub(super) fn apply(&mut self, event: notify::Result<notify::Event>, changes: &mut Changes) -> Result<()> {
        let event = match event {
            Ok(event) => event,
            Err(error) => {
                warn(&explained(&error, "a folder").to_string());
                return Ok(());
            }
        };
        let now = (Instant::now(), Timestamp::now());
        if event.need_rescan() {
            changes.note_gap(now.0);
            return self.add_roots();
        }
        match (event.kind, &event.paths[..]) {
            (EventKind::Access(_) | EventKind::Modify(ModifyKind::Metadata(_)), _) => {}
            (EventKind::Modify(ModifyKind::Name(RenameMode::Both)), [from, to]) => {
                match (self.is_watched(from), self.is_watched(to)) {
                    (true, true) => changes.note_rename(from, to, now),
                    (true, false) => changes.note(from, Happening::Touched, now),
                    (false, true) => changes.note(to, Happening::Appeared, now),
                    (false, false) => {}
                }
            }
            (EventKind::Create(_) | EventKind::Modify(ModifyKind::Name(RenameMode::To)), paths) => {
                for path in paths {
                    self.appeared(path, changes, now)?;
                }
            }
            (EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(RenameMode::From)), paths) => {
                for path in paths {
                    self.folders.retain(|folder| !folder.starts_with(path));
                    self.touched(path, changes, now)?;
                }
            }
            (_, paths) => {
                for path in paths {
                    self.touched(path, changes, now)?;
                }
            }
        }
        Ok(())
    }

    fn touched(&mut self, path: &Path, changes: &mut Changes, now: (Instant, Timestamp)) -> Result<()> {
        if self.is_watched(path) {
            changes.note(path, Happening::Touched, now);
        }
        self.reload_rules(path)
    }

    fn appeared(&mut self, path: &Path, changes: &mut Changes, now: (Instant, Timestamp)) -> Result<()> {
        if self.is_watched(path) {
            changes.note(path, Happening::Appeared, now);
            if state(path) == PathState::Folder && !IS_RECURSIVE {
                // Files that were put into it before it was watched.
                for file in self.add_below(path)? {
                    changes.note(&file, Happening::Appeared, now);
                }
            }
        }
        self.reload_rules(path)
    }

    /// Whether a path is to be reported.
    fn is_watched(&mut self, path: &Path) -> bool {
        let path_state = state(path);
        self.roots.iter_mut().any(|root| match root.is_file {
            true => root.path == path,
            // Of a path that is gone, it is not known whether it was a folder.
            false if path == root.path || !path.starts_with(&root.path) => false,
            false if path_state == PathState::Missing => {
                !root.rules.is_ignored(path, false) && !root.rules.is_ignored(path, true)
            }
            false => !root.rules.is_ignored(path, path_state == PathState::Folder),
        })
    }

    /// Reads the rules again if a file with rules has changed, and watches what is not ignored any more.
    fn reload_rules(&mut self, path: &Path) -> Result<()> {
        if path.file_name().is_none_or(|name| name != ".gitignore") {
            return Ok(());
        }
        self.roots.iter_mut().for_each(|root| root.rules.reload());
        self.add_roots()
    }

    fn add_roots(&mut self) -> Result<()> {
        let roots: Vec<PathBuf> =
            self.roots.iter().filter(|root| !root.is_file).map(|root| root.path.clone()).collect();
        roots.iter().filter(|root| root.is_dir()).try_for_each(|root| self.add_below(root).map(drop))
    }

    /// Watches a folder and what is below it, except what git ignores. Symbolic links are not followed, so there are no
    /// loops. Returns the files.
    fn add_below(&mut self, folder: &Path) -> Result<Vec<PathBuf>> {
        if IS_RECURSIVE {
            self.add(folder, RecursiveMode::Recursive)?;
            return Ok(Vec::new());
        }
        let (mut files, mut waiting) = (Vec::new(), vec![folder.to_owned()]);
        while let Some(folder) = waiting.pop() {
            // Watched before it is read, so that nothing in between is missed.
            self.add(&folder, RecursiveMode::NonRecursive)?;
            let entries = match std::fs::read_dir(&folder) {
                Ok(entries) => entries,
                Err(error) => {
                    self.warn_unreadable(&folder, &error);
                    continue;
                }
            };
            for entry in entries.flatten() {
                let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
                let path = entry.path();
                let is_ignored = |root: &mut WatchedRoot| root.is_file || root.rules.is_ignored(&path, is_folder);
                match (self.roots.iter_mut().all(is_ignored), is_folder) {
                    (true, _) => {}
                    (false, true) => waiting.push(path),
                    (false, false) => files.push(path),
                }
            }
        }
        Ok(files)
    }

    fn add(&mut self, folder: &Path, mode: RecursiveMode) -> Result<()> {
        if self.folders.contains(folder) {
            return Ok(());
        }
        if self.folders.len() >= FOLDERS_MAX {
            bail!(
                "there are more than {FOLDERS_MAX} folders; name those that matter, or let .gitignore name the others"
            );
        }
        match self.watcher.watch(folder, mode) {
            Ok(()) => drop(self.folders.insert(folder.to_owned())),
            Err(error) => match error.kind {
                // It may be gone already, or be another user's.
                ErrorKind::PathNotFound => {}
                ErrorKind::Io(ref io) if is_passing(io) => self.warn_unreadable(folder, io),
                _ => return Err(explained(&error, &folder.display().to_string())),
            },
        }
        Ok(())
    }

    fn warn_unreadable(&mut self, folder: &Path, error: &std::io::Error) {
        if error.kind() == std::io::ErrorKind::NotFound {
            return;
        }
        self.unreadable += 1;
        match self.unreadable {
            count if count <= WARNINGS_MAX => {
                warn(&format!("{} is not watched: {error}", folder.display()));
            }
            count if count == WARNINGS_MAX + 1 => warn("more folders cannot be read, and are not watched"),
            _ => {}
        }
    }
}

/// What a path is now; a symbolic link is a file.
pub(super) fn state(path: &Path) -> PathState {
    match path.symlink_metadata() {
        Ok(data) if data.is_dir() => PathState::Folder,
        Ok(_) => PathState::File,
        Err(_) => PathState::Missing,
    }
}

fn is_passing(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::NotFound)
}

/// The error of the watcher, with what the user can do.
fn explained(error: &notify::Error, what: &str) -> anyhow::Error {
    let is_out_of_instances = |error: &std::io::Error| error.raw_os_error() == Some(TOO_MANY_OPEN_FILES);
    match &error.kind {
        ErrorKind::MaxFilesWatch => anyhow::anyhow!(
            "the system watches no more folders (fs.inotify.max_user_watches): name fewer, let .gitignore name build \
             output, or raise the limit with `sudo sysctl fs.inotify.max_user_watches=524288`"
        ),
        ErrorKind::Io(io) if is_out_of_instances(io) => anyhow::anyhow!(
            "too many programs watch folders (fs.inotify.max_user_instances): end some, or raise the limit with `sudo \
             sysctl fs.inotify.max_user_instances=1024`"
        ),
        _ => anyhow::anyhow!("{what} cannot be watched: {error}"),
    }
}

/// EMFILE of Linux and macOS.
const TOO_MANY_OPEN_FILES: i32 = 24;
