//! Sends notifications out of the hub: the [`Outbox`] worker, which uses the [channels](crate::channels).

mod outbox;

pub use outbox::Outbox;
