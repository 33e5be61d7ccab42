//! Puts our entries into the text of a file, and takes them out again.

use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use toml_edit::{Array, DocumentMut, Item, Table};

use super::json_text;
use super::places::{Entry, Place, Site, is_our_hook};
use crate::hosts::Host;

/// The text of a file with our entries.
pub(super) fn add(site: &Site<'_>, place: &Place, before: Option<&str>) -> Result<Option<String>> {
    let mut text = before.filter(|text| !text.trim().is_empty()).map(str::to_owned);
    for entry in &place.entries {
        text = Some(match entry {
            Entry::File(ours) => ours.clone(),
            Entry::TomlServer(path) => add_toml(site, text.as_deref().unwrap_or_default(), path)?,
            entry => add_json(site.host, &text.unwrap_or_else(|| "{}\n".to_owned()), entry)?,
        });
    }
    Ok(text)
}

/// The text of a file without our entries; `None` if nothing else is in it and `is_ours`.
pub(super) fn remove(host: Host, place: &Place, before: Option<&str>, is_ours: bool) -> Result<Option<String>> {
    let Some(before) = before else { return Ok(None) };
    if before.trim().is_empty() {
        return Ok(Some(before.to_owned()));
    }
    let mut text = before.to_owned();
    for entry in &place.entries {
        text = match entry {
            Entry::File(_) => return Ok(None),
            Entry::TomlServer(path) => remove_toml(&text, path)?,
            Entry::Hook(path, _) => remove_hooks(host, &text, &parts(path))?,
            Entry::Member(path, _) => json_text::remove(&text, &parts(path))?,
            Entry::Needed(..) => text,
        };
    }
    let needed: Vec<&str> = place.entries.iter().filter_map(Entry::needed_root).collect();
    let is_empty = text.trim().is_empty()
        || json_text::is_empty(&text)
        || json_text::members(&text, &[]).is_ok_and(|names| names.iter().all(|name| needed.contains(&name.as_str())));
    Ok((!(is_empty && is_ours)).then_some(text))
}

/// Whether all our entries are in the text, as they should be.
pub(super) fn is_complete(site: &Site<'_>, place: &Place, text: Option<&str>) -> bool {
    text.is_some() && add(site, place, text).is_ok_and(|after| after.as_deref() == text)
}

fn add_json(host: Host, text: &str, entry: &Entry) -> Result<String> {
    match entry {
        Entry::Member(path, value) => set_member(text, &parts(path), value),
        Entry::Needed(path, value) => {
            let (last, above) =
                parts(path).split_last().map(|(last, above)| (*last, above.to_vec())).context("a path")?;
            let is_there = json_text::members(text, &above)?.iter().any(|name| name == last);
            if is_there { Ok(text.to_owned()) } else { json_text::set(text, &parts(path), value) }
        }
        Entry::Hook(path, value) => {
            let hooks = json_text::elements(text, &parts(path))?;
            let ours: Vec<&Value> = hooks.iter().flat_map(handlers).filter(|one| is_our_hook(host, one)).collect();
            if ours == handlers(value) {
                return Ok(text.to_owned());
            }
            json_text::append(&remove_hooks(host, text, &parts(path))?, &parts(path), value)
        }
        Entry::TomlServer(_) | Entry::File(_) => bail!("it is not JSON"),
    }
}

/// Sets a member. Of one that is there, only our own fields are set: its user may have added others.
fn set_member(text: &str, path: &[&str], value: &Value) -> Result<String> {
    let is_there = json_text::value(text, path)?.is_some_and(|known| known.is_object());
    let Some(fields) = value.as_object().filter(|_| is_there) else { return json_text::set(text, path, value) };
    let mut text = text.to_owned();
    for (name, value) in fields {
        text = json_text::set(&text, &[path, &[name]].concat(), value)?;
    }
    Ok(text)
}

/// The handlers of an element of a list of hooks: it is a group of them, or one itself.
fn handlers(element: &Value) -> Vec<&Value> {
    element["hooks"].as_array().map_or_else(|| vec![element], |group| group.iter().collect())
}

/// Removes our handlers, and groups that contain no others.
fn remove_hooks(host: Host, text: &str, path: &[&str]) -> Result<String> {
    let is_ours = |handler: &Value| is_our_hook(host, handler);
    let mut text = text.to_owned();
    let groups = json_text::elements(&text, path)?;
    let is_shared =
        |group: &Value| handlers(group).iter().any(|one| is_ours(one)) && !handlers(group).into_iter().all(is_ours);
    for at in (0..groups.len()).filter(|at| is_shared(&groups[*at])) {
        text = json_text::remove_elements(&text, &[path, &[&at.to_string(), "hooks"]].concat(), is_ours)?;
    }
    let is_only_ours = |group: &Value| !handlers(group).is_empty() && handlers(group).into_iter().all(is_ours);
    json_text::remove_elements(&text, path, is_only_ours)
}

fn add_toml(site: &Site<'_>, text: &str, path: &[String]) -> Result<String> {
    let mut document: DocumentMut = text.parse()?;
    let arguments: Array = ["mcp", "--host", site.host.name()].into_iter().collect();
    let ours = [("command", toml_edit::value(site.binary)), ("args", toml_edit::value(arguments))];
    let [servers, name] = path else { bail!("a server has a list and a name") };
    let servers = document.entry(servers).or_insert_with(|| {
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    });
    let servers = servers.as_table_like_mut().with_context(|| format!("{} is not a table", path[0]))?;
    if servers.get(name).is_none_or(|known| !known.is_table_like()) {
        servers.insert(name, Item::Table(Table::new()));
    }
    let server = servers.get_mut(name).and_then(Item::as_table_like_mut).context("it is a table")?;
    let written = |item: &Item| item.to_string().trim().to_owned();
    let mut is_changed = false;
    for (key, value) in ours {
        if server.get(key).map(written) != Some(written(&value)) {
            server.insert(key, value);
            is_changed = true;
        }
    }
    Ok(if is_changed { in_form_of(text, document.to_string()) } else { text.to_owned() })
}

/// A text with the line ends and the byte order mark of the file, which the editor of TOML does not keep.
fn in_form_of(before: &str, after: String) -> String {
    let is_windows = before.contains("\r\n");
    let after = if is_windows { after.replace("\r\n", "\n").replace('\n', "\r\n") } else { after };
    let mark = if before.starts_with('\u{feff}') && !after.starts_with('\u{feff}') { "\u{feff}" } else { "" };
    format!("{mark}{after}")
}

fn remove_toml(text: &str, path: &[String]) -> Result<String> {
    let mut document: DocumentMut = text.parse()?;
    let [servers, name] = path else { return Ok(text.to_owned()) };
    let Some(list) = document.get_mut(servers).and_then(Item::as_table_like_mut) else { return Ok(text.to_owned()) };
    if list.remove(name).is_none() {
        return Ok(text.to_owned());
    }
    if list.is_empty() {
        document.remove(servers);
    }
    Ok(in_form_of(text, document.to_string()))
}

fn parts(path: &[String]) -> Vec<&str> {
    path.iter().map(String::as_str).collect()
}

impl Entry {
    /// The top-level name of a member that stays.
    fn needed_root(&self) -> Option<&str> {
        match self {
            Self::Needed(path, _) => path.first().map(String::as_str),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::places::Scope;
    use super::*;
    use std::path::Path;

    fn site(host: Host) -> Site<'static> {
        let (home, project) = (Path::new("/h"), Path::new("/h/p"));
        Site { host, scope: Scope::User, home, project, binary: "/opt/bellwire" }
    }

    #[test]
    fn installing_twice_changes_nothing_and_uninstalling_restores_every_byte() {
        let json =
            "{\n    // mine\n    \"model\": \"x\",\n    \"hooks\": {\n        \"Stop\": [{\"hooks\": []}]\n    }\n}\n";
        let toml = "# mine\nmodel = \"x\" # why\n\n[mcp_servers.other]\ncommand = \"o\"\n";
        for host in Host::ALL {
            let site = site(host);
            for place in site.places() {
                let own = matches!(place.entries[..], [Entry::File(_)]);
                let before = if place.path.extension().is_some_and(|end| end == "toml") { toml } else { json };
                let before = (!own).then_some(before);
                let once = add(&site, &place, before).expect("it can be edited");
                assert_ne!(once.as_deref(), before, "{}", place.path.display());
                assert_eq!(add(&site, &place, once.as_deref()).expect("it can be edited"), once);
                assert!(is_complete(&site, &place, once.as_deref()) && !is_complete(&site, &place, before));
                let moved = Site { binary: "/usr/bin/bellwire", ..site };
                let place_moved = moved.places().into_iter().find(|other| other.path == place.path).expect("the same");
                let again = add(&moved, &place_moved, once.as_deref()).expect("it can be edited").expect("a text");
                assert!(!again.contains("/opt/bellwire"), "an older path is replaced: {again}");
                let after = remove(host, &place, Some(&again), own).expect("it can be edited");
                let needed = place.entries.iter().any(|entry| entry.needed_root().is_some());
                if !needed {
                    assert_eq!(after.as_deref(), before, "{}", place.path.display());
                }
            }
        }
    }

    #[test]
    fn what_others_put_into_our_groups_and_servers_stays() {
        let site = site(Host::ClaudeCode);
        let place = &site.places()[0];
        let ours = r#"{"type": "command", "command": "/old/bellwire hook claude-code", "timeout": 10}"#;
        for theirs in ["say done", "/opt/other hook claude-code", "echo bellwire", "bellwire-like/x hook claude-code"] {
            let theirs = format!(r#"{{"type": "command", "command": "{theirs}"}}"#);
            let text = format!(
                r#"{{"hooks": {{"Stop": [{{"matcher": "", "hooks": [{ours}, {theirs}]}}, {{"hooks": []}}]}}}}"#
            );
            let left = format!(r#"{{"hooks": {{"Stop": [{{"matcher": "", "hooks": [{theirs}]}}, {{"hooks": []}}]}}}}"#);
            assert_eq!(remove(Host::ClaudeCode, place, Some(&text), true).expect("it can be edited"), Some(left));
            let again = add(&site, place, Some(&text)).expect("it can be edited").expect("a text");
            assert!(again.contains(&theirs) && !again.contains("/old/bellwire"), "{again}");
        }
        let place = &site.places()[1];
        let text = r#"{"mcpServers": {"bellwire": {"command": "/old/bellwire", "env": {"A": "1"}}}}"#;
        let again = add(&site, place, Some(text)).expect("it can be edited").expect("a text");
        assert!(again.contains(r#""env": {"A": "1"}"#) && again.contains("/opt/bellwire"), "{again}");
        assert!(is_complete(&site, place, Some(&again)));
    }

    #[test]
    fn a_toml_file_keeps_its_form_and_what_others_added_to_our_table() {
        let site = site(Host::Codex);
        let place = &site.places()[1];
        let lines = ["model = 'x'   # why", "", "# servers", "[mcp_servers.other]", "command = \"o\"", "# the end", ""];
        for text in
            [lines.join("\n"), lines.join("\r\n"), format!("\u{feff}{}", lines.join("\n")), "model = 'x'".into()]
        {
            let made = add(&site, place, Some(&text)).expect("it can be edited").expect("a text");
            assert_eq!(
                made.matches('\n').count() - made.matches("\r\n").count(),
                if text.contains('\r') { 0 } else { made.matches('\n').count() }
            );
            let after = remove(Host::Codex, place, Some(&made), false).expect("it can be edited");
            assert_eq!(after.map(|it| it.trim_end().to_owned()).as_deref(), Some(text.trim_end()));
        }
        let inline = "mcp_servers = { other = { command = \"o\" } }\n";
        let made = add(&site, place, Some(inline)).expect("it can be edited").expect("a text");
        made.parse::<DocumentMut>().expect("it is valid");
        assert_eq!(remove(Host::Codex, place, Some(&made), false).expect("it can be edited").as_deref(), Some(inline));
        let used = "[mcp_servers.bellwire]\ncommand = \"/old/bellwire\" # mine\nstartup_timeout_sec = 30\n";
        let again = add(&site, place, Some(used)).expect("it can be edited").expect("a text");
        assert!(again.contains("startup_timeout_sec = 30") && again.contains("\"/opt/bellwire\""), "{again}");
    }

    #[test]
    fn an_empty_file_is_used_and_stays() {
        for host in Host::ALL {
            let site = site(host);
            for place in site.places().iter().filter(|place| !matches!(place.entries[..], [Entry::File(_)])) {
                assert_eq!(remove(host, place, Some(" \n"), false).expect("nothing to edit").as_deref(), Some(" \n"));
                let made = add(&site, place, Some(" \n")).expect("it can be edited").expect("a text");
                assert!(is_complete(&site, place, Some(&made)), "{made}");
            }
        }
    }

    #[test]
    fn a_file_that_install_made_is_removed_and_one_that_others_use_stays() {
        for host in Host::ALL {
            let site = site(host);
            for place in site.places() {
                let made = add(&site, &place, None).expect("it can be edited").expect("a text");
                assert_eq!(remove(host, &place, Some(&made), true).expect("it can be edited"), None, "{made}");
            }
        }
        let place = &site(Host::ClaudeCode).places()[0];
        let made = add(&site(Host::ClaudeCode), place, None).expect("it can be edited").expect("a text");
        let used = json_text::set(&made, &["model"], &serde_json::json!("x")).expect("it is valid");
        let left = remove(Host::ClaudeCode, place, Some(&used), true).expect("it can be edited");
        assert_eq!(left.as_deref(), Some("{\n  \"model\": \"x\"\n}\n"));
    }

    #[test]
    fn what_each_harness_gets() {
        let mut all = String::new();
        for host in Host::ALL {
            for place in site(host).places() {
                let text = add(&site(host), &place, None).expect("it can be edited").expect("a text");
                all.push_str(&format!("=== {}: {}\n{text}\n", host.name(), place.path.display()));
            }
        }
        insta::assert_snapshot!(all);
    }
}
