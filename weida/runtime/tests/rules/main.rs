//! Rules that no single pattern owns, one module per part of the specification.
#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

#[path = "../common/mod.rs"]
mod common;

mod bounds;
mod companion;
mod frames;
mod loss;
mod outbox;
mod patterns;
mod provider;
mod refusals;
mod types;
