//! Numbers and labels that packets carry. The labels are claims: nothing here can become an identity.

use std::fmt;
use std::num::{NonZeroU16, NonZeroU32};

use bytes::Bytes;

use super::{MAX_VARINT, TextError, Utf8Bytes};

/// Packet Identifier: never zero. [MQTT5 2.2.1]
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PacketId(NonZeroU16);

impl PacketId {
    /// `None` for zero, which no packet may carry.
    #[must_use]
    pub const fn new(value: u16) -> Option<Self> {
        match NonZeroU16::new(value) {
            Some(value) => Some(Self(value)),
            None => None,
        }
    }

    /// The number on the wire.
    #[must_use]
    pub const fn get(self) -> u16 {
        self.0.get()
    }
}

impl fmt::Display for PacketId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Subscription Identifier: 1 to 268 435 455. [MQTT5 3.8.2.1.2]
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SubscriptionId(NonZeroU32);

impl SubscriptionId {
    /// `None` for zero and for what 28 bits cannot hold.
    #[must_use]
    pub const fn new(value: u32) -> Option<Self> {
        if value > MAX_VARINT {
            return None;
        }
        match NonZeroU32::new(value) {
            Some(value) => Some(Self(value)),
            None => None,
        }
    }

    /// The number on the wire.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0.get()
    }
}

macro_rules! claim {
    ($(#[$meta:meta])* $name:ident) => {
        $(#[$meta])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(Utf8Bytes);

        impl $name {
            /// The label for a packet *we* write: our own in a client's CONNECT, one that our server assigns, or a
            /// configured one to compare with.
            ///
            /// # Errors
            ///
            /// [`TextError`] when the text cannot stand in an MQTT string.
            pub fn parse(text: &str) -> Result<Self, TextError> {
                Utf8Bytes::parse(text).map(Self)
            }

            pub(super) const fn from_wire(text: Utf8Bytes) -> Self {
                Self(text)
            }

            /// What the client wrote.
            #[must_use]
            pub fn as_str(&self) -> &str {
                self.0.as_str()
            }

            /// The same as bytes, without looking at them again.
            #[must_use]
            pub fn as_bytes(&self) -> &[u8] {
                self.0.as_bytes()
            }

            /// Whether nothing was written.
            #[must_use]
            pub fn is_empty(&self) -> bool {
                self.0.is_empty()
            }

            /// A copy that does not keep the read buffer alive.
            #[must_use]
            pub fn detached(&self) -> Self {
                Self(self.0.detached())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "claimed:{:?}", self.as_str())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "(claimed:{:?})"), self.as_str())
            }
        }
    };
}

claim! {
    /// Client Identifier: what a client says it is called. A session label, never an identity. [MQTT5 3.1.3.1]
    ///
    /// ```
    /// let id = weida_mqtt::codec::ClientId::parse("sensor-7")?;
    /// assert_eq!(id.to_string(), "claimed:\"sensor-7\"");
    /// # Ok::<(), weida_mqtt::codec::TextError>(())
    /// ```
    ClientId
}

claim! {
    /// User Name of a CONNECT, as claimed; a principal exists only after authentication. [MQTT5 3.1.3.5]
    UserName
}

/// Password of a CONNECT: bytes that are never printed. [MQTT5 3.1.3.6]
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Password(Bytes);

impl Password {
    /// For a CONNECT that we write.
    #[must_use]
    pub const fn new(secret: Bytes) -> Self {
        Self(secret)
    }

    /// The secret itself.
    #[must_use]
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(..)")
    }
}
