//! From events to bounded text that outside data cannot break out of.
//!
//! A template (or the built-in form) gives a [`toon::Document`]; the guard disarms its texts; the block, append and
//! synthetic writers put it where the model reads. Rendering happens when news is shown, with the counts of that moment.

mod block;
mod boundary;
mod builtin;
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

/// A rendered item, the document its text was written from, and what went wrong on the way, if anything did.
pub(crate) struct RenderOutcome {
    pub(crate) shown: RenderedItem,
    pub(crate) document: Document,
    /// The event to read where the text is shortened, if it is a person's words or an agent's note.
    pub(crate) whole: Option<EventId>,
    pub(crate) problem: Option<String>,
}

/// Words one item. Whatever a template does, something is said: the built-in form where the template fails.
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
    let (document, problem) = document_of(item, subscribers, &events);
    let document = guarded(document, boundary);
    let shown = RenderedItem {
        label: safe_label(&label(item, &events), item, boundary),
        times: item.times,
        text: document.to_toon(),
    };
    let whole = match events.as_slice() {
        [one] if one.event.is_told_whole() => Some(one.event.id()),
        _ => None,
    };
    RenderOutcome { shown, document, whole, problem }
}

/// What an item says, before anything is made of it, and what went wrong on the way.
pub(crate) fn document_of(
    item: &BlockItem,
    subscribers: &Subscribers,
    events: &[TemplateEvent],
) -> (Document, Option<String>) {
    match (&item.kind, subscribers.find_or_retired(&item.subscriber)) {
        (NotificationKind::LeftOut(left_out), _) => (builtin::left_out(left_out), None),
        (NotificationKind::Repeats, subscriber) => {
            let said = subscriber.and_then(|subscriber| subscriber.template.render(subscriber, events).ok());
            (builtin::repeats(item, events, said), None)
        }
        (NotificationKind::Events, Some(subscriber)) if !events.is_empty() => {
            match subscriber.template.render(subscriber, events) {
                Ok(document) => (document, None),
                Err(problem) => (builtin::news(item, events), Some(problem)),
            }
        }
        (NotificationKind::Events, None) => (builtin::news(item, events), Some("the subscriber is gone".to_owned())),
        (NotificationKind::Events, Some(_)) => (builtin::news(item, events), Some("its events are gone".to_owned())),
    }
}

/// A label that the guard has nothing against; any other is called by its subscriber. What is left of a source without
/// the boundary in it could be anybody's name, `user` too.
pub(crate) fn safe_label(label: &Arc<str>, item: &BlockItem, boundary: &Boundary) -> Arc<str> {
    match guard(label, boundary.as_str()) == **label {
        true => label.clone(),
        false => item.subscriber.shared(),
    }
}

/// The one source of all events, else the item's own label. Repeats are counted per event and not per source, and a
/// newer event may have replaced the one of another source, so it is found only now.
fn label(item: &BlockItem, events: &[TemplateEvent]) -> Arc<str> {
    let mut sources = events.iter().map(|event| event.event.source());
    match sources.next() {
        Some(first) if events.len() == item.events.len() && sources.all(|source| source == first) => first.shared(),
        _ => item.label.clone(),
    }
}

/// Disarms every text of a document before it is quoted.
pub(crate) fn guarded(mut document: Document, boundary: &Boundary) -> Document {
    let disarm = |text: &mut String| {
        if let std::borrow::Cow::Owned(safe) = guard(text, boundary.as_str()) {
            *text = safe;
        }
    };
    match &mut document {
        Document::Text(text) => disarm(text),
        Document::Fields(fields) => fields.iter_mut().for_each(|field| {
            disarm(&mut field.key);
            let scalars = match &mut field.value {
                Shape::Scalar(scalar) => std::slice::from_mut(scalar),
                Shape::List(scalars) => scalars.as_mut_slice(),
                Shape::Table(table) => table.cells_mut(),
            };
            for scalar in scalars {
                if let Scalar::Text(text) = scalar {
                    disarm(text);
                }
            }
        }),
    }
    document
}

impl Subscriber {
    /// How these events would read as one item: its words, or why the template cannot find them.
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
