//! Guarantee rules: unit tables and laws.

use proptest::prelude::*;

use super::*;

const DETECT: GuaranteeSet = GuaranteeSet {
    ordering: OrderingMode::PerProducerDetect,
    ..GuaranteeSet::CORE
};

#[test]
fn default_is_core() {
    assert_eq!(GuaranteeSet::default(), GuaranteeSet::CORE);
    assert!(GuaranteeSet::default().is_core());
    assert!(!DETECT.is_core());
}

#[test]
fn gs_1_the_weaker_offer_wins_and_must_reach_the_requirement() {
    let reassemble = GuaranteeSet {
        ordering: OrderingMode::PerProducerReassemble,
        ..GuaranteeSet::CORE
    };
    let effective = reassemble.intersect(&DETECT).unwrap();
    assert_eq!(effective, DETECT);
    assert!(effective.reaches(&DETECT));
    assert!(effective.reaches(&GuaranteeSet::CORE));
    assert!(!effective.reaches(&reassemble));
    assert!(
        !GuaranteeSet::CORE
            .intersect(&DETECT)
            .unwrap()
            .reaches(&DETECT)
    );
}

#[test]
fn gs_1_a_dedup_window_is_the_shorter_one() {
    let bounded = |ms| GuaranteeSet {
        deduplication: Deduplication::Bounded,
        dedup_window_ms: Some(ms),
        ..GuaranteeSet::CORE
    };
    let durable = GuaranteeSet {
        deduplication: Deduplication::Durable,
        ..GuaranteeSet::CORE
    };
    assert_eq!(bounded(5).intersect(&bounded(9)).unwrap(), bounded(5));
    assert_eq!(durable.intersect(&bounded(9)).unwrap(), bounded(9));
    assert!(GuaranteeSet::CORE.intersect(&bounded(9)).unwrap().is_core());
    assert!(bounded(9).reaches(&bounded(5)));
    assert!(!bounded(5).reaches(&bounded(9)));
    assert!(
        !durable.reaches(&bounded(1)),
        "an unstated window never reaches a stated one"
    );
}

#[test]
fn gs_2_backpressure_and_naming_are_equal_or_fail() {
    let all = (0..5).map(|value| Backpressure::from_wire(value).unwrap());
    for (ours, theirs) in all.clone().flat_map(|a| all.clone().map(move |b| (a, b))) {
        let set = |backpressure| GuaranteeSet {
            backpressure,
            ..GuaranteeSet::CORE
        };
        let got = set(ours).intersect(&set(theirs));
        let expected = if ours == theirs {
            Ok(set(ours))
        } else {
            Err(GuaranteeError::Incomparable {
                dimension: "backpressure",
            })
        };
        assert_eq!(got, expected);
        assert_eq!(set(ours).reaches(&set(theirs)), ours == theirs);
    }
    let stable = GuaranteeSet {
        producer_naming: ProducerNaming::Stable,
        ..GuaranteeSet::CORE
    };
    let differs = Err(GuaranteeError::Incomparable {
        dimension: "producer_naming",
    });
    assert_eq!(stable.intersect(&GuaranteeSet::CORE), differs);
    assert_eq!(stable.intersect(&stable), Ok(stable));
}

#[test]
fn gs_3_only_supersets_of_core_are_configurable() {
    assert_eq!(GuaranteeSet::CORE.validate(), Ok(()));
    let silent = GuaranteeSet {
        acknowledgement: Acknowledgement::None,
        ..GuaranteeSet::CORE
    };
    let below = Err(GuaranteeError::BelowCore {
        dimension: "acknowledgement",
    });
    assert_eq!(silent.validate(), below);
    assert_eq!(
        silent.check_wire(),
        Ok(()),
        "legal on the wire all the same"
    );
}

#[test]
fn gs_9_levels_without_an_implementation_are_named() {
    for fine in [GuaranteeSet::CORE, DETECT] {
        assert_eq!(fine.check_implemented(), Ok(()));
    }
    let core = GuaranteeSet::CORE;
    let rows = [
        GuaranteeSet {
            delivery: DeliveryLevel::AtMostOnce,
            ..core
        },
        GuaranteeSet {
            delivery: DeliveryLevel::AtLeastOnce,
            ..core
        },
        GuaranteeSet {
            acknowledgement: Acknowledgement::Accepted,
            ..core
        },
        GuaranteeSet {
            acknowledgement: Acknowledgement::Stored,
            ..core
        },
        GuaranteeSet {
            acknowledgement: Acknowledgement::Replicated,
            ..core
        },
        GuaranteeSet {
            acknowledgement: Acknowledgement::Processed,
            ..core
        },
        GuaranteeSet {
            ordering: OrderingMode::PerKey,
            ..core
        },
        GuaranteeSet {
            ordering: OrderingMode::Total,
            ..core
        },
        GuaranteeSet {
            deduplication: Deduplication::Durable,
            ..core
        },
        GuaranteeSet {
            backpressure: Backpressure::Spill,
            ..core
        },
        GuaranteeSet {
            backpressure: Backpressure::Coalesce,
            ..core
        },
        GuaranteeSet {
            producer_naming: ProducerNaming::Stable,
            ..core
        },
        GuaranteeSet {
            control_isolated: true,
            ..core
        },
    ];
    for set in rows {
        let got = set.check_implemented();
        assert!(
            matches!(got, Err(GuaranteeError::NotImplemented { .. })),
            "{set:?}"
        );
    }
}

#[test]
fn gs_10_invalid_combinations() {
    let core = GuaranteeSet::CORE;
    let stored = GuaranteeSet {
        acknowledgement: Acknowledgement::Stored,
        ..core
    };
    let replicated = GuaranteeSet {
        acknowledgement: Acknowledgement::Replicated,
        ..core
    };
    let flushed = Some(Durability::Flushed);
    assert_eq!(
        GuaranteeSet {
            durability: flushed,
            ..stored
        }
        .validate(),
        Ok(())
    );
    assert_eq!(
        GuaranteeSet {
            durability: flushed,
            replicas: Some(2),
            ..replicated
        }
        .validate(),
        Ok(())
    );
    let rows = [
        (
            GuaranteeSet {
                durability: flushed,
                ..core
            },
            GuaranteeError::DurabilityWithoutStore,
        ),
        (
            GuaranteeSet {
                replicas: Some(3),
                ..stored
            },
            GuaranteeError::ReplicasWithoutReplication,
        ),
        (
            GuaranteeSet {
                replicas: Some(1),
                ..replicated
            },
            GuaranteeError::TooFewReplicas { replicas: 1 },
        ),
        (
            GuaranteeSet {
                deduplication: Deduplication::Bounded,
                ..core
            },
            GuaranteeError::WindowMissing,
        ),
        (
            GuaranteeSet {
                dedup_window_ms: Some(1),
                ..core
            },
            GuaranteeError::WindowWithoutBound,
        ),
        (
            GuaranteeSet {
                backpressure: Backpressure::Coalesce,
                ordering: OrderingMode::PerProducerReassemble,
                ..core
            },
            GuaranteeError::CoalesceWithReassemble,
        ),
    ];
    for (set, rule) in rows {
        assert_eq!(set.validate(), Err(rule));
    }
}

fn any_set() -> impl Strategy<Value = GuaranteeSet> {
    (
        0u64..3,
        0u64..6,
        any::<Option<bool>>(),
        2u64..9,
        0u64..5,
        0u64..3,
        1u64..99,
        0u64..3,
        any::<bool>(),
    )
        .prop_map(
            |(delivery, ack, flushed, replicas, ordering, dedup, window, pressure, isolated)| {
                let acknowledgement = Acknowledgement::from_wire(ack).unwrap();
                let deduplication = Deduplication::from_wire(dedup).unwrap();
                GuaranteeSet {
                    delivery: DeliveryLevel::from_wire(delivery).unwrap(),
                    acknowledgement,
                    durability: flushed.filter(|_| matches!(ack, 3 | 4)).map(|flushed| {
                        if flushed {
                            Durability::Flushed
                        } else {
                            Durability::Written
                        }
                    }),
                    replicas: Some(replicas).filter(|_| ack == 4),
                    ordering: OrderingMode::from_wire(ordering).unwrap(),
                    deduplication,
                    dedup_window_ms: Some(window).filter(|_| dedup == 1),
                    backpressure: Backpressure::from_wire(pressure).unwrap(),
                    producer_naming: ProducerNaming::Fingerprint,
                    control_isolated: isolated,
                }
            },
        )
}

proptest! {
    /// What two sides compute alone must be the same set.
    #[test]
    fn intersection_is_commutative(a in any_set(), b in any_set()) {
        prop_assert_eq!(a.intersect(&b), b.intersect(&a));
    }

    #[test]
    fn intersection_with_itself_changes_nothing(a in any_set()) {
        prop_assert_eq!(a.intersect(&a), Ok(a));
        prop_assert!(a.reaches(&a));
    }

    /// The result is a legal set, and no ladder of it is above either offer.
    #[test]
    fn intersection_is_legal_and_never_stronger(a in any_set(), b in any_set()) {
        if let Ok(weaker) = a.intersect(&b) {
            prop_assert_eq!(weaker.check_wire(), Ok(()));
            for offer in [&a, &b] {
                prop_assert!(weaker.delivery <= offer.delivery);
                prop_assert!(weaker.acknowledgement <= offer.acknowledgement);
                prop_assert!(weaker.ordering <= offer.ordering);
                prop_assert!(weaker.deduplication <= offer.deduplication);
                prop_assert!(weaker.control_isolated <= offer.control_isolated);
            }
        }
    }
}
