//! Who runs a message, what a panic or a cut does to it, how many run at once.

use weida_bridge::{DropCause, FabricErrorKind, Outcome};

use super::world::{Setup, Step, World, message, secs};

/// A session that ends right after its last publish takes nothing with it.
#[tokio::test(start_paused = true)]
async fn gateway_rule_2_a_message_goes_on_when_its_caller_is_gone() {
    let world = World::new(Setup {
        in_flight: 1,
        ..Setup::default()
    });
    world
        .destination
        .otherwise(Step::After(secs(1), Outcome::Receipt));
    drop(world.hand_in(message("1")).await);
    drop(world.hand_in(message("2")).await);
    world.parts.crew.finished().await;
    assert_eq!(world.destination.payloads(), ["1", "2"]);
    let row = world.parts.ledger.snapshot();
    assert_eq!((row.delivered, row.difference()), (2, 0));
}

/// A message that is done at once costs no task.
#[tokio::test(start_paused = true)]
async fn gateway_13_3_a_message_that_is_done_at_once_costs_no_task() {
    let world = World::new(Setup::default());
    let end = world.hand_in(message("1")).await;
    assert!(world.parts.crew.is_empty());
    assert_eq!(
        world.parts.ledger.snapshot().delivered,
        1,
        "before anybody polled the answer"
    );
    assert_eq!(end.await.unwrap(), Outcome::Receipt);
}

/// A permit lives until its message ended, and never more than `in_flight` do.
#[tokio::test(start_paused = true)]
async fn gateway_9_in_flight_bounds_the_attempts() {
    let world = World::new(Setup {
        in_flight: 3,
        ..Setup::default()
    });
    world
        .destination
        .otherwise(Step::After(secs(1), Outcome::Receipt));
    let mut ends = Vec::new();
    for _ in 0..10 {
        ends.push(world.hand_in(message("x")).await);
    }
    tokio::task::yield_now().await;
    let row = world.parts.ledger.snapshot();
    assert_eq!((row.in_flight, row.queued), (3, 7));
    for end in ends {
        end.await.unwrap();
    }
    assert_eq!(world.destination.most_running(), 3);
    let row = world.parts.ledger.snapshot();
    assert_eq!(
        (row.in_flight, row.queued, row.queued_bytes, row.delivered),
        (0, 0, 0, 10)
    );
}

/// The age of the oldest waiting message shows, and falls back to nothing.
#[tokio::test(start_paused = true)]
async fn gateway_6_the_oldest_age_shows() {
    let world = World::new(Setup {
        in_flight: 1,
        ..Setup::default()
    });
    world
        .destination
        .otherwise(Step::After(secs(10), Outcome::Receipt));
    let first = world.hand_in(message("1")).await;
    tokio::time::advance(secs(3)).await;
    let second = world.hand_in(message("2")).await;
    let age = || world.parts.crew.oldest_age(tokio::time::Instant::now());
    assert_eq!(age(), secs(3));
    first.await.unwrap();
    assert_eq!(age(), secs(7));
    second.await.unwrap();
    assert_eq!(age(), secs(0));
}

/// A panic ends its message and nothing else; five within a minute show as a broken route.
#[tokio::test(start_paused = true)]
async fn gateway_14_a_panic_ends_one_message() {
    let world = World::new(Setup::default());
    for round in 0..5 {
        let now = tokio::time::Instant::now();
        assert!(!world.parts.crew.is_broken(now), "after {round} panics");
        world.destination.then(Step::Panic);
        let error = world.hand_in(message("x")).await.await.unwrap_err();
        assert_eq!(error.kind(), FabricErrorKind::Internal);
    }
    assert!(world.parts.crew.is_broken(tokio::time::Instant::now()));
    assert_eq!(world.send("y").await, Outcome::Receipt);
    tokio::time::advance(secs(61)).await;
    assert!(!world.parts.crew.is_broken(tokio::time::Instant::now()));
    let row = world.parts.ledger.snapshot();
    assert_eq!(
        (
            row.dropped.of(DropCause::Internal),
            row.delivered,
            row.difference()
        ),
        (5, 1, 0)
    );
    assert_eq!(
        (world.parts.room.messages(), world.parts.room.kib()),
        (0, 0)
    );
}

/// The end of a drain's time ends every message, each under its cause.
#[tokio::test(start_paused = true)]
async fn gateway_7_3_a_cut_accounts_for_every_message() {
    let world = World::new(Setup {
        in_flight: 1,
        ..Setup::default()
    });
    world.destination.otherwise(Step::Never);
    let first = world.hand_in(message("at the destination")).await;
    let second = world.hand_in(message("waiting")).await;
    tokio::task::yield_now().await;
    world.cut.cancel();
    assert_eq!(first.await.unwrap_err().kind(), FabricErrorKind::Closed);
    assert_eq!(second.await.unwrap_err().kind(), FabricErrorKind::Closed);
    let row = world.parts.ledger.snapshot();
    assert_eq!(
        row.dropped.of(DropCause::Shutdown),
        1,
        "the one that waited"
    );
    assert_eq!(row.indeterminate, 1, "the one that may have arrived");
    assert_eq!(row.difference(), 0);
}
