//! PUBACK, PUBREC, PUBREL, PUBCOMP: four packets of one shape. [MQTT5 3.4] [MQTT5 3.5] [MQTT5 3.6] [MQTT5 3.7]
//!
//! ```text
//! | packet identifier (2) | reason code (1)? | property length, properties? |
//!                          ^ 0x00 when left out   ^ none when left out
//! ```

use super::encoder::{Extras, Sink};
use super::properties::{self, Place};
use super::reader::{Context, Reader};
use super::{PacketId, PacketType, ReasonCode, UserProperties, Utf8Bytes, Version, Violation};

/// Body of an acknowledgement; [`Packet`](super::Packet) says which of the four.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ack {
    /// The exchange it belongs to.
    pub packet_id: PacketId,
    /// How it went; always Success in 3.1.1.
    pub reason: ReasonCode,
    /// Diagnostics; empty in 3.1.1.
    pub properties: AckProperties,
}

impl Ack {
    /// Without diagnostics.
    #[must_use]
    pub fn new(packet_id: PacketId, reason: ReasonCode) -> Self {
        Self {
            packet_id,
            reason,
            properties: AckProperties::default(),
        }
    }

    pub(super) fn decode(
        packet: PacketType,
        mut reader: Reader,
        context: &Context,
    ) -> Result<Self, Violation> {
        let packet_id = reader.packet_id(packet)?;
        let mut ack = Self::new(packet_id, ReasonCode::Success);
        if context.version.is_v5() && !reader.is_empty() {
            ack.reason = read_reason(&mut reader, packet, context)?;
            if !reader.is_empty() {
                ack.properties = AckProperties::decode(&mut reader, packet, context)?;
            }
        }
        reader.finish()?;
        Ok(ack)
    }

    pub(super) fn write(&self, version: Version, extras: Extras, sink: &mut dyn Sink) {
        sink.u16(self.packet_id.get());
        if !version.is_v5() {
            return;
        }
        let bare = self.properties.is_bare(extras);
        if bare && self.reason == ReasonCode::Success {
            return;
        }
        sink.u8(self.reason.code());
        if !bare {
            self.properties.write(extras, sink);
        }
    }
}

/// Reason String and User Properties: of acknowledgements, SUBACK and UNSUBACK. [MQTT5 3.4.2.2]
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AckProperties {
    /// Text for a person's log; ours are constants and never echo input.
    pub reason_string: Option<Utf8Bytes>,
    /// User Properties.
    pub user_properties: UserProperties,
}

impl AckProperties {
    pub(super) fn decode(
        reader: &mut Reader,
        packet: PacketType,
        context: &Context,
    ) -> Result<Self, Violation> {
        let mut this = Self::default();
        properties::read_block(
            reader,
            Place::Packet(packet),
            context,
            |property, reader| {
                properties::read_diagnostics(
                    property,
                    reader,
                    &mut this.reason_string,
                    &mut this.user_properties,
                )
            },
        )?;
        Ok(this)
    }

    /// Whether nothing would be written.
    fn is_bare(&self, extras: Extras) -> bool {
        (self.reason_string.is_none() || !extras.reason_string)
            && (self.user_properties.is_empty() || !extras.user_properties)
    }

    pub(super) fn write(&self, extras: Extras, sink: &mut dyn Sink) {
        properties::write_block(sink, |sink| {
            properties::write_diagnostics(
                sink,
                extras,
                self.reason_string.as_ref(),
                &self.user_properties,
            );
        });
    }
}

/// A reason code that this packet may carry.
pub(super) fn read_reason(
    reader: &mut Reader,
    packet: PacketType,
    context: &Context,
) -> Result<ReasonCode, Violation> {
    let code = reader.u8()?;
    ReasonCode::from_code(code)
        .filter(|reason| reason.may_stand_in(packet, context.sender()))
        .ok_or(Violation::AckCode { packet, code })
}
