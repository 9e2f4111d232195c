//! Every packet in every state, compared with a table that is checked in: a changed rule is a visible difference.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use weida_mqtt::codec::{
    Ack, Auth, Disconnect, Packet, QoS, ReasonCode, Suback, Subscribe, SubscribeFilters,
    SubscribeOptions, SubscribeProperties, TopicFilter, Unsuback, Unsubscribe, UserProperties,
    Version,
};
use weida_mqtt::state::{Admission, Connection, Event, Terms};

use crate::kit::{connect, id, publish, start};

const TABLE: &str = include_str!("../vectors/connection.matrix");

fn in_state(state: &str, version: Version, now: Instant) -> Connection {
    let mut connection = Connection::new(Terms::default(), now + Duration::from_secs(5));
    if state == "await-connect" {
        return connection;
    }
    connection
        .on_packet(Packet::Connect(Box::new(connect(version))), now)
        .unwrap();
    if state != "deciding" {
        connection.accept(Admission::default(), now);
    }
    if state == "closing" {
        connection.close(ReasonCode::Success);
    }
    connection
}

fn packets(version: Version) -> Vec<Packet> {
    let ack = || Ack::new(id(1), ReasonCode::Success);
    let filter = || TopicFilter::parse("a").unwrap();
    let options = SubscribeOptions::new(QoS::AtLeastOnce);
    vec![
        Packet::Connect(Box::new(connect(version))),
        Packet::Connack(Box::default()),
        Packet::Publish(publish("a", QoS::AtLeastOnce, Some(1))),
        Packet::PubAck(ack()),
        Packet::PubRec(ack()),
        Packet::PubRel(ack()),
        Packet::PubComp(ack()),
        Packet::Subscribe(Subscribe {
            packet_id: id(1),
            properties: SubscribeProperties::default(),
            filters: SubscribeFilters::from_iter([(filter(), options)]),
        }),
        Packet::Suback(Suback {
            packet_id: id(1),
            properties: ack().properties,
            codes: vec![ReasonCode::Success],
        }),
        Packet::Unsubscribe(Unsubscribe {
            packet_id: id(1),
            user_properties: UserProperties::default(),
            filters: [filter()].into_iter().collect(),
        }),
        Packet::Unsuback(Unsuback {
            packet_id: id(1),
            properties: ack().properties,
            codes: vec![ReasonCode::Success],
        }),
        Packet::Pingreq,
        Packet::Pingresp,
        Packet::Disconnect(Disconnect::default()),
        Packet::Auth(Auth::default()),
    ]
}

fn describe(event: &Event) -> String {
    match event {
        Event::Answer(packet) => format!("answer {}", packet.packet_type()),
        Event::Connect(_) => "connect".into(),
        Event::Publish(_) => "publish".into(),
        Event::Acknowledged { .. } => "acknowledged".into(),
        Event::Subscribe(_) => "subscribe".into(),
        Event::Unsubscribe(_) => "unsubscribe".into(),
        Event::Unmatched { .. } => "unmatched".into(),
        Event::Disconnect(_) => "disconnect".into(),
        other => format!("{other:?}"),
    }
}

#[test]
fn every_packet_in_every_state_does_what_the_table_says() {
    let now = start();
    let mut table = String::new();
    for state in ["await-connect", "deciding", "connected", "closing"] {
        for packet in packets(Version::V5) {
            let mut connection = in_state(state, Version::V5, now);
            assert_eq!(connection.state(), state);
            let name = packet.packet_type().to_string();
            let result = match connection.on_packet(packet, now) {
                Ok(event) => describe(&event),
                Err(violation) => {
                    format!(
                        "{:#04x} {}",
                        violation.reason_code().code(),
                        violation.rule()
                    )
                }
            };
            let then = connection.state();
            writeln!(table, "{state:13} {name:11} -> {then:13} {result}").unwrap();
        }
        let far = now + Duration::from_secs(100_000);
        let mut connection = in_state(state, Version::V5, now);
        let due = connection
            .on_timeout(far)
            .map_or("nothing", |violation| violation.rule());
        writeln!(table, "{state:13} {:11} -> {state:13} {due}", "timeout").unwrap();
        let last = connection.close(ReasonCode::NotAuthorized);
        let last = last.map_or_else(
            || "nothing".into(),
            |packet| packet.packet_type().to_string(),
        );
        let then = connection.state();
        writeln!(table, "{state:13} {:11} -> {then:13} {last}", "close").unwrap();
        let mut connection = in_state(state, Version::V5, now);
        let Packet::Connack(connack) = connection.accept(Admission::default(), now) else {
            panic!()
        };
        let (then, code) = (connection.state(), connack.reason.code());
        writeln!(
            table,
            "{state:13} {:11} -> {then:13} CONNACK {code:#04x}",
            "accept"
        )
        .unwrap();
    }
    assert_eq!(table, TABLE, "the transition table changed:\n{table}");
}
