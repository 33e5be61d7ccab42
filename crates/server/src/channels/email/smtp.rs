//! Sends one message to one server over a connection of its own.
//!
//! Every step has a timeout, and every error names its step, because the step decides what the error means: before the final
//! dot nothing has been sent; after it, a missing reply leaves the outcome unknown. A connection sends one message and is
//! closed, so that a late reply is never read as the reply to another command.

mod auth;
mod reply;
mod session;
mod tls;

pub(super) use reply::SmtpReply;
pub(super) use session::{SmtpError, SmtpErrorCause};

use std::fmt;
use std::future::Future;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::{EmailAddress, MailMessage, SmtpOutcome, SmtpStep, compose};
use crate::config::{EmailConfig, EmailTls};
use auth::Credentials;
use session::{SmtpSession, within};
use tls::Tls;

/// The timeout of QUIT, which runs in the background.
const QUIT_MAX: Duration = Duration::from_secs(5);

/// A mail server with its connection settings.
#[derive(Clone)]
pub struct Smtp {
    host: String,
    port: u16,
    mode: EmailTls,
    tls: Tls,
    credentials: Option<Credentials>,
    hello: Option<String>,
    step_max: Duration,
    answer_max: Duration,
}

/// Why the `[email]` settings cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetupError(pub(super) String);

impl Smtp {
    /// Reads the files that the settings name (password, certificates). None if email is off.
    pub fn new(settings: &EmailConfig) -> Result<Option<Self>, SetupError> {
        if settings.host.is_empty() {
            return Ok(None);
        }
        Ok(Some(Self {
            host: settings.host.clone(),
            port: settings.port,
            mode: settings.tls,
            tls: Tls::new(&settings.host, settings.ca_file.as_deref())?,
            credentials: Credentials::new(settings)?,
            hello: Some(settings.hello.clone()).filter(|name| !name.is_empty()),
            step_max: Duration::from_secs(settings.step_seconds),
            answer_max: Duration::from_secs(settings.answer_seconds),
        }))
    }

    /// Composes a message and sends it, once.
    pub async fn deliver(&self, mail: &MailMessage) -> SmtpOutcome {
        self.deliver_unless(mail, std::future::pending()).await
    }

    /// Composes a message and sends it, once, unless `stop` resolves before its final dot is written. After the dot, the
    /// reply is awaited in any case.
    pub async fn deliver_unless(&self, mail: &MailMessage, stop: impl Future<Output = ()>) -> SmtpOutcome {
        let attempt = self.attempt(&mail.from.address, &mail.to, &compose(mail), &mut Vec::new(), stop).await;
        self.redacted(attempt)
    }

    /// Sends the bytes of a message, once. Dropping this future closes the connection; if the final dot was already written,
    /// the outcome is unknown.
    pub async fn send(&self, from: &EmailAddress, to: &EmailAddress, message: &[u8]) -> SmtpOutcome {
        self.send_reporting(from, to, message, &mut Vec::new()).await
    }

    /// [`Self::send`], which also adds every step to `passed` as soon as it has succeeded. If this future is dropped,
    /// `passed` has the steps until then.
    pub async fn send_reporting(
        &self,
        from: &EmailAddress,
        to: &EmailAddress,
        message: &[u8],
        passed: &mut Vec<SmtpStep>,
    ) -> SmtpOutcome {
        self.redacted(self.attempt(from, to, message, passed, std::future::pending()).await)
    }

    /// The outcome without the password. A server may repeat what it was sent, and outcomes are stored, logged and shown.
    fn redacted(&self, outcome: SmtpOutcome) -> SmtpOutcome {
        outcome.map_text(|text| match &self.credentials {
            Some(credentials) => credentials.redact(text),
            None => text,
        })
    }

    /// The steps of an attempt with these settings, in order.
    pub fn steps(&self) -> Vec<SmtpStep> {
        let (before, after): (&[SmtpStep], &[SmtpStep]) = match self.mode {
            EmailTls::Implicit => (&[SmtpStep::Tls], &[]),
            EmailTls::Starttls => (&[], &[SmtpStep::StartTls, SmtpStep::Tls, SmtpStep::Hello]),
            EmailTls::None => (&[], &[]),
        };
        let login: &[SmtpStep] = if self.credentials.is_some() { &[SmtpStep::Auth] } else { &[] };
        let transmit = [SmtpStep::Sender, SmtpStep::Recipient, SmtpStep::Data, SmtpStep::Body, SmtpStep::Answer];
        [&[SmtpStep::Connect], before, &[SmtpStep::Greeting, SmtpStep::Hello], after, login, &transmit].concat()
    }

    async fn attempt(
        &self,
        from: &EmailAddress,
        to: &EmailAddress,
        message: &[u8],
        passed: &mut Vec<SmtpStep>,
        stop: impl Future<Output = ()>,
    ) -> SmtpOutcome {
        let written = tokio::select! {
            biased;
            // Dropping the other future closes the connection without the dot: the server discards the message.
            () = stop => return SmtpOutcome::Interrupted,
            written = self.write(from, to, message, passed) => written,
        };
        let (mut session, written) = match written {
            Ok(written) => written,
            Err(error) => return error.into(),
        };
        let answered = match written {
            Ok(()) => session.end_of_body(self.answer_max).await,
            Err(error) => Err(error),
        };
        let outcome = match answered {
            Ok(reply) => SmtpOutcome::answered(&reply),
            Err(error) => error.into(),
        };
        if matches!(outcome, SmtpOutcome::Sent { .. }) {
            passed.push(SmtpStep::Answer);
        }
        // The reply to QUIT does not matter, and recording the outcome must not wait for it.
        tokio::spawn(async move { drop(within(QUIT_MAX, SmtpStep::Answer, session.quit()).await) });
        outcome
    }

    /// The longest duration of an attempt; the lease of a started delivery must be longer.
    pub fn attempt_max(&self) -> Duration {
        // Connect, TLS, greeting, EHLO twice, STARTTLS, AUTH in three parts, MAIL, RCPT, DATA, the body, and a reply that
        // came before the final dot.
        self.step_max * 14 + self.answer_max
    }

    /// Connects, encrypts as configured, sends EHLO and logs in.
    async fn open_session(&self, passed: &mut Vec<SmtpStep>) -> Result<SmtpSession, SmtpError> {
        let socket = TcpStream::connect((self.host.as_str(), self.port));
        let socket = within(self.step_max, SmtpStep::Connect, socket).await?;
        passed.push(SmtpStep::Connect);
        let hello = self.hello.clone().unwrap_or_else(|| address_literal(&socket));
        // Without this, Nagle's algorithm would delay small commands.
        socket.set_nodelay(true).map_err(|error| SmtpError::at(SmtpStep::Connect, SmtpErrorCause::Lost(error)))?;
        let mut session = SmtpSession::new(socket, self.step_max);
        if self.mode == EmailTls::Implicit {
            session = self.tls.encrypt(session).await?;
            passed.push(SmtpStep::Tls);
        }
        session.answer(SmtpStep::Greeting).await?.expect(SmtpStep::Greeting, 220)?;
        passed.push(SmtpStep::Greeting);
        let mut offers = session.hello(&hello).await?;
        passed.push(SmtpStep::Hello);
        if self.mode == EmailTls::Starttls {
            session = self.tls.start(session, &offers).await?;
            passed.extend([SmtpStep::StartTls, SmtpStep::Tls]);
            // An attacker may have forged the unencrypted list of extensions; only the second list counts.
            offers = session.hello(&hello).await?;
            passed.push(SmtpStep::Hello);
        }
        if let Some(credentials) = &self.credentials {
            credentials.log_in(&mut session, &offers).await?;
            passed.push(SmtpStep::Auth);
        }
        Ok(session)
    }

    /// Opens a session and writes the message without its final dot. The session is returned even if the server refused the
    /// message.
    async fn write(
        &self,
        from: &EmailAddress,
        to: &EmailAddress,
        message: &[u8],
        passed: &mut Vec<SmtpStep>,
    ) -> Result<(SmtpSession, Result<(), SmtpError>), SmtpError> {
        let mut session = self.open_session(passed).await?;
        let written = Self::transmit(&mut session, from, to, message, passed).await;
        Ok((session, written))
    }

    async fn transmit(
        session: &mut SmtpSession,
        from: &EmailAddress,
        to: &EmailAddress,
        message: &[u8],
        passed: &mut Vec<SmtpStep>,
    ) -> Result<(), SmtpError> {
        session.command(SmtpStep::Sender, &format!("MAIL FROM:<{from}>")).await?.expect(SmtpStep::Sender, 250)?;
        passed.push(SmtpStep::Sender);
        let recipient = session.command(SmtpStep::Recipient, &format!("RCPT TO:<{to}>")).await?;
        recipient.expect_any(SmtpStep::Recipient, &[250, 251, 252])?;
        passed.push(SmtpStep::Recipient);
        session.command(SmtpStep::Data, "DATA").await?.expect(SmtpStep::Data, 354)?;
        passed.push(SmtpStep::Data);
        session.body(message).await?;
        passed.push(SmtpStep::Body);
        Ok(())
    }
}

impl fmt::Debug for Smtp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Smtp({}:{})", self.host, self.port)
    }
}

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SetupError {}

impl SmtpSession {
    async fn quit(&mut self) -> std::io::Result<()> {
        self.stream().write_all(b"QUIT\r\n").await?;
        self.stream().flush().await?;
        self.skip_reply().await;
        self.stream().shutdown().await
    }
}

/// The local address in brackets, which RFC 5321 requires in EHLO from a client without a host name.
fn address_literal(socket: &TcpStream) -> String {
    match socket.local_addr().map(|address| address.ip()) {
        Ok(std::net::IpAddr::V4(ip)) => format!("[{ip}]"),
        Ok(std::net::IpAddr::V6(ip)) => format!("[IPv6:{ip}]"),
        Err(_) => "[127.0.0.1]".to_owned(),
    }
}
