//! CREDIT: how much one queue consumer takes. [wire 8.5]

use super::{FrameHeader, Out, data, require, subscription};
use crate::{
    caps,
    cbor::{Reader, Writer},
    error::{DecodeError, EncodeError},
};

/// An absolute, cumulative delivery limit: repeats and lost frames change nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreditHeader<'a> {
    /// Key 0: the queue's path.
    pub endpoint: &'a str,
    /// Key 1: the subscription's filter. Valid when decoded.
    pub filter: &'a str,
    /// Key 2: messages the subscription takes in total, counted from its creation.
    pub limit: u64,
}

impl<'a> CreditHeader<'a> {
    /// A limit for one subscription.
    pub const fn new(endpoint: &'a str, filter: &'a str, limit: u64) -> Self {
        Self {
            endpoint,
            filter,
            limit,
        }
    }

    /// Reads a header and checks the filter's grammar.
    ///
    /// # Errors
    ///
    /// [`DecodeError`], a violation.
    pub fn decode(header: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(header);
        let mut keys = reader.header_map()?;
        let (mut endpoint, mut pattern, mut limit) = (None, None, None);
        while let Some(key) = reader.key(&mut keys)? {
            match key {
                0 => endpoint = Some(reader.text(key, caps::MAX_ENDPOINT_BYTES)?),
                1 => pattern = Some(subscription::read_filter(&mut reader, key)?),
                2 => limit = Some(reader.uint(key)?),
                _ => reader.skip(key)?,
            }
        }
        reader.end()?;
        Ok(Self {
            endpoint: require(endpoint, 0)?,
            filter: require(pattern, 1)?,
            limit: require(limit, 2)?,
        })
    }
}

impl FrameHeader for CreditHeader<'_> {
    fn check(&self) -> Result<(), EncodeError> {
        data::check_endpoint(self.endpoint)?;
        subscription::check_filter(self.filter)
    }

    fn write<B: Out>(&self, out: &mut B) {
        let mut map = Writer::new(out);
        map.map(3);
        map.text_key(0, self.endpoint);
        map.text_key(1, self.filter);
        map.uint_key(2, self.limit);
    }
}
