//! What is kept: one ordered key space that an embedded file and a shared bucket can both be [reconciled 5].
//!
//! A write is visible to later reads when its future resolves, and safe when its [`CommitToken`] resolves: one sync
//! serves all writes that wait for it. Whoever acknowledges something does it after the token.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use sha2::{Digest, Sha256};
use tokio::sync::oneshot;

use crate::fabric::BoxFuture;

mod batch;
#[cfg(feature = "test-util")]
pub mod contract;
mod memory;

pub use batch::{Batch, KeyRange, Write};
pub use memory::MemoryStore;

/// Ordered keys and values, shared by everything that outlives a connection. Object safe; every method takes `&self`.
///
/// The module `contract` (feature `test-util`) is the suite that every engine passes.
///
/// Futures own what they need: a future that is dropped before it resolves may have written or not, never half.
pub trait Store: Send + Sync + fmt::Debug + 'static {
    /// The value of a key.
    fn get(&self, key: Bytes) -> BoxFuture<'_, Result<Option<Bytes>, StoreError>>;

    /// Writes one value.
    fn put(&self, key: Bytes, value: Bytes) -> BoxFuture<'_, Result<CommitToken, StoreError>> {
        self.batch(Batch::new().put(key, value))
    }

    /// Removes one key; a key that is not there is no error.
    fn delete(&self, key: Bytes) -> BoxFuture<'_, Result<CommitToken, StoreError>> {
        self.batch(Batch::new().delete(key))
    }

    /// Writes `new` (`None` removes) if the value is `expected` (`None`: absent) at that moment.
    fn compare_and_set(
        &self,
        key: Bytes,
        expected: Option<Bytes>,
        new: Option<Bytes>,
    ) -> BoxFuture<'_, Result<Swap, StoreError>>;

    /// Keys of the range in byte order with their values, at most `limit` of them.
    ///
    /// To go on, scan again from [`KeyRange::after`] the last key. Each call is a view of one moment.
    fn scan(
        &self,
        range: KeyRange,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<(Bytes, Bytes)>, StoreError>>;

    /// Writes all of a batch or nothing of it, in its order: a later write to a key wins.
    fn batch(&self, batch: Batch) -> BoxFuture<'_, Result<CommitToken, StoreError>>;

    /// A token for everything written before this call.
    fn commit(&self) -> BoxFuture<'_, Result<CommitToken, StoreError>>;

    /// Rows and bytes held now.
    fn stats(&self) -> BoxFuture<'_, Result<StoreStats, StoreError>>;
}

/// What a compare-and-set found.
#[derive(Debug)]
#[must_use = "a swap may not have happened"]
pub enum Swap {
    /// The value was as expected and is the new one now.
    Done(CommitToken),
    /// The value was another one; nothing was written.
    Differs(Option<Bytes>),
}

/// How much a store holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StoreStats {
    /// Keys.
    pub entries: u64,
    /// Bytes of keys and values.
    pub bytes: u64,
}

/// Resolves when a write is as safe as the store makes it: for a file, after the sync of its group.
///
/// Dropping it changes nothing: the write is synced all the same.
#[derive(Debug)]
#[must_use = "a write is not safe before its token resolves"]
pub struct CommitToken(Token);

#[derive(Debug)]
enum Token {
    Ready(Option<Result<(), StoreError>>),
    Waiting(oneshot::Receiver<Result<(), StoreError>>),
}

/// The store's end of a [`CommitToken`]. Dropping it resolves the token with [`StoreError::Closed`].
#[derive(Debug)]
pub struct CommitPromise(oneshot::Sender<Result<(), StoreError>>);

impl CommitToken {
    /// A token that is resolved already, for a store without a sync.
    pub const fn ready() -> Self {
        Self(Token::Ready(Some(Ok(()))))
    }

    /// A token and its other end, for a store that syncs later.
    pub fn pending() -> (CommitPromise, Self) {
        let (promise, token) = oneshot::channel();
        (CommitPromise(promise), Self(Token::Waiting(token)))
    }
}

impl CommitPromise {
    /// The sync that covers this write ended so.
    pub fn resolve(self, result: Result<(), StoreError>) {
        let _: Result<(), _> = self.0.send(result); // nobody waits: the write is what it is
    }
}

impl Future for CommitToken {
    type Output = Result<(), StoreError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            Token::Ready(result) => Poll::Ready(result.take().unwrap_or(Ok(()))),
            Token::Waiting(waiting) => Pin::new(waiting)
                .poll(cx)
                .map(|answer| answer.unwrap_or(Err(StoreError::Closed))),
        }
    }
}

/// A store that could not do it; nothing was written then, unless the variant says otherwise.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A bound would be passed.
    #[error("the store is full: {needed} {unit} needed, {bound} allowed")]
    Full {
        /// What the store would hold afterwards.
        needed: u64,
        /// Its bound.
        bound: u64,
        /// What is counted: `entries` or `bytes`.
        unit: &'static str,
    },
    /// A key or value longer than the store takes.
    #[error("{what} of {got_bytes} bytes, at most {max_bytes}")]
    TooLarge {
        /// `key` or `value`.
        what: &'static str,
        /// Its length.
        got_bytes: usize,
        /// The bound.
        max_bytes: usize,
    },
    /// The store ended; a write whose token says so may have happened.
    #[error("the store is closed")]
    Closed,
    /// The medium failed; a write whose token says so may have happened.
    #[error("the store's medium failed")]
    Io(#[source] std::io::Error),
    /// A row that cannot be read.
    #[error("the row of key {key:02x?} is damaged")]
    Corrupt {
        /// The key.
        key: Bytes,
    },
}

impl StoreError {
    /// The value of the metric label `kind`.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Full { .. } | Self::TooLarge { .. } => "full",
            Self::Closed | Self::Io(_) => "io",
            Self::Corrupt { .. } => "corrupt",
        }
    }
}

/// The `H(...)` of the key layout: first 16 bytes of SHA-256 over the fields, each after its u32 length [reconciled 5].
///
/// The lengths keep `("ab", "c")` and `("a", "bc")` apart.
#[must_use]
pub fn key_hash(fields: &[&[u8]]) -> [u8; 16] {
    let mut hash = Sha256::new();
    for field in fields {
        // A field of 4 GiB cannot exist here: every name is bounded far below.
        hash.update(u32::try_from(field.len()).unwrap_or(u32::MAX).to_be_bytes());
        hash.update(field);
    }
    let digest = hash.finalize();
    let mut key = [0; 16];
    key.copy_from_slice(&digest[..16]);
    key
}

#[cfg(test)]
mod tests;
