//! Checks of the running hub, or of its database if no hub runs.

use std::path::Path;

use bellwire_server::config::LoadedConfig;
use bellwire_store::SqliteStore;
use jiff::Timestamp;
use reqwest::Method;
use reqwest::header::{DATE, HeaderMap};
use serde_json::Value;

use super::CheckResult;
use crate::client::{Client, Connection};
use crate::data_dir;
use crate::output::{cell, items, seconds};

/// A clock difference that is worth a warning; the Date header has a resolution of one second.
const SKEW_WARN_SECONDS: i64 = 5;
/// A clock difference with which tokens expire and windows close noticeably at the wrong time.
const SKEW_FAIL_SECONDS: i64 = 60;

pub(super) fn check(connection: &Connection, loaded: Option<&LoadedConfig>) -> Vec<CheckResult> {
    let Ok(url) = connection.url() else { return Vec::new() };
    let client = match Client::open(url, None) {
        Ok(client) => client,
        Err(error) => return vec![CheckResult::fail("hub", format!("{error:#}"), "correct --url or BELLWIRE_URL")],
    };
    let dir = loaded.and_then(|loaded| loaded.config.data_dir.as_deref());
    match client.send(Method::GET, "/healthz", None) {
        Ok(answer) => running(&client, connection, &answer.headers, dir),
        Err(error) if connection.url.is_some() => {
            vec![CheckResult::fail("hub", format!("{error:#}"), "start it, or correct --url or BELLWIRE_URL")]
        }
        Err(error) => {
            let mut results = vec![CheckResult::warn("hub", format!("{error:#}"), "bellwire start")];
            results.extend(dir.and_then(database));
            results
        }
    }
}

fn running(client: &Client, connection: &Connection, headers: &HeaderMap, dir: Option<&Path>) -> Vec<CheckResult> {
    let mut results = vec![CheckResult::ok("hub", format!("{} lives", client.url()))];
    match client.get("/readyz") {
        Ok(health) => results.extend(readiness(&health)),
        Err(error) => {
            let fix = "its log says why; is there space on its disk?";
            results.push(CheckResult::fail("readiness", format!("{error:#}"), fix));
        }
    }
    results.push(version(client, dir));
    results.extend(clock(headers, Timestamp::now()));
    results.extend(token(connection));
    results.extend(ledger(connection));
    results.extend(ingest(connection));
    results
}

/// The sources of webhooks, as far as this token may know.
fn ingest(connection: &Connection) -> Vec<CheckResult> {
    let sources = Client::new(connection).and_then(|client| client.get("/v1/ingest"));
    sources.map(|sources| items(&sources).iter().map(source).collect()).unwrap_or_default()
}

fn source(one: &Value) -> CheckResult {
    let name = cell(one, "name");
    let last = match one["last_accepted_at"].as_str() {
        Some(_) => format!("last called at {}", seconds(one, "last_accepted_at")),
        None => "has not called since the hub started".to_owned(),
    };
    let time = |field: &str| one[field].as_str().and_then(|text| text.parse::<Timestamp>().ok());
    // `None` is before every time.
    if time("last_refused_at").is_none() || time("last_accepted_at") > time("last_refused_at") {
        return CheckResult::ok("ingest", format!("{name} {last}"));
    }
    let (at, why) = (seconds(one, "last_refused_at"), cell(one, "last_refusal"));
    let message = format!("{name} {last}; its call at {at} was not taken: {why}");
    CheckResult::warn("ingest", message, format!("compare its settings with [ingest.{name}]; docs/ingest.md"))
}

/// Origins whose messages never get through, as far as this token may know.
fn ledger(connection: &Connection) -> Vec<CheckResult> {
    let sums = Client::new(connection).and_then(|client| client.get("/v1/ledger/sums"));
    sums.map(|sums| undelivered(&sums)).unwrap_or_default()
}

fn undelivered(sums: &Value) -> Vec<CheckResult> {
    let flagged = items(sums).iter().filter(|one| one["never_gets_through"] == true);
    flagged
        .map(|one| {
            let count = |kind: &str| Some((one[kind].as_u64()?, kind.to_owned())).filter(|(count, _)| *count > 0);
            let kinds = ["deferred", "refused", "failed", "unknown"].into_iter().filter_map(count);
            let counts: Vec<String> = kinds.map(|(count, kind)| format!("{count} {kind}")).collect();
            let origin = cell(one, "origin");
            let message = format!("nothing that '{origin}' sent in seven days was delivered: {}", counts.join(", "));
            CheckResult::warn("notify", message, format!("bellwire ledger --origin {origin} says why"))
        })
        .collect()
}

/// What the hub says about itself: a warning for each part that does not work, and the status of every channel.
fn readiness(health: &Value) -> Vec<CheckResult> {
    let list = |field: &str| health[field].as_array().map(Vec::as_slice).unwrap_or_default();
    let degraded = list("degraded").iter().filter_map(Value::as_str);
    let mut results: Vec<CheckResult> = degraded
        .map(|why| CheckResult::warn("readiness", format!("it can accept, but {why}"), "its log says why"))
        .collect();
    if results.is_empty() {
        results.push(CheckResult::ok("readiness", "it can accept"));
    }
    let status = |channel: &Value| {
        let word = match channel["status"].as_str()? {
            "off" => "not configured",
            other => other,
        };
        Some(format!("{} is {word}", channel["name"].as_str()?))
    };
    let channels: Vec<String> = list("channels").iter().filter_map(status).collect();
    if !channels.is_empty() {
        results.push(CheckResult::ok("channels", channels.join(", ")));
    }
    results
}

/// Compares versions. A hub on this machine writes its own to `hub.json`; any hub has it in its OpenAPI document.
fn version(client: &Client, dir: Option<&Path>) -> CheckResult {
    let ours = env!("CARGO_PKG_VERSION");
    let noted = dir.and_then(data_dir::note).filter(|note| note["url"].as_str() == Some(client.url()));
    let documented = || client.get("/openapi.json").ok().map(|document| document["info"]["version"].clone());
    let theirs = noted.map(|note| note["version"].clone()).or_else(documented);
    match theirs.as_ref().and_then(|version| version.as_str()) {
        Some(theirs) if theirs == ours => CheckResult::ok("version", format!("{ours}, as this program")),
        Some(theirs) => {
            let message = format!("the hub is {theirs}, this program {ours}");
            CheckResult::warn("version", message, "start the hub anew, or use the program it was started with")
        }
        None => CheckResult::warn("version", "the hub does not say its version", "compare `bellwire --version` there"),
    }
}

fn clock(headers: &HeaderMap, now: Timestamp) -> Option<CheckResult> {
    let date = headers.get(DATE)?.to_str().ok()?;
    let theirs = jiff::fmt::rfc2822::parse(date).ok()?.timestamp();
    let seconds = (now.as_second() - theirs.as_second()).abs();
    let message = format!("differs from the hub's by {seconds} s");
    let fix = "let both machines take their time from the network (chrony, systemd-timesyncd)";
    Some(match seconds {
        seconds if seconds >= SKEW_FAIL_SECONDS => CheckResult::fail("clock", message, fix),
        seconds if seconds >= SKEW_WARN_SECONDS => CheckResult::warn("clock", message, fix),
        _ => CheckResult::ok("clock", "agrees with the hub's"),
    })
}

/// Whether the hub accepts the token, and which subscribers it could not load again after an edit of their files.
fn token(connection: &Connection) -> Vec<CheckResult> {
    let fix = "bellwire token create, with a token that is known; or say --data-dir of this very hub";
    let list = match Client::new(connection).and_then(|client| client.get("/v1/subscribers")) {
        Ok(list) => list,
        Err(error) => return vec![CheckResult::fail("token", format!("{error:#}"), fix)],
    };
    let outdated = |one: &Value| {
        let message =
            format!("the hub uses the last valid version of {}: {}", one["id"].as_str()?, one["problem"].as_str()?);
        Some(CheckResult::warn("subscribers", message, "correct the file; the hub then loads it by itself"))
    };
    let items = list["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    std::iter::once(CheckResult::ok("token", "the hub knows it")).chain(items.iter().filter_map(outdated)).collect()
}

fn database(dir: &Path) -> Option<CheckResult> {
    let path = data_dir::database(dir);
    if !path.exists() {
        return None;
    }
    let runtime = tokio::runtime::Runtime::new().ok()?;
    let fix = "restore the folder from a backup taken while no hub ran";
    Some(match runtime.block_on(SqliteStore::inspect(&path)) {
        Err(error) => {
            let pid = data_dir::note(dir).and_then(|note| note["pid"].as_u64());
            let fix = match pid {
                Some(pid) => format!("look after process {pid}; it does not answer"),
                None => "see who holds the lock: another bellwire command, or a hub at another address".to_owned(),
            };
            CheckResult::fail("database", error.to_string(), fix)
        }
        Ok(found) if !found.damage.is_empty() => CheckResult::fail("database", found.damage.join("; "), fix),
        Ok(found) if !found.pending.is_empty() => {
            let message = format!("is whole; not applied yet: {}", found.pending.join(", "));
            CheckResult::warn("database", message, "bellwire migrate, or just start the hub")
        }
        Ok(_) => CheckResult::ok("database", "is whole and up to date"),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_origin_that_never_gets_through_is_a_warning() {
        let sums = |never: bool| {
            json!({"origin": "health", "delivered": 0, "deferred": 0, "refused": 120, "failed": 2,
            "unknown": 0, "never_gets_through": never})
        };
        let results = undelivered(&json!({"items": [sums(true), sums(false)]}));
        assert_eq!(results.len(), 1);
        assert_eq!(results[0].message, "nothing that 'health' sent in seven days was delivered: 120 refused, 2 failed");
    }

    #[test]
    fn a_source_whose_last_call_was_not_taken_is_a_warning() {
        let one = |accepted: Value, refused: Value| {
            let result = source(&json!({"name": "github", "last_accepted_at": accepted, "last_refused_at": refused,
                "last_refusal": "refused: X-Hub-Signature-256 is missing"}));
            format!("{} {}", result.level.as_str(), result.message)
        };
        let (early, late) = (json!("2026-01-03T15:30:00.001Z"), json!("2026-01-03T15:30:00.002Z"));
        assert_eq!(one(Value::Null, Value::Null), "ok github has not called since the hub started");
        assert_eq!(one(late.clone(), early.clone()), "ok github last called at 2026-01-03T15:30:00Z");
        let warning = "warn github last called at 2026-01-03T15:30:00Z; its call at 2026-01-03T15:30:00Z was not taken: \
                       refused: X-Hub-Signature-256 is missing";
        assert_eq!(one(early, late), warning);
    }

    #[test]
    fn every_channel_is_named_and_every_degraded_part_is_a_warning() {
        let health = json!({
            "status": "ready",
            "degraded": ["pigeon does not work; the log says why", "redis is away"],
            "channels": [{"name": "pigeon", "status": "failing"}, {"name": "owl", "status": "off"}],
        });
        let results: Vec<String> = readiness(&health)
            .iter()
            .map(|one| format!("{} {}: {}", one.level.as_str(), one.check, one.message))
            .collect();
        let expected = [
            "warn readiness: it can accept, but pigeon does not work; the log says why",
            "warn readiness: it can accept, but redis is away",
            "ok channels: pigeon is failing, owl is not configured",
        ];
        assert_eq!(results, expected);
    }
}
