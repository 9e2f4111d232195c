//! One file per frame header. [wire 8]
//!
//! Decoded texts borrow from the header's bytes; an absent key costs nothing. Encoders check the
//! rules the decoders enforce first, then append the one canonical form.

mod credit;
mod cursor;
mod data;
mod error;
mod flow;
mod guarantees;
mod hello;
mod report;
mod subscription;

pub use credit::CreditHeader;
pub use cursor::{
    CursorHeader, CursorRecord, MAX_CURSOR_RECORD_LEN, decode_cursor_record, encode_cursor_record,
};
pub use data::DataHeader;
pub use error::ErrorHeader;
pub use flow::FlowHeader;
pub use hello::Hello;
pub use report::{PathRecord, ReportHead};
pub use subscription::SubscriptionHeader;

use bytes::BufMut;

use crate::error::{DecodeError, EncodeError};

/// A growing buffer that frames are appended to: `Vec<u8>`, `BytesMut`.
pub trait Out: BufMut + AsRef<[u8]> + AsMut<[u8]> {}

impl<B: BufMut + AsRef<[u8]> + AsMut<[u8]>> Out for B {}

/// A header that can be written.
pub trait FrameHeader {
    /// Checks the rules every conforming decoder enforces.
    ///
    /// # Errors
    ///
    /// [`EncodeError`] with the rule this header breaks.
    fn check(&self) -> Result<(), EncodeError>;

    /// Appends the canonical map of a header that [`check`](Self::check) accepts.
    fn write<B: Out>(&self, out: &mut B);

    /// Checks, then appends the canonical map, without a preamble.
    ///
    /// # Errors
    ///
    /// [`EncodeError`]; nothing has been appended then.
    fn encode<B: Out>(&self, out: &mut B) -> Result<(), EncodeError> {
        self.check()?;
        self.write(out);
        Ok(())
    }
}

/// Refuses a text over its cap before it is written.
fn fits(field: &'static str, text: &str, max_bytes: usize) -> Result<(), EncodeError> {
    let got_bytes = text.len();
    if got_bytes > max_bytes {
        return Err(EncodeError::TooLong {
            field,
            got_bytes,
            max_bytes,
        });
    }
    Ok(())
}

fn fits_opt(field: &'static str, text: Option<&str>, max: usize) -> Result<(), EncodeError> {
    text.map_or(Ok(()), |text| fits(field, text, max))
}

/// A required key was seen.
fn require<T>(value: Option<T>, key: u64) -> Result<T, DecodeError> {
    value.ok_or(DecodeError::MissingKey { key })
}

/// How many of the optional keys are present.
fn count(present: &[bool]) -> usize {
    present.iter().filter(|present| **present).count()
}
