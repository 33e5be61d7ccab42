//! The saved form of a mailbox: versioned bytes, at most 64 KiB, without pending notifications (these are rows of their
//! own).

use std::fmt;

use postcard::ser_flavors::Flavor;
use serde::{Deserialize, Serialize, Serializer};

use super::batch::Batches;
use super::dedupe::{Dedupe, WINDOWS_MAX, Window};
use super::presence::Presence;
use super::storm::Storm;
use super::{Mailbox, MailboxKind};
use crate::detect::Detectors;
use crate::event::HashKey;
use crate::notification::Notification;
use crate::subscriber::SubscriberKey;
use crate::{EventId, Time};

/// The largest saved mailbox, in bytes. It cannot be exceeded, because every part of a mailbox is bounded.
pub const BLOB_MAX: usize = 64 * 1024;
/// The current format. Similar mailboxes have similar bytes, so that a store may write only the difference.
const VERSION: u8 = 3;
/// The same format as version 3, but its secret came from the id generator and can be guessed.
const GUESSABLE: u8 = 2;
/// A format in which a window's end was relative to the mailbox's own time.
const RELATIVE: u8 = 1;
/// The initial buffer of a mailbox without windows: large enough to avoid most reallocations.
const QUIET_BYTES: usize = 512;
/// The size of one saved window. A mailbox has up to [`WINDOWS_MAX`] windows.
const WINDOW_BYTES: usize = 48;
/// Saved windows have fixed-width fields: 6 bytes for the end in milliseconds, 3 bytes per counter. Larger values
/// saturate.
const CLOSES_MAX: i64 = (1 << 48) - 1;
const COUNTED_MAX: u32 = (1 << 24) - 1;

/// A mailbox for writing: the fields of [`Saved`] in the same order, preceded by the version. It borrows, because every
/// commit saves each mailbox it changed.
#[derive(Serialize)]
struct SavedRef<'a> {
    version: u8,
    kind: MailboxKind,
    secret: &'a HashKey,
    now: Time,
    sequence: u64,
    batches: &'a Batches,
    windows: OpenWindows<'a>,
    storm: &'a Storm,
    detectors: &'a Option<Box<Detectors>>,
    presence: &'a Presence,
}

#[derive(Deserialize)]
struct Saved<W> {
    kind: MailboxKind,
    secret: HashKey,
    now: Time,
    sequence: u64,
    batches: Batches,
    windows: W,
    storm: Storm,
    detectors: Option<Box<Detectors>>,
    presence: Presence,
}

impl<W> Saved<W> {
    fn without_windows(self) -> Saved<()> {
        Saved {
            kind: self.kind,
            secret: self.secret,
            now: self.now,
            sequence: self.sequence,
            batches: self.batches,
            windows: (),
            storm: self.storm,
            detectors: self.detectors,
            presence: self.presence,
        }
    }

    /// Whether a mailbox can reach this state. Damaged bytes may decode into a state that no mailbox can have.
    fn is_valid(&self) -> bool {
        self.sequence < u64::MAX / 2 && self.detectors.as_ref().is_none_or(|detectors| detectors.is_valid())
    }
}

/// The open windows, concatenated.
struct OpenWindows<'a> {
    dedupe: &'a Dedupe,
    now: Time,
}

impl Serialize for OpenWindows<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut bytes = Vec::with_capacity(self.dedupe.len() * WINDOW_BYTES);
        for window in self.dedupe.open_windows(self.now) {
            bytes.extend_from_slice(&window.key.to_le_bytes());
            bytes.extend_from_slice(window.of.0.as_bytes());
            bytes.extend_from_slice(&window.subscriber.0.to_le_bytes());
            bytes.extend_from_slice(&window.closes.as_millis().clamp(0, CLOSES_MAX).to_le_bytes()[..6]);
            for counter in [window.repeats, window.reported] {
                bytes.extend_from_slice(&counter.min(COUNTED_MAX).to_le_bytes()[..3]);
            }
        }
        serializer.serialize_bytes(&bytes)
    }
}

fn window(bytes: &[u8; WINDOW_BYTES]) -> Option<Window> {
    let (key, rest) = bytes.split_first_chunk()?;
    let (of, rest) = rest.split_first_chunk()?;
    let (subscriber, rest) = rest.split_first_chunk()?;
    let (closes, rest) = rest.split_at_checked(6)?;
    let (repeats, reported) = rest.split_at_checked(3)?;
    let number = |bytes: &[u8]| bytes.iter().rfold(0, |number, byte| number << 8 | u64::from(*byte));
    Some(Window {
        key: u128::from_le_bytes(*key),
        of: EventId(uuid::Uuid::from_bytes(*of)),
        subscriber: SubscriberKey(u32::from_le_bytes(*subscriber)),
        closes: Time::from_millis(number(closes) as i64),
        repeats: number(repeats) as u32,
        reported: number(reported).min(number(repeats)) as u32,
    })
}

/// A window in the format of version 1.
#[derive(Deserialize)]
struct WindowV1 {
    key: [u8; 16],
    of: [u8; 16],
    subscriber: [u8; 4],
    /// Relative to the mailbox's own time.
    closes_in: i64,
    repeats: u32,
    reported: u32,
}

impl WindowV1 {
    fn at(&self, now: Time) -> Window {
        Window {
            key: u128::from_le_bytes(self.key),
            of: EventId(uuid::Uuid::from_bytes(self.of)),
            subscriber: SubscriberKey(u32::from_le_bytes(self.subscriber)),
            closes: Time::from_millis(now.as_millis().saturating_add(self.closes_in).clamp(0, CLOSES_MAX)),
            repeats: self.repeats.min(COUNTED_MAX),
            reported: self.reported.min(self.repeats).min(COUNTED_MAX),
        }
    }
}

/// The output buffer for postcard. Postcard's own starts without capacity and extends byte by byte through an iterator.
struct PostcardBuffer(Vec<u8>);

impl Flavor for PostcardBuffer {
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

/// Why bytes cannot be loaded as a mailbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadError {
    /// Another version of Bellwire wrote them.
    Version(u8),
    /// They are damaged.
    Damaged,
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version(found) => {
                write!(f, "the mailbox has version {found}; this Bellwire reads {RELATIVE} to {VERSION}")
            }
            Self::Damaged => f.write_str("the mailbox is damaged"),
        }
    }
}

impl std::error::Error for LoadError {}

impl Mailbox {
    /// The mailbox as bytes, without [`Mailbox::pending`].
    pub fn save(&self) -> Vec<u8> {
        let saving = SavedRef {
            version: VERSION,
            kind: self.kind,
            secret: &self.secret,
            now: self.now,
            sequence: self.sequence,
            batches: &self.batches,
            windows: OpenWindows { dedupe: &self.dedupe, now: self.now },
            storm: &self.storm,
            detectors: &self.detectors,
            presence: &self.presence,
        };
        let bytes = PostcardBuffer(Vec::with_capacity(QUIET_BYTES + self.dedupe.len() * WINDOW_BYTES));
        postcard::serialize_with_flavor(&saving, bytes).expect("writing plain data into memory cannot fail")
    }

    /// Whether a version that derived secrets from ids saved these bytes. After loading them, call
    /// [`Mailbox::set_secret`] with a new secret.
    pub fn has_guessable_secret(bytes: &[u8]) -> bool {
        matches!(bytes.first(), Some(&(RELATIVE | GUESSABLE)))
    }

    /// Replaces the secret. Keys hashed with the old secret no longer match: until the open windows end, a repeat may
    /// be shown once more, and a newer state does not replace a pending one.
    pub fn set_secret(&mut self, secret: HashKey) {
        self.secret = secret;
    }

    /// Loads a saved mailbox together with its pending notifications.
    pub fn load(bytes: &[u8], mut pending: Vec<Notification>) -> Result<Self, LoadError> {
        if bytes.len() > BLOB_MAX {
            return Err(LoadError::Damaged);
        }
        let (version, body) = bytes.split_first().ok_or(LoadError::Damaged)?;
        let (saved, windows): (_, Vec<Window>) = match *version {
            VERSION | GUESSABLE => {
                let saved: Saved<&[u8]> = postcard::from_bytes(body).map_err(|_| LoadError::Damaged)?;
                let (windows, []) = saved.windows.as_chunks() else { return Err(LoadError::Damaged) };
                (saved.without_windows(), windows.iter().filter_map(window).collect())
            }
            RELATIVE => {
                let saved: Saved<Vec<WindowV1>> = postcard::from_bytes(body).map_err(|_| LoadError::Damaged)?;
                let windows = saved.windows.iter().map(|window| window.at(saved.now)).collect();
                (saved.without_windows(), windows)
            }
            other => return Err(LoadError::Version(other)),
        };
        if !saved.is_valid() || windows.len() > WINDOWS_MAX {
            return Err(LoadError::Damaged);
        }
        pending.sort_by_key(|notification| notification.sequence);
        let mut mailbox = Self {
            kind: saved.kind,
            secret: saved.secret,
            now: saved.now,
            next_timer: Time::NEVER,
            sequence: saved.sequence,
            batches: saved.batches,
            dedupe: Dedupe::restore(windows),
            storm: saved.storm,
            detectors: saved.detectors,
            presence: saved.presence,
            pending,
        };
        mailbox.next_timer = mailbox.wakes_at();
        Ok(mailbox)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Input, MailboxContext};
    use super::*;
    use crate::{Event, Ids, Severity, Subscribers};
    use serde_json::json;

    #[test]
    fn a_mailbox_saved_by_version_1_loads() {
        let mut mailbox = Mailbox::new(MailboxKind::MainAgent, [7; 16]);
        agent_in_a_loop(&mut mailbox, Time::from_millis(1_000_000));
        let digits = WRITTEN_BY_VERSION_1.as_bytes().as_chunks::<2>().0.iter();
        let digits = digits.map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap());
        let before = Mailbox::load(&digits.collect::<Vec<_>>(), mailbox.pending().to_vec()).unwrap();
        assert_eq!(before.save(), mailbox.save());
    }

    /// A mailbox of an agent in a loop.
    const WRITTEN_BY_VERSION_1: &str = "\
        010007070707070707070707070707070707f0b77a030003886ffd727c0c83575adf1eb915b66f9400000000000000000000\
        000000000000cac12798a01f0300b47148e7dac5a082f1054b2b520aff150000000f42407001beeb8da1658eec677f953ec4\
        b06d0000538dd9d882fb6a7ae57cc6bf410596ef0000000f4a107000b1c18690ee42c90bb2df294a90c503000003d3b48af5\
        c48d9ccc3984b87a8cd3ccedc8bdbcbd2094897abdf2f481dde394b756b4a87a010a010000000000000000000004aa8faee9\
        8792cee51c046772657080897a00aa8faee98792cee51c0467726570d0987a00aa8faee98792cee51c0467726570a0a87a00\
        aa8faee98792cee51c0467726570f0b77a00000101040680897a0000";

    #[test]
    fn a_mailbox_saved_by_version_2_loads_with_a_new_secret() {
        let mut mailbox = Mailbox::new(MailboxKind::MainAgent, [7; 16]);
        agent_in_a_loop(&mut mailbox, Time::from_millis(1_000_000));
        let now = mailbox.save();
        let before: Vec<u8> = [2].into_iter().chain(now[1..].iter().copied()).collect();
        assert!(Mailbox::has_guessable_secret(&before) && !Mailbox::has_guessable_secret(&now));
        let mut loaded = Mailbox::load(&before, mailbox.pending().to_vec()).unwrap();
        assert_eq!(loaded, mailbox);
        loaded.set_secret([8; 16]);
        assert!(loaded != mailbox && !Mailbox::has_guessable_secret(&loaded.save()));
    }

    #[test]
    fn the_bytes_of_version_3_stay_what_they_are() {
        use std::hash::Hasher as _;
        let mut mailbox = Mailbox::new(MailboxKind::MainAgent, [7; 16]);
        agent_in_a_loop(&mut mailbox, Time::from_millis(1_000_000));
        let saved = mailbox.save();
        let mut hasher = siphasher::sip::SipHasher13::new();
        hasher.write(&saved);
        assert_eq!((saved.len(), hasher.finish()), (302, 10_594_090_711_168_934_745));
    }

    /// Publishes the same failing call a few times, as an agent in a loop would.
    fn agent_in_a_loop(mailbox: &mut Mailbox, start: Time) {
        let mut context = MailboxContext::new(Subscribers::bundled().into(), Ids::seeded(1));
        let payload = json!({"tool_name": "grep", "arguments": {}, "usage": {"tokens_used": 9, "token_limit": 10}});
        let event = Event::new("tool.call.failure", "tool_executor", Severity::Error, payload).unwrap();
        for call in 0..4 {
            context.now = start.plus(call * 1_000);
            mailbox.handle(Input::Event(&event), &mut context).unwrap();
            while context.poll().is_some() {}
        }
    }

    #[test]
    fn a_mailbox_with_any_one_byte_damaged_is_refused_or_goes_on_working() {
        let mut mailbox = Mailbox::new(MailboxKind::MainAgent, [7; 16]);
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
