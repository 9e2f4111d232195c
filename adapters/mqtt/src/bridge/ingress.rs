//! Publishes of one session into the routes of its listener. [DESIGN 4] [mqtt 11.1]
//!
//! A message waits in the lane of its route until the route's service is ready. The lanes of one
//! session are independent, so a full route holds only what wants to go there; what it holds of
//! QoS 1 keeps its place in the client's window, and that is the back-pressure. QoS 0 stops the
//! client for `qos0_block`, then it is dropped and counted.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tower_service::Service;
use tracing::debug;
use weida_bridge::fabric::IngressFuture;
use weida_bridge::{
    AckOn, Captures, Envelope, FabricError, GatewayId, Ingress, Outcome, Pattern, SessionRef,
};
use weida_core::Topic;

use super::headers::{self, HeaderError};
use super::names::MQTT;
use super::replies::Replies;
use super::settle::{self, Wanted, refused};
use crate::codec::{Publish, PublishProperties, QoS, ReasonCode, TopicName};
use crate::config::IngressRoute;
use crate::io::{Intake, Intakes, Refused, Verdict};
use crate::metrics::{Cause, ListenerMetrics, Op, PublishResult};
use crate::router::{Message, Router};
use crate::session::Session;

/// Calls of one session into routes that may be unfinished at once.
const MAX_IN_FLIGHT: usize = 4096;

/// The routes of one listener.
#[derive(Debug)]
pub(crate) struct IngressRoutes {
    pub(crate) doors: Vec<RouteDoor>,
    pub(crate) replies: Arc<Replies>,
    pub(crate) router: Arc<Router>,
    pub(crate) metrics: Arc<ListenerMetrics>,
    pub(crate) gateway: GatewayId,
    pub(crate) max_hops: usize,
    pub(crate) tenant: Option<Box<str>>,
    pub(crate) qos0_block: std::time::Duration,
}

/// One route and the service behind it.
#[derive(Debug)]
pub(crate) struct RouteDoor {
    config: IngressRoute,
    /// Cloned once per session that uses it.
    service: Mutex<Ingress>,
    pending_replies: Arc<Semaphore>,
}

impl RouteDoor {
    pub(crate) fn new(config: IngressRoute, service: Ingress) -> Self {
        let permits = config.max_pending_replies.min(Semaphore::MAX_PERMITS);
        Self {
            config,
            service: Mutex::new(service),
            pending_replies: Arc::new(Semaphore::new(permits)),
        }
    }

    fn service(&self) -> Ingress {
        self.service
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl Intakes for IngressRoutes {
    type Intake = SessionIntake;

    fn open(self: &Arc<Self>, session: &Arc<Session>) -> SessionIntake {
        SessionIntake {
            lanes: self.doors.iter().map(|_| Lane::default()).collect(),
            routes: Arc::clone(self),
            session: Arc::clone(session),
            in_flight: FuturesUnordered::new(),
            answers: VecDeque::new(),
            parked: 0,
            parked_bytes: 0,
            paused_until: None,
        }
    }
}

/// What one session has on its way into routes.
pub(crate) struct SessionIntake {
    routes: Arc<IngressRoutes>,
    session: Arc<Session>,
    lanes: Vec<Lane>,
    in_flight: FuturesUnordered<Call>,
    answers: VecDeque<(u64, Verdict)>,
    parked: usize,
    parked_bytes: usize,
    paused_until: Option<Instant>,
}

/// What waits in front of one route.
#[derive(Default)]
struct Lane {
    service: Option<Ingress>,
    parked: VecDeque<Parked>,
    /// Since when the route is not ready.
    full_since: Option<Instant>,
    /// The last name that was mapped: clients publish to few topics.
    mapped: Option<(TopicName, Topic)>,
}

struct Parked {
    envelope: Envelope,
    serial: Option<u64>,
    qos0: bool,
    requester: Option<Requester>,
}

/// Where the answer of a request goes.
struct Requester {
    topic: TopicName,
    correlation: Option<Bytes>,
    qos: QoS,
    router: Arc<Router>,
    _pending: OwnedSemaphorePermit,
}

/// One call into a route.
struct Call {
    future: IngressFuture,
    wanted: Wanted,
    serial: Option<u64>,
    requester: Option<Requester>,
}

impl Future for Call {
    type Output = Option<(u64, Verdict)>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let result = std::task::ready!(self.future.as_mut().poll(cx));
        if let Some(requester) = self.requester.take() {
            requester.answer(&result);
        }
        let (serial, wanted) = (self.serial.take(), self.wanted);
        Poll::Ready(serial.map(|serial| (serial, settle::verdict(wanted, &result))))
    }
}

impl Requester {
    /// Publishes the answer, or the reason why there is none.
    fn answer(self, result: &Result<Outcome, FabricError>) {
        let (message, payload) = match result {
            Ok(Outcome::Reply(reply)) => (headers::from_reply(reply), reply.payload.clone()),
            other => (headers::error(settle::error_word(other)), Bytes::new()),
        };
        let mut properties = PublishProperties {
            message,
            ..PublishProperties::default()
        };
        properties.message.correlation_data = self.correlation;
        let topic = self.topic.clone();
        let publish = Publish {
            qos: self.qos,
            topic: self.topic,
            properties,
            payload,
            ..Publish::default()
        };
        let make = move || Arc::new(Message::new(publish, Instant::now()));
        self.router.publish(topic.as_bytes(), 0, make, None, |_| {});
    }
}

impl SessionIntake {
    /// Builds the envelope of one route, or says why this publish may not enter it.
    fn envelope(
        &mut self,
        at: usize,
        publish: &Publish,
        qos: QoS,
        now: Instant,
    ) -> Result<Envelope, Verdict> {
        let routes = &self.routes;
        let route = &routes.doors[at].config;
        let lane = &mut self.lanes[at];
        let rpc = route.route.pattern == Pattern::Request;
        let id = route.route.id.clone();
        let known = lane
            .mapped
            .as_ref()
            .filter(|(name, _)| *name == publish.topic);
        let topic = known.map(|(_, topic)| topic.clone());
        let fresh = topic.is_none();
        let topic = topic.unwrap_or_default();
        let mut envelope = Envelope::new(id, topic, publish.payload.clone(), now);
        let message = &publish.properties.message;
        headers::to_envelope(message, qos, rpc, &mut envelope).map_err(|error| match error {
            HeaderError::Meta => refused(ReasonCode::QuotaExceeded, Cause::MetaTooLarge),
            HeaderError::Loop => {
                routes
                    .metrics
                    .loop_suppressed(route.route.id.as_str(), "hops");
                Verdict::Done
            }
        })?;
        let came_round = envelope.via.contains(routes.gateway);
        if came_round || envelope.via.len() > routes.max_hops {
            let how = if came_round { "via" } else { "hops" };
            debug!(route = %route.route.id, how, "a message came round and is not forwarded again");
            routes.metrics.loop_suppressed(route.route.id.as_str(), how);
            return Err(Verdict::Done);
        }
        if route.route.labels {
            let key = self.session.key();
            let labels = [
                ("gateway.principal", key.principal.as_str()),
                ("mqtt.client-id", &key.foreign_id),
            ];
            for (name, value) in labels {
                let pushed = envelope.meta.push(name, value);
                pushed.map_err(|_| refused(ReasonCode::QuotaExceeded, Cause::MetaTooLarge))?;
            }
        }
        envelope.session = Some(Arc::<SessionRef>::clone(self.session.shown()));
        if fresh {
            let user = self.session.key().principal.user_name();
            let captures = Captures::new(&MQTT, route.filter.as_str(), publish.topic.as_str())
                .meta(&envelope.meta)
                .user(user)
                .tenant(routes.tenant.as_deref());
            let mapped = route.route.topic.render(&captures).map_err(|error| {
                let cause = match error {
                    weida_bridge::NameError::TooLong { .. } => Cause::NameTooLong,
                    _ => Cause::BadName,
                };
                refused(ReasonCode::TopicNameInvalid, cause)
            })?;
            let topic = Topic::new(mapped)
                .map_err(|_| refused(ReasonCode::TopicNameInvalid, Cause::NameTooLong))?;
            if route.route.topic.as_str().contains("{meta.") {
                lane.mapped = None;
            } else {
                lane.mapped = Some((publish.topic.detached(), topic.clone()));
            }
            envelope.topic = topic;
        }
        Ok(envelope)
    }

    /// The answer address of a request, judged: the gateway must not publish for a client where
    /// the client itself may not.
    fn requester(&self, at: usize, publish: &Publish) -> Result<Option<Requester>, Verdict> {
        let door = &self.routes.doors[at];
        if door.config.route.pattern != Pattern::Request {
            return Ok(None);
        }
        let message = &publish.properties.message;
        let Some(topic) = &message.response_topic else {
            return Err(refused(ReasonCode::TopicNameInvalid, Cause::BadName));
        };
        if topic.is_reserved() || !self.session.access().may_publish(topic) {
            return Err(refused(ReasonCode::NotAuthorized, Cause::NotAuthorized));
        }
        let pending = Arc::clone(&door.pending_replies).try_acquire_owned();
        let pending = pending.map_err(|_| refused(ReasonCode::QuotaExceeded, Cause::Limit))?;
        Ok(Some(Requester {
            topic: topic.detached(),
            correlation: message
                .correlation_data
                .as_ref()
                .map(|d| Bytes::copy_from_slice(d)),
            qos: publish.qos,
            router: Arc::clone(&self.routes.router),
            _pending: pending,
        }))
    }

    fn offer_one(
        &mut self,
        at: usize,
        publish: &Publish,
        serial: Option<u64>,
        now: Instant,
    ) -> Result<(), Verdict> {
        let route = &self.routes.doors[at].config;
        let capped = if route.qos_cap == 0 {
            QoS::AtMostOnce
        } else {
            publish.qos
        };
        let qos0 = capped == QoS::AtMostOnce;
        let full_since = self.lanes[at].full_since;
        if qos0 && full_since.is_some_and(|since| now >= since + self.routes.qos0_block) {
            self.routes
                .metrics
                .published_in(QoS::AtMostOnce, PublishResult::Dropped)
                .add(1);
            self.routes
                .metrics
                .refused(Op::Publish, Cause::Limit)
                .add(1);
            return Err(Verdict::Done);
        }
        let requester = self.requester(at, publish)?;
        let envelope = self.envelope(at, publish, capped, now)?;
        self.parked += 1;
        self.parked_bytes += envelope.payload.len();
        self.lanes[at].parked.push_back(Parked {
            envelope,
            serial,
            qos0,
            requester,
        });
        Ok(())
    }

    /// Moves what waits into routes that are ready.
    fn advance(&mut self, cx: &mut Context<'_>) {
        let now = Instant::now();
        let mut paused_until = None;
        for (door, lane) in self.routes.doors.iter().zip(&mut self.lanes) {
            while !lane.parked.is_empty() {
                let service = lane.service.get_or_insert_with(|| door.service());
                // The room of this session counts before the room of the route.
                let ready = if self.in_flight.len() >= MAX_IN_FLIGHT {
                    Poll::Pending
                } else {
                    service.poll_ready(cx)
                };
                let Poll::Ready(ready) = ready else {
                    let since = *lane.full_since.get_or_insert(now);
                    if lane.parked.iter().any(|parked| parked.qos0) {
                        let until = since + self.routes.qos0_block;
                        paused_until = Some(paused_until.map_or(until, |p: Instant| p.min(until)));
                    }
                    break;
                };
                lane.full_since = None;
                let Some(parked) = lane.parked.pop_front() else {
                    break;
                };
                self.parked -= 1;
                self.parked_bytes -= parked.envelope.payload.len();
                let ack_on = door.config.route.ack_on;
                let wanted = Wanted {
                    ack_on,
                    hold_unroutable: door.config.hold_unroutable,
                };
                let mut serial = parked.serial;
                let future: IngressFuture = match ready {
                    Ok(()) => service.call(parked.envelope),
                    Err(error) => Box::pin(std::future::ready(Err(error))),
                };
                if parked.requester.is_some() && ack_on == AckOn::Sent {
                    // The exchange is opened: that is all this route certifies.
                    self.answers
                        .extend(serial.take().map(|serial| (serial, Verdict::Done)));
                }
                let mut call = Call {
                    future,
                    wanted,
                    serial,
                    requester: parked.requester,
                };
                match Pin::new(&mut call).poll(cx) {
                    Poll::Ready(answer) => self.answers.extend(answer),
                    Poll::Pending => self.in_flight.push(call),
                }
            }
        }
        self.paused_until = paused_until;
    }
}

impl Intake for SessionIntake {
    fn admit(&mut self, publish: &mut Publish) -> Result<(), Refused> {
        let properties = &mut publish.properties.message.user_properties;
        if !properties.is_empty() {
            self.routes
                .metrics
                .reserved_meta_removed
                .add(headers::remove_reserved(properties));
        }
        Ok(())
    }

    fn admit_reply(&mut self, publish: &Publish) -> Verdict {
        self.routes
            .replies
            .answer(publish, self.session.number(), &self.routes.metrics)
    }

    fn offer(&mut self, publish: &Publish, serial: Option<u64>, now: Instant) -> u32 {
        let mut offered = 0;
        for at in 0..self.lanes.len() {
            if !self.routes.doors[at].config.filter.matches(&publish.topic) {
                continue;
            }
            offered += 1;
            match (self.offer_one(at, publish, serial, now), serial) {
                (Ok(()), _) => {}
                (Err(verdict), Some(serial)) => self.answers.push_back((serial, verdict)),
                (Err(Verdict::Refused(refused)), None) => {
                    self.routes
                        .metrics
                        .refused(Op::Publish, refused.cause)
                        .add(1);
                }
                (Err(_), None) => {}
            }
        }
        offered
    }

    fn poll_settled(&mut self, cx: &mut Context<'_>) -> Poll<(u64, Verdict)> {
        if self.answers.is_empty() {
            // Finished calls make room for waiting ones, so they come first.
            while let Poll::Ready(Some(answer)) = self.in_flight.poll_next_unpin(cx) {
                self.answers.extend(answer);
            }
            if self.parked > 0 {
                self.advance(cx);
                while let Poll::Ready(Some(answer)) = self.in_flight.poll_next_unpin(cx) {
                    self.answers.extend(answer);
                }
            }
        }
        self.answers.pop_front().map_or(Poll::Pending, Poll::Ready)
    }

    fn paused_until(&self) -> Option<Instant> {
        self.paused_until
    }

    fn parked_bytes(&self) -> usize {
        self.parked_bytes
    }

    fn give_up_waiting(&mut self, now: Instant) {
        for lane in &mut self.lanes {
            if lane
                .full_since
                .is_none_or(|since| now < since + self.routes.qos0_block)
            {
                continue;
            }
            let (parked, parked_bytes) = (&mut self.parked, &mut self.parked_bytes);
            let metrics = &self.routes.metrics;
            let answers = &mut self.answers;
            lane.parked.retain(|waiting| {
                if waiting.qos0 {
                    *parked -= 1;
                    *parked_bytes -= waiting.envelope.payload.len();
                    metrics
                        .published_in(QoS::AtMostOnce, PublishResult::Dropped)
                        .add(1);
                    metrics.refused(Op::Publish, Cause::Limit).add(1);
                    answers.extend(waiting.serial.map(|serial| (serial, Verdict::Done)));
                }
                !waiting.qos0
            });
        }
        self.paused_until = None;
    }

    fn awaited(&self) -> u32 {
        u32::try_from(self.parked + self.in_flight.len()).unwrap_or(u32::MAX)
    }

    async fn finish(mut self) {
        poll_fn(|cx| {
            while self.poll_settled(cx).is_ready() {}
            if self.is_idle() {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }
}
