//! Bodies of the fuzz targets: each takes any bytes and panics only when a law of the codec is broken.

use bytes::BytesMut;

use super::{Decoded, Decoder, Encoder, Limits, Packet, Role, Version};

/// Any bytes as 3.1.1, to a server and to a client.
pub fn mqtt_decode_v4(data: &[u8]) {
    decode_all(data, Version::V311);
}

/// Any bytes as 5.0, to a server and to a client.
pub fn mqtt_decode_v5(data: &[u8]) {
    decode_all(data, Version::V5);
}

/// Whatever decodes is written and decodes to the same again. The first byte chooses version and role.
pub fn mqtt_roundtrip(data: &[u8]) {
    let Some((&choice, data)) = data.split_first() else {
        return;
    };
    let version = if choice & 1 == 0 {
        Version::V311
    } else {
        Version::V5
    };
    let role = if choice & 2 == 0 {
        Role::Server
    } else {
        Role::Client
    };
    let mut decoder = decoder(role, version);
    let mut buffer = BytesMut::from(data);
    while let Ok(Decoded::Packet(packet)) = decoder.decode(&mut buffer) {
        walk(&packet);
        let mut wire = BytesMut::new();
        let encoder = Encoder::new(version);
        let written = encoder
            .encode(&packet, &mut wire)
            .expect("what was read can be written");
        assert_eq!(written, wire.len(), "the length is known before");
        let mut again = self::decoder(role, version);
        assert_eq!(
            again.decode(&mut wire),
            Ok(Decoded::Packet(packet)),
            "reads the same again"
        );
        assert!(wire.is_empty(), "nothing is left over");
    }
}

fn decode_all(data: &[u8], version: Version) {
    for role in [Role::Server, Role::Client] {
        let mut decoder = decoder(role, version);
        let mut buffer = BytesMut::from(data);
        while let Ok(Decoded::Packet(packet)) = decoder.decode(&mut buffer) {
            walk(&packet);
        }
        assert!(buffer.len() <= data.len(), "a decoder only takes away");
    }
    let mut first = Decoder::server(LIMITS);
    let mut buffer = BytesMut::from(data);
    while let Ok(Decoded::Packet(packet)) = first.decode(&mut buffer) {
        walk(&packet);
    }
}

/// Touches what is only unpacked when somebody looks.
fn walk(packet: &Packet) {
    match packet {
        Packet::Subscribe(subscribe) => {
            assert_eq!(subscribe.filters.iter().count(), subscribe.filters.count());
        }
        Packet::Unsubscribe(unsubscribe) => {
            assert_eq!(
                unsubscribe.filters.iter().count(),
                unsubscribe.filters.count()
            );
        }
        Packet::Publish(publish) => {
            let pairs = &publish.properties.message.user_properties;
            assert!(pairs.pairs().saturating_mul(5) <= pairs.wire_bytes());
            assert!(publish.topic.as_str().len() == publish.topic.len());
        }
        _ => {}
    }
}

fn decoder(role: Role, version: Version) -> Decoder {
    if role == Role::Client {
        return Decoder::client(version, LIMITS);
    }
    let mut decoder = Decoder::server(LIMITS);
    let connect: &[u8] = match version {
        Version::V311 => b"\x10\x0d\x00\x04MQTT\x04\x02\x00\x3c\x00\x01a",
        Version::V5 => b"\x10\x0e\x00\x04MQTT\x05\x02\x00\x3c\x00\x00\x01a",
    };
    let opened = decoder.decode(&mut BytesMut::from(connect));
    assert!(
        matches!(opened, Ok(Decoded::Packet(Packet::Connect(_)))),
        "a plain CONNECT passes"
    );
    decoder
}

const LIMITS: Limits = Limits {
    max_packet_bytes: 65_536,
    max_connect_bytes: 65_536,
    strict_utf8: true,
};
