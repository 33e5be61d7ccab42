//! Writes the text an agent reads: one block, or one element per item.

use std::fmt::Write as _;
use std::sync::Arc;

use super::Boundary;
use crate::inject::Style;

/// One item, rendered.
#[derive(Clone, Debug)]
pub(crate) struct RenderedItem {
    pub(crate) label: Arc<str>,
    /// The number of events including merged repeats; `None` if no repeats were merged.
    pub(crate) times: Option<u64>,
    /// The content, as TOON.
    pub(crate) text: String,
}

/// `- [label] N more`.
#[derive(Clone, Debug)]
pub(crate) struct FoldLine {
    pub(crate) label: Arc<str>,
    pub(crate) items: usize,
}

/// The items not shown: the fold lines, and the number of items still pending.
#[derive(Clone, Debug)]
pub(crate) struct Rest {
    pub(crate) fold_lines: Vec<FoldLine>,
    pub(crate) pending: usize,
}

/// The content of one response.
#[derive(Clone, Debug)]
pub(crate) struct BlockContent {
    pub(crate) shown: Vec<RenderedItem>,
    pub(crate) rest: Rest,
}

/// Writes a page between the tags of its style.
pub(crate) struct BlockWriter<'a> {
    pub(crate) style: Style,
    pub(crate) boundary: &'a Boundary,
}

impl BlockWriter<'_> {
    /// An empty page for `count` items, not all of which need to be shown.
    pub(crate) fn draft(&self, count: usize) -> Draft<'_> {
        let text = self.head(count, 1);
        Draft { wrapper: self, count, head: text.len(), ends: Vec::new(), text }
    }

    fn head(&self, count: usize, showing: usize) -> String {
        match self.style {
            Style::Block => {
                format!("<notifications id=\"{}\" count=\"{count}\" showing=\"{showing}\">\n", self.boundary)
            }
            Style::Append | Style::Synthetic => String::new(),
        }
    }

    fn tail(&self) -> &'static str {
        match self.style {
            Style::Block => "</notifications>",
            Style::Append | Style::Synthetic => "",
        }
    }

    fn write_item(&self, shown: &RenderedItem, out: &mut String) {
        match self.style {
            Style::Block => {
                out.push_str("- ");
                write_item(shown, out);
                out.push('\n');
            }
            Style::Append => {
                self.open_element(&shown.label, shown.times, out);
                out.push_str(&shown.text);
                out.push_str(CLOSE_ELEMENT);
            }
            Style::Synthetic => {
                separate(out, "\n");
                write_item(shown, out);
            }
        }
    }

    fn write_rest(&self, rest: &Rest, out: &mut String) {
        let lines = remainder(rest);
        if lines.is_empty() {
            return;
        }
        match self.style {
            Style::Block => lines.iter().for_each(|line| {
                out.push_str(line);
                out.push('\n');
            }),
            Style::Append => {
                self.open_element("bellwire", None, out);
                out.push_str(&lines.join("\n"));
                out.push_str(CLOSE_ELEMENT);
            }
            Style::Synthetic => {
                separate(out, "\n");
                out.push_str(&lines.join("\n"));
            }
        }
    }

    fn open_element(&self, source: &str, times: Option<u64>, out: &mut String) {
        separate(out, "\n\n");
        let _ = write!(out, "<notification id=\"{}\" source=\"{source}\"", self.boundary);
        if let Some(times) = times {
            let _ = write!(out, " times=\"{times}\"");
        }
        out.push_str(">\n");
    }
}

const CLOSE_ELEMENT: &str = "\n</notification>";

/// Writes the separator unless `out` is empty.
fn separate(out: &mut String, separator: &str) {
    if !out.is_empty() {
        out.push_str(separator);
    }
}

/// A page written item by item. It can be closed after any of them.
pub(crate) struct Draft<'a> {
    wrapper: &'a BlockWriter<'a>,
    /// The number of items, shown or not.
    count: usize,
    /// Where the items begin. The head before them has its minimal length: it states that one item is shown.
    head: usize,
    /// Where each item ends.
    ends: Vec<usize>,
    text: String,
}

impl Draft<'_> {
    pub(crate) fn add(&mut self, shown: &RenderedItem) {
        self.text.truncate(self.open());
        self.wrapper.write_item(shown, &mut self.text);
        self.ends.push(self.text.len());
        self.text.push_str(self.wrapper.tail());
    }

    /// The page with every item added so far and no remainder: the shortest page that shows these items.
    pub(crate) fn shortest(&self) -> &str {
        &self.text
    }

    /// The page that shows the first `showing` items.
    pub(crate) fn closed(&self, showing: usize, rest: &Rest) -> String {
        let end = showing.checked_sub(1).map_or(self.head, |last| self.ends[last]);
        let mut text = self.wrapper.head(self.count, showing);
        text.push_str(&self.text[self.head..end]);
        self.wrapper.write_rest(rest, &mut text);
        text.push_str(self.wrapper.tail());
        text
    }

    /// Where the next item is written.
    fn open(&self) -> usize {
        self.ends.last().copied().unwrap_or(self.head)
    }
}

/// Every item and the remainder as separate texts without tags, for synthetic results.
pub(crate) fn texts(page: &BlockContent) -> Vec<String> {
    let item = |shown: &RenderedItem| {
        let mut text = String::new();
        write_item(shown, &mut text);
        text
    };
    let rest = remainder(&page.rest);
    let rest = (!rest.is_empty()).then(|| rest.join("\n"));
    page.shown.iter().map(item).chain(rest).collect()
}

/// `[label x7] text`; further lines are indented by two spaces.
fn write_item(shown: &RenderedItem, out: &mut String) {
    let _ = match shown.times {
        Some(times) => write!(out, "[{} x{times}] ", shown.label),
        None => write!(out, "[{}] ", shown.label),
    };
    for (number, line) in shown.text.split('\n').enumerate() {
        if number > 0 {
            out.push_str("\n  ");
        }
        out.push_str(line);
    }
}

/// The fold lines and the number of pending items.
fn remainder(rest: &Rest) -> Vec<String> {
    let folded = rest.fold_lines.iter().map(|line| format!("- [{}] {} more", line.label, line.items));
    let pending = (rest.pending > 0).then(|| format!("({} more pending)", rest.pending));
    folded.chain(pending).collect()
}
