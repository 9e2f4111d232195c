//! PUBLISH toward the client: from the session's queue through the window to the batch.
//! [mqtt 4.4]

use tracing::debug;

use super::super::intake::Intakes;
use super::{BATCH_BYTES, Driver, End};
use crate::codec::{PacketId, PacketType, QoS, ReasonCode};
use crate::metrics::{Closed, PublishResult};
use crate::router::Ticket;
use crate::session::{MessageCopy, Pull};
use crate::state::SendError;

/// A QoS 1 copy that the client has not acknowledged.
#[derive(Debug)]
pub(super) struct InFlight {
    packet_id: PacketId,
    bytes: usize,
    ticket: Option<Ticket>,
}

impl<I: Intakes> Driver<I> {
    /// Encodes copies until the batch is full, the window is closed or the queue is empty.
    pub(super) fn fill(&mut self) -> Result<(), End> {
        let mut sent = 0;
        while self.write.pending_bytes() < BATCH_BYTES {
            if self.copies.is_empty() {
                let window = self.free_window();
                let bytes = BATCH_BYTES - self.write.pending_bytes();
                self.session
                    .outbound()
                    .pull(Pull { bytes, window }, &mut self.copies);
            }
            let Some(copy) = self.copies.pop_front() else {
                break;
            };
            if let Some(waits) = self.send(copy, &mut sent)? {
                self.copies.push_front(waits);
                break;
            }
        }
        self.host.metrics.packets_out(PacketType::Publish).add(sent);
        Ok(())
    }

    fn free_window(&self) -> usize {
        let window = self
            .connection
            .peer()
            .map_or(0, |peer| usize::from(peer.send_window));
        window.saturating_sub(self.connection.in_flight())
    }

    /// Writes one copy; gives it back when its identifier is not free yet.
    fn send(&mut self, copy: MessageCopy, sent: &mut u64) -> Result<Option<MessageCopy>, End> {
        let qos = copy.qos;
        let mut publish = copy.message.publish().clone();
        if let Some(at) = copy.message.expires_at() {
            let left = at.saturating_duration_since(self.now);
            if left.is_zero() {
                self.host.metrics.expired.add(1);
                self.finished(copy);
                return Ok(None);
            }
            // Rounded up: a live message never says 0. [mqtt 3.3]
            let secs = left.as_secs() + u64::from(left.subsec_nanos() > 0);
            publish.properties.message.message_expiry_secs =
                Some(u32::try_from(secs).unwrap_or(u32::MAX));
        }
        publish.qos = qos;
        publish.retain = copy.retain;
        publish
            .properties
            .subscription_ids
            .clone_from(&copy.subscription_ids);
        match self.connection.publish(publish, self.write.publishes()) {
            Ok(written) => {
                *sent += 1;
                self.host
                    .metrics
                    .published_out(qos, PublishResult::Ok)
                    .add(1);
                if let Some(packet_id) = written.packet_id {
                    let bytes = copy.message.cost();
                    self.in_flight.push_back(InFlight {
                        packet_id,
                        bytes,
                        ticket: copy.ticket,
                    });
                }
                Ok(None)
            }
            Err(SendError::WindowFull(_)) => Ok(Some(copy)),
            Err(SendError::Encode(error)) => {
                // Not sent, counted, and done: the queue moves on. [MQTT-3.1.2-24]
                debug!(%error, "copy does not fit the client");
                self.host.metrics.too_large_for_peer.add(1);
                self.host
                    .metrics
                    .published_out(qos, PublishResult::Dropped)
                    .add(1);
                self.finished(copy);
                Ok(None)
            }
            Err(_) => Err(End::told(
                Closed::ProtocolError,
                ReasonCode::UnspecifiedError,
            )),
        }
    }

    /// A copy that ends without being sent.
    fn finished(&self, copy: MessageCopy) {
        if copy.qos != QoS::AtMostOnce {
            self.session.outbound().settled(copy.message.cost());
        }
        if let Some(ticket) = copy.ticket {
            ticket.refused();
        }
    }

    pub(super) fn on_acknowledged(&mut self, packet_id: PacketId, reason: ReasonCode) {
        // Clients acknowledge in order, so the front is nearly always the one.
        let found = self
            .in_flight
            .iter()
            .position(|sent| sent.packet_id == packet_id);
        let Some(sent) = found.and_then(|at| self.in_flight.remove(at)) else {
            return;
        };
        self.session.outbound().settled(sent.bytes);
        if reason.is_error() {
            self.host
                .metrics
                .published_out(QoS::AtLeastOnce, PublishResult::Refused)
                .add(1);
        }
        match sent.ticket {
            Some(ticket) if reason.is_error() => ticket.refused(),
            Some(ticket) => ticket.acked(),
            None => {}
        }
    }
}
