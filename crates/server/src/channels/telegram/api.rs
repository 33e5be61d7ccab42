//! The client of Telegram's Bot API.
//!
//! The token is part of every request's path. It appears in no error, log line or Debug output: errors of the connection
//! do not contain the path, and what the server says is searched for it.

mod call_error;
pub(crate) use call_error::{CallError, Refusal};

mod endpoint;

mod methods;
pub(crate) use methods::*;

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use axum::http::{Request, StatusCode, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Bytes, Incoming};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, timeout};

use self::call_error::Answer;
use self::endpoint::{Connection, Endpoint};
use crate::config::{Secret, TelegramConfig};

/// The timeout of connecting, with the TLS handshake.
const CONNECT_MAX: Duration = Duration::from_secs(10);
/// A connection that was unused for longer is not used again: the server may be closing it just now.
const IDLE_MAX: Duration = Duration::from_secs(15);
/// How many unused connections stay open.
const IDLE_COUNT_MAX: usize = 16;
/// The largest answer, in bytes: [`methods::UPDATES_MAX`] updates of the longest texts with room to spare.
const ANSWER_BYTES_MAX: usize = 8 * 1024 * 1024;

/// One bot at one server.
pub(crate) struct BotApi {
    endpoint: Endpoint,
    token: Secret,
    bot_id: i64,
    answer_max: Duration,
    idle: Mutex<Vec<(Connection, Instant)>>,
}

impl BotApi {
    /// Reads the token. None if Telegram is off; an error names the setting and the fix.
    pub(crate) fn new(config: &TelegramConfig) -> Result<Option<Self>, String> {
        let Some(token) = config.read_token()? else { return Ok(None) };
        let bot_id = token.reveal().split_once(':').and_then(|(id, _)| id.parse().ok());
        let bot_id = bot_id.ok_or("telegram.token is no token")?;
        let endpoint = Endpoint::new(config.api_url.as_deref().unwrap_or_default())?;
        let answer_max = Duration::from_secs(config.answer_seconds);
        Ok(Some(Self { endpoint, token, bot_id, answer_max, idle: Mutex::default() }))
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
        let (connection, request) = self.connection(request).await?;
        let answering = self.answer(connection, request);
        match timeout(self.answer_max + wait, answering).await {
            Ok(answer) => answer.and_then(|answer| answer.into_result()).map_err(|error| self.without_token(error)),
            Err(_) => {
                let seconds = (self.answer_max + wait).as_secs();
                Err(CallError::Unknown { reason: format!("Telegram did not answer within {seconds} s") })
            }
        }
    }

    fn request(&self, method: &str, parameters: &impl Serialize) -> Result<Request<Full<Bytes>>, CallError> {
        let wrong = |why: &dyn fmt::Display| CallError::not_sent(format!("the request cannot be made: {why}"));
        let body = serde_json::to_vec(parameters).map_err(|error| wrong(&error))?;
        Request::post(format!("/bot{}/{method}", self.token.reveal()))
            .header(header::HOST, self.endpoint.authority())
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::USER_AGENT, concat!("bellwire/", env!("CARGO_PKG_VERSION")))
            .body(Full::new(Bytes::from(body)))
            // The error could repeat the path.
            .map_err(|_| wrong(&"the token is no part of a path"))
    }

    /// A connection that accepts the request: an unused one, or a new one.
    async fn connection(&self, request: Request<Full<Bytes>>) -> Result<(Connection, Request<Full<Bytes>>), CallError> {
        if let Some(connection) = self.take_idle() {
            return Ok((connection, request));
        }
        self.connect().await.map(|connection| (connection, request))
    }

    async fn connect(&self) -> Result<Connection, CallError> {
        match timeout(CONNECT_MAX, self.endpoint.connect()).await {
            Ok(connected) => connected.map_err(CallError::not_sent),
            Err(_) => Err(CallError::NotSent {
                reason: format!("Telegram cannot be reached within {} s", CONNECT_MAX.as_secs()),
                is_timeout: true,
            }),
        }
    }

    /// Sends the request once and reads the answer. A connection that was closed before it took the request is replaced.
    async fn answer(&self, mut connection: Connection, request: Request<Full<Bytes>>) -> Result<Answer, CallError> {
        let response = match connection.try_send_request(request).await {
            Ok(response) => response,
            Err(mut error) => {
                // The request comes back only if no byte of it was sent.
                let Some(request) = error.take_message() else { return Err(lost(error.into_error())) };
                connection = self.connect().await?;
                connection.try_send_request(request).await.map_err(|mut error| match error.take_message() {
                    Some(_) => CallError::not_sent("Telegram closed the connection at once".to_owned()),
                    None => lost(error.into_error()),
                })?
            }
        };
        let (status, retry_after) = (response.status(), retry_after(&response));
        let body = read(response.into_body(), status).await?;
        self.keep_idle(connection);
        Ok(Answer { status, retry_after, body })
    }

    fn take_idle(&self) -> Option<Connection> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        idle.retain(|(connection, since)| !connection.is_closed() && now.duration_since(*since) < IDLE_MAX);
        let ready = idle.iter().position(|(connection, _)| connection.is_ready())?;
        Some(idle.swap_remove(ready).0)
    }

    fn keep_idle(&self, connection: Connection) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if !connection.is_closed() && idle.len() < IDLE_COUNT_MAX {
            idle.push((connection, Instant::now()));
        }
    }

    /// Removes the token from what the server said.
    fn without_token(&self, error: CallError) -> CallError {
        let clean = |text: String| text.replace(self.token.reveal(), "(hidden)");
        match error {
            CallError::Refused(refusal) => {
                CallError::Refused(Refusal { description: clean(refusal.description), ..refusal })
            }
            CallError::Misconfigured { reason } => CallError::Misconfigured { reason: clean(reason) },
            CallError::Unknown { reason } => CallError::Unknown { reason: clean(reason) },
            CallError::NotSent { reason, is_timeout } => CallError::NotSent { reason: clean(reason), is_timeout },
        }
    }
}

impl fmt::Debug for BotApi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BotApi").field("bot_id", &self.bot_id).field("host", &self.endpoint.authority()).finish()
    }
}

/// The request went out, and no answer came.
fn lost(error: hyper::Error) -> CallError {
    CallError::Unknown { reason: format!("the connection to Telegram was lost before its answer came ({error})") }
}

fn retry_after(response: &axum::http::Response<Incoming>) -> Option<Duration> {
    let value = response.headers().get(header::RETRY_AFTER)?;
    value.to_str().ok()?.parse().ok().map(Duration::from_secs)
}

async fn read(body: Incoming, status: StatusCode) -> Result<Bytes, CallError> {
    let read = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
    read.map(|body| body.to_bytes()).map_err(|error| CallError::Unknown {
        reason: format!("the answer of Telegram (status {}) ended early or is too long ({error})", status.as_u16()),
    })
}

#[cfg(test)]
mod tests;
