use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use super::compare::median;
use super::*;

/// Takes a fixed time per operation, and keeps what it was asked.
#[derive(Clone)]
struct Fixed {
    takes: Duration,
    asked: Arc<Mutex<Vec<(u64, usize)>>>,
}

impl Fixed {
    fn new(takes: Duration) -> Self {
        Self {
            takes,
            asked: Arc::default(),
        }
    }
}

impl Target for Fixed {
    type Error = Infallible;

    async fn op(&mut self, payload: &Bytes, sequence: u64) -> Result<(), Infallible> {
        self.asked.lock().unwrap().push((sequence, payload.len()));
        tokio::time::sleep(self.takes).await;
        Ok(())
    }
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

#[tokio::test(start_paused = true)]
async fn a_closed_loop_finds_the_rate_of_the_target() {
    let target = Fixed::new(millis(10));
    let load = Load {
        workers: 4,
        warm_up: 3,
        length: Length::Operations(400),
        payload_bytes: 9,
        ..Load::closed()
    };
    let run = load.run(|_| target.clone()).await;
    assert_eq!((run.operations, run.errors), (400, 0));
    assert!((399.0..401.0).contains(&run.per_second()), "{run}");
    assert!((9..=11).contains(&run.quantile(0.99).as_millis()));
    let asked = target.asked.lock().unwrap();
    let distinct: BTreeSet<u64> = asked.iter().map(|(sequence, _)| *sequence).collect();
    assert_eq!(
        (asked.len(), distinct.len()),
        (412, 412),
        "warm-up is done, numbered apart and not counted"
    );
    assert!(asked.iter().all(|(_, bytes)| *bytes == 9));
}

#[tokio::test(start_paused = true)]
async fn an_open_loop_keeps_its_rate() {
    let load = Load {
        schedule: Schedule::Open { per_second: 100.0 },
        workers: 8,
        length: Length::Time(Duration::from_secs(2)),
        ..Load::closed()
    };
    let run = load.run(|_| Fixed::new(millis(20))).await;
    assert_eq!(run.operations, 200);
    assert!(run.quantile(0.999) < millis(25), "{run}");
}

/// One long operation delays those behind it; an open loop charges the wait to them.
#[tokio::test(start_paused = true)]
async fn an_open_loop_does_not_hide_a_stall() {
    struct StallsOnce(bool);
    impl Target for StallsOnce {
        type Error = Infallible;
        async fn op(&mut self, _: &Bytes, sequence: u64) -> Result<(), Infallible> {
            if sequence == 50 && !std::mem::replace(&mut self.0, true) {
                tokio::time::sleep(millis(500)).await;
            }
            Ok(())
        }
    }
    let open = Load {
        schedule: Schedule::Open { per_second: 100.0 },
        warm_up: 0,
        length: Length::Operations(200),
        ..Load::closed()
    };
    let run = open.run(|_| StallsOnce(false)).await;
    assert!(
        run.quantile(0.9) > millis(200),
        "50 of 200 started late: {run}"
    );
    let closed = Load {
        schedule: Schedule::Closed,
        ..open
    };
    let run = closed.run(|_| StallsOnce(false)).await;
    assert!(
        run.quantile(0.9) < millis(5),
        "a closed loop sees one slow operation: {run}"
    );
}

#[tokio::test(start_paused = true)]
async fn errors_and_hangs_end_a_run_and_are_counted() {
    struct Fails;
    impl Target for Fails {
        type Error = &'static str;
        async fn op(&mut self, _: &Bytes, sequence: u64) -> Result<(), &'static str> {
            match sequence {
                7 => Err("refused"),
                8 => std::future::pending().await,
                _ => Ok(()),
            }
        }
    }
    let load = Load {
        workers: 3,
        warm_up: 0,
        length: Length::Operations(30),
        at_most: millis(900),
        ..Load::closed()
    };
    let run = load.run(|_| Fails).await;
    assert_eq!(run.errors, 2);
    assert_eq!(
        run.operations,
        10 + 2 + 2,
        "worker 0 did all, the others stopped at 7 and 8"
    );
    assert!(run.to_string().contains(" 2 failed "), "{run}");
    assert!(run.to_json()["first_error"].is_string());
}

#[tokio::test(start_paused = true)]
async fn a_comparison_alternates_and_takes_the_median() {
    let order = Arc::new(Mutex::new(String::new()));
    let contender = |name: char, takes: Duration| {
        let order = Arc::clone(&order);
        move || {
            order.lock().unwrap().push(name);
            let load = Load {
                length: Length::Operations(50),
                ..Load::closed()
            };
            async move { load.run(move |_| Fixed::new(takes)).await }
        }
    };
    let comparison = alternate(
        "sleep",
        3,
        contender('o', millis(10)),
        contender('t', millis(20)),
    )
    .await;
    assert_eq!(*order.lock().unwrap(), "ottoot");
    assert!((1.9..2.1).contains(&comparison.ratio()), "{comparison}");
    let text = comparison.to_string();
    assert!(
        text.starts_with("sleep: ratio 2.0") && text.contains(", load "),
        "{text}"
    );
    assert_eq!(comparison.to_json()["pairs"].as_array().unwrap().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_comparison_with_errors_has_no_ratio() {
    struct Broken;
    impl Target for Broken {
        type Error = &'static str;
        async fn op(&mut self, _: &Bytes, _: u64) -> Result<(), &'static str> {
            Err("down")
        }
    }
    let load = Load {
        length: Length::Operations(5),
        ..Load::closed()
    };
    let comparison = alternate(
        "x",
        1,
        || load.run(|_| Broken),
        || load.run(|_| Fixed::new(millis(1))),
    )
    .await;
    assert!(comparison.ratio().is_nan());
    assert!(comparison.to_string().contains("1 FAILED"));
}

#[test]
fn medians() {
    assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
    assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
    assert!(median(Vec::new()).is_nan());
}

#[test]
fn the_machine_is_described() {
    let machine = Machine::look();
    assert!(machine.cpus >= 1 && machine.memory_bytes > 0, "{machine}");
    assert_eq!(machine.release, !cfg!(debug_assertions));
}
