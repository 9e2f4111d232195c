//! Floor 1, from outside: golden vectors, the bad-input table, laws, and what other codecs say.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests may panic like the tests they serve"
)]

mod bad_input;
mod differential;
mod generators;
mod kit;
mod props;
mod topics;
mod vectors;
