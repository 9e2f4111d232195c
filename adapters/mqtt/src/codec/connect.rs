//! CONNECT: the first packet of every client. [MQTT5 3.1] [MQTT311 3.1]
//!
//! ```text
//! | "MQTT" | level (1) | flags (1) | keep alive (2) | properties (5.0) |
//! | client id | will properties (5.0)? | will topic? | will payload? | user name? | password? |
//! flags: user name | password | will retain | will QoS (2) | will | clean start | reserved 0
//! ```

use std::num::{NonZeroU16, NonZeroU32};

use bytes::Bytes;

use super::encoder::{EncodeError, Sink, check_field};
use super::properties::{self, Place, read_bool};
use super::reader::{Context, Reader};
use super::{
    ClientId, MessageProperties, PacketType, Password, PropertyId, QoS, Role, TopicName, UserName,
    UserProperties, Utf8Bytes, Version, Violation,
};

/// What a client asks for. Everything in it is a claim until somebody has authenticated it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connect {
    /// Version of this and every later packet.
    pub version: Version,
    /// Clean Start (5.0), Clean Session (3.1.1).
    pub clean_start: bool,
    /// Keep Alive in seconds, 0 for none. [MQTT5 3.1.2.10]
    pub keep_alive_secs: u16,
    /// The label the client gives itself; empty asks for one.
    pub client_id: ClientId,
    /// Message to publish when the connection ends badly.
    pub will: Option<Will>,
    /// User name, as claimed.
    pub user_name: Option<UserName>,
    /// Password.
    pub password: Option<Password>,
    /// Properties; at their default in 3.1.1.
    pub properties: ConnectProperties,
}

impl Connect {
    /// A plain CONNECT, Clean Start set, for the client role.
    #[must_use]
    pub fn new(version: Version, client_id: ClientId) -> Self {
        Self {
            version,
            clean_start: true,
            keep_alive_secs: 0,
            client_id,
            will: None,
            user_name: None,
            password: None,
            properties: ConnectProperties::default(),
        }
    }

    /// Reads name and level: the version decides how everything else is read.
    pub(super) fn decode_version(reader: &mut Reader) -> Result<Version, Violation> {
        let start = reader.skip_text().map_err(|violation| match violation {
            Violation::Text(_) => Violation::UnknownProtocol,
            other => other,
        })?;
        let name = reader.slice(start, reader.position());
        let level = reader.u8()?;
        match (&name[..], level) {
            (b"MQTT", 4) => Ok(Version::V311),
            (b"MQTT", 5) => Ok(Version::V5),
            (b"MQTT", level) | (b"MQIsdp", level @ 3) => {
                Err(Violation::UnsupportedVersion { level })
            }
            _ => Err(Violation::UnknownProtocol),
        }
    }

    /// Reads what follows the level.
    pub(super) fn decode_rest(mut reader: Reader, version: Version) -> Result<Self, Violation> {
        let context = Context {
            role: Role::Server,
            version,
        };
        let flags = reader.u8()?;
        check_flags(flags, version)?;
        let keep_alive_secs = reader.u16()?;
        let properties = ConnectProperties::decode(&mut reader, &context)?;
        let client_id = ClientId::from_wire(reader.text()?);
        let will = match flags & WILL {
            0 => None,
            _ => Some(Will::decode(flags, &mut reader, &context)?),
        };
        let user_name = match flags & USER_NAME {
            0 => None,
            _ => Some(UserName::from_wire(reader.text()?)),
        };
        let password = match flags & PASSWORD {
            0 => None,
            _ => Some(Password::new(reader.binary()?)),
        };
        reader.finish()?;
        Ok(Self {
            version,
            clean_start: flags & CLEAN_START != 0,
            keep_alive_secs,
            client_id,
            will,
            user_name,
            password,
            properties,
        })
    }

    pub(super) fn check(&self) -> Result<(), EncodeError> {
        if let Some(will) = &self.will {
            check_field("will payload", &will.payload)?;
            if let Some(data) = &will.properties.message.correlation_data {
                check_field("correlation data", data)?;
            }
        }
        if let Some(password) = &self.password {
            check_field("password", password.expose())?;
            if self.version == Version::V311 && self.user_name.is_none() {
                return Err(EncodeError::NotInVersion {
                    packet: PacketType::Connect,
                });
            }
        }
        if let Some(data) = &self.properties.authentication_data {
            check_field("authentication data", data)?;
        }
        Ok(())
    }

    pub(super) fn write(&self, sink: &mut dyn Sink) {
        sink.text(b"MQTT");
        sink.u8(self.version.level());
        sink.u8(self.flags());
        sink.u16(self.keep_alive_secs);
        if self.version.is_v5() {
            properties::write_block(sink, |sink| self.properties.write(sink));
        }
        sink.text(self.client_id.as_bytes());
        if let Some(will) = &self.will {
            if self.version.is_v5() {
                properties::write_block(sink, |sink| will.properties.write(sink));
            }
            sink.text(will.topic.as_bytes());
            sink.text(&will.payload);
        }
        if let Some(user_name) = &self.user_name {
            sink.text(user_name.as_bytes());
        }
        if let Some(password) = &self.password {
            sink.text(password.expose());
        }
    }

    fn flags(&self) -> u8 {
        let mut flags = 0;
        if self.clean_start {
            flags |= CLEAN_START;
        }
        if let Some(will) = &self.will {
            flags |= WILL | (will.qos.bits() << 3);
            if will.retain {
                flags |= WILL_RETAIN;
            }
        }
        if self.password.is_some() {
            flags |= PASSWORD;
        }
        if self.user_name.is_some() {
            flags |= USER_NAME;
        }
        flags
    }
}

/// The message that is published when the connection ends badly. [MQTT5 3.1.2.5]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Will {
    /// Its topic.
    pub topic: TopicName,
    /// Its bytes, at most 65 535.
    pub payload: Bytes,
    /// Its quality of service.
    pub qos: QoS,
    /// Whether it is to be retained.
    pub retain: bool,
    /// Its properties.
    pub properties: WillProperties,
}

impl Will {
    fn decode(flags: u8, reader: &mut Reader, context: &Context) -> Result<Self, Violation> {
        let qos = QoS::from_bits((flags >> 3) & 0b11).ok_or(Violation::WillFlags { flags })?;
        let properties = WillProperties::decode(reader, context)?;
        let topic = TopicName::from_text(reader.text()?).map_err(|_| Violation::WillTopic)?;
        if topic.is_empty() {
            return Err(Violation::WillTopic);
        }
        let payload = reader.binary()?;
        Ok(Self {
            topic,
            payload,
            qos,
            retain: flags & WILL_RETAIN != 0,
            properties,
        })
    }
}

/// Will Properties. [MQTT5 3.1.3.2]
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WillProperties {
    /// Will Delay Interval in seconds; absent means 0.
    pub delay_secs: Option<u32>,
    /// What the published message will carry.
    pub message: MessageProperties,
}

impl WillProperties {
    fn decode(reader: &mut Reader, context: &Context) -> Result<Self, Violation> {
        let mut this = Self::default();
        properties::read_block(
            reader,
            Place::Will,
            context,
            |property, reader| match property {
                PropertyId::WillDelayInterval => {
                    this.delay_secs = Some(reader.u32()?);
                    Ok(())
                }
                _ => this.message.read(property, reader),
            },
        )?;
        Ok(this)
    }

    fn write(&self, sink: &mut dyn Sink) {
        if let Some(secs) = self.delay_secs {
            sink.property_u32(PropertyId::WillDelayInterval, secs);
        }
        self.message.write(sink);
    }
}

/// Properties of CONNECT. [MQTT5 3.1.2.11]
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConnectProperties {
    /// Session Expiry Interval in seconds; absent means 0, `u32::MAX` never.
    pub session_expiry_secs: Option<u32>,
    /// Receive Maximum; absent means 65 535.
    pub receive_maximum: Option<NonZeroU16>,
    /// Maximum Packet Size in bytes; absent means no limit.
    pub maximum_packet_bytes: Option<NonZeroU32>,
    /// Topic Alias Maximum; absent means 0.
    pub topic_alias_maximum: Option<u16>,
    /// Request Response Information; absent means false.
    pub request_response_information: Option<bool>,
    /// Request Problem Information; absent means true.
    pub request_problem_information: Option<bool>,
    /// Authentication Method.
    pub authentication_method: Option<Utf8Bytes>,
    /// Authentication Data, only beside a method.
    pub authentication_data: Option<Bytes>,
    /// User Properties.
    pub user_properties: UserProperties,
}

impl ConnectProperties {
    fn decode(reader: &mut Reader, context: &Context) -> Result<Self, Violation> {
        let mut this = Self::default();
        let place = Place::Packet(PacketType::Connect);
        properties::read_block(reader, place, context, |property, reader| {
            let illegal = Violation::PropertyValue { property };
            match property {
                PropertyId::SessionExpiryInterval => {
                    this.session_expiry_secs = Some(reader.u32()?);
                }
                PropertyId::ReceiveMaximum => {
                    this.receive_maximum = Some(NonZeroU16::new(reader.u16()?).ok_or(illegal)?);
                }
                PropertyId::MaximumPacketSize => {
                    this.maximum_packet_bytes =
                        Some(NonZeroU32::new(reader.u32()?).ok_or(illegal)?);
                }
                PropertyId::TopicAliasMaximum => this.topic_alias_maximum = Some(reader.u16()?),
                PropertyId::RequestResponseInformation => {
                    this.request_response_information = Some(read_bool(reader, property)?);
                }
                PropertyId::RequestProblemInformation => {
                    this.request_problem_information = Some(read_bool(reader, property)?);
                }
                PropertyId::AuthenticationMethod => {
                    this.authentication_method = Some(reader.text()?);
                }
                PropertyId::AuthenticationData => {
                    this.authentication_data = Some(reader.binary()?);
                }
                PropertyId::UserProperty => this.user_properties.read(reader)?,
                _ => return Err(Violation::PropertyMisplaced { property }),
            }
            Ok(())
        })?;
        if this.authentication_data.is_some() && this.authentication_method.is_none() {
            return Err(Violation::AuthMethodMissing);
        }
        Ok(this)
    }

    fn write(&self, sink: &mut dyn Sink) {
        if let Some(secs) = self.session_expiry_secs {
            sink.property_u32(PropertyId::SessionExpiryInterval, secs);
        }
        if let Some(maximum) = self.receive_maximum {
            sink.property_u16(PropertyId::ReceiveMaximum, maximum.get());
        }
        if let Some(bytes) = self.maximum_packet_bytes {
            sink.property_u32(PropertyId::MaximumPacketSize, bytes.get());
        }
        if let Some(maximum) = self.topic_alias_maximum {
            sink.property_u16(PropertyId::TopicAliasMaximum, maximum);
        }
        if let Some(flag) = self.request_response_information {
            sink.property_u8(PropertyId::RequestResponseInformation, u8::from(flag));
        }
        if let Some(flag) = self.request_problem_information {
            sink.property_u8(PropertyId::RequestProblemInformation, u8::from(flag));
        }
        if let Some(method) = &self.authentication_method {
            sink.property_binary(PropertyId::AuthenticationMethod, method.as_bytes());
        }
        if let Some(data) = &self.authentication_data {
            sink.property_binary(PropertyId::AuthenticationData, data);
        }
        sink.bytes(self.user_properties.as_wire());
    }
}

fn check_flags(flags: u8, version: Version) -> Result<(), Violation> {
    if flags & 1 != 0 {
        return Err(Violation::ConnectReservedFlag);
    }
    let will_bits = flags & (WILL_RETAIN | WILL_QOS);
    if (flags & WILL == 0 && will_bits != 0) || flags & WILL_QOS == WILL_QOS {
        return Err(Violation::WillFlags { flags });
    }
    if version == Version::V311 && flags & PASSWORD != 0 && flags & USER_NAME == 0 {
        return Err(Violation::PasswordWithoutUserName);
    }
    Ok(())
}

const USER_NAME: u8 = 0x80;
const PASSWORD: u8 = 0x40;
const WILL_RETAIN: u8 = 0x20;
const WILL_QOS: u8 = 0x18;
const WILL: u8 = 0x04;
const CLEAN_START: u8 = 0x02;
