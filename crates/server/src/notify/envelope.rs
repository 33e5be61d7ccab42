//! The messages between `notify`, Switchboard and Messenger: notify.v1, route.v1 and their answers.
//!
//! They come from other processes, so they are read strictly: unknown fields, wrong versions and lists in place of objects
//! are refused with the path of the field. Only one thing is tolerated: where an object belongs, a string that contains it
//! as JSON, which models and careless clients send.

mod answer;
mod context;
mod meta;
mod notify_request;
mod read;
mod route;

pub(crate) use answer::{
    DeliverAnswer, DeliverStatus, Delivered, Failure, NotifyResponse, Outcome, RouteResponse, unproven,
};
pub(crate) use context::WireContext;
pub(crate) use meta::{ASKS_AGAIN, AnswerMeta};
pub(crate) use notify_request::{DeliverArguments, DeliveryFields, NotifyRequest, NotifyVersion};
pub(crate) use read::Envelope;
pub(crate) use route::{MCP_CHANNEL, RouteEnvelope, SWITCHBOARD};

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test says what it expects by unwrapping it")]
mod tests;
