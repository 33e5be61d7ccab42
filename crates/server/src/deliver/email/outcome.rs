use std::fmt;
use std::time::Duration;

use super::smtp::{SmtpError, SmtpErrorCause, SmtpReply};

/// How long a server that greylists wants to be left alone when it does not say it.
const GREYLISTED: Duration = Duration::from_secs(300);
/// A wait that a server asks for is believed up to here.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// What became of a mail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SmtpOutcome {
    /// The server has taken it and answers for it from here.
    Sent {
        /// What it said, often with the name under which it knows the mail.
        reply: String,
    },
    /// The server will not have this mail, and asking again would change nothing.
    Refused {
        /// Where it said no. Only [`SmtpStep::Recipient`] is about the address.
        step: SmtpStep,
        /// Its three digits, from 500 up.
        code: u16,
        /// The finer code of RFC 3463, such as `5.1.1`, where it gave one.
        enhanced: Option<String>,
        /// What it said.
        text: String,
    },
    /// The operator must change something: a password, a certificate, a port. Nobody's address is to blame.
    Misconfigured {
        /// What is wrong and what to do.
        reason: String,
    },
    /// It was not sent, and may well be later.
    TryAgain {
        /// Why not now.
        reason: String,
        /// How long the server wants to be left alone, where it said so.
        retry_after: Option<Duration>,
    },
    /// All of it went out and no answer came. It may have arrived or not; sending it again may send it twice.
    Unknown {
        /// What happened.
        reason: String,
    },
}

/// A step of handing a mail over, in the order in which they are taken.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SmtpStep {
    /// Reaching the server.
    Connect,
    /// Agreeing on encryption.
    Tls,
    /// Hearing who it is.
    Greeting,
    /// Saying who we are.
    Hello,
    /// Asking for encryption.
    StartTls,
    /// Proving who we are.
    Auth,
    /// Naming the sender.
    Sender,
    /// Naming the recipient.
    Recipient,
    /// Asking to begin.
    Data,
    /// Writing the mail, all but the dot that ends it.
    Body,
    /// Writing that dot and waiting for the answer to it. From here on silence means that nothing is known.
    Answer,
}

impl SmtpOutcome {
    /// What the answer to the final dot means.
    pub(super) fn answered(reply: &SmtpReply) -> Self {
        match reply.code {
            200..=299 => Self::Sent { reply: reply.to_string() },
            _ => SmtpError::at(SmtpStep::Answer, SmtpErrorCause::Answered(reply.clone())).into(),
        }
    }
}

impl From<SmtpError> for SmtpOutcome {
    fn from(stopped: SmtpError) -> Self {
        let step = stopped.step;
        let said = |reply: &SmtpReply| format!("the server said {reply} at {step}");
        match stopped.cause {
            SmtpErrorCause::Setup(reason) => Self::Misconfigured { reason },
            SmtpErrorCause::Answered(reply) => match reply.code {
                400..=499 => Self::TryAgain { reason: said(&reply), retry_after: retry_after(&reply) },
                500..=599 if is_configuration_error(step, reply.code) => {
                    let reason = format!("{}; check the settings of [email]", said(&reply));
                    Self::Misconfigured { reason }
                }
                500..=599 => Self::Refused { step, code: reply.code, enhanced: reply.enhanced(), text: reply.text },
                _ => Self::silence(step, format!("{}, which is no answer to it", said(&reply))),
            },
            SmtpErrorCause::TimedOut(limit) => {
                Self::silence(step, format!("no answer within {} s at {step}", limit.as_secs()))
            }
            SmtpErrorCause::Lost(error) => Self::silence(step, format!("the connection broke at {step}: {error}")),
        }
    }
}

impl SmtpOutcome {
    fn silence(step: SmtpStep, reason: String) -> Self {
        match step {
            SmtpStep::Answer => Self::Unknown { reason },
            _ => Self::TryAgain { reason, retry_after: None },
        }
    }
}

/// Before a sender is named nothing has been said about this mail, and those codes are about us wherever they come.
fn is_configuration_error(step: SmtpStep, code: u16) -> bool {
    step < SmtpStep::Sender || matches!(code, 530 | 534 | 535 | 538)
}

/// "try again in 300 seconds", or the usual time where a server only says that it greylists.
fn retry_after(reply: &SmtpReply) -> Option<Duration> {
    let text = reply.text.to_ascii_lowercase();
    let words: Vec<&str> = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let asked = words.windows(2).find_map(|pair| {
        let number: u64 = pair[0].parse().ok()?;
        let unit = match pair[1] {
            "s" | "sec" | "secs" | "second" | "seconds" => 1,
            "min" | "mins" | "minute" | "minutes" => 60,
            "hour" | "hours" => 3600,
            _ => return None,
        };
        Some(Duration::from_secs(number.saturating_mul(unit)).min(RETRY_AFTER_MAX))
    });
    asked.or_else(|| (text.contains("greylist") || text.contains("graylist")).then_some(GREYLISTED))
}

/// As it is written down with a delivery.
impl fmt::Display for SmtpOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sent { reply } => write!(f, "sent: {reply}"),
            Self::Refused { step, code, text, .. } => write!(f, "refused at {step}: {code} {text}"),
            Self::Misconfigured { reason } => write!(f, "email is not set up right: {reason}"),
            Self::TryAgain { reason, .. } => write!(f, "not sent: {reason}"),
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
    fn only_silence_after_the_end_of_the_mail_is_unknown() {
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
    fn a_server_is_left_alone_as_long_as_it_asks() {
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
