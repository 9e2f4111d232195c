//! How many payload bytes may wait for one subscriber connection.
//! `[weida PS-8, INV-5]`

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::task::Waker;

/// The bytes queued toward one connection, over all its paths and transfers.
///
/// Charged when a copy is queued and given back when the transport took it, so
/// it covers what waits and what is being written.
#[derive(Debug)]
pub(super) struct Budget {
    queued: AtomicUsize,
    max: usize,
    /// Cheap sign that somebody waits, so that giving back takes no lock.
    awaited: AtomicBool,
    waiting: Mutex<Vec<Waker>>,
}

impl Budget {
    pub(super) fn new(max: usize) -> Self {
        Self {
            queued: AtomicUsize::new(0),
            max,
            awaited: AtomicBool::new(false),
            waiting: Mutex::default(),
        }
    }

    /// Takes `bytes` if they fit.
    pub(super) fn try_charge(&self, bytes: usize) -> bool {
        let within = |queued: usize| {
            let queued = queued.checked_add(bytes)?;
            (queued <= self.max).then_some(queued)
        };
        self.queued
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, within)
            .is_ok()
    }

    /// Gives `bytes` back and wakes whoever waits for room.
    pub(super) fn release(&self, bytes: usize) {
        self.queued.fetch_sub(bytes, Ordering::AcqRel);
        self.room();
    }

    /// Wakes whoever waits: there may be room, here or in a queue.
    pub(super) fn room(&self) {
        if self.awaited.swap(false, Ordering::AcqRel) {
            let waiting = std::mem::take(&mut *self.lock());
            waiting.into_iter().for_each(Waker::wake);
        }
    }

    /// Has `waker` woken by the next [`Budget::release`]. Register first and
    /// try after, or a release in between is missed.
    pub(super) fn wake_on_room(&self, waker: &Waker) {
        let mut waiting = self.lock();
        if !waiting.iter().any(|known| known.will_wake(waker)) {
            waiting.push(waker.clone());
        }
        drop(waiting);
        self.awaited.store(true, Ordering::Release);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Waker>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    pub(super) fn queued(&self) -> usize {
        self.queued.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_holds_exactly_its_bound() {
        let budget = Budget::new(10);
        assert!(budget.try_charge(4) && budget.try_charge(6));
        assert!(!budget.try_charge(1) && budget.try_charge(0));
        assert!(!budget.try_charge(usize::MAX));
        budget.release(6);
        assert!(!budget.try_charge(7) && budget.try_charge(6));
        assert_eq!(budget.queued(), 10);
    }
}
