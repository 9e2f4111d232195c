//! CONNECT and its answers. [mqtt 3.1] [mqtt 3.3] [mqtt 3.4]

use bytes::BytesMut;
use weida_mqtt::codec::{
    ClientId, Connect, Packet, QoS, ReasonCode, SubscribeOptions, SubscribeProperties,
    Subscription, SubscriptionId, TopicFilter, TopicName, Utf8Bytes, Version, Will, WillProperties,
};
use weida_mqtt::state::{Admission, Connection, Event, Terms};

use crate::kit::{connect, start};

/// What the machine says to `connect`, and the CONNACK of a refusal.
fn refusal(terms: Terms, connect: Connect) -> Option<ReasonCode> {
    let now = start();
    let mut connection = Connection::new(terms, now);
    match connection.on_packet(Packet::Connect(Box::new(connect)), now) {
        Ok(Event::Connect(_)) => None,
        Ok(other) => panic!("{other:?}"),
        Err(violation) => Some(violation.reason_code()),
    }
}

#[test]
fn mqtt_3_3_connack_announces_what_is_not_there() {
    let now = start();
    let terms = Terms {
        max_qos: QoS::AtLeastOnce,
        retain_available: false,
        shared_subscriptions: false,
        ..Terms::default()
    };
    let mut asked = connect(Version::V5);
    asked.properties.session_expiry_secs = Some(300);
    let mut connection = Connection::new(terms, now);
    connection
        .on_packet(Packet::Connect(Box::new(asked)), now)
        .unwrap();
    let admission = Admission {
        assigned_client_id: Some(ClientId::parse("auto-1").unwrap()),
        ..Admission::default()
    };
    let Packet::Connack(connack) = connection.accept(admission, now) else {
        panic!()
    };
    let said = &connack.properties;
    assert_eq!(said.session_expiry_secs, Some(0), "clamped, so announced");
    assert_eq!(said.maximum_qos, Some(QoS::AtLeastOnce));
    assert_eq!(said.retain_available, Some(false));
    assert_eq!(said.shared_subscription_available, Some(false));
    assert_eq!(
        said.wildcard_subscription_available, None,
        "the default is not spelled out"
    );
    assert_eq!(said.receive_maximum.map(|n| n.get()), Some(64));
    assert_eq!(said.maximum_packet_bytes.map(|n| n.get()), Some(1_114_112));
    assert_eq!(said.topic_alias_maximum, Some(16));
    assert_eq!(
        said.assigned_client_id.as_ref().map(ClientId::as_str),
        Some("auto-1")
    );
}

#[test]
fn mqtt_3_4_refusals_in_both_versions() {
    let terms = Terms {
        max_qos: QoS::AtLeastOnce,
        retain_available: false,
        ..Terms::default()
    };
    let will = |qos, retain, topic: &str| Will {
        topic: TopicName::parse(topic).unwrap(),
        payload: bytes::Bytes::new(),
        qos,
        retain,
        properties: WillProperties::default(),
    };
    let with_will = |version, will| Connect {
        will: Some(will),
        ..connect(version)
    };
    for version in [Version::V311, Version::V5] {
        let fine = with_will(version, will(QoS::AtLeastOnce, false, "w"));
        assert_eq!(refusal(terms, fine), None);
        let qos = with_will(version, will(QoS::ExactlyOnce, false, "w"));
        assert_eq!(refusal(terms, qos), Some(ReasonCode::QosNotSupported));
        let retain = with_will(version, will(QoS::AtMostOnce, true, "w"));
        assert_eq!(refusal(terms, retain), Some(ReasonCode::RetainNotSupported));
        let deep = with_will(version, will(QoS::AtMostOnce, false, &"/".repeat(40)));
        assert_eq!(refusal(terms, deep), Some(ReasonCode::TopicNameInvalid));
    }
    let empty = |version, clean_start| Connect {
        clean_start,
        ..Connect::new(version, ClientId::default())
    };
    assert_eq!(refusal(terms, empty(Version::V311, true)), None);
    let code = refusal(terms, empty(Version::V311, false));
    assert_eq!(code, Some(ReasonCode::ClientIdentifierNotValid));
    assert_eq!(
        refusal(terms, empty(Version::V5, false)),
        None,
        "an id is assigned"
    );
    let mut method = connect(Version::V5);
    method.properties.authentication_method = Some(Utf8Bytes::from_static("GS2-KRB5"));
    assert_eq!(
        refusal(terms, method),
        Some(ReasonCode::BadAuthenticationMethod)
    );
}

#[test]
fn mqtt_3_4_a_refusal_is_told_in_the_clients_version() {
    let now = start();
    for (version, reason, wire) in [
        (
            Version::V311,
            ReasonCode::BadUserNameOrPassword,
            Some(&b"\x20\x02\x00\x04"[..]),
        ),
        (
            Version::V311,
            ReasonCode::QuotaExceeded,
            Some(b"\x20\x02\x00\x03"),
        ),
        (Version::V311, ReasonCode::Banned, None),
        (
            Version::V5,
            ReasonCode::Banned,
            Some(b"\x20\x03\x00\x8a\x00"),
        ),
        (
            Version::V5,
            ReasonCode::NotAuthorized,
            Some(b"\x20\x03\x00\x87\x00"),
        ),
    ] {
        let mut connection = Connection::new(Terms::default(), now);
        let packet = Packet::Connect(Box::new(connect(version)));
        let mut input = BytesMut::new();
        weida_mqtt::codec::Encoder::new(version)
            .encode(&packet, &mut input)
            .unwrap();
        connection.receive(&mut input, now).unwrap();
        let last = connection.close(reason);
        let mut output = BytesMut::new();
        if let Some(packet) = &last {
            connection.write(packet, &mut output).unwrap();
        }
        assert_eq!(last.map(|_| &output[..]), wire, "{version:?} {reason:?}");
        assert_eq!(connection.state(), "closing");
    }
}

#[test]
fn mqtt_3_1_other_levels_hear_the_form_they_read() {
    let now = start();
    for (input, answer) in [
        (
            &b"\x10\x0f\x00\x06MQIsdp\x03\x02\x00\x3c\x00\x01a"[..],
            Some(&b"\x20\x02\x00\x01"[..]),
        ),
        (
            b"\x10\x0e\x00\x04MQTT\x06\x02\x00\x3c\x00\x00\x01a",
            Some(b"\x20\x03\x00\x84\x00"),
        ),
        (b"\x10\x0d\x00\x04HTTP\x04\x02\x00\x3c\x00\x01a", None),
        (b"GET / HTTP/1.1\r\n\r\n", None),
    ] {
        let mut connection = Connection::new(Terms::default(), now);
        let violation = connection
            .receive(&mut BytesMut::from(input), now)
            .unwrap_err();
        let mut output = BytesMut::new();
        let last = connection.close(violation.reason_code());
        if let Some(packet) = &last {
            let version = connection.version().unwrap();
            weida_mqtt::codec::Encoder::new(version)
                .encode(packet, &mut output)
                .unwrap();
        }
        assert_eq!(last.map(|_| &output[..]), answer, "{input:?}");
    }
}

#[test]
fn pipelined_packets_wait_for_the_decision() {
    let now = start();
    let mut connection = Connection::new(Terms::default(), now);
    let mut input = BytesMut::from(&b"\x10\x0d\x00\x04MQTT\x04\x02\x00\x3c\x00\x01a\xc0\x00"[..]);
    assert!(matches!(
        connection.receive(&mut input, now),
        Ok(Some(Event::Connect(_)))
    ));
    assert_eq!(connection.receive(&mut input, now), Ok(None));
    assert_eq!(&input[..], b"\xc0\x00", "still there");
    connection.accept(Admission::default(), now);
    assert_eq!(
        connection.receive(&mut input, now),
        Ok(Some(Event::Answer(Packet::Pingresp)))
    );
}

#[test]
fn mqtt_3_4_switched_off_subscriptions_have_their_own_codes() {
    let code = |terms: Terms, filter: &str, id: Option<u32>| {
        let subscription = Subscription {
            filter: TopicFilter::from_text(Utf8Bytes::parse(filter).unwrap()),
            options: SubscribeOptions::default(),
        };
        let properties = SubscribeProperties {
            subscription_id: id.and_then(SubscriptionId::new),
            ..SubscribeProperties::default()
        };
        terms.refuse_subscription(&subscription, &properties)
    };
    let all = Terms::default();
    for (filter, id) in [("a", None), ("a/#", Some(1)), ("$share/g/+", None)] {
        assert_eq!(code(all, filter, id), None, "{filter}");
    }
    let none = Terms {
        shared_subscriptions: false,
        subscription_ids: false,
        wildcard_subscriptions: false,
        ..all
    };
    assert_eq!(code(none, "a", None), None);
    let shared = Some(ReasonCode::SharedSubscriptionsNotSupported);
    assert_eq!(code(none, "$share/g/a", None), shared);
    let ids = Some(ReasonCode::SubscriptionIdentifiersNotSupported);
    assert_eq!(code(none, "a", Some(1)), ids);
    let wildcards = Some(ReasonCode::WildcardSubscriptionsNotSupported);
    assert_eq!(code(none, "a/+", None), wildcards);
    let invalid = Some(ReasonCode::TopicFilterInvalid);
    assert_eq!(code(all, "a#", None), invalid);
    assert_eq!(
        code(all, &("a/".repeat(32) + "a"), None),
        invalid,
        "deeper than 32 levels"
    );
}
