//! The hint in the verdict on an event whose payload has none of the fields that the subscriber's template shows.

use std::sync::Arc;

use super::{Subscriber, SubscriberId};
use crate::event::Payload;
use crate::render::Template;

/// The most fields that a hint names.
const NAMED_MAX: usize = 12;

/// The hints of a subscriber. They are made when its file is loaded, so that giving one does not allocate.
#[derive(Debug, Default)]
pub(crate) struct FieldHints {
    agent: Option<FieldHint>,
    person: Option<FieldHint>,
}

/// What a template reads, and the hint for an event without any of it.
#[derive(Debug)]
struct FieldHint {
    fields: Arc<[Box<str>]>,
    text: Arc<str>,
}

impl FieldHints {
    pub(super) fn new(id: &SubscriberId, template: &Template, template_user: Option<&Template>) -> Self {
        // Without a template of their own, people read a sentence about whatever the payload has.
        Self {
            agent: FieldHint::new(id, template),
            person: template_user.and_then(|template| FieldHint::new(id, template)),
        }
    }

    /// The hint for an event that a person's mailbox (`person`) or an agent's accepts.
    pub(crate) fn of(&self, payload: &Payload, person: bool) -> Option<Arc<str>> {
        let hint = if person { &self.person } else { &self.agent };
        hint.as_ref().filter(|hint| !payload.has_any(&hint.fields)).map(|hint| hint.text.clone())
    }
}

impl FieldHint {
    /// `None` if the template reads no field, or possibly all.
    fn new(id: &SubscriberId, template: &Template) -> Option<Self> {
        let fields = template.payload_fields().filter(|fields| !fields.is_empty())?.clone();
        let named = fields.iter().take(NAMED_MAX).map(|field| &**field).collect::<Vec<_>>().join(", ");
        let more = if fields.len() > NAMED_MAX { ", …" } else { "" };
        let text = format!("the payload has none of the fields that {id} shows: {named}{more}").into();
        Some(Self { fields, text })
    }
}

impl Subscriber {
    /// The payload fields that its templates read; `None` = possibly all of them.
    pub fn shown_fields(&self) -> Option<Vec<Box<str>>> {
        let audience = self.output.audience;
        let agent = audience.includes(false).then_some(&self.template);
        let person = audience.includes(true).then(|| self.template_user.as_ref().unwrap_or(&self.template));
        let mut fields: Vec<Box<str>> = Vec::new();
        for template in agent.into_iter().chain(person) {
            let more: Vec<_> =
                template.payload_fields()?.iter().filter(|field| !fields.contains(field)).cloned().collect();
            fields.extend(more);
        }
        Some(fields)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::subscriber::Subscribers;

    fn hint(id: &str, payload: Value, person: bool) -> Option<String> {
        let payload = Payload::from_json(payload).unwrap_or_else(|refused| panic!("{refused}"));
        let subscribers = Subscribers::bundled();
        let subscriber = subscribers.find(id).unwrap_or_else(|| panic!("{id}"));
        subscriber.field_hints.of(&payload, person).map(|hint| hint.to_string())
    }

    #[test]
    fn a_payload_of_which_nothing_is_shown_gets_a_hint() {
        let expected = "the payload has none of the fields that tool_failure shows: tool_name, error_type, \
                        error_message, timeout_ms";
        for payload in [json!({}), json!({"tool": "grep"}), json!({"tool_name": null})] {
            assert_eq!(hint("tool_failure", payload, false).as_deref(), Some(expected));
        }
        assert_eq!(hint("tool_failure", json!({"tool": "grep", "error_type": "io"}), false), None);
        assert_eq!(hint("turn_summary", json!({}), false), None, "it counts, and shows no field");
    }

    #[test]
    fn a_person_gets_the_hint_of_their_own_template() {
        assert_eq!(hint("needs_you", json!({"question": "Go on?"}), true), None);
        let expected = "the payload has none of the fields that needs_you shows: message, text, question";
        assert_eq!(hint("needs_you", json!({"ask": "Go on?"}), true).as_deref(), Some(expected));
        assert_eq!(hint("tool_failure", json!({}), true), None, "a sentence shows whatever there is");
    }
}
