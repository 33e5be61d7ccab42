//! Counts repeats of an event within a window instead of showing them again.
//!
//! A window is fixed: it starts with the first event and is not extended. Index and sweep are lazy: a mailbox with a
//! few windows keeps a short list and scans it.

use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

use crate::subscriber::SubscriberKey;
use crate::{EventId, Time};

/// The most windows in a mailbox.
pub(crate) const WINDOWS_MAX: usize = 1024;
/// How many of the oldest windows close early when the limit is reached.
const EVICTED_AT_ONCE: usize = 128;
/// Up to this many windows, a scan is faster than an index.
const SCANNED_MAX: usize = 24;

/// The open windows, oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Dedupe {
    windows: Vec<Window>,
    index: Option<Box<Index>>,
    /// The number of windows that triggers the next sweep of elapsed ones: twice the number left by the last sweep.
    sweep_at: usize,
    /// How many windows have repeats that are not reported yet.
    unreported: usize,
}

type Index = HashMap<u128, u32, BuildHasherDefault<IdentityHasher>>;

/// One window: counts the events with the same key as its first event.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Window {
    pub(crate) key: u128,
    /// The event that opened it.
    pub(crate) of: EventId,
    /// The subscriber that counts.
    pub(crate) subscriber: SubscriberKey,
    pub(crate) closes: Time,
    pub(crate) repeats: u32,
    /// How many of the repeats the agent has been shown.
    pub(crate) reported: u32,
}

impl Window {
    /// Repeats not yet shown to the agent.
    pub(crate) fn unreported(&self) -> u32 {
        self.repeats - self.reported
    }
}

impl Dedupe {
    /// Whether the key's window is open.
    pub(crate) fn is_open(&self, key: u128, now: Time) -> bool {
        self.position(key).is_some_and(|at| self.windows[at].closes > now)
    }

    /// Counts a repeat, if the key's window is open.
    pub(crate) fn count(&mut self, key: u128, now: Time) -> Option<&Window> {
        let at = self.position(key).filter(|at| self.windows[*at].closes > now)?;
        let window = &mut self.windows[at];
        self.unreported += usize::from(window.repeats == window.reported);
        window.repeats = window.repeats.saturating_add(1);
        Some(window)
    }

    /// Opens a window. Returns the windows that closed early because of the limit and have unreported repeats.
    pub(crate) fn open(&mut self, window: Window, now: Time) -> Vec<Window> {
        let closed_early = if self.windows.len() >= WINDOWS_MAX { self.make_room(now) } else { Vec::new() };
        if self.windows.len() >= self.sweep_at.max(SCANNED_MAX) {
            self.sweep(now);
        }
        // An elapsed window with the same key may still exist; lookups find the newer one first.
        if let Some(index) = &mut self.index {
            index.insert(window.key, self.windows.len() as u32);
        }
        self.windows.push(window);
        if self.index.is_none() && self.windows.len() > SCANNED_MAX {
            self.reindex();
        }
        closed_early
    }

    /// Removes and returns the closed windows with unreported repeats, oldest first.
    pub(crate) fn take_closed_unreported(&mut self, now: Time) -> Vec<Window> {
        if self.unreported == 0 {
            return Vec::new();
        }
        let closed: Vec<Window> =
            self.windows.extract_if(.., |window| window.closes <= now && window.repeats > window.reported).collect();
        self.unreported -= closed.len();
        if !closed.is_empty() {
            self.reindex();
        }
        closed
    }

    /// When the next window with unreported repeats closes.
    pub(crate) fn next_close(&self) -> Time {
        if self.unreported == 0 {
            return Time::NEVER;
        }
        let unreported = self.windows.iter().filter(|window| window.repeats > window.reported);
        unreported.map(|window| window.closes).min().unwrap_or(Time::NEVER)
    }

    /// Calls `report` for every window with unreported repeats, and marks them as reported where it returns true.
    pub(crate) fn mark_reported(&mut self, mut report: impl FnMut(&Window) -> bool) {
        if self.unreported == 0 {
            return;
        }
        for window in &mut self.windows {
            if window.unreported() > 0 && report(window) {
                window.reported = window.repeats;
                self.unreported -= 1;
            }
        }
    }

    /// Closes a subscriber's window of an event that a newer one replaced: if the old state returns, it is shown again.
    /// The windows of other subscribers stay.
    pub(crate) fn forget(&mut self, event: EventId, subscriber: SubscriberKey) {
        let is_it = |window: &Window| window.of == event && window.subscriber == subscriber;
        if let Some(at) = self.windows.iter().position(is_it) {
            self.close_early(at);
        }
    }

    /// [`Self::forget`] for many events and their subscribers, in one pass.
    pub(crate) fn forget_all(&mut self, events: &BTreeSet<(EventId, SubscriberKey)>) {
        if events.is_empty() {
            return;
        }
        for at in 0..self.windows.len() {
            if events.contains(&(self.windows[at].of, self.windows[at].subscriber)) {
                self.close_early(at);
            }
        }
    }

    fn close_early(&mut self, at: usize) {
        let window = &mut self.windows[at];
        self.unreported -= usize::from(window.repeats > window.reported);
        window.reported = window.repeats;
        window.closes = Time::ZERO;
    }

    /// The windows to save: those that are open or have unreported repeats, oldest first.
    pub(crate) fn open_windows(&self, now: Time) -> impl Iterator<Item = &Window> {
        self.windows.iter().filter(move |window| window.closes > now || window.repeats > window.reported)
    }

    /// The windows with unreported repeats.
    pub(crate) fn unreported(&self) -> impl Iterator<Item = &Window> {
        let any = self.unreported > 0;
        self.windows.iter().filter(move |window| any && window.unreported() > 0)
    }

    /// The number of windows, elapsed ones included.
    pub(crate) fn len(&self) -> usize {
        self.windows.len()
    }

    pub(crate) fn restore(windows: Vec<Window>) -> Self {
        let unreported = windows.iter().filter(|window| window.repeats > window.reported).count();
        let mut dedupe = Self { windows, unreported, ..Self::default() };
        dedupe.reindex();
        dedupe
    }

    /// Makes every window close this many milliseconds earlier.
    pub(crate) fn set_back(&mut self, millis: u64) {
        self.windows.iter_mut().for_each(|window| window.closes = window.closes.minus(millis).max(Time::ZERO));
    }

    /// Frees the memory of elapsed windows.
    pub(crate) fn compact(&mut self, now: Time) {
        self.sweep(now);
        self.windows.shrink_to_fit();
    }

    fn position(&self, key: u128) -> Option<usize> {
        match &self.index {
            Some(index) => index.get(&key).map(|at| *at as usize),
            None => self.windows.iter().rposition(|window| window.key == key),
        }
    }

    /// Removes elapsed windows, except those with unreported repeats: [`Self::take_closed_unreported`] removes these.
    fn sweep(&mut self, now: Time) {
        self.windows.retain(|window| window.closes > now || window.repeats > window.reported);
        self.sweep_at = (self.windows.len() * 2).min(WINDOWS_MAX);
        self.reindex();
    }

    fn make_room(&mut self, now: Time) -> Vec<Window> {
        self.sweep(now);
        if self.windows.len() < WINDOWS_MAX {
            return Vec::new();
        }
        let unreported: Vec<Window> =
            self.windows.drain(..EVICTED_AT_ONCE).filter(|window| window.repeats > window.reported).collect();
        self.unreported -= unreported.len();
        self.reindex();
        unreported
    }

    fn reindex(&mut self) {
        if self.windows.len() <= SCANNED_MAX {
            self.index = None;
            return;
        }
        let index = self.index.get_or_insert_default();
        index.clear();
        index.extend(self.windows.iter().zip(0..).map(|(window, at)| (window.key, at)));
    }
}

/// The index is derived from the windows and need not be compared.
impl PartialEq for Dedupe {
    fn eq(&self, other: &Self) -> bool {
        self.windows == other.windows
    }
}

/// Passes the low half of a key through: keys are hashes already.
#[derive(Clone, Default)]
struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
    fn write(&mut self, bytes: &[u8]) {
        let mut low = [0; 8];
        let length = bytes.len().min(8);
        low[..length].copy_from_slice(&bytes[..length]);
        self.0 = u64::from_le_bytes(low);
    }

    fn write_u128(&mut self, hash: u128) {
        self.0 = hash as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
