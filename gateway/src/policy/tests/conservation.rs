//! The accounting law of `gateway.md` rule 2, whatever happens.

use std::time::Duration;

use proptest::prelude::*;
use weida_bridge::{FabricErrorKind, Outcome, Refusal};

use super::world::{Setup, Step, World, message};
use crate::config::valid::Overflow;

fn any_step() -> impl Strategy<Value = Step> {
    let millis = |millis| Duration::from_millis(millis);
    prop_oneof![
        4 => Just(Step::Answer(Outcome::Receipt)),
        2 => (1..3000_u64).prop_map(move |wait| Step::After(millis(wait), Outcome::Receipt)),
        1 => Just(Step::Answer(Outcome::Indeterminate)),
        1 => Just(Step::Answer(Outcome::Refused(Refusal::Rejected))),
        1 => Just(Step::Answer(Outcome::Refused(Refusal::LimitExceeded(None)))),
        1 => Just(Step::Fail(FabricErrorKind::Away)),
        1 => Just(Step::Fail(FabricErrorKind::Internal)),
        1 => Just(Step::Fail(FabricErrorKind::Timeout)),
        1 => Just(Step::Never),
        1 => Just(Step::Panic),
    ]
}

/// What happens to the route between two messages.
#[derive(Clone, Copy, Debug)]
enum Event {
    Nothing,
    Away,
    Come,
    Pass(u64),
}

fn any_event() -> impl Strategy<Value = Event> {
    prop_oneof![
        3 => Just(Event::Nothing),
        1 => Just(Event::Away),
        1 => Just(Event::Come),
        2 => (1..2000_u64).prop_map(Event::Pass),
    ]
}

fn any_overflow() -> impl Strategy<Value = Overflow> {
    prop_oneof![
        Just(Overflow::Block),
        Just(Overflow::Reject),
        Just(Overflow::DropNewest),
        Just(Overflow::DropOldest),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    /// Every message that was taken is in exactly one place, at the end and in between, and all room comes back.
    #[test]
    fn gateway_rule_2_every_message_is_accounted_for(
        steps in prop::collection::vec(any_step(), 0..40),
        events in prop::collection::vec((any_event(), any::<bool>(), 0..4_u64), 1..40),
        overflow in any_overflow(),
        at_most_once in any::<bool>(),
        messages in 1..6_usize,
        in_flight in 1..4_usize,
        cut in any::<bool>(),
    ) {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        // Panics are part of the script; their text is not.
        runtime.block_on(async move {
            let world = World::new(Setup {
                overflow,
                messages,
                in_flight,
                at_most_once,
                timeout: Some(Duration::from_secs(10)),
                attempt_timeout: Some(Duration::from_secs(1)),
                max_attempts: 4,
                ..Setup::default()
            });
            for step in steps {
                world.destination.then(step);
            }
            let mut taken = 0;
            for (event, abandoned, lifetime) in events {
                match event {
                    Event::Nothing => {}
                    Event::Away => world.go_away(),
                    Event::Come => world.come(),
                    Event::Pass(millis) => tokio::time::sleep(Duration::from_millis(millis)).await,
                }
                let mut envelope = message("x");
                if lifetime > 0 {
                    envelope.expires_at = Some(envelope.received_at + Duration::from_secs(lifetime));
                }
                let door = Duration::from_secs(30);
                let Ok(end) = tokio::time::timeout(door, world.hand_in(envelope)).await else { continue };
                taken += 1;
                if abandoned {
                    drop(end);
                } else {
                    // The answer is not waited for: the message goes on by itself.
                    let mut end = tokio_test::task::spawn(end);
                    let _now: std::task::Poll<_> = end.poll();
                }
                let row = world.parts.ledger.snapshot();
                assert_eq!((row.received, row.difference(), row.forgotten), (taken, 0, 0));
            }
            if cut {
                world.cut.cancel();
            } else {
                world.come();
            }
            world.parts.crew.finished().await;
            let row = world.parts.ledger.snapshot();
            assert_eq!((row.received, row.difference(), row.forgotten), (taken, 0, 0));
            assert_eq!((row.in_flight, row.queued, row.queued_bytes), (0, 0, 0));
            assert_eq!((world.parts.room.messages(), world.parts.room.kib()), (0, 0));
            assert_eq!(world.parts.stats.latency().count(), taken);
        });
    }
}
