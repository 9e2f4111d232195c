//! Publish and subscribe: who subscribed to what on one namespace.
//!
//! ```text
//! SUBSCRIBE ─▶ Registry ─▶ Path ─▶ FilterIndex        publish ─▶ Path ─▶ Writer ─▶ stream
//!              per listener  per path  by shape                    match    per (connection, path)
//! ```
//!
//! A subscription's only name is (connection, path, filter); it is recorded
//! whether or not somebody publishes there, never answered, and gone with its
//! connection. `[wire 21]`, `[weida S17-1 to S17-7, S17-26]`

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use weida_core::Filter;
use weida_protocol::SubscriptionHeader;

use crate::config::RuntimeConfig;
use crate::connection::{Connection, ConnectionId};
use crate::listener::table::Recorded;

mod admission;
mod budget;
mod drops;
mod fanout;
mod index;
mod lane;
mod path;
mod pending;
mod writer;

pub use admission::{Admission, SubscriptionRequest};
pub use drops::TopicDrops;
pub use fanout::FanOut;
pub use path::Published;

pub(crate) use drops::{DropCause, DropTable};
pub(crate) use lane::{Lane, Room, Say};
pub(crate) use path::{Path, Said};
pub(crate) use pending::Pending;

use admission::Hook;
use budget::Budget;
use path::Kept;

/// Who subscribed to what on one listener.
///
/// Connections call it for well-formed frames; publishers take their path from
/// it. Its lock covers recording only: a publish locks nothing but its path.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    paths: HashMap<Box<str>, Arc<Path>>,
    connections: HashMap<ConnectionId, Held>,
}

/// What one connection holds over all paths.
#[derive(Debug)]
struct Held {
    /// Paths with a filter or an unwritten copy of it, each once.
    paths: Vec<Arc<Path>>,
    filters: usize,
    budget: Arc<Budget>,
}

impl Registry {
    /// Records one filter of one connection, whatever serves the path now.
    pub(crate) fn subscribe(
        &self,
        connection: &Connection,
        header: &SubscriptionHeader<'_>,
    ) -> Recorded {
        let path = header.endpoint;
        let Ok(filter) = &header.filter.parse::<Filter>() else {
            return Recorded::Ignored; // the decoder lets none through
        };
        let max = connection.shared().config.limits.max_subscriptions;
        loop {
            let (at, repeated) = {
                let state = self.lock();
                let known = state.paths.get(path);
                let repeated = known.is_some_and(|path| path.holds(connection.id(), filter));
                let held = state.connections.get(&connection.id());
                if !repeated && held.map_or(0, |held| held.filters) >= max {
                    return Recorded::OverLimit { max };
                }
                (known.cloned(), repeated)
            };
            // The application is asked outside every lock.
            let (hook, epoch) = at.as_ref().map_or((None, 0), |at| at.hook());
            let declined =
                hook.is_some_and(|hook| path::ask(&hook, connection, path, filter.as_str()));
            match self.record(connection, path, filter, declined, epoch, max) {
                Some(Recorded::New) if repeated => {}
                Some(recorded) => return recorded,
                None => {}
            }
        }
    }

    /// `None` if the answer is out of date.
    fn record(
        &self,
        connection: &Connection,
        name: &str,
        filter: &Filter,
        declined: bool,
        epoch: u64,
        max: usize,
    ) -> Option<Recorded> {
        let config = &connection.shared().config;
        let mut state = self.lock();
        // A head may be read after its connection was cleaned up here.
        if !connection.is_live() {
            return Some(Recorded::Ignored);
        }
        let path = state.path(name, config);
        let held = state
            .connections
            .entry(connection.id())
            .or_insert_with(|| Held {
                paths: Vec::new(),
                filters: 0,
                budget: Arc::new(Budget::new(config.limits.subscriber_buffer_bytes)),
            });
        if held.filters >= max && !path.holds(connection.id(), filter) {
            return Some(Recorded::OverLimit { max });
        }
        match path.record(connection, &held.budget, filter, declined, epoch) {
            Kept::Stale => None,
            Kept::Repeated => Some(Recorded::Repeated),
            Kept::New => {
                held.filters += 1;
                if !held.paths.iter().any(|known| Arc::ptr_eq(known, &path)) {
                    held.paths.push(path);
                }
                Some(Recorded::New)
            }
        }
    }

    /// Withdraws one filter; whether the connection held it. `[weida S17-16]`
    pub(crate) fn unsubscribe(&self, connection: &Connection, path: &str, filter: &str) -> bool {
        let mut state = self.lock();
        let State { paths, connections } = &mut *state;
        let (Some(path), Some(held)) = (paths.get(path), connections.get_mut(&connection.id()))
        else {
            return false;
        };
        let removed = path.withdraw(connection.id(), filter);
        if removed {
            held.filters -= 1;
            // Swept at every withdrawal, so that paths a peer came by and left
            // do not add up.
            let mut left = Vec::new();
            held.paths.retain(|path| {
                let concerned = path.concerns(connection.id());
                if !concerned {
                    left.push(Arc::clone(path));
                }
                concerned
            });
            left.iter().for_each(|path| state.forget_if_idle(path));
        }
        removed
    }

    /// Forgets a connection that is gone; the paths it held anything on, each
    /// once. `[weida PS-14, S8-22]`
    pub(crate) fn connection_closed(&self, connection: &Connection) -> Vec<Box<str>> {
        let mut state = self.lock();
        let Some(held) = state.connections.remove(&connection.id()) else {
            return Vec::new();
        };
        let mut names = Vec::with_capacity(held.paths.len());
        for path in held.paths {
            path.drop_connection(connection.id());
            state.forget_if_idle(&path);
            names.push(path.name().into());
        }
        names
    }

    /// The path for a publisher, with whatever was recorded before it came.
    /// `[weida S17-6]`
    pub(crate) fn attach(self: &Arc<Self>, path: &str, config: &RuntimeConfig) -> Attached {
        let mut state = self.lock();
        let path = state.path(path, config);
        path.attach();
        Attached {
            registry: Arc::clone(self),
            path,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn path(&mut self, name: &str, config: &RuntimeConfig) -> Arc<Path> {
        if let Some(path) = self.paths.get(name) {
            return Arc::clone(path);
        }
        let path = Path::new(name, config);
        self.paths.insert(name.into(), Arc::clone(&path));
        path
    }

    fn forget_if_idle(&mut self, path: &Path) {
        if path.is_idle() {
            self.paths.remove(path.name());
        }
    }
}

/// A publisher's hold on its path; dropping it gives the path up. Recorded
/// subscriptions stay for a successor.
#[derive(Debug)]
pub(crate) struct Attached {
    registry: Arc<Registry>,
    path: Arc<Path>,
}

impl Attached {
    pub(crate) fn path(&self) -> &Arc<Path> {
        &self.path
    }

    /// Lets `decide` say whose copies are sent; see
    /// [`Publisher::with_admission`](crate::Publisher::with_admission).
    pub(crate) fn admit(
        &self,
        decide: impl Fn(&SubscriptionRequest<'_>) -> Admission + Send + Sync + 'static,
    ) {
        self.path.admit(Hook::new(decide));
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        self.path.detach();
        self.registry.lock().forget_if_idle(&self.path);
    }
}
