//! Name spaces and the bijection between two of them [mqtt 10] [gateway 2.4].
//!
//! A name is a list of segments. Each space spells a segment in its own way, and spelling ([`Space::encode`]) and reading
//! ([`Space::decode`]) are inverse to each other, so a name crosses into another space and back unchanged:
//!
//! ```text
//!   name ──split at separator──> segments ──decode (source)──> meaning ──encode (target)──> join ──> name
//! ```
//!
//! A *run* is `%`, then `25` k times, then the upper-case hex of a reserved byte. Spelling adds one `25` to each run and
//! writes each reserved byte as `%HH`; reading takes one `25` away, or gives the byte. All else stays as it is, so `100%`
//! and `%41` are ordinary text.
//!
//! [`WEIDA`] is the only space named here; every adapter brings its own as a constant.

use std::fmt;

use crate::outcome::DropCause;

mod cover;
mod template;

pub use cover::{Cover, Obligation};
pub use template::{Captures, Template, TemplateError};

/// How weida topics are written: segments at `.`, wildcards `*` and final `#`, at most 256 bytes [wire 12].
pub const WEIDA: Space = Space::new('.')
    .one("*")
    .rest("#")
    .reserve_whole(&["*", "#"])
    .empty_filter_is_all()
    .wildcards_alone()
    .max_bytes(256);

/// A name space: separator, wildcards and reserved bytes, as data.
///
/// ```
/// use weida_bridge::names::{Space, WEIDA};
///
/// let slashes = Space::new('/').one("+").rest("#").reserve("+#\0").refuse_empty();
/// assert_eq!(slashes.name_to(&WEIDA, "plant/7/temp")?, "plant.7.temp");
/// assert_eq!(slashes.name_to(&WEIDA, "v1.0/x")?, "v1%2E0.x");
/// assert_eq!(WEIDA.name_to(&slashes, "v1%2E0.x")?, "v1.0/x");
/// assert!(slashes.name_to(&WEIDA, "").is_err());
/// # Ok::<(), weida_bridge::NameError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Space {
    separator: u8,
    one: Option<&'static str>,
    rest: Option<&'static str>,
    rest_takes_none: bool,
    /// Bit n: byte n is reserved wherever it stands in a segment.
    anywhere: u128,
    /// Bit n: byte n is reserved when it is the whole segment.
    whole: u128,
    refuse_empty: bool,
    spell_empty: bool,
    empty_filter_is_all: bool,
    wildcards_alone: bool,
    max_bytes: usize,
}

impl Space {
    /// A space whose segments stand between `separator`s, which no segment can hold raw.
    ///
    /// # Panics
    /// At compile time in a constant: when the separator is not ASCII, or is `%`.
    #[must_use]
    pub const fn new(separator: char) -> Self {
        assert!(
            separator.is_ascii() && separator != '%',
            "the separator is one ASCII character, not %"
        );
        Self {
            separator: separator as u8,
            one: None,
            rest: None,
            rest_takes_none: true,
            anywhere: 1 << (separator as u8),
            whole: 0,
            refuse_empty: false,
            spell_empty: false,
            empty_filter_is_all: false,
            wildcards_alone: false,
            max_bytes: usize::MAX,
        }
    }

    /// The filter segment that stands for exactly one segment.
    #[must_use]
    pub const fn one(mut self, wildcard: &'static str) -> Self {
        self.one = Some(wildcard);
        self
    }

    /// The last filter segment that stands for all that follow, none included.
    #[must_use]
    pub const fn rest(mut self, wildcard: &'static str) -> Self {
        self.rest = Some(wildcard);
        self
    }

    /// The rest wildcard of this space wants at least one segment.
    #[must_use]
    pub const fn rest_needs_one(mut self) -> Self {
        self.rest_takes_none = false;
        self
    }

    /// Bytes that no segment can hold raw, beside the separator.
    ///
    /// # Panics
    /// At compile time in a constant: when a byte is not ASCII, or is `%`, a digit or an upper-case hex letter.
    #[must_use]
    pub const fn reserve(mut self, bytes: &'static str) -> Self {
        let bytes = bytes.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            self.anywhere |= reservable(bytes[at]);
            at += 1;
        }
        self
    }

    /// One-byte segments that cannot be written raw, though the byte may stand among others.
    ///
    /// # Panics
    /// At compile time in a constant: when one is not a single byte that [`reserve`](Self::reserve) would take.
    #[must_use]
    pub const fn reserve_whole(mut self, segments: &'static [&'static str]) -> Self {
        let mut at = 0;
        while at < segments.len() {
            let segment = segments[at].as_bytes();
            assert!(segment.len() == 1, "a reserved whole segment is one byte");
            self.whole |= reservable(segment[0]);
            at += 1;
        }
        self
    }

    /// The empty name does not exist here.
    #[must_use]
    pub const fn refuse_empty(mut self) -> Self {
        self.refuse_empty = true;
        self
    }

    /// An empty segment cannot be written as nothing; it is spelled `%%`.
    #[must_use]
    pub const fn spell_empty(mut self) -> Self {
        self.spell_empty = true;
        self
    }

    /// The empty filter matches every name instead of the empty one.
    #[must_use]
    pub const fn empty_filter_is_all(mut self) -> Self {
        self.empty_filter_is_all = true;
        self
    }

    /// A filter segment that holds a wildcard among other bytes is malformed, though a name may hold them.
    #[must_use]
    pub const fn wildcards_alone(mut self) -> Self {
        self.wildcards_alone = true;
        self
    }

    /// Longest name and filter, in bytes.
    #[must_use]
    pub const fn max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Spells a name of this space in `target`.
    ///
    /// # Errors
    /// [`NameError::Empty`] when either side has no empty name, [`NameError::Reserved`] for a byte this space cannot hold,
    /// [`NameError::TooLong`] when a side's bound is passed.
    pub fn name_to(&self, target: &Self, name: &str) -> Result<String, NameError> {
        self.check_name(name)?;
        let mut out = String::with_capacity(name.len() + 8);
        for (at, segment) in self.split(name).enumerate() {
            if at > 0 {
                out.push(char::from(target.separator));
            }
            self.cross(target, segment, &mut out);
        }
        target.check_result(&out)?;
        Ok(out)
    }

    /// Spells a filter of this space in `target`: wildcards become wildcards, the rest goes the way of names.
    ///
    /// The result may match more than the filter does; [`Space::cover`] says what is left to do then.
    ///
    /// # Errors
    /// As [`name_to`](Self::name_to), and [`NameError::NoWildcard`] when the target has no such wildcard,
    /// [`NameError::RestNotLast`] when the rest wildcard is not the last segment.
    pub fn filter_to(&self, target: &Self, filter: &str) -> Result<String, NameError> {
        self.cover(target, filter).map(|cover| cover.filter)
    }

    /// True when the name is spelled as the bijection would spell it; one that is not comes back respelled.
    #[must_use]
    pub fn is_canonical(&self, name: &str) -> bool {
        self.split(name).all(|segment| {
            let raw_empty = self.spell_empty && segment.is_empty();
            let raw_whole = segment.len() == 1 && self.is_reserved_whole(segment.as_bytes()[0]);
            let raw_byte = segment.bytes().any(|byte| self.is_reserved(byte));
            !raw_empty && !raw_whole && !raw_byte
        })
    }

    /// Appends the spelling of one segment.
    pub fn encode(&self, segment: &str, out: &mut String) {
        if self.spell_empty {
            if segment.is_empty() {
                return out.push_str("%%");
            }
            if let Some(nested) = nested_empty(segment) {
                out.push_str("%25");
                return out.push_str(&segment[segment.len() - nested * 2 - 1..]);
            }
        }
        if let [byte] = segment.as_bytes()
            && self.is_reserved_whole(*byte)
        {
            return push_code(*byte, out);
        }
        let bytes = segment.as_bytes();
        let mut copied = 0;
        let mut at = 0;
        while at < bytes.len() {
            let byte = bytes[at];
            if byte == b'%' {
                if let Some(run) = self.run(bytes, at) {
                    out.push_str(&segment[copied..=at]);
                    out.push_str("25");
                    copied = at + 1;
                    at = run.end;
                    continue;
                }
            } else if self.is_reserved(byte) {
                out.push_str(&segment[copied..at]);
                push_code(byte, out);
                copied = at + 1;
            }
            at += 1;
        }
        out.push_str(&segment[copied..]);
    }

    /// Appends what one spelled segment means.
    pub fn decode(&self, segment: &str, out: &mut String) {
        if self.spell_empty
            && let Some(nested) = nested_empty(segment)
        {
            if nested > 0 {
                out.push('%');
                out.push_str(&segment[3..]);
            }
            return;
        }
        self.decode_part(segment, true, out);
    }

    /// Reads text that is a segment (`whole`) or only a part of one, where whole-segment rules do not hold.
    fn decode_part(&self, segment: &str, whole: bool, out: &mut String) {
        let bytes = segment.as_bytes();
        let mut copied = 0;
        let mut at = 0;
        while let Some(found) = memchr_percent(&bytes[at..]) {
            at += found;
            let Some(run) = self
                .run(bytes, at)
                .filter(|run| whole || self.is_reserved(run.byte))
            else {
                at += 1;
                continue;
            };
            if run.nested == 0 {
                out.push_str(&segment[copied..at]);
                out.push(char::from(run.byte));
                copied = run.end;
            } else {
                out.push_str(&segment[copied..=at]);
                copied = at + 3;
            }
            at = run.end;
        }
        out.push_str(&segment[copied..]);
    }

    /// True when `filter` of this space matches `name` of this space.
    ///
    /// A filter whose rest wildcard is not last matches as if that segment were literal text.
    #[must_use]
    pub fn matches(&self, filter: &str, name: &str) -> bool {
        if filter.is_empty() && self.empty_filter_is_all {
            return true;
        }
        let mut filters = self.split(filter).peekable();
        let mut segments = self.split(name);
        while let Some(wanted) = filters.next() {
            if filters.peek().is_none() && self.rest == Some(wanted) {
                return self.rest_takes_none || segments.next().is_some();
            }
            let Some(segment) = segments.next() else {
                return false;
            };
            if self.one != Some(wanted) && wanted != segment {
                return false;
            }
        }
        segments.next().is_none()
    }

    /// The segments of a name or filter; the empty name has one, empty.
    pub fn split<'a>(&self, name: &'a str) -> std::str::Split<'a, char> {
        name.split(char::from(self.separator))
    }

    /// The character between segments.
    #[must_use]
    pub const fn separator(&self) -> char {
        self.separator as char
    }

    /// Longest name and filter, in bytes.
    #[must_use]
    pub const fn longest(&self) -> usize {
        self.max_bytes
    }

    fn cross(&self, target: &Self, segment: &str, out: &mut String) {
        // Most segments of most names mean the same in every space and are copied in one piece.
        let special = self.anywhere | target.anywhere | (1 << b'%');
        let plain = segment.len() > 1
            && segment
                .bytes()
                .all(|byte| byte >= 128 || special & (1 << byte) == 0);
        if plain {
            return out.push_str(segment);
        }
        let mut meaning = String::with_capacity(segment.len());
        self.decode(segment, &mut meaning);
        target.encode(&meaning, out);
    }

    fn check_name(&self, name: &str) -> Result<(), NameError> {
        self.check_result(name)?;
        let separator = 1u128 << self.separator;
        match name
            .bytes()
            .find(|byte| *byte < 128 && (self.anywhere & !separator) & (1 << *byte) != 0)
        {
            Some(byte) => Err(NameError::Reserved { byte }),
            None => Ok(()),
        }
    }

    fn check_result(&self, name: &str) -> Result<(), NameError> {
        if name.is_empty() && self.refuse_empty {
            return Err(NameError::Empty);
        }
        if name.len() > self.max_bytes {
            return Err(NameError::TooLong {
                got_bytes: name.len(),
                max_bytes: self.max_bytes,
            });
        }
        Ok(())
    }

    const fn is_reserved(&self, byte: u8) -> bool {
        byte < 128 && self.anywhere & (1 << byte) != 0
    }

    const fn is_reserved_whole(&self, byte: u8) -> bool {
        byte < 128 && self.whole & (1 << byte) != 0
    }

    /// The run that starts at `at`, where a `%` stands.
    fn run(&self, segment: &[u8], at: usize) -> Option<Run> {
        let mut hex = at + 1;
        let mut nested = 0;
        while segment.get(hex..hex + 2) == Some(b"25") {
            hex += 2;
            nested += 1;
        }
        let [high, low] = *segment.get(hex..hex + 2)? else {
            return None;
        };
        let byte = upper_hex(high)? << 4 | upper_hex(low)?;
        let end = hex + 2;
        let whole = at == 0 && end == segment.len();
        (self.is_reserved(byte) || (whole && self.is_reserved_whole(byte))).then_some(Run {
            nested,
            byte,
            end,
        })
    }
}

impl fmt::Debug for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Space")
            .field("separator", &char::from(self.separator))
            .field("one", &self.one)
            .field("rest", &self.rest)
            .finish_non_exhaustive()
    }
}

/// A name that cannot be carried into the other space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// The empty name where there is none.
    #[error("the name is empty")]
    Empty,
    /// Longer than the space takes.
    #[error("the name has {got_bytes} bytes, at most {max_bytes} fit")]
    TooLong {
        /// What it has.
        got_bytes: usize,
        /// The bound of the space.
        max_bytes: usize,
    },
    /// A raw byte that no name of its own space can hold.
    #[error("byte {byte:#04x} cannot stand in a name here")]
    Reserved {
        /// The byte.
        byte: u8,
    },
    /// The target space cannot express this wildcard.
    #[error("the other side has no wildcard for this")]
    NoWildcard,
    /// The wildcard for all that follows, with something after it.
    #[error("the wildcard for the rest is not the last segment")]
    RestNotLast,
    /// A filter segment that holds a wildcard among other bytes.
    #[error("a wildcard does not stand alone in its segment")]
    WildcardInSegment,
    /// A template asks for something that this message does not have.
    #[error("the name needs {{{what}}}, which this message does not have")]
    Missing {
        /// The placeholder, without braces; `meta` for any header.
        what: &'static str,
    },
}

impl NameError {
    /// The cause under which the message is counted.
    #[must_use]
    pub const fn cause(&self) -> DropCause {
        match self {
            Self::TooLong { .. } => DropCause::NameTooLong,
            Self::Empty
            | Self::Reserved { .. }
            | Self::NoWildcard
            | Self::RestNotLast
            | Self::WildcardInSegment
            | Self::Missing { .. } => DropCause::BadName,
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Run {
    nested: usize,
    byte: u8,
    end: usize,
}

/// `%`, `25` k times, `%`, and nothing else: k. How the empty segment nests where it has to be spelled.
fn nested_empty(segment: &str) -> Option<usize> {
    let inner = segment.strip_prefix('%')?.strip_suffix('%')?;
    (inner.len() % 2 == 0 && inner.as_bytes().chunks(2).all(|pair| pair == b"25"))
        .then_some(inner.len() / 2)
}

const fn reservable(byte: u8) -> u128 {
    assert!(
        byte.is_ascii() && byte != b'%' && !matches!(byte, b'0'..=b'9' | b'A'..=b'F'),
        "the spelling of a run itself cannot be reserved"
    );
    1 << byte
}

const fn upper_hex(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

fn push_code(byte: u8, out: &mut String) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    out.push('%');
    out.push(char::from(HEX[usize::from(byte >> 4)]));
    out.push(char::from(HEX[usize::from(byte & 15)]));
}

fn memchr_percent(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|byte| *byte == b'%')
}

#[cfg(test)]
mod tests;
