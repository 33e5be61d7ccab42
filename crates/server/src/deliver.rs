//! How a notification leaves the hub: the channels.
//!
//! A channel takes something that is ready to go, hands it over once, and tells the truth about what became of it. It
//! knows nothing of batching, quiet hours, limits or retries, and reads no clock and no store: whoever calls it has decided
//! that the message goes now and decides from the outcome whether it goes again.

pub mod email;
