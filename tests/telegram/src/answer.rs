//! Answers as Telegram sends them: `{ok, result}` or `{ok, error_code, description, parameters}`.

use serde_json::{Value, json};

/// The answer to one call.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    Ok(Value),
    Error { code: u16, description: String, retry_after: Option<u64> },
}

impl Answer {
    pub(crate) fn bad_request(description: &str) -> Self {
        Self::error(400, format!("Bad Request: {description}"))
    }

    pub(crate) fn error(code: u16, description: impl Into<String>) -> Self {
        Self::Error { code, description: description.into(), retry_after: None }
    }

    pub(crate) fn too_many_requests(retry_after: u64) -> Self {
        let description = format!("Too Many Requests: retry after {retry_after}");
        Self::Error { code: 429, description, retry_after: Some(retry_after) }
    }

    pub(crate) fn status(&self) -> u16 {
        match self {
            Self::Ok(_) => 200,
            Self::Error { code, .. } => *code,
        }
    }

    pub(crate) fn description(&self) -> Option<&str> {
        match self {
            Self::Ok(_) => None,
            Self::Error { description, .. } => Some(description),
        }
    }

    pub(crate) fn into_body(self) -> String {
        match self {
            Self::Ok(result) => format!(r#"{{"ok":true,"result":{result}}}"#),
            Self::Error { code, description, retry_after } => {
                let mut body = json!({"ok": false, "error_code": code, "description": description});
                if let Some(retry_after) = retry_after {
                    body["parameters"] = json!({"retry_after": retry_after});
                }
                body.to_string()
            }
        }
    }
}

/// What a method returns: its result, or the answer that refuses the call.
pub(crate) type Outcome = Result<Value, Answer>;
