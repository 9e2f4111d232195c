//! The flat table of paths one namespace serves.
//!
//! A listener has one, shared by all its bindings; so has every dialled
//! connection, empty until a subscriber claims the path its copies arrive on.
//! A lookup is byte equality and nothing else: no splitting, no prefix, no
//! wildcard. `[weida AD-1, AD-2, AD-3]`

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use tokio_util::sync::CancellationToken;
use weida_core::{Error, Result, codes};
use weida_protocol::SubscriptionHeader;

use crate::connection::Connection;
use crate::exec::Scope;
use crate::pubsub::Registry;
use crate::queue::{PushError, Queue};
use crate::stream::Incoming;
use crate::transfer::{IncomingRequest, IncomingTransfer};

/// What serves a path.
#[derive(Clone, Debug)]
pub(crate) enum Route {
    /// Exchanges, answered.
    Replier(Arc<Queue<IncomingRequest>>),
    /// One-way transfers; a puller's, or the copies of a subscriber.
    Puller(Arc<Queue<IncomingTransfer>>),
    /// Nothing inbound: the path only sends.
    Publisher,
    /// Both stream kinds and subscription events.
    Raw(Arc<Queue<Incoming>>),
}

/// What became of a SUBSCRIBE. Never sent anywhere. `[weida S17-1]`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recorded {
    /// Recorded; whoever serves the path may be told.
    New,
    /// The connection held this filter already.
    Repeated,
    /// This side publishes nothing.
    Ignored,
    /// One more than the connection may hold; it must be closed.
    OverLimit {
        /// `max_subscriptions`.
        max: usize,
    },
}

/// The paths of one namespace and the subscriptions made on them.
pub(crate) struct Table {
    routes: RwLock<HashMap<Box<str>, Route>>,
    /// `None` on a dialled connection, which publishes nothing. `[weida S17-7]`
    registry: Option<Arc<Registry>>,
    /// Claimed paths whose holder is on its way out; done when it is gone.
    leaving: Mutex<HashMap<Box<str>, CancellationToken>>,
}

impl Table {
    /// The namespace of a listener.
    pub(crate) fn serving(registry: Arc<Registry>) -> Arc<Self> {
        Arc::new(Self {
            routes: RwLock::default(),
            registry: Some(registry),
            leaving: Mutex::default(),
        })
    }

    /// The namespace of a dialled connection.
    pub(crate) fn dialled() -> Arc<Self> {
        Arc::new(Self {
            routes: RwLock::default(),
            registry: None,
            leaving: Mutex::default(),
        })
    }

    /// What serves exactly `path`.
    pub(crate) fn route(&self, path: &str) -> Option<Route> {
        self.routes
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(path)
            .cloned()
    }

    /// Registers `route` at `path` until the claim is dropped.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidEndpointPath`], or [`Error::AlreadyRegistered`] whatever
    /// pattern holds the path.
    pub(crate) fn claim(self: &Arc<Self>, path: &str, route: Route) -> Result<Claim> {
        weida_core::validate_endpoint_path(path)?;
        let mut routes = self.routes.write().unwrap_or_else(PoisonError::into_inner);
        match routes.entry(path.into()) {
            Entry::Occupied(_) => Err(Error::AlreadyRegistered),
            Entry::Vacant(free) => {
                free.insert(route);
                Ok(Claim {
                    table: Arc::clone(self),
                    path: path.into(),
                })
            }
        }
    }

    /// Resolves once the holder of `path` is gone, if it is on its way out.
    pub(crate) fn leaving(&self, path: &str) -> Option<CancellationToken> {
        let leaving = self.leaving.lock().unwrap_or_else(PoisonError::into_inner);
        leaving.get(path).cloned()
    }

    /// The subscriptions of this namespace; `None` on a dialled connection.
    pub(crate) fn registry(&self) -> Option<&Arc<Registry>> {
        self.registry.as_ref()
    }

    /// Records a SUBSCRIBE whose filter is well-formed.
    pub(crate) fn subscribe(
        &self,
        connection: &Connection,
        header: &SubscriptionHeader<'_>,
    ) -> Recorded {
        match &self.registry {
            Some(registry) => registry.subscribe(connection, header),
            None => Recorded::Ignored,
        }
    }

    /// Withdraws a subscription; whether the connection held it.
    pub(crate) fn unsubscribe(&self, connection: &Connection, path: &str, filter: &str) -> bool {
        self.registry
            .as_ref()
            .is_some_and(|registry| registry.unsubscribe(connection, path, filter))
    }

    /// Drops everything `connection` held, on every path. `[weida PS-14]`
    pub(crate) fn connection_closed(&self, connection: &Connection) {
        let Some(registry) = &self.registry else {
            return;
        };
        for path in registry.connection_closed(connection) {
            if let Some(Route::Raw(queue)) = self.route(&path) {
                let event = Incoming::Unsubscribed {
                    id: connection.id().into(),
                    filter: None,
                };
                if let Some(waiting) = queue.offer(event) {
                    // The connection's own tasks are ending with it.
                    connection.shared().tasks.spawn(waiting.deliver());
                }
            }
        }
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table").finish_non_exhaustive()
    }
}

/// A registered path; dropping it frees the path.
#[derive(Debug)]
pub(crate) struct Claim {
    table: Arc<Table>,
    path: Arc<str>,
}

impl Claim {
    pub(crate) fn path(&self) -> &Arc<str> {
        &self.path
    }

    /// Says that this claim will be dropped soon, for whoever waits to succeed
    /// it.
    pub(crate) fn leave(&self) {
        self.table
            .leaving
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert((*self.path).into(), CancellationToken::new());
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.table
            .routes
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&*self.path);
        let waited_for = self
            .table
            .leaving
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&*self.path);
        if let Some(waited_for) = waited_for {
            waited_for.cancel();
        }
    }
}

/// An accepted arrival whose queue is full: it waits, and its stream stays
/// unread, so the sender feels the windows. `[weida FC-4]`
#[derive(Debug)]
pub(crate) enum Delivered {
    Transfer(Arc<Queue<IncomingTransfer>>, IncomingTransfer),
    Request(Arc<Queue<IncomingRequest>>, IncomingRequest),
    Raw(Arc<Queue<Incoming>>, Incoming),
}

impl Delivered {
    /// Waits for room in a task of its own.
    pub(crate) fn forward(self, scope: &mut Scope) {
        scope.spawn(self.deliver());
    }

    /// Tries again without waiting.
    pub(crate) fn retry(self) -> Option<Self> {
        match self {
            Self::Transfer(queue, item) => queue.offer(item),
            Self::Request(queue, item) => queue.offer(item),
            Self::Raw(queue, item) => queue.offer(item),
        }
    }

    /// Waits for room; an endpoint that is gone answers as an empty path.
    pub(crate) async fn deliver(self) {
        match self {
            Self::Transfer(queue, item) => {
                if let Err(item) = queue.push(item).await {
                    item.refuse(codes::UNKNOWN_ENDPOINT);
                }
            }
            // A request dropped unanswered says NO_REPLY by itself.
            Self::Request(queue, item) => drop(queue.push(item).await),
            Self::Raw(queue, item) => {
                if let Err(Incoming::Stream(item)) = queue.push(item).await {
                    item.refuse(codes::UNKNOWN_ENDPOINT);
                }
            }
        }
    }
}

/// Puts an arrival into a queue or says that it must wait.
pub(crate) trait Offer<T> {
    /// `None` when the arrival is settled, queued or refused.
    fn offer(self: &Arc<Self>, item: T) -> Option<Delivered>;
}

impl Offer<IncomingTransfer> for Queue<IncomingTransfer> {
    fn offer(self: &Arc<Self>, item: IncomingTransfer) -> Option<Delivered> {
        match self.try_push(item) {
            Ok(()) => None,
            Err(PushError::Full(item)) => Some(Delivered::Transfer(Arc::clone(self), item)),
            Err(PushError::Closed(item)) => {
                item.refuse(codes::UNKNOWN_ENDPOINT);
                None
            }
        }
    }
}

impl Offer<IncomingRequest> for Queue<IncomingRequest> {
    fn offer(self: &Arc<Self>, item: IncomingRequest) -> Option<Delivered> {
        match self.try_push(item) {
            Err(PushError::Full(item)) => Some(Delivered::Request(Arc::clone(self), item)),
            // Dropping the request answers NO_REPLY. [wire 10]
            Ok(()) | Err(PushError::Closed(_)) => None,
        }
    }
}

impl Offer<Incoming> for Queue<Incoming> {
    fn offer(self: &Arc<Self>, item: Incoming) -> Option<Delivered> {
        match self.try_push(item) {
            Err(PushError::Full(item)) => Some(Delivered::Raw(Arc::clone(self), item)),
            Err(PushError::Closed(Incoming::Stream(item))) => {
                item.refuse(codes::UNKNOWN_ENDPOINT);
                None
            }
            Ok(()) | Err(PushError::Closed(_)) => None,
        }
    }
}
