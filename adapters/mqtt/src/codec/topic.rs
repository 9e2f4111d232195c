//! Topic Names and Topic Filters: validity, matching, containment. [MQTT5 4.7] [MQTT5 4.8.2]
//!
//! Everything walks levels with an iterator: no recursion, no allocation, whatever the peer wrote.

use std::fmt;

use super::{TextError, Utf8Bytes};

/// Deepest topic or filter that anything in this crate will look at.
pub const MAX_LEVELS: usize = 128;

/// The name a message is published under: no wildcard.
///
/// Empty only in a [`Publish`](super::Publish) that names its topic by alias; the state machine fills it in before
/// anybody above sees it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct TopicName(Utf8Bytes);

impl TopicName {
    /// Checks a name that did not come off the wire.
    ///
    /// # Errors
    ///
    /// [`TopicError`]: empty, too long, U+0000 or a wildcard.
    pub fn parse(text: &str) -> Result<Self, TopicError> {
        if text.is_empty() {
            return Err(TopicError::Empty);
        }
        Self::from_text(Utf8Bytes::parse(text)?)
    }

    /// Takes validated text over; empty text passes, see the type.
    pub(super) fn from_text(text: Utf8Bytes) -> Result<Self, TopicError> {
        if text.as_bytes().iter().any(|&b| b == b'+' || b == b'#') {
            return Err(TopicError::Wildcard);
        }
        Ok(Self(text))
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// The name's bytes, free of charge.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// Length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether an alias stands for the name.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Number of levels: separators plus one.
    #[must_use]
    pub fn levels(&self) -> usize {
        count_levels(self.as_bytes())
    }

    /// Whether the first character is `$`, which leading wildcards do not match. [MQTT5 4.7.2]
    #[must_use]
    pub fn is_reserved(&self) -> bool {
        self.as_bytes().first() == Some(&b'$')
    }

    /// A copy that does not keep the read buffer alive.
    #[must_use]
    pub fn detached(&self) -> Self {
        Self(self.0.detached())
    }
}

/// A validated filter, shared or not.
///
/// ```
/// use weida_mqtt::codec::{TopicFilter, TopicName};
///
/// let filter = TopicFilter::parse("$share/workers/sport/#")?;
/// assert_eq!(filter.share_name(), Some("workers"));
/// assert!(filter.matches(&TopicName::parse("sport").unwrap()));
/// assert!(TopicFilter::parse("sport/tennis#").is_err());
/// # Ok::<(), weida_mqtt::codec::FilterError>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicFilter {
    text: Utf8Bytes,
    /// Bytes of `$share/{name}/`; 0 when the subscription is not shared.
    prefix_bytes: u16,
}

impl TopicFilter {
    /// Checks and copies a filter that did not come off the wire.
    ///
    /// # Errors
    ///
    /// [`FilterError`] names the rule.
    pub fn parse(text: &str) -> Result<Self, FilterError> {
        Self::from_text(Utf8Bytes::parse(text)?).map_err(|invalid| invalid.error)
    }

    /// Takes validated text over, or hands it back with the reason.
    ///
    /// # Errors
    ///
    /// [`InvalidFilter`] with the text and the rule it breaks.
    pub fn from_text(text: Utf8Bytes) -> Result<Self, InvalidFilter> {
        match check(text.as_bytes()) {
            Ok(prefix_bytes) => Ok(Self { text, prefix_bytes }),
            Err(error) => Err(InvalidFilter { text, error }),
        }
    }

    /// The whole filter as the client wrote it, `$share` included.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.text.as_str()
    }

    /// The same as bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.text.as_bytes()
    }

    /// The part that topics are matched against: everything behind `$share/{name}/`.
    #[must_use]
    pub fn pattern(&self) -> &[u8] {
        self.as_bytes()
            .get(usize::from(self.prefix_bytes)..)
            .unwrap_or_default()
    }

    /// Name of the shared subscription, when it is one. [MQTT5 4.8.2]
    #[must_use]
    pub fn share_name(&self) -> Option<&str> {
        let prefix = self.as_bytes().get(..usize::from(self.prefix_bytes))?;
        let name = prefix.strip_prefix(SHARE)?.strip_suffix(b"/")?;
        std::str::from_utf8(name).ok()
    }

    /// Whether this is a shared subscription.
    #[must_use]
    pub const fn is_shared(&self) -> bool {
        self.prefix_bytes != 0
    }

    /// Whether the pattern has a wildcard in it.
    #[must_use]
    pub fn has_wildcard(&self) -> bool {
        self.pattern().iter().any(|&b| b == b'+' || b == b'#')
    }

    /// Levels of the pattern.
    #[must_use]
    pub fn levels(&self) -> usize {
        count_levels(self.pattern())
    }

    /// Whether a message under `topic` belongs to this filter. [MQTT5 4.7.1] [MQTT5 4.7.2]
    #[must_use]
    pub fn matches(&self, topic: &TopicName) -> bool {
        matches(self.pattern(), topic.as_bytes())
    }

    /// Whether every topic that `other` matches is matched by this filter too; share names do not count.
    #[must_use]
    pub fn contains(&self, other: &Self) -> bool {
        contains(self.pattern(), other.pattern())
    }

    /// A copy that does not keep the read buffer alive.
    #[must_use]
    pub fn detached(&self) -> Self {
        Self {
            text: self.text.detached(),
            prefix_bytes: self.prefix_bytes,
        }
    }
}

const SHARE: &[u8] = b"$share/";

/// Validates and returns the length of the `$share/{name}/` prefix.
fn check(text: &[u8]) -> Result<u16, FilterError> {
    let mut prefix_bytes = 0u16;
    let mut pattern = text;
    if let Some(rest) = text.strip_prefix(SHARE) {
        let end = rest
            .iter()
            .position(|&b| b == b'/')
            .ok_or(FilterError::ShareWithoutFilter)?;
        let name = rest.get(..end).unwrap_or_default();
        if name.is_empty() {
            return Err(FilterError::ShareNameEmpty);
        }
        if name.len() > MAX_SHARE_NAME_BYTES {
            return Err(FilterError::ShareNameTooLong {
                got_bytes: name.len(),
            });
        }
        if name.iter().any(|&b| b == b'+' || b == b'#') {
            return Err(FilterError::ShareNameWildcard);
        }
        pattern = rest.get(end.saturating_add(1)..).unwrap_or_default();
        if pattern.is_empty() {
            return Err(FilterError::ShareWithoutFilter);
        }
        let taken = text.len().saturating_sub(pattern.len());
        prefix_bytes = u16::try_from(taken).map_err(|_| FilterError::ShareWithoutFilter)?;
    }
    if pattern.is_empty() {
        return Err(FilterError::Empty);
    }
    let levels = count_levels(pattern);
    if levels > MAX_LEVELS {
        return Err(FilterError::TooDeep {
            levels,
            max_levels: MAX_LEVELS,
        });
    }
    let mut rest = split(pattern).peekable();
    while let Some(level) = rest.next() {
        match level {
            b"#" if rest.peek().is_some() => return Err(FilterError::HashNotLast),
            b"#" | b"+" => {}
            _ if level.iter().any(|&b| b == b'+' || b == b'#') => {
                return Err(FilterError::WildcardNotAlone);
            }
            _ => {}
        }
    }
    Ok(prefix_bytes)
}

const MAX_SHARE_NAME_BYTES: usize = 64;

fn split(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|&b| b == b'/')
}

fn count_levels(text: &[u8]) -> usize {
    text.iter()
        .filter(|&&b| b == b'/')
        .count()
        .saturating_add(1)
}

fn starts_wild(pattern: &[u8]) -> bool {
    matches!(pattern.first(), Some(b'+' | b'#'))
}

fn matches(pattern: &[u8], topic: &[u8]) -> bool {
    if topic.first() == Some(&b'$') && starts_wild(pattern) {
        return false;
    }
    let mut levels = split(topic);
    for wanted in split(pattern) {
        if wanted == b"#" {
            // Also with no level left: `sport/#` matches `sport`.
            return true;
        }
        match levels.next() {
            Some(level) if wanted == b"+" || wanted == level => {}
            Some(_) | None => return false,
        }
    }
    levels.next().is_none()
}

fn contains(outer: &[u8], inner: &[u8]) -> bool {
    if inner.first() == Some(&b'$') && starts_wild(outer) {
        return false;
    }
    if inner == b"#" {
        // Every topic has a first level, so `+/#` is as wide as `#`.
        return outer == b"#" || outer == b"+/#";
    }
    let mut levels = split(inner);
    for wanted in split(outer) {
        if wanted == b"#" {
            return true;
        }
        match levels.next() {
            Some(level) if level != b"#" && (wanted == b"+" || wanted == level) => {}
            Some(_) | None => return false,
        }
    }
    levels.next().is_none()
}

/// Why text is no Topic Name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TopicError {
    /// No characters.
    #[error("topic is empty")]
    Empty,
    /// `+` or `#`.
    #[error("topic holds a wildcard")]
    Wildcard,
    /// No MQTT string at all.
    #[error("topic is no legal text")]
    Text(#[from] TextError),
}

/// Why text is no Topic Filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FilterError {
    /// No characters.
    #[error("filter is empty")]
    Empty,
    /// `#` stands before the last level.
    #[error("# is not the last level")]
    HashNotLast,
    /// `+` or `#` shares its level with other characters.
    #[error("a wildcard shares its level")]
    WildcardNotAlone,
    /// `$share//...`
    #[error("share name is empty")]
    ShareNameEmpty,
    /// Longer than 64 bytes.
    #[error("share name of {got_bytes} bytes, at most 64")]
    ShareNameTooLong {
        /// Its length.
        got_bytes: usize,
    },
    /// `+` or `#` in the share name.
    #[error("share name holds a wildcard")]
    ShareNameWildcard,
    /// `$share/name` with nothing behind it.
    #[error("shared subscription without a filter")]
    ShareWithoutFilter,
    /// More levels than anything here looks at.
    #[error("filter of {levels} levels, at most {max_levels}")]
    TooDeep {
        /// Levels counted.
        levels: usize,
        /// The cap.
        max_levels: usize,
    },
    /// No MQTT string at all.
    #[error("filter is no legal text")]
    Text(#[from] TextError),
}

/// A filter as it came, and what is wrong with it: answered by its own code in SUBACK, never by a close.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid filter")]
pub struct InvalidFilter {
    /// What the client wrote.
    pub text: Utf8Bytes,
    /// The rule it breaks.
    #[source]
    pub error: FilterError,
}

impl fmt::Display for TopicName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for TopicName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Display for TopicFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.text, f)
    }
}

impl fmt::Debug for TopicFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}
