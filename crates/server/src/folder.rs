//! The folder of the operator's own subscribers: read as a whole, watched, and read again when it changes.
//!
//! An invalid file is reported and the others load. If an edit makes a file or its template invalid, the last valid
//! version stays in use until they are corrected or the file is removed: a typing error must not stop notifications.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bellwire_core::subscriber::{FILE_MAX, FileError, Subscriber, SubscriberFile, SubscriberId, Subscribers};
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
    outdated: BTreeMap<SubscriberId, String>,
}

/// The invalid files that were found by reading a folder.
#[derive(Debug, Default)]
pub struct FolderReport {
    /// In the order of their names.
    pub problems: Vec<FileProblem>,
}

/// A subscriber file that is invalid or names an invalid template.
#[derive(Debug)]
pub struct FileProblem {
    /// What is wrong, in the file or in its template.
    pub error: FileError,
    /// Whether the file's last valid version stays in use.
    pub kept: bool,
}

/// The watcher, which must be kept alive, and the receiver of its change signals.
pub(crate) type FolderWatch = (Box<dyn Watcher + Send>, mpsc::Receiver<()>);

/// The files of a folder, not yet parsed.
#[derive(Debug, Default)]
pub struct FolderFiles {
    /// Every `*.toml` by its path, in name order; or why it cannot be read.
    subscribers: Vec<(String, FileText)>,
    /// Every `*.j2` below, by its path relative to the folder; or why it cannot be read.
    templates: BTreeMap<String, FileText>,
}

/// The text of a file, or why it cannot be read.
type FileText = Result<String, String>;

/// A subscriber file's path and the subscriber, or what is wrong with the file or its template.
pub type ParsedFile = (String, Result<Arc<Subscriber>, FileError>);

impl SubscriberFolder {
    /// A folder that has not been read yet.
    pub fn new(dir: &Path) -> Self {
        Self { dir: dir.to_owned(), good: BTreeMap::new(), outdated: BTreeMap::new() }
    }

    /// Reads the folder and keeps the valid subscribers. Fails only if the folder itself cannot be read; then the
    /// subscribers of the last reading stay.
    pub fn read(&mut self) -> io::Result<FolderReport> {
        let (mut good, mut broken) = (BTreeMap::new(), Vec::new());
        for (path, parsed) in FolderFiles::read(&self.dir)?.parse() {
            match parsed {
                Ok(one) => drop(good.insert(path, one)),
                Err(error) => broken.push((path, error)),
            }
        }
        let mut report = FolderReport::default();
        self.outdated.clear();
        for (path, error) in broken {
            let is_used = |id: &SubscriberId| good.values().any(|one| one.id == *id);
            let last = self.good.remove(&path).filter(|last| !is_used(&last.id));
            report.problems.push(FileProblem { kept: last.is_some(), error: error.clone() });
            if let Some(last) = last {
                self.outdated.insert(last.id.clone(), self.without_folder(&error));
                good.insert(path, last);
            }
        }
        self.good = good;
        Ok(report)
    }

    /// The error without the path of the folder, which only the operator needs to know.
    fn without_folder(&self, error: &FileError) -> String {
        error.to_string().replace(&format!("{}{}", self.dir.display(), std::path::MAIN_SEPARATOR), "")
    }

    /// Why files could not be loaded again whose last valid version stays in use, by subscriber.
    pub fn outdated(&self) -> &BTreeMap<SubscriberId, String> {
        &self.outdated
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
    /// Reads every file of a folder. Fails only if a folder cannot be read.
    pub fn read(dir: &Path) -> io::Result<Self> {
        let mut files = Self::default();
        for path in entries(dir)?.into_iter().filter(|path| path.extension().is_some_and(|ending| ending == "toml")) {
            files.subscribers.push((path.display().to_string(), text_of(&path)));
        }
        files.read_templates(dir, dir, 0)?;
        Ok(files)
    }

    /// Parses every subscriber file, in name order.
    pub fn parse(self) -> Vec<ParsedFile> {
        let Self { subscribers, templates } = self;
        let find = |path: &str| templates.get(path).cloned().unwrap_or_else(|| Err("does not exist".to_owned()));
        let texts = subscribers.iter().filter_map(|(path, text)| Some((path, text.as_ref().ok()?)));
        let files: Vec<_> =
            texts.map(|(path, text)| SubscriberFile { path: path.clone(), text: text.clone() }).collect();
        let mut parsed = Subscribers::parse_all(&files, &find).into_iter();
        let of_file = |(path, text): (String, FileText)| {
            let result = match text {
                Ok(_) => parsed.next().expect("every file that can be read is parsed"),
                Err(message) => Err(FileError { path: path.clone(), line: 0, message }),
            };
            (path, result)
        };
        subscribers.into_iter().map(of_file).collect()
    }

    fn read_templates(&mut self, root: &Path, dir: &Path, depth: usize) -> io::Result<()> {
        for path in entries(dir)? {
            if path.is_dir() && depth < DEPTH_MAX {
                self.read_templates(root, &path, depth + 1)?;
            } else if path.extension().is_some_and(|ending| ending == "j2") {
                let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().replace('\\', "/");
                self.templates.insert(name, text_of(&path));
            }
        }
        Ok(())
    }
}

/// The text of a file within [`FILE_MAX`]. A pipe or a device is not opened: reading it might never end.
fn text_of(path: &Path) -> FileText {
    let unreadable = |error: io::Error| format!("cannot be read: {error}");
    let metadata = std::fs::metadata(path).map_err(unreadable)?;
    if !metadata.is_file() {
        return Err("is not a file".to_owned());
    }
    if metadata.len() > FILE_MAX as u64 {
        return Err(format!("has {} bytes; at most {FILE_MAX} are allowed", metadata.len()));
    }
    std::fs::read_to_string(path).map_err(unreadable)
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

    fn folder_with_one_file() -> (tempfile::TempDir, SubscriberFolder) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("ci.j2"), "{{ count }}").unwrap();
        std::fs::write(dir.path().join("one.toml"), file("ci_done", "0")).unwrap();
        let mut folder = SubscriberFolder::new(dir.path());
        assert!(folder.read().unwrap().problems.is_empty());
        (dir, folder)
    }

    fn window(folder: &SubscriberFolder) -> Option<u64> {
        Subscribers::new(folder.subscribers()).find("ci_done").map(|one| one.batching.window_ms)
    }

    fn kept(report: &FolderReport) -> Vec<bool> {
        report.problems.iter().map(|problem| problem.kept).collect()
    }

    #[test]
    fn a_broken_edit_keeps_the_last_good_version_until_the_file_is_gone() {
        let (dir, mut folder) = folder_with_one_file();
        let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
        write("two.toml", "nonsense");
        assert_eq!((kept(&folder.read().unwrap()), window(&folder)), (vec![false], Some(0)));

        write("one.toml", &file("ci_done", "99999"));
        assert_eq!((kept(&folder.read().unwrap()), window(&folder)), (vec![true, false], Some(0)));
        let outdated: Vec<_> = folder.outdated().iter().map(|(id, why)| format!("{id}: {why}")).collect();
        assert_eq!(outdated, ["ci_done: one.toml:9: batching.window_ms is 99999; 0 to 10000 is allowed"]);

        write("one.toml", &file("ci_done", "500"));
        assert_eq!((kept(&folder.read().unwrap()), window(&folder)), (vec![false], Some(500)));
        assert!(folder.outdated().is_empty());

        write("three.toml", &file("ci_done", "700"));
        let report = folder.read().unwrap();
        assert!(report.problems[0].error.message.contains("already used by"), "{report:?}");
        assert_eq!(kept(&report), [false, false]);

        std::fs::remove_file(dir.path().join("three.toml")).unwrap();
        std::fs::remove_file(dir.path().join("one.toml")).unwrap();
        folder.read().unwrap();
        assert_eq!(window(&folder), None);
    }

    #[test]
    fn a_broken_template_keeps_the_last_good_version_whatever_is_wrong_with_it() {
        let (dir, mut folder) = folder_with_one_file();
        let template = dir.path().join("ci.j2");
        let mut said = |what: &str| {
            let report = folder.read().unwrap();
            assert_eq!((kept(&report), window(&folder)), (vec![true], Some(0)), "{what}");
            folder.outdated().values().cloned().collect::<String>()
        };
        std::fs::write(&template, "{% for e in events %}").unwrap();
        assert!(said("invalid").starts_with("ci.j2:1: syntax error"));
        std::fs::write(&template, "x".repeat(20_000)).unwrap();
        assert!(said("too large to compile").contains("ci.j2: has 20000 bytes"));
        std::fs::write(&template, "x".repeat(70_000)).unwrap();
        assert!(said("too large to read").contains("output.template 'ci.j2' has 70000 bytes"));
        std::fs::write(&template, [0xff, 0xfe]).unwrap();
        assert!(said("not text").contains("output.template 'ci.j2' cannot be read"));
        std::fs::remove_file(&template).unwrap();
        assert!(said("missing").contains("output.template 'ci.j2' does not exist"));
        std::fs::create_dir(&template).unwrap();
        assert!(said("a folder").contains("output.template 'ci.j2' does not exist"));

        std::fs::remove_dir(&template).unwrap();
        std::fs::write(&template, "{{ count }}").unwrap();
        assert!(folder.read().unwrap().problems.is_empty());
        assert!(folder.outdated().is_empty());
    }

    #[test]
    fn a_valid_file_with_the_same_id_ends_an_outdated_version() {
        let (dir, mut folder) = folder_with_one_file();
        std::fs::write(dir.path().join("one.toml"), "nonsense").unwrap();
        std::fs::write(dir.path().join("two.toml"), file("ci_done", "700")).unwrap();
        assert_eq!((kept(&folder.read().unwrap()), window(&folder)), (vec![false], Some(700)));
    }
}
