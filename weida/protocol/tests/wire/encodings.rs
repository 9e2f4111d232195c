//! [wire 25.1]: G1 to G45.

use weida_core::{
    Acknowledgement, CursorLevel, Deduplication, ErrorCode, Fingerprint, GuaranteeSet,
    OrderingMode, ReportMode,
};
use weida_protocol::{
    CreditHeader, CursorHeader, CursorRecord, DataHeader, DecodeError, Decoded, ErrorHeader,
    FlowHeader, FrameKind, Hello, PathRecord, ReportHead, SubscriptionHeader, decode_cursor_record,
    encode_cursor_record, flow_prefix, split_flow_datagram,
};

use crate::vectors::{ENCODINGS, check_frame, row};

/// One test per vector: the fields, and which decoder must give them back.
macro_rules! golden {
    ($($name:ident $id:literal $kind:ident $header:ty = $value:expr;)*) => {$(
        #[test]
        fn $name() {
            let vector = row(ENCODINGS, $id);
            assert_eq!(vector.place, "frame");
            let value: $header = $value;
            check_frame(&vector.bytes[0], FrameKind::$kind, &value, |bytes| {
                let decoded = <$header>::decode(bytes)?;
                assert_eq!(decoded, value);
                Ok(())
            });
        }
    )*};
}

golden! {
    wire_g1 "G1" Hello Hello = Hello::v0(16_384, 1024);
    wire_g2 "G2" Hello Hello = Hello::v0(16_384, 2048);
    wire_g3 "G3" Hello Hello = Hello { capabilities: vec![1], ..Hello::v0(16_384, 2048) };
    wire_g4 "G4" Hello Hello = Hello { capabilities: vec![1, 2], ..Hello::v0(16_384, 2048) };
    wire_g5 "G5" Hello Hello = hello_with(detect(), 1024);
    wire_g6 "G6" Hello Hello = hello_with(detect_dedup(), 2048);
    wire_g7 "G7" Hello Hello = hello_with(GuaranteeSet::CORE, 1024);
    wire_g8 "G8" Data DataHeader<'_> = DataHeader::addressed("/t");
    wire_g9 "G9" Data DataHeader<'_> = DataHeader::reply();
    wire_g10 "G10" Data DataHeader<'_> =
        DataHeader { achieved: Some(Acknowledgement::Accepted), ..DataHeader::reply() };
    wire_g11 "G11" Data DataHeader<'_> = DataHeader {
        content_len: Some(5),
        content_type: Some("text/plain"),
        traceparent: Some("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
        tracestate: Some("a=b"),
        topic: Some("px.eur"),
        ..DataHeader::addressed("/md")
    };
    wire_g12 "G12" Data DataHeader<'_> =
        DataHeader { topic: Some("px.eur"), ..DataHeader::addressed("/md") };
    wire_g13 "G13" Data DataHeader<'_> = DataHeader {
        content_len: Some(4),
        topic: Some("px.eur"),
        sequence: Some(300),
        ..DataHeader::addressed("/md")
    };
    wire_g14 "G14" Data DataHeader<'_> =
        DataHeader { sequence: Some(1), ..DataHeader::addressed("/t") };
    wire_g15 "G15" Data DataHeader<'_> =
        DataHeader { sequence: Some(u64::MAX), ..DataHeader::addressed("/t") };
    wire_g16 "G16" Data DataHeader<'_> = DataHeader {
        sequence: Some(1),
        producer: Some(*Fingerprint::of_spki(b"test").as_bytes()),
        ..DataHeader::addressed("/t")
    };
    wire_g17 "G17" Data DataHeader<'_> = DataHeader {
        report_id: Some(1),
        report: vec![Acknowledgement::Accepted.into()],
        ..DataHeader::addressed("/t")
    };
    wire_g18 "G18" Data DataHeader<'_> = DataHeader {
        report_id: Some(1),
        report: vec![Acknowledgement::Stored.into(), CursorLevel::Application(17)],
        report_mode: ReportMode::FinalOnly,
        ..DataHeader::addressed("/t")
    };
    wire_g19 "G19" Data DataHeader<'_> =
        DataHeader { segment: Some(5), ..DataHeader::addressed("/t") };
    wire_g20 "G20" Data DataHeader<'_> =
        DataHeader { segment: Some(5), layer: 2, ..DataHeader::addressed("/t") };
    wire_g21 "G21" Data DataHeader<'_> =
        DataHeader { topic: Some("dose/Ä.*"), ..DataHeader::addressed("/md") };
    wire_g22 "G22" Error ErrorHeader<'_> = ErrorHeader::new(ErrorCode::UnknownEndpoint);
    wire_g23 "G23" Error ErrorHeader<'_> =
        ErrorHeader { message: Some("no"), ..ErrorHeader::new(ErrorCode::Rejected) };
    wire_g24 "G24" Error ErrorHeader<'_> = ErrorHeader::new(ErrorCode::Unsupported);
    wire_g25 "G25" Error ErrorHeader<'_> = ErrorHeader::new(ErrorCode::NoReply);
    wire_g26 "G26" Subscribe SubscriptionHeader<'_> = SubscriptionHeader::new("/md", "px.eur");
    wire_g27 "G27" Subscribe SubscriptionHeader<'_> =
        SubscriptionHeader::new("/md", "sensors.*.temp");
    wire_g28 "G28" Subscribe SubscriptionHeader<'_> = SubscriptionHeader::new("/md", "ctl.#");
    wire_g29 "G29" Subscribe SubscriptionHeader<'_> = SubscriptionHeader::new("/md", "");
    wire_g30 "G30" Subscribe SubscriptionHeader<'_> = SubscriptionHeader::new("/md", "#");
    wire_g31 "G31" Unsubscribe SubscriptionHeader<'_> = SubscriptionHeader::new("/md", "px.eur");
    wire_g32 "G32" Subscribe SubscriptionHeader<'_> =
        SubscriptionHeader { max_age_ms: Some(150), ..SubscriptionHeader::new("/t", "a") };
    wire_g33 "G33" Subscribe SubscriptionHeader<'_> =
        SubscriptionHeader { max_layer: Some(1), ..SubscriptionHeader::new("/t", "a") };
    wire_g34 "G34" Credit CreditHeader<'_> = CreditHeader::new("/jobs", "px.eur", 5);
    wire_g35 "G35" Credit CreditHeader<'_> = CreditHeader::new("/jobs", "", 0);
    wire_g36 "G36" Cursor CursorHeader = CursorHeader { report_id: 1 };
    wire_g39 "G39" Flow FlowHeader<'_> = FlowHeader::new("/v", 7);
    wire_g40 "G40" Flow FlowHeader<'_> =
        FlowHeader { topic: Some("cam"), ..FlowHeader::new("/v", 0) };
    wire_g43 "G43" Report ReportHead = ReportHead;
}

/// An encoder given levels in any order writes the canonical one.
#[test]
fn wire_g18_levels_are_sorted_and_repeats_dropped() {
    let stage = CursorLevel::Application(17);
    let unsorted = DataHeader {
        report_id: Some(1),
        report: vec![stage, Acknowledgement::Stored.into(), stage],
        report_mode: ReportMode::FinalOnly,
        ..DataHeader::addressed("/t")
    };
    let mut frame = Vec::new();
    weida_protocol::encode_frame(FrameKind::Data, &unsorted, &mut frame).unwrap();
    assert_eq!(frame, row(ENCODINGS, "G18").bytes[0]);
}

#[test]
fn wire_g31_differs_from_g26_in_the_kind_only() {
    let mut subscribe = row(ENCODINGS, "G26").bytes.remove(0);
    subscribe[1] = 4;
    assert_eq!(subscribe, row(ENCODINGS, "G31").bytes[0]);
}

#[test]
fn wire_g37() {
    check_cursor(
        "G37",
        CursorRecord {
            level: Acknowledgement::Accepted.into(),
            offset: 64,
        },
    );
}

#[test]
fn wire_g38() {
    check_cursor(
        "G38",
        CursorRecord {
            level: Acknowledgement::Stored.into(),
            offset: 1_000_000,
        },
    );
}

#[test]
fn wire_g41() {
    check_datagram("G41", 7);
}

#[test]
fn wire_g42() {
    check_datagram("G42", 64);
}

#[test]
fn wire_g44() {
    check_record(
        "G44",
        PathRecord {
            rtt_us: 1500,
            cwnd: 12_000,
            sent_packets: 42,
            current_mtu: 1452,
            ..PathRecord::default()
        },
    );
}

#[test]
fn wire_g45() {
    check_record("G45", PathRecord::default());
}

fn check_cursor(id: &str, record: CursorRecord) {
    let bytes = row(ENCODINGS, id).bytes.remove(0);
    let mut encoded = Vec::new();
    encode_cursor_record(record, &mut encoded).unwrap();
    assert_eq!(encoded, bytes);
    check_record_stream(&bytes, &record, decode_cursor_record);
}

fn check_record(id: &str, record: PathRecord) {
    let bytes = row(ENCODINGS, id).bytes.remove(0);
    let mut encoded = b"before".to_vec();
    record.encode(&mut encoded);
    assert_eq!(encoded, [b"before", &bytes[..]].concat());
    check_record_stream(&bytes, &record, PathRecord::decode);
}

fn check_record_stream<T: PartialEq + std::fmt::Debug + Copy>(
    bytes: &[u8],
    record: &T,
    decode: impl Fn(&[u8]) -> Result<Decoded<T>, DecodeError>,
) {
    let whole = Ok(Decoded::Value {
        value: *record,
        consumed: bytes.len(),
    });
    assert_eq!(decode(bytes), whole);
    assert_eq!(decode(&[bytes, &[0xAA]].concat()), whole);
    for cut in 0..bytes.len() {
        let Ok(Decoded::NeedMore(missing)) = decode(&bytes[..cut]) else {
            panic!("prefix of {cut} bytes is incomplete");
        };
        assert!(
            (1..=bytes.len() - cut).contains(&missing),
            "prefix of {cut}: {missing}"
        );
    }
}

fn check_datagram(id: &str, flow: u64) {
    let bytes = row(ENCODINGS, id).bytes.remove(0);
    let (prefix, len) = flow_prefix(flow).unwrap();
    assert_eq!([&prefix[..len], b"hi"].concat(), bytes);
    assert_eq!(split_flow_datagram(&bytes), Some((flow, &b"hi"[..])));
    for cut in 0..len {
        assert_eq!(
            split_flow_datagram(&bytes[..cut]),
            None,
            "a cut id is dropped"
        );
    }
    assert_eq!(split_flow_datagram(&bytes[..len]), Some((flow, &b""[..])));
    assert_eq!(
        split_flow_datagram(&[&bytes[..], b"!"].concat()),
        Some((flow, &b"hi!"[..]))
    );
}

fn detect() -> GuaranteeSet {
    GuaranteeSet {
        ordering: OrderingMode::PerProducerDetect,
        ..GuaranteeSet::CORE
    }
}

fn detect_dedup() -> GuaranteeSet {
    GuaranteeSet {
        deduplication: Deduplication::Bounded,
        dedup_window_ms: Some(60_000),
        ..detect()
    }
}

fn hello_with(set: GuaranteeSet, max_transfers: u64) -> Hello {
    Hello {
        offered: set,
        required: set,
        ..Hello::v0(16_384, max_transfers)
    }
}
