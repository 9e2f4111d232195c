//! ERROR: an exchange's refusal, instead of a reply. [wire 8.3]

use weida_core::ErrorCode;

use super::{FrameHeader, Out, fits_opt, require};
use crate::{
    caps,
    cbor::{Reader, Writer},
    error::{DecodeError, EncodeError},
};

/// Why an exchange is not answered. Stands on a reply half only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorHeader<'a> {
    /// Key 0: raw code. An unknown one fails the exchange generically and is no violation.
    pub code: u64,
    /// Key 1: a sentence for people, never interpreted.
    pub message: Option<&'a str>,
}

impl<'a> ErrorHeader<'a> {
    /// A bare code, which is what this implementation sends.
    pub const fn new(code: ErrorCode) -> Self {
        Self {
            code: code.to_wire(),
            message: None,
        }
    }

    /// The code, if this version defines it.
    pub const fn error_code(&self) -> Option<ErrorCode> {
        ErrorCode::from_wire(self.code)
    }

    /// Reads a header.
    ///
    /// # Errors
    ///
    /// [`DecodeError`]; at the requester it fails the exchange only.
    pub fn decode(header: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(header);
        let mut keys = reader.header_map()?;
        let (mut code, mut message) = (None, None);
        while let Some(key) = reader.key(&mut keys)? {
            match key {
                0 => code = Some(reader.uint(key)?),
                1 => message = Some(reader.text(key, caps::MAX_MESSAGE_BYTES)?),
                _ => reader.skip(key)?,
            }
        }
        reader.end()?;
        Ok(Self {
            code: require(code, 0)?,
            message,
        })
    }
}

impl FrameHeader for ErrorHeader<'_> {
    fn check(&self) -> Result<(), EncodeError> {
        fits_opt("message", self.message, caps::MAX_MESSAGE_BYTES)
    }

    fn write<B: Out>(&self, out: &mut B) {
        let mut map = Writer::new(out);
        map.map(if self.message.is_some() { 2 } else { 1 });
        map.uint_key(0, self.code);
        if let Some(message) = self.message {
            map.text_key(1, message);
        }
    }
}
