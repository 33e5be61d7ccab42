//! What hooks of a session note between their runs, as files: answers that may not have reached the model, whether the model
//! knows its boundary, when the harness last asked, and which process has which session.

use std::fs;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use bellwire_core::Inject;

use crate::client::segment;
use crate::hosts::{Host, make_private_folder, state_folder};

/// A note that is older than this belongs to a hook that was killed, unless a running hook has locked it.
const LEFT_OVER_AFTER: Duration = Duration::from_secs(1);
/// The most notes of killed hooks of one agent; beyond that, the oldest are deleted. They grow in number while a hub accepts
/// connections and does not answer.
const LEFT_OVER_MAX: usize = 100;
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
    /// The note, locked for as long as this process lives. `None` if it cannot be written, as on a full disk.
    note: Option<(PathBuf, fs::File)>,
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
        let mut file = match fs::OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return None,
            Err(_) => return Some(PendingCall { note: None }),
        };
        let written = file.try_lock().map_err(std::io::Error::from).and_then(|()| file.write_all(call_id.as_bytes()));
        let call = PendingCall { note: Some((path, file)) };
        if written.is_err() {
            call.done();
            return Some(PendingCall { note: None });
        }
        Some(call)
    }

    /// The calls of hooks that were killed before they had written their answer, oldest first, as many as one injection takes.
    pub(crate) fn left_over(&self) -> Vec<LeftOver> {
        let calls = entries(&self.folder).filter(|(name, _)| name.starts_with("call-"));
        let mut old: Vec<(SystemTime, PathBuf)> =
            calls.filter_map(|(_, path)| Some((old_since(&path)?, path))).collect();
        old.sort();
        let excess = old.len().saturating_sub(LEFT_OVER_MAX);
        old.drain(..excess).for_each(|(_, path)| drop(fs::remove_file(path)));
        let read = |(_, path): (SystemTime, PathBuf)| {
            let call_id = fs::read_to_string(&path).unwrap_or_default();
            if !is_call_id(&call_id) {
                // The hub would refuse it, and everything with it.
                let _ = fs::remove_file(&path);
                return None;
            }
            Some(LeftOver { call_id, path })
        };
        old.into_iter().filter_map(read).take(Inject::UNSEEN_MAX).collect()
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
    /// The answer has reached the harness, or there is none.
    pub(crate) fn done(self) {
        if let Some((path, _)) = self.note {
            let _ = fs::remove_file(path);
        }
    }
}

/// Whether the hub accepts this text as the id of a call.
pub(super) fn is_call_id(text: &str) -> bool {
    !text.is_empty() && text.chars().count() <= Inject::CALL_ID_MAX && !text.contains(char::is_control)
}

/// When a note was written, if that is some time ago and its hook runs no more. A time in the future is that of a clock that
/// was set back.
fn old_since(path: &Path) -> Option<SystemTime> {
    let modified = fs::metadata(path).and_then(|file| file.modified()).ok()?;
    let is_recent = SystemTime::now().duration_since(modified).is_ok_and(|age| age <= LEFT_OVER_AFTER);
    let is_locked =
        || fs::File::open(path).is_ok_and(|file| matches!(file.try_lock(), Err(fs::TryLockError::WouldBlock)));
    (!is_recent && !is_locked()).then_some(modified)
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
    if let Some(state) = state_folder() {
        ["sessions", "woken"].iter().for_each(|name| forget_old(&state.join(name)));
    }
}

fn forget_old(sessions: &Path) {
    let modified = |path: &Path| fs::metadata(path).and_then(|folder| folder.modified()).ok();
    for (_, session) in entries(sessions) {
        // The folder of an agent changes with each of its calls, that of the session does not.
        let agents = entries(&session).filter_map(|(_, agent)| modified(&agent));
        let age = agents.chain(modified(&session)).max().and_then(|used| SystemTime::now().duration_since(used).ok());
        if age.is_some_and(|age| age > KEPT) {
            let _ = fs::remove_dir_all(session);
        }
    }
}

/// Marks a session, or every session, as one that hears nothing; or ends that. Without a conversation the end is that of each
/// session's own mark too. Returns whether anything changed.
pub(crate) fn set_paused(conversation: Option<&str>, paused: bool) -> std::io::Result<bool> {
    let Some(state) = state_folder() else {
        return Err(std::io::Error::other("there is no home folder, so no folder for notes"));
    };
    let folder = state.join("paused");
    make_private_folder(&folder)?;
    if conversation.is_none() && !paused {
        let marks: Vec<_> = entries(&folder).collect();
        marks.iter().try_for_each(|(_, path)| fs::remove_file(path))?;
        return Ok(!marks.is_empty());
    }
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

fn entries(folder: &Path) -> impl Iterator<Item = (String, PathBuf)> + use<> {
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

    fn set_age(path: &Path, age: Duration) {
        let file = fs::File::open(path).expect("it is there");
        file.set_modified(SystemTime::now() - age).expect("its time can be set");
    }

    fn left_over(notes: &Notes) -> Vec<String> {
        notes.left_over().into_iter().map(|left| left.call_id).collect()
    }

    /// A note as a killed hook leaves it.
    fn kill(call: PendingCall, age: Duration) -> PathBuf {
        let (path, file) = call.note.expect("a note");
        drop(file);
        set_age(&path, age);
        path
    }

    const OLD: Duration = Duration::from_secs(2);

    #[test]
    fn a_call_whose_hook_was_killed_is_left_over_after_a_second_and_a_running_one_is_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let notes = Notes::below(folder.path(), "claude-code:s1", "main").expect("a folder");
        kill(notes.begin("toolu_1").expect("a new call"), OLD);
        kill(notes.begin("../../escape").expect("a new call"), Duration::ZERO);
        let slow = notes.begin("toolu_2").expect("a new call");
        set_age(&slow.note.as_ref().expect("a note").0, OLD);
        assert!(notes.begin("toolu_1").is_none(), "two hooks for one call: one of them is silent");
        assert_eq!(left_over(&notes), ["toolu_1"], "not the recent one, and not the one that still runs");
        slow.done();
        notes.left_over().into_iter().for_each(LeftOver::done);
        assert!(notes.left_over().is_empty());
        assert_eq!(entries(&notes.folder).count(), 1);
    }

    #[test]
    fn notes_stay_few_and_none_of_them_can_spoil_a_request() {
        let folder = tempfile::tempdir().expect("a folder");
        let notes = Notes::below(folder.path(), "claude-code:s1", "main").expect("a folder");
        for number in 0..150 {
            kill(notes.begin(&format!("c{number}")).expect("a new call"), Duration::from_secs(1000 - number));
        }
        assert_eq!(left_over(&notes).len(), Inject::UNSEEN_MAX);
        assert_eq!((left_over(&notes)[0].as_str(), entries(&notes.folder).count()), ("c50", LEFT_OVER_MAX));
        for (_, path) in entries(&notes.folder) {
            fs::remove_file(path).expect("it can be removed");
        }
        for (number, strange) in ["", "a\nb", &"x".repeat(300)].into_iter().enumerate() {
            let path = kill(notes.begin(&format!("c{number}")).expect("a new call"), Duration::ZERO);
            fs::write(&path, strange).expect("it can be written");
            set_age(&path, OLD);
        }
        assert_eq!((left_over(&notes), entries(&notes.folder).count()), (Vec::new(), 0));
    }

    #[test]
    fn a_clock_that_is_set_back_hides_no_note() {
        let folder = tempfile::tempdir().expect("a folder");
        let notes = Notes::below(folder.path(), "claude-code:s1", "main").expect("a folder");
        let path = kill(notes.begin("toolu_1").expect("a new call"), OLD);
        let future = SystemTime::now() + Duration::from_secs(3600);
        fs::File::open(&path).and_then(|file| file.set_modified(future)).expect("its time can be set");
        assert_eq!(left_over(&notes), ["toolu_1"]);
    }

    #[test]
    fn a_call_that_cannot_be_noted_is_made_all_the_same() {
        let folder = tempfile::tempdir().expect("a folder");
        let notes = Notes::below(folder.path(), "claude-code:s1", "main").expect("a folder");
        fs::remove_dir(&notes.folder).expect("it is empty");
        assert!(notes.begin("toolu_1").is_some_and(|call| call.note.is_none()));
    }

    #[test]
    fn the_notes_of_a_session_are_kept_for_as_long_as_an_agent_of_it_calls() {
        let folder = tempfile::tempdir().expect("a folder");
        let session = |name: &str| folder.path().join(name);
        for (name, agent_age) in [("used", Duration::ZERO), ("unused", 2 * KEPT)] {
            fs::create_dir_all(session(name).join("main")).expect("it can be made");
            set_age(&session(name).join("main"), agent_age);
            set_age(&session(name), 2 * KEPT);
        }
        forget_old(folder.path());
        assert!(session("used").exists() && !session("unused").exists());
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
