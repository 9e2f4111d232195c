//! Frame kinds and where each may stand.

use std::fmt;

use crate::error::DecodeError;

/// What a stream carries. Codes 9 and above are a violation, never skipped. [weida S17-4]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum FrameKind {
    /// Negotiation input; header only.
    Hello = 0,
    /// A transfer: header, then payload until FIN.
    Data = 1,
    /// Refusal of an exchange; header only, on a reply half only.
    Error = 2,
    /// Interest in a publisher's topics; header only, never answered.
    Subscribe = 3,
    /// Withdrawal of a SUBSCRIBE; header only.
    Unsubscribe = 4,
    /// Delivery limit of a queue consumer; header only.
    Credit = 5,
    /// Report about one transfer: header, then (level, offset) records.
    Cursor = 6,
    /// A datagram flow, held open for its life.
    Flow = 7,
    /// One side's view of the QUIC path: header, then records.
    Report = 8,
}

/// Which half of which stream a frame opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// A unidirectional stream.
    Uni,
    /// The opener's half of a bidirectional stream.
    Exchange,
    /// The other half of a bidirectional stream.
    Reply,
}

impl FrameKind {
    /// Every kind, in code order.
    pub const ALL: [Self; 9] = [
        Self::Hello,
        Self::Data,
        Self::Error,
        Self::Subscribe,
        Self::Unsubscribe,
        Self::Credit,
        Self::Cursor,
        Self::Flow,
        Self::Report,
    ];

    /// The code on the wire.
    pub const fn to_u8(self) -> u8 {
        self as u8
    }

    /// The kind of a code, if this version defines it.
    pub const fn from_u8(code: u8) -> Option<Self> {
        Some(match code {
            0 => Self::Hello,
            1 => Self::Data,
            2 => Self::Error,
            3 => Self::Subscribe,
            4 => Self::Unsubscribe,
            5 => Self::Credit,
            6 => Self::Cursor,
            7 => Self::Flow,
            8 => Self::Report,
            _ => return None,
        })
    }

    /// Whether opaque payload follows the header.
    pub const fn has_payload(self) -> bool {
        matches!(self, Self::Data)
    }

    /// Checks that this kind may stand at `position`.
    ///
    /// ERROR on a one-way stream is judged after HELLO, a wrong kind opening an exchange at once.
    /// [wire 17]
    ///
    /// # Errors
    ///
    /// [`DecodeError::MisplacedKind`] where the table of [wire 6] has no such pair.
    pub const fn check_position(self, position: Position) -> Result<(), DecodeError> {
        let allowed = match position {
            Position::Uni => !matches!(self, Self::Error),
            Position::Exchange => matches!(self, Self::Data),
            Position::Reply => matches!(self, Self::Data | Self::Error),
        };
        if allowed {
            Ok(())
        } else {
            Err(DecodeError::MisplacedKind { kind: self.to_u8() })
        }
    }
}

impl fmt::Display for FrameKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Hello => "HELLO",
            Self::Data => "DATA",
            Self::Error => "ERROR",
            Self::Subscribe => "SUBSCRIBE",
            Self::Unsubscribe => "UNSUBSCRIBE",
            Self::Credit => "CREDIT",
            Self::Cursor => "CURSOR",
            Self::Flow => "FLOW",
            Self::Report => "REPORT",
        })
    }
}
