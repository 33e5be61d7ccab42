//! Whether Codex trusts our hooks. It runs a hook only if `[hooks.state]` of its `config.toml` has the hook's hash, which the
//! command /hooks of its terminal writes. Bellwire only reads that: trust is the user's to give.

use std::path::Path;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use toml_edit::DocumentMut;

use super::places::is_our_hook;
use crate::hosts::Host;

/// Codex gives a hook of the event SessionEnd no more time than this, in seconds.
pub(super) const SESSION_END_MAX: u64 = 3;

/// The events of our hooks that Codex skips. `hooks` is the file with the hooks, `config` the text of `config.toml`.
pub(super) fn untrusted(hooks: &Path, config: &str) -> Vec<String> {
    let file = std::fs::read_to_string(hooks).ok().and_then(|text| serde_json::from_str::<Value>(&text).ok());
    let config: DocumentMut = config.parse().unwrap_or_default();
    let file = file.unwrap_or_default();
    let events = file["hooks"].as_object().into_iter().flatten();
    let skipped = events.filter(|(event, groups)| {
        let mut groups = groups.as_array().into_iter().flatten().enumerate();
        groups.any(|(at, group)| !is_group_trusted(hooks, &config, &snake_case(event), at, group))
    });
    skipped.map(|(event, _)| event.clone()).collect()
}

/// Whether Codex trusts those hooks of a group that are ours.
fn is_group_trusted(hooks: &Path, config: &DocumentMut, event: &str, at: usize, group: &Value) -> bool {
    let handlers = group["hooks"].as_array().into_iter().flatten().enumerate();
    // Codex may know the file by its real path.
    let real = std::fs::canonicalize(hooks).unwrap_or_else(|_| hooks.to_owned());
    { handlers }.filter(|(_, handler)| is_our_hook(Host::Codex, handler)).all(|(number, handler)| {
        let hash = hash(event, &group["matcher"], handler);
        [hooks, &real].iter().any(|path| {
            let key = format!("{}:{event}:{at}:{number}", path.display());
            let state = config.get("hooks").and_then(|hooks| hooks.get("state")).and_then(|state| state.get(&key));
            let Some(state) = state else { return false };
            let trusted = state.get("trusted_hash").and_then(toml_edit::Item::as_str);
            trusted == Some(hash.as_str()) && state.get("enabled").and_then(toml_edit::Item::as_bool) != Some(false)
        })
    })
}

/// Codex's hash of a hook: of JSON with sorted keys, in which defaults are filled in.
fn hash(event: &str, matcher: &Value, handler: &Value) -> String {
    let (default, most) = if event == "session_end" { (1, SESSION_END_MAX) } else { (600, u64::MAX) };
    let timeout = handler["timeout"].as_u64().unwrap_or(default).clamp(1, most);
    let mut normalized =
        json!({ "type": "command", "command": handler["command"], "timeout": timeout, "async": false });
    if handler["statusMessage"].is_string() {
        normalized["statusMessage"] = handler["statusMessage"].clone();
    }
    let mut identity = json!({ "event_name": event, "hooks": [normalized] });
    if matcher.is_string() {
        identity["matcher"] = matcher.clone();
    }
    let digest = Sha256::digest(sorted(&identity).as_bytes());
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

/// JSON with sorted keys, whatever order the maps of this build keep.
fn sorted(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let mut members: Vec<String> =
                members.iter().map(|(key, value)| format!("{}:{}", Value::from(key.as_str()), sorted(value))).collect();
            members.sort();
            format!("{{{}}}", members.join(","))
        }
        Value::Array(elements) => format!("[{}]", elements.iter().map(sorted).collect::<Vec<_>>().join(",")),
        other => other.to_string(),
    }
}

fn snake_case(event: &str) -> String {
    let separated = |(at, c): (usize, char)| {
        let before = if c.is_ascii_uppercase() && at > 0 { "_" } else { "" };
        format!("{before}{}", c.to_ascii_lowercase())
    };
    event.chars().enumerate().map(separated).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The hashes are those that Codex 0.166.0 showed for these hooks.
    #[test]
    fn a_hook_is_trusted_by_the_hash_that_codex_computes() {
        let handler = json!({ "type": "command", "command": "'/opt/bell wire' hook codex", "timeout": 3 });
        let start = "sha256:eb474b2ec8e76bf663ca78428f3428dec6fa87b14be000415e3602d60d925ce2";
        let tool = "sha256:09323a08318dd3676d0e3e866c0dab8215ffed248fc016d4a57323232ec0bc7b";
        assert_eq!(hash("session_start", &Value::Null, &handler), start);
        assert_eq!(hash("post_tool_use", &json!("Bash"), &handler), tool);
        assert_eq!(snake_case("UserPromptSubmit"), "user_prompt_submit");
    }

    #[test]
    fn hooks_that_are_new_changed_or_switched_off_are_not_trusted() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("hooks.json");
        let ours = json!({ "hooks": [{ "type": "command", "command": "/opt/bellwire hook codex", "timeout": 10 }] });
        let other = json!({ "hooks": [{ "type": "command", "command": "/opt/other" }] });
        let file = json!({ "hooks": { "Stop": [other, ours], "SessionStart": [ours] } });
        std::fs::write(&path, file.to_string()).expect("it can be written");
        let entry = |event: &str, at: usize, hash: &str| {
            format!("[hooks.state.\"{}:{event}:{at}:0\"]\ntrusted_hash = \"{hash}\"\n", path.display())
        };
        let untrusted = |config: &str| {
            let mut events = super::untrusted(&path, config);
            events.sort();
            events
        };
        let trusted = |event: &str, at| entry(event, at, &hash(event, &Value::Null, &ours["hooks"][0]));
        assert_eq!(untrusted(""), ["SessionStart", "Stop"]);
        assert_eq!(untrusted(&trusted("session_start", 0)), ["Stop"]);
        let both = trusted("session_start", 0) + &trusted("stop", 1);
        assert_eq!(untrusted(&both), [""; 0]);
        assert_eq!(untrusted(&format!("{both}enabled = false\n")), ["Stop"]);
        let changed = trusted("stop", 1) + &entry("session_start", 0, "sha256:0");
        assert_eq!(untrusted(&changed), ["SessionStart"]);
    }
}
