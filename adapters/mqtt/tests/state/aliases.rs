//! Aliases toward the client. [mqtt 5.6]

use bytes::BytesMut;
use weida_mqtt::codec::{Packet, QoS, Version};
use weida_mqtt::state::{Connection, Terms};

use crate::kit::{connect, connected, connected_with, publish, read_as_client, start};

fn allowing(aliases: u16) -> Connection {
    let mut asked = connect(Version::V5);
    asked.properties.topic_alias_maximum = Some(aliases);
    connected_with(Terms::default(), asked, start())
}

/// Topic and alias as they stand on the wire.
fn sent(connection: &mut Connection, topic: &str) -> (String, Option<u16>) {
    let mut wire = BytesMut::new();
    connection
        .publish(publish(topic, QoS::AtMostOnce, None), &mut wire)
        .unwrap();
    let Packet::Publish(read) = read_as_client(Version::V5, &mut wire) else {
        panic!()
    };
    (
        read.topic.to_string(),
        read.properties.topic_alias.map(|alias| alias.get()),
    )
}

#[test]
fn mqtt_5_6_first_use_teaches_later_uses_save_and_the_oldest_gives_way() {
    let mut connection = allowing(2);
    assert_eq!(sent(&mut connection, "a"), ("a".into(), Some(1)));
    assert_eq!(sent(&mut connection, "b"), ("b".into(), Some(2)));
    assert_eq!(sent(&mut connection, "a"), (String::new(), Some(1)));
    assert_eq!(
        sent(&mut connection, "c"),
        ("c".into(), Some(2)),
        "b was the oldest"
    );
    assert_eq!(sent(&mut connection, "a"), (String::new(), Some(1)));
    assert_eq!(sent(&mut connection, "b"), ("b".into(), Some(2)));
}

#[test]
fn mqtt_5_6_no_aliases_unless_the_client_allows_them() {
    for mut connection in [allowing(0), connected(Version::V5)] {
        for _ in 0..2 {
            assert_eq!(sent(&mut connection, "a"), ("a".into(), None));
        }
    }
}

#[test]
fn mqtt_5_6_a_retransmission_carries_its_full_topic() {
    let mut connection = allowing(4);
    sent(&mut connection, "a");
    let mut again = publish("a", QoS::AtLeastOnce, None);
    again.dup = true;
    let mut wire = BytesMut::new();
    connection.publish(again, &mut wire).unwrap();
    let Packet::Publish(read) = read_as_client(Version::V5, &mut wire) else {
        panic!()
    };
    assert_eq!(
        (read.topic.as_str(), read.properties.topic_alias),
        ("a", None)
    );
}

#[test]
fn mqtt_5_6_a_packet_that_is_not_written_teaches_nothing() {
    let mut asked = connect(Version::V5);
    asked.properties.topic_alias_maximum = Some(4);
    asked.properties.maximum_packet_bytes = std::num::NonZeroU32::new(12);
    let mut connection = connected_with(Terms::default(), asked, start());
    let mut large = publish("a", QoS::AtMostOnce, None);
    large.payload = vec![0; 50].into();
    assert!(connection.publish(large, &mut BytesMut::new()).is_err());
    assert_eq!(
        sent(&mut connection, "a"),
        ("a".into(), Some(1)),
        "taught only now"
    );
    // 2 + 2 + 1 + 1 + 6 = 12 bytes: room for the message, not for an alias of three bytes.
    let mut exact = publish("b", QoS::AtMostOnce, None);
    exact.payload = vec![0; 6].into();
    let mut wire = BytesMut::new();
    assert_eq!(
        connection.publish(exact, &mut wire).unwrap().packet_bytes,
        12
    );
    assert_eq!(
        sent(&mut connection, "b").0,
        "b",
        "the alias was not taught by it"
    );
}
