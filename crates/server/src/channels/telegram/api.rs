//! The client of Telegram's Bot API.
//!
//! The token is part of every request's path. It appears in no error, log line or Debug output: errors of the connection
//! do not contain the path, and what the server says is searched for it.

mod call_error;
pub(crate) use call_error::{ApiRefusal, CallError};

mod methods;
pub(crate) use methods::*;

use std::fmt;
use std::time::Duration;

use axum::http::{Request, header};
use http_body_util::Full;
use hyper::body::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

use self::call_error::Answer;
use crate::config::{Secret, TelegramConfig};
use crate::http_client::{CONNECT_MAX, HttpClient, HttpError};

/// The largest answer, in bytes: [`methods::UPDATES_MAX`] updates of the longest texts with room to spare.
const ANSWER_BYTES_MAX: usize = 8 * 1024 * 1024;

/// One bot at one server.
pub(crate) struct BotApi {
    http: HttpClient,
    token: Secret,
    bot_id: i64,
    answer_max: Duration,
}

impl BotApi {
    /// Reads the token. None if Telegram is off; an error names the setting and the fix.
    pub(crate) fn new(config: &TelegramConfig) -> Result<Option<Self>, String> {
        let Some(token) = config.read_token()? else { return Ok(None) };
        let bot_id = token.reveal().split_once(':').and_then(|(id, _)| id.parse().ok());
        let bot_id = bot_id.ok_or("telegram.token is no token")?;
        let http = HttpClient::new(config.api_url.as_deref().unwrap_or_default());
        let http = http.map_err(|why| format!("telegram.api_url: {why}"))?;
        let answer_max = Duration::from_secs(config.answer_seconds);
        Ok(Some(Self { http, token, bot_id, answer_max }))
    }

    /// The bot's id, which is the first part of its token.
    pub(crate) fn bot_id(&self) -> i64 {
        self.bot_id
    }

    /// The longest duration of one call.
    pub(crate) fn call_max(&self) -> Duration {
        CONNECT_MAX + self.answer_max
    }

    /// Calls a method once. `wait` is what the method itself may take, for a long poll.
    async fn call<R: DeserializeOwned>(
        &self,
        method: &str,
        parameters: &impl Serialize,
        wait: Duration,
    ) -> Result<R, CallError> {
        let request = self.request(method, parameters)?;
        let answer = self.http.send(request, self.answer_max + wait, ANSWER_BYTES_MAX).await;
        let answer = answer.map_err(|error| self.no_answer(error)).map(Answer::from);
        answer.and_then(Answer::into_result).map_err(|error| self.without_token(error))
    }

    fn no_answer(&self, error: HttpError) -> CallError {
        match error {
            HttpError::NotSent { reason, is_timeout } => {
                let reason = format!("Telegram cannot be reached at {}: {reason}", self.http.authority());
                CallError::NotSent { reason, is_timeout }
            }
            HttpError::Unknown(reason) => CallError::Unknown { reason: format!("Telegram was called, and {reason}") },
        }
    }

    fn request(&self, method: &str, parameters: &impl Serialize) -> Result<Request<Full<Bytes>>, CallError> {
        let wrong = |why: &dyn fmt::Display| CallError::not_sent(format!("the request cannot be made: {why}"));
        let body = serde_json::to_vec(parameters).map_err(|error| wrong(&error))?;
        Request::post(format!("/bot{}/{method}", self.token.reveal()))
            .header(header::HOST, self.http.authority())
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::USER_AGENT, concat!("bellwire/", env!("CARGO_PKG_VERSION")))
            .body(Full::new(Bytes::from(body)))
            // The error could repeat the path.
            .map_err(|_| wrong(&"the token is no part of a path"))
    }

    /// Removes the token from what the server said.
    fn without_token(&self, error: CallError) -> CallError {
        let clean = |text: String| text.replace(self.token.reveal(), "(hidden)");
        match error {
            CallError::Refused(refusal) => {
                CallError::Refused(ApiRefusal { description: clean(refusal.description), ..refusal })
            }
            CallError::Misconfigured { reason } => CallError::Misconfigured { reason: clean(reason) },
            CallError::Unknown { reason } => CallError::Unknown { reason: clean(reason) },
            CallError::NotSent { reason, is_timeout } => CallError::NotSent { reason: clean(reason), is_timeout },
        }
    }
}

impl fmt::Debug for BotApi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BotApi").field("bot_id", &self.bot_id).field("host", &self.http.authority()).finish()
    }
}

#[cfg(test)]
mod tests;
