//! What an outcome means to an MQTT publisher, and MQTT acknowledgements to weida.
//! [reconciled 3] [mqtt 3.4]

use weida_bridge::{AckOn, DropCause, FabricError, FabricErrorKind, Outcome, Refusal};

use crate::codec::ReasonCode;
use crate::io::{Refused, Verdict};
use crate::metrics::Cause;
use crate::router::Tally;

/// What a route asks of an outcome before its publisher hears success.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    pub(super) ack_on: AckOn,
    /// An unknown destination is not acknowledged at all.
    pub(super) hold_unroutable: bool,
}

/// The publisher's answer to what became of its message on one route.
pub(super) fn verdict(wanted: Wanted, result: &Result<Outcome, FabricError>) -> Verdict {
    match result {
        Ok(outcome) => of_outcome(wanted, outcome),
        Err(error) => of_error(error),
    }
}

fn of_outcome(wanted: Wanted, outcome: &Outcome) -> Verdict {
    if outcome.satisfies(wanted.ack_on) {
        return Verdict::Done;
    }
    if outcome.reached_nobody() {
        return Verdict::Nobody;
    }
    match outcome {
        Outcome::Refused(refusal) => of_refusal(wanted, refusal),
        Outcome::Dropped(cause) => of_drop(wanted, *cause),
        Outcome::DeadLettered(DropCause::Unroutable) => Verdict::Nobody,
        // Kept where the route says, or taken out on purpose: the publisher has nothing to do.
        Outcome::DeadLettered(_) | Outcome::Filtered | Outcome::Expired => Verdict::Done,
        // A fan-out whose subscribers all had full queues: at most once, and counted there.
        Outcome::Fanned { .. } if wanted.ack_on == AckOn::Sent => Verdict::Done,
        // A lower level than asked for certifies nothing.
        Outcome::Fanned { .. }
        | Outcome::Indeterminate
        | Outcome::Receipt
        | Outcome::Accepted
        | Outcome::Stored
        | Outcome::Processed
        | Outcome::Reply(_) => Verdict::Withheld,
    }
}

fn of_refusal(wanted: Wanted, refusal: &Refusal) -> Verdict {
    match refusal {
        Refusal::Rejected => refused(ReasonCode::ImplementationSpecificError, Cause::Internal),
        Refusal::UnknownEndpoint | Refusal::Unsupported => unroutable(wanted),
        Refusal::NotAuthorized => refused(ReasonCode::NotAuthorized, Cause::NotAuthorized),
        Refusal::BadName => refused(ReasonCode::TopicNameInvalid, Cause::BadName),
        Refusal::QueueFull | Refusal::LimitExceeded(_) => {
            refused(ReasonCode::QuotaExceeded, Cause::Limit)
        }
        Refusal::RateLimited => refused(ReasonCode::QuotaExceeded, Cause::RateLimited),
        Refusal::TooLarge => refused(ReasonCode::QuotaExceeded, Cause::TooLarge),
    }
}

fn of_drop(wanted: Wanted, cause: DropCause) -> Verdict {
    match cause {
        DropCause::NoSubscriber => Verdict::Nobody,
        DropCause::Unroutable => unroutable(wanted),
        DropCause::BadName => refused(ReasonCode::TopicNameInvalid, Cause::BadName),
        DropCause::NameTooLong => refused(ReasonCode::TopicNameInvalid, Cause::NameTooLong),
        DropCause::NotAuthorized => refused(ReasonCode::NotAuthorized, Cause::NotAuthorized),
        DropCause::QueueFull | DropCause::StoreFull => {
            refused(ReasonCode::QuotaExceeded, Cause::Limit)
        }
        DropCause::RateLimited => refused(ReasonCode::QuotaExceeded, Cause::RateLimited),
        DropCause::TooLarge => refused(ReasonCode::QuotaExceeded, Cause::TooLarge),
        DropCause::MetaTooLarge => refused(ReasonCode::QuotaExceeded, Cause::MetaTooLarge),
        DropCause::BadPayload => refused(ReasonCode::ImplementationSpecificError, Cause::Malformed),
        DropCause::RefusedByDestination | DropCause::Expired | DropCause::AttemptsExhausted => {
            refused(ReasonCode::ImplementationSpecificError, Cause::Internal)
        }
        // Seen before by this gateway: suppressed on purpose, there is nothing to send again.
        DropCause::Loop => Verdict::Done,
        DropCause::Qos0Disconnected | DropCause::Shutdown | DropCause::Internal => {
            Verdict::Withheld
        }
    }
}

fn of_error(error: &FabricError) -> Verdict {
    match error.kind() {
        FabricErrorKind::UnknownRoute | FabricErrorKind::Configuration => {
            refused(ReasonCode::ImplementationSpecificError, Cause::Internal)
        }
        // Away, unknown or closing: never success, never a definite no. [BR-18]
        _ => Verdict::Withheld,
    }
}

fn unroutable(wanted: Wanted) -> Verdict {
    if wanted.hold_unroutable {
        Verdict::Withheld
    } else {
        Verdict::Nobody
    }
}

pub(super) fn refused(code: ReasonCode, cause: Cause) -> Verdict {
    Verdict::Refused(Refused { code, cause })
}

/// The word a requester hears instead of an answer. [reconciled R6]
pub(super) fn error_word(result: &Result<Outcome, FabricError>) -> &'static str {
    use Outcome::{DeadLettered, Dropped, Expired, Filtered, Indeterminate, Refused};
    match result {
        Ok(Refused(Refusal::UnknownEndpoint | Refusal::Unsupported)) => "unknown-endpoint",
        Ok(Dropped(DropCause::Unroutable) | DeadLettered(DropCause::Unroutable)) => {
            "unknown-endpoint"
        }
        Ok(Refused(Refusal::TooLarge) | Dropped(DropCause::TooLarge)) => "too-large",
        Ok(Dropped(DropCause::Expired) | Expired) => "no-reply",
        Ok(Refused(_) | Dropped(_) | DeadLettered(_) | Filtered) => "rejected",
        Ok(Indeterminate) => "indeterminate",
        Ok(_) => "no-reply",
        Err(error) if error.kind() == FabricErrorKind::Timeout => "indeterminate",
        Err(_) => "no-reply",
    }
}

/// What the acknowledgements of all QoS 1 sessions amount to. [reconciled 4]
///
/// `receipt` means every one of them. A session that refused its copy, or whose own queue policy
/// dropped it, has its answer; a session that left has none.
pub(super) fn of_tally(tally: Tally) -> Outcome {
    match tally {
        Tally { lost: 1.., .. } => Outcome::Indeterminate,
        Tally {
            acked: 0,
            refused: 1..,
            ..
        } => Outcome::Refused(Refusal::QueueFull),
        _ => Outcome::Receipt,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(ack_on: AckOn) -> Wanted {
        Wanted {
            ack_on,
            hold_unroutable: false,
        }
    }

    fn code(verdict: Verdict) -> u8 {
        match verdict {
            Verdict::Done => 0x00,
            Verdict::Nobody => 0x10,
            Verdict::Refused(refused) => refused.code.code(),
            Verdict::Withheld => 0xff,
        }
    }

    /// The MQTT column of the table, row by row; 0xff = no PUBACK.
    #[test]
    fn reconciled_3_outcomes_become_puback_codes() {
        let rows = [
            (Outcome::Receipt, 0x00),
            (Outcome::Stored, 0x00),
            (Outcome::Dropped(DropCause::NoSubscriber), 0x10),
            (Outcome::DeadLettered(DropCause::RefusedByDestination), 0x00),
            (Outcome::DeadLettered(DropCause::Unroutable), 0x10),
            (Outcome::Refused(Refusal::Rejected), 0x83),
            (Outcome::Refused(Refusal::UnknownEndpoint), 0x10),
            (Outcome::Refused(Refusal::NotAuthorized), 0x87),
            (Outcome::Refused(Refusal::QueueFull), 0x97),
            (Outcome::Refused(Refusal::LimitExceeded(None)), 0x97),
            (Outcome::Refused(Refusal::BadName), 0x90),
            (Outcome::Dropped(DropCause::QueueFull), 0x97),
            (Outcome::Indeterminate, 0xff),
        ];
        for (outcome, expected) in rows {
            let got = code(verdict(wanted(AckOn::Receipt), &Ok(outcome.clone())));
            assert_eq!(got, expected, "{outcome:?}");
        }
        let fanned = |copies| Outcome::Fanned { copies, dropped: 0 };
        assert_eq!(code(verdict(wanted(AckOn::Sent), &Ok(fanned(2)))), 0x00);
        assert_eq!(code(verdict(wanted(AckOn::Sent), &Ok(fanned(0)))), 0x10);
    }

    /// A lower level than the route asks for never becomes a quieter success. [gateway 8]
    #[test]
    fn br_1_a_lower_level_is_no_success() {
        assert_eq!(
            verdict(wanted(AckOn::Stored), &Ok(Outcome::Receipt)),
            Verdict::Withheld
        );
        let reply = Outcome::Reply(Box::default());
        assert_eq!(
            verdict(wanted(AckOn::Stored), &Ok(reply)),
            Verdict::Withheld
        );
    }

    /// Indeterminate and away are never success and never a definite no.
    #[test]
    fn br_18_unknown_stays_unknown() {
        use FabricErrorKind::{Away, NotConnected, Timeout};
        for kind in [Away, NotConnected, Timeout] {
            let result = Err(FabricError::new(kind));
            assert_eq!(verdict(wanted(AckOn::Receipt), &result), Verdict::Withheld);
        }
        let hold = Wanted {
            ack_on: AckOn::Receipt,
            hold_unroutable: true,
        };
        let unknown = Ok(Outcome::Refused(Refusal::UnknownEndpoint));
        assert_eq!(verdict(hold, &unknown), Verdict::Withheld);
    }

    #[test]
    fn reconciled_4_receipt_is_every_session() {
        let tally = |acked, refused, lost| {
            of_tally(Tally {
                acked,
                refused,
                lost,
            })
        };
        assert_eq!(tally(2, 0, 0), Outcome::Receipt);
        assert_eq!(tally(1, 0, 1), Outcome::Indeterminate);
        assert_eq!(tally(0, 2, 0), Outcome::Refused(Refusal::QueueFull));
        assert_eq!(
            tally(0, 0, 0),
            Outcome::Receipt,
            "only QoS 0 sessions: nobody is waited for"
        );
    }
}
