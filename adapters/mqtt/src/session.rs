//! What a connected client's session is to everybody else: a key, a queue, a way to end it.
//!
//! Nothing here outlives its connection: in this version a session has expiry 0. The connection's
//! own driver keeps identifiers, windows and aliases; this is the part others may touch.

mod queue;
mod subscriptions;
mod takeover;
mod will;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use futures_util::task::AtomicWaker;
use tokio_util::sync::CancellationToken;
use weida_bridge::{SessionKey, SessionRef};

pub(crate) use queue::{Enqueued, MessageCopy, Outbound, Pull};
pub(crate) use subscriptions::Subscriptions;
pub(crate) use takeover::{Claim, NoClaim, Sessions, TableKey};
pub(crate) use will::publication as will_publication;

use crate::acl::Access;

/// The shared half of one session.
#[derive(Debug)]
pub(crate) struct Session {
    /// Names the session in the subscription trie; never reused, never shown.
    number: u64,
    key: SessionKey,
    access: Access,
    shown: Arc<SessionRef>,
    address: SocketAddr,
    outbound: Mutex<Outbound>,
    waker: AtomicWaker,
    ending: OnceLock<Ending>,
    released: CancellationToken,
}

/// Why somebody else ends a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The same principal connected with the same ClientID: 0x8E.
    TakenOver,
    /// The gateway stops: 0x8B.
    Shutdown,
    /// Its queue is full and the policy says so: 0x97.
    QueueFull,
}

impl Session {
    pub(crate) fn new(
        key: SessionKey,
        access: Access,
        shown: Arc<SessionRef>,
        address: SocketAddr,
        outbound: Outbound,
    ) -> Self {
        static NUMBERS: AtomicU64 = AtomicU64::new(1);
        Self {
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            key,
            access,
            shown,
            address,
            outbound: Mutex::new(outbound),
            waker: AtomicWaker::new(),
            ending: OnceLock::new(),
            released: CancellationToken::new(),
        }
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn key(&self) -> &SessionKey {
        &self.key
    }

    pub(crate) fn access(&self) -> &Access {
        &self.access
    }

    pub(crate) fn shown(&self) -> &Arc<SessionRef> {
        &self.shown
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The queue toward the client. Held for a few lines, never across an await.
    pub(crate) fn outbound(&self) -> MutexGuard<'_, Outbound> {
        self.outbound.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a copy into the queue and wakes the driver when it may be asleep.
    pub(crate) fn enqueue(&self, copy: MessageCopy) -> Enqueued {
        let (enqueued, wake) = self.outbound().push(copy);
        if enqueued == Enqueued::EndSession {
            self.end(Ending::QueueFull);
        } else if wake {
            self.waker.wake();
        }
        enqueued
    }

    /// Ends the session; the first reason stands.
    pub(crate) fn end(&self, ending: Ending) {
        let _: Result<(), Ending> = self.ending.set(ending); // a later reason changes nothing
        self.waker.wake();
    }

    pub(crate) fn ending(&self) -> Option<Ending> {
        self.ending.get().copied()
    }

    /// Where the driver sleeps.
    pub(crate) fn waker(&self) -> &AtomicWaker {
        &self.waker
    }

    /// Cancelled once nothing of the session is left in router and table.
    pub(crate) fn released(&self) -> &CancellationToken {
        &self.released
    }
}
