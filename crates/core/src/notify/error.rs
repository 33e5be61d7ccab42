/// The beginning of every message about an attempt that may have been delivered.
pub const UNKNOWN_OUTCOME: &str = "Delivery outcome unknown";

/// The classes of errors on the path of a `notify` call.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ErrorClass {
    /// The call is wrong or not allowed; the same call fails again.
    ValidationError,
    /// The receiving side cannot be reached or is throttled. Nothing was delivered.
    TargetUnavailable,
    /// No answer in time.
    Timeout,
    /// A local limit was reached. Nothing was attempted.
    OverloadRejected,
    /// Anything else.
    InternalError,
}

impl ErrorClass {
    /// Every class.
    pub const ALL: [Self; 5] =
        [Self::ValidationError, Self::TargetUnavailable, Self::Timeout, Self::OverloadRejected, Self::InternalError];

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ValidationError => "validation_error",
            Self::TargetUnavailable => "target_unavailable",
            Self::Timeout => "timeout",
            Self::OverloadRejected => "overload_rejected",
            Self::InternalError => "internal_error",
        }
    }

    /// Parses the name on the wire.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.as_str() == text)
    }

    /// Whether an error of this class can be retried if nothing was sent.
    pub const fn is_retryable(self) -> bool {
        matches!(self, Self::TargetUnavailable | Self::Timeout | Self::OverloadRejected)
    }
}

/// Why a `notify` call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotifyError {
    /// The class.
    pub class: ErrorClass,
    /// What happened and what to do, for the model.
    pub message: String,
    /// Whether the same call may be made again: nothing was delivered.
    pub retryable: bool,
    /// The time to wait before a retry.
    pub retry_after_seconds: Option<u64>,
}

impl NotifyError {
    /// An error of this class, retryable if the class is.
    pub fn new(class: ErrorClass, message: impl Into<String>) -> Self {
        Self { class, message: message.into(), retryable: class.is_retryable(), retry_after_seconds: None }
    }

    /// The call is wrong or not allowed.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorClass::ValidationError, message)
    }

    /// The request went out and its result is not known, so it must not be repeated.
    pub fn unknown_outcome(reason: &str) -> Self {
        let message = format!("{UNKNOWN_OUTCOME}: {reason}. It may have been delivered; do not send it again");
        Self { retryable: false, ..Self::new(ErrorClass::Timeout, message) }
    }

    /// Adds the time to wait before a retry.
    pub fn retry_after(mut self, seconds: Option<u64>) -> Self {
        self.retry_after_seconds = seconds;
        self
    }

    /// Whether the outcome is not known.
    pub fn is_unknown_outcome(&self) -> bool {
        self.class == ErrorClass::Timeout && !self.retryable
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_retryable_as_the_contract_says() {
        let retryable: Vec<&str> =
            ErrorClass::ALL.into_iter().filter(|class| class.is_retryable()).map(ErrorClass::as_str).collect();
        assert_eq!(retryable, ["target_unavailable", "timeout", "overload_rejected"]);
        for class in ErrorClass::ALL {
            assert_eq!(ErrorClass::parse(class.as_str()), Some(class));
        }
        assert_eq!(ErrorClass::parse("routing_error"), None);
    }

    #[test]
    fn an_unknown_outcome_is_never_retryable() {
        let error = NotifyError::unknown_outcome("the connection was lost");
        assert!(error.message.starts_with("Delivery outcome unknown"));
        assert!(error.is_unknown_outcome() && !error.retryable);
        assert!(!NotifyError::new(ErrorClass::Timeout, "no connection within 5 s").is_unknown_outcome());
    }
}
