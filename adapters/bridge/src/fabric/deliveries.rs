//! The egress half: a bounded queue of deliveries, each with one answer.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::time::Instant;

use crate::envelope::Envelope;
use crate::outcome::Outcome;

/// A queue of at most `bound` deliveries (at least 1) between the fabric and one adapter.
///
/// When full, [`DeliverySender::send`] waits. Its bytes are bounded by `bound` times the route's largest message; use
/// [`deliveries_within`] for a bound of its own.
#[must_use]
pub fn deliveries(bound: usize) -> (DeliverySender, Deliveries) {
    let (sender, receiver) = mpsc::channel(bound.max(1));
    (
        DeliverySender {
            sender,
            budget: None,
        },
        Deliveries { receiver },
    )
}

/// As [`deliveries`], and at most `max_bytes` of payload wait in it; one payload larger than that waits alone.
#[must_use]
pub fn deliveries_within(bound: usize, max_bytes: usize) -> (DeliverySender, Deliveries) {
    let (mut sender, receiver) = deliveries(bound);
    let kib = (max_bytes / KIB).clamp(1, MAX_KIB);
    sender.budget = Some(Budget {
        kib,
        semaphore: Arc::new(Semaphore::new(kib)),
    });
    (sender, receiver)
}

/// What one egress route delivers.
///
/// Dropping it settles everything still queued as `Indeterminate`: nothing of it was tried, but the fabric must not
/// take the end of an adapter for a refusal.
#[derive(Debug)]
pub struct Deliveries {
    receiver: mpsc::Receiver<Queued>,
}

impl Deliveries {
    /// The next delivery; `None` when the fabric ended the route.
    ///
    /// # Cancel safety
    /// Safe: a delivery is either returned or still queued.
    pub async fn next(&mut self) -> Option<Delivery> {
        self.receiver.recv().await.map(|queued| queued.delivery)
    }

    /// Takes what is queued now, without waiting.
    pub fn try_next(&mut self) -> Option<Delivery> {
        self.receiver.try_recv().ok().map(|queued| queued.delivery)
    }

    /// Refuses further deliveries; those queued can still be taken. For a drain.
    pub fn close(&mut self) {
        self.receiver.close();
    }

    /// How many wait now.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.receiver.len()
    }
}

impl Stream for Deliveries {
    type Item = Delivery;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Delivery>> {
        self.receiver
            .poll_recv(cx)
            .map(|queued| queued.map(|queued| queued.delivery))
    }
}

/// One message toward the foreign side, to be settled once. Dropping it settles `Indeterminate`.
#[derive(Debug)]
#[must_use = "a delivery that is dropped is settled as indeterminate"]
pub struct Delivery {
    /// The message.
    pub envelope: Envelope,
    settle: Settle,
}

impl Delivery {
    /// True when a requester waits for [`Outcome::Reply`].
    #[must_use]
    pub const fn wants_reply(&self) -> bool {
        self.settle.wants_reply
    }

    /// After this nobody waits for the answer.
    #[must_use]
    pub const fn deadline(&self) -> Option<Instant> {
        self.settle.deadline
    }

    /// Says what became of it. Whoever waited may be gone; that is no error.
    pub fn settle(self, outcome: Outcome) {
        self.settle.settle(outcome);
    }

    /// Splits message and answer, so that the message can move on without a copy.
    pub fn into_parts(self) -> (Envelope, Settle) {
        (self.envelope, self.settle)
    }
}

/// The answer of a delivery whose message went elsewhere. Dropping it settles `Indeterminate`.
#[derive(Debug)]
#[must_use = "an answer that is dropped is settled as indeterminate"]
pub struct Settle {
    answer: oneshot::Sender<Outcome>,
    wants_reply: bool,
    deadline: Option<Instant>,
}

impl Settle {
    /// Says what became of the message.
    pub fn settle(self, outcome: Outcome) {
        let _: Result<(), Outcome> = self.answer.send(outcome); // the waiting side is gone: it counted that itself
    }

    /// True when a requester waits for [`Outcome::Reply`].
    #[must_use]
    pub const fn wants_reply(&self) -> bool {
        self.wants_reply
    }

    /// After this nobody waits for the answer.
    #[must_use]
    pub const fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// True when nobody waits for the answer any more.
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        self.answer.is_closed()
    }
}

/// The fabric's end of a route's deliveries.
#[derive(Debug, Clone)]
pub struct DeliverySender {
    sender: mpsc::Sender<Queued>,
    budget: Option<Budget>,
}

impl DeliverySender {
    /// Queues a message, waiting for room, and gives the future of its outcome.
    ///
    /// # Errors
    /// [`Closed`] with the message when the adapter ended.
    ///
    /// # Cancel safety
    /// Dropped before it is done, the message is not queued and gone.
    pub async fn send(
        &self,
        envelope: Envelope,
        wants_reply: bool,
        deadline: Option<Instant>,
    ) -> Result<Settled, Closed> {
        // The slot first: holding bytes while waiting for one would let two senders block each other's budget.
        let Ok(slot) = self.sender.reserve().await else {
            return Err(Closed::new(envelope));
        };
        let bytes = match &self.budget {
            Some(budget) => tokio::select! {
                biased;
                () = self.sender.closed() => return Err(Closed::new(envelope)),
                bytes = budget.take(envelope.payload.len()) => bytes,
            },
            None => None,
        };
        let (queued, settled) = Queued::new(envelope, wants_reply, deadline, bytes);
        slot.send(queued);
        Ok(settled)
    }

    /// Queues a message if there is room now.
    ///
    /// # Errors
    /// [`TrySendError`] with the message.
    pub fn try_send(
        &self,
        envelope: Envelope,
        wants_reply: bool,
        deadline: Option<Instant>,
    ) -> Result<Settled, TrySendError> {
        let slot = match self.sender.try_reserve() {
            Ok(slot) => slot,
            Err(mpsc::error::TrySendError::Full(())) => {
                return Err(TrySendError::Full(Box::new(envelope)));
            }
            Err(mpsc::error::TrySendError::Closed(())) => {
                return Err(TrySendError::Closed(Closed::new(envelope)));
            }
        };
        let bytes = match &self.budget {
            Some(budget) => match budget.try_take(envelope.payload.len()) {
                Some(bytes) => Some(bytes),
                None => return Err(TrySendError::Full(Box::new(envelope))),
            },
            None => None,
        };
        let (queued, settled) = Queued::new(envelope, wants_reply, deadline, bytes);
        slot.send(queued);
        Ok(settled)
    }

    /// Resolves when the adapter ended.
    pub async fn closed(&self) {
        self.sender.closed().await;
    }

    /// How many more messages fit now.
    #[must_use]
    pub fn room(&self) -> usize {
        self.sender.capacity()
    }
}

/// The outcome of a queued delivery; `Indeterminate` when it was dropped unsettled.
#[derive(Debug)]
#[must_use = "the outcome says whether the source may be settled"]
pub struct Settled(oneshot::Receiver<Outcome>);

impl Future for Settled {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Outcome> {
        Pin::new(&mut self.0)
            .poll(cx)
            .map(|answer| answer.unwrap_or(Outcome::Indeterminate))
    }
}

/// The adapter ended; the message comes back.
#[derive(Debug, thiserror::Error)]
#[error("the adapter takes no more deliveries")]
pub struct Closed {
    /// The message that was not queued.
    pub envelope: Box<Envelope>,
}

impl Closed {
    fn new(envelope: Envelope) -> Self {
        Self {
            envelope: Box::new(envelope),
        }
    }
}

/// A message that was not queued.
#[derive(Debug, thiserror::Error)]
pub enum TrySendError {
    /// No room for one more message, or for its bytes.
    #[error("the delivery queue is full")]
    Full(Box<Envelope>),
    /// The adapter ended.
    #[error(transparent)]
    Closed(#[from] Closed),
}

#[derive(Debug)]
struct Queued {
    delivery: Delivery,
    /// Given back when the delivery leaves the queue.
    _bytes: Option<OwnedSemaphorePermit>,
}

impl Queued {
    fn new(
        envelope: Envelope,
        wants_reply: bool,
        deadline: Option<Instant>,
        bytes: Option<OwnedSemaphorePermit>,
    ) -> (Self, Settled) {
        let (answer, settled) = oneshot::channel();
        let delivery = Delivery {
            envelope,
            settle: Settle {
                answer,
                wants_reply,
                deadline,
            },
        };
        (
            Self {
                delivery,
                _bytes: bytes,
            },
            Settled(settled),
        )
    }
}

/// Payload bytes that may wait, in KiB, so that a permit count fits a `u32`.
#[derive(Debug, Clone)]
struct Budget {
    kib: usize,
    semaphore: Arc<Semaphore>,
}

impl Budget {
    async fn take(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        // Never closed, so this cannot fail; without a permit the message still has its slot.
        Arc::clone(&self.semaphore)
            .acquire_many_owned(self.share(bytes))
            .await
            .ok()
    }

    fn try_take(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.semaphore)
            .try_acquire_many_owned(self.share(bytes))
            .ok()
    }

    fn share(&self, bytes: usize) -> u32 {
        u32::try_from(bytes.div_ceil(KIB).min(self.kib)).unwrap_or(u32::MAX)
    }
}

const KIB: usize = 1024;
/// 1 TiB; also below what a semaphore and a `u32` hold.
const MAX_KIB: usize = 1 << 28;
