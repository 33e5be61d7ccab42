//! A small parser of JSON with comments and trailing commas that knows where each value stands.

use anyhow::{Result, bail, ensure};
use serde_json::Value;

/// Deeper files are refused.
const DEPTH_MAX: usize = 100;

/// A value in the text: its first byte, and the one behind its last.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) kind: Kind,
}

#[derive(Debug)]
pub(super) enum Kind {
    /// Each member: where its name begins, its name, its value.
    Object(Vec<(usize, String, Node)>),
    Array(Vec<Node>),
    Other,
}

pub(super) fn parse(text: &str) -> Result<Node> {
    let mut parser = Parser { text, at: 0 };
    let root = parser.value(0)?;
    parser.space();
    ensure!(parser.at == text.len(), "line {}: text behind the end of the JSON", parser.line());
    ensure!(matches!(root.kind, Kind::Object(_)), "it is not a JSON object");
    Ok(root)
}

/// The value at a path of names, and of indexes into arrays.
pub(super) fn find<'a>(node: &'a Node, path: &[&str]) -> Option<&'a Node> {
    let Some((key, rest)) = path.split_first() else { return Some(node) };
    let child = match &node.kind {
        // Of a name that stands twice, the last counts.
        Kind::Object(members) => members.iter().rev().find(|(_, name, _)| name == key).map(|(_, _, child)| child)?,
        Kind::Array(items) => items.get(key.parse::<usize>().ok()?)?,
        Kind::Other => return None,
    };
    find(child, rest)
}

/// The value of a node, without its comments and trailing commas.
pub(super) fn value_of(text: &str, node: &Node) -> Result<Value> {
    Ok(match &node.kind {
        Kind::Object(members) => {
            let members = members.iter().map(|(_, name, node)| Ok((name.clone(), value_of(text, node)?)));
            Value::Object(members.collect::<Result<_>>()?)
        }
        Kind::Array(items) => Value::Array(items.iter().map(|item| value_of(text, item)).collect::<Result<_>>()?),
        Kind::Other => serde_json::from_str(&text[node.start..node.end])?,
    })
}

/// The comma between two values.
pub(super) fn comma_in(between: &str) -> Option<usize> {
    let mut parser = Parser { text: between, at: 0 };
    parser.space();
    parser.rest().starts_with(',').then_some(parser.at)
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
