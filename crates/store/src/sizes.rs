/// How many bytes a store keeps at hand.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Mailboxes in memory, about. Beyond it those that were not used for longest are loaded again when they are needed.
    pub mailbox_cache_bytes: usize,
    /// Changes in the log of mailboxes. Beyond it the oldest leave it, and their mailboxes move to their rows.
    pub mailbox_log_bytes: usize,
}

impl Sizes {
    /// So little that a short test goes beyond both.
    pub const SMALL: Self = Self { mailbox_cache_bytes: 256 * 1024, mailbox_log_bytes: 4 * 1024 };
}

impl Default for Sizes {
    fn default() -> Self {
        Self { mailbox_cache_bytes: 512 * 1024 * 1024, mailbox_log_bytes: 16 * 1024 * 1024 }
    }
}
