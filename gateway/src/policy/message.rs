//! What travels through the inner layers: the envelope and the mark that says where in the stack it is.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};

use tokio::time::Instant;
use weida_bridge::Envelope;

use super::stats::RetryCause;

/// A message between [`super::observe`] and the retries.
#[derive(Debug)]
pub struct Message {
    /// The message itself.
    pub envelope: Envelope,
    /// Where it is; shared with the observer.
    pub mark: Mark,
}

/// One message on its way through the attempts; a clone costs two reference counts.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// The message, shared by all attempts.
    pub envelope: Arc<Envelope>,
    /// Number of this attempt, from 1; attempts that found the destination away are not counted.
    pub number: u32,
    /// Where the message is.
    pub mark: Mark,
}

impl Attempt {
    /// The first attempt of a message.
    #[must_use]
    pub fn first(message: Message) -> Self {
        Self {
            envelope: Arc::new(message.envelope),
            number: 1,
            mark: message.mark,
        }
    }

    /// The envelope by value: without a copy when no retry holds a second reference.
    #[must_use]
    pub fn into_envelope(self) -> Envelope {
        let attempt = self.number - 1;
        let mut envelope = Arc::unwrap_or_clone(self.envelope);
        envelope.attempt = attempt;
        envelope
    }
}

/// Where a message stands: waiting for its turn, or in the hands of the destination.
///
/// Written by the layers, read by the observer after each of its polls; it spares the layers a lock around the life of
/// the message.
#[derive(Clone, Debug)]
pub struct Mark(Option<Arc<MarkInner>>);

#[derive(Debug)]
struct MarkInner {
    state: AtomicU8,
    /// Set once an attempt has ended, or been cut, without the destination's answer.
    unknown: AtomicBool,
    attempts: AtomicU32,
    /// A [`RetryCause`] as its index.
    cause: AtomicU8,
    born: Instant,
}

const NO_CAUSE: u8 = u8::MAX;
const WAITING: u8 = 0;
const ATTEMPTING: u8 = 1;

impl Mark {
    /// A message that entered the stack at `born`.
    #[must_use]
    pub fn new(born: Instant) -> Self {
        Self(Some(Arc::new(MarkInner {
            state: AtomicU8::new(WAITING),
            unknown: AtomicBool::new(false),
            attempts: AtomicU32::new(0),
            cause: AtomicU8::new(NO_CAUSE),
            born,
        })))
    }

    /// The mark of a stack that never waits: it says nothing and costs nothing.
    #[must_use]
    pub const fn none() -> Self {
        Self(None)
    }

    /// When the message entered the stack.
    #[must_use]
    pub fn born(&self) -> Option<Instant> {
        self.0.as_ref().map(|mark| mark.born)
    }

    /// It waits: for room, for a permit, for the destination, for a retry.
    pub fn waiting(&self) {
        if let Some(mark) = &self.0 {
            mark.state.store(WAITING, Ordering::Relaxed);
        }
    }

    /// An attempt begins.
    pub fn attempting(&self) {
        if let Some(mark) = &self.0 {
            mark.attempts.fetch_add(1, Ordering::Relaxed);
            mark.state.store(ATTEMPTING, Ordering::Relaxed);
        }
    }

    /// An attempt ended without an answer: the destination may have the message.
    pub fn outcome_unknown(&self) {
        if let Some(mark) = &self.0 {
            mark.unknown.store(true, Ordering::Relaxed);
        }
    }

    /// Remembers why the attempt that just ended is worth another one, where the result alone does not tell.
    pub fn last_cause(&self, cause: RetryCause) {
        if let Some(mark) = &self.0 {
            mark.cause.store(cause as u8, Ordering::Relaxed);
        }
    }

    /// Takes what [`Mark::last_cause`] left.
    #[must_use]
    pub fn take_cause(&self) -> Option<RetryCause> {
        let index = self.0.as_ref()?.cause.swap(NO_CAUSE, Ordering::Relaxed);
        RetryCause::ALL.get(usize::from(index)).copied()
    }

    /// Whether an attempt is running.
    #[must_use]
    pub fn is_attempting(&self) -> bool {
        self.0
            .as_ref()
            .is_some_and(|mark| mark.state.load(Ordering::Relaxed) == ATTEMPTING)
    }

    /// Whether an earlier attempt ended without an answer.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        self.0
            .as_ref()
            .is_some_and(|mark| mark.unknown.load(Ordering::Relaxed))
    }

    /// Whether the destination may have the message although nobody said so.
    #[must_use]
    pub fn may_have_arrived(&self) -> bool {
        self.is_attempting() || self.is_unknown()
    }

    /// How many attempts were begun.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        self.0
            .as_ref()
            .map_or(0, |mark| mark.attempts.load(Ordering::Relaxed))
    }
}
