//! Sessions that can be woken from outside: what their hooks noted about them.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::notes::file_name;
use super::processes::{self, Process};
use crate::hosts::{Host, make_private_folder, state_folder};

/// An open session of this user, and what is needed to wake it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wakeable {
    pub(crate) host: Host,
    pub(crate) session: String,
    /// The working directory of the session.
    pub(crate) folder: Option<String>,
    /// Claude Code: a line on this socket starts a turn.
    pub(crate) socket: Option<PathBuf>,
    pub(crate) token: Option<String>,
    /// Codex: the program that has the session, and the folder of its files if that is not the default.
    pub(crate) program: Option<PathBuf>,
    pub(crate) codex_home: Option<String>,
    /// The harness's process; `None` if it is unknown.
    pub(crate) process: Option<Process>,
}

impl Wakeable {
    /// What the harness tells this hook about its session.
    fn of_hook(host: Host, session: &str, folder: Option<&str>) -> Self {
        let variable = |name: &str, of: Host| {
            Some(host).filter(|host| *host == of)?;
            std::env::var(name).ok().filter(|value| !value.is_empty())
        };
        let process = processes::harness(host);
        let program = process.as_ref().filter(|_| host == Host::Codex).and_then(Process::program);
        Self {
            host,
            session: session.to_owned(),
            folder: folder.map(str::to_owned),
            socket: variable("CLAUDE_CODE_MESSAGING_SOCKET", Host::ClaudeCode).map(PathBuf::from),
            token: variable("CLAUDE_CODE_MESSAGING_TOKEN", Host::ClaudeCode),
            program,
            codex_home: variable("CODEX_HOME", Host::Codex),
            process,
        }
    }

    /// A session that the plugin of OpenCode follows.
    pub(crate) const fn of_plugin(session: String) -> Self {
        let (folder, socket, token, program, codex_home, process) = (None, None, None, None, None, None);
        Self { host: Host::OpenCode, session, folder, socket, token, program, codex_home, process }
    }

    pub(crate) fn conversation(&self) -> String {
        self.host.conversation(&self.session)
    }

    /// Whether the harness still has the session. One that was killed leaves its note.
    pub(crate) fn is_open(&self) -> bool {
        self.process.as_ref().is_none_or(Process::is_running) && self.socket.as_ref().is_none_or(|path| path.exists())
    }

    fn text(&self) -> String {
        let (id, started) = self.process.as_ref().map(|process| (process.id, process.started)).unzip();
        json!({
            "host": self.host.name(), "session": self.session, "folder": self.folder, "socket": self.socket,
            "token": self.token, "program": self.program, "codex_home": self.codex_home, "pid": id, "started": started,
        })
        .to_string()
    }

    fn parse(note: &str) -> Option<Self> {
        let note: Value = serde_json::from_str(note).ok()?;
        let text = |key: &str| note[key].as_str().map(str::to_owned);
        let id = note["pid"].as_u64().and_then(|id| u32::try_from(id).ok());
        Some(Self {
            host: Host::parse(note["host"].as_str()?)?,
            session: text("session")?,
            folder: text("folder"),
            socket: text("socket").map(PathBuf::from),
            token: text("token"),
            program: text("program").map(PathBuf::from),
            codex_home: text("codex_home"),
            process: id.zip(note["started"].as_u64()).map(|(id, started)| Process { id, started }),
        })
    }
}

/// Notes how this session is woken. Without the note it is not woken.
pub(super) fn note(host: Host, session: &str, folder: Option<&str>) {
    let Some(notes) = notes_folder() else { return };
    let (path, note) =
        (notes.join(file_name(&host.conversation(session))), Wakeable::of_hook(host, session, folder).text());
    let is_noted = fs::read_to_string(&path).is_ok_and(|before| before.trim_end() == note);
    // The folder is closed to others, and so is the file: it may have a token.
    if !is_noted && make_private_folder(&notes).is_ok() {
        let _ = crate::data_dir::private(&path, &note);
    }
}

/// The session has ended.
pub(crate) fn forget(conversation: &str) {
    if let Some(folder) = notes_folder() {
        let _ = fs::remove_file(folder.join(file_name(conversation)));
    }
}

/// The sessions that were noted and are still open.
pub(crate) fn all_open() -> Vec<Wakeable> {
    let entries = notes_folder().and_then(|folder| fs::read_dir(folder).ok()).into_iter().flatten().flatten();
    let noted = entries.filter_map(|entry| Wakeable::parse(&fs::read_to_string(entry.path()).ok()?));
    let (open, gone): (Vec<Wakeable>, Vec<Wakeable>) = noted.partition(Wakeable::is_open);
    gone.iter().for_each(|session| forget(&session.conversation()));
    open
}

fn notes_folder() -> Option<PathBuf> {
    Some(state_folder()?.join("wakeable"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_read_as_it_was_written() {
        let session = Wakeable {
            host: Host::Codex,
            session: "01a1".into(),
            folder: Some("/src/a b".into()),
            socket: None,
            token: Some("t".into()),
            program: Some("/opt/codex".into()),
            codex_home: Some("/srv/codex".into()),
            process: Some(Process { id: 7, started: u64::MAX }),
        };
        assert_eq!(Wakeable::parse(&session.text()), Some(session.clone()));
        assert!(!session.is_open(), "process 7 did not start then");
        let unknown = Wakeable { process: None, ..session };
        assert_eq!(Wakeable::parse(&unknown.text()), Some(unknown.clone()));
        assert!(unknown.is_open());
        assert_eq!(Wakeable::parse("{\"host\":\"other\",\"session\":\"s\"}"), None);
    }
}
