//! What an injection must contain, computed from the rows that were pending: which notifications, in which order, how
//! many.

use std::collections::{BTreeSet, HashMap};

use bellwire_core::conversation::ConversationUpdate;
use bellwire_core::inject::estimate_tokens;
use bellwire_core::notification::{EndReason, EventRef, NotificationKind};
use bellwire_core::{AgentName, EventId, Injection, InjectionPoint, Notification, NotificationId, Priority, Verdict};

use super::page::{self, Page};
use super::punctual::Clocks;
use super::{Action, Law, StepRecord};

/// A notification is taken once, unless its injection was reported as unseen.
#[derive(Default)]
pub(crate) struct TakenOnce {
    taken: HashMap<(AgentName, NotificationId), String>,
}

impl Law for TakenOnce {
    fn observe(&mut self, record: &StepRecord<'_>) {
        let Some((request, answer)) = record.injection() else { return };
        self.taken.retain(|(agent, _), call_id| agent != record.agent || !record.unseen().contains(call_id));
        for id in &answer.notifications {
            let earlier = self.taken.insert((record.agent.clone(), *id), request.call_id.clone());
            assert_eq!(earlier, None, "{id} was taken twice");
        }
        let ended = record.updates.iter().filter(|update| match update {
            ConversationUpdate::Ended(id, end_reason) => {
                answer.notifications.contains(id) && matches!(end_reason, EndReason::Injected | EndReason::Folded)
            }
            _ => false,
        });
        assert_eq!(ended.count(), answer.notifications.len(), "every taken notification ends once");
        let taken: Vec<_> = answer.taken.iter().map(|row| row.id).collect();
        assert_eq!(taken, answer.notifications);
    }
}

/// Items and tokens stay within their limits in every style, and the numbers add up.
#[derive(Default)]
pub(crate) struct Caps;

impl Law for Caps {
    fn observe(&mut self, record: &StepRecord<'_>) {
        let Some((request, answer)) = record.injection() else { return };
        let page = page::read(request, answer, record.boundary);
        let Injection { count, showing, folded, pending, .. } = *answer;
        assert_eq!(count, showing + folded + pending);
        assert!(showing <= request.limits.items_max);
        let tokens = estimate_tokens(&page.text);
        assert!(
            tokens <= request.limits.tokens_max,
            "{tokens} tokens, not {}:\n{}",
            request.limits.tokens_max,
            page.text
        );
        assert!(page.folded.len() <= 5);
        assert!(showing > 0 || count == pending, "nothing is folded if nothing is shown");
        if showing > 0 {
            assert_eq!((page.items.len(), page.pending), (showing, pending));
            assert_eq!(page.folded.iter().map(|(_, items)| items).sum::<usize>(), folded);
        }
        assert_eq!(answer.shown.len(), page.items.len() + page.folded.len());
    }
}

/// An injection takes the notifications of its point, by priority and then by age, and leaves out only those that do
/// not fit.
#[derive(Default)]
pub(crate) struct Order {
    clocks: Clocks,
}

impl Law for Order {
    fn observe(&mut self, record: &StepRecord<'_>) {
        let now = self.clocks.now(record);
        let Some((request, answer)) = record.injection() else { return };
        let takes = |row: &&Notification| takes(request.point, row.inject_at) || row.since.plus(30_000) <= now;
        let crowded_out = record.updates.iter().any(|update| match update {
            ConversationUpdate::Ended(id, end_reason) => {
                *end_reason == EndReason::Folded && !answer.notifications.contains(id)
            }
            _ => false,
        });
        assert!(answer.taken.iter().all(|row| takes(&row)), "an injection took a notification of another point");
        if crowded_out {
            return; // Notifications folded afterwards are in the answer's count but no longer in the queue.
        }
        let mut rows: Vec<_> = record.mailbox.pending().iter().filter(takes).chain(&answer.taken).collect();
        rows.sort_by_key(|row| (row.priority, row.sequence));
        let items = items(rows);
        assert_eq!(answer.count, items.len(), "items that this point takes");
        if answer.showing == 0 {
            assert!(items.is_empty() || request.wake_only, "notifications are pending and none was shown");
            assert!(
                !items.iter().flatten().any(|row| row.wakes),
                "a waking notification is pending and none was shown"
            );
            return;
        }
        let woken = items.iter().flatten().any(|row| row.wakes);
        assert!(woken || !request.wake_only, "a wake-only injection showed notifications that do not wake");
        let (shown, rest) = items.split_at(answer.showing);
        let folds = |item: &&Vec<&Notification>| {
            request.point == InjectionPoint::TurnStart
                && item[0].priority >= Priority::Normal
                && !matches!(item[0].kind, NotificationKind::LeftOut(_))
        };
        let (folded, pending): (Vec<_>, Vec<_>) = rest.iter().partition(folds);
        assert_eq!((answer.folded, answer.pending), (folded.len(), pending.len()));
        let expected = shown.iter().chain(folded).flatten().map(|row| row.id);
        assert_eq!(answer.notifications, expected.collect::<Vec<_>>(), "taken in order");
        check_items(record, answer, shown);
    }
}

/// Checks each item's label, number of events and notifications.
fn check_items(record: &StepRecord<'_>, answer: &Injection, shown: &[Vec<&Notification>]) {
    let Some((request, _)) = record.injection() else { return };
    let page: Page = page::read(request, answer, record.boundary);
    for ((entry, item), line) in answer.shown.iter().zip(shown).zip(&page.items) {
        assert_eq!(entry.notifications, item.iter().map(|row| row.id).collect::<Vec<_>>());
        assert_eq!(entry.content, line.text);
        let events: u64 = item.iter().map(|row| row.event_count()).sum();
        let merged: u32 = item.iter().flat_map(|row| &row.events).map(|entry| entry.merged).sum();
        match merged > 0 && events > 1 {
            true => assert!(line.label.ends_with(&format!(" x{events}")), "{} stands for {events}", line.label),
            false => assert_eq!(line.label, entry.source),
        }
    }
}

/// An item's label is the common source of its events, otherwise its subscriber.
#[derive(Default)]
pub(crate) struct Labels {
    sources: HashMap<EventId, String>,
}

impl Law for Labels {
    fn observe(&mut self, record: &StepRecord<'_>) {
        if let Action::Published { event, .. } = record.action {
            self.sources.insert(event.id(), event.source().to_string());
        }
        for update in record.updates {
            if let ConversationUpdate::Detected(event) | ConversationUpdate::Remeasured(event) = update {
                self.sources.insert(event.id(), event.source().to_string());
            }
        }
        let Some((request, answer)) = record.injection() else { return };
        let page = page::read(request, answer, record.boundary);
        for (entry, line) in answer.shown.iter().zip(&page.items) {
            let rows = answer.taken.iter().filter(|row| entry.notifications.contains(&row.id));
            let expected = self.label(rows.collect(), record);
            let label = line.label.rsplit_once(" x").filter(|(label, _)| *label == entry.source);
            let label = label.map_or(line.label.as_str(), |(label, _)| label);
            let matches = label.strip_suffix('…').map_or(label == expected, |start| expected.starts_with(start));
            assert!(matches, "{label} should be {expected}");
        }
    }
}

impl Labels {
    fn label(&self, rows: Vec<&Notification>, record: &StepRecord<'_>) -> String {
        // Only events observed by injections are missing here, and they all have the same source.
        let source = |entry: &EventRef| self.sources.get(&entry.event).map_or("tool_executor", String::as_str);
        let sources: BTreeSet<_> = rows.iter().flat_map(|row| &row.events).map(source).collect();
        let subscriber = rows[0].subscriber.as_str();
        // A source that could be mistaken for something else is not shown.
        let confuses = |source: &&str| source.contains(record.boundary.as_str()) || source.ends_with(':');
        match sources.first() {
            Some(source) if sources.len() == 1 && !confuses(source) => (*source).to_owned(),
            _ => subscriber.to_owned(),
        }
    }
}

/// Which notifications each point takes.
pub(crate) fn takes(point: InjectionPoint, theirs: InjectionPoint) -> bool {
    use InjectionPoint::{AfterTool, Immediate, TurnEnd, TurnStart};
    let all: &[InjectionPoint] = match point {
        Immediate => &[Immediate],
        AfterTool => &[Immediate, AfterTool],
        TurnEnd => &[Immediate, AfterTool, TurnEnd],
        TurnStart => &[Immediate, AfterTool, TurnEnd, TurnStart],
    };
    all.contains(&theirs)
}

/// Notifications of one subscriber and source form one item, up to the number of events that the subscriber allows.
fn items(rows: Vec<&Notification>) -> Vec<Vec<&Notification>> {
    let mut items: Vec<Vec<&Notification>> = Vec::new();
    for row in rows {
        let alike = |item: &&mut Vec<&Notification>| {
            let first = item[0];
            !matches!(row.kind, NotificationKind::LeftOut(_))
                && (&first.kind, &first.subscriber, &first.source) == (&row.kind, &row.subscriber, &row.source)
                && first.priority == row.priority
        };
        let has_room = |item: &&mut Vec<&Notification>| {
            let events: usize = item.iter().map(|row| row.events.len()).sum();
            events + row.events.len() <= item[0].max_size as usize
        };
        match items.iter_mut().rfind(alike).filter(has_room) {
            Some(item) => item.push(row),
            None => items.push(vec![row]),
        }
    }
    items
}

/// Critical notifications are never held and never wait behind others.
#[derive(Default)]
pub(crate) struct Urgent;

impl Law for Urgent {
    fn observe(&mut self, record: &StepRecord<'_>) {
        for update in record.updates {
            if let ConversationUpdate::Decided(_, subscriber, verdict) = update {
                let critical = record.priority_of(subscriber) == Priority::Critical;
                assert!(!critical || !matches!(verdict, Verdict::Held { .. }), "a critical event was held");
                let row = verdict.notification().and_then(|id| record.mailbox.find(id));
                assert!(
                    !critical || row.is_none_or(|row| row.priority == Priority::Critical),
                    "a critical event is {row:?}"
                );
            }
        }
        let Some((request, answer)) = record.injection() else { return };
        let urgent =
            |row: &&Notification| row.priority == Priority::Critical && row.inject_at == InjectionPoint::Immediate;
        let Some(left) = record.mailbox.pending().iter().find(urgent) else { return };
        if request.wake_only && answer.showing == 0 {
            return;
        }
        // An item's position is that of its oldest notification.
        let mut shown = answer.shown.iter().filter_map(|entry| entry.notifications.first());
        let row = |id: &NotificationId| answer.taken.iter().find(|row| row.id == *id);
        let waits_behind = |row: &&Notification| row.priority != Priority::Critical || row.sequence > left.sequence;
        let behind = shown.find_map(|id| row(id).filter(waits_behind));
        assert!(answer.showing > 0 && behind.is_none(), "{left:?} waits behind {behind:?}");
    }
}
