//! The conformance suite of all stores: one file per duty, every test runs on every backend.

#![allow(clippy::unwrap_used, reason = "a test says what it expects by unwrapping it")]

mod backends;

mod channels;
mod chats;
mod clock;
mod concurrency;
mod crash;
mod damage;
mod delivery_order;
mod ended;
mod erase;
mod idempotency;
mod inbound;
mod inbox;
mod inject;
mod ledger;
mod lists;
mod live;
mod neighbours;
mod notify;
mod notify_deferred;
mod notify_passed_on;
mod notify_requests;
mod origins;
mod outbox;
mod outbox_counts;
mod overdue;
mod ownership;
mod paging;
mod parts;
mod publish;
mod readiness;
#[path = "../peers/redis.rs"]
mod redis_server;
mod refusals;
mod reminders;
mod repeats;
mod replay;
mod retention;
mod secrets;
mod sessions;
mod settings;
mod simulation;
mod timers;
mod tokens;
mod trace;
mod unseen;
mod work;
mod worst;
mod worst_notify;
