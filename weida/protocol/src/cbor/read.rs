//! Reading one header: ordered uint keys, capped values, bounded skipping.
//!
//! Each item's raw initial byte is looked at first, because the pull decoder forgets widths: a half
//! float and a double are both `Float`, `F4` and `F8 14` both `Simple(20)`. [wire 7.2]

use std::str;

use ciborium_ll::{Decoder, Error as PullError, Header};

use crate::{caps, error::DecodeError};

/// Position in one header. Holds no copy of anything.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

/// Keys of one map: counts them down and keeps them ascending.
pub(crate) struct Keys {
    left: usize,
    last: Option<u64>,
}

impl<'a> Reader<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Everything not read yet.
    pub(crate) const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Opens the one map a header is.
    pub(crate) fn header_map(&mut self) -> Result<Keys, DecodeError> {
        if self.rest.is_empty() {
            return Err(DecodeError::NotAMap);
        }
        match self.pull()? {
            Header::Map(Some(left)) => Ok(Keys { left, last: None }),
            Header::Map(None) => Err(DecodeError::Indefinite),
            _ => Err(DecodeError::NotAMap),
        }
    }

    /// Opens a map that is the value of `key`.
    pub(crate) fn value_map(&mut self, key: u64) -> Result<Keys, DecodeError> {
        match self.pull()? {
            Header::Map(Some(left)) => Ok(Keys { left, last: None }),
            Header::Map(None) => Err(DecodeError::Indefinite),
            _ => Err(DecodeError::WrongType { key }),
        }
    }

    /// The next key of a map, or `None` after its last value.
    pub(crate) fn key(&mut self, keys: &mut Keys) -> Result<Option<u64>, DecodeError> {
        let Some(left) = keys.left.checked_sub(1) else {
            return Ok(None);
        };
        keys.left = left;
        let Header::Positive(key) = self.pull()? else {
            return Err(DecodeError::NonUintKey);
        };
        match keys.last {
            Some(last) if key == last => return Err(DecodeError::DuplicateKey { key }),
            Some(last) if key < last => return Err(DecodeError::UnorderedKey { key }),
            _ => keys.last = Some(key),
        }
        Ok(Some(key))
    }

    /// Refuses whatever follows the map.
    pub(crate) const fn end(&self) -> Result<(), DecodeError> {
        match self.rest.len() {
            0 => Ok(()),
            bytes => Err(DecodeError::TrailingBytes { bytes }),
        }
    }

    /// The unsigned value of `key`.
    pub(crate) fn uint(&mut self, key: u64) -> Result<u64, DecodeError> {
        match self.pull()? {
            Header::Positive(value) => Ok(value),
            other => Err(wrong(&other, key)),
        }
    }

    /// The text of `key`, at most `max_bytes` long; borrowed.
    pub(crate) fn text(&mut self, key: u64, max_bytes: usize) -> Result<&'a str, DecodeError> {
        match self.pull()? {
            Header::Text(Some(got_bytes)) if got_bytes > max_bytes => {
                Err(DecodeError::StringTooLong {
                    key,
                    got_bytes,
                    max_bytes,
                })
            }
            Header::Text(Some(len)) => utf8(self.take(len)?, key),
            other => Err(wrong(&other, key)),
        }
    }

    /// The 32-byte name of `key`.
    pub(crate) fn producer(&mut self, key: u64) -> Result<[u8; caps::PRODUCER_BYTES], DecodeError> {
        match self.pull()? {
            Header::Bytes(Some(caps::PRODUCER_BYTES)) => {
                let bytes = self.take(caps::PRODUCER_BYTES)?;
                bytes.try_into().map_err(|_| DecodeError::Truncated)
            }
            Header::Bytes(Some(got_bytes)) => Err(DecodeError::ProducerLength { got_bytes }),
            other => Err(wrong(&other, key)),
        }
    }

    /// Item count of the array of `key`, at most `max`. Nothing is reserved by it.
    pub(crate) fn array(&mut self, key: u64, max: usize) -> Result<usize, DecodeError> {
        match self.pull()? {
            Header::Array(Some(got)) if got > max => {
                Err(DecodeError::ListTooLong { key, got, max })
            }
            Header::Array(Some(len)) => Ok(len),
            other => Err(wrong(&other, key)),
        }
    }

    /// The numbers of the array of `key`, at most `max`.
    pub(crate) fn uints(&mut self, key: u64, max: usize) -> Result<Vec<u64>, DecodeError> {
        let len = self.array(key, max)?;
        // An item has at least one byte, so a short header reserves little.
        let mut values = Vec::with_capacity(len.min(self.rest.len()));
        for _ in 0..len {
            values.push(self.uint(key)?);
        }
        Ok(values)
    }

    /// Steps over the value of an unknown key, without recursion.
    pub(crate) fn skip(&mut self, key: u64) -> Result<(), DecodeError> {
        let mut open = [0usize; caps::MAX_SKIP_DEPTH];
        let mut depth = 0usize;
        loop {
            let children = self.skip_item(key)?;
            if children > 0 {
                let slot = open.get_mut(depth).ok_or(DecodeError::DepthExceeded {
                    max: caps::MAX_SKIP_DEPTH,
                })?;
                *slot = children;
                depth = depth.saturating_add(1);
            } else {
                // One item done: it closes every container it was the last item of.
                loop {
                    let Some(above) = depth.checked_sub(1) else {
                        return Ok(());
                    };
                    let Some(slot) = open.get_mut(above) else {
                        return Ok(());
                    };
                    *slot = slot.saturating_sub(1);
                    if *slot > 0 {
                        break;
                    }
                    depth = above;
                }
            }
        }
    }

    /// Steps over one item head and its own bytes; returns how many items it contains.
    fn skip_item(&mut self, key: u64) -> Result<usize, DecodeError> {
        let initial = *self.rest.first().ok_or(DecodeError::Truncated)?;
        match self.pull()? {
            Header::Positive(_) | Header::Negative(_) => Ok(0),
            Header::Float(_) if initial != 0xF9 => Ok(0),
            Header::Simple(_) if (0xF4..=0xF7).contains(&initial) => Ok(0),
            Header::Bytes(Some(len)) => self.take(len).map(|_| 0),
            Header::Text(Some(len)) => utf8(self.take(len)?, key).map(|_| 0),
            Header::Array(Some(len)) => Ok(len),
            Header::Map(Some(len)) => len.checked_mul(2).ok_or(DecodeError::Truncated),
            Header::Bytes(None) | Header::Text(None) | Header::Array(None) | Header::Map(None) => {
                Err(DecodeError::Indefinite)
            }
            Header::Float(_) | Header::Simple(_) | Header::Tag(_) | Header::Break => {
                Err(DecodeError::ForbiddenItem { initial })
            }
        }
    }

    /// Next item head. Allocates nothing; counts in it are still a stranger's numbers.
    #[inline]
    pub(crate) fn pull(&mut self) -> Result<Header, DecodeError> {
        if let Some((header, rest)) = short_head(self.rest) {
            self.rest = rest;
            return Ok(header);
        }
        self.pull_any()
    }

    fn pull_any(&mut self) -> Result<Header, DecodeError> {
        let mut decoder = Decoder::from(self.rest);
        let header = decoder.pull().map_err(|error| match error {
            PullError::Io(_) => DecodeError::Truncated,
            PullError::Syntax(_) => DecodeError::Malformed,
        })?;
        self.rest = self.rest.get(decoder.offset()..).unwrap_or_default();
        Ok(header)
    }

    /// The next `len` bytes.
    #[inline]
    pub(crate) fn take(&mut self, len: usize) -> Result<&'a [u8], DecodeError> {
        let (bytes, rest) = self
            .rest
            .split_at_checked(len)
            .ok_or(DecodeError::Truncated)?;
        self.rest = rest;
        Ok(bytes)
    }
}

/// Heads that are one byte long, which nearly all of ours are: measured, this halves a decode.
///
/// `None` is no verdict: the pull decoder judges everything else.
#[inline]
fn short_head(bytes: &[u8]) -> Option<(Header, &[u8])> {
    let (&initial, rest) = bytes.split_first()?;
    let value = initial & 0x1F;
    if value >= 24 {
        return None;
    }
    let len = Some(usize::from(value));
    let header = match initial >> 5 {
        0 => Header::Positive(value.into()),
        2 => Header::Bytes(len),
        3 => Header::Text(len),
        4 => Header::Array(len),
        5 => Header::Map(len),
        _ => return None,
    };
    Some((header, rest))
}

/// The error for a value of a known key that is something else.
#[cold]
const fn wrong(found: &Header, key: u64) -> DecodeError {
    match found {
        Header::Bytes(None) | Header::Text(None) | Header::Array(None) | Header::Map(None) => {
            DecodeError::Indefinite
        }
        _ => DecodeError::WrongType { key },
    }
}

#[inline]
pub(crate) fn utf8(bytes: &[u8], key: u64) -> Result<&str, DecodeError> {
    str::from_utf8(bytes).map_err(|_| DecodeError::NotUtf8 { key })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The short cut says what the pull decoder says, or nothing.
    #[test]
    fn short_heads_agree_with_the_pull_decoder() {
        let mut taken = 0;
        for initial in 0..=u8::MAX {
            let bytes = [initial, 0x01];
            let Some((header, rest)) = short_head(&bytes) else {
                continue;
            };
            let mut slow = Reader::new(&bytes);
            assert_eq!(slow.pull_any(), Ok(header), "{initial:#04x}");
            assert_eq!(slow.rest(), rest);
            taken += 1;
        }
        assert_eq!((taken, short_head(&[])), (5 * 24, None));
    }
}
