//! Integration tests of the hub over HTTP, on a free port of the loopback interface.

#![allow(clippy::unwrap_used, reason = "a test says what it expects by unwrapping it")]

mod hub;

mod access;
mod audience;
mod catalog;
mod cloudevents;
mod config;
mod console;
mod deliveries;
mod docs;
mod elements;
mod email;
mod email_test;
mod erase;
mod errors;
mod events;
mod file_channel;
mod ingest;
mod inject;
mod limits;
mod lists;
mod live;
mod mailed;
mod mcp;
mod mcp_limits;
mod notify;
mod observability;
mod openapi;
mod origins;
mod outbox;
mod people;
mod person_stream;
#[path = "../../../store/tests/peers/redis.rs"]
mod redis_server;
mod reference_bugs;
mod reminders;
mod scripted_channel;
mod sessions;
mod settings;
mod stalled_readers;
mod statistics;
mod stream;
mod subscribers;
mod system_prompt;
mod telegram;
mod token_limits;
mod tools;
