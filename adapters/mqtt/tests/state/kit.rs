//! Packets as a client writes them, and connections past their handshake.

use std::time::Instant;

use bytes::{Bytes, BytesMut};
use weida_mqtt::codec::{
    ClientId, Connect, Decoded, Decoder, Encoder, Limits, Packet, PacketId, Publish, QoS,
    TopicName, Version,
};
use weida_mqtt::state::{Admission, Connection, Event, Terms};

/// Some moment; the tests only look at differences.
pub(crate) fn start() -> Instant {
    tokio::time::Instant::now().into_std()
}

pub(crate) fn connect(version: Version) -> Connect {
    Connect {
        keep_alive_secs: 60,
        ..Connect::new(version, ClientId::parse("c").unwrap())
    }
}

pub(crate) fn connected_with(terms: Terms, connect: Connect, now: Instant) -> Connection {
    let mut connection = Connection::new(terms, now);
    let mut wire = BytesMut::new();
    Encoder::new(connect.version)
        .encode(&Packet::Connect(Box::new(connect)), &mut wire)
        .unwrap();
    let event = connection.receive(&mut wire, now);
    assert!(matches!(event, Ok(Some(Event::Connect(_)))), "{event:?}");
    connection.accept(Admission::default(), now);
    assert_eq!(connection.state(), "connected");
    connection
}

pub(crate) fn connected(version: Version) -> Connection {
    connected_with(Terms::default(), connect(version), start())
}

pub(crate) fn id(id: u16) -> PacketId {
    PacketId::new(id).unwrap()
}

pub(crate) fn publish(topic: &str, qos: QoS, packet_id: Option<u16>) -> Publish {
    Publish {
        qos,
        topic: TopicName::parse(topic).unwrap(),
        packet_id: packet_id.map(id),
        payload: Bytes::from_static(b"x"),
        ..Publish::default()
    }
}

/// What the client reads of what we wrote.
pub(crate) fn read_as_client(version: Version, wire: &mut BytesMut) -> Packet {
    match Decoder::client(version, Limits::default()).decode(wire) {
        Ok(Decoded::Packet(packet)) => packet,
        other => panic!("{other:?}"),
    }
}
