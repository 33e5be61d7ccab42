use bellwire_core::retry::RetryPolicy;

/// How much people may be told, and by which ways.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct PeopleRules {
    /// How many notifications one person may be sent within any 60 minutes.
    pub notifications_per_hour: u64,
    /// How many reminders, where they are counted apart from the rest.
    pub reminders_per_hour: Option<u64>,
    /// The same for news.
    pub infos_per_hour: Option<u64>,
    /// The same for warnings.
    pub warnings_per_hour: Option<u64>,
    /// How many toasts one person may be shown within any 60 minutes.
    pub toasts_per_hour: u64,
    /// Whether mail can be sent at all; where it cannot, none is planned.
    pub email: bool,
    /// When a failed delivery is tried again.
    pub retry: RetryPolicy,
    /// How long a claim holds before an attempt begins.
    pub claim_ms: u64,
    /// How long an attempt may take; longer than any time-out on its way.
    pub attempt_ms: u64,
}

impl Default for PeopleRules {
    fn default() -> Self {
        Self {
            notifications_per_hour: 30,
            reminders_per_hour: None,
            infos_per_hour: None,
            warnings_per_hour: None,
            toasts_per_hour: 60,
            email: false,
            retry: RetryPolicy::default(),
            claim_ms: 60_000,
            // A mail server may take ten minutes to answer the end of a mail.
            attempt_ms: 15 * 60_000,
        }
    }
}
