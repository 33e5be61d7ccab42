//! Adds the pending notifications of the conversation to a tool's result. This way they reach an agent whose harness does
//! not call the injection endpoint.

use std::time::Instant;

use bellwire_core::{Inject, InjectionPoint};
use bellwire_store::{InjectCommand, InjectResult};

use super::context::Context;
use super::tool::ToolResult;
use crate::http::{ApiError, Hub};

/// The outcome of taking notifications.
pub(super) enum TakenNotifications {
    /// The notifications were taken.
    Taken(InjectResult),
    /// Only counted, because the calling agent is not known.
    Count(usize),
}

/// Takes the notifications pending at this injection point, or returns those taken before under the same call id. While a
/// sub-agent is active and the client does not name the calling agent, they are only counted: one agent must not take the
/// notifications of another.
pub(super) async fn take(
    hub: &Hub,
    context: &Context,
    conversation_id: &str,
    point: InjectionPoint,
) -> Result<TakenNotifications, ApiError> {
    context.identity.usage.inject(Instant::now())?;
    let request = Inject::new(point, &context.call_id)?;
    let command = InjectCommand {
        caller: context.caller(),
        conversation_id: conversation_id.to_owned(),
        agent: context.agent(),
        request,
        observed: None,
        unseen: Vec::new(),
        tool_result_digest: None,
        correlation_id: Some(context.correlation_id.clone()),
        unsure: context.agent.is_none(),
    };
    let injected = hub.inject(command).await?;
    Ok(injected.withheld.map_or(TakenNotifications::Taken(injected), TakenNotifications::Count))
}

/// Adds the notifications pending after a tool. If they cannot be taken now they stay pending; the result stays valid.
pub(super) async fn with_notifications(hub: &Hub, context: &Context, mut result: ToolResult) -> ToolResult {
    let Some(conversation_id) = &context.conversation_id else { return result };
    match take(hub, context, conversation_id, InjectionPoint::AfterTool).await {
        Ok(TakenNotifications::Taken(injected)) => {
            if !injected.block.is_empty() {
                result.value.insert("notifications".into(), injected.block.into());
            }
            result.call_id = Some(context.call_id.clone());
        }
        Ok(TakenNotifications::Count(pending)) => drop(result.value.insert("pending".into(), pending.into())),
        Err(error) => tracing::debug!(error = error.message, "a tool's result goes without mail"),
    }
    result
}
