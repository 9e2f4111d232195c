//! MQTT 3.1.1 and 5.0 for the weida gateway: server, sessions and routes.
//!
//! A listener is a complete MQTT server for its own clients and the source and sink of routes.
//! It sees weida only as a [`weida_bridge::Fabric`].
//!
//! | Question | Where |
//! | --- | --- |
//! | Which bytes? | [`codec`] |
//! | Which packet is legal when? | [`state`] |
//! | What outlives a packet: subscriptions, queues, takeover? | `session`, `router` |
//! | Sockets, TLS, the loop of one connection | `io` |
//! | Routes, names, acknowledgements across weida | `bridge` |
//! | Who may do what? | `auth`, `acl` |
//! | What is it told, and what does it refuse? | [`config`] |

mod acl;
mod adapter;
mod auth;
mod bridge;
pub mod codec;
pub mod config;
mod error;
mod io;
pub mod metrics;
mod router;
mod session;
pub mod state;

pub use adapter::{Bound, BoundAddr, Drained, MqttAdapter};
pub use auth::PasswordFileError;
pub use bridge::MQTT;
pub use config::{Config, ConfigError};
pub use error::{BindError, RunError, TlsError};
