//! Any packet that may legally be sent, by version and sender.

use std::num::{NonZeroU16, NonZeroU32};

use bytes::Bytes;
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::select;
use weida_mqtt::codec::{
    Ack, AckProperties, Auth, AuthProperties, ClientId, Connack, ConnackProperties, Connect,
    ConnectProperties, Disconnect, DisconnectProperties, MessageProperties, Packet, PacketId,
    PacketType, Password, Publish, PublishProperties, QoS, ReasonCode, RetainHandling, Role,
    Suback, Subscribe, SubscribeFilters, SubscribeOptions, SubscribeProperties, SubscriptionId,
    TopicFilter, TopicName, Unsuback, Unsubscribe, UserName, UserProperties, Utf8Bytes, Version,
    Will, WillProperties,
};

fn text() -> impl Strategy<Value = Utf8Bytes> {
    "[a-zA-Z0-9 ./éß→😀-]{0,24}".prop_map(|text| Utf8Bytes::parse(&text).unwrap())
}

fn binary() -> impl Strategy<Value = Bytes> {
    vec(any::<u8>(), 0..40).prop_map(Bytes::from)
}

fn payload() -> impl Strategy<Value = Bytes> {
    prop_oneof![vec(any::<u8>(), 0..40), vec(any::<u8>(), 100..300)].prop_map(Bytes::from)
}

fn topic() -> impl Strategy<Value = TopicName> {
    "[a-z/é$]{1,20}".prop_map(|text| TopicName::parse(&text).unwrap())
}

fn filter() -> impl Strategy<Value = TopicFilter> {
    select(vec![
        "a",
        "a/+/b",
        "#",
        "+",
        "$SYS/#",
        "énergie/+/#",
        "$share/g/a/#",
        "/",
        "a//b",
    ])
    .prop_map(|text| TopicFilter::parse(text).unwrap())
}

fn qos() -> impl Strategy<Value = QoS> {
    select(vec![QoS::AtMostOnce, QoS::AtLeastOnce, QoS::ExactlyOnce])
}

fn packet_id() -> impl Strategy<Value = PacketId> {
    (1u16..).prop_map(|id| PacketId::new(id).unwrap())
}

fn subscription_id() -> impl Strategy<Value = SubscriptionId> {
    (1u32..=268_435_455).prop_map(|id| SubscriptionId::new(id).unwrap())
}

fn reason(packet: PacketType, sender: Role) -> impl Strategy<Value = ReasonCode> {
    let legal: Vec<_> = ReasonCode::ALL
        .iter()
        .copied()
        .filter(|code| code.may_stand_in(packet, sender))
        .collect();
    select(legal)
}

fn user_properties() -> impl Strategy<Value = UserProperties> {
    vec((text(), text()), 0..3).prop_map(|pairs| {
        let mut properties = UserProperties::default();
        for (name, value) in &pairs {
            properties.push(name, value);
        }
        properties
    })
}

fn nonzero16() -> impl Strategy<Value = NonZeroU16> {
    (1u16..).prop_map(|n| NonZeroU16::new(n).unwrap())
}

fn nonzero32() -> impl Strategy<Value = NonZeroU32> {
    (1u32..).prop_map(|n| NonZeroU32::new(n).unwrap())
}

fn message_properties() -> impl Strategy<Value = MessageProperties> {
    (
        of(any::<bool>()),
        of(any::<u32>()),
        of(text()),
        of(topic()),
        of(binary()),
        user_properties(),
    )
        .prop_map(
            |(payload_is_utf8, expiry, content_type, response, correlation, user)| {
                MessageProperties {
                    payload_is_utf8,
                    message_expiry_secs: expiry,
                    content_type,
                    response_topic: response,
                    correlation_data: correlation,
                    user_properties: user,
                }
            },
        )
}

fn publish(version: Version, sender: Role) -> impl Strategy<Value = Packet> {
    let properties = (
        of(nonzero16()),
        vec(subscription_id(), 0..3),
        message_properties(),
    )
        .prop_map(move |(topic_alias, ids, message)| match version {
            Version::V311 => PublishProperties::default(),
            Version::V5 => PublishProperties {
                topic_alias,
                subscription_ids: match sender {
                    Role::Server => ids.into_iter().collect(),
                    Role::Client => [].into_iter().collect(),
                },
                message,
            },
        });
    (
        any::<bool>(),
        qos(),
        any::<bool>(),
        topic(),
        packet_id(),
        properties,
        payload(),
    )
        .prop_map(|(dup, qos, retain, topic, id, properties, payload)| {
            Packet::Publish(Publish {
                dup: dup && qos != QoS::AtMostOnce,
                qos,
                retain,
                topic,
                packet_id: (qos != QoS::AtMostOnce).then_some(id),
                properties,
                payload,
            })
        })
}

fn will(version: Version) -> impl Strategy<Value = Will> {
    (
        topic(),
        binary(),
        qos(),
        any::<bool>(),
        of(any::<u32>()),
        message_properties(),
    )
        .prop_map(
            move |(topic, payload, qos, retain, delay_secs, message)| Will {
                topic,
                payload,
                qos,
                retain,
                properties: match version {
                    Version::V311 => WillProperties::default(),
                    Version::V5 => WillProperties {
                        delay_secs,
                        message,
                    },
                },
            },
        )
}

fn connect_properties() -> impl Strategy<Value = ConnectProperties> {
    (
        of(any::<u32>()),
        of(nonzero16()),
        of(nonzero32()),
        of(any::<u16>()),
        of(any::<bool>()),
        of(any::<bool>()),
        of((text(), of(binary()))),
        user_properties(),
    )
        .prop_map(
            |(expiry, receive, size, alias, response, problem, auth, user)| {
                let (method, data) = auth.unzip();
                ConnectProperties {
                    session_expiry_secs: expiry,
                    receive_maximum: receive,
                    maximum_packet_bytes: size,
                    topic_alias_maximum: alias,
                    request_response_information: response,
                    request_problem_information: problem,
                    authentication_method: method,
                    authentication_data: data.flatten(),
                    user_properties: user,
                }
            },
        )
}

pub(crate) fn connect(version: Version) -> impl Strategy<Value = Packet> {
    let login = of((text(), of(binary())));
    (
        any::<bool>(),
        any::<u16>(),
        text(),
        of(will(version)),
        login,
        connect_properties(),
    )
        .prop_map(
            move |(clean_start, keep_alive_secs, id, will, login, properties)| {
                let (user, password) = login.unzip();
                Packet::Connect(Box::new(Connect {
                    version,
                    clean_start,
                    keep_alive_secs,
                    client_id: ClientId::parse(id.as_str()).unwrap(),
                    will,
                    user_name: user.map(|user| UserName::parse(user.as_str()).unwrap()),
                    password: password.flatten().map(Password::new),
                    properties: match version {
                        Version::V311 => ConnectProperties::default(),
                        Version::V5 => properties,
                    },
                }))
            },
        )
}

fn connack_properties() -> impl Strategy<Value = ConnackProperties> {
    let numbers = (
        of(any::<u32>()),
        of(nonzero16()),
        of(nonzero32()),
        of(any::<u16>()),
        of(any::<u16>()),
        of(select(vec![QoS::AtMostOnce, QoS::AtLeastOnce])),
    );
    let flags = (
        of(any::<bool>()),
        of(any::<bool>()),
        of(any::<bool>()),
        of(any::<bool>()),
    );
    let texts = (
        of(text()),
        of(text()),
        of(text()),
        of(text()),
        of((text(), of(binary()))),
    );
    (numbers, flags, texts, user_properties()).prop_map(|(numbers, flags, texts, user)| {
        let (method, data) = texts.4.unzip();
        ConnackProperties {
            session_expiry_secs: numbers.0,
            receive_maximum: numbers.1,
            maximum_qos: numbers.5,
            retain_available: flags.0,
            maximum_packet_bytes: numbers.2,
            assigned_client_id: texts.0.map(|id| ClientId::parse(id.as_str()).unwrap()),
            topic_alias_maximum: numbers.3,
            reason_string: texts.1,
            wildcard_subscription_available: flags.1,
            subscription_id_available: flags.2,
            shared_subscription_available: flags.3,
            server_keep_alive_secs: numbers.4,
            response_information: texts.2,
            server_reference: texts.3,
            authentication_method: method,
            authentication_data: data.flatten(),
            user_properties: user,
        }
    })
}

fn connack(version: Version) -> impl Strategy<Value = Packet> {
    let v4 = select(vec![
        ReasonCode::Success,
        ReasonCode::UnsupportedProtocolVersion,
        ReasonCode::ClientIdentifierNotValid,
        ReasonCode::ServerUnavailable,
        ReasonCode::BadUserNameOrPassword,
        ReasonCode::NotAuthorized,
    ]);
    let v5 = reason(PacketType::Connack, Role::Server);
    (any::<bool>(), v4, v5, connack_properties()).prop_map(move |(present, v4, v5, properties)| {
        let (reason, properties) = match version {
            Version::V311 => (v4, ConnackProperties::default()),
            Version::V5 => (v5, properties),
        };
        Packet::Connack(Box::new(Connack {
            session_present: present && reason == ReasonCode::Success,
            reason,
            properties,
        }))
    })
}

fn ack_properties(version: Version) -> impl Strategy<Value = AckProperties> {
    (of(text()), user_properties()).prop_map(
        move |(reason_string, user_properties)| match version {
            Version::V311 => AckProperties::default(),
            Version::V5 => AckProperties {
                reason_string,
                user_properties,
            },
        },
    )
}

fn ack(version: Version, packet: PacketType, wrap: fn(Ack) -> Packet) -> BoxedStrategy<Packet> {
    (
        packet_id(),
        reason(packet, Role::Server),
        ack_properties(version),
    )
        .prop_map(move |(packet_id, reason, properties)| {
            let reason = if version.is_v5() {
                reason
            } else {
                ReasonCode::Success
            };
            wrap(Ack {
                packet_id,
                reason,
                properties,
            })
        })
        .boxed()
}

fn subscribe(version: Version) -> impl Strategy<Value = Packet> {
    let handling = select(vec![
        RetainHandling::Send,
        RetainHandling::SendIfNew,
        RetainHandling::DoNotSend,
    ]);
    let one = (filter(), qos(), any::<bool>(), any::<bool>(), handling).prop_map(
        move |(filter, max_qos, no_local, retain_as_published, retain_handling)| {
            let options = match version {
                Version::V311 => SubscribeOptions::new(max_qos),
                Version::V5 => SubscribeOptions {
                    max_qos,
                    no_local: no_local && !filter.is_shared(),
                    retain_as_published,
                    retain_handling,
                },
            };
            (filter, options)
        },
    );
    (
        packet_id(),
        of(subscription_id()),
        user_properties(),
        vec(one, 1..4),
    )
        .prop_map(
            move |(packet_id, subscription_id, user_properties, filters)| {
                Packet::Subscribe(Subscribe {
                    packet_id,
                    properties: match version {
                        Version::V311 => SubscribeProperties::default(),
                        Version::V5 => SubscribeProperties {
                            subscription_id,
                            user_properties,
                        },
                    },
                    filters: SubscribeFilters::from_iter(filters),
                })
            },
        )
}

fn suback(version: Version) -> impl Strategy<Value = Packet> {
    let v4 = select(vec![
        ReasonCode::Success,
        ReasonCode::GrantedQos1,
        ReasonCode::GrantedQos2,
        ReasonCode::UnspecifiedError,
    ]);
    let code = match version {
        Version::V311 => v4.boxed(),
        Version::V5 => reason(PacketType::Suback, Role::Server).boxed(),
    };
    (packet_id(), ack_properties(version), vec(code, 1..5)).prop_map(
        |(packet_id, properties, codes)| {
            Packet::Suback(Suback {
                packet_id,
                properties,
                codes,
            })
        },
    )
}

fn unsubscribe(version: Version) -> impl Strategy<Value = Packet> {
    (packet_id(), user_properties(), vec(filter(), 1..4)).prop_map(
        move |(packet_id, user_properties, filters)| {
            Packet::Unsubscribe(Unsubscribe {
                packet_id,
                user_properties: match version {
                    Version::V311 => UserProperties::default(),
                    Version::V5 => user_properties,
                },
                filters: filters.into_iter().collect(),
            })
        },
    )
}

fn unsuback(version: Version) -> impl Strategy<Value = Packet> {
    let codes = vec(reason(PacketType::Unsuback, Role::Server), 1..5);
    (packet_id(), ack_properties(version), codes).prop_map(move |(packet_id, properties, codes)| {
        let codes = if version.is_v5() { codes } else { Vec::new() };
        Packet::Unsuback(Unsuback {
            packet_id,
            properties,
            codes,
        })
    })
}

fn disconnect(version: Version, sender: Role) -> impl Strategy<Value = Packet> {
    let reason = reason(PacketType::Disconnect, sender);
    (
        reason,
        of(any::<u32>()),
        of(text()),
        of(text()),
        user_properties(),
    )
        .prop_map(
            move |(reason, expiry, reason_string, server_reference, user_properties)| {
                if version == Version::V311 {
                    return Packet::Disconnect(Disconnect::default());
                }
                Packet::Disconnect(Disconnect {
                    reason,
                    properties: DisconnectProperties {
                        session_expiry_secs: expiry.filter(|_| sender == Role::Client),
                        reason_string,
                        server_reference: server_reference.filter(|_| sender == Role::Server),
                        user_properties,
                    },
                })
            },
        )
}

fn auth(sender: Role) -> impl Strategy<Value = Packet> {
    let reason = reason(PacketType::Auth, sender);
    (reason, text(), of(binary()), of(text()), user_properties()).prop_map(
        |(reason, method, data, reason_string, user_properties)| {
            Packet::Auth(Auth {
                reason,
                properties: AuthProperties {
                    method: Some(method),
                    data,
                    reason_string,
                    user_properties,
                },
            })
        },
    )
}

/// Any packet but CONNECT that `sender` may send.
pub(crate) fn any_packet(version: Version, sender: Role) -> BoxedStrategy<Packet> {
    let both = prop_oneof![
        4 => publish(version, sender),
        1 => ack(version, PacketType::PubAck, Packet::PubAck),
        1 => ack(version, PacketType::PubRec, Packet::PubRec),
        1 => ack(version, PacketType::PubRel, Packet::PubRel),
        1 => ack(version, PacketType::PubComp, Packet::PubComp),
    ];
    let one_sided = match sender {
        Role::Client => prop_oneof![
            subscribe(version),
            unsubscribe(version),
            Just(Packet::Pingreq),
            disconnect(version, sender),
        ]
        .boxed(),
        Role::Server => prop_oneof![
            connack(version),
            suback(version),
            unsuback(version),
            Just(Packet::Pingresp),
        ]
        .boxed(),
    };
    match version {
        Version::V311 => prop_oneof![both, one_sided].boxed(),
        Version::V5 => prop_oneof![
            6 => both,
            4 => one_sided,
            1 => auth(sender),
            1 => disconnect(version, sender),
        ]
        .boxed(),
    }
}

/// A version, a sender, and what it sends.
pub(crate) fn any_traffic(max: usize) -> impl Strategy<Value = (Version, Role, Vec<Packet>)> {
    let version = select(vec![Version::V311, Version::V5]);
    let sender = select(vec![Role::Client, Role::Server]);
    (version, sender).prop_flat_map(move |(version, sender)| {
        let packets = vec(any_packet(version, sender), 1..max);
        (Just(version), Just(sender), packets)
    })
}

/// Who reads what `sender` wrote.
pub(crate) fn reader_of(sender: Role) -> Role {
    match sender {
        Role::Client => Role::Server,
        Role::Server => Role::Client,
    }
}
