//! Numbers cost nothing where nobody asked for them, and are bounded where
//! somebody did.

use weida_core::GuaranteeSet;

use super::*;

fn path(ordering: OrderingMode, max_sequence_scopes: usize) -> Arc<Path> {
    let mut config = RuntimeConfig {
        guarantees: GuaranteeSet {
            ordering,
            ..GuaranteeSet::CORE
        },
        ..RuntimeConfig::default()
    };
    config.limits.max_sequence_scopes = max_sequence_scopes;
    let path = Path::new("/p", &config);
    // Numbering begins with the first subscriber.
    let mut state = path.lock();
    state.by_connection.insert(ConnectionId::next(), 0);
    drop(state);
    path
}

/// Under core there is no table, so a message can neither allocate in one nor
/// carry a number. The neighbour, with ordering, has one.
#[test]
fn gs_7_pf_7_no_guarantee_no_table() {
    let core = path(OrderingMode::None, 1024);
    for topic in ["a", "b", "a"] {
        assert_eq!(core.lock().take_number(topic), None);
    }
    assert!(core.lock().numbers.is_none());
    let ordered = path(OrderingMode::PerProducerDetect, 1024);
    let numbers = ["a", "b", "a"].map(|topic| ordered.lock().take_number(topic));
    assert_eq!(numbers, [Some(0), Some(0), Some(1)]);
}

/// Topics that a publisher's users choose fill the table to its bound; what
/// comes after is not tracked, and what was there goes on.
#[test]
fn inv_6_scopes_past_the_bound_are_not_tracked() {
    let ordered = path(OrderingMode::PerProducerDetect, 16);
    for n in 0..10_000_u32 {
        let number = ordered.lock().take_number(&n.to_string());
        assert_eq!(number, (n < 16).then_some(0), "{n}");
    }
    let mut state = ordered.lock();
    assert_eq!(state.take_number("15"), Some(1));
    assert_eq!(state.numbers.as_ref().map(|n| n.next.len()), Some(16));
}
