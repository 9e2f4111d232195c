//! Subscriptions of one namespace.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use weida_protocol::SubscriptionHeader;

use crate::connection::{Connection, ConnectionId};
use crate::listener::table::Recorded;

/// Who subscribed to what on one listener.
///
/// The seam between connections and publishers: `connection/dispatch.rs` calls
/// [`Registry::subscribe`] and [`Registry::unsubscribe`] on the connection's own
/// task for frames that decoded and whose filter is well-formed, in arrival
/// order as far as streams have one; `inbound.rs` calls
/// [`Registry::connection_closed`] exactly once, after the last frame.
/// `connection.peer()` and `connection.chain()` are the proved facts.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    held: Mutex<HashMap<ConnectionId, Vec<(Box<str>, Box<str>)>>>,
}

impl Registry {
    /// Records one filter of one connection, whatever serves the path now.
    pub(crate) fn subscribe(
        &self,
        connection: &Connection,
        header: &SubscriptionHeader<'_>,
    ) -> Recorded {
        let max = connection.shared().config.limits.max_subscriptions;
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let held = held.entry(connection.id()).or_default();
        let same = |(path, filter): &(Box<str>, Box<str>)| {
            **path == *header.endpoint && **filter == *header.filter
        };
        if held.iter().any(same) {
            return Recorded::Repeated;
        }
        if held.len() >= max {
            return Recorded::OverLimit { max };
        }
        held.push((header.endpoint.into(), header.filter.into()));
        Recorded::New
    }

    /// Withdraws one filter; whether the connection held it.
    pub(crate) fn unsubscribe(&self, connection: &Connection, path: &str, filter: &str) -> bool {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(held) = held.get_mut(&connection.id()) else {
            return false;
        };
        let before = held.len();
        held.retain(|(p, f)| !(**p == *path && **f == *filter));
        held.len() < before
    }

    /// Forgets a connection; the paths it held anything on, each once.
    pub(crate) fn connection_closed(&self, connection: &Connection) -> Vec<Box<str>> {
        let held = self
            .held
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&connection.id())
            .unwrap_or_default();
        let mut paths: Vec<_> = held.into_iter().map(|(path, _)| path).collect();
        paths.sort_unstable();
        paths.dedup();
        paths
    }
}
