//! Laws of the codec, on any packet and on any bytes.

use bytes::BytesMut;
use proptest::prelude::*;
use weida_mqtt::codec::{
    Decoded, Decoder, EncodeError, Encoder, Limits, Packet, Role, Version, Violation, fuzzing,
};

use crate::generators::{any_packet, any_traffic, connect, reader_of};
use crate::kit::{decode_first, decode_with, open_decoder};

fn encode(version: Version, packet: &Packet) -> BytesMut {
    let encoder = Encoder::new(version);
    let mut bytes = BytesMut::new();
    let written = encoder.encode(packet, &mut bytes).unwrap();
    assert_eq!(written, bytes.len());
    assert_eq!(
        written,
        encoder.encoded_len(packet),
        "the length is known before"
    );
    bytes
}

fn ends(packet: &Packet) -> bool {
    matches!(packet, Packet::Disconnect(_))
}

proptest! {
    #[test]
    fn what_is_written_reads_the_same((version, sender, packets) in any_traffic(4)) {
        for packet in packets {
            let bytes = encode(version, &packet);
            let decoder = open_decoder(reader_of(sender), version, Limits::default());
            prop_assert_eq!(decode_with(decoder, &bytes).unwrap(), packet);
        }
    }

    #[test]
    fn connect_reads_the_same(packet in prop_oneof![connect(Version::V311), connect(Version::V5)]) {
        let Packet::Connect(connect) = &packet else { unreachable!() };
        let bytes = encode(connect.version, &packet);
        prop_assert_eq!(decode_first(&bytes).unwrap(), packet);
    }

    /// Where reads happen to split is invisible to whoever reads packets, and an unfinished packet is never more than
    /// "need more".
    #[test]
    fn chunking_is_invisible(
        (version, sender, packets) in any_traffic(12),
        cuts in proptest::collection::vec(1usize..64, 1..40),
    ) {
        let mut wire = BytesMut::new();
        let mut sent = Vec::new();
        for packet in packets {
            wire.extend_from_slice(&encode(version, &packet));
            let last = ends(&packet);
            sent.push(packet);
            if last {
                break;
            }
        }
        let mut decoder = open_decoder(reader_of(sender), version, Limits::default());
        let mut buffer = BytesMut::new();
        let mut seen = Vec::new();
        let mut cuts = cuts.iter().cycle();
        while !wire.is_empty() {
            let count = (*cuts.next().unwrap()).min(wire.len());
            buffer.extend_from_slice(&wire.split_to(count));
            loop {
                match decoder.decode(&mut buffer).unwrap() {
                    Decoded::Packet(packet) => seen.push(packet),
                    Decoded::NeedMore(more) => {
                        prop_assert!(more > 0);
                        break;
                    }
                }
            }
        }
        prop_assert!(buffer.is_empty());
        prop_assert_eq!(seen, sent);
    }

    /// Every shorter prefix needs more, and the number of missing bytes is never too large.
    #[test]
    fn a_prefix_needs_more(packet in any_packet(Version::V5, Role::Client)) {
        let bytes = encode(Version::V5, &packet);
        for length in 0..bytes.len() {
            let mut decoder = open_decoder(Role::Server, Version::V5, Limits::default());
            let mut prefix = BytesMut::from(&bytes[..length]);
            match decoder.decode(&mut prefix) {
                Ok(Decoded::NeedMore(more)) => prop_assert!(length + more <= bytes.len()),
                other => prop_assert!(false, "{length} of {}: {other:?}", bytes.len()),
            }
            prop_assert_eq!(prefix.len(), length, "a prefix is not consumed");
        }
    }

    /// Any bytes, in any pieces: no panic, and never more held than the cap allows.
    #[test]
    fn arbitrary_bytes_stay_within_the_bound(
        bytes in proptest::collection::vec(any::<u8>(), 0..600),
        role in prop_oneof![Just(Role::Server), Just(Role::Client)],
        version in prop_oneof![Just(Version::V311), Just(Version::V5)],
        step in 1usize..50,
    ) {
        let limits = Limits { max_packet_bytes: 128, max_connect_bytes: 128, strict_utf8: true };
        let mut decoder = match role {
            Role::Server => Decoder::server(limits),
            Role::Client => Decoder::client(version, limits),
        };
        let mut buffer = BytesMut::new();
        for chunk in bytes.chunks(step) {
            buffer.extend_from_slice(chunk);
            while let Ok(Decoded::Packet(_)) = decoder.decode(&mut buffer) {}
            prop_assert!(buffer.len() <= 128, "{} bytes held", buffer.len());
        }
    }

    /// A packet with one byte changed is refused or is another packet that reads the same again.
    #[test]
    fn damaged_packets_are_refused_or_mean_something(
        (version, sender, packets) in any_traffic(2),
        at in any::<prop::sample::Index>(),
        value in any::<u8>(),
    ) {
        let mut bytes = encode(version, &packets[0]);
        let at = at.index(bytes.len());
        bytes[at] = value;
        let role = reader_of(sender);
        let mut decoder = open_decoder(role, version, Limits::default());
        let mut buffer = bytes.clone();
        if let Ok(Decoded::Packet(packet)) = decoder.decode(&mut buffer) {
            let again = encode(version, &packet);
            let decoder = open_decoder(role, version, Limits::default());
            prop_assert_eq!(decode_with(decoder, &again).unwrap(), packet);
        }
    }

    /// Within the peer's Maximum Packet Size or not at all; diagnostics go first, the meaning never. [MQTT-3.1.2-24]
    #[test]
    fn nothing_is_larger_than_the_peer_allows(
        packet in any_packet(Version::V5, Role::Server),
        max in 2u32..200,
    ) {
        let encoder = Encoder { peer_max_packet_bytes: max, ..Encoder::new(Version::V5) };
        let mut bytes = BytesMut::new();
        match encoder.encode(&packet, &mut bytes) {
            Ok(written) => {
                prop_assert!(written <= max as usize);
                let decoder = open_decoder(Role::Client, Version::V5, Limits::default());
                let read = decode_with(decoder, &bytes).unwrap();
                prop_assert_eq!(read.packet_type(), packet.packet_type());
                if encoder.encoded_len(&packet) <= max as usize {
                    prop_assert_eq!(read, packet);
                }
            }
            Err(EncodeError::TooLarge { got_bytes, max_bytes }) => {
                prop_assert!(got_bytes > max as usize);
                prop_assert_eq!(max_bytes, max);
                prop_assert!(bytes.is_empty());
            }
            Err(other) => prop_assert!(false, "{other:?}"),
        }
    }

    /// Every refusal has a rule and an answer that a server's CONNACK or DISCONNECT may carry.
    #[test]
    fn every_violation_knows_its_answer(bytes in proptest::collection::vec(any::<u8>(), 1..60)) {
        let mut decoder = open_decoder(Role::Server, Version::V5, Limits::default());
        if let Err(violation) = decoder.decode(&mut BytesMut::from(&bytes[..])) {
            prop_assert!(violation.rule().starts_with("mqtt_"));
            prop_assert!(violation.reason_code().is_error());
            let violation: Violation = violation;
            prop_assert!(!violation.to_string().is_empty());
        }
    }
}

/// The fuzz targets on seeded input, so that a plain test run walks them too.
#[test]
fn fuzz_targets_replay() {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for _ in 0..4000 {
        let length = usize::try_from(random() % 96).unwrap();
        let mut bytes: Vec<u8> = (0..length).map(|_| random().to_le_bytes()[0]).collect();
        // Half of the time a first byte and a length that let the body be read.
        if length > 2 && random() % 2 == 0 {
            let firsts = [
                0x10, 0x30, 0x32, 0x3d, 0x40, 0x62, 0x82, 0xa2, 0xc0, 0xe0, 0xf0, 0x20, 0x90, 0xb0,
            ];
            bytes[0] = firsts[usize::try_from(random()).unwrap_or(0) % firsts.len()];
            bytes[1] = u8::try_from(length - 2).unwrap();
        }
        fuzzing::mqtt_decode_v4(&bytes);
        fuzzing::mqtt_decode_v5(&bytes);
        fuzzing::mqtt_roundtrip(&bytes);
    }
}
