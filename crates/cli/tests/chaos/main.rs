//! Crash and failure tests: no accepted event is lost, no notification is shown twice, and a request that cannot be
//! accepted gets an error.
//!
//! These tests run the real binary. [`kills`] kills it repeatedly under load, [`mail`] at each step of a delivery,
//! [`telegram`] while it polls and sends; the others take away its disk, folder or port. `make chaos` runs more kills.

#![cfg(unix)]

mod client;
mod collect;
mod database;
mod history;
mod hub;
mod load;
mod model;
#[path = "../../../server/tests/it/email/peer.rs"]
#[allow(dead_code, reason = "the tests of the mail channel use more of it")]
mod peer;
mod random;

#[cfg(target_os = "linux")]
mod dead_writer;
mod folder;
#[cfg(target_os = "linux")]
mod full_disk;
mod kills;
mod mail;
mod stopping;
mod telegram;
