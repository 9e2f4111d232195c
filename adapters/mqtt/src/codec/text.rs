//! UTF-8 Encoded Strings: validated once, then carried as slices of the read buffer. [MQTT5 1.5.4]

use std::borrow::Borrow;
use std::fmt;

use bytes::Bytes;

/// Text that is known to be a legal MQTT string: UTF-8, no U+0000, at most 65 535 bytes.
///
/// A slice of whatever buffer it was read from. Comparing, hashing and ordering go by bytes.
/// [`as_bytes`](Self::as_bytes) is free; [`as_str`](Self::as_str) walks the text once, because this workspace forbids
/// the unsafe shortcut.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Utf8Bytes(Bytes);

impl Utf8Bytes {
    /// Copies `text`.
    ///
    /// # Errors
    ///
    /// [`TextError::TooLong`] above 65 535 bytes, [`TextError::Nul`] when it holds U+0000.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        Self::from_bytes(Bytes::copy_from_slice(text.as_bytes()), false)
    }

    /// A constant of this program, such as a Reason String.
    ///
    /// # Panics
    ///
    /// When the constant is no legal MQTT string.
    #[must_use]
    pub fn from_static(text: &'static str) -> Self {
        Self::from_bytes(Bytes::from_static(text.as_bytes()), false)
            .expect("constants are legal strings")
    }

    /// Takes bytes over when they are a legal string; `strict` also refuses control characters and noncharacters.
    ///
    /// # Errors
    ///
    /// [`TextError`] names the first thing that is wrong.
    pub fn from_bytes(bytes: Bytes, strict: bool) -> Result<Self, TextError> {
        if bytes.len() > usize::from(u16::MAX) {
            return Err(TextError::TooLong {
                got_bytes: bytes.len(),
            });
        }
        check(&bytes, strict)?;
        Ok(Self(bytes))
    }

    /// The bytes are checked already.
    pub(super) const fn trusted(bytes: Bytes) -> Self {
        Self(bytes)
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("checked when it was built")
    }

    /// The text's bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The shared buffer behind the text.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        self.0
    }

    /// Length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no text.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A copy of its own, for whoever keeps a short text longer than the read buffer it came in.
    #[must_use]
    pub fn detached(&self) -> Self {
        Self(Bytes::copy_from_slice(&self.0))
    }
}

/// Checks without building: the one text rule of the codec. [MQTT-1.5.4-1] [MQTT-1.5.4-2]
pub(super) fn check(bytes: &[u8], strict: bool) -> Result<(), TextError> {
    // Nearly every name is printable ASCII; this loop has no early exit, so it runs on vectors.
    let odd = bytes
        .iter()
        .fold(false, |odd, &b| odd | (b.wrapping_sub(0x20) >= 0x5f));
    if !odd {
        return Ok(());
    }
    let text = std::str::from_utf8(bytes).map_err(|e| TextError::NotUtf8 {
        valid_bytes: e.valid_up_to(),
    })?;
    for c in text.chars() {
        if c == '\0' {
            return Err(TextError::Nul);
        }
        if strict && is_disallowed(c) {
            return Err(TextError::Disallowed {
                code_point: u32::from(c),
            });
        }
    }
    Ok(())
}

/// Control characters and noncharacters that the standard advises against. [MQTT5 1.5.4]
fn is_disallowed(c: char) -> bool {
    c.is_control() || ('\u{fdd0}'..='\u{fdef}').contains(&c) || u32::from(c) & 0xfffe == 0xfffe
}

/// Why bytes are no MQTT string.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TextError {
    /// Not UTF-8 (surrogates included), from this byte on.
    #[error("not utf-8 after {valid_bytes} bytes")]
    NotUtf8 {
        /// Bytes before the fault.
        valid_bytes: usize,
    },
    /// U+0000 is forbidden everywhere.
    #[error("text holds U+0000")]
    Nul,
    /// Strict mode only: a control character or a noncharacter.
    #[error("text holds U+{code_point:04X}")]
    Disallowed {
        /// The character's code point.
        code_point: u32,
    },
    /// Longer than a two-byte length can say.
    #[error("text of {got_bytes} bytes, at most 65535 fit")]
    TooLong {
        /// Its length.
        got_bytes: usize,
    },
}

impl Borrow<[u8]> for Utf8Bytes {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

impl AsRef<[u8]> for Utf8Bytes {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl PartialEq<str> for Utf8Bytes {
    fn eq(&self, other: &str) -> bool {
        self.0 == other.as_bytes()
    }
}

impl PartialEq<&str> for Utf8Bytes {
    fn eq(&self, other: &&str) -> bool {
        self.0 == other.as_bytes()
    }
}

impl fmt::Display for Utf8Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Utf8Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}
