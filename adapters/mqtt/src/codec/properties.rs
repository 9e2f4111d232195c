//! Properties of 5.0: the numbers, where each may stand, and the two groups that several packets share. [MQTT5 2.2.2]

use std::fmt;

use bytes::{BufMut, Bytes, BytesMut};

use super::encoder::{Extras, Sink, counted};
use super::reader::{Context, Reader};
use super::{PacketType, Role, TopicName, Utf8Bytes, Version, Violation};

/// The property identifiers. [MQTT5 2.2.2.2]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
#[expect(
    missing_docs,
    reason = "the names are the standard's own; the table there says the rest"
)]
pub enum PropertyId {
    PayloadFormatIndicator = 1,
    MessageExpiryInterval = 2,
    ContentType = 3,
    ResponseTopic = 8,
    CorrelationData = 9,
    SubscriptionIdentifier = 11,
    SessionExpiryInterval = 17,
    AssignedClientIdentifier = 18,
    ServerKeepAlive = 19,
    AuthenticationMethod = 21,
    AuthenticationData = 22,
    RequestProblemInformation = 23,
    WillDelayInterval = 24,
    RequestResponseInformation = 25,
    ResponseInformation = 26,
    ServerReference = 28,
    ReasonString = 31,
    ReceiveMaximum = 33,
    TopicAliasMaximum = 34,
    TopicAlias = 35,
    MaximumQos = 36,
    RetainAvailable = 37,
    UserProperty = 38,
    MaximumPacketSize = 39,
    WildcardSubscriptionAvailable = 40,
    SubscriptionIdentifierAvailable = 41,
    SharedSubscriptionAvailable = 42,
}

impl PropertyId {
    pub(super) const fn from_number(number: u32) -> Option<Self> {
        Some(match number {
            1 => Self::PayloadFormatIndicator,
            2 => Self::MessageExpiryInterval,
            3 => Self::ContentType,
            8 => Self::ResponseTopic,
            9 => Self::CorrelationData,
            11 => Self::SubscriptionIdentifier,
            17 => Self::SessionExpiryInterval,
            18 => Self::AssignedClientIdentifier,
            19 => Self::ServerKeepAlive,
            21 => Self::AuthenticationMethod,
            22 => Self::AuthenticationData,
            23 => Self::RequestProblemInformation,
            24 => Self::WillDelayInterval,
            25 => Self::RequestResponseInformation,
            26 => Self::ResponseInformation,
            28 => Self::ServerReference,
            31 => Self::ReasonString,
            33 => Self::ReceiveMaximum,
            34 => Self::TopicAliasMaximum,
            35 => Self::TopicAlias,
            36 => Self::MaximumQos,
            37 => Self::RetainAvailable,
            38 => Self::UserProperty,
            39 => Self::MaximumPacketSize,
            40 => Self::WildcardSubscriptionAvailable,
            41 => Self::SubscriptionIdentifierAvailable,
            42 => Self::SharedSubscriptionAvailable,
            _ => return None,
        })
    }

    /// The number on the wire.
    #[must_use]
    pub const fn number(self) -> u8 {
        self as u8
    }
}

/// Where a property block stands. Will properties are the only ones not named by their packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Packet(PacketType),
    Will,
}

/// Whether `property` may stand in a block at `place`. [MQTT5 2.2.2.2 table 2-4]
const fn belongs(property: PropertyId, place: Place) -> bool {
    use PacketType as T;
    use PropertyId as P;
    let packet = match place {
        Place::Will => {
            return matches!(
                property,
                P::PayloadFormatIndicator
                    | P::MessageExpiryInterval
                    | P::ContentType
                    | P::ResponseTopic
                    | P::CorrelationData
                    | P::WillDelayInterval
                    | P::UserProperty
            );
        }
        Place::Packet(packet) => packet,
    };
    match property {
        P::PayloadFormatIndicator
        | P::MessageExpiryInterval
        | P::ContentType
        | P::ResponseTopic
        | P::CorrelationData
        | P::TopicAlias => matches!(packet, T::Publish),
        P::SubscriptionIdentifier => matches!(packet, T::Publish | T::Subscribe),
        P::SessionExpiryInterval => matches!(packet, T::Connect | T::Connack | T::Disconnect),
        P::AssignedClientIdentifier
        | P::ServerKeepAlive
        | P::ResponseInformation
        | P::MaximumQos
        | P::RetainAvailable
        | P::WildcardSubscriptionAvailable
        | P::SubscriptionIdentifierAvailable
        | P::SharedSubscriptionAvailable => matches!(packet, T::Connack),
        P::AuthenticationMethod | P::AuthenticationData => {
            matches!(packet, T::Connect | T::Connack | T::Auth)
        }
        P::RequestProblemInformation | P::RequestResponseInformation => {
            matches!(packet, T::Connect)
        }
        P::WillDelayInterval => false,
        P::ServerReference => matches!(packet, T::Connack | T::Disconnect),
        P::ReasonString => matches!(
            packet,
            T::Connack
                | T::PubAck
                | T::PubRec
                | T::PubRel
                | T::PubComp
                | T::Suback
                | T::Unsuback
                | T::Disconnect
                | T::Auth
        ),
        P::ReceiveMaximum | P::TopicAliasMaximum | P::MaximumPacketSize => {
            matches!(packet, T::Connect | T::Connack)
        }
        P::UserProperty => !matches!(packet, T::Pingreq | T::Pingresp),
    }
}

/// Walks one property block: knows the numbers, the places and the repeats; the caller reads the values.
#[derive(Debug)]
pub(super) struct Block {
    place: Place,
    /// One bit per property seen.
    seen: u64,
    repeatable: u64,
}

impl Block {
    /// Opens the block. `sender` decides whether a PUBLISH may carry several Subscription Identifiers.
    pub(super) fn open(reader: &mut Reader, place: Place, sender: Role) -> Result<Self, Violation> {
        reader.open()?;
        let mut repeatable = bit(PropertyId::UserProperty);
        if place == Place::Packet(PacketType::Publish) && sender == Role::Server {
            repeatable |= bit(PropertyId::SubscriptionIdentifier);
        }
        Ok(Self {
            place,
            seen: 0,
            repeatable,
        })
    }

    /// The next property, whose value the reader then stands at; closes the block behind the last one.
    pub(super) fn next(&mut self, reader: &mut Reader) -> Result<Option<PropertyId>, Violation> {
        if reader.is_empty() {
            reader.close();
            return Ok(None);
        }
        let number = reader.varint()?;
        let property =
            PropertyId::from_number(number).ok_or(Violation::UnknownProperty { id: number })?;
        if !belongs(property, self.place) {
            return Err(Violation::PropertyMisplaced { property });
        }
        let bit = bit(property);
        if self.seen & bit & !self.repeatable != 0 {
            return Err(Violation::PropertyRepeated { property });
        }
        self.seen |= bit;
        Ok(Some(property))
    }
}

const fn bit(property: PropertyId) -> u64 {
    1u64.wrapping_shl(property.number() as u32)
}

/// A byte that is 0 or 1.
pub(super) fn read_bool(reader: &mut Reader, property: PropertyId) -> Result<bool, Violation> {
    match reader.u8()? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(Violation::PropertyValue { property }),
    }
}

/// The group of properties that a PUBLISH and a Will share: they belong to the message, not to the hop.
/// [MQTT5 3.3.2.3] [MQTT5 3.1.3.2]
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MessageProperties {
    /// Payload Format Indicator: `Some(true)` says the payload is UTF-8. Forwarded unchanged.
    pub payload_is_utf8: Option<bool>,
    /// Message Expiry Interval in seconds. 0 is legal: expired unless deliverable at once.
    pub message_expiry_secs: Option<u32>,
    /// Content Type.
    pub content_type: Option<Utf8Bytes>,
    /// Response Topic: never empty, never with a wildcard.
    pub response_topic: Option<TopicName>,
    /// Correlation Data, opaque, at most 65 535 bytes.
    pub correlation_data: Option<Bytes>,
    /// User Properties, order and repeats kept.
    pub user_properties: UserProperties,
}

impl MessageProperties {
    /// Reads `property` when it is one of the group.
    pub(super) fn read(
        &mut self,
        property: PropertyId,
        reader: &mut Reader,
    ) -> Result<(), Violation> {
        match property {
            PropertyId::PayloadFormatIndicator => {
                self.payload_is_utf8 = Some(read_bool(reader, property)?);
            }
            PropertyId::MessageExpiryInterval => self.message_expiry_secs = Some(reader.u32()?),
            PropertyId::ContentType => self.content_type = Some(reader.text()?),
            PropertyId::ResponseTopic => {
                let topic =
                    TopicName::from_text(reader.text()?).map_err(|_| Violation::ResponseTopic)?;
                if topic.is_empty() {
                    return Err(Violation::ResponseTopic);
                }
                self.response_topic = Some(topic);
            }
            PropertyId::CorrelationData => self.correlation_data = Some(reader.binary()?),
            PropertyId::UserProperty => self.user_properties.read(reader)?,
            _ => return Err(Violation::PropertyMisplaced { property }),
        }
        Ok(())
    }

    pub(super) fn write<S: Sink + ?Sized>(&self, sink: &mut S) {
        if let Some(utf8) = self.payload_is_utf8 {
            sink.property_u8(PropertyId::PayloadFormatIndicator, u8::from(utf8));
        }
        if let Some(secs) = self.message_expiry_secs {
            sink.property_u32(PropertyId::MessageExpiryInterval, secs);
        }
        if let Some(text) = &self.content_type {
            sink.property_binary(PropertyId::ContentType, text.as_bytes());
        }
        if let Some(topic) = &self.response_topic {
            sink.property_binary(PropertyId::ResponseTopic, topic.as_bytes());
        }
        if let Some(data) = &self.correlation_data {
            sink.property_binary(PropertyId::CorrelationData, data);
        }
        sink.bytes(self.user_properties.as_wire());
    }
}

/// User Properties of one packet, kept as their own checked wire form.
///
/// One slice of the read buffer instead of a vector of pairs: nothing is allocated per pair, whatever the peer sends,
/// and forwarding is one copy. [MQTT5 3.3.2.3.7]
///
/// ```
/// use weida_mqtt::codec::{UserProperties, Utf8Bytes};
///
/// let mut properties = UserProperties::default();
/// properties.push(&Utf8Bytes::from_static("unit"), &Utf8Bytes::from_static("kelvin"));
/// assert_eq!(properties.iter().next().unwrap().1, "kelvin");
/// ```
#[derive(Clone, PartialEq, Eq, Default)]
pub struct UserProperties {
    /// Any number of `0x26, name, value`.
    wire: Bytes,
}

impl UserProperties {
    /// Appends a pair; copies what is there, so collect pairs before a hot path.
    pub fn push(&mut self, name: &Utf8Bytes, value: &Utf8Bytes) {
        let room = self
            .wire
            .len()
            .saturating_add(name.len())
            .saturating_add(value.len());
        let mut wire = BytesMut::with_capacity(room.saturating_add(5));
        wire.put_slice(&self.wire);
        Sink::u8(&mut wire, PropertyId::UserProperty.number());
        wire.text(name.as_bytes());
        wire.text(value.as_bytes());
        self.wire = wire.freeze();
    }

    /// Reads one pair; the reader stands behind the property number.
    pub(super) fn read(&mut self, reader: &mut Reader) -> Result<(), Violation> {
        // The number was minimal, so it was one byte.
        let start = reader.position().saturating_sub(1);
        reader.skip_text()?;
        reader.skip_text()?;
        let end = reader.position();
        if self.wire.is_empty() {
            self.wire = reader.slice(start, end);
        } else if let Some(joined) = self.joined(reader, start, end) {
            self.wire = joined;
        } else {
            // Pairs with something between them: rare, and bounded by the packet.
            let mut wire = BytesMut::from(std::mem::take(&mut self.wire));
            wire.put_slice(reader.walked(start, end));
            self.wire = wire.freeze();
        }
        Ok(())
    }

    /// When the new pair stands right behind the last one, the slice simply grows.
    fn joined(&self, reader: &Reader, start: usize, end: usize) -> Option<Bytes> {
        let from = start.checked_sub(self.wire.len())?;
        let before = reader.walked(from, start);
        (before.as_ptr() == self.wire.as_ptr()).then(|| reader.slice(from, end))
    }

    /// The pairs in the order they were sent.
    #[must_use]
    pub fn iter(&self) -> UserPropertiesIter<'_> {
        UserPropertiesIter { rest: &self.wire }
    }

    /// Number of pairs; walks them.
    #[must_use]
    pub fn pairs(&self) -> usize {
        self.iter().count()
    }

    /// Bytes on the wire.
    #[must_use]
    pub fn wire_bytes(&self) -> usize {
        self.wire.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.wire.is_empty()
    }

    /// A copy that does not keep the read buffer alive.
    #[must_use]
    pub fn detached(&self) -> Self {
        Self {
            wire: Bytes::copy_from_slice(&self.wire),
        }
    }

    pub(super) fn as_wire(&self) -> &[u8] {
        &self.wire
    }
}

impl fmt::Debug for UserProperties {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<'a> IntoIterator for &'a UserProperties {
    type Item = (&'a str, &'a str);
    type IntoIter = UserPropertiesIter<'a>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Iterator over [`UserProperties`].
#[derive(Debug, Clone)]
pub struct UserPropertiesIter<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for UserPropertiesIter<'a> {
    type Item = (&'a str, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        let (_, rest) = self.rest.split_first()?;
        let (name, rest) = split_text(rest)?;
        let (value, rest) = split_text(rest)?;
        self.rest = rest;
        Some((name, value))
    }
}

/// A two-byte length and that much text off the front.
pub(super) fn split_text(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<2>()?;
    let (text, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
    Some((std::str::from_utf8(text).ok()?, rest))
}

/// Reason String and User Properties: what every acknowledging packet has. Reads one of the two.
pub(super) fn read_diagnostics(
    property: PropertyId,
    reader: &mut Reader,
    reason_string: &mut Option<Utf8Bytes>,
    user_properties: &mut UserProperties,
) -> Result<(), Violation> {
    match property {
        PropertyId::ReasonString => *reason_string = Some(reader.text()?),
        PropertyId::UserProperty => user_properties.read(reader)?,
        _ => return Err(Violation::PropertyMisplaced { property }),
    }
    Ok(())
}

/// Writes the two, as far as `extras` lets them through.
pub(super) fn write_diagnostics(
    sink: &mut dyn Sink,
    extras: Extras,
    reason_string: Option<&Utf8Bytes>,
    user_properties: &UserProperties,
) {
    if let Some(text) = reason_string.filter(|_| extras.reason_string) {
        sink.property_binary(PropertyId::ReasonString, text.as_bytes());
    }
    if extras.user_properties {
        sink.bytes(user_properties.as_wire());
    }
}

/// Writes a property block: its length first.
pub(super) fn write_block(sink: &mut dyn Sink, write: impl Fn(&mut dyn Sink)) {
    sink.varint(counted(&write));
    write(sink);
}

/// Reads the block at `place` when the version has properties, handing each property to `read`.
#[inline]
pub(super) fn read_block(
    reader: &mut Reader,
    place: Place,
    context: &Context,
    mut read: impl FnMut(PropertyId, &mut Reader) -> Result<(), Violation>,
) -> Result<(), Violation> {
    if context.version == Version::V311 {
        return Ok(());
    }
    let mut block = Block::open(reader, place, context.sender())?;
    while let Some(property) = block.next(reader)? {
        read(property, reader)?;
    }
    Ok(())
}
