//! Topic aliases: numbers that stand for topics, one table per direction, dead with the connection. [MQTT5 3.3.2.3.4]
//! [mqtt 5.6]

use std::num::NonZeroU16;

use crate::codec::{Publish, TopicName, Violation};

/// What the peer taught us. Bounded by the Topic Alias Maximum that we announced.
#[derive(Debug, Clone)]
pub struct InboundAliases {
    slots: Vec<Slot>,
    max: u16,
}

#[derive(Debug, Clone)]
enum Slot {
    Unset,
    Topic(TopicName),
    /// A topic that was refused for its size: the number stays usable and refused, and keeps no bytes.
    Refused(Violation),
}

impl InboundAliases {
    /// With the maximum we announced; grows with use only.
    #[must_use]
    pub const fn new(max: u16) -> Self {
        Self {
            slots: Vec::new(),
            max,
        }
    }

    /// Puts the topic into a PUBLISH that only names its alias, or learns the alias of one that names both. `judge`
    /// says whether a new topic is one we take at all.
    ///
    /// # Errors
    ///
    /// [`Violation::TopicAliasRange`] above the maximum, [`Violation::TopicAliasUnknown`] for a number never set, and
    /// what `judge` says.
    pub fn resolve(
        &mut self,
        publish: &mut Publish,
        judge: impl Fn(&TopicName) -> Result<(), Violation>,
    ) -> Result<(), Violation> {
        let Some(alias) = publish.properties.topic_alias.take() else {
            return judge(&publish.topic);
        };
        if alias.get() > self.max {
            return Err(Violation::TopicAliasRange {
                alias: alias.get(),
                max_alias: self.max,
            });
        }
        let index = usize::from(alias.get()).saturating_sub(1);
        if publish.topic.is_empty() {
            return match self.slots.get(index) {
                Some(Slot::Topic(topic)) => {
                    publish.topic = topic.clone();
                    Ok(())
                }
                Some(Slot::Refused(violation)) => Err(*violation),
                Some(Slot::Unset) | None => {
                    Err(Violation::TopicAliasUnknown { alias: alias.get() })
                }
            };
        }
        let judged = judge(&publish.topic);
        if self.slots.len() <= index {
            self.slots.resize(index.saturating_add(1), Slot::Unset);
        }
        if let Some(slot) = self.slots.get_mut(index) {
            *slot = match judged {
                // Detached: a table entry must not keep a read buffer alive.
                Ok(()) => Slot::Topic(publish.topic.detached()),
                Err(violation) => Slot::Refused(violation),
            };
        }
        judged
    }

    /// The maximum we announced.
    #[must_use]
    pub const fn max(&self) -> u16 {
        self.max
    }
}

/// What we taught the peer: the least recently used topic gives its number up.
#[derive(Debug, Clone)]
pub struct OutboundAliases {
    entries: Vec<Entry>,
    max: u16,
    /// Counts uses; the smallest stamp is the oldest.
    clock: u64,
}

#[derive(Debug, Clone)]
struct Entry {
    topic: TopicName,
    used: u64,
}

/// What [`OutboundAliases::apply`] changed, to be undone when the packet is not written after all.
#[derive(Debug)]
pub(super) struct Applied {
    topic: TopicName,
    index: usize,
    /// The table entry that this use replaced or, for a known topic, only touched.
    fresh: bool,
}

impl OutboundAliases {
    /// Room for `min(peer_max, ours)` topics; 0 switches aliases off.
    #[must_use]
    pub const fn new(max: u16) -> Self {
        Self {
            entries: Vec::new(),
            max,
            clock: 0,
        }
    }

    /// How many numbers may be in use.
    #[must_use]
    pub const fn max(&self) -> u16 {
        self.max
    }

    /// Replaces the topic of a PUBLISH that is about to be written by its number, or gives it one. A retransmission
    /// keeps its full topic and no alias: the peer's table may be newer than the packet.
    ///
    /// To be called at write time, in write order: a packet that is dropped later must not have been the one that
    /// taught the number.
    pub(super) fn apply(&mut self, publish: &mut Publish) -> Option<Applied> {
        publish.properties.topic_alias = None;
        if self.max == 0 || publish.dup {
            return None;
        }
        self.clock = self.clock.saturating_add(1);
        let used = self.clock;
        let known = self
            .entries
            .iter_mut()
            .position(|entry| entry.topic == publish.topic);
        let (index, fresh) = match known {
            Some(index) => {
                if let Some(entry) = self.entries.get_mut(index) {
                    entry.used = used;
                }
                (index, false)
            }
            None => (self.take_slot(&publish.topic, used)?, true),
        };
        let alias = u16::try_from(index.saturating_add(1))
            .ok()
            .and_then(NonZeroU16::new)?;
        publish.properties.topic_alias = Some(alias);
        let topic = publish.topic.clone();
        if !fresh {
            publish.topic = TopicName::default();
        }
        Some(Applied {
            topic,
            index,
            fresh,
        })
    }

    /// The packet was not written: it gets its topic back, and a number it would have taught is forgotten.
    pub(super) fn revert(&mut self, applied: Applied, publish: &mut Publish) {
        publish.properties.topic_alias = None;
        publish.topic = applied.topic;
        if applied.fresh
            && let Some(entry) = self.entries.get_mut(applied.index)
        {
            // An empty topic matches no PUBLISH and marks a number that is free.
            *entry = Entry {
                topic: TopicName::default(),
                used: 0,
            };
        }
    }

    fn take_slot(&mut self, topic: &TopicName, used: u64) -> Option<usize> {
        let entry = Entry {
            topic: topic.detached(),
            used,
        };
        if let Some(index) = self.entries.iter().position(|entry| entry.topic.is_empty()) {
            *self.entries.get_mut(index)? = entry;
            return Some(index);
        }
        if self.entries.len() < usize::from(self.max) {
            self.entries.push(entry);
            return self.entries.len().checked_sub(1);
        }
        let (index, oldest) = self
            .entries
            .iter_mut()
            .enumerate()
            .min_by_key(|(_, e)| e.used)?;
        *oldest = entry;
        Some(index)
    }
}
