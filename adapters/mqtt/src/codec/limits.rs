//! The bounds of one decoder.

/// What a [`Decoder`](super::Decoder) accepts at most. [MQTT5 3.1.2.11.4]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Largest whole packet, fixed header included. Default 1 MiB + 64 KiB. Checked against the declared
    /// Remaining Length before a byte of the body is buffered.
    pub max_packet_bytes: u32,
    /// Largest CONNECT, fixed header included: an unauthenticated peer cannot make us hold more. Default 64 KiB.
    pub max_connect_bytes: u32,
    /// Refuse control characters and noncharacters in text, beyond what the standard demands. Default on: it protects
    /// subscribers that validate. [MQTT5 1.5.4] [MQTT5 5.4.9.2]
    pub strict_utf8: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_packet_bytes: 1_114_112,
            max_connect_bytes: 65_536,
            strict_utf8: true,
        }
    }
}
