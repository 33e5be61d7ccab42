use std::sync::Arc;

use bellwire_core::Inject;
use bellwire_core::event::AgentName;
use bellwire_store::{Caller, IdempotencyKey};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::auth::Identity;
use crate::clock;
use crate::http::{ApiError, ID_MAX};

/// The user, conversation and agent of a tool call, checked against the token.
#[derive(Clone, Debug)]
pub(crate) struct Context {
    /// The authenticated token.
    pub(crate) identity: Arc<Identity>,
    /// The user the agent works for.
    pub(crate) user_id: Option<String>,
    /// The conversation in which the tool is called.
    pub(crate) conversation_id: Option<String>,
    /// The agent in the conversation; `None` if the client did not name it.
    pub(crate) agent: Option<AgentName>,
    /// The correlation id of the request.
    pub(crate) correlation_id: String,
    /// The client's key for this call; a repeated call has the same.
    pub(crate) idempotency_key: Option<String>,
    /// The call id of the injection that belongs to the tool call: the idempotency key, else a new id.
    pub(super) call_id: String,
}

/// The context that a client requests, not yet checked against the token.
#[derive(Clone, Debug, Default)]
pub(crate) struct RequestedContext {
    pub(crate) user_id: Option<String>,
    pub(crate) conversation_id: Option<String>,
    pub(crate) agent: Option<String>,
    pub(crate) correlation_id: Option<String>,
    pub(crate) idempotency_key: Option<String>,
}

impl RequestedContext {
    /// All fields with their names.
    pub(crate) fn fields(&mut self) -> [(&'static str, &mut Option<String>); 5] {
        [
            ("user_id", &mut self.user_id),
            ("conversation_id", &mut self.conversation_id),
            ("agent", &mut self.agent),
            ("correlation_id", &mut self.correlation_id),
            ("idempotency_key", &mut self.idempotency_key),
        ]
    }
}

impl Context {
    /// Validates the requested context. Fields that the token is bound to may be left out, but not differ; an admin's
    /// session is bound to its person.
    pub(crate) fn of(
        identity: Arc<Identity>,
        mut requested: RequestedContext,
        correlation_id: &str,
    ) -> Result<Self, ApiError> {
        for (field, text) in requested.fields() {
            let max = if field == "idempotency_key" { Inject::CALL_ID_MAX } else { ID_MAX };
            check(field, text.as_deref(), max)?;
        }
        let agent = requested.agent.as_deref().map(AgentName::parse).transpose()?;
        requested.user_id.as_deref().map_or(Ok(()), |user| identity.check_session_acts_for(user))?;
        let identity = identity.acting_as_own_person()?;
        let user_id = bound("user_id", identity.caller.user_id.clone(), requested.user_id)?;
        let conversation_id =
            bound("conversation_id", identity.caller.conversation_id.clone(), requested.conversation_id)?;
        let correlation_id = requested.correlation_id.unwrap_or_else(|| correlation_id.to_owned());
        let idempotency_key = requested.idempotency_key;
        let call_id = idempotency_key.clone().unwrap_or_else(|| clock::new_id().to_string());
        Ok(Self { identity, user_id, conversation_id, agent, correlation_id, idempotency_key, call_id })
    }

    /// The caller for the store: restricted to this user, even if the token may act for others.
    pub(crate) fn caller(&self) -> Caller {
        Caller { user_id: self.user_id.clone(), ..self.identity.caller.clone() }
    }

    /// The token's origin, which people see as the sender. Every token that may call tools has one.
    pub(crate) fn origin(&self) -> String {
        self.identity.origin.clone().unwrap_or_else(|| "unnamed".to_owned())
    }

    /// The agent whose mailbox is used; `main` if the client did not name one.
    pub(crate) fn agent(&self) -> AgentName {
        self.agent.clone().unwrap_or_else(AgentName::main)
    }

    /// The idempotency key of the call, scoped to the token and the tool. `meaning` is the call's effect, which is hashed
    /// instead of the request, so that the same call over MCP and REST is recognised.
    pub(super) fn idempotency_key(&self, tool: &str, meaning: &Value) -> Option<IdempotencyKey> {
        let content = Sha256::digest(bellwire_core::event::canonical_json(meaning).as_bytes()).into();
        let key = self.idempotency_key.clone()?;
        Some(IdempotencyKey { token_id: self.identity.token_id.clone(), route: format!("tool {tool}"), key, content })
    }
}

fn check(field: &str, text: Option<&str>, max: usize) -> Result<(), ApiError> {
    let Some(text) = text else { return Ok(()) };
    let length = text.chars().count();
    if !(1..=max).contains(&length) {
        let message = format!("has {length} characters; 1 to {max} are allowed");
        return Err(ApiError::invalid(format!("context.{field}"), message));
    }
    match text.chars().any(char::is_control) {
        true => Err(ApiError::invalid(format!("context.{field}"), "contains a control character; leave it out")),
        false => Ok(()),
    }
}

fn bound(field: &str, bound: Option<String>, requested: Option<String>) -> Result<Option<String>, ApiError> {
    match (&bound, &requested) {
        (Some(own), Some(other)) if own != other => Err(ApiError {
            field: Some(format!("context.{field}")),
            ..ApiError::forbidden(format!("this token is bound to another {field}; leave it out"))
        }),
        _ => Ok(bound.or(requested)),
    }
}
