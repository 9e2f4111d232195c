//! Subscriptions of one listener group as a trie of levels, changed by copying one path.
//!
//! Readers hold one version and never see half a change. Walking is iterative: its depth is
//! bounded by the level cap, its memory by an explicit stack. [mqtt 5.1]

use std::hash::RandomState;
use std::sync::Arc;

use super::table::Table;

/// One version of all subscriptions; `S` is what one session keeps at one filter.
#[derive(Debug)]
pub(crate) struct Trie<S> {
    root: Arc<Node<S>>,
    hasher: RandomState,
    filters: usize,
}

/// One level: what ends here, what ends here with `#`, and what goes on.
#[derive(Debug)]
struct Node<S> {
    exact: Table<u64, S>,
    rest: Table<u64, S>,
    plus: Option<Arc<Self>>,
    children: Table<Box<[u8]>, Arc<Self>>,
}

impl<S> Default for Node<S> {
    fn default() -> Self {
        Self {
            exact: Table::default(),
            rest: Table::default(),
            plus: None,
            children: Table::default(),
        }
    }
}

impl<S> Clone for Node<S> {
    fn clone(&self) -> Self {
        Self {
            exact: self.exact.clone(),
            rest: self.rest.clone(),
            plus: self.plus.clone(),
            children: self.children.clone(),
        }
    }
}

impl<S> Default for Trie<S> {
    fn default() -> Self {
        Self {
            root: Arc::default(),
            hasher: RandomState::new(),
            filters: 0,
        }
    }
}

impl<S> Clone for Trie<S> {
    fn clone(&self) -> Self {
        Self {
            root: Arc::clone(&self.root),
            hasher: self.hasher.clone(),
            filters: self.filters,
        }
    }
}

impl<S: Clone> Trie<S> {
    /// Subscriptions held, over all sessions.
    pub(crate) fn len(&self) -> usize {
        self.filters
    }

    /// Puts what `session` keeps at `filter`; returns what stood there.
    pub(crate) fn insert(&mut self, filter: &[u8], session: u64, subscription: S) -> Option<S> {
        let hasher = self.hasher.clone();
        let mut node = Arc::make_mut(&mut self.root);
        let mut levels = filter.split(|byte| *byte == b'/');
        let old = loop {
            match levels.next() {
                Some(b"#") => break node.rest.insert(&hasher, session, subscription),
                Some(level) => node = node.step_mut(&hasher, level),
                None => break node.exact.insert(&hasher, session, subscription),
            }
        };
        self.filters += usize::from(old.is_none());
        old
    }

    /// Takes what `session` keeps at `filter`, and the branch with it when nothing else uses it.
    pub(crate) fn remove(&mut self, filter: &[u8], session: u64) -> Option<S> {
        let hasher = self.hasher.clone();
        let mut path = Vec::new();
        let mut node = Arc::clone(&self.root);
        let mut whole = false;
        for level in filter.split(|byte| *byte == b'/') {
            if level == b"#" {
                whole = true;
                break;
            }
            let next = node.step(&hasher, level)?;
            path.push((node, level));
            node = next;
        }
        let mut changed = (*node).clone();
        let table = if whole {
            &mut changed.rest
        } else {
            &mut changed.exact
        };
        let removed = table.remove(&hasher, &session)?;
        for (parent, level) in path.into_iter().rev() {
            let mut parent = (*parent).clone();
            let child = (!changed.is_empty()).then(|| Arc::new(changed));
            parent.put(&hasher, level, child);
            changed = parent;
        }
        self.root = Arc::new(changed);
        self.filters -= 1;
        Some(removed)
    }

    /// Calls `hit` with every table of subscriptions that selects `topic`.
    ///
    /// `$` topics are not selected by a leading wildcard. [MQTT-4.7.2-1]
    pub(crate) fn visit<'a>(&'a self, topic: &[u8], mut hit: impl FnMut(&'a Table<u64, S>)) {
        let dollar = topic.first() == Some(&b'$');
        // One entry per branch still to walk: the node and where its level begins in the topic;
        // `None` = the topic is used up.
        let mut stack: Vec<(&Node<S>, Option<usize>)> = vec![(&self.root, Some(0))];
        while let Some((node, at)) = stack.pop() {
            let wildcards = !(dollar && at == Some(0));
            if wildcards && !node.rest.is_empty() {
                hit(&node.rest);
            }
            let Some(at) = at else {
                if !node.exact.is_empty() {
                    hit(&node.exact);
                }
                continue;
            };
            let tail = &topic[at..];
            let (level, next) = match memchr::memchr(b'/', tail) {
                Some(slash) => (&tail[..slash], Some(at + slash + 1)),
                None => (tail, None),
            };
            if let Some(plus) = node.plus.as_deref()
                && wildcards
            {
                stack.push((plus, next));
            }
            if let Some(child) = node.children.get(&self.hasher, level) {
                stack.push((child, next));
            }
        }
    }
}

impl<S: Clone> Node<S> {
    fn is_empty(&self) -> bool {
        self.exact.is_empty()
            && self.rest.is_empty()
            && self.plus.is_none()
            && self.children.is_empty()
    }

    fn step(&self, hasher: &RandomState, level: &[u8]) -> Option<Arc<Self>> {
        match level {
            b"+" => self.plus.clone(),
            level => self.children.get(hasher, level).cloned(),
        }
    }

    fn step_mut(&mut self, hasher: &RandomState, level: &[u8]) -> &mut Self {
        if level == b"+" {
            return Arc::make_mut(self.plus.get_or_insert_default());
        }
        if self.children.get(hasher, level).is_none() {
            self.children.insert(hasher, level.into(), Arc::default());
        }
        let child = self.children.get_mut(hasher, level);
        Arc::make_mut(child.expect("inserted two lines above"))
    }

    fn put(&mut self, hasher: &RandomState, level: &[u8], child: Option<Arc<Self>>) {
        match (level, child) {
            (b"+", child) => self.plus = child,
            (level, Some(child)) => {
                self.children.insert(hasher, level.into(), child);
            }
            (level, None) => {
                self.children.remove(hasher, level);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::{TopicFilter, TopicName};
    use proptest::prelude::*;

    fn hits(trie: &Trie<&'static str>, topic: &str) -> Vec<(u64, &'static str)> {
        let mut found = Vec::new();
        trie.visit(topic.as_bytes(), |table| {
            found.extend(table.iter().map(|(id, s)| (*id, *s)))
        });
        found.sort_unstable();
        found
    }

    #[test]
    fn a_leading_wildcard_excludes_dollar_topics() {
        let mut trie = Trie::default();
        trie.insert(b"#", 1, "all");
        trie.insert(b"+/x", 2, "plus");
        trie.insert(b"$SYS/#", 3, "sys");
        assert_eq!(hits(&trie, "$SYS/x"), [(3, "sys")]);
        assert_eq!(hits(&trie, "a/x"), [(1, "all"), (2, "plus")]);
    }

    #[test]
    fn removing_the_last_subscription_removes_the_branch() {
        let mut trie = Trie::default();
        for filter in ["a/b/c", "a/+/c", "a/#", "#"] {
            assert_eq!(trie.insert(filter.as_bytes(), 1, "x"), None);
            assert_eq!(trie.insert(filter.as_bytes(), 1, "y"), Some("x"));
        }
        assert_eq!(trie.len(), 4);
        for filter in ["a/b/c", "a/+/c", "a/#", "#"] {
            assert_eq!(trie.remove(filter.as_bytes(), 1), Some("y"));
            assert_eq!(trie.remove(filter.as_bytes(), 1), None);
        }
        assert!(trie.root.is_empty());
        assert_eq!(trie.len(), 0);
    }

    fn level() -> impl Strategy<Value = String> {
        prop_oneof![
            Just(String::new()),
            Just("$a".into()),
            "[ab]",
            Just("ä".into())
        ]
    }

    fn wanted() -> impl Strategy<Value = String> {
        prop_oneof![3 => level(), 1 => Just("+".to_owned())]
    }

    fn filter() -> impl Strategy<Value = String> {
        (proptest::collection::vec(wanted(), 1..5), any::<bool>()).prop_map(|(mut levels, rest)| {
            if rest {
                levels.push("#".into());
            }
            levels.join("/")
        })
    }

    proptest! {
        /// The trie selects exactly what the one-filter matcher selects, also after removals.
        #[test]
        fn trie_and_matcher_agree(
            filters in proptest::collection::vec(filter(), 0..20),
            gone in proptest::collection::vec(any::<bool>(), 20),
            topics in proptest::collection::vec(proptest::collection::vec(level(), 1..5), 1..10),
        ) {
            let filters: Vec<TopicFilter> =
                filters.iter().filter_map(|f| TopicFilter::parse(f).ok()).collect();
            let mut trie = Trie::default();
            for (id, filter) in filters.iter().enumerate() {
                trie.insert(filter.as_bytes(), id as u64, "");
            }
            for (id, filter) in filters.iter().enumerate() {
                if gone[id] {
                    prop_assert!(trie.remove(filter.as_bytes(), id as u64).is_some());
                }
            }
            for topic in topics {
                let topic = topic.join("/");
                prop_assume!(!topic.is_empty());
                let expected: Vec<u64> = filters.iter().enumerate()
                    .filter(|(id, filter)| !gone[*id] && filter.matches(&TopicName::parse(&topic).unwrap()))
                    .map(|(id, _)| id as u64)
                    .collect();
                let found: Vec<u64> = hits(&trie, &topic).into_iter().map(|(id, _)| id).collect();
                prop_assert_eq!(found, expected, "topic {:?}", topic);
            }
        }
    }
}
