//! DATA: the header of every transfer. [wire 8.2]

use weida_core::{Acknowledgement, CursorLevel, ReportMode};

use super::{FrameHeader, Out, count, fits, fits_opt};
use crate::{
    caps,
    cbor::{Reader, Writer},
    error::{DecodeError, EncodeError},
    extension::Extensions,
};

/// Everything a DATA header says. Every key is optional to the decoder.
///
/// Whether a path is required depends on which half of which stream the header stands on:
/// [`initiating_endpoint`](Self::initiating_endpoint) asks for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DataHeader<'a> {
    /// Key 0: addressed path. Required on an initiating half, ignored on a reply half.
    pub endpoint: Option<&'a str>,
    /// Key 1: payload length, advisory. Never sizes an allocation.
    pub content_len: Option<u64>,
    /// Key 2: opaque label of the payload's type.
    pub content_type: Option<&'a str>,
    /// Key 3: W3C `traceparent`; unparsable counts as absent.
    pub traceparent: Option<&'a str>,
    /// Key 4: W3C `tracestate`, opaque.
    pub tracestate: Option<&'a str>,
    /// Key 5: topic, always literal text.
    pub topic: Option<&'a str>,
    /// Key 6: producer sequence, only under negotiated per-producer ordering.
    pub sequence: Option<u64>,
    /// Key 7: digest naming a producer other than the connection's peer. A label, no identity.
    pub producer: Option<[u8; caps::PRODUCER_BYTES]>,
    /// Key 8: completion level reached; reply half only.
    pub achieved: Option<Acknowledgement>,
    /// Key 9: id of the report that is ordered; present exactly with key 10.
    pub report_id: Option<u64>,
    /// Key 10: levels ordered, at most 16. Written ascending without repeats.
    pub report: Vec<CursorLevel>,
    /// Key 11: how the report comes.
    pub report_mode: ReportMode,
    /// Key 13: segment number.
    pub segment: Option<u64>,
    /// Key 14: segment layer, 0 to 15; absent reads 0, and 0 is never written.
    pub layer: u8,
    /// Keys from 64.
    pub extensions: Extensions<'a>,
}

impl<'a> DataHeader<'a> {
    /// A header of an initiating half.
    pub fn addressed(endpoint: &'a str) -> Self {
        Self {
            endpoint: Some(endpoint),
            ..Self::default()
        }
    }

    /// A header of a reply half: the stream is the correlation, so it says nothing.
    pub fn reply() -> Self {
        Self::default()
    }

    /// Reads a header.
    ///
    /// # Errors
    ///
    /// [`DecodeError`], a violation.
    pub fn decode(header: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(header);
        let mut keys = reader.header_map()?;
        let mut data = Self::default();
        let mut has_layer = false;
        let mut tail = (reader.rest(), 0usize);
        loop {
            let before = reader.rest();
            let Some(key) = reader.key(&mut keys)? else {
                break;
            };
            match key {
                0 => data.endpoint = Some(reader.text(key, caps::MAX_ENDPOINT_BYTES)?),
                1 => data.content_len = Some(reader.uint(key)?),
                2 => data.content_type = Some(reader.text(key, caps::MAX_CONTENT_TYPE_BYTES)?),
                3 => data.traceparent = Some(reader.text(key, caps::MAX_TRACEPARENT_BYTES)?),
                4 => data.tracestate = Some(reader.text(key, caps::MAX_TRACESTATE_BYTES)?),
                5 => data.topic = Some(reader.text(key, caps::MAX_TOPIC_BYTES)?),
                6 => data.sequence = Some(reader.uint(key)?),
                7 => data.producer = Some(reader.producer(key)?),
                8 => data.achieved = Some(achieved(reader.uint(key)?)?),
                9 => data.report_id = Some(reader.uint(key)?),
                10 => data.report = report(&mut reader, key)?,
                11 => data.report_mode = report_mode(reader.uint(key)?)?,
                13 => data.segment = Some(reader.uint(key)?),
                14 => {
                    data.layer = layer(reader.uint(key)?)?;
                    has_layer = true;
                }
                _ => {
                    reader.skip(key)?;
                    if key >= caps::FIRST_EXTENSION_KEY {
                        tail.0 = if tail.1 == 0 { before } else { tail.0 };
                        tail.1 = tail.1.saturating_add(1);
                    }
                }
            }
        }
        reader.end()?;
        if tail.1 > 0 {
            data.extensions = Extensions::from_checked(tail.0, tail.1);
        }
        match (data.report_id, data.report.is_empty()) {
            (None, false) => return Err(DecodeError::ReportWithoutId),
            (Some(report_id), true) => return Err(DecodeError::IdWithoutReport { report_id }),
            _ => {}
        }
        if has_layer && data.segment.is_none() {
            return Err(DecodeError::LayerWithoutSegment { layer: data.layer });
        }
        Ok(data)
    }

    /// The path, which an initiating half must name.
    ///
    /// # Errors
    ///
    /// [`DecodeError::MissingKey`] 0, a violation.
    pub fn initiating_endpoint(&self) -> Result<&'a str, DecodeError> {
        super::require(self.endpoint, 0)
    }
}

impl FrameHeader for DataHeader<'_> {
    fn check(&self) -> Result<(), EncodeError> {
        fits_opt("endpoint", self.endpoint, caps::MAX_ENDPOINT_BYTES)?;
        fits_opt(
            "content type",
            self.content_type,
            caps::MAX_CONTENT_TYPE_BYTES,
        )?;
        fits_opt("traceparent", self.traceparent, caps::MAX_TRACEPARENT_BYTES)?;
        fits_opt("tracestate", self.tracestate, caps::MAX_TRACESTATE_BYTES)?;
        fits_opt("topic", self.topic, caps::MAX_TOPIC_BYTES)?;
        if self.report_id.is_some() == self.report.is_empty() {
            return Err(EncodeError::ReportIdMismatch);
        }
        if !self.report.is_empty() {
            check_report(&canonical(&self.report))?;
        }
        if self.layer > caps::MAX_LAYER {
            return Err(EncodeError::LayerTooHigh { layer: self.layer });
        }
        if self.layer > 0 && self.segment.is_none() {
            return Err(EncodeError::LayerWithoutSegment);
        }
        Ok(())
    }

    fn write<B: Out>(&self, out: &mut B) {
        let final_only = self.report_mode == ReportMode::FinalOnly;
        let pairs = count(&[
            self.endpoint.is_some(),
            self.content_len.is_some(),
            self.content_type.is_some(),
            self.traceparent.is_some(),
            self.tracestate.is_some(),
            self.topic.is_some(),
            self.sequence.is_some(),
            self.producer.is_some(),
            self.achieved.is_some(),
            self.report_id.is_some(),
            !self.report.is_empty(),
            final_only,
            self.segment.is_some(),
            self.layer > 0,
        ]);
        let mut map = Writer::new(out);
        map.map(pairs.saturating_add(self.extensions.len()));
        text(&mut map, 0, self.endpoint);
        uint(&mut map, 1, self.content_len);
        text(&mut map, 2, self.content_type);
        text(&mut map, 3, self.traceparent);
        text(&mut map, 4, self.tracestate);
        text(&mut map, 5, self.topic);
        uint(&mut map, 6, self.sequence);
        if let Some(producer) = &self.producer {
            map.uint(7);
            map.bytes(producer);
        }
        uint(&mut map, 8, self.achieved.map(Acknowledgement::to_wire));
        uint(&mut map, 9, self.report_id);
        if !self.report.is_empty() {
            let levels = canonical(&self.report);
            map.uint(10);
            map.array(levels.len());
            levels.iter().for_each(|level| map.uint(level.to_wire()));
        }
        uint(&mut map, 11, final_only.then_some(1));
        uint(&mut map, 13, self.segment);
        uint(&mut map, 14, (self.layer > 0).then_some(self.layer.into()));
        map.raw(self.extensions.raw());
    }
}

fn text<B: Out>(map: &mut Writer<'_, B>, key: u64, value: Option<&str>) {
    if let Some(text) = value {
        map.text_key(key, text);
    }
}

fn uint<B: Out>(map: &mut Writer<'_, B>, key: u64, value: Option<u64>) {
    if let Some(value) = value {
        map.uint_key(key, value);
    }
}

/// Ascending and without repeats; borrows what already is.
fn canonical(levels: &[CursorLevel]) -> std::borrow::Cow<'_, [CursorLevel]> {
    if levels.is_sorted_by(|a, b| a < b) {
        return levels.into();
    }
    let mut sorted = levels.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    sorted.into()
}

fn check_report(levels: &[CursorLevel]) -> Result<(), EncodeError> {
    if levels.len() > caps::MAX_REPORT_LEVELS {
        let (got, max) = (levels.len(), caps::MAX_REPORT_LEVELS);
        return Err(EncodeError::TooMany {
            field: "report levels",
            got,
            max,
        });
    }
    let reserved = |level: &&CursorLevel| CursorLevel::from_wire(level.to_wire()).is_none();
    match levels.iter().find(reserved) {
        Some(level) => Err(EncodeError::ReservedLevel {
            level: level.to_wire(),
        }),
        None => Ok(()),
    }
}

fn achieved(value: u64) -> Result<Acknowledgement, DecodeError> {
    Acknowledgement::from_wire(value).ok_or(DecodeError::UnknownLevel {
        dimension: "achieved",
        value,
    })
}

fn report_mode(value: u64) -> Result<ReportMode, DecodeError> {
    ReportMode::from_wire(value).ok_or(DecodeError::UnknownLevel {
        dimension: "report_mode",
        value,
    })
}

pub(super) fn layer(value: u64) -> Result<u8, DecodeError> {
    u8::try_from(value)
        .ok()
        .filter(|layer| *layer <= caps::MAX_LAYER)
        .ok_or(DecodeError::LayerTooHigh { layer: value })
}

fn report(reader: &mut Reader<'_>, key: u64) -> Result<Vec<CursorLevel>, DecodeError> {
    let len = reader.array(key, caps::MAX_REPORT_LEVELS)?;
    let mut levels = Vec::with_capacity(len.min(reader.rest().len()));
    let mut last = None;
    for _ in 0..len {
        let level = reader.uint(key)?;
        if last.is_some_and(|last| level <= last) {
            return Err(DecodeError::LevelNotAscending { level });
        }
        last = Some(level);
        levels.push(CursorLevel::from_wire(level).ok_or(DecodeError::ReservedLevel { level })?);
    }
    Ok(levels)
}

/// The path of any header that must name one.
pub(super) fn check_endpoint(endpoint: &str) -> Result<(), EncodeError> {
    fits("endpoint", endpoint, caps::MAX_ENDPOINT_BYTES)
}
