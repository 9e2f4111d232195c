//! What a peer did wrong, and what this side may not write.

use weida_core::{Error, FilterError, GuaranteeError, codes};

/// Why bytes of a peer are refused. Every variant is a violation of the wire protocol.
///
/// On a stream a peer opened it closes the connection; on the reply half of an exchange it fails
/// that exchange only. [wire 17]
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// A stream does not start with the magic byte.
    #[error("stream starts with {got:#04x} instead of 0x57")]
    BadMagic {
        /// The byte found.
        got: u8,
    },
    /// A frame kind this version does not define; kinds are never skipped.
    #[error("unknown frame kind {kind}")]
    UnknownKind {
        /// The kind byte.
        kind: u8,
    },
    /// A frame kind stands where it may not.
    #[error("frame kind {kind} may not stand here")]
    MisplacedKind {
        /// The kind byte.
        kind: u8,
    },
    /// A header is announced longer than this side accepts.
    #[error("header of {header_bytes} bytes is over the cap of {max_bytes}")]
    HeaderTooLarge {
        /// Announced length.
        header_bytes: u64,
        /// The local cap.
        max_bytes: u64,
    },
    /// A stream ended before its preamble was complete.
    #[error("stream ends inside the preamble")]
    EndInsidePreamble,
    /// A stream of records ended inside one.
    #[error("stream ends inside a record")]
    EndInsideRecord,
    /// A header is not a CBOR map.
    #[error("header is not a map")]
    NotAMap,
    /// Bytes that are not well-formed CBOR.
    #[error("malformed CBOR")]
    Malformed,
    /// The header ends inside an item.
    #[error("header ends inside an item")]
    Truncated,
    /// An indefinite-length item.
    #[error("indefinite-length item")]
    Indefinite,
    /// A tag, half float or simple value inside a value of an unknown key.
    #[error("forbidden item with initial byte {initial:#04x}")]
    ForbiddenItem {
        /// The initial byte.
        initial: u8,
    },
    /// A map key is not an unsigned integer.
    #[error("map key is not an unsigned integer")]
    NonUintKey,
    /// A key came twice in a row.
    #[error("duplicate key {key}")]
    DuplicateKey {
        /// The key.
        key: u64,
    },
    /// A key is smaller than the one before.
    #[error("key {key} is out of order")]
    UnorderedKey {
        /// The key.
        key: u64,
    },
    /// A required key is absent.
    #[error("required key {key} is missing")]
    MissingKey {
        /// The key.
        key: u64,
    },
    /// A known key's value has another type.
    #[error("value of key {key} has the wrong type")]
    WrongType {
        /// The key.
        key: u64,
    },
    /// A text is not UTF-8.
    #[error("text of key {key} is not UTF-8")]
    NotUtf8 {
        /// The key, of the outermost map.
        key: u64,
    },
    /// A text is over its cap.
    #[error("text of key {key} has {got_bytes} bytes, over the cap of {max_bytes}")]
    StringTooLong {
        /// The key.
        key: u64,
        /// Announced length.
        got_bytes: usize,
        /// The cap.
        max_bytes: usize,
    },
    /// A list is over its cap.
    #[error("list of key {key} has {got} items, over the cap of {max}")]
    ListTooLong {
        /// The key.
        key: u64,
        /// Announced item count.
        got: usize,
        /// The cap.
        max: usize,
    },
    /// A skipped value nests too deep.
    #[error("skipped value nests deeper than {max} containers")]
    DepthExceeded {
        /// The bound.
        max: usize,
    },
    /// Bytes follow the map inside the header or record.
    #[error("{bytes} bytes follow the map")]
    TrailingBytes {
        /// How many.
        bytes: usize,
    },
    /// A value outside its enumeration.
    #[error("{dimension} {value} is not defined")]
    UnknownLevel {
        /// Which enumeration.
        dimension: &'static str,
        /// The value.
        value: u64,
    },
    /// A guarantee set combines what excludes each other.
    #[error("invalid guarantee set")]
    InvalidGuarantees(#[source] GuaranteeError),
    /// A HELLO requires more than it offers itself.
    #[error("the HELLO requires more than it offers")]
    RequiredExceedsOffered,
    /// A filter breaks the grammar.
    #[error("invalid filter")]
    InvalidFilter(#[source] FilterError),
    /// A producer name is not 32 bytes.
    #[error("producer name of {got_bytes} bytes instead of 32")]
    ProducerLength {
        /// Announced length.
        got_bytes: usize,
    },
    /// Levels are ordered without a report id.
    #[error("report levels without a report id")]
    ReportWithoutId,
    /// A report id without levels.
    #[error("report id {report_id} without levels")]
    IdWithoutReport {
        /// The id.
        report_id: u64,
    },
    /// Report levels do not strictly ascend.
    #[error("report level {level} does not ascend")]
    LevelNotAscending {
        /// The level that is not above its predecessor.
        level: u64,
    },
    /// A level in the reserved range 6..=15.
    #[error("level {level} is reserved")]
    ReservedLevel {
        /// The level.
        level: u64,
    },
    /// A segment layer above 15.
    #[error("layer {layer} is above 15")]
    LayerTooHigh {
        /// The layer.
        layer: u64,
    },
    /// A layer without a segment.
    #[error("layer {layer} without a segment")]
    LayerWithoutSegment {
        /// The layer.
        layer: u8,
    },
    /// A record is over its cap.
    #[error("record of {got_bytes} bytes is over the cap of {max_bytes}")]
    RecordTooLong {
        /// Announced length.
        got_bytes: u64,
        /// The cap.
        max_bytes: usize,
    },
}

impl DecodeError {
    /// The application code the connection is closed with.
    pub const fn close_code(&self) -> u64 {
        codes::PROTOCOL_VIOLATION
    }
}

impl From<DecodeError> for Error {
    fn from(error: DecodeError) -> Self {
        Self::Protocol(match error {
            DecodeError::InvalidGuarantees(rule) => format!("{error}: {rule}"),
            DecodeError::InvalidFilter(rule) => format!("{error}: {rule}"),
            _ => error.to_string(),
        })
    }
}

/// Why a header is not written: every conforming peer would close the connection over it.
///
/// Nothing has been appended to the buffer when an encoder returns this.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// A text is over its cap.
    #[error("{field} of {got_bytes} bytes is over the cap of {max_bytes}")]
    TooLong {
        /// Which field.
        field: &'static str,
        /// Its length.
        got_bytes: usize,
        /// The cap.
        max_bytes: usize,
    },
    /// A list is over its cap.
    #[error("{got} {field} are over the cap of {max}")]
    TooMany {
        /// Which field.
        field: &'static str,
        /// Item count.
        got: usize,
        /// The cap.
        max: usize,
    },
    /// The header is longer than the peer accepts.
    #[error("header of {header_bytes} bytes is over the peer's cap of {max_bytes}")]
    HeaderTooLarge {
        /// Encoded length.
        header_bytes: usize,
        /// What the peer's HELLO said.
        max_bytes: u64,
    },
    /// A filter breaks the grammar.
    #[error("invalid filter")]
    InvalidFilter(#[source] FilterError),
    /// Report levels and report id must come together.
    #[error("report levels and report id come together or not at all")]
    ReportIdMismatch,
    /// A level in the reserved range 6..=15.
    #[error("level {level} is reserved")]
    ReservedLevel {
        /// The level.
        level: u64,
    },
    /// A layer above 15.
    #[error("layer {layer} is above 15")]
    LayerTooHigh {
        /// The layer.
        layer: u8,
    },
    /// A layer without a segment.
    #[error("a layer needs a segment")]
    LayerWithoutSegment,
    /// A guarantee set combines what excludes each other.
    #[error("invalid guarantee set")]
    InvalidGuarantees(#[source] GuaranteeError),
    /// A HELLO must offer what it requires.
    #[error("requires more than it offers")]
    RequiredExceedsOffered,
    /// A number has no varint form.
    #[error("{value} is above 2^62-1")]
    VarintRange {
        /// The number.
        value: u64,
    },
}

impl From<EncodeError> for Error {
    /// What is too long or too many is a limit; what is wrong is a protocol error.
    fn from(error: EncodeError) -> Self {
        match error {
            EncodeError::TooLong { .. }
            | EncodeError::TooMany { .. }
            | EncodeError::HeaderTooLarge { .. } => Self::LimitExceeded(None),
            EncodeError::InvalidFilter(rule) => rule.into(),
            EncodeError::InvalidGuarantees(rule) => rule.into(),
            other => Self::Protocol(other.to_string()),
        }
    }
}
