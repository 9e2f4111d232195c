//! The filters one session holds, bounded, so that its end can take them out of the router.

use std::collections::HashSet;

use crate::codec::TopicFilter;

/// A filter as the router knows it.
type SubscriptionKey = Box<[u8]>;

/// Filters of one session.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions {
    filters: HashSet<SubscriptionKey>,
}

impl Subscriptions {
    pub(crate) fn contains(&self, filter: &TopicFilter) -> bool {
        self.filters.contains(filter.as_bytes())
    }

    pub(crate) fn len(&self) -> usize {
        self.filters.len()
    }

    pub(crate) fn insert(&mut self, filter: &TopicFilter) {
        self.filters.insert(filter.as_bytes().into());
    }

    pub(crate) fn remove(&mut self, filter: &TopicFilter) -> bool {
        self.filters.remove(filter.as_bytes())
    }

    pub(crate) fn drain(&mut self) -> impl Iterator<Item = SubscriptionKey> {
        self.filters.drain()
    }
}
