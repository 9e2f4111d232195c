//! Who gets a message: the subscriptions of one listener group and the fan-out over them.
//!
//! Publishing walks one immutable version of the trie; subscribing replaces it. No publish takes
//! a lock that a subscriber holds, and no message passes a channel: copies go straight into the
//! queues of the sessions. [mqtt 2]

mod message;
mod table;
mod trie;

use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;

pub(crate) use message::{Message, Settlement, Tally, Ticket};
use table::Table;
use trie::Trie;

use crate::codec::{QoS, SubscribeOptions, SubscriptionId, SubscriptionIds, TopicFilter};
use crate::session::{Enqueued, MessageCopy, Session};

/// What one session keeps at one filter.
#[derive(Debug, Clone)]
pub(crate) struct Subscription {
    pub(crate) session: Arc<Session>,
    pub(crate) options: SubscribeOptions,
    pub(crate) id: Option<SubscriptionId>,
    /// Copies must be checked against the session's deny filters.
    pub(crate) filtered: bool,
}

/// Subscriptions of one listener group.
#[derive(Debug, Default)]
pub(crate) struct Router {
    trie: ArcSwap<Trie<Subscription>>,
    /// Serialises changes; readers never take it.
    changing: Mutex<()>,
}

/// The group holds as many filters as it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Full;

/// Who got a message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Delivered {
    /// Sessions that a subscription selected, dropped copies included.
    pub(crate) matched: usize,
    /// Copies that a full queue dropped.
    pub(crate) dropped: usize,
    /// Some queue is more than half full.
    pub(crate) tight: bool,
}

impl Router {
    /// Puts or replaces the subscription; true when it is new. Active when this returns.
    ///
    /// # Errors
    ///
    /// [`Full`] when the group already holds `max_total`.
    pub(crate) fn subscribe(
        &self,
        filter: &TopicFilter,
        subscription: Subscription,
        max_total: usize,
    ) -> Result<bool, Full> {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut trie = Trie::clone(&self.trie.load());
        let full = trie.len() >= max_total;
        let number = subscription.session.number();
        let old = trie.insert(filter.as_bytes(), number, subscription);
        if full && old.is_none() {
            return Err(Full);
        }
        self.trie.store(Arc::new(trie));
        Ok(old.is_none())
    }

    /// Takes filters of one session away; none of them gets a new copy when this returns.
    pub(crate) fn unsubscribe<'a>(
        &self,
        session: &Session,
        filters: impl IntoIterator<Item = &'a [u8]>,
    ) {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut trie = Trie::clone(&self.trie.load());
        for filter in filters {
            trie.remove(filter, session.number());
        }
        self.trie.store(Arc::new(trie));
    }

    /// Subscriptions held.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.trie.load().len()
    }

    /// Gives every matching session one copy. `make` is asked once, and only when somebody
    /// matches; `settlement` gets a ticket for each QoS 1 copy.
    pub(crate) fn publish(
        &self,
        topic: &[u8],
        origin: u64,
        make: impl FnOnce() -> Arc<Message>,
        settlement: Option<&Arc<Settlement>>,
        mut reached: impl FnMut(u64),
    ) -> Delivered {
        let trie = self.trie.load();
        let mut only: Option<&Table<u64, Subscription>> = None;
        let mut several: Vec<&Table<u64, Subscription>> = Vec::new();
        trie.visit(topic, |table| match only {
            None => only = Some(table),
            Some(_) => several.push(table),
        });
        let Some(only) = only else {
            return Delivered::default();
        };
        let mut fan = Fan {
            message: None,
            make: Some(make),
            settlement,
            origin,
            delivered: Delivered::default(),
        };
        if several.is_empty() {
            for (number, subscription) in only.iter() {
                if fan.copy(std::slice::from_ref(&subscription)) {
                    reached(*number);
                }
            }
            return fan.delivered;
        }
        // Overlapping filters: one copy per session, at the highest QoS, with every identifier.
        let tables = std::iter::once(only).chain(several);
        let mut hits: Vec<(u64, &Subscription)> = tables
            .flat_map(|table| table.iter().map(|(n, s)| (*n, s)))
            .collect();
        hits.sort_unstable_by_key(|(number, _)| *number);
        let mut group = Vec::new();
        for of_one in hits.chunk_by(|(a, _), (b, _)| a == b) {
            group.clear();
            group.extend(of_one.iter().map(|(_, subscription)| *subscription));
            if fan.copy(&group) {
                reached(of_one[0].0);
            }
        }
        fan.delivered
    }
}

/// One publish being handed out.
struct Fan<'a, M> {
    message: Option<Arc<Message>>,
    make: Option<M>,
    settlement: Option<&'a Arc<Settlement>>,
    origin: u64,
    delivered: Delivered,
}

impl<M: FnOnce() -> Arc<Message>> Fan<'_, M> {
    /// One copy for one session out of all its matching subscriptions.
    fn copy(&mut self, subscriptions: &[&Subscription]) -> bool {
        let origin = self.origin;
        let wanted = |s: &&&Subscription| !(s.options.no_local && s.session.number() == origin);
        let mut matching = subscriptions.iter().filter(wanted);
        let Some(first) = matching.next() else {
            return false;
        };
        let session = &first.session;
        let message = match (&self.message, self.make.take()) {
            (Some(message), _) => Arc::clone(message),
            (None, Some(make)) => Arc::clone(self.message.insert(make())),
            (None, None) => return false,
        };
        let mut granted = first.options.max_qos;
        let mut as_published = first.options.retain_as_published;
        let mut filtered = first.filtered;
        let mut subscription_ids = SubscriptionIds::default();
        if let Some(id) = first.id {
            subscription_ids.push(id);
        }
        for other in matching {
            granted = granted.max(other.options.max_qos);
            as_published |= other.options.retain_as_published;
            filtered |= other.filtered;
            if let Some(id) = other.id {
                subscription_ids.push(id);
            }
        }
        if filtered && !session.access().may_receive(message.topic()) {
            return false;
        }
        let qos = message.publish().qos.min(granted);
        let ticket = match (self.settlement, qos) {
            (Some(settlement), QoS::AtLeastOnce | QoS::ExactlyOnce) => Some(settlement.ticket()),
            _ => None,
        };
        let retain = message.publish().retain && as_published;
        let copy = MessageCopy {
            message,
            qos,
            retain,
            subscription_ids,
            ticket,
        };
        self.delivered.matched += 1;
        match session.enqueue(copy) {
            Enqueued::Room => {}
            Enqueued::Tight => self.delivered.tight = true,
            Enqueued::Dropped | Enqueued::EndSession => self.delivered.dropped += 1,
        }
        true
    }
}

#[cfg(test)]
pub(crate) fn test_message(topic: &str) -> Arc<Message> {
    use crate::codec::{Publish, TopicName};
    let publish = Publish {
        qos: QoS::AtLeastOnce,
        topic: TopicName::parse(topic).unwrap(),
        ..Publish::default()
    };
    Arc::new(Message::new(publish, tokio::time::Instant::now()))
}

#[cfg(test)]
mod tests;
