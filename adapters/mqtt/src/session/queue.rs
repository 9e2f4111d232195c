//! The queue of one session toward its client: two lanes of copies, both bounded. [mqtt 8.2]
//!
//! QoS 0 copies wait for the socket only and make room for newer ones; QoS 1 copies wait for the
//! window and are bounded together with those in flight. Control packets never come here.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::codec::{QoS, SubscriptionIds};
use crate::config::{QueueFull, QueueLimits};
use crate::metrics::ListenerMetrics;
use crate::router::{Message, Ticket};

/// One message on its way to one client.
#[derive(Debug)]
pub(crate) struct MessageCopy {
    pub(crate) message: Arc<Message>,
    /// Minimum of published and granted.
    pub(crate) qos: QoS,
    pub(crate) retain: bool,
    pub(crate) subscription_ids: SubscriptionIds,
    /// Whoever waits for the client's acknowledgement.
    pub(crate) ticket: Option<Ticket>,
}

/// What became of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Enqueued {
    /// It waits; there is much room.
    Room,
    /// It waits; the lane is more than half full, so a source that can pause should.
    Tight,
    /// It was dropped and counted.
    Dropped,
    /// The policy ends the session.
    EndSession,
}

/// What the driver may take at once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pull {
    /// Bytes of copies, roughly; at least one is given when there is one.
    pub(crate) bytes: usize,
    /// Free places of the window.
    pub(crate) window: usize,
}

/// Both lanes of one session.
#[derive(Debug)]
pub(crate) struct Outbound {
    limits: QueueLimits,
    metrics: Arc<ListenerMetrics>,
    qos0: VecDeque<MessageCopy>,
    qos0_bytes: usize,
    waiting: VecDeque<MessageCopy>,
    /// QoS 1 copies that wait or are in flight.
    held: usize,
    held_bytes: usize,
    /// The driver was woken and did not look yet.
    signalled: bool,
    closed: bool,
}

impl Outbound {
    pub(crate) fn new(limits: QueueLimits, metrics: Arc<ListenerMetrics>) -> Self {
        Self {
            limits,
            metrics,
            qos0: VecDeque::new(),
            qos0_bytes: 0,
            waiting: VecDeque::new(),
            held: 0,
            held_bytes: 0,
            signalled: false,
            closed: false,
        }
    }

    /// Takes a copy in, or applies the policy; the flag says that the driver must be woken.
    pub(super) fn push(&mut self, copy: MessageCopy) -> (Enqueued, bool) {
        if self.closed {
            return (Enqueued::Dropped, false);
        }
        let enqueued = match copy.qos {
            QoS::AtMostOnce => self.push_qos0(copy),
            QoS::AtLeastOnce | QoS::ExactlyOnce => self.push_qos1(copy),
        };
        let wake = !std::mem::replace(&mut self.signalled, true);
        (enqueued, wake)
    }

    fn push_qos0(&mut self, copy: MessageCopy) -> Enqueued {
        let bytes = copy.message.cost();
        let max = self.limits.write_buffer_bytes;
        while self.qos0_bytes + bytes > max {
            let Some(oldest) = self.qos0.pop_front() else {
                break;
            };
            self.qos0_bytes -= oldest.message.cost();
            self.metrics.qos0_dropped.add(1);
        }
        self.qos0_bytes += bytes;
        self.qos0.push_back(copy);
        if self.qos0_bytes * 2 > max {
            Enqueued::Tight
        } else {
            Enqueued::Room
        }
    }

    fn push_qos1(&mut self, copy: MessageCopy) -> Enqueued {
        let bytes = copy.message.cost();
        let QueueLimits {
            messages,
            bytes: max_bytes,
            full,
            ..
        } = self.limits;
        while self.held >= messages || (self.held > 0 && self.held_bytes + bytes > max_bytes) {
            match full {
                QueueFull::DropNewest => {
                    self.metrics.queue_dropped(full).add(1);
                    return self.dropped(copy);
                }
                QueueFull::DropOldest => {
                    self.metrics.queue_dropped(full).add(1);
                    // All in flight: nothing older can be taken back.
                    let Some(oldest) = self.waiting.pop_front() else {
                        return self.dropped(copy);
                    };
                    self.forget(oldest.message.cost());
                    self.dropped(oldest);
                }
                QueueFull::EndSession => {
                    self.metrics.queue_dropped(full).add(1);
                    self.dropped(copy);
                    return Enqueued::EndSession;
                }
            }
        }
        self.held += 1;
        self.held_bytes += bytes;
        self.metrics.queue_messages.add(1);
        self.metrics.queue_bytes.add(bytes as u64);
        self.waiting.push_back(copy);
        let tight = self.held * 2 > messages || self.held_bytes * 2 > max_bytes;
        if tight {
            Enqueued::Tight
        } else {
            Enqueued::Room
        }
    }

    fn dropped(&self, mut copy: MessageCopy) -> Enqueued {
        if let Some(ticket) = copy.ticket.take() {
            ticket.refused();
        }
        Enqueued::Dropped
    }

    /// Moves copies to the driver, QoS 1 first, and re-arms the wake-up.
    pub(crate) fn pull(&mut self, pull: Pull, into: &mut VecDeque<MessageCopy>) {
        self.signalled = false;
        let mut taken = 0;
        for _ in 0..pull.window {
            if taken >= pull.bytes {
                break;
            }
            let Some(copy) = self.waiting.pop_front() else {
                break;
            };
            taken += copy.message.cost();
            into.push_back(copy);
        }
        while taken < pull.bytes {
            let Some(copy) = self.qos0.pop_front() else {
                break;
            };
            let bytes = copy.message.cost();
            self.qos0_bytes -= bytes;
            taken += bytes;
            into.push_back(copy);
        }
    }

    #[cfg(test)]
    /// Whether a further [`pull`](Self::pull) with that window would give something.
    fn has_more(&self, window: usize) -> bool {
        !self.qos0.is_empty() || (window > 0 && !self.waiting.is_empty())
    }

    /// A QoS 1 copy is finished: acknowledged, expired or too large for the client.
    pub(crate) fn settled(&mut self, bytes: usize) {
        self.forget(bytes);
    }

    fn forget(&mut self, bytes: usize) {
        self.held -= 1;
        self.held_bytes -= bytes;
        self.metrics.queue_messages.sub(1);
        self.metrics.queue_bytes.sub(bytes as u64);
    }

    /// Nothing is taken in any more; what waited is dropped by the caller's drop of the result.
    pub(crate) fn close(&mut self) -> (VecDeque<MessageCopy>, VecDeque<MessageCopy>) {
        self.closed = true;
        self.metrics.queue_messages.sub(self.held as u64);
        self.metrics.queue_bytes.sub(self.held_bytes as u64);
        (self.held, self.held_bytes, self.qos0_bytes) = (0, 0, 0);
        (
            std::mem::take(&mut self.waiting),
            std::mem::take(&mut self.qos0),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::router::test_message;

    fn outbound(limits: QueueLimits) -> (Outbound, Arc<ListenerMetrics>) {
        let metrics = Arc::new(ListenerMetrics::default());
        (Outbound::new(limits, Arc::clone(&metrics)), metrics)
    }

    fn copy(qos: QoS, name: &str) -> MessageCopy {
        MessageCopy {
            message: test_message(name),
            qos,
            retain: false,
            subscription_ids: SubscriptionIds::default(),
            ticket: None,
        }
    }

    fn names(outbound: &mut Outbound, window: usize) -> Vec<String> {
        let mut got = VecDeque::new();
        outbound.pull(
            Pull {
                bytes: usize::MAX,
                window,
            },
            &mut got,
        );
        got.iter()
            .map(|copy| copy.message.topic().as_str().to_owned())
            .collect()
    }

    /// Named loss N5: the queue limit is visible in a counter, and the oldest stay.
    #[test]
    fn mqtt_n5_queue_overflow_drops_the_newest_and_counts() {
        let limits = QueueLimits {
            messages: 1000,
            ..QueueLimits::default()
        };
        let (mut outbound, metrics) = outbound(limits);
        for at in 0..1000 {
            assert_ne!(
                outbound.push(copy(QoS::AtLeastOnce, &format!("t{at}"))).0,
                Enqueued::Dropped
            );
        }
        assert_eq!(
            outbound.push(copy(QoS::AtLeastOnce, "t1000")).0,
            Enqueued::Dropped
        );
        assert_eq!(metrics.queue_dropped(QueueFull::DropNewest).get(), 1);
        assert_eq!(metrics.queue_messages.get(), 1000);
        let got = names(&mut outbound, usize::MAX);
        assert_eq!(
            (got.len(), got[0].as_str(), got[999].as_str()),
            (1000, "t0", "t999")
        );
    }

    #[test]
    fn mqtt_8_2_drop_oldest_spares_what_is_in_flight() {
        let limits = QueueLimits {
            messages: 3,
            full: QueueFull::DropOldest,
            ..QueueLimits::default()
        };
        let (mut outbound, _) = outbound(limits);
        for name in ["a", "b", "c"] {
            outbound.push(copy(QoS::AtLeastOnce, name));
        }
        assert_eq!(names(&mut outbound, 1), ["a"]);
        outbound.push(copy(QoS::AtLeastOnce, "d"));
        assert_eq!(names(&mut outbound, 9), ["c", "d"]);
        assert_eq!(
            outbound.push(copy(QoS::AtLeastOnce, "e")).0,
            Enqueued::Dropped
        );
    }

    #[test]
    fn mqtt_8_2_qos0_makes_room_for_the_newest() {
        let limits = QueueLimits {
            write_buffer_bytes: 4096,
            ..QueueLimits::default()
        };
        let (mut outbound, metrics) = outbound(limits);
        for at in 0..200 {
            outbound.push(copy(QoS::AtMostOnce, &format!("t{at}")));
        }
        assert!(outbound.qos0_bytes <= 4096);
        let got = names(&mut outbound, 0);
        assert_eq!(got.last().map(String::as_str), Some("t199"));
        assert_eq!(metrics.qos0_dropped.get(), 200 - got.len() as u64);
    }

    /// A closed window holds QoS 1 back and nothing else.
    #[test]
    fn a_closed_window_holds_only_qos1() {
        let (mut outbound, _) = outbound(QueueLimits::default());
        assert!(
            outbound.push(copy(QoS::AtLeastOnce, "one")).1,
            "the first copy wakes"
        );
        assert!(
            !outbound.push(copy(QoS::AtMostOnce, "zero")).1,
            "the second need not"
        );
        assert_eq!(names(&mut outbound, 0), ["zero"]);
        assert!(!outbound.has_more(0));
        assert!(outbound.has_more(1));
        assert_eq!(names(&mut outbound, 1), ["one"]);
    }
}
