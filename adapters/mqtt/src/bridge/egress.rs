//! Deliveries of one route to the sessions of a listener group. [mqtt 11.1] [mqtt 11.4]
//!
//! A delivery enters the same router as a publish of the principal `route:NAME`, and is settled
//! last: when it is in the queues (`sent`), when every QoS 1 session acknowledged it (`receipt`),
//! or when the answer came (reply routes).

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info};
use weida_bridge::fabric::Settle;
use weida_bridge::{
    AckOn, Captures, Deliveries, Delivery, DropCause, Envelope, GatewayId, Level, NameError,
    Outcome, Pattern, Refusal, Reply, WEIDA,
};

use super::headers;
use super::replies::Replies;
use super::settle::of_tally;
use crate::codec::{MessageProperties, Publish, PublishProperties, QoS, TopicName};
use crate::config::{EgressRoute, ReplyMode};
use crate::router::{Delivered, Message, Router, Settlement};

/// One egress route at run time.
#[derive(Debug)]
pub(crate) struct Egress {
    pub(crate) route: EgressRoute,
    pub(crate) router: Arc<Router>,
    pub(crate) replies: Arc<Replies>,
    pub(crate) gateway: GatewayId,
    pub(crate) max_hops: usize,
    pub(crate) max_message_bytes: usize,
    pub(crate) tenant: Option<Box<str>>,
}

impl Egress {
    /// Delivers until the route ends or `stop`; what waits for acknowledgements then has until
    /// `drain` has passed.
    pub(crate) async fn run(
        self,
        mut deliveries: Deliveries,
        stop: CancellationToken,
        drain: Duration,
    ) {
        let this = Arc::new(self);
        let mut waiting = FuturesUnordered::new();
        let max = match this.route.route.pattern {
            Pattern::Reply => this.route.max_pending_replies,
            _ => this.route.in_flight,
        };
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                Some(()) = waiting.next(), if !waiting.is_empty() => {}
                delivery = deliveries.next(), if waiting.len() < max => match delivery {
                    Some(delivery) => {
                        if let Some(pending) = this.deliver(delivery) {
                            waiting.push(pending.settled(Arc::clone(&this)));
                        }
                    }
                    None => break,
                },
            }
        }
        deliveries.close();
        let cut = waiting.len();
        let ended = async { while waiting.next().await.is_some() {} };
        if tokio::time::timeout(drain, ended).await.is_err() {
            info!(route = %this.route.route.id, cut, "deliveries were not acknowledged in time");
        }
    }

    /// Hands one delivery to the sessions. What has to be waited for comes back.
    fn deliver(&self, delivery: Delivery) -> Option<Pending> {
        let now = Instant::now();
        let deadline = delivery.deadline();
        let wants_reply = delivery.wants_reply();
        let (envelope, settle) = delivery.into_parts();
        let publish = match self.publish(&envelope, now) {
            Ok(publish) => publish,
            Err(outcome) => {
                debug!(route = %self.route.route.id, ?outcome, "delivery not published");
                settle.settle(outcome);
                return None;
            }
        };
        let request = self.route.route.pattern == Pattern::Reply;
        if request && self.route.reply == ReplyMode::ResponseTopic {
            return self.request(publish, deadline, settle, now);
        }
        if self.route.route.ack_on == AckOn::Sent && !request {
            settle.settle(of_fan(self.fan(publish, now, None, |_| {})));
            return None;
        }
        let settlement = Settlement::new();
        let delivered = self.fan(publish, now, Some(&settlement), |_| {});
        if delivered.matched == 0 {
            settle.settle(Outcome::Dropped(DropCause::NoSubscriber));
            return None;
        }
        let until = deadline.unwrap_or(now + self.route.attempt_timeout);
        Some(Pending {
            settle,
            until,
            awaits: Awaits::Acks {
                settlement,
                one_way: wants_reply,
            },
        })
    }

    /// The publish that a message from weida becomes.
    fn publish(&self, envelope: &Envelope, now: Instant) -> Result<Publish, Outcome> {
        if envelope.is_expired(now) {
            return Err(Outcome::Expired);
        }
        if envelope.payload.len() > self.max_message_bytes {
            // MQTT has no streaming: what does not fit is refused, never cut. [N4]
            return Err(Outcome::Refused(Refusal::TooLarge));
        }
        let captures = Captures::new(&WEIDA, &self.route.filter, envelope.topic.as_str())
            .meta(&envelope.meta)
            .tenant(self.tenant.as_deref());
        let name = self.route.route.topic.render(&captures).map_err(|error| {
            Outcome::Dropped(match error {
                NameError::TooLong { .. } => DropCause::NameTooLong,
                _ => DropCause::BadName,
            })
        })?;
        let topic = TopicName::parse(&name).map_err(|_| Outcome::Dropped(DropCause::BadName))?;
        let message = headers::from_envelope(envelope, self.gateway, self.max_hops, now)
            .ok_or(Outcome::Dropped(DropCause::Loop))?;
        Ok(Publish {
            qos: if self.route.qos == 0 {
                QoS::AtMostOnce
            } else {
                QoS::AtLeastOnce
            },
            topic,
            properties: PublishProperties {
                message,
                ..PublishProperties::default()
            },
            payload: envelope.payload.clone(),
            ..Publish::default()
        })
    }

    fn fan(
        &self,
        publish: Publish,
        now: Instant,
        settlement: Option<&Arc<Settlement>>,
        reached: impl FnMut(u64),
    ) -> Delivered {
        let topic = publish.topic.clone();
        let make = move || Arc::new(Message::new(publish, now));
        self.router
            .publish(topic.as_bytes(), 0, make, settlement, reached)
    }

    /// Asks the MQTT responders; the first right answer wins.
    fn request(
        &self,
        mut publish: Publish,
        deadline: Option<Instant>,
        settle: Settle,
        now: Instant,
    ) -> Option<Pending> {
        let bound = self.route.route.timeout.unwrap_or(Duration::from_secs(10));
        let until = deadline.map_or(now + bound, |deadline| deadline.min(now + bound));
        publish.qos = QoS::AtLeastOnce;
        let opened = self.replies.open(|address| {
            let message: &mut MessageProperties = &mut publish.properties.message;
            message.response_topic = Some(address.topic.clone());
            message.correlation_data = Some(address.correlation.clone());
            message.message_expiry_secs = Some(headers::seconds_up(until, now));
            let mut receivers = Vec::new();
            self.fan(publish, now, None, |number| receivers.push(number));
            receivers
        });
        match opened {
            // Nobody can answer, so nobody waits. [mqtt 11.4]
            None => {
                settle.settle(Outcome::Dropped(DropCause::NoSubscriber));
                None
            }
            Some((address, answered)) => Some(Pending {
                settle,
                until,
                awaits: Awaits::Answer { address, answered },
            }),
        }
    }
}

/// A delivery whose end is awaited.
struct Pending {
    settle: Settle,
    until: Instant,
    awaits: Awaits,
}

enum Awaits {
    Acks {
        settlement: Arc<Settlement>,
        /// A requester waits, and gets an empty answer with the level reached.
        one_way: bool,
    },
    Answer {
        address: super::replies::Address,
        answered: tokio::sync::oneshot::Receiver<Reply>,
    },
}

impl Pending {
    async fn settled(self, egress: Arc<Egress>) {
        let outcome = match self.awaits {
            Awaits::Acks {
                settlement,
                one_way,
            } => {
                let tally = timeout_at(self.until, settlement.finished()).await;
                match tally.map(of_tally) {
                    Ok(Outcome::Receipt) if one_way => Outcome::Reply(Box::new(Reply {
                        achieved: Some(Level::Receipt),
                        ..Reply::default()
                    })),
                    Ok(outcome) => outcome,
                    Err(_) => Outcome::Indeterminate,
                }
            }
            Awaits::Answer { address, answered } => {
                let answer = timeout_at(self.until, answered).await;
                egress.replies.close(&address);
                match answer {
                    Ok(Ok(reply)) => Outcome::Reply(Box::new(reply)),
                    // Whether the request was acted on is unknown to the caller.
                    Ok(Err(_)) | Err(_) => Outcome::Indeterminate,
                }
            }
        };
        self.settle.settle(outcome);
    }
}

/// The outcome of a fan-out that nobody waits for.
fn of_fan(delivered: Delivered) -> Outcome {
    let Delivered {
        matched, dropped, ..
    } = delivered;
    match matched {
        0 => Outcome::Dropped(DropCause::NoSubscriber),
        _ if matched == dropped => Outcome::Dropped(DropCause::QueueFull),
        _ => Outcome::Fanned {
            copies: matched - dropped,
            dropped,
        },
    }
}
