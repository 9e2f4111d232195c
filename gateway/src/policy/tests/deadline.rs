use tokio::time::{Instant, advance};
use weida_bridge::{DropCause, FabricErrorKind, Outcome};

use super::world::{Setup, Step, World, message, secs};

fn ten_seconds() -> Setup {
    Setup {
        timeout: Some(secs(10)),
        ..Setup::default()
    }
}

/// The route's clock ends a message whose attempts go on and on: it covers all of them.
#[tokio::test(start_paused = true)]
async fn gateway_9_the_timeout_covers_retries_and_all_attempts() {
    let world = World::new(Setup {
        attempt_timeout: Some(secs(1)),
        max_attempts: 1000,
        ..ten_seconds()
    });
    world.destination.otherwise(Step::Never);
    let start = Instant::now();
    assert_eq!(world.send("x").await, Outcome::Dropped(DropCause::Expired));
    assert_eq!(start.elapsed(), secs(10));
    assert!(
        world.destination.seen().len() > 1,
        "it was tried more than once"
    );
}

/// tower's `timeout` starts at the call; here the wait behind another message counts as well.
#[tokio::test(start_paused = true)]
async fn gateway_9_the_timeout_covers_the_wait_for_readiness() {
    let world = World::new(Setup {
        in_flight: 1,
        ..ten_seconds()
    });
    world
        .destination
        .then(Step::After(secs(60), Outcome::Receipt));
    let start = Instant::now();
    let second = message("second");
    advance(secs(3)).await;
    let _first = world.hand_in(message("first")).await;
    let outcome = world.hand_in(second).await.await.unwrap();
    assert_eq!(
        (outcome, start.elapsed()),
        (Outcome::Dropped(DropCause::Expired), secs(10))
    );
    assert_eq!(
        world.destination.payloads(),
        ["first"],
        "the second never left"
    );
}

/// A message that its source held while the route was not ready is as old as its first byte here.
#[tokio::test(start_paused = true)]
async fn gateway_9_the_timeout_counts_from_the_moment_the_source_was_read() {
    let world = World::new(ten_seconds());
    let old = message("x");
    advance(secs(11)).await;
    let outcome = world.hand_in(old).await.await.unwrap();
    assert_eq!(outcome, Outcome::Dropped(DropCause::Expired));
    assert!(world.destination.seen().is_empty());
}

/// Waiting is not failing: while the destination is away the clock stands still and nothing counts as an attempt.
#[tokio::test(start_paused = true)]
async fn r8_the_timeout_stands_still_while_the_destination_is_away() {
    let world = World::new(Setup {
        attempt_timeout: Some(secs(2)),
        ..ten_seconds()
    });
    world.go_away();
    let mut pending = tokio_test::task::spawn(world.hand_in(message("x")).await);
    advance(secs(3600)).await;
    assert!(pending.poll().is_pending());
    assert!(world.destination.seen().is_empty());
    world.come();
    assert_eq!(pending.await.unwrap(), Outcome::Receipt);
    assert_eq!(world.destination.seen()[0].number, 1);
}

/// The clock goes on where it stopped, it does not start over.
#[tokio::test(start_paused = true)]
async fn r8_the_timeout_goes_on_when_the_destination_returns() {
    let world = World::new(Setup {
        in_flight: 1,
        ..ten_seconds()
    });
    world.destination.otherwise(Step::Never);
    let start = Instant::now();
    let pending = tokio_test::task::spawn(world.hand_in(message("x")).await);
    advance(secs(4)).await;
    world.go_away();
    advance(secs(100)).await;
    world.come();
    assert_eq!(pending.await.unwrap(), Outcome::Dropped(DropCause::Expired));
    assert_eq!(start.elapsed(), secs(110));
}

/// The message's own lifetime never stands still.
#[tokio::test(start_paused = true)]
async fn r8_expires_at_runs_while_the_destination_is_away() {
    let world = World::new(ten_seconds());
    world.go_away();
    let start = Instant::now();
    let mut short = message("x");
    short.expires_at = Some(start + secs(5));
    let outcome = world.hand_in(short).await.await.unwrap();
    assert_eq!((outcome, start.elapsed()), (Outcome::Expired, secs(5)));
    let row = world.parts.ledger.snapshot();
    assert_eq!(
        (row.expired, row.dropped.total(), row.difference()),
        (1, 0, 0)
    );
}

/// Somebody waits for the answer of a request, so its clock runs on. [reconciled 3, "destination away"]
#[tokio::test(start_paused = true)]
async fn reconciled_3_a_request_ends_at_its_timeout_even_when_the_destination_is_away() {
    let world = World::new(Setup {
        exchange: true,
        at_most_once: true,
        ..ten_seconds()
    });
    world.go_away();
    let start = Instant::now();
    assert_eq!(world.send("x").await, Outcome::Dropped(DropCause::Expired));
    assert_eq!(start.elapsed(), secs(10));
}

/// A request cut in the middle may have been acted on; nobody may call that a definite failure. [weida TX-13]
#[tokio::test(start_paused = true)]
async fn tx_13_an_attempt_cut_by_the_deadline_is_indeterminate() {
    let world = World::new(Setup {
        exchange: true,
        at_most_once: true,
        ..ten_seconds()
    });
    world.destination.then(Step::Never);
    assert_eq!(world.send("x").await, Outcome::Indeterminate);
    assert_eq!(world.parts.ledger.snapshot().indeterminate, 1);
}

/// A destination that says it is away before anything was sent is waited for, on every kind of route.
#[tokio::test(start_paused = true)]
async fn r8_a_destination_found_away_is_no_attempt() {
    let world = World::new(Setup {
        at_most_once: true,
        max_attempts: 1,
        ..ten_seconds()
    });
    world
        .destination
        .then(Step::Fail(FabricErrorKind::NotConnected))
        .then(Step::Fail(FabricErrorKind::Away));
    assert_eq!(world.send("x").await, Outcome::Receipt);
    let numbers: Vec<_> = world
        .destination
        .seen()
        .iter()
        .map(|seen| seen.number)
        .collect();
    assert_eq!(numbers, [1, 1, 1]);
}
