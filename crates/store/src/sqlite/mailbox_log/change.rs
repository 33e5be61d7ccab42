//! The change of a mailbox as bytes: its full image, or the difference from the previous one.

use bellwire_core::Time;

use super::difference::{self, put_bytes, put_number, take_bytes, take_number};
use crate::rows::{MailboxKey, MailboxRow};

/// The row of a mailbox as bytes: due time, length of the state, state, ids of the pending notifications.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Image(Vec<u8>);

const HEAD: usize = 12;

impl Image {
    pub(super) fn of(row: &MailboxRow) -> Self {
        let mut bytes = Vec::with_capacity(HEAD + row.state.len() + 16 * row.pending.len());
        bytes.extend(row.due_at.as_millis().to_le_bytes());
        bytes.extend((row.state.len() as u32).to_le_bytes());
        bytes.extend(&row.state);
        row.pending.iter().for_each(|id| bytes.extend(id.0.as_bytes()));
        Self(bytes)
    }

    pub(super) fn due_at(&self) -> Time {
        self.0.first_chunk().map_or(Time::NEVER, |millis| Time::from_millis(i64::from_le_bytes(*millis)))
    }

    /// The state, and the ids of the pending notifications. Both are empty for a damaged image; a valid state is never
    /// empty.
    pub(super) fn parts(&self) -> (&[u8], &[u8]) {
        let split = || {
            let (head, rest) = self.0.split_at_checked(HEAD)?;
            let length = u32::from_le_bytes(*head.last_chunk()?);
            rest.split_at_checked(usize::try_from(length).ok()?)
        };
        split().unwrap_or_default()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Marks a mailbox whose image is lost. Loading the mailbox then fails.
    pub(super) fn damaged() -> Self {
        Self(Vec::new())
    }
}

/// One mailbox in a record of the log.
#[derive(Debug)]
pub(super) struct MailboxChange<'a> {
    owner: &'a str,
    conversation: &'a str,
    agent: &'a str,
    /// The number of the record with the mailbox's previous change, from which this one differs; 0 = a full image.
    pub(super) before: i64,
    bytes: &'a [u8],
}

impl<'a> MailboxChange<'a> {
    /// Appends a change to a record. Returns its size in bytes.
    pub(super) fn write(key: &MailboxKey, image: &Image, before: Option<(i64, &Image)>, record: &mut Vec<u8>) -> usize {
        let from = record.len();
        let (owner, conversation, agent) = key.columns();
        for name in [owner, conversation, agent] {
            put_bytes(name.as_bytes(), record);
        }
        match before {
            None => {
                put_number(0, record);
                put_bytes(&image.0, record);
            }
            Some((number, before)) => {
                put_number(number.unsigned_abs(), record);
                let mut differs = Vec::with_capacity(256);
                difference::write(&before.0, &image.0, &mut differs);
                put_bytes(&differs, record);
            }
        }
        record.len() - from
    }

    /// Appends the deletion of a mailbox to a record: a full image of zero bytes, which no mailbox has.
    pub(super) fn write_deleted(key: &MailboxKey, record: &mut Vec<u8>) {
        Self::write(key, &Image(Vec::new()), None, record);
    }

    pub(super) fn is_deleted(&self) -> bool {
        self.before == 0 && self.bytes.is_empty()
    }

    /// The changes of a record, each with its size in bytes; none if the record cannot be read completely.
    pub(super) fn read(mut record: &'a [u8]) -> Option<Vec<(Self, usize)>> {
        let mut changes = Vec::new();
        while !record.is_empty() {
            let length = record.len();
            let change = Self::take(&mut record)?;
            changes.push((change, length - record.len()));
        }
        Some(changes)
    }

    fn take(record: &mut &'a [u8]) -> Option<Self> {
        let mut name = || str::from_utf8(take_bytes(record)?).ok();
        let (owner, conversation, agent) = (name()?, name()?, name()?);
        let before = i64::try_from(take_number(record)?).ok()?;
        Some(Self { owner, conversation, agent, before, bytes: take_bytes(record)? })
    }

    pub(super) fn key(&self) -> MailboxKey {
        MailboxKey::from_columns(self.owner, self.conversation, self.agent)
    }

    pub(super) fn full(&self) -> Image {
        Image(self.bytes.to_owned())
    }

    /// The image after the change, computed from the previous one.
    pub(super) fn apply(&self, before: &Image) -> Image {
        difference::apply(&before.0, self.bytes, LENGTH_MAX).map_or_else(Image::damaged, Image)
    }
}

/// Larger than any image. A damaged record must not cause a larger allocation.
const LENGTH_MAX: usize = 1024 * 1024;

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test says what it expects by unwrapping it")]
mod tests {
    use bellwire_core::{Ids, NotificationId};

    use super::*;
    use crate::rows::ConversationKey;

    fn image(state: &[u8], pending: &[NotificationId], due_at: i64) -> Image {
        Image::of(&MailboxRow { state: state.into(), pending: pending.into(), due_at: Time::from_millis(due_at) })
    }

    fn key() -> MailboxKey {
        MailboxKey::new(&ConversationKey::new("ada", "chat"), "main")
    }

    #[test]
    fn an_image_has_the_parts_it_was_made_of() {
        let id = Ids::seeded(1).notification(Time::ZERO);
        let image = image(b"state", &[id], -7);
        assert_eq!((image.due_at(), image.parts()), (Time::from_millis(-7), (&b"state"[..], &id.0.as_bytes()[..])));
        assert_eq!(Image::damaged().parts(), (&b""[..], &b""[..]));
    }

    #[test]
    fn a_record_gives_back_the_changes_that_were_written() {
        let (old, new) = (image(b"what it was", &[], 1), image(b"what it was, and more", &[], 2));
        let mut record = Vec::new();
        let took = MailboxChange::write(&key(), &old, None, &mut record);
        let then = MailboxChange::write(&key(), &new, Some((7, &old)), &mut record);
        let changes = MailboxChange::read(&record).unwrap();
        assert_eq!(
            changes.iter().map(|(change, bytes)| (change.before, *bytes)).collect::<Vec<_>>(),
            [(0, took), (7, then)]
        );
        assert!(changes.iter().all(|(change, _)| change.key() == key()));
        assert_eq!((changes[0].0.full(), changes[1].0.apply(&old)), (old, new));
        assert!(MailboxChange::read(&record[..record.len() - 1]).is_none());
    }

    #[test]
    fn a_record_that_was_damaged_is_never_more_than_wrong() {
        let (old, new) = (image(b"one two three four five six", &[], 1), image(b"one two 3 four five six 7", &[], 2));
        let mut record = Vec::new();
        MailboxChange::write(&key(), &new, Some((1, &old)), &mut record);
        for at in 0..record.len() {
            for byte in [0, 1, 0x7f, 0xff] {
                let mut damaged = record.clone();
                damaged[at] = byte;
                for (change, _) in MailboxChange::read(&damaged).unwrap_or_default() {
                    change.apply(&old).parts();
                }
            }
        }
    }
}
