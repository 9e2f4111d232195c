//! UNSUBSCRIBE: filters to give up. [MQTT5 3.10] [MQTT311 3.10]
//!
//! ```text
//! | packet identifier (2) | properties (5.0) | filter 1..n |
//! ```

use bytes::{Bytes, BytesMut};

use super::encoder::Sink;
use super::properties::{self, Place, split_text};
use super::reader::{Context, Reader};
use super::{
    InvalidFilter, PacketId, PacketType, PropertyId, TopicFilter, UserProperties, Utf8Bytes,
    Version, Violation,
};

/// A client gives subscriptions up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsubscribe {
    /// What UNSUBACK will carry.
    pub packet_id: PacketId,
    /// User Properties; empty in 3.1.1.
    pub user_properties: UserProperties,
    /// At least one filter.
    pub filters: UnsubscribeFilters,
}

impl Unsubscribe {
    pub(super) fn decode(mut reader: Reader, context: &Context) -> Result<Self, Violation> {
        let packet = PacketType::Unsubscribe;
        let packet_id = reader.packet_id(packet)?;
        let mut user_properties = UserProperties::default();
        properties::read_block(
            &mut reader,
            Place::Packet(packet),
            context,
            |property, reader| match property {
                PropertyId::UserProperty => user_properties.read(reader),
                _ => Err(Violation::PropertyMisplaced { property }),
            },
        )?;
        let filters = UnsubscribeFilters::decode(reader)?;
        Ok(Self {
            packet_id,
            user_properties,
            filters,
        })
    }

    pub(super) fn write(&self, version: Version, sink: &mut dyn Sink) {
        sink.u16(self.packet_id.get());
        if version.is_v5() {
            properties::write_block(sink, |sink| sink.bytes(self.user_properties.as_wire()));
        }
        sink.bytes(&self.filters.wire);
    }
}

/// The filters of one UNSUBSCRIBE, kept as their checked wire form.
#[derive(Clone, PartialEq, Eq)]
pub struct UnsubscribeFilters {
    wire: Bytes,
    count: usize,
}

impl UnsubscribeFilters {
    fn decode(mut reader: Reader) -> Result<Self, Violation> {
        let first = reader.position();
        let mut count = 0usize;
        while !reader.is_empty() {
            reader.skip_text()?;
            count = count.saturating_add(1);
        }
        if count == 0 {
            return Err(Violation::NoFilters {
                packet: PacketType::Unsubscribe,
            });
        }
        let last = reader.position();
        Ok(Self {
            wire: reader.slice(first, last),
            count,
        })
    }

    /// The filters in the order they were sent; a bad one is answered 0x8F in its own UNSUBACK code.
    pub fn iter(&self) -> impl Iterator<Item = Result<TopicFilter, InvalidFilter>> + '_ {
        let mut rest: &[u8] = &self.wire;
        std::iter::from_fn(move || {
            let (text, tail) = split_text(rest)?;
            rest = tail;
            let text = Utf8Bytes::trusted(self.wire.slice_ref(text.as_bytes()));
            Some(TopicFilter::from_text(text))
        })
    }

    /// How many there are: as many codes go into a 5.0 UNSUBACK.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.count
    }
}

impl FromIterator<TopicFilter> for UnsubscribeFilters {
    fn from_iter<I: IntoIterator<Item = TopicFilter>>(filters: I) -> Self {
        let mut wire = BytesMut::new();
        let mut count = 0usize;
        for filter in filters {
            wire.text(filter.as_bytes());
            count = count.saturating_add(1);
        }
        Self {
            wire: wire.freeze(),
            count,
        }
    }
}

impl std::fmt::Debug for UnsubscribeFilters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
