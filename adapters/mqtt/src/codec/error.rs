//! What a peer did wrong, as a fact that knows its answer. [mqtt 3.5]

use super::{FilterError, PacketId, PacketType, PropertyId, QoS, ReasonCode, TextError};

/// How far a [`Violation`] reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reach {
    /// One message: its PUBACK or PUBREC carries the code; a 3.1.1 connection follows `legacy_refusal`.
    Message,
    /// One filter: its SUBACK or UNSUBACK code says so.
    Subscription,
    /// The connection: CONNACK (before it was answered) or DISCONNECT with the code on 5.0, then close.
    Connection,
}

/// A broken rule of MQTT: [`reason_code`](Self::reason_code) is what 5.0 hears, [`reach`](Self::reach) how far it
/// goes, [`rule`](Self::rule) the row of the bad-input table. [mqtt 3.5]
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Violation {
    /// A Variable Byte Integer of more than four bytes.
    #[error("variable byte integer longer than four bytes")]
    VarintTooLong,
    /// A Variable Byte Integer with a needless last group.
    #[error("variable byte integer is not minimal")]
    VarintNotMinimal,
    /// The declared length is above our maximum; the body was never read.
    #[error("packet of {got_bytes} bytes, at most {max_bytes}")]
    PacketTooLarge {
        /// Declared size, fixed header included.
        got_bytes: u32,
        /// What we announced, or the cap before CONNECT.
        max_bytes: u32,
    },
    /// Fixed-header flags other than the ones the type prescribes.
    #[error("flags {flags:#06b} on {packet}")]
    ReservedFlags {
        /// The packet.
        packet: PacketType,
        /// Its flags.
        flags: u8,
    },
    /// Packet type 0, or AUTH in 3.1.1.
    #[error("reserved packet type {type_bits}")]
    ReservedPacketType {
        /// The upper four bits.
        type_bits: u8,
    },
    /// A field ends behind the end of the packet.
    #[error("field of {wanted_bytes} bytes where {left_bytes} are left")]
    Truncated {
        /// What the field needs.
        wanted_bytes: usize,
        /// What the packet has.
        left_bytes: usize,
    },
    /// Bytes behind the last field.
    #[error("{extra_bytes} bytes behind the last field")]
    TrailingBytes {
        /// How many.
        extra_bytes: usize,
    },
    /// Bit 0 of the CONNECT flags.
    #[error("reserved connect flag is set")]
    ConnectReservedFlag,
    /// Will QoS 3, or will QoS or retain without a will.
    #[error("connect flags {flags:#010b} contradict each other about the will")]
    WillFlags {
        /// The whole flag byte.
        flags: u8,
    },
    /// 3.1.1: a password without a user name.
    #[error("password without user name")]
    PasswordWithoutUserName,
    /// A will topic that no message may be published under.
    #[error("will topic is empty or holds a wildcard")]
    WillTopic,
    /// CONNECT came again.
    #[error("second CONNECT")]
    SecondConnect,
    /// Something came before CONNECT (or, to a client, before CONNACK).
    #[error("{packet} before the connection is established")]
    BeforeConnect {
        /// What came.
        packet: PacketType,
    },
    /// A protocol name that is not MQTT's; closed without an answer.
    #[error("unknown protocol name")]
    UnknownProtocol,
    /// MQTT of a version we do not speak.
    #[error("unsupported protocol level {level}")]
    UnsupportedVersion {
        /// The level byte.
        level: u8,
    },
    /// Text that is not UTF-8, holds U+0000, or, in strict mode, a character the standard advises against.
    #[error("bad text")]
    Text(#[source] TextError),
    /// A property number the standard does not know.
    #[error("unknown property {id}")]
    UnknownProperty {
        /// The number.
        id: u32,
    },
    /// A property in a packet where it has no place.
    #[error("property {property:?} does not belong there")]
    PropertyMisplaced {
        /// The property.
        property: PropertyId,
    },
    /// A property or the property block itself ends behind its end.
    #[error("property needs {wanted_bytes} bytes where {left_bytes} are left")]
    PropertyLength {
        /// What it needs.
        wanted_bytes: usize,
        /// What there is.
        left_bytes: usize,
    },
    /// A property that may stand once came again.
    #[error("property {property:?} is repeated")]
    PropertyRepeated {
        /// The property.
        property: PropertyId,
    },
    /// A value outside the property's range: a boolean of 2, a Receive Maximum of 0.
    #[error("property {property:?} has an illegal value")]
    PropertyValue {
        /// The property.
        property: PropertyId,
    },
    /// Authentication Data without Authentication Method, or AUTH without a method.
    #[error("authentication method is missing")]
    AuthMethodMissing,
    /// PUBLISH with QoS 3.
    #[error("publish with qos 3")]
    PublishQos3,
    /// PUBLISH with DUP and QoS 0.
    #[error("publish with dup and qos 0")]
    DupWithQos0,
    /// Packet Identifier 0 where one is needed.
    #[error("packet identifier 0 on {packet}")]
    PacketIdZero {
        /// The packet.
        packet: PacketType,
    },
    /// PUBLISH to a topic with a wildcard.
    #[error("topic holds a wildcard")]
    TopicWildcard,
    /// Response Topic with a wildcard, or empty.
    #[error("response topic is empty or holds a wildcard")]
    ResponseTopic,
    /// PUBLISH without topic and without alias.
    #[error("publish without topic and alias")]
    EmptyTopic,
    /// Topic Alias 0 or above what we announced.
    #[error("topic alias {alias}, at most {max_alias}")]
    TopicAliasRange {
        /// The alias.
        alias: u16,
        /// Our Topic Alias Maximum.
        max_alias: u16,
    },
    /// Topic Alias that no earlier packet of this connection set.
    #[error("topic alias {alias} was never set")]
    TopicAliasUnknown {
        /// The alias.
        alias: u16,
    },
    /// A client put a Subscription Identifier on a PUBLISH.
    #[error("subscription identifier from a client")]
    SubscriptionIdFromClient,
    /// QoS above the announced Maximum QoS.
    #[error("qos above the maximum {max_qos:?}")]
    QosNotSupported {
        /// What we announced.
        max_qos: QoS,
    },
    /// RETAIN where retained messages are unavailable.
    #[error("retain is not available")]
    RetainNotSupported,
    /// SUBSCRIBE or UNSUBSCRIBE without a filter.
    #[error("{packet} without a filter")]
    NoFilters {
        /// The packet.
        packet: PacketType,
    },
    /// Reserved option bits or QoS 3 in SUBSCRIBE.
    #[error("subscription options {options:#010b}")]
    SubscribeOptions {
        /// The option byte.
        options: u8,
    },
    /// Retain Handling 3.
    #[error("retain handling 3")]
    RetainHandling,
    /// A filter that is none: answered in SUBACK or UNSUBACK.
    #[error("bad filter")]
    Filter(#[source] FilterError),
    /// A shared subscription with No Local.
    #[error("no local on a shared subscription")]
    SharedNoLocal,
    /// A reason code that this packet may not carry.
    #[error("reason code {code:#04x} on {packet}")]
    AckCode {
        /// The packet.
        packet: PacketType,
        /// The code.
        code: u8,
    },
    /// CONNACK whose session-present byte is not 0 or 1, or claims a session beside a refusal.
    #[error("connack acknowledge flags {flags:#010b}")]
    ConnackFlags {
        /// The byte.
        flags: u8,
    },
    /// A packet that only the other side may send.
    #[error("{packet} came from the wrong side")]
    WrongDirection {
        /// The packet.
        packet: PacketType,
    },
    /// AUTH although no method is in use.
    #[error("unexpected AUTH")]
    UnexpectedAuth,
    /// DISCONNECT raises a Session Expiry Interval of 0.
    #[error("session expiry raised from 0")]
    SessionExpiryRaised,
    /// A topic with more levels or bytes than we take.
    #[error("topic of {got} {unit}, at most {max}")]
    TopicTooBig {
        /// What it has.
        got: usize,
        /// What we take.
        max: usize,
        /// `levels` or `bytes`.
        unit: &'static str,
        /// Identifier to answer with; `None` at QoS 0.
        packet_id: Option<PacketId>,
    },
    /// More User Properties, in number or bytes, than we take on a message.
    #[error("{got} {unit} of user properties, at most {max}")]
    UserPropertyQuota {
        /// What it has.
        got: usize,
        /// What we take.
        max: usize,
        /// `pairs` or `bytes`.
        unit: &'static str,
        /// Identifier to answer with; `None` at QoS 0.
        packet_id: Option<PacketId>,
    },
    /// A Packet Identifier whose exchange is unfinished.
    #[error("packet identifier {packet_id} is in use")]
    PacketIdInUse {
        /// The identifier.
        packet_id: PacketId,
    },
    /// More unacknowledged QoS 1 and 2 messages than our Receive Maximum.
    #[error("receive maximum {max} exceeded")]
    ReceiveMaximumExceeded {
        /// What we announced.
        max: u16,
    },
    /// Nothing arrived for one and a half times the Keep Alive.
    #[error("keep alive expired")]
    KeepAliveTimeout,
    /// No CONNECT within the handshake deadline; closed without an answer.
    #[error("no CONNECT in time")]
    ConnectTimeout,
    /// CONNECT names an Authentication Method that we do not serve.
    #[error("authentication method is not served")]
    AuthMethodUnsupported,
    /// 3.1.1: empty ClientID without Clean Session.
    #[error("empty client identifier needs a clean session")]
    EmptyClientId,
}

impl Violation {
    /// What a 5.0 peer hears. Before CONNACK it goes there, later on DISCONNECT, PUBACK, PUBREC or SUBACK.
    #[must_use]
    pub const fn reason_code(&self) -> ReasonCode {
        match self {
            Self::VarintTooLong
            | Self::VarintNotMinimal
            | Self::ReservedFlags { .. }
            | Self::ReservedPacketType { .. }
            | Self::Truncated { .. }
            | Self::TrailingBytes { .. }
            | Self::ConnectReservedFlag
            | Self::WillFlags { .. }
            | Self::PasswordWithoutUserName
            | Self::Text(_)
            | Self::UnknownProperty { .. }
            | Self::PropertyMisplaced { .. }
            | Self::PropertyLength { .. }
            | Self::PublishQos3
            | Self::DupWithQos0
            | Self::PacketIdZero { .. }
            | Self::SubscribeOptions { .. }
            | Self::ConnackFlags { .. } => ReasonCode::MalformedPacket,
            Self::SecondConnect
            | Self::BeforeConnect { .. }
            | Self::UnknownProtocol
            | Self::PropertyRepeated { .. }
            | Self::PropertyValue { .. }
            | Self::AuthMethodMissing
            | Self::ResponseTopic
            | Self::EmptyTopic
            | Self::TopicAliasUnknown { .. }
            | Self::SubscriptionIdFromClient
            | Self::NoFilters { .. }
            | Self::RetainHandling
            | Self::SharedNoLocal
            | Self::AckCode { .. }
            | Self::WrongDirection { .. }
            | Self::UnexpectedAuth
            | Self::SessionExpiryRaised => ReasonCode::ProtocolError,
            Self::PacketTooLarge { .. } => ReasonCode::PacketTooLarge,
            Self::UnsupportedVersion { .. } => ReasonCode::UnsupportedProtocolVersion,
            Self::TopicWildcard | Self::WillTopic | Self::TopicTooBig { .. } => {
                ReasonCode::TopicNameInvalid
            }
            Self::TopicAliasRange { .. } => ReasonCode::TopicAliasInvalid,
            Self::QosNotSupported { .. } => ReasonCode::QosNotSupported,
            Self::RetainNotSupported => ReasonCode::RetainNotSupported,
            Self::Filter(_) => ReasonCode::TopicFilterInvalid,
            Self::UserPropertyQuota { .. } => ReasonCode::QuotaExceeded,
            Self::PacketIdInUse { .. } => ReasonCode::PacketIdentifierInUse,
            Self::ReceiveMaximumExceeded { .. } => ReasonCode::ReceiveMaximumExceeded,
            Self::KeepAliveTimeout | Self::ConnectTimeout => ReasonCode::KeepAliveTimeout,
            Self::AuthMethodUnsupported => ReasonCode::BadAuthenticationMethod,
            Self::EmptyClientId => ReasonCode::ClientIdentifierNotValid,
        }
    }

    /// How far it goes.
    #[must_use]
    pub const fn reach(&self) -> Reach {
        match self {
            Self::Filter(_) => Reach::Subscription,
            Self::TopicTooBig { .. }
            | Self::UserPropertyQuota { .. }
            | Self::PacketIdInUse { .. } => Reach::Message,
            _ => Reach::Connection,
        }
    }

    /// The identifier of the message a [`Reach::Message`] is about; `None` at QoS 0.
    #[must_use]
    pub const fn packet_id(&self) -> Option<PacketId> {
        match self {
            Self::TopicTooBig { packet_id, .. } | Self::UserPropertyQuota { packet_id, .. } => {
                *packet_id
            }
            Self::PacketIdInUse { packet_id } => Some(*packet_id),
            _ => None,
        }
    }

    /// The same fact about the message with this identifier.
    #[must_use]
    pub(crate) const fn about(mut self, id: Option<PacketId>) -> Self {
        if let Self::TopicTooBig { packet_id, .. } | Self::UserPropertyQuota { packet_id, .. } =
            &mut self
        {
            *packet_id = id;
        }
        self
    }

    /// Stable id of the rule: `mqtt_3_5_NN` is row NN of the bad-input table, the others name their section.
    #[must_use]
    pub const fn rule(&self) -> &'static str {
        match self {
            Self::VarintTooLong | Self::VarintNotMinimal => "mqtt_3_5_01",
            Self::PacketTooLarge { .. } => "mqtt_3_5_02",
            Self::ReservedFlags { .. } => "mqtt_3_5_03",
            Self::ReservedPacketType { .. } => "mqtt_3_5_04",
            Self::Truncated { .. } | Self::TrailingBytes { .. } => "mqtt_3_5_05",
            Self::ConnectReservedFlag | Self::WillFlags { .. } | Self::PasswordWithoutUserName => {
                "mqtt_3_5_06"
            }
            Self::SecondConnect | Self::BeforeConnect { .. } => "mqtt_3_5_07",
            Self::Text(TextError::Disallowed { .. }) => "mqtt_3_5_09",
            Self::Text(_) => "mqtt_3_5_08",
            Self::UnknownProperty { .. }
            | Self::PropertyMisplaced { .. }
            | Self::PropertyLength { .. } => "mqtt_3_5_10",
            Self::PropertyRepeated { .. }
            | Self::PropertyValue { .. }
            | Self::AuthMethodMissing => "mqtt_3_5_11",
            Self::PublishQos3 => "mqtt_3_5_12",
            Self::DupWithQos0 => "mqtt_3_5_13",
            Self::PacketIdZero {
                packet: PacketType::Publish,
            } => "mqtt_3_5_14",
            Self::PacketIdZero {
                packet: PacketType::Subscribe | PacketType::Unsubscribe,
            } => "mqtt_3_5_20",
            Self::PacketIdZero { .. } => "mqtt_3_5_23",
            Self::TopicWildcard | Self::ResponseTopic | Self::WillTopic => "mqtt_3_5_15",
            Self::EmptyTopic => "mqtt_3_5_16",
            Self::TopicAliasRange { .. } | Self::TopicAliasUnknown { .. } => "mqtt_3_5_17",
            Self::SubscriptionIdFromClient => "mqtt_3_5_18",
            Self::QosNotSupported { .. } | Self::RetainNotSupported => "mqtt_3_5_19",
            Self::NoFilters { .. } | Self::SubscribeOptions { .. } | Self::RetainHandling => {
                "mqtt_3_5_20"
            }
            Self::Filter(FilterError::TooDeep { .. }) | Self::TopicTooBig { .. } => "mqtt_3_5_27",
            Self::Filter(_) => "mqtt_3_5_21",
            Self::SharedNoLocal => "mqtt_3_5_22",
            Self::AckCode { .. } | Self::ConnackFlags { .. } => "mqtt_3_5_23",
            Self::WrongDirection { .. } => "mqtt_3_5_24",
            Self::SessionExpiryRaised => "mqtt_3_5_25",
            Self::UnknownProtocol | Self::UnsupportedVersion { .. } => "mqtt_3_1_version",
            Self::UnexpectedAuth => "mqtt_3_2_auth",
            Self::UserPropertyQuota { .. } => "mqtt_3_3_user_property",
            Self::PacketIdInUse { .. } => "mqtt_3_4_id_in_use",
            Self::ReceiveMaximumExceeded { .. } => "mqtt_8_1_receive_maximum",
            Self::KeepAliveTimeout => "mqtt_8_3_keep_alive",
            Self::ConnectTimeout => "mqtt_3_1_handshake_timeout",
            Self::AuthMethodUnsupported => "mqtt_3_3_auth_method",
            Self::EmptyClientId => "mqtt_3_4_client_id",
        }
    }
}

impl From<TextError> for Violation {
    fn from(error: TextError) -> Self {
        Self::Text(error)
    }
}
