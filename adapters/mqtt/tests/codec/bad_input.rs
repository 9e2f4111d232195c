//! One test per row of the bad-input table; each input stands beside a neighbour that passes. [mqtt 3.5]
//!
//! Rows that only the connection machine can judge are in `tests/state`.

use bytes::BytesMut;
use weida_mqtt::codec::{
    Decoded, Decoder, FilterError, Limits, Packet, PacketType, Reach, ReasonCode, Role,
    SubscribeFilters, TopicFilter, Version, Version::V5, Version::V311, Violation,
};

use crate::kit::{decode, decode_first, decode_with, hex, open_decoder, packet};

const MAL: ReasonCode = ReasonCode::MalformedPacket;
const PE: ReasonCode = ReasonCode::ProtocolError;

/// `good` decodes, `bad` is refused by `rule` with `code` and ends the connection.
#[track_caller]
fn check(result: [Result<Packet, Violation>; 2], rule: &str, code: ReasonCode) -> Violation {
    let [good, bad] = result;
    assert!(good.is_ok(), "the neighbour is refused: {good:?}");
    let violation = bad.expect_err("the bad input is accepted");
    assert_eq!(violation.rule(), rule, "{violation:?}");
    assert_eq!(violation.reason_code(), code, "{violation:?}");
    assert_eq!(violation.reach(), Reach::Connection, "{violation:?}");
    violation
}

#[track_caller]
fn refused(
    version: Version,
    good: (u8, &str),
    bad: (u8, &str),
    rule: &str,
    code: ReasonCode,
) -> Violation {
    let one = |(first, body)| decode(Role::Server, version, &packet(first, body));
    check([one(good), one(bad)], rule, code)
}

/// The same toward a client.
#[track_caller]
fn refused_by_client(
    version: Version,
    good: (u8, &str),
    bad: (u8, &str),
    rule: &str,
    code: ReasonCode,
) {
    let one = |(first, body)| decode(Role::Client, version, &packet(first, body));
    check([one(good), one(bad)], rule, code);
}

/// The same for first packets.
#[track_caller]
fn connect_refused(good: (u8, &str), bad: (u8, &str), rule: &str, code: ReasonCode) -> Violation {
    let one = |(first, body)| decode_first(&packet(first, body));
    check([one(good), one(bad)], rule, code)
}

const PLAIN5: (u8, &str) = (0x10, "0004'MQTT' 05 02 003c 00 0001'a'");
const PLAIN4: (u8, &str) = (0x10, "0004'MQTT' 04 02 003c 0001'a'");
const SUBSCRIBE5: (u8, &str) = (0x82, "0001 00 0001'a' 01");
const PUBLISH0: (u8, &str) = (0x30, "0001'a' 00 'x'");
const PUBLISH1: (u8, &str) = (0x32, "0001'a' 0001 00 'x'");

#[test]
fn mqtt_3_5_01_lengths_are_minimal_and_at_most_four_bytes() {
    let good = hex("c0 00");
    for bad in ["c0 80 00", "c0 80 80 80 80 01", "c0 ff ff ff ff"] {
        let one = |bytes: &[u8]| decode(Role::Server, V5, bytes);
        check([one(&good), one(&hex(bad))], "mqtt_3_5_01", MAL);
    }
    // Property Length, property identifier and Subscription Identifier are such integers too.
    refused(
        V5,
        PUBLISH0,
        (0x30, "0001'a' 80 00 'x'"),
        "mqtt_3_5_01",
        MAL,
    );
    refused(
        V5,
        (0x30, "0001'a' 02 01 00"),
        (0x30, "0001'a' 03 81 00 00"),
        "mqtt_3_5_01",
        MAL,
    );
    refused(
        V5,
        (0x82, "0001 02 0b 01 0001'a' 01"),
        (0x82, "0001 03 0b 81 00 0001'a' 01"),
        "mqtt_3_5_01",
        MAL,
    );
    refused(
        V5,
        (0x82, "0001 05 0b ff ff ff 7f 0001'a' 01"),
        (0x82, "0001 06 0b ff ff ff ff 01 0001'a' 01"),
        "mqtt_3_5_01",
        MAL,
    );
}

#[test]
fn mqtt_3_5_02_a_length_above_the_maximum_is_refused_before_the_body() {
    let limits = Limits {
        max_packet_bytes: 64,
        ..Limits::default()
    };
    for version in [V311, V5] {
        let mut fits = BytesMut::from(&hex("30 3e")[..]);
        let mut decoder = open_decoder(Role::Server, version, limits);
        assert_eq!(decoder.decode(&mut fits), Ok(Decoded::NeedMore(62)));
        let mut huge = BytesMut::from(&hex("30 3f")[..]);
        let violation = open_decoder(Role::Server, version, limits)
            .decode(&mut huge)
            .unwrap_err();
        assert_eq!(
            violation,
            Violation::PacketTooLarge {
                got_bytes: 65,
                max_bytes: 64
            }
        );
        assert_eq!(violation.reason_code(), ReasonCode::PacketTooLarge);
        assert_eq!(violation.rule(), "mqtt_3_5_02");
    }
}

#[test]
fn mqtt_3_5_02_before_connect_64_kib_are_the_cap_whatever_the_maximum() {
    let mut decoder = Decoder::server(Limits::default());
    // 65 532 + 4 = 65 536 bytes.
    let mut fits = BytesMut::from(&hex("10 fc ff 03")[..]);
    assert_eq!(decoder.decode(&mut fits), Ok(Decoded::NeedMore(65_532)));
    let mut huge = BytesMut::from(&hex("10 fd ff 03")[..]);
    let violation = Decoder::server(Limits::default())
        .decode(&mut huge)
        .unwrap_err();
    assert_eq!(
        violation,
        Violation::PacketTooLarge {
            got_bytes: 65_537,
            max_bytes: 65_536
        }
    );
}

#[test]
fn mqtt_3_5_03_fixed_header_flags_are_the_prescribed_ones() {
    for bits in 1..16 {
        connect_refused(PLAIN5, (0x10 | bits, PLAIN5.1), "mqtt_3_5_03", MAL);
        connect_refused(PLAIN4, (0x10 | bits, PLAIN4.1), "mqtt_3_5_03", MAL);
        for version in [V311, V5] {
            for (first, body) in [
                (0x40, "0001"),
                (0x50, "0001"),
                (0x70, "0001"),
                (0xc0, ""),
                (0xe0, ""),
            ] {
                refused(
                    version,
                    (first, body),
                    (first | bits, body),
                    "mqtt_3_5_03",
                    MAL,
                );
            }
        }
        refused(
            V5,
            (0xf0, "18 04 15 0001'm'"),
            (0xf0 | bits, "18 04 15 0001'm'"),
            "mqtt_3_5_03",
            MAL,
        );
        if bits != 2 {
            for (first, body) in [
                (0x60, "0001"),
                (0x80, SUBSCRIBE5.1),
                (0xa0, "0001 00 0001'a'"),
            ] {
                refused(
                    V5,
                    (first | 2, body),
                    (first | bits, body),
                    "mqtt_3_5_03",
                    MAL,
                );
            }
        }
    }
    refused(V5, (0x62, "0001"), (0x60, "0001"), "mqtt_3_5_03", MAL);
    refused(V5, SUBSCRIBE5, (0x80, SUBSCRIBE5.1), "mqtt_3_5_03", MAL);
    refused(
        V311,
        (0x82, "0001 0001'a' 01"),
        (0x80, "0001 0001'a' 01"),
        "mqtt_3_5_03",
        MAL,
    );
    refused_by_client(
        V5,
        (0x20, "00 00 00"),
        (0x21, "00 00 00"),
        "mqtt_3_5_03",
        MAL,
    );
}

#[test]
fn mqtt_3_5_04_packet_type_0_and_auth_in_3_1_1_are_malformed() {
    refused(V5, (0xc0, ""), (0x00, ""), "mqtt_3_5_04", MAL);
    refused(V311, (0xc0, ""), (0x00, ""), "mqtt_3_5_04", MAL);
    let good = decode(Role::Server, V5, &packet(0xf0, "18 04 15 0001'm'"));
    let bad = decode(Role::Server, V311, &packet(0xf0, "18 04 15 0001'm'"));
    check([good, bad], "mqtt_3_5_04", MAL);
}

#[test]
fn mqtt_3_5_05_a_packet_is_exactly_as_long_as_its_fields() {
    // Longer.
    connect_refused(
        PLAIN5,
        (0x10, "0004'MQTT' 05 02 003c 00 0001'a' 00"),
        "mqtt_3_5_05",
        MAL,
    );
    connect_refused(
        PLAIN4,
        (0x10, "0004'MQTT' 04 02 003c 0001'a' 00"),
        "mqtt_3_5_05",
        MAL,
    );
    for version in [V311, V5] {
        refused(version, (0xc0, ""), (0xc0, "00"), "mqtt_3_5_05", MAL);
    }
    refused(V311, (0xe0, ""), (0xe0, "00"), "mqtt_3_5_05", MAL);
    refused(V311, (0x40, "0001"), (0x40, "0001 00"), "mqtt_3_5_05", MAL);
    refused(
        V5,
        (0x40, "0001 00 00"),
        (0x40, "0001 00 00 00"),
        "mqtt_3_5_05",
        MAL,
    );
    refused(V5, (0xe0, "00 00"), (0xe0, "00 00 00"), "mqtt_3_5_05", MAL);
    refused_by_client(
        V311,
        (0x20, "00 00"),
        (0x20, "00 00 00"),
        "mqtt_3_5_05",
        MAL,
    );
    refused_by_client(V311, (0xb0, "0001"), (0xb0, "0001 00"), "mqtt_3_5_05", MAL);
    // Shorter.
    refused(V5, (0x40, "0001"), (0x40, "00"), "mqtt_3_5_05", MAL);
    refused(
        V311,
        (0x30, "0001'a'"),
        (0x30, "0002'a'"),
        "mqtt_3_5_05",
        MAL,
    );
    refused(V311, (0x30, "0001'a'"), (0x30, ""), "mqtt_3_5_05", MAL);
    refused(
        V311,
        (0x82, "0001 0001'a' 01"),
        (0x82, "0001 0001'a'"),
        "mqtt_3_5_05",
        MAL,
    );
    connect_refused(
        PLAIN5,
        (0x10, "0004'MQTT' 05 02 003c 00 0002'a'"),
        "mqtt_3_5_05",
        MAL,
    );
    connect_refused(
        PLAIN5,
        (0x10, "0004'MQTT' 05 82 003c 00 0001'a'"),
        "mqtt_3_5_05",
        MAL,
    );
}

#[test]
fn mqtt_3_5_06_connect_flags_are_consistent() {
    connect_refused(
        PLAIN5,
        (0x10, "0004'MQTT' 05 03 003c 00 0001'a'"),
        "mqtt_3_5_06",
        MAL,
    );
    connect_refused(
        PLAIN4,
        (0x10, "0004'MQTT' 04 03 003c 0001'a'"),
        "mqtt_3_5_06",
        MAL,
    );
    let will = (0x10, "0004'MQTT' 05 16 003c 00 0001'a' 00 0001't' 0001'm'");
    connect_refused(
        will,
        (0x10, "0004'MQTT' 05 1e 003c 00 0001'a' 00 0001't' 0001'm'"),
        "mqtt_3_5_06",
        MAL,
    );
    connect_refused(
        PLAIN5,
        (0x10, "0004'MQTT' 05 0a 003c 00 0001'a'"),
        "mqtt_3_5_06",
        MAL,
    );
    connect_refused(
        PLAIN5,
        (0x10, "0004'MQTT' 05 22 003c 00 0001'a'"),
        "mqtt_3_5_06",
        MAL,
    );
    connect_refused(
        PLAIN4,
        (0x10, "0004'MQTT' 04 22 003c 0001'a'"),
        "mqtt_3_5_06",
        MAL,
    );
    connect_refused(
        (0x10, "0004'MQTT' 04 c2 003c 0001'a' 0001'u' 0001'p'"),
        (0x10, "0004'MQTT' 04 42 003c 0001'a' 0001'p'"),
        "mqtt_3_5_06",
        MAL,
    );
    // 5.0 dropped that rule. [MQTT5 3.1.2.9]
    assert!(decode_first(&packet(0x10, "0004'MQTT' 05 42 003c 00 0001'a' 0001'p'")).is_ok());
}

#[test]
fn mqtt_3_5_07_connect_comes_first_and_once() {
    for version in [V311, V5] {
        let again = if version == V5 { PLAIN5 } else { PLAIN4 };
        refused(version, (0xc0, ""), again, "mqtt_3_5_07", PE);
    }
    // Known from the first byte: no body is waited for.
    let mut decoder = Decoder::server(Limits::default());
    let violation = decoder
        .decode(&mut BytesMut::from(&[0x30][..]))
        .unwrap_err();
    assert_eq!(
        violation,
        Violation::BeforeConnect {
            packet: PacketType::Publish
        }
    );
    assert_eq!(violation.rule(), "mqtt_3_5_07");
    assert_eq!(decoder.answer_version(), None, "closed without an answer");
    for first in [0x20, 0x40, 0x62, 0x82, 0xa2, 0xc0, 0xd0, 0xe0, 0xf0] {
        connect_refused(PLAIN5, (first, ""), "mqtt_3_5_07", PE);
    }
}

#[test]
fn mqtt_3_5_08_text_is_utf8_without_surrogates_and_nul() {
    for bad in [
        "ff",
        "c3 28",
        "ed a0 80",
        "f8 88 80 80",
        "00",
        "c0 80",
        "e2 82",
    ] {
        let count = hex(bad).len();
        let body = format!("{count:04x} {bad}");
        connect_refused(
            PLAIN5,
            (0x10, &format!("0004'MQTT' 05 02 003c 00 {body}")),
            "mqtt_3_5_08",
            MAL,
        );
        connect_refused(
            PLAIN4,
            (0x10, &format!("0004'MQTT' 04 02 003c {body}")),
            "mqtt_3_5_08",
            MAL,
        );
        refused(
            V5,
            PUBLISH0,
            (0x30, &format!("{body} 00")),
            "mqtt_3_5_08",
            MAL,
        );
        refused(V311, (0x30, "0001'a'"), (0x30, &body), "mqtt_3_5_08", MAL);
        refused(
            V5,
            SUBSCRIBE5,
            (0x82, &format!("0001 00 {body} 01")),
            "mqtt_3_5_08",
            MAL,
        );
        refused(
            V5,
            (0xa2, "0001 00 0001'a'"),
            (0xa2, &format!("0001 00 {body}")),
            "mqtt_3_5_08",
            MAL,
        );
        let block = format!("{:02x} 03 {body}", count + 3);
        refused(
            V5,
            PUBLISH0,
            (0x30, &format!("0001'a' {block}")),
            "mqtt_3_5_08",
            MAL,
        );
    }
    // A Byte Order Mark is a character like any other. [MQTT-1.5.4-3]
    assert!(decode(Role::Server, V5, &packet(0x30, "0004 efbbbf 'a' 00")).is_ok());
}

#[test]
fn mqtt_3_5_09_strict_text_has_no_controls_and_no_noncharacters() {
    let lax = Limits {
        strict_utf8: false,
        ..Limits::default()
    };
    for odd in [
        "01",
        "1f",
        "7f",
        "c2 80",
        "c2 9f",
        "ef b7 90",
        "ef bf be",
        "f0 9f bf bf",
    ] {
        let body = format!("{:04x} {odd} 00", hex(odd).len());
        refused(V5, PUBLISH0, (0x30, &body), "mqtt_3_5_09", MAL);
        let decoder = open_decoder(Role::Server, V5, lax);
        assert!(
            decode_with(decoder, &packet(0x30, &body)).is_ok(),
            "{odd} passes when not strict"
        );
    }
    for fine in ["c2 a0", "ef b7 8f", "ef bf bd", "f0 9f 98 80"] {
        let body = format!("{:04x} {fine} 00", hex(fine).len());
        assert!(
            decode(Role::Server, V5, &packet(0x30, &body)).is_ok(),
            "{fine}"
        );
    }
}

#[test]
fn mqtt_3_5_10_properties_are_known_in_place_and_in_bounds() {
    // Unknown numbers.
    for id in ["00", "04", "0a", "1e", "2b", "7f"] {
        refused(
            V5,
            PUBLISH0,
            (0x30, &format!("0001'a' 02 {id} 00")),
            "mqtt_3_5_10",
            MAL,
        );
    }
    // Known, but not there.
    refused(
        V5,
        PUBLISH0,
        (0x30, "0001'a' 05 11 00000001"),
        "mqtt_3_5_10",
        MAL,
    );
    refused(
        V5,
        (0x40, "0001 00 00"),
        (0x40, "0001 00 05 11 00000001"),
        "mqtt_3_5_10",
        MAL,
    );
    refused(
        V5,
        SUBSCRIBE5,
        (0x82, "0001 04 1f 0001'r' 0001'a' 01"),
        "mqtt_3_5_10",
        MAL,
    );
    connect_refused(
        PLAIN5,
        (0x10, "0004'MQTT' 05 02 003c 03 13 0001 0001'a'"),
        "mqtt_3_5_10",
        MAL,
    );
    connect_refused(
        (
            0x10,
            "0004'MQTT' 05 06 003c 00 0001'a' 05 18 00000001 0001't' 0001'm'",
        ),
        (
            0x10,
            "0004'MQTT' 05 06 003c 00 0001'a' 03 23 0001 0001't' 0001'm'",
        ),
        "mqtt_3_5_10",
        MAL,
    );
    connect_refused(
        PLAIN5,
        (0x10, "0004'MQTT' 05 02 003c 05 18 00000001 0001'a'"),
        "mqtt_3_5_10",
        MAL,
    );
    // Cut by the end of the block, and a block that is longer than the packet.
    refused(
        V5,
        (0x30, "0001'a' 05 02 00000001"),
        (0x30, "0001'a' 03 02 0000 0001"),
        "mqtt_3_5_10",
        MAL,
    );
    refused(V5, PUBLISH0, (0x30, "0001'a' 7f 01 00"), "mqtt_3_5_10", MAL);
    refused(V5, PUBLISH0, (0x30, "0001'a' 01 26"), "mqtt_3_5_10", MAL);
}

#[test]
fn mqtt_3_5_11_properties_stand_once_with_legal_values() {
    // Repeated.
    refused(
        V5,
        (0x30, "0001'a' 02 01 00"),
        (0x30, "0001'a' 04 01 00 01 00"),
        "mqtt_3_5_11",
        PE,
    );
    refused(
        V5,
        (0x82, "0001 02 0b 01 0001'a' 01"),
        (0x82, "0001 04 0b 01 0b 02 0001'a' 01"),
        "mqtt_3_5_11",
        PE,
    );
    let connect = |properties: &str| {
        let length = hex(properties).len();
        packet(
            0x10,
            &format!("0004'MQTT' 05 02 003c {length:02x} {properties} 0001'a'"),
        )
    };
    for (good, bad) in [
        ("11 00000001", "11 00000001 11 00000001"),
        ("21 0001", "21 0000"),
        ("27 00000001", "27 00000000"),
        ("19 01", "19 02"),
        ("17 00", "17 ff"),
        ("15 0001'm' 16 0001'd'", "16 0001'd'"),
    ] {
        check(
            [decode_first(&connect(good)), decode_first(&connect(bad))],
            "mqtt_3_5_11",
            PE,
        );
    }
    refused(
        V5,
        (0x30, "0001'a' 02 01 01"),
        (0x30, "0001'a' 02 01 02"),
        "mqtt_3_5_11",
        PE,
    );
    refused(
        V5,
        (0x82, "0001 02 0b 01 0001'a' 01"),
        (0x82, "0001 02 0b 00 0001'a' 01"),
        "mqtt_3_5_11",
        PE,
    );
    refused(
        V5,
        (0xf0, "18 04 15 0001'm'"),
        (0xf0, "18 00"),
        "mqtt_3_5_11",
        PE,
    );
    refused_by_client(
        V5,
        (0x20, "00 00 02 24 01"),
        (0x20, "00 00 02 24 02"),
        "mqtt_3_5_11",
        PE,
    );
    refused_by_client(
        V5,
        (0x30, "0001'a' 02 0b 01"),
        (0x30, "0001'a' 02 0b 00"),
        "mqtt_3_5_11",
        PE,
    );
    // User Properties may repeat, and so may Subscription Identifiers toward a client.
    assert!(
        decode(
            Role::Server,
            V5,
            &packet(0x30, "0001'a' 0e 26 0001'k' 0001'v' 26 0001'k' 0001'v'")
        )
        .is_ok()
    );
    assert!(decode(Role::Client, V5, &packet(0x30, "0001'a' 04 0b 01 0b 02")).is_ok());
}

#[test]
fn mqtt_3_5_12_publish_qos_3() {
    refused(
        V5,
        (0x34, "0001'a' 0001 00"),
        (0x36, "0001'a' 0001 00"),
        "mqtt_3_5_12",
        MAL,
    );
    refused(
        V311,
        (0x34, "0001'a' 0001"),
        (0x36, "0001'a' 0001"),
        "mqtt_3_5_12",
        MAL,
    );
}

#[test]
fn mqtt_3_5_13_publish_dup_with_qos_0() {
    refused(
        V5,
        (0x3a, PUBLISH1.1),
        (0x38, PUBLISH0.1),
        "mqtt_3_5_13",
        MAL,
    );
    refused(
        V311,
        (0x30, "0001'a'"),
        (0x38, "0001'a'"),
        "mqtt_3_5_13",
        MAL,
    );
}

#[test]
fn mqtt_3_5_14_publish_packet_identifier_0() {
    refused(V5, PUBLISH1, (0x32, "0001'a' 0000 00"), "mqtt_3_5_14", MAL);
    refused(
        V311,
        (0x34, "0001'a' 0001"),
        (0x34, "0001'a' 0000"),
        "mqtt_3_5_14",
        MAL,
    );
}

#[test]
fn mqtt_3_5_15_topics_have_no_wildcards() {
    let invalid = ReasonCode::TopicNameInvalid;
    for topic in ["+", "#", "a/+", "a/#", "a+b"] {
        let body = format!("{:04x}'{topic}' 00", topic.len());
        refused(V5, PUBLISH0, (0x30, &body), "mqtt_3_5_15", invalid);
        let body = format!("{:04x}'{topic}'", topic.len());
        refused(
            V311,
            (0x30, "0001'a'"),
            (0x30, &body),
            "mqtt_3_5_15",
            invalid,
        );
    }
    let good = "0001'a' 04 08 0001'r'";
    refused(
        V5,
        (0x30, good),
        (0x30, "0001'a' 04 08 0001'+'"),
        "mqtt_3_5_15",
        PE,
    );
    refused(
        V5,
        (0x30, good),
        (0x30, "0001'a' 03 08 0000"),
        "mqtt_3_5_15",
        PE,
    );
    connect_refused(
        (0x10, "0004'MQTT' 05 06 003c 00 0001'a' 00 0001't' 0001'm'"),
        (0x10, "0004'MQTT' 05 06 003c 00 0001'a' 00 0001'#' 0001'm'"),
        "mqtt_3_5_15",
        invalid,
    );
}

#[test]
fn mqtt_3_5_16_an_empty_topic_needs_an_alias() {
    refused(
        V5,
        (0x30, "0000 03 23 0001"),
        (0x30, "0000 00"),
        "mqtt_3_5_16",
        PE,
    );
    refused(V311, (0x30, "0001'a'"), (0x30, "0000"), "mqtt_3_5_16", PE);
}

#[test]
fn mqtt_3_5_17_alias_0() {
    refused(
        V5,
        (0x30, "0001'a' 03 23 0001"),
        (0x30, "0001'a' 03 23 0000"),
        "mqtt_3_5_17",
        ReasonCode::TopicAliasInvalid,
    );
}

#[test]
fn mqtt_3_5_18_subscription_identifier_from_a_client() {
    refused(V5, PUBLISH0, (0x30, "0001'a' 02 0b 01"), "mqtt_3_5_18", PE);
    assert!(decode(Role::Client, V5, &packet(0x30, "0001'a' 02 0b 01")).is_ok());
}

#[test]
fn mqtt_3_5_20_subscribe_and_unsubscribe_forms() {
    let v4 = (0x82, "0001 0001'a' 01");
    for version in [V311, V5] {
        let (sub, unsub, empty) = match version {
            V311 => (v4, (0xa2, "0001 0001'a'"), "0001"),
            V5 => (SUBSCRIBE5, (0xa2, "0001 00 0001'a'"), "0001 00"),
        };
        refused(version, sub, (0x82, empty), "mqtt_3_5_20", PE);
        refused(version, unsub, (0xa2, empty), "mqtt_3_5_20", PE);
        refused(
            version,
            sub,
            (0x82, &sub.1.replacen("0001", "0000", 1)),
            "mqtt_3_5_20",
            MAL,
        );
        refused(
            version,
            unsub,
            (0xa2, &unsub.1.replacen("0001", "0000", 1)),
            "mqtt_3_5_20",
            MAL,
        );
    }
    for options in ["03", "40", "80", "c1"] {
        refused(
            V5,
            SUBSCRIBE5,
            (0x82, &format!("0001 00 0001'a' {options}")),
            "mqtt_3_5_20",
            MAL,
        );
    }
    for options in ["03", "04", "08", "10", "40", "80"] {
        refused(
            V311,
            v4,
            (0x82, &format!("0001 0001'a' {options}")),
            "mqtt_3_5_20",
            MAL,
        );
    }
    refused(
        V5,
        (0x82, "0001 00 0001'a' 21"),
        (0x82, "0001 00 0001'a' 31"),
        "mqtt_3_5_20",
        PE,
    );
}

#[test]
fn mqtt_3_5_21_a_bad_filter_is_one_code_of_suback() {
    for bad in [
        "",
        "a#",
        "#/a",
        "a+/b",
        "$share//x",
        "$share/g",
        "$share/g+/x",
        "$share/g/",
        "a/#/b",
        "++",
    ] {
        let body = format!(
            "0001 00 0001'a' 01 {:04x}'{bad}' 01 0003'b/#' 02",
            bad.len()
        );
        let Ok(Packet::Subscribe(subscribe)) = decode(Role::Server, V5, &packet(0x82, &body))
        else {
            panic!("{bad:?} must not end the connection");
        };
        let judged: Vec<_> = subscribe.filters.iter().map(|s| s.filter.is_ok()).collect();
        assert_eq!(judged, [true, false, true], "{bad:?}");
        let invalid = subscribe.filters.iter().nth(1).unwrap().filter.unwrap_err();
        let violation = Violation::Filter(invalid.error);
        assert_eq!(invalid.text, bad);
        assert_eq!(violation.reach(), Reach::Subscription);
        assert_eq!(violation.reason_code(), ReasonCode::TopicFilterInvalid);
        assert_eq!(violation.rule(), "mqtt_3_5_21");

        let body = format!("0001 0001'a' {:04x}'{bad}'", bad.len());
        let Ok(Packet::Unsubscribe(unsubscribe)) = decode(Role::Server, V311, &packet(0xa2, &body))
        else {
            panic!("{bad:?} must not end the connection");
        };
        let judged: Vec<_> = unsubscribe.filters.iter().map(|f| f.is_ok()).collect();
        assert_eq!(judged, [true, false], "{bad:?}");
    }
}

#[test]
fn mqtt_3_5_22_no_local_on_a_shared_subscription() {
    refused(
        V5,
        (0x82, "0001 00 000a'$share/g/a' 01"),
        (0x82, "0001 00 000a'$share/g/a' 05"),
        "mqtt_3_5_22",
        PE,
    );
    assert!(decode(Role::Server, V5, &packet(0x82, "0001 00 0001'a' 05")).is_ok());
}

#[test]
fn mqtt_3_5_23_acknowledgements_carry_codes_of_their_set() {
    for first in [0x40, 0x50] {
        for bad in ["01", "02", "11", "92", "81", "ff"] {
            refused(
                V5,
                (first, "0001 10"),
                (first, &format!("0001 {bad}")),
                "mqtt_3_5_23",
                PE,
            );
        }
    }
    for first in [0x62, 0x70] {
        for bad in ["10", "80", "91"] {
            refused(
                V5,
                (first, "0001 92"),
                (first, &format!("0001 {bad}")),
                "mqtt_3_5_23",
                PE,
            );
        }
    }
    for first in [0x40, 0x50, 0x62, 0x70] {
        refused(V5, (first, "0001"), (first, "0000"), "mqtt_3_5_23", MAL);
        refused(V311, (first, "0001"), (first, "0000"), "mqtt_3_5_23", MAL);
    }
    // A client has no business with a server's reasons, and the other way round.
    for bad in ["87", "89", "8b", "8d", "8e", "9c", "a0", "01", "05"] {
        refused(V5, (0xe0, "04"), (0xe0, bad), "mqtt_3_5_23", PE);
    }
    refused_by_client(V5, (0xe0, "8e"), (0xe0, "04"), "mqtt_3_5_23", PE);
    refused(
        V5,
        (0xf0, "19 04 15 0001'm'"),
        (0xf0, "00 04 15 0001'm'"),
        "mqtt_3_5_23",
        PE,
    );
    refused_by_client(
        V311,
        (0x90, "0001 80"),
        (0x90, "0001 87"),
        "mqtt_3_5_23",
        PE,
    );
    refused_by_client(
        V5,
        (0x90, "0001 00 87"),
        (0x90, "0001 00 11"),
        "mqtt_3_5_23",
        PE,
    );
    refused_by_client(
        V5,
        (0xb0, "0001 00 11"),
        (0xb0, "0001 00 10"),
        "mqtt_3_5_23",
        PE,
    );
    refused_by_client(
        V5,
        (0x20, "01 00 00"),
        (0x20, "02 00 00"),
        "mqtt_3_5_23",
        MAL,
    );
    refused_by_client(
        V5,
        (0x20, "00 87 00"),
        (0x20, "01 87 00"),
        "mqtt_3_5_23",
        MAL,
    );
    refused_by_client(V311, (0x20, "00 05"), (0x20, "00 06"), "mqtt_3_5_23", PE);
}

#[test]
fn mqtt_3_5_24_server_packets_from_a_client() {
    for version in [V311, V5] {
        for first in [0x20, 0x90, 0xb0, 0xd0] {
            refused(version, (0xc0, ""), (first, ""), "mqtt_3_5_24", PE);
        }
        for first in [0x10, 0x82, 0xa2, 0xc0] {
            refused_by_client(version, (0xd0, ""), (first, ""), "mqtt_3_5_24", PE);
        }
    }
    // A 3.1.1 server has no DISCONNECT.
    refused_by_client(V311, (0xd0, ""), (0xe0, ""), "mqtt_3_5_24", PE);
    assert!(decode(Role::Client, V5, &packet(0xe0, "")).is_ok());
}

#[test]
fn mqtt_3_5_26_bytes_after_disconnect_are_discarded() {
    let mut decoder = open_decoder(Role::Server, V5, Limits::default());
    let mut bytes = BytesMut::from(&hex("e0 00 00 ff ff ff ff ff")[..]);
    assert!(matches!(
        decoder.decode(&mut bytes),
        Ok(Decoded::Packet(Packet::Disconnect(_)))
    ));
    assert_eq!(decoder.decode(&mut bytes), Ok(Decoded::NeedMore(1)));
    assert!(bytes.is_empty());
    assert_eq!(decoder.version(), Some(V5));
}

#[test]
fn mqtt_3_5_27_depth_is_capped_before_anybody_walks_it() {
    let deep = |levels: usize| "a/".repeat(levels - 1) + "a";
    assert!(TopicFilter::parse(&deep(128)).is_ok());
    let error = TopicFilter::parse(&deep(129)).unwrap_err();
    assert_eq!(
        error,
        FilterError::TooDeep {
            levels: 129,
            max_levels: 128
        }
    );
    assert_eq!(Violation::Filter(error).rule(), "mqtt_3_5_27");
    assert_eq!(Violation::Filter(error).reach(), Reach::Subscription);
    // As many slashes as a string can hold.
    assert!(TopicFilter::parse(&"/".repeat(65_535)).is_err());
}

#[test]
fn mqtt_3_1_other_versions_are_answered_in_the_form_they_read() {
    let answers = [
        (
            "0004'MQTT' 06 02 003c 00 0001'a'",
            ReasonCode::UnsupportedProtocolVersion,
            Some(V5),
        ),
        (
            "0004'MQTT' 03 02 003c 0001'a'",
            ReasonCode::UnsupportedProtocolVersion,
            Some(V311),
        ),
        (
            "0006'MQIsdp' 03 02 003c 0001'a'",
            ReasonCode::UnsupportedProtocolVersion,
            Some(V311),
        ),
        ("0006'MQIsdp' 04 02 003c 0001'a'", PE, None),
        ("0004'HTTP' 04 02 003c 0001'a'", PE, None),
        ("0004'mqtt' 05 02 003c 00 0001'a'", PE, None),
    ];
    for (body, code, version) in answers {
        let mut decoder = Decoder::server(Limits::default());
        let violation = decoder
            .decode(&mut BytesMut::from(&packet(0x10, body)[..]))
            .unwrap_err();
        assert_eq!(violation.rule(), "mqtt_3_1_version", "{body}");
        assert_eq!(violation.reason_code(), code, "{body}");
        assert_eq!(decoder.answer_version(), version, "{body}");
    }
}

#[test]
fn a_failed_decoder_keeps_saying_so() {
    let mut decoder = open_decoder(Role::Server, V5, Limits::default());
    let mut bytes = BytesMut::from(&hex("00 00 c0 00")[..]);
    let first = decoder.decode(&mut bytes).unwrap_err();
    assert_eq!(decoder.decode(&mut bytes), Err(first));
    assert!(bytes.is_empty());
}

/// Many small fields in one packet cost no memory beyond the packet.
#[test]
fn thousands_of_filters_and_user_properties_are_not_unpacked() {
    let mut body = hex("0001 00");
    for _ in 0..100_000 {
        body.extend_from_slice(&hex("0000 00"));
    }
    let mut bytes = vec![0x82, 0xe3, 0xa7, 0x12];
    assert_eq!(body.len(), 0x63 + (0x27 << 7) + (0x12 << 14));
    bytes.extend_from_slice(&body);
    let Ok(Packet::Subscribe(subscribe)) = decode(Role::Server, V5, &bytes) else {
        panic!()
    };
    assert_eq!(subscribe.filters.count(), 100_000);
    assert!(size_of::<SubscribeFilters>() <= 48);
}
