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

pub mod backoff;
pub mod envelope;
pub mod fabric;
pub mod ledger;
pub mod limits;
#[cfg(feature = "test-util")]
pub mod memory;
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
