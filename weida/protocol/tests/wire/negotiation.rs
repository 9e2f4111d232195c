//! [wire 25.3] N1 to N3, and the steps of [wire 5.2].

use weida_core::{
    Acknowledgement, Backpressure, DeliveryLevel, GuaranteeError, GuaranteeSet, OrderingMode,
    ProducerNaming,
};
use weida_protocol::{
    CAPABILITY_DATAGRAM, CAPABILITY_PATH_REPORT, Decoded, EncodeError, Hello, NegotiateError,
    decode_head, negotiate,
};

use crate::vectors::{CAP, NEGOTIATION, row};

/// This side: both capabilities, core.
fn ours() -> Hello {
    let capabilities = vec![CAPABILITY_DATAGRAM, CAPABILITY_PATH_REPORT];
    Hello {
        capabilities,
        ..Hello::v0(CAP, 2048)
    }
}

fn check(id: &str, error: NegotiateError) {
    let [bad, good] = [0, 1].map(|column| {
        let vector = row(NEGOTIATION, id);
        let Ok(Decoded::Value { value, .. }) = decode_head(&vector.bytes[column], CAP) else {
            panic!("a complete frame");
        };
        Hello::decode(value.header).unwrap()
    });
    assert!(negotiate(&ours(), &good).is_ok(), "the neighbour agrees");
    assert_eq!(negotiate(&ours(), &bad), Err(error));
    assert_eq!(error.close_code(), 4);
}

#[test]
fn wire_n1() {
    check("N1", NegotiateError::NoCommonVersion);
}

#[test]
fn wire_n2() {
    check(
        "N2",
        NegotiateError::UnsupportedRequiredCapability { capability: 7 },
    );
}

#[test]
fn wire_n3() {
    check(
        "N3",
        NegotiateError::GuaranteeNotOffered {
            peers_requirement: true,
        },
    );
}

#[test]
fn wire_5_2_the_highest_common_version_wins_and_is_judged_first() {
    let mine = Hello {
        versions: vec![0, 3, 5],
        ..ours()
    };
    let theirs = Hello {
        versions: vec![3, 0, 4],
        ..ours()
    };
    assert_eq!(negotiate(&mine, &theirs).unwrap().version, 3);
    let hopeless = Hello {
        versions: vec![9],
        required_capabilities: vec![7],
        ..Hello::v0(CAP, 1)
    };
    assert_eq!(
        negotiate(&mine, &hopeless),
        Err(NegotiateError::NoCommonVersion)
    );
}

#[test]
fn wire_5_2_a_capability_holds_when_both_list_it() {
    for (ours_has, theirs_has) in [(false, false), (false, true), (true, false), (true, true)] {
        let list = |has: bool| if has { vec![1, 2, 99] } else { vec![98] };
        let mine = Hello {
            capabilities: list(ours_has),
            ..ours()
        };
        let theirs = Hello {
            capabilities: list(theirs_has),
            ..ours()
        };
        let agreed = negotiate(&mine, &theirs).unwrap();
        assert_eq!(
            (agreed.datagrams, agreed.path_report),
            (ours_has && theirs_has, ours_has && theirs_has)
        );
    }
}

#[test]
fn wire_5_2_the_send_cap_is_the_peers() {
    let agreed = negotiate(&ours(), &Hello::v0(100, 1)).unwrap();
    assert_eq!(agreed.check_header_len(100), Ok(()));
    let over = EncodeError::HeaderTooLarge {
        header_bytes: 101,
        max_bytes: 100,
    };
    assert_eq!(agreed.check_header_len(101), Err(over));
}

#[test]
fn gs_1_offer_and_requirement_matrix() {
    let set = |ordering| GuaranteeSet {
        ordering,
        ..GuaranteeSet::CORE
    };
    let levels = [0, 1, 2].map(|value| OrderingMode::from_wire(value).unwrap());
    for (mine, theirs) in levels
        .iter()
        .flat_map(|a| levels.iter().map(move |b| (*a, *b)))
    {
        let strict = |ordering| Hello {
            offered: set(ordering),
            required: set(ordering),
            ..ours()
        };
        let verdict = negotiate(&strict(mine), &strict(theirs));
        if mine == theirs {
            assert_eq!(verdict.unwrap().guarantees, set(mine));
        } else {
            let peers_requirement = theirs > mine;
            let expected = NegotiateError::GuaranteeNotOffered { peers_requirement };
            assert_eq!(verdict, Err(expected));
        }
        let lenient = Hello {
            offered: set(theirs),
            ..ours()
        };
        let willing = Hello {
            offered: set(mine),
            ..ours()
        };
        assert_eq!(
            negotiate(&willing, &lenient).unwrap().guarantees,
            set(mine.min(theirs))
        );
    }
}

#[test]
fn gs_2_unordered_dimensions_agree_or_fail() {
    let core = GuaranteeSet::CORE;
    let rows = [
        (
            "backpressure",
            GuaranteeSet {
                backpressure: Backpressure::Drop,
                ..core
            },
        ),
        (
            "producer_naming",
            GuaranteeSet {
                producer_naming: ProducerNaming::Stable,
                ..core
            },
        ),
    ];
    for (dimension, set) in rows {
        let strict = Hello {
            offered: set,
            required: set,
            ..ours()
        };
        assert_eq!(negotiate(&strict, &strict).unwrap().guarantees, set);
        let refused = NegotiateError::Incomparable(GuaranteeError::Incomparable { dimension });
        assert_eq!(negotiate(&strict, &ours()), Err(refused));
        assert_eq!(negotiate(&ours(), &strict), Err(refused));
    }
}

/// A stronger offer against a core peer is no downgrade as long as nobody requires it.
#[test]
fn gs_1_an_offer_alone_never_fails() {
    let offered = GuaranteeSet {
        delivery: DeliveryLevel::AtLeastOnce,
        acknowledgement: Acknowledgement::Processed,
        ..GuaranteeSet::CORE
    };
    let generous = Hello { offered, ..ours() };
    assert_eq!(
        negotiate(&generous, &ours()).unwrap().guarantees,
        GuaranteeSet::CORE
    );
}
