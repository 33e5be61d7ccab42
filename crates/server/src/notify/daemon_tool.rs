//! The tools between the processes: `deliver` of the Switchboard and `route.execute` of the Messenger, with the checks of
//! their callers. A field of the request never authenticates.

use bellwire_core::notify::NotifyError;
use bellwire_core::person::one_line;
use schemars::schema_for;
use serde::Serialize;
use serde_json::{Map, Value};

use super::attempt::{Asker, Question};
use super::envelope::{
    ASKS_AGAIN, AnswerMeta, DeliverAnswer, DeliverArguments, DeliverStatus, Envelope, RouteEnvelope, RouteResponse,
};
use super::refusal::{Refusal, RefusedRequest};
use super::{messenger, switchboard};
use crate::auth::{Identity, Scope, reserved_origin};
use crate::http::Hub;

/// In characters: the longest origin.
const ORIGIN_MAX: usize = 128;

/// A tool for other processes of the hub.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum DaemonTool {
    /// The Switchboard's.
    Deliver,
    /// The Messenger's.
    RouteExecute,
}

impl DaemonTool {
    /// The name in MCP.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Deliver => "deliver",
            Self::RouteExecute => "route.execute",
        }
    }

    pub(crate) const fn description(self) -> &'static str {
        match self {
            Self::Deliver => "Delivers a notify.v1 request through the Messenger, once.",
            Self::RouteExecute => "Carries out a route.v1 with a notify.v1 request, once.",
        }
    }

    pub(crate) fn input_schema(self) -> Map<String, Value> {
        match self {
            Self::Deliver => object(schema_for!(DeliverArguments)),
            Self::RouteExecute => object(schema_for!(RouteEnvelope)),
        }
    }

    pub(crate) fn output_schema(self) -> Map<String, Value> {
        match self {
            Self::Deliver => object(schema_for!(DeliverAnswer)),
            Self::RouteExecute => object(schema_for!(RouteResponse)),
        }
    }

    /// Calls the tool. `meta` is `_meta` of the call.
    pub(crate) async fn call(
        self,
        hub: &Hub,
        caller: &Identity,
        arguments: Value,
        meta: &Map<String, Value>,
    ) -> DaemonAnswer {
        let question = match meta.get(ASKS_AGAIN) {
            Some(Value::Bool(true)) => Question::Again,
            _ => Question::First,
        };
        let asker = Asker::Elsewhere(question);
        match self {
            Self::Deliver => {
                let (answer, meta) = deliver(hub, caller, arguments, asker).await;
                let is_error = answer.status == DeliverStatus::Failed;
                DaemonAnswer { value: json(&answer), is_error, meta: meta.into_map() }
            }
            Self::RouteExecute => {
                let (answer, meta) = route_execute(hub, caller, arguments, asker).await;
                DaemonAnswer { value: json(&answer), is_error: answer.is_error(), meta: meta.into_map() }
            }
        }
    }
}

/// The answer of a tool.
pub(crate) struct DaemonAnswer {
    pub(crate) value: Value,
    pub(crate) is_error: bool,
    /// `_meta` of the result.
    pub(crate) meta: Map<String, Value>,
}

async fn deliver(hub: &Hub, caller: &Identity, arguments: Value, asker: Asker<'_>) -> (DeliverAnswer, AnswerMeta) {
    match checked_request(caller, arguments) {
        Ok(arguments) => switchboard::deliver(hub, arguments, asker).await,
        Err(refusal) => {
            refused_request(caller).record(hub, &refusal).await;
            (DeliverAnswer::refused(refusal.error), AnswerMeta::default())
        }
    }
}

/// An admin token speaks as itself. A daemon token asserts the origins that its process has authenticated.
fn checked_request(caller: &Identity, arguments: Value) -> Result<DeliverArguments, Refusal> {
    let arguments =
        DeliverArguments::read(arguments).map_err(|error| Refusal::invalid("envelope", error.to_string()))?;
    let asserted = arguments.source_butler.as_str();
    if caller.session.is_some() {
        let message = "A session cannot call deliver: use a token of scope admin or daemon";
        return Err(Refusal::invalid("caller", message));
    }
    let forged = |message: String| Err(Refusal::invalid("origin", format!("source_butler: {message}")));
    if asserted != arguments.notify_request.origin_butler {
        return forged("it must equal notify_request.origin_butler".to_owned());
    }
    match caller.scope {
        Scope::Daemon if reserved_origin(asserted).is_some() => forged("this name is reserved".to_owned()),
        Scope::Daemon if !(1..=ORIGIN_MAX).contains(&asserted.chars().count()) || one_line(asserted) != asserted => {
            forged(format!("a name has 1 to {ORIGIN_MAX} visible characters on one line"))
        }
        Scope::Daemon => Ok(arguments),
        _ if caller.origin.as_deref() == Some(asserted) => Ok(arguments),
        _ => forged(format!(
            "this token speaks as '{}' and for no other origin; name it in the header Bellwire-Origin",
            caller.origin.as_deref().unwrap_or_default()
        )),
    }
}

async fn route_execute(
    hub: &Hub,
    caller: &Identity,
    arguments: Value,
    asker: Asker<'_>,
) -> (RouteResponse, AnswerMeta) {
    let refusal = match RouteEnvelope::read(arguments) {
        Ok(route) if is_trusted(hub, caller) => return messenger::execute(hub, route, asker).await,
        Ok(_) => {
            let message = "The caller is not trusted: only the switchboard's token may call route.execute";
            Refusal::invalid("caller", message)
        }
        Err(error) => Refusal::invalid("envelope", error.to_string()),
    };
    refused_request(caller).record(hub, &refusal).await;
    (RouteResponse::of(None, Err(refusal.error), 0), AnswerMeta::default())
}

fn is_trusted(hub: &Hub, caller: &Identity) -> bool {
    let is_listed = |origin: &str| hub.notify.trusted_route_callers.iter().any(|trusted| trusted == origin);
    caller.scope == Scope::Daemon && caller.origin.as_deref().is_some_and(is_listed)
}

fn refused_request(caller: &Identity) -> RefusedRequest {
    let origin = caller.origin.clone().unwrap_or_else(|| caller.scope.as_str().to_owned());
    RefusedRequest { origin, ..RefusedRequest::default() }
}

fn json(answer: &impl Serialize) -> Value {
    serde_json::to_value(answer).unwrap_or_else(|error| {
        let failed = NotifyError::unknown_outcome(&format!("the answer cannot be written: {error}"));
        serde_json::json!({ "status": "failed", "error": failed.message })
    })
}

fn object(schema: schemars::Schema) -> Map<String, Value> {
    match schema.to_value() {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}
