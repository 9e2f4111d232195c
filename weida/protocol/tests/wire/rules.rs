//! Numbered rules that are visible in the bytes.

use bytes::Bytes;
use weida_core::{
    Acknowledgement, CursorLevel, Error, FilterError, Fingerprint, GuaranteeError, GuaranteeSet,
};
use weida_protocol::{
    ALPN, CursorRecord, DataHeader, DecodeError, EncodeError, ErrorHeader, ExtensionError,
    ExtensionItem, ExtensionValue, ExtensionsBuf, FrameHeader, FrameKind, HeadDecoder, Hello,
    SubscriptionHeader, caps, encode_cursor_record, encode_frame,
};

use crate::vectors::{CAP, ENCODINGS, all, hex, row};

fn frame(kind: FrameKind, header: &impl FrameHeader) -> Vec<u8> {
    let mut frame = Vec::new();
    encode_frame(kind, header, &mut frame).unwrap();
    frame
}

#[test]
fn wire_2_the_alpn_token() {
    assert_eq!(ALPN, hex("77 65 69 64 61 2F 30"));
}

/// HELLO has five numbers and lists of numbers, and guarantee levels: nowhere a name fits.
#[test]
fn s8_7_no_header_names_a_peer_or_a_session() {
    let Hello {
        versions,
        max_header_bytes: _,
        max_transfers: _,
        capabilities,
        required_capabilities,
        offered: _,
        required: _,
    } = Hello::v0(CAP, 1);
    let lists: [Vec<u64>; 3] = [versions, capabilities, required_capabilities];
    assert_eq!(lists, [vec![0], vec![], vec![]]);
    // A text under a free HELLO key is stepped over and reaches no field.
    let plain = hex("A5 00 81 00 01 19 40 00 02 19 04 00 03 80 04 80");
    let claimed = hex("A6 00 81 00 01 19 40 00 02 19 04 00 03 80 04 80 07 63 61 62 63");
    assert_eq!(Hello::decode(&claimed), Hello::decode(&plain));
}

/// The producer field holds any 32 bytes, not only a fingerprint of the connection.
#[test]
fn s8_16_the_producer_field_holds_another_name() {
    let other = DataHeader {
        producer: Some([0xEE; 32]),
        ..DataHeader::addressed("/t")
    };
    let bytes = frame(FrameKind::Data, &other);
    assert_eq!(
        DataHeader::decode(&bytes[3..]).unwrap().producer,
        Some([0xEE; 32])
    );
    assert_eq!(DataHeader::addressed("/t").producer, None);
}

#[test]
fn s8_17_the_connection_peer_is_no_producer_key() {
    let numbered = DataHeader {
        sequence: Some(1),
        ..DataHeader::addressed("/t")
    };
    let bytes = frame(FrameKind::Data, &numbered);
    assert_eq!(bytes, row(ENCODINGS, "G14").bytes[0]);
    assert_eq!(DataHeader::decode(&bytes[3..]).unwrap().producer, None);
}

#[test]
fn s8_18_a_producer_is_exactly_32_raw_bytes() {
    assert!(DataHeader::decode(&hex("A1 07 58 20 00*32")).is_ok());
    for (bytes, got_bytes) in [
        ("A1 07 58 1F 00*31", 31),
        ("A1 07 58 21 00*33", 33),
        ("A1 07 40", 0),
    ] {
        assert_eq!(
            DataHeader::decode(&hex(bytes)),
            Err(DecodeError::ProducerLength { got_bytes })
        );
    }
    // 64 hex digits of text are no digest.
    let as_text = DataHeader::decode(&hex("A1 07 78 40 61*64")).map(drop);
    assert_eq!(as_text, Err(DecodeError::WrongType { key: 7 }));
}

#[test]
fn s8_19_the_text_form_is_never_written() {
    let fingerprint = Fingerprint::of_spki(b"test");
    let named = DataHeader {
        producer: Some(*fingerprint.as_bytes()),
        ..DataHeader::addressed("/t")
    };
    let bytes = frame(FrameKind::Data, &named);
    assert!(
        bytes
            .windows(32)
            .any(|window| window == fingerprint.as_bytes())
    );
    assert!(!bytes.windows(7).any(|window| window == b"sha256:"));
    for (id, vector) in all(ENCODINGS) {
        assert!(
            !vector.bytes[0]
                .windows(7)
                .any(|window| window == b"sha256:"),
            "{id}"
        );
    }
}

/// Two bytes for small numbers, up to ten; without ordering nothing at all.
#[test]
fn s8_20_ordering_costs_the_sequence_key_only() {
    let plain = DataHeader {
        topic: Some("px.eur"),
        ..DataHeader::addressed("/md")
    };
    let bare = frame(FrameKind::Data, &plain).len();
    for (sequence, cost) in [
        (0, 2),
        (23, 2),
        (24, 3),
        (300, 4),
        (70_000, 6),
        (u64::MAX, 10),
    ] {
        let numbered = DataHeader {
            sequence: Some(sequence),
            ..plain.clone()
        };
        assert_eq!(
            frame(FrameKind::Data, &numbered).len() - bare,
            cost,
            "{sequence}"
        );
    }
    assert_eq!(plain.report.capacity(), 0, "absent lists reserve nothing");
}

#[test]
fn s8_40_measured_frame_sizes_with_and_without_a_producer() {
    let sizes = ["G8", "G14", "G16"].map(|id| row(ENCODINGS, id).bytes[0].len());
    assert_eq!(sizes, [8, 10, 45]);
}

#[test]
fn s17_1_subscribe_has_two_required_keys_with_their_caps_and_no_payload() {
    let (path, filter) = ("p".repeat(512), "f".repeat(256));
    let largest = SubscriptionHeader::new(&path, &filter);
    let bytes = frame(FrameKind::Subscribe, &largest);
    assert_eq!(SubscriptionHeader::decode(&bytes[4..]), Ok(largest));
    let long_path = "p".repeat(513);
    assert_eq!(
        SubscriptionHeader::new(&long_path, "").check(),
        Err(EncodeError::TooLong {
            field: "endpoint",
            got_bytes: 513,
            max_bytes: 512
        })
    );
    let long_filter = "f".repeat(257);
    assert_eq!(
        SubscriptionHeader::new("/t", &long_filter).check(),
        Err(EncodeError::TooLong {
            field: "filter",
            got_bytes: 257,
            max_bytes: 256
        })
    );
    let missing = |bytes| SubscriptionHeader::decode(&hex(bytes)).map(drop);
    assert_eq!(missing("A1 01 60"), Err(DecodeError::MissingKey { key: 0 }));
    assert_eq!(
        missing("A1 00 62 2F 74"),
        Err(DecodeError::MissingKey { key: 1 })
    );
    for kind in [FrameKind::Subscribe, FrameKind::Unsubscribe] {
        assert!(!kind.has_payload());
    }
}

/// Nine kinds, none of them a verdict; a tenth closes the connection of every v0 peer.
#[test]
fn s17_4_the_kind_table_has_no_verdict() {
    let names: Vec<_> = FrameKind::ALL.iter().map(ToString::to_string).collect();
    assert_eq!(
        names,
        [
            "HELLO",
            "DATA",
            "ERROR",
            "SUBSCRIBE",
            "UNSUBSCRIBE",
            "CREDIT",
            "CURSOR",
            "FLOW",
            "REPORT"
        ]
    );
    for code in 0..=255 {
        let known = FrameKind::from_u8(code);
        assert_eq!(known.is_some(), code < 9);
        assert!(known.is_none_or(|kind| kind.to_u8() == code));
        let fed = HeadDecoder::new(CAP).feed(&mut Bytes::copy_from_slice(&[0x57, code, 1, 0xA0]));
        match known {
            Some(kind) => assert_eq!(fed.unwrap().unwrap().kind, kind),
            None => assert_eq!(fed, Err(DecodeError::UnknownKind { kind: code })),
        }
    }
}

#[test]
fn s17_28_extensions_start_at_key_64_and_survive_the_way() {
    let mut extensions = ExtensionsBuf::new();
    let via = [ExtensionItem::Bytes(&[1; 8]), ExtensionItem::Bytes(&[2; 8])];
    extensions.insert(67, &"mqtt/front".into()).unwrap();
    extensions.insert(64, &2u64.into()).unwrap();
    extensions
        .insert(65, &ExtensionValue::List(via.to_vec()))
        .unwrap();
    for key in [0, 12, 15, 63] {
        let refused = extensions.insert(key, &1u64.into());
        assert_eq!(refused, Err(ExtensionError::ReservedKey { key }));
    }
    assert_eq!(
        extensions.insert(64, &3u64.into()),
        Err(ExtensionError::Duplicate { key: 64 })
    );
    let long = ExtensionValue::List(vec![ExtensionItem::Uint(0); 65]);
    let refused = extensions.insert(70, &long);
    assert_eq!(
        refused,
        Err(ExtensionError::ListTooLong { got: 65, max: 64 })
    );

    let header = DataHeader {
        extensions: extensions.as_extensions(),
        ..DataHeader::addressed("/t")
    };
    let bytes = frame(FrameKind::Data, &header);
    let expected = "57 01 2A A4 00 62 2F 74 18 40 02 18 41 82 48 01*8 48 02*8 18 43 6A \
                    6D 71 74 74 2F 66 72 6F 6E 74";
    assert_eq!(
        bytes,
        hex(expected),
        "ascending, whatever the order of insertion"
    );

    let decoded = DataHeader::decode(&bytes[3..]).unwrap().extensions;
    assert_eq!(decoded.get(64).unwrap().as_uint(), Some(2));
    assert_eq!(decoded.get(65).unwrap().as_list(), Some(&via[..]));
    assert_eq!(decoded.get(67).unwrap().as_text(), Some("mqtt/front"));
    assert_eq!((decoded.get(66), decoded.len()), (None, 3));
}

/// Shapes that are not handed up are stepped over, and those around them still read.
#[test]
fn s17_28_other_shapes_are_skipped() {
    let bytes = hex("A4 18 40 F5 18 41 81 81 00 18 42 A1 00 00 18 43 07");
    let extensions = DataHeader::decode(&bytes).unwrap().extensions;
    let found: Vec<_> = extensions.iter().collect();
    assert_eq!((found, extensions.len()), (vec![(67, 7u64.into())], 4));
    // A reserved key below 64 is no extension.
    let bytes = hex("A2 0F 01 18 40 02");
    let reserved = DataHeader::decode(&bytes).unwrap().extensions;
    assert_eq!(
        reserved.iter().map(|(key, _)| key).collect::<Vec<_>>(),
        [64]
    );
}

#[test]
fn ps_3_an_illegal_filter_is_not_written() {
    for (filter, rule) in [
        ("a#", FilterError::WildcardNotAlone { segment: 0 }),
        ("#.b", FilterError::RestNotLast { segment: 0 }),
        ("a*b", FilterError::WildcardNotAlone { segment: 0 }),
    ] {
        let mut out = Vec::new();
        let refused = encode_frame(
            FrameKind::Subscribe,
            &SubscriptionHeader::new("/t", filter),
            &mut out,
        );
        assert_eq!(
            (refused, out.len()),
            (Err(EncodeError::InvalidFilter(rule)), 0),
            "{filter}"
        );
        assert!(matches!(
            Error::from(refused.unwrap_err()),
            Error::Protocol(_)
        ));
    }
}

#[test]
fn gs_10_an_invalid_set_is_not_written() {
    let broken = GuaranteeSet {
        dedup_window_ms: Some(1),
        ..GuaranteeSet::CORE
    };
    let hello = Hello {
        offered: broken,
        ..Hello::v0(CAP, 1)
    };
    let rule = GuaranteeError::WindowWithoutBound;
    assert_eq!(hello.check(), Err(EncodeError::InvalidGuarantees(rule)));
    let greedy = GuaranteeSet {
        acknowledgement: Acknowledgement::Stored,
        ..GuaranteeSet::CORE
    };
    let hello = Hello {
        required: greedy,
        ..Hello::v0(CAP, 1)
    };
    assert_eq!(hello.check(), Err(EncodeError::RequiredExceedsOffered));
}

/// What a decoder would refuse, an encoder does not write.
#[test]
fn wire_8_encoders_refuse_what_decoders_refuse() {
    let base = DataHeader::addressed("/t");
    let long = "x".repeat(1025);
    let levels = |count: u64| {
        (16..16 + count)
            .map(CursorLevel::Application)
            .collect::<Vec<_>>()
    };
    let too_long = |field, max_bytes| EncodeError::TooLong {
        field,
        got_bytes: 1025,
        max_bytes,
    };
    let rows = [
        (
            DataHeader {
                endpoint: Some(&long),
                ..base.clone()
            },
            too_long("endpoint", 512),
        ),
        (
            DataHeader {
                content_type: Some(&long),
                ..base.clone()
            },
            too_long("content type", 256),
        ),
        (
            DataHeader {
                traceparent: Some(&long),
                ..base.clone()
            },
            too_long("traceparent", 128),
        ),
        (
            DataHeader {
                tracestate: Some(&long),
                ..base.clone()
            },
            too_long("tracestate", 512),
        ),
        (
            DataHeader {
                topic: Some(&long),
                ..base.clone()
            },
            too_long("topic", 256),
        ),
        (
            DataHeader {
                report_id: Some(1),
                ..base.clone()
            },
            EncodeError::ReportIdMismatch,
        ),
        (
            DataHeader {
                report: levels(1),
                ..base.clone()
            },
            EncodeError::ReportIdMismatch,
        ),
        (
            DataHeader {
                report_id: Some(1),
                report: levels(17),
                ..base.clone()
            },
            EncodeError::TooMany {
                field: "report levels",
                got: 17,
                max: 16,
            },
        ),
        (
            DataHeader {
                report_id: Some(1),
                report: vec![CursorLevel::Application(9)],
                ..base.clone()
            },
            EncodeError::ReservedLevel { level: 9 },
        ),
        (
            DataHeader {
                segment: Some(1),
                layer: 16,
                ..base.clone()
            },
            EncodeError::LayerTooHigh { layer: 16 },
        ),
        (
            DataHeader {
                layer: 1,
                ..base.clone()
            },
            EncodeError::LayerWithoutSegment,
        ),
    ];
    assert_eq!(base.check(), Ok(()));
    let full = DataHeader {
        report_id: Some(1),
        report: levels(16),
        ..base.clone()
    };
    assert_eq!(full.check(), Ok(()));
    for (header, rule) in rows {
        let mut out = b"kept".to_vec();
        assert_eq!(encode_frame(FrameKind::Data, &header, &mut out), Err(rule));
        assert_eq!(out, b"kept");
    }
    let message = ErrorHeader {
        message: Some(&long),
        ..ErrorHeader {
            code: 1,
            message: None,
        }
    };
    assert_eq!(message.check(), Err(too_long("message", 1024)));
    let reserved = CursorRecord {
        level: CursorLevel::Application(6),
        offset: 0,
    };
    let mut out = Vec::new();
    let refused = encode_cursor_record(reserved, &mut out);
    assert_eq!(
        (refused, out.len()),
        (Err(EncodeError::ReservedLevel { level: 6 }), 0)
    );
    let far = CursorRecord {
        level: CursorLevel::Application(16),
        offset: 1 << 62,
    };
    let refused = encode_cursor_record(far, &mut out);
    assert_eq!(
        (refused, out.len()),
        (Err(EncodeError::VarintRange { value: 1 << 62 }), 0)
    );
}

/// A header of exactly the cap is read; memory follows the bytes that came, not the length said.
#[test]
fn inv_1_a_head_holds_what_arrived() {
    let mut decoder = HeadDecoder::new(CAP);
    let mut announced = Bytes::from_static(&[0x57, 1, 0x80, 0, 0x40, 0, 0xA0]);
    assert_eq!(decoder.feed(&mut announced), Ok(None));
    assert_eq!(decoder.preamble().unwrap().header_len, 16_384);
    assert_eq!(decoder.buffered_bytes(), 1);
    assert_eq!(decoder.feed(&mut Bytes::from(vec![0; 16_382])), Ok(None));
    let head = decoder
        .feed(&mut Bytes::from_static(&[0, 0xEE]))
        .unwrap()
        .unwrap();
    assert_eq!((head.header.len(), decoder.buffered_bytes()), (16_384, 0));
    let long_list = DataHeader::decode(&hex("A2 09 01 0A 90 00")).map(drop);
    assert_eq!(
        long_list,
        Err(DecodeError::Truncated),
        "sixteen announced, one there"
    );
    assert_eq!(caps::MAX_LIST_ITEMS, 64);
}

/// Nesting and lists end at their bounds, for values nobody knows as well; one
/// below is the valid neighbour.
#[test]
fn inv_13_nesting_and_lists_are_bounded() {
    let nested =
        |depth: usize| [&hex("A2 00 62 2F 78 18 40")[..], &vec![0x81; depth], &[0]].concat();
    assert!(DataHeader::decode(&nested(caps::MAX_SKIP_DEPTH)).is_ok());
    for depth in [caps::MAX_SKIP_DEPTH + 1, 5_000] {
        let refused = DataHeader::decode(&nested(depth)).map(drop);
        assert!(
            matches!(refused, Err(DecodeError::DepthExceeded { max: 8, .. })),
            "{refused:?}"
        );
    }
    let capabilities = |count: u8| {
        let list: Vec<u8> = (0..count).flat_map(|n| [0x18, 0x80 + n]).collect();
        [
            &hex("A5 00 81 00 01 19 40 00 02 19 04 00 03 98")[..],
            &[count],
            &list,
            &hex("04 80"),
        ]
        .concat()
    };
    assert_eq!(
        Hello::decode(&capabilities(64)).unwrap().capabilities.len(),
        64
    );
    assert!(Hello::decode(&capabilities(65)).is_err());
}

/// Taken apart without a rest: a field for a credential, a session, a position
/// to resume at or another connection would have to be named here first.
#[test]
fn az_6_s8_26_no_header_has_room_for_a_credential_or_a_resumption() {
    let DataHeader {
        endpoint,
        content_len: _,
        content_type: _,
        traceparent: _,
        tracestate: _,
        topic: _,
        sequence: _,
        producer: _,
        achieved: _,
        report_id: _,
        report: _,
        report_mode: _,
        segment: _,
        layer: _,
        extensions: _,
    } = DataHeader::addressed("/x");
    assert_eq!(endpoint, Some("/x"));
    let SubscriptionHeader {
        endpoint,
        filter,
        max_age_ms,
        max_layer,
    } = SubscriptionHeader::new("/x", "a");
    assert_eq!(
        (endpoint, filter, max_age_ms, max_layer),
        ("/x", "a", None, None)
    );
    // Key 12 is the free one between them: whatever stands there says nothing.
    let with = |key_12: &[u8]| [&hex("A2 00 62 2F 78 0C")[..], key_12].concat();
    let token = with(&hex("66 73 65 63 72 65 74"));
    assert_eq!(
        DataHeader::decode(&token),
        DataHeader::decode(&hex("A1 00 62 2F 78"))
    );
}
