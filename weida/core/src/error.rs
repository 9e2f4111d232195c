//! The one error type users of weida match on, and the causes it carries.
//!
//! Variants are shaped by outcome, not by cause: what an application has to know first is whether
//! the transfer certainly had no effect. [wire 24]

use std::{fmt, io, sync::Arc};

use crate::{codes, identity::Fingerprint};

/// Result of a weida operation.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Everything that can go wrong in a weida operation.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The runtime could not be created or used, for instance without an ambient reactor.
    #[error("runtime: {0}")]
    Runtime(String),
    /// A text is not a weida address.
    #[error("invalid address: {0}")]
    InvalidAddress(String),
    /// A text is not an endpoint path.
    #[error("invalid endpoint path")]
    InvalidEndpointPath,
    /// A text is not `sha256:` and 64 hex digits.
    #[error("invalid fingerprint: {0:?}")]
    InvalidFingerprint(String),
    /// Something is registered at this path already.
    #[error("endpoint path is already registered")]
    AlreadyRegistered,
    /// The endpoint has no usable peer.
    #[error("not connected")]
    NotConnected,
    /// The connection was lost before the local FIN: certainly not delivered.
    #[error("connection lost: {0}")]
    ConnectionLost(LossCause),
    /// No common version, capability or guarantee.
    #[error("negotiation failed: {0}")]
    Negotiation(String),
    /// The wire protocol was violated.
    #[error("protocol violation: {0}")]
    Protocol(String),
    /// The peer refused the transfer.
    #[error("rejected by the peer")]
    Rejected,
    /// The peer has nothing at the path.
    #[error("no endpoint at the path")]
    UnknownEndpoint,
    /// What the peer has at the path does not serve this.
    #[error("not supported at the path")]
    Unsupported,
    /// A stream toward a local-socket peer was needed and the peer had parked no connection.
    #[error("the peer has parked no connection")]
    NoParkedConnection,
    /// The request was accepted and will not be answered. It may have had an effect.
    #[error("the peer will not reply")]
    NoReply,
    /// The transfer was cancelled by either side.
    #[error("canceled")]
    Canceled,
    /// The transfer's deadline passed before the peer acknowledged every byte. It may have been read.
    #[error("expired before the peer acknowledged it")]
    Expired,
    /// The connection was lost after the local FIN: delivered or not, nobody can know.
    #[error("outcome unknown: the connection was lost after the transfer was finished")]
    Indeterminate,
    /// A limit was passed: a local one (`None`), or the peer's, with what it said.
    #[error("limit exceeded{}", Tail(.0.as_ref()))]
    LimitExceeded(Option<CloseReason>),
    /// The connection carries no datagrams.
    #[error("the connection carries no datagrams")]
    DatagramsUnavailable,
    /// A datagram is larger than the connection carries.
    #[error("datagram is larger than {max} bytes")]
    TooLarge {
        /// Largest payload the connection carries now, in bytes.
        max: usize,
    },
    /// TLS material or the handshake failed, other than by an untrusted key.
    #[error("tls: {0}")]
    Tls(String),
    /// The peer proved a key that is not trusted; this is the key it presented.
    #[error("untrusted peer key {0}")]
    Untrusted(Fingerprint),
    /// An operating-system I/O failure.
    #[error("i/o: {0}")]
    Io(#[source] io::Error),
    /// A transport failure without a variant of its own.
    #[error("transport: {0}")]
    Transport(String),
}

impl Error {
    /// Whether this proves that the transfer had no effect at the peer.
    ///
    /// False for [`Error::Indeterminate`], [`Error::NoReply`] and [`Error::Expired`], which are
    /// unknowns, and for configuration and parse errors, which are not outcomes of a transfer.
    pub const fn is_definite_failure(&self) -> bool {
        matches!(
            self,
            Self::ConnectionLost(_)
                | Self::Rejected
                | Self::UnknownEndpoint
                | Self::Unsupported
                | Self::NoParkedConnection
                | Self::Canceled
                | Self::NotConnected
                | Self::LimitExceeded(_)
                | Self::DatagramsUnavailable
                | Self::TooLarge { .. }
                | Self::Untrusted(_)
        )
    }

    /// The sentence that came with the close or the violation, where there is one. For logs only.
    pub fn close_reason(&self) -> Option<&str> {
        match self {
            Self::LimitExceeded(Some(reason))
            | Self::ConnectionLost(LossCause::PeerClosed(Some(reason))) => Some(reason.text()),
            Self::Negotiation(text) | Self::Protocol(text) => Some(text),
            _ => None,
        }
    }
}

impl From<io::Error> for Error {
    /// Gives back the weida error a stream carried through the I/O traits; any other is [`Error::Io`].
    fn from(error: io::Error) -> Self {
        match error.downcast::<Self>() {
            Ok(ours) => ours,
            Err(foreign) => Self::Io(foreign),
        }
    }
}

impl From<Error> for io::Error {
    /// Carries the weida error inside, under the closest I/O kind.
    fn from(error: Error) -> Self {
        let kind = match error {
            Error::Io(inner) => return inner,
            Error::NotConnected => io::ErrorKind::NotConnected,
            Error::ConnectionLost(_) | Error::Indeterminate => io::ErrorKind::ConnectionAborted,
            Error::Canceled => io::ErrorKind::ConnectionReset,
            Error::Rejected => io::ErrorKind::ConnectionRefused,
            Error::UnknownEndpoint => io::ErrorKind::NotFound,
            Error::Unsupported | Error::DatagramsUnavailable => io::ErrorKind::Unsupported,
            Error::Expired => io::ErrorKind::TimedOut,
            Error::AlreadyRegistered => io::ErrorKind::AlreadyExists,
            Error::Untrusted(_) | Error::Tls(_) => io::ErrorKind::PermissionDenied,
            Error::InvalidAddress(_)
            | Error::InvalidEndpointPath
            | Error::InvalidFingerprint(_)
            | Error::TooLarge { .. } => io::ErrorKind::InvalidInput,
            Error::Protocol(_) | Error::Negotiation(_) => io::ErrorKind::InvalidData,
            _ => io::ErrorKind::Other,
        };
        Self::new(kind, error)
    }
}

impl From<ErrorCode> for Error {
    fn from(code: ErrorCode) -> Self {
        match code {
            ErrorCode::UnknownEndpoint => Self::UnknownEndpoint,
            ErrorCode::Rejected => Self::Rejected,
            ErrorCode::Unsupported => Self::Unsupported,
            ErrorCode::Internal => Self::Transport("the peer failed internally".into()),
            ErrorCode::NoReply => Self::NoReply,
        }
    }
}

impl From<StopReason> for Error {
    fn from(reason: StopReason) -> Self {
        match reason {
            StopReason::Rejected | StopReason::ShuttingDown => Self::Rejected,
            StopReason::Canceled => Self::Canceled,
            StopReason::UnknownEndpoint => Self::UnknownEndpoint,
            StopReason::Unsupported => Self::Unsupported,
            StopReason::LimitExceeded => Self::LimitExceeded(None),
            StopReason::Other(code) => Self::Transport(format!("stopped with code {code}")),
        }
    }
}

/// Why a connection is gone. The outcome for what was in flight is the same whichever it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LossCause {
    /// No traffic for the shorter of the two idle timeouts.
    #[error("idle timeout")]
    IdleTimeout,
    /// The peer closed on purpose; the reason is what it said, if it said anything.
    #[error("closed by the peer{}", Tail(.0.as_ref()))]
    PeerClosed(Option<CloseReason>),
    /// The peer's server is being replaced; a redial is due at once.
    #[error("the peer is restarting")]
    PeerRestarting,
    /// This side closed it.
    #[error("closed locally")]
    LocallyClosed,
    /// The peer has forgotten the connection.
    #[error("stateless reset")]
    Reset,
    /// A QUIC transport error.
    #[error("transport error")]
    TransportError,
}

/// Code and sentence of a peer's CONNECTION_CLOSE. The sentence is for people, never interpreted.
#[derive(Clone, PartialEq, Eq)]
pub struct CloseReason {
    code: u64,
    text: Arc<str>,
}

impl CloseReason {
    /// Longest sentence kept, in bytes.
    pub const MAX_TEXT_BYTES: usize = 256;

    /// Keeps at most [`Self::MAX_TEXT_BYTES`] bytes of the phrase, lossily as UTF-8.
    pub fn new(code: u64, phrase: &[u8]) -> Self {
        let phrase = &phrase[..phrase.len().min(Self::MAX_TEXT_BYTES)];
        let mut text = String::from_utf8_lossy(phrase).into_owned();
        // A replacement character is longer than the byte it replaces.
        while text.len() > Self::MAX_TEXT_BYTES {
            text.pop();
        }
        Self {
            code,
            text: text.into(),
        }
    }

    /// The application code; see [`codes`].
    pub const fn code(&self) -> u64 {
        self.code
    }

    /// The sentence, unescaped. Escape it before it reaches a terminal or a log.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for CloseReason {
    /// One line whatever the peer wrote: control characters are escaped.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", codes::name(self.code), self.code)?;
        if self.text.is_empty() {
            Ok(())
        } else {
            write!(f, " {:?}", &*self.text)
        }
    }
}

impl fmt::Debug for CloseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CloseReason({self})")
    }
}

/// Codes of an ERROR frame. [wire 16.1]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorCode {
    /// Nothing is registered at the path.
    UnknownEndpoint,
    /// The receiving side declined.
    Rejected,
    /// The path serves another pattern.
    Unsupported,
    /// The receiving side failed.
    Internal,
    /// Accepted, but no reply will come.
    NoReply,
}

impl ErrorCode {
    /// The number on the wire.
    pub const fn to_wire(self) -> u64 {
        match self {
            Self::UnknownEndpoint => 1,
            Self::Rejected => 2,
            Self::Unsupported => 3,
            Self::Internal => 4,
            Self::NoReply => 5,
        }
    }

    /// The code of a number, if this version defines one. An unknown number is no violation.
    pub const fn from_wire(code: u64) -> Option<Self> {
        Some(match code {
            1 => Self::UnknownEndpoint,
            2 => Self::Rejected,
            3 => Self::Unsupported,
            4 => Self::Internal,
            5 => Self::NoReply,
            _ => return None,
        })
    }
}

/// Why a peer stopped or reset one half of a stream. Built by [`codes::stop_reason`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StopReason {
    /// The application declined.
    Rejected,
    /// The peer lost interest.
    Canceled,
    /// Nothing at the path.
    UnknownEndpoint,
    /// The path serves another kind of stream.
    Unsupported,
    /// The endpoint is at a bound, for instance a pair that has its peer.
    LimitExceeded,
    /// The peer is draining or closing.
    ShuttingDown,
    /// Any other code.
    Other(u64),
}

/// Prints `: reason` or nothing.
struct Tail<'a>(Option<&'a CloseReason>);

impl fmt::Display for Tail<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |reason| write!(f, ": {reason}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn every_variant() -> Vec<Error> {
        let reason = CloseReason::new(5, b"257 filters");
        vec![
            Error::Runtime("r".into()),
            Error::InvalidAddress("a".into()),
            Error::InvalidEndpointPath,
            Error::InvalidFingerprint("f".into()),
            Error::AlreadyRegistered,
            Error::NotConnected,
            Error::ConnectionLost(LossCause::PeerClosed(Some(reason.clone()))),
            Error::Negotiation("n".into()),
            Error::Protocol("p".into()),
            Error::Rejected,
            Error::UnknownEndpoint,
            Error::Unsupported,
            Error::NoParkedConnection,
            Error::NoReply,
            Error::Canceled,
            Error::Expired,
            Error::Indeterminate,
            Error::LimitExceeded(Some(reason)),
            Error::DatagramsUnavailable,
            Error::TooLarge { max: 7 },
            Error::Tls("t".into()),
            Error::Untrusted(Fingerprint::from_bytes([3; 32])),
            Error::Io(io::Error::from(io::ErrorKind::AddrInUse)),
            Error::Transport("x".into()),
        ]
    }

    #[test]
    fn tx_9_every_outcome_survives_io_error() {
        for (before, again) in every_variant().into_iter().zip(every_variant()) {
            let text = before.to_string();
            let back = Error::from(io::Error::from(before));
            assert_eq!(back.to_string(), text);
            assert_eq!(
                std::mem::discriminant(&back),
                std::mem::discriminant(&again)
            );
        }
    }

    #[test]
    fn definite_failures_are_exactly_the_listed_ones() {
        let definite = every_variant()
            .iter()
            .filter(|e| e.is_definite_failure())
            .count();
        assert_eq!(definite, 11);
        for unknown in [Error::Indeterminate, Error::NoReply, Error::Expired] {
            assert!(!unknown.is_definite_failure());
        }
    }

    #[test]
    fn s17_30_the_close_phrase_is_kept_bounded_and_printed_on_one_line() {
        let reason = CloseReason::new(codes::LIMIT_EXCEEDED, b"too many\nfilters\x1b[2J");
        assert_eq!(reason.text(), "too many\nfilters\u{1b}[2J");
        let error = Error::LimitExceeded(Some(reason));
        assert_eq!(error.close_reason(), Some("too many\nfilters\u{1b}[2J"));
        assert!(!error.to_string().contains(['\n', '\u{1b}']));
        assert!(CloseReason::new(0, &[0xFF; 5000]).text().len() <= CloseReason::MAX_TEXT_BYTES);
        assert_eq!(Error::LimitExceeded(None).close_reason(), None);
    }

    #[test]
    fn wire_16_1_error_codes_round_trip() {
        for number in 1..=5 {
            assert_eq!(ErrorCode::from_wire(number).unwrap().to_wire(), number);
        }
        assert_eq!(
            (ErrorCode::from_wire(0), ErrorCode::from_wire(6)),
            (None, None)
        );
    }
}
