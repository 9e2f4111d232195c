//! Dialled addresses: each outlives its connection until it is forgotten.
//!
//! ```text
//!            connect ok                 lost, policy redials
//! (no slot) ───────────▶ live ──────────────────────────────▶ down
//!                          ▲            redial ok               │
//!                          └────────────────────────────────────┤
//!                                       gave up ◀───────────────┘
//! ```
//!
//! A redial restores the transport and what this side owns, nothing else. The
//! key the first connection proved is pinned for every later one.
//! `[weida 6.2]`, `[wire 23]`

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use weida_core::{Address, CloseReason, Error, Fingerprint, LossCause, PeerIdentity, Result};

use crate::connection::Connection;
use crate::connection::head::Frame;
use crate::dial::Target;
use crate::pool::{Lease, Pool};
use crate::reconnect::{EventHub, GiveUp, PeerEvent, PeerEvents};
use crate::shared::Shared;
use crate::stats::{ConnectionStats, TransportStats};
use crate::tls::ClientTls;
use crate::transfer::TransferMeta;

mod chooser;
mod keep;

pub(crate) use chooser::Chooser;

/// A boxed future of a [`Registration`].
pub(crate) type Installing<'a> = Pin<Box<dyn Future<Output = Result<()>> + Send + 'a>>;

/// What a dialling endpoint puts on every connection of its slots: a
/// subscriber's route and filters. `[weida RD-5, PS-5]`
pub(crate) trait Registration: fmt::Debug + Send + Sync + 'static {
    /// Called on the first connection and after every redial, before the slot
    /// counts as live. `path` is the dialled path. An error ends the dial: it
    /// is `connect`'s result, and on a redial the slot gives up.
    fn install<'a>(&'a self, connection: &'a Connection, path: &'a str) -> Installing<'a>;

    /// Called when the slot stops using `connection`: it was lost
    /// (`live == false`), or the address was forgotten or the endpoint dropped
    /// (`live == true`: what was installed must be withdrawn).
    fn removed(&self, connection: &Connection, path: &str, live: bool);

    /// Whether a close with LIMIT_EXCEEDED would be about what was installed.
    /// `[weida RD-8]`
    fn carries_filters(&self) -> bool;
}

/// The addresses one endpoint dialled, and how it chooses among them. Dropping
/// it forgets them all.
#[derive(Debug)]
pub(crate) struct Dialler(Arc<Set>);

struct Set {
    shared: Arc<Shared>,
    tls: ClientTls,
    slots: RwLock<Vec<Arc<Slot>>>,
    /// Round-robin position.
    turn: AtomicUsize,
    /// Counts slot transitions, for whoever waits for one.
    changes: watch::Sender<u64>,
    events: EventHub,
    registration: Option<Arc<dyn Registration>>,
    /// Cancelled when the endpoint is dropped. The end of the runtime is not a
    /// reason of its own: it closes the connections, and a slot follows those.
    stop: CancellationToken,
}

/// One dialled address.
pub(crate) struct Slot {
    url: Arc<str>,
    target: Target,
    /// The head of a transfer that says nothing but the path.
    plain: Frame,
    state: Mutex<State>,
    redials: AtomicU64,
    stop: CancellationToken,
}

#[derive(Debug)]
enum State {
    Live(Lease),
    /// Being redialled after this loss.
    Down(LossCause),
    GaveUp(End),
}

/// How a slot ended, as the next operation reports it.
#[derive(Clone, Debug)]
enum End {
    Lost(LossCause),
    Limit(CloseReason),
    PeerChanged(Option<Fingerprint>),
}

impl End {
    fn error(&self) -> Error {
        match self {
            Self::Lost(cause) => Error::ConnectionLost(cause.clone()),
            Self::Limit(reason) => Error::LimitExceeded(Some(reason.clone())),
            Self::PeerChanged(Some(presented)) => Error::Untrusted(*presented),
            Self::PeerChanged(None) => Error::Tls("the address answered without a key".into()),
        }
    }
}

/// What a round of choosing found.
pub(crate) enum Pick {
    /// A live connection and the slot it belongs to.
    Live(Connection, Arc<Slot>),
    /// Every slot is down and at least one is being redialled.
    Down,
    /// Every slot gave up.
    Dead(Error),
    /// Nothing was ever connected.
    Never,
}

impl Dialler {
    pub(crate) fn new(
        shared: &Arc<Shared>,
        tls: ClientTls,
        registration: Option<Arc<dyn Registration>>,
    ) -> Self {
        Self(Arc::new(Set {
            shared: Arc::clone(shared),
            tls,
            slots: RwLock::default(),
            turn: AtomicUsize::new(0),
            changes: watch::Sender::new(0),
            events: EventHub::new(),
            registration,
            stop: CancellationToken::new(),
        }))
    }

    /// Dials `url` and keeps it as a slot.
    ///
    /// # Errors
    ///
    /// The first dial's failure is returned and leaves no slot.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future abandons the dial.
    pub(crate) async fn connect(&self, url: &str) -> Result<()> {
        let set = &self.0;
        // Nothing falls back to another transport. [weida AD-8]
        let Address::Quic(addr) = Address::parse(url)? else {
            return Err(Error::InvalidAddress(format!(
                "{url:?} names a transport this version does not have"
            )));
        };
        let plain = TransferMeta::default().frame(&addr.path)?;
        let target = Target {
            addr,
            tls: set.tls.clone(),
        };
        let lease = Pool::lease(&set.shared, &target, None).await?;
        set.install(&lease).await?;
        let pinned = proved(&lease);
        let slot = Arc::new(Slot {
            url: url.into(),
            target,
            plain,
            state: Mutex::new(State::Down(LossCause::LocallyClosed)),
            redials: AtomicU64::new(0),
            stop: set.stop.child_token(),
        });
        // A second connect of one address replaces nothing: it is one more
        // slot, with one more turn.
        set.slots
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .push(Arc::clone(&slot));
        set.went_live(&slot, lease);
        let keep = keep::keep(Arc::clone(set), slot, pinned);
        set.shared.tasks.spawn(keep);
        Ok(())
    }

    /// Forgets `url`; whether it was known.
    pub(crate) fn disconnect(&self, url: &str) -> bool {
        let set = &self.0;
        let mut gone = Vec::new();
        set.slots
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|slot| {
                let keep = *slot.url != *url;
                if !keep {
                    gone.push(Arc::clone(slot));
                }
                keep
            });
        for slot in &gone {
            set.retire(slot);
        }
        set.changed();
        !gone.is_empty()
    }

    /// Slots whose connection is open. `[weida RD-7]`
    pub(crate) fn peer_count(&self) -> usize {
        self.live().len()
    }

    /// Every live connection with its dialled path.
    pub(crate) fn live(&self) -> Vec<(Connection, Arc<str>)> {
        let slots = self.0.slots.read().unwrap_or_else(PoisonError::into_inner);
        slots
            .iter()
            .filter_map(|slot| {
                let connection = slot.live()?;
                connection
                    .is_live()
                    .then(|| (connection, slot.path().into()))
            })
            .collect()
    }

    pub(crate) fn stats(&self) -> Vec<ConnectionStats> {
        let slots = self.0.slots.read().unwrap_or_else(PoisonError::into_inner);
        let now = self.0.shared.exec.now();
        slots
            .iter()
            .filter_map(|slot| {
                let connection = slot.live()?;
                connection.is_live().then(|| ConnectionStats {
                    url: Arc::clone(&slot.url),
                    age: now - connection.established(),
                    redials: slot.redials.load(Ordering::Relaxed),
                    transport: Some(TransportStats::of(connection.quic())),
                    remote: None,
                })
            })
            .collect()
    }

    pub(crate) fn events(&self) -> PeerEvents {
        self.0.events.subscribe()
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.0.shared
    }

    /// One round of choosing, without waiting.
    pub(crate) fn pick(&self) -> Pick {
        self.0.pick()
    }

    /// A wait for live peers; one per operation, so that its deadline covers
    /// every wait of it.
    pub(crate) fn chooser(&self) -> Chooser {
        Chooser::new(Arc::clone(&self.0), self.0.shared.config.send_timeout)
    }

    /// A wait without a deadline, for the outbox.
    pub(crate) fn patient_chooser(&self) -> Chooser {
        Chooser::new(Arc::clone(&self.0), None)
    }

    /// How the last slot ended, when there are slots and none is left to wait
    /// for.
    pub(crate) fn ended(&self) -> Option<Error> {
        match self.0.census() {
            Census::Dead(error) => Some(error),
            Census::Some | Census::Never => None,
        }
    }

    /// Follows slot transitions.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.0.changes.subscribe()
    }
}

impl Drop for Dialler {
    fn drop(&mut self) {
        self.0.stop.cancel();
        let slots =
            std::mem::take(&mut *self.0.slots.write().unwrap_or_else(PoisonError::into_inner));
        for slot in slots {
            self.0.retire(&slot);
        }
        self.0.changed();
    }
}

/// What the slots are, live ones aside.
enum Census {
    Some,
    Dead(Error),
    Never,
}

// === impl Set ===

impl Set {
    fn pick(&self) -> Pick {
        let slots = self.slots.read().unwrap_or_else(PoisonError::into_inner);
        let count = slots.len();
        if count == 0 {
            return Pick::Never;
        }
        let start = if count == 1 {
            0
        } else {
            self.turn.fetch_add(1, Ordering::Relaxed)
        };
        for step in 0..count {
            let slot = &slots[start.wrapping_add(step) % count];
            if let Some(connection) = slot.live() {
                return Pick::Live(connection, Arc::clone(slot));
            }
        }
        drop(slots);
        match self.census() {
            Census::Some => Pick::Down,
            Census::Dead(error) => Pick::Dead(error),
            Census::Never => Pick::Never,
        }
    }

    fn census(&self) -> Census {
        let slots = self.slots.read().unwrap_or_else(PoisonError::into_inner);
        let mut last = Census::Never;
        for slot in slots.iter() {
            match &*slot.lock() {
                State::Live(_) | State::Down(_) => return Census::Some,
                State::GaveUp(end) => last = Census::Dead(end.error()),
            }
        }
        last
    }

    /// What a slot that is down was lost to.
    fn loss(&self) -> LossCause {
        let slots = self.slots.read().unwrap_or_else(PoisonError::into_inner);
        slots
            .iter()
            .find_map(|slot| match &*slot.lock() {
                State::Down(cause) => Some(cause.clone()),
                State::Live(_) | State::GaveUp(_) => None,
            })
            .unwrap_or(LossCause::IdleTimeout)
    }

    async fn install(&self, lease: &Lease) -> Result<()> {
        match &self.registration {
            None => Ok(()),
            Some(registration) => {
                let path = &lease.target().addr.path;
                registration.install(lease.connection(), path).await
            }
        }
    }

    fn removed(&self, connection: &Connection, path: &str, live: bool) {
        if let Some(registration) = &self.registration {
            registration.removed(connection, path, live);
        }
    }

    fn went_live(&self, slot: &Slot, lease: Lease) {
        let peer = lease.connection().peer();
        *slot.lock() = State::Live(lease);
        self.changed();
        self.events.emit(PeerEvent::Connected {
            url: Arc::clone(&slot.url),
            peer,
        });
    }

    fn gave_up(&self, slot: &Slot, end: End, why: GiveUp) {
        *slot.lock() = State::GaveUp(end);
        self.changed();
        tracing::info!(url = %slot.url, ?why, "address given up");
        self.events.emit(PeerEvent::GaveUp {
            url: Arc::clone(&slot.url),
            why,
        });
    }

    /// Ends a slot that was forgotten.
    fn retire(&self, slot: &Slot) {
        slot.stop.cancel();
        let before = std::mem::replace(&mut *slot.lock(), State::Down(LossCause::LocallyClosed));
        if let State::Live(lease) = before {
            self.removed(lease.connection(), slot.path(), true);
        }
    }

    fn changed(&self) {
        self.changes
            .send_modify(|count| *count = count.wrapping_add(1));
    }
}

impl fmt::Debug for Set {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Set").finish_non_exhaustive()
    }
}

// === impl Slot ===

impl Slot {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn live(&self) -> Option<Connection> {
        match &*self.lock() {
            State::Live(lease) => Some(lease.connection().clone()),
            State::Down(_) | State::GaveUp(_) => None,
        }
    }

    pub(crate) fn path(&self) -> &str {
        &self.target.addr.path
    }

    /// The frame head of a transfer toward this slot's path.
    pub(crate) fn head(&self, meta: &TransferMeta) -> Result<Frame> {
        if meta.is_plain() {
            Ok(self.plain.clone())
        } else {
            meta.frame(self.path())
        }
    }
}

fn proved(lease: &Lease) -> Option<Fingerprint> {
    lease
        .connection()
        .peer()
        .as_ref()
        .and_then(PeerIdentity::key)
}
