use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::*;
use crate::outcome::{Level, Refusal, Reply};

fn ledger() -> Arc<Ledger> {
    Ledger::new(RouteId::new("readings"))
}

#[test]
fn gateway_rule_2_every_end_counts_in_exactly_one_place() {
    let ledger = ledger();
    ledger.born(10).delivered();
    ledger.born(10).filtered();
    ledger.born(10).expired();
    ledger.born(10).dropped(DropCause::Loop);
    ledger.born(10).dead_lettered(DropCause::BadPayload);
    let seen = ledger.snapshot();
    assert_eq!((seen.received, seen.received_bytes), (5, 50));
    assert_eq!(
        (
            seen.delivered,
            seen.delivered_bytes,
            seen.filtered,
            seen.expired
        ),
        (1, 10, 1, 1)
    );
    assert_eq!(
        (seen.dropped.of(DropCause::Loop), seen.dropped.total()),
        (1, 1)
    );
    assert_eq!(
        (
            seen.dead_lettered.of(DropCause::BadPayload),
            seen.dead_lettered.total()
        ),
        (1, 1)
    );
    assert_eq!((seen.in_flight, seen.queued, seen.difference()), (0, 0, 0));
}

#[test]
fn gateway_rule_2_the_law_holds_at_every_step_of_a_life() {
    let ledger = ledger();
    let gauges = |ledger: &Ledger| {
        let seen = ledger.snapshot();
        assert_eq!(seen.difference(), 0);
        (seen.in_flight, seen.queued, seen.queued_bytes)
    };
    let mut life = ledger.born(7);
    assert_eq!(gauges(&ledger), (1, 0, 0));
    life.queued();
    assert_eq!(gauges(&ledger), (0, 1, 7));
    life.queued();
    assert_eq!(gauges(&ledger), (0, 1, 7));
    life.in_flight();
    assert_eq!(gauges(&ledger), (1, 0, 0));
    life.queued();
    life.dropped(DropCause::QueueFull);
    assert_eq!(gauges(&ledger), (0, 0, 0));
}

#[test]
fn every_outcome_ends_a_life_somewhere() {
    let reply = Reply {
        achieved: Some(Level::Stored),
        ..Reply::default()
    };
    let rows = [
        (Outcome::Receipt, "delivered"),
        (Outcome::Accepted, "delivered"),
        (Outcome::Stored, "delivered"),
        (Outcome::Processed, "delivered"),
        (Outcome::Reply(Box::new(reply)), "delivered"),
        (
            Outcome::Fanned {
                copies: 2,
                dropped: 3,
            },
            "delivered",
        ),
        (
            Outcome::Fanned {
                copies: 0,
                dropped: 0,
            },
            "no_subscriber",
        ),
        (
            Outcome::Fanned {
                copies: 0,
                dropped: 1,
            },
            "queue_full",
        ),
        (
            Outcome::Refused(Refusal::Rejected),
            "refused_by_destination",
        ),
        (Outcome::Dropped(DropCause::Shutdown), "shutdown"),
        (
            Outcome::DeadLettered(DropCause::Unroutable),
            "dead unroutable",
        ),
        (Outcome::Filtered, "filtered"),
        (Outcome::Expired, "expired"),
        (Outcome::Indeterminate, "attempts_exhausted"),
    ];
    for (outcome, expected) in rows {
        let ledger = ledger();
        ledger.born(1).end(&outcome);
        let seen = ledger.snapshot();
        let mut places = Vec::new();
        places.extend(std::iter::repeat_n(
            "delivered".to_owned(),
            seen.delivered as usize,
        ));
        places.extend(std::iter::repeat_n(
            "filtered".to_owned(),
            seen.filtered as usize,
        ));
        places.extend(std::iter::repeat_n(
            "expired".to_owned(),
            seen.expired as usize,
        ));
        for (cause, count) in seen.dropped.iter() {
            places.extend(std::iter::repeat_n(cause.to_string(), count as usize));
        }
        for (cause, count) in seen.dead_lettered.iter() {
            places.extend(std::iter::repeat_n(format!("dead {cause}"), count as usize));
        }
        assert_eq!(places, [expected], "{outcome:?}");
        assert_eq!(seen.difference(), 0);
        assert_eq!(
            seen.indeterminate,
            u64::from(outcome == Outcome::Indeterminate)
        );
    }
}

/// The net under the type: a path that forgets is caught where it happens, and the law still holds.
#[test]
fn gateway_rule_2_a_forgotten_path_is_caught() {
    let ledger = ledger();
    let forgets = Arc::clone(&ledger);
    let caught = catch_unwind(AssertUnwindSafe(move || {
        let _life = forgets.born(3);
    }));
    if cfg!(debug_assertions) {
        let panic = caught.unwrap_err();
        let text = panic.downcast_ref::<String>().unwrap();
        assert_eq!(
            text,
            "a message of route readings was forgotten: no path ended it"
        );
    } else {
        caught.unwrap();
    }
    let seen = ledger.snapshot();
    assert_eq!(
        (seen.forgotten, seen.dropped.of(DropCause::Internal)),
        (1, 1)
    );
    assert_eq!((seen.in_flight, seen.difference()), (0, 0));
}

/// A panic of somebody else's unwinds through a life: counted, and no second panic that would abort the process.
#[test]
fn a_life_on_an_unwinding_thread_is_counted_and_does_not_abort() {
    let ledger = ledger();
    let unwinds = Arc::clone(&ledger);
    let caught = catch_unwind(AssertUnwindSafe(move || {
        let _life = unwinds.born(3);
        panic!("something else");
    }));
    assert_eq!(
        *caught.unwrap_err().downcast_ref::<&str>().unwrap(),
        "something else"
    );
    let seen = ledger.snapshot();
    assert_eq!(
        (
            seen.forgotten,
            seen.dropped.of(DropCause::Internal),
            seen.difference()
        ),
        (1, 1, 0)
    );
}

#[test]
fn a_life_in_a_cut_task_counts_as_its_named_cause() {
    let ledger = ledger();
    let life = ledger.born(3).when_cut(DropCause::Shutdown);
    drop(life);
    ledger.born(3).when_cut(DropCause::Shutdown).delivered();
    let seen = ledger.snapshot();
    assert_eq!(
        (
            seen.dropped.of(DropCause::Shutdown),
            seen.delivered,
            seen.forgotten
        ),
        (1, 1, 0)
    );
    assert_eq!(seen.difference(), 0);
}

#[test]
fn the_difference_shows_a_broken_law() {
    let whole = LedgerSnapshot {
        received: 3,
        delivered: 2,
        queued: 1,
        ..LedgerSnapshot::default()
    };
    assert_eq!(whole.difference(), 0);
    assert_eq!(
        LedgerSnapshot {
            delivered: 1,
            ..whole
        }
        .difference(),
        1
    );
    assert_eq!(
        LedgerSnapshot {
            delivered: 3,
            ..whole
        }
        .difference(),
        -1
    );
}

/// Random lives that move between threads at random moments; afterwards every one is in one place.
#[test]
fn gateway_rule_2_conservation_under_random_interleavings() {
    const THREADS: u64 = 8;
    const STEPS: usize = 20_000;
    for seed in 0..4 {
        let ledger = ledger();
        let shared: Mutex<Vec<Life>> = Mutex::new(Vec::new());
        let (mut born, mut ended) = (0, 0);
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..THREADS)
                .map(|thread| {
                    let (ledger, shared) = (&ledger, &shared);
                    scope.spawn(move || worker(ledger, shared, seed * THREADS + thread, STEPS))
                })
                .collect();
            for worker in workers {
                let counts = worker.join().unwrap();
                born += counts.0;
                ended += counts.1;
            }
        });
        let left = shared.into_inner().unwrap_or_else(PoisonError::into_inner);
        let seen = ledger.snapshot();
        assert_eq!(seen.difference(), 0, "seed {seed}");
        assert_eq!(
            (seen.received, seen.in_flight + seen.queued),
            (born, left.len() as u64)
        );
        assert_eq!(born - ended, left.len() as u64);
        left.into_iter()
            .for_each(|life| life.dropped(DropCause::Shutdown));
        let seen = ledger.snapshot();
        assert_eq!(
            (
                seen.difference(),
                seen.in_flight,
                seen.queued,
                seen.queued_bytes
            ),
            (0, 0, 0, 0)
        );
        assert_eq!(seen.forgotten, 0);
    }
}

fn worker(ledger: &Arc<Ledger>, shared: &Mutex<Vec<Life>>, seed: u64, steps: usize) -> (u64, u64) {
    let mut rng = StdRng::seed_from_u64(seed);
    let (mut born, mut ended) = (0, 0);
    let lock = || shared.lock().unwrap_or_else(PoisonError::into_inner);
    for _ in 0..steps {
        let taken = {
            let mut lives = lock();
            let at = rng.random_range(0..=lives.len());
            (at < lives.len()).then(|| lives.swap_remove(at))
        };
        let mut life = taken.unwrap_or_else(|| {
            born += 1;
            ledger.born(rng.random_range(0..2000))
        });
        match rng.random_range(0..8) {
            0 => life.queued(),
            1 => life.in_flight(),
            2 => {
                life.queued();
                life.in_flight();
                life.queued();
            }
            end => {
                let cause = DropCause::ALL[rng.random_range(0..CAUSES)];
                match end {
                    3 => life.delivered(),
                    4 => life.filtered(),
                    5 => life.dropped(cause),
                    6 => life.dead_lettered(cause),
                    _ => life.expired(),
                }
                ended += 1;
                continue;
            }
        }
        lock().push(life);
    }
    (born, ended)
}
