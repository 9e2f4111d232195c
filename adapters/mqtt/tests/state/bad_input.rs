//! The rows of the bad-input table that need to know the connection. [mqtt 3.5]

use std::num::NonZeroU16;

use weida_mqtt::codec::{
    Disconnect, DisconnectProperties, MessageProperties, Packet, PublishProperties, QoS, Reach,
    ReasonCode, TopicName, UserProperties, Utf8Bytes, Version, Violation,
};
use weida_mqtt::state::{Event, Terms};

use crate::kit::{connect, connected, connected_with, id, publish, start};

fn with_alias(topic: &str, alias: u16) -> Packet {
    let mut publish = publish("t", QoS::AtMostOnce, None);
    publish.topic = if topic.is_empty() {
        TopicName::default()
    } else {
        TopicName::parse(topic).unwrap()
    };
    publish.properties.topic_alias = NonZeroU16::new(alias);
    Packet::Publish(publish)
}

#[test]
fn mqtt_3_5_17_aliases_above_the_maximum_or_never_set() {
    let now = start();
    let mut connection = connected(Version::V5);
    let Ok(Event::Publish(heard)) = connection.on_packet(with_alias("a/b", 16), now) else {
        panic!("16 is what we announce")
    };
    assert_eq!(
        (heard.topic.as_str(), heard.properties.topic_alias),
        ("a/b", None)
    );
    let Ok(Event::Publish(heard)) = connection.on_packet(with_alias("", 16), now) else {
        panic!()
    };
    assert_eq!(heard.topic.as_str(), "a/b");

    let violation = connection
        .on_packet(with_alias("a/b", 17), now)
        .unwrap_err();
    assert_eq!(
        violation,
        Violation::TopicAliasRange {
            alias: 17,
            max_alias: 16
        }
    );
    assert_eq!(violation.reason_code(), ReasonCode::TopicAliasInvalid);
    let violation = connected(Version::V5)
        .on_packet(with_alias("", 3), now)
        .unwrap_err();
    assert_eq!(violation, Violation::TopicAliasUnknown { alias: 3 });
    assert_eq!(violation.reason_code(), ReasonCode::ProtocolError);
    assert_eq!(violation.rule(), "mqtt_3_5_17");
}

#[test]
fn mqtt_3_5_19_qos_and_retain_beyond_the_announced() {
    let now = start();
    let terms = Terms {
        max_qos: QoS::AtLeastOnce,
        retain_available: false,
        ..Terms::default()
    };
    for version in [Version::V311, Version::V5] {
        let mut connection = connected_with(terms, connect(version), now);
        let good = publish("t", QoS::AtLeastOnce, Some(1));
        assert!(
            connection
                .on_packet(Packet::Publish(good.clone()), now)
                .is_ok()
        );
        let mut retained = good.clone();
        retained.retain = true;
        let violation = connection
            .on_packet(Packet::Publish(retained), now)
            .unwrap_err();
        assert_eq!(violation.reason_code(), ReasonCode::RetainNotSupported);
        let twice = publish("t", QoS::ExactlyOnce, Some(2));
        let violation = connection
            .on_packet(Packet::Publish(twice), now)
            .unwrap_err();
        assert_eq!(violation.reason_code(), ReasonCode::QosNotSupported);
        assert_eq!(
            (violation.rule(), violation.reach()),
            ("mqtt_3_5_19", Reach::Connection)
        );
    }
}

#[test]
fn mqtt_3_5_25_disconnect_may_not_raise_expiry_from_0() {
    let now = start();
    let later = |secs| {
        Packet::Disconnect(Disconnect {
            reason: ReasonCode::Success,
            properties: DisconnectProperties {
                session_expiry_secs: Some(secs),
                ..DisconnectProperties::default()
            },
        })
    };
    assert!(connected(Version::V5).on_packet(later(0), now).is_ok());
    let violation = connected(Version::V5).on_packet(later(1), now).unwrap_err();
    assert_eq!(violation, Violation::SessionExpiryRaised);
    assert_eq!(violation.reason_code(), ReasonCode::ProtocolError);
    let mut asked = connect(Version::V5);
    asked.properties.session_expiry_secs = Some(1);
    assert!(
        connected_with(Terms::default(), asked, now)
            .on_packet(later(9), now)
            .is_ok()
    );
}

#[test]
fn mqtt_3_5_27_deep_and_long_topics_cost_one_message() {
    let now = start();
    let mut connection = connected(Version::V5);
    let fits = "a/".repeat(31) + "a";
    let deep = "a/".repeat(32) + "a";
    let long = "a".repeat(1025);
    let event = connection.on_packet(
        Packet::Publish(publish(&fits, QoS::AtLeastOnce, Some(1))),
        now,
    );
    assert!(matches!(event, Ok(Event::Publish(_))));
    for topic in [&deep, &long, &"/".repeat(60_000)] {
        let packet = Packet::Publish(publish(topic, QoS::AtLeastOnce, Some(2)));
        let Ok(Event::PublishRefused {
            packet_id,
            violation,
        }) = connection.on_packet(packet, now)
        else {
            panic!("the connection lives")
        };
        assert_eq!(packet_id, Some(id(2)));
        assert_eq!(violation.packet_id(), Some(id(2)));
        assert_eq!(violation.reason_code(), ReasonCode::TopicNameInvalid);
        assert_eq!(
            (violation.rule(), violation.reach()),
            ("mqtt_3_5_27", Reach::Message)
        );
    }
    assert_eq!(
        connection.unacknowledged(),
        1,
        "what is refused is not open"
    );
    // A refused topic keeps its alias number, and stays refused under it.
    let refused = connection.on_packet(with_alias(&deep, 1), now);
    assert!(matches!(refused, Ok(Event::PublishRefused { .. })));
    let again = connection.on_packet(with_alias("", 1), now);
    assert!(
        matches!(again, Ok(Event::PublishRefused { .. })),
        "{again:?}"
    );
}

#[test]
fn mqtt_3_3_user_properties_beyond_32_pairs_cost_one_message() {
    let now = start();
    let mut connection = connected(Version::V5);
    let mut packet = |pairs: usize, value: &str| {
        let mut user_properties = UserProperties::default();
        for _ in 0..pairs {
            user_properties.push(
                &Utf8Bytes::from_static("k"),
                &Utf8Bytes::parse(value).unwrap(),
            );
        }
        let mut publish = publish("t", QoS::AtMostOnce, None);
        publish.properties = PublishProperties {
            message: MessageProperties {
                user_properties,
                ..MessageProperties::default()
            },
            ..PublishProperties::default()
        };
        connection.on_packet(Packet::Publish(publish), now).unwrap()
    };
    assert!(matches!(packet(32, "v"), Event::Publish(_)));
    for (pairs, value) in [(33, "v"), (1, &*"v".repeat(8192))] {
        let Event::PublishRefused {
            packet_id: None,
            violation,
        } = packet(pairs, value)
        else {
            panic!("too many")
        };
        assert_eq!(violation.reason_code(), ReasonCode::QuotaExceeded);
    }
}
