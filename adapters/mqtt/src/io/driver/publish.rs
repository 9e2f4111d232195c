//! PUBLISH from the client: judged, handed out, acknowledged. [mqtt 3.4] [mqtt 5.2]

use std::sync::Arc;

use bytes::Bytes;
use tracing::{debug, info};

use super::super::acks::{Refused, Verdict};
use super::super::intake::{Intake, Intakes};
use super::{Driver, End};
use crate::codec::{Ack, Packet, PacketId, Publish, QoS, ReasonCode, UserProperties, Violation};
use crate::config::{LegacyRefusal, Qos0Refusal};
use crate::metrics::{Cause, Closed, Op, PublishResult};
use crate::router::Message;

/// Payloads below this are copied out of the read buffer, so that a small message that waits
/// does not keep 64 KiB alive.
const DETACH_BELOW: usize = 16 << 10;

impl<I: Intakes> Driver<I> {
    pub(super) fn on_publish(&mut self, mut publish: Publish) -> Result<(), End> {
        if publish.dup {
            self.host.metrics.dup_in.add(1);
        }
        self.pace.spend(publish.payload.len(), self.now);
        let qos = publish.qos;
        let serial = publish.packet_id.map(|packet_id| {
            self.host.metrics.inflight.add(1);
            self.acks.open(packet_id)
        });
        let verdict = match self.judge(&mut publish) {
            Ok(()) => self.hand_out(publish, serial),
            Err(refused) => Verdict::Refused(refused),
        };
        match serial {
            Some(serial) => self.acks.settle(serial, verdict),
            None => self.after_qos0(qos, verdict)?,
        }
        Ok(())
    }

    /// A publish whose form alone is refused. [mqtt 3.4]
    pub(super) fn on_publish_refused(
        &mut self,
        packet_id: Option<PacketId>,
        violation: Violation,
    ) -> Result<(), End> {
        self.host.metrics.malformed(violation.rule());
        let cause = match violation {
            Violation::UserPropertyQuota { .. } => Cause::MetaTooLarge,
            Violation::TopicTooBig { .. } => Cause::NameTooLong,
            _ => Cause::BadName,
        };
        let refused = Refused {
            code: violation.reason_code(),
            cause,
        };
        let Some(packet_id) = packet_id else {
            return self.after_qos0(QoS::AtMostOnce, Verdict::Refused(refused));
        };
        if matches!(violation, Violation::PacketIdInUse { .. }) {
            // The identifier belongs to the exchange that is still open; only this packet is
            // answered.
            self.count_refused(refused.cause, QoS::AtLeastOnce);
            return self.answer(&Packet::PubAck(Ack::new(packet_id, refused.code)));
        }
        self.host.metrics.inflight.add(1);
        let serial = self.acks.open(packet_id);
        self.acks.settle(serial, Verdict::Refused(refused));
        Ok(())
    }

    /// Grants, payload format, reserved names.
    fn judge(&mut self, publish: &mut Publish) -> Result<(), Refused> {
        if !publish.topic.is_reserved() && !self.session.access().may_publish(&publish.topic) {
            return Err(not_authorized());
        }
        if self.host.config.validate_payload_utf8
            && publish.properties.message.payload_is_utf8 == Some(true)
            && std::str::from_utf8(&publish.payload).is_err()
        {
            let code = ReasonCode::PayloadFormatInvalid;
            return Err(Refused {
                code,
                cause: Cause::Malformed,
            });
        }
        if publish.payload.len() > self.host.config.max_message_bytes {
            return Err(Refused {
                code: ReasonCode::QuotaExceeded,
                cause: Cause::TooLarge,
            });
        }
        self.intake.admit(publish)
    }

    /// To open requests, routes and local subscribers.
    fn hand_out(&mut self, mut publish: Publish, serial: Option<u64>) -> Verdict {
        if publish.topic.is_reserved() {
            return self.intake.admit_reply(&publish);
        }
        if publish.payload.len() < DETACH_BELOW && !publish.payload.is_empty() {
            publish.payload = Bytes::copy_from_slice(&publish.payload);
        }
        let answers = self.intake.offer(&publish, serial, self.now);
        if let Some(serial) = serial {
            self.acks.expect(serial, answers);
        }
        if self.host.config.routes_only {
            return Verdict::Nobody;
        }
        let (origin, now) = (self.session.number(), self.now);
        let topic = publish.topic.clone();
        let make = move || Arc::new(Message::new(detached(publish), now));
        let delivered = self
            .host
            .router
            .publish(topic.as_bytes(), origin, make, None, |_| {});
        self.tight |= delivered.tight;
        if delivered.matched > 0 {
            Verdict::Done
        } else {
            Verdict::Nobody
        }
    }

    fn after_qos0(&mut self, qos: QoS, verdict: Verdict) -> Result<(), End> {
        let result = match verdict {
            Verdict::Refused(refused) => {
                self.count_refused(refused.cause, qos);
                let denied = refused.code == ReasonCode::NotAuthorized;
                if denied && self.host.config.qos0_refusal == Qos0Refusal::Disconnect {
                    return Err(End::told(Closed::NotAuthorized, ReasonCode::NotAuthorized));
                }
                return self.refuse_legacy(refused, None);
            }
            Verdict::Nobody => PublishResult::NoSubscriber,
            Verdict::Done | Verdict::Withheld => PublishResult::Ok,
        };
        self.host.metrics.published_in(qos, result).add(1);
        Ok(())
    }

    /// Sends the acknowledgements whose turn has come.
    pub(super) fn acknowledge(&mut self) -> Result<(), End> {
        while let Some((packet_id, verdict)) = self.acks.pop() {
            self.host.metrics.inflight.sub(1);
            let qos = QoS::AtLeastOnce;
            let (code, result) = match verdict {
                Verdict::Done => (ReasonCode::Success, PublishResult::Ok),
                Verdict::Nobody => (
                    ReasonCode::NoMatchingSubscribers,
                    PublishResult::NoSubscriber,
                ),
                Verdict::Refused(refused) => {
                    self.count_refused(refused.cause, qos);
                    if !self.is_v5() {
                        self.refuse_legacy(refused, Some(packet_id))?;
                        continue;
                    }
                    let puback = self.connection.puback(packet_id, refused.code);
                    self.answer(&puback)?;
                    continue;
                }
                Verdict::Withheld => {
                    self.host
                        .metrics
                        .published_in(qos, PublishResult::Indeterminate)
                        .add(1);
                    continue;
                }
            };
            self.host.metrics.published_in(qos, result).add(1);
            let puback = self.connection.puback(packet_id, code);
            self.answer(&puback)?;
        }
        Ok(())
    }

    /// 3.1.1 has no negative answer. [gateway 2.5] [v4: MQTT-3.3.5-2]
    fn refuse_legacy(&mut self, refused: Refused, packet_id: Option<PacketId>) -> Result<(), End> {
        if self.is_v5() {
            return Ok(());
        }
        match (self.host.config.legacy_refusal, packet_id) {
            // A QoS 0 publish promises nothing: it is dropped, as in 5.0.
            (_, None) => Ok(()),
            (LegacyRefusal::Close, Some(_)) => {
                info!(
                    claimed_id = ?self.session.key().foreign_id,
                    cause = refused.cause.as_str(),
                    "3.1.1 publish refused by closing"
                );
                Err(End {
                    closed: Closed::Refused,
                    reason: None,
                    will: true,
                })
            }
            (LegacyRefusal::Swallow, Some(packet_id)) => {
                let puback = self.connection.puback(packet_id, ReasonCode::Success);
                self.answer(&puback)
            }
        }
    }

    fn count_refused(&self, cause: Cause, qos: QoS) {
        self.host.metrics.refused(Op::Publish, cause).add(1);
        self.host
            .metrics
            .published_in(qos, PublishResult::Refused)
            .add(1);
        debug!(claimed_id = ?self.session.key().foreign_id, cause = cause.as_str(), "publish refused");
    }

    pub(super) fn is_v5(&self) -> bool {
        self.connection
            .version()
            .is_some_and(|version| version.is_v5())
    }

    /// The will is a publish of its owner, judged again at this moment. [mqtt 7]
    pub(super) fn publish_will(&mut self, mut will: Publish) {
        let allowed = self.session.access().may_will(&will.topic) && !will.topic.is_reserved();
        if !allowed || self.intake.admit(&mut will).is_err() {
            self.count_refused(Cause::NotAuthorized, will.qos);
            return;
        }
        let qos = will.qos;
        let result = match self.hand_out(will, None) {
            Verdict::Nobody => PublishResult::NoSubscriber,
            _ => PublishResult::Ok,
        };
        self.host.metrics.published_in(qos, result).add(1);
    }
}

fn not_authorized() -> Refused {
    Refused {
        code: ReasonCode::NotAuthorized,
        cause: Cause::NotAuthorized,
    }
}

/// A publish whose small parts do not keep the read buffer alive.
fn detached(mut publish: Publish) -> Publish {
    publish.topic = publish.topic.detached();
    let message = &mut publish.properties.message;
    message.content_type = message.content_type.as_ref().map(|text| text.detached());
    message.response_topic = message
        .response_topic
        .as_ref()
        .map(|topic| topic.detached());
    message.correlation_data = message
        .correlation_data
        .as_ref()
        .map(|data| Bytes::copy_from_slice(data));
    if !message.user_properties.is_empty() {
        message.user_properties = UserProperties::detached(&message.user_properties);
    }
    publish
}
