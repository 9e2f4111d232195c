use super::*;

fn reply(achieved: Option<Level>) -> Outcome {
    Outcome::Reply(Box::new(Reply {
        achieved,
        ..Reply::default()
    }))
}

/// The whole table: rows are outcomes, columns sent, receipt, accepted, stored, processed, reply.
#[test]
fn reconciled_r5_satisfies_table() {
    let fanned = |copies, dropped| Outcome::Fanned { copies, dropped };
    let rows: &[(Outcome, &str)] = &[
        (fanned(1, 0), "y....."),
        (fanned(3, 9), "y....."),
        (fanned(0, 0), "......"),
        (fanned(0, 4), "......"),
        (Outcome::Receipt, "yy...."),
        (Outcome::Accepted, "yyy..."),
        (Outcome::Stored, "yyyy.."),
        (Outcome::Processed, "yyyyy."),
        (reply(None), "yy...y"),
        (reply(Some(Level::Sent)), "yy...y"),
        (reply(Some(Level::Receipt)), "yy...y"),
        (reply(Some(Level::Accepted)), "yyy..y"),
        (reply(Some(Level::Stored)), "yyyy.y"),
        (reply(Some(Level::Processed)), "yyyyyy"),
        (Outcome::Refused(Refusal::Rejected), "......"),
        (Outcome::Dropped(DropCause::QueueFull), "......"),
        (
            Outcome::DeadLettered(DropCause::AttemptsExhausted),
            "......",
        ),
        (Outcome::Filtered, "......"),
        (Outcome::Expired, "......"),
        (Outcome::Indeterminate, "......"),
    ];
    for (outcome, expected) in rows {
        let got: String = AckOn::ALL
            .iter()
            .map(|ack| if outcome.satisfies(*ack) { 'y' } else { '.' })
            .collect();
        assert_eq!(&got, expected, "{outcome:?}");
    }
}

#[test]
fn levels_are_ordered() {
    let mut levels = [
        Level::Processed,
        Level::Sent,
        Level::Stored,
        Level::Receipt,
        Level::Accepted,
    ];
    levels.sort();
    let words: Vec<_> = levels.iter().map(|level| level.as_str()).collect();
    assert_eq!(
        words,
        ["sent", "receipt", "accepted", "stored", "processed"]
    );
}

/// The closed enum, letter for letter. [gateway 6]
#[test]
fn gateway_6_drop_causes_are_the_closed_list() {
    let labels: Vec<_> = DropCause::ALL.iter().map(|cause| cause.as_str()).collect();
    assert_eq!(
        labels.join(" "),
        "queue_full rate_limited too_large bad_name name_too_long bad_payload unroutable \
         refused_by_destination not_authorized expired attempts_exhausted loop no_subscriber \
         qos0_disconnected meta_too_large store_full shutdown internal"
    );
    for (at, cause) in DropCause::ALL.iter().enumerate() {
        assert_eq!(cause.index(), at);
    }
}

#[test]
fn reconciled_3_refusals_have_one_cause() {
    let rows = [
        (Refusal::Rejected, "refused_by_destination"),
        (
            Refusal::LimitExceeded(Some("too many".into())),
            "refused_by_destination",
        ),
        (Refusal::UnknownEndpoint, "unroutable"),
        (Refusal::Unsupported, "unroutable"),
        (Refusal::NotAuthorized, "not_authorized"),
        (Refusal::QueueFull, "queue_full"),
        (Refusal::TooLarge, "too_large"),
        (Refusal::BadName, "bad_name"),
        (Refusal::RateLimited, "rate_limited"),
    ];
    for (refusal, cause) in rows {
        assert_eq!(refusal.cause().as_str(), cause, "{refusal:?}");
    }
}

#[test]
fn nobody_is_told_apart_from_dropped_copies() {
    assert!(
        Outcome::Fanned {
            copies: 0,
            dropped: 0
        }
        .reached_nobody()
    );
    assert!(Outcome::Dropped(DropCause::NoSubscriber).reached_nobody());
    assert!(
        !Outcome::Fanned {
            copies: 0,
            dropped: 1
        }
        .reached_nobody()
    );
    assert!(
        !Outcome::Fanned {
            copies: 1,
            dropped: 0
        }
        .reached_nobody()
    );
}
