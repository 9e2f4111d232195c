//! Receipts nobody waits for, kept so that a drain has something to wait on.

use std::collections::VecDeque;
use std::task::Poll;

use super::SendHalf;
use crate::exec::poll_once;

/// Finished streams whose `Delivery` was dropped. `[weida DR-6]`
///
/// Bounded by the connection's stream budgets: a stream that is not
/// acknowledged occupies the peer's budget, so more than that many unsettled
/// ones can only exist while acknowledgements are on their way.
#[derive(Debug)]
pub(crate) struct Receipts {
    parked: VecDeque<SendHalf>,
    capacity: usize,
    evicted: u64,
}

impl Receipts {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            parked: VecDeque::new(),
            capacity: capacity.max(1),
            evicted: 0,
        }
    }

    /// Adds a finished stream and forgets settled ones from the front.
    pub(crate) fn park(&mut self, stream: SendHalf) {
        self.parked.push_back(stream);
        // Two per call: the set shrinks whenever receipts arrive as fast as
        // transfers finish, and a call stays cheap.
        for _ in 0..2 {
            match self.parked.front() {
                Some(oldest) if poll_once(oldest.settled()).is_ready() => {
                    self.parked.pop_front();
                }
                Some(_) | None => break,
            }
        }
        if self.parked.len() > self.capacity {
            self.parked.pop_front();
            self.evicted += 1;
        }
    }

    /// Everything not settled, and how many unsettled ones were evicted.
    pub(crate) fn take(&mut self) -> (Vec<SendHalf>, u64) {
        let unsettled = self
            .parked
            .drain(..)
            .filter(|stream| !matches!(poll_once(stream.settled()), Poll::Ready(Ok(()))))
            .collect();
        (unsettled, std::mem::take(&mut self.evicted))
    }
}
