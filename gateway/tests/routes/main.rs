//! Routes end to end: the gateway's fabric on its own weida runtime, a peer on another one, real QUIC between them, and the
//! test itself in the adapter's place.

mod cut;
mod grants;
mod outbound;
mod pulled;
mod world;
