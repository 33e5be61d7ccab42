//! Checks the harnesses that `bellwire install` has connected.

use std::time::SystemTime;

use super::CheckResult;
use crate::client::{Client, HubRefused};
use crate::hook::notes;
use crate::hosts::{Host, HostFile};
use crate::install::{self, Installation};

/// One result for each harness that is installed, or half installed.
pub(super) fn check() -> Vec<CheckResult> {
    Host::ALL.into_iter().filter_map(check_one).collect()
}

fn check_one(host: Host) -> Option<CheckResult> {
    let file = HostFile::read(host).ok();
    let binary = install::binary(None).or_else(|_| std::env::current_exe().map(|path| path.display().to_string()));
    let entries = Installation::new(host, None, binary.unwrap_or_default()).ok()?.entries();
    let again = format!("bellwire install {}", host.name());
    Some(match (file, entries) {
        (None, None) => return None,
        (None, Some(_)) => CheckResult::fail(host.name(), "its hooks have no token, so they are silent", again),
        (Some(_), None) => CheckResult::warn(host.name(), "has a token, but no hooks of this user", again),
        (Some(_), Some(false)) => CheckResult::warn(host.name(), "some of its entries are missing or older", again),
        (Some(file), Some(true)) => connected(host, &file, &again),
    })
}

fn connected(host: Host, file: &HostFile, again: &str) -> CheckResult {
    let answer = Client::open(file.url.clone(), Some(file.token.clone()));
    match answer.and_then(|client| client.get("/v1/conversations?limit=1")) {
        Err(error) if error.is::<HubRefused>() => {
            CheckResult::fail(host.name(), format!("its token is refused: {error:#}"), again)
        }
        Err(error) => CheckResult::warn(
            host.name(),
            format!("is installed, but its hub cannot be reached: {error:#}"),
            "start the hub: bellwire start",
        ),
        Ok(_) => alive(host),
    }
}

/// Whether the harness runs our hooks.
fn alive(host: Host) -> CheckResult {
    let asked = notes::last_asked(host);
    let untrusted = if host == Host::Codex { install::untrusted_by_codex() } else { Vec::new() };
    if !untrusted.is_empty() {
        let asked = asked.map_or_else(|| "has never asked".to_owned(), |at| format!("last asked {}", ago(at)));
        let words =
            format!("is installed and {asked}; it skips the hooks that you do not trust: {}", untrusted.join(", "));
        return CheckResult::warn(host.name(), words, "start codex, run /hooks and trust them");
    }
    let trusted = if host == Host::Codex { ", and its hooks are trusted" } else { "" };
    match asked {
        Some(at) => CheckResult::ok(host.name(), format!("is connected{trusted}; it last asked {}", ago(at))),
        None => CheckResult::warn(
            host.name(),
            format!("is installed{trusted}; it has never asked"),
            "start a new session of it",
        ),
    }
}

fn ago(at: SystemTime) -> String {
    let seconds = SystemTime::now().duration_since(at).map_or(0, |since| since.as_secs());
    match seconds {
        0..60 => "less than a minute ago".to_owned(),
        60..3600 => format!("{} min ago", seconds / 60),
        3600..86_400 => format!("{} h ago", seconds / 3600),
        _ => format!("{} days ago", seconds / 86_400),
    }
}
