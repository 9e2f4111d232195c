//! The accounting law as a type: a message is born once and ends once [gateway rule 2].
//!
//! ```text
//! received = delivered + filtered + dropped + dead_lettered + expired + in_flight + queued
//!
//!              ┌──────── queued() ────────┐
//!   born() ──> in flight                  queued ──┬─> delivered   filtered   expired
//!              └─────── in_flight() ──────┘        └─> dropped(cause)   dead_lettered(cause)
//! ```
//!
//! [`Life`] moves along these arrows. It cannot be cloned and each end takes it by value, so the compiler refuses a second
//! end; a path that forgets to end it panics in debug builds and counts as `internal` in release builds.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::outcome::{DropCause, Outcome};
use crate::route::RouteId;

const CAUSES: usize = DropCause::ALL.len();

/// Counters of one route. Reading and writing are relaxed atomics; there is no lock.
#[derive(Debug)]
pub struct Ledger {
    route: RouteId,
    received: AtomicU64,
    received_bytes: AtomicU64,
    delivered: AtomicU64,
    delivered_bytes: AtomicU64,
    filtered: AtomicU64,
    expired: AtomicU64,
    indeterminate: AtomicU64,
    forgotten: AtomicU64,
    in_flight: AtomicU64,
    queued: AtomicU64,
    queued_bytes: AtomicU64,
    dropped: [AtomicU64; CAUSES],
    dead_lettered: [AtomicU64; CAUSES],
}

impl Ledger {
    /// Counters at zero.
    #[must_use]
    pub fn new(route: RouteId) -> Arc<Self> {
        Arc::new(Self {
            route,
            received: AtomicU64::new(0),
            received_bytes: AtomicU64::new(0),
            delivered: AtomicU64::new(0),
            delivered_bytes: AtomicU64::new(0),
            filtered: AtomicU64::new(0),
            expired: AtomicU64::new(0),
            indeterminate: AtomicU64::new(0),
            forgotten: AtomicU64::new(0),
            in_flight: AtomicU64::new(0),
            queued: AtomicU64::new(0),
            queued_bytes: AtomicU64::new(0),
            dropped: [const { AtomicU64::new(0) }; CAUSES],
            dead_lettered: [const { AtomicU64::new(0) }; CAUSES],
        })
    }

    /// Counts a message in. It starts in flight.
    pub fn born(self: &Arc<Self>, payload_bytes: usize) -> Life {
        let bytes = payload_bytes as u64;
        self.received.fetch_add(1, Relaxed);
        self.received_bytes.fetch_add(bytes, Relaxed);
        self.in_flight.fetch_add(1, Relaxed);
        Life {
            ledger: Arc::clone(self),
            bytes,
            stage: Stage::InFlight,
            when_cut: None,
        }
    }

    /// The route these counters belong to.
    #[must_use]
    pub const fn route(&self) -> &RouteId {
        &self.route
    }

    /// Counts an attempt of unknown outcome; the message itself goes on.
    pub fn count_indeterminate(&self) {
        self.indeterminate.fetch_add(1, Relaxed);
    }

    /// All counters. While messages move, the parts may be some messages apart from each other.
    #[must_use]
    pub fn snapshot(&self) -> LedgerSnapshot {
        let table = |counters: &[AtomicU64; CAUSES]| {
            let mut counts = [0; CAUSES];
            for (count, counter) in counts.iter_mut().zip(counters) {
                *count = counter.load(Relaxed);
            }
            Causes(counts)
        };
        LedgerSnapshot {
            received: self.received.load(Relaxed),
            received_bytes: self.received_bytes.load(Relaxed),
            delivered: self.delivered.load(Relaxed),
            delivered_bytes: self.delivered_bytes.load(Relaxed),
            filtered: self.filtered.load(Relaxed),
            expired: self.expired.load(Relaxed),
            indeterminate: self.indeterminate.load(Relaxed),
            forgotten: self.forgotten.load(Relaxed),
            in_flight: self.in_flight.load(Relaxed),
            queued: self.queued.load(Relaxed),
            queued_bytes: self.queued_bytes.load(Relaxed),
            dropped: table(&self.dropped),
            dead_lettered: table(&self.dead_lettered),
        }
    }
}

/// One message's life. Ends exactly once, by value.
///
/// ```
/// use weida_bridge::{DropCause, Ledger, RouteId};
///
/// let ledger = Ledger::new(RouteId::new("readings"));
/// let mut life = ledger.born(5);
/// life.queued();
/// assert_eq!(ledger.snapshot().queued, 1);
/// life.dropped(DropCause::QueueFull);
/// assert_eq!(ledger.snapshot().difference(), 0);
/// ```
///
/// A second end does not compile, nor does a copy that could have one:
///
/// ```compile_fail,E0382
/// # use weida_bridge::{Ledger, RouteId};
/// # let ledger = Ledger::new(RouteId::new("readings"));
/// let life = ledger.born(5);
/// life.delivered();
/// life.expired();
/// ```
///
/// ```compile_fail,E0599
/// # use weida_bridge::{Ledger, RouteId};
/// # let ledger = Ledger::new(RouteId::new("readings"));
/// let life = ledger.born(5);
/// life.clone().delivered();
/// ```
///
/// A life that is not even looked at is a warning, and an error where warnings are:
///
/// ```compile_fail
/// #![deny(unused_must_use)]
/// # use weida_bridge::{Ledger, RouteId};
/// # let ledger = Ledger::new(RouteId::new("readings"));
/// ledger.born(5);
/// ```
#[derive(Debug)]
#[must_use = "a message that is born has to end"]
pub struct Life {
    ledger: Arc<Ledger>,
    bytes: u64,
    stage: Stage,
    when_cut: Option<DropCause>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    InFlight,
    Queued,
    Ended,
}

impl Life {
    /// It waits in a queue of ours now.
    pub fn queued(&mut self) {
        self.move_to(Stage::Queued);
    }

    /// It is on its way to the destination now.
    pub fn in_flight(&mut self) {
        self.move_to(Stage::InFlight);
    }

    /// Names the cause that counts if the future holding this life is dropped.
    ///
    /// For a life held across an `.await` in a task that its owner may cut: there a drop is no forgotten path, and this
    /// says what it is. Everywhere else a life without an end stays a fault.
    pub fn when_cut(mut self, cause: DropCause) -> Self {
        self.when_cut = Some(cause);
        self
    }

    /// The destination reached what the route asks for.
    pub fn delivered(mut self) {
        self.ledger.delivered.fetch_add(1, Relaxed);
        self.ledger.delivered_bytes.fetch_add(self.bytes, Relaxed);
        self.move_to(Stage::Ended);
    }

    /// The route's condition did not hold.
    pub fn filtered(mut self) {
        self.ledger.filtered.fetch_add(1, Relaxed);
        self.move_to(Stage::Ended);
    }

    /// It was lost here.
    pub fn dropped(mut self, cause: DropCause) {
        self.ledger.dropped[cause.index()].fetch_add(1, Relaxed);
        self.move_to(Stage::Ended);
    }

    /// It was kept aside for an operator.
    pub fn dead_lettered(mut self, cause: DropCause) {
        self.ledger.dead_lettered[cause.index()].fetch_add(1, Relaxed);
        self.move_to(Stage::Ended);
    }

    /// Its own lifetime ended.
    pub fn expired(mut self) {
        self.ledger.expired.fetch_add(1, Relaxed);
        self.move_to(Stage::Ended);
    }

    /// Ends it as its final outcome says.
    ///
    /// | Outcome | Counts as |
    /// | --- | --- |
    /// | a level, a reply, a fan-out with at least one copy | delivered |
    /// | a fan-out without copies | dropped: `no_subscriber`, or `queue_full` when every copy was dropped |
    /// | refused | dropped: [`Refusal::cause`](crate::Refusal::cause) |
    /// | dropped, dead-lettered, filtered, expired | itself |
    /// | indeterminate, and no attempt follows | dropped: `attempts_exhausted`; also counted as indeterminate |
    pub fn end(self, outcome: &Outcome) {
        match outcome {
            Outcome::Receipt
            | Outcome::Accepted
            | Outcome::Stored
            | Outcome::Processed
            | Outcome::Reply(_) => self.delivered(),
            Outcome::Fanned {
                copies: 0,
                dropped: 0,
            } => self.dropped(DropCause::NoSubscriber),
            Outcome::Fanned { copies: 0, .. } => self.dropped(DropCause::QueueFull),
            Outcome::Fanned { .. } => self.delivered(),
            Outcome::Refused(refusal) => self.dropped(refusal.cause()),
            Outcome::Dropped(cause) => self.dropped(*cause),
            Outcome::DeadLettered(cause) => self.dead_lettered(*cause),
            Outcome::Filtered => self.filtered(),
            Outcome::Expired => self.expired(),
            Outcome::Indeterminate => {
                self.ledger.count_indeterminate();
                self.dropped(DropCause::AttemptsExhausted);
            }
        }
    }

    /// The counters this life belongs to.
    #[must_use]
    pub const fn ledger(&self) -> &Arc<Ledger> {
        &self.ledger
    }

    /// Moves the gauges. The end is counted before the gauge goes down, so that a reader in between sees a message
    /// twice rather than not at all.
    fn move_to(&mut self, stage: Stage) {
        if stage == self.stage {
            return;
        }
        match stage {
            Stage::InFlight => {
                self.ledger.in_flight.fetch_add(1, Relaxed);
            }
            Stage::Queued => {
                self.ledger.queued.fetch_add(1, Relaxed);
                self.ledger.queued_bytes.fetch_add(self.bytes, Relaxed);
            }
            Stage::Ended => {}
        }
        match self.stage {
            Stage::InFlight => {
                self.ledger.in_flight.fetch_sub(1, Relaxed);
            }
            Stage::Queued => {
                self.ledger.queued.fetch_sub(1, Relaxed);
                self.ledger.queued_bytes.fetch_sub(self.bytes, Relaxed);
            }
            Stage::Ended => {}
        }
        self.stage = stage;
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        if self.stage == Stage::Ended {
            return;
        }
        let cause = self.when_cut.unwrap_or(DropCause::Internal);
        self.ledger.dropped[cause.index()].fetch_add(1, Relaxed);
        self.move_to(Stage::Ended);
        if self.when_cut.is_none() {
            self.ledger.forgotten.fetch_add(1, Relaxed);
            // An unwinding thread has said what is wrong already, and a second panic would abort the process.
            debug_assert!(
                std::thread::panicking(),
                "a message of route {} was forgotten: no path ended it",
                self.ledger.route
            );
        }
    }
}

/// What a [`Ledger`] showed at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LedgerSnapshot {
    /// Messages that entered the route.
    pub received: u64,
    /// Their payload bytes.
    pub received_bytes: u64,
    /// Messages that reached what the route asks for.
    pub delivered: u64,
    /// Their payload bytes.
    pub delivered_bytes: u64,
    /// Messages for which the route's condition did not hold.
    pub filtered: u64,
    /// Messages whose own lifetime ended.
    pub expired: u64,
    /// Attempts of unknown outcome; beside the law, because a message can have several.
    pub indeterminate: u64,
    /// Messages that a path forgot to end; they are in `dropped` as `internal` too.
    pub forgotten: u64,
    /// Messages on their way.
    pub in_flight: u64,
    /// Messages in queues of ours.
    pub queued: u64,
    /// Their payload bytes.
    pub queued_bytes: u64,
    /// Lost messages by cause.
    pub dropped: Causes,
    /// Messages kept aside, by cause.
    pub dead_lettered: Causes,
}

impl LedgerSnapshot {
    /// What the law leaves over: 0 whenever the counters have settled. A lasting other value is a bug of ours.
    #[must_use]
    pub fn difference(&self) -> i64 {
        let accounted = self
            .delivered
            .wrapping_add(self.filtered)
            .wrapping_add(self.dropped.total())
            .wrapping_add(self.dead_lettered.total())
            .wrapping_add(self.expired)
            .wrapping_add(self.in_flight)
            .wrapping_add(self.queued);
        self.received.wrapping_sub(accounted).cast_signed()
    }
}

/// Counts by cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Causes([u64; CAUSES]);

impl Causes {
    /// The count of one cause.
    #[must_use]
    pub const fn of(&self, cause: DropCause) -> u64 {
        self.0[cause.index()]
    }

    /// All causes together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().fold(0, |sum, count| sum.wrapping_add(*count))
    }

    /// Every cause with its count, zeros too, so that every metric series exists from the start.
    pub fn iter(&self) -> impl Iterator<Item = (DropCause, u64)> + '_ {
        DropCause::ALL.iter().copied().zip(self.0)
    }
}

impl Default for Causes {
    fn default() -> Self {
        Self([0; CAUSES])
    }
}

#[cfg(test)]
mod tests;
