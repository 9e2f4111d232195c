//! AUTH: one step of enhanced authentication, 5.0 only. [MQTT5 3.15]

use bytes::Bytes;

use super::ack::read_reason;
use super::encoder::{EncodeError, Extras, Sink, check_field};
use super::properties::{self, Place};
use super::reader::{Context, Reader};
use super::{PacketType, PropertyId, ReasonCode, UserProperties, Utf8Bytes, Version, Violation};

/// One step of the method that CONNECT named.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Auth {
    /// Success (server), continue (both), re-authenticate (client).
    pub reason: ReasonCode,
    /// Properties.
    pub properties: AuthProperties,
}

impl Auth {
    pub(super) fn decode(mut reader: Reader, context: &Context) -> Result<Self, Violation> {
        let packet = PacketType::Auth;
        if reader.is_empty() {
            // Success without properties may leave everything out; no client ever has that to say.
            // [MQTT5 3.15.2.1]
            let code = ReasonCode::Success;
            return if code.may_stand_in(packet, context.sender()) {
                Ok(Self::default())
            } else {
                Err(Violation::AckCode {
                    packet,
                    code: code.code(),
                })
            };
        }
        let reason = read_reason(&mut reader, packet, context)?;
        let properties = AuthProperties::decode(&mut reader, context)?;
        reader.finish()?;
        Ok(Self { reason, properties })
    }

    pub(super) fn check(&self, version: Version) -> Result<(), EncodeError> {
        if version == Version::V311 {
            return Err(EncodeError::NotInVersion {
                packet: PacketType::Auth,
            });
        }
        match &self.properties.data {
            Some(data) => check_field("authentication data", data),
            None => Ok(()),
        }
    }

    pub(super) fn write(&self, extras: Extras, sink: &mut dyn Sink) {
        if *self == Self::default() {
            return;
        }
        sink.u8(self.reason.code());
        properties::write_block(sink, |sink| self.properties.write(extras, sink));
    }
}

/// Properties of AUTH. [MQTT5 3.15.2.2]
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AuthProperties {
    /// Authentication Method: there whenever anything is. [MQTT5 3.15.2.2.2]
    pub method: Option<Utf8Bytes>,
    /// Authentication Data.
    pub data: Option<Bytes>,
    /// Reason String.
    pub reason_string: Option<Utf8Bytes>,
    /// User Properties.
    pub user_properties: UserProperties,
}

impl AuthProperties {
    fn decode(reader: &mut Reader, context: &Context) -> Result<Self, Violation> {
        let mut this = Self::default();
        let place = Place::Packet(PacketType::Auth);
        properties::read_block(reader, place, context, |property, reader| {
            match property {
                PropertyId::AuthenticationMethod => this.method = Some(reader.text()?),
                PropertyId::AuthenticationData => this.data = Some(reader.binary()?),
                _ => properties::read_diagnostics(
                    property,
                    reader,
                    &mut this.reason_string,
                    &mut this.user_properties,
                )?,
            }
            Ok(())
        })?;
        if this.method.is_none() {
            return Err(Violation::AuthMethodMissing);
        }
        Ok(this)
    }

    fn write(&self, extras: Extras, sink: &mut dyn Sink) {
        if let Some(method) = &self.method {
            sink.property_binary(PropertyId::AuthenticationMethod, method.as_bytes());
        }
        if let Some(data) = &self.data {
            sink.property_binary(PropertyId::AuthenticationData, data);
        }
        properties::write_diagnostics(
            sink,
            extras,
            self.reason_string.as_ref(),
            &self.user_properties,
        );
    }
}
