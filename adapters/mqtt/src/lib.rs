//! MQTT 3.1.1 and 5.0 for the weida gateway: server, sessions and routes.

mod acl;
mod auth;
pub mod codec;
pub mod config;
mod error;
mod io;
pub mod metrics;
mod router;
mod session;
pub mod state;

pub use auth::PasswordFileError;
pub use config::{Config, ConfigError};
pub use error::{BindError, RunError, TlsError};
