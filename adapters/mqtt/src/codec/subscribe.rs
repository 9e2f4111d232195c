//! SUBSCRIBE: filters with their options. [MQTT5 3.8] [MQTT311 3.8]
//!
//! ```text
//! | packet identifier (2) | properties (5.0) | { filter | options (1) } 1..n |
//! options: reserved 00 | retain handling (2) | retain as published | no local | QoS (2)
//! ```

use bytes::{BufMut, Bytes, BytesMut};

use super::encoder::Sink;
use super::properties::{self, Place, split_text};
use super::reader::{Context, Reader};
use super::{
    InvalidFilter, PacketId, PacketType, PropertyId, QoS, SubscriptionId, TopicFilter,
    UserProperties, Utf8Bytes, Version, Violation,
};

/// A client asks for subscriptions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscribe {
    /// What SUBACK will carry.
    pub packet_id: PacketId,
    /// Properties; at their default in 3.1.1.
    pub properties: SubscribeProperties,
    /// At least one filter.
    pub filters: SubscribeFilters,
}

impl Subscribe {
    pub(super) fn decode(mut reader: Reader, context: &Context) -> Result<Self, Violation> {
        let packet_id = reader.packet_id(PacketType::Subscribe)?;
        let properties = SubscribeProperties::decode(&mut reader, context)?;
        let filters = SubscribeFilters::decode(reader, context.version)?;
        Ok(Self {
            packet_id,
            properties,
            filters,
        })
    }

    pub(super) fn write(&self, version: Version, sink: &mut dyn Sink) {
        sink.u16(self.packet_id.get());
        if version.is_v5() {
            properties::write_block(sink, |sink| self.properties.write(sink));
            sink.bytes(&self.filters.wire);
            return;
        }
        for Subscription { filter, options } in self.filters.iter() {
            match &filter {
                Ok(filter) => sink.text(filter.as_bytes()),
                Err(invalid) => sink.text(invalid.text.as_bytes()),
            }
            sink.u8(options.max_qos.bits());
        }
    }
}

/// Properties of SUBSCRIBE. [MQTT5 3.8.2.1]
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SubscribeProperties {
    /// Subscription Identifier for every filter of the packet.
    pub subscription_id: Option<SubscriptionId>,
    /// User Properties.
    pub user_properties: UserProperties,
}

impl SubscribeProperties {
    fn decode(reader: &mut Reader, context: &Context) -> Result<Self, Violation> {
        let mut this = Self::default();
        let place = Place::Packet(PacketType::Subscribe);
        properties::read_block(reader, place, context, |property, reader| {
            match property {
                PropertyId::SubscriptionIdentifier => {
                    this.subscription_id = Some(
                        SubscriptionId::new(reader.varint()?)
                            .ok_or(Violation::PropertyValue { property })?,
                    );
                }
                PropertyId::UserProperty => this.user_properties.read(reader)?,
                _ => return Err(Violation::PropertyMisplaced { property }),
            }
            Ok(())
        })?;
        Ok(this)
    }

    fn write(&self, sink: &mut dyn Sink) {
        if let Some(id) = self.subscription_id {
            sink.u8(PropertyId::SubscriptionIdentifier.number());
            sink.varint(id.get());
        }
        sink.bytes(self.user_properties.as_wire());
    }
}

/// One filter of a SUBSCRIBE with its options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscription {
    /// The filter, or what is wrong with it: answered 0x8F (3.1.1: 0x80) in its own SUBACK code.
    pub filter: Result<TopicFilter, InvalidFilter>,
    /// How copies are to be delivered.
    pub options: SubscribeOptions,
}

/// The option byte. [MQTT5 3.8.3.1]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SubscribeOptions {
    /// Highest QoS of a delivered copy.
    pub max_qos: QoS,
    /// Do not send me what I published.
    pub no_local: bool,
    /// Keep the RETAIN flag as it was published.
    pub retain_as_published: bool,
    /// When retained messages are sent.
    pub retain_handling: RetainHandling,
}

impl SubscribeOptions {
    /// Only a QoS: all that 3.1.1 can say.
    #[must_use]
    pub const fn new(max_qos: QoS) -> Self {
        Self {
            max_qos,
            no_local: false,
            retain_as_published: false,
            retain_handling: RetainHandling::Send,
        }
    }

    fn from_byte(options: u8, version: Version) -> Result<Self, Violation> {
        let malformed = Violation::SubscribeOptions { options };
        let reserved = match version {
            Version::V311 => 0b1111_1100,
            Version::V5 => 0b1100_0000,
        };
        if options & reserved != 0 {
            return Err(malformed);
        }
        Ok(Self {
            max_qos: QoS::from_bits(options & 0b11).ok_or(malformed)?,
            no_local: options & 0b100 != 0,
            retain_as_published: options & 0b1000 != 0,
            retain_handling: match options >> 4 {
                0 => RetainHandling::Send,
                1 => RetainHandling::SendIfNew,
                2 => RetainHandling::DoNotSend,
                _ => return Err(Violation::RetainHandling),
            },
        })
    }

    const fn to_byte(self) -> u8 {
        self.max_qos.bits()
            | ((self.no_local as u8) << 2)
            | ((self.retain_as_published as u8) << 3)
            | ((self.retain_handling as u8) << 4)
    }
}

/// Retain Handling. [MQTT5 3.8.3.1]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum RetainHandling {
    /// Send retained messages at every subscribe.
    #[default]
    Send = 0,
    /// Only when the subscription is new.
    SendIfNew = 1,
    /// Never.
    DoNotSend = 2,
}

/// The filters of one SUBSCRIBE, kept as their checked wire form: nothing is allocated per filter, whatever the peer
/// sends. Iterate to get [`Subscription`]s.
///
/// ```
/// use weida_mqtt::codec::{QoS, SubscribeFilters, SubscribeOptions, TopicFilter};
///
/// let filter = TopicFilter::parse("sport/+/score")?;
/// let filters = SubscribeFilters::from_iter([(filter, SubscribeOptions::new(QoS::AtLeastOnce))]);
/// assert_eq!(filters.iter().count(), 1);
/// # Ok::<(), weida_mqtt::codec::FilterError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct SubscribeFilters {
    /// Any number of `filter, options`, the options as 5.0 writes them.
    wire: Bytes,
    count: usize,
}

impl SubscribeFilters {
    fn decode(mut reader: Reader, version: Version) -> Result<Self, Violation> {
        let first = reader.position();
        let mut count = 0usize;
        while !reader.is_empty() {
            let start = reader.skip_text()?;
            let end = reader.position();
            let options = SubscribeOptions::from_byte(reader.u8()?, version)?;
            if options.no_local && reader.walked(start, end).starts_with(b"$share/") {
                return Err(Violation::SharedNoLocal);
            }
            count = count.saturating_add(1);
        }
        if count == 0 {
            return Err(Violation::NoFilters {
                packet: PacketType::Subscribe,
            });
        }
        let last = reader.position();
        Ok(Self {
            wire: reader.slice(first, last),
            count,
        })
    }

    /// The filters in the order they were sent, each judged on its own.
    pub fn iter(&self) -> impl Iterator<Item = Subscription> + '_ {
        let mut rest: &[u8] = &self.wire;
        std::iter::from_fn(move || {
            let (text, tail) = split_text(rest)?;
            let (&options, tail) = tail.split_first()?;
            rest = tail;
            let text = Utf8Bytes::trusted(self.wire.slice_ref(text.as_bytes()));
            Some(Subscription {
                filter: TopicFilter::from_text(text),
                options: SubscribeOptions::from_byte(options, Version::V5).ok()?,
            })
        })
    }

    /// How many there are: as many codes go into SUBACK.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.count
    }
}

impl FromIterator<(TopicFilter, SubscribeOptions)> for SubscribeFilters {
    fn from_iter<I: IntoIterator<Item = (TopicFilter, SubscribeOptions)>>(filters: I) -> Self {
        let mut wire = BytesMut::new();
        let mut count = 0usize;
        for (filter, options) in filters {
            wire.text(filter.as_bytes());
            wire.put_u8(options.to_byte());
            count = count.saturating_add(1);
        }
        Self {
            wire: wire.freeze(),
            count,
        }
    }
}

impl std::fmt::Debug for SubscribeFilters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
