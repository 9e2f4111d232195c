//! A route's stack over a destination that follows a script.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tower_service::Service;
use weida_bridge::{
    Envelope, FabricError, FabricErrorKind, GatewayId, Ingress, Ledger, Outcome, RouteId,
};
use weida_core::Topic;

use crate::config::valid::{self, Overflow};
use crate::policy::admission::Room;
use crate::policy::detach::Crew;
use crate::policy::filter::Rules;
use crate::policy::message::Attempt;
use crate::policy::presence::Presence;
use crate::policy::retry::RetryTerms;
use crate::policy::stats::RouteStats;
use crate::policy::{RouteParts, Terms, waiting};

pub(super) const OWN: GatewayId = GatewayId([7; 8]);

/// What the destination does with one attempt.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Answer(Outcome),
    After(Duration, Outcome),
    Fail(FabricErrorKind),
    Never,
    Panic,
}

/// One attempt as the destination saw it.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub payload: Bytes,
    pub number: u32,
    pub at: Instant,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Destination(Arc<DestinationInner>);

#[derive(Debug, Default)]
struct DestinationInner {
    script: Mutex<VecDeque<Step>>,
    otherwise: Mutex<Option<Step>>,
    seen: Mutex<Vec<Seen>>,
    running: AtomicUsize,
    most_running: AtomicUsize,
}

impl Destination {
    pub(super) fn then(&self, step: Step) -> &Self {
        self.0.script.lock().unwrap().push_back(step);
        self
    }

    pub(super) fn otherwise(&self, step: Step) -> &Self {
        *self.0.otherwise.lock().unwrap() = Some(step);
        self
    }

    pub(super) fn seen(&self) -> Vec<Seen> {
        self.0.seen.lock().unwrap().clone()
    }

    pub(super) fn payloads(&self) -> Vec<Bytes> {
        self.seen().into_iter().map(|seen| seen.payload).collect()
    }

    pub(super) fn most_running(&self) -> usize {
        self.0.most_running.load(Ordering::SeqCst)
    }
}

struct Running(Arc<DestinationInner>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Service<Attempt> for Destination {
    type Response = Outcome;
    type Error = FabricError;
    type Future = Pin<Box<dyn Future<Output = Result<Outcome, FabricError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), FabricError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, attempt: Attempt) -> Self::Future {
        self.0.seen.lock().unwrap().push(Seen {
            payload: attempt.envelope.payload.clone(),
            number: attempt.number,
            at: Instant::now(),
        });
        let step = self.0.script.lock().unwrap().pop_front();
        let step = step
            .or_else(|| self.0.otherwise.lock().unwrap().clone())
            .unwrap_or(Step::Answer(Outcome::Receipt));
        let running = self.0.running.fetch_add(1, Ordering::SeqCst) + 1;
        self.0.most_running.fetch_max(running, Ordering::SeqCst);
        let running = Running(Arc::clone(&self.0));
        Box::pin(async move {
            let _running = running;
            match step {
                Step::Answer(outcome) => Ok(outcome),
                Step::After(wait, outcome) => {
                    tokio::time::sleep(wait).await;
                    Ok(outcome)
                }
                Step::Fail(kind) => Err(kind.into()),
                Step::Never => std::future::pending().await,
                Step::Panic => panic!("the destination panics"),
            }
        })
    }
}

/// Settings of a test's route; the defaults never get in the way.
#[derive(Clone, Debug)]
pub(super) struct Setup {
    pub overflow: Overflow,
    pub messages: usize,
    pub bytes: usize,
    pub in_flight: usize,
    pub timeout: Option<Duration>,
    pub attempt_timeout: Option<Duration>,
    pub at_most_once: bool,
    pub exchange: bool,
    pub repeatable: bool,
    pub max_attempts: u32,
    pub retry: valid::Retry,
    pub conditions: Vec<valid::Condition>,
    pub transform: valid::Transform,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            overflow: Overflow::Block,
            messages: 1000,
            bytes: 16 << 20,
            in_flight: 256,
            timeout: None,
            attempt_timeout: None,
            at_most_once: false,
            exchange: false,
            repeatable: true,
            max_attempts: 16,
            retry: valid::Retry::default(),
            conditions: Vec::new(),
            transform: valid::Transform::default(),
        }
    }
}

/// One route.
#[derive(Debug)]
pub(super) struct World {
    pub destination: Destination,
    pub parts: RouteParts,
    pub ingress: Ingress,
    pub cut: CancellationToken,
}

impl World {
    pub(super) fn new(setup: Setup) -> Self {
        let cut = CancellationToken::new();
        let now = Instant::now();
        let parts = RouteParts {
            ledger: Ledger::new(RouteId::new("r")),
            stats: Arc::new(RouteStats::default()),
            presence: Presence::here(),
            room: Room::new(setup.messages, setup.bytes),
            crew: Crew::new(cut.clone()),
            started: now,
        };
        let terms = terms(&setup, &parts);
        let destination = Destination::default();
        let ingress = waiting(&parts, &terms, destination.clone());
        Self {
            destination,
            parts,
            ingress,
            cut,
        }
    }

    /// Reads one message from the source and hands it in, waiting at the door if need be.
    pub(super) async fn hand_in(
        &self,
        envelope: Envelope,
    ) -> impl Future<Output = Result<Outcome, FabricError>> + use<> {
        let mut ingress = self.ingress.clone();
        ingress.ready().await.unwrap();
        ingress.call(envelope)
    }

    /// Hands one message in and waits for its end.
    pub(super) async fn send(&self, payload: &'static str) -> Outcome {
        self.hand_in(message(payload)).await.await.unwrap()
    }

    /// Whether a source would have to wait now.
    pub(super) fn is_blocked(&self) -> bool {
        let mut ingress = self.ingress.clone();
        tokio_test::task::spawn(async move { ingress.ready().await.map(|_| ()) })
            .poll()
            .is_pending()
    }

    pub(super) fn come(&self) {
        self.parts.presence.set(true, Instant::now());
    }

    pub(super) fn go_away(&self) {
        self.parts.presence.set(false, Instant::now());
    }
}

pub(super) fn terms(setup: &Setup, parts: &RouteParts) -> Terms {
    Terms {
        overflow: setup.overflow,
        timeout: setup.timeout,
        runs_while_away: setup.exchange,
        at_most_once: setup.at_most_once,
        attempt_timeout: setup.attempt_timeout,
        in_flight: setup.in_flight,
        rules: Arc::new(Rules {
            conditions: setup.conditions.clone(),
            transform: setup.transform.clone(),
            max_message_bytes: 1 << 20,
            own: OWN,
            max_hops: 4,
            stats: Arc::clone(&parts.stats),
        }),
        retry: RetryTerms::new(
            &setup.retry,
            setup.repeatable && !setup.at_most_once,
            setup.max_attempts,
            Arc::clone(&parts.ledger),
            Arc::clone(&parts.stats),
        ),
    }
}

pub(super) fn message(payload: &'static str) -> Envelope {
    sized(Bytes::from_static(payload.as_bytes()))
}

pub(super) fn sized(payload: Bytes) -> Envelope {
    Envelope::new(
        RouteId::new("r"),
        Topic::new("a.b").unwrap(),
        payload,
        Instant::now(),
    )
}

pub(super) const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}
