//! Dialled connections, one per (authority, terms, expected key, path).
//!
//! All parts of the key matter: different trust, identity, expected key or path
//! never share a connection; two endpoints configured alike do. One connection
//! per path is also what keeps a stalled path from stalling another.
//! `[weida 6.1, CN-2, S8-8]`

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use weida_core::{Error, Fingerprint, PeerIdentity, Result, codes};

use crate::connection::Connection;
use crate::dial::{self, Target};
use crate::shared::Shared;

/// The live dialled connections of one runtime.
///
/// Bounded by what the application dials: one entry per target, removed when
/// its connection is gone or unused for `idle_timeout`.
#[derive(Default)]
pub(crate) struct Pool {
    entries: Mutex<HashMap<Target, Entry>>,
}

struct Entry {
    connection: Connection,
    /// Slots holding a lease.
    users: usize,
}

impl Pool {
    fn lock(&self) -> MutexGuard<'_, HashMap<Target, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A lease on the connection for `target`, dialling if there is none.
    ///
    /// With `proved_before` the peer must prove exactly that key. The lock is not held across the dial: two racing dials cost
    /// one extra handshake, and the loser closes its own. `[weida CN-4]`
    ///
    /// # Errors
    ///
    /// The dial's; [`Error::Untrusted`] when another live connection of the
    /// same authority and terms proved another key. `[weida CN-3, S8-10]`
    pub(crate) async fn lease(
        shared: &Arc<Shared>,
        target: &Target,
        proved_before: Option<Fingerprint>,
    ) -> Result<Lease> {
        if let Some(lease) = Self::join(shared, target, proved_before) {
            return Ok(lease);
        }
        let connection = dial::dial(shared, target, proved_before).await?;
        let proved = connection.peer();
        let mut entries = shared.pool.lock();
        if let Some(winner) = entries.get_mut(target)
            && winner.connection.is_live()
            && winner.connection.peer() == proved
        {
            winner.users += 1;
            let won = winner.connection.clone();
            drop(entries);
            connection.close(codes::SHUTDOWN, "another dial of this address won");
            return Ok(Lease {
                shared: Arc::clone(shared),
                target: target.clone(),
                connection: won,
            });
        }
        let stranger = entries.iter().any(|(known, entry)| {
            known.addr.host == target.addr.host
                && known.addr.port == target.addr.port
                && known.addr.peer == target.addr.peer
                && known.tls == target.tls
                && entry.connection.is_live()
                && entry.connection.peer() != proved
        });
        if stranger {
            drop(entries);
            connection.close(codes::SHUTDOWN, "another peer holds this address");
            return Err(match proved.as_ref().and_then(PeerIdentity::key) {
                Some(fingerprint) => Error::Untrusted(fingerprint),
                None => Error::Tls("another peer holds this address".into()),
            });
        }
        entries.insert(
            target.clone(),
            Entry {
                connection: connection.clone(),
                users: 1,
            },
        );
        drop(entries);
        Ok(Lease {
            shared: Arc::clone(shared),
            target: target.clone(),
            connection,
        })
    }

    /// Joins a live connection for `target`, if there is one.
    fn join(
        shared: &Arc<Shared>,
        target: &Target,
        proved_before: Option<Fingerprint>,
    ) -> Option<Lease> {
        let mut entries = shared.pool.lock();
        let entry = entries.get_mut(target)?;
        let proved = entry.connection.peer().as_ref().and_then(PeerIdentity::key);
        if !entry.connection.is_live() || (proved_before.is_some() && proved_before != proved) {
            return None;
        }
        entry.users += 1;
        Some(Lease {
            shared: Arc::clone(shared),
            target: target.clone(),
            connection: entry.connection.clone(),
        })
    }

    /// Returns a lease; the last one starts the linger. `[weida CN-5]`
    fn release(shared: &Arc<Shared>, target: &Target, connection: &Connection) {
        let mut entries = shared.pool.lock();
        let Some(entry) = entries.get_mut(target) else {
            return;
        };
        if !entry.connection.is(connection) {
            return;
        }
        entry.users -= 1;
        if entry.users > 0 {
            return;
        }
        if !connection.is_live() {
            entries.remove(target);
            return;
        }
        drop(entries);
        let linger = Self::linger(Arc::clone(shared), target.clone(), connection.clone());
        shared.tasks.spawn(linger);
    }

    /// Closes `connection` once nothing has used it for `idle_timeout`.
    async fn linger(shared: Arc<Shared>, target: Target, connection: Connection) {
        let idle = shared.config.limits.idle_timeout;
        let mut seen = connection.activity();
        loop {
            tokio::select! {
                biased;
                _ = connection.closed() => {}
                () = shared.exec.sleep(idle) => {}
            }
            let now = connection.activity();
            let mut entries = shared.pool.lock();
            let ours = entries
                .get(&target)
                .is_some_and(|entry| entry.connection.is(&connection) && entry.users == 0);
            if !ours {
                return;
            }
            if connection.is_live() && now != seen {
                // A transfer outlived its endpoint: that is use.
                seen = now;
                continue;
            }
            entries.remove(&target);
            drop(entries);
            connection.close(codes::SHUTDOWN, "unused");
            return;
        }
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("entries", &self.lock().len())
            .finish()
    }
}

/// One slot's use of a pooled connection.
#[derive(Debug)]
pub(crate) struct Lease {
    shared: Arc<Shared>,
    target: Target,
    connection: Connection,
}

impl Lease {
    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    pub(crate) fn target(&self) -> &Target {
        &self.target
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        Pool::release(&self.shared, &self.target, &self.connection);
    }
}
