//! Edits of JSON with comments that keep every other byte: a small parser that knows where each value stands.
//!
//! Settings files belong to people, who order, indent and comment them. So a value is inserted behind the last one of its
//! container, in the file's own indentation, and removed with exactly the bytes that inserting it added.

use anyhow::{Result, bail, ensure};
use serde_json::Value;

/// Deeper files are refused.
const DEPTH_MAX: usize = 100;

/// A value in the text: its first byte, and the one behind its last.
#[derive(Debug)]
struct Node {
    start: usize,
    end: usize,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// Each member: where its name begins, its name, its value.
    Object(Vec<(usize, String, Node)>),
    Array(Vec<Node>),
    Other,
}

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

/// The comma between two values.
fn comma_in(between: &str) -> Option<usize> {
    let mut parser = Parser { text: between, at: 0 };
    parser.space();
    parser.rest().starts_with(',').then_some(parser.at)
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

/// The value at a path of names, and of indexes into arrays.
fn find<'a>(node: &'a Node, path: &[&str]) -> Option<&'a Node> {
    let Some((key, rest)) = path.split_first() else { return Some(node) };
    let child = match &node.kind {
        // Of a name that stands twice, the last counts.
        Kind::Object(members) => members.iter().rev().find(|(_, name, _)| name == key).map(|(_, _, child)| child)?,
        Kind::Array(items) => items.get(key.parse::<usize>().ok()?)?,
        Kind::Other => return None,
    };
    find(child, rest)
}

/// The deepest object on a path that exists, and the rest of the path.
fn deepest<'a, 'p>(root: &'a Node, path: &'p [&'p str]) -> Result<(&'a Node, &'p [&'p str])> {
    let depth = (0..path.len()).rev().find(|depth| find(root, &path[..*depth]).is_some()).unwrap_or(0);
    let node = find(root, &path[..depth]).unwrap_or(root);
    ensure!(matches!(node.kind, Kind::Object(_)), "{} is not an object", path[..depth].join("."));
    Ok((node, &path[depth..]))
}

/// The value of a node, without its comments and trailing commas.
fn value_of(text: &str, node: &Node) -> Result<Value> {
    Ok(match &node.kind {
        Kind::Object(members) => {
            let members = members.iter().map(|(_, name, node)| Ok((name.clone(), value_of(text, node)?)));
            Value::Object(members.collect::<Result<_>>()?)
        }
        Kind::Array(items) => Value::Array(items.iter().map(|item| value_of(text, item)).collect::<Result<_>>()?),
        Kind::Other => serde_json::from_str(&text[node.start..node.end])?,
    })
}

fn parse(text: &str) -> Result<Node> {
    let mut parser = Parser { text, at: 0 };
    let root = parser.value(0)?;
    parser.space();
    ensure!(parser.at == text.len(), "line {}: text behind the end of the JSON", parser.line());
    ensure!(matches!(root.kind, Kind::Object(_)), "it is not a JSON object");
    Ok(root)
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl Parser<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn line(&self) -> usize {
        self.text[..self.at].matches('\n').count() + 1
    }

    /// Skips space and comments.
    fn space(&mut self) {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '\u{feff}');
            let skipped = rest.len() - trimmed.len();
            let comment = if trimmed.starts_with("//") {
                trimmed.find('\n').unwrap_or(trimmed.len())
            } else if let Some(inside) = trimmed.strip_prefix("/*") {
                inside.find("*/").map_or(trimmed.len(), |end| end + 4)
            } else {
                0
            };
            if skipped + comment == 0 {
                return;
            }
            self.at += skipped + comment;
        }
    }

    fn value(&mut self, depth: usize) -> Result<Node> {
        ensure!(depth < DEPTH_MAX, "it is nested too deeply");
        self.space();
        let start = self.at;
        let kind = match self.rest().bytes().next() {
            Some(b'{') => self.object(depth)?,
            Some(b'[') => self.array(depth)?,
            Some(b'"') => {
                self.string()?;
                Kind::Other
            }
            Some(_) => {
                let is_end = |c: char| c.is_ascii_whitespace() || ",]}/".contains(c);
                let length = self.rest().find(is_end).unwrap_or(self.rest().len());
                let word = &self.rest()[..length];
                ensure!(serde_json::from_str::<Value>(word).is_ok(), "line {}: '{word}' is not a value", self.line());
                self.at += length;
                Kind::Other
            }
            None => bail!("line {}: it ends too early", self.line()),
        };
        Ok(Node { start, end: self.at, kind })
    }

    fn object(&mut self, depth: usize) -> Result<Kind> {
        let mut members = Vec::new();
        self.at += 1;
        while !self.closes('}')? {
            let start = self.at;
            let name = self.string()?;
            self.space();
            ensure!(self.rest().starts_with(':'), "line {}: a colon is missing", self.line());
            self.at += 1;
            members.push((start, name, self.value(depth + 1)?));
            self.comma('}')?;
        }
        Ok(Kind::Object(members))
    }

    fn array(&mut self, depth: usize) -> Result<Kind> {
        let mut items = Vec::new();
        self.at += 1;
        while !self.closes(']')? {
            items.push(self.value(depth + 1)?);
            self.comma(']')?;
        }
        Ok(Kind::Array(items))
    }

    fn closes(&mut self, end: char) -> Result<bool> {
        self.space();
        ensure!(!self.rest().is_empty(), "line {}: {end} is missing", self.line());
        let closes = self.rest().starts_with(end);
        self.at += usize::from(closes);
        Ok(closes)
    }

    fn comma(&mut self, end: char) -> Result<()> {
        self.space();
        if self.rest().starts_with(',') {
            self.at += 1;
            return Ok(());
        }
        ensure!(self.rest().starts_with(end), "line {}: a comma or {end} is missing", self.line());
        Ok(())
    }

    fn string(&mut self) -> Result<String> {
        ensure!(self.rest().starts_with('"'), "line {}: a name in quotes is missing", self.line());
        let (mut end, mut escaped) = (None, false);
        for (at, c) in self.rest().char_indices().skip(1) {
            match c {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '"' => {
                    end = Some(at + 1);
                    break;
                }
                _ => {}
            }
        }
        let Some(end) = end else { bail!("line {}: a quote is missing", self.line()) };
        let string = serde_json::from_str(&self.rest()[..end])?;
        self.at += end;
        Ok(string)
    }
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
