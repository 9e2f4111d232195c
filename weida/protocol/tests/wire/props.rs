//! Laws of the codec: what is written is read, and nobody sees where reads happen to split.

use bytes::{Bytes, BytesMut};
use proptest::{collection::vec, option, prelude::*};
use weida_core::{
    Acknowledgement, Backpressure, CursorLevel, Deduplication, DeliveryLevel, Durability,
    GuaranteeSet, OrderingMode, ReportMode,
};
use weida_protocol::{
    CreditHeader, CursorHeader, CursorRecord, DataHeader, Decoded, ErrorHeader, ExtensionItem,
    ExtensionValue, ExtensionsBuf, FlowHeader, FrameHeader, FrameKind, HeadDecoder, Hello,
    PathRecord, SubscriptionHeader, decode_cursor_record, decode_head, encode_cursor_record,
    encode_frame, fuzzing, negotiate, varint,
};

use crate::vectors::CAP;

/// What [`DataHeader`] borrows.
#[derive(Clone, Debug)]
struct OwnedData {
    texts: [Option<String>; 5],
    numbers: [Option<u64>; 3],
    producer: Option<[u8; 32]>,
    achieved: Option<u64>,
    report: Option<(u64, Vec<u64>)>,
    final_only: bool,
    layer: u8,
    extensions: ExtensionsBuf,
}

impl OwnedData {
    fn header(&self) -> DataHeader<'_> {
        let [endpoint, content_type, traceparent, tracestate, topic] =
            self.texts.each_ref().map(Option::as_deref);
        let [content_len, sequence, segment] = self.numbers;
        let (report_id, levels) = self.report.clone().unzip();
        let levels: Vec<_> = levels.unwrap_or_default();
        DataHeader {
            endpoint,
            content_len,
            content_type,
            traceparent,
            tracestate,
            topic,
            sequence,
            producer: self.producer,
            achieved: self.achieved.and_then(Acknowledgement::from_wire),
            report_id,
            report: levels
                .into_iter()
                .map(|level| CursorLevel::from_wire(level).unwrap())
                .collect(),
            report_mode: if self.final_only {
                ReportMode::FinalOnly
            } else {
                ReportMode::Progress
            },
            segment,
            layer: if segment.is_some() { self.layer } else { 0 },
            extensions: self.extensions.as_extensions(),
        }
    }
}

fn text(max: usize) -> impl Strategy<Value = String> {
    ".{0,40}".prop_filter("within the cap", move |text| text.len() <= max)
}

fn any_filter() -> impl Strategy<Value = String> {
    (vec("(a|Ä|\\*|[a-z0-9]{0,5})", 0..5), any::<bool>()).prop_map(|(mut segments, rest)| {
        if rest {
            segments.push("#".into());
        }
        segments.join(".")
    })
}

fn any_extensions() -> impl Strategy<Value = ExtensionsBuf> {
    let item = prop_oneof![
        any::<u64>().prop_map(|n| (Some(n), None, None)),
        ".{0,9}".prop_map(|t| (None, Some(t), None)),
        vec(any::<u8>(), 0..9).prop_map(|b| (None, None, Some(b))),
    ];
    vec((64u64..90, any::<bool>(), vec(item, 1..4)), 0..5).prop_map(|entries| {
        let mut buf = ExtensionsBuf::new();
        for (key, list, items) in &entries {
            let items: Vec<_> = items
                .iter()
                .map(|item| match item {
                    (Some(number), ..) => ExtensionItem::Uint(*number),
                    (_, Some(text), _) => ExtensionItem::Text(text),
                    (.., bytes) => ExtensionItem::Bytes(bytes.as_deref().unwrap_or_default()),
                })
                .collect();
            let value = if *list {
                ExtensionValue::List(items)
            } else {
                ExtensionValue::Item(items[0])
            };
            // A key may come twice; the first one stays.
            let _: Result<(), _> = buf.insert(*key, &value);
        }
        buf
    })
}

fn any_data() -> impl Strategy<Value = OwnedData> {
    let level = prop_oneof![0u64..6, 16u64..40, Just(u64::MAX)];
    let levels = proptest::collection::btree_set(level, 1..=16);
    (
        (
            option::of(text(512)),
            option::of(text(256)),
            option::of(text(128)),
            option::of(text(512)),
            option::of(text(256)),
        ),
        [
            option::of(any::<u64>()),
            option::of(any::<u64>()),
            option::of(any::<u64>()),
        ],
        any::<Option<[u8; 32]>>(),
        option::of(0u64..6),
        option::of((
            any::<u64>(),
            levels.prop_map(|set| set.into_iter().collect()),
        )),
        any::<bool>(),
        0u8..16,
        any_extensions(),
    )
        .prop_map(
            |(texts, numbers, producer, achieved, report, final_only, layer, extensions)| {
                let (endpoint, content_type, traceparent, tracestate, topic) = texts;
                let texts = [endpoint, content_type, traceparent, tracestate, topic];
                OwnedData {
                    texts,
                    numbers,
                    producer,
                    achieved,
                    report,
                    final_only,
                    layer,
                    extensions,
                }
            },
        )
}

fn any_set() -> impl Strategy<Value = GuaranteeSet> {
    (
        0u64..3,
        0u64..6,
        any::<Option<bool>>(),
        2u64..9,
        0u64..5,
        0u64..3,
        1u64..99,
        0u64..5,
    )
        .prop_map(
            |(delivery, ack, durable, replicas, ordering, dedup, window, pressure)| GuaranteeSet {
                delivery: DeliveryLevel::from_wire(delivery).unwrap(),
                acknowledgement: Acknowledgement::from_wire(ack).unwrap(),
                durability: durable
                    .filter(|_| matches!(ack, 3 | 4))
                    .map(|flushed| Durability::from_wire(flushed.into()).unwrap()),
                replicas: Some(replicas).filter(|_| ack == 4),
                ordering: OrderingMode::from_wire(ordering).unwrap(),
                deduplication: Deduplication::from_wire(dedup).unwrap(),
                dedup_window_ms: Some(window).filter(|_| dedup == 1),
                backpressure: Backpressure::from_wire(pressure).unwrap(),
                ..GuaranteeSet::CORE
            },
        )
}

fn any_hello() -> impl Strategy<Value = Hello> {
    let list = || vec(any::<u64>(), 0..=64);
    (
        list(),
        any::<u64>(),
        any::<u64>(),
        list(),
        list(),
        any_set(),
        any::<bool>(),
    )
        .prop_map(
            |(
                versions,
                max_header_bytes,
                max_transfers,
                capabilities,
                required,
                offered,
                strict,
            )| {
                let core_reached = offered.reaches(&GuaranteeSet::CORE);
                Hello {
                    versions,
                    max_header_bytes,
                    max_transfers,
                    capabilities,
                    required_capabilities: required,
                    required: if strict || !core_reached {
                        offered
                    } else {
                        GuaranteeSet::CORE
                    },
                    offered,
                }
            },
        )
}

fn frame_of(kind: FrameKind, header: &impl FrameHeader) -> Vec<u8> {
    let mut frame = Vec::new();
    encode_frame(kind, header, &mut frame).unwrap();
    frame
}

/// The header's bytes; the whole frame must be a head of `kind`.
fn header_of(kind: FrameKind, frame: &[u8]) -> &[u8] {
    let Ok(Decoded::Value { value, consumed }) = decode_head(frame, CAP) else {
        panic!("a complete head");
    };
    assert_eq!((value.kind, consumed), (kind, frame.len()));
    value.header
}

proptest! {
    #[test]
    fn data_round_trips(data in any_data()) {
        let header = data.header();
        let frame = frame_of(FrameKind::Data, &header);
        prop_assert_eq!(DataHeader::decode(header_of(FrameKind::Data, &frame)), Ok(header));
    }

    /// `Vec` and `BytesMut` are written alike.
    #[test]
    fn both_buffers_get_the_same_bytes(data in any_data()) {
        let mut out = BytesMut::from(&b"x"[..]);
        encode_frame(FrameKind::Data, &data.header(), &mut out).unwrap();
        prop_assert_eq!(&out[1..], frame_of(FrameKind::Data, &data.header()));
    }

    #[test]
    fn hello_round_trips(hello in any_hello()) {
        let frame = frame_of(FrameKind::Hello, &hello);
        prop_assert_eq!(Hello::decode(header_of(FrameKind::Hello, &frame)), Ok(hello));
    }

    #[test]
    fn error_round_trips(code in any::<u64>(), message in option::of(text(1024))) {
        let header = ErrorHeader { code, message: message.as_deref() };
        let frame = frame_of(FrameKind::Error, &header);
        prop_assert_eq!(ErrorHeader::decode(header_of(FrameKind::Error, &frame)), Ok(header));
    }

    #[test]
    fn subscription_round_trips(
        endpoint in text(512), filter in any_filter(),
        max_age_ms in any::<Option<u64>>(), max_layer in option::of(0u8..16), again in any::<bool>(),
    ) {
        let header =
            SubscriptionHeader { endpoint: &endpoint, filter: &filter, max_age_ms, max_layer };
        let kind = if again { FrameKind::Subscribe } else { FrameKind::Unsubscribe };
        let frame = frame_of(kind, &header);
        prop_assert_eq!(SubscriptionHeader::decode(header_of(kind, &frame)), Ok(header));
    }

    #[test]
    fn credit_round_trips(endpoint in text(512), filter in any_filter(), limit in any::<u64>()) {
        let header = CreditHeader::new(&endpoint, &filter, limit);
        let frame = frame_of(FrameKind::Credit, &header);
        prop_assert_eq!(CreditHeader::decode(header_of(FrameKind::Credit, &frame)), Ok(header));
    }

    #[test]
    fn cursor_round_trips(
        report_id in any::<u64>(), level in prop_oneof![0u64..6, 16u64..1 << 62],
        offset in 0..=varint::MAX,
    ) {
        let header = CursorHeader { report_id };
        let frame = frame_of(FrameKind::Cursor, &header);
        prop_assert_eq!(CursorHeader::decode(header_of(FrameKind::Cursor, &frame)), Ok(header));
        let value = CursorRecord { level: CursorLevel::from_wire(level).unwrap(), offset };
        let mut bytes = Vec::new();
        encode_cursor_record(value, &mut bytes).unwrap();
        let whole = Decoded::Value { value, consumed: bytes.len() };
        prop_assert_eq!(decode_cursor_record(&bytes), Ok(whole));
    }

    #[test]
    fn flow_round_trips(
        endpoint in text(512), flow in any::<u64>(), content_type in option::of(text(256)),
        traceparent in option::of(text(128)), tracestate in option::of(text(512)),
        topic in option::of(text(256)),
    ) {
        let header = FlowHeader {
            endpoint: &endpoint,
            flow,
            content_type: content_type.as_deref(),
            traceparent: traceparent.as_deref(),
            tracestate: tracestate.as_deref(),
            topic: topic.as_deref(),
        };
        let frame = frame_of(FrameKind::Flow, &header);
        prop_assert_eq!(FlowHeader::decode(header_of(FrameKind::Flow, &frame)), Ok(header));
    }

    /// Also at its longest, where the length takes two bytes.
    #[test]
    fn path_record_round_trips(rtt_us in any::<u64>(), rest in any::<u64>()) {
        let value = PathRecord {
            rtt_us, min_rtt_us: rest, cwnd: rest, congestion_events: rest, lost_packets: rest,
            lost_bytes: rest, sent_packets: rest, current_mtu: rest, tx_datagrams: rest,
            tx_bytes: rest, rx_datagrams: rest, rx_bytes: rest,
        };
        let mut bytes = Vec::new();
        value.encode(&mut bytes);
        let whole = Decoded::Value { value, consumed: bytes.len() };
        prop_assert_eq!(PathRecord::decode(&bytes), Ok(whole));
    }

    #[test]
    fn varint_round_trips(value in 0..=varint::MAX) {
        let mut bytes = Vec::new();
        varint::encode_varint(value, &mut bytes).unwrap();
        prop_assert_eq!(bytes.len(), varint::varint_len(value));
        prop_assert_eq!(varint::decode_varint(&bytes), Decoded::Value { value, consumed: bytes.len() });
    }

    /// Where reads happen to split is invisible, and the payload behind the head stays whole.
    #[test]
    fn chunking_is_invisible(
        data in any_data(), payload in vec(any::<u8>(), 0..50), cuts in vec(1usize..60, 1..40),
    ) {
        let mut stream = frame_of(FrameKind::Data, &data.header());
        let head_len = stream.len();
        stream.extend_from_slice(&payload);
        let mut decoder = HeadDecoder::new(CAP);
        let mut left = Bytes::from(stream.clone());
        let mut cuts = cuts.into_iter().cycle();
        let head = loop {
            prop_assert!(!left.is_empty(), "complete before the stream ends");
            let mut chunk = left.split_to(cuts.next().unwrap().min(left.len()));
            let head = decoder.feed(&mut chunk).unwrap();
            prop_assert!(decoder.buffered_bytes() <= head_len);
            if let Some(head) = head {
                let rest = [&chunk[..], &left[..]].concat();
                prop_assert_eq!(rest, payload.clone());
                break head;
            }
        };
        prop_assert_eq!(DataHeader::decode(&head.header), Ok(data.header()));
    }

    /// Two HELLOs that decode are judged alike from both ends.
    #[test]
    fn negotiation_is_symmetric(a in any_hello(), b in any_hello()) {
        let open = |hello: Hello| Hello {
            versions: vec![0], required_capabilities: vec![], ..hello
        };
        let (a, b) = (open(a), open(b));
        let (here, there) = (negotiate(&a, &b), negotiate(&b, &a));
        prop_assert_eq!(here.is_ok(), there.is_ok());
        if let (Ok(here), Ok(there)) = (here, there) {
            prop_assert_eq!(here.guarantees, there.guarantees);
            prop_assert_eq!(here.datagrams, there.datagrams);
        }
    }

    #[test]
    fn arbitrary_bytes_break_no_law(bytes in vec(any::<u8>(), 0..200)) {
        for target in [
            fuzzing::frame_head, fuzzing::header, fuzzing::negotiation, fuzzing::cursor_records,
            fuzzing::report_records, fuzzing::address, fuzzing::topic_filter,
        ] {
            target(&bytes);
        }
    }
}
