//! A strict parser of blocks: every tag, label and line must be one that the renderer wrote.

use serde_json::Value;

use crate::read_back;

/// One item of a block.
#[derive(Debug)]
pub struct Item {
    /// The label in its brackets.
    pub label: String,
    /// Its text.
    pub value: Value,
}

/// The items of a block; panics on anything that is not exactly one block.
pub fn read_block(block: &str, boundary: &str) -> Vec<Item> {
    assert_marks(block, boundary, 1);
    let open = format!("<notifications id=\"{boundary}\" count=\"");
    let inner = block.strip_prefix(&open).and_then(|rest| rest.strip_suffix("\n</notifications>"));
    let (head, body) = inner.and_then(|inner| inner.split_once('\n')).expect("one tag opens and one closes the block");
    let (count, showing) =
        head.strip_suffix("\">").and_then(|head| head.split_once("\" showing=\"")).expect("two counts");
    let (_, showing) = (number(count), number(showing));
    let mut items: Vec<String> = Vec::new();
    let mut rest = Vec::new();
    for line in body.split('\n') {
        match line.strip_prefix("- ") {
            Some(item) if items.len() < showing => items.push(item.to_owned()),
            None if rest.is_empty() && line.starts_with("  ") => {
                let item = items.last_mut().expect("a further line belongs to an item");
                item.push('\n');
                item.push_str(&line[2..]);
            }
            _ => rest.push(line),
        }
    }
    assert_eq!(items.len(), showing, "as many items as the tag says");
    assert_remainder(&rest);
    items.iter().map(|item| read_item(item)).collect()
}

/// The items of several `<notification>` elements; panics on anything else.
pub fn read_elements(text: &str, boundary: &str) -> Vec<Item> {
    let elements: Vec<&str> = text.split("\n\n<").collect();
    assert_marks(text, boundary, elements.len());
    let mut items = Vec::new();
    for (number, element) in elements.iter().enumerate() {
        let element = if number == 0 { &element[1..] } else { element };
        let open = format!("notification id=\"{boundary}\" source=\"");
        let inner = element.strip_prefix(&open).and_then(|rest| rest.strip_suffix("\n</notification>"));
        let (head, body) = inner.and_then(|inner| inner.split_once('\n')).expect("a tag opens and a tag closes");
        let attributes = head.strip_suffix("\">").expect("the opening tag ends with its line");
        let (label, times) = attributes.split_once("\" times=\"").unwrap_or((attributes, "1"));
        assert!(times.bytes().all(|byte| byte.is_ascii_digit()), "{times}");
        assert_label(label);
        let is_last = number + 1 == elements.len();
        if is_last && label == "bellwire" && (body.starts_with("- [") || body.starts_with('(')) {
            assert_remainder(&body.split('\n').collect::<Vec<_>>());
        } else {
            items.push(Item { label: label.to_owned(), value: read_back(body) });
        }
    }
    items
}

/// The items of synthetic messages, in any shape; panics on a tag or a boundary anywhere in them.
pub fn read_synthetic(messages: &[Value], boundary: &str) -> Vec<Item> {
    let whole = Value::from(messages.to_vec()).to_string();
    assert!(!whole.contains('<') && !whole.contains(boundary), "{whole}");
    let mut results = Vec::new();
    for message in messages {
        let blocks = message["content"].as_array();
        let results_of_blocks = blocks.into_iter().flatten().filter(|block| block["type"] == "tool_result");
        results.extend(results_of_blocks.filter_map(|block| block["content"].as_str()));
        results.extend(message["content"].as_str().filter(|_| message["role"] == "tool"));
        results.extend(message["output"].as_str());
    }
    let remainder = results.pop_if(|last| last.starts_with("- [") || last.starts_with('('));
    remainder.inspect(|last| assert_remainder(&last.split('\n').collect::<Vec<_>>()));
    results.into_iter().map(|text| read_item(&text.replace("\n  ", "\n"))).collect()
}

/// `[label] text`, with the text's further lines at the margin again.
fn read_item(item: &str) -> Item {
    let (label, text) = item.strip_prefix('[').and_then(|item| item.split_once("] ")).expect("a label in brackets");
    assert_label(label);
    Item { label: label.to_owned(), value: read_back(text) }
}

fn assert_marks(text: &str, boundary: &str, elements: usize) {
    assert_eq!(text.matches('<').count(), 2 * elements, "every angle bracket is ours: {text}");
    assert_eq!(text.matches(boundary).count(), elements, "the boundary marks tags and nothing else: {text}");
    let hidden = |c: char| (c.is_control() && c != '\n') || HIDDEN.contains(&c);
    assert!(!text.contains(hidden), "{text:?}");
    for line in text.split(['\n', '\u{2028}', '\u{2029}']) {
        let speaker = line.split_once(':').map(|(speaker, _)| speaker.trim().to_ascii_lowercase());
        let is_role = speaker.is_some_and(|speaker| ["human", "assistant", "system"].contains(&speaker.as_str()));
        assert!(!is_role, "nobody opens a turn: {text}");
    }
}

/// Characters that are invisible to people but not to a model.
const HIDDEN: [char; 6] = ['\u{200b}', '\u{200d}', '\u{202e}', '\u{2066}', '\u{feff}', '\u{e0041}'];

fn assert_label(label: &str) {
    let allowed = |c: char| c.is_ascii_alphanumeric() || " _.:/-…".contains(c);
    assert!(label.chars().all(allowed), "{label:?}");
}

/// `- [label] N more`, then `(N more pending)`.
fn assert_remainder(lines: &[&str]) {
    for (at, line) in lines.iter().enumerate() {
        let pending = line.strip_prefix('(').and_then(|line| line.strip_suffix(" more pending)"));
        let folded = line.strip_prefix("- [").and_then(|line| line.strip_suffix(" more")?.split_once("] "));
        match (pending, folded) {
            (Some(pending), _) => assert!(at + 1 == lines.len() && number(pending) > 0),
            (None, Some((label, items))) => {
                assert_label(label);
                assert!(number(items) > 0);
            }
            (None, None) => panic!("{line:?} is neither an item nor a summing line"),
        }
    }
}

fn number(text: &str) -> usize {
    text.parse().unwrap_or_else(|_| panic!("{text:?} is not a number"))
}
