//! Pub: fan-out to whoever subscribed. `[weida 11]`

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use weida_core::{Error, Result, TraceContext};

use super::Publisher;
use crate::listener::table::{Claim, Route, Table};
use crate::pubsub::{
    Admission, Attached, DropTable, FanOut, Published, Said, SubscriptionRequest, TopicDrops,
};
use crate::shared::Life;
use crate::transfer::TransferMeta;

/// What a publisher holds.
#[expect(unnameable_types, reason = "sealed: only a type alias names it")]
pub struct PubState {
    // Dropped before the claim, so that a successor finds no decision of ours.
    attached: Attached,
    claim: Claim,
    drops: Arc<DropTable>,
    life: Arc<Life>,
}

impl fmt::Debug for PubState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PubState")
            .field("path", &self.claim.path())
            .finish_non_exhaustive()
    }
}

impl Publisher {
    pub(crate) fn register(life: Arc<Life>, table: &Arc<Table>, path: &str) -> Result<Self> {
        let registry = table.registry().ok_or(Error::Unsupported)?;
        let claim = table.claim(path, Route::Publisher)?;
        let config = &life.shared.config;
        Ok(Self {
            state: PubState {
                attached: registry.attach(path, config),
                claim,
                drops: Arc::new(DropTable::new(config.limits.max_sequence_scopes)),
                life,
            },
        })
    }

    /// The path this publisher serves.
    pub fn path(&self) -> &str {
        self.state.claim.path()
    }

    /// Lets `decide` say whose copies are sent.
    ///
    /// It is asked about each filter before it is recorded, again on every
    /// repeat (the latest answer holds), and now about every filter already
    /// held; a later call replaces it. A declined filter is recorded all the
    /// same, keeps its place under `max_subscriptions`, and nothing is sent to
    /// its subscriber, who cannot tell. A copy that only declined filters of a
    /// connection match is not sent and counts as [`TopicDrops::declined`].
    ///
    /// `decide` runs on the subscribing connection's task, one call at a time,
    /// and must not block. A panic declines. It decides about the transport's
    /// proof and the path; a filter selects and grants nothing.
    /// `[weida PS-16, S17-13, S17-14]`
    ///
    /// ```no_run
    /// # async fn example(listener: weida::Listener, operator: weida::Fingerprint) -> weida::Result<()> {
    /// use weida::Admission;
    ///
    /// let publisher = listener.publisher("/readings")?.with_admission(move |request| {
    ///     match request.peer.and_then(|peer| peer.key()) {
    ///         Some(key) if key == operator => Admission::Record,
    ///         _ => Admission::DeclineCopies,
    ///     }
    /// });
    /// publisher.publish("plant.7.temp", "21.5")?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_admission(
        self,
        decide: impl Fn(&SubscriptionRequest<'_>) -> Admission + Send + Sync + 'static,
    ) -> Self {
        self.state.attached.admit(decide);
        self
    }

    /// Queues one copy of `payload` for every connection with a filter that
    /// matches `topic`, and returns how many.
    ///
    /// Synchronous: it never waits for a subscriber. One whose queue (1024
    /// messages) or byte budget
    /// ([`Limits::subscriber_buffer_bytes`](weida_core::Limits::subscriber_buffer_bytes),
    /// over all paths of its connection) is exhausted loses this copy, counted
    /// by cause; the others do not notice. No subscriber is no error. What was
    /// queued is on its way, not received: nothing reports about a copy.
    ///
    /// # Errors
    ///
    /// [`Error::LimitExceeded`] for a payload above that budget or a topic
    /// above 256 bytes; nothing is sent. `[weida PS-7]`
    pub fn publish(&self, topic: &str, payload: impl Into<Bytes>) -> Result<usize> {
        self.publish_inner(topic, payload.into(), None)
    }

    /// [`Publisher::publish`] with the caller's trace context, from an arrival
    /// or from [`new_trace`](crate::new_trace). The runtime never makes one up.
    ///
    /// # Errors
    ///
    /// As [`Publisher::publish`].
    pub fn publish_with_trace(
        &self,
        topic: &str,
        payload: impl Into<Bytes>,
        trace: TraceContext,
    ) -> Result<usize> {
        self.publish_inner(topic, payload.into(), Some(trace))
    }

    /// [`Publisher::publish`] with metadata, saying also how many copies were
    /// dropped. Content type, trace and extensions of `meta` travel with every
    /// copy; its other fields are the fan-out's own and are not read.
    ///
    /// # Errors
    ///
    /// As [`Publisher::publish`], and for metadata above its caps.
    pub fn publish_with(
        &self,
        topic: &str,
        meta: &TransferMeta,
        payload: impl Into<Bytes>,
    ) -> Result<Published> {
        let said = Said {
            trace: meta.trace,
            content_type: meta.content_type.as_deref(),
            extensions: meta.extensions.as_extensions(),
        };
        let path = self.state.attached.path();
        path.publish(topic, payload.into(), &said, &self.state.drops)
    }

    fn publish_inner(
        &self,
        topic: &str,
        payload: Bytes,
        trace: Option<TraceContext>,
    ) -> Result<usize> {
        let said = Said {
            trace,
            ..Said::default()
        };
        let path = self.state.attached.path();
        let published = path.publish(topic, payload, &said, &self.state.drops)?;
        Ok(published.copies)
    }

    /// Opens a streamed publish: a payload of any size, written chunk by chunk
    /// to one stream per subscriber and never held whole.
    ///
    /// The subscribers are fixed now. A topic above 256 bytes reaches nobody
    /// and every write is refused.
    pub fn open(&self, topic: &str) -> FanOut {
        self.open_inner(topic, None)
    }

    /// [`Publisher::open`] with the caller's trace context.
    pub fn open_with_trace(&self, topic: &str, trace: TraceContext) -> FanOut {
        self.open_inner(topic, Some(trace))
    }

    fn open_inner(&self, topic: &str, trace: Option<TraceContext>) -> FanOut {
        let PubState {
            attached,
            drops,
            life,
            ..
        } = &self.state;
        FanOut::open(attached.path(), topic, trace, drops, &life.shared.exec)
    }

    /// Connections with at least one filter at this path, declined or not.
    pub fn subscriber_count(&self) -> usize {
        self.state.attached.path().subscriber_count()
    }

    /// Filters held at this path, summed over connections.
    pub fn filter_count(&self) -> usize {
        self.state.attached.path().filter_count()
    }

    /// Copies that were not sent, over topics and causes.
    pub fn dropped(&self) -> u64 {
        self.state.drops.total()
    }

    /// What was dropped on `topic`, by cause; `None` if nothing was. At most
    /// [`Limits::max_sequence_scopes`](weida_core::Limits::max_sequence_scopes)
    /// topics are told apart; a drop beyond them counts in
    /// [`Publisher::dropped`] only.
    pub fn dropped_on(&self, topic: &str) -> Option<TopicDrops> {
        self.state.drops.on(topic)
    }

    /// Every topic that lost a copy.
    pub fn drops(&self) -> Vec<TopicDrops> {
        self.state.drops.all()
    }
}
