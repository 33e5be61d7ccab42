//! The difference between two byte strings: copies from the old one, and new bytes between them.
//!
//! An event changes about ninety bytes of a mailbox of two kilobytes: a time, a counter, an entry appended to a list,
//! an entry removed from its start. A general compressor with the old bytes as dictionary would find the same, but it
//! clears a table larger than the mailbox for every mailbox of every commit.

/// The size of the hash table of positions in the old bytes.
const TABLE: usize = 512;
/// How many bytes are hashed. Fewer match by chance, more match less often.
const SEED: usize = 8;
/// About how many positions of the old bytes are hashed, so that the table is never full.
const PIECES: usize = 256;

/// Writes the instructions that turn `old` into `new`: alternately, a range to copy from `old` and bytes to add.
pub(super) fn write(old: &[u8], new: &[u8], out: &mut Vec<u8>) {
    let table = table(old);
    // The position in `new` up to which everything is written, and the position in `old` that continues it.
    let (mut written, mut goes_on) = (0, 0);
    let mut copied = equal(old, new);
    loop {
        put_number(goes_on as u64, out);
        put_number(copied as u64, out);
        written += copied;
        let (at, from) = next_piece(old, new, written, &table);
        put_bytes(&new[written..at], out);
        written = at;
        if written == new.len() {
            return;
        }
        (goes_on, copied) = (from, equal(&old[from..], &new[at..]));
    }
}

/// The new bytes; none if `difference` does not fit `old` or gives more than `most` bytes.
pub(super) fn apply(old: &[u8], mut difference: &[u8], most: usize) -> Option<Vec<u8>> {
    let mut new = Vec::with_capacity(old.len().min(most) + SEED * 16);
    while !difference.is_empty() {
        let from = usize::try_from(take_number(&mut difference)?).ok()?;
        let length = usize::try_from(take_number(&mut difference)?).ok()?;
        let copied = old.get(from..from.checked_add(length)?)?;
        let added = take_bytes(&mut difference)?;
        if new.len().checked_add(copied.len())?.checked_add(added.len())? > most {
            return None;
        }
        new.extend_from_slice(copied);
        new.extend_from_slice(added);
    }
    Some(new)
}

/// Maps a hash to the position in the old bytes plus one; 0 = none.
fn table(old: &[u8]) -> [u32; TABLE] {
    let mut table = [0; TABLE];
    let every = SEED.max(old.len() / PIECES);
    for at in (0..old.len().saturating_sub(SEED - 1)).step_by(every) {
        table[slot(seed(old, at))] = at as u32 + 1;
    }
    table
}

/// The next position in `new` where its bytes match `old`, and the matching position in `old`; the end of `new` if
/// there is none.
fn next_piece(old: &[u8], new: &[u8], from: usize, table: &[u32; TABLE]) -> (usize, usize) {
    for at in from..new.len().saturating_sub(SEED - 1) {
        let seed_here = seed(new, at);
        let Some(found) = (table[slot(seed_here)] as usize).checked_sub(1) else { continue };
        if seed(old, found) == seed_here {
            // The match may start before the hashed position.
            let back = old[..found].iter().rev().zip(new[from..at].iter().rev());
            let before = back.take_while(|(old, new)| old == new).count();
            return (at - before, found - before);
        }
    }
    (new.len(), 0)
}

fn seed(bytes: &[u8], at: usize) -> u64 {
    bytes[at..].first_chunk().map_or(0, |seed| u64::from_le_bytes(*seed))
}

fn slot(seed: u64) -> usize {
    (seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 55) as usize % TABLE
}

/// The length of the common prefix.
fn equal(one: &[u8], other: &[u8]) -> usize {
    let words = one.as_chunks::<SEED>().0.iter().zip(other.as_chunks::<SEED>().0);
    let whole = SEED * words.take_while(|(one, other)| one == other).count();
    let rest = one[whole..].iter().zip(&other[whole..]);
    whole + rest.take_while(|(one, other)| one == other).count()
}

/// A variable-length number: seven bits per byte, the lowest first.
pub(super) fn put_number(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

pub(super) fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    put_number(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

pub(super) fn take_number(from: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let (byte, rest) = from.split_first()?;
        *from = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if *byte < 0x80 {
            return Some(number);
        }
    }
    None
}

pub(super) fn take_bytes<'a>(from: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(take_number(from)?).ok()?;
    let (bytes, rest) = from.split_at_checked(length)?;
    *from = rest;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn difference(old: &[u8], new: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        write(old, new, &mut out);
        out
    }

    /// Bytes from a plain generator.
    fn noise(length: usize, kinds: u32, mut state: u32) -> Vec<u8> {
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 16) % kinds
        };
        (0..length).map(|_| next() as u8).collect()
    }

    #[test]
    fn a_difference_gives_back_what_it_was_made_of_whatever_the_two_are() {
        for (length, kinds) in
            [(0, 256), (1, 256), (7, 2), (8, 1), (11, 2), (600, 256), (2_000, 3), (70_000, 256), (70_000, 4)]
        {
            let (old, other) = (noise(length, kinds, 1), noise(300, kinds, 2));
            let moved = [&other[..17], &old[old.len() / 3..], &other[17..]].concat();
            let turned = [&old[old.len() / 2..], &old[..old.len() / 2]].concat();
            let cut = old[old.len() / 4..old.len() / 2].to_vec();
            for new in [old.clone(), moved, turned, cut, other, Vec::new()] {
                let difference = difference(&old, &new);
                assert!(apply(&old, &difference, new.len()) == Some(new), "{length} bytes of {kinds} kinds");
            }
        }
    }

    #[test]
    fn the_difference_of_two_that_are_alike_is_small_however_long_they_are() {
        for length in [400, 2_000, 20_000, 64_000] {
            let old = noise(length, 256, 1);
            let mut new =
                [&old[40..length / 2], b"an entry of forty bytes in the middle...", &old[length / 2..]].concat();
            new[3..9].copy_from_slice(b"a time");
            new.extend(noise(50, 256, 3));
            let size = difference(&old, &new).len();
            assert!(size < 40 + 50 + 6 + 30, "{size} bytes for {length}");
        }
    }

    #[test]
    fn one_that_was_damaged_is_refused_or_gives_no_more_than_it_may() {
        let (old, new) = (noise(300, 256, 1), [noise(40, 256, 2), noise(300, 256, 1)].concat());
        let difference = difference(&old, &new);
        for at in 0..difference.len() {
            for byte in [0, 1, 0x7f, 0x80, 0xff] {
                let mut damaged = difference.clone();
                damaged[at] = byte;
                assert!(apply(&old, &damaged, 400).is_none_or(|new| new.len() <= 400));
            }
        }
        assert_eq!(apply(&old, &[0xff; 30], 400), None);
        assert_eq!(apply(&old, &[0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1, 0], 400), None);
    }
}
