//! The tables of [wire 7.2] and [wire 9.1]: one input per line, accepted or refused by name.

use weida_protocol::{DataHeader, DecodeError, Hello};

use crate::vectors::hex;

/// The decoder table of [wire 7.2], beyond what the vectors show.
#[test]
fn wire_7_2_decoder_table() {
    use DecodeError as E;
    let accepted = [
        "A0",
        "B8 00",
        "BB 00*8",
        "A1 18 40 1B FF*8",           // uint
        "A1 18 40 3B FF*8",           // negative
        "A1 18 40 43 FF FE FD",       // bytes, any
        "A1 18 40 58 02 FF FE",       // length longer than needed
        "A1 18 40 F4",                // false
        "A1 18 40 F5",                // true
        "A1 18 40 FB 00*8",           // double
        "A1 18 40 A2 00 00 00 00",    // duplicate keys inside a skipped map
        "A1 18 40 A1 A0 80",          // a map as a key inside a skipped map
        "A1 18 40 83 80 A0 82 00 60", // siblings do not add up to depth
        "A1 1B FF*8 00",              // the largest key
    ];
    for bytes in accepted {
        assert_eq!(DataHeader::decode(&hex(bytes)).map(drop), Ok(()), "{bytes}");
    }
    let rejected = [
        ("", E::NotAMap),
        ("00", E::NotAMap),
        ("F6", E::NotAMap),
        ("C0 A0", E::NotAMap),
        ("BC", E::Malformed), // reserved head
        ("A1 1C 00", E::Malformed),
        ("A1 18 40 FC", E::Malformed),
        ("A1", E::Truncated),
        ("A1 18", E::Truncated),
        ("A1 00", E::Truncated),
        ("A1 00 62 2F", E::Truncated),
        ("A1 00 7B 00*7 05 2F", E::Truncated), // within the cap, beyond the input
        (
            "A1 00 7B FF*8",
            E::StringTooLong {
                key: 0,
                got_bytes: usize::MAX,
                max_bytes: 512,
            },
        ),
        (
            "A1 0A 9B FF*8",
            E::ListTooLong {
                key: 10,
                got: usize::MAX,
                max: 16,
            },
        ),
        (
            "A1 07 5B FF*8",
            E::ProducerLength {
                got_bytes: usize::MAX,
            },
        ),
        ("A1 18 40 9B FF*8", E::Truncated), // a huge skipped list holds nothing
        ("A1 18 40 BB FF*8", E::Truncated), // twice the count overflows
        ("A1 18 40 5B FF*8", E::Truncated),
        ("A2 00 61 61 18 00 61 62", E::DuplicateKey { key: 0 }), // spelled two ways
        ("A2 18 40 00 18 40 00", E::DuplicateKey { key: 64 }),
        ("A2 18 41 00 18 40 00", E::UnorderedKey { key: 64 }),
        ("A1 40 00", E::NonUintKey),
        ("A1 F6 00", E::NonUintKey),
        ("A1 C0 00 00", E::NonUintKey),
        ("A1 FF 00", E::NonUintKey),
        ("A1 01 9F FF", E::Indefinite),
        ("A1 07 5F FF", E::Indefinite),
        ("A1 18 40 BF FF", E::Indefinite),
        ("A1 18 40 7F FF", E::Indefinite),
        ("A1 18 40 5F FF", E::Indefinite),
        ("A1 18 40 81 9F FF", E::Indefinite), // at any depth
        ("A1 18 40 61 FF", E::NotUtf8 { key: 64 }),
        ("A1 18 40 A1 61 FF 00", E::NotUtf8 { key: 64 }),
        ("A1 18 40 F8 14", E::ForbiddenItem { initial: 0xF8 }), // false in two bytes
        ("A1 18 40 F8 FF", E::ForbiddenItem { initial: 0xF8 }),
        ("A1 18 40 F3", E::ForbiddenItem { initial: 0xF3 }),
        ("A1 18 40 FF", E::ForbiddenItem { initial: 0xFF }), // break
        ("A1 18 40 81 D8 20 00", E::ForbiddenItem { initial: 0xD8 }),
        ("A1 00 F7", E::WrongType { key: 0 }),
        ("A1 01 40", E::WrongType { key: 1 }),
        ("A1 05 01", E::WrongType { key: 5 }),
        ("A1 07 60", E::WrongType { key: 7 }),
        ("A1 0A 05", E::WrongType { key: 10 }),
        ("A0 A0", E::TrailingBytes { bytes: 1 }),
    ];
    for (bytes, error) in rejected {
        assert_eq!(
            DataHeader::decode(&hex(bytes)).map(drop),
            Err(error),
            "{bytes}"
        );
    }
}

/// Keys of a guarantee map obey the same rules, and a value outside its table is refused.
#[test]
fn wire_9_1_guarantee_maps_are_as_strict() {
    let offer = |tail: &str| {
        let hello = format!("A6 00 81 00 01 19 40 00 02 19 04 00 03 80 04 80 05 {tail}");
        Hello::decode(&hex(&hello)).map(drop)
    };
    for fine in ["A0", "A2 04 01 05 00", "A1 18 40 81 00", "A1 01 00"] {
        // Offering no acknowledgement does not reach the core that is required by silence.
        let expected = if fine == "A1 01 00" {
            Err(DecodeError::RequiredExceedsOffered)
        } else {
            Ok(())
        };
        assert_eq!(offer(fine), expected, "{fine}");
    }
    let rejected = [
        ("BF FF", DecodeError::Indefinite),
        ("80", DecodeError::WrongType { key: 5 }),
        ("A2 05 00 04 00", DecodeError::UnorderedKey { key: 4 }),
        ("A2 04 00 04 00", DecodeError::DuplicateKey { key: 4 }),
        ("A1 60 00", DecodeError::NonUintKey),
        ("A1 04 60", DecodeError::WrongType { key: 4 }),
        (
            "A1 00 03",
            DecodeError::UnknownLevel {
                dimension: "delivery",
                value: 3,
            },
        ),
        (
            "A1 01 06",
            DecodeError::UnknownLevel {
                dimension: "acknowledgement",
                value: 6,
            },
        ),
        (
            "A2 01 03 02 02",
            DecodeError::UnknownLevel {
                dimension: "durability",
                value: 2,
            },
        ),
        (
            "A1 04 05",
            DecodeError::UnknownLevel {
                dimension: "ordering",
                value: 5,
            },
        ),
        (
            "A1 05 03",
            DecodeError::UnknownLevel {
                dimension: "deduplication",
                value: 3,
            },
        ),
        (
            "A1 07 05",
            DecodeError::UnknownLevel {
                dimension: "backpressure",
                value: 5,
            },
        ),
        (
            "A1 08 02",
            DecodeError::UnknownLevel {
                dimension: "producer_naming",
                value: 2,
            },
        ),
    ];
    for (bytes, error) in rejected {
        assert_eq!(offer(bytes), Err(error), "{bytes}");
    }
}
