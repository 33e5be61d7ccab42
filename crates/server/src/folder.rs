//! The folder of the operator's own subscribers: read as a whole, watched, and read again when it changes.
//!
//! An invalid file is reported and the others load. If an edit makes a file invalid, its last valid version stays in force
//! until the file is corrected or removed: a typing error must not stop notifications.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bellwire_core::subscriber::{FileError, Subscriber, SubscriberFile, Subscribers};
use notify::{RecursiveMode, Watcher};
use tokio::sync::mpsc;

/// Templates in deeper folders are not found; this also bounds loops of symbolic links.
const DEPTH_MAX: usize = 8;
/// Editors write a file in several steps; the folder is read after this long without a change.
const QUIET_PERIOD: Duration = Duration::from_millis(100);
/// The poll interval if the operating system cannot watch the folder.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// A folder and the valid subscribers of the last reading, by file.
pub struct SubscriberFolder {
    dir: PathBuf,
    good: BTreeMap<String, Arc<Subscriber>>,
}

/// The problems found by reading a folder.
#[derive(Debug, Default)]
pub struct Read {
    /// The invalid or unreadable files, each with its error.
    pub errors: Vec<FileError>,
    /// Those of them whose last valid version stays in force.
    pub kept: Vec<String>,
}

/// The watcher, which must be kept alive, and the receiver of its change signals.
pub(crate) type FolderWatch = (Box<dyn Watcher + Send>, mpsc::Receiver<()>);

/// The files of a folder, not yet parsed.
#[derive(Debug, Default)]
pub struct FolderFiles {
    /// Every `*.toml`, in name order.
    pub subscribers: Vec<SubscriberFile>,
    /// Every `*.j2` below, by its path relative to the folder.
    pub templates: BTreeMap<String, String>,
    /// Files that could not be read.
    pub unreadable: Vec<FileError>,
}

impl SubscriberFolder {
    /// A folder that has not been read yet.
    pub fn new(dir: &Path) -> Self {
        Self { dir: dir.to_owned(), good: BTreeMap::new() }
    }

    /// Reads the folder and keeps the valid subscribers. Fails only if the folder itself cannot be read; then the
    /// subscribers of the last reading stay.
    pub fn read(&mut self) -> io::Result<Read> {
        let files = FolderFiles::read(&self.dir)?;
        let mut read = Read { errors: files.unreadable, kept: Vec::new() };
        let mut good: BTreeMap<String, Arc<Subscriber>> = BTreeMap::new();
        for file in &files.subscribers {
            let parsed = file.parse(&|path| files.templates.get(path).cloned());
            let twin = |one: &Arc<Subscriber>| good.iter().find(|(_, other)| other.id == one.id).map(|(path, _)| path);
            let parsed = parsed.and_then(|one| match twin(&one) {
                None => Ok(one),
                Some(first) => Err(FileError {
                    path: file.path.clone(),
                    line: 0,
                    message: format!("subscriber.id '{}' is already used by {first}", one.id),
                }),
            });
            match parsed {
                Ok(one) => drop(good.insert(file.path.clone(), one)),
                Err(error) => read.errors.push(error),
            }
        }
        for error in &read.errors {
            if let Some(last) = self.good.get(&error.path) {
                good.insert(error.path.clone(), last.clone());
                read.kept.push(error.path.clone());
            }
        }
        self.good = good;
        Ok(read)
    }

    /// The bundled subscribers, then the folder's, which override those with the same id.
    pub fn subscribers(&self) -> impl Iterator<Item = Arc<Subscriber>> {
        let bundled: Vec<_> = Subscribers::bundled().iter().cloned().collect();
        bundled.into_iter().chain(self.good.values().cloned())
    }

    /// Starts to watch the folder.
    pub(crate) fn watch(&self) -> FolderWatch {
        let (changed, changes) = mpsc::channel(1);
        let notify_change = move |event: notify::Result<notify::Event>| {
            // Reading a file is no change. If the channel is full, the pending signal covers this change.
            if event.is_ok_and(|event| !event.kind.is_access()) {
                let _ = changed.try_send(());
            }
        };
        let watching = notify::recommended_watcher(notify_change.clone()).and_then(|mut watcher| {
            watcher.watch(&self.dir, RecursiveMode::Recursive)?;
            Ok(watcher)
        });
        match watching {
            Ok(watcher) => (Box::new(watcher), changes),
            Err(error) => {
                tracing::warn!(%error, folder = %self.dir.display(), "the folder is looked at every two seconds instead");
                let polling = notify::Config::default().with_poll_interval(POLL_INTERVAL).with_compare_contents(true);
                let mut watcher = notify::PollWatcher::new(notify_change, polling)
                    .expect("polling needs no support of the operating system");
                if let Err(error) = watcher.watch(&self.dir, RecursiveMode::Recursive) {
                    tracing::error!(%error, folder = %self.dir.display(), "changes of the folder are not noticed");
                }
                (Box::new(watcher), changes)
            }
        }
    }

    /// Waits until there was no change for [`QUIET_PERIOD`].
    pub(crate) async fn settled(changes: &mut mpsc::Receiver<()>) {
        while let Ok(Some(())) = tokio::time::timeout(QUIET_PERIOD, changes.recv()).await {}
    }
}

impl FolderFiles {
    /// Reads every file of a folder. A file that cannot be read goes to `unreadable`.
    pub fn read(dir: &Path) -> io::Result<Self> {
        let mut files = Self::default();
        for path in entries(dir)?.into_iter().filter(|path| path.extension().is_some_and(|ending| ending == "toml")) {
            if let Some(text) = files.text_of(&path) {
                files.subscribers.push(SubscriberFile { path: path.display().to_string(), text });
            }
        }
        files.read_templates(dir, dir, 0)?;
        Ok(files)
    }

    fn read_templates(&mut self, root: &Path, dir: &Path, depth: usize) -> io::Result<()> {
        for path in entries(dir)? {
            if path.is_dir() && depth < DEPTH_MAX {
                self.read_templates(root, &path, depth + 1)?;
            } else if path.extension().is_some_and(|ending| ending == "j2")
                && let Some(text) = self.text_of(&path)
            {
                let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().replace('\\', "/");
                self.templates.insert(name, text);
            }
        }
        Ok(())
    }

    fn text_of(&mut self, path: &Path) -> Option<String> {
        let unreadable = |error: io::Error| FileError {
            path: path.display().to_string(),
            line: 0,
            message: format!("cannot be read: {error}"),
        };
        std::fs::read_to_string(path).map_err(|error| self.unreadable.push(unreadable(error))).ok()
    }
}

fn entries(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = std::fs::read_dir(dir)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test says what it expects by unwrapping it")]
mod tests {
    use super::*;

    fn file(id: &str, window: &str) -> String {
        format!(
            "[subscriber]\nid = \"{id}\"\nname = \"x\"\ndescription = \"x\"\nversion = \"1.0.0\"\n\
             [events]\ntypes = [\"ci.build.done\"]\n[batching]\nwindow_ms = {window}\n\
             [output]\npriority = \"normal\"\ninject_at = \"after_tool\"\ntemplate = \"ci.j2\"\n"
        )
    }

    #[test]
    fn a_broken_edit_keeps_the_last_good_version_until_the_file_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
        write("ci.j2", "{{ count }}");
        write("one.toml", &file("ci_done", "0"));
        write("two.toml", "nonsense");
        let mut folder = SubscriberFolder::new(dir.path());
        let window = |folder: &SubscriberFolder| {
            Subscribers::new(folder.subscribers()).find("ci_done").map(|one| one.batching.window_ms)
        };
        let read = folder.read().unwrap();
        assert_eq!((read.errors.len(), read.kept.len(), window(&folder)), (1, 0, Some(0)));

        write("one.toml", &file("ci_done", "99999"));
        let read = folder.read().unwrap();
        assert_eq!((read.errors.len(), read.kept.len(), window(&folder)), (2, 1, Some(0)));

        write("one.toml", &file("ci_done", "500"));
        assert_eq!((folder.read().unwrap().errors.len(), window(&folder)), (1, Some(500)));

        write("three.toml", &file("ci_done", "700"));
        let read = folder.read().unwrap();
        assert!(read.errors[0].message.contains("already used by"), "{read:?}");

        std::fs::remove_file(dir.path().join("three.toml")).unwrap();
        std::fs::remove_file(dir.path().join("one.toml")).unwrap();
        folder.read().unwrap();
        assert_eq!(window(&folder), None);
    }
}
