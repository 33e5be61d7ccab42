//! Lists of stored events, newest first.
//!
//! No filter has an index, not even the owner: every index is written with every event. A page reads stored events from the
//! newest on and stops after [`SCANNED_MAX`] rows. So it can be shorter than its limit, or empty, and still have a next one.

use std::sync::Arc;

use bellwire_core::event::{EventType, StoredEvent, TypePattern};
use bellwire_core::verdict::VerdictKind;
use bellwire_core::{EventId, Time};

use crate::rows::EventRow;
use crate::verdicts::Decision;

/// How many rows one page reads while it looks for events that match.
pub(crate) const SCANNED_MAX: usize = 5_000;
/// How many bytes of payloads and verdicts one page holds; its first event is always in it.
pub(crate) const PAGE_BYTES_MAX: usize = 1024 * 1024;

/// Which events to list.
#[derive(Clone, Debug, Default)]
pub struct EventQuery {
    /// Only events of this person.
    pub user_id: Option<String>,
    /// Which of them.
    pub filter: EventFilter,
    /// Only events before this one: the position that the page before returned.
    pub before: Option<EventId>,
    /// At most so many.
    pub limit: usize,
}

/// Conditions besides the owner.
#[derive(Clone, Debug, Default)]
pub struct EventFilter {
    /// Only events that were sent to this conversation or reached it.
    pub conversation_id: Option<String>,
    /// Only events of these types.
    pub types: Option<TypePattern>,
    /// Only events that were accepted at this time or later.
    pub since: Option<Time>,
    /// Only events on which a subscriber decided so.
    pub verdict: Option<VerdictKind>,
}

/// An event of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedEvent {
    /// The event.
    pub event: StoredEvent,
    /// The owner.
    pub owner: String,
    /// When it was accepted.
    pub accepted_at: Time,
    /// How many subscribers do not listen for its type.
    pub filtered: u32,
    /// Its verdicts; in a list of one conversation only those of that conversation and of its person.
    pub verdicts: Vec<Decision>,
}

/// An event that a sender published under its own id, as far as one needs to know to choose it among others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedEvent {
    /// The event's own id.
    pub event_id: EventId,
    /// The owner.
    pub owner: String,
    /// The conversation it was for.
    pub conversation_id: Option<String>,
    /// The type.
    pub kind: String,
    /// When it was accepted.
    pub accepted_at: Time,
}

impl EventQuery {
    pub(crate) fn matches(&self, row: &EventRow) -> bool {
        let sent_to = row.event.conversation_id();
        self.matches_event(&row.owner, row.event.kind(), sent_to, &row.verdicts)
    }

    /// The same for an event that is not parsed, by what was decided on.
    pub(crate) fn matches_event(
        &self,
        owner: &str,
        kind: &EventType,
        sent_to: Option<&str>,
        verdicts: &[Decision],
    ) -> bool {
        self.user_id.as_deref().is_none_or(|user| owner == user) && self.filter.matches(kind, sent_to, verdicts)
    }
}

impl EventFilter {
    fn matches(&self, kind: &EventType, sent_to: Option<&str>, verdicts: &[Decision]) -> bool {
        self.types.as_ref().is_none_or(|types| types.matches(kind))
            && self.conversation_id.as_deref().is_none_or(|id| reached(sent_to, verdicts, id))
            && self
                .verdict
                .is_none_or(|kind| verdicts.iter().any(|one| one.verdict == kind.as_str() && self.shows(one)))
    }

    /// Whether a list with this filter shows the verdict.
    pub(crate) fn shows(&self, verdict: &Decision) -> bool {
        match (&verdict.conversation_id, &self.conversation_id) {
            (Some(id), Some(wanted)) => **id == **wanted,
            // What is decided for the person is decided in no conversation.
            (None, _) | (_, None) => true,
        }
    }

    pub(crate) fn listed(&self, row: EventRow) -> ListedEvent {
        let verdicts = Arc::unwrap_or_clone(row.verdicts).into_list();
        ListedEvent {
            event: row.event.to_stored(),
            owner: row.owner.to_string(),
            accepted_at: row.accepted_at,
            filtered: row.filtered,
            verdicts: verdicts.into_iter().filter(|verdict| self.shows(verdict)).collect(),
        }
    }
}

/// Whether an event was sent to this conversation, or was sent to its person and reached it.
fn reached(sent_to: Option<&str>, verdicts: &[Decision], conversation_id: &str) -> bool {
    match sent_to {
        Some(own) => own == conversation_id,
        None => verdicts.iter().any(|verdict| verdict.conversation_id.as_deref() == Some(conversation_id)),
    }
}

#[cfg(test)]
mod tests {
    use bellwire_core::{Event, Ids, Severity};

    use super::*;
    use crate::packed_event::PackedEvent;

    #[test]
    fn a_verdict_for_the_person_is_of_no_conversation_whatever_its_id() -> Result<(), Box<dyn std::error::Error>> {
        let event = Event::new("ci.build.done", "ci", Severity::Info, serde_json::json!({}))?.for_person("ada");
        let event = Arc::new(event.with_id(Ids::seeded(1).event(Time::ZERO)));
        let verdicts = Arc::new(vec![Decision::filtered("no_open_conversation".to_owned())].into());
        let packed = PackedEvent::of(&event);
        let row = EventRow { event, packed, owner: "ada".into(), accepted_at: Time::ZERO, filtered: 0, verdicts };
        for id in ["chat", ""] {
            let filter = EventFilter { conversation_id: Some(id.to_owned()), ..EventFilter::default() };
            let query = EventQuery { filter, ..EventQuery::default() };
            assert!(!query.matches(&row), "'{id}'");
        }
        Ok(())
    }
}
