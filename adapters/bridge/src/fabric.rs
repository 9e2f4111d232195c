//! What an adapter sees of weida: services to call on ingress, deliveries to settle on egress.
//!
//! ```text
//!  adapter ──Envelope──> Ingress (policy stack) ──> weida      answer: Outcome
//!  adapter <──Delivery── Deliveries (bounded)   <── weida      answer: settle(Outcome)
//! ```

use std::error::Error;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};

use tower_service::Service;

use crate::envelope::Envelope;
use crate::outcome::Outcome;
use crate::route::RouteId;

mod deliveries;

pub use deliveries::{
    Closed, Deliveries, Delivery, DeliverySender, Settle, Settled, TrySendError, deliveries,
    deliveries_within,
};

/// A future on the heap, as every service of a route answers with.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What an adapter sees of weida. Implemented by the gateway, and by `MemoryFabric` for tests.
pub trait Fabric: Send + Sync + fmt::Debug + 'static {
    /// The service of one ingress route: its whole policy stack with weida at the end.
    ///
    /// # Errors
    /// [`FabricErrorKind::UnknownRoute`] for a route that is not configured here as ingress.
    fn ingress(&self, route: &RouteId) -> Result<Ingress, FabricError>;

    /// What one egress route delivers. Called once per route by the adapter that owns its foreign side.
    ///
    /// # Errors
    /// [`FabricErrorKind::UnknownRoute`] for a route that is not configured here as egress,
    /// [`FabricErrorKind::Configuration`] when it was called before.
    fn subscribe(&self, route: &RouteId) -> Result<Deliveries, FabricError>;
}

/// The answer of an ingress service.
pub type IngressFuture = BoxFuture<'static, Result<Outcome, FabricError>>;

/// The service of one ingress route, boxed and cloneable.
///
/// Call the service you polled ready: clone, swap, call; never poll one clone and call another. Not ready is
/// backpressure: stop reading the source's messages, never its control traffic.
///
/// A call costs one boxed future.
pub struct Ingress(Box<dyn CloneService>);

impl Ingress {
    /// Boxes a service; each call boxes its future.
    #[must_use]
    pub fn new<S>(service: S) -> Self
    where
        S: Service<Envelope, Response = Outcome, Error = FabricError> + Clone + Send + 'static,
        S::Future: Send + 'static,
    {
        Self(Box::new(BoxEachCall(service)))
    }

    /// Takes a service whose future is boxed already, and does not box it again.
    #[must_use]
    pub fn from_boxed<S>(service: S) -> Self
    where
        S: Service<Envelope, Response = Outcome, Error = FabricError, Future = IngressFuture>
            + Clone
            + Send
            + 'static,
    {
        Self(Box::new(service))
    }

    /// Waits until this very service may be called once.
    ///
    /// # Errors
    /// What the service answers; it is of no further use then.
    ///
    /// # Cancel safety
    /// Safe: readiness that was given stays with this value until the call.
    pub async fn ready(&mut self) -> Result<&mut Self, FabricError> {
        poll_fn(|cx| self.0.poll_ready(cx)).await?;
        Ok(self)
    }
}

impl Service<Envelope> for Ingress {
    type Response = Outcome;
    type Error = FabricError;
    type Future = IngressFuture;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), FabricError>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, envelope: Envelope) -> IngressFuture {
        self.0.call(envelope)
    }
}

impl Clone for Ingress {
    fn clone(&self) -> Self {
        Self(self.0.clone_box())
    }
}

impl fmt::Debug for Ingress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ingress")
    }
}

trait CloneService:
    Service<Envelope, Response = Outcome, Error = FabricError, Future = IngressFuture> + Send
{
    fn clone_box(&self) -> Box<dyn CloneService>;
}

impl<S> CloneService for S
where
    S: Service<Envelope, Response = Outcome, Error = FabricError, Future = IngressFuture>
        + Clone
        + Send
        + 'static,
{
    fn clone_box(&self) -> Box<dyn CloneService> {
        Box::new(self.clone())
    }
}

#[derive(Clone)]
struct BoxEachCall<S>(S);

impl<S> Service<Envelope> for BoxEachCall<S>
where
    S: Service<Envelope, Response = Outcome, Error = FabricError>,
    S::Future: Send + 'static,
{
    type Response = Outcome;
    type Error = FabricError;
    type Future = IngressFuture;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), FabricError>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, envelope: Envelope) -> IngressFuture {
        Box::pin(self.0.call(envelope))
    }
}

// === impl FabricError ===

/// A message could not be tried, or the try broke; a fact with a side and a retry answer.
#[derive(Debug)]
pub struct FabricError {
    kind: FabricErrorKind,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl FabricError {
    /// A fact without a cause below it.
    #[must_use]
    pub const fn new(kind: FabricErrorKind) -> Self {
        Self { kind, source: None }
    }

    /// A fact with the error that caused it.
    #[must_use]
    pub fn with_source(
        kind: FabricErrorKind,
        source: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> Self {
        Self {
            kind,
            source: Some(source.into()),
        }
    }

    /// What happened.
    #[must_use]
    pub const fn kind(&self) -> FabricErrorKind {
        self.kind
    }

    /// Whose side it happened on.
    #[must_use]
    pub const fn side(&self) -> Side {
        self.kind.side()
    }

    /// Whether trying again makes sense.
    #[must_use]
    pub const fn retry(&self) -> Retry {
        self.kind.retry()
    }
}

impl fmt::Display for FabricError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)
    }
}

impl Error for FabricError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source
            .as_deref()
            .map(|source| source as &(dyn Error + 'static))
    }
}

impl From<FabricErrorKind> for FabricError {
    fn from(kind: FabricErrorKind) -> Self {
        Self::new(kind)
    }
}

/// What went wrong between an adapter and weida.
///
/// | Kind | Side | Retry |
/// | --- | --- | --- |
/// | `UnknownRoute`, `Configuration`, `Closed` | us | pointless |
/// | `NotConnected`, `Away` | weida | safe: nothing was sent |
/// | `Timeout` | weida | unsafe: it may have arrived |
/// | `Internal` | us | unsafe |
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum FabricErrorKind {
    /// No such route in this direction.
    #[error("no such route")]
    UnknownRoute,
    /// There is no connection to the destination now; this message was not sent.
    #[error("the destination is not connected")]
    NotConnected,
    /// The destination as a whole is away; waiting for it is no failed attempt [reconciled R8].
    #[error("the destination is away")]
    Away,
    /// The attempt took longer than its bound.
    #[error("the attempt timed out")]
    Timeout,
    /// The process or this route is ending.
    #[error("the route is closed")]
    Closed,
    /// The configuration forbids it.
    #[error("the configuration does not allow this")]
    Configuration,
    /// A fault of ours.
    #[error("internal fault")]
    Internal,
}

impl FabricErrorKind {
    /// Whose side it happens on.
    #[must_use]
    pub const fn side(self) -> Side {
        match self {
            Self::NotConnected | Self::Away | Self::Timeout => Side::Weida,
            Self::UnknownRoute | Self::Closed | Self::Configuration | Self::Internal => Side::Us,
        }
    }

    /// Whether trying again makes sense.
    #[must_use]
    pub const fn retry(self) -> Retry {
        match self {
            Self::NotConnected | Self::Away => Retry::Safe,
            Self::Timeout | Self::Internal => Retry::Unsafe,
            Self::UnknownRoute | Self::Closed | Self::Configuration => Retry::Pointless,
        }
    }
}

/// Whose side an error happened on; a metric and log label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// The foreign protocol's side.
    Foreign,
    /// The weida side.
    Weida,
    /// This process.
    Us,
}

impl Side {
    /// The label value.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Foreign => "foreign",
            Self::Weida => "weida",
            Self::Us => "us",
        }
    }
}

/// Whether trying again makes sense; a metric and log label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Retry {
    /// It did not arrive: a second try cannot duplicate.
    Safe,
    /// It may have arrived: a second try may duplicate.
    Unsafe,
    /// A second try ends the same way.
    Pointless,
}

impl Retry {
    /// The label value.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Safe => "safe",
            Self::Unsafe => "unsafe",
            Self::Pointless => "pointless",
        }
    }
}

#[cfg(test)]
mod tests;
