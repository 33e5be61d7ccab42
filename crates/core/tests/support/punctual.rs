//! Time: no batch outlasts its window or its point, no timer is missed, no agent is woken too often or too late.

use std::collections::{HashMap, HashSet};

use bellwire_core::conversation::ConversationUpdate;
use bellwire_core::{AgentName, InjectionPoint, NotificationId, Time, Verdict};

use super::answers::takes;
use super::{Action, Law, StepRecord};

/// The latest time at which each agent's mailbox was handled.
#[derive(Default)]
pub(crate) struct Clocks(HashMap<AgentName, Time>);

impl Clocks {
    pub(crate) fn now(&mut self, record: &StepRecord<'_>) -> Time {
        let clock = self.0.entry(record.agent.clone()).or_default();
        if !record.is_refusal() {
            *clock = (*clock).max(record.given);
        }
        *clock
    }
}

/// A batch closes when its window ends or its point is reached.
#[derive(Default)]
pub(crate) struct BatchesEnd {
    clocks: Clocks,
    open: HashMap<(AgentName, NotificationId), (Time, InjectionPoint)>,
}

impl Law for BatchesEnd {
    fn observe(&mut self, record: &StepRecord<'_>) {
        let now = self.clocks.now(record);
        for update in record.updates {
            match update {
                ConversationUpdate::Decided(event, subscriber, Verdict::Held { notification, until }) => {
                    let subscriber =
                        record.subscribers.find(subscriber.as_str()).expect("only active subscribers give verdicts");
                    let point = match record.action {
                        Action::Published { event: published, .. } if published.id() == *event => {
                            super::rules::point(subscriber, published)
                        }
                        _ => subscriber.output.inject_at,
                    };
                    assert!(now < *until && *until <= now.plus(10_000), "held at {now} until {until}");
                    let batch = (*until, point);
                    let known = self.open.insert((record.agent.clone(), *notification), batch);
                    assert!(known.is_none_or(|known| known == batch), "a batch has two due times");
                }
                ConversationUpdate::Ended(id, _) => drop(self.open.remove(&(record.agent.clone(), *id))),
                _ => {}
            }
        }
        self.open.retain(|(agent, id), _| agent != record.agent || record.mailbox.find(*id).is_none());
        let own = self.open.iter().filter(|((agent, _), _)| agent == record.agent);
        for ((_, id), (due, point)) in own {
            assert!(*due > now, "{id} was due at {due} and is open at {now}");
            assert!(record.mailbox.wakes_at() <= *due, "no timer is set for {id}");
            let reached = record.injection().is_some_and(|(request, answer)| {
                takes(request.point, *point) && (!request.wake_only || answer.showing > 0)
            });
            assert!(!reached, "{id} is open though its point {point} was reached");
        }
    }
}

/// Time never decreases, timers that are due have fired, and the next timer is in the future.
#[derive(Default)]
pub(crate) struct Punctual {
    clocks: Clocks,
}

impl Law for Punctual {
    fn observe(&mut self, record: &StepRecord<'_>) {
        let now = self.clocks.now(record);
        assert!(record.mailbox.wakes_at() > now, "a timer is due at {} and it is {now}", record.mailbox.wakes_at());
        let before: HashSet<_> = record.before.iter().map(|row| row.id).collect();
        for row in record.mailbox.pending() {
            assert!(row.expires > now, "{} expired at {} and waits at {now}", row.id, row.expires);
            assert!(row.since <= now);
            let returned = !record.unseen().is_empty();
            assert!(
                before.contains(&row.id) || returned || row.since == now,
                "{} began to wait at {}",
                row.id,
                row.since
            );
        }
    }
}

/// At most six wakes an hour, each notification once, only while the main agent is idle, never for its own actions; and
/// no wake is forgotten.
#[derive(Default)]
pub(crate) struct Wakes {
    clocks: Clocks,
    announced: HashSet<NotificationId>,
    /// The times of wakes that count against the limit.
    counted: Vec<Time>,
    working: Option<Time>,
}

impl Law for Wakes {
    fn observe(&mut self, record: &StepRecord<'_>) {
        let now = self.clocks.now(record);
        if !record.agent.is_main() {
            assert!(!record.updates.iter().any(
                |update| matches!(update, ConversationUpdate::Wake(_)) && !matches!(record.action, Action::Waited)
            ));
            return;
        }
        self.note_work(record, now);
        let idle = self.working.is_none_or(|seen| seen.plus(10 * 60_000) <= now);
        for update in record.updates {
            let ConversationUpdate::Wake(ids) = update else { continue };
            assert!(idle, "a working agent was woken");
            assert!(!ids.is_empty());
            let rows: Vec<_> = ids.iter().filter_map(|id| record.mailbox.find(*id)).collect();
            assert_eq!(rows.len(), ids.len(), "only pending notifications wake");
            assert!(rows.iter().all(|row| row.wakes && row.announced));
            assert!(ids.iter().all(|id| self.announced.insert(*id)), "a notification was announced twice");
            if !rows.iter().any(|row| row.from_person) {
                self.counted.push(now);
            }
        }
        let recent = self.counted.iter().filter(|wake| wake.plus(3_600_000) > now).count();
        assert!(recent <= 6, "{recent} wakes within an hour");
        let unannounced = record.mailbox.pending().iter().any(|row| row.wakes && !row.announced);
        assert!(!unannounced || !idle || recent == 6, "a waking notification is pending unannounced");
    }
}

impl Wakes {
    /// Tracks whether the agent is working after this step.
    fn note_work(&mut self, record: &StepRecord<'_>, now: Time) {
        match &record.action {
            Action::Published { event, result: Ok(_) } => match event.kind().as_str() {
                "agent.turn.start" => self.working = Some(now),
                "agent.turn.end" => self.working = None,
                _ => {}
            },
            Action::Injected { request, answer, .. } => {
                let kept_going = request.wake_only && answer.showing > 0;
                let yields = request.point == InjectionPoint::TurnEnd && !kept_going;
                self.working = (!yields).then_some(now);
            }
            _ => {}
        }
    }
}
