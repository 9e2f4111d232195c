//! Vector files: one row per line, looked up by id, and what every complete frame must survive.

use bytes::Bytes;
use weida_protocol::{
    DecodeError, Decoded, FrameHeader, FrameKind, HeadDecoder, decode_head, encode_frame,
};

pub(crate) const ENCODINGS: &str = include_str!("../vectors/encodings.txt");
pub(crate) const ACCEPTED: &str = include_str!("../vectors/accepted.txt");
pub(crate) const REJECTED: &str = include_str!("../vectors/rejected.txt");
pub(crate) const NEGOTIATION: &str = include_str!("../vectors/negotiation.txt");

/// The local header cap of every test: the default.
pub(crate) const CAP: u64 = 16_384;

/// One line of a vector file.
pub(crate) struct Row {
    pub(crate) place: &'static str,
    pub(crate) bytes: Vec<Vec<u8>>,
}

/// Rows of `id`, in file order; at least one.
pub(crate) fn rows(file: &'static str, id: &str) -> Vec<Row> {
    let found: Vec<_> = all(file)
        .filter(|(found, _)| *found == id)
        .map(|(_, row)| row)
        .collect();
    assert!(!found.is_empty(), "no row {id}");
    found
}

/// The only row of `id`.
pub(crate) fn row(file: &'static str, id: &str) -> Row {
    let mut found = rows(file, id);
    assert_eq!(found.len(), 1, "{id} has one row");
    found.remove(0)
}

pub(crate) fn all(file: &'static str) -> impl Iterator<Item = (&'static str, Row)> {
    file.lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
        .map(|line| {
            let mut columns = line.split(" ; ");
            let (id, place) = (columns.next().unwrap(), columns.next().unwrap());
            (
                id,
                Row {
                    place,
                    bytes: columns.map(hex).collect(),
                },
            )
        })
}

/// `57 00*3` is 57 00 00 00.
pub(crate) fn hex(text: &str) -> Vec<u8> {
    text.split_whitespace()
        .flat_map(|word| {
            let (byte, times) = word.split_once('*').unwrap_or((word, "1"));
            let byte = u8::from_str_radix(byte, 16).unwrap();
            std::iter::repeat_n(byte, times.parse().unwrap())
        })
        .collect()
}

/// Encode, decode, every shorter prefix, one byte extra, byte by byte: all of a complete frame.
pub(crate) fn check_frame<H: FrameHeader>(
    frame: &[u8],
    kind: FrameKind,
    header: &H,
    decode: impl Fn(&[u8]) -> Result<(), DecodeError>,
) {
    let mut encoded = b"before".to_vec();
    encode_frame(kind, header, &mut encoded).unwrap();
    assert_eq!(
        encoded,
        [b"before", frame].concat(),
        "encode appends exactly the vector"
    );

    let Ok(Decoded::Value {
        value: head,
        consumed,
    }) = decode_head(frame, CAP)
    else {
        panic!("the head is complete");
    };
    assert_eq!((head.kind, consumed), (kind, frame.len()));
    assert_eq!(decode(head.header), Ok(()));

    for cut in 0..frame.len() {
        let Ok(Decoded::NeedMore(missing)) = decode_head(&frame[..cut], CAP) else {
            panic!("prefix of {cut} bytes is incomplete");
        };
        assert!(
            (1..=frame.len() - cut).contains(&missing),
            "prefix of {cut}: {missing}"
        );
    }
    for cut in 0..head.header.len() {
        let got = decode(&head.header[..cut]);
        let expected = if cut == 0 {
            DecodeError::NotAMap
        } else {
            DecodeError::Truncated
        };
        assert_eq!(got, Err(expected), "header cut at {cut}");
    }

    let longer = [frame, &[0xAA]].concat();
    let again = decode_head(&longer, CAP);
    assert_eq!(
        again,
        Ok(Decoded::Value {
            value: head,
            consumed: frame.len()
        })
    );
    let trailing = [head.header, &[0xAA]].concat();
    assert_eq!(
        decode(&trailing),
        Err(DecodeError::TrailingBytes { bytes: 1 })
    );

    let mut decoder = HeadDecoder::new(CAP);
    for (at, byte) in longer.iter().enumerate() {
        let mut chunk = Bytes::copy_from_slice(&[*byte]);
        match decoder.feed(&mut chunk).unwrap() {
            None => assert!(decoder.buffered_bytes() <= at + 1),
            Some(done) => {
                assert_eq!(
                    (done.kind, &done.header[..], at + 1),
                    (kind, head.header, frame.len())
                );
                return;
            }
        }
    }
    panic!("fed byte by byte the head never completes");
}
