//! FLOW: a datagram flow, whose life is this stream's. [wire 8.7, 15.1]

use super::{FrameHeader, Out, count, data, fits_opt, require};
use crate::{
    caps,
    cbor::{Reader, Writer},
    error::{DecodeError, EncodeError},
};

/// Registration of a flow; the optional keys mean what they mean in DATA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowHeader<'a> {
    /// Key 0: addressed path.
    pub endpoint: &'a str,
    /// Key 1: id that prefixes each datagram; unique per connection and direction while it lives.
    pub flow: u64,
    /// Key 2: opaque label of the payload's type.
    pub content_type: Option<&'a str>,
    /// Key 3: W3C `traceparent`.
    pub traceparent: Option<&'a str>,
    /// Key 4: W3C `tracestate`.
    pub tracestate: Option<&'a str>,
    /// Key 5: topic.
    pub topic: Option<&'a str>,
}

impl<'a> FlowHeader<'a> {
    /// A header without optional keys.
    pub const fn new(endpoint: &'a str, flow: u64) -> Self {
        Self {
            endpoint,
            flow,
            content_type: None,
            traceparent: None,
            tracestate: None,
            topic: None,
        }
    }

    /// Reads a header.
    ///
    /// # Errors
    ///
    /// [`DecodeError`], a violation.
    pub fn decode(header: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(header);
        let mut keys = reader.header_map()?;
        let (mut endpoint, mut flow, mut optional) = (None, None, Self::new("", 0));
        while let Some(key) = reader.key(&mut keys)? {
            match key {
                0 => endpoint = Some(reader.text(key, caps::MAX_ENDPOINT_BYTES)?),
                1 => flow = Some(reader.uint(key)?),
                2 => optional.content_type = Some(reader.text(key, caps::MAX_CONTENT_TYPE_BYTES)?),
                3 => optional.traceparent = Some(reader.text(key, caps::MAX_TRACEPARENT_BYTES)?),
                4 => optional.tracestate = Some(reader.text(key, caps::MAX_TRACESTATE_BYTES)?),
                5 => optional.topic = Some(reader.text(key, caps::MAX_TOPIC_BYTES)?),
                _ => reader.skip(key)?,
            }
        }
        reader.end()?;
        Ok(Self {
            endpoint: require(endpoint, 0)?,
            flow: require(flow, 1)?,
            ..optional
        })
    }
}

impl FrameHeader for FlowHeader<'_> {
    fn check(&self) -> Result<(), EncodeError> {
        data::check_endpoint(self.endpoint)?;
        fits_opt(
            "content type",
            self.content_type,
            caps::MAX_CONTENT_TYPE_BYTES,
        )?;
        fits_opt("traceparent", self.traceparent, caps::MAX_TRACEPARENT_BYTES)?;
        fits_opt("tracestate", self.tracestate, caps::MAX_TRACESTATE_BYTES)?;
        fits_opt("topic", self.topic, caps::MAX_TOPIC_BYTES)
    }

    fn write<B: Out>(&self, out: &mut B) {
        let texts = [
            (2, self.content_type),
            (3, self.traceparent),
            (4, self.tracestate),
            (5, self.topic),
        ];
        let present = count(&texts.map(|(_, text)| text.is_some()));
        let mut map = Writer::new(out);
        map.map(present.saturating_add(2));
        map.text_key(0, self.endpoint);
        map.uint_key(1, self.flow);
        for (key, text) in texts {
            if let Some(text) = text {
                map.text_key(key, text);
            }
        }
    }
}
