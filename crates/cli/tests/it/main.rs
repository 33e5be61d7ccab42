//! Tests of the binary, and repository rules that no lint checks.

mod documents;
mod hub;
mod mail_server;
mod program;

mod authority;
mod background;
mod commands;
mod configuration;
mod deliveries;
mod demo;
mod doctor;
mod erase;
mod events;
mod full_circle;
mod help;
#[cfg(target_os = "linux")]
mod hook;
mod hostile;
mod inbox;
mod ingest;
mod install;
mod lists;
mod logging;
mod mail;
mod mcp;
mod notify;
mod readiness;
mod refusals;
mod run;
mod serve;
#[cfg(target_os = "linux")]
mod service;
mod settings;
mod tail;
mod telegram;
mod templates;
mod tidy;
mod tokens;
mod wake;
mod walkthrough;
mod watch;
#[cfg(target_os = "linux")]
mod wrap;
