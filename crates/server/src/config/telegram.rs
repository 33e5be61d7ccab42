use std::net::IpAddr;
use std::path::PathBuf;

use axum::http::Uri;

use super::Secret;

/// The Telegram bot for notifications.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TelegramConfig {
    /// The bot's token; none = Telegram is off, unless `token_file` is set.
    pub token: Option<Secret>,
    /// A file that contains the token.
    pub token_file: Option<PathBuf>,
    /// The base URL of the Bot API.
    pub api_url: Option<String>,
    /// How updates arrive.
    pub mode: TelegramMode,
    /// A file that contains the secret of the webhook.
    pub webhook_secret_file: Option<PathBuf>,
    /// How many messages the bot sends a second; 0 = no limit.
    pub messages_per_second: u64,
    /// The time between two messages to one chat; 0 = none.
    pub chat_interval_ms: u64,
    /// The timeout of one call of the API.
    pub answer_seconds: u64,
}

/// How updates arrive.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum TelegramMode {
    /// The hub polls for them.
    Poll,
    /// Telegram pushes them to the hub.
    Webhook,
    /// Another hub receives them; this one only sends.
    Send,
}

impl TelegramConfig {
    /// Placeholder values; the default file sets every one of them.
    pub(super) fn blank() -> Self {
        Self {
            token: None,
            token_file: None,
            api_url: None,
            mode: TelegramMode::Poll,
            webhook_secret_file: None,
            messages_per_second: 0,
            chat_interval_ms: 0,
            answer_seconds: 0,
        }
    }

    /// Whether a token is configured.
    pub fn is_on(&self) -> bool {
        self.token.is_some() || self.token_file.is_some()
    }

    /// The token from the setting or the file; an error names the setting and the fix, and never repeats the token.
    pub fn read_token(&self) -> Result<Option<Secret>, String> {
        let Some(path) = &self.token_file else { return Ok(self.token.clone()) };
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("telegram.token_file: {} cannot be read: {error}", path.display()))?;
        let token = Secret::new(text.trim());
        match is_token(token.reveal()) {
            true => Ok(Some(token)),
            false => Err(format!("telegram.token_file: what {} holds is no token: {TOKEN_FORM}", path.display())),
        }
    }

    /// The secret of the webhook; none in mode poll.
    pub fn webhook_secret(&self) -> Result<Option<Secret>, String> {
        let Some(path) = self.webhook_secret_file.as_ref().filter(|_| self.mode == TelegramMode::Webhook) else {
            return Ok(None);
        };
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("telegram.webhook_secret_file: {} cannot be read: {error}", path.display()))?;
        let secret = Secret::new(text.trim());
        let length = secret.reveal().len();
        if (SECRET_MIN..=SECRET_MAX).contains(&length) && secret.reveal().bytes().all(is_url_safe) {
            return Ok(Some(secret));
        }
        Err(format!(
            "telegram.webhook_secret_file: what {} holds is no secret: write {SECRET_MIN} to {SECRET_MAX} random \
             letters, digits, _ and -, such as the output of `openssl rand -hex 32`",
            path.display()
        ))
    }

    /// Errors: settings that contradict each other, each with the fix.
    pub(super) fn contradictions(&self, public_url: Option<&str>) -> Vec<String> {
        let mut found = Vec::new();
        if self.token.is_some() && self.token_file.is_some() {
            found.push("telegram.token and telegram.token_file are both set: keep one".to_owned());
        }
        if self.token.as_ref().is_some_and(|token| !is_token(token.reveal())) {
            found.push(format!("telegram.token is no token: {TOKEN_FORM}"));
        }
        match self.api_url.as_deref() {
            None => found.push("telegram.api_url is empty: write https://api.telegram.org".to_owned()),
            Some(url) if !url.starts_with("https://") && !is_local(url) => found.push(format!(
                "telegram.api_url is '{url}', but the token would travel unencrypted: use https, or a server on this \
                 machine"
            )),
            Some(_) => {}
        }
        if self.is_on() && self.mode == TelegramMode::Webhook {
            if self.webhook_secret_file.is_none() {
                found.push(
                    "telegram.mode is \"webhook\" without telegram.webhook_secret_file: without a secret, anybody \
                     could send updates"
                        .to_owned(),
                );
            }
            let api_is_local = self.api_url.as_deref().is_some_and(is_local);
            if !public_url.is_some_and(|url| url.starts_with("https://") || api_is_local) {
                found.push(
                    "telegram.mode is \"webhook\", but server.public_url is no https address that Telegram could \
                     call: set it, or use mode \"poll\""
                        .to_owned(),
                );
            }
        }
        found
    }
}

impl TelegramMode {
    /// All values.
    pub(super) const ALL: [Self; 3] = [Self::Poll, Self::Webhook, Self::Send];

    /// The value in a configuration file.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Poll => "poll",
            Self::Webhook => "webhook",
            Self::Send => "send",
        }
    }
}

/// Telegram takes secrets of 1 to 256 characters; a short one could be guessed.
const SECRET_MIN: usize = 16;
const SECRET_MAX: usize = 256;
const TOKEN_FORM: &str =
    "@BotFather gives one like 123456:ABC-DEF1234ghIkl, a number, a colon and letters, digits, _ and -";

/// The token stands in the path of every request, so nothing else is accepted.
fn is_token(text: &str) -> bool {
    let is_id = |id: &str| id.len() <= 19 && id.parse::<i64>().is_ok_and(|id| id > 0) && !id.starts_with('+');
    text.split_once(':').is_some_and(|(id, rest)| is_id(id) && !rest.is_empty() && rest.bytes().all(is_url_safe))
}

fn is_url_safe(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

fn is_local(url: &str) -> bool {
    let uri: Option<Uri> = url.parse().ok();
    let host = uri.as_ref().and_then(Uri::host).unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(change: impl FnOnce(&mut TelegramConfig)) -> TelegramConfig {
        let mut config = crate::Config::default().telegram;
        change(&mut config);
        config
    }

    #[test]
    fn a_token_has_the_form_of_a_token_and_is_never_repeated() {
        for right in ["1:a", "123456:ABC-DEF1234ghIkl_zyx57W2v1u123ew11"] {
            let config = config(|one| one.token = Some(Secret::new(right)));
            assert_eq!(config.contradictions(None), Vec::<String>::new(), "{right}");
        }
        for wrong in ["secretword", "0:secret", "1:secret/../x", "x:secret", "1:", "+1:secret", "1:secret word"] {
            let found = config(|one| one.token = Some(Secret::new(wrong))).contradictions(None);
            assert_eq!(found.len(), 1, "{wrong}");
            assert!(!found[0].contains("secret"), "{found:?}");
        }
    }

    #[test]
    fn the_api_is_https_or_on_this_machine() {
        for right in ["https://tg.example.org", "http://127.0.0.1:8081", "http://localhost:8081", "http://[::1]:1"] {
            assert_eq!(config(|one| one.api_url = Some(right.into())).contradictions(None), Vec::<String>::new());
        }
        for wrong in ["http://tg.example.org", "http://127.0.0.1.example.org"] {
            assert_eq!(config(|one| one.api_url = Some(wrong.into())).contradictions(None).len(), 1, "{wrong}");
        }
    }

    #[test]
    fn a_webhook_needs_a_secret_and_an_address_that_telegram_can_call() {
        let webhook = |secret: bool| {
            config(|one| {
                one.token = Some(Secret::new("1:a"));
                one.mode = TelegramMode::Webhook;
                one.webhook_secret_file = secret.then(|| "secret".into());
            })
        };
        assert_eq!(webhook(true).contradictions(Some("https://bell.example.org")), Vec::<String>::new());
        assert_eq!(webhook(true).contradictions(Some("http://bell.example.org")).len(), 1);
        assert_eq!(webhook(false).contradictions(None).len(), 2);
        let local = TelegramConfig { api_url: Some("http://127.0.0.1:8081".into()), ..webhook(true) };
        assert_eq!(local.contradictions(Some("http://127.0.0.1:2355")), Vec::<String>::new());
    }

    #[test]
    fn secrets_are_read_from_files() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("secret");
        let written = |text: &str| {
            std::fs::write(&path, text).expect("a file");
            config(|one| {
                one.token_file = Some(path.clone());
                one.webhook_secret_file = Some(path.clone());
                one.mode = TelegramMode::Webhook;
            })
        };
        assert_eq!(written("1:abc\n").read_token(), Ok(Some(Secret::new("1:abc"))));
        let wrong = written("private").read_token().expect_err("no token");
        assert!(wrong.starts_with("telegram.token_file") && !wrong.contains("private"), "{wrong}");
        let secret = "0123456789abcdef";
        assert_eq!(written(secret).webhook_secret(), Ok(Some(Secret::new(secret))));
        for wrong in ["short", "0123456789abcde!"] {
            let error = written(wrong).webhook_secret().expect_err("no secret");
            assert!(!error.contains(wrong), "{error}");
        }
    }
}
