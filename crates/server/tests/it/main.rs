//! The hub over real HTTP, on a free port of loopback.

mod hub;

mod access;
mod events;
mod inject;
mod settings;
mod stream;
