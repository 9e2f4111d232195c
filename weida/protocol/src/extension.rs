//! Private keys of a DATA header, 64 and above. [wire 7.2], [weida S17-28]
//!
//! The protocol never allocates them and every peer that does not know one steps over it. Keys
//! ascend, so they are the tail of the map: a decoded header keeps that tail as a slice and reads
//! it only when somebody asks. A header without any pays nothing.

use crate::{
    caps::{FIRST_EXTENSION_KEY, MAX_EXTENSION_ITEMS},
    cbor::{Reader, Writer, utf8},
    error::DecodeError,
};
use ciborium_ll::Header;

/// The extension keys of a header, borrowed from its bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extensions<'a> {
    /// Keys and values, already checked for well-formedness and ascending keys.
    raw: &'a [u8],
    pairs: usize,
}

/// Extension keys on their way into a header; canonical whatever the order of insertion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExtensionsBuf {
    raw: Vec<u8>,
    pairs: usize,
}

/// A value that is not a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtensionItem<'a> {
    /// A number.
    Uint(u64),
    /// A text.
    Text(&'a str),
    /// Bytes.
    Bytes(&'a [u8]),
}

/// A value: one item, or a flat list of at most [`MAX_EXTENSION_ITEMS`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExtensionValue<'a> {
    /// One item.
    Item(ExtensionItem<'a>),
    /// A flat list.
    List(Vec<ExtensionItem<'a>>),
}

/// Why an extension is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExtensionError {
    /// The key belongs to the protocol.
    #[error("key {key} is below 64 and belongs to the protocol")]
    ReservedKey {
        /// The key.
        key: u64,
    },
    /// The key is set already.
    #[error("key {key} is set already")]
    Duplicate {
        /// The key.
        key: u64,
    },
    /// The list is too long.
    #[error("list of {got} items is over the cap of {max}")]
    ListTooLong {
        /// Item count.
        got: usize,
        /// The cap.
        max: usize,
    },
}

// === impl Extensions ===

impl<'a> Extensions<'a> {
    /// No extension at all.
    pub const NONE: Self = Self { raw: &[], pairs: 0 };

    /// `raw` holds `pairs` pairs that a strict reader has stepped over already.
    pub(crate) const fn from_checked(raw: &'a [u8], pairs: usize) -> Self {
        Self { raw, pairs }
    }

    /// Pairs, also those whose value no [`ExtensionValue`] can hold.
    pub const fn len(&self) -> usize {
        self.pairs
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.pairs == 0
    }

    /// The value of `key`, if it is there and of a shape this build hands up.
    pub fn get(&self, key: u64) -> Option<ExtensionValue<'a>> {
        self.iter()
            .find_map(|(found, value)| (found == key).then_some(value))
    }

    /// Keys and values in ascending order; other shapes are stepped over.
    pub fn iter(&self) -> impl Iterator<Item = (u64, ExtensionValue<'a>)> + use<'a> {
        let mut reader = Reader::new(self.raw);
        std::iter::from_fn(move || {
            while !reader.rest().is_empty() {
                let Ok(Header::Positive(key)) = reader.pull() else {
                    return None;
                };
                let mut ahead = reader;
                let value = read_value(&mut ahead, key);
                reader.skip(key).ok()?;
                if let Some(value) = value {
                    return Some((key, value));
                }
            }
            None
        })
    }

    pub(crate) const fn raw(&self) -> &'a [u8] {
        self.raw
    }
}

// === impl ExtensionsBuf ===

impl ExtensionsBuf {
    /// No extension yet.
    pub const fn new() -> Self {
        Self {
            raw: Vec::new(),
            pairs: 0,
        }
    }

    /// Adds one key.
    ///
    /// # Errors
    ///
    /// [`ExtensionError`]; nothing is added then.
    pub fn insert(&mut self, key: u64, value: &ExtensionValue<'_>) -> Result<(), ExtensionError> {
        if key < FIRST_EXTENSION_KEY {
            return Err(ExtensionError::ReservedKey { key });
        }
        if let ExtensionValue::List(items) = value
            && items.len() > MAX_EXTENSION_ITEMS
        {
            return Err(ExtensionError::ListTooLong {
                got: items.len(),
                max: MAX_EXTENSION_ITEMS,
            });
        }
        let at = self.position_of(key)?;
        let mut pair = Vec::new();
        let mut writer = Writer::new(&mut pair);
        writer.uint(key);
        match value {
            ExtensionValue::Item(item) => write_item(&mut writer, item),
            ExtensionValue::List(items) => {
                writer.array(items.len());
                items.iter().for_each(|item| write_item(&mut writer, item));
            }
        }
        self.raw.splice(at..at, pair);
        self.pairs = self.pairs.saturating_add(1);
        Ok(())
    }

    /// The form a header takes and reads from.
    pub fn as_extensions(&self) -> Extensions<'_> {
        Extensions {
            raw: &self.raw,
            pairs: self.pairs,
        }
    }

    /// Byte offset at which `key` belongs.
    fn position_of(&self, key: u64) -> Result<usize, ExtensionError> {
        let mut reader = Reader::new(&self.raw);
        loop {
            let at = self.raw.len().saturating_sub(reader.rest().len());
            match reader.pull() {
                Ok(Header::Positive(found)) if found == key => {
                    return Err(ExtensionError::Duplicate { key });
                }
                Ok(Header::Positive(found)) if found < key && reader.skip(found).is_ok() => {}
                _ => return Ok(at),
            }
        }
    }
}

impl From<Extensions<'_>> for ExtensionsBuf {
    /// Keeps what can be handed up, in canonical form.
    fn from(borrowed: Extensions<'_>) -> Self {
        let mut owned = Self::new();
        for (key, value) in borrowed.iter() {
            let _: Result<(), ExtensionError> = owned.insert(key, &value); // ascending and capped
        }
        owned
    }
}

// === impl ExtensionValue ===

impl<'a> ExtensionValue<'a> {
    /// The number, if it is one.
    pub const fn as_uint(&self) -> Option<u64> {
        match self {
            Self::Item(ExtensionItem::Uint(value)) => Some(*value),
            _ => None,
        }
    }

    /// The text, if it is one.
    pub const fn as_text(&self) -> Option<&'a str> {
        match self {
            Self::Item(ExtensionItem::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// The bytes, if they are that.
    pub const fn as_bytes(&self) -> Option<&'a [u8]> {
        match self {
            Self::Item(ExtensionItem::Bytes(bytes)) => Some(bytes),
            _ => None,
        }
    }

    /// The items of a list.
    pub fn as_list(&self) -> Option<&[ExtensionItem<'a>]> {
        match self {
            Self::List(items) => Some(items),
            Self::Item(_) => None,
        }
    }
}

impl From<u64> for ExtensionValue<'_> {
    fn from(value: u64) -> Self {
        Self::Item(ExtensionItem::Uint(value))
    }
}

impl<'a> From<&'a str> for ExtensionValue<'a> {
    fn from(text: &'a str) -> Self {
        Self::Item(ExtensionItem::Text(text))
    }
}

impl<'a> From<&'a [u8]> for ExtensionValue<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Item(ExtensionItem::Bytes(bytes))
    }
}

impl<'a> From<Vec<ExtensionItem<'a>>> for ExtensionValue<'a> {
    fn from(items: Vec<ExtensionItem<'a>>) -> Self {
        Self::List(items)
    }
}

fn write_item<B: bytes::BufMut>(writer: &mut Writer<'_, B>, item: &ExtensionItem<'_>) {
    match item {
        ExtensionItem::Uint(value) => writer.uint(*value),
        ExtensionItem::Text(text) => writer.text(text),
        ExtensionItem::Bytes(bytes) => writer.bytes(bytes),
    }
}

/// `None` for a shape that is not handed up.
fn read_value<'a>(reader: &mut Reader<'a>, key: u64) -> Option<ExtensionValue<'a>> {
    let head = reader.pull().ok()?;
    if let Header::Array(Some(len)) = head {
        if len > MAX_EXTENSION_ITEMS {
            return None;
        }
        let items = (0..len).map(|_| {
            let head = reader.pull()?;
            read_item(reader, head, key)
        });
        return items
            .collect::<Result<Option<Vec<_>>, _>>()
            .ok()?
            .map(ExtensionValue::List);
    }
    read_item(reader, head, key).ok()?.map(ExtensionValue::Item)
}

fn read_item<'a>(
    reader: &mut Reader<'a>,
    head: Header,
    key: u64,
) -> Result<Option<ExtensionItem<'a>>, DecodeError> {
    Ok(match head {
        Header::Positive(value) => Some(ExtensionItem::Uint(value)),
        Header::Text(Some(len)) => Some(ExtensionItem::Text(utf8(reader.take(len)?, key)?)),
        Header::Bytes(Some(len)) => Some(ExtensionItem::Bytes(reader.take(len)?)),
        _ => None,
    })
}
