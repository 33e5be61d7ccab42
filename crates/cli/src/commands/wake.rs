use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use serde_json::{Value, json};
use tokio::task::AbortHandle;

use crate::client::{Client, conversation_path};
use crate::hook::notes;
use crate::hook::wakeable::{self, Wakeable};
use crate::hosts::{Host, HostFile};
use crate::output::{printable, warn};

/// Start a turn in idle sessions when something arrives that should wake them
///
/// For sessions of Claude Code that are connected with `bellwire install` and offer a socket to other programs. The session
/// is only told how many notifications wait; the hook brings their text. The hub wakes a session at most six times an
/// hour. Runs until Ctrl-C.
#[derive(Args)]
pub(crate) struct WakeArgs {}

/// How often new sessions are looked for, and how long to wait before a lost stream is opened again.
const LOOK_EVERY: Duration = Duration::from_secs(1);
const SEND_TIMEOUT: Duration = Duration::from_secs(5);
/// How many notifications are remembered for which a session was woken.
const REMEMBERED_MAX: usize = 1_000;

pub(crate) fn run(_arguments: &WakeArgs) -> Result<bool> {
    let file = HostFile::load(Host::ClaudeCode)?;
    let client = Arc::new(Client::open(file.url, Some(file.token))?);
    anstream::eprintln!("waking sessions of {}; Ctrl-C ends it", Host::ClaudeCode.title());
    client.clone().block_on(follow_all(&client));
    Ok(true)
}

/// Follows every session that can be woken, as long as it is there.
async fn follow_all(client: &Arc<Client>) {
    let mut followed: HashMap<String, (Wakeable, AbortHandle)> = HashMap::new();
    loop {
        let (there, gone): (Vec<Wakeable>, Vec<Wakeable>) =
            wakeable::all().into_iter().partition(|session| session.socket.exists());
        // A harness that was killed leaves its note.
        gone.iter().for_each(|session| wakeable::forget(&session.conversation));
        followed.retain(|_, (session, task)| {
            let stays = there.contains(session);
            if !stays {
                task.abort();
            }
            stays
        });
        for session in there {
            followed.entry(session.conversation.clone()).or_insert_with(|| {
                let task = tokio::spawn(follow(client.clone(), session.clone()));
                (session, task.abort_handle())
            });
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

async fn follow(client: Arc<Client>, session: Wakeable) {
    let mut woken = HashSet::new();
    loop {
        // A hub that is away is not an error: it may come back.
        let _ = wake_by_stream(&client, &session, &mut woken).await;
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Wakes the session for every notification that has not woken it yet. A new stream tells the state again.
async fn wake_by_stream(client: &Client, session: &Wakeable, woken: &mut HashSet<String>) -> Result<()> {
    let mut stream = client.stream(&conversation_path(&session.conversation, "/stream", None)).await?;
    while let Some((name, hint)) = stream.next().await? {
        if name != "wake" || hint["agent"] != "main" || notes::is_paused(&session.conversation) {
            continue;
        }
        let ids = hint["notifications"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
        let fresh: Vec<String> = ids.filter(|id| !woken.contains(id)).collect();
        if fresh.is_empty() {
            continue;
        }
        if woken.len() + fresh.len() > REMEMBERED_MAX {
            woken.clear();
        }
        woken.extend(fresh);
        let count = hint["count"].as_u64().unwrap_or_default();
        if let Err(error) = send(session, count).await {
            warn(&format!("{} cannot be woken: {error:#}", printable(&session.conversation)));
        }
    }
    Ok(())
}

/// What is written on the socket: who writes, and a message that has no text from outside.
fn lines(token: Option<&str>, count: u64) -> String {
    let text = format!("Bellwire: {count} notifications wait.");
    let message = json!({ "type": "user", "message": { "role": "user", "content": text } });
    let auth = token.map(|token| format!("{}\n", json!({ "type": "auth", "token": token }))).unwrap_or_default();
    format!("{auth}{message}\n")
}

#[cfg(unix)]
async fn send(session: &Wakeable, count: u64) -> Result<()> {
    let write = async {
        let socket = tokio::net::UnixStream::connect(&session.socket).await?;
        let lines = lines(session.token.as_deref(), count);
        let mut rest = lines.as_bytes();
        while !rest.is_empty() {
            socket.writable().await?;
            match socket.try_write(rest) {
                Ok(written) => rest = &rest[written..],
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    };
    tokio::time::timeout(SEND_TIMEOUT, write).await?
}

#[cfg(not(unix))]
async fn send(_session: &Wakeable, _count: u64) -> Result<()> {
    anyhow::bail!("sessions are woken by a Unix socket, which this system does not have")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wake_says_only_how_much_waits() {
        let expected = "{\"type\":\"auth\",\"token\":\"t\"}\n\
                        {\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"Bellwire: 2 notifications wait.\"}}\n";
        assert_eq!(lines(Some("t"), 2), expected);
        assert!(!lines(None, 2).contains("auth"));
    }
}
