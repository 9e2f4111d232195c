//! Who a peer is, seen from an application. `[weida 5, 20]`
//!
//! The judging of certificates is tested beside `src/tls.rs`; here is what
//! reaches the fields an application decides on.
#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod arrivals;
#[path = "../pubsub/raw.rs"]
#[expect(dead_code, reason = "shared with the tests of publish and subscribe")]
mod raw;
mod terms;
#[path = "../pubsub/world.rs"]
#[expect(dead_code, reason = "shared with the tests of publish and subscribe")]
mod world;
