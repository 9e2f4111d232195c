//! Packets to bytes: the length is known before the first byte is written.

use bytes::{BufMut, BytesMut};

use super::{MAX_VARINT, Packet, PacketType, PropertyId, Publish, Version, varint};

/// Writes packets for one connection in its version and within the peer's Maximum Packet Size.
///
/// Reason String and User Properties of everything but PUBLISH are left out when they would not fit
/// [MQTT-3.4.2-2], or when the client asked for no problem information [MQTT5 3.1.2.11.7].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Encoder {
    /// Version of the connection.
    pub version: Version,
    /// The peer's Maximum Packet Size, fixed header included; no limit unless it named one. [MQTT5 3.1.2.11.4]
    pub peer_max_packet_bytes: u32,
    /// Request Problem Information of the client, default true.
    pub problem_information: bool,
}

impl Encoder {
    /// Without a limit from the peer.
    #[must_use]
    pub const fn new(version: Version) -> Self {
        Self {
            version,
            peer_max_packet_bytes: u32::MAX,
            problem_information: true,
        }
    }

    /// Appends `packet` to `dst` and returns the bytes written. On an error nothing is written.
    ///
    /// # Errors
    ///
    /// [`EncodeError::TooLarge`] when it does not fit the peer even without its optional properties,
    /// [`EncodeError::NotInVersion`] when the version has no such packet or code,
    /// [`EncodeError::FieldTooLong`] when a field has more than 65 535 bytes.
    pub fn encode(&self, packet: &Packet, dst: &mut BytesMut) -> Result<usize, EncodeError> {
        if let Packet::Publish(publish) = packet {
            return self.encode_publish(publish, dst);
        }
        check(packet, self.version)?;
        let mut extras = Extras::ALL;
        if !self.problem_information
            && !matches!(packet, Packet::Connack(_) | Packet::Disconnect(_))
        {
            extras = Extras::NONE;
        }
        let mut body_bytes = self.body_bytes(packet, extras);
        for smaller in [
            Extras {
                reason_string: true,
                user_properties: false,
            },
            Extras::NONE,
        ] {
            if fits(body_bytes, self.peer_max_packet_bytes) {
                break;
            }
            extras = smaller.and(extras);
            body_bytes = self.body_bytes(packet, extras);
        }
        let total = self.check_size(body_bytes)?;
        dst.reserve(total);
        dst.put_u8(packet.packet_type().first_byte(flags(packet)));
        Sink::varint(dst, body_bytes);
        write_body(packet, self.version, extras, dst);
        Ok(total)
    }

    /// [`encode`](Self::encode) for the packet that matters most.
    ///
    /// # Errors
    ///
    /// As [`encode`](Self::encode).
    pub fn encode_publish(
        &self,
        publish: &Publish,
        dst: &mut BytesMut,
    ) -> Result<usize, EncodeError> {
        let total = self.write_publish_head(publish, publish.payload.len(), dst)?;
        dst.put_slice(&publish.payload);
        Ok(total)
    }

    /// Writes everything but the payload, for whoever hands the payload to a vectored write without copying it.
    /// Returns the size of the whole packet.
    ///
    /// # Errors
    ///
    /// As [`encode`](Self::encode).
    pub fn encode_publish_head(
        &self,
        publish: &Publish,
        dst: &mut BytesMut,
    ) -> Result<usize, EncodeError> {
        self.write_publish_head(publish, 0, dst)
    }

    /// Bytes that `packet` takes with all its properties.
    #[must_use]
    pub fn encoded_len(&self, packet: &Packet) -> usize {
        total_bytes(self.body_bytes(packet, Extras::ALL))
    }

    /// Bytes that `publish` takes.
    #[must_use]
    pub fn publish_len(&self, publish: &Publish) -> usize {
        total_bytes(publish.body_bytes(self.version))
    }

    fn write_publish_head(
        &self,
        publish: &Publish,
        payload_bytes: usize,
        dst: &mut BytesMut,
    ) -> Result<usize, EncodeError> {
        publish.check(self.version)?;
        let property_bytes = publish.property_bytes(self.version);
        let body_bytes = publish.body_bytes_with(self.version, property_bytes);
        let total = self.check_size(body_bytes)?;
        // A head alone reserves what the head needs.
        let without = publish.payload.len().saturating_sub(payload_bytes);
        dst.reserve(total.saturating_sub(without));
        dst.put_u8(PacketType::Publish.first_byte(publish.flags()));
        Sink::varint(dst, body_bytes);
        publish.write_head(self.version, property_bytes, dst);
        Ok(total)
    }

    fn body_bytes(&self, packet: &Packet, extras: Extras) -> u32 {
        if let Packet::Publish(publish) = packet {
            return publish.body_bytes(self.version);
        }
        counted(&|sink: &mut dyn Sink| write_body(packet, self.version, extras, sink))
    }

    fn check_size(&self, body_bytes: u32) -> Result<usize, EncodeError> {
        if fits(body_bytes, self.peer_max_packet_bytes) {
            return Ok(total_bytes(body_bytes));
        }
        Err(EncodeError::TooLarge {
            got_bytes: total_bytes(body_bytes),
            max_bytes: self.peer_max_packet_bytes,
        })
    }
}

/// Why a packet cannot be written to this peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// Above the peer's Maximum Packet Size, or above what four length bytes can say.
    #[error("packet of {got_bytes} bytes, the peer takes {max_bytes}")]
    TooLarge {
        /// Size of the packet in its smallest form.
        got_bytes: usize,
        /// The peer's limit.
        max_bytes: u32,
    },
    /// A field longer than its two-byte length can say.
    #[error("{field} of {got_bytes} bytes, at most 65535 fit")]
    FieldTooLong {
        /// Which one.
        field: &'static str,
        /// Its length.
        got_bytes: usize,
    },
    /// The version has no such packet, or no such reason code: 3.1.1 only has a close there.
    #[error("{packet} with this content does not exist in this version")]
    NotInVersion {
        /// The packet.
        packet: PacketType,
    },
    /// A PUBLISH whose Packet Identifier does not go with its QoS.
    #[error("packet identifier and qos do not go together")]
    PacketId,
}

/// Which optional diagnostics are written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extras {
    pub(super) reason_string: bool,
    pub(super) user_properties: bool,
}

impl Extras {
    const ALL: Self = Self {
        reason_string: true,
        user_properties: true,
    };
    const NONE: Self = Self {
        reason_string: false,
        user_properties: false,
    };

    const fn and(self, other: Self) -> Self {
        Self {
            reason_string: self.reason_string && other.reason_string,
            user_properties: self.user_properties && other.user_properties,
        }
    }
}

fn fits(body_bytes: u32, max_bytes: u32) -> bool {
    body_bytes <= MAX_VARINT
        && u32::try_from(total_bytes(body_bytes)).is_ok_and(|total| total <= max_bytes)
}

fn total_bytes(body_bytes: u32) -> usize {
    usize::try_from(body_bytes)
        .unwrap_or(usize::MAX)
        .saturating_add(varint::encoded_len(body_bytes))
        .saturating_add(1)
}

fn flags(packet: &Packet) -> u8 {
    match packet {
        Packet::Publish(publish) => publish.flags(),
        other => other.packet_type().fixed_flags().unwrap_or_default(),
    }
}

fn check(packet: &Packet, version: Version) -> Result<(), EncodeError> {
    match packet {
        Packet::Connect(connect) => connect.check(),
        Packet::Connack(connack) => connack.check(version),
        Packet::Auth(auth) => auth.check(version),
        Packet::Publish(publish) => publish.check(version),
        _ => Ok(()),
    }
}

fn write_body(packet: &Packet, version: Version, extras: Extras, sink: &mut dyn Sink) {
    match packet {
        Packet::Connect(connect) => connect.write(sink),
        Packet::Connack(connack) => connack.write(version, extras, sink),
        Packet::Publish(publish) => {
            publish.write_head(version, publish.property_bytes(version), sink);
            sink.bytes(&publish.payload);
        }
        Packet::PubAck(ack) | Packet::PubRec(ack) | Packet::PubRel(ack) | Packet::PubComp(ack) => {
            ack.write(version, extras, sink);
        }
        Packet::Subscribe(subscribe) => subscribe.write(version, sink),
        Packet::Suback(suback) => suback.write(version, extras, sink),
        Packet::Unsubscribe(unsubscribe) => unsubscribe.write(version, sink),
        Packet::Unsuback(unsuback) => unsuback.write(version, extras, sink),
        Packet::Pingreq | Packet::Pingresp => {}
        Packet::Disconnect(disconnect) => disconnect.write(version, extras, sink),
        Packet::Auth(auth) => auth.write(extras, sink),
    }
}

/// Where encoded bytes go: a buffer, or a counter that only adds up. One writer serves both, so length and content
/// cannot disagree.
pub(super) trait Sink {
    fn bytes(&mut self, bytes: &[u8]);

    fn u8(&mut self, value: u8) {
        self.bytes(&[value]);
    }

    fn u16(&mut self, value: u16) {
        self.bytes(&value.to_be_bytes());
    }

    fn u32(&mut self, value: u32) {
        self.bytes(&value.to_be_bytes());
    }

    fn varint(&mut self, value: u32) {
        let (bytes, count) = varint::encode(value.min(MAX_VARINT));
        self.bytes(bytes.get(..count).unwrap_or_default());
    }

    /// Two-byte length and content; checked before to be short enough.
    fn text(&mut self, bytes: &[u8]) {
        self.u16(u16::try_from(bytes.len()).unwrap_or(u16::MAX));
        self.bytes(bytes);
    }

    fn property_u8(&mut self, property: PropertyId, value: u8) {
        self.bytes(&[property.number(), value]);
    }

    fn property_u16(&mut self, property: PropertyId, value: u16) {
        self.u8(property.number());
        self.u16(value);
    }

    fn property_u32(&mut self, property: PropertyId, value: u32) {
        self.u8(property.number());
        self.u32(value);
    }

    fn property_binary(&mut self, property: PropertyId, bytes: &[u8]) {
        self.u8(property.number());
        self.text(bytes);
    }
}

impl Sink for BytesMut {
    fn bytes(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

struct Counter(u32);

impl Sink for Counter {
    fn bytes(&mut self, bytes: &[u8]) {
        let count = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        self.0 = self.0.saturating_add(count);
    }
}

/// How many bytes `write` would write.
pub(super) fn counted(write: &impl Fn(&mut dyn Sink)) -> u32 {
    let mut counter = Counter(0);
    write(&mut counter);
    counter.0
}

/// A binary field must fit its two-byte length.
pub(super) fn check_field(field: &'static str, bytes: &[u8]) -> Result<(), EncodeError> {
    if bytes.len() > usize::from(u16::MAX) {
        return Err(EncodeError::FieldTooLong {
            field,
            got_bytes: bytes.len(),
        });
    }
    Ok(())
}
