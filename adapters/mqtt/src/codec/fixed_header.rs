//! The first byte of every packet: its type and its four flag bits. [MQTT5 2.1]

use std::fmt;

use super::{Role, Version, Violation};

/// The fifteen control packet types, in the standard's order. [MQTT5 2.1.2]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum PacketType {
    /// Type 1.
    Connect = 1,
    /// Type 2.
    Connack = 2,
    /// Type 3.
    Publish = 3,
    /// Type 4.
    PubAck = 4,
    /// Type 5.
    PubRec = 5,
    /// Type 6.
    PubRel = 6,
    /// Type 7.
    PubComp = 7,
    /// Type 8.
    Subscribe = 8,
    /// Type 9.
    Suback = 9,
    /// Type 10.
    Unsubscribe = 10,
    /// Type 11.
    Unsuback = 11,
    /// Type 12.
    Pingreq = 12,
    /// Type 13.
    Pingresp = 13,
    /// Type 14.
    Disconnect = 14,
    /// Type 15, 5.0 only.
    Auth = 15,
}

impl PacketType {
    /// All of them, in wire order.
    pub const ALL: [Self; 15] = [
        Self::Connect,
        Self::Connack,
        Self::Publish,
        Self::PubAck,
        Self::PubRec,
        Self::PubRel,
        Self::PubComp,
        Self::Subscribe,
        Self::Suback,
        Self::Unsubscribe,
        Self::Unsuback,
        Self::Pingreq,
        Self::Pingresp,
        Self::Disconnect,
        Self::Auth,
    ];

    /// From the upper four bits; 0 is reserved.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Option<Self> {
        Some(match bits {
            1 => Self::Connect,
            2 => Self::Connack,
            3 => Self::Publish,
            4 => Self::PubAck,
            5 => Self::PubRec,
            6 => Self::PubRel,
            7 => Self::PubComp,
            8 => Self::Subscribe,
            9 => Self::Suback,
            10 => Self::Unsubscribe,
            11 => Self::Unsuback,
            12 => Self::Pingreq,
            13 => Self::Pingresp,
            14 => Self::Disconnect,
            15 => Self::Auth,
            _ => return None,
        })
    }

    /// The first byte of a packet of this type with these flags.
    #[must_use]
    pub const fn first_byte(self, flags: u8) -> u8 {
        ((self as u8) << 4) | (flags & 0x0f)
    }

    /// The only legal flag bits, or `None` for PUBLISH, whose flags are data. [MQTT5 2.1.3]
    #[must_use]
    pub const fn fixed_flags(self) -> Option<u8> {
        match self {
            Self::Publish => None,
            Self::PubRel | Self::Subscribe | Self::Unsubscribe => Some(0b0010),
            Self::Connect
            | Self::Connack
            | Self::PubAck
            | Self::PubRec
            | Self::PubComp
            | Self::Suback
            | Self::Unsuback
            | Self::Pingreq
            | Self::Pingresp
            | Self::Disconnect
            | Self::Auth => Some(0),
        }
    }

    /// Whether a peer may send this type to somebody in the role `ours`. [MQTT5 2.1.2]
    #[must_use]
    pub const fn may_reach(self, ours: Role, version: Version) -> bool {
        match self {
            Self::Connect | Self::Subscribe | Self::Unsubscribe | Self::Pingreq => {
                matches!(ours, Role::Server)
            }
            Self::Connack | Self::Suback | Self::Unsuback | Self::Pingresp => {
                matches!(ours, Role::Client)
            }
            Self::Publish | Self::PubAck | Self::PubRec | Self::PubRel | Self::PubComp => true,
            // A 3.1.1 server never sends DISCONNECT. [MQTT311 3.14]
            Self::Disconnect => matches!(ours, Role::Server) || version.is_v5(),
            Self::Auth => version.is_v5(),
        }
    }
}

impl fmt::Display for PacketType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connect => "CONNECT",
            Self::Connack => "CONNACK",
            Self::Publish => "PUBLISH",
            Self::PubAck => "PUBACK",
            Self::PubRec => "PUBREC",
            Self::PubRel => "PUBREL",
            Self::PubComp => "PUBCOMP",
            Self::Subscribe => "SUBSCRIBE",
            Self::Suback => "SUBACK",
            Self::Unsubscribe => "UNSUBSCRIBE",
            Self::Unsuback => "UNSUBACK",
            Self::Pingreq => "PINGREQ",
            Self::Pingresp => "PINGRESP",
            Self::Disconnect => "DISCONNECT",
            Self::Auth => "AUTH",
        })
    }
}

/// Splits a first byte and checks that its flags are the fixed ones of its type.
pub(super) fn parse_first_byte(byte: u8) -> Result<(PacketType, u8), Violation> {
    let flags = byte & 0x0f;
    let packet = PacketType::from_bits(byte >> 4).ok_or(Violation::ReservedPacketType {
        type_bits: byte >> 4,
    })?;
    match packet.fixed_flags() {
        Some(fixed) if fixed != flags => Err(Violation::ReservedFlags { packet, flags }),
        Some(_) | None => Ok((packet, flags)),
    }
}
