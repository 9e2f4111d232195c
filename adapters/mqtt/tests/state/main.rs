//! Floor 2, with the clock in the hand: the connection machine, credit, aliases, keep-alive.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests may panic like the tests they serve"
)]

mod aliases;
mod bad_input;
mod handshake;
mod inflight;
mod keepalive;
mod kit;
mod matrix;
