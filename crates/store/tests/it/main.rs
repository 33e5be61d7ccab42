//! One suite for every store: a file a duty, each test run on each backend.

#![allow(clippy::unwrap_used, reason = "a test says what it expects by unwrapping it")]

mod backends;

mod concurrency;
mod crash;
mod idempotency;
mod inject;
mod ownership;
mod publish;
mod retention;
mod settings;
mod simulation;
mod timers;
mod tokens;
mod trace;
