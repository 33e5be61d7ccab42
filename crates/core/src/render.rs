//! Renders events into bounded text that event data cannot break out of.
//!
//! A template (or the built-in form) produces a [`toon::Document`]; the guard escapes its texts; the block, append and
//! synthetic writers write it for the model. Rendering happens at injection time, with the counts of that moment.

mod block;
mod boundary;
mod builtin;
mod fields;
mod filters;
pub mod guard;
mod language;
mod marked;
mod prompt;
mod render_budget;
mod shorten;
mod synthetic;
mod template;
pub mod toon;
mod view;

pub use boundary::Boundary;
pub use prompt::system_prompt;
pub use synthetic::{NOTIFICATION_TOOL, tool_definition};
pub use template::{Template, TemplateError, TemplateEvent};

pub(crate) use block::{BlockContent, BlockWriter, FoldLine, RenderedItem, Rest};
pub(crate) use synthetic::synthetic_messages;

use std::sync::Arc;

use crate::EventId;
use crate::event::Event;
use crate::inject::BlockItem;
use crate::mailbox::EventLookup;
use crate::notification::NotificationKind;
use crate::subscriber::{Subscriber, Subscribers};
use guard::guard;
use toon::{Document, Scalar, Shape};

/// A rendered item, the document its text was written from, and the template's error, if any.
pub(crate) struct RenderOutcome {
    pub(crate) shown: RenderedItem,
    pub(crate) document: Document,
    /// The event to name when the text is shortened; set for a person's message and an agent's note.
    pub(crate) whole: Option<EventId>,
    pub(crate) template_error: Option<String>,
}

/// Renders one item. If the template fails, the item gets the built-in form, so that every item has text.
pub(crate) fn render_item(
    item: &BlockItem,
    subscribers: &Subscribers,
    events: &dyn EventLookup,
    boundary: &Boundary,
) -> RenderOutcome {
    let events: Vec<TemplateEvent> = item
        .events
        .iter()
        .filter_map(|entry| Some(TemplateEvent { event: events.event(entry.event)?, repeats: entry.merged }))
        .collect();
    let (document, template_error) = document_of(item, subscribers, &events);
    let document = guarded(document, boundary);
    let shown = RenderedItem {
        label: safe_label(&label(item, &events), item, boundary),
        times: item.times,
        text: document.to_toon(),
    };
    let whole = match events.as_slice() {
        [one] if one.event.is_shown_in_full() => Some(one.event.id()),
        _ => None,
    };
    RenderOutcome { shown, document, whole, template_error }
}

/// The unguarded document of an item, and the template's error, if any.
fn document_of(item: &BlockItem, subscribers: &Subscribers, events: &[TemplateEvent]) -> (Document, Option<String>) {
    match (&item.kind, subscribers.find_or_retired(&item.subscriber)) {
        (NotificationKind::LeftOut(left_out), _) => (builtin::left_out(left_out), None),
        (NotificationKind::Repeats, Some(subscriber)) if events.len() == 1 => {
            let rendered = subscriber.template.render(subscriber, events);
            let error = rendered.as_ref().err().cloned();
            (builtin::repeats(item, events, rendered.ok()), error)
        }
        (NotificationKind::Repeats, _) => (builtin::repeats(item, events, None), None),
        (NotificationKind::Events, Some(subscriber)) if !events.is_empty() => {
            match subscriber.template.render(subscriber, events) {
                Ok(document) => (document, None),
                Err(error) => (builtin::events(item, events), Some(error)),
            }
        }
        // The subscriber's file was removed before a restart, or the events are no longer stored.
        (NotificationKind::Events, _) => (builtin::events(item, events), None),
    }
}

/// The label, if the guard leaves it unchanged; otherwise the subscriber's id. Removing the boundary from a source
/// could turn it into another label, even into `user`.
pub(crate) fn safe_label(label: &Arc<str>, item: &BlockItem, boundary: &Boundary) -> Arc<str> {
    match guard(label, boundary.as_str()) == **label {
        true => label.clone(),
        false => item.subscriber.shared(),
    }
}

/// The common source of all events, otherwise the item's own label. It is computed here, because repeats are counted
/// per event, not per source, and a newer event may have replaced the one of another source.
fn label(item: &BlockItem, events: &[TemplateEvent]) -> Arc<str> {
    let mut sources = events.iter().map(|event| event.event.source());
    match sources.next() {
        Some(first) if events.len() == item.events.len() && sources.all(|source| source == first) => first.shared(),
        _ => item.label.clone(),
    }
}

/// Guards every text of a document. Quoting comes later.
pub(crate) fn guarded(mut document: Document, boundary: &Boundary) -> Document {
    let guard_text = |text: &mut String| {
        if let std::borrow::Cow::Owned(safe) = guard(text, boundary.as_str()) {
            *text = safe;
        }
    };
    match &mut document {
        Document::Text(text) => guard_text(text),
        Document::Fields(fields) => fields.iter_mut().for_each(|field| {
            guard_text(&mut field.key);
            let scalars = match &mut field.value {
                Shape::Scalar(scalar) => std::slice::from_mut(scalar),
                Shape::List(scalars) => scalars.as_mut_slice(),
                Shape::Table(table) => table.cells_mut(),
            };
            for scalar in scalars {
                if let Scalar::Text(text) = scalar {
                    guard_text(text);
                }
            }
        }),
    }
    document
}

impl Subscriber {
    /// Renders these events as one item; the error says why the template failed.
    pub fn dry_run(&self, events: &[Arc<Event>], boundary: &Boundary) -> Result<Document, String> {
        let events: Vec<_> = events.iter().map(|event| TemplateEvent { event: event.clone(), repeats: 0 }).collect();
        self.template.render(self, &events).map(|document| guarded(document, boundary))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Conversation, Inject, InjectionPoint, Severity, Time};
    use serde_json::json;

    #[test]
    fn a_source_with_the_boundary_cannot_become_another_label() {
        let mut conversation = Conversation::new(Subscribers::bundled().into(), crate::Randomness::repeatable(1));
        let source = format!("us{}er", conversation.boundary());
        let event = Event::new("tool.call.failure", &source, Severity::Error, json!({"tool_name": "grep"})).unwrap();
        let now = Time::from_millis(1_000_000);
        conversation.publish(event, now).unwrap();
        let inject = Inject::new(InjectionPoint::AfterTool, "call_1").unwrap();
        let block = conversation.inject(inject, now).unwrap().block;
        assert!(block.contains("\n- [tool_failure] tool_fail: grep error\n"), "{block}");
    }
}
