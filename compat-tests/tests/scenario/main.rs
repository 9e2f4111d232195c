//! The gateway as its users run it: the real binaries, real MQTT clients, weida peers in this process.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod at_least_once;
mod identity;
mod lifecycle;
mod quickstart;
mod storms;
mod world;
