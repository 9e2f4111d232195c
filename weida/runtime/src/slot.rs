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
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use weida_core::{
    Address, CloseReason, Error, Fingerprint, LossCause, PeerIdentity, Result, codes,
};

use crate::connection::Connection;
use crate::connection::head::Frame;
use crate::dial::Target;
use crate::pool::{Lease, Pool};
use crate::reconnect::{EventHub, GiveUp, PeerEvent, PeerEvents, ReconnectPolicy};
use crate::shared::Shared;
use crate::stats::{ConnectionStats, TransportStats};
use crate::tls::ClientTls;
use crate::transfer::TransferMeta;

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
        let keep = keep(Arc::clone(set), slot, pinned);
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

/// Keeps one slot: follows its connection, redials it, gives it up.
async fn keep(set: Arc<Set>, slot: Arc<Slot>, pinned: Option<Fingerprint>) {
    let mut attempt = 0;
    loop {
        let Some(connection) = slot.live() else {
            return;
        };
        let cause = tokio::select! {
            biased;
            () = slot.stop.cancelled() => return,
            cause = connection.closed() => cause,
        };
        let lease = std::mem::replace(&mut *slot.lock(), State::Down(cause.clone()));
        if slot.stop.is_cancelled() {
            return;
        }
        set.removed(&connection, slot.path(), false);
        drop(lease);
        set.changed();
        let lived = set.shared.exec.now() - connection.established();
        let policy = &set.shared.config.reconnect;
        if lived >= policy.max {
            // Only a connection that stayed up earns a fresh schedule, so a
            // crash loop is redialled ever more slowly.
            attempt = 0;
        }
        set.events.emit(PeerEvent::Lost {
            url: Arc::clone(&slot.url),
            cause: cause.clone(),
        });
        if let Some(end) = set.refuses_redial(policy, &cause) {
            set.gave_up(&slot, end.0, end.1);
            return;
        }
        if !redial(&set, &slot, pinned, &cause, &mut attempt).await {
            return;
        }
    }
}

impl Set {
    /// Why a loss is not redialled at all.
    fn refuses_redial(&self, policy: &ReconnectPolicy, cause: &LossCause) -> Option<(End, GiveUp)> {
        let policy_end = || Some((End::Lost(cause.clone()), GiveUp::Policy { attempts: 0 }));
        match cause {
            LossCause::LocallyClosed => policy_end(),
            LossCause::PeerClosed(Some(reason))
                if reason.code() == codes::LIMIT_EXCEEDED
                    && self
                        .registration
                        .as_ref()
                        .is_some_and(|registration| registration.carries_filters()) =>
            {
                // The same filters would be refused again, for ever. [weida RD-8]
                Some((
                    End::Limit(reason.clone()),
                    GiveUp::Failed(reason.to_string()),
                ))
            }
            LossCause::PeerClosed(_) if policy.stop_on_peer_closed => policy_end(),
            _ if !policy.redials() => policy_end(),
            _ => None,
        }
    }
}

/// Redials until the slot is live again; `false` when it is over.
async fn redial(
    set: &Arc<Set>,
    slot: &Slot,
    pinned: Option<Fingerprint>,
    cause: &LossCause,
    attempt: &mut u32,
) -> bool {
    let policy = set.shared.config.reconnect.clone();
    let mut tried = 0;
    // The peer said that a successor serves, or is about to. [wire 23]
    let mut at_once = *cause == LossCause::PeerRestarting;
    loop {
        if policy.max_attempts.is_some_and(|max| *attempt >= max) {
            let why = GiveUp::Policy { attempts: tried };
            set.gave_up(slot, End::Lost(cause.clone()), why);
            return false;
        }
        *attempt = attempt.saturating_add(1);
        tried += 1;
        let delay = if std::mem::take(&mut at_once) {
            std::time::Duration::ZERO
        } else {
            policy.delay(*attempt)
        };
        set.events.emit(PeerEvent::Retrying {
            url: Arc::clone(&slot.url),
            attempt: *attempt,
            delay,
        });
        let dial = async {
            set.shared.exec.sleep(delay).await;
            let lease = Pool::lease(&set.shared, &slot.target, pinned).await?;
            if proved(&lease) != pinned {
                return Err(Redial::Changed(proved(&lease)));
            }
            set.install(&lease).await.map_err(Redial::Install)?;
            Ok::<_, Redial>(lease)
        };
        let result = tokio::select! {
            biased;
            () = slot.stop.cancelled() => return false,
            () = set.shared.stop.cancelled() => {
                let why = GiveUp::Policy { attempts: tried - 1 };
                set.gave_up(slot, End::Lost(LossCause::LocallyClosed), why);
                return false;
            }
            result = dial => result,
        };
        let (end, why) = match result {
            Ok(lease) => {
                slot.redials.fetch_add(1, Ordering::Relaxed);
                set.went_live(slot, lease);
                return true;
            }
            Err(Redial::Changed(presented) | Redial::Dial(DialError::Untrusted(presented))) => (
                End::PeerChanged(presented),
                GiveUp::PeerChanged { presented },
            ),
            Err(Redial::Dial(DialError::Final(error))) => {
                (End::Lost(cause.clone()), GiveUp::Failed(error.to_string()))
            }
            Err(Redial::Install(error)) => match error {
                // The connection went away under the registration: a loss like
                // any other.
                Error::ConnectionLost(_) | Error::Indeterminate | Error::Transport(_) => continue,
                Error::LimitExceeded(Some(reason)) => {
                    let text = reason.to_string();
                    (End::Limit(reason), GiveUp::Failed(text))
                }
                error => (End::Lost(cause.clone()), GiveUp::Failed(error.to_string())),
            },
            Err(Redial::Dial(DialError::Again(error))) => {
                tracing::debug!(url = %slot.url, %error, "redial failed");
                continue;
            }
        };
        set.gave_up(slot, end, why);
        return false;
    }
}

/// Why a redial did not bring the slot back.
enum Redial {
    Changed(Option<Fingerprint>),
    Install(Error),
    Dial(DialError),
}

enum DialError {
    Untrusted(Option<Fingerprint>),
    /// Trying again would not change it.
    Final(Error),
    Again(Error),
}

impl From<Error> for Redial {
    fn from(error: Error) -> Self {
        Self::Dial(match error {
            Error::Untrusted(presented) => DialError::Untrusted(Some(presented)),
            Error::Tls(_) | Error::Negotiation(_) | Error::Unsupported | Error::Protocol(_) => {
                DialError::Final(error)
            }
            error => DialError::Again(error),
        })
    }
}

fn proved(lease: &Lease) -> Option<Fingerprint> {
    lease
        .connection()
        .peer()
        .as_ref()
        .and_then(PeerIdentity::key)
}

// === impl Chooser ===

/// Chooses live peers for one operation, waiting for redials in between.
pub(crate) struct Chooser {
    set: Arc<Set>,
    changes: watch::Receiver<u64>,
    deadline: Option<Instant>,
}

impl Chooser {
    fn new(set: Arc<Set>, limit: Option<std::time::Duration>) -> Self {
        let deadline = limit.map(|limit| set.shared.exec.now() + limit);
        Self {
            changes: set.changes.subscribe(),
            set,
            deadline,
        }
    }

    /// The next live peer, round-robin. `[weida RD-1]`
    ///
    /// # Errors
    ///
    /// [`Error::NotConnected`] at once when nothing was ever connected; how the
    /// last slot ended when all gave up; [`Error::ConnectionLost`] when the
    /// deadline passed while every peer was down.
    pub(crate) async fn next(&mut self) -> Result<(Connection, Arc<Slot>)> {
        loop {
            self.changes.borrow_and_update();
            match self.set.pick() {
                Pick::Live(connection, slot) => return Ok((connection, slot)),
                Pick::Dead(error) => return Err(error),
                Pick::Never => return Err(Error::NotConnected),
                Pick::Down => self.wait().await?,
            }
        }
    }

    /// Waits until the slot no longer offers `connection`, which was found
    /// dead before anything was written on it.
    pub(crate) async fn lost(&mut self, connection: &Connection, slot: &Slot) -> Result<()> {
        loop {
            self.changes.borrow_and_update();
            if !slot.live().is_some_and(|live| live.is(connection)) {
                return Ok(());
            }
            self.wait().await?;
        }
    }

    async fn wait(&mut self) -> Result<()> {
        let changed = self.changes.changed();
        let result = match self.deadline {
            None => Some(changed.await),
            Some(deadline) => {
                let exec = &self.set.shared.exec;
                let left = deadline.saturating_duration_since(exec.now());
                exec.timeout(left, changed).await
            }
        };
        match result {
            Some(Ok(())) => Ok(()),
            // The set lives as long as this, so only the deadline is left.
            Some(Err(_)) | None => Err(Error::ConnectionLost(self.set.loss())),
        }
    }
}
