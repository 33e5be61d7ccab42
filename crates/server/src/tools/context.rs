use std::sync::Arc;

use bellwire_core::Inject;
use bellwire_core::event::AgentName;
use bellwire_store::{Caller, IdempotencyKey};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::auth::Identity;
use crate::clock;
use crate::http::{ApiError, ID_MAX};

/// For whom and in which conversation a tool is called.
#[derive(Clone, Debug)]
pub(crate) struct Context {
    /// Who was authenticated.
    pub(crate) identity: Arc<Identity>,
    /// The person the agent works for.
    pub(crate) user_id: Option<String>,
    /// The conversation the call is made in.
    pub(crate) conversation_id: Option<String>,
    /// The agent inside it; none = the caller did not say.
    pub(crate) agent: Option<AgentName>,
    /// The thread of work it belongs to.
    pub(crate) correlation_id: String,
    /// The caller's name for this very call.
    pub(crate) idempotency_key: Option<String>,
}

/// A context as a caller states it, before it is known whether it may.
#[derive(Clone, Debug, Default)]
pub(crate) struct RequestedContext {
    pub(crate) user_id: Option<String>,
    pub(crate) conversation_id: Option<String>,
    pub(crate) agent: Option<String>,
    pub(crate) correlation_id: Option<String>,
    pub(crate) idempotency_key: Option<String>,
}

impl RequestedContext {
    /// Every field, by its name.
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
    /// What was asked for, if the token lets its bearer ask for it. What a token is bound to needs no saying.
    pub(crate) fn of(
        identity: Arc<Identity>,
        mut asked: RequestedContext,
        correlation_id: &str,
    ) -> Result<Self, ApiError> {
        for (field, text) in asked.fields() {
            let most = if field == "idempotency_key" { Inject::CALL_ID_MAX } else { ID_MAX };
            check(field, text.as_deref(), most)?;
        }
        let agent = asked.agent.as_deref().map(AgentName::parse).transpose()?;
        let user_id = bound("user_id", identity.caller.user_id.clone(), asked.user_id)?;
        let conversation_id = bound("conversation_id", identity.caller.conversation_id.clone(), asked.conversation_id)?;
        let correlation_id = asked.correlation_id.unwrap_or_else(|| correlation_id.to_owned());
        Ok(Self { identity, user_id, conversation_id, agent, correlation_id, idempotency_key: asked.idempotency_key })
    }

    /// On whose behalf the store is asked: for this person only, whatever else the token might do.
    pub(crate) fn caller(&self) -> Caller {
        Caller { user_id: self.user_id.clone(), ..self.identity.caller.clone() }
    }

    /// The name under which the token lets its bearer speak to people. Every token that may call a tool has one.
    pub(super) fn origin(&self) -> String {
        self.identity.origin.clone().unwrap_or_else(|| "unnamed".to_owned())
    }

    /// The agent that reads what is for it; the conversation's own where nobody said.
    pub(super) fn agent(&self) -> AgentName {
        self.agent.clone().unwrap_or_else(AgentName::main)
    }

    /// The call's name among those of this token and tool, if the caller gave it one. What it stands for is told by
    /// what it does, so that the same call means the same over every way in.
    pub(super) fn once(&self, tool: &str, meaning: &Value) -> Option<IdempotencyKey> {
        let content = Sha256::digest(bellwire_core::event::canonical_json(meaning).as_bytes()).into();
        let key = self.idempotency_key.clone()?;
        Some(IdempotencyKey { token_id: self.identity.token_id.clone(), route: format!("tool {tool}"), key, content })
    }

    /// The name of the injection that goes with the call.
    pub(super) fn call_id(&self) -> String {
        self.idempotency_key.clone().unwrap_or_else(|| {
            let millis = clock::now().as_millis().unsigned_abs();
            uuid::Builder::from_unix_timestamp_millis(millis, &clock::random()).into_uuid().to_string()
        })
    }
}

fn check(field: &str, text: Option<&str>, most: usize) -> Result<(), ApiError> {
    let Some(text) = text else { return Ok(()) };
    let length = text.chars().count();
    if !(1..=most).contains(&length) {
        let message = format!("has {length} characters; 1 to {most} are allowed");
        return Err(ApiError::invalid(format!("context.{field}"), message));
    }
    match text.chars().any(char::is_control) {
        true => Err(ApiError::invalid(format!("context.{field}"), "contains a control character; leave it out")),
        false => Ok(()),
    }
}

fn bound(field: &str, bound: Option<String>, asked: Option<String>) -> Result<Option<String>, ApiError> {
    match (&bound, &asked) {
        (Some(own), Some(other)) if own != other => Err(ApiError {
            field: Some(format!("context.{field}")),
            ..ApiError::forbidden(format!("this token is bound to another {field}; leave it out"))
        }),
        _ => Ok(bound.or(asked)),
    }
}
