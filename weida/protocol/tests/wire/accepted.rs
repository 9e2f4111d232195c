//! [wire 25.2]: A1 to A18.

use weida_core::{Acknowledgement, GuaranteeSet, ReportMode};
use weida_protocol::{
    CursorRecord, DataHeader, Decoded, FrameKind, Hello, NegotiateError, PathRecord, Preamble,
    decode_cursor_record, decode_preamble, negotiate,
};

use crate::vectors::{ACCEPTED, CAP, rows};

/// Every row of `id` is a DATA header that decodes to the expected one, extensions aside.
fn data(id: &str, expected: &[DataHeader<'_>]) {
    let rows = rows(ACCEPTED, id);
    assert_eq!(rows.len(), expected.len());
    for (row, expected) in rows.iter().zip(expected) {
        assert_eq!(row.place, "DATA");
        let got = DataHeader::decode(&row.bytes[0]).unwrap();
        let got = DataHeader {
            extensions: Default::default(),
            ..got
        };
        assert_eq!(&got, expected);
    }
}

fn preamble(id: &str, kind: FrameKind, header_len: u64) {
    for row in rows(ACCEPTED, id) {
        let value = Preamble { kind, header_len };
        let whole = Ok(Decoded::Value {
            value,
            consumed: row.bytes[0].len(),
        });
        assert_eq!(decode_preamble(&row.bytes[0], CAP), whole);
    }
}

fn hello(id: &str) -> Hello {
    Hello::decode(&rows(ACCEPTED, id)[0].bytes[0]).unwrap()
}

#[test]
fn wire_a1() {
    preamble("A1", FrameKind::Error, 5);
}

#[test]
fn wire_a2() {
    preamble("A2", FrameKind::Data, 1);
}

#[test]
fn wire_a3() {
    preamble("A3", FrameKind::Data, 16_384);
}

#[test]
fn wire_a4() {
    data("A4", &[DataHeader::addressed("/t")]);
}

#[test]
fn wire_a5() {
    data("A5", &[DataHeader::addressed("/t")]);
}

#[test]
fn wire_a6() {
    data(
        "A6",
        &[DataHeader {
            sequence: Some(1),
            ..DataHeader::addressed("/t")
        }],
    );
}

#[test]
fn wire_a7() {
    data("A7", &[DataHeader::addressed("/t")]);
}

#[test]
fn wire_a8() {
    data("A8", &vec![DataHeader::reply(); 6]);
}

#[test]
fn wire_a9() {
    data("A9", &[DataHeader::reply()]);
}

#[test]
fn wire_a10() {
    data("A10", &vec![DataHeader::reply(); 2]);
}

#[test]
fn wire_a11() {
    let ordered = DataHeader {
        report_id: Some(0),
        report: vec![Acknowledgement::Accepted.into()],
        ..DataHeader::reply()
    };
    data(
        "A11",
        &[
            DataHeader {
                segment: Some(5),
                layer: 0,
                ..DataHeader::reply()
            },
            DataHeader {
                report_mode: ReportMode::Progress,
                ..DataHeader::reply()
            },
            DataHeader::reply(),
            ordered,
        ],
    );
}

#[test]
fn wire_a12() {
    data("A12", &[DataHeader::reply()]);
}

#[test]
fn wire_a13() {
    assert_eq!(hello("A13").offered, GuaranteeSet::CORE);
}

#[test]
fn wire_a14() {
    assert_eq!(hello("A14"), Hello::v0(16_384, 1024));
}

#[test]
fn wire_a15() {
    let theirs = hello("A15");
    assert_eq!(theirs.versions, []);
    let ours = Hello::v0(16_384, 2048);
    assert_eq!(
        negotiate(&ours, &theirs),
        Err(NegotiateError::NoCommonVersion)
    );
}

#[test]
fn wire_a16() {
    let bytes = &rows(ACCEPTED, "A16")[0].bytes[0];
    let value = CursorRecord {
        level: Acknowledgement::Accepted.into(),
        offset: 5,
    };
    assert_eq!(
        decode_cursor_record(bytes),
        Ok(Decoded::Value { value, consumed: 4 })
    );
}

#[test]
fn wire_a17() {
    let bytes = &rows(ACCEPTED, "A17")[0].bytes[0];
    let whole = Decoded::Value {
        value: PathRecord::default(),
        consumed: 5,
    };
    assert_eq!(PathRecord::decode(bytes), Ok(whole));
}

#[test]
fn wire_a18() {
    data(
        "A18",
        &[DataHeader::addressed(""), DataHeader::addressed("t")],
    );
}
