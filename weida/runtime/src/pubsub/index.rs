//! Filters of one path, arranged by shape. `[wire 12]`
//!
//! What a publish costs must not grow with filters that cannot match. Filters
//! without wildcards are one look-up. A filter with wildcards is found through
//! its *literal prefix*, the segments before its first wildcard: a topic of n
//! segments has at most n + 1 prefixes, and lengths that no filter has are not
//! even looked up. Only filters behind a matching prefix are walked.
//!
//! Nothing here is larger than the filters themselves, whatever shape a
//! stranger gives them.

use std::collections::HashMap;

use weida_core::Filter;
use weida_core::filter::{ONE_SEGMENT, REST, SEPARATOR};

/// One subscriber's hold on one filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Holder {
    /// The subscriber's place in the path's table.
    pub(super) member: u32,
    /// Whether the application declined copies for this filter.
    pub(super) declined: bool,
}

type Holders = Vec<Holder>;
type Patterns = HashMap<Filter, Holders>;

/// Which subscribers hold which filters.
#[derive(Debug, Default)]
pub(super) struct FilterIndex {
    /// Filters without wildcards.
    exact: HashMap<Filter, Holders>,
    /// Filters that begin with a wildcard, and the empty one.
    unprefixed: Patterns,
    /// Filters with wildcards, by literal prefix.
    prefixed: HashMap<Box<str>, Patterns>,
    /// How many prefixes of `prefixed` have n + 1 segments.
    prefixes_of: Vec<u32>,
}

/// Where a filter belongs.
enum Shape<'a> {
    Exact,
    Unprefixed,
    /// The literal prefix, and its segments.
    Prefixed(&'a str, usize),
}

impl FilterIndex {
    /// Adds `holder` to `filter`; it must not hold it already.
    pub(super) fn insert(&mut self, filter: &Filter, holder: Holder) {
        let patterns = match shape(filter) {
            Shape::Exact => &mut self.exact,
            Shape::Unprefixed => &mut self.unprefixed,
            Shape::Prefixed(prefix, segments) => {
                if !self.prefixed.contains_key(prefix) {
                    if self.prefixes_of.len() < segments {
                        self.prefixes_of.resize(segments, 0);
                    }
                    self.prefixes_of[segments - 1] += 1;
                }
                self.prefixed.entry(prefix.into()).or_default()
            }
        };
        patterns.entry(filter.clone()).or_default().push(holder);
    }

    /// Takes `member` off `filter`.
    pub(super) fn remove(&mut self, filter: &Filter, member: u32) {
        match shape(filter) {
            Shape::Exact => take_off(&mut self.exact, filter, member),
            Shape::Unprefixed => take_off(&mut self.unprefixed, filter, member),
            Shape::Prefixed(prefix, segments) => {
                let Some(patterns) = self.prefixed.get_mut(prefix) else {
                    return;
                };
                take_off(patterns, filter, member);
                if patterns.is_empty() {
                    self.prefixed.remove(prefix);
                    self.prefixes_of[segments - 1] -= 1;
                }
            }
        }
    }

    /// Sets what the application decided about `member` holding `filter`.
    pub(super) fn set_declined(&mut self, filter: &Filter, member: u32, declined: bool) {
        let patterns = match shape(filter) {
            Shape::Exact => Some(&mut self.exact),
            Shape::Unprefixed => Some(&mut self.unprefixed),
            Shape::Prefixed(prefix, _) => self.prefixed.get_mut(prefix),
        };
        let holders = patterns.and_then(|patterns| patterns.get_mut(filter));
        for holder in holders.into_iter().flatten() {
            if holder.member == member {
                holder.declined = declined;
            }
        }
    }

    /// Shows `visit` every hold on a filter that matches `topic`. A subscriber
    /// with several matching filters is shown several times.
    pub(super) fn visit(&self, topic: &str, mut visit: impl FnMut(Holder)) {
        let mut all = |holders: &Holders| holders.iter().copied().for_each(&mut visit);
        if let Some(holders) = self.exact.get(topic) {
            all(holders);
        }
        for (filter, holders) in &self.unprefixed {
            if filter.matches(topic) {
                all(holders);
            }
        }
        if self.prefixed.is_empty() {
            return;
        }
        let ends = topic.match_indices(SEPARATOR).map(|(at, _)| at);
        for (count, end) in self.prefixes_of.iter().zip(ends.chain([topic.len()])) {
            if *count == 0 {
                continue;
            }
            for (filter, holders) in self.prefixed.get(&topic[..end]).into_iter().flatten() {
                if filter.matches(topic) {
                    all(holders);
                }
            }
        }
    }
}

fn take_off(patterns: &mut Patterns, filter: &Filter, member: u32) {
    let Some(holders) = patterns.get_mut(filter) else {
        return;
    };
    if let Some(at) = holders.iter().position(|it| it.member == member) {
        holders.swap_remove(at);
    }
    if holders.is_empty() {
        patterns.remove(filter);
    }
}

fn shape(filter: &Filter) -> Shape<'_> {
    if filter.is_empty() {
        return Shape::Unprefixed; // everything, like `#`
    }
    let mut end = 0;
    for (segments, segment) in filter.split(SEPARATOR).enumerate() {
        if segment == ONE_SEGMENT || segment == REST {
            return match segments {
                0 => Shape::Unprefixed,
                // Without the separator before the wildcard.
                _ => Shape::Prefixed(&filter[..end - SEPARATOR.len_utf8()], segments),
            };
        }
        end += segment.len() + SEPARATOR.len_utf8();
    }
    Shape::Exact
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn filter(text: &str) -> Filter {
        text.parse().unwrap()
    }

    fn holder(member: u32) -> Holder {
        Holder {
            member,
            declined: false,
        }
    }

    fn matching(index: &FilterIndex, topic: &str) -> Vec<u32> {
        let mut members = Vec::new();
        index.visit(topic, |holder| members.push(holder.member));
        members.sort_unstable();
        members
    }

    #[test]
    fn wire_12_every_shape_is_found() {
        let filters = [
            "", "#", "*", "*.#", "px.*", "px.#", "px.", "a.b", "a.*.c", ".*", "*.eur",
        ];
        let mut index = FilterIndex::default();
        for (member, text) in (0..).zip(filters) {
            index.insert(&filter(text), holder(member));
        }
        for topic in [
            "", "px", "px.", "px.eur", "px.eur.x", "a.b", "a.b.c", "a..c", ".", ".x", "q", "..",
        ] {
            let expected: Vec<u32> = (0..)
                .zip(filters)
                .filter(|(_, text)| filter(text).matches(topic))
                .map(|(member, _)| member)
                .collect();
            assert_eq!(matching(&index, topic), expected, "{topic:?}");
        }
    }

    #[test]
    fn a_removed_filter_leaves_nothing_behind() {
        let mut index = FilterIndex::default();
        for text in ["", "a.b", "a.*", "a.b.#", "*"] {
            index.insert(&filter(text), holder(1));
            index.insert(&filter(text), holder(2));
            index.set_declined(&filter(text), 2, true);
            index.remove(&filter(text), 1);
            index.remove(&filter(text), 1);
            let mut left = Vec::new();
            index.visit("a.b", |holder| left.push(holder));
            let declined = Holder {
                member: 2,
                declined: true,
            };
            assert!(left.iter().all(|it| *it == declined), "{text:?}");
            index.remove(&filter(text), 2);
        }
        assert!(index.exact.is_empty() && index.unprefixed.is_empty());
        assert!(index.prefixed.is_empty());
        assert!(index.prefixes_of.iter().all(|count| *count == 0));
    }

    /// What is walked for one topic does not depend on filters of other topics.
    #[test]
    fn filters_that_cannot_match_are_not_walked() {
        let mut index = FilterIndex::default();
        for member in 0..10_000 {
            index.insert(&filter(&format!("device.{member}")), holder(member));
            index.insert(&filter(&format!("room.{member}.#")), holder(member));
        }
        assert_eq!(matching(&index, "device.77"), [77]);
        assert_eq!(matching(&index, "room.77.temp"), [77]);
        // One look-up each, and one filter behind it.
        assert_eq!(index.prefixes_of, [0, 10_000]);
        assert_eq!(index.prefixed["room.77"].len(), 1);
    }

    fn any_filter() -> impl Strategy<Value = String> {
        let segment = prop::sample::select(vec!["a", "b", "", "*"]);
        (prop::collection::vec(segment, 0..4), any::<bool>()).prop_map(|(mut segments, rest)| {
            if rest {
                segments.push("#");
            }
            segments.join(".")
        })
    }

    proptest! {
        /// The index finds exactly what the grammar's walk finds.
        #[test]
        fn the_index_agrees_with_the_walk(
            filters in prop::collection::hash_set(any_filter(), 0..12),
            gone in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
            topic in "[ab.]{0,7}",
        ) {
            let mut filters: Vec<Filter> = filters.iter().map(|text| filter(text)).collect();
            let mut index = FilterIndex::default();
            for (member, filter) in (0..).zip(&filters) {
                index.insert(filter, holder(member));
            }
            let mut expected: Vec<(u32, Filter)> = (0..).zip(filters.drain(..)).collect();
            for at in gone {
                if !expected.is_empty() {
                    let (member, filter) = expected.remove(at.index(expected.len()));
                    index.remove(&filter, member);
                }
            }
            let expected: Vec<u32> = expected
                .iter()
                .filter(|(_, filter)| filter.matches(&topic))
                .map(|(member, _)| *member)
                .collect();
            prop_assert_eq!(matching(&index, &topic), expected);
        }
    }
}
