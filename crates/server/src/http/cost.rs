//! What a publish costs its token, charged before the events of a large body are built.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use axum::http::StatusCode;
use bellwire_core::Time;
use bellwire_store::IncomingEvent;

use super::{ApiError, Hub};
use crate::auth::{Identity, Scope};
use crate::usage::{PublishRefused, TokenUsage};

/// What was taken from the token's publishing limit. It is given back when this is dropped, unless it is kept.
pub(super) struct Cost {
    usage: Arc<TokenUsage>,
    taken: u64,
    /// How many events are for each person and name no conversation.
    people: HashMap<String, u64>,
}

impl Cost {
    /// Takes one for every event, which each costs at least.
    pub(super) fn of(identity: &Identity, events: usize) -> Result<Self, ApiError> {
        let mut cost = Self { usage: identity.usage.clone(), taken: 0, people: HashMap::new() };
        cost.take(events as u64)?;
        Ok(cost)
    }

    /// Notes for whom an event is.
    pub(super) fn note(&mut self, event: &IncomingEvent) {
        if let Some(user) = event.person_addressed() {
            match self.people.get_mut(user) {
                Some(events) => *events += 1,
                None => drop(self.people.insert(user.to_owned(), 1)),
            }
        }
    }

    /// Takes the rest, when every event is noted. An event for a person counts once per conversation that is open when the
    /// call arrives.
    pub(super) async fn take_rest(&mut self, hub: &Hub, identity: &Identity, now: Time) -> Result<(), ApiError> {
        if identity.scope == Scope::Admin {
            return Ok(());
        }
        let mut rest = 0;
        for (user, events) in std::mem::take(&mut self.people) {
            let open = hub.store.open_conversations(identity.caller.clone(), user, now).await?;
            rest += events * (open.max(1) as u64 - 1);
        }
        self.take(rest)
    }

    fn take(&mut self, events: u64) -> Result<(), ApiError> {
        let cost = self.taken + events;
        self.usage.publish_more(self.taken, events, Instant::now()).map_err(|refused| match refused {
            PublishRefused::TooFast(exceeded) => ApiError::from(exceeded),
            PublishRefused::AboveBurst(burst) => {
                let message = format!(
                    "this call costs {cost}, because an event for a person counts once per conversation it reaches; at \
                     most {burst} (limits.publish_burst) are allowed at once: send fewer events in a call, or name \
                     conversations"
                );
                let refused = ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "too_costly", message);
                ApiError { field: Some("events".into()), ..refused }
            }
        })?;
        self.taken = cost;
        Ok(())
    }

    /// The call is carried out: its cost stands.
    pub(super) fn keep(mut self) {
        self.taken = 0;
    }
}

impl Drop for Cost {
    fn drop(&mut self) {
        self.usage.give_back_publish(self.taken);
    }
}
