use bytes::Bytes;
use weida_bridge::{DropCause, Outcome, Refusal};

use super::world::{Setup, Step, World, message, secs, sized};
use crate::config::valid::Overflow;

/// Room for two messages, one of them at the destination.
fn small(overflow: Overflow) -> World {
    let world = World::new(Setup {
        overflow,
        messages: 2,
        in_flight: 1,
        ..Setup::default()
    });
    world
        .destination
        .otherwise(Step::After(secs(1), Outcome::Receipt));
    world
}

/// The source is not read while the route is full, and read again as soon as one message ended.
#[tokio::test(start_paused = true)]
async fn gateway_9_block_holds_the_source() {
    let world = small(Overflow::Block);
    let first = world.hand_in(message("1")).await;
    let second = world.hand_in(message("2")).await;
    assert!(world.is_blocked());
    first.await.unwrap();
    assert!(!world.is_blocked());
    second.await.unwrap();
    assert_eq!(world.parts.ledger.snapshot().dropped.total(), 0);
}

/// Sources that wait are let in in the order they came.
#[tokio::test(start_paused = true)]
async fn gateway_9_blocked_sources_are_served_first_come_first_served() {
    let world = small(Overflow::Block);
    let mut ends = Vec::new();
    for payload in ["1", "2", "3", "4", "5", "6"] {
        ends.push(world.hand_in(message(payload)).await);
    }
    for end in ends {
        assert_eq!(end.await.unwrap(), Outcome::Receipt);
    }
    assert_eq!(world.destination.payloads(), ["1", "2", "3", "4", "5", "6"]);
}

/// A blocked source shows, and only while it waits.
#[tokio::test(start_paused = true)]
async fn gateway_rule_6_a_blocked_source_is_counted_while_it_waits() {
    let world = small(Overflow::Block);
    let _first = world.hand_in(message("1")).await;
    let second = world.hand_in(message("2")).await;
    let mut ingress = world.ingress.clone();
    let mut waiting = tokio_test::task::spawn(async move { ingress.ready().await.map(|_| ()) });
    assert!(waiting.poll().is_pending());
    assert_eq!(world.parts.stats.blocked(), 1);
    second.await.unwrap();
    assert!(waiting.is_woken());
    assert!(waiting.poll().is_ready());
    assert_eq!(world.parts.stats.blocked(), 0);
}

/// A clone does not inherit the place of the one that waited, and a dropped one gives it back.
#[tokio::test(start_paused = true)]
async fn tower_a_place_belongs_to_the_service_that_was_polled() {
    let world = World::new(Setup {
        messages: 1,
        in_flight: 1,
        ..Setup::default()
    });
    let mut holder = world.ingress.clone();
    holder.ready().await.unwrap();
    assert!(world.is_blocked());
    drop(holder.clone());
    assert!(world.is_blocked());
    drop(holder);
    assert!(!world.is_blocked());
}

#[tokio::test(start_paused = true)]
async fn gateway_9_reject_tells_the_source() {
    let world = small(Overflow::Reject);
    let first = world.hand_in(message("1")).await;
    let second = world.hand_in(message("2")).await;
    assert_eq!(world.send("3").await, Outcome::Refused(Refusal::QueueFull));
    assert_eq!(first.await.unwrap(), Outcome::Receipt);
    assert_eq!(second.await.unwrap(), Outcome::Receipt);
    let row = world.parts.ledger.snapshot();
    assert_eq!(
        (
            row.delivered,
            row.dropped.of(DropCause::QueueFull),
            row.difference()
        ),
        (2, 1, 0)
    );
}

#[tokio::test(start_paused = true)]
async fn gateway_9_drop_newest_drops_the_message_that_came_last() {
    let world = small(Overflow::DropNewest);
    let first = world.hand_in(message("1")).await;
    let second = world.hand_in(message("2")).await;
    assert_eq!(
        world.send("3").await,
        Outcome::Dropped(DropCause::QueueFull)
    );
    assert_eq!(
        (first.await.unwrap(), second.await.unwrap()),
        (Outcome::Receipt, Outcome::Receipt)
    );
    assert_eq!(world.destination.payloads(), ["1", "2"]);
}

/// The one that waits longest goes; the one being sent stays.
#[tokio::test(start_paused = true)]
async fn gateway_9_drop_oldest_drops_the_message_that_waits_longest() {
    let world = small(Overflow::DropOldest);
    let first = world.hand_in(message("1")).await;
    let second = world.hand_in(message("2")).await;
    let third = world.hand_in(message("3")).await;
    let fourth = world.hand_in(message("4")).await;
    assert_eq!(
        second.await.unwrap(),
        Outcome::Dropped(DropCause::QueueFull)
    );
    assert_eq!(third.await.unwrap(), Outcome::Dropped(DropCause::QueueFull));
    assert_eq!(first.await.unwrap(), Outcome::Receipt);
    assert_eq!(fourth.await.unwrap(), Outcome::Receipt);
    assert_eq!(world.destination.payloads(), ["1", "4"]);
    let row = world.parts.ledger.snapshot();
    assert_eq!(
        (
            row.delivered,
            row.dropped.of(DropCause::QueueFull),
            row.difference()
        ),
        (2, 2, 0)
    );
    assert_eq!(
        (world.parts.room.messages(), world.parts.room.kib()),
        (0, 0)
    );
}

/// With everything at the destination there is no oldest to push out.
#[tokio::test(start_paused = true)]
async fn gateway_9_drop_oldest_never_drops_what_is_being_sent() {
    let world = World::new(Setup {
        overflow: Overflow::DropOldest,
        messages: 1,
        in_flight: 1,
        ..Setup::default()
    });
    world
        .destination
        .otherwise(Step::After(secs(1), Outcome::Receipt));
    let first = world.hand_in(message("1")).await;
    assert_eq!(
        world.send("2").await,
        Outcome::Dropped(DropCause::QueueFull)
    );
    assert_eq!(first.await.unwrap(), Outcome::Receipt);
}

/// Bytes, not counts, protect memory: few large messages fill a route that has room for thousands.
#[tokio::test(start_paused = true)]
async fn gateway_9_bytes_bound_the_room() {
    let world = World::new(Setup {
        bytes: 64 << 10,
        in_flight: 100,
        ..Setup::default()
    });
    world
        .destination
        .otherwise(Step::After(secs(1), Outcome::Receipt));
    let big = || sized(Bytes::from(vec![0; 31 << 10]));
    let first = world.hand_in(big()).await;
    let second = world.hand_in(big()).await;
    assert_eq!(world.parts.room.kib(), 64);
    assert!(world.is_blocked());
    first.await.unwrap();
    second.await.unwrap();
    assert_eq!(world.parts.room.kib(), 0);
    assert!(!world.is_blocked());
}

/// A message larger than all of the room passes alone; it does not wait for ever.
#[tokio::test(start_paused = true)]
async fn gateway_9_a_message_larger_than_the_room_passes_alone() {
    let world = World::new(Setup {
        bytes: 4 << 10,
        ..Setup::default()
    });
    let outcome = world
        .hand_in(sized(Bytes::from(vec![0; 100 << 10])))
        .await
        .await
        .unwrap();
    assert_eq!(outcome, Outcome::Receipt);
}

/// Sources that are all ready at once and together want more bytes than there are: none waits for another for ever.
#[tokio::test(start_paused = true)]
async fn gateway_9_ready_sources_never_wait_for_each_other() {
    let world = World::new(Setup {
        bytes: 8 << 10,
        ..Setup::default()
    });
    let mut ready = Vec::new();
    for _ in 0..8 {
        let mut ingress = world.ingress.clone();
        ingress.ready().await.unwrap();
        ready.push(ingress);
    }
    let ends: Vec<_> = ready
        .iter_mut()
        .map(|ingress| tower_service::Service::call(ingress, sized(Bytes::from(vec![0; 6 << 10]))))
        .collect();
    for end in ends {
        assert_eq!(
            tokio::time::timeout(secs(5), end).await.unwrap().unwrap(),
            Outcome::Receipt
        );
    }
}

/// An empty payload is not free: a flood of them is bounded by count and by the KiB each is charged. [weida INV-14]
#[tokio::test(start_paused = true)]
async fn inv_14_empty_messages_are_charged_too() {
    let world = World::new(Setup {
        bytes: 3 << 10,
        in_flight: 100,
        ..Setup::default()
    });
    world.destination.otherwise(Step::Never);
    let mut ends = Vec::new();
    for _ in 0..3 {
        ends.push(world.hand_in(message("")).await);
    }
    assert!(world.is_blocked());
}
