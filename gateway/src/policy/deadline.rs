//! Layer 3: the time a message may spend here, `expires_at` and the route's `timeout`.
//!
//! tower's `timeout` covers only the call and not the wait for readiness in front of it; this layer stands outside of
//! the buffer, so waiting for room, for a permit, for the destination, retries and all attempts count alike. The
//! route's clock stands still while the destination is away; the message's own `expires_at` never does.
//! [reconciled R8]

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::Instant;
use tower_layer::Layer;
use tower_service::Service;
use weida_bridge::{DropCause, FabricError, Outcome};

use super::message::{Mark, Message};
use super::presence::Presence;

/// Builds [`Deadline`] services.
#[derive(Clone, Debug)]
pub struct DeadlineLayer {
    /// Life of a message in the gateway; `None` = no limit.
    pub timeout: Option<Duration>,
    /// The route's clock runs on while the destination is away, because a caller waits for an answer.
    pub runs_while_away: bool,
    /// An attempt cut by the deadline leaves an unknown outcome instead of a drop, because nobody will repeat it.
    pub at_most_once: bool,
    /// The destination whose absence stops the clock.
    pub presence: Arc<Presence>,
}

impl<S> Layer<S> for DeadlineLayer {
    type Service = Deadline<S>;

    fn layer(&self, inner: S) -> Deadline<S> {
        Deadline {
            terms: self.clone(),
            inner,
        }
    }
}

/// Ends a message whose time is over.
#[derive(Clone, Debug)]
pub struct Deadline<S> {
    terms: DeadlineLayer,
    inner: S,
}

impl<S> Service<Message> for Deadline<S>
where
    S: Service<Message, Response = Outcome, Error = FabricError>,
    S::Future: Send + 'static,
{
    type Response = Outcome;
    type Error = FabricError;
    type Future = Pin<Box<dyn Future<Output = Result<Outcome, FabricError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), FabricError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, message: Message) -> Self::Future {
        let terms = self.terms.clone();
        let mark = message.mark.clone();
        let expires_at = message.envelope.expires_at;
        // The source may have held the message while we were not ready: its wait counts from the moment it was read.
        let since = message.envelope.received_at;
        let limits = Limits { since, expires_at };
        let inner = self.inner.call(message);
        Box::pin(run(inner, terms, limits, mark))
    }
}

/// The two clocks of one message.
#[derive(Clone, Copy, Debug)]
struct Limits {
    since: Instant,
    expires_at: Option<Instant>,
}

impl Limits {
    /// When the route's clock ends, if it does not stop again; `None` while it stands still or is off.
    fn route_end(&self, terms: &DeadlineLayer, now: Instant) -> Option<Instant> {
        let timeout = terms.timeout?;
        if terms.runs_while_away {
            return Some(self.since + timeout);
        }
        if !terms.presence.is_here() {
            return None;
        }
        Some(self.since + timeout + terms.presence.away_between(self.since, now))
    }
}

async fn run<F>(
    inner: F,
    terms: DeadlineLayer,
    limits: Limits,
    mark: Mark,
) -> Result<Outcome, FabricError>
where
    F: Future<Output = Result<Outcome, FabricError>>,
{
    tokio::pin!(inner);
    loop {
        let now = Instant::now();
        let was_here = terms.presence.is_here();
        let route_end = limits.route_end(&terms, now);
        if limits.expires_at.is_some_and(|at| at <= now) {
            return Ok(ended(Outcome::Expired, &terms, &mark));
        }
        if route_end.is_some_and(|at| at <= now) {
            return Ok(ended(Outcome::Dropped(DropCause::Expired), &terms, &mark));
        }
        let wake = match (route_end, limits.expires_at) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        let watches_presence = terms.timeout.is_some() && !terms.runs_while_away;
        tokio::select! {
            biased;
            result = &mut inner => return result,
            () = sleep_until(wake), if wake.is_some() => {}
            () = terms.presence.changed_from(was_here), if watches_presence => {}
        }
    }
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// What is said of a message whose time is over.
fn ended(outcome: Outcome, terms: &DeadlineLayer, mark: &Mark) -> Outcome {
    if terms.at_most_once && mark.may_have_arrived() {
        Outcome::Indeterminate
    } else {
        outcome
    }
}
