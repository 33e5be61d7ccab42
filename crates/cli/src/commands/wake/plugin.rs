//! `bellwire wake --plugin`: OpenCode's plugin writes the ids of its sessions on standard input, one a line, and reads a line of
//! JSON for each wake. It ends with its input, and at once if the user did not allow it.

use std::collections::HashSet;
use std::io::BufRead as _;
use std::sync::Arc;

use anyhow::Result;

use super::follow::Follower;
use super::way::Way;
use crate::client::Client;
use crate::hook::wakeable::Wakeable;
use crate::hosts::{Host, HostFile};

/// More sessions of one OpenCode are not followed: each takes a connection to the hub.
const SESSIONS_MAX: usize = 50;

pub(super) fn run() -> Result<bool> {
    let file = HostFile::load(Host::OpenCode)?;
    // With a command, `bellwire wake` wakes its sessions.
    if !file.wake || file.wake_command.is_some() {
        return Ok(true);
    }
    let (sender, mut sessions) = tokio::sync::mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok).take_while(|line| line.len() < 1000) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    let client = Arc::new(Client::open(file.url, Some(file.token))?);
    client.block_on(async {
        let mut followed = HashSet::new();
        while let Some(session) = sessions.recv().await {
            if followed.len() >= SESSIONS_MAX || !followed.insert(session.clone()) {
                continue;
            }
            if let Some(follower) = Follower::new(client.clone(), Wakeable::of_plugin(session), Way::Plugin) {
                tokio::spawn(follower.run());
            }
        }
    });
    Ok(true)
}
