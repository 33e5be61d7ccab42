//! The text an agent reads: one block, or one element each.

use std::fmt::Write as _;

use super::Boundary;
use super::toon::Document;
use crate::inject::Style;

/// One item, worded.
#[derive(Clone, Debug)]
pub(crate) struct Shown {
    pub(crate) label: String,
    /// How many events it stands for, where repeats were merged.
    pub(crate) times: Option<u64>,
    pub(crate) document: Document,
}

/// `- [label] N more`.
#[derive(Clone, Debug)]
pub(crate) struct FoldLine {
    pub(crate) label: String,
    pub(crate) items: usize,
}

/// Everything one answer says.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    pub(crate) shown: Vec<Shown>,
    pub(crate) fold_lines: Vec<FoldLine>,
    pub(crate) count: usize,
    pub(crate) pending: usize,
}

/// Puts a page between our tags.
pub(crate) struct Wrapper<'a> {
    pub(crate) style: Style,
    pub(crate) boundary: &'a Boundary,
}

impl Wrapper<'_> {
    pub(crate) fn write(&self, page: &Page) -> String {
        match self.style {
            Style::Block => self.block(page),
            Style::Append => self.elements(page),
            Style::Synthetic => texts(page).join("\n"),
        }
    }

    fn block(&self, page: &Page) -> String {
        let showing = page.shown.len();
        let mut text =
            format!("<notifications id=\"{}\" count=\"{}\" showing=\"{showing}\">\n", self.boundary, page.count);
        for shown in &page.shown {
            text.push_str("- ");
            write_item(shown, &mut text);
            text.push('\n');
        }
        for line in remainder(page) {
            text.push_str(&line);
            text.push('\n');
        }
        text.push_str("</notifications>");
        text
    }

    fn elements(&self, page: &Page) -> String {
        let mut elements: Vec<String> = page.shown.iter().map(|shown| self.element(shown)).collect();
        let rest = remainder(page);
        if !rest.is_empty() {
            let open = format!("<notification id=\"{}\" source=\"bellwire\">", self.boundary);
            elements.push(format!("{open}\n{}\n</notification>", rest.join("\n")));
        }
        elements.join("\n\n")
    }

    fn element(&self, shown: &Shown) -> String {
        let times = shown.times.map(|times| format!(" times=\"{times}\"")).unwrap_or_default();
        let open = format!("<notification id=\"{}\" source=\"{}\"{times}>", self.boundary, shown.label);
        format!("{open}\n{}\n</notification>", shown.document.to_toon())
    }
}

/// Every item and line as a text of its own, without tags: what synthetic results say.
pub(crate) fn texts(page: &Page) -> Vec<String> {
    let item = |shown: &Shown| {
        let mut text = String::new();
        write_item(shown, &mut text);
        text
    };
    let rest = remainder(page);
    let rest = (!rest.is_empty()).then(|| rest.join("\n"));
    page.shown.iter().map(item).chain(rest).collect()
}

/// `[label x7] text`, further lines indented by two so that they belong to the item.
fn write_item(shown: &Shown, out: &mut String) {
    let _ = match shown.times {
        Some(times) => write!(out, "[{} x{times}] ", shown.label),
        None => write!(out, "[{}] ", shown.label),
    };
    for (number, line) in shown.document.to_toon().split('\n').enumerate() {
        if number > 0 {
            out.push_str("\n  ");
        }
        out.push_str(line);
    }
}

/// What is not shown: the lines that sum it up, and how much still waits.
fn remainder(page: &Page) -> Vec<String> {
    let folded = page.fold_lines.iter().map(|line| format!("- [{}] {} more", line.label, line.items));
    let pending = (page.pending > 0).then(|| format!("({} more pending)", page.pending));
    folded.chain(pending).collect()
}
