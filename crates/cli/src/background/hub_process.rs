//! Whether the hub of a data folder runs. Its note alone proves nothing: a killed hub leaves it, and its process id may be
//! another program's by now.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::client::Client;
use crate::data_dir;
use crate::hook::processes::Process;

/// How long a hub may take to answer. A healthy one takes a millisecond.
const ANSWER_MAX: Duration = Duration::from_secs(3);

/// What the note of a data folder led to.
pub(crate) struct HubProcess {
    pub(crate) url: String,
    pub(crate) version: String,
    /// The process of the note, if it is still that process.
    pub(crate) process: Option<Process>,
    /// The note names a process that has ended: what answers is another hub, or runs where this system sees no processes.
    pub(crate) is_gone: bool,
    /// It answers that it is ready.
    pub(crate) is_ready: bool,
}

/// The hub of this data folder, if it runs or answers.
pub(crate) fn find(dir: &Path) -> Option<HubProcess> {
    let note = data_dir::note(dir)?;
    let url = note["url"].as_str()?.to_owned();
    let noted = noted_process(&note);
    let process = noted.clone().filter(Process::is_running);
    let is_gone = noted.is_some() && process.is_none();
    let is_ready = answers(&url);
    let version = note["version"].as_str().unwrap_or_default().to_owned();
    (is_ready || process.is_some()).then_some(HubProcess { url, version, process, is_gone, is_ready })
}

/// The process of a note, if it says when that started.
fn noted_process(note: &Value) -> Option<Process> {
    let id = note["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok())?;
    Some(Process { id, started: note["started"].as_u64()? })
}

fn answers(url: &str) -> bool {
    let Ok(client) = Client::open(url.to_owned(), None) else { return false };
    client.block_on(async {
        tokio::time::timeout(ANSWER_MAX, client.get_async("/readyz")).await.is_ok_and(|ok| ok.is_ok())
    })
}
