//! The gateway as its users run it: the real binaries, real MQTT clients, weida peers in this process.

mod at_least_once;
mod identity;
mod lifecycle;
mod quickstart;
mod world;
