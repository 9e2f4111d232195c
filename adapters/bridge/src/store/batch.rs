//! Batches of writes and ranges of keys.

use bytes::{BufMut, Bytes, BytesMut};

/// Writes that happen together or not at all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    writes: Vec<Write>,
    bytes: usize,
}

/// One write of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// Sets the value of a key.
    Put(Bytes, Bytes),
    /// Removes a key.
    Delete(Bytes),
}

impl Batch {
    /// An empty batch; writing it does nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            writes: Vec::new(),
            bytes: 0,
        }
    }

    /// Adds the write of a value.
    #[must_use]
    pub fn put(mut self, key: impl Into<Bytes>, value: impl Into<Bytes>) -> Self {
        self.push(Write::Put(key.into(), value.into()));
        self
    }

    /// Adds the removal of a key.
    #[must_use]
    pub fn delete(mut self, key: impl Into<Bytes>) -> Self {
        self.push(Write::Delete(key.into()));
        self
    }

    /// Adds a write to a batch that is filled in a loop.
    pub fn push(&mut self, write: Write) {
        self.bytes += match &write {
            Write::Put(key, value) => key.len() + value.len(),
            Write::Delete(key) => key.len(),
        };
        self.writes.push(write);
    }

    /// The writes in order.
    #[must_use]
    pub fn writes(&self) -> &[Write] {
        &self.writes
    }

    /// The writes, taken out.
    #[must_use]
    pub fn into_writes(self) -> Vec<Write> {
        self.writes
    }

    /// How many writes there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.writes.len()
    }

    /// True without a write.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// Bytes of all keys and values.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Keys from `start` (included) to `end` (excluded); without an end, to the last key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRange {
    /// First key.
    pub start: Bytes,
    /// First key that is not in the range any more.
    pub end: Option<Bytes>,
}

impl KeyRange {
    /// Every key.
    #[must_use]
    pub const fn all() -> Self {
        Self {
            start: Bytes::new(),
            end: None,
        }
    }

    /// Every key that starts with these bytes.
    #[must_use]
    pub fn prefix(prefix: impl Into<Bytes>) -> Self {
        let start = prefix.into();
        // The next prefix in byte order: drop trailing 0xff, add one to the last byte left.
        let kept = start.iter().rposition(|byte| *byte != 0xff);
        let end = kept.map(|last| {
            let mut end = start[..=last].to_vec();
            end[last] += 1;
            Bytes::from(end)
        });
        Self { start, end }
    }

    /// The rest of this range after `key`, to go on with a scan.
    #[must_use]
    pub fn after(&self, key: &[u8]) -> Self {
        let mut start = BytesMut::with_capacity(key.len() + 1);
        start.put_slice(key);
        start.put_u8(0);
        Self {
            start: start.freeze().max(self.start.clone()),
            end: self.end.clone(),
        }
    }

    /// True when the key is in the range.
    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        *key >= *self.start && self.end.as_ref().is_none_or(|end| *key < **end)
    }
}
