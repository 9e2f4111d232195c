//! Which session holds which key, and how the same principal takes it over. [mqtt 4.7]
//!
//! A newcomer is authenticated and authorised completely before it comes here, so a refused one
//! never disturbs the incumbent. Claims of one key are serialised by the key's shard; the last
//! one wins.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, timeout_at};
use tracing::info;
use weida_bridge::Principal;

use super::{Ending, Session};

const SHARDS: usize = 16;
const WINDOW: Duration = Duration::from_secs(60);

/// All live sessions of the adapter.
#[derive(Debug)]
pub(crate) struct Sessions {
    shards: [Mutex<HashMap<TableKey, Entry>>; SHARDS],
    hasher: RandomState,
    count: AtomicUsize,
    max: usize,
    principals: Mutex<HashMap<Principal, usize>>,
    max_per_principal: usize,
    takeovers_per_minute: u32,
    /// How long a newcomer waits for the incumbent to let go.
    handover: Duration,
}

/// What makes two sessions the same; with one owner per ClientID the principal is not part of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct TableKey {
    pub(crate) group: Arc<str>,
    pub(crate) principal: Option<Principal>,
    pub(crate) client_id: Arc<str>,
}

#[derive(Debug)]
struct Entry {
    session: Arc<Session>,
    takeovers: VecDeque<Instant>,
}

/// Why a session may not begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoClaim {
    /// Another principal owns the ClientID: 0x85.
    OtherPrincipal,
    /// The key changes hands too often; the newest address is banned for it: 0x8A.
    Flapping,
    /// The incumbent did not let go in time: 0x89.
    Busy,
    /// A bound of sessions is reached: 0x97.
    Limit,
}

/// A key that is held; dropped, it is given back and whoever waits for it goes on.
#[derive(Debug)]
pub(crate) struct Claim {
    sessions: Arc<Sessions>,
    key: TableKey,
    session: Arc<Session>,
    pub(crate) took_over: bool,
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.sessions.release(&self.key, &self.session);
    }
}

impl Sessions {
    pub(crate) fn new(limits: &crate::config::Limits) -> Self {
        Self {
            shards: Default::default(),
            hasher: RandomState::new(),
            count: AtomicUsize::new(0),
            max: limits.max_sessions,
            principals: Mutex::default(),
            max_per_principal: limits.max_sessions_per_principal,
            takeovers_per_minute: limits.takeovers_per_minute,
            handover: Duration::from_secs(5),
        }
    }

    /// Whether a further session with this key would pass the bound.
    pub(crate) fn is_full_for(&self, key: &TableKey) -> bool {
        self.len() >= self.max && !self.shard(key).contains_key(key)
    }

    /// Sessions now.
    pub(crate) fn len(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Takes `key` for `session`, ending an incumbent of the same principal first.
    ///
    /// # Cancel safety
    ///
    /// Dropped before it returns it has at most ended an incumbent.
    pub(crate) async fn claim(
        self: &Arc<Self>,
        key: TableKey,
        session: Arc<Session>,
    ) -> Result<Claim, NoClaim> {
        let deadline = Instant::now() + self.handover;
        let mut takeovers = VecDeque::new();
        let mut took_over = false;
        loop {
            let incumbent = {
                let mut shard = self.shard(&key);
                match shard.get(&key) {
                    None => {
                        self.admit(session.key().principal.clone())?;
                        let entry = Entry {
                            session: Arc::clone(&session),
                            takeovers,
                        };
                        shard.insert(key.clone(), entry);
                        drop(shard);
                        let sessions = Arc::clone(self);
                        return Ok(Claim {
                            sessions,
                            key,
                            session,
                            took_over,
                        });
                    }
                    Some(entry) => {
                        if entry.session.key().principal != session.key().principal {
                            return Err(NoClaim::OtherPrincipal);
                        }
                        takeovers = self.record(&entry.takeovers)?;
                        Arc::clone(&entry.session)
                    }
                }
            };
            info!(
                claimed_id = ?session.key().foreign_id,
                principal = %session.key().principal,
                old_address = %incumbent.address(),
                new_address = %session.address(),
                "session taken over"
            );
            took_over = true;
            incumbent.end(Ending::TakenOver);
            let released = incumbent.released().cancelled();
            timeout_at(deadline, released)
                .await
                .map_err(|_| NoClaim::Busy)?;
        }
    }

    fn release(&self, key: &TableKey, session: &Session) {
        let mut shard = self.shard(key);
        if shard
            .get(key)
            .is_some_and(|entry| entry.session.number() == session.number())
        {
            // The history of the key goes with the newcomer that read it, or ends here.
            shard.remove(key);
        }
        drop(shard);
        self.count.fetch_sub(1, Ordering::Relaxed);
        self.leave(&session.key().principal);
        session.released().cancel();
    }

    /// Says goodbye to every live session.
    pub(crate) fn end_all(&self, ending: Ending) {
        for shard in &self.shards {
            for entry in shard
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .values()
            {
                entry.session.end(ending);
            }
        }
    }

    fn shard(&self, key: &TableKey) -> MutexGuard<'_, HashMap<TableKey, Entry>> {
        let at = self.hasher.hash_one(key) as usize % SHARDS;
        self.shards[at]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The history with this takeover in it, or the verdict that it is one too many.
    fn record(&self, past: &VecDeque<Instant>) -> Result<VecDeque<Instant>, NoClaim> {
        let now = Instant::now();
        let recent = |at: &&Instant| now.saturating_duration_since(**at) < WINDOW;
        let mut takeovers: VecDeque<Instant> = past.iter().filter(recent).copied().collect();
        if takeovers.len() >= self.takeovers_per_minute as usize {
            return Err(NoClaim::Flapping);
        }
        takeovers.push_back(now);
        Ok(takeovers)
    }

    fn admit(&self, principal: Principal) -> Result<(), NoClaim> {
        if self.count.fetch_add(1, Ordering::Relaxed) >= self.max {
            self.count.fetch_sub(1, Ordering::Relaxed);
            return Err(NoClaim::Limit);
        }
        if principal.is_anonymous() {
            return Ok(());
        }
        let mut principals = self
            .principals
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let sessions = principals.entry(principal).or_default();
        if *sessions >= self.max_per_principal {
            self.count.fetch_sub(1, Ordering::Relaxed);
            return Err(NoClaim::Limit);
        }
        *sessions += 1;
        Ok(())
    }

    fn leave(&self, principal: &Principal) {
        let mut principals = self
            .principals
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(sessions) = principals.get_mut(principal) {
            *sessions -= 1;
            if *sessions == 0 {
                principals.remove(principal);
            }
        }
    }
}
