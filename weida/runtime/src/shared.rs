//! What every part of one runtime shares.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio_util::sync::CancellationToken;
use weida_core::codes;

use crate::config::RuntimeConfig;
use crate::connection::{Connection, ConnectionId, WeakConnection};
use crate::dial::ClientSockets;
use crate::exec::{Exec, Reactor, Tasks};
use crate::listener::binding::BindingInner;
use crate::pool::Pool;
use crate::pubsub::Pending;

/// The inside of a runtime: configuration, tasks, connections, counters.
///
/// Tasks hold this; application handles hold a [`Life`] as well, and the last
/// of those ends the tasks.
pub(crate) struct Shared {
    pub(crate) config: RuntimeConfig,
    pub(crate) exec: Exec,
    pub(crate) tasks: Tasks,
    pub(crate) pool: Pool,
    pub(crate) sockets: ClientSockets,
    /// Published copies not written yet.
    pub(crate) copies: Pending,
    /// Cancelled when the runtime closes; redials and accept loops end.
    pub(crate) stop: CancellationToken,
    draining: AtomicBool,
    expired: AtomicU64,
    connections: Mutex<HashMap<ConnectionId, WeakConnection>>,
    bindings: Mutex<Vec<Weak<BindingInner>>>,
}

impl Shared {
    pub(crate) fn new(exec: Exec, config: RuntimeConfig) -> Arc<Self> {
        Arc::new(Self {
            tasks: exec.tasks(),
            exec,
            config,
            pool: Pool::default(),
            sockets: ClientSockets::default(),
            copies: Pending::default(),
            stop: CancellationToken::new(),
            draining: AtomicBool::new(false),
            expired: AtomicU64::new(0),
            connections: Mutex::default(),
            bindings: Mutex::default(),
        })
    }

    /// Whether new work is refused.
    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    pub(crate) fn stop_admission(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    pub(crate) fn count_expired(&self) {
        self.expired.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn expired(&self) -> u64 {
        self.expired.load(Ordering::Relaxed)
    }

    pub(crate) fn track(&self, connection: &Connection) {
        self.connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(connection.id(), connection.downgrade());
    }

    pub(crate) fn untrack(&self, connection: &Connection) {
        self.connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&connection.id());
    }

    /// Every connection that is not gone yet.
    pub(crate) fn connections(&self) -> Vec<Connection> {
        self.connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .values()
            .filter_map(WeakConnection::upgrade)
            .collect()
    }

    pub(crate) fn track_binding(&self, binding: &Arc<BindingInner>) {
        let mut bindings = self.bindings.lock().unwrap_or_else(PoisonError::into_inner);
        bindings.retain(|known| known.strong_count() > 0);
        bindings.push(Arc::downgrade(binding));
    }

    pub(crate) fn bindings(&self) -> Vec<Arc<BindingInner>> {
        self.bindings
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
            .filter_map(Weak::upgrade)
            .collect()
    }

    /// Closes everything at once: admission, redials, connections, bindings.
    pub(crate) fn close_now(&self) {
        self.stop_admission();
        self.stop.cancel();
        for connection in self.connections() {
            connection.close(codes::SHUTDOWN, "runtime shut down");
        }
        for binding in self.bindings() {
            binding.close_now();
        }
        self.sockets.close_now();
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("exec", &self.exec)
            .field("draining", &self.is_draining())
            .finish_non_exhaustive()
    }
}

/// What application handles hold: the runtime lives as long as one of them.
#[derive(Debug)]
pub(crate) struct Life {
    pub(crate) shared: Arc<Shared>,
    /// The reactor, when this runtime made it.
    _reactor: Option<Reactor>,
}

impl Life {
    pub(crate) fn new(shared: Arc<Shared>, reactor: Option<Reactor>) -> Arc<Self> {
        Arc::new(Self {
            shared,
            _reactor: reactor,
        })
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        self.shared.close_now();
    }
}
