use std::net::IpAddr;
use std::path::PathBuf;

use super::{ConfigWarning, Secret};
use crate::channels::email::NamedAddress;

/// The mail server for notifications.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmailConfig {
    /// The host name; empty = email is off.
    pub host: String,
    /// The port.
    pub port: u16,
    /// How the connection is encrypted.
    pub tls: EmailTls,
    /// A PEM file of certificates to trust instead of the public ones.
    pub ca_file: Option<PathBuf>,
    /// The user name; empty = no login.
    pub username: String,
    /// The password.
    pub password: Option<Secret>,
    /// A file that contains the password.
    pub password_file: Option<PathBuf>,
    /// The sender of every mail.
    pub from: NamedAddress,
    /// The host name for EHLO; empty = the local IP address.
    pub hello: String,
    /// The timeout of one SMTP step.
    pub step_seconds: u64,
    /// The timeout of the reply to the final dot.
    pub answer_seconds: u64,
    /// How many mails are sent at once.
    pub workers: usize,
}

/// How the connection to a mail server is encrypted.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum EmailTls {
    /// By STARTTLS; a server without it gets no data.
    Starttls,
    /// Encrypted from the first byte.
    Implicit,
    /// Not encrypted.
    None,
}

impl EmailConfig {
    /// Placeholder values; the default file sets every one of them.
    pub(super) fn blank() -> Self {
        Self {
            host: String::new(),
            port: 0,
            tls: EmailTls::Starttls,
            ca_file: None,
            username: String::new(),
            password: None,
            password_file: None,
            from: NamedAddress::parse("bellwire@localhost").expect("the name is an address"),
            hello: String::new(),
            step_seconds: 0,
            answer_seconds: 0,
            workers: 0,
        }
    }

    /// Errors: settings that contradict each other, each with the fix.
    pub(super) fn contradictions(&self) -> Vec<String> {
        let mut found = Vec::new();
        let has_password = self.password.is_some() || self.password_file.is_some();
        if self.password.is_some() && self.password_file.is_some() {
            found.push("email.password and email.password_file are both set: keep one".to_owned());
        }
        if has_password && self.username.is_empty() {
            found.push("email.password is set without email.username: say who logs in".to_owned());
        }
        if !has_password && !self.username.is_empty() {
            found
                .push("email.username is set without a password: set email.password_file or email.password".to_owned());
        }
        if self.tls == EmailTls::None && has_password && !self.is_local() {
            found.push(format!(
                "email.tls is \"none\", but the password would travel to {} for everybody to read: use \"starttls\" or \
                 \"implicit\"",
                self.host
            ));
        }
        if self.tls == EmailTls::None && self.ca_file.is_some() {
            found.push("email.ca_file names whom to trust, but email.tls is \"none\": remove one of them".to_owned());
        }
        if self.host.is_empty() && (has_password || !self.username.is_empty()) {
            found.push("email.username is set, but email.host names no server to log in to: set it".to_owned());
        }
        found
    }

    /// Warnings: combinations that are allowed but risky.
    pub(super) fn risks(&self, public_url: Option<&str>) -> Vec<ConfigWarning> {
        let mut found = Vec::new();
        if self.host.is_empty() {
            return found;
        }
        if self.tls == EmailTls::None && !self.is_local() {
            let message = format!("email.tls is \"none\": emails travel to {} unencrypted", self.host);
            found.push(ConfigWarning::new(message, "set email.tls to \"starttls\" or \"implicit\""));
        }
        let usual = match (self.port, self.tls) {
            (465, EmailTls::Starttls) => Some(EmailTls::Implicit),
            (587, EmailTls::Implicit) => Some(EmailTls::Starttls),
            _ => None,
        };
        if let Some(usual) = usual {
            let message = format!("email.tls is \"{}\", which is unusual on port {}", self.tls.as_str(), self.port);
            found.push(ConfigWarning::new(message, format!("set email.tls to \"{}\"", usual.as_str())));
        }
        if self.from.address.domain() == "localhost" && !self.is_local() {
            found.push(ConfigWarning::new(
                "email.from is an address of localhost, which most servers refuse",
                "set email.from to an address that your mail server may send from",
            ));
        }
        if public_url.is_none() {
            found.push(ConfigWarning::new(
                "email is on without server.public_url: the link that stops emails works only on this machine",
                "set server.public_url to the address at which people reach the hub",
            ));
        }
        found
    }

    fn is_local(&self) -> bool {
        let literal = self.host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
        literal || self.host.eq_ignore_ascii_case("localhost")
    }
}

impl EmailTls {
    /// All values.
    pub(super) const ALL: [Self; 3] = [Self::Starttls, Self::Implicit, Self::None];

    /// The value in a configuration file.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Starttls => "starttls",
            Self::Implicit => "implicit",
            Self::None => "none",
        }
    }
}
