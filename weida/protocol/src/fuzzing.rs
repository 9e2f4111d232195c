//! What the fuzz targets run, and the normal tests replay: one function per decoder.
//!
//! Each takes any bytes, returns nothing, and panics when a law is broken. Hidden, because it is no
//! part of the codec; here, because target and replay must not drift apart.

use bytes::Bytes;
use weida_core::{Address, filter};

use crate::{
    CreditHeader, CursorHeader, DataHeader, DecodeError, Decoded, ErrorHeader, ExtensionsBuf,
    FlowHeader, FrameHeader, FrameKind, HeadDecoder, Hello, MAX_PREAMBLE_LEN, PathRecord,
    ReportHead, SubscriptionHeader, caps, decode_cursor_record, decode_head, encode_cursor_record,
    encode_frame, negotiate,
};

const HEADER_CAP: u64 = 16_384;

/// One stream half: the whole-slice decoder and the chunked one agree, and buffers stay bounded.
pub fn frame_head(data: &[u8]) {
    let whole = decode_head(data, HEADER_CAP);
    // The first byte doubles as the chunk size, so that splits vary with the input.
    let step = usize::from(data.first().copied().unwrap_or(1) % 7).saturating_add(1);
    let mut decoder = HeadDecoder::new(HEADER_CAP);
    let mut chunked = Ok(None);
    for chunk in data.chunks(step) {
        chunked = decoder.feed(&mut Bytes::copy_from_slice(chunk));
        let bound = usize::try_from(HEADER_CAP)
            .unwrap_or(usize::MAX)
            .max(MAX_PREAMBLE_LEN);
        assert!(
            decoder.buffered_bytes() <= bound.min(data.len()),
            "a head holds what arrived"
        );
        if !matches!(chunked, Ok(None)) {
            break;
        }
    }
    match (whole, chunked) {
        (Ok(Decoded::Value { value, .. }), Ok(Some(head))) => {
            assert_eq!((value.kind, value.header), (head.kind, &head.header[..]));
            decode_header(value.kind, value.header);
        }
        (Ok(Decoded::NeedMore(missing)), Ok(None)) => assert!(missing > 0),
        (Err(whole), Err(chunked)) => assert_eq!(whole, chunked),
        (whole, chunked) => panic!("{whole:?} whole, {chunked:?} in chunks"),
    }
}

/// One header, its kind chosen by the first byte.
pub fn header(data: &[u8]) {
    if let Some((&kind, bytes)) = data.split_first()
        && let Some(kind) = FrameKind::from_u8(kind % 9)
    {
        decode_header(kind, bytes);
    }
}

/// Two HELLOs: both sides come to compatible verdicts.
pub fn negotiation(data: &[u8]) {
    let Some((&cut, rest)) = data.split_first() else {
        return;
    };
    let (first, second) = rest.split_at(usize::from(cut).min(rest.len()));
    let (Ok(first), Ok(second)) = (Hello::decode(first), Hello::decode(second)) else {
        return;
    };
    if let (Ok(here), Ok(there)) = (negotiate(&first, &second), negotiate(&second, &first)) {
        assert_eq!(
            (here.version, here.guarantees),
            (there.version, there.guarantees)
        );
        assert_eq!(
            (here.datagrams, here.path_report),
            (there.datagrams, there.path_report)
        );
        assert!(here.guarantees.reaches(&first.required));
        assert!(here.guarantees.reaches(&second.required));
    }
}

/// A cursor stream after its head.
pub fn cursor_records(mut data: &[u8]) {
    while let Ok(Decoded::Value { value, consumed }) = decode_cursor_record(data) {
        let mut again = Vec::new();
        assert_eq!(encode_cursor_record(value, &mut again), Ok(()));
        let whole = Decoded::Value {
            value,
            consumed: again.len(),
        };
        assert_eq!(decode_cursor_record(&again), Ok(whole));
        assert!(
            consumed > 0 && again.len() <= consumed,
            "the canonical form is the shortest"
        );
        data = data.get(consumed..).unwrap_or_default();
    }
}

/// A report stream after its head.
pub fn report_records(mut data: &[u8]) {
    while let Ok(Decoded::Value { value, consumed }) = PathRecord::decode(data) {
        let mut again = Vec::new();
        value.encode(&mut again);
        let whole = Decoded::Value {
            value,
            consumed: again.len(),
        };
        assert_eq!(PathRecord::decode(&again), Ok(whole));
        assert!(consumed > 0 && again.len() <= consumed.max(caps::MAX_PATH_RECORD_BYTES));
        data = data.get(consumed..).unwrap_or_default();
    }
}

/// Any text: what parses prints to a text that parses to the same.
pub fn address(data: &[u8]) {
    if let Ok(text) = str::from_utf8(data)
        && let Ok(address) = Address::parse(text)
    {
        let again = Address::parse(&address.to_string());
        assert!(again.is_ok_and(|again| again == address), "{address:?}");
    }
}

/// Filter and topic, cut at the first NUL: validation and matching are total.
pub fn topic_filter(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else {
        return;
    };
    let (pattern, topic) = text.split_once('\0').unwrap_or((text, ""));
    let matched = filter::matches(topic, pattern);
    if filter::validate(pattern).is_ok() && !pattern.contains(['*', '#']) && !pattern.is_empty() {
        assert_eq!(matched, topic == pattern);
    }
}

/// What decodes encodes, and decodes to the same again.
fn decode_header(kind: FrameKind, bytes: &[u8]) {
    match kind {
        FrameKind::Hello => round_trip(kind, bytes, Hello::decode),
        FrameKind::Data => {
            round_trip(kind, bytes, DataHeader::decode);
            if let Ok(data) = DataHeader::decode(bytes) {
                assert!(data.report.capacity() <= caps::MAX_REPORT_LEVELS);
                check_extensions(&data);
            }
        }
        FrameKind::Error => round_trip(kind, bytes, ErrorHeader::decode),
        FrameKind::Subscribe | FrameKind::Unsubscribe => {
            round_trip(kind, bytes, SubscriptionHeader::decode);
        }
        FrameKind::Credit => round_trip(kind, bytes, CreditHeader::decode),
        FrameKind::Cursor => round_trip(kind, bytes, CursorHeader::decode),
        FrameKind::Flow => round_trip(kind, bytes, FlowHeader::decode),
        FrameKind::Report => round_trip(kind, bytes, ReportHead::decode),
    }
}

fn round_trip<'a, H>(
    kind: FrameKind,
    bytes: &'a [u8],
    decode: impl Fn(&'a [u8]) -> Result<H, DecodeError>,
) where
    H: FrameHeader + PartialEq + std::fmt::Debug,
{
    let Ok(header) = decode(bytes) else { return };
    let mut frame = Vec::new();
    assert_eq!(
        encode_frame(kind, &header, &mut frame),
        Ok(()),
        "{header:?}"
    );
    let mut again = Vec::new();
    assert_eq!(header.encode(&mut again), Ok(()));
    assert!(frame.ends_with(&again));
    assert!(
        again.len() <= bytes.len(),
        "the canonical form is the shortest"
    );
}

fn check_extensions(data: &DataHeader<'_>) {
    let mut last = caps::FIRST_EXTENSION_KEY.saturating_sub(1);
    for (key, value) in data.extensions.iter() {
        assert!(key > last, "keys ascend");
        assert_eq!(data.extensions.get(key), Some(value));
        last = key;
    }
    let owned = ExtensionsBuf::from(data.extensions);
    assert!(
        owned.as_extensions().iter().eq(data.extensions.iter()),
        "nothing is lost on the way"
    );
}
