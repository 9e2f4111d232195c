//! What every adapter shares: envelopes, the fabric seam, names, outcomes, stores.
//!
//! An adapter turns one foreign protocol into [`Envelope`]s and back. It sees weida only as a [`Fabric`]: it calls the
//! [`Ingress`] service of a route with what the foreign side sent, and takes [`Deliveries`] for what goes the other way. The
//! answer is an [`Outcome`] both times, and it is given last: a source hears "done" when [`Outcome::satisfies`] its route.
//!
//! This crate opens no socket, knows no protocol and starts no task of its own.
//!
//! | Question | File |
//! | --- | --- |
//! | What travels? | [`envelope`] |
//! | Under which rule? | [`route`] |
//! | How is it named on the other side? | [`names`] |
//! | What became of it? | [`outcome`], counted by [`ledger`] |
//! | How do adapters and weida meet? | [`fabric`]; `memory` for tests |
//! | Whose is it? | [`session`] |
//! | What outlives a connection? | [`store`] |
//! | How much, how long? | [`limits`], [`backoff`], [`scope`] |
//! | What do operators see? | [`metrics`] |
//!
//! # An ingress route, from the adapter's side
//!
//! ```
//! use bytes::Bytes;
//! use tokio::time::Instant;
//! use tower_service::Service;
//! use weida_bridge::names::{Captures, Space, Template, WEIDA};
//! use weida_bridge::{AckOn, DropCause, Envelope, Ingress, Outcome, RouteId};
//!
//! // The adapter's own name space, as data.
//! const SLASHES: Space = Space::new('/').one("+").rest("#").reserve("+#\0").refuse_empty();
//!
//! /// Hands one message on and says whether its source may be told "done".
//! async fn bridge(ingress: &mut Ingress, template: &Template, name: &str, payload: Bytes) -> bool {
//!     let captures = Captures::new(&SLASHES, "plant/#", name);
//!     let topic = match template.render(&captures).map(weida_core::Topic::new) {
//!         Ok(Ok(topic)) => topic,
//!         Ok(Err(_too_long)) => return false,
//!         Err(refused) => {
//!             assert_eq!(refused.cause(), DropCause::BadName);
//!             return false;
//!         }
//!     };
//!     let envelope = Envelope::new(RouteId::new("readings"), topic, payload, Instant::now());
//!     // Not ready: stop reading this source's messages, never its pings.
//!     let Ok(ready) = ingress.ready().await else { return false };
//!     ready.call(envelope).await.is_ok_and(|outcome| outcome.satisfies(AckOn::Receipt))
//! }
//!
//! # #[cfg(feature = "test-util")]
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # use weida_bridge::{Fabric, MemoryFabric};
//! let fabric = MemoryFabric::new();
//! let probe = fabric.add_ingress("readings", Outcome::Receipt);
//! let mut ingress = fabric.ingress(&RouteId::new("readings"))?;
//! let template = Template::parse("{rest}", &WEIDA)?;
//! assert!(bridge(&mut ingress, &template, "plant/7.1/temp", Bytes::from_static(b"21.5")).await);
//! assert_eq!(probe.next().await.topic.as_str(), "7%2E1.temp");
//!
//! probe.answer(Outcome::Indeterminate);
//! assert!(!bridge(&mut ingress, &template, "plant/7.1/temp", Bytes::from_static(b"21.5")).await);
//! # Ok(()) }
//! # #[cfg(not(feature = "test-util"))] fn main() {}
//! ```

pub mod backoff;
pub mod envelope;
pub mod fabric;
pub mod ledger;
pub mod limits;
#[cfg(feature = "test-util")]
pub mod memory;
pub mod metrics;
pub mod names;
pub mod outcome;
pub mod route;
pub mod scope;
pub mod session;
pub mod store;

pub use backoff::Backoff;
pub use envelope::{
    Envelope, GatewayId, Meta, MetaError, Principal, SessionRef, Trace, Via, ViaError,
};
pub use fabric::{
    BoxFuture, Deliveries, Delivery, DeliverySender, Fabric, FabricError, FabricErrorKind, Ingress,
    Retry, Settled, Side,
};
pub use ledger::{Ledger, LedgerSnapshot, Life};
pub use limits::Limits;
#[cfg(feature = "test-util")]
pub use memory::MemoryFabric;
pub use names::{Captures, NameError, Space, Template, TemplateError, WEIDA};
pub use outcome::{DropCause, Level, Outcome, Refusal, Reply};
pub use route::{
    AckOn, DeliveryClass, Direction, NamedLoss, Pattern, RetainPolicy, Route, RouteId,
};
pub use scope::{Finished, Scope};
pub use session::SessionKey;
pub use store::{CommitToken, MemoryStore, Store, StoreError};

/// The examples of the README run as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
