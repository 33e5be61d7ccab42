//! What hooks of a session note between their runs, as files: answers that may not have reached the model, whether the model
//! knows its boundary, when the harness last asked, and which process has which session.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::client::segment;
use crate::hosts::{Host, make_private_folder, state_folder};

/// A note that is older than this belongs to a hook that was killed: no hook runs so long.
const LEFT_OVER_AFTER: Duration = Duration::from_secs(1);
/// As many as one injection takes.
const UNSEEN_MAX: usize = bellwire_core::Inject::UNSEEN_MAX;
/// In bytes, of a file name.
const NAME_MAX: usize = 150;
/// Notes of sessions that were not used for so long are deleted.
const KEPT: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// The notes of one agent of one session.
pub(crate) struct Notes {
    folder: PathBuf,
}

/// A call whose answer has not been written yet.
pub(crate) struct PendingCall {
    path: PathBuf,
}

/// An earlier call whose answer may not have reached the model.
pub(crate) struct LeftOver {
    pub(crate) call_id: String,
    path: PathBuf,
}

impl Notes {
    /// The notes of an agent; `None` if there is no folder for them.
    pub(crate) fn of(conversation: &str, agent: &str) -> Option<Self> {
        Self::below(&state_folder()?, conversation, agent)
    }

    fn below(state: &Path, conversation: &str, agent: &str) -> Option<Self> {
        let folder = state.join("sessions").join(file_name(conversation)).join(file_name(agent));
        make_private_folder(&folder).ok()?;
        Some(Self { folder })
    }

    /// Notes a call before the hub is asked; `None` if another hook has the same call.
    pub(crate) fn begin(&self, call_id: &str) -> Option<PendingCall> {
        let path = self.folder.join(format!("call-{}", file_name(call_id)));
        let mut file = fs::OpenOptions::new().write(true).create_new(true).open(&path).ok()?;
        file.write_all(call_id.as_bytes()).ok()?;
        Some(PendingCall { path })
    }

    /// The calls of hooks that were killed before they had written their answer.
    pub(crate) fn left_over(&self) -> Vec<LeftOver> {
        let old = |path: &Path| {
            let modified = fs::metadata(path).and_then(|file| file.modified()).ok()?;
            SystemTime::now().duration_since(modified).ok().filter(|age| *age > LEFT_OVER_AFTER)
        };
        let calls = entries(&self.folder).filter(|(name, path)| name.starts_with("call-") && old(path).is_some());
        let read = |(_, path): (String, PathBuf)| {
            let call_id = fs::read_to_string(&path).ok().filter(|call_id| !call_id.is_empty())?;
            Some(LeftOver { call_id, path })
        };
        calls.filter_map(read).take(UNSEEN_MAX).collect()
    }

    /// Whether the model was told its boundary.
    pub(crate) fn is_introduced(&self) -> bool {
        self.folder.join("introduced").exists()
    }

    pub(crate) fn set_introduced(&self, introduced: bool) {
        let path = self.folder.join("introduced");
        // Not being able to note it means that the model is told once more.
        let _ = if introduced { fs::write(path, "") } else { fs::remove_file(path) };
    }
}

impl PendingCall {
    /// The answer has reached the harness, or nothing was asked.
    pub(crate) fn done(self) {
        let _ = fs::remove_file(self.path);
    }
}

impl LeftOver {
    /// The hub has been told.
    pub(crate) fn done(self) {
        let _ = fs::remove_file(self.path);
    }
}

/// When a hook of this harness last asked its hub, and got an answer.
pub(crate) fn last_asked(host: Host) -> Option<SystemTime> {
    fs::metadata(state_folder()?.join(format!("asked-{}", host.name()))).and_then(|file| file.modified()).ok()
}

pub(super) fn note_asked(host: Host) {
    if let Some(folder) = state_folder() {
        let _ = fs::write(folder.join(format!("asked-{}", host.name())), "");
    }
}

/// Deletes the notes of sessions that were not used for a month.
pub(super) fn forget_old_sessions() {
    let Some(state) = state_folder() else { return };
    for (_, path) in entries(&state.join("sessions")) {
        let modified = fs::metadata(&path).and_then(|folder| folder.modified()).ok();
        let age = modified.and_then(|modified| SystemTime::now().duration_since(modified).ok());
        if age.is_some_and(|age| age > KEPT) {
            let _ = fs::remove_dir_all(path);
        }
    }
}

/// Marks a session, or every session, as one that hears nothing; or ends that.
pub(crate) fn set_paused(conversation: Option<&str>, paused: bool) -> std::io::Result<bool> {
    let Some(state) = state_folder() else {
        return Err(std::io::Error::other("there is no home folder, so no folder for notes"));
    };
    let folder = state.join("paused");
    make_private_folder(&folder)?;
    let path = folder.join(conversation.map_or_else(|| "all".to_owned(), pause_name));
    let before = path.exists();
    match (paused, before) {
        (true, false) => fs::write(path, conversation.unwrap_or_default())?,
        (false, true) => fs::remove_file(path)?,
        _ => {}
    }
    Ok(before != paused)
}

pub(crate) fn is_paused(conversation: &str) -> bool {
    let Some(folder) = state_folder().map(|state| state.join("paused")) else { return false };
    folder.join("all").exists() || folder.join(pause_name(conversation)).exists()
}

fn pause_name(conversation: &str) -> String {
    format!("one-{}", file_name(conversation))
}

fn entries(folder: &Path) -> impl Iterator<Item = (String, PathBuf)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path()))
}

/// A text as the name of a file: different texts have different names, and none leaves the folder.
pub(crate) fn file_name(text: &str) -> String {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    let name = segment(text);
    if name.len() <= NAME_MAX && !name.starts_with('.') {
        return name;
    }
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    let short: String = name.trim_start_matches('.').chars().take(NAME_MAX).collect();
    format!("{short}~{:016x}", hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_whose_hook_was_killed_is_left_over_after_a_second_and_a_running_one_is_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let notes = Notes::below(folder.path(), "claude-code:s1", "main").expect("a folder");
        let killed = notes.begin("toolu_1").expect("a new call");
        let running = notes.begin("../../escape").expect("a new call");
        let past = SystemTime::now() - Duration::from_secs(2);
        let file = fs::File::options().write(true).open(&killed.path).expect("the note");
        file.set_modified(past).expect("its time can be set");
        assert!(notes.begin("toolu_1").is_none(), "two hooks for one call: one of them is silent");
        let left: Vec<String> = notes.left_over().into_iter().map(|left| left.call_id).collect();
        assert_eq!(left, ["toolu_1"]);
        running.done();
        notes.left_over().into_iter().for_each(LeftOver::done);
        assert!(notes.left_over().is_empty());
        assert_eq!(entries(&notes.folder).count(), 0);
    }

    #[test]
    fn names_of_files_stay_in_their_folder_and_differ() {
        for hostile in ["..", ".", "../../etc", "a/b", "", &"x".repeat(5000)] {
            let name = file_name(hostile);
            assert!(!name.contains('/') && !name.starts_with('.') && name.len() < 200, "{name}");
        }
        assert_ne!(file_name(&"x".repeat(5000)), file_name(&"x".repeat(5001)));
        assert_ne!(file_name(".."), file_name("."));
    }
}
