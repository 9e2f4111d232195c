//! UNSUBACK: one code per filter in 5.0, nothing but the identifier in 3.1.1. [MQTT5 3.11] [MQTT311 3.11]

use super::ack::AckProperties;
use super::encoder::{Extras, Sink};
use super::reader::{Context, Reader};
use super::suback::decode_codes;
use super::{PacketId, PacketType, ReasonCode, Version, Violation};

/// The server's answer to an UNSUBSCRIBE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsuback {
    /// Identifier of the UNSUBSCRIBE.
    pub packet_id: PacketId,
    /// Diagnostics; empty in 3.1.1.
    pub properties: AckProperties,
    /// One per filter, in order; empty in 3.1.1.
    pub codes: Vec<ReasonCode>,
}

impl Unsuback {
    pub(super) fn decode(mut reader: Reader, context: &Context) -> Result<Self, Violation> {
        let packet = PacketType::Unsuback;
        let packet_id = reader.packet_id(packet)?;
        let properties = AckProperties::decode(&mut reader, packet, context)?;
        let codes = match context.version {
            Version::V5 => decode_codes(reader, packet, context)?,
            Version::V311 => {
                reader.finish()?;
                Vec::new()
            }
        };
        Ok(Self {
            packet_id,
            properties,
            codes,
        })
    }

    pub(super) fn write(&self, version: Version, extras: Extras, sink: &mut dyn Sink) {
        sink.u16(self.packet_id.get());
        if version.is_v5() {
            self.properties.write(extras, sink);
            for code in &self.codes {
                sink.u8(code.code());
            }
        }
    }
}
