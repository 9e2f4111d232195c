//! Credit and identifiers. [mqtt 4.4] [mqtt 4.5] [mqtt 8.1]

use std::num::NonZeroU16;

use bytes::BytesMut;
use weida_mqtt::codec::{Ack, Packet, QoS, ReasonCode, Version, Violation};
use weida_mqtt::state::{Event, InboundQuota, OutboundWindow, Release, SendError, Terms};

use crate::kit::{connect, connected, connected_with, id, publish, read_as_client, start};

#[test]
fn mqtt_4_4_identifiers_follow_the_sequence_and_are_never_0() {
    assert_eq!(OutboundWindow::packet_id(0), id(1));
    assert_eq!(OutboundWindow::packet_id(65_534), id(65_535));
    assert_eq!(OutboundWindow::packet_id(65_535), id(1));
    assert_eq!(
        OutboundWindow::packet_id(u64::MAX),
        id(1),
        "2^64 - 1 is a multiple of 65535"
    );
}

#[test]
fn mqtt_4_4_a_held_identifier_makes_its_successor_wait() {
    let mut window = OutboundWindow::new(10);
    window.begin(5, QoS::AtLeastOnce).unwrap();
    assert!(window.begin(5 + 65_535, QoS::AtLeastOnce).is_err());
    assert_eq!(window.on_puback(id(6)), Release::Finished);
    assert_eq!(window.begin(5 + 65_535, QoS::AtLeastOnce), Ok(id(6)));
}

#[test]
fn mqtt_4_5_outbound_qos_2_walks_its_table() {
    let mut window = OutboundWindow::new(2);
    let one = window.begin(0, QoS::ExactlyOnce).unwrap();
    let two = window.begin(1, QoS::ExactlyOnce).unwrap();
    assert!(window.is_full());
    assert_eq!(
        window.on_puback(one),
        Release::Unknown,
        "PUBACK is not for QoS 2"
    );
    assert_eq!(window.on_pubcomp(one), Release::Unknown, "not released yet");
    assert_eq!(
        window.on_pubrec(one, ReasonCode::Success),
        Release::SendPubrel
    );
    assert_eq!(
        window.on_pubrec(one, ReasonCode::Success),
        Release::SendPubrel,
        "repeated"
    );
    assert_eq!(window.on_pubcomp(one), Release::Finished);
    assert_eq!(
        window.on_pubrec(two, ReasonCode::QuotaExceeded),
        Release::Finished
    );
    assert_eq!(window.in_flight(), 0);
}

#[test]
fn mqtt_8_1_never_more_in_flight_than_the_peer_allows() {
    let now = start();
    let mut asked = connect(Version::V5);
    asked.properties.receive_maximum = NonZeroU16::new(2);
    let mut connection = connected_with(Terms::default(), asked, now);
    let mut wire = BytesMut::new();
    for _ in 0..2 {
        connection
            .publish(publish("t", QoS::AtLeastOnce, None), &mut wire)
            .unwrap();
    }
    let written = wire.len();
    let third = connection.publish(publish("t", QoS::AtLeastOnce, None), &mut wire);
    assert!(matches!(third, Err(SendError::WindowFull(_))));
    assert_eq!(wire.len(), written, "nothing was written");
    assert!(
        connection
            .publish(publish("t", QoS::AtMostOnce, None), &mut wire)
            .is_ok()
    );
    let Packet::Publish(first) = read_as_client(Version::V5, &mut wire) else {
        panic!()
    };
    let ack = Ack::new(first.packet_id.unwrap(), ReasonCode::NotAuthorized);
    let event = connection.on_packet(Packet::PubAck(ack), now).unwrap();
    assert_eq!(
        event,
        Event::Acknowledged {
            packet_id: id(1),
            reason: ReasonCode::NotAuthorized
        }
    );
    assert_eq!(connection.in_flight(), 1);
    let sent = connection
        .publish(publish("t", QoS::AtLeastOnce, None), &mut wire)
        .unwrap();
    assert_eq!(sent.packet_id, Some(id(3)), "identifiers move on");
}

#[test]
fn mqtt_4_4_windows_without_a_word_from_the_peer() {
    for (version, window) in [(Version::V311, 20), (Version::V5, 64)] {
        let mut connection = connected(version);
        let mut wire = BytesMut::new();
        let mut sent = 0;
        while connection
            .publish(publish("t", QoS::AtLeastOnce, None), &mut wire)
            .is_ok()
        {
            sent += 1;
        }
        assert_eq!(sent, window);
        assert!(!connection.window_is_open());
    }
}

#[test]
fn mqtt_8_1_a_message_too_large_for_the_peer_takes_no_credit() {
    let now = start();
    let mut asked = connect(Version::V5);
    asked.properties.maximum_packet_bytes = std::num::NonZeroU32::new(20);
    let mut connection = connected_with(Terms::default(), asked, now);
    let mut wire = BytesMut::new();
    let mut large = publish("t", QoS::AtLeastOnce, None);
    large.payload = vec![0; 64].into();
    assert!(matches!(
        connection.publish(large, &mut wire),
        Err(SendError::Encode(_))
    ));
    assert_eq!((wire.len(), connection.in_flight()), (0, 0));
    assert!(
        connection
            .publish(publish("t", QoS::AtLeastOnce, None), &mut wire)
            .is_ok()
    );
}

#[test]
fn mqtt_8_1_receive_maximum_is_enforced_exactly() {
    let now = start();
    let mut connection = connected(Version::V5);
    for n in 1..=64 {
        let packet = Packet::Publish(publish("t", QoS::AtLeastOnce, Some(n)));
        assert!(
            matches!(connection.on_packet(packet, now), Ok(Event::Publish(_))),
            "{n}"
        );
    }
    let mut other = connected(Version::V5);
    for n in 1..=64 {
        let packet = Packet::Publish(publish("t", QoS::AtLeastOnce, Some(n)));
        other.on_packet(packet, now).unwrap();
    }
    other.puback(id(7), ReasonCode::Success);
    let next = || Packet::Publish(publish("t", QoS::AtLeastOnce, Some(65)));
    assert!(other.on_packet(next(), now).is_ok(), "one was acknowledged");
    let violation = connection.on_packet(next(), now).unwrap_err();
    assert_eq!(violation, Violation::ReceiveMaximumExceeded { max: 64 });
    assert_eq!(violation.reason_code(), ReasonCode::ReceiveMaximumExceeded);
    let Some(Packet::Disconnect(last)) = connection.close(violation.reason_code()) else {
        panic!()
    };
    assert_eq!(last.reason, ReasonCode::ReceiveMaximumExceeded);
}

#[test]
fn mqtt_3_4_an_identifier_in_use_is_0x91_in_5_and_heard_again_in_3_1_1() {
    let now = start();
    let packet = || Packet::Publish(publish("t", QoS::AtLeastOnce, Some(9)));
    let mut connection = connected(Version::V5);
    connection.on_packet(packet(), now).unwrap();
    let Ok(Event::PublishRefused {
        packet_id,
        violation,
    }) = connection.on_packet(packet(), now)
    else {
        panic!("answered, not closed")
    };
    assert_eq!(packet_id, Some(id(9)));
    assert_eq!(violation.reason_code(), ReasonCode::PacketIdentifierInUse);
    let mut connection = connected(Version::V311);
    for _ in 0..2 {
        assert!(matches!(
            connection.on_packet(packet(), now),
            Ok(Event::Publish(_))
        ));
    }
    assert_eq!(connection.unacknowledged(), 1);
}

#[test]
fn mqtt_3_2_unknown_acknowledgements_never_close() {
    let now = start();
    for (version, code) in [
        (Version::V5, ReasonCode::PacketIdentifierNotFound),
        (Version::V311, ReasonCode::Success),
    ] {
        let mut connection = connected(version);
        let ack = || Ack::new(id(5), ReasonCode::Success);
        let event = connection.on_packet(Packet::PubAck(ack()), now).unwrap();
        assert!(matches!(event, Event::Unmatched { .. }));
        let event = connection.on_packet(Packet::PubComp(ack()), now).unwrap();
        assert!(matches!(event, Event::Unmatched { .. }));
        let event = connection.on_packet(Packet::PubRel(ack()), now).unwrap();
        assert_eq!(event, Event::Answer(Packet::PubComp(Ack::new(id(5), code))));
        let event = connection.on_packet(Packet::PubRec(ack()), now).unwrap();
        assert_eq!(event, Event::Answer(Packet::PubRel(Ack::new(id(5), code))));
    }
}

#[test]
fn a_quota_without_a_maximum_only_counts() {
    let mut quota = InboundQuota::new(None);
    for n in 1..=1000 {
        quota.admit(id(n));
    }
    assert_eq!(quota.open(), 1000);
    assert!(quota.release(id(1)) && !quota.release(id(1)));
}
