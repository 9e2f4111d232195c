use bytes::Bytes;
use weida_bridge::{DropCause, GatewayId, Outcome, Refusal};

use super::world::{OWN, Setup, World, message, sized};
use crate::config::valid::{Condition, Transform};
use crate::policy::stats::LoopKind;

/// All conditions must hold; what fails one is `filtered` and costs no room.
#[tokio::test(start_paused = true)]
async fn gateway_9_where_filters_before_any_queue() {
    let world = World::new(Setup {
        conditions: vec![
            Condition::ContentType("application/json".into()),
            Condition::MaxPayloadBytes(4),
        ],
        ..Setup::default()
    });
    let json = |payload: &'static str| {
        let mut envelope = message(payload);
        envelope.content_type = Some("application/json".into());
        envelope
    };
    assert_eq!(
        world.hand_in(json("1234")).await.await.unwrap(),
        Outcome::Receipt
    );
    assert_eq!(
        world.hand_in(json("12345")).await.await.unwrap(),
        Outcome::Filtered
    );
    assert_eq!(world.send("1").await, Outcome::Filtered);
    let row = world.parts.ledger.snapshot();
    assert_eq!((row.delivered, row.filtered, row.difference()), (1, 2, 0));
    assert_eq!(world.destination.payloads(), ["1234"]);
}

#[tokio::test(start_paused = true)]
async fn gateway_10_a_message_over_the_bound_is_refused() {
    let world = World::new(Setup::default());
    let at = |bytes: usize| sized(Bytes::from(vec![0; bytes]));
    assert_eq!(
        world.hand_in(at(1 << 20)).await.await.unwrap(),
        Outcome::Receipt
    );
    let over = world.hand_in(at((1 << 20) + 1)).await.await.unwrap();
    assert_eq!(over, Outcome::Refused(Refusal::TooLarge));
    assert_eq!(
        world
            .parts
            .ledger
            .snapshot()
            .dropped
            .of(DropCause::TooLarge),
        1
    );
}

#[tokio::test(start_paused = true)]
async fn gateway_9_set_drops_then_adds() {
    let setup = Setup {
        transform: Transform {
            content_type: Some("text/plain".into()),
            meta: vec![("site".into(), "plant-7".into())],
            drop_meta: vec!["x-internal-*".into(), "exact".into()],
        },
        ..Setup::default()
    };
    let world = World::new(setup.clone());
    let mut envelope = message("x");
    for (name, value) in [
        ("x-internal-id", "1"),
        ("exact", "2"),
        ("exactly", "3"),
        ("site", "old"),
        ("keep", "4"),
    ] {
        envelope.meta.push(name, value).unwrap();
    }
    let rules = super::world::terms(&setup, &world.parts).rules;
    rules
        .apply(&mut envelope, tokio::time::Instant::now())
        .unwrap();
    assert_eq!(envelope.content_type.as_deref(), Some("text/plain"));
    let left: Vec<_> = envelope.meta.iter().collect();
    assert_eq!(left, [("exactly", "3"), ("keep", "4"), ("site", "plant-7")]);
}

/// Our own mark means it was here; more marks than hops allowed mean it goes round elsewhere.
#[tokio::test(start_paused = true)]
async fn gateway_8_2_a_message_that_was_here_is_a_loop() {
    let world = World::new(Setup::default());
    let with = |ids: &[GatewayId]| {
        let mut envelope = message("x");
        for id in ids {
            envelope.via.push(*id).unwrap();
        }
        envelope
    };
    let other = |n: u8| GatewayId([n; 8]);
    let passed = [other(1), other(2), other(3), other(4)];
    assert_eq!(
        world.hand_in(with(&passed)).await.await.unwrap(),
        Outcome::Receipt
    );
    let looped = Outcome::Dropped(DropCause::Loop);
    assert_eq!(
        world.hand_in(with(&[other(1), OWN])).await.await.unwrap(),
        looped
    );
    let far = [other(1), other(2), other(3), other(4), other(5)];
    assert_eq!(world.hand_in(with(&far)).await.await.unwrap(), looped);
    assert_eq!(world.parts.stats.loops(LoopKind::Via), 1);
    assert_eq!(world.parts.stats.loops(LoopKind::Hops), 1);
    assert_eq!(world.parts.ledger.snapshot().dropped.of(DropCause::Loop), 2);
}
