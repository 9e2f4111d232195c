//! QUIC application codes of CONNECTION_CLOSE, RESET_STREAM and STOP_SENDING. [wire 16.2]
//!
//! Numbers only, so that the codec stays free of transport types. First free code: 11.

use crate::error::StopReason;

/// Orderly close by something that is not this protocol.
pub const NO_ERROR: u64 = 0;
/// Failure of this side.
pub const INTERNAL: u64 = 1;
/// The peer broke the wire protocol.
pub const PROTOCOL_VIOLATION: u64 = 2;
/// The transfer is no longer wanted.
pub const CANCELED: u64 = 3;
/// No common version, capability or guarantee, or no HELLO in time.
pub const NEGOTIATION_FAILED: u64 = 4;
/// A resource limit was passed. Never used for policy. [weida S17-13]
pub const LIMIT_EXCEEDED: u64 = 5;
/// The runtime or binding is closing or draining.
pub const SHUTDOWN: u64 = 6;
/// The receiving application declined.
pub const REJECTED: u64 = 7;
/// Nothing is registered at the path.
pub const UNKNOWN_ENDPOINT: u64 = 8;
/// Something is registered at the path, but it does not serve this kind of stream.
pub const UNSUPPORTED: u64 = 9;
/// The binding is handed to a successor; the address is served again at once.
pub const RESTARTING: u64 = 10;

/// Name of a code for logs; `"UNKNOWN"` for a number this version does not define.
pub const fn name(code: u64) -> &'static str {
    match code {
        NO_ERROR => "NO_ERROR",
        INTERNAL => "INTERNAL",
        PROTOCOL_VIOLATION => "PROTOCOL_VIOLATION",
        CANCELED => "CANCELED",
        NEGOTIATION_FAILED => "NEGOTIATION_FAILED",
        LIMIT_EXCEEDED => "LIMIT_EXCEEDED",
        SHUTDOWN => "SHUTDOWN",
        REJECTED => "REJECTED",
        UNKNOWN_ENDPOINT => "UNKNOWN_ENDPOINT",
        UNSUPPORTED => "UNSUPPORTED",
        RESTARTING => "RESTARTING",
        _ => "UNKNOWN",
    }
}

/// What a STOP_SENDING or RESET_STREAM code tells the other half of the stream.
pub const fn stop_reason(code: u64) -> StopReason {
    match code {
        REJECTED => StopReason::Rejected,
        CANCELED => StopReason::Canceled,
        UNKNOWN_ENDPOINT => StopReason::UnknownEndpoint,
        UNSUPPORTED => StopReason::Unsupported,
        LIMIT_EXCEEDED => StopReason::LimitExceeded,
        SHUTDOWN => StopReason::ShuttingDown,
        other => StopReason::Other(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    #[test]
    fn wire_16_2_codes_are_dense_and_named() {
        let names = (0..11).map(name).collect::<std::collections::HashSet<_>>();
        assert_eq!(names.len(), 11);
        assert!(!names.contains("UNKNOWN"));
        assert_eq!(name(11), "UNKNOWN");
    }

    #[test]
    fn wire_16_2_stop_codes_read_as_typed_outcomes() {
        let outcome = |code| Error::from(stop_reason(code)).to_string();
        assert_eq!(outcome(REJECTED), Error::Rejected.to_string());
        assert_eq!(outcome(CANCELED), Error::Canceled.to_string());
        assert_eq!(
            outcome(UNKNOWN_ENDPOINT),
            Error::UnknownEndpoint.to_string()
        );
        assert_eq!(outcome(UNSUPPORTED), Error::Unsupported.to_string());
        assert_eq!(
            outcome(LIMIT_EXCEEDED),
            Error::LimitExceeded(None).to_string()
        );
        assert_eq!(outcome(SHUTDOWN), Error::Rejected.to_string());
        assert!(
            matches!(Error::from(stop_reason(77)), Error::Transport(text) if text.contains("77"))
        );
    }
}
