/// What became of a test message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestReport {
    /// `accepted`, `refused`, `misconfigured`, `not_sent` or `unknown`.
    pub outcome: &'static str,
    /// The outcome in words.
    pub message: String,
    /// Every step, in order.
    pub steps: Vec<TestedStep>,
}

/// The result of one step of a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestedStep {
    /// The step, in the words of the channel.
    pub step: &'static str,
    /// `ok`, `failed`, `unknown`, `skipped` (not configured) or `not_reached`.
    pub result: &'static str,
    /// What happened.
    pub detail: Option<String>,
}

/// Why no test message was attempted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TestRefusal {
    /// The channel has no test.
    NoTest,
    /// The target is invalid; the text says what to write.
    InvalidTarget(String),
    /// There were too many tests; the next one is allowed after this many seconds.
    TooMany(u64),
}
