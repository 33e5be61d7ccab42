//! The text an agent reads: one block, or one element each.

use std::fmt::Write as _;
use std::sync::Arc;

use super::Boundary;
use crate::inject::Style;

/// One item, rendered.
#[derive(Clone, Debug)]
pub(crate) struct RenderedItem {
    pub(crate) label: Arc<str>,
    /// How many events it stands for, where repeats were merged.
    pub(crate) times: Option<u64>,
    /// What it says, as TOON.
    pub(crate) text: String,
}

/// `- [label] N more`.
#[derive(Clone, Debug)]
pub(crate) struct FoldLine {
    pub(crate) label: Arc<str>,
    pub(crate) items: usize,
}

/// The items that are not shown: those summed up in lines, and how many still wait.
#[derive(Clone, Debug)]
pub(crate) struct Rest {
    pub(crate) fold_lines: Vec<FoldLine>,
    pub(crate) pending: usize,
}

/// Everything one answer says.
#[derive(Clone, Debug)]
pub(crate) struct BlockContent {
    pub(crate) shown: Vec<RenderedItem>,
    pub(crate) rest: Rest,
}

/// Puts a page between our tags.
pub(crate) struct BlockWriter<'a> {
    pub(crate) style: Style,
    pub(crate) boundary: &'a Boundary,
}

impl BlockWriter<'_> {
    /// An empty page for `count` items, of which it may come to show some.
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

/// A page that is written item by item and can be closed behind any of them.
pub(crate) struct Draft<'a> {
    wrapper: &'a BlockWriter<'a>,
    /// How many items there are, shown or not.
    count: usize,
    /// Where the items begin. The head in front of them is as short as it can be: it says that one item is shown.
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

    /// The page with every item added so far and nothing about the others: no page that shows these is shorter.
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

    /// Where the next item goes.
    fn open(&self) -> usize {
        self.ends.last().copied().unwrap_or(self.head)
    }
}

/// Every item and line as a text of its own, without tags: what synthetic results say.
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

/// `[label x7] text`, further lines indented by two so that they belong to the item.
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

/// What is not shown: the lines that sum it up, and how much still waits.
fn remainder(rest: &Rest) -> Vec<String> {
    let folded = rest.fold_lines.iter().map(|line| format!("- [{}] {} more", line.label, line.items));
    let pending = (rest.pending > 0).then(|| format!("({} more pending)", rest.pending));
    folded.chain(pending).collect()
}
