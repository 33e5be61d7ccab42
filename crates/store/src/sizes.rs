/// The sizes of the mailbox cache and of the mailbox log, in bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// The approximate memory for cached mailboxes. Beyond it, the least recently used ones are evicted.
    pub mailbox_cache_bytes: usize,
    /// The size of the mailbox log. Beyond it, the oldest records are removed and their mailboxes are written to their
    /// rows.
    pub mailbox_log_bytes: usize,
}

impl Sizes {
    /// Sizes small enough that a short test exceeds both.
    pub const SMALL: Self = Self { mailbox_cache_bytes: 256 * 1024, mailbox_log_bytes: 4 * 1024 };
}

impl Default for Sizes {
    fn default() -> Self {
        Self { mailbox_cache_bytes: 512 * 1024 * 1024, mailbox_log_bytes: 16 * 1024 * 1024 }
    }
}
