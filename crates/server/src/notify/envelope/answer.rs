use bellwire_core::notify::{ErrorClass, NotifyError};
use bellwire_core::person::clean;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::context::WireContext;
use super::read::Envelope;

/// In bytes: the longest id of a delivered message. A Message-ID fits on one line of a mail header.
const DELIVERY_ID_MAX: usize = 998;
/// In characters: how much of an error message from another process is passed on.
const MESSAGE_MAX: usize = 1_000;

/// notify_response.v1: what became of a notify request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NotifyResponse {
    pub(crate) schema_version: NotifyResponseVersion,
    /// The request that is answered.
    pub(crate) request_context: RequestId,
    /// Whether it was delivered.
    pub(crate) status: Status,
    /// What was delivered. Beside an error: the part that was delivered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) delivery: Option<Delivered>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<ErrorFields>,
}

/// route_response.v1: what became of a route.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RouteResponse {
    pub(crate) schema_version: RouteResponseVersion,
    /// The context of the route; absent if it could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) request_context: Option<WireContext>,
    /// Whether the route was carried out.
    pub(crate) status: Status,
    /// The result, also of most failures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) result: Option<RouteResult>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<ErrorFields>,
    /// How long it took.
    pub(crate) timing: Timing,
}

/// The result of a route.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RouteResult {
    /// The answer to the notify request.
    pub(crate) notify_response: NotifyResponse,
}

/// The answer of the Switchboard's tool `deliver`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeliverAnswer {
    /// The id under which the Switchboard recorded it.
    #[serde(default)]
    pub(crate) notification_id: Option<Uuid>,
    /// Whether it was delivered.
    pub(crate) status: DeliverStatus,
    /// The answer of the Messenger.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) result: Option<NotifyResponse>,
    /// What failed, as a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
    /// The class of the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error_class: Option<String>,
    /// Whether the same request may be made again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) retryable: Option<bool>,
    /// The time to wait before a retry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) retry_after_seconds: Option<u64>,
}

/// Whether a notify request was delivered.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum DeliverStatus {
    /// The provider accepted it.
    Sent,
    /// It did not, or that is not known.
    Failed,
}

/// Whether a step succeeded.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Status {
    /// It did.
    Ok,
    /// It did not.
    Error,
}

/// The version of the answer to a notify request.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) enum NotifyResponseVersion {
    #[serde(rename = "notify_response.v1")]
    V1,
}

/// The version of the answer to a route.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) enum RouteResponseVersion {
    #[serde(rename = "route_response.v1")]
    V1,
}

/// The request that an answer belongs to.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RequestId {
    /// Its id.
    pub(crate) request_id: Uuid,
}

/// A delivered message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Delivered {
    /// The channel.
    pub(crate) channel: String,
    /// The id of the message in the channel.
    pub(crate) delivery_id: String,
}

/// Why something failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ErrorFields {
    /// The class.
    pub(crate) class: String,
    /// What happened.
    pub(crate) message: String,
    /// Whether the same request may be made again.
    pub(crate) retryable: bool,
    /// The time to wait before a retry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) retry_after_seconds: Option<u64>,
}

/// How long a route took.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Timing {
    /// In milliseconds.
    pub(crate) duration_ms: u64,
}

impl Delivered {
    fn is_on(&self, channel: &str) -> bool {
        self.channel == channel && (1..=DELIVERY_ID_MAX).contains(&self.delivery_id.trim().len())
    }
}

/// What became of a notify request: where it was delivered, or why it was not.
pub(crate) type Outcome = Result<Delivered, Failure>;

/// A failed notify request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) error: NotifyError,
    /// The first part of a text that was delivered in part.
    pub(crate) first_part: Option<Delivered>,
}

impl From<NotifyError> for Failure {
    fn from(error: NotifyError) -> Self {
        Self { error, first_part: None }
    }
}

impl NotifyResponse {
    pub(crate) fn of(request_id: Uuid, outcome: Outcome) -> Self {
        let (status, delivery, error) = match outcome {
            Ok(delivered) => (Status::Ok, Some(delivered), None),
            Err(failure) => (Status::Error, failure.first_part, Some(failure.error.into())),
        };
        let request_context = RequestId { request_id };
        Self { schema_version: NotifyResponseVersion::V1, request_context, status, delivery, error }
    }

    /// The outcome that this answer proves. Only an answer that says `ok`, belongs to this request and names the message
    /// on this channel is a delivery. An answer that contradicts itself proves nothing.
    pub(crate) fn outcome(self, request_id: Uuid, channel: &str) -> Outcome {
        if self.request_context.request_id != request_id {
            return Err(unproven("the answer belongs to another request"));
        }
        match (self.status, self.delivery, self.error) {
            (Status::Ok, Some(delivered), None) if delivered.is_on(channel) => Ok(delivered),
            (Status::Error, first_part, Some(error)) => Err(Failure { error: error.into(), first_part }),
            (Status::Ok, Some(_), None) => Err(unproven("the answer names another channel, or no message")),
            (Status::Ok, ..) => Err(unproven("the answer says ok without a delivery, or with an error")),
            (Status::Error, _, None) => Err(unproven("the answer says error without one")),
        }
    }
}

impl RouteResponse {
    /// Whether the route failed.
    pub(crate) fn is_error(&self) -> bool {
        self.status == Status::Error
    }

    pub(crate) fn of(context: Option<WireContext>, outcome: Result<NotifyResponse, NotifyError>, millis: u64) -> Self {
        let (status, result, error) = match outcome {
            Ok(response) => (response.status, Some(response), None),
            Err(error) => (Status::Error, None, Some(error.into())),
        };
        let error = error.or_else(|| result.as_ref().and_then(|response| response.error.clone()));
        Self {
            schema_version: RouteResponseVersion::V1,
            request_context: context,
            status,
            result: result.map(|notify_response| RouteResult { notify_response }),
            error,
            timing: Timing { duration_ms: millis },
        }
    }

    /// The answer to the notify request in this answer to its route. An error without a notify response, such as that of an
    /// untrusted caller, is an error, and never a delivery.
    pub(crate) fn outcome(self, request_id: Uuid, channel: &str) -> Outcome {
        if self.request_context.is_some_and(|context| context.0.request_id != request_id) {
            return Err(unproven("the answer belongs to another request"));
        }
        match (self.status, self.result, self.error) {
            (Status::Ok, Some(result), None) => result.notify_response.outcome(request_id, channel),
            (Status::Ok, ..) => Err(unproven("the route answers ok without a notify response, or with an error")),
            (Status::Error, Some(result), _) => match result.notify_response.outcome(request_id, channel) {
                Ok(_) => Err(unproven("the route failed, and its notify response says ok")),
                failed => failed,
            },
            (Status::Error, None, Some(error)) => Err(Failure::from(NotifyError::from(error))),
            (Status::Error, None, None) => Err(unproven("the route failed without an error")),
        }
    }
}

impl DeliverAnswer {
    pub(crate) fn of(notification_id: Uuid, request_id: Uuid, outcome: Outcome) -> Self {
        let error = outcome.as_ref().err().map(|failure| failure.error.clone());
        let (status, error) = match error {
            None => (DeliverStatus::Sent, None),
            Some(error) => (DeliverStatus::Failed, Some(error)),
        };
        Self {
            notification_id: Some(notification_id),
            status,
            result: Some(NotifyResponse::of(request_id, outcome)),
            error_class: error.as_ref().map(|error| error.class.as_str().to_owned()),
            retryable: error.as_ref().map(|error| error.retryable),
            retry_after_seconds: error.as_ref().and_then(|error| error.retry_after_seconds),
            error: error.map(|error| error.message),
        }
    }

    /// A request that was refused before it had an id.
    pub(crate) fn refused(error: NotifyError) -> Self {
        Self {
            notification_id: None,
            status: DeliverStatus::Failed,
            result: None,
            error: Some(error.message),
            error_class: Some(error.class.as_str().to_owned()),
            retryable: Some(error.retryable),
            retry_after_seconds: error.retry_after_seconds,
        }
    }

    /// The outcome that this answer proves.
    pub(crate) fn outcome(self, request_id: Uuid, channel: &str) -> Outcome {
        match (self.status, self.result, self.error) {
            (DeliverStatus::Sent, Some(response), None) => response.outcome(request_id, channel),
            (DeliverStatus::Sent, ..) => Err(unproven("the answer says sent without a result, or with an error")),
            (DeliverStatus::Failed, Some(response), _) => match response.outcome(request_id, channel) {
                Ok(_) => Err(unproven("the answer says failed, and its result says ok")),
                failed => failed,
            },
            (DeliverStatus::Failed, None, Some(message)) => {
                let fields = ErrorFields {
                    class: self.error_class.unwrap_or_default(),
                    message,
                    retryable: self.retryable.unwrap_or(false),
                    retry_after_seconds: self.retry_after_seconds,
                };
                Err(Failure::from(NotifyError::from(fields)))
            }
            (DeliverStatus::Failed, None, None) => Err(unproven("the answer says failed without an error")),
        }
    }
}

/// The failure of an answer that does not say whether something was delivered.
pub(crate) fn unproven(reason: &str) -> Failure {
    NotifyError::unknown_outcome(reason).into()
}

/// An unknown class is an internal error. Only the classes that allow a retry can be retryable. A model reads the message,
/// so it is cleaned and cut.
impl From<ErrorFields> for NotifyError {
    fn from(fields: ErrorFields) -> Self {
        let class = ErrorClass::parse(&fields.class).unwrap_or(ErrorClass::InternalError);
        let retryable = fields.retryable && class.is_retryable();
        let message = clean(&fields.message).chars().take(MESSAGE_MAX).collect();
        Self { class, message, retryable, retry_after_seconds: fields.retry_after_seconds }
    }
}

impl From<NotifyError> for ErrorFields {
    fn from(error: NotifyError) -> Self {
        Self {
            class: error.class.as_str().to_owned(),
            message: error.message,
            retryable: error.retryable,
            retry_after_seconds: error.retry_after_seconds,
        }
    }
}

impl Envelope for RouteResponse {
    const OBJECTS: &'static [&'static str] = &[
        "request_context",
        "result",
        "result.notify_response",
        "result.notify_response.request_context",
        "result.notify_response.delivery",
        "result.notify_response.error",
        "error",
        "timing",
    ];
}

impl Envelope for DeliverAnswer {
    const OBJECTS: &'static [&'static str] = &["result", "result.request_context", "result.delivery", "result.error"];
}
