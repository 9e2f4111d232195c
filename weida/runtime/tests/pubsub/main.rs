//! Pub/Sub between two runtimes, and between a runtime and a raw peer.
//! `[weida 11, 21]`

mod drops;
mod filters;
mod raw;
mod world;
