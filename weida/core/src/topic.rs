//! Topics: opaque `.`-separated labels, never patterns. [wire 12]

use std::{borrow::Borrow, fmt, ops::Deref};

use crate::{error::Error, text::Text};

/// Longest topic, in bytes.
pub const MAX_TOPIC_BYTES: usize = 256;

/// A topic of at most [`MAX_TOPIC_BYTES`] bytes; cloning shares the text.
///
/// Any UTF-8 within the cap is a topic, the empty text included. `*` and `#` are plain bytes.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Topic(Text);

/// A text is too long to be a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("topic of {got_bytes} bytes is over the cap of {max_bytes}")]
pub struct TopicTooLong {
    /// Length of the refused text.
    pub got_bytes: usize,
    /// The cap, [`MAX_TOPIC_BYTES`].
    pub max_bytes: usize,
}

impl Topic {
    /// Checks the cap and takes the text over.
    ///
    /// # Errors
    ///
    /// [`TopicTooLong`] above [`MAX_TOPIC_BYTES`] bytes.
    pub fn new(text: impl Into<Text>) -> Result<Self, TopicTooLong> {
        let text = text.into();
        let got_bytes = text.len();
        if got_bytes > MAX_TOPIC_BYTES {
            return Err(TopicTooLong {
                got_bytes,
                max_bytes: MAX_TOPIC_BYTES,
            });
        }
        Ok(Self(text))
    }

    /// The topic as text.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// The shared text inside.
    pub fn into_text(self) -> Text {
        self.0
    }
}

impl TryFrom<&str> for Topic {
    type Error = TopicTooLong;

    fn try_from(text: &str) -> Result<Self, TopicTooLong> {
        // Checked before the copy, so that a refused text costs nothing.
        if text.len() > MAX_TOPIC_BYTES {
            return Err(TopicTooLong {
                got_bytes: text.len(),
                max_bytes: MAX_TOPIC_BYTES,
            });
        }
        Ok(Self(text.into()))
    }
}

impl std::str::FromStr for Topic {
    type Err = TopicTooLong;

    fn from_str(text: &str) -> Result<Self, TopicTooLong> {
        text.try_into()
    }
}

impl Deref for Topic {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl Borrow<str> for Topic {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Topic({:?})", self.as_str())
    }
}

impl From<TopicTooLong> for Error {
    fn from(_: TopicTooLong) -> Self {
        Self::LimitExceeded(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cap_is_256_bytes() {
        assert!(Topic::new("x".repeat(256)).is_ok());
        let refused = TopicTooLong {
            got_bytes: 257,
            max_bytes: 256,
        };
        assert_eq!(Topic::new("x".repeat(257)), Err(refused));
        assert_eq!(Topic::try_from("x".repeat(257).as_str()), Err(refused));
        // Bytes count, not characters.
        assert!(Topic::new("Ä".repeat(128)).is_ok());
        assert!(Topic::new("Ä".repeat(129)).is_err());
    }

    #[test]
    fn empty_and_starred_topics_are_plain_text() {
        assert_eq!(Topic::new("").unwrap().as_str(), "");
        assert_eq!(Topic::new("px.*").unwrap().as_str(), "px.*");
    }
}
