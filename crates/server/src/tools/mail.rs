//! The mail of the conversation in which a tool is called, put into the tool's result: the way in that needs no harness.

use std::time::Instant;

use bellwire_core::{Inject, InjectionPoint};
use bellwire_store::{InjectCommand, InjectResult};

use super::context::Context;
use super::tool::ToolResult;
use crate::http::{ApiError, Hub};

/// What is told of a mailbox.
pub(super) enum TakenMail {
    /// The mail itself, taken.
    Taken(InjectResult),
    /// Only how much waits, because it is not known who asks.
    Count(usize),
}

/// Takes what waits at this point, or what was taken before under the same call id. While a sub-agent is at work and the
/// caller does not say which agent it is, nothing is taken: what is for one of them must not be used up by the other.
pub(super) async fn take(
    hub: &Hub,
    context: &Context,
    conversation_id: &str,
    point: InjectionPoint,
    call_id: &str,
) -> Result<TakenMail, ApiError> {
    context.identity.usage.inject(Instant::now())?;
    let request = Inject::new(point, call_id)?;
    let take = InjectCommand {
        caller: context.caller(),
        conversation_id: conversation_id.to_owned(),
        agent: context.agent(),
        request,
        observed: None,
        unseen: Vec::new(),
        correlation_id: Some(context.correlation_id.clone()),
        unsure: context.agent.is_none(),
    };
    let given = hub.store.take(take).await?;
    Ok(given.withheld.map_or(TakenMail::Taken(given), TakenMail::Count))
}

/// The result with the mail that waits after a tool. The tool has done its work: mail that cannot be had now waits on.
pub(super) async fn with_mail(hub: &Hub, context: &Context, mut called: ToolResult) -> ToolResult {
    let Some(conversation_id) = &context.conversation_id else { return called };
    let call_id = context.call_id();
    match take(hub, context, conversation_id, InjectionPoint::AfterTool, &call_id).await {
        Ok(TakenMail::Taken(given)) => {
            if !given.block.is_empty() {
                called.value.insert("notifications".into(), given.block.into());
            }
            called.call_id = Some(call_id);
        }
        Ok(TakenMail::Count(pending)) => drop(called.value.insert("pending".into(), pending.into())),
        Err(error) => tracing::debug!(error = error.message, "a tool's result goes without mail"),
    }
    called
}
