//! A test email: one message that is sent at once, with a report on each step, so that an operator sees which setting is
//! wrong. It is no delivery: nothing is stored, and it is never sent again.

use std::time::{Duration, Instant};

use bellwire_core::Time;
use uuid::Uuid;

use super::header::Headers;
use super::{EmailAddress, MessageId, NamedAddress, Smtp, SmtpOutcome, SmtpStep};
use crate::channels::{TestRefusal, TestReport, TestedStep};
use crate::config::{EmailConfig, EmailTls};
use crate::rate::{Rate, TokenBucket};

/// Five tests at once, then one a minute: each takes [`COST`].
const RATE: Rate = Rate { per_second: 1, burst: 5 * COST };
const COST: u64 = 60;

const TEXT: &str = "This is a test email of Bellwire. If you can read it, the hub can send email.\r\n\r\n-- \r\nSent by \
                    Bellwire, because its operator asked for a test.\r\n";

/// Sends test emails with the hub's own settings.
pub(super) struct MailTester {
    /// None = email is off.
    smtp: Option<Smtp>,
    settings: EmailConfig,
    used: TokenBucket,
}

impl MailTester {
    pub(super) fn new(smtp: Option<Smtp>, settings: EmailConfig) -> Self {
        Self { smtp, settings, used: TokenBucket::default() }
    }

    /// Sends a test email within `wait`; a delivery waits longer for a slow server.
    pub(super) async fn run(&self, to: &str, id: Uuid, at: Time, wait: Duration) -> Result<TestReport, TestRefusal> {
        let from = &self.settings.from;
        let to = EmailAddress::parse(to).map_err(TestRefusal::InvalidTarget)?;
        let id = MessageId::new(&id.to_string(), &from.address).map_err(TestRefusal::InvalidTarget)?;
        let Some(smtp) = &self.smtp else { return Ok(not_configured()) };
        self.used.take(RATE, COST, Instant::now()).map_err(TestRefusal::TooMany)?;
        let message = message(from, &to, &id, at);
        let (plan, mut passed) = (smtp.steps(), Vec::new());
        let sending = smtp.send_reporting(&from.address, &to, &message, &mut passed);
        let outcome = tokio::time::timeout(wait, sending).await;
        let outcome = outcome.unwrap_or_else(|_| too_slow(plan[passed.len().min(plan.len() - 1)], wait));
        Ok(self.report(&outcome, &plan, passed.len()))
    }

    fn report(&self, outcome: &SmtpOutcome, plan: &[SmtpStep], passed: usize) -> TestReport {
        let (word, failed) = match outcome {
            SmtpOutcome::Sent { .. } => ("accepted", "ok"),
            SmtpOutcome::Refused { .. } => ("refused", "failed"),
            SmtpOutcome::Misconfigured { .. } => ("misconfigured", "failed"),
            SmtpOutcome::TryAgain { .. } | SmtpOutcome::Interrupted => ("not_sent", "failed"),
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
        TestReport { outcome: word, message: outcome.to_string(), steps }
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

/// The outcome of a test that was ended in this step. Only after the final dot may the mail have been sent.
fn too_slow(step: SmtpStep, wait: Duration) -> SmtpOutcome {
    let reason = format!("no answer within {} s at {step}; a delivery waits longer", wait.as_secs());
    match step {
        SmtpStep::Answer => SmtpOutcome::Unknown { reason },
        _ => SmtpOutcome::TryAgain { reason, retry_after: None },
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

fn not_configured() -> TestReport {
    let message = "email.host is empty, so this hub sends no email; set [email] in its configuration and restart it";
    let step = TestedStep { step: CONFIGURATION, result: "failed", detail: Some(message.to_owned()) };
    TestReport { outcome: "misconfigured", message: message.to_owned(), steps: vec![step] }
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
