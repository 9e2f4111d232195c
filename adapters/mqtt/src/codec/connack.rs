//! CONNACK: the server's answer to CONNECT. [MQTT5 3.2] [MQTT311 3.2]
//!
//! ```text
//! | 0000000 session present | reason code / return code (1) | properties (5.0) |
//! ```

use std::num::{NonZeroU16, NonZeroU32};

use bytes::Bytes;

use super::ack::read_reason;
use super::encoder::{EncodeError, Extras, Sink, check_field};
use super::properties::{self, Place, read_bool};
use super::reader::{Context, Reader};
use super::{
    ClientId, PacketType, PropertyId, QoS, ReasonCode, UserProperties, Utf8Bytes, Version,
    Violation,
};

/// Whether the client is in, and under which conditions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Connack {
    /// A stored session is continued; never beside a refusal.
    pub session_present: bool,
    /// Success or why not. In 3.1.1 it becomes the return code that says the same.
    pub reason: ReasonCode,
    /// Properties; at their default in 3.1.1.
    pub properties: ConnackProperties,
}

impl Connack {
    /// A refusal without properties.
    #[must_use]
    pub fn refusal(reason: ReasonCode) -> Self {
        Self {
            session_present: false,
            reason,
            properties: ConnackProperties::default(),
        }
    }

    pub(super) fn decode(mut reader: Reader, context: &Context) -> Result<Self, Violation> {
        let packet = PacketType::Connack;
        let flags = reader.u8()?;
        let session_present = flags == 1;
        if flags > 1 {
            return Err(Violation::ConnackFlags { flags });
        }
        let reason = match context.version {
            Version::V5 => read_reason(&mut reader, packet, context)?,
            Version::V311 => {
                let code = reader.u8()?;
                ReasonCode::from_connect_return_code(code)
                    .ok_or(Violation::AckCode { packet, code })?
            }
        };
        if session_present && reason != ReasonCode::Success {
            return Err(Violation::ConnackFlags { flags });
        }
        let properties = ConnackProperties::decode(&mut reader, context)?;
        reader.finish()?;
        Ok(Self {
            session_present,
            reason,
            properties,
        })
    }

    pub(super) fn check(&self, version: Version) -> Result<(), EncodeError> {
        if version == Version::V311 && self.reason.connect_return_code().is_none() {
            return Err(EncodeError::NotInVersion {
                packet: PacketType::Connack,
            });
        }
        match &self.properties.authentication_data {
            Some(data) => check_field("authentication data", data),
            None => Ok(()),
        }
    }

    pub(super) fn write(&self, version: Version, extras: Extras, sink: &mut dyn Sink) {
        sink.u8(u8::from(
            self.session_present && self.reason == ReasonCode::Success,
        ));
        match version {
            Version::V311 => sink.u8(self.reason.connect_return_code().unwrap_or(3)),
            Version::V5 => {
                sink.u8(self.reason.code());
                properties::write_block(sink, |sink| self.properties.write(extras, sink));
            }
        }
    }
}

/// Properties of CONNACK: what the server grants and forbids. [MQTT5 3.2.2.3]
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConnackProperties {
    /// Session Expiry Interval in seconds, when it differs from what was asked.
    pub session_expiry_secs: Option<u32>,
    /// Receive Maximum; absent means 65 535.
    pub receive_maximum: Option<NonZeroU16>,
    /// Maximum QoS: only 0 and 1 are ever written, absent means 2.
    pub maximum_qos: Option<QoS>,
    /// Retain Available; absent means true.
    pub retain_available: Option<bool>,
    /// Maximum Packet Size in bytes; absent means no limit.
    pub maximum_packet_bytes: Option<NonZeroU32>,
    /// Assigned Client Identifier.
    pub assigned_client_id: Option<ClientId>,
    /// Topic Alias Maximum; absent means 0.
    pub topic_alias_maximum: Option<u16>,
    /// Reason String.
    pub reason_string: Option<Utf8Bytes>,
    /// Wildcard Subscription Available; absent means true.
    pub wildcard_subscription_available: Option<bool>,
    /// Subscription Identifier Available; absent means true.
    pub subscription_id_available: Option<bool>,
    /// Shared Subscription Available; absent means true.
    pub shared_subscription_available: Option<bool>,
    /// Server Keep Alive in seconds; overrules the client's.
    pub server_keep_alive_secs: Option<u16>,
    /// Response Information.
    pub response_information: Option<Utf8Bytes>,
    /// Server Reference.
    pub server_reference: Option<Utf8Bytes>,
    /// Authentication Method.
    pub authentication_method: Option<Utf8Bytes>,
    /// Authentication Data, only beside a method.
    pub authentication_data: Option<Bytes>,
    /// User Properties.
    pub user_properties: UserProperties,
}

impl ConnackProperties {
    fn decode(reader: &mut Reader, context: &Context) -> Result<Self, Violation> {
        let mut this = Self::default();
        let place = Place::Packet(PacketType::Connack);
        properties::read_block(reader, place, context, |property, reader| {
            this.read(property, reader)
        })?;
        if this.authentication_data.is_some() && this.authentication_method.is_none() {
            return Err(Violation::AuthMethodMissing);
        }
        Ok(this)
    }

    fn read(&mut self, property: PropertyId, reader: &mut Reader) -> Result<(), Violation> {
        let illegal = Violation::PropertyValue { property };
        match property {
            PropertyId::SessionExpiryInterval => self.session_expiry_secs = Some(reader.u32()?),
            PropertyId::ReceiveMaximum => {
                self.receive_maximum = Some(NonZeroU16::new(reader.u16()?).ok_or(illegal)?);
            }
            PropertyId::MaximumQos => {
                let below = read_bool(reader, property)?;
                self.maximum_qos = QoS::from_bits(u8::from(below));
            }
            PropertyId::RetainAvailable => {
                self.retain_available = Some(read_bool(reader, property)?);
            }
            PropertyId::MaximumPacketSize => {
                self.maximum_packet_bytes = Some(NonZeroU32::new(reader.u32()?).ok_or(illegal)?);
            }
            PropertyId::AssignedClientIdentifier => {
                self.assigned_client_id = Some(ClientId::from_wire(reader.text()?));
            }
            PropertyId::TopicAliasMaximum => self.topic_alias_maximum = Some(reader.u16()?),
            PropertyId::WildcardSubscriptionAvailable => {
                self.wildcard_subscription_available = Some(read_bool(reader, property)?);
            }
            PropertyId::SubscriptionIdentifierAvailable => {
                self.subscription_id_available = Some(read_bool(reader, property)?);
            }
            PropertyId::SharedSubscriptionAvailable => {
                self.shared_subscription_available = Some(read_bool(reader, property)?);
            }
            PropertyId::ServerKeepAlive => self.server_keep_alive_secs = Some(reader.u16()?),
            PropertyId::ResponseInformation => self.response_information = Some(reader.text()?),
            PropertyId::ServerReference => self.server_reference = Some(reader.text()?),
            PropertyId::AuthenticationMethod => self.authentication_method = Some(reader.text()?),
            PropertyId::AuthenticationData => self.authentication_data = Some(reader.binary()?),
            _ => properties::read_diagnostics(
                property,
                reader,
                &mut self.reason_string,
                &mut self.user_properties,
            )?,
        }
        Ok(())
    }

    fn write(&self, extras: Extras, sink: &mut dyn Sink) {
        let flags = [
            (PropertyId::RetainAvailable, self.retain_available),
            (
                PropertyId::WildcardSubscriptionAvailable,
                self.wildcard_subscription_available,
            ),
            (
                PropertyId::SubscriptionIdentifierAvailable,
                self.subscription_id_available,
            ),
            (
                PropertyId::SharedSubscriptionAvailable,
                self.shared_subscription_available,
            ),
        ];
        let texts = [
            (
                PropertyId::AssignedClientIdentifier,
                self.assigned_client_id.as_ref().map(ClientId::as_bytes),
            ),
            (
                PropertyId::ResponseInformation,
                self.response_information.as_ref().map(Utf8Bytes::as_bytes),
            ),
            (
                PropertyId::ServerReference,
                self.server_reference.as_ref().map(Utf8Bytes::as_bytes),
            ),
            (
                PropertyId::AuthenticationMethod,
                self.authentication_method.as_ref().map(Utf8Bytes::as_bytes),
            ),
        ];
        if let Some(secs) = self.session_expiry_secs {
            sink.property_u32(PropertyId::SessionExpiryInterval, secs);
        }
        if let Some(maximum) = self.receive_maximum {
            sink.property_u16(PropertyId::ReceiveMaximum, maximum.get());
        }
        // 2 is what absence means, and writing it would be a protocol error. [MQTT5 3.2.2.3.4]
        if let Some(qos) = self.maximum_qos.filter(|qos| *qos != QoS::ExactlyOnce) {
            sink.property_u8(PropertyId::MaximumQos, qos.bits());
        }
        if let Some(bytes) = self.maximum_packet_bytes {
            sink.property_u32(PropertyId::MaximumPacketSize, bytes.get());
        }
        if let Some(maximum) = self.topic_alias_maximum {
            sink.property_u16(PropertyId::TopicAliasMaximum, maximum);
        }
        if let Some(secs) = self.server_keep_alive_secs {
            sink.property_u16(PropertyId::ServerKeepAlive, secs);
        }
        for (property, flag) in flags {
            if let Some(flag) = flag {
                sink.property_u8(property, u8::from(flag));
            }
        }
        for (property, text) in texts {
            if let Some(text) = text {
                sink.property_binary(property, text);
            }
        }
        if let Some(data) = &self.authentication_data {
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
