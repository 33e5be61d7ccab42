//! A mailbox as bytes: versioned, at most 64 KiB, without the notifications that wait (they are rows of their own).

use std::fmt;

use postcard::ser_flavors::Flavor;
use serde::ser::SerializeSeq as _;
use serde::{Deserialize, Serialize, Serializer};

use super::batch::Batches;
use super::dedupe::{Dedupe, Window};
use super::presence::Presence;
use super::storm::Storm;
use super::{Keeper, Mailbox};
use crate::detect::Detectors;
use crate::event::Secret;
use crate::notification::Notification;
use crate::subscriber::SubscriberKey;
use crate::{EventId, Time};

/// No mailbox takes more than this, whatever happened to it: every part of it is bounded.
pub const BLOB_MAX: usize = 64 * 1024;
const VERSION: u8 = 1;
/// What a quiet mailbox takes, and what a window adds to it: enough that writing seldom has to move.
const QUIET_BYTES: usize = 512;
const WINDOW_BYTES: usize = 43;

/// A mailbox on its way to bytes: the same fields as [`Saved`] in the same order, behind the version, and none of them
/// copied. It happens once per mailbox and commit.
#[derive(Serialize)]
struct Saving<'a> {
    version: u8,
    keeper: Keeper,
    secret: &'a Secret,
    now: Time,
    sequence: u64,
    batches: &'a Batches,
    windows: OpenWindows<'a>,
    storm: &'a Storm,
    detectors: &'a Option<Box<Detectors>>,
    presence: &'a Presence,
}

#[derive(Deserialize)]
struct Saved {
    keeper: Keeper,
    secret: Secret,
    now: Time,
    sequence: u64,
    batches: Batches,
    windows: Vec<SavedWindow>,
    storm: Storm,
    detectors: Option<Box<Detectors>>,
    presence: Presence,
}

impl Saved {
    /// Whether a mailbox can have come to this. Bytes that were damaged may still read as something no mailbox ever was.
    fn is_sound(&self) -> bool {
        self.sequence < u64::MAX / 2 && self.detectors.as_ref().is_none_or(|detectors| detectors.is_sound())
    }
}

/// The windows worth saving, as a list of [`SavedWindow`].
struct OpenWindows<'a> {
    dedupe: &'a Dedupe,
    now: Time,
}

impl Serialize for OpenWindows<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.dedupe.open_windows(self.now).count()))?;
        for window in self.dedupe.open_windows(self.now) {
            list.serialize_element(&SavedWindow::of(window, self.now))?;
        }
        list.end()
    }
}

/// A window in about 43 bytes: there may be a thousand of them.
#[derive(Serialize, Deserialize)]
struct SavedWindow {
    key: [u8; 16],
    of: [u8; 16],
    subscriber: [u8; 4],
    /// Relative to the mailbox's own time.
    closes_in: i64,
    repeats: u32,
    told: u32,
}

impl SavedWindow {
    fn of(window: &Window, now: Time) -> Self {
        Self {
            key: window.key.to_le_bytes(),
            of: *window.of.0.as_bytes(),
            subscriber: window.subscriber.0.to_le_bytes(),
            closes_in: window.closes.as_millis().saturating_sub(now.as_millis()),
            repeats: window.repeats,
            told: window.told,
        }
    }
}

/// Memory that postcard writes into: its own takes a byte at a time through an iterator, and begins with no room.
struct Bytes(Vec<u8>);

impl Flavor for Bytes {
    type Output = Vec<u8>;

    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.0.push(byte);
        Ok(())
    }

    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    fn finalize(self) -> postcard::Result<Vec<u8>> {
        Ok(self.0)
    }
}

/// Why bytes are not a mailbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadError {
    /// They were written by a later version of Bellwire.
    Version(u8),
    /// They are damaged.
    Damaged,
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version(found) => write!(f, "the mailbox has version {found}; this Bellwire reads {VERSION}"),
            Self::Damaged => f.write_str("the mailbox is damaged"),
        }
    }
}

impl std::error::Error for LoadError {}

impl Mailbox {
    /// The mailbox as bytes. [`Mailbox::pending`] is not in them.
    pub fn save(&self) -> Vec<u8> {
        let saving = Saving {
            version: VERSION,
            keeper: self.keeper,
            secret: &self.secret,
            now: self.now,
            sequence: self.sequence,
            batches: &self.batches,
            windows: OpenWindows { dedupe: &self.dedupe, now: self.now },
            storm: &self.storm,
            detectors: &self.detectors,
            presence: &self.presence,
        };
        let bytes = Bytes(Vec::with_capacity(QUIET_BYTES + self.dedupe.len() * WINDOW_BYTES));
        postcard::serialize_with_flavor(&saving, bytes).expect("writing plain data into memory cannot fail")
    }

    /// The mailbox that was saved as these bytes, with the notifications that wait in it.
    pub fn load(bytes: &[u8], mut pending: Vec<Notification>) -> Result<Self, LoadError> {
        if bytes.len() > BLOB_MAX {
            return Err(LoadError::Damaged);
        }
        let (version, body) = bytes.split_first().ok_or(LoadError::Damaged)?;
        if *version != VERSION {
            return Err(LoadError::Version(*version));
        }
        let saved: Saved = postcard::from_bytes(body).map_err(|_| LoadError::Damaged)?;
        if !saved.is_sound() {
            return Err(LoadError::Damaged);
        }
        let window = |window: &SavedWindow| Window {
            key: u128::from_le_bytes(window.key),
            of: EventId(uuid::Uuid::from_bytes(window.of)),
            subscriber: SubscriberKey(u32::from_le_bytes(window.subscriber)),
            closes: Time::from_millis(saved.now.as_millis().saturating_add(window.closes_in)),
            repeats: window.repeats,
            told: window.told.min(window.repeats),
        };
        let dedupe = Dedupe::restore(saved.windows.iter().map(window).collect());
        pending.sort_by_key(|notification| notification.sequence);
        let mut mailbox = Self {
            keeper: saved.keeper,
            secret: saved.secret,
            now: saved.now,
            alarm: Time::NEVER,
            sequence: saved.sequence,
            batches: saved.batches,
            dedupe,
            storm: saved.storm,
            detectors: saved.detectors,
            presence: saved.presence,
            pending,
        };
        mailbox.alarm = mailbox.wakes_at();
        Ok(mailbox)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Desk, Input};
    use super::*;
    use crate::{Event, Ids, Severity, Subscribers};
    use serde_json::json;

    #[test]
    fn the_bytes_are_those_that_earlier_versions_wrote() {
        use std::hash::Hasher as _;
        let mut mailbox = Mailbox::new(Keeper::MainAgent, [7; 16]);
        agent_in_a_loop(&mut mailbox, Time::from_millis(1_000_000));
        let saved = mailbox.save();
        let mut hasher = siphasher::sip::SipHasher13::new();
        hasher.write(&saved);
        assert_eq!((saved.len(), hasher.finish()), (278, 8_767_000_436_959_087_936));
    }

    /// Publishes the same failing call a few times, as an agent in a loop would.
    fn agent_in_a_loop(mailbox: &mut Mailbox, start: Time) {
        let mut desk = Desk::new(Subscribers::bundled().into(), Ids::seeded(1));
        let payload = json!({"tool_name": "grep", "arguments": {}, "usage": {"tokens_used": 9, "token_limit": 10}});
        let event = Event::new("tool.call.failure", "tool_executor", Severity::Error, payload).unwrap();
        for call in 0..4 {
            desk.now = start.plus(call * 1_000);
            mailbox.handle(Input::Event(&event), &mut desk).unwrap();
            while desk.poll().is_some() {}
        }
    }

    #[test]
    fn a_mailbox_with_any_one_byte_damaged_is_refused_or_goes_on_working() {
        let mut mailbox = Mailbox::new(Keeper::MainAgent, [7; 16]);
        agent_in_a_loop(&mut mailbox, Time::from_millis(1_000_000));
        let saved = mailbox.save();
        for at in 1..saved.len() {
            for byte in [0, 1, 0x7f, 0xff] {
                let mut damaged = saved.clone();
                damaged[at] = byte;
                if let Ok(mut mailbox) = Mailbox::load(&damaged, Vec::new()) {
                    agent_in_a_loop(&mut mailbox, Time::from_millis(1_002_000));
                    assert!(Mailbox::load(&mailbox.save(), Vec::new()).is_ok());
                }
            }
        }
    }
}
