//! A store in memory: for edges without state to keep, and for tests.

use std::collections::BTreeMap;
use std::future::ready;
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use super::{
    Batch, CommitPromise, CommitToken, KeyRange, Store, StoreError, StoreStats, Swap, Write,
};
use crate::fabric::BoxFuture;

/// A bounded store in memory. Its tokens resolve at once: nothing here survives the process, and nothing says it does.
///
/// # Limits
/// Entries and bytes as given; a write that would pass one is refused whole with [`StoreError::Full`]. Keys of at most
/// [`MemoryStore::MAX_KEY_BYTES`].
#[derive(Debug)]
pub struct MemoryStore {
    state: Mutex<State>,
    max_entries: u64,
    max_bytes: u64,
}

#[derive(Debug, Default)]
struct State {
    rows: BTreeMap<Bytes, Bytes>,
    bytes: u64,
    /// `Some`: tokens wait here until a test lets them go.
    held: Option<Vec<CommitPromise>>,
}

impl MemoryStore {
    /// Longest key, in bytes.
    pub const MAX_KEY_BYTES: usize = 1024;

    /// A store of at most so many keys, and bytes of keys and values.
    #[must_use]
    pub fn new(max_entries: u64, max_bytes: u64) -> Self {
        Self {
            state: Mutex::new(State::default()),
            max_entries,
            max_bytes,
        }
    }

    /// From now on tokens wait for [`release_commits`](Self::release_commits), as a slow disk would make them.
    #[cfg(feature = "test-util")]
    pub fn hold_commits(&self) {
        self.lock().held.get_or_insert_default();
    }

    /// Lets every waiting token go, with success; later ones resolve at once again.
    #[cfg(feature = "test-util")]
    pub fn release_commits(&self) {
        let held = self.lock().held.take();
        for promise in held.into_iter().flatten() {
            promise.resolve(Ok(()));
        }
    }

    /// How many tokens wait.
    #[cfg(feature = "test-util")]
    #[must_use]
    pub fn held_commits(&self) -> usize {
        self.lock().held.as_ref().map_or(0, Vec::len)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Every change below is complete before anything can panic, so a poisoned state is still whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, state: &mut State, batch: Batch) -> Result<CommitToken, StoreError> {
        self.check(state, &batch)?;
        for write in batch.into_writes() {
            match write {
                Write::Put(key, value) => {
                    let added = size(&key, &value);
                    let replaced = state.rows.insert(key.clone(), value);
                    state.bytes += added;
                    state.bytes -= replaced.map_or(0, |old| size(&key, &old));
                }
                Write::Delete(key) => {
                    let removed = state.rows.remove(&key);
                    state.bytes -= removed.map_or(0, |old| size(&key, &old));
                }
            }
        }
        Ok(state.token())
    }

    /// Works out what the batch would make of the store, without changing it.
    fn check(&self, state: &State, batch: &Batch) -> Result<(), StoreError> {
        let mut after: BTreeMap<&Bytes, Option<&Bytes>> = BTreeMap::new();
        for write in batch.writes() {
            let (key, value) = match write {
                Write::Put(key, value) => (key, Some(value)),
                Write::Delete(key) => (key, None),
            };
            if key.len() > Self::MAX_KEY_BYTES {
                return Err(StoreError::TooLarge {
                    what: "key",
                    got_bytes: key.len(),
                    max_bytes: Self::MAX_KEY_BYTES,
                });
            }
            after.insert(key, value);
        }
        let (mut entries, mut bytes) = (state.rows.len() as u64, state.bytes);
        for (key, value) in &after {
            if let Some(old) = state.rows.get(*key) {
                entries -= 1;
                bytes -= size(key, old);
            }
            if let Some(new) = value {
                entries += 1;
                bytes += size(key, new);
            }
        }
        if entries > self.max_entries {
            return Err(StoreError::Full {
                needed: entries,
                bound: self.max_entries,
                unit: "entries",
            });
        }
        if bytes > self.max_bytes {
            return Err(StoreError::Full {
                needed: bytes,
                bound: self.max_bytes,
                unit: "bytes",
            });
        }
        Ok(())
    }
}

impl State {
    fn token(&mut self) -> CommitToken {
        match &mut self.held {
            None => CommitToken::ready(),
            Some(held) => {
                let (promise, token) = CommitToken::pending();
                held.push(promise);
                token
            }
        }
    }
}

impl Store for MemoryStore {
    fn get(&self, key: Bytes) -> BoxFuture<'_, Result<Option<Bytes>, StoreError>> {
        let value = self.lock().rows.get(&key).cloned();
        Box::pin(ready(Ok(value)))
    }

    fn compare_and_set(
        &self,
        key: Bytes,
        expected: Option<Bytes>,
        new: Option<Bytes>,
    ) -> BoxFuture<'_, Result<Swap, StoreError>> {
        let mut state = self.lock();
        let found = state.rows.get(&key).cloned();
        let swap = if found == expected {
            let batch = match new {
                Some(value) => Batch::new().put(key, value),
                None => Batch::new().delete(key),
            };
            self.write(&mut state, batch).map(Swap::Done)
        } else {
            Ok(Swap::Differs(found))
        };
        drop(state);
        Box::pin(ready(swap))
    }

    fn scan(
        &self,
        range: KeyRange,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<(Bytes, Bytes)>, StoreError>> {
        let empty = range.end.as_ref().is_some_and(|end| *end <= range.start);
        let rows = if empty {
            Vec::new()
        } else {
            let end = range.end.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
            let state = self.lock();
            let rows = state
                .rows
                .range::<Bytes, _>((Bound::Included(&range.start), end));
            rows.take(limit)
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect()
        };
        Box::pin(ready(Ok(rows)))
    }

    fn batch(&self, batch: Batch) -> BoxFuture<'_, Result<CommitToken, StoreError>> {
        let written = self.write(&mut self.lock(), batch);
        Box::pin(ready(written))
    }

    fn commit(&self) -> BoxFuture<'_, Result<CommitToken, StoreError>> {
        let token = self.lock().token();
        Box::pin(ready(Ok(token)))
    }

    fn stats(&self) -> BoxFuture<'_, Result<StoreStats, StoreError>> {
        let state = self.lock();
        let stats = StoreStats {
            entries: state.rows.len() as u64,
            bytes: state.bytes,
        };
        drop(state);
        Box::pin(ready(Ok(stats)))
    }
}

const fn size(key: &Bytes, value: &Bytes) -> u64 {
    key.len() as u64 + value.len() as u64
}
