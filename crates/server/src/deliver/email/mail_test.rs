//! A test email: one message that is sent at once, with a report on each step, so that an operator sees which setting is
//! wrong. It is no delivery: nothing is stored, and it is never sent again.

use std::time::{Duration, Instant};

use bellwire_core::Time;

use super::header::Headers;
use super::{EmailAddress, MessageId, NamedAddress, Smtp, SmtpOutcome, SmtpStep};
use crate::config::{EmailConfig, EmailTls};
use crate::rate::{Rate, TokenBucket};

/// Five tests at once, then one a minute: each takes [`COST`].
const RATE: Rate = Rate { per_second: 1, burst: 5 * COST };
const COST: u64 = 60;

const TEXT: &str = "This is a test email of Bellwire. If you can read it, the hub can send email.\r\n\r\n-- \r\nSent by \
                    Bellwire, because its operator asked for a test.\r\n";

/// Sends test emails with the hub's own settings.
pub(crate) struct MailTester {
    /// None = email is off.
    smtp: Option<Smtp>,
    settings: EmailConfig,
    /// How long a test may take. A delivery waits longer for a slow server.
    wait: Duration,
    used: TokenBucket,
}

/// What became of a test email.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct MailTestReport {
    /// `accepted`, `refused`, `misconfigured`, `not_sent` or `unknown`.
    pub(crate) outcome: &'static str,
    /// The outcome in words.
    pub(crate) message: String,
    /// Every step, in order.
    pub(crate) steps: Vec<TestedStep>,
}

/// The result of one step.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TestedStep {
    pub(crate) step: &'static str,
    /// `ok`, `failed`, `unknown`, `skipped` (not configured) or `not_reached`.
    pub(crate) result: &'static str,
    pub(crate) detail: Option<String>,
}

impl MailTester {
    pub(crate) fn new(smtp: Option<Smtp>, settings: EmailConfig, wait: Duration) -> Self {
        Self { smtp, settings, wait, used: TokenBucket::default() }
    }

    /// Sends a test email, or returns after how many seconds the next one is allowed.
    pub(crate) async fn run(&self, id: &MessageId, to: &EmailAddress, at: Time) -> Result<MailTestReport, u64> {
        let Some(smtp) = &self.smtp else { return Ok(not_configured()) };
        self.used.take(RATE, COST, Instant::now())?;
        let message = message(&self.settings.from, to, id, at);
        let (plan, mut passed) = (smtp.steps(), Vec::new());
        let sending = smtp.send_reporting(&self.settings.from.address, to, &message, &mut passed);
        let outcome = tokio::time::timeout(self.wait, sending).await;
        let outcome = outcome.unwrap_or_else(|_| self.too_slow(plan[passed.len().min(plan.len() - 1)]));
        Ok(self.report(&outcome, &plan, passed.len()))
    }

    /// The sender's address, for the message id.
    pub(crate) fn from(&self) -> &EmailAddress {
        &self.settings.from.address
    }

    /// The outcome of a test that was ended in this step. Only after the final dot may the mail have been sent.
    fn too_slow(&self, step: SmtpStep) -> SmtpOutcome {
        let reason = format!("no answer within {} s at {step}; a delivery waits longer", self.wait.as_secs());
        match step {
            SmtpStep::Answer => SmtpOutcome::Unknown { reason },
            _ => SmtpOutcome::TryAgain { reason, retry_after: None },
        }
    }

    fn report(&self, outcome: &SmtpOutcome, plan: &[SmtpStep], passed: usize) -> MailTestReport {
        let (word, failed) = match outcome {
            SmtpOutcome::Sent { .. } => ("accepted", "ok"),
            SmtpOutcome::Refused { .. } => ("refused", "failed"),
            SmtpOutcome::Misconfigured { .. } => ("misconfigured", "failed"),
            SmtpOutcome::TryAgain { .. } => ("not_sent", "failed"),
            SmtpOutcome::Unknown { .. } => ("unknown", "unknown"),
        };
        let tested = |(step, detail): (&'static str, String)| {
            let mut at = plan.iter().enumerate().filter(|(_, one)| group(**one) == step).map(|(at, _)| at);
            let (result, detail) = match (at.clone().next(), at.any(|at| at == passed)) {
                (None, _) => ("skipped", Some(detail)),
                (_, true) => (failed, Some(outcome.to_string())),
                (Some(first), false) if first < passed => ("ok", Some(detail)),
                _ => ("not_reached", None),
            };
            TestedStep { step, result, detail }
        };
        let configured = TestedStep { step: CONFIGURATION, result: "ok", detail: Some(self.configuration()) };
        let steps = std::iter::once(configured).chain(self.groups(outcome).map(tested)).collect();
        MailTestReport { outcome: word, message: outcome.to_string(), steps }
    }

    fn configuration(&self) -> String {
        let EmailConfig { host, port, tls, from, .. } = &self.settings;
        format!("{host}:{port}, tls {}, from {}", tls.as_str(), from.address)
    }

    /// The steps of a report after the first one, each with what to say where it is ok or not configured.
    fn groups(&self, outcome: &SmtpOutcome) -> impl Iterator<Item = (&'static str, String)> {
        let EmailConfig { host, port, tls, username, .. } = &self.settings;
        let encrypted = match tls {
            EmailTls::None => "email.tls is \"none\"".to_owned(),
            tls => format!("{}, the certificate is trusted", tls.as_str()),
        };
        let login = match username.as_str() {
            "" => "email.username is empty".to_owned(),
            name => format!("as {name}"),
        };
        let connected = format!("{host}:{port} answers");
        let greeting = "the server speaks SMTP".to_owned();
        let (connect, hello) = (("connect", connected), ("greeting", greeting));
        let (first, second) = match tls {
            EmailTls::Implicit => (("tls", encrypted), hello),
            _ => (hello, ("tls", encrypted)),
        };
        [connect, first, second, ("login", login), ("message", outcome.to_string())].into_iter()
    }
}

const CONFIGURATION: &str = "configuration";

/// The step of a report that an SMTP step belongs to.
fn group(step: SmtpStep) -> &'static str {
    match step {
        SmtpStep::Connect => "connect",
        SmtpStep::Tls | SmtpStep::StartTls => "tls",
        SmtpStep::Greeting | SmtpStep::Hello => "greeting",
        SmtpStep::Auth => "login",
        SmtpStep::Sender | SmtpStep::Recipient | SmtpStep::Data | SmtpStep::Body | SmtpStep::Answer => "message",
    }
}

fn not_configured() -> MailTestReport {
    let message = "email.host is empty, so this hub sends no email; set [email] in its configuration and restart it";
    let step = TestedStep { step: CONFIGURATION, result: "failed", detail: Some(message.to_owned()) };
    MailTestReport { outcome: "misconfigured", message: message.to_owned(), steps: vec![step] }
}

fn message(from: &NamedAddress, to: &EmailAddress, id: &MessageId, at: Time) -> Vec<u8> {
    let to = NamedAddress { name: None, address: to.clone() };
    let headers = Headers::default()
        .known("Date", &super::compose::date(at))
        .mailbox("From", from)
        .mailbox("To", &to)
        .text("Subject", "Bellwire test email")
        .known("Message-ID", &id.to_string())
        .known("Auto-Submitted", "auto-generated")
        .known("MIME-Version", "1.0")
        .known("Content-Type", "text/plain; charset=us-ascii")
        .finish();
    format!("{headers}\r\n{TEXT}").into_bytes()
}
