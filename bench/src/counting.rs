//! The hub's allocator, wrapped to count the allocations of the current thread inside [`counted`].

#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;

use mimalloc::MiMalloc;

/// Forwards to mimalloc. Outside [`counted`], an allocation costs one extra thread-local read.
pub(crate) struct CountingAllocator;

/// The allocations of one [`counted`] call.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AllocationCount {
    /// The number of allocations, reallocations included.
    pub(crate) allocations: u64,
    /// Bytes allocated minus bytes freed.
    pub(crate) net_bytes: i64,
}

thread_local! {
    static COUNT: Cell<Option<AllocationCount>> = const { Cell::new(None) };
}

/// Runs `work` and counts its allocations on this thread.
pub(crate) fn counted<T>(work: impl FnOnce() -> T) -> (T, AllocationCount) {
    COUNT.set(Some(AllocationCount::default()));
    let result = work();
    (result, COUNT.take().unwrap_or_default())
}

fn note(allocations: u64, bytes: i64) {
    if let Some(count) = COUNT.get() {
        COUNT.set(Some(AllocationCount {
            allocations: count.allocations + allocations,
            net_bytes: count.net_bytes + bytes,
        }));
    }
}

// SAFETY: every call is forwarded unchanged to mimalloc; the count is a thread-local plain value, whose access neither
// allocates nor panics.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(1, layout.size() as i64);
        // SAFETY: the caller upholds the contract of `GlobalAlloc::alloc`, which is the same here.
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
    fn freed_bytes_are_subtracted() {
        let (net_bytes, count) = counted(|| {
            drop(vec![1_u8; 100]);
            vec![1_u8; 1_000]
        });
        assert_eq!(count, AllocationCount { allocations: 2, net_bytes: net_bytes.len() as i64 });
    }

    #[test]
    fn allocations_outside_the_call_are_not_counted() {
        let (_, _) = counted(|| ());
        drop(vec![1_u8; 100]);
        assert_eq!(counted(|| ()).1, AllocationCount::default());
    }
}
