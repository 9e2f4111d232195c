//! The listener over loopback sockets and a fabric in memory: one behaviour per file.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests; a failed one should panic"
)]

mod common;

mod connect;
mod exchange;
mod hostile;
mod identity;
mod isolation;
mod legacy;
mod malformed;
mod requests;
mod routes;
mod takeover;
mod tls;
mod wills;
