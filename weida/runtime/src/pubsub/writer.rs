//! Whole copies on their way to one subscriber: a bounded queue and the task
//! that empties it.
//!
//! A publish puts a copy in and never waits. The task opens one stream per
//! copy, writes head and payload, finishes, and goes on with the next without
//! waiting for receipts. It is one per (connection, path), so a subscriber that
//! does not read one path holds up nothing but that path. `[weida CN-2, PS-10]`

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use bytes::Bytes;

use super::budget::Budget;
use super::{DropCause, Pending};
use crate::connection::{Connection, SendFail};

/// Copies one (connection, path) may have waiting. `[wire 18]`
pub(super) const MAX_QUEUED_COPIES: usize = 1024;
/// Copies written in a row before other tasks get a turn.
const BATCH: u32 = 64;

/// One copy of one message. Its chunks are shared with every other copy.
#[derive(Clone, Debug)]
pub(super) struct Copy {
    /// Frame head and payload; the second may be empty.
    pub(super) chunks: [Bytes; 2],
    /// What the copy counts in its subscriber's budget.
    pub(super) payload_bytes: usize,
}

/// The queue of one (connection, path).
pub(super) struct Writer {
    connection: Connection,
    budget: Arc<Budget>,
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    copies: VecDeque<Copy>,
    /// The task's, while it waits for a copy.
    waker: Option<Waker>,
    phase: Phase,
    /// The task holds a copy it took out.
    writing: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Open,
    /// The subscriber left the path; what is queued is still written.
    Leaving,
    /// The task is gone.
    Ended,
}

impl Writer {
    /// A writer for `connection` and the task that serves it.
    pub(super) fn start(connection: &Connection, budget: &Arc<Budget>) -> Arc<Self> {
        let writer = Arc::new(Self {
            connection: connection.clone(),
            budget: Arc::clone(budget),
            queue: Mutex::default(),
        });
        let task = Arc::clone(&writer);
        connection
            .shared()
            .tasks
            .spawn(async move { task.run().await });
        writer
    }

    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    pub(super) fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    /// Queues `copy`, or says which bound is reached. Never waits.
    pub(super) fn push(&self, copy: &Copy) -> Result<(), DropCause> {
        let mut queue = self.lock();
        if queue.copies.len() >= MAX_QUEUED_COPIES || queue.phase != Phase::Open {
            return Err(DropCause::Queue);
        }
        if !self.budget.try_charge(copy.payload_bytes) {
            return Err(DropCause::Budget);
        }
        self.pending().add();
        queue.copies.push_back(copy.clone());
        let waker = queue.waker.take();
        drop(queue);
        // Only a sleeping task is woken: a busy one looks again by itself.
        if let Some(waker) = waker {
            waker.wake();
        }
        Ok(())
    }

    /// Takes no more copies; what is queued is still written. Returns whether
    /// nothing was, so that this writer is over.
    pub(super) fn leave(&self) -> bool {
        let mut queue = self.lock();
        if queue.phase == Phase::Open {
            queue.phase = Phase::Leaving;
        }
        let over = queue.copies.is_empty() && !queue.writing;
        let waker = queue.waker.take();
        drop(queue);
        if let Some(waker) = waker {
            waker.wake();
        }
        over
    }

    /// Takes copies again, if the task has not ended. A subscriber that comes
    /// and goes gets no second queue while the first is not empty.
    pub(super) fn rejoin(&self) -> bool {
        let mut queue = self.lock();
        if queue.phase == Phase::Leaving {
            queue.phase = Phase::Open;
        }
        queue.phase == Phase::Open
    }

    /// Whether the task ended.
    pub(super) fn is_over(&self) -> bool {
        self.lock().phase == Phase::Ended
    }

    /// Takes no more copies and forgets what is queued. The connection is gone.
    pub(super) fn abandon(&self) {
        let mut queue = self.lock();
        queue.phase = Phase::Ended;
        let forgotten = std::mem::take(&mut queue.copies);
        let waker = queue.waker.take();
        drop(queue);
        for copy in &forgotten {
            self.budget.release(copy.payload_bytes);
        }
        self.pending().settle(forgotten.len());
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    async fn run(&self) {
        let mut in_a_row = 0;
        while let Some(mut copy) = self.next().await {
            let written = self.write(&mut copy).await;
            self.budget.release(copy.payload_bytes);
            self.pending().settle(1);
            if written == Written::ConnectionGone {
                self.abandon();
                return;
            }
            in_a_row += 1;
            if in_a_row == BATCH {
                in_a_row = 0;
                tokio::task::yield_now().await;
            }
        }
    }

    /// The oldest copy; `None` once over.
    async fn next(&self) -> Option<Copy> {
        poll_fn(|cx| {
            let mut queue = self.lock();
            let copy = queue.copies.pop_front();
            queue.writing = copy.is_some();
            match queue.phase {
                Phase::Open | Phase::Leaving if copy.is_some() => Poll::Ready(copy),
                Phase::Open => {
                    queue.waker = Some(cx.waker().clone());
                    Poll::Pending
                }
                Phase::Leaving | Phase::Ended => {
                    queue.phase = Phase::Ended;
                    Poll::Ready(None)
                }
            }
        })
        .await
    }

    /// One stream. A stop from the subscriber ends this copy and no other.
    async fn write(&self, copy: &mut Copy) -> Written {
        let Ok(mut stream) = self.connection.open_uni().await else {
            return Written::ConnectionGone;
        };
        let used = 1 + usize::from(!copy.chunks[1].is_empty());
        let written = match stream.write_chunks(&mut copy.chunks[..used]).await {
            Ok(()) => stream.finish(),
            Err(fail) => Err(fail),
        };
        match written {
            Ok(()) => self.connection.park_receipt(stream),
            Err(SendFail::Lost(_)) => return Written::ConnectionGone,
            Err(SendFail::Stopped(_) | SendFail::Closed) => {}
        }
        Written::Settled
    }

    fn pending(&self) -> &Pending {
        &self.connection.shared().copies
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What came of one copy, as far as the next one is concerned.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Written {
    Settled,
    ConnectionGone,
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer")
            .field("connection", &self.connection)
            .finish_non_exhaustive()
    }
}
