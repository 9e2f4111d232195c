//! The gateway as a library, so that its tests can start parts of it; the process is the binary `weida-gateway`.
//!
//! Nothing here is a promise to other crates: the promised surface is the command line, the configuration file, the
//! admin API and the metrics.

pub mod cli;
pub mod config;
pub mod grants;
pub mod identity;
pub mod logging;
pub mod policy;
