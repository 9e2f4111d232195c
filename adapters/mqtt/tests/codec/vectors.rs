//! Golden packets of both versions: what they mean, how they are written, that every prefix needs more and that a byte
//! more is not swallowed.

use std::num::{NonZeroU16, NonZeroU32};

use bytes::{Bytes, BytesMut};
use weida_mqtt::codec::{
    Ack, AckProperties, Auth, AuthProperties, ClientId, Connack, ConnackProperties, Connect,
    ConnectProperties, Decoded, Decoder, Disconnect, DisconnectProperties, Encoder, Limits,
    MessageProperties, Packet, PacketId, PacketType, Password, Publish, PublishProperties, QoS,
    ReasonCode, Role, Suback, Subscribe, SubscribeFilters, SubscribeOptions, SubscribeProperties,
    SubscriptionId, TopicFilter, TopicName, Unsuback, Unsubscribe, UserName, UserProperties,
    Utf8Bytes, Version, Will, WillProperties,
};

use crate::generators::reader_of;
use crate::kit::{hex, open_decoder};

const FILE: &str = include_str!("../vectors/packets.hex");

struct Vector {
    id: &'static str,
    version: Version,
    sender: Role,
    bytes: Vec<u8>,
}

fn vectors() -> Vec<Vector> {
    FILE.lines()
        .filter(|line| !line.is_empty() && !line.starts_with("# ") && *line != "#")
        .map(|line| {
            let fields: Vec<_> = line.split(" | ").map(str::trim).collect();
            let [id, version, sender, bytes, origin] = fields[..] else {
                panic!("{line}")
            };
            assert!(!origin.is_empty(), "{id} has no origin");
            Vector {
                id,
                version: if version == "4" {
                    Version::V311
                } else {
                    Version::V5
                },
                sender: if sender == "client" {
                    Role::Client
                } else {
                    Role::Server
                },
                bytes: hex(bytes),
            }
        })
        .collect()
}

fn fresh_decoder(vector: &Vector) -> Decoder {
    if vector.id.starts_with("connect") {
        return Decoder::server(Limits::default());
    }
    open_decoder(reader_of(vector.sender), vector.version, Limits::default())
}

#[test]
fn golden_packets_mean_what_they_should() {
    for vector in vectors() {
        let mut buffer = BytesMut::from(&vector.bytes[..]);
        let decoded = fresh_decoder(&vector).decode(&mut buffer);
        assert_eq!(
            decoded,
            Ok(Decoded::Packet(expected(vector.id))),
            "{}",
            vector.id
        );
        assert!(buffer.is_empty(), "{}", vector.id);
    }
}

#[test]
fn golden_packets_are_written_byte_for_byte() {
    for vector in vectors() {
        let mut bytes = BytesMut::new();
        let encoder = Encoder::new(vector.version);
        let packet = expected(vector.id);
        assert_eq!(
            encoder.encode(&packet, &mut bytes),
            Ok(vector.bytes.len()),
            "{}",
            vector.id
        );
        assert_eq!(
            encoder.encoded_len(&packet),
            vector.bytes.len(),
            "{}",
            vector.id
        );
        assert_eq!(&bytes[..], &vector.bytes[..], "{}", vector.id);
    }
}

#[test]
fn every_prefix_of_a_golden_packet_needs_more() {
    for vector in vectors() {
        for length in 0..vector.bytes.len() {
            let mut prefix = BytesMut::from(&vector.bytes[..length]);
            let decoded = fresh_decoder(&vector).decode(&mut prefix);
            assert!(
                matches!(decoded, Ok(Decoded::NeedMore(_))),
                "{} at {length}",
                vector.id
            );
        }
    }
}

#[test]
fn one_byte_more_is_not_swallowed() {
    for vector in vectors() {
        let packet = expected(vector.id);
        // Behind the packet it stays for the next one.
        let mut buffer = BytesMut::from(&vector.bytes[..]);
        buffer.extend_from_slice(&[0xc0]);
        let decoded = fresh_decoder(&vector).decode(&mut buffer);
        assert_eq!(
            decoded,
            Ok(Decoded::Packet(packet.clone())),
            "{}",
            vector.id
        );
        assert_eq!(&buffer[..], &[0xc0], "{}", vector.id);
        // Inside the packet it is refused, or means something else.
        let mut longer = vector.bytes.clone();
        longer[1] += 1;
        longer.push(0xff);
        let decoded = fresh_decoder(&vector).decode(&mut BytesMut::from(&longer[..]));
        assert_ne!(decoded, Ok(Decoded::Packet(packet)), "{}", vector.id);
    }
}

#[test]
fn all_fifteen_packets_have_vectors_in_both_versions() {
    for packet in PacketType::ALL {
        for version in [Version::V311, Version::V5] {
            let has = vectors()
                .iter()
                .any(|v| v.version == version && expected(v.id).packet_type() == packet);
            let exists = packet != PacketType::Auth || version == Version::V5;
            assert_eq!(has, exists, "{packet} in {version:?}");
        }
    }
}

fn id() -> PacketId {
    PacketId::new(10).unwrap()
}

fn text(text: &str) -> Utf8Bytes {
    Utf8Bytes::parse(text).unwrap()
}

fn filter(text: &str) -> TopicFilter {
    TopicFilter::parse(text).unwrap()
}

fn connect(version: Version) -> Connect {
    Connect {
        keep_alive_secs: 10,
        user_name: Some(UserName::parse("me").unwrap()),
        password: Some(Password::new(Bytes::from_static(b"pwd"))),
        will: Some(Will {
            topic: TopicName::parse("w/t").unwrap(),
            payload: Bytes::from_static(b"bye"),
            qos: QoS::AtLeastOnce,
            retain: false,
            properties: WillProperties::default(),
        }),
        ..Connect::new(version, ClientId::parse("cid").unwrap())
    }
}

fn publish() -> Publish {
    Publish {
        qos: QoS::AtLeastOnce,
        topic: TopicName::parse("a/b").unwrap(),
        packet_id: Some(id()),
        payload: Bytes::from_static(b"hi"),
        ..Publish::default()
    }
}

fn subscribe(properties: SubscribeProperties, filters: &[(&str, SubscribeOptions)]) -> Packet {
    let filters = filters
        .iter()
        .map(|(text, options)| (filter(text), *options));
    Packet::Subscribe(Subscribe {
        packet_id: id(),
        properties,
        filters: SubscribeFilters::from_iter(filters),
    })
}

fn expected_connect_5() -> Packet {
    let mut connect = connect(Version::V5);
    connect.properties = ConnectProperties {
        session_expiry_secs: Some(10),
        ..ConnectProperties::default()
    };
    let will = connect.will.as_mut().unwrap();
    will.properties = WillProperties {
        delay_secs: Some(5),
        message: MessageProperties {
            content_type: Some(text("text")),
            ..MessageProperties::default()
        },
    };
    Packet::Connect(Box::new(connect))
}

fn expected_retransmission() -> Packet {
    let mut user_properties = UserProperties::default();
    user_properties.push(&text("k"), &text("v1"));
    Packet::Publish(Publish {
        dup: true,
        qos: QoS::ExactlyOnce,
        retain: true,
        properties: PublishProperties {
            topic_alias: NonZeroU16::new(7),
            message: MessageProperties {
                payload_is_utf8: Some(true),
                message_expiry_secs: Some(60),
                user_properties,
                ..MessageProperties::default()
            },
            ..PublishProperties::default()
        },
        ..publish()
    })
}

fn expected_to_subscriber() -> Packet {
    let ids = [1, 16_384].map(|id| SubscriptionId::new(id).unwrap());
    Packet::Publish(Publish {
        qos: QoS::AtMostOnce,
        packet_id: None,
        retain: true,
        properties: PublishProperties {
            subscription_ids: ids.into_iter().collect(),
            ..PublishProperties::default()
        },
        ..publish()
    })
}

fn expected_connack_5() -> Packet {
    Packet::Connack(Box::new(Connack {
        properties: ConnackProperties {
            receive_maximum: NonZeroU16::new(64),
            maximum_qos: Some(QoS::AtLeastOnce),
            maximum_packet_bytes: NonZeroU32::new(1_114_112),
            topic_alias_maximum: Some(16),
            retain_available: Some(false),
            ..ConnackProperties::default()
        },
        ..Connack::default()
    }))
}

fn expected_auth() -> Packet {
    Packet::Auth(Auth {
        reason: ReasonCode::ContinueAuthentication,
        properties: AuthProperties {
            method: Some(text("SCRAM-SHA-256")),
            data: Some(Bytes::from_static(b"c1")),
            ..AuthProperties::default()
        },
    })
}

fn expected(vector: &str) -> Packet {
    let ack = |reason| Ack::new(id(), reason);
    let ok = || ack(ReasonCode::Success);
    let empty = AckProperties::default;
    let plain = SubscribeProperties::default;
    let one = SubscribeOptions::new(QoS::AtLeastOnce);
    let two = SubscribeOptions::new(QoS::ExactlyOnce);
    match vector {
        "connect_3_1_1" => Packet::Connect(Box::new(connect(Version::V311))),
        "connect_5" => expected_connect_5(),
        "connack_3_1_1" => Packet::Connack(Box::new(Connack {
            session_present: true,
            ..Connack::default()
        })),
        "connack_3_1_1_refused" => {
            Packet::Connack(Box::new(Connack::refusal(ReasonCode::NotAuthorized)))
        }
        "connack_5" => expected_connack_5(),
        "publish_3_1_1" | "publish_5" => Packet::Publish(publish()),
        "publish_5_retransmitted" => expected_retransmission(),
        "publish_5_to_subscriber" => expected_to_subscriber(),
        "puback_3_1_1" | "puback_5_success" => Packet::PubAck(ok()),
        "puback_5_no_subscribers" => Packet::PubAck(ack(ReasonCode::NoMatchingSubscribers)),
        "puback_5_with_reason_string" => Packet::PubAck(Ack {
            properties: AckProperties {
                reason_string: Some(text("full")),
                ..empty()
            },
            ..ack(ReasonCode::QuotaExceeded)
        }),
        "pubrec_3_1_1" => Packet::PubRec(ok()),
        "pubrec_5" => Packet::PubRec(ack(ReasonCode::NotAuthorized)),
        "pubrel_3_1_1" => Packet::PubRel(ok()),
        "pubrel_5" => Packet::PubRel(ack(ReasonCode::PacketIdentifierNotFound)),
        "pubcomp_3_1_1" | "pubcomp_5" => Packet::PubComp(ok()),
        "subscribe_3_1_1" | "subscribe_5" => subscribe(plain(), &[("a/b", one), ("c/d", two)]),
        "subscribe_5_with_options" => subscribe(
            SubscribeProperties {
                subscription_id: SubscriptionId::new(5),
                ..plain()
            },
            &[(
                "$share/g/#",
                SubscribeOptions {
                    retain_as_published: true,
                    retain_handling: weida_mqtt::codec::RetainHandling::SendIfNew,
                    ..one
                },
            )],
        ),
        "suback_3_1_1" => Packet::Suback(Suback {
            packet_id: id(),
            properties: empty(),
            codes: vec![
                ReasonCode::GrantedQos1,
                ReasonCode::GrantedQos2,
                ReasonCode::UnspecifiedError,
            ],
        }),
        "suback_5" => Packet::Suback(Suback {
            packet_id: id(),
            properties: empty(),
            codes: vec![
                ReasonCode::GrantedQos1,
                ReasonCode::TopicFilterInvalid,
                ReasonCode::NotAuthorized,
            ],
        }),
        "unsubscribe_3_1_1" | "unsubscribe_5" => Packet::Unsubscribe(Unsubscribe {
            packet_id: id(),
            user_properties: UserProperties::default(),
            filters: [filter("a/b"), filter("c/d")].into_iter().collect(),
        }),
        "unsuback_3_1_1" => Packet::Unsuback(Unsuback {
            packet_id: id(),
            properties: empty(),
            codes: Vec::new(),
        }),
        "unsuback_5" => Packet::Unsuback(Unsuback {
            packet_id: id(),
            properties: empty(),
            codes: vec![ReasonCode::Success, ReasonCode::NoSubscriptionExisted],
        }),
        "pingreq_3_1_1" | "pingreq_5" => Packet::Pingreq,
        "pingresp_3_1_1" | "pingresp_5" => Packet::Pingresp,
        "disconnect_3_1_1" | "disconnect_5_normal" => Packet::Disconnect(Disconnect::default()),
        "disconnect_5_with_will" => {
            Packet::Disconnect(Disconnect::new(ReasonCode::DisconnectWithWill))
        }
        "disconnect_5_taken_over" => {
            Packet::Disconnect(Disconnect::new(ReasonCode::SessionTakenOver))
        }
        "disconnect_5_with_expiry" => Packet::Disconnect(Disconnect {
            properties: DisconnectProperties {
                session_expiry_secs: Some(120),
                ..DisconnectProperties::default()
            },
            ..Disconnect::default()
        }),
        "auth_5" => expected_auth(),
        "auth_5_success" => Packet::Auth(Auth::default()),
        other => panic!("no meaning written down for {other}"),
    }
}
