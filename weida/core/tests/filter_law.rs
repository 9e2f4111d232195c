//! The one-pass matcher against the plainest recursive reading of the grammar. [wire 12]

use proptest::prelude::*;
use weida_core::filter;

/// Segments against segments, straight from the text of the rule.
fn naive(topic: &[&str], filter: &[&str]) -> bool {
    match (filter.split_first(), topic.split_first()) {
        (Some((&"#", [])), _) => true,
        (None, None) => true,
        (Some((&"*", filter)), Some((_, topic))) => naive(topic, filter),
        (Some((wanted, filter)), Some((segment, topic))) => {
            wanted == segment && naive(topic, filter)
        }
        (None, Some(_)) | (Some(_), None) => false,
    }
}

fn segments() -> impl Strategy<Value = String> {
    proptest::collection::vec("(a|b|ab||Ä)", 1..6).prop_map(|segments| segments.join("."))
}

fn filters() -> impl Strategy<Value = String> {
    (
        proptest::collection::vec("(a|b|ab||\\*)", 0..6),
        any::<bool>(),
    )
        .prop_map(|(mut segments, rest)| {
            if rest {
                segments.push("#".into());
            }
            segments.join(".")
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn matcher_agrees_with_the_naive_one(topic in segments(), filter in filters()) {
        prop_assert_eq!(filter::validate(&filter), Ok(()));
        let topic_segments: Vec<_> = topic.split('.').collect();
        let filter_segments: Vec<_> = filter.split('.').collect();
        let expected = filter.is_empty() || naive(&topic_segments, &filter_segments);
        prop_assert_eq!(filter::matches(&topic, &filter), expected);
    }

    /// An exact filter selects its own text and nothing else.
    #[test]
    fn a_filter_without_wildcards_is_equality(topic in segments(), filter in segments()) {
        prop_assume!(!filter.is_empty());
        prop_assert_eq!(filter::matches(&topic, &filter), topic == filter);
    }

    /// Any text is a filter or an error, and matching it never panics.
    #[test]
    fn validate_and_match_are_total(topic in ".{0,40}", filter in "[*#.a-c]{0,40}") {
        let by_rule = filter.split('.').enumerate().all(|(at, segment)| {
            segment == "*"
                || (segment == "#" && at + 1 == filter.split('.').count())
                || !segment.contains(['*', '#'])
        });
        prop_assert_eq!(filter::validate(&filter).is_ok(), by_rule);
        let _: bool = filter::matches(&topic, &filter);
    }
}
