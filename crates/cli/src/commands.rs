//! One file a command.

pub(crate) mod emit;
mod folder;
pub(crate) mod inject;
pub(crate) mod serve;
pub(crate) mod simulate;
pub(crate) mod subscribers;
pub(crate) mod token;
pub(crate) mod trace;
