use base64::Engine;
use base64::prelude::BASE64_STANDARD;

use super::super::SmtpStep;
use super::SetupError;
use super::session::{SmtpError, SmtpErrorCause, SmtpSession};
use crate::config::{EmailConfig, Secret};

/// The shortest beginning of a longer password that is removed from a text.
const REDACTED_MIN: usize = 8;

/// The user name and password for AUTH.
#[derive(Clone)]
pub(super) struct Credentials {
    username: String,
    password: Secret,
}

impl Credentials {
    /// From the settings, reading the password file; none if there is no user name.
    pub(super) fn new(settings: &EmailConfig) -> Result<Option<Self>, SetupError> {
        if settings.username.is_empty() {
            return Ok(None);
        }
        let password = match (&settings.password, &settings.password_file) {
            (Some(password), _) => password.clone(),
            (None, Some(path)) => {
                let read = std::fs::read_to_string(path).map_err(|error| {
                    SetupError(format!("email.password_file {} cannot be read: {error}", path.display()))
                })?;
                // Editors end files with a line feed that is not part of the password.
                Secret::new(read.trim_end_matches(['\r', '\n']))
            }
            (None, None) => {
                return Err(SetupError("email.username needs email.password or email.password_file".into()));
            }
        };
        match password.reveal() {
            "" => Err(SetupError("the password of email.username is empty".into())),
            text if text.contains('\0') => Err(SetupError("the password of email.username has a NUL in it".into())),
            _ => Ok(Some(Self { username: settings.username.clone(), password })),
        }
    }

    /// A text without the password, as it is and as it was sent. A text that was cut may end within it, so its beginnings
    /// are removed too.
    pub(super) fn redact(&self, mut text: String) -> String {
        let password = self.password.reveal();
        let both = format!("\0{}\0{password}", self.username);
        for secret in [BASE64_STANDARD.encode(both), BASE64_STANDARD.encode(password), password.to_owned()] {
            let ends = secret.char_indices().map(|(at, c)| at + c.len_utf8()).rev();
            let mut beginnings =
                ends.map(|end| &secret[..end]).filter(|part| part.len() >= secret.len().min(REDACTED_MIN));
            if let Some(found) = beginnings.find(|part| text.contains(*part)) {
                text = text.replace(found, "[password]");
            }
        }
        text
    }

    /// Logs in with PLAIN, else LOGIN. Must be called after the connection is encrypted as configured.
    pub(super) async fn log_in(&self, session: &mut SmtpSession, offers: &[String]) -> Result<(), SmtpError> {
        let offered = offers.iter().find_map(|line| line.strip_prefix("AUTH")).unwrap_or_default();
        // Some old servers write `AUTH=LOGIN`.
        let mechanisms: Vec<&str> = offered.split([' ', '=']).filter(|word| !word.is_empty()).collect();
        if mechanisms.contains(&"PLAIN") {
            let both = format!("\0{}\0{}", self.username, self.password.reveal());
            let reply =
                session.command(SmtpStep::Auth, &format!("AUTH PLAIN {}", BASE64_STANDARD.encode(both))).await?;
            return reply.expect(SmtpStep::Auth, 235).map(drop);
        }
        if mechanisms.contains(&"LOGIN") {
            session.command(SmtpStep::Auth, "AUTH LOGIN").await?.expect(SmtpStep::Auth, 334)?;
            let name = BASE64_STANDARD.encode(&self.username);
            session.command(SmtpStep::Auth, &name).await?.expect(SmtpStep::Auth, 334)?;
            let password = BASE64_STANDARD.encode(self.password.reveal());
            return session.command(SmtpStep::Auth, &password).await?.expect(SmtpStep::Auth, 235).map(drop);
        }
        let reason = match mechanisms.as_slice() {
            [] => "the server offers no AUTH; empty email.username or ask its operator".to_owned(),
            list => format!("the server offers AUTH {}, of which Bellwire knows none (PLAIN, LOGIN)", list.join(" ")),
        };
        Err(SmtpError::at(SmtpStep::Auth, SmtpErrorCause::Setup(reason)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_shows_the_password_in_any_form_it_was_sent_in() {
        let credentials = Credentials { username: "bell".into(), password: Secret::new("correct horse") };
        let sent = [
            "correct horse".to_owned(),
            BASE64_STANDARD.encode("correct horse"),
            BASE64_STANDARD.encode("\0bell\0correct horse"),
        ];
        for form in sent {
            assert_eq!(credentials.redact(format!("535 no: {form}!")), "535 no: [password]!");
            assert_eq!(credentials.redact(format!("535 no: {}", &form[..form.len() - 3])), "535 no: [password]");
        }
        assert_eq!(credentials.redact("535 5.7.8 not correct".into()), "535 5.7.8 not correct");
    }
}
