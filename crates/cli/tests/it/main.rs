//! Tests of the binary, and repository rules that no lint checks.

mod documents;
mod hub;
mod program;

mod commands;
mod configuration;
mod deliveries;
mod demo;
mod doctor;
mod events;
mod help;
#[cfg(target_os = "linux")]
mod hostile;
mod logging;
mod mcp;
mod readiness;
mod refusals;
mod serve;
mod tail;
mod templates;
mod tidy;
mod tokens;
mod walkthrough;
