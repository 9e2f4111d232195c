//! Routes: between the sessions of a listener group and weida. Floor 5.
//!
//! | File | Job |
//! | --- | --- |
//! | `names` | the MQTT name space, reserved header names |
//! | `headers` | message properties to metadata and back |
//! | `ingress` | publishes of one session into routes |
//! | `egress` | deliveries of one route to the sessions |
//! | `replies` | requests of weida peers that wait for an MQTT answer |
//! | `settle` | what an outcome means to a publisher, and acknowledgements to weida |

mod egress;
mod headers;
mod ingress;
mod names;
mod replies;
mod settle;

pub(crate) use egress::Egress;
pub(crate) use ingress::{IngressRoutes, RouteDoor};
pub use names::MQTT;
pub(crate) use replies::Replies;
