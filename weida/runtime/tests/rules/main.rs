//! Rules that no single pattern owns, one module per part of the specification.

#[path = "../common/mod.rs"]
mod common;

mod refusals;
