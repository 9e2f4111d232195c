//! What the end of a connection or a stream means to the application.
//!
//! One table each way: a QUIC close or stop code in, an outcome out. The
//! sentence a peer closed with is kept and handed on, never interpreted.
//! `[wire 16.2, 24]`, `[weida 7.2, S17-30]`

use quinn::ConnectionError;
use weida_core::{CloseReason, Error, LossCause, codes};

use super::halves::{RecvFail, SendFail};

/// Why this side closed a connection, kept because QUIC only remembers that it
/// did.
#[derive(Clone, Debug)]
pub(crate) enum LocalClose {
    /// The application or the runtime decided.
    Decided,
    /// The peer broke the protocol.
    Violation(String),
    /// The two sides could not agree.
    Negotiation(String),
}

/// Why the connection is gone.
pub(crate) fn loss_cause(error: &ConnectionError) -> LossCause {
    match error {
        ConnectionError::TimedOut => LossCause::IdleTimeout,
        ConnectionError::LocallyClosed => LossCause::LocallyClosed,
        ConnectionError::Reset => LossCause::Reset,
        ConnectionError::ApplicationClosed(close) => match close.error_code.into_inner() {
            codes::RESTARTING => LossCause::PeerRestarting,
            code => LossCause::PeerClosed(Some(CloseReason::new(code, &close.reason))),
        },
        // Without an application code: a peer that closed before its handshake
        // was confirmed, or whose QUIC stack failed.
        ConnectionError::ConnectionClosed(_)
        | ConnectionError::TransportError(_)
        | ConnectionError::VersionMismatch
        | ConnectionError::CidsExhausted => LossCause::TransportError,
    }
}

/// The outcome of an operation that had not reached its FIN. `[wire 16.2]`
pub(crate) fn lost_before_fin(error: &ConnectionError, local: Option<&LocalClose>) -> Error {
    if let ConnectionError::LocallyClosed = error {
        return match local {
            Some(LocalClose::Violation(text)) => Error::Protocol(text.clone()),
            Some(LocalClose::Negotiation(text)) => Error::Negotiation(text.clone()),
            Some(LocalClose::Decided) | None => Error::ConnectionLost(LossCause::LocallyClosed),
        };
    }
    if let ConnectionError::ApplicationClosed(close) = error {
        let reason = CloseReason::new(close.error_code.into_inner(), &close.reason);
        return match reason.code() {
            codes::PROTOCOL_VIOLATION => Error::Protocol(spoken(&reason)),
            codes::NEGOTIATION_FAILED => Error::Negotiation(spoken(&reason)),
            codes::LIMIT_EXCEEDED => Error::LimitExceeded(Some(reason)),
            _ => Error::ConnectionLost(loss_cause(error)),
        };
    }
    Error::ConnectionLost(loss_cause(error))
}

/// The peer's sentence, or who closed when it gave none.
fn spoken(reason: &CloseReason) -> String {
    if reason.text().is_empty() {
        "closed by the peer without a reason".into()
    } else {
        reason.text().into()
    }
}

/// The outcome a stop code stands for.
pub(crate) fn stopped(code: u64) -> Error {
    codes::stop_reason(code).into()
}

/// A failed write as an outcome.
pub(crate) fn send_error(fail: SendFail, local: Option<&LocalClose>) -> Error {
    match fail {
        SendFail::Stopped(code) => stopped(code),
        SendFail::Lost(error) => lost_before_fin(&error, local),
        SendFail::Closed => Error::Canceled,
    }
}

/// A failed receipt as an outcome: after the FIN a loss decides nothing.
/// `[weida 7.2]`
pub(crate) fn receipt_error(fail: SendFail) -> Error {
    match fail {
        SendFail::Stopped(code) => stopped(code),
        SendFail::Lost(_) => Error::Indeterminate,
        SendFail::Closed => Error::Canceled,
    }
}

/// A failed read as an outcome. A reset is never an end of payload.
/// `[weida TX-4]`
pub(crate) fn recv_error(fail: RecvFail, local: Option<&LocalClose>) -> Error {
    match fail {
        RecvFail::Reset(_) | RecvFail::Closed => Error::Canceled,
        RecvFail::Lost(error) => lost_before_fin(&error, local),
    }
}
