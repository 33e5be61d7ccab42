//! The allocator that the hub ships with, and a tally of what the current thread asks of it while somebody is counting.

#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;

use mimalloc::MiMalloc;

/// Passes everything on to it. While nobody counts, an allocation costs one look more.
pub(crate) struct Counting;

/// What was asked of the allocator.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// How often memory was asked for, growing what one had included.
    pub(crate) allocations: u64,
    /// Bytes asked for less bytes given back.
    pub(crate) kept: i64,
}

thread_local! {
    static TALLY: Cell<Option<Tally>> = const { Cell::new(None) };
}

/// Counts what `work` asks for, and gives back what it made.
pub(crate) fn counted<T>(work: impl FnOnce() -> T) -> (T, Tally) {
    TALLY.set(Some(Tally::default()));
    let made = work();
    (made, TALLY.take().unwrap_or_default())
}

fn note(allocations: u64, bytes: i64) {
    if let Some(tally) = TALLY.get() {
        TALLY.set(Some(Tally { allocations: tally.allocations + allocations, kept: tally.kept + bytes }));
    }
}

// SAFETY: every call goes to the other allocator as it came; the tally is a thread's own plain value, which neither
// allocates nor panics.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(1, layout.size() as i64);
        // SAFETY: the caller keeps the contract, and it is the same one.
        unsafe { MiMalloc.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note(1, layout.size() as i64);
        // SAFETY: as above.
        unsafe { MiMalloc.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note(1, size as i64 - layout.size() as i64);
        // SAFETY: as above.
        unsafe { MiMalloc.realloc(old, layout, size) }
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        note(0, -(layout.size() as i64));
        // SAFETY: as above.
        unsafe { MiMalloc.dealloc(old, layout) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_counted_and_what_is_given_back_is_not() {
        let (kept, tally) = counted(|| {
            drop(vec![1_u8; 100]);
            vec![1_u8; 1_000]
        });
        assert_eq!(tally, Tally { allocations: 2, kept: kept.len() as i64 });
    }

    #[test]
    fn nothing_is_counted_behind_the_end() {
        let (_, _) = counted(|| ());
        drop(vec![1_u8; 100]);
        assert_eq!(counted(|| ()).1, Tally::default());
    }
}
