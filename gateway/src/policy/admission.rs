//! Layers 4 to 6: who gets in when the route is full, and the room behind the door.
//!
//! tower's `buffer` is a channel into a worker task: one hop and one wake-up per message, and a worker that can be lost.
//! What a route needs of it is its bound and its first-come order, and tokio's fair semaphores give both without a hop:
//! one counts messages, one counts KiB, because a count bounds no memory. See `docs/decisions`.
//!
//! | `overflow` | a source finds the route full |
//! | --- | --- |
//! | `block` | `poll_ready` is pending: the source is not read |
//! | `reject` | `Refused(QueueFull)` |
//! | `drop-newest` | `Dropped(QueueFull)` |
//! | `drop-oldest` | the message that waits longest is dropped, this one takes its room |

use std::collections::BTreeMap;
use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio_util::sync::PollSemaphore;
use tower_layer::Layer;
use tower_service::Service;
use weida_bridge::{DropCause, Envelope, FabricError, FabricErrorKind, Outcome, Refusal};

use super::message::{Attempt, Message};
use super::stats::RouteStats;
use crate::config::valid::Overflow;

/// The room of one route.
#[derive(Debug)]
pub struct Room {
    slots: Arc<Semaphore>,
    kib: Arc<Semaphore>,
    max_messages: usize,
    max_kib: u32,
    /// Messages that `drop-oldest` may push out, oldest first; empty under every other policy.
    waiting: Mutex<BTreeMap<u64, Waiting>>,
    next: AtomicU64,
}

/// A message that has room and not yet an attempt.
#[derive(Debug)]
struct Waiting {
    room: Permits,
    /// Dropped to tell the message that it was pushed out.
    _evict: oneshot::Sender<()>,
}

/// What one message occupies.
#[derive(Debug)]
struct Permits {
    _slot: OwnedSemaphorePermit,
    _kib: OwnedSemaphorePermit,
}

impl Room {
    /// Room for that many messages and bytes: `buffer.messages` beside the `in_flight` that are being sent.
    ///
    /// # Limits
    /// At least one message and one KiB; bytes are counted in KiB, rounded up, one at least for each message.
    #[must_use]
    pub fn new(max_messages: usize, max_bytes: usize) -> Arc<Self> {
        let max_messages = max_messages.clamp(1, Semaphore::MAX_PERMITS);
        let max_kib = u32::try_from(max_bytes.div_ceil(1024))
            .unwrap_or(u32::MAX)
            .max(1);
        Arc::new(Self {
            slots: Arc::new(Semaphore::new(max_messages)),
            kib: Arc::new(Semaphore::new(
                usize::try_from(max_kib).unwrap_or(usize::MAX),
            )),
            max_messages,
            max_kib,
            waiting: Mutex::new(BTreeMap::new()),
            next: AtomicU64::new(0),
        })
    }

    /// Messages inside.
    #[must_use]
    pub fn messages(&self) -> usize {
        self.max_messages - self.slots.available_permits()
    }

    /// KiB inside.
    #[must_use]
    pub fn kib(&self) -> usize {
        (self.max_kib as usize).saturating_sub(self.kib.available_permits())
    }

    /// KiB that this message is charged with: payload, headers, and one for the rest of it. A message larger than the
    /// whole room takes all of it.
    fn charge(&self, envelope: &Envelope) -> u32 {
        let bytes = envelope.payload.len() + envelope.meta.bytes();
        u32::try_from(bytes / 1024 + 1)
            .unwrap_or(u32::MAX)
            .min(self.max_kib)
    }

    fn try_enter(&self, kib: u32) -> Option<Permits> {
        let slot = Arc::clone(&self.slots).try_acquire_owned().ok()?;
        let kib = Arc::clone(&self.kib).try_acquire_many_owned(kib).ok()?;
        Some(Permits {
            _slot: slot,
            _kib: kib,
        })
    }

    /// Pushes out as many of the oldest waiting messages as this one needs.
    fn enter_over_the_oldest(&self, kib: u32) -> Option<Permits> {
        loop {
            if let Some(room) = self.try_enter(kib) {
                return Some(room);
            }
            // Its room is free when the entry is dropped, before its own task has heard of it.
            let (_, _oldest) = self.lock().pop_first()?;
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Builds [`Admission`] services.
#[derive(Clone, Debug)]
pub struct AdmissionLayer {
    /// The room behind the door.
    pub room: Arc<Room>,
    /// What happens at the door when it is full.
    pub overflow: Overflow,
    /// Where sources that wait are counted.
    pub stats: Arc<RouteStats>,
}

impl<S> Layer<S> for AdmissionLayer {
    type Service = Admission<S>;

    fn layer(&self, inner: S) -> Admission<S> {
        Admission {
            door: Door::new(self),
            terms: self.clone(),
            inner,
        }
    }
}

/// Lets messages in by the route's `overflow`, and holds their room until they end.
///
/// A ready service under `block` holds a place: poll it with a message in hand, and drop it when there is none.
#[derive(Debug)]
pub struct Admission<S> {
    terms: AdmissionLayer,
    door: Door,
    inner: S,
}

impl<S: Clone> Clone for Admission<S> {
    fn clone(&self) -> Self {
        // A place at the door belongs to whoever waited for it.
        Self {
            door: Door::new(&self.terms),
            terms: self.terms.clone(),
            inner: self.inner.clone(),
        }
    }
}

impl<S> Service<Message> for Admission<S>
where
    S: Service<Attempt, Response = Outcome, Error = FabricError> + Clone + Send + 'static,
    S::Future: Send,
{
    type Response = Outcome;
    type Error = FabricError;
    type Future = Pin<Box<dyn Future<Output = Result<Outcome, FabricError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), FabricError>> {
        match self.terms.overflow {
            Overflow::Block => self.door.poll(cx, &self.terms.stats),
            Overflow::Reject | Overflow::DropNewest | Overflow::DropOldest => Poll::Ready(Ok(())),
        }
    }

    fn call(&mut self, message: Message) -> Self::Future {
        let room = &self.terms.room;
        let kib = room.charge(&message.envelope);
        let full = || Outcome::Dropped(DropCause::QueueFull);
        let permits = match self.terms.overflow {
            Overflow::Block => {
                let slot = self.door.enter();
                return Box::pin(enter_waiting(
                    Arc::clone(room),
                    slot,
                    kib,
                    self.inner.clone(),
                    message,
                ));
            }
            Overflow::Reject => room
                .try_enter(kib)
                .ok_or(Outcome::Refused(Refusal::QueueFull)),
            Overflow::DropNewest => room.try_enter(kib).ok_or_else(full),
            Overflow::DropOldest => room.enter_over_the_oldest(kib).ok_or_else(full),
        };
        let permits = match permits {
            Ok(permits) => permits,
            Err(outcome) => return Box::pin(ready(Ok(outcome))),
        };
        let inner = self.inner.clone();
        if self.terms.overflow == Overflow::DropOldest {
            Box::pin(Evictable::enter(Arc::clone(room), permits, message).run(inner))
        } else {
            Box::pin(async move {
                let _permits = permits;
                pass(inner, Attempt::first(message)).await
            })
        }
    }
}

/// Calls a service once it is ready.
async fn pass<S>(mut inner: S, attempt: Attempt) -> Result<Outcome, FabricError>
where
    S: Service<Attempt, Response = Outcome, Error = FabricError>,
{
    std::future::poll_fn(|cx| inner.poll_ready(cx)).await?;
    inner.call(attempt).await
}

async fn enter_waiting<S>(
    room: Arc<Room>,
    slot: Option<OwnedSemaphorePermit>,
    kib: u32,
    inner: S,
    message: Message,
) -> Result<Outcome, FabricError>
where
    S: Service<Attempt, Response = Outcome, Error = FabricError>,
{
    let closed = |_| FabricError::from(FabricErrorKind::Closed);
    let slot = match slot {
        Some(slot) => slot,
        // Called without being polled ready; waiting here keeps the bound.
        None => Arc::clone(&room.slots)
            .acquire_owned()
            .await
            .map_err(closed)?,
    };
    let kib = Arc::clone(&room.kib)
        .acquire_many_owned(kib)
        .await
        .map_err(closed)?;
    let _permits = Permits {
        _slot: slot,
        _kib: kib,
    };
    pass(inner, Attempt::first(message)).await
}

/// The place of one clone of the service in front of a blocking route.
#[derive(Debug)]
struct Door {
    slots: PollSemaphore,
    kib: PollSemaphore,
    slot: Option<OwnedSemaphorePermit>,
    /// One KiB, held until the call: the source is not read while the bytes are used up or somebody waits for some.
    probe: Option<OwnedSemaphorePermit>,
    blocked: Option<Blocked>,
}

impl Door {
    fn new(terms: &AdmissionLayer) -> Self {
        Self {
            slots: PollSemaphore::new(Arc::clone(&terms.room.slots)),
            kib: PollSemaphore::new(Arc::clone(&terms.room.kib)),
            slot: None,
            probe: None,
            blocked: None,
        }
    }

    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        stats: &Arc<RouteStats>,
    ) -> Poll<Result<(), FabricError>> {
        for (semaphore, permit) in [
            (&mut self.slots, &mut self.slot),
            (&mut self.kib, &mut self.probe),
        ] {
            if permit.is_some() {
                continue;
            }
            match semaphore.poll_acquire(cx) {
                Poll::Ready(Some(acquired)) => *permit = Some(acquired),
                Poll::Ready(None) => return Poll::Ready(Err(FabricErrorKind::Closed.into())),
                Poll::Pending => {
                    self.blocked.get_or_insert_with(|| Blocked::new(stats));
                    return Poll::Pending;
                }
            }
        }
        self.blocked = None;
        Poll::Ready(Ok(()))
    }

    /// Gives the slot away and the probe back: the message takes what it needs, first come first served, and two
    /// probes can never wait for each other.
    fn enter(&mut self) -> Option<OwnedSemaphorePermit> {
        self.probe = None;
        self.slot.take()
    }
}

/// Counts a source as blocked while it lives.
#[derive(Debug)]
struct Blocked(Arc<RouteStats>);

impl Blocked {
    fn new(stats: &Arc<RouteStats>) -> Self {
        stats.source_blocked();
        Self(Arc::clone(stats))
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        self.0.source_released();
    }
}

/// A message that may be pushed out while it waits.
#[derive(Debug)]
struct Evictable {
    place: Place,
    evicted: oneshot::Receiver<()>,
    message: Message,
}

/// Its entry among the waiting; leaving it gives the room back.
#[derive(Debug)]
struct Place {
    room: Arc<Room>,
    id: u64,
}

impl Drop for Place {
    fn drop(&mut self) {
        let gone = self.room.lock().remove(&self.id);
        drop(gone);
    }
}

impl Evictable {
    fn enter(room: Arc<Room>, permits: Permits, message: Message) -> Self {
        let (evict, evicted) = oneshot::channel();
        let id = room.next.fetch_add(1, Ordering::Relaxed);
        room.lock().insert(
            id,
            Waiting {
                room: permits,
                _evict: evict,
            },
        );
        Self {
            place: Place { room, id },
            evicted,
            message,
        }
    }

    async fn run<S>(self, mut inner: S) -> Result<Outcome, FabricError>
    where
        S: Service<Attempt, Response = Outcome, Error = FabricError>,
    {
        let Self {
            place,
            mut evicted,
            message,
        } = self;
        let pushed_out = Ok(Outcome::Dropped(DropCause::QueueFull));
        tokio::select! {
            biased;
            _ = &mut evicted => return pushed_out,
            ready = std::future::poll_fn(|cx| inner.poll_ready(cx)) => ready?,
        }
        // From here on it is being sent and can't be pushed out: its room moves out of the list.
        let Some(waiting) = place.room.lock().remove(&place.id) else {
            return pushed_out;
        };
        let _permits = waiting.room;
        inner.call(Attempt::first(message)).await
    }
}
