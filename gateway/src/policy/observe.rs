//! Layer 1: every message is born here and ends here, exactly once (`gateway.md` rule 2).
//!
//! The observer owns the message's [`Life`] while the layers below say through the [`Mark`] where it stands. A future
//! that is dropped before it is done ends its message too: nobody can drop one silently.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::time::Instant;
use tower_layer::Layer;
use tower_service::Service;
use weida_bridge::{DropCause, Envelope, FabricError, FabricErrorKind, Ledger, Life, Outcome};

use super::message::{Mark, Message};
use super::stats::RouteStats;

/// Builds [`Observe`] services.
#[derive(Clone, Debug)]
pub struct ObserveLayer {
    /// The conservation row.
    pub ledger: Arc<Ledger>,
    /// Latency and the time of the last success.
    pub stats: Arc<RouteStats>,
    /// When the route was built.
    pub started: Instant,
    /// False for a stack that never waits: its messages need no mark.
    pub waits: bool,
}

impl<S> Layer<S> for ObserveLayer {
    type Service = Observe<S>;

    fn layer(&self, inner: S) -> Observe<S> {
        Observe {
            terms: self.clone(),
            inner,
        }
    }
}

/// Counts every message once, by its outcome.
#[derive(Clone, Debug)]
pub struct Observe<S> {
    terms: ObserveLayer,
    inner: S,
}

impl<S> Service<Envelope> for Observe<S>
where
    S: Service<Message, Response = Outcome, Error = FabricError>,
    S::Future: Unpin,
{
    type Response = Outcome;
    type Error = FabricError;
    type Future = Observed<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), FabricError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, envelope: Envelope) -> Self::Future {
        let life = self.terms.ledger.born(envelope.payload.len());
        let received_at = envelope.received_at;
        let mark = if self.terms.waits {
            Mark::new(Instant::now())
        } else {
            Mark::none()
        };
        let watch = Watch {
            life: Some(life),
            at: At::Born,
            mark: mark.clone(),
            stats: Arc::clone(&self.terms.stats),
            started: self.terms.started,
            received_at,
        };
        Observed {
            inner: self.inner.call(Message { envelope, mark }),
            watch,
        }
    }
}

/// The future of [`Observe`].
#[derive(Debug)]
#[must_use]
pub struct Observed<F> {
    inner: F,
    watch: Watch,
}

impl<F> Future for Observed<F>
where
    F: Future<Output = Result<Outcome, FabricError>> + Unpin,
{
    type Output = Result<Outcome, FabricError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match Pin::new(&mut self.inner).poll(cx) {
            Poll::Ready(result) => {
                self.watch.end(&result);
                Poll::Ready(result)
            }
            Poll::Pending => {
                self.watch.follow();
                Poll::Pending
            }
        }
    }
}

/// One message under observation.
#[derive(Debug)]
struct Watch {
    life: Option<Life>,
    at: At,
    mark: Mark,
    stats: Arc<RouteStats>,
    started: Instant,
    received_at: Instant,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum At {
    Born,
    Queued,
    InFlight,
}

impl Watch {
    /// Moves the message between the two gauges of the row.
    fn follow(&mut self) {
        let now = if self.mark.is_attempting() {
            At::InFlight
        } else {
            At::Queued
        };
        if now == self.at {
            return;
        }
        self.at = now;
        if let Some(life) = &mut self.life {
            match now {
                At::InFlight => life.in_flight(),
                At::Queued | At::Born => life.queued(),
            }
        }
    }

    fn end(&mut self, result: &Result<Outcome, FabricError>) {
        let Some(life) = self.life.take() else { return };
        let now = Instant::now();
        self.stats
            .ended(now.saturating_duration_since(self.received_at));
        match result {
            Ok(outcome) => {
                if outcome.reached().is_some() {
                    self.stats
                        .success(now.saturating_duration_since(self.started));
                }
                life.end(outcome);
            }
            Err(error) => life.dropped(match error.kind() {
                FabricErrorKind::Closed => DropCause::Shutdown,
                _ => DropCause::Internal,
            }),
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // Cut at the end of a drain, or abandoned by whoever had to poll it.
        if let Some(life) = self.life.take() {
            self.stats.ended(self.received_at.elapsed());
            if std::thread::panicking() {
                life.dropped(DropCause::Internal);
            } else if self.mark.may_have_arrived() {
                life.end(&Outcome::Indeterminate);
            } else {
                life.dropped(DropCause::Shutdown);
            }
        }
    }
}
