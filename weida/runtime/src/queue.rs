//! A bounded queue many may fill and many may read, with few wake-ups.
//!
//! Each registered path owns one: the connections serving the namespace put
//! arrivals in, the endpoint takes them out. A full queue is never grown and
//! never drops: [`Queue::try_push`] gives the item back and the connection
//! stops reading that stream, so the transport's flow control carries the
//! backpressure to the sender. `[weida FC-4]`

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// A bounded FIFO; closed by its reader.
pub(crate) struct Queue<T> {
    state: Mutex<State<T>>,
    items: Notify,
    room: Notify,
    capacity: usize,
}

struct State<T> {
    items: VecDeque<T>,
    /// Producers parked for room; lets the fast path skip the wake-up.
    waiting: usize,
    closed: bool,
}

/// Why an item was given back.
#[derive(Debug)]
pub(crate) enum PushError<T> {
    /// No room now.
    Full(T),
    /// The reader is gone for good.
    Closed(T),
}

impl<T> Queue<T> {
    /// An empty queue of at most `capacity` items (at least one).
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            state: Mutex::new(State {
                items: VecDeque::new(),
                waiting: 0,
                closed: false,
            }),
            items: Notify::new(),
            room: Notify::new(),
            capacity: capacity.max(1),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends `item` if there is room and nobody waits before it.
    pub(crate) fn try_push(&self, item: T) -> Result<(), PushError<T>> {
        let mut state = self.lock();
        if state.closed {
            return Err(PushError::Closed(item));
        }
        if state.items.len() >= self.capacity || state.waiting > 0 {
            return Err(PushError::Full(item));
        }
        state.items.push_back(item);
        drop(state);
        self.items.notify_one();
        Ok(())
    }

    /// Waits for room and appends; gives the item back once closed.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the item and leaks no place.
    pub(crate) async fn push(&self, item: T) -> Result<(), T> {
        let mut waiter = Waiter {
            queue: self,
            counted: false,
        };
        loop {
            let room = self.room.notified();
            {
                let mut state = self.lock();
                if state.closed {
                    return Err(item);
                }
                if state.items.len() < self.capacity {
                    state.items.push_back(item);
                    if std::mem::take(&mut waiter.counted) {
                        state.waiting -= 1;
                    }
                    let more = state.items.len() < self.capacity && state.waiting > 0;
                    drop(state);
                    self.items.notify_one();
                    if more {
                        self.room.notify_one();
                    }
                    return Ok(());
                }
                if !waiter.counted {
                    waiter.counted = true;
                    state.waiting += 1;
                }
            }
            room.await;
        }
    }

    /// Takes the oldest item, if any.
    pub(crate) fn try_pop(&self) -> Option<T> {
        let mut state = self.lock();
        let item = state.items.pop_front()?;
        let wake = state.waiting > 0;
        drop(state);
        if wake {
            self.room.notify_one();
        }
        Some(item)
    }

    /// Waits for the oldest item; `None` once closed and empty.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost: an item is taken only as the future completes.
    pub(crate) async fn pop(&self) -> Option<T> {
        loop {
            let arrived = self.items.notified();
            {
                let mut state = self.lock();
                if let Some(item) = state.items.pop_front() {
                    let (wake, more) = (state.waiting > 0, !state.items.is_empty());
                    drop(state);
                    if wake {
                        self.room.notify_one();
                    }
                    if more {
                        // A second reader must not sleep beside a full queue
                        // because one permit covered many items.
                        self.items.notify_one();
                    }
                    return Some(item);
                }
                if state.closed {
                    return None;
                }
            }
            arrived.await;
        }
    }

    /// Refuses everything from here on and hands back what was queued.
    pub(crate) fn close(&self) -> VecDeque<T> {
        let mut state = self.lock();
        state.closed = true;
        let left = std::mem::take(&mut state.items);
        drop(state);
        self.items.notify_waiters();
        self.items.notify_one();
        self.room.notify_waiters();
        left
    }
}

impl<T> fmt::Debug for Queue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue")
            .field("capacity", &self.capacity)
            .finish_non_exhaustive()
    }
}

/// Keeps the count of parked producers right when a wait is dropped.
struct Waiter<'a, T> {
    queue: &'a Queue<T>,
    counted: bool,
}

impl<T> Drop for Waiter<'_, T> {
    fn drop(&mut self) {
        if self.counted {
            self.queue.lock().waiting -= 1;
            // Its wake-up, if it already had one, belongs to the next.
            self.queue.room.notify_one();
        }
    }
}
