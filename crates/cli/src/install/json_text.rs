//! Edits of JSON with comments that keep every other byte.
//!
//! Settings files belong to people, who order, indent and comment them. So a value is inserted behind the last one of its
//! container, in the file's own indentation, and removed with exactly the bytes that inserting it added.

use anyhow::{Result, bail, ensure};
use serde_json::Value;

use super::json_node::{Kind, Node, comma_in, find, parse, value_of};

/// Sets the member at `path` to a value. Containers that are missing on the way are made. Returns the text unchanged if it
/// has that value already.
pub(super) fn set(text: &str, path: &[&str], value: &Value) -> Result<String> {
    let root = parse(text)?;
    if let Some(node) = find(&root, path) {
        if value_of(text, node)? == *value {
            return Ok(text.to_owned());
        }
        let level = indentation_before(text, node.start);
        return Ok(format!("{}{}{}", &text[..node.start], pretty(value, &unit(text), &level), &text[node.end..]));
    }
    let (parent, rest) = deepest(&root, path)?;
    let value = rest[1..].iter().rev().fold(value.clone(), |inner, key| serde_json::json!({ *key: inner }));
    Ok(insert(text, parent, Some(rest[0]), &value))
}

/// Appends a value to the array at `path`, which is made if it is missing.
pub(super) fn append(text: &str, path: &[&str], value: &Value) -> Result<String> {
    let root = parse(text)?;
    match find(&root, path) {
        Some(array @ Node { kind: Kind::Array(_), .. }) => Ok(insert(text, array, None, value)),
        Some(_) => bail!("{} is not a list", path.join(".")),
        None => set(text, path, &Value::Array(vec![value.clone()])),
    }
}

/// The value at `path`, if there is one.
pub(super) fn value(text: &str, path: &[&str]) -> Result<Option<Value>> {
    find(&parse(text)?, path).map(|node| value_of(text, node)).transpose()
}

/// The elements of the array at `path`; none if it is missing.
pub(super) fn elements(text: &str, path: &[&str]) -> Result<Vec<Value>> {
    let root = parse(text)?;
    match find(&root, path).map(|node| &node.kind) {
        Some(Kind::Array(items)) => items.iter().map(|item| value_of(text, item)).collect(),
        _ => Ok(Vec::new()),
    }
}

/// The names of the members of the object at `path`; none if it is missing.
pub(super) fn members(text: &str, path: &[&str]) -> Result<Vec<String>> {
    let root = parse(text)?;
    match find(&root, path).map(|node| &node.kind) {
        Some(Kind::Object(members)) => Ok(members.iter().map(|(_, name, _)| name.clone()).collect()),
        _ => Ok(Vec::new()),
    }
}

/// Removes the member at `path`, and containers that are empty then.
pub(super) fn remove(text: &str, path: &[&str]) -> Result<String> {
    let root = parse(text)?;
    if find(&root, path).is_none() {
        return Ok(text.to_owned());
    }
    let (last, above) = path.split_last().expect("a path has parts");
    let parent = find(&root, above).expect("its child was found");
    let Kind::Object(members) = &parent.kind else { return Ok(text.to_owned()) };
    if members.len() == 1 && !above.is_empty() {
        return remove(text, above);
    }
    let at = members.iter().position(|(_, name, _)| name == last).expect("it was found");
    let spans: Vec<(usize, usize)> = members.iter().map(|(start, _, node)| (*start, node.end)).collect();
    Ok(without(text, parent, &spans, at))
}

/// Removes the elements of the array at `path` that `is_ours` chooses, and containers that are empty then.
pub(super) fn remove_elements(text: &str, path: &[&str], is_ours: impl Fn(&Value) -> bool) -> Result<String> {
    let mut text = text.to_owned();
    loop {
        let values = elements(&text, path)?;
        let Some(at) = values.iter().position(&is_ours) else { return Ok(text) };
        if values.len() == 1 {
            return remove(&text, path);
        }
        let root = parse(&text)?;
        let Some(array @ Node { kind: Kind::Array(items), .. }) = find(&root, path) else { return Ok(text) };
        let spans: Vec<(usize, usize)> = items.iter().map(|item| (item.start, item.end)).collect();
        text = without(&text, array, &spans, at);
    }
}

/// Whether the text is an object without members.
pub(super) fn is_empty(text: &str) -> bool {
    parse(text).is_ok_and(|root| matches!(&root.kind, Kind::Object(members) if members.is_empty()))
}

/// The text without the child `at` of a container and without one comma. Comments around it stay.
fn without(text: &str, parent: &Node, spans: &[(usize, usize)], at: usize) -> String {
    let from = if at == 0 { parent.start + 1 } else { spans[at - 1].1 };
    let to = spans.get(at + 1).map_or(parent.end - 1, |next| next.0);
    let (space, rest) = (&text[from..spans[at].0], &text[spans[at].1..to]);
    let (mut lead, mut tail) = (space.trim_end().to_owned(), rest.to_owned());
    if let Some(comma) = comma_in(rest) {
        tail.remove(comma);
    } else if let Some(comma) = comma_in(&lead) {
        lead.remove(comma);
    }
    if lead.is_empty() && at == 0 {
        // Its place is taken by the next, or by nothing.
        let is_only = spans.len() == 1 && tail.trim().is_empty();
        (lead, tail) = if is_only { (lead, String::new()) } else { (space.to_owned(), tail.trim_start().to_owned()) };
    } else if lead.contains("//") && !tail.trim_start_matches([' ', '\t', '\r']).starts_with('\n') {
        // The end of a line ends the comment.
        lead.push('\n');
    }
    format!("{}{lead}{tail}{}", &text[..from], &text[to..])
}

/// The text with a new last child of a container.
fn insert(text: &str, parent: &Node, key: Option<&str>, value: &Value) -> String {
    let unit = unit(text);
    let last = match &parent.kind {
        Kind::Object(members) => members.last().map(|(start, _, node)| (*start, node.end)),
        Kind::Array(items) => items.last().map(|item| (item.start, item.end)),
        Kind::Other => None,
    };
    let outer = indentation_before(text, parent.start);
    let is_on_own_line = |start: usize| text[parent.start..start].contains('\n');
    let level = match last {
        Some((start, _)) if is_on_own_line(start) => indentation_before(text, start),
        _ => format!("{outer}{unit}"),
    };
    let key = key.map(|key| format!("{}: ", Value::from(key))).unwrap_or_default();
    let child = format!("\n{level}{key}{}", pretty(value, &unit, &level));
    let (child, newline) = if text.contains("\r\n") { (child.replace('\n', "\r\n"), "\r\n") } else { (child, "\n") };
    match last {
        Some((_, end)) => format!("{},{child}{}", &text[..end], &text[end..]),
        None => format!("{}{child}{newline}{outer}{}", &text[..=parent.start], &text[parent.end - 1..]),
    }
}

fn pretty(value: &Value, unit: &str, level: &str) -> String {
    let lines = serde_json::to_string_pretty(value).expect("a value can be written");
    let indented = |line: &str| {
        let body = line.trim_start();
        let depth = (line.len() - body.len()) / 2;
        format!("{}{body}", unit.repeat(depth))
    };
    lines.lines().map(indented).collect::<Vec<_>>().join(&format!("\n{level}"))
}

/// The indentation of one level: that of the first indented line, else two spaces.
fn unit(text: &str) -> String {
    let indent = |line: &str| line[..line.len() - line.trim_start().len()].to_owned();
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines.map(indent).find(|indent| !indent.is_empty()).unwrap_or_else(|| "  ".to_owned())
}

/// The indentation of the line in which a byte stands.
fn indentation_before(text: &str, at: usize) -> String {
    let line = &text[text[..at].rfind('\n').map_or(0, |end| end + 1)..at];
    line.chars().take_while(|c| *c == ' ' || *c == '\t').collect()
}

/// The deepest object on a path that exists, and the rest of the path.
fn deepest<'a, 'p>(root: &'a Node, path: &'p [&'p str]) -> Result<(&'a Node, &'p [&'p str])> {
    let depth = (0..path.len()).rev().find(|depth| find(root, &path[..*depth]).is_some()).unwrap_or(0);
    let node = find(root, &path[..depth]).unwrap_or(root);
    ensure!(matches!(node.kind, Kind::Object(_)), "{} is not an object", path[..depth].join("."));
    Ok((node, &path[depth..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const COMMENTED: &str = "// mine\n{\n    \"a\": 1, // one\n    \"hooks\": {\n        \"Stop\": [\n            \
                             {\"x\": \"/* no comment */\"} /* last */\n        ],\n    },\n}\n";

    fn edited(text: &str) -> String {
        let text = append(text, &["hooks", "Stop"], &json!({ "ours": true })).expect("it is valid");
        let text = append(&text, &["hooks", "PostToolUse"], &json!({ "ours": [1, 2] })).expect("it is valid");
        set(&text, &["mcpServers", "bellwire"], &json!({ "command": "b" })).expect("it is valid")
    }

    fn restored(text: &str) -> String {
        let ours = |value: &Value| !value["ours"].is_null();
        let text = remove_elements(text, &["hooks", "Stop"], ours).expect("it is valid");
        let text = remove_elements(&text, &["hooks", "PostToolUse"], ours).expect("it is valid");
        remove(&text, &["mcpServers", "bellwire"]).expect("it is valid")
    }

    #[test]
    fn what_is_inserted_and_removed_again_leaves_every_byte() {
        for text in [
            "{}",
            "{\n}\n",
            "{\"a\":1}",
            "{\n\t\"a\": {\n\t\t\"b\": []\n\t}\n}\n",
            "{\n  \"hooks\": {\n    \"Stop\": [\n      {\"x\": 1}\n    ]\n  },\n  \"mcpServers\": {\n    \"other\": {}\n  }\n}",
            COMMENTED,
        ] {
            let after = restored(&edited(text));
            let same = text.replace("{\n}", "{}");
            assert_eq!(after, same, "{text}");
        }
    }

    #[test]
    fn what_is_inserted_is_indented_like_the_rest_and_comments_stay() {
        insta::assert_snapshot!(edited(COMMENTED));
    }

    #[test]
    fn setting_the_same_again_changes_nothing_and_another_value_replaces_it() {
        let once = set("{}", &["a", "b"], &json!({ "c": 1 })).expect("it is valid");
        assert_eq!(set(&once, &["a", "b"], &json!({ "c": 1 })).expect("it is valid"), once);
        let other = set(&once, &["a", "b"], &json!(2)).expect("it is valid");
        assert_eq!(
            value_of(&other, &parse(&other).expect("it is valid")).expect("a value"),
            json!({ "a": { "b": 2 } })
        );
    }

    #[test]
    fn others_entries_survive_whatever_they_became() {
        let ours = |value: &Value| !value["ours"].is_null();
        for (text, left) in [
            (r#"{"h":[{"ours":1},{"x":1}]}"#, r#"{"h":[{"x":1}]}"#),
            (r#"{"h":[{"x":1},{"ours":1},{"y":1}]}"#, r#"{"h":[{"x":1},{"y":1}]}"#),
            (r#"{"h":[{"ours":1},{"ours":2}],"z":1}"#, r#"{"z":1}"#),
            ("{\"h\": [\n  1, // one\n  {\"ours\": 1}\n]}", "{\"h\": [\n  1 // one\n]}"),
            ("{\"h\": [\n  1, // one\n  {\"ours\": 1}, 2]}", "{\"h\": [\n  1, // one\n 2]}"),
            ("{\"h\": [1, // one\n  {\"ours\": 1}]}", "{\"h\": [1 // one\n]}"),
            (
                "{\"h\": [\n  {\"ours\": 1}, // it\n  // two\n  2, /* a, b */ {\"ours\": 2}, /* c */\n]}",
                "{\"h\": [\n  // it\n  // two\n  2, /* a, b */ /* c */\n]}",
            ),
            ("{\"h\": [ // why\n  {\"ours\": 1} // it\n], \"z\": 1}", "{\"z\": 1}"),
            ("{\"h\": [ // why\n  {\"ours\": 1}, {\"x\": 1} // it\n]}", "{\"h\": [ // why\n {\"x\": 1} // it\n]}"),
        ] {
            let after = remove_elements(text, &["h"], ours).expect("it is valid");
            assert_eq!(after, left, "{text}");
            parse(&after).expect("it is still valid");
        }
    }

    #[test]
    fn line_ends_are_those_of_the_file() {
        let text = "{\r\n  \"a\": 1,\r\n  \"hooks\": {}\r\n}\r\n";
        let after = edited(text);
        assert_eq!(after.matches('\n').count(), after.matches("\r\n").count(), "{after}");
        assert!(after.matches('\n').count() > 10, "{after}");
        // What was an empty container is removed with its last entry.
        assert_eq!(restored(&after), "{\r\n  \"a\": 1\r\n}\r\n");
    }

    #[test]
    fn what_is_no_json_object_is_refused_with_its_line() {
        for (text, error) in [
            ("", "line 1: it ends too early"),
            ("[]", "it is not a JSON object"),
            ("{\n\"a\": tru\n}", "line 2: 'tru' is not a value"),
            ("{\n\"a\": 1\n\"b\": 2}", "line 3: a comma or } is missing"),
            ("{\"a\": 1} x", "line 1: text behind the end of the JSON"),
            ("{\"a", "line 1: a quote is missing"),
        ] {
            assert_eq!(parse(text).expect_err(text).to_string(), error, "{text}");
        }
        assert!(parse(&"{\"a\":".repeat(500)).is_err());
        assert!(append("{\"h\": 1}", &["h"], &json!(1)).is_err());
        assert!(set("{\"h\": 1}", &["h", "x"], &json!(1)).is_err());
    }
}
