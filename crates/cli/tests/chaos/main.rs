//! What the hub promises when things go wrong around it: nothing that was accepted is lost, nothing is told twice, and
//! what cannot be accepted is refused in words.
//!
//! These tests run the real binary. [`kills`] puts it under load and kills it again and again, [`mail`] at each step of
//! a delivery; the others take its disk, its folder or its port away. `make chaos` runs the kills for longer.

#![cfg(unix)]

mod census;
mod client;
mod database;
mod history;
mod hub;
mod load;
mod model;
#[path = "../../../server/tests/it/email/peer.rs"]
#[allow(dead_code, reason = "the tests of the mail channel use more of it")]
mod peer;
mod random;

mod folder;
#[cfg(target_os = "linux")]
mod full_disk;
mod kills;
mod mail;
mod stopping;
