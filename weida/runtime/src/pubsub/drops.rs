//! What a publisher dropped, per topic and cause. `[weida PS-9]`

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What a publisher dropped on one topic, by cause.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TopicDrops {
    /// The topic the dropped copies were published on.
    pub topic: Arc<str>,
    /// Copies for a subscriber whose byte budget was exhausted.
    pub subscriber_budget: u64,
    /// Copies for a subscriber whose queue was full.
    pub subscriber_queue: u64,
    /// Copies for a subscriber that had parked no connection (local sockets).
    pub no_parked_connection: u64,
    /// Copies the application declined; see
    /// [`Publisher::with_admission`](crate::Publisher::with_admission).
    pub declined: u64,
    /// Copies whose frame head is larger than the subscriber reads.
    pub too_large: u64,
    /// RADIO copies reset because a newer segment opened on the topic.
    pub superseded: u64,
    /// RADIO copies reset because the dish's maximum age passed.
    pub expired: u64,
    /// RADIO datagrams for a dish that carries no datagrams.
    pub no_datagrams: u64,
    /// Segment copies that lost layers above 0 and kept layer 0.
    pub layers_cut: u64,
}

impl TopicDrops {
    fn none(topic: Arc<str>) -> Self {
        Self {
            topic,
            subscriber_budget: 0,
            subscriber_queue: 0,
            no_parked_connection: 0,
            declined: 0,
            too_large: 0,
            superseded: 0,
            expired: 0,
            no_datagrams: 0,
            layers_cut: 0,
        }
    }

    /// Every cause summed.
    pub fn total(&self) -> u64 {
        self.subscriber_budget
            + self.subscriber_queue
            + self.no_parked_connection
            + self.declined
            + self.too_large
            + self.superseded
            + self.expired
            + self.no_datagrams
            + self.layers_cut
    }
}

/// Why a copy was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DropCause {
    /// The subscriber's byte budget is exhausted.
    Budget,
    /// The subscriber's queue is full.
    Queue,
    /// The application declined it.
    Declined,
    /// The subscriber reads no head this large.
    TooLarge,
}

/// Counts drops: every one in the total, and by topic for as many topics as it
/// may know. `[weida INV-7]`
#[derive(Debug)]
pub(crate) struct DropTable {
    total: AtomicU64,
    topics: Mutex<HashMap<Arc<str>, TopicDrops>>,
    max_topics: usize,
}

impl DropTable {
    pub(crate) fn new(max_topics: usize) -> Self {
        Self {
            total: AtomicU64::new(0),
            topics: Mutex::default(),
            max_topics,
        }
    }

    pub(crate) fn count(&self, topic: &str, cause: DropCause) {
        self.total.fetch_add(1, Ordering::Relaxed);
        let mut topics = self.topics.lock().unwrap_or_else(PoisonError::into_inner);
        if !topics.contains_key(topic) && topics.len() < self.max_topics {
            let topic: Arc<str> = topic.into();
            topics.insert(Arc::clone(&topic), TopicDrops::none(topic));
        }
        let Some(drops) = topics.get_mut(topic) else {
            return;
        };
        match cause {
            DropCause::Budget => drops.subscriber_budget += 1,
            DropCause::Queue => drops.subscriber_queue += 1,
            DropCause::Declined => drops.declined += 1,
            DropCause::TooLarge => drops.too_large += 1,
        }
    }

    pub(crate) fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    pub(crate) fn on(&self, topic: &str) -> Option<TopicDrops> {
        let topics = self.topics.lock().unwrap_or_else(PoisonError::into_inner);
        topics.get(topic).cloned()
    }

    pub(crate) fn all(&self) -> Vec<TopicDrops> {
        let topics = self.topics.lock().unwrap_or_else(PoisonError::into_inner);
        topics.values().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ps_9_every_cause_is_its_own_count_and_part_of_the_total() {
        let table = DropTable::new(8);
        for (times, cause) in [
            (1, DropCause::Budget),
            (2, DropCause::Queue),
            (3, DropCause::Declined),
            (4, DropCause::TooLarge),
        ] {
            (0..times).for_each(|_| table.count("a", cause));
        }
        let drops = table.on("a").unwrap();
        assert_eq!(
            [
                drops.subscriber_budget,
                drops.subscriber_queue,
                drops.declined,
                drops.too_large
            ],
            [1, 2, 3, 4]
        );
        assert_eq!((drops.total(), table.total()), (10, 10));
        assert_eq!(table.on("b"), None);
        assert_eq!(table.all(), [drops]);
    }

    #[test]
    fn inv_7_topics_past_the_bound_count_in_the_total_only() {
        let table = DropTable::new(2);
        for topic in ["a", "b", "c", "a"] {
            table.count(topic, DropCause::Queue);
        }
        assert_eq!((table.total(), table.all().len()), (4, 2));
        assert_eq!(table.on("a").unwrap().subscriber_queue, 2);
        assert_eq!(table.on("c"), None);
    }
}
