//! Caps of header fields; every decoder tests them before it reserves or copies. [wire 8, 18]

/// Longest endpoint path, in bytes.
pub const MAX_ENDPOINT_BYTES: usize = weida_core::MAX_PATH_BYTES;
/// Longest content type, in bytes.
pub const MAX_CONTENT_TYPE_BYTES: usize = 256;
/// Longest `traceparent`, in bytes.
pub const MAX_TRACEPARENT_BYTES: usize = weida_core::trace::MAX_TRACEPARENT_BYTES;
/// Longest `tracestate`, in bytes.
pub const MAX_TRACESTATE_BYTES: usize = weida_core::trace::MAX_TRACESTATE_BYTES;
/// Longest topic, in bytes.
pub const MAX_TOPIC_BYTES: usize = weida_core::topic::MAX_TOPIC_BYTES;
/// Longest filter, in bytes.
pub const MAX_FILTER_BYTES: usize = weida_core::filter::MAX_FILTER_BYTES;
/// Longest message of an ERROR frame, in bytes.
pub const MAX_MESSAGE_BYTES: usize = 1024;
/// Exact length of a producer name, in bytes.
pub const PRODUCER_BYTES: usize = 32;
/// Most items of a HELLO list.
pub const MAX_LIST_ITEMS: usize = 64;
/// Most levels one transfer orders.
pub const MAX_REPORT_LEVELS: usize = 16;
/// Highest segment layer.
pub const MAX_LAYER: u8 = 15;
/// Non-empty containers a skipped value may nest.
pub const MAX_SKIP_DEPTH: usize = 8;
/// Longest map of a REPORT record, in bytes.
pub const MAX_PATH_RECORD_BYTES: usize = 256;
/// First key of private extensions; everything below belongs to the protocol.
pub const FIRST_EXTENSION_KEY: u64 = 64;
/// Most items of an extension list.
pub const MAX_EXTENSION_ITEMS: usize = 64;
