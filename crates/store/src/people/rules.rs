use bellwire_core::retry::RetryPolicy;

/// The limits and channels of notifications to people.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct PeopleRules {
    /// How many notifications one person may get within any 60 minutes.
    pub notifications_per_hour: u64,
    /// A separate limit for reminders; none = they count as notifications.
    pub reminders_per_hour: Option<u64>,
    /// The same for notifications of type info.
    pub infos_per_hour: Option<u64>,
    /// The same for warnings.
    pub warnings_per_hour: Option<u64>,
    /// How many toasts one person may get within any 60 minutes.
    pub toasts_per_hour: u64,
    /// Whether email is configured; if not, no mail is planned.
    pub email: bool,
    /// The retry schedule of failed deliveries.
    pub retry: RetryPolicy,
    /// The lease of a claim until the attempt starts.
    pub claim_ms: u64,
    /// The lease of a started attempt; longer than the sum of its timeouts.
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
            // A mail server may take ten minutes to reply to the final dot.
            attempt_ms: 15 * 60_000,
        }
    }
}
