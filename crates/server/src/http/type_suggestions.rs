//! Suggests the nearest known type for events that no subscriber listens for: a mistyped type would otherwise be
//! accepted in silence.

use std::collections::BTreeSet;
use std::sync::Arc;

use bellwire_core::event::{KNOWN_TYPES, TypePattern};
use bellwire_core::subscriber::Subscribers;
use bellwire_core::{EventType, nearest};

use crate::auth::Scope;

/// The most searches of one request. Each compares the type with every known one.
const SEARCHES_MAX: usize = 20;

/// The suggestions of one request.
pub(super) struct TypeSuggestions {
    subscribers: Arc<Subscribers>,
    /// Whether the caller may know the types of the operator's own subscribers.
    sees_subscribers: bool,
    found: Vec<(EventType, Option<Arc<str>>)>,
}

impl TypeSuggestions {
    pub(super) fn new(subscribers: Arc<Subscribers>, scope: Scope) -> Self {
        let sees_subscribers = matches!(scope, Scope::Admin | Scope::Agent | Scope::User);
        Self { subscribers, sees_subscribers, found: Vec::new() }
    }

    /// The hint for an event of this type; `None` if a subscriber listens for it, or no known type is near.
    pub(super) fn hint(&mut self, kind: &EventType) -> Option<Arc<str>> {
        if !self.subscribers.is_unheard(kind) {
            return None;
        }
        if let Some((_, hint)) = self.found.iter().find(|(known, _)| known == kind) {
            return hint.clone();
        }
        if self.found.len() >= SEARCHES_MAX {
            return None;
        }
        let hint = self.nearest(kind).map(|near| format!("did you mean {near}?").into());
        self.found.push((kind.clone(), hint.clone()));
        hint
    }

    fn nearest(&self, kind: &EventType) -> Option<&str> {
        let own = self.subscribers.iter().filter(|_| self.sees_subscribers).flat_map(|one| &one.types);
        let own = own.filter_map(|pattern| match pattern {
            TypePattern::Exact(kind) => Some(kind.as_str()),
            TypePattern::Below(_) | TypePattern::Form { .. } => None,
        });
        let types: BTreeSet<&str> = KNOWN_TYPES.iter().map(|known| known.name).chain(own).collect();
        nearest(kind.as_str(), types)
    }
}
