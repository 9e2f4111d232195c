//! One message inside the listener group, and who waits for its acknowledgements.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use bytes::Bytes;
use futures_util::task::AtomicWaker;
use tokio::time::Instant;

use crate::codec::{Publish, TopicName};

/// A published message as every copy shares it.
#[derive(Debug)]
pub(crate) struct Message {
    /// Topic, payload and properties; packet identifier, alias and subscription identifiers are
    /// each copy's own and absent here, and so is the expiry, which counts down.
    publish: Publish,
    expires_at: Option<Instant>,
    cost: usize,
}

impl Message {
    /// Takes a publish over.
    pub(crate) fn new(mut publish: Publish, now: Instant) -> Self {
        let expiry = publish.properties.message.message_expiry_secs.take();
        let expires_at = expiry.map(|secs| now + std::time::Duration::from_secs(secs.into()));
        publish.dup = false;
        publish.packet_id = None;
        publish.properties.topic_alias = None;
        let cost = cost(&publish);
        Self {
            publish,
            expires_at,
            cost,
        }
    }

    pub(crate) fn topic(&self) -> &TopicName {
        &self.publish.topic
    }

    pub(crate) fn publish(&self) -> &Publish {
        &self.publish
    }

    pub(crate) fn expires_at(&self) -> Option<Instant> {
        self.expires_at
    }

    /// Bytes that a queued copy is charged with: the content plus what its keeping costs.
    pub(crate) fn cost(&self) -> usize {
        self.cost
    }
}

fn cost(publish: &Publish) -> usize {
    let message = &publish.properties.message;
    publish.topic.len()
        + publish.payload.len()
        + message.user_properties.wire_bytes()
        + message.content_type.as_ref().map_or(0, |text| text.len())
        + message.response_topic.as_ref().map_or(0, TopicName::len)
        + message.correlation_data.as_ref().map_or(0, Bytes::len)
        + 64
}

/// What became of the QoS 1 copies of one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Acknowledged by their client with a code below 0x80.
    pub(crate) acked: usize,
    /// Refused: by the client's code, by a full queue, by the client's packet size.
    pub(crate) refused: usize,
    /// The connection ended first.
    pub(crate) lost: usize,
}

/// Counts the acknowledgements of one message.
#[derive(Debug)]
pub(crate) struct Settlement {
    /// Tickets out, plus one until [`finished`](Self::finished) is asked.
    open: AtomicUsize,
    acked: AtomicUsize,
    refused: AtomicUsize,
    lost: AtomicUsize,
    waker: AtomicWaker,
}

impl Settlement {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            open: AtomicUsize::new(1),
            acked: AtomicUsize::new(0),
            refused: AtomicUsize::new(0),
            lost: AtomicUsize::new(0),
            waker: AtomicWaker::new(),
        })
    }

    pub(crate) fn ticket(self: &Arc<Self>) -> Ticket {
        self.open.fetch_add(1, Ordering::Relaxed);
        Ticket(Some(Arc::clone(self)))
    }

    /// Waits until every ticket came back. No ticket may be made afterwards.
    ///
    /// # Cancel safety
    ///
    /// Dropping it loses only the answer.
    pub(crate) async fn finished(self: Arc<Self>) -> Tally {
        self.close_one();
        poll_fn(|cx| {
            self.waker.register(cx.waker());
            if self.open.load(Ordering::Acquire) == 0 {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
        Tally {
            acked: self.acked.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
            lost: self.lost.load(Ordering::Relaxed),
        }
    }

    fn close_one(&self) {
        if self.open.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.waker.wake();
        }
    }
}

/// The duty to say what became of one copy; dropped unsaid it counts as lost.
#[derive(Debug)]
pub(crate) struct Ticket(Option<Arc<Settlement>>);

impl Ticket {
    pub(crate) fn acked(self) {
        self.end(|settlement| &settlement.acked);
    }

    pub(crate) fn refused(self) {
        self.end(|settlement| &settlement.refused);
    }

    fn end(mut self, which: impl Fn(&Settlement) -> &AtomicUsize) {
        if let Some(settlement) = self.0.take() {
            which(&settlement).fetch_add(1, Ordering::Relaxed);
            settlement.close_one();
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if let Some(settlement) = self.0.take() {
            settlement.lost.fetch_add(1, Ordering::Relaxed);
            settlement.close_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_ticket_is_counted_once() {
        let settlement = Settlement::new();
        let (a, b, c) = (
            settlement.ticket(),
            settlement.ticket(),
            settlement.ticket(),
        );
        a.acked();
        b.refused();
        let mut finished = Box::pin(Arc::clone(&settlement).finished());
        assert!(futures_util::poll!(&mut finished).is_pending());
        drop(c);
        assert_eq!(
            finished.await,
            Tally {
                acked: 1,
                refused: 1,
                lost: 1
            }
        );
    }
}
