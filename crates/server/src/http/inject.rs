use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::{Extension, Json};
use bellwire_core::conversation::{Observed, Outcome};
use bellwire_core::event::AgentName;
use bellwire_core::inject::{Limits, Shape, Style};
use bellwire_core::{Inject, InjectionPoint};
use bellwire_store::Take;
use serde::Deserialize;
use serde_json::{Value, json};

use super::correlation::Correlation;
use super::{ApiError, Hub};
use crate::auth::Identity;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ask {
    point: String,
    call_id: String,
    agent: Option<String>,
    tool_result: Option<String>,
    /// Errors are augmented exactly like successes; it is here because harnesses send it.
    #[serde(rename = "is_error")]
    _is_error: Option<bool>,
    style: Option<String>,
    shape: Option<String>,
    max_items: Option<usize>,
    max_tokens: Option<usize>,
    #[serde(default)]
    unseen: Vec<String>,
    #[serde(default)]
    wake_only: bool,
    observed: Option<Seen>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Seen {
    tool_name: String,
    outcome: String,
    arguments: Option<Value>,
    error_type: Option<String>,
    error_message: Option<String>,
    duration_ms: Option<u64>,
    usage: Option<Value>,
}

/// How many unseen calls one injection may name.
const UNSEEN_MAX: usize = 100;

/// Gives an agent its mail at an injection point: one round trip, the same answer for the same call id.
pub(super) async fn inject(
    State(hub): State<Hub>,
    Extension(identity): Extension<Identity>,
    correlation: Extension<Correlation>,
    Path(id): Path<String>,
    body: Bytes,
) -> Result<Json<Value>, ApiError> {
    let ask: Ask = serde_json::from_slice(&body).map_err(|error| ApiError::body(&error))?;
    let tool_result = ask.tool_result.clone().unwrap_or_default();
    let style = word("style", ask.style.as_deref(), Style::parse)?.unwrap_or(Style::Block);
    let mut take = ask.into_take(id, identity, style)?;
    take.correlation_id = Some(correlation.id.clone());
    let given = hub.store.take(take).await?;
    let mut answer = json!({
        "block": given.block, "content": given.content(&tool_result), "notifications": given.notifications,
        "count": given.count, "showing": given.showing, "folded": given.folded, "pending": given.pending,
    });
    if style == Style::Synthetic {
        answer["messages"] = given.messages.into();
    }
    Ok(Json(answer))
}

impl Ask {
    fn into_take(self, conversation_id: String, identity: Identity, style: Style) -> Result<Take, ApiError> {
        let point = InjectionPoint::parse(&self.point).map_err(|message| ApiError::invalid("point", message))?;
        let mut request = Inject::new(point, &self.call_id)?;
        request.style = style;
        request.shape = word("shape", self.shape.as_deref(), Shape::parse)?.unwrap_or(Shape::Anthropic);
        let default = Limits::default();
        request.limits =
            Limits::new(self.max_items.unwrap_or(default.items_max), self.max_tokens.unwrap_or(default.tokens_max))?;
        request.wake_only = self.wake_only;
        if self.unseen.len() > UNSEEN_MAX {
            return Err(ApiError::invalid(
                "unseen",
                format!("names {} calls; at most {UNSEEN_MAX}", self.unseen.len()),
            ));
        }
        let agent = self.agent.map_or_else(|| Ok(AgentName::main()), |agent| AgentName::parse(&agent))?;
        let observed = self.observed.map(Seen::into_observed).transpose()?;
        Ok(Take {
            caller: identity.caller,
            conversation_id,
            agent,
            request,
            observed,
            unseen: self.unseen,
            correlation_id: None,
        })
    }
}

impl Seen {
    fn into_observed(self) -> Result<Observed, ApiError> {
        let outcome = match self.outcome.as_str() {
            "success" => Outcome::Success,
            "failure" => Outcome::Failure,
            "timeout" => Outcome::Timeout,
            _ => return Err(ApiError::invalid("observed.outcome", "must be one of: success, failure, timeout")),
        };
        let observed = Observed {
            tool_name: self.tool_name,
            outcome,
            arguments: self.arguments,
            error_type: self.error_type,
            error_message: self.error_message,
            duration_ms: self.duration_ms,
            usage: self.usage,
        };
        // What cannot become an event is refused here, before anything is asked of the store.
        observed.clone().into_event().map_err(|invalid| ApiError {
            field: Some(format!("observed.{}", invalid.field)),
            ..ApiError::from(invalid)
        })?;
        Ok(observed)
    }
}

fn word<T>(
    field: &'static str,
    text: Option<&str>,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<Option<T>, ApiError> {
    text.map(|text| parse(text).map_err(|message| ApiError::invalid(field, message))).transpose()
}
