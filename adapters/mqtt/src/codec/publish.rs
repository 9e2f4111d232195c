//! PUBLISH: an application message. [MQTT5 3.3]
//!
//! ```text
//! | 0011 | DUP | QoS (2) | RETAIN |   fixed header
//! | topic | packet identifier (2)? | property length, properties (5.0) | payload |
//! ```

use std::num::NonZeroU16;
use std::sync::Arc;

use bytes::Bytes;

use super::encoder::{EncodeError, Sink, check_field, counted};
use super::properties::{self, Place};
use super::reader::{Context, Reader};
use super::{
    MessageProperties, PacketId, PacketType, PropertyId, QoS, Role, SubscriptionId, TopicName,
    Version, Violation, varint,
};

/// An application message on its way over one hop.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Publish {
    /// Sent before; never set at QoS 0. Means this hop only and is never forwarded. [MQTT5 3.3.1.1]
    pub dup: bool,
    /// Quality of service of this hop.
    pub qos: QoS,
    /// RETAIN flag.
    pub retain: bool,
    /// Where it goes; empty when an alias says it.
    pub topic: TopicName,
    /// There exactly when the QoS is above 0.
    pub packet_id: Option<PacketId>,
    /// Properties; at their default in 3.1.1.
    pub properties: PublishProperties,
    /// The application's bytes: a slice of the read buffer.
    pub payload: Bytes,
}

impl Publish {
    #[inline]
    pub(super) fn decode(
        flags: u8,
        mut reader: Reader,
        context: &Context,
    ) -> Result<Self, Violation> {
        let qos = QoS::from_bits((flags >> 1) & 0b11).ok_or(Violation::PublishQos3)?;
        let dup = flags & 0b1000 != 0;
        if dup && qos == QoS::AtMostOnce {
            return Err(Violation::DupWithQos0);
        }
        let topic = TopicName::from_text(reader.text()?).map_err(|_| Violation::TopicWildcard)?;
        let packet_id = match qos {
            QoS::AtMostOnce => None,
            QoS::AtLeastOnce | QoS::ExactlyOnce => Some(reader.packet_id(PacketType::Publish)?),
        };
        let properties = PublishProperties::decode(&mut reader, context)?;
        if topic.is_empty() && properties.topic_alias.is_none() {
            return Err(Violation::EmptyTopic);
        }
        Ok(Self {
            dup,
            qos,
            retain: flags & 1 != 0,
            topic,
            packet_id,
            properties,
            payload: reader.into_rest(),
        })
    }

    pub(super) const fn flags(&self) -> u8 {
        ((self.dup as u8) << 3) | (self.qos.bits() << 1) | self.retain as u8
    }

    pub(super) fn check(&self, version: Version) -> Result<(), EncodeError> {
        if self.packet_id.is_some() != (self.qos != QoS::AtMostOnce) {
            return Err(EncodeError::PacketId);
        }
        if !version.is_v5() {
            return Ok(());
        }
        match &self.properties.message.correlation_data {
            Some(data) => check_field("correlation data", data),
            None => Ok(()),
        }
    }

    pub(super) fn property_bytes(&self, version: Version) -> u32 {
        match version {
            Version::V311 => 0,
            Version::V5 => self.properties.wire_bytes(),
        }
    }

    pub(super) fn body_bytes(&self, version: Version) -> u32 {
        self.body_bytes_with(version, self.property_bytes(version))
    }

    pub(super) fn body_bytes_with(&self, version: Version, property_bytes: u32) -> u32 {
        let mut count = self
            .topic
            .len()
            .saturating_add(2)
            .saturating_add(self.payload.len());
        if self.packet_id.is_some() {
            count = count.saturating_add(2);
        }
        if version.is_v5() {
            count = count.saturating_add(varint::encoded_len(property_bytes));
        }
        u32::try_from(count)
            .unwrap_or(u32::MAX)
            .saturating_add(property_bytes)
    }

    /// Everything of the body but the payload.
    pub(super) fn write_head<S: Sink + ?Sized>(
        &self,
        version: Version,
        property_bytes: u32,
        sink: &mut S,
    ) {
        sink.text(self.topic.as_bytes());
        if let Some(packet_id) = self.packet_id {
            sink.u16(packet_id.get());
        }
        if version.is_v5() {
            sink.varint(property_bytes);
            if property_bytes > 0 {
                self.properties.write(sink);
            }
        }
    }
}

/// Properties of a PUBLISH. [MQTT5 3.3.2.3]
///
/// Nothing is allocated when they are absent, nor for the usual ones.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PublishProperties {
    /// Topic Alias, never 0; belongs to one direction of one connection.
    pub topic_alias: Option<NonZeroU16>,
    /// Identifiers of the subscriptions that this copy answers; server to client only.
    pub subscription_ids: SubscriptionIds,
    /// What belongs to the message and is forwarded.
    pub message: MessageProperties,
}

impl PublishProperties {
    #[inline]
    fn decode(reader: &mut Reader, context: &Context) -> Result<Self, Violation> {
        let mut this = Self::default();
        let place = Place::Packet(PacketType::Publish);
        properties::read_block(reader, place, context, |property, reader| match property {
            PropertyId::TopicAlias => {
                let alias = reader.u16()?;
                this.topic_alias = Some(NonZeroU16::new(alias).ok_or(
                    // The maximum is the state machine's knowledge; 0 is wrong under any.
                    Violation::TopicAliasRange {
                        alias,
                        max_alias: u16::MAX,
                    },
                )?);
                Ok(())
            }
            PropertyId::SubscriptionIdentifier => {
                let value = reader.varint()?;
                if context.role == Role::Server {
                    return Err(Violation::SubscriptionIdFromClient);
                }
                let id = SubscriptionId::new(value).ok_or(Violation::PropertyValue { property })?;
                this.subscription_ids.push(id);
                Ok(())
            }
            _ => this.message.read(property, reader),
        })?;
        Ok(this)
    }

    fn wire_bytes(&self) -> u32 {
        if *self == Self::default() {
            return 0;
        }
        counted(&|sink| self.write(sink))
    }

    fn write<S: Sink + ?Sized>(&self, sink: &mut S) {
        if let Some(alias) = self.topic_alias {
            sink.property_u16(PropertyId::TopicAlias, alias.get());
        }
        for id in self.subscription_ids.as_slice() {
            sink.u8(PropertyId::SubscriptionIdentifier.number());
            sink.varint(id.get());
        }
        self.message.write(sink);
    }
}

/// Subscription Identifiers of one copy: none and one cost no allocation, more are shared when cloned.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SubscriptionIds(Ids);

#[derive(Debug, Clone, Default)]
enum Ids {
    #[default]
    None,
    One(SubscriptionId),
    Many(Arc<Vec<SubscriptionId>>),
}

impl PartialEq for Ids {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for Ids {}

impl Ids {
    fn as_slice(&self) -> &[SubscriptionId] {
        match self {
            Self::None => &[],
            Self::One(id) => std::slice::from_ref(id),
            Self::Many(ids) => ids,
        }
    }
}

impl SubscriptionIds {
    /// Adds one at the end.
    pub fn push(&mut self, id: SubscriptionId) {
        match &mut self.0 {
            Ids::None => self.0 = Ids::One(id),
            Ids::One(first) => self.0 = Ids::Many(Arc::new(vec![*first, id])),
            Ids::Many(ids) => Arc::make_mut(ids).push(id),
        }
    }

    /// All of them, in order.
    #[must_use]
    pub fn as_slice(&self) -> &[SubscriptionId] {
        self.0.as_slice()
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        matches!(self.0, Ids::None)
    }
}

impl FromIterator<SubscriptionId> for SubscriptionIds {
    fn from_iter<I: IntoIterator<Item = SubscriptionId>>(ids: I) -> Self {
        let mut this = Self::default();
        for id in ids {
            this.push(id);
        }
        this
    }
}
