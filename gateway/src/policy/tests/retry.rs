use std::time::Duration;

use tokio::time::Instant;
use weida_bridge::{DropCause, FabricErrorKind, Outcome, Refusal};

use super::world::{Setup, Step, World, message, secs};
use crate::config::valid::Retry;
use crate::policy::stats::RetryCause;

/// An unknown outcome is sent again where it may be, and counted as a possible duplicate.
#[tokio::test(start_paused = true)]
async fn gateway_9_an_unknown_outcome_is_repeated_at_least_once() {
    let world = World::new(Setup::default());
    world.destination.then(Step::Answer(Outcome::Indeterminate));
    assert_eq!(world.send("x").await, Outcome::Receipt);
    assert_eq!(world.destination.payloads(), ["x", "x"]);
    assert_eq!(world.parts.stats.duplicates_possible(), 1);
    let row = world.parts.ledger.snapshot();
    assert_eq!(
        (
            row.received,
            row.delivered,
            row.indeterminate,
            row.difference()
        ),
        (1, 1, 1, 0)
    );
}

/// The valid neighbour: at-most-once is never sent twice.
#[tokio::test(start_paused = true)]
async fn gateway_9_an_unknown_outcome_is_final_at_most_once() {
    let world = World::new(Setup {
        at_most_once: true,
        ..Setup::default()
    });
    world.destination.then(Step::Answer(Outcome::Indeterminate));
    assert_eq!(world.send("x").await, Outcome::Indeterminate);
    assert_eq!(world.destination.payloads(), ["x"]);
    assert_eq!(world.parts.stats.duplicates_possible(), 0);
    assert_eq!(world.parts.ledger.snapshot().indeterminate, 1);
}

/// A no is a no; only "not now" is asked again.
#[tokio::test(start_paused = true)]
async fn gateway_9_a_definite_refusal_is_never_repeated() {
    let world = World::new(Setup::default());
    for refusal in [
        Refusal::Rejected,
        Refusal::UnknownEndpoint,
        Refusal::Unsupported,
    ] {
        world
            .destination
            .then(Step::Answer(Outcome::Refused(refusal.clone())));
        assert_eq!(world.send("x").await, Outcome::Refused(refusal));
    }
    assert_eq!(world.destination.seen().len(), 3);
    world
        .destination
        .then(Step::Answer(Outcome::Refused(Refusal::LimitExceeded(None))));
    assert_eq!(world.send("y").await, Outcome::Receipt);
    assert_eq!(world.parts.stats.retries(RetryCause::Refused), 1);
}

/// The last attempt that the route allows ends the message, and the lane goes on.
#[tokio::test(start_paused = true)]
async fn gateway_14_attempts_end() {
    let world = World::new(Setup {
        max_attempts: 3,
        ..Setup::default()
    });
    for _ in 0..3 {
        world.destination.then(Step::Answer(Outcome::Indeterminate));
    }
    assert_eq!(
        world.send("poison").await,
        Outcome::Dropped(DropCause::AttemptsExhausted)
    );
    let numbers: Vec<_> = world
        .destination
        .seen()
        .iter()
        .map(|seen| seen.number)
        .collect();
    assert_eq!(numbers, [1, 2, 3]);
    assert_eq!(world.send("next").await, Outcome::Receipt);
    assert_eq!(world.parts.ledger.snapshot().difference(), 0);
}

/// The attempt that takes too long is cut, and its outcome is unknown.
#[tokio::test(start_paused = true)]
async fn gateway_9_the_attempt_timeout_is_per_try() {
    let world = World::new(Setup {
        attempt_timeout: Some(secs(2)),
        ..Setup::default()
    });
    world.destination.then(Step::Never).then(Step::Never);
    let start = Instant::now();
    assert_eq!(world.send("x").await, Outcome::Receipt);
    assert!(start.elapsed() >= secs(4), "two tries of 2 s were cut");
    assert_eq!(world.parts.stats.retries(RetryCause::Timeout), 2);
    assert_eq!(world.parts.stats.attempt_time().count(), 3);
}

/// The budget is spent: messages wait for tokens, with back-off, and none is dropped.
#[tokio::test(start_paused = true)]
async fn gateway_9_an_exhausted_budget_waits_and_never_drops() {
    // One token a second and none from traffic; the window of 1 s holds one.
    let retry = Retry {
        budget_ratio: 0.0,
        min_per_second: 1,
        window: secs(1),
        ..Retry::default()
    };
    let world = World::new(Setup {
        retry,
        ..Setup::default()
    });
    for _ in 0..8 {
        world
            .destination
            .then(Step::Answer(Outcome::Refused(Refusal::LimitExceeded(None))));
    }
    let start = Instant::now();
    let mut ends = Vec::new();
    for _ in 0..8 {
        ends.push(world.hand_in(message("x")).await);
    }
    for end in ends {
        assert_eq!(end.await.unwrap(), Outcome::Receipt);
    }
    assert!(
        start.elapsed() >= secs(6),
        "8 retries at one a second, took {:?}",
        start.elapsed()
    );
    assert!(world.parts.stats.budget_exhaustions() >= 1);
    let row = world.parts.ledger.snapshot();
    assert_eq!(
        (row.delivered, row.dropped.total(), row.difference()),
        (8, 0, 0)
    );
}

/// Traffic earns tokens: a fifth of it may be retries.
#[tokio::test(start_paused = true)]
async fn gateway_9_traffic_pays_for_a_fifth_of_itself() {
    let retry = Retry {
        budget_ratio: 0.2,
        min_per_second: 0,
        window: secs(10),
        ..Retry::default()
    };
    let world = World::new(Setup {
        retry,
        ..Setup::default()
    });
    for _ in 0..10 {
        world.send("x").await;
    }
    for _ in 0..2 {
        world
            .destination
            .then(Step::Answer(Outcome::Refused(Refusal::QueueFull)));
        assert_eq!(world.send("y").await, Outcome::Receipt);
    }
    assert_eq!(world.parts.stats.budget_exhaustions(), 0);
    // Two tokens were earned by ten, some by two more; a third one is not there yet.
    world
        .destination
        .then(Step::Answer(Outcome::Refused(Refusal::QueueFull)));
    let third = world.hand_in(message("z")).await;
    assert!(tokio::time::timeout(secs(2), third).await.is_err());
    assert_eq!(world.parts.stats.budget_exhaustions(), 1);
}

/// A cut connection costs no tokens: what was in flight is sent again once, all of it.
#[tokio::test(start_paused = true)]
async fn gateway_8_a_reconnect_resends_everything_once() {
    let retry = Retry {
        budget_ratio: 0.0,
        min_per_second: 0,
        window: secs(10),
        ..Retry::default()
    };
    let world = World::new(Setup {
        retry,
        ..Setup::default()
    });
    for _ in 0..50 {
        world.destination.then(Step::Fail(FabricErrorKind::Away));
    }
    let mut ends = Vec::new();
    for _ in 0..50 {
        ends.push(world.hand_in(message("x")).await);
    }
    for end in ends {
        assert_eq!(
            tokio::time::timeout(secs(1), end).await.unwrap().unwrap(),
            Outcome::Receipt
        );
    }
    assert_eq!(world.destination.seen().len(), 100);
    assert_eq!(
        world.parts.stats.duplicates_possible(),
        0,
        "nothing had been sent"
    );
    assert_eq!(world.parts.stats.budget_exhaustions(), 0);
}

/// A retry holds its permit for the whole sequence, so it is one message at the destination.
#[tokio::test(start_paused = true)]
async fn gateway_9_a_retry_holds_its_permit() {
    let world = World::new(Setup {
        in_flight: 1,
        ..Setup::default()
    });
    world.destination.then(Step::Answer(Outcome::Indeterminate));
    let first = world.hand_in(message("1")).await;
    let second = world.hand_in(message("2")).await;
    assert_eq!(
        (first.await.unwrap(), second.await.unwrap()),
        (Outcome::Receipt, Outcome::Receipt)
    );
    assert_eq!(world.destination.payloads(), ["1", "1", "2"]);
}

/// Waits grow, stay below the bound, and differ between messages.
#[tokio::test(start_paused = true)]
async fn gateway_9_back_off_grows_with_jitter() {
    let retry = Retry {
        min_per_second: 1000,
        backoff_min: Duration::from_millis(100),
        backoff_max: secs(1),
        ..Retry::default()
    };
    let world = World::new(Setup {
        retry,
        ..Setup::default()
    });
    for _ in 0..6 {
        world.destination.then(Step::Answer(Outcome::Indeterminate));
    }
    world.send("x").await;
    let seen = world.destination.seen();
    let waits: Vec<_> = seen
        .windows(2)
        .map(|pair| pair[1].at - pair[0].at)
        .collect();
    for (step, wait) in waits.iter().enumerate() {
        let full = Duration::from_millis(100 << step).min(secs(1));
        let slack = Duration::from_millis(1);
        assert!(
            *wait >= full / 2 && *wait <= full + slack,
            "wait {step} was {wait:?} of {full:?}"
        );
    }
}

/// What is retrying shows, and only while it waits.
#[tokio::test(start_paused = true)]
async fn gateway_rule_6_retrying_is_counted_while_it_waits() {
    let world = World::new(Setup::default());
    world.destination.then(Step::Answer(Outcome::Indeterminate));
    let end = world.hand_in(message("x")).await;
    tokio::task::yield_now().await;
    assert_eq!(world.parts.stats.retrying(), 1);
    end.await.unwrap();
    assert_eq!(world.parts.stats.retrying(), 0);
}
