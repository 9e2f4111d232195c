//! Why a transfer failed, with what the error alone does not say.

use std::fmt;

use weida_core::{Error, StopReason, codes};

use crate::connection::SendFail;

/// A failed transfer: its outcome, and the reason the peer gave on the stream.
///
/// [`Error`] sorts by what the sender may conclude, so a peer that declines and
/// a peer that is shutting down are both [`Error::Rejected`]. Whoever wants to
/// send again needs to tell them apart: a refusal holds, a drain ends.
/// [`TransferFailure::is_shutdown`] does. `[weida DR-4]`, `[wire 16.2]`
#[derive(Debug)]
pub struct TransferFailure {
    error: Error,
    stop: Option<StopReason>,
}

impl TransferFailure {
    pub(crate) fn new(error: Error, stop: Option<StopReason>) -> Self {
        Self { error, stop }
    }

    /// The outcome, as the shorter methods return it.
    #[must_use]
    pub const fn error(&self) -> &Error {
        &self.error
    }

    /// Gives the outcome back.
    #[must_use]
    pub fn into_error(self) -> Error {
        self.error
    }

    /// What the peer stopped or reset the stream with; `None` when something
    /// else ended it, for instance a typed answer or a lost connection.
    #[must_use]
    pub const fn stop_reason(&self) -> Option<StopReason> {
        self.stop
    }

    /// Whether the peer refused because it is closing or draining: certainly
    /// not taken, and worth another try at its successor.
    #[must_use]
    pub const fn is_shutdown(&self) -> bool {
        matches!(self.stop, Some(StopReason::ShuttingDown))
    }
}

impl From<Error> for TransferFailure {
    fn from(error: Error) -> Self {
        Self::new(error, None)
    }
}

impl From<TransferFailure> for Error {
    fn from(failure: TransferFailure) -> Self {
        failure.error
    }
}

impl fmt::Display for TransferFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)?;
        if self.is_shutdown() {
            f.write_str(": it is shutting down")?;
        }
        Ok(())
    }
}

impl std::error::Error for TransferFailure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

/// The reason in a failed write or receipt, if the peer gave one.
pub(super) fn stop_of(fail: &SendFail) -> Option<StopReason> {
    match fail {
        SendFail::Stopped(code) => Some(codes::stop_reason(*code)),
        SendFail::Lost(_) | SendFail::Closed => None,
    }
}
