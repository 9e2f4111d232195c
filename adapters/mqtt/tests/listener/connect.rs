//! How a CONNECT is answered: every row of the reason-code table that this version has.
//! [mqtt 3.1] [mqtt 3.4]

use weida_bridge::MemoryFabric;
use weida_mqtt::codec::{ReasonCode, Utf8Bytes, Version};
use weida_mqtt::metrics::{Cause, Op};

use crate::common::{Client, Options, World, config, eventually};

/// Level 3, level 6, another name. [mqtt 3.1]
#[tokio::test]
async fn unsupported_versions_are_answered_in_their_own_form() {
    let world = World::local().await;
    let _valid = world.client("ok").await;
    let mut v3 = Client::open(world.addr, Version::V311).await;
    v3.send_hex("10 0f 0006 4d5149736470 03 02 003c 0001 61")
        .await;
    assert_eq!(
        v3.closed().await,
        Some(ReasonCode::UnsupportedProtocolVersion)
    );
    let mut v6 = Client::open(world.addr, Version::V5).await;
    v6.send_hex("10 0e 0004 4d515454 06 02 003c 00 0001 61")
        .await;
    assert_eq!(
        v6.closed().await,
        Some(ReasonCode::UnsupportedProtocolVersion)
    );
    let mut other = Client::open(world.addr, Version::V5).await;
    other
        .send_hex("10 0d 0004 48545450 05 02 003c 00 0000")
        .await;
    assert_eq!(other.closed().await, None, "not MQTT at all: no answer");
}

/// Empty ClientID: assigned, unguessable; 3.1.1 without clean session is refused. [mqtt 3.4]
#[tokio::test]
async fn an_empty_client_id_is_assigned_or_refused() {
    let world = World::local().await;
    let one = world.client("").await;
    let two = Client::connect(world.addr, Options::v5("").not_clean()).await;
    let id = |client: &Client| {
        let properties = &client.connack.as_ref().unwrap().properties;
        properties
            .assigned_client_id
            .as_ref()
            .unwrap()
            .as_str()
            .to_owned()
    };
    let (one, two) = (id(&one), id(&two));
    assert!(one.starts_with("auto-") && one.len() == 27, "{one}");
    assert_ne!(one, two);
    let _clean = Client::connect(world.addr, Options::v4("")).await;
    let refused = Client::try_connect(world.addr, Options::v4("").not_clean()).await;
    assert_eq!(
        refused.refusal(),
        Some(ReasonCode::ClientIdentifierNotValid)
    );
}

/// The ClientID bound. [mqtt 8.1]
#[tokio::test]
async fn a_client_id_over_the_bound_is_refused() {
    let world = World::local().await;
    let _longest = world.client(&"c".repeat(128)).await;
    for options in [Options::v5(&"c".repeat(129)), Options::v4(&"c".repeat(129))] {
        let refused = Client::try_connect(world.addr, options).await;
        assert_eq!(
            refused.refusal(),
            Some(ReasonCode::ClientIdentifierNotValid)
        );
    }
}

/// Keep-alive 0 and one above the maximum are replaced and told. [mqtt 8.3]
#[tokio::test]
async fn server_keep_alive_is_told() {
    let world = World::local().await;
    for (asked, told) in [(0, Some(1200)), (2000, Some(1200)), (60, None)] {
        let client = Client::connect(world.addr, Options::v5("c").keep_alive(asked)).await;
        let properties = client.connack.unwrap().properties;
        assert_eq!(properties.server_keep_alive_secs, told, "asked {asked}");
    }
}

/// Wills that this version cannot keep: 0x9A and 0x9B, return code 5. [mqtt 18 #17]
#[tokio::test]
async fn mqtt_18_17_a_will_that_cannot_be_kept_is_refused() {
    let world = World::local().await;
    let _valid = Client::connect(world.addr, Options::v5("a").will("w", "", None)).await;
    let retained = |mut options: Options| {
        options.connect.will.as_mut().unwrap().retain = true;
        options
    };
    let double = |mut options: Options| {
        options.connect.will.as_mut().unwrap().qos = weida_mqtt::codec::QoS::ExactlyOnce;
        options
    };
    let v5 = || Options::v5("b").will("w", "", None);
    let v4 = || Options::v4("b").will("w", "", None);
    let rows = [
        (retained(v5()), ReasonCode::RetainNotSupported),
        (double(v5()), ReasonCode::QosNotSupported),
        (retained(v4()), ReasonCode::NotAuthorized),
        (double(v4()), ReasonCode::NotAuthorized),
    ];
    for (options, code) in rows {
        assert_eq!(
            Client::try_connect(world.addr, options).await.refusal(),
            Some(code)
        );
    }
}

/// A method of enhanced authentication: 0x8C; AUTH out of the blue: 0x82. [mqtt 9.3]
#[tokio::test]
async fn enhanced_authentication_is_refused() {
    let world = World::local().await;
    let mut options = Options::v5("a");
    options.connect.properties.authentication_method = Utf8Bytes::parse("SCRAM-SHA-256").ok();
    let refused = Client::try_connect(world.addr, options).await;
    assert_eq!(refused.refusal(), Some(ReasonCode::BadAuthenticationMethod));
    let mut client = world.client("b").await;
    client.ping().await;
    client.send_hex("f0 00").await;
    assert_eq!(client.closed().await, Some(ReasonCode::ProtocolError));
}

/// The session bounds of a listener and of the adapter: 0x97, return code 3.
#[tokio::test]
async fn sessions_are_bounded() {
    let mut config = config();
    config.listeners[0].max_sessions = 2;
    let world = World::start(config, MemoryFabric::new()).await;
    let mut a = world.client("a").await;
    let _b = world.client("b").await;
    let refused = Client::try_connect(world.addr, Options::v5("c")).await;
    assert_eq!(refused.refusal(), Some(ReasonCode::QuotaExceeded));
    let refused = Client::try_connect(world.addr, Options::v4("c")).await;
    assert_eq!(
        refused.refusal(),
        Some(ReasonCode::ServerUnavailable),
        "return code 3"
    );
    a.disconnect(ReasonCode::Success).await;
    eventually("a place is free", || world.metrics.sessions.get() == 1).await;
    let _c = world.client("c").await;
}

/// Connections of one address are bounded, and paced. [mqtt 8.1]
#[tokio::test]
async fn connections_of_one_address_are_bounded() {
    let mut config = config();
    config.limits.per_ip_exempt_loopback = false;
    config.limits.max_connections_per_ip = 2;
    config.limits.new_connections_per_second_per_ip = 1000;
    let world = World::start(config, MemoryFabric::new()).await;
    let (_a, _b) = (world.client("a").await, world.client("b").await);
    let refused = Client::try_connect(world.addr, Options::v5("c")).await;
    assert_eq!(refused.refusal(), Some(ReasonCode::QuotaExceeded));
    let mut config = crate::common::config();
    config.limits.per_ip_exempt_loopback = false;
    config.limits.new_connections_per_second_per_ip = 1;
    let world = World::start(config, MemoryFabric::new()).await;
    let (_a, _b) = (world.client("a").await, world.client("b").await);
    let refused = Client::try_connect(world.addr, Options::v5("c")).await;
    assert_eq!(refused.refusal(), Some(ReasonCode::ConnectionRateExceeded));
    let silent = Client::try_connect(world.addr, Options::v4("c")).await;
    assert_eq!(silent.refusal(), None);
    assert_eq!(
        world.metrics.refused(Op::Connect, Cause::RateLimited).get(),
        2
    );
}

/// Packets pipelined behind CONNECT are served after it. [MQTT5 3.1.4]
#[tokio::test]
async fn packets_behind_connect_are_served_after_it() {
    let world = World::local().await;
    let mut client = Client::open(world.addr, Version::V5).await;
    // CONNECT, SUBSCRIBE x, PUBLISH x, PINGREQ in one segment.
    client
        .send_hex("10 0e 0004 4d515454 05 02 003c 00 0001 70  82 07 0001 00 0001 78 00  30 05 0001 78 00 21  c000")
        .await;
    let names: Vec<String> = vec![
        format!("{:?}", client.next().await.unwrap().packet_type()),
        format!("{:?}", client.next().await.unwrap().packet_type()),
        format!("{:?}", client.next().await.unwrap().packet_type()),
        format!("{:?}", client.next().await.unwrap().packet_type()),
    ];
    assert_eq!(names[0], "Connack");
    for wanted in ["Suback", "Publish", "Pingresp"] {
        assert!(names.iter().any(|name| name == wanted), "{names:?}");
    }
}

/// A PROXY header is read from listed addresses only, and its address is the client's.
#[tokio::test]
async fn the_proxy_header_names_the_client() {
    let mut config = config();
    config.listeners[0].proxy_from = vec!["127.0.0.1".parse().unwrap()];
    config.limits.max_connections_per_ip = 1;
    let world = World::start(config, MemoryFabric::new()).await;
    let header = |last: u8| {
        format!("0d0a0d0a000d0a515549540a 21 11 000c c00002{last:02x} 7f000001 c350 075b")
    };
    let connect = |id: u8| format!("10 0d 0004 4d515454 04 02 003c 0001 {id:02x}");
    let mut clients = Vec::new();
    for (last, id, code) in [
        (7, b'a', ReasonCode::Success),
        (7, b'b', ReasonCode::ServerUnavailable),
        (8, b'c', ReasonCode::Success),
    ] {
        let mut client = Client::open(world.addr, Version::V311).await;
        client.send_hex(&header(last)).await;
        client.send_hex(&connect(id)).await;
        match client.next().await {
            Some(weida_mqtt::codec::Packet::Connack(connack)) => assert_eq!(connack.reason, code),
            other => panic!("expected CONNACK, got {other:?}"),
        }
        clients.push(client);
    }
    let mut bare = Client::open(world.addr, Version::V311).await;
    bare.send_hex(&connect(b'd')).await;
    assert_eq!(
        bare.closed().await,
        None,
        "a listed address must speak PROXY"
    );
}
