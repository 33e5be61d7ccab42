//! Time: no batch outlasts its window or its point, no timer is missed, nobody is woken too often or too late.

use std::collections::{HashMap, HashSet};

use bellwire_core::conversation::ConversationUpdate;
use bellwire_core::{AgentName, InjectionPoint, NotificationId, Time, Verdict};

use super::answers::takes;
use super::{Deed, Law, Moment};

/// The latest time each agent's mailbox has heard of.
#[derive(Default)]
pub(crate) struct Clocks(HashMap<AgentName, Time>);

impl Clocks {
    pub(crate) fn now(&mut self, moment: &Moment<'_>) -> Time {
        let clock = self.0.entry(moment.agent.clone()).or_default();
        if !moment.is_refusal() {
            *clock = (*clock).max(moment.given);
        }
        *clock
    }
}

/// A batch ends when its window elapses or its point is reached.
#[derive(Default)]
pub(crate) struct BatchesEnd {
    clocks: Clocks,
    open: HashMap<(AgentName, NotificationId), (Time, InjectionPoint)>,
}

impl Law for BatchesEnd {
    fn see(&mut self, moment: &Moment<'_>) {
        let now = self.clocks.now(moment);
        for news in moment.news {
            match news {
                ConversationUpdate::Decided(event, subscriber, Verdict::Held { notification, until }) => {
                    let subscriber = moment.subscribers.find(subscriber.as_str()).expect("it is in force");
                    let point = match moment.deed {
                        Deed::Published { event: published, .. } if published.id() == *event => {
                            super::rules::point(subscriber, published)
                        }
                        _ => subscriber.output.inject_at,
                    };
                    assert!(now < *until && *until <= now.plus(10_000), "held at {now} until {until}");
                    let batch = (*until, point);
                    let known = self.open.insert((moment.agent.clone(), *notification), batch);
                    assert!(known.is_none_or(|known| known == batch), "a batch was promised twice");
                }
                ConversationUpdate::Ended(id, _) => drop(self.open.remove(&(moment.agent.clone(), *id))),
                _ => {}
            }
        }
        self.open.retain(|(agent, id), _| agent != moment.agent || moment.mailbox.find(*id).is_none());
        let own = self.open.iter().filter(|((agent, _), _)| agent == moment.agent);
        for ((_, id), (due, point)) in own {
            assert!(*due > now, "{id} was due at {due} and is open at {now}");
            assert!(moment.mailbox.wakes_at() <= *due, "nobody would look when {id} is due");
            let reached = moment.injection().is_some_and(|(request, answer)| {
                takes(request.point, *point) && (!request.wake_only || answer.showing > 0)
            });
            assert!(!reached, "{id} is open though its point {point} was reached");
        }
    }
}

/// Time goes forwards only; what is due is done; and there is always a later time to come back.
#[derive(Default)]
pub(crate) struct Punctual {
    clocks: Clocks,
}

impl Law for Punctual {
    fn see(&mut self, moment: &Moment<'_>) {
        let now = self.clocks.now(moment);
        assert!(moment.mailbox.wakes_at() > now, "something is due at {} and it is {now}", moment.mailbox.wakes_at());
        let before: HashSet<_> = moment.before.iter().map(|row| row.id).collect();
        for row in moment.mailbox.pending() {
            assert!(row.expires > now, "{} expired at {} and waits at {now}", row.id, row.expires);
            assert!(row.since <= now);
            let returned = !moment.unseen().is_empty();
            assert!(
                before.contains(&row.id) || returned || row.since == now,
                "{} began to wait at {}",
                row.id,
                row.since
            );
        }
    }
}

/// Six wakes an hour at most, each notification once, only while the main agent is idle, never for its own doing; and
/// none is forgotten.
#[derive(Default)]
pub(crate) struct Wakes {
    clocks: Clocks,
    rung: HashSet<NotificationId>,
    /// Wakes that count, by time.
    counted: Vec<Time>,
    working: Option<Time>,
}

impl Law for Wakes {
    fn see(&mut self, moment: &Moment<'_>) {
        let now = self.clocks.now(moment);
        if !moment.agent.is_main() {
            assert!(
                !moment
                    .news
                    .iter()
                    .any(|news| matches!(news, ConversationUpdate::Wake(_)) && !matches!(moment.deed, Deed::Waited))
            );
            return;
        }
        self.note_work(moment, now);
        let idle = self.working.is_none_or(|seen| seen.plus(10 * 60_000) <= now);
        for news in moment.news {
            let ConversationUpdate::Wake(ids) = news else { continue };
            assert!(idle, "an agent at work was woken");
            assert!(!ids.is_empty());
            let rows: Vec<_> = ids.iter().filter_map(|id| moment.mailbox.find(*id)).collect();
            assert_eq!(rows.len(), ids.len(), "what wakes waits");
            assert!(rows.iter().all(|row| row.wakes && row.announced));
            assert!(ids.iter().all(|id| self.rung.insert(*id)), "a notification rang twice");
            if !rows.iter().any(|row| row.from_person) {
                self.counted.push(now);
            }
        }
        let recent = self.counted.iter().filter(|wake| wake.plus(3_600_000) > now).count();
        assert!(recent <= 6, "{recent} wakes within an hour");
        let unrung = moment.mailbox.pending().iter().any(|row| row.wakes && !row.announced);
        assert!(!unrung || !idle || recent == 6, "wake mail waits in silence");
    }
}

impl Wakes {
    /// What is known of the agent's work after this moment.
    fn note_work(&mut self, moment: &Moment<'_>, now: Time) {
        match &moment.deed {
            Deed::Published { event, result: Ok(_) } => match event.kind().as_str() {
                "agent.turn.start" => self.working = Some(now),
                "agent.turn.end" => self.working = None,
                _ => {}
            },
            Deed::Injected { request, answer, .. } => {
                let kept_going = request.wake_only && answer.showing > 0;
                let yields = request.point == InjectionPoint::TurnEnd && !kept_going;
                self.working = (!yields).then_some(now);
            }
            _ => {}
        }
    }
}
