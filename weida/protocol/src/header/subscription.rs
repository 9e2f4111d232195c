//! SUBSCRIBE and UNSUBSCRIBE: one header, two kinds, never answered. [wire 8.4], [weida S17-1]

use weida_core::filter;

use super::{FrameHeader, Out, count, data, fits, require};
use crate::{
    caps,
    cbor::{Reader, Writer},
    error::{DecodeError, EncodeError},
};

/// Which topics of which publisher. The pair (path, filter) on one connection is its only name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubscriptionHeader<'a> {
    /// Key 0: the publisher's path.
    pub endpoint: &'a str,
    /// Key 1: the filter; empty is everything and is written all the same. Valid when decoded.
    pub filter: &'a str,
    /// Key 2: a dish's latency budget in milliseconds; RADIO paths only.
    pub max_age_ms: Option<u64>,
    /// Key 3: a dish's layer cap, 0 to 15; RADIO paths only.
    pub max_layer: Option<u8>,
}

impl<'a> SubscriptionHeader<'a> {
    /// A header without a dish's terms.
    pub const fn new(endpoint: &'a str, filter: &'a str) -> Self {
        Self {
            endpoint,
            filter,
            max_age_ms: None,
            max_layer: None,
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
        let (mut endpoint, mut pattern, mut max_age_ms, mut max_layer) = (None, None, None, None);
        while let Some(key) = reader.key(&mut keys)? {
            match key {
                0 => endpoint = Some(reader.text(key, caps::MAX_ENDPOINT_BYTES)?),
                1 => pattern = Some(read_filter(&mut reader, key)?),
                2 => max_age_ms = Some(reader.uint(key)?),
                3 => max_layer = Some(data::layer(reader.uint(key)?)?),
                _ => reader.skip(key)?,
            }
        }
        reader.end()?;
        Ok(Self {
            endpoint: require(endpoint, 0)?,
            filter: require(pattern, 1)?,
            max_age_ms,
            max_layer,
        })
    }
}

impl FrameHeader for SubscriptionHeader<'_> {
    fn check(&self) -> Result<(), EncodeError> {
        data::check_endpoint(self.endpoint)?;
        check_filter(self.filter)?;
        match self.max_layer {
            Some(layer) if layer > caps::MAX_LAYER => Err(EncodeError::LayerTooHigh { layer }),
            _ => Ok(()),
        }
    }

    fn write<B: Out>(&self, out: &mut B) {
        let terms = count(&[self.max_age_ms.is_some(), self.max_layer.is_some()]);
        let mut map = Writer::new(out);
        map.map(terms.saturating_add(2));
        map.text_key(0, self.endpoint);
        map.text_key(1, self.filter);
        if let Some(max_age_ms) = self.max_age_ms {
            map.uint_key(2, max_age_ms);
        }
        if let Some(max_layer) = self.max_layer {
            map.uint_key(3, max_layer.into());
        }
    }
}

pub(super) fn read_filter<'a>(reader: &mut Reader<'a>, key: u64) -> Result<&'a str, DecodeError> {
    let text = reader.text(key, caps::MAX_FILTER_BYTES)?;
    filter::validate(text).map_err(DecodeError::InvalidFilter)?;
    Ok(text)
}

pub(super) fn check_filter(text: &str) -> Result<(), EncodeError> {
    fits("filter", text, caps::MAX_FILTER_BYTES)?;
    filter::validate(text).map_err(EncodeError::InvalidFilter)
}
