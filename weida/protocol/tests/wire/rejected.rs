//! [wire 25.3]: R1 to R70. Each row first shows that its neighbour is no violation.

use bytes::Bytes;
use weida_core::{FilterError, GuaranteeError};
use weida_protocol::{
    CreditHeader, CursorHeader, DataHeader, DecodeError, Decoded, ErrorHeader, FlowHeader,
    FrameKind, HeadDecoder, Hello, PathRecord, Position, SubscriptionHeader, decode_cursor_record,
    decode_preamble,
};

use crate::vectors::{CAP, REJECTED, row};

/// What a receiver makes of `bytes` and a FIN at `place`.
fn judge(place: &str, bytes: &[u8]) -> Result<(), DecodeError> {
    match place {
        "preamble" => decode_preamble(bytes, CAP).map(|decoded| {
            assert!(matches!(decoded, Decoded::Value { .. }));
        }),
        "uni stream" => stream(Position::Uni, bytes),
        "bidi stream" => stream(Position::Exchange, bytes),
        "DATA" => DataHeader::decode(bytes).map(drop),
        "HELLO" => Hello::decode(bytes).map(drop),
        "SUBSCRIBE" => SubscriptionHeader::decode(bytes).map(drop),
        "ERROR" => ErrorHeader::decode(bytes).map(drop),
        "CREDIT" => CreditHeader::decode(bytes).map(drop),
        "CURSOR" => CursorHeader::decode(bytes).map(drop),
        "FLOW" => FlowHeader::decode(bytes).map(drop),
        "cursor records" => records(bytes, decode_cursor_record),
        "report records" => records(bytes, PathRecord::decode),
        other => panic!("no place {other:?}"),
    }
}

fn stream(position: Position, bytes: &[u8]) -> Result<(), DecodeError> {
    let mut decoder = HeadDecoder::new(CAP);
    let Some(head) = decoder.feed(&mut Bytes::copy_from_slice(bytes))? else {
        return decoder.at_fin();
    };
    head.kind.check_position(position)?;
    if head.kind == FrameKind::Data {
        DataHeader::decode(&head.header)?.initiating_endpoint()?;
    }
    Ok(())
}

fn records<T>(
    mut bytes: &[u8],
    decode: impl Fn(&[u8]) -> Result<Decoded<T>, DecodeError>,
) -> Result<(), DecodeError> {
    while !bytes.is_empty() {
        match decode(bytes)? {
            Decoded::Value { consumed, .. } => bytes = &bytes[consumed..],
            Decoded::NeedMore(_) => return Err(DecodeError::EndInsideRecord),
        }
    }
    Ok(())
}

macro_rules! rejected {
    ($($name:ident $id:literal $error:expr;)*) => {$(
        #[test]
        fn $name() {
            let vector = row(REJECTED, $id);
            let [bad, good] = &vector.bytes[..] else { panic!("a bad and a good column") };
            assert_eq!(judge(vector.place, good), Ok(()), "the neighbour is fine");
            assert_eq!(judge(vector.place, bad), Err($error));
        }
    )*};
}

use DecodeError as E;

rejected! {
    wire_r1 "R1" E::BadMagic { got: 0x58 };
    wire_r2 "R2" E::UnknownKind { kind: 9 };
    wire_r3 "R3" E::UnknownKind { kind: 255 };
    wire_r4 "R4" E::HeaderTooLarge { header_bytes: 16_385, max_bytes: 16_384 };
    wire_r5 "R5" E::EndInsidePreamble;
    wire_r6 "R6" E::NotAMap;
    wire_r7 "R7" E::NotAMap;
    wire_r8 "R8" E::Indefinite;
    wire_r9 "R9" E::UnorderedKey { key: 0 };
    wire_r10 "R10" E::DuplicateKey { key: 0 };
    wire_r11 "R11" E::NonUintKey;
    wire_r12 "R12" E::NonUintKey;
    wire_r13 "R13" E::WrongType { key: 0 };
    wire_r14 "R14" E::WrongType { key: 0 };
    wire_r15 "R15" E::WrongType { key: 1 };
    wire_r16 "R16" E::WrongType { key: 1 };
    wire_r17 "R17" E::WrongType { key: 1 };
    wire_r18 "R18" E::NotUtf8 { key: 0 };
    wire_r19 "R19" E::Indefinite;
    wire_r20 "R20" E::TrailingBytes { bytes: 1 };
    wire_r21 "R21" E::Truncated;
    wire_r22 "R22" E::Truncated;
    wire_r23 "R23" E::StringTooLong { key: 0, got_bytes: 513, max_bytes: 512 };
    wire_r24 "R24" E::StringTooLong { key: 2, got_bytes: 257, max_bytes: 256 };
    wire_r25 "R25" E::StringTooLong { key: 3, got_bytes: 129, max_bytes: 128 };
    wire_r26 "R26" E::StringTooLong { key: 4, got_bytes: 513, max_bytes: 512 };
    wire_r27 "R27" E::StringTooLong { key: 5, got_bytes: 257, max_bytes: 256 };
    wire_r28 "R28" E::ProducerLength { got_bytes: 31 };
    wire_r29 "R29" E::UnknownLevel { dimension: "achieved", value: 6 };
    wire_r30 "R30" E::ReportWithoutId;
    wire_r31 "R31" E::IdWithoutReport { report_id: 1 };
    wire_r32 "R32" E::LevelNotAscending { level: 2 };
    wire_r33 "R33" E::ReservedLevel { level: 15 };
    wire_r34 "R34" E::ListTooLong { key: 10, got: 17, max: 16 };
    wire_r35 "R35" E::UnknownLevel { dimension: "report_mode", value: 2 };
    wire_r36 "R36" E::LayerTooHigh { layer: 16 };
    wire_r37 "R37" E::LayerWithoutSegment { layer: 1 };
    wire_r38 "R38" E::ForbiddenItem { initial: 0xC0 };
    wire_r39 "R39" E::ForbiddenItem { initial: 0xF9 };
    wire_r40 "R40" E::ForbiddenItem { initial: 0xF0 };
    wire_r41 "R41" E::Indefinite;
    wire_r42 "R42" E::DepthExceeded { max: 8 };
    wire_r43 "R43" E::MissingKey { key: 0 };
    wire_r44 "R44" E::MisplacedKind { kind: 2 };
    wire_r45 "R45" E::MisplacedKind { kind: 3 };
    wire_r46 "R46" E::MissingKey { key: 4 };
    wire_r47 "R47" E::WrongType { key: 0 };
    wire_r48 "R48" E::ListTooLong { key: 3, got: 65, max: 64 };
    wire_r49 "R49" E::UnknownLevel { dimension: "ordering", value: 9 };
    wire_r50 "R50" E::InvalidGuarantees(GuaranteeError::DurabilityWithoutStore);
    wire_r51 "R51" E::InvalidGuarantees(GuaranteeError::TooFewReplicas { replicas: 1 });
    wire_r52 "R52" E::InvalidGuarantees(GuaranteeError::WindowMissing);
    wire_r53 "R53" E::InvalidGuarantees(GuaranteeError::WindowWithoutBound);
    wire_r54 "R54" E::UnknownLevel { dimension: "control_isolated", value: 2 };
    wire_r55 "R55" E::RequiredExceedsOffered;
    wire_r56 "R56" E::RequiredExceedsOffered;
    wire_r57 "R57" E::MissingKey { key: 1 };
    wire_r58 "R58" E::InvalidFilter(FilterError::WildcardNotAlone { segment: 0 });
    wire_r59 "R59" E::InvalidFilter(FilterError::RestNotLast { segment: 1 });
    wire_r60 "R60" E::InvalidFilter(FilterError::WildcardNotAlone { segment: 0 });
    wire_r61 "R61" E::StringTooLong { key: 1, got_bytes: 257, max_bytes: 256 };
    wire_r62 "R62" E::LayerTooHigh { layer: 16 };
    wire_r63 "R63" E::MissingKey { key: 0 };
    wire_r64 "R64" E::MissingKey { key: 2 };
    wire_r65 "R65" E::MissingKey { key: 0 };
    wire_r66 "R66" E::ReservedLevel { level: 6 };
    wire_r67 "R67" E::EndInsideRecord;
    wire_r68 "R68" E::MissingKey { key: 1 };
    wire_r69 "R69" E::RecordTooLong { got_bytes: 257, max_bytes: 256 };
    wire_r70 "R70" E::TrailingBytes { bytes: 2 };
}

/// Without FIN a cut preamble is only incomplete; with FIN inside a header the stream is given up.
#[test]
fn wire_r5_is_incomplete_without_fin_and_no_violation_after_the_preamble() {
    let cut = decode_preamble(&row(REJECTED, "R5").bytes[0], CAP);
    assert_eq!(cut, Ok(Decoded::NeedMore(2)));
    assert_eq!(
        stream(Position::Uni, &[]),
        Err(E::EndInsidePreamble),
        "an empty stream"
    );
    assert_eq!(stream(Position::Uni, &[0x57, 1, 5, 0xA1]), Ok(()));
}

/// The reply half takes what R43 and R44 refuse elsewhere.
#[test]
fn wire_r43_and_r44_are_fine_on_a_reply_half() {
    assert!(DataHeader::decode(&[0xA0]).is_ok());
    for kind in FrameKind::ALL {
        let reply = kind.check_position(Position::Reply).is_ok();
        assert_eq!(
            reply,
            matches!(kind, FrameKind::Data | FrameKind::Error),
            "{kind}"
        );
        assert_eq!(
            kind.check_position(Position::Uni).is_ok(),
            kind != FrameKind::Error
        );
        assert_eq!(
            kind.check_position(Position::Exchange).is_ok(),
            kind == FrameKind::Data
        );
    }
}

/// Every violation closes with the one code for violations and prints on one line.
#[test]
fn wire_17_violations_close_with_code_2() {
    for (id, vector) in crate::vectors::all(REJECTED) {
        let error = judge(vector.place, &vector.bytes[0]).unwrap_err();
        assert_eq!(error.close_code(), 2, "{id}");
        let text = weida_core::Error::from(error).to_string();
        assert!(
            text.starts_with("protocol violation: ") && !text.contains('\n'),
            "{id}: {text}"
        );
    }
}
