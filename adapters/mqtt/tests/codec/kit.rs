//! Hex, and decoders that are past their handshake.

use bytes::BytesMut;
use weida_mqtt::codec::{Decoded, Decoder, Limits, Packet, Role, Version, Violation};

/// `"10 0e 00 04 'MQTT' 04"`: hex pairs, and text between single quotes.
pub(crate) fn hex(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (index, part) in text.split('\'').enumerate() {
        if index % 2 == 1 {
            bytes.extend_from_slice(part.as_bytes());
            continue;
        }
        let digits: String = part.chars().filter(|c| !c.is_whitespace()).collect();
        assert!(
            digits.len().is_multiple_of(2),
            "odd number of digits in {text:?}"
        );
        for pair in digits.as_bytes().chunks(2) {
            let pair = std::str::from_utf8(pair).unwrap();
            bytes.push(u8::from_str_radix(pair, 16).unwrap());
        }
    }
    bytes
}

/// Puts the length in front: `packet(0x30, "...")` is the packet with that first byte and body.
pub(crate) fn packet(first: u8, body: &str) -> Vec<u8> {
    let body = hex(body);
    assert!(
        body.len() < 128,
        "tests that need long packets build them themselves"
    );
    let mut bytes = vec![first, u8::try_from(body.len()).unwrap()];
    bytes.extend_from_slice(&body);
    bytes
}

pub(crate) fn connect_bytes(version: Version) -> Vec<u8> {
    match version {
        Version::V311 => packet(0x10, "0004 'MQTT' 04 02 003c 0001 'a'"),
        Version::V5 => packet(0x10, "0004 'MQTT' 05 02 003c 00 0001 'a'"),
    }
}

/// A decoder that has seen a CONNECT (or, as a client, has sent one).
pub(crate) fn open_decoder(role: Role, version: Version, limits: Limits) -> Decoder {
    if role == Role::Client {
        return Decoder::client(version, limits);
    }
    let mut decoder = Decoder::server(limits);
    let mut bytes = BytesMut::from(&connect_bytes(version)[..]);
    assert!(matches!(
        decoder.decode(&mut bytes),
        Ok(Decoded::Packet(Packet::Connect(_)))
    ));
    decoder
}

/// The one packet that `bytes` are.
pub(crate) fn decode(role: Role, version: Version, bytes: &[u8]) -> Result<Packet, Violation> {
    decode_with(open_decoder(role, version, Limits::default()), bytes)
}

/// The first packet of a fresh server connection.
pub(crate) fn decode_first(bytes: &[u8]) -> Result<Packet, Violation> {
    decode_with(Decoder::server(Limits::default()), bytes)
}

pub(crate) fn decode_with(mut decoder: Decoder, bytes: &[u8]) -> Result<Packet, Violation> {
    let mut buffer = BytesMut::from(bytes);
    match decoder.decode(&mut buffer)? {
        Decoded::Packet(packet) => {
            assert!(buffer.is_empty(), "{} bytes left over", buffer.len());
            Ok(packet)
        }
        Decoded::NeedMore(bytes) => panic!("{bytes} bytes missing"),
    }
}
