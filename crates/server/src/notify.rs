//! The path of a `notify` call: tool → Switchboard (`deliver`) → Messenger (`route.execute`) → channel, and back.
//!
//! The tool checks the call, resolves its target and builds a notify.v1 envelope. The Switchboard wraps it into route.v1
//! and passes it to the Messenger, which makes one attempt on the channel. By default all three run in one process and call
//! each other as functions; the configuration can put the Switchboard and the Messenger on other machines, where the same
//! functions are MCP tools.

pub mod envelope;
