//! DISCONNECT: the end, on purpose. [MQTT5 3.14] [MQTT311 3.14]
//!
//! ```text
//! | reason code (1)? | property length, properties? |     5.0; 0x00 when left out
//! ```

use super::ack::read_reason;
use super::encoder::{Extras, Sink, counted};
use super::properties::{self, Place};
use super::reader::{Context, Reader};
use super::{PacketType, PropertyId, ReasonCode, UserProperties, Utf8Bytes, Version, Violation};

/// Why a connection ends.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Disconnect {
    /// The reason; Success (normal disconnection) in 3.1.1.
    pub reason: ReasonCode,
    /// Properties; at their default in 3.1.1.
    pub properties: DisconnectProperties,
}

impl Disconnect {
    /// Without properties.
    #[must_use]
    pub fn new(reason: ReasonCode) -> Self {
        Self {
            reason,
            properties: DisconnectProperties::default(),
        }
    }

    pub(super) fn decode(mut reader: Reader, context: &Context) -> Result<Self, Violation> {
        let packet = PacketType::Disconnect;
        let mut this = Self::default();
        if context.version.is_v5() && !reader.is_empty() {
            this.reason = read_reason(&mut reader, packet, context)?;
            if !reader.is_empty() {
                this.properties = DisconnectProperties::decode(&mut reader, context)?;
            }
        }
        reader.finish()?;
        Ok(this)
    }

    pub(super) fn write(&self, version: Version, extras: Extras, sink: &mut dyn Sink) {
        if !version.is_v5() {
            return;
        }
        let bare = counted(&|sink| self.properties.write(extras, sink)) == 0;
        if bare && self.reason == ReasonCode::Success {
            return;
        }
        sink.u8(self.reason.code());
        if !bare {
            properties::write_block(sink, |sink| self.properties.write(extras, sink));
        }
    }
}

/// Properties of DISCONNECT. [MQTT5 3.14.2.2]
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DisconnectProperties {
    /// New Session Expiry Interval in seconds; a client's only.
    pub session_expiry_secs: Option<u32>,
    /// Reason String.
    pub reason_string: Option<Utf8Bytes>,
    /// Server Reference; a server's only.
    pub server_reference: Option<Utf8Bytes>,
    /// User Properties.
    pub user_properties: UserProperties,
}

impl DisconnectProperties {
    fn decode(reader: &mut Reader, context: &Context) -> Result<Self, Violation> {
        let mut this = Self::default();
        let place = Place::Packet(PacketType::Disconnect);
        properties::read_block(reader, place, context, |property, reader| {
            match property {
                PropertyId::SessionExpiryInterval => {
                    // Only a client knows when it wants its session to end. [MQTT-3.14.2-2]
                    if context.sender() == super::Role::Server {
                        return Err(Violation::PropertyValue { property });
                    }
                    this.session_expiry_secs = Some(reader.u32()?);
                }
                PropertyId::ServerReference => this.server_reference = Some(reader.text()?),
                _ => properties::read_diagnostics(
                    property,
                    reader,
                    &mut this.reason_string,
                    &mut this.user_properties,
                )?,
            }
            Ok(())
        })?;
        Ok(this)
    }

    fn write(&self, extras: Extras, sink: &mut dyn Sink) {
        if let Some(secs) = self.session_expiry_secs {
            sink.property_u32(PropertyId::SessionExpiryInterval, secs);
        }
        if let Some(text) = &self.server_reference {
            sink.property_binary(PropertyId::ServerReference, text.as_bytes());
        }
        properties::write_diagnostics(
            sink,
            extras,
            self.reason_string.as_ref(),
            &self.user_properties,
        );
    }
}
