//! Routes end to end: the gateway's fabric on its own weida runtime, a peer on another one, real QUIC between them, and the
//! test itself in the adapter's place.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod cut;
mod draining;
mod grants;
mod outbound;
mod pulled;
mod subscribed;
mod world;
