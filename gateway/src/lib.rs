//! The gateway as a library, so that its tests can start parts of it; the process is the binary `weida-gateway`.
//!
//! Nothing here is a promise to other crates: the promised surface is the command line, the configuration file, the
//! admin API and the metrics.

pub mod admin;
pub mod cli;
pub mod config;
pub mod drain;
pub mod fabric;
pub mod grants;
pub mod identity;
pub mod logging;
pub mod metrics;
pub mod mqtt;
pub mod policy;
pub mod route;
pub mod state;
pub mod supervisor;
