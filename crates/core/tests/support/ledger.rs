//! Nothing is lost and nothing is shown twice: every accepted event, repeat and suppressed event is recorded with its
//! verdict and has to be accounted for from then on.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use bellwire_core::conversation::ConversationUpdate;
use bellwire_core::notification::{EndReason, LeftOut, NotificationKind};
use bellwire_core::subscriber::SubscriberId;
use bellwire_core::{AgentName, EventId, Notification, NotificationId, Time, Verdict};

use super::{Law, StepRecord};

/// The books of all agents of a conversation.
#[derive(Default)]
pub(crate) struct Ledger {
    books: HashMap<AgentName, Book>,
}

impl Law for Ledger {
    fn observe(&mut self, record: &StepRecord<'_>) {
        self.books.entry(record.agent.clone()).or_default().observe(record);
    }

    fn end(&mut self) {
        self.books.values().for_each(Book::close);
    }
}

/// One event of one subscriber.
type EventKey = (SubscriberId, EventId);

#[derive(Default)]
struct Book {
    now: Time,
    /// Events held or pending.
    waiting: BTreeMap<EventKey, Waiting>,
    /// Events no longer held or pending.
    ended: HashMap<EventKey, End>,
    repeats: HashMap<EventKey, Repeats>,
    /// Events with repeats that are neither shown nor gone.
    counting: BTreeSet<EventKey>,
    /// The notifications taken by each injection.
    taken: HashMap<String, Vec<Notification>>,
    left_out: LeftOutBook,
}

/// The notification that holds an event; `held_until` is set while it is an open batch.
#[derive(Copy, Clone, Debug, PartialEq)]
struct Waiting {
    within: NotificationId,
    held_until: Option<Time>,
}

/// How an event ended.
#[derive(Copy, Clone, Debug, PartialEq)]
enum End {
    /// An injection took it, shown or folded.
    Shown(NotificationId),
    /// A newer event replaced it.
    Superseded,
    Expired,
    /// It was folded because the mailbox was full.
    CrowdedOut,
}

/// The repeats of one event.
#[derive(Default)]
struct Repeats {
    /// When its window closes.
    closes: Time,
    /// Duplicate verdicts.
    counted: u64,
    /// Repeats that an injection showed.
    shown: u64,
    /// Repeats that ended with their event: superseded, expired or crowded out.
    gone: u64,
}

/// The counts of what was left out, and how many of them were shown or expired.
#[derive(Default)]
struct LeftOutBook {
    last: Option<EventId>,
    suppressed: u64,
    suppressed_ended: u64,
    crowded_out: u64,
    crowded_out_ended: u64,
    /// Repeats whose subscriber no longer exists.
    orphaned: u64,
    orphaned_ended: u64,
}

/// The rows before and after one step.
struct Rows<'a> {
    before: &'a [Notification],
    returned: &'a [Notification],
    after: &'a [Notification],
    taken: &'a [Notification],
    /// The injection merged the repeats counted so far into pending events.
    merges: bool,
}

impl Book {
    fn observe(&mut self, record: &StepRecord<'_>) {
        if record.is_refusal() {
            assert_eq!(record.before, record.mailbox.pending(), "a refused message changed the mailbox");
            return;
        }
        self.now = self.now.max(record.given);
        let returned = self.take_back(record.unseen());
        let injection = record.injection();
        let rows = Rows {
            before: record.before,
            returned: &returned,
            after: record.mailbox.pending(),
            taken: injection.map_or(&[], |(_, answer)| &answer.taken),
            merges: injection.is_some_and(|(request, answer)| !request.wake_only || answer.showing > 0),
        };
        self.book_verdicts(record, &rows);
        let unknown = self.book_ends(record.updates, &rows);
        if let Some((request, answer)) = injection {
            answer.taken.iter().for_each(|row| self.book_taken(row));
            let earlier = self.taken.insert(request.call_id.clone(), answer.taken.clone());
            assert!(earlier.is_none(), "{} was answered twice", request.call_id);
        }
        if !record.is_one_of_many || unknown > 0 {
            self.check_repeats(record, unknown);
        }
        if !record.is_one_of_many {
            self.check_events(record);
            self.left_out.check(record.mailbox.pending());
        }
    }

    /// Undoes the taking of unseen injections.
    fn take_back(&mut self, unseen: &[String]) -> Vec<Notification> {
        let mut returned = Vec::new();
        for call_id in unseen {
            let rows = self.taken.remove(call_id).expect("only answered calls are reported as unseen");
            rows.iter().for_each(|row| self.unbook_taken(row));
            returned.extend(rows);
        }
        returned
    }

    fn book_verdicts(&mut self, record: &StepRecord<'_>, rows: &Rows<'_>) {
        for update in record.updates {
            match update {
                ConversationUpdate::Superseded(older, subscriber, _) => {
                    self.supersede((subscriber.clone(), *older), rows)
                }
                ConversationUpdate::Decided(event, subscriber, verdict) => {
                    self.book_verdict(record, (subscriber.clone(), *event), verdict);
                }
                _ => {}
            }
        }
    }

    fn book_verdict(&mut self, record: &StepRecord<'_>, key: EventKey, verdict: &Verdict) {
        let waiting = match *verdict {
            Verdict::Queued { notification } => Waiting { within: notification, held_until: None },
            Verdict::Held { notification, until } => Waiting { within: notification, held_until: Some(until) },
            Verdict::Duplicate { of, repeats } => {
                let of = (key.0, of);
                let known =
                    self.repeats.get_mut(&of).unwrap_or_else(|| panic!("{of:?} is repeated and was never accepted"));
                known.counted += 1;
                assert_eq!(u64::from(repeats), known.counted, "the repeats of {of:?}");
                self.counting.insert(of);
                return;
            }
            Verdict::Suppressed => return self.left_out.count_suppressed(key.1),
            Verdict::Filtered(_) => return,
        };
        let subscriber = record.subscribers.find(key.0.as_str()).expect("only active subscribers give verdicts");
        let closes = self.now.plus(subscriber.batching.dedupe_window_ms);
        let decided = self.repeats.insert(key.clone(), Repeats { closes, ..Repeats::default() });
        assert!(decided.is_none(), "{key:?} was decided twice");
        self.waiting.insert(key, waiting);
    }

    fn supersede(&mut self, key: EventKey, rows: &Rows<'_>) {
        let waited = self.waiting.remove(&key).is_some();
        assert!(waited, "{key:?} was superseded and had ended as {:?}", self.ended.get(&key));
        let repeats = self.repeats.get_mut(&key).expect("every accepted event has a repeat counter");
        repeats.gone += repeats.ending_with_event(&key, rows);
        repeats.closes = Time::ZERO;
        self.ended.insert(key, End::Superseded);
    }

    /// Records the notifications that ended without an injection. Returns how many of them were unknown.
    fn book_ends(&mut self, updates: &[ConversationUpdate], rows: &Rows<'_>) -> usize {
        let ended = updates.iter().filter_map(|update| match update {
            ConversationUpdate::Ended(id, end_reason) => Some((*id, end_reason)),
            _ => None,
        });
        let mut unknown = 0;
        let mut ids = HashSet::new();
        for (id, end_reason) in ended.clone() {
            assert!(ids.insert(id), "{id} ended twice");
            match end_reason {
                EndReason::Injected | EndReason::Folded if rows.taken.iter().any(|row| row.id == id) => {}
                EndReason::Injected => panic!("{id} was injected, and by no injection"),
                EndReason::Expired => unknown += usize::from(!self.book_end(id, End::Expired, rows)),
                EndReason::Folded => unknown += usize::from(!self.book_end(id, End::CrowdedOut, rows)),
                EndReason::Replaced { .. } => {
                    let left = self.waiting.values().any(|waiting| waiting.within == id);
                    assert!(!left, "{id} was replaced and some of its events were not");
                }
            }
        }
        for row in ended.filter_map(|(id, _)| rows.line(id)) {
            for entry in &row.events {
                let repeats = self.repeats.get_mut(&(row.subscriber.clone(), entry.event));
                repeats.expect("every accepted event has a repeat counter").gone += u64::from(entry.merged);
            }
        }
        unknown
    }

    /// Records the end of every event in a notification; false if the notification was unknown.
    fn book_end(&mut self, id: NotificationId, end: End, rows: &Rows<'_>) -> bool {
        let row = rows.waited(id);
        if let Some(NotificationKind::LeftOut(counts)) = row.map(|row| &row.kind) {
            // A returned left-out notification may be merged into the pending one; the sum stays the same.
            if end == End::Expired {
                self.left_out.end(counts);
            }
            return true;
        }
        self.left_out.crowded_out += u64::from(end == End::CrowdedOut);
        let keys: Vec<EventKey> =
            self.waiting.extract_if(.., |_, waiting| waiting.within == id).map(|(key, _)| key).collect();
        for key in &keys {
            let entry = row.and_then(|row| row.events.iter().find(|entry| entry.event == key.1));
            let repeats = self.repeats.get_mut(key).expect("every accepted event has a repeat counter");
            // A closing window and an injection merge all counted repeats; expiry happens before both.
            let all = repeats.closes <= self.now || (rows.merges && end == End::CrowdedOut);
            let merged = entry.map_or(0, |entry| u64::from(entry.merged));
            repeats.gone += if all { repeats.ending_with_event(key, rows) } else { merged };
            self.ended.insert(key.clone(), end);
        }
        row.is_some() || !keys.is_empty()
    }

    fn book_taken(&mut self, row: &Notification) {
        if let NotificationKind::LeftOut(counts) = &row.kind {
            self.left_out.end(counts);
        }
        for entry in &row.events {
            let key = (row.subscriber.clone(), entry.event);
            self.repeats.get_mut(&key).expect("every accepted event has a repeat counter").shown +=
                u64::from(entry.merged);
            if row.kind == NotificationKind::Events {
                let waited = self.waiting.remove(&key).map(|waiting| waiting.within);
                assert_eq!(waited, Some(row.id), "{key:?} was taken and did not wait there");
                self.ended.insert(key, End::Shown(row.id));
            }
        }
    }

    fn unbook_taken(&mut self, row: &Notification) {
        if let NotificationKind::LeftOut(counts) = &row.kind {
            self.left_out.begin_again(counts);
        }
        for entry in &row.events {
            let key = (row.subscriber.clone(), entry.event);
            self.repeats.get_mut(&key).expect("every accepted event has a repeat counter").shown -=
                u64::from(entry.merged);
            self.counting.insert(key.clone());
            if row.kind == NotificationKind::Events {
                assert_eq!(self.ended.remove(&key), Some(End::Shown(row.id)));
                self.waiting.insert(key, Waiting { within: row.id, held_until: None });
            }
        }
    }

    /// Every event that was not shown and has not ended is in a row or in an open batch.
    fn check_events(&mut self, record: &StepRecord<'_>) {
        let mut in_rows = 0;
        for row in record.mailbox.pending().iter().filter(|row| row.kind == NotificationKind::Events) {
            assert!(!row.events.is_empty(), "{} is pending without events", row.id);
            for entry in &row.events {
                let key = (row.subscriber.clone(), entry.event);
                let waiting = self.waiting.get_mut(&key).unwrap_or_else(|| panic!("{key:?} is pending again"));
                assert_eq!(waiting.within, row.id, "{key:?} is pending in another notification than its verdict named");
                waiting.held_until = None;
                in_rows += 1;
            }
        }
        let references: HashSet<EventId> = record.mailbox.references().collect();
        let mut held = 0;
        for (key, waiting) in &self.waiting {
            assert!(references.contains(&key.1), "{key:?} is no longer referenced, in {waiting:?}");
            if let Some(due) = waiting.held_until {
                assert!(due > self.now, "the batch of {key:?} was due at {due} and is open at {}", self.now);
                held += 1;
            }
        }
        assert_eq!(self.waiting.len(), in_rows + held, "an event is pending in a notification that no longer exists");
    }

    /// Repeats are shown, or gone with their event, or in a row, or still being counted.
    fn check_repeats(&mut self, record: &StepRecord<'_>, mut unknown: usize) {
        let mut in_rows: BTreeMap<EventKey, u64> = BTreeMap::new();
        for row in record.mailbox.pending() {
            for entry in row.events.iter().filter(|entry| entry.merged > 0) {
                *in_rows.entry((row.subscriber.clone(), entry.event)).or_default() += u64::from(entry.merged);
            }
        }
        let mut counting = std::mem::take(&mut self.counting);
        counting.extend(in_rows.keys().cloned());
        counting.retain(|key| {
            let repeats = self.repeats.get_mut(key).expect("every accepted event has a repeat counter");
            let known = repeats.shown + repeats.gone + in_rows.get(key).copied().unwrap_or(0);
            assert!(known <= repeats.counted, "{key:?} was repeated {} times, not {known}", repeats.counted);
            // An open batch may hold some, and its content is not observable.
            let held = self.waiting.get(key).is_some_and(|waiting| waiting.held_until.is_some());
            if known < repeats.counted && repeats.closes <= self.now && !held {
                repeats.gone += repeats.counted - known;
                if record.subscribers.find(key.0.as_str()).is_none() {
                    self.left_out.orphaned += repeats.counted - known;
                    return false;
                }
                // An "N more times" notification can be folded in the step that creates it, and is then never observed.
                assert!(unknown > 0, "{} repeats of {key:?} are lost", repeats.counted - known);
                unknown -= 1;
            }
            repeats.shown + repeats.gone < repeats.counted
        });
        self.counting = counting;
    }

    /// At the end nothing is pending, and everything is accounted for.
    fn close(&self) {
        assert!(self.waiting.is_empty(), "{:?} still wait", self.waiting);
        for (key, repeats) in &self.repeats {
            assert_eq!(repeats.counted, repeats.shown + repeats.gone, "the repeats of {key:?}");
            assert!(self.ended.contains_key(key), "{key:?} was accepted and never ended");
        }
        self.left_out.check(&[]);
        let rows = self.taken.values().flatten().filter(|row| row.kind == NotificationKind::Events);
        let shown: Vec<_> =
            rows.flat_map(|row| row.events.iter().map(|one| (row.subscriber.clone(), one.event))).collect();
        let once: HashSet<_> = shown.iter().collect();
        assert_eq!(shown.len(), once.len(), "an event was shown twice");
        let ended_as_shown = self.ended.values().filter(|end| matches!(end, End::Shown(_))).count();
        assert_eq!(shown.len(), ended_as_shown);
    }
}

impl Repeats {
    /// The repeats that end with the event: all that are not shown, gone, or in a notification of their own.
    fn ending_with_event(&self, key: &EventKey, rows: &Rows<'_>) -> u64 {
        let before = rows.before.iter().chain(rows.returned).filter(|row| !rows.remains(row.id));
        let lines = before.chain(rows.after).chain(rows.taken).filter(|row| row.kind == NotificationKind::Repeats);
        let own = lines.filter(|row| row.subscriber == key.0).flat_map(|row| &row.events);
        let apart: u64 = own.filter(|entry| entry.event == key.1).map(|entry| u64::from(entry.merged)).sum();
        self.counted - self.shown - self.gone - apart
    }
}

impl<'a> Rows<'a> {
    /// A row that was pending before, or was returned.
    fn waited(&self, id: NotificationId) -> Option<&'a Notification> {
        self.before.iter().chain(self.returned).find(|row| row.id == id)
    }

    fn remains(&self, id: NotificationId) -> bool {
        self.after.iter().chain(self.taken).any(|row| row.id == id)
    }

    /// A row that reported repeats and ended without being shown.
    fn line(&self, id: NotificationId) -> Option<&'a Notification> {
        let taken = self.taken.iter().any(|row| row.id == id);
        self.waited(id).filter(|row| row.kind == NotificationKind::Repeats && !taken)
    }
}

impl LeftOutBook {
    /// Several subscribers may suppress one event; it counts as one event left out.
    fn count_suppressed(&mut self, event: EventId) {
        self.suppressed += u64::from(self.last.replace(event) != Some(event));
    }

    fn end(&mut self, counts: &LeftOut) {
        self.suppressed_ended += storm_total(counts);
        self.crowded_out_ended += u64::from(counts.notifications);
        self.orphaned_ended += u64::from(counts.repeats);
    }

    fn begin_again(&mut self, counts: &LeftOut) {
        self.suppressed_ended -= storm_total(counts);
        self.crowded_out_ended -= u64::from(counts.notifications);
        self.orphaned_ended -= u64::from(counts.repeats);
    }

    /// One notification counts everything left out, exactly.
    fn check(&self, pending: &[Notification]) {
        let mut lines = pending.iter().filter_map(|row| match &row.kind {
            NotificationKind::LeftOut(counts) => Some(counts),
            _ => None,
        });
        let line = lines.next().cloned().unwrap_or_default();
        assert!(lines.next().is_none(), "only one notification counts what was left out");
        let [storm, crowd, orphaned] = [storm_total(&line), line.notifications.into(), line.repeats.into()];
        assert_eq!(self.suppressed, self.suppressed_ended + storm, "events suppressed in a storm");
        assert_eq!(self.crowded_out, self.crowded_out_ended + crowd, "notifications folded beyond the bound");
        assert_eq!(self.orphaned, self.orphaned_ended + orphaned, "repeats of subscribers that are gone");
    }
}

fn storm_total(counts: &LeftOut) -> u64 {
    counts.storms.iter().map(|(_, events)| u64::from(*events)).sum::<u64>() + u64::from(counts.other_storms)
}
