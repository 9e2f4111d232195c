//! Reason codes of both versions, and which packet may carry which. [MQTT5 2.4]

use super::{PacketType, Role, Version};

macro_rules! reason_codes {
    ($($(#[$meta:meta])* $name:ident = $code:literal,)+) => {
        /// One byte that says how something went; 0x80 and above is a refusal. [MQTT5 2.4]
        ///
        /// Named by its first meaning where several packets share a number: 0x00 is *Success*, *Normal disconnection*
        /// and *Granted QoS 0*.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
        #[repr(u8)]
        pub enum ReasonCode {
            $($(#[$meta])* $name = $code,)+
        }

        impl ReasonCode {
            /// Every code the standard knows.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// `None` for a number without a meaning.
            #[must_use]
            pub const fn from_code(code: u8) -> Option<Self> {
                match code {
                    $($code => Some(Self::$name),)+
                    _ => None,
                }
            }
        }
    };
}

reason_codes! {
    /// Success, normal disconnection, granted QoS 0.
    #[default]
    Success = 0x00,
    /// Granted QoS 1.
    GrantedQos1 = 0x01,
    /// Granted QoS 2.
    GrantedQos2 = 0x02,
    /// Disconnect with Will Message.
    DisconnectWithWill = 0x04,
    /// No matching subscribers.
    NoMatchingSubscribers = 0x10,
    /// No subscription existed.
    NoSubscriptionExisted = 0x11,
    /// Continue authentication.
    ContinueAuthentication = 0x18,
    /// Re-authenticate.
    ReAuthenticate = 0x19,
    /// Unspecified error.
    UnspecifiedError = 0x80,
    /// Malformed Packet.
    MalformedPacket = 0x81,
    /// Protocol Error.
    ProtocolError = 0x82,
    /// Implementation specific error.
    ImplementationSpecificError = 0x83,
    /// Unsupported Protocol Version.
    UnsupportedProtocolVersion = 0x84,
    /// Client Identifier not valid.
    ClientIdentifierNotValid = 0x85,
    /// Bad User Name or Password.
    BadUserNameOrPassword = 0x86,
    /// Not authorized.
    NotAuthorized = 0x87,
    /// Server unavailable.
    ServerUnavailable = 0x88,
    /// Server busy.
    ServerBusy = 0x89,
    /// Banned.
    Banned = 0x8A,
    /// Server shutting down.
    ServerShuttingDown = 0x8B,
    /// Bad authentication method.
    BadAuthenticationMethod = 0x8C,
    /// Keep Alive timeout.
    KeepAliveTimeout = 0x8D,
    /// Session taken over.
    SessionTakenOver = 0x8E,
    /// Topic Filter invalid.
    TopicFilterInvalid = 0x8F,
    /// Topic Name invalid.
    TopicNameInvalid = 0x90,
    /// Packet Identifier in use.
    PacketIdentifierInUse = 0x91,
    /// Packet Identifier not found.
    PacketIdentifierNotFound = 0x92,
    /// Receive Maximum exceeded.
    ReceiveMaximumExceeded = 0x93,
    /// Topic Alias invalid.
    TopicAliasInvalid = 0x94,
    /// Packet too large.
    PacketTooLarge = 0x95,
    /// Message rate too high.
    MessageRateTooHigh = 0x96,
    /// Quota exceeded.
    QuotaExceeded = 0x97,
    /// Administrative action.
    AdministrativeAction = 0x98,
    /// Payload format invalid.
    PayloadFormatInvalid = 0x99,
    /// Retain not supported.
    RetainNotSupported = 0x9A,
    /// QoS not supported.
    QosNotSupported = 0x9B,
    /// Use another server.
    UseAnotherServer = 0x9C,
    /// Server moved.
    ServerMoved = 0x9D,
    /// Shared Subscriptions not supported.
    SharedSubscriptionsNotSupported = 0x9E,
    /// Connection rate exceeded.
    ConnectionRateExceeded = 0x9F,
    /// Maximum connect time.
    MaximumConnectTime = 0xA0,
    /// Subscription Identifiers not supported.
    SubscriptionIdentifiersNotSupported = 0xA1,
    /// Wildcard Subscriptions not supported.
    WildcardSubscriptionsNotSupported = 0xA2,
}

impl ReasonCode {
    /// The byte on the wire.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Whether this is a refusal.
    #[must_use]
    pub const fn is_error(self) -> bool {
        self.code() >= 0x80
    }

    /// Whether a 5.0 packet of this type, sent by somebody in the role `sender`, may carry the code.
    /// [MQTT5 3.2.2.2] [MQTT5 3.4.2.1] [MQTT5 3.6.2.1] [MQTT5 3.9.3] [MQTT5 3.11.3] [MQTT5 3.14.2.1] [MQTT5 3.15.2.1]
    #[must_use]
    pub const fn may_stand_in(self, packet: PacketType, sender: Role) -> bool {
        let code = self.code();
        match packet {
            PacketType::Connack => matches!(
                code,
                0x00 | 0x80..=0x8A | 0x8C | 0x90 | 0x95 | 0x97 | 0x99..=0x9D | 0x9F
            ),
            PacketType::PubAck | PacketType::PubRec => {
                matches!(
                    code,
                    0x00 | 0x10 | 0x80 | 0x83 | 0x87 | 0x90 | 0x91 | 0x97 | 0x99
                )
            }
            PacketType::PubRel | PacketType::PubComp => matches!(code, 0x00 | 0x92),
            PacketType::Suback => matches!(
                code,
                0x00..=0x02 | 0x80 | 0x83 | 0x87 | 0x8F | 0x91 | 0x97 | 0x9E | 0xA1 | 0xA2
            ),
            PacketType::Unsuback => {
                matches!(code, 0x00 | 0x11 | 0x80 | 0x83 | 0x87 | 0x8F | 0x91)
            }
            PacketType::Disconnect => match sender {
                Role::Client => {
                    matches!(code, 0x00 | 0x04 | 0x80..=0x83 | 0x90 | 0x93..=0x99)
                }
                Role::Server => matches!(
                    code,
                    0x00 | 0x80..=0x83 | 0x87 | 0x89 | 0x8B | 0x8D..=0x90 | 0x93..=0xA2
                ),
            },
            PacketType::Auth => match sender {
                Role::Client => matches!(code, 0x18 | 0x19),
                Role::Server => matches!(code, 0x00 | 0x18),
            },
            PacketType::Connect
            | PacketType::Publish
            | PacketType::Subscribe
            | PacketType::Unsubscribe
            | PacketType::Pingreq
            | PacketType::Pingresp => false,
        }
    }

    /// The CONNACK return code that tells a 3.1.1 client the same, or `None` where 3.1.1 only has a close.
    /// [MQTT311 3.2.2.3]
    #[must_use]
    pub const fn connect_return_code(self) -> Option<u8> {
        match self {
            Self::Success => Some(0),
            Self::UnsupportedProtocolVersion => Some(1),
            Self::ClientIdentifierNotValid => Some(2),
            Self::ServerUnavailable | Self::QuotaExceeded | Self::ServerBusy => Some(3),
            Self::BadUserNameOrPassword => Some(4),
            Self::NotAuthorized | Self::RetainNotSupported | Self::QosNotSupported => Some(5),
            _ => None,
        }
    }

    /// The code that a 3.1.1 CONNACK return code stands for. [MQTT311 3.2.2.3]
    pub(super) const fn from_connect_return_code(code: u8) -> Option<Self> {
        Some(match code {
            0 => Self::Success,
            1 => Self::UnsupportedProtocolVersion,
            2 => Self::ClientIdentifierNotValid,
            3 => Self::ServerUnavailable,
            4 => Self::BadUserNameOrPassword,
            5 => Self::NotAuthorized,
            _ => return None,
        })
    }

    /// The byte of a SUBACK code in `version`: 3.1.1 knows one refusal only. [MQTT311 3.9.3]
    pub(super) const fn suback_byte(self, version: Version) -> u8 {
        match version {
            Version::V5 => self.code(),
            Version::V311 if self.is_error() => 0x80,
            Version::V311 => self.code(),
        }
    }
}
