//! An in-process fabric for tests: scripted outcomes, stalls, refusals, held receipts, pushed deliveries.
//!
//! It keeps what it received, in order, up to [`MemoryFabric::MAX_KEPT`] messages per route.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;
use tower_service::Service;

use crate::envelope::Envelope;
use crate::fabric::{
    Closed, Deliveries, DeliverySender, Fabric, FabricError, FabricErrorKind, Ingress,
    IngressFuture, Settled, deliveries,
};
use crate::outcome::Outcome;
use crate::route::RouteId;

/// A fabric in memory. Clones are one fabric.
///
/// ```
/// use std::sync::Arc;
/// use bytes::Bytes;
/// use tokio::time::Instant;
/// use tower_service::Service;
/// use weida_bridge::{Envelope, Fabric, MemoryFabric, Outcome, Refusal, RouteId};
/// use weida_core::Topic;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let fabric = MemoryFabric::new();
/// let probe = fabric.add_ingress("readings", Outcome::Receipt);
/// probe.then(Outcome::Refused(Refusal::Rejected));
///
/// let mut ingress = fabric.ingress(&RouteId::new("readings"))?;
/// let envelope = Envelope::new("readings".into(), Topic::new("a.b")?, Bytes::from("1"), Instant::now());
/// assert_eq!(ingress.ready().await?.call(envelope.clone()).await?, Outcome::Refused(Refusal::Rejected));
/// assert_eq!(ingress.ready().await?.call(envelope).await?, Outcome::Receipt);
/// assert_eq!(probe.seen(), 2);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Default)]
pub struct MemoryFabric {
    routes: Arc<Mutex<Routes>>,
}

#[derive(Debug, Default)]
struct Routes {
    ingress: BTreeMap<RouteId, IngressProbe>,
    /// Taken by the first `subscribe`.
    egress: BTreeMap<RouteId, Option<Deliveries>>,
}

impl MemoryFabric {
    /// Messages a probe keeps for [`IngressProbe::next`]; the oldest goes first, `seen` counts on.
    pub const MAX_KEPT: usize = 65_536;

    /// A fabric without routes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an ingress route that answers every call with `outcome` unless its probe says otherwise.
    pub fn add_ingress(&self, route: &str, outcome: Outcome) -> IngressProbe {
        let probe = IngressProbe(Arc::new(Probe {
            state: Mutex::new(ProbeState::new(outcome)),
            arrived: Notify::new(),
            held: Semaphore::new(0),
        }));
        self.lock()
            .ingress
            .insert(RouteId::new(route), probe.clone());
        probe
    }

    /// Adds an egress route with a queue of `bound` deliveries.
    pub fn add_egress(&self, route: &str, bound: usize) -> EgressProbe {
        let (sender, deliveries) = deliveries(bound);
        self.lock()
            .egress
            .insert(RouteId::new(route), Some(deliveries));
        EgressProbe { sender }
    }

    /// Takes a route away, as a reload does: later calls of [`Fabric`] do not know it, its deliveries end.
    pub fn remove(&self, route: &str) {
        let mut routes = self.lock();
        routes.egress.remove(&RouteId::new(route));
        if let Some(probe) = routes.ingress.remove(&RouteId::new(route)) {
            probe.close();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Routes> {
        self.routes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Fabric for MemoryFabric {
    fn ingress(&self, route: &RouteId) -> Result<Ingress, FabricError> {
        let probe = self.lock().ingress.get(route).cloned();
        let probe = probe.ok_or(FabricErrorKind::UnknownRoute)?;
        Ok(Ingress::from_boxed(MemoryIngress { probe }))
    }

    fn subscribe(&self, route: &RouteId) -> Result<Deliveries, FabricError> {
        match self.lock().egress.get_mut(route) {
            None => Err(FabricErrorKind::UnknownRoute.into()),
            Some(deliveries) => deliveries
                .take()
                .ok_or_else(|| FabricErrorKind::Configuration.into()),
        }
    }
}

/// What a test does to one ingress route, and what it sees of it. Clones are one probe.
#[derive(Debug, Clone)]
pub struct IngressProbe(Arc<Probe>);

#[derive(Debug)]
struct Probe {
    state: Mutex<ProbeState>,
    arrived: Notify,
    /// One permit lets one held call go on.
    held: Semaphore,
}

#[derive(Debug)]
struct ProbeState {
    always: Answer,
    script: VecDeque<Answer>,
    kept: VecDeque<Envelope>,
    seen: u64,
    stalled: bool,
    waiting_for_room: Vec<Waker>,
    holds: bool,
    held_now: usize,
    closed: bool,
}

type Answer = Result<Outcome, FabricErrorKind>;

impl ProbeState {
    fn new(outcome: Outcome) -> Self {
        Self {
            always: Ok(outcome),
            script: VecDeque::new(),
            kept: VecDeque::new(),
            seen: 0,
            stalled: false,
            waiting_for_room: Vec::new(),
            holds: false,
            held_now: 0,
            closed: false,
        }
    }

    fn wake_all(&mut self) {
        self.waiting_for_room.drain(..).for_each(Waker::wake);
    }
}

impl IngressProbe {
    /// From now on every call is answered so, after what is scripted.
    pub fn answer(&self, outcome: Outcome) {
        self.lock().always = Ok(outcome);
    }

    /// From now on every call fails so, after what is scripted.
    pub fn fail(&self, kind: FabricErrorKind) {
        self.lock().always = Err(kind);
    }

    /// Scripts the answer of one more call.
    pub fn then(&self, outcome: Outcome) -> &Self {
        self.lock().script.push_back(Ok(outcome));
        self
    }

    /// Scripts the failure of one more call.
    pub fn then_fail(&self, kind: FabricErrorKind) -> &Self {
        self.lock().script.push_back(Err(kind));
        self
    }

    /// Not ready from now on: backpressure.
    pub fn stall(&self) {
        self.lock().stalled = true;
    }

    /// Ready again.
    pub fn resume(&self) {
        let mut state = self.lock();
        state.stalled = false;
        state.wake_all();
    }

    /// From now on calls are taken and not answered, until released.
    pub fn hold(&self) {
        self.lock().holds = true;
    }

    /// Lets `calls` held calls go on; ones that come later are held again.
    pub fn release(&self, calls: usize) {
        self.0.held.add_permits(calls);
    }

    /// Lets every held call go on and holds no more.
    pub fn release_all(&self) {
        let held = {
            let mut state = self.lock();
            state.holds = false;
            state.held_now
        };
        self.release(held);
    }

    /// How many calls are held now.
    #[must_use]
    pub fn held(&self) -> usize {
        self.lock().held_now
    }

    /// The next message that arrived, in order of the calls; waits for one.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn next(&self) -> Envelope {
        loop {
            let arrived = self.0.arrived.notified();
            if let Some(envelope) = self.try_next() {
                return envelope;
            }
            arrived.await;
        }
    }

    /// The next message that arrived, if there is one.
    #[must_use]
    pub fn try_next(&self) -> Option<Envelope> {
        self.lock().kept.pop_front()
    }

    /// How many messages arrived since the start.
    #[must_use]
    pub fn seen(&self) -> u64 {
        self.lock().seen
    }

    /// Ends the route: every later call fails as [`FabricErrorKind::Closed`].
    pub fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.wake_all();
    }

    fn lock(&self) -> MutexGuard<'_, ProbeState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, envelope: Envelope) -> (Answer, Option<HeldCall>) {
        let mut state = self.lock();
        if state.closed {
            return (Err(FabricErrorKind::Closed), None);
        }
        state.seen += 1;
        if state.kept.len() >= MemoryFabric::MAX_KEPT {
            state.kept.pop_front();
        }
        state.kept.push_back(envelope);
        let held = state.holds.then(|| {
            state.held_now += 1;
            HeldCall(self.clone())
        });
        let answer = match state.script.pop_front() {
            Some(answer) => answer,
            None => state.always.clone(),
        };
        drop(state);
        self.0.arrived.notify_one();
        (answer, held)
    }
}

/// Counts a held call for as long as its future lives.
#[derive(Debug)]
struct HeldCall(IngressProbe);

impl HeldCall {
    async fn released(self) {
        if let Ok(permit) = self.0.0.held.acquire().await {
            permit.forget();
        }
    }
}

impl Drop for HeldCall {
    fn drop(&mut self) {
        self.0.lock().held_now -= 1;
    }
}

#[derive(Debug, Clone)]
struct MemoryIngress {
    probe: IngressProbe,
}

impl Service<Envelope> for MemoryIngress {
    type Response = Outcome;
    type Error = FabricError;
    type Future = IngressFuture;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), FabricError>> {
        let mut state = self.probe.lock();
        if state.closed {
            return Poll::Ready(Err(FabricErrorKind::Closed.into()));
        }
        if !state.stalled {
            return Poll::Ready(Ok(()));
        }
        if !state
            .waiting_for_room
            .iter()
            .any(|waker| waker.will_wake(cx.waker()))
        {
            state.waiting_for_room.push(cx.waker().clone());
        }
        Poll::Pending
    }

    fn call(&mut self, envelope: Envelope) -> IngressFuture {
        // Taken in the call, not in its future: the order of calls is the order a test sees.
        let (answer, held) = self.probe.take(envelope);
        Box::pin(async move {
            if let Some(held) = held {
                held.released().await;
            }
            answer.map_err(FabricError::from)
        })
    }
}

/// What a test sends through one egress route.
#[derive(Debug, Clone)]
pub struct EgressProbe {
    sender: DeliverySender,
}

impl EgressProbe {
    /// Pushes a one-way message; the future inside is its outcome.
    ///
    /// # Errors
    /// [`Closed`] when the adapter ended.
    pub async fn push(&self, envelope: Envelope) -> Result<Settled, Closed> {
        self.sender.send(envelope, false, None).await
    }

    /// Pushes a request; its outcome should be a reply.
    ///
    /// # Errors
    /// [`Closed`] when the adapter ended.
    pub async fn request(&self, envelope: Envelope, deadline: Instant) -> Result<Settled, Closed> {
        self.sender.send(envelope, true, Some(deadline)).await
    }

    /// The bare sender.
    #[must_use]
    pub const fn sender(&self) -> &DeliverySender {
        &self.sender
    }
}

#[cfg(test)]
mod tests;
