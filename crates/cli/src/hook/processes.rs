//! Which process has which session. A harness starts its hooks and its MCP servers; where it does not tell a server the
//! session, both know at least the process that started them.

use std::fs;
use std::path::{Path, PathBuf};

use super::notes::file_name;
use crate::hosts::{Host, make_private_folder, state_folder};

/// Shells that a harness may put between itself and a hook.
const SHELLS: [&str; 7] = ["sh", "bash", "dash", "zsh", "fish", "ash", "busybox"];
/// How far a harness may be above a hook.
const LEVELS: usize = 4;

/// The sessions that a process has.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FoundSession {
    One(String),
    None,
    Several,
}

/// Notes that the harness's process has this session.
pub(super) fn register(host: Host, session: &str) {
    let Some(folder) = harness(host).and_then(|process| Some(folder_of(&state_folder()?, host, &process))) else {
        return;
    };
    if make_private_folder(&folder).is_ok() {
        let _ = fs::write(folder.join(file_name(session)), session);
    }
}

/// The session has ended.
pub(super) fn unregister(host: Host, session: &str) {
    let Some(folder) = harness(host).and_then(|process| Some(folder_of(&state_folder()?, host, &process))) else {
        return;
    };
    let _ = fs::remove_file(folder.join(file_name(session)));
    // Fails while the process has other sessions.
    let _ = fs::remove_dir(folder);
}

/// The session of the harness that started this process.
pub(crate) fn session_of_parent(host: Host) -> FoundSession {
    let folder = harness(host).and_then(|process| Some(folder_of(&state_folder()?, host, &process)));
    folder.map_or(FoundSession::None, |folder| session_in(&folder))
}

/// Whether a hook has noted that the harness that started this process has this session.
pub(crate) fn is_registered(host: Host, session: &str) -> bool {
    let folder = harness(host).and_then(|process| Some(folder_of(&state_folder()?, host, &process)));
    folder.is_some_and(|folder| folder.join(file_name(session)).exists())
}

/// Deletes what was noted of processes that have ended.
pub(super) fn forget_ended() {
    if let Some(state) = state_folder() {
        forget_ended_in(&state.join("processes"));
    }
}

fn forget_ended_in(processes: &Path) {
    for entry in fs::read_dir(processes).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let mut parts = name.rsplit('-');
        let (started, id) =
            (parts.next().and_then(|text| text.parse().ok()), parts.next().and_then(|id| id.parse().ok()));
        if let Some((id, started)) = id.zip(started)
            && start_time(id) != Some(started)
        {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn session_in(folder: &Path) -> FoundSession {
    let read = |entry: fs::DirEntry| fs::read_to_string(entry.path()).ok();
    let mut sessions = fs::read_dir(folder).into_iter().flatten().flatten().filter_map(read);
    match (sessions.next(), sessions.next()) {
        (Some(session), None) => FoundSession::One(session),
        (None, _) => FoundSession::None,
        _ => FoundSession::Several,
    }
}

/// A process and when it started, because ids are used again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) id: u32,
    pub(crate) started: u64,
}

impl Process {
    /// The process with this id; `None` if there is none.
    pub(crate) fn of(id: u32) -> Option<Self> {
        Some(Self { id, started: start_time(id)? })
    }

    /// Whether it still runs, and the id is not another process's now.
    pub(crate) fn is_running(&self) -> bool {
        start_time(self.id) == Some(self.started)
    }

    /// The program that it runs, where the system says so.
    pub(super) fn program(&self) -> Option<PathBuf> {
        fs::read_link(format!("/proc/{}/exe", self.id)).ok().filter(|path| path.is_file())
    }
}

fn folder_of(state: &Path, host: Host, process: &Process) -> PathBuf {
    state.join("processes").join(format!("{}-{}-{}", host.name(), process.id, process.started))
}

/// The nearest process above this one that is not a shell. OpenCode names itself; other harnesses that run in a shell of
/// OpenCode inherit that name.
pub(super) fn harness(host: Host) -> Option<Process> {
    let named = std::env::var("OPENCODE_PID").ok().filter(|_| host == Host::OpenCode);
    let id = match named.and_then(|id| id.parse().ok()) {
        Some(id) => id,
        None => nearest_other_than_shells(parent()?)?,
    };
    Process::of(id)
}

fn nearest_other_than_shells(mut id: u32) -> Option<u32> {
    for _ in 0..LEVELS {
        let status = Status::of(id)?;
        if !SHELLS.contains(&status.name.as_str()) {
            return Some(id);
        }
        id = status.parent;
    }
    None
}

#[cfg(unix)]
fn parent() -> Option<u32> {
    Some(std::os::unix::process::parent_id())
}

#[cfg(not(unix))]
fn parent() -> Option<u32> {
    None
}

fn start_time(id: u32) -> Option<u64> {
    Status::of(id).map(|status| status.started)
}

/// What the system says about a process.
struct Status {
    name: String,
    parent: u32,
    started: u64,
}

impl Status {
    #[cfg(target_os = "linux")]
    fn of(id: u32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{id}/stat")).ok()?)
    }

    /// `ps` shows the time of the start to the second, as text: it is hashed.
    #[cfg(all(unix, not(target_os = "linux")))]
    fn of(id: u32) -> Option<Self> {
        use std::hash::{DefaultHasher, Hash as _, Hasher as _};
        let output =
            std::process::Command::new("ps").args(["-o", "ppid=,lstart=,comm=", "-p", &id.to_string()]).output();
        let text = String::from_utf8(output.ok()?.stdout).ok()?;
        let mut words = text.split_whitespace();
        let parent = words.next()?.parse().ok()?;
        let start: Vec<&str> = words.by_ref().take(5).collect();
        let mut hasher = DefaultHasher::new();
        start.hash(&mut hasher);
        let name = words.next()?.rsplit('/').next()?.trim_start_matches('-').to_owned();
        Some(Self { name, parent, started: hasher.finish() })
    }

    #[cfg(not(unix))]
    fn of(_id: u32) -> Option<Self> {
        None
    }

    /// Parses a line of /proc: the name is in parentheses and may contain any character.
    #[cfg(target_os = "linux")]
    fn parse(stat: &str) -> Option<Self> {
        let (name, rest) = (stat.find('(')? + 1, stat.rfind(')')?);
        let mut fields = stat[rest + 1..].split_whitespace();
        // A zombie has ended, and its parent has not read its exit status: containers often have no init process that does.
        fields.next().filter(|state| !matches!(*state, "Z" | "X"))?;
        let parent = fields.next()?.parse().ok()?;
        Some(Self { name: stat.get(name..rest)?.to_owned(), parent, started: fields.nth(17)?.parse().ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_session_is_found_and_several_are_not_guessed() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(session_in(folder.path()), FoundSession::None);
        fs::write(folder.path().join("a"), "s/1").expect("it can be written");
        assert_eq!(session_in(folder.path()), FoundSession::One("s/1".into()));
        fs::write(folder.path().join("b"), "s2").expect("it can be written");
        assert_eq!(session_in(folder.path()), FoundSession::Several);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_with_the_id_of_another_that_has_ended_has_none_of_its_sessions() {
        let state = tempfile::tempdir().expect("a folder");
        let id = std::process::id();
        let started = start_time(id).expect("it runs");
        let of = |started| folder_of(state.path(), Host::Gemini, &Process { id, started });
        for folder in [of(started), of(started - 1)] {
            fs::create_dir_all(&folder).expect("it can be made");
            fs::write(folder.join("s"), "s").expect("it can be written");
        }
        assert_eq!(session_in(&of(started + 1)), FoundSession::None);
        forget_ended_in(&state.path().join("processes"));
        assert!(of(started).exists() && !of(started - 1).exists());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_status_of_a_process_with_a_strange_name_is_read() {
        let stat = "77 (a) b (c) S 12 77 77 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 12345 1 1";
        let status = Status::parse(stat).expect("it is valid");
        assert_eq!((status.name.as_str(), status.parent, status.started), ("a) b (c", 12, 12345));
        assert!(Status::parse(&stat.replace(" S ", " Z ")).is_none(), "a zombie has ended");
        assert!(start_time(std::process::id()).is_some());
    }
}
