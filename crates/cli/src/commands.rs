//! One file per command: its arguments and what it does.

pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod conversations;
pub(crate) mod deliveries;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod emit;
pub(crate) mod erase;
pub(crate) mod events;
mod folder;
pub(crate) mod inbox;
pub(crate) mod inject;
mod input;
pub(crate) mod mail;
pub(crate) mod mcp;
pub(crate) mod migrate;
mod person;
pub(crate) mod remind;
pub(crate) mod say;
pub(crate) mod serve;
pub(crate) mod settings;
pub(crate) mod simulate;
pub(crate) mod subscribers;
pub(crate) mod tail;
pub(crate) mod token;
pub(crate) mod trace;
mod when;
