//! Messages between PUBLISH and their last acknowledgement, both ways. [MQTT5 4.3] [MQTT5 4.9] [mqtt 4.4] [mqtt 4.5]

use std::collections::{HashMap, HashSet};

use crate::codec::{PacketId, QoS, ReasonCode};

/// What we sent and the peer has not finished: at most `window` messages of QoS 1 and 2.
///
/// ```text
/// QoS 1:  begin -> Sent1 -- PUBACK ------------------------------------> free
/// QoS 2:  begin -> Sent2 -- PUBREC < 0x80 -> Rel -- PUBCOMP -----------> free
///                    \----- PUBREC >= 0x80 ----------------------------> free
/// ```
///
/// The identifier is `1 + seq mod 65535`, so it needs no memory of its own and survives a restart; a sequence number
/// whose identifier is still held waits.
#[derive(Debug, Clone)]
pub struct OutboundWindow {
    open: HashMap<PacketId, Stage>,
    window: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// QoS 1, waiting for PUBACK.
    Sent1,
    /// QoS 2, waiting for PUBREC.
    Sent2,
    /// QoS 2, waiting for PUBCOMP.
    Rel,
}

/// No more may be in flight now: wait for an acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{in_flight} messages in flight, at most {window}")]
pub struct WindowFull {
    /// Unfinished messages.
    pub in_flight: usize,
    /// The window.
    pub window: u16,
}

/// What an acknowledgement did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Release {
    /// The message is finished, identifier and credit are free.
    Finished,
    /// PUBREC: answer PUBREL; the same again for a repeated PUBREC.
    SendPubrel,
    /// Nothing with that identifier waits for this packet.
    Unknown,
}

impl OutboundWindow {
    /// `window` is min(peer's Receive Maximum, our own cap); 3.1.1 clients get our cap for them.
    #[must_use]
    pub fn new(window: u16) -> Self {
        Self {
            open: HashMap::new(),
            window: window.clamp(1, 65_534),
        }
    }

    /// The identifier of sequence number `seq`.
    #[must_use]
    pub fn packet_id(seq: u64) -> PacketId {
        let offset = seq.checked_rem(65_535).unwrap_or_default();
        u16::try_from(offset.saturating_add(1))
            .ok()
            .and_then(PacketId::new)
            .expect("1 + (n mod 65535) is between 1 and 65535")
    }

    /// Takes credit and identifier for a message of QoS 1 or 2.
    ///
    /// # Errors
    ///
    /// [`WindowFull`] when the window is used up or an older message still holds the identifier.
    pub fn begin(&mut self, seq: u64, qos: QoS) -> Result<PacketId, WindowFull> {
        let full = WindowFull {
            in_flight: self.open.len(),
            window: self.window,
        };
        let packet_id = Self::packet_id(seq);
        if self.is_full() || self.open.contains_key(&packet_id) {
            return Err(full);
        }
        let stage = if qos == QoS::ExactlyOnce {
            Stage::Sent2
        } else {
            Stage::Sent1
        };
        self.open.insert(packet_id, stage);
        Ok(packet_id)
    }

    /// The message was not sent after all (it does not fit the peer): credit and identifier are free again.
    pub fn abandon(&mut self, packet_id: PacketId) {
        self.open.remove(&packet_id);
    }

    /// PUBACK: any code finishes a QoS 1 message.
    pub fn on_puback(&mut self, packet_id: PacketId) -> Release {
        self.finish(packet_id, Stage::Sent1)
    }

    /// PUBREC: a refusal finishes the exchange, anything else moves it on. Repeats are answered again.
    pub fn on_pubrec(&mut self, packet_id: PacketId, reason: ReasonCode) -> Release {
        match self.open.get_mut(&packet_id) {
            Some(stage @ (Stage::Sent2 | Stage::Rel)) => {
                if reason.is_error() {
                    self.open.remove(&packet_id);
                    return Release::Finished;
                }
                *stage = Stage::Rel;
                Release::SendPubrel
            }
            Some(Stage::Sent1) | None => Release::Unknown,
        }
    }

    /// PUBCOMP: any code finishes a released QoS 2 message.
    pub fn on_pubcomp(&mut self, packet_id: PacketId) -> Release {
        self.finish(packet_id, Stage::Rel)
    }

    /// Unfinished messages.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.open.len()
    }

    /// Whether nothing more may be sent at QoS 1 or 2.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.open.len() >= usize::from(self.window)
    }

    fn finish(&mut self, packet_id: PacketId, wanted: Stage) -> Release {
        if self.open.get(&packet_id) != Some(&wanted) {
            return Release::Unknown;
        }
        self.open.remove(&packet_id);
        Release::Finished
    }
}

/// What the peer sent and we have not acknowledged: its side of *our* Receive Maximum. [MQTT5 3.2.2.3.3]
#[derive(Debug, Clone)]
pub struct InboundQuota {
    open: HashSet<PacketId>,
    /// `None` in 3.1.1, which has no such limit.
    max: Option<u16>,
}

/// How a PUBLISH of QoS 1 or 2 stands to the quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admitted {
    /// Counted until it is acknowledged.
    New,
    /// Its identifier belongs to an unfinished exchange.
    InUse,
    /// One more than we announced.
    Exceeded {
        /// What we announced.
        max: u16,
    },
}

impl InboundQuota {
    /// With the Receive Maximum that we announced, if the version lets us.
    #[must_use]
    pub fn new(max: Option<u16>) -> Self {
        Self {
            open: HashSet::new(),
            max,
        }
    }

    /// Counts a PUBLISH.
    pub fn admit(&mut self, packet_id: PacketId) -> Admitted {
        if self.open.contains(&packet_id) {
            return Admitted::InUse;
        }
        if let Some(max) = self.max
            && self.open.len() >= usize::from(max)
        {
            return Admitted::Exceeded { max };
        }
        self.open.insert(packet_id);
        Admitted::New
    }

    /// PUBACK or PUBCOMP (or a refusing PUBREC) is on its way out. `false` when it was not open.
    pub fn release(&mut self, packet_id: PacketId) -> bool {
        self.open.remove(&packet_id)
    }

    /// Unacknowledged messages.
    #[must_use]
    pub fn open(&self) -> usize {
        self.open.len()
    }
}
