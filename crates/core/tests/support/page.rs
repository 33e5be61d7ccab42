//! Parses what an agent reads, as strictly as possible: event text must not be able to end its block, open another, add
//! an item, or be anything but a value.

use bellwire_core::inject::Style;
use bellwire_core::{Boundary, Inject, Injection};
use serde_json::Value;

/// One parsed item.
#[derive(Debug, PartialEq)]
pub(crate) struct Line {
    pub(crate) label: String,
    pub(crate) text: String,
}

/// A parsed injection.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Page {
    pub(crate) items: Vec<Line>,
    /// Labels and numbers of the fold lines.
    pub(crate) folded: Vec<(String, usize)>,
    pub(crate) pending: usize,
    /// All text that counts against the token limit.
    pub(crate) text: String,
}

/// Parses the injection in the requested style, and checks that no value escapes its position.
pub(crate) fn read(request: &Inject, answer: &Injection, boundary: &Boundary) -> Page {
    let page = match request.style {
        _ if answer.count == 0 || answer.showing == 0 => {
            assert!(answer.block.is_empty() && answer.messages.is_empty(), "nothing was shown: {}", answer.block);
            return Page::default();
        }
        Style::Block => read_block(answer, boundary.as_str()),
        Style::Append => read_elements(answer, boundary.as_str()),
        Style::Synthetic => read_messages(answer, boundary.as_str()),
    };
    page.items.iter().for_each(check_item);
    page
}

fn read_block(answer: &Injection, boundary: &str) -> Page {
    let text = &answer.block;
    let (count, showing) = (answer.count, answer.showing);
    let open = format!("<notifications id=\"{boundary}\" count=\"{count}\" showing=\"{showing}\">\n");
    let body = text.strip_prefix(&open).unwrap_or_else(|| panic!("{text}\ndoes not begin with\n{open}"));
    let body = body.strip_suffix("\n</notifications>").unwrap_or_else(|| panic!("{text}\nhas no end"));
    assert!(!body.contains('<'), "something opens a tag in\n{text}");
    assert!(!body.contains(boundary), "the boundary occurs in\n{text}");
    read_lines(body, showing, true, text)
}

fn read_elements(answer: &Injection, boundary: &str) -> Page {
    let text = &answer.block;
    let mut page = Page { text: text.clone(), ..Page::default() };
    let mut rest = text.as_str();
    let elements = answer.showing + usize::from(answer.folded + answer.pending > 0);
    for number in 0..elements {
        let open = format!("<notification id=\"{boundary}\" source=\"");
        let behind = rest.strip_prefix(&open).unwrap_or_else(|| panic!("{rest}\ndoes not begin with\n{open}"));
        let (attributes, behind) = behind.split_once("\">\n").expect("a tag ends");
        let (body, behind) = behind.split_once("\n</notification>").expect("an element ends");
        for part in [attributes, body] {
            assert!(!part.contains('<') && !part.contains(boundary), "{part:?} escapes from\n{text}");
        }
        let label = attributes.replacen("\" times=\"", " x", 1);
        assert!(!label.contains('"'), "{label} has an attribute too many");
        if number < answer.showing {
            page.items.push(Line { label, text: body.to_owned() });
        } else {
            let remainder = read_lines(body, 0, true, text);
            (page.folded, page.pending) = (remainder.folded, remainder.pending);
        }
        rest = if number + 1 < elements { behind.strip_prefix("\n\n").expect("elements are apart") } else { behind };
    }
    assert_eq!(rest, "", "something stands behind the last element of\n{text}");
    page
}

fn read_messages(answer: &Injection, boundary: &str) -> Page {
    assert!(answer.block.is_empty());
    let texts = texts(&answer.messages);
    assert_eq!(texts.len(), answer.showing + usize::from(answer.folded + answer.pending > 0));
    let mut page = Page { text: texts.join("\n"), ..Page::default() };
    assert!(!page.text.contains('<') && !page.text.contains(boundary), "something escapes from {}", page.text);
    for (number, text) in texts.iter().enumerate() {
        let mut one = read_lines(text, usize::from(number < answer.showing), number >= answer.showing, text);
        page.items.append(&mut one.items);
        page.folded.append(&mut one.folded);
        page.pending += one.pending;
    }
    page
}

/// The texts of synthetic results in any shape. Every result must belong to a call.
fn texts(messages: &[Value]) -> Vec<String> {
    let (mut texts, mut calls, mut results) = (Vec::new(), Vec::new(), Vec::new());
    for message in messages {
        let parts = message["content"].as_array().map_or_else(|| vec![message.clone()], Clone::clone);
        for part in parts {
            let made = part["tool_calls"].as_array().cloned().unwrap_or_default();
            calls.extend(made.iter().map(|call| call["id"].clone()));
            match (part["type"].as_str(), part["role"].as_str()) {
                (Some("tool_use"), _) => calls.push(part["id"].clone()),
                (Some("function_call"), _) => calls.push(part["call_id"].clone()),
                (Some("tool_result"), _) => results.push((part["tool_use_id"].clone(), part["content"].clone())),
                (Some("function_call_output"), _) => results.push((part["call_id"].clone(), part["output"].clone())),
                (None, Some("tool")) => results.push((part["tool_call_id"].clone(), part["content"].clone())),
                _ => {}
            }
        }
    }
    assert_eq!(calls, results.iter().map(|(call, _)| call.clone()).collect::<Vec<_>>());
    assert!(calls.iter().all(|call| call.as_str().is_some_and(|id| id.starts_with("notif_") && id.len() <= 40)));
    texts.extend(results.iter().map(|(_, text)| text.as_str().expect("a result is a text").to_owned()));
    texts
}

/// `- [label] text`, further lines indented; then at most five `- [label] N more`; then `(N more pending)`. Items of a
/// synthetic result have no dash.
fn read_lines(body: &str, showing: usize, dashed: bool, whole: &str) -> Page {
    let mut page = Page { text: whole.to_owned(), ..Page::default() };
    for line in body.split('\n') {
        let undashed = if dashed { line.strip_prefix("- ") } else { Some(line) };
        if let Some(more) = line.strip_prefix("  ") {
            let item = page.items.last_mut().expect("only an item goes on");
            assert!(page.folded.is_empty() && page.pending == 0, "{line:?} belongs to nothing in\n{whole}");
            item.text.push('\n');
            item.text.push_str(more);
        } else if let Some(begun) = undashed.and_then(|line| line.strip_prefix('[')) {
            let (label, text) = begun.split_once("] ").unwrap_or_else(|| panic!("{line:?} has no label"));
            if page.items.len() < showing {
                page.items.push(Line { label: label.to_owned(), text: text.to_owned() });
            } else {
                let number = text.strip_suffix(" more").and_then(|number| number.parse().ok());
                let number = number.unwrap_or_else(|| panic!("{line:?} is an item too many in\n{whole}"));
                page.folded.push((label.to_owned(), number));
            }
        } else {
            let number = line.strip_prefix('(').and_then(|line| line.strip_suffix(" more pending)"));
            assert_eq!(page.pending, 0, "two lines say what is pending in\n{whole}");
            page.pending = number.and_then(|number| number.parse().ok()).unwrap_or_else(|| {
                panic!("{line:?} is neither an item nor a count in\n{whole}");
            });
        }
    }
    assert_eq!(page.items.len(), showing, "items in\n{whole}");
    page
}

/// An item's text is one TOON document in the reference encoding, and none of its lines opens a turn.
fn check_item(item: &Line) {
    let text = &item.text;
    let read: Value = toon_format::decode_default(text).unwrap_or_else(|error| panic!("{error} in\n{text}"));
    let again = toon_format::encode_default(&read).expect("what was read can be written");
    assert_eq!(*text, again, "the reference spells it differently");
    let hidden =
        |c: char| (c.is_control() && c != '\n') || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}');
    assert!(!text.contains(hidden), "{text:?} hides something");
    for line in text.lines() {
        let name = line.split(':').next().unwrap_or_default().trim().trim_matches('"').to_lowercase();
        assert!(!line.contains(':') || !["human", "assistant", "system"].contains(&name.as_str()), "{line} is a turn");
    }
    assert!(!item.label.contains(['[', ']', '\n', '"', '<']), "{:?} is no label", item.label);
}
