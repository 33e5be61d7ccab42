//! The expected verdict of every event and subscriber, computed from the rules: filter, storm, dedupe, replace, batch,
//! in this order.
//!
//! The model is as simple as possible: keys are lists of texts; windows and batches are found by scanning or hashing.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bellwire_core::conversation::ConversationUpdate;
use bellwire_core::event::{EventCause, TypePattern};
use bellwire_core::notification::NotificationKind;
use bellwire_core::subscriber::{Audience, KeyPattern, SubscriberId};
use bellwire_core::verdict::Filter;
use bellwire_core::{
    AgentName, Event, EventId, InjectionPoint, Notification, NotificationId, Priority, Subscriber, Time, Verdict,
};
use serde_json::Value;

use super::{Action, Law, StepRecord};

/// The models of all agents of a conversation.
#[derive(Default)]
pub(crate) struct Rules {
    models: HashMap<AgentName, Model>,
}

impl Law for Rules {
    fn observe(&mut self, record: &StepRecord<'_>) {
        self.models.entry(record.agent.clone()).or_default().observe(record);
    }
}

/// A key as the list of its texts.
type Key = Vec<String>;

#[derive(Default)]
struct Model {
    now: Time,
    /// When the bucket of each source is empty again.
    calm_at: HashMap<String, i64>,
    windows: HashMap<(SubscriberId, Key), Window>,
    batches: Vec<Batch>,
    /// Pending events, oldest first, with their replace keys.
    waiting: Vec<Waiting>,
    /// The replace key of every accepted event, and its number.
    accepted: HashMap<(SubscriberId, EventId), (Option<Key>, usize)>,
    taken: HashMap<String, Vec<Notification>>,
    seen: HashSet<NotificationId>,
    is_crowded: bool,
}

struct Window {
    of: EventId,
    closes: Time,
    repeats: u32,
}

struct Batch {
    id: NotificationId,
    subscriber: SubscriberId,
    point: InjectionPoint,
    priority: Priority,
    due: Time,
    max_size: usize,
    events: Vec<(EventId, Option<Key>)>,
}

struct Waiting {
    id: NotificationId,
    subscriber: SubscriberId,
    event: EventId,
    replace: Option<Key>,
    expires: Time,
}

/// An expected verdict; the id of a new notification is not known yet.
#[derive(Debug, PartialEq)]
enum Expected {
    Filtered(Filter),
    Suppressed,
    Duplicate(EventId, u32),
    Queued(Option<NotificationId>),
    Held(Option<NotificationId>, Time),
}

impl Model {
    fn observe(&mut self, record: &StepRecord<'_>) {
        if record.is_refusal() {
            assert!(record.updates.is_empty());
            return;
        }
        self.now = self.now.max(record.given);
        self.run_timers();
        self.take_back(record.unseen());
        if self.crowded() {
            return;
        }
        let decided: HashSet<EventId> = record.updates.iter().filter_map(decided).collect();
        let mut updates = record.updates.iter().filter(|update| match update {
            ConversationUpdate::Decided(..) | ConversationUpdate::Detected(_) | ConversationUpdate::Remeasured(_) => {
                true
            }
            // An old event supersedes only returned events; the ledger checks these.
            ConversationUpdate::Superseded(_, _, by) => decided.contains(by),
            _ => false,
        });
        match &record.action {
            Action::Published { event, result: Ok(receipt) } => {
                self.decide_all(event, record, &mut updates);
                let listening = record.subscribers.iter().filter(|one| listens(one, event)).count();
                assert_eq!(receipt.unmatched as usize + listening, record.subscribers.iter().count());
            }
            Action::Injected { observed: Some(observed), .. } => {
                // The core generates its id; the first verdict contains it.
                let named = record.updates.iter().find_map(|update| match update {
                    ConversationUpdate::Decided(id, ..) => Some((*observed).clone().with_id(*id)),
                    _ => None,
                });
                if let Some(observed) = named {
                    self.decide_all(&observed, record, &mut updates);
                }
            }
            _ => {}
        }
        while let Some(next) = updates.next() {
            match next {
                ConversationUpdate::Detected(event) => self.decide_all(event, record, &mut updates),
                ConversationUpdate::Remeasured(event) => self.remeasure(event, record, &mut updates),
                other => panic!("{other:?} is unexpected"),
            }
        }
        self.learn(record);
    }

    /// A mailbox evicts the oldest windows beyond a thousand; the model does not cover that.
    fn crowded(&mut self) -> bool {
        if self.windows.len() > 1_000 {
            self.windows.retain(|_, window| window.closes > self.now);
            self.is_crowded |= self.windows.len() > 1_000;
        }
        self.is_crowded
    }

    fn decide_all<'a>(
        &mut self,
        event: &Event,
        record: &StepRecord<'_>,
        updates: &mut impl Iterator<Item = &'a ConversationUpdate>,
    ) {
        let listening: Vec<_> = record.subscribers.iter().filter(|one| listens(one, event)).collect();
        let listening: Vec<_> =
            listening.into_iter().filter(|one| one.output.audience != Audience::User).cloned().collect();
        let heard: Vec<_> = listening.iter().filter(|one| filter(one, event, record.disabled).is_none()).collect();
        let storm =
            if heard.is_empty() || event.cause() == EventCause::Person { None } else { self.storm(event, &heard) };
        for subscriber in &listening {
            let outcome = self.decide(subscriber, event, storm, record);
            self.check(subscriber, event, outcome, updates);
        }
    }

    /// A newer measurement of a budget concerns only the subscribers that hold an older one.
    fn remeasure<'a>(
        &mut self,
        event: &Event,
        record: &StepRecord<'_>,
        updates: &mut impl Iterator<Item = &'a ConversationUpdate>,
    ) {
        let listening = record.subscribers.iter().filter(|one| listens(one, event));
        let listening: Vec<_> = listening.filter(|one| one.output.audience != Audience::User).cloned().collect();
        let mut replaces = false;
        for subscriber in &listening {
            let outcome = match self.holds_older(subscriber, event) {
                true => self.place(subscriber, event, dedupe_key(subscriber, event)),
                false => (Expected::Filtered(Filter::NotWaiting), None),
            };
            replaces |= outcome.1.is_some();
            self.check(subscriber, event, outcome, updates);
        }
        assert!(replaces, "a measurement is published only if it replaces an older one");
    }

    fn holds_older(&self, subscriber: &Subscriber, event: &Event) -> bool {
        let replace = subscriber.output.replace_key.as_ref().and_then(|pattern| key(pattern, event));
        let same = |of: &SubscriberId, key: &Option<Key>| *of == subscriber.id && replace.is_some() && *key == replace;
        let held = self.batches.iter().any(|batch| batch.events.iter().any(|(_, key)| same(&batch.subscriber, key)));
        let is_known = dedupe_key(subscriber, event)
            .and_then(|key| self.windows.get(&(subscriber.id.clone(), key)))
            .is_some_and(|window| window.closes > self.now);
        (held || self.waiting.iter().any(|one| same(&one.subscriber, &one.replace))) && !is_known
    }

    /// Compares what happened with what is expected of one subscriber: the replaced event, then the verdict.
    fn check<'a>(
        &mut self,
        subscriber: &Subscriber,
        event: &Event,
        (expected, replaced): (Expected, Option<EventId>),
        updates: &mut impl Iterator<Item = &'a ConversationUpdate>,
    ) {
        if let Some(replaced) = replaced {
            let Some(ConversationUpdate::Superseded(older, by_whom, by)) = updates.next() else {
                panic!("{replaced} was not replaced")
            };
            assert_eq!((*older, by_whom, *by), (replaced, &subscriber.id, event.id()));
        }
        let Some(ConversationUpdate::Decided(id, by, verdict)) = updates.next() else {
            panic!("{} gave no verdict on {}", subscriber.id, event.kind());
        };
        assert_eq!((*id, by.as_str()), (event.id(), subscriber.id.as_str()), "verdicts come in id order");
        self.compare(&expected, verdict, subscriber, event);
    }

    fn decide(
        &mut self,
        subscriber: &Subscriber,
        event: &Event,
        storm: Option<bool>,
        record: &StepRecord<'_>,
    ) -> (Expected, Option<EventId>) {
        if let Some(filter) = filter(subscriber, event, record.disabled) {
            return (Expected::Filtered(filter), None);
        }
        let critical = subscriber.output.priority == Priority::Critical;
        match storm {
            Some(critical_passes) if !(critical && critical_passes) => return (Expected::Suppressed, None),
            _ => {}
        }
        let key = dedupe_key(subscriber, event);
        if let Some(key) = key.clone()
            && let Some(window) = self.windows.get_mut(&(subscriber.id.clone(), key))
            && window.closes > self.now
        {
            window.repeats += 1;
            return (Expected::Duplicate(window.of, window.repeats), None);
        }
        self.place(subscriber, event, key)
    }

    fn place(
        &mut self,
        subscriber: &Subscriber,
        event: &Event,
        dedupe_key: Option<Key>,
    ) -> (Expected, Option<EventId>) {
        let id = subscriber.id.clone();
        if let Some(key) = dedupe_key {
            let closes = self.now.plus(subscriber.batching.dedupe_window_ms);
            self.windows.insert((id.clone(), key), Window { of: event.id(), closes, repeats: 0 });
        }
        let replace = subscriber.output.replace_key.as_ref().and_then(|pattern| key(pattern, event));
        let number = self.accepted.len();
        self.accepted.insert((id.clone(), event.id()), (replace.clone(), number));
        let older =
            self.waiting.iter_mut().find(|one| one.subscriber == id && replace.is_some() && one.replace == replace);
        if let Some(older) = older {
            let replaced = std::mem::replace(&mut older.event, event.id());
            let notification = older.id;
            self.forget(&id, replaced);
            return (Expected::Queued(Some(notification)), Some(replaced));
        }
        let (expected, replaced) = self.batch(subscriber, event, replace);
        if let Some(replaced) = replaced {
            self.forget(&id, replaced);
        }
        (expected, replaced)
    }

    fn batch(&mut self, subscriber: &Subscriber, event: &Event, replace: Option<Key>) -> (Expected, Option<EventId>) {
        let id = &subscriber.id;
        let (point, priority) = (point(subscriber, event), subscriber.output.priority);
        let waits = subscriber.batching.window_ms > 0 && priority != Priority::Critical;
        let open =
            self.batches.iter_mut().find(|one| one.subscriber == *id && one.point == point && one.priority == priority);
        let Some(batch) = open else {
            let due = self.now.plus(subscriber.batching.window_ms);
            let held = waits && subscriber.batching.max_size > 1;
            return (if held { Expected::Held(None, due) } else { Expected::Queued(None) }, None);
        };
        let older = batch.events.iter_mut().find(|(_, key)| replace.is_some() && *key == replace);
        let replaced = match older {
            Some((older, _)) => Some(std::mem::replace(older, event.id())),
            None => {
                batch.events.push((event.id(), replace));
                None
            }
        };
        let held = waits && batch.events.len() < batch.max_size;
        (if held { Expected::Held(Some(batch.id), batch.due) } else { Expected::Queued(Some(batch.id)) }, replaced)
    }

    /// Compares the verdict, and learns the id of a new notification.
    fn compare(&mut self, expected: &Expected, verdict: &Verdict, subscriber: &Subscriber, event: &Event) {
        let actual = match *verdict {
            Verdict::Filtered(filter) => Expected::Filtered(filter),
            Verdict::Suppressed => Expected::Suppressed,
            Verdict::Duplicate { of, repeats } => Expected::Duplicate(of, repeats),
            Verdict::Queued { notification } => Expected::Queued(self.known(notification)),
            Verdict::Held { notification, until } => Expected::Held(self.known(notification), until),
        };
        assert_eq!(actual, *expected, "{} on {}", subscriber.id, event.kind());
        let Some(id) = verdict.notification() else { return };
        let name = subscriber.id.clone();
        let replace = self.accepted[&(name.clone(), event.id())].0.clone();
        match (verdict, expected) {
            (Verdict::Held { until, .. }, Expected::Held(None, _)) => self.batches.push(Batch {
                id,
                subscriber: name,
                point: point(subscriber, event),
                priority: subscriber.output.priority,
                due: *until,
                max_size: subscriber.batching.max_size,
                events: vec![(event.id(), replace)],
            }),
            (Verdict::Queued { .. }, Expected::Queued(None)) => {
                let expires = self.now.plus(subscriber.output.ttl_ms);
                self.waiting.push(Waiting { id, subscriber: name, event: event.id(), replace, expires });
            }
            (Verdict::Queued { .. }, _) => self.close(|batch| batch.id == id),
            _ => {}
        }
        self.seen.insert(id);
    }

    /// The id, if it occurred before.
    fn known(&self, id: NotificationId) -> Option<NotificationId> {
        self.seen.contains(&id).then_some(id)
    }

    /// Whether the source exceeds its rate; if so, whether critical events still pass.
    fn storm(&mut self, event: &Event, heard: &[&Arc<Subscriber>]) -> Option<bool> {
        const EVENT_MS: i64 = 1_000 / 100;
        const BURST_MS: i64 = 500 * EVENT_MS;
        let now = self.now.as_millis();
        let level = self.calm_at.get(event.source().as_str()).copied().unwrap_or(now).max(now) + EVENT_MS;
        let (calm, critical_passes) = (level - now <= BURST_MS, level - now <= 2 * BURST_MS);
        let passes = |one: &&&Arc<Subscriber>| one.output.priority == Priority::Critical && critical_passes;
        if calm || heard.iter().any(|one| passes(&one)) {
            self.calm_at.insert(event.source().to_string(), level);
        }
        (!calm).then_some(critical_passes)
    }

    /// A state that returns after another replaced it is shown again.
    fn forget(&mut self, subscriber: &SubscriberId, event: EventId) {
        self.windows.retain(|(of, _), window| of != subscriber || window.of != event);
    }

    fn run_timers(&mut self) {
        let now = self.now;
        self.close(|batch| batch.due <= now);
        self.waiting.retain(|one| one.expires > now);
    }

    /// Closes a batch; its row later gives the time at which its events expire.
    fn close(&mut self, which: impl Fn(&Batch) -> bool) {
        for batch in self.batches.extract_if(.., |batch| which(batch)) {
            for (event, replace) in batch.events {
                let subscriber = batch.subscriber.clone();
                self.waiting.push(Waiting { id: batch.id, subscriber, event, replace, expires: Time::NEVER });
            }
        }
    }

    /// Requeues the notifications of unseen injections, unless newer events replaced theirs.
    fn take_back(&mut self, unseen: &[String]) {
        let rows: Vec<_> = unseen.iter().filter_map(|call_id| self.taken.remove(call_id)).flatten().collect();
        let alive = rows.iter().filter(|row| row.kind == NotificationKind::Events && row.expires > self.now);
        let mut returned: Vec<_> = alive.flat_map(|row| self.entries(row)).collect();
        let number = |one: &Waiting| self.accepted[&(one.subscriber.clone(), one.event)].1;
        returned.sort_by_key(|one| std::cmp::Reverse(number(one)));
        for one in returned {
            let same = |subscriber: &SubscriberId, key: &Option<Key>| {
                *subscriber == one.subscriber && key.is_some() && *key == one.replace
            };
            let held =
                self.batches.iter().any(|batch| batch.events.iter().any(|(_, key)| same(&batch.subscriber, key)));
            if held || self.waiting.iter().any(|other| same(&other.subscriber, &other.replace)) {
                self.forget(&one.subscriber, one.event);
            } else {
                self.waiting.push(one);
            }
        }
    }

    /// Takes the actual rows as the starting state of the next step.
    fn learn(&mut self, record: &StepRecord<'_>) {
        let changed = record
            .updates
            .iter()
            .any(|update| matches!(update, ConversationUpdate::Waiting(_) | ConversationUpdate::Ended(..)));
        if !changed && record.injection().is_none() {
            return;
        }
        let rows = record.mailbox.pending().iter().filter(|row| row.kind == NotificationKind::Events);
        let ended = record.updates.iter().filter_map(|update| match update {
            ConversationUpdate::Ended(id, _) => Some(*id),
            _ => None,
        });
        let ended: Vec<_> = ended.collect();
        self.batches.retain(|batch| record.mailbox.find(batch.id).is_none() && !ended.contains(&batch.id));
        self.waiting = rows.flat_map(|row| self.entries(row)).collect();
        if let Some((request, answer)) = record.injection() {
            self.taken.insert(request.call_id.clone(), answer.taken.clone());
        }
    }

    fn entries(&self, row: &Notification) -> Vec<Waiting> {
        let entry = |event: EventId| {
            let subscriber = row.subscriber.clone();
            let replace = self.accepted[&(subscriber.clone(), event)].0.clone();
            Waiting { id: row.id, subscriber, event, replace, expires: row.expires }
        };
        row.events.iter().map(|one| entry(one.event)).collect()
    }
}

fn decided(update: &ConversationUpdate) -> Option<EventId> {
    match update {
        ConversationUpdate::Decided(event, ..) => Some(*event),
        _ => None,
    }
}

fn listens(subscriber: &Subscriber, event: &Event) -> bool {
    subscriber.types.iter().any(|pattern| match pattern {
        TypePattern::Exact(kind) => kind == event.kind(),
        TypePattern::Below(prefix) => event.kind().as_str().starts_with(&**prefix),
        TypePattern::Form { parts, below } => {
            let (parts, found) = (parts.split('.'), event.kind().as_str().split('.').collect::<Vec<_>>());
            let fits = parts.clone().zip(&found).all(|(part, found)| part == "*" || part == *found);
            let more = found.len().cmp(&parts.count());
            fits && more == if *below { std::cmp::Ordering::Greater } else { std::cmp::Ordering::Equal }
        }
    })
}

fn filter(subscriber: &Subscriber, event: &Event, disabled: &[String]) -> Option<Filter> {
    let (wanted, given) = (subscriber.severity_filter, event.severity());
    let source = event.source().as_str();
    let deaf = subscriber.sources.as_ref().is_some_and(|sources| !sources.iter().any(|one| one.as_str() == source));
    let off = !subscriber.output.core && disabled.iter().any(|id| id == subscriber.id.as_str());
    match (given < wanted, deaf, off) {
        (true, ..) => Some(Filter::Severity { wanted, given }),
        (_, true, _) => Some(Filter::Source),
        (.., true) => Some(Filter::Disabled),
        _ => None,
    }
}

fn dedupe_key(subscriber: &Subscriber, event: &Event) -> Option<Key> {
    if subscriber.batching.dedupe_window_ms == 0 {
        return None;
    }
    let whole = canonical(&Value::Object(event.payload().as_map().clone()));
    let own = match (event.dedupe_key(), &subscriber.batching.dedupe_key) {
        (Some(own), _) => vec![text(own)],
        (None, Some(pattern)) => key(pattern, event)?,
        (None, None) => vec![text(event.kind().as_str()), text(event.source().as_str()), whole.clone()],
    };
    let state = subscriber.output.replace_key.as_ref().map(|_| format!("only equal payloads {whole}"));
    Some(own.into_iter().chain(state).collect())
}

fn key(pattern: &KeyPattern, event: &Event) -> Option<Key> {
    let term = |term: &str| match (term, term.strip_prefix("payload.")) {
        ("type", _) => Some(text(event.kind().as_str())),
        ("source", _) => Some(text(event.source().as_str())),
        ("severity", _) => Some(text(event.severity().as_str())),
        (literal, None) => Some(text(literal)),
        (_, Some(path)) => {
            let pointer = format!("/{}", path.replace('.', "/"));
            let value = Value::Object(event.payload().as_map().clone()).pointer(&pointer).cloned();
            match value? {
                Value::Null => None,
                Value::String(value) => Some(text(&value)),
                value => Some(canonical(&value)),
            }
        }
    };
    pattern.to_string().split(':').map(term).collect()
}

fn text(text: &str) -> String {
    format!("text {text}")
}

/// Equal values give equal texts: keys are sorted, and an integer has one form however it is written.
fn canonical(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let mut fields: Vec<_> = map.iter().map(|(key, value)| format!("{key:?}:{}", canonical(value))).collect();
            fields.sort();
            format!("{{{}}}", fields.join(","))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(canonical).collect::<Vec<_>>().join(",")),
        Value::Number(number) => number.as_f64().map_or_else(|| number.to_string(), |number| number.to_string()),
        other => other.to_string(),
    }
}

/// A note to oneself may name its injection point.
pub(crate) fn point(subscriber: &Subscriber, event: &Event) -> InjectionPoint {
    let asked = event.payload().get("deliver_at").and_then(Value::as_str);
    match asked.filter(|_| event.kind().as_str().starts_with("agent.self.")) {
        Some("next_turn") => InjectionPoint::TurnStart,
        Some("after_tool") => InjectionPoint::AfterTool,
        Some("turn_end") => InjectionPoint::TurnEnd,
        _ => subscriber.output.inject_at,
    }
}
