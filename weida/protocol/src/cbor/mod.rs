//! Strict CBOR on ciborium's pull decoder: the rules of [wire 7], nothing of any frame.

mod read;
mod write;

pub(crate) use read::{Reader, utf8};
pub(crate) use write::Writer;
