//! A small persistent map: a changed copy shares everything but one bucket with its origin.
//!
//! The trie is read by every publish and changed by every SUBSCRIBE. Copying one flat map of `n`
//! entries per change would cost `n`; buckets of about `sqrt(n)` entries behind `Arc`s cost
//! `2 sqrt(n)`, and readers keep walking the old version without a lock.

use std::borrow::Borrow;
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

/// Keys with values, cheap to change by copy, cheap to walk.
#[derive(Debug)]
pub(crate) struct Table<K, V> {
    buckets: Vec<Arc<Vec<(K, V)>>>,
    entries: usize,
}

impl<K, V> Default for Table<K, V> {
    fn default() -> Self {
        Self {
            buckets: Vec::new(),
            entries: 0,
        }
    }
}

impl<K, V> Clone for Table<K, V> {
    fn clone(&self) -> Self {
        Self {
            buckets: self.buckets.clone(),
            entries: self.entries,
        }
    }
}

impl<K: Hash + Eq + Clone, V: Clone> Table<K, V> {
    #[cfg(test)]
    fn len(&self) -> usize {
        self.entries
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries == 0
    }

    pub(crate) fn get<Q>(&self, hasher: &impl BuildHasher, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let bucket = self.buckets.get(self.bucket_of(hasher, key)?)?;
        bucket
            .iter()
            .find(|(k, _)| k.borrow() == key)
            .map(|(_, v)| v)
    }

    pub(crate) fn get_mut<Q>(&mut self, hasher: &impl BuildHasher, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let at = self.bucket_of(hasher, key)?;
        let bucket = Arc::make_mut(self.buckets.get_mut(at)?);
        bucket
            .iter_mut()
            .find(|(k, _)| k.borrow() == key)
            .map(|(_, v)| v)
    }

    /// Puts `value` at `key` and returns what stood there.
    pub(crate) fn insert(&mut self, hasher: &impl BuildHasher, key: K, value: V) -> Option<V> {
        if self.entries >= self.capacity() {
            self.regrow(hasher);
        }
        let at = self.bucket_of(hasher, &key)?;
        let bucket = Arc::make_mut(self.buckets.get_mut(at)?);
        if let Some((_, old)) = bucket.iter_mut().find(|(k, _)| *k == key) {
            return Some(std::mem::replace(old, value));
        }
        bucket.push((key, value));
        self.entries += 1;
        None
    }

    pub(crate) fn remove<Q>(&mut self, hasher: &impl BuildHasher, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let at = self.bucket_of(hasher, key)?;
        let bucket = self.buckets.get_mut(at)?;
        let found = bucket.iter().position(|(k, _)| k.borrow() == key)?;
        let (_, value) = Arc::make_mut(bucket).swap_remove(found);
        self.entries -= 1;
        if self.entries == 0 {
            self.buckets = Vec::new();
        }
        Some(value)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.buckets
            .iter()
            .flat_map(|bucket| bucket.iter().map(|(k, v)| (k, v)))
    }

    fn bucket_of<Q: Hash + ?Sized>(&self, hasher: &impl BuildHasher, key: &Q) -> Option<usize> {
        match self.buckets.len() {
            0 => None,
            1 => Some(0),
            count => {
                let spread = count as u64;
                usize::try_from(hasher.hash_one(key) % spread).ok()
            }
        }
    }

    /// Entries held before buckets are added: a bucket may be as long as there are buckets, and
    /// never shorter than eight.
    fn capacity(&self) -> usize {
        let count = self.buckets.len();
        count * count.max(8)
    }

    fn regrow(&mut self, hasher: &impl BuildHasher) {
        let count = (self.buckets.len() * 2).max(1);
        let old = std::mem::take(&mut self.buckets);
        let mut grown: Vec<Vec<(K, V)>> = (0..count).map(|_| Vec::new()).collect();
        for bucket in old {
            for (key, value) in Arc::unwrap_or_clone(bucket) {
                let at = usize::try_from(hasher.hash_one(&key) % count as u64).unwrap_or(0);
                if let Some(bucket) = grown.get_mut(at) {
                    bucket.push((key, value));
                }
            }
        }
        self.buckets = grown.into_iter().map(Arc::new).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;
    use std::hash::RandomState;

    use proptest::prelude::*;

    proptest! {
        /// The table is a map, and a changed copy leaves its origin as it was.
        #[test]
        fn behaves_as_a_map(ops in proptest::collection::vec((any::<bool>(), 0u16..200), 0..600)) {
            let hasher = RandomState::new();
            let (mut table, mut model) = (Table::default(), HashMap::new());
            for (at, (put, key)) in ops.into_iter().enumerate() {
                let before: Vec<_> = table.iter().map(|(k, v)| (*k, *v)).collect();
                let origin = table.clone();
                if put {
                    prop_assert_eq!(table.insert(&hasher, key, at), model.insert(key, at));
                } else {
                    prop_assert_eq!(table.remove(&hasher, &key), model.remove(&key));
                }
                let after: Vec<_> = origin.iter().map(|(k, v)| (*k, *v)).collect();
                prop_assert_eq!(before, after);
                prop_assert_eq!(table.len(), model.len());
            }
            for (key, value) in &model {
                prop_assert_eq!(table.get(&hasher, key), Some(value));
            }
            prop_assert_eq!(table.iter().count(), model.len());
        }
    }
}
