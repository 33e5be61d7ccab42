use std::fmt;
use std::time::Duration;

use super::smtp::{SmtpError, SmtpErrorCause, SmtpReply};

/// The retry delay for a server that greylists without naming a delay.
const GREYLISTED: Duration = Duration::from_secs(300);
/// The longest retry delay that is accepted from a server.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// The outcome of sending one mail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SmtpOutcome {
    /// The server accepted the mail and is now responsible for it.
    Sent {
        /// Its reply, often with its queue id.
        reply: String,
    },
    /// The server refused the mail permanently; a retry would be refused too.
    Refused {
        /// The step that was refused. Only [`SmtpStep::Recipient`] concerns the address.
        step: SmtpStep,
        /// The reply code, from 500 to 599.
        code: u16,
        /// The enhanced status code of RFC 3463, such as `5.1.1`, if there is one.
        enhanced: Option<String>,
        /// The text of the reply.
        text: String,
    },
    /// The operator must change a setting: a password, a certificate, a port. The recipient's address is not the cause.
    Misconfigured {
        /// What is wrong, and what to change.
        reason: String,
    },
    /// The mail was not sent; a retry may succeed.
    TryAgain {
        /// Why it was not sent.
        reason: String,
        /// The delay that the server asked for, if it did.
        retry_after: Option<Duration>,
    },
    /// The hub stopped before the final dot was written, so nothing was sent.
    Interrupted,
    /// The whole mail was written and no reply came. It may have arrived; sending it again may send it twice.
    Unknown {
        /// What happened.
        reason: String,
    },
}

/// A step of an SMTP session, in order.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SmtpStep {
    /// The TCP connection.
    Connect,
    /// The TLS handshake.
    Tls,
    /// The server's greeting.
    Greeting,
    /// EHLO.
    Hello,
    /// STARTTLS.
    StartTls,
    /// AUTH.
    Auth,
    /// MAIL FROM.
    Sender,
    /// RCPT TO.
    Recipient,
    /// DATA.
    Data,
    /// Writing the message, without the final dot.
    Body,
    /// Writing the final dot and reading the reply. A failure in this step makes the outcome unknown.
    Answer,
}

impl SmtpOutcome {
    /// The outcome for the reply to the final dot.
    pub(super) fn answered(reply: &SmtpReply) -> Self {
        match reply.code {
            200..=299 => Self::Sent { reply: reply.to_string() },
            _ => SmtpError::at(SmtpStep::Answer, SmtpErrorCause::Answered(reply.clone())).into(),
        }
    }
}

impl SmtpOutcome {
    /// The outcome with its texts changed.
    pub(super) fn map_text(self, change: impl Fn(String) -> String) -> Self {
        match self {
            Self::Sent { reply } => Self::Sent { reply: change(reply) },
            Self::Refused { step, code, enhanced, text } => Self::Refused { step, code, enhanced, text: change(text) },
            Self::Misconfigured { reason } => Self::Misconfigured { reason: change(reason) },
            Self::TryAgain { reason, retry_after } => Self::TryAgain { reason: change(reason), retry_after },
            Self::Interrupted => Self::Interrupted,
            Self::Unknown { reason } => Self::Unknown { reason: change(reason) },
        }
    }
}

impl From<SmtpError> for SmtpOutcome {
    fn from(error: SmtpError) -> Self {
        let step = error.step;
        let describe = |reply: &SmtpReply| format!("the server said {reply} at {step}");
        match error.cause {
            SmtpErrorCause::Setup(reason) => Self::Misconfigured { reason },
            SmtpErrorCause::Answered(reply) => match reply.code {
                400..=499 => Self::TryAgain { reason: describe(&reply), retry_after: retry_after(&reply) },
                500..=599 if is_configuration_error(step, reply.code) => {
                    let reason = format!("{}; check the settings of [email]", describe(&reply));
                    Self::Misconfigured { reason }
                }
                500..=599 => Self::Refused { step, code: reply.code, enhanced: reply.enhanced(), text: reply.text },
                _ => Self::no_reply(step, format!("{}, which is no answer to it", describe(&reply))),
            },
            SmtpErrorCause::TimedOut(limit) => {
                Self::no_reply(step, format!("no answer within {} s at {step}", limit.as_secs()))
            }
            SmtpErrorCause::Lost(error) => Self::no_reply(step, format!("the connection broke at {step}: {error}")),
        }
    }
}

impl SmtpOutcome {
    fn no_reply(step: SmtpStep, reason: String) -> Self {
        match step {
            SmtpStep::Answer => Self::Unknown { reason },
            _ => Self::TryAgain { reason, retry_after: None },
        }
    }
}

/// Whether a 5xx reply concerns the hub's settings: any before MAIL FROM, and the codes about authentication in any step.
fn is_configuration_error(step: SmtpStep, code: u16) -> bool {
    step < SmtpStep::Sender || matches!(code, 530 | 534 | 535 | 538)
}

/// The delay in a reply such as "try again in 300 seconds", or [`GREYLISTED`] if it only mentions greylisting.
fn retry_after(reply: &SmtpReply) -> Option<Duration> {
    let text = reply.text.to_ascii_lowercase();
    let words: Vec<&str> = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let delay = words.windows(2).find_map(|pair| {
        let number: u64 = pair[0].parse().ok()?;
        let unit = match pair[1] {
            "s" | "sec" | "secs" | "second" | "seconds" => 1,
            "min" | "mins" | "minute" | "minutes" => 60,
            "hour" | "hours" => 3600,
            _ => return None,
        };
        Some(Duration::from_secs(number.saturating_mul(unit)).min(RETRY_AFTER_MAX))
    });
    delay.or_else(|| (text.contains("greylist") || text.contains("graylist")).then_some(GREYLISTED))
}

/// The reason that is stored with a delivery.
impl fmt::Display for SmtpOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sent { reply } => write!(f, "sent: {reply}"),
            Self::Refused { step, code, text, .. } => write!(f, "refused at {step}: {code} {text}"),
            Self::Misconfigured { reason } => write!(f, "email is not set up right: {reason}"),
            Self::TryAgain { reason, .. } => write!(f, "not sent: {reason}"),
            Self::Interrupted => f.write_str("not sent: the hub stopped"),
            Self::Unknown { reason } => write!(f, "sent or not, nobody knows: {reason}"),
        }
    }
}

impl fmt::Display for SmtpStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connect => "connecting",
            Self::Tls => "the TLS handshake",
            Self::Greeting => "its greeting",
            Self::Hello => "EHLO",
            Self::StartTls => "STARTTLS",
            Self::Auth => "AUTH",
            Self::Sender => "MAIL FROM",
            Self::Recipient => "RCPT TO",
            Self::Data => "DATA",
            Self::Body => "the text of the mail",
            Self::Answer => "the end of the mail",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(step: SmtpStep, code: u16, text: &str) -> SmtpOutcome {
        SmtpError::at(step, SmtpErrorCause::Answered(SmtpReply { code, text: text.to_owned() })).into()
    }

    #[test]
    fn only_a_missing_reply_to_the_final_dot_is_unknown() {
        let lost = || SmtpErrorCause::Lost(std::io::ErrorKind::ConnectionReset.into());
        let steps = [
            SmtpStep::Connect,
            SmtpStep::Tls,
            SmtpStep::Greeting,
            SmtpStep::Hello,
            SmtpStep::StartTls,
            SmtpStep::Auth,
            SmtpStep::Sender,
        ];
        for step in steps.into_iter().chain([SmtpStep::Recipient, SmtpStep::Data, SmtpStep::Body]) {
            for cause in [lost(), SmtpErrorCause::TimedOut(Duration::from_secs(1))] {
                assert!(matches!(SmtpError::at(step, cause).into(), SmtpOutcome::TryAgain { .. }), "{step}");
            }
        }
        for cause in [lost(), SmtpErrorCause::TimedOut(Duration::from_secs(1))] {
            assert!(matches!(SmtpError::at(SmtpStep::Answer, cause).into(), SmtpOutcome::Unknown { .. }));
        }
        assert!(matches!(outcome(SmtpStep::Answer, 354, "go on"), SmtpOutcome::Unknown { .. }));
    }

    #[test]
    fn a_refusal_keeps_its_codes_and_configuration_errors_are_not_the_recipients() {
        let refused = outcome(SmtpStep::Recipient, 550, "5.1.1 no such user");
        let SmtpOutcome::Refused { step, code, enhanced, text } = refused else { panic!("{refused:?}") };
        assert_eq!((step, code, enhanced.as_deref()), (SmtpStep::Recipient, 550, Some("5.1.1")));
        assert_eq!(text, "5.1.1 no such user");
        assert_eq!(outcome(SmtpStep::Recipient, 550, "no").to_string(), "refused at RCPT TO: 550 no");
        for (step, code) in
            [(SmtpStep::Auth, 535), (SmtpStep::Greeting, 554), (SmtpStep::Hello, 550), (SmtpStep::Sender, 530)]
        {
            assert!(matches!(outcome(step, code, "no"), SmtpOutcome::Misconfigured { .. }), "{step} {code}");
        }
        assert!(matches!(outcome(SmtpStep::Answer, 451, "later"), SmtpOutcome::TryAgain { .. }));
    }

    #[test]
    fn a_retry_waits_as_long_as_the_server_asks() {
        let wait = |text: &str| match outcome(SmtpStep::Recipient, 451, text) {
            SmtpOutcome::TryAgain { retry_after, .. } => retry_after.map(|wait| wait.as_secs()),
            other => panic!("{other:?}"),
        };
        assert_eq!(wait("4.7.1 Greylisted, try again in 90 seconds"), Some(90));
        assert_eq!(wait("come back in 5 minutes"), Some(300));
        assert_eq!(wait("Greylisting in action"), Some(300));
        assert_eq!(wait("in 99999999999999999999 hours, 9999999999999999 hours"), Some(24 * 60 * 60));
        assert_eq!(wait("4.3.0 busy"), None);
    }
}
