//! One file a command.

mod folder;
pub(crate) mod simulate;
pub(crate) mod subscribers;
