//! The incremental decoder: bytes in, whole packets out, nothing held that was not asked for.

use bytes::{Buf, BytesMut};

use super::fixed_header::parse_first_byte;
use super::reader::{Context, Reader};
use super::{
    Ack, Auth, Connack, Connect, Disconnect, Limits, Packet, PacketType, Publish, Role, Suback,
    Subscribe, Unsuback, Unsubscribe, Version, Violation, ping, varint,
};

/// What [`Decoder::decode`] found.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::large_enum_variant,
    reason = "a box would cost one allocation per packet"
)]
pub enum Decoded {
    /// A whole packet, taken off the buffer.
    Packet(Packet),
    /// At least this many bytes are missing. A packet of that size is within the limits, but nothing says that it will
    /// ever come: let the buffer grow with what arrives, not by this number.
    NeedMore(usize),
}

/// Takes packets off the front of a read buffer, for one connection.
///
/// ```text
///            CONNECT                     DISCONNECT
/// Handshake ---------> Open(version) ----------------> Ended: bytes are discarded
///     |                   |
///     +---- Violation ----+--> Failed: the same Violation for ever
/// ```
///
/// A server's decoder learns the version from CONNECT; a client's is told. The declared length is compared with the
/// cap before anything is buffered: [`Limits::max_connect_bytes`] until CONNECT, then [`Limits::max_packet_bytes`].
/// The first byte alone decides what can be decided by it, so a peer that opens with anything but CONNECT is refused
/// at once.
///
/// ```
/// use bytes::BytesMut;
/// use weida_mqtt::codec::{Decoded, Decoder, Limits, Packet};
///
/// let mut decoder = Decoder::server(Limits::default());
/// let mut buffer = BytesMut::from(&b"\x10\x0e\x00\x04MQTT\x04\x02\x00\x3c\x00\x02s7\xc0"[..]);
/// let Decoded::Packet(Packet::Connect(connect)) = decoder.decode(&mut buffer)? else { panic!() };
/// assert_eq!(connect.client_id.as_str(), "s7");
/// assert_eq!(decoder.decode(&mut buffer)?, Decoded::NeedMore(1));
/// # Ok::<(), weida_mqtt::codec::Violation>(())
/// ```
#[derive(Debug, Clone)]
pub struct Decoder {
    role: Role,
    limits: Limits,
    phase: Phase,
    /// Version to answer in, once CONNECT told it, even if it was refused.
    answer_version: Option<Version>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Handshake,
    Open(Version),
    Ended,
    Failed(Violation),
}

impl Decoder {
    /// For a connection that we accepted.
    #[must_use]
    pub const fn server(limits: Limits) -> Self {
        Self {
            role: Role::Server,
            limits,
            phase: Phase::Handshake,
            answer_version: None,
        }
    }

    /// For a connection that we opened and sent a CONNECT of `version` on.
    #[must_use]
    pub const fn client(version: Version, limits: Limits) -> Self {
        Self {
            role: Role::Client,
            limits,
            phase: Phase::Open(version),
            answer_version: Some(version),
        }
    }

    /// Takes the next packet off the front of `src`.
    ///
    /// # Errors
    ///
    /// The [`Violation`] that ends the connection; asked again it says the same. Nothing that [`reach`]es less than the
    /// connection is reported here: bad filters and oversized topics are found in a packet that decodes.
    ///
    /// [`reach`]: Violation::reach
    pub fn decode(&mut self, src: &mut BytesMut) -> Result<Decoded, Violation> {
        match self.phase {
            Phase::Failed(violation) => {
                src.clear();
                Err(violation)
            }
            Phase::Ended => {
                // Whatever follows DISCONNECT is nobody's. [mqtt 3.5]
                src.clear();
                Ok(Decoded::NeedMore(1))
            }
            Phase::Handshake | Phase::Open(_) => {
                let decoded = self.decode_open(src);
                if let Err(violation) = decoded {
                    self.phase = Phase::Failed(violation);
                }
                decoded
            }
        }
    }

    /// The connection's version, once known.
    #[must_use]
    pub const fn version(&self) -> Option<Version> {
        match self.phase {
            Phase::Open(version) => Some(version),
            Phase::Handshake | Phase::Ended | Phase::Failed(_) => self.answer_version,
        }
    }

    /// In which version a refusal of CONNECT can be told, or `None` for a close without an answer. Level 3 hears the
    /// form it shares with 3.1.1, levels above 5 that of 5.0. [mqtt 3.1]
    #[must_use]
    pub const fn answer_version(&self) -> Option<Version> {
        self.answer_version
    }

    /// Tightens or widens the packet cap, as when the state machine knows the listener's limits.
    pub const fn set_max_packet_bytes(&mut self, max_packet_bytes: u32) {
        self.limits.max_packet_bytes = max_packet_bytes;
    }

    #[inline]
    fn decode_open(&mut self, src: &mut BytesMut) -> Result<Decoded, Violation> {
        let Some((&first, rest)) = src.split_first() else {
            return Ok(Decoded::NeedMore(1));
        };
        let (packet, flags) = self.check_first_byte(first)?;
        let Some((body_bytes, length_bytes)) = varint::decode(rest)? else {
            return Ok(Decoded::NeedMore(1));
        };
        let header_bytes = length_bytes.saturating_add(1);
        let max_bytes = match self.phase {
            Phase::Open(_) => self.limits.max_packet_bytes,
            _ => self
                .limits
                .max_connect_bytes
                .min(self.limits.max_packet_bytes),
        };
        let total = usize::try_from(body_bytes)
            .unwrap_or(usize::MAX)
            .saturating_add(header_bytes);
        let total_u32 = u32::try_from(total).unwrap_or(u32::MAX);
        if total_u32 > max_bytes {
            return Err(Violation::PacketTooLarge {
                got_bytes: total_u32,
                max_bytes,
            });
        }
        if src.len() < total {
            return Ok(Decoded::NeedMore(total.saturating_sub(src.len())));
        }
        let mut frame = src.split_to(total).freeze();
        frame.advance(header_bytes);
        let reader = Reader::new(frame, self.limits.strict_utf8);
        self.decode_body(packet, flags, reader).map(Decoded::Packet)
    }

    /// Everything the first byte gives away.
    #[inline]
    fn check_first_byte(&self, first: u8) -> Result<(PacketType, u8), Violation> {
        let type_bits = first >> 4;
        let packet =
            PacketType::from_bits(type_bits).ok_or(Violation::ReservedPacketType { type_bits })?;
        match self.phase {
            Phase::Open(version) => {
                if packet == PacketType::Auth && version == Version::V311 {
                    return Err(Violation::ReservedPacketType { type_bits });
                }
                if !packet.may_reach(self.role, version) {
                    return Err(Violation::WrongDirection { packet });
                }
                if packet == PacketType::Connect {
                    return Err(Violation::SecondConnect);
                }
            }
            _ if packet != PacketType::Connect => {
                return Err(Violation::BeforeConnect { packet });
            }
            _ => {}
        }
        parse_first_byte(first)
    }

    #[inline]
    fn decode_body(
        &mut self,
        packet: PacketType,
        flags: u8,
        reader: Reader,
    ) -> Result<Packet, Violation> {
        let Phase::Open(version) = self.phase else {
            return self.decode_connect(reader);
        };
        let context = Context {
            role: self.role,
            version,
        };
        let context = &context;
        Ok(match packet {
            PacketType::Publish => Packet::Publish(Publish::decode(flags, reader, context)?),
            PacketType::PubAck => Packet::PubAck(Ack::decode(packet, reader, context)?),
            PacketType::PubRec => Packet::PubRec(Ack::decode(packet, reader, context)?),
            PacketType::PubRel => Packet::PubRel(Ack::decode(packet, reader, context)?),
            PacketType::PubComp => Packet::PubComp(Ack::decode(packet, reader, context)?),
            PacketType::Subscribe => Packet::Subscribe(Subscribe::decode(reader, context)?),
            PacketType::Suback => Packet::Suback(Suback::decode(reader, context)?),
            PacketType::Unsubscribe => Packet::Unsubscribe(Unsubscribe::decode(reader, context)?),
            PacketType::Unsuback => Packet::Unsuback(Unsuback::decode(reader, context)?),
            PacketType::Pingreq | PacketType::Pingresp => ping::decode(packet, &reader)?,
            PacketType::Disconnect => {
                let disconnect = Disconnect::decode(reader, context)?;
                self.answer_version = Some(version);
                self.phase = Phase::Ended;
                Packet::Disconnect(disconnect)
            }
            PacketType::Auth => Packet::Auth(Auth::decode(reader, context)?),
            PacketType::Connack => Packet::Connack(Box::new(Connack::decode(reader, context)?)),
            PacketType::Connect => return Err(Violation::SecondConnect),
        })
    }

    fn decode_connect(&mut self, mut reader: Reader) -> Result<Packet, Violation> {
        let version = Connect::decode_version(&mut reader).inspect_err(|violation| {
            if let Violation::UnsupportedVersion { level } = violation {
                self.answer_version = Some(if *level <= 4 {
                    Version::V311
                } else {
                    Version::V5
                });
            }
        })?;
        self.answer_version = Some(version);
        let connect = Connect::decode_rest(reader, version)?;
        self.phase = Phase::Open(version);
        Ok(Packet::Connect(Box::new(connect)))
    }
}
