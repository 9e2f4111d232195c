//! The packet sum type and the three small words every packet uses: version, role, quality of service.

use super::{
    Ack, Auth, Connack, Connect, Disconnect, PacketType, Publish, Suback, Subscribe, Unsuback,
    Unsubscribe,
};

/// One MQTT control packet of either version. [MQTT5 2.1.2]
///
/// One model serves both versions: what 3.1.1 does not have is at its default after decoding and is left out when
/// encoding.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Packet {
    /// Client asks to connect.
    Connect(Box<Connect>),
    /// Server answers a CONNECT.
    Connack(Box<Connack>),
    /// An application message, either way.
    Publish(Publish),
    /// QoS 1 acknowledgement.
    PubAck(Ack),
    /// QoS 2, first answer.
    PubRec(Ack),
    /// QoS 2, release.
    PubRel(Ack),
    /// QoS 2, completion.
    PubComp(Ack),
    /// Client asks for subscriptions.
    Subscribe(Subscribe),
    /// Server answers each filter of a SUBSCRIBE.
    Suback(Suback),
    /// Client gives subscriptions up.
    Unsubscribe(Unsubscribe),
    /// Server answers an UNSUBSCRIBE.
    Unsuback(Unsuback),
    /// Client shows that it lives.
    Pingreq,
    /// Server answers a PINGREQ.
    Pingresp,
    /// The connection ends on purpose.
    Disconnect(Disconnect),
    /// A step of enhanced authentication; 5.0 only.
    Auth(Auth),
}

impl Packet {
    /// Which of the fifteen kinds this is.
    #[must_use]
    pub const fn packet_type(&self) -> PacketType {
        match self {
            Self::Connect(_) => PacketType::Connect,
            Self::Connack(_) => PacketType::Connack,
            Self::Publish(_) => PacketType::Publish,
            Self::PubAck(_) => PacketType::PubAck,
            Self::PubRec(_) => PacketType::PubRec,
            Self::PubRel(_) => PacketType::PubRel,
            Self::PubComp(_) => PacketType::PubComp,
            Self::Subscribe(_) => PacketType::Subscribe,
            Self::Suback(_) => PacketType::Suback,
            Self::Unsubscribe(_) => PacketType::Unsubscribe,
            Self::Unsuback(_) => PacketType::Unsuback,
            Self::Pingreq => PacketType::Pingreq,
            Self::Pingresp => PacketType::Pingresp,
            Self::Disconnect(_) => PacketType::Disconnect,
            Self::Auth(_) => PacketType::Auth,
        }
    }
}

/// Protocol version of one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Version {
    /// MQTT 3.1.1, protocol level 4.
    V311,
    /// MQTT 5.0, protocol level 5.
    V5,
}

impl Version {
    /// The protocol level byte of CONNECT. [MQTT5 3.1.2.2]
    #[must_use]
    pub const fn level(self) -> u8 {
        match self {
            Self::V311 => 4,
            Self::V5 => 5,
        }
    }

    /// Whether packets of this version carry properties and reason codes.
    #[must_use]
    pub const fn is_v5(self) -> bool {
        matches!(self, Self::V5)
    }
}

/// Which side of the connection *we* are; the peer's packets are checked for the opposite direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// We accepted the connection: the listener.
    Server,
    /// We opened it: the connector.
    Client,
}

/// Quality of service of a message or the most a subscription takes. [MQTT5 4.3]
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum QoS {
    /// QoS 0.
    #[default]
    AtMostOnce,
    /// QoS 1.
    AtLeastOnce,
    /// QoS 2.
    ExactlyOnce,
}

impl QoS {
    /// From the two wire bits; 3 has no meaning.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Option<Self> {
        match bits {
            0 => Some(Self::AtMostOnce),
            1 => Some(Self::AtLeastOnce),
            2 => Some(Self::ExactlyOnce),
            _ => None,
        }
    }

    /// The two wire bits.
    #[must_use]
    pub const fn bits(self) -> u8 {
        match self {
            Self::AtMostOnce => 0,
            Self::AtLeastOnce => 1,
            Self::ExactlyOnce => 2,
        }
    }
}
