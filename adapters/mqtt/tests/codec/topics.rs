//! Matching and containment. [MQTT5 4.7] [mqtt 5.1] [mqtt 9.2]

use proptest::prelude::*;
use weida_mqtt::codec::{FilterError, TopicError, TopicFilter, TopicName};

fn matches(filter: &str, topic: &str) -> bool {
    TopicFilter::parse(filter)
        .unwrap()
        .matches(&TopicName::parse(topic).unwrap())
}

fn contains(outer: &str, inner: &str) -> bool {
    TopicFilter::parse(outer)
        .unwrap()
        .contains(&TopicFilter::parse(inner).unwrap())
}

#[test]
fn mqtt_5_1_the_required_examples() {
    for (filter, topic, expected) in [
        ("sport/#", "sport", true),
        ("sport/#", "sport/tennis/player1", true),
        ("sport/+", "sport", false),
        ("sport/+", "sport/", true),
        ("+/+", "/finance", true),
        ("/+", "/finance", true),
        ("+", "/finance", false),
        ("+", "a", true),
        ("+", "a/b", false),
        ("a/+/b", "a//b", true),
        ("a/+", "a//b", false),
        ("+/+", "/", true),
        ("+", "/", false),
        ("#", "/", true),
        ("#", "$SYS/x", false),
        ("+/x", "$SYS/x", false),
        ("$SYS/#", "$SYS/x", true),
        ("$SYS/#", "$SYS", true),
        ("$x/+", "$x/y", true),
        ("a/$b", "a/$b", true),
        ("+/$b", "a/$b", true),
        ("ACCOUNTS", "Accounts", false),
        ("a/b", "a/b/", false),
        ("énergie/+", "énergie/1", true),
        ("$share/g/#", "$SYS/x", false),
        ("$share/g/a/#", "a", true),
    ] {
        assert_eq!(matches(filter, topic), expected, "{filter} and {topic}");
    }
}

#[test]
fn mqtt_9_2_containment_examples() {
    for (outer, inner, expected) in [
        ("a/+", "a/b", true),
        ("a/+", "a/+", true),
        ("a/+", "a/#", false),
        ("a/b", "a/+", false),
        ("#", "a/b/#", true),
        ("#", "#", true),
        ("#", "$SYS/#", false),
        ("+/#", "$SYS/#", false),
        ("+/#", "#", true),
        ("+", "#", false),
        ("$SYS/#", "$SYS/+/x", true),
        ("a/#", "a", true),
        ("a/#", "a/#", true),
        ("a/#", "+/#", false),
        ("a/+/#", "a/#", false),
        ("a/#", "$share/g/a/b", true),
        ("$share/x/a/#", "a/b", true),
    ] {
        assert_eq!(contains(outer, inner), expected, "{outer} and {inner}");
    }
}

#[test]
fn names_and_filters_say_what_is_wrong() {
    assert_eq!(TopicName::parse(""), Err(TopicError::Empty));
    assert_eq!(TopicName::parse("a/+"), Err(TopicError::Wildcard));
    assert!(TopicName::parse("a\0").is_err());
    for (text, error) in [
        ("", FilterError::Empty),
        ("a#", FilterError::WildcardNotAlone),
        ("#/a", FilterError::HashNotLast),
        ("$share//x", FilterError::ShareNameEmpty),
        ("$share/g", FilterError::ShareWithoutFilter),
        ("$share/g/", FilterError::ShareWithoutFilter),
        ("$share/g+/x", FilterError::ShareNameWildcard),
    ] {
        assert_eq!(TopicFilter::parse(text), Err(error), "{text:?}");
    }
    let shared = TopicFilter::parse("$share/workers/a/+").unwrap();
    assert_eq!(shared.share_name(), Some("workers"));
    assert_eq!(shared.pattern(), b"a/+");
    assert_eq!(shared.as_str(), "$share/workers/a/+");
    assert_eq!(
        TopicFilter::parse("$shared/workers/a")
            .unwrap()
            .share_name(),
        None
    );
    let long = "g".repeat(64);
    assert!(TopicFilter::parse(&format!("$share/{long}/a")).is_ok());
    assert!(TopicFilter::parse(&format!("$share/{long}g/a")).is_err());
}

/// The plainest possible matcher: the standard's text, level by level, with recursion.
fn naive(filter: &[&str], topic: &[&str]) -> bool {
    match (filter, topic) {
        (["#"], _) => true,
        (["+", filter @ ..], [_, topic @ ..]) => naive(filter, topic),
        ([wanted, filter @ ..], [level, topic @ ..]) => wanted == level && naive(filter, topic),
        ([], []) => true,
        _ => false,
    }
}

fn naive_match(filter: &str, topic: &str) -> bool {
    if topic.starts_with('$') && (filter.starts_with('+') || filter.starts_with('#')) {
        return false;
    }
    let filter: Vec<&str> = filter.split('/').collect();
    let topic: Vec<&str> = topic.split('/').collect();
    naive(&filter, &topic)
}

/// Few words, so that things meet.
fn topic() -> impl Strategy<Value = String> {
    proptest::collection::vec(prop_oneof!["", "a", "b", "\\$x", "é"], 1..5)
        .prop_map(|levels| levels.join("/"))
        .prop_filter("topics are not empty", |topic| !topic.is_empty())
}

fn filter() -> impl Strategy<Value = String> {
    let levels = proptest::collection::vec(prop_oneof!["", "a", "b", "\\+", "\\$x", "é"], 0..5);
    (levels, any::<bool>())
        .prop_map(|(mut levels, hash)| {
            if hash {
                levels.push("#".into());
            }
            levels.join("/")
        })
        .prop_filter("filters are not empty", |filter| !filter.is_empty())
}

proptest! {
    #[test]
    fn the_matcher_agrees_with_the_plainest_one(filter in filter(), topic in topic()) {
        prop_assert_eq!(matches(&filter, &topic), naive_match(&filter, &topic));
    }

    /// Soundness: what a grant contains can never deliver a topic outside the grant.
    #[test]
    fn what_a_filter_contains_it_also_matches(outer in filter(), inner in filter(), topic in topic()) {
        if contains(&outer, &inner) && matches(&inner, &topic) {
            prop_assert!(matches(&outer, &topic), "{} contains {} but misses {}", outer, inner, topic);
        }
    }

    #[test]
    fn a_filter_contains_itself_and_every_topic_it_matches(filter in filter(), topic in topic()) {
        prop_assert!(contains(&filter, &filter));
        prop_assert_eq!(contains(&filter, &topic), matches(&filter, &topic));
    }

    #[test]
    fn any_text_is_judged_without_a_panic(text in ".{0,40}") {
        let _: Result<TopicFilter, FilterError> = TopicFilter::parse(&text);
        let _: Result<TopicName, TopicError> = TopicName::parse(&text);
    }
}
