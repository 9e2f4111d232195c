//! The wire, byte by byte: golden vectors, laws, and input nobody should send.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests, outside any test function"
)]

mod accepted;
mod encodings;
mod negotiation;
mod props;
mod rejected;
mod replay;
mod rules;
mod strictness;
mod vectors;
