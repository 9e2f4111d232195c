//! What a weida error says about a message: an outcome, or a fact about the way there [weida 7.6].

use weida::Error;
use weida_bridge::{FabricError, FabricErrorKind, Outcome, Refusal};

use crate::policy::message::Mark;
use crate::policy::stats::RetryCause;

/// Sorts the error of one attempt.
///
/// | Error | Answer |
/// | --- | --- |
/// | the peer said no | `Refused` |
/// | nobody can know | `Indeterminate` |
/// | certainly not sent, the way there is missing | `FabricError`, away: waited for, not counted |
/// | ours | `FabricError`, internal or configuration |
pub(super) fn sort(error: Error, mark: &Mark) -> Result<Outcome, FabricError> {
    let refused = |refusal| Ok(Outcome::Refused(refusal));
    match error {
        Error::Rejected => refused(Refusal::Rejected),
        Error::UnknownEndpoint => refused(Refusal::UnknownEndpoint),
        Error::Unsupported => refused(Refusal::Unsupported),
        Error::LimitExceeded(reason) => refused(Refusal::LimitExceeded(
            reason.map(|reason| reason.text().to_owned()),
        )),
        // The peer let the stream go without a verdict, a stalled header for instance: certainly not taken.
        Error::Canceled => refused(Refusal::LimitExceeded(None)),
        Error::TooLarge { .. } => refused(Refusal::TooLarge),
        Error::Indeterminate => {
            mark.last_cause(RetryCause::Disconnected);
            Ok(Outcome::Indeterminate)
        }
        Error::NoReply => {
            mark.last_cause(RetryCause::Nack);
            Ok(Outcome::Indeterminate)
        }
        Error::Expired => {
            mark.last_cause(RetryCause::Timeout);
            Ok(Outcome::Indeterminate)
        }
        // A transport failure does not say whether the message was read before it.
        Error::Transport(_) | Error::Io(_) => {
            mark.last_cause(RetryCause::Error);
            Ok(Outcome::Indeterminate)
        }
        Error::NotConnected => Err(FabricError::with_source(
            FabricErrorKind::NotConnected,
            error,
        )),
        Error::ConnectionLost(_)
        | Error::NoParkedConnection
        | Error::Negotiation(_)
        | Error::Tls(_)
        | Error::Untrusted(_) => Err(FabricError::with_source(FabricErrorKind::Away, error)),
        Error::InvalidAddress(_)
        | Error::InvalidEndpointPath
        | Error::InvalidFingerprint(_)
        | Error::AlreadyRegistered => Err(FabricError::with_source(
            FabricErrorKind::Configuration,
            error,
        )),
        other => Err(FabricError::with_source(FabricErrorKind::Internal, other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weida_core::LossCause;

    fn sorted(error: Error) -> (Result<Outcome, FabricErrorKind>, Option<RetryCause>) {
        let mark = Mark::new(tokio::time::Instant::now());
        let result = sort(error, &mark).map_err(|error| error.kind());
        (result, mark.take_cause())
    }

    /// A refusal of the peer is an outcome, in its own words. [weida BR-19]
    #[test]
    fn br_19_refusals_keep_their_kind() {
        for (error, refusal) in [
            (Error::Rejected, Refusal::Rejected),
            (Error::UnknownEndpoint, Refusal::UnknownEndpoint),
            (Error::Unsupported, Refusal::Unsupported),
            (Error::LimitExceeded(None), Refusal::LimitExceeded(None)),
        ] {
            assert_eq!(sorted(error).0, Ok(Outcome::Refused(refusal)));
        }
    }

    /// An unknown end is neither success nor failure. [weida TX-13] [weida BR-18]
    #[test]
    fn tx_13_unknown_ends_stay_unknown() {
        for error in [Error::Indeterminate, Error::NoReply, Error::Expired] {
            assert!(!error.is_definite_failure());
            assert_eq!(sorted(error).0, Ok(Outcome::Indeterminate));
        }
        assert_eq!(
            sorted(Error::Indeterminate).1,
            Some(RetryCause::Disconnected)
        );
        assert_eq!(sorted(Error::NoReply).1, Some(RetryCause::Nack));
    }

    /// What was certainly not sent may be sent again by anybody.
    #[test]
    fn runtime_7_6_definite_losses_are_away() {
        for error in [
            Error::NotConnected,
            Error::ConnectionLost(LossCause::IdleTimeout),
            Error::NoParkedConnection,
        ] {
            assert!(error.is_definite_failure());
            let kind = sorted(error).0.unwrap_err();
            assert_eq!(kind.retry(), weida_bridge::Retry::Safe);
        }
    }
}
