//! Nothing is lost and nothing is said twice: every event, every repeat and every refusal is booked when its verdict is
//! given, and has to be somewhere for ever after.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use bellwire_core::conversation::ConversationUpdate;
use bellwire_core::notification::{EndReason, LeftOut, NotificationKind};
use bellwire_core::subscriber::SubscriberId;
use bellwire_core::{AgentName, EventId, Notification, NotificationId, Time, Verdict};

use super::{Law, Moment};

/// The books of all agents of a conversation.
#[derive(Default)]
pub(crate) struct Ledger {
    books: HashMap<AgentName, Book>,
}

impl Law for Ledger {
    fn see(&mut self, moment: &Moment<'_>) {
        self.books.entry(moment.agent.clone()).or_default().see(moment);
    }

    fn end(&mut self) {
        self.books.values().for_each(Book::close);
    }
}

/// One event for one subscriber.
type Letter = (SubscriberId, EventId);

#[derive(Default)]
struct Book {
    now: Time,
    /// The letters that wait.
    waiting: BTreeMap<Letter, Waiting>,
    /// The letters that wait no longer.
    ended: HashMap<Letter, End>,
    repeats: HashMap<Letter, Repeats>,
    /// The letters of which not every repeat is told or gone.
    counting: BTreeSet<Letter>,
    /// What each answer took.
    taken: HashMap<String, Vec<Notification>>,
    left_out: LeftOutBook,
}

/// Where a letter waits: in this notification, which may be a batch that is open until then.
#[derive(Copy, Clone, Debug, PartialEq)]
struct Waiting {
    within: NotificationId,
    held_until: Option<Time>,
}

/// What became of a letter.
#[derive(Copy, Clone, Debug, PartialEq)]
enum End {
    /// An answer took it, shown or summed up.
    ShownItem(NotificationId),
    /// A newer event is told instead.
    Superseded,
    Expired,
    /// It is counted in the line that says what did not fit.
    CrowdedOut,
}

/// The repeats of one letter.
#[derive(Default)]
struct Repeats {
    /// When its window closes.
    closes: Time,
    /// Duplicate verdicts.
    counted: u64,
    /// Repeats that an answer told.
    told: u64,
    /// Repeats that went where their letter went: superseded, expired or crowded out.
    gone: u64,
}

/// What could not be kept, and how much of it is told, or gone with a line that expired.
#[derive(Default)]
struct LeftOutBook {
    last: Option<EventId>,
    suppressed: u64,
    suppressed_ended: u64,
    crowded_out: u64,
    crowded_out_ended: u64,
    /// Repeats of a subscriber that nobody knows any more.
    orphaned: u64,
    orphaned_ended: u64,
}

/// The rows around one moment.
struct Rows<'a> {
    before: &'a [Notification],
    returned: &'a [Notification],
    after: &'a [Notification],
    taken: &'a [Notification],
    /// An injection adds to everything that waits what was counted of it so far.
    merges: bool,
}

impl Book {
    fn see(&mut self, moment: &Moment<'_>) {
        if moment.is_refusal() {
            assert_eq!(moment.before, moment.mailbox.pending(), "a message was refused and something happened");
            return;
        }
        self.now = self.now.max(moment.given);
        let returned = self.take_back(moment.unseen());
        let injection = moment.injection();
        let rows = Rows {
            before: moment.before,
            returned: &returned,
            after: moment.mailbox.pending(),
            taken: injection.map_or(&[], |(_, answer)| &answer.taken),
            merges: injection.is_some_and(|(request, answer)| !request.wake_only || answer.showing > 0),
        };
        self.book_verdicts(moment, &rows);
        let unknown = self.book_ends(moment.news, &rows);
        if let Some((request, answer)) = injection {
            answer.taken.iter().for_each(|row| self.book_taken(row));
            let earlier = self.taken.insert(request.call_id.clone(), answer.taken.clone());
            assert!(earlier.is_none(), "{} was answered twice", request.call_id);
        }
        if !moment.glance || unknown > 0 {
            self.check_repeats(moment, unknown);
        }
        if !moment.glance {
            self.check_letters(moment);
            self.left_out.check(moment.mailbox.pending());
        }
    }

    /// What unseen answers took counts as not told.
    fn take_back(&mut self, unseen: &[String]) -> Vec<Notification> {
        let mut returned = Vec::new();
        for call_id in unseen {
            let rows = self.taken.remove(call_id).expect("what is unseen was answered");
            rows.iter().for_each(|row| self.unbook_taken(row));
            returned.extend(rows);
        }
        returned
    }

    fn book_verdicts(&mut self, moment: &Moment<'_>, rows: &Rows<'_>) {
        for news in moment.news {
            match news {
                ConversationUpdate::Superseded(older, subscriber, _) => {
                    self.supersede((subscriber.clone(), *older), rows)
                }
                ConversationUpdate::Decided(event, subscriber, verdict) => {
                    self.book_verdict(moment, (subscriber.clone(), *event), verdict);
                }
                _ => {}
            }
        }
    }

    fn book_verdict(&mut self, moment: &Moment<'_>, letter: Letter, verdict: &Verdict) {
        let waiting = match *verdict {
            Verdict::Queued { notification } => Waiting { within: notification, held_until: None },
            Verdict::Held { notification, until } => Waiting { within: notification, held_until: Some(until) },
            Verdict::Duplicate { of, repeats } => {
                let of = (letter.0, of);
                let known =
                    self.repeats.get_mut(&of).unwrap_or_else(|| panic!("{of:?} is repeated and was never taken"));
                known.counted += 1;
                assert_eq!(u64::from(repeats), known.counted, "the repeats of {of:?}");
                self.counting.insert(of);
                return;
            }
            Verdict::Suppressed => return self.left_out.count_suppressed(letter.1),
            Verdict::Filtered(_) => return,
        };
        let subscriber = moment.subscribers.find(letter.0.as_str()).expect("a verdict is given for one in force");
        let closes = self.now.plus(subscriber.batching.dedupe_window_ms);
        let decided = self.repeats.insert(letter.clone(), Repeats { closes, ..Repeats::default() });
        assert!(decided.is_none(), "{letter:?} was decided twice");
        self.waiting.insert(letter, waiting);
    }

    fn supersede(&mut self, letter: Letter, rows: &Rows<'_>) {
        let waited = self.waiting.remove(&letter).is_some();
        assert!(waited, "{letter:?} was superseded and had ended as {:?}", self.ended.get(&letter));
        let repeats = self.repeats.get_mut(&letter).expect("every letter has a count");
        repeats.gone += repeats.with_letter(&letter, rows);
        repeats.closes = Time::ZERO;
        self.ended.insert(letter, End::Superseded);
    }

    /// What ended without an answer. Gives back how many of these notifications nobody had heard of.
    fn book_ends(&mut self, news: &[ConversationUpdate], rows: &Rows<'_>) -> usize {
        let ended = news.iter().filter_map(|news| match news {
            ConversationUpdate::Ended(id, end_reason) => Some((*id, end_reason)),
            _ => None,
        });
        let mut unknown = 0;
        let mut ids = HashSet::new();
        for (id, end_reason) in ended.clone() {
            assert!(ids.insert(id), "{id} ended twice");
            match end_reason {
                EndReason::Injected | EndReason::Folded if rows.taken.iter().any(|row| row.id == id) => {}
                EndReason::Injected => panic!("{id} was injected by nobody"),
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
                repeats.expect("every letter has a count").gone += u64::from(entry.merged);
            }
        }
        unknown
    }

    /// Books the end of everything within a notification; false if nobody had heard of it.
    fn book_end(&mut self, id: NotificationId, end: End, rows: &Rows<'_>) -> bool {
        let row = rows.waited(id);
        if let Some(NotificationKind::LeftOut(counts)) = row.map(|row| &row.kind) {
            // A line of this kind that comes back may join the one that waits; together they say the same.
            if end == End::Expired {
                self.left_out.end(counts);
            }
            return true;
        }
        self.left_out.crowded_out += u64::from(end == End::CrowdedOut);
        let letters: Vec<Letter> =
            self.waiting.extract_if(.., |_, waiting| waiting.within == id).map(|(letter, _)| letter).collect();
        for letter in &letters {
            let entry = row.and_then(|row| row.events.iter().find(|entry| entry.event == letter.1));
            let repeats = self.repeats.get_mut(letter).expect("every letter has a count");
            // The close of a window adds what it counted, and so does an injection; but what expires does so first.
            let all = repeats.closes <= self.now || (rows.merges && end == End::CrowdedOut);
            let merged = entry.map_or(0, |entry| u64::from(entry.merged));
            repeats.gone += if all { repeats.with_letter(letter, rows) } else { merged };
            self.ended.insert(letter.clone(), end);
        }
        row.is_some() || !letters.is_empty()
    }

    fn book_taken(&mut self, row: &Notification) {
        if let NotificationKind::LeftOut(counts) = &row.kind {
            self.left_out.end(counts);
        }
        for entry in &row.events {
            let letter = (row.subscriber.clone(), entry.event);
            self.repeats.get_mut(&letter).expect("every letter has a count").told += u64::from(entry.merged);
            if row.kind == NotificationKind::Events {
                let waited = self.waiting.remove(&letter).map(|waiting| waiting.within);
                assert_eq!(waited, Some(row.id), "{letter:?} was taken and did not wait there");
                self.ended.insert(letter, End::ShownItem(row.id));
            }
        }
    }

    fn unbook_taken(&mut self, row: &Notification) {
        if let NotificationKind::LeftOut(counts) = &row.kind {
            self.left_out.begin_again(counts);
        }
        for entry in &row.events {
            let letter = (row.subscriber.clone(), entry.event);
            self.repeats.get_mut(&letter).expect("every letter has a count").told -= u64::from(entry.merged);
            self.counting.insert(letter.clone());
            if row.kind == NotificationKind::Events {
                assert_eq!(self.ended.remove(&letter), Some(End::ShownItem(row.id)));
                self.waiting.insert(letter, Waiting { within: row.id, held_until: None });
            }
        }
    }

    /// Whatever is not told and has not ended waits in a row or in an open batch.
    fn check_letters(&mut self, moment: &Moment<'_>) {
        let mut in_rows = 0;
        for row in moment.mailbox.pending().iter().filter(|row| row.kind == NotificationKind::Events) {
            assert!(!row.events.is_empty(), "{} waits with nothing to say", row.id);
            for entry in &row.events {
                let letter = (row.subscriber.clone(), entry.event);
                let waiting = self.waiting.get_mut(&letter).unwrap_or_else(|| panic!("{letter:?} waits again"));
                assert_eq!(waiting.within, row.id, "{letter:?} waits elsewhere than its verdict said");
                waiting.held_until = None;
                in_rows += 1;
            }
        }
        let references: HashSet<EventId> = moment.mailbox.references().collect();
        let mut held = 0;
        for (letter, waiting) in &self.waiting {
            assert!(references.contains(&letter.1), "{letter:?} is not where it was, in {waiting:?}");
            if let Some(due) = waiting.held_until {
                assert!(due > self.now, "the batch of {letter:?} was due at {due} and is open at {}", self.now);
                held += 1;
            }
        }
        assert_eq!(self.waiting.len(), in_rows + held, "something waits in a notification that is gone");
    }

    /// Repeats are told, or gone with their letter, or wait in a row, or are still being counted.
    fn check_repeats(&mut self, moment: &Moment<'_>, mut unknown: usize) {
        let mut in_rows: BTreeMap<Letter, u64> = BTreeMap::new();
        for row in moment.mailbox.pending() {
            for entry in row.events.iter().filter(|entry| entry.merged > 0) {
                *in_rows.entry((row.subscriber.clone(), entry.event)).or_default() += u64::from(entry.merged);
            }
        }
        let mut counting = std::mem::take(&mut self.counting);
        counting.extend(in_rows.keys().cloned());
        counting.retain(|letter| {
            let repeats = self.repeats.get_mut(letter).expect("every letter has a count");
            let known = repeats.told + repeats.gone + in_rows.get(letter).copied().unwrap_or(0);
            assert!(known <= repeats.counted, "{letter:?} was repeated {} times, not {known}", repeats.counted);
            // A batch that is still open may have been given some; nobody can look into it.
            let held = self.waiting.get(letter).is_some_and(|waiting| waiting.held_until.is_some());
            if known < repeats.counted && repeats.closes <= self.now && !held {
                repeats.gone += repeats.counted - known;
                if moment.subscribers.find(letter.0.as_str()).is_none() {
                    self.left_out.orphaned += repeats.counted - known;
                    return false;
                }
                // A line "3 more times" can be crowded out in the moment it is made; nobody sees it then.
                assert!(unknown > 0, "{} repeats of {letter:?} are lost", repeats.counted - known);
                unknown -= 1;
            }
            repeats.told + repeats.gone < repeats.counted
        });
        self.counting = counting;
    }

    /// At the end nothing waits, and everything is accounted for.
    fn close(&self) {
        assert!(self.waiting.is_empty(), "{:?} still wait", self.waiting);
        for (letter, repeats) in &self.repeats {
            assert_eq!(repeats.counted, repeats.told + repeats.gone, "the repeats of {letter:?}");
            assert!(self.ended.contains_key(letter), "{letter:?} was accepted and never ended");
        }
        self.left_out.check(&[]);
        let rows = self.taken.values().flatten().filter(|row| row.kind == NotificationKind::Events);
        let told: Vec<_> =
            rows.flat_map(|row| row.events.iter().map(|one| (row.subscriber.clone(), one.event))).collect();
        let once: HashSet<_> = told.iter().collect();
        assert_eq!(told.len(), once.len(), "something was told twice");
        let ended_as_told = self.ended.values().filter(|end| matches!(end, End::ShownItem(_))).count();
        assert_eq!(told.len(), ended_as_told);
    }
}

impl Repeats {
    /// The repeats that go where the letter goes: all that are not told, gone, or in a line of their own.
    fn with_letter(&self, letter: &Letter, rows: &Rows<'_>) -> u64 {
        let before = rows.before.iter().chain(rows.returned).filter(|row| !rows.remains(row.id));
        let lines = before.chain(rows.after).chain(rows.taken).filter(|row| row.kind == NotificationKind::Repeats);
        let own = lines.filter(|row| row.subscriber == letter.0).flat_map(|row| &row.events);
        let apart: u64 = own.filter(|entry| entry.event == letter.1).map(|entry| u64::from(entry.merged)).sum();
        self.counted - self.told - self.gone - apart
    }
}

impl<'a> Rows<'a> {
    /// A row that waited before, or came back.
    fn waited(&self, id: NotificationId) -> Option<&'a Notification> {
        self.before.iter().chain(self.returned).find(|row| row.id == id)
    }

    fn remains(&self, id: NotificationId) -> bool {
        self.after.iter().chain(self.taken).any(|row| row.id == id)
    }

    /// A row that said how often something happened again, and has ended in silence.
    fn line(&self, id: NotificationId) -> Option<&'a Notification> {
        let taken = self.taken.iter().any(|row| row.id == id);
        self.waited(id).filter(|row| row.kind == NotificationKind::Repeats && !taken)
    }
}

impl LeftOutBook {
    /// Several subscribers may refuse one event; it is one event that is left out.
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

    /// What could not be kept is counted in one line, to the unit.
    fn check(&self, pending: &[Notification]) {
        let mut lines = pending.iter().filter_map(|row| match &row.kind {
            NotificationKind::LeftOut(counts) => Some(counts),
            _ => None,
        });
        let line = lines.next().cloned().unwrap_or_default();
        assert!(lines.next().is_none(), "there is one line that says what did not fit");
        let [storm, crowd, orphaned] = [storm_total(&line), line.notifications.into(), line.repeats.into()];
        assert_eq!(self.suppressed, self.suppressed_ended + storm, "events refused in a storm");
        assert_eq!(self.crowded_out, self.crowded_out_ended + crowd, "notifications that made room");
        assert_eq!(self.orphaned, self.orphaned_ended + orphaned, "repeats of subscribers that are gone");
    }
}

fn storm_total(counts: &LeftOut) -> u64 {
    counts.storms.iter().map(|(_, events)| u64::from(*events)).sum::<u64>() + u64::from(counts.other_storms)
}
