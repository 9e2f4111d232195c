//! Pub/Sub between two runtimes, and between a runtime and a raw peer.
//! `[weida 11, 21]`
#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod admission;
mod drops;
mod filters;
mod lifecycle;
mod raw;
mod silence;
mod streamed;
mod world;
