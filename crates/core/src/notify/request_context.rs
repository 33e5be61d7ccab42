use std::fmt;

use serde_json::{Map, Value};
use uuid::Uuid;

use crate::Time;
use crate::event::excerpt;
use crate::person::{Argument, object, value_kind};

/// In characters: the longest name of a channel, an endpoint or a sender.
const IDENTITY_MAX: usize = 512;
/// In characters: the longest thread identity. A Message-ID fits on one line of a mail header.
const THREAD_MAX: usize = 998;
const TIME_MAX: usize = 64;

const REQUEST_ID: &str = "request_id";
const SOURCE_CHANNEL: &str = "source_channel";
const ENDPOINT: &str = "source_endpoint_identity";
const SENDER: &str = "source_sender_identity";
const THREAD: &str = "source_thread_identity";
const RECEIVED_AT: &str = "received_at";

/// The inbound request that a `notify` call belongs to: where it came from, and the thread that a reply goes to.
///
/// The fields are kept as they came, because they are passed on unchanged. Only the id is normalised to lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestContext {
    /// The id of the request.
    pub request_id: Uuid,
    /// The channel it came in by.
    pub source_channel: String,
    /// The account or component that received it.
    pub source_endpoint_identity: String,
    /// Its sender.
    pub source_sender_identity: String,
    /// The message in its thread: for Telegram `<chat_id>:<message_id>`, for email a Message-ID.
    pub source_thread_identity: Option<String>,
    /// When it was received, in RFC 3339.
    pub received_at: Option<String>,
}

/// Why a request context was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContextError {
    /// It is not an object; what it is instead.
    NotAnObject(&'static str),
    /// It has a field that is not known.
    Unknown(String),
    /// It lacks a required field.
    Missing(&'static str),
    /// The value of a field is invalid.
    Invalid {
        /// The field.
        field: &'static str,
        /// What came and what is allowed.
        message: String,
    },
}

impl RequestContext {
    /// The fields, as the tool's schema describes them.
    pub const FIELDS: &[Argument] = &[
        Argument::text(REQUEST_ID, 36, 36, "The UUID of the inbound request.").required(),
        Argument::text(SOURCE_CHANNEL, 1, IDENTITY_MAX, "The channel it came in by, such as telegram.").required(),
        Argument::text(ENDPOINT, 1, IDENTITY_MAX, "The account that received it, such as telegram:<bot id>.")
            .required(),
        Argument::text(SENDER, 1, IDENTITY_MAX, "Who sent it.").required(),
        Argument::text(
            THREAD,
            1,
            THREAD_MAX,
            "The message that is answered: <chat_id>:<message_id> on Telegram (required there), a Message-ID in email.",
        ),
        Argument::moment(RECEIVED_AT, "When it was received."),
    ];
    const REQUIRED: [&str; 4] = [REQUEST_ID, SOURCE_CHANNEL, ENDPOINT, SENDER];

    /// Reads an object, or a string that contains one as JSON. Missing fields are reported first, in their order.
    pub fn parse(value: &Value) -> Result<Self, ContextError> {
        let fields = object(value).ok_or_else(|| ContextError::NotAnObject(value_kind(value)))?;
        let known = |name: &String| Self::FIELDS.iter().any(|field| field.name == name);
        if let Some(unknown) = fields.keys().find(|name| !known(name)) {
            return Err(ContextError::Unknown(excerpt(unknown)));
        }
        let is_missing = |field: &&str| fields.get(*field).is_none_or(Value::is_null);
        if let Some(missing) = Self::REQUIRED.iter().find(|field| is_missing(field)) {
            return Err(ContextError::Missing(missing));
        }
        let required = |field, max| text(&fields, field, max).and_then(|text| text.ok_or(ContextError::Missing(field)));
        let context = Self {
            request_id: required(REQUEST_ID, IDENTITY_MAX).and_then(|text| request_id(&text))?,
            source_channel: required(SOURCE_CHANNEL, IDENTITY_MAX)?,
            source_endpoint_identity: required(ENDPOINT, IDENTITY_MAX)?,
            source_sender_identity: required(SENDER, IDENTITY_MAX)?,
            source_thread_identity: text(&fields, THREAD, THREAD_MAX)?,
            received_at: text(&fields, RECEIVED_AT, TIME_MAX)?,
        };
        context.check()?;
        Ok(context)
    }

    /// The context as JSON, which [`parse`](Self::parse) reads.
    pub fn to_json(&self) -> Value {
        serde_json::json!({
            "request_id": self.request_id,
            "source_channel": self.source_channel,
            "source_endpoint_identity": self.source_endpoint_identity,
            "source_sender_identity": self.source_sender_identity,
            "source_thread_identity": self.source_thread_identity,
            "received_at": self.received_at,
        })
    }

    /// The thread identity, for a channel that cannot answer without one.
    pub fn thread(&self) -> Result<&str, ContextError> {
        self.source_thread_identity.as_deref().ok_or(ContextError::Missing(THREAD))
    }

    fn check(&self) -> Result<(), ContextError> {
        match self.received_at.as_deref().map(str::parse::<Time>) {
            Some(Err(error)) => Err(ContextError::Invalid { field: RECEIVED_AT, message: error.to_string() }),
            _ => Ok(()),
        }
    }
}

/// Only the usual form with hyphens is accepted.
fn request_id(text: &str) -> Result<Uuid, ContextError> {
    let id = Uuid::try_parse(text).ok().filter(|id| id.hyphenated().to_string().eq_ignore_ascii_case(text));
    id.ok_or_else(|| {
        let message = format!("'{}' is not a UUID such as 0190a3c2-7b1e-7000-8000-000000000001", excerpt(text));
        ContextError::Invalid { field: REQUEST_ID, message }
    })
}

fn text(fields: &Map<String, Value>, field: &'static str, max: usize) -> Result<Option<String>, ContextError> {
    let invalid = |message: String| Err(ContextError::Invalid { field, message });
    let text = match fields.get(field) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) => text,
        Some(other) => return invalid(format!("must be text, not {}", value_kind(other))),
    };
    let length = text.chars().count();
    if text.trim().is_empty() || length > max {
        return invalid(format!("has {length} characters; 1 to {max} are allowed, not only spaces"));
    }
    match text.chars().find(|c| c.is_control()) {
        Some(control) => invalid(format!("contains the control character {control:?}")),
        None => Ok(Some(text.clone())),
    }
}

impl ContextError {
    /// The field at fault, if it is one.
    pub fn field(&self) -> Option<&str> {
        match self {
            Self::NotAnObject(_) => None,
            Self::Unknown(field) => Some(field),
            Self::Missing(field) | Self::Invalid { field, .. } => Some(field),
        }
    }
}

impl fmt::Display for ContextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAnObject(kind) => {
                write!(f, "request_context must be an object with {}, not {kind}", RequestContext::REQUIRED.join(", "))
            }
            Self::Unknown(field) => {
                let allowed: Vec<&str> = RequestContext::FIELDS.iter().map(|field| field.name).collect();
                write!(f, "Unknown request_context field '{field}'. Allowed: {}", allowed.join(", "))
            }
            Self::Missing(field) => write!(
                f,
                "Missing required request_context field '{field}'. Copy the whole request_context of the message you \
                 answer"
            ),
            Self::Invalid { field, message } => write!(f, "Invalid request_context field '{field}': {message}"),
        }
    }
}

impl std::error::Error for ContextError {}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn whole() -> Value {
        json!({
            "request_id": "0190A3C2-7b1e-7000-8000-000000000001",
            "source_channel": "telegram",
            "source_endpoint_identity": "telegram:42",
            "source_sender_identity": "7",
            "source_thread_identity": "12:34",
            "received_at": "2026-01-03T15:30:00+01:00",
        })
    }

    fn with(field: &str, value: Value) -> Result<RequestContext, String> {
        let mut context = whole();
        context[field] = value;
        RequestContext::parse(&context).map_err(|error| error.to_string())
    }

    #[test]
    fn fields_are_kept_as_they_came_also_in_a_json_string() {
        let context = RequestContext::parse(&whole()).unwrap();
        assert_eq!(context.received_at.as_deref(), Some("2026-01-03T15:30:00+01:00"));
        assert_eq!(context.request_id, Uuid::from_u128(0x0190_a3c2_7b1e_7000_8000_0000_0000_0001));
        assert_eq!(RequestContext::parse(&json!(whole().to_string())), Ok(context));
    }

    #[test]
    fn optional_fields_may_be_left_out_or_null() {
        for field in ["source_thread_identity", "received_at"] {
            assert!(with(field, Value::Null).is_ok(), "{field}");
        }
        let context = with("source_thread_identity", Value::Null).unwrap();
        assert_eq!(context.thread(), Err(ContextError::Missing("source_thread_identity")));
    }

    #[test]
    fn refusals_name_the_field_and_the_fix() {
        let problem = |field, value| with(field, value).unwrap_err();
        for field in RequestContext::REQUIRED {
            let expected = format!("Missing required request_context field '{field}'");
            assert!(problem(field, Value::Null).starts_with(&expected), "{field}");
            assert!(problem(field, json!(" ")).starts_with(&format!("Invalid request_context field '{field}'")));
            assert!(problem(field, json!(5)).ends_with("must be text, not a number"));
        }
        for id in ["abc", "0190a3c27b1e70008000000000000001", "{0190a3c2-7b1e-7000-8000-000000000001}"] {
            assert!(problem("request_id", json!(id)).contains("is not a UUID"), "{id}");
        }
        assert!(problem("received_at", json!("2026-01-03T15:30:00")).contains("append Z"));
        assert!(problem("source_channel", json!("a\nb")).contains("control character"));
        assert!(problem("source_sender_identity", json!("x".repeat(513))).contains("1 to 512 are allowed"));
        assert!(
            problem("colour", json!(1)).starts_with("Unknown request_context field 'colour'. Allowed: request_id,")
        );
        for wrong in [json!([]), json!("nonsense"), json!(7), json!("[1]")] {
            let error = RequestContext::parse(&wrong).unwrap_err();
            assert!(error.to_string().starts_with("request_context must be an object with request_id,"), "{wrong}");
        }
    }
}
