//! Topic filters: exact segments, `*` for one, a last `#` for the rest. [wire 12]
//!
//! A filter and a topic are split on `.` and walked once, left to right. Nothing backtracks and
//! nothing allocates, so a filter a stranger chose costs at most its own 256 bytes per topic.

use std::{fmt, ops::Deref};

use crate::{error::Error, text::Text};

/// Longest filter, in bytes.
pub const MAX_FILTER_BYTES: usize = 256;
/// Matches exactly one whole segment, also an empty one.
pub const ONE_SEGMENT: &str = "*";
/// Matches zero or more remaining segments; legal only as the last one.
pub const REST: &str = "#";
/// What separates segments.
pub const SEPARATOR: char = '.';

/// A filter that obeys the grammar; cloning shares the text.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Filter(Text);

/// How a text fails to be a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FilterError {
    /// Longer than [`MAX_FILTER_BYTES`].
    #[error("filter of {got_bytes} bytes is over the cap of {max_bytes}")]
    TooLong {
        /// Length of the refused text.
        got_bytes: usize,
        /// The cap.
        max_bytes: usize,
    },
    /// `*` or `#` shares its segment with other bytes.
    #[error("wildcard is not alone in segment {segment}")]
    WildcardNotAlone {
        /// Index of the segment, from 0.
        segment: usize,
    },
    /// `#` stands before the last segment.
    #[error("`#` in segment {segment} is not the last segment")]
    RestNotLast {
        /// Index of the segment, from 0.
        segment: usize,
    },
}

impl Filter {
    /// The filter that matches every topic.
    pub const EVERYTHING: Self = Self(Text::from_static(""));

    /// Checks the cap and the grammar and takes the text over.
    ///
    /// # Errors
    ///
    /// [`FilterError`] with the rule that was broken.
    pub fn new(text: impl Into<Text>) -> Result<Self, FilterError> {
        let text = text.into();
        validate(&text)?;
        Ok(Self(text))
    }

    /// Whether `topic` is selected. The topic is never a pattern.
    pub fn matches(&self, topic: &str) -> bool {
        matches(topic, self.as_str())
    }

    /// The filter as text.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl std::str::FromStr for Filter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, FilterError> {
        validate(text)?;
        Ok(Self(text.into()))
    }
}

impl TryFrom<&str> for Filter {
    type Error = FilterError;

    fn try_from(text: &str) -> Result<Self, FilterError> {
        text.parse()
    }
}

impl Deref for Filter {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl std::borrow::Borrow<str> for Filter {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Filter({:?})", self.as_str())
    }
}

impl From<FilterError> for Error {
    /// A filter every conforming peer would close the connection over fails locally the same way.
    fn from(error: FilterError) -> Self {
        Self::Protocol(error.to_string())
    }
}

/// Checks a text against the cap and the grammar in one pass.
///
/// # Errors
///
/// [`FilterError`] with the rule that was broken.
pub fn validate(filter: &str) -> Result<(), FilterError> {
    if filter.len() > MAX_FILTER_BYTES {
        return Err(FilterError::TooLong {
            got_bytes: filter.len(),
            max_bytes: MAX_FILTER_BYTES,
        });
    }
    let mut segments = filter.split(SEPARATOR).enumerate().peekable();
    while let Some((segment, text)) = segments.next() {
        match text {
            ONE_SEGMENT => {}
            REST if segments.peek().is_none() => {}
            REST => return Err(FilterError::RestNotLast { segment }),
            _ if text.bytes().any(|byte| matches!(byte, b'*' | b'#')) => {
                return Err(FilterError::WildcardNotAlone { segment });
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether `topic` is selected by `filter`, which is taken as already valid.
///
/// An invalid filter matches something or nothing, but never panics.
pub fn matches(topic: &str, filter: &str) -> bool {
    if filter.is_empty() {
        return true;
    }
    let (mut topic, mut filter) = (Some(topic), Some(filter));
    loop {
        let Some(rest_of_filter) = filter else {
            return topic.is_none();
        };
        let (wanted, next_filter) = cut(rest_of_filter);
        if wanted == REST {
            return true;
        }
        let Some(rest_of_topic) = topic else {
            return false;
        };
        let (segment, next_topic) = cut(rest_of_topic);
        if wanted != ONE_SEGMENT && wanted != segment {
            return false;
        }
        (topic, filter) = (next_topic, next_filter);
    }
}

/// First segment, and what follows its separator if there is one.
fn cut(text: &str) -> (&str, Option<&str>) {
    match text.split_once(SEPARATOR) {
        Some((segment, rest)) => (segment, Some(rest)),
        None => (text, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of [wire 12].
    #[test]
    fn wire_12_filter_table() {
        let rows: [(&str, &[&str], &[&str]); 8] = [
            ("px.*", &["px.eur", "px.", "px.*"], &["px", "px.eur.x"]),
            ("px.#", &["px", "px.", "px.eur", "px.a.b"], &["pxx"]),
            ("px.", &["px."], &["px.eur", "px"]),
            ("a.b", &["a.b"], &["a.b.", "a.b.c", "A.b"]),
            ("*.#", &["", "a", "a.b", "..", "*"], &[]),
            ("*", &["", "a"], &["a.b"]),
            ("a.*.c", &["a.b.c", "a..c"], &["a.c"]),
            ("", &["", "a", "a.b"], &[]),
        ];
        for (filter, selected, others) in rows {
            let filter = Filter::new(filter).unwrap();
            for topic in selected {
                assert!(filter.matches(topic), "{filter:?} {topic:?}");
                assert!(Filter::new("#").unwrap().matches(topic));
            }
            for topic in others {
                assert!(!filter.matches(topic), "{filter:?} {topic:?}");
            }
        }
    }

    #[test]
    fn ps_3_illegal_filters_name_the_rule() {
        for good in ["", "#", "*", "*.#", "a.*.b", "a..b", ".", "x.#"] {
            assert_eq!(validate(good), Ok(()), "{good:?}");
        }
        assert_eq!(validate(&"x".repeat(256)), Ok(()));
        let rows = [
            ("a#", FilterError::WildcardNotAlone { segment: 0 }),
            ("#.b", FilterError::RestNotLast { segment: 0 }),
            ("a*b", FilterError::WildcardNotAlone { segment: 0 }),
            ("a.#.b", FilterError::RestNotLast { segment: 1 }),
            ("a.**", FilterError::WildcardNotAlone { segment: 1 }),
            ("#.", FilterError::RestNotLast { segment: 0 }),
        ];
        for (bad, rule) in rows {
            assert_eq!(validate(bad), Err(rule), "{bad:?}");
            assert!(matches!(Error::from(rule), Error::Protocol(_)));
        }
        let long = FilterError::TooLong {
            got_bytes: 257,
            max_bytes: 256,
        };
        assert_eq!(validate(&"x".repeat(257)), Err(long));
    }
}
