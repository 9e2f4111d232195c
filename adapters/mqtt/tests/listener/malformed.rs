//! Malformed and illegal packets over a socket: the standard's code, then the close. Each row
//! comes after its valid neighbour on the same connection. [mqtt 3.5]

use weida_mqtt::codec::{ReasonCode, Version};

use crate::common::{Client, World};

const MALFORMED: Option<ReasonCode> = Some(ReasonCode::MalformedPacket);
const PROTOCOL: Option<ReasonCode> = Some(ReasonCode::ProtocolError);

/// Sends each row to a fresh connection that first showed that it is alive.
async fn reject(rows: &[(&str, &str, Option<ReasonCode>)]) {
    let world = World::local().await;
    for (name, hex, code) in rows {
        let mut v5 = world.client("v5").await;
        v5.ping().await;
        v5.send_hex(hex).await;
        assert_eq!(v5.closed().await, *code, "{name} in 5.0");
    }
    crate::common::eventually("every session ended", || world.metrics.sessions.get() == 0).await;
}

/// 3.1.1 hears nothing.
async fn reject_v4(rows: &[(&str, &str)]) {
    let world = World::local().await;
    for (name, hex) in rows {
        let mut v4 = world.client_v4("v4").await;
        v4.ping().await;
        v4.send_hex(hex).await;
        assert_eq!(v4.closed().await, None, "{name} in 3.1.1");
    }
    crate::common::eventually("every session ended", || world.metrics.sessions.get() == 0).await;
}

#[tokio::test]
async fn mqtt_3_5_01_lengths_that_are_none() {
    reject(&[
        ("five length bytes", "30 ff ff ff ff 01", MALFORMED),
        ("non-minimal length", "c0 80 00", MALFORMED),
        (
            "non-minimal property length",
            "30 06 0001 78 80 00 21",
            MALFORMED,
        ),
    ])
    .await;
    reject_v4(&[("non-minimal length", "c0 80 00")]).await;
}

#[tokio::test]
async fn mqtt_3_5_02_a_packet_above_our_maximum_is_never_read() {
    reject(&[(
        "2 MiB announced",
        "30 80 80 80 01",
        Some(ReasonCode::PacketTooLarge),
    )])
    .await;
}

#[tokio::test]
async fn mqtt_3_5_03_reserved_flags() {
    reject(&[
        ("PINGREQ", "c1 00", MALFORMED),
        ("SUBSCRIBE", "80 07 0001 00 0001 78 00", MALFORMED),
        ("UNSUBSCRIBE", "a0 06 0001 00 0001 78", MALFORMED),
        ("PUBACK", "41 02 0001", MALFORMED),
        ("PUBREL", "60 02 0001", MALFORMED),
        ("DISCONNECT", "e1 00", MALFORMED),
    ])
    .await;
}

#[tokio::test]
async fn mqtt_3_5_04_reserved_types() {
    reject(&[("type 0", "00 00", MALFORMED)]).await;
    reject_v4(&[("type 0", "00 00"), ("AUTH", "f0 00")]).await;
}

#[tokio::test]
async fn mqtt_3_5_05_packets_shorter_or_longer_than_their_fields() {
    reject(&[
        ("PINGREQ with a body", "c0 01 00", MALFORMED),
        ("topic longer than the packet", "30 03 0005 78", MALFORMED),
        ("PUBACK of one byte", "40 01 00", MALFORMED),
    ])
    .await;
}

#[tokio::test]
async fn mqtt_3_5_07_connect_twice() {
    let again = "10 0e 0004 4d515454 05 02 003c 00 0001 61";
    reject(&[("second CONNECT", again, PROTOCOL)]).await;
    let world = World::local().await;
    let mut early = Client::open(world.addr, Version::V5).await;
    early.send_hex("c0 00").await;
    assert_eq!(early.closed().await, None, "a packet before CONNECT");
}

#[tokio::test]
async fn mqtt_3_5_08_09_strings_that_are_none() {
    reject(&[
        ("not UTF-8", "30 05 0002 c328 00", MALFORMED),
        ("surrogate", "30 06 0003 eda080 00", MALFORMED),
        ("NUL", "30 04 0001 00 00", MALFORMED),
        ("control character", "30 04 0001 01 00", MALFORMED),
    ])
    .await;
}

#[tokio::test]
async fn mqtt_3_5_10_11_properties_out_of_place() {
    reject(&[
        ("unknown", "30 06 0001 78 02 7f 00", MALFORMED),
        ("misplaced", "30 09 0001 78 05 11 00000001", MALFORMED),
        ("past the packet", "30 05 0001 78 7f 01", MALFORMED),
        ("repeated", "30 08 0001 78 04 0100 0100", PROTOCOL),
        ("not a boolean", "30 06 0001 78 02 0102", PROTOCOL),
    ])
    .await;
}

#[tokio::test]
async fn mqtt_3_5_12_13_14_publish_flags_and_identifier() {
    reject(&[
        ("QoS 3", "36 06 0001 78 0001 00", MALFORMED),
        ("DUP with QoS 0", "38 04 0001 78 00", MALFORMED),
        ("identifier 0", "32 06 0001 78 0000 00", MALFORMED),
    ])
    .await;
    reject_v4(&[
        ("QoS 3", "36 05 0001 78 0001"),
        ("identifier 0", "32 05 0001 78 0000"),
    ])
    .await;
}

#[tokio::test]
async fn mqtt_3_5_15_16_topics_that_are_none() {
    let invalid = Some(ReasonCode::TopicNameInvalid);
    reject(&[
        ("wildcard topic", "30 04 0001 2b 00", invalid),
        ("empty topic", "30 03 0000 00", PROTOCOL),
        (
            "wildcard response topic",
            "30 08 0001 78 04 08 0001 23",
            PROTOCOL,
        ),
    ])
    .await;
    reject_v4(&[("wildcard topic", "30 03 0001 2b")]).await;
}

#[tokio::test]
async fn mqtt_3_5_17_18_aliases_and_identifiers_of_a_client() {
    let invalid = Some(ReasonCode::TopicAliasInvalid);
    reject(&[
        ("alias 0", "30 07 0001 78 03 23 0000", invalid),
        ("alias above ours", "30 07 0001 78 03 23 0011", invalid),
        ("alias never set", "30 06 0000 03 23 0001", PROTOCOL),
        ("subscription identifier", "30 06 0001 78 02 0b01", PROTOCOL),
    ])
    .await;
}

#[tokio::test]
async fn mqtt_3_5_20_22_subscribe_without_sense() {
    reject(&[
        ("no filter", "82 03 0001 00", PROTOCOL),
        ("option bits", "82 07 0001 00 0001 78 c0", MALFORMED),
        ("QoS 3", "82 07 0001 00 0001 78 03", MALFORMED),
        ("Retain Handling 3", "82 07 0001 00 0001 78 30", PROTOCOL),
        (
            "shared with No Local",
            "82 0e 0001 00 0008 2473686172652f67 2f78 04",
            MALFORMED,
        ),
    ])
    .await;
}

#[tokio::test]
async fn mqtt_3_5_23_24_packets_of_the_other_side() {
    reject(&[
        ("PUBACK identifier 0", "40 02 0000", MALFORMED),
        ("PUBACK with a foreign code", "40 03 0001 8e", PROTOCOL),
        ("CONNACK", "20 03 00 00 00", PROTOCOL),
        ("SUBACK", "90 04 0001 00 00", PROTOCOL),
        ("UNSUBACK", "b0 04 0001 00 00", PROTOCOL),
        ("PINGRESP", "d0 00", PROTOCOL),
    ])
    .await;
}

#[tokio::test]
async fn mqtt_3_5_25_26_disconnect() {
    reject(&[(
        "raises the expiry from 0",
        "e0 07 00 05 11 00000001",
        PROTOCOL,
    )])
    .await;
    let world = World::local().await;
    let mut client = world.client("c").await;
    client.send_hex("e0 00 ff ff ff ff").await;
    assert_eq!(
        client.closed().await,
        None,
        "bytes behind DISCONNECT are nobody's"
    );
    crate::common::eventually("it counts as a goodbye", || {
        world
            .metrics
            .closed(weida_mqtt::metrics::Closed::Client)
            .get()
            == 1
    })
    .await;
}

/// CVE-2019-11779 class: depth is capped before anything walks it. [mqtt 18 #46]
#[tokio::test]
async fn mqtt_18_46_a_topic_of_65_k_slashes_is_refused() {
    let world = World::local().await;
    let mut client = world.client("c").await;
    assert_eq!(
        client.publish_acked(&"a/".repeat(15), b"").await,
        ReasonCode::NoMatchingSubscribers
    );
    for slashes in [40, 2000, 65_000] {
        let code = client.publish_acked(&"/".repeat(slashes), b"").await;
        assert_eq!(code, ReasonCode::TopicNameInvalid);
    }
    let mut subscribe = vec![0x82, 0, 0, 0, 0, 1, 0];
    let filter = "/".repeat(2000);
    subscribe.extend((filter.len() as u16).to_be_bytes());
    subscribe.extend(filter.as_bytes());
    subscribe.push(0);
    let length = subscribe.len() - 4;
    subscribe[1] = (length & 0x7f) as u8 | 0x80;
    subscribe[2] = (length >> 7) as u8;
    subscribe.remove(3);
    client.send_raw(&subscribe).await;
    assert_eq!(
        client.suback().await.codes,
        [ReasonCode::TopicFilterInvalid]
    );
    client.ping().await;
}

/// 33 user properties: 0x97 for that message. [mqtt 3.3]
#[tokio::test]
async fn user_properties_beyond_the_bound_cost_the_message() {
    use weida_mqtt::codec::QoS;
    let world = World::local().await;
    let mut client = world.client("c").await;
    for (count, code) in [
        (32, ReasonCode::NoMatchingSubscribers),
        (33, ReasonCode::QuotaExceeded),
    ] {
        let mut publish = crate::common::client::message("x", b"", QoS::AtLeastOnce);
        let pairs = vec![("k", "v"); count];
        publish.properties.message.user_properties = crate::common::client::user_properties(&pairs);
        client.publish_with(publish).await;
        assert_eq!(client.puback().await.1, code);
    }
}

/// One more unacknowledged publish than announced: 0x93, readable before the close.
#[tokio::test]
async fn the_65th_open_publish_is_answered_0x93() {
    use weida_bridge::{MemoryFabric, Outcome};
    use weida_mqtt::codec::QoS;
    let fabric = MemoryFabric::new();
    let probe = fabric.add_ingress("in", Outcome::Receipt);
    let mut config = crate::common::config();
    config.ingress = vec![crate::common::push("in", "#")];
    let world = World::start(config, fabric).await;
    let mut client = world.client("c").await;
    probe.hold();
    for _ in 0..64 {
        client.publish("x", b"", QoS::AtLeastOnce).await;
    }
    client.ping().await;
    client.publish("x", b"", QoS::AtLeastOnce).await;
    assert_eq!(
        client.closed().await,
        Some(ReasonCode::ReceiveMaximumExceeded)
    );
}

/// Acknowledgements of nothing are ignored and counted, never a close. [mqtt 3.2]
#[tokio::test]
async fn mqtt_18_39_unknown_acknowledgements_are_no_close() {
    let world = World::local().await;
    let mut client = world.client("c").await;
    client.send_hex("40 02 0009  70 02 0009").await;
    client.ping().await;
    client.send_hex("50 02 0009").await;
    match client.next().await {
        Some(weida_mqtt::codec::Packet::PubRel(rel)) => {
            assert_eq!(rel.reason, ReasonCode::PacketIdentifierNotFound);
        }
        other => panic!("expected PUBREL, got {other:?}"),
    }
    client.ping().await;
}

/// A payload that is not the text its publisher says it is: 0x99, when the listener looks.
/// [mqtt 3.3]
#[tokio::test]
async fn a_payload_that_is_not_utf8_is_answered_0x99_when_validated() {
    use weida_mqtt::codec::QoS;
    let mut config = crate::common::config();
    config.listeners[0].validate_payload_utf8 = true;
    let world = World::start(config, weida_bridge::MemoryFabric::new()).await;
    let mut client = world.client("c").await;
    let rows: [(&[u8], ReasonCode); 2] = [
        ("ä".as_bytes(), ReasonCode::NoMatchingSubscribers),
        (b"\xff", ReasonCode::PayloadFormatInvalid),
    ];
    for (payload, code) in rows {
        let mut publish = crate::common::client::message("x", payload, QoS::AtLeastOnce);
        publish.properties.message.payload_is_utf8 = Some(true);
        client.publish_with(publish).await;
        assert_eq!(client.puback().await.1, code);
    }
}
