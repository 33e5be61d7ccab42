//! One file per command: its arguments and what it does.

pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod deliveries;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod emit;
mod folder;
pub(crate) mod inject;
mod input;
pub(crate) mod mcp;
pub(crate) mod migrate;
pub(crate) mod remind;
pub(crate) mod serve;
pub(crate) mod simulate;
pub(crate) mod subscribers;
pub(crate) mod tail;
pub(crate) mod token;
pub(crate) mod trace;
mod when;
