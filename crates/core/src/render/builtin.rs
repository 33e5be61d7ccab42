//! The built-in forms, used without a working template: one short line for one event, a table for several.

use super::TemplateEvent;
use super::toon::{Document, Field, Scalar, Shape, Table};
use crate::event::cut;
use crate::inject::BlockItem;
use crate::notification::LeftOut;

/// In characters: how much of the repeated event's text is shown again.
const AGAIN_MAX: usize = 100;

/// The form used where a template fails. It shows every event, but not the template's wording.
pub(crate) fn events(item: &BlockItem, events: &[TemplateEvent]) -> Document {
    match events {
        [] => Document::Text(format!("{} events of {} (no longer stored)", item.events.len(), item.subscriber)),
        [one] => field(one.event.kind().as_str(), one.event.message()),
        several => table(several),
    }
}

/// Repeats of an event shown before. Uses the subscriber's rendered text if it is one line.
pub(crate) fn repeats(item: &BlockItem, events: &[TemplateEvent], rendered: Option<Document>) -> Document {
    let times = match item.events.iter().map(|entry| u64::from(entry.merged)).sum() {
        1_u64 => "1 more time".to_owned(),
        times => format!("{times} more times"),
    };
    match events {
        [one] => {
            let text = rendered.and_then(one_line).unwrap_or_else(|| one.event.message());
            field("again", format!("{times}, {}", cut(&text, AGAIN_MAX)))
        }
        _ => field("again", format!("{times}, {} different events", item.events.len())),
    }
}

/// The text of a document that is one short line.
fn one_line(document: Document) -> Option<String> {
    match document {
        Document::Text(text) => Some(text),
        Document::Fields(mut fields) if fields.len() == 1 => match fields.pop()?.value {
            Shape::Scalar(Scalar::Text(text)) => Some(text),
            _ => None,
        },
        Document::Fields(_) => None,
    }
}

/// The counts of notifications that did not fit into the mailbox.
pub(crate) fn left_out(counts: &LeftOut) -> Document {
    field("left_out", counts.message())
}

fn field(key: &str, text: String) -> Document {
    Document::Fields(vec![Field { key: key.to_owned(), value: Shape::Scalar(Scalar::Text(text)) }])
}

fn table(events: &[TemplateEvent]) -> Document {
    let columns = ["type", "source", "message"].map(str::to_owned).to_vec();
    let row = |one: &TemplateEvent| {
        [one.event.kind().to_string(), one.event.source().to_string(), one.event.message()].map(Scalar::Text)
    };
    let cells = events.iter().flat_map(row).collect();
    let table = Table::new(columns, cells).expect("every row has as many cells as there are columns");
    Document::Fields(vec![Field { key: "notifications".to_owned(), value: Shape::Table(table) }])
}
