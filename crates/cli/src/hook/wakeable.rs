//! Sessions that can be woken from outside. Claude Code tells its hooks a socket: a line on it starts a turn.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::notes::file_name;
use crate::hosts::{make_private_folder, state_folder};

/// An idle session of this user, and how to wake it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wakeable {
    pub(crate) conversation: String,
    pub(crate) socket: PathBuf,
    pub(crate) token: Option<String>,
}

/// Notes how this session is woken, if the harness says so.
pub(super) fn note(conversation: &str) {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let Some((socket, folder)) = variable("CLAUDE_CODE_MESSAGING_SOCKET").zip(folder()) else { return };
    let token = variable("CLAUDE_CODE_MESSAGING_TOKEN");
    let note = json!({ "conversation": conversation, "socket": socket, "token": token }).to_string();
    // The folder is closed to others, and so is the file. Without the note, the session is not woken.
    if make_private_folder(&folder).is_ok() {
        let _ = crate::data_dir::private(&folder.join(file_name(conversation)), &note);
    }
}

/// The session has ended.
pub(crate) fn forget(conversation: &str) {
    if let Some(folder) = folder() {
        let _ = fs::remove_file(folder.join(file_name(conversation)));
    }
}

/// The sessions that were noted.
pub(crate) fn all() -> Vec<Wakeable> {
    let entries = folder().and_then(|folder| fs::read_dir(folder).ok()).into_iter().flatten().flatten();
    entries.filter_map(|entry| parse(&fs::read_to_string(entry.path()).ok()?)).collect()
}

fn parse(note: &str) -> Option<Wakeable> {
    let note: Value = serde_json::from_str(note).ok()?;
    let text = |key: &str| note[key].as_str().map(str::to_owned);
    Some(Wakeable { conversation: text("conversation")?, socket: text("socket")?.into(), token: text("token") })
}

fn folder() -> Option<PathBuf> {
    Some(state_folder()?.join("wakeable"))
}
