use std::fmt;
use std::time::Duration;

use axum::http::{StatusCode, header};
use bellwire_core::person::one_line;
use hyper::body::Bytes;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::http_client::HttpAnswer;

/// How much of the server's words is kept, in characters.
const DESCRIPTION_MAX: usize = 300;
/// The longest delay that is obeyed: a day, in seconds.
const RETRY_AFTER_MAX: u64 = 86_400;

/// Why a call has no result. Only what can be proven is claimed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CallError {
    /// No byte of the request was sent.
    NotSent {
        /// What went wrong.
        reason: String,
        /// Whether the time was up.
        is_timeout: bool,
    },
    /// The API has answered that it did not carry the call out.
    Refused(ApiRefusal),
    /// The call was not carried out because the settings are wrong: the token, or the address of the API.
    Misconfigured {
        /// What is wrong and what to change.
        reason: String,
    },
    /// The request went out, and no readable answer came: it may have been carried out.
    Unknown {
        /// What happened.
        reason: String,
    },
}

/// An answer of the API that refuses a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ApiRefusal {
    /// The error code, such as 400.
    pub(crate) code: u16,
    /// What the API says, on one line.
    pub(crate) description: String,
    /// The delay that the API asks for.
    pub(crate) retry_after: Option<Duration>,
}

impl CallError {
    pub(crate) fn not_sent(reason: String) -> Self {
        Self::NotSent { reason, is_timeout: false }
    }

    /// The refusal with this code, if it is one.
    pub(crate) fn refusal(&self, code: u16) -> Option<&ApiRefusal> {
        match self {
            Self::Refused(refusal) if refusal.code == code => Some(refusal),
            _ => None,
        }
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSent { reason, .. } | Self::Misconfigured { reason } | Self::Unknown { reason } => {
                f.write_str(reason)
            }
            Self::Refused(ApiRefusal { code, description, .. }) => write!(f, "Telegram answered {code}: {description}"),
        }
    }
}

/// An answer as it came.
pub(super) struct Answer {
    status: StatusCode,
    retry_after: Option<Duration>,
    body: Bytes,
}

/// The delay that the API asks for, within bounds.
fn obeyed(seconds: u64) -> Duration {
    Duration::from_secs(seconds.min(RETRY_AFTER_MAX))
}

impl From<HttpAnswer> for Answer {
    fn from(answer: HttpAnswer) -> Self {
        let seconds = answer.headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
        Self { status: answer.status, retry_after: seconds.map(obeyed), body: answer.body }
    }
}

#[derive(Deserialize)]
struct ApiAnswer<'a> {
    ok: bool,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    error_code: Option<u16>,
    #[serde(default)]
    description: String,
    #[serde(default)]
    parameters: EnvelopeParameters,
}

#[derive(Default, Deserialize)]
struct EnvelopeParameters {
    retry_after: Option<u64>,
}

impl Answer {
    /// The result, if the answer is one of the Bot API and says that the call was carried out.
    pub(super) fn into_result<R: DeserializeOwned>(self) -> Result<R, CallError> {
        let Ok(envelope) = serde_json::from_slice::<ApiAnswer<'_>>(&self.body) else { return Err(self.foreign()) };
        if envelope.ok {
            let result = envelope.result.and_then(|result| serde_json::from_str(result.get()).ok());
            return result.ok_or_else(|| CallError::Unknown {
                reason: "Telegram answered that all is well, without a readable result".to_owned(),
            });
        }
        let code = envelope.error_code.unwrap_or(self.status.as_u16());
        let description: String = one_line(&envelope.description).chars().take(DESCRIPTION_MAX).collect();
        let retry_after = envelope.parameters.retry_after.map(obeyed).or(self.retry_after);
        match code {
            401 | 404 => Err(CallError::Misconfigured {
                reason: format!(
                    "Telegram does not accept the bot's token ({code}: {description}); check telegram.token and \
                     telegram.api_url"
                ),
            }),
            // A gateway does not know what became of the call.
            502 | 504 => Err(CallError::Unknown { reason: format!("Telegram answered {code}: {description}") }),
            code => Err(CallError::Refused(ApiRefusal { code, description, retry_after })),
        }
    }

    /// What an answer means that is not one of the Bot API.
    fn foreign(&self) -> CallError {
        let status = self.status.as_u16();
        match self.status {
            status if status == StatusCode::TOO_MANY_REQUESTS => CallError::Refused(ApiRefusal {
                code: status.as_u16(),
                description: "too many requests".to_owned(),
                retry_after: self.retry_after,
            }),
            code if code.is_redirection() || code.is_client_error() => CallError::Misconfigured {
                reason: format!("telegram.api_url answers {status} and is no Bot API; check the address"),
            },
            _ => CallError::Unknown { reason: format!("Telegram answered {status} with an unreadable text") },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delay_of_any_length_is_obeyed_for_a_day_at_most() {
        let body = Bytes::from(r#"{"ok":false,"error_code":429,"parameters":{"retry_after":18446744073709551615}}"#);
        let answer = Answer { status: StatusCode::TOO_MANY_REQUESTS, retry_after: None, body };
        let error = answer.into_result::<bool>().expect_err("it is a refusal");
        assert_eq!(error.refusal(429).and_then(|refusal| refusal.retry_after), Some(Duration::from_secs(86_400)));
    }
}
