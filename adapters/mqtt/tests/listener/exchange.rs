//! What clients of one listener can rely on among themselves: delivery, options, flow control.

use std::time::Duration;

use crate::common::client::{message, user_properties};
use crate::common::{Client, Options, World, config, eventually};
use bytes::Bytes;
use weida_bridge::MemoryFabric;
use weida_mqtt::codec::{
    Packet, PublishProperties, QoS, ReasonCode, Subscribe, SubscribeOptions, SubscribeProperties,
    SubscriptionId, TopicFilter, Utf8Bytes,
};
use weida_mqtt::metrics::{Closed, PublishResult};

/// Both versions meet on one port, at both levels of service. [mqtt 3.1]
#[tokio::test]
async fn both_versions_exchange_messages_on_one_port() {
    let world = World::local().await;
    let (mut v5, mut v4) = (world.client("five").await, world.client_v4("four").await);
    assert_eq!(
        v5.subscribe("a/+", QoS::AtLeastOnce).await,
        ReasonCode::GrantedQos1
    );
    assert_eq!(
        v4.subscribe("a/#", QoS::AtMostOnce).await,
        ReasonCode::Success
    );
    v4.publish("a/b", b"zero", QoS::AtMostOnce).await;
    for client in [&mut v5, &mut v4] {
        let got = client.message().await;
        assert_eq!(
            (got.topic.as_str(), &got.payload[..], got.qos),
            ("a/b", &b"zero"[..], QoS::AtMostOnce)
        );
    }
    let id = v5.publish("a/b", b"one", QoS::AtLeastOnce).await.unwrap();
    let mut acked = false;
    let mut got = None;
    for _ in 0..2 {
        match v5.next().await.unwrap() {
            Packet::PubAck(ack) => acked = ack.packet_id == id && ack.reason == ReasonCode::Success,
            Packet::Publish(publish) => got = Some(publish),
            other => panic!("unexpected {other:?}"),
        }
    }
    let got = got.unwrap();
    assert!(acked);
    assert_eq!(
        (got.qos, got.dup, got.retain),
        (QoS::AtLeastOnce, false, false)
    );
    assert_eq!(
        v4.message().await.qos,
        QoS::AtMostOnce,
        "the granted QoS is the smaller one"
    );
}

/// 5.0 hears in CONNACK what this version does not have. [issue 2 item 14] [S8-33]
#[tokio::test]
async fn s8_33_a_persistent_session_is_answered_with_expiry_0() {
    let world = World::local().await;
    let options = Options::v5("dev").not_clean().expiry(3600);
    let mut first = Client::connect(world.addr, options.clone()).await;
    let connack = first.connack.clone().unwrap();
    assert!(!connack.session_present);
    assert_eq!(connack.properties.session_expiry_secs, Some(0));
    assert_eq!(connack.properties.maximum_qos, Some(QoS::AtLeastOnce));
    assert_eq!(connack.properties.retain_available, Some(false));
    assert_eq!(
        connack.properties.shared_subscription_available,
        Some(false)
    );
    assert_eq!(
        connack.properties.receive_maximum.map(|m| m.get()),
        Some(64)
    );
    assert_eq!(
        connack.properties.maximum_packet_bytes.map(|m| m.get()),
        Some((1 << 20) + (64 << 10))
    );
    first.subscribe("kept/#", QoS::AtLeastOnce).await;
    first.disconnect(ReasonCode::Success).await;
    eventually("the session ends", || world.metrics.sessions.get() == 0).await;
    let mut again = Client::connect(world.addr, options).await;
    assert!(!again.connack.as_ref().unwrap().session_present);
    assert_eq!(
        again.publish_acked("kept/x", b"").await,
        ReasonCode::NoMatchingSubscribers
    );
}

/// Clean Session 0 of 3.1.1 is Clean Session 1, as the documentation says. [S8-33]
#[tokio::test]
async fn s8_33_clean_session_0_of_v4_maps_to_1() {
    let world = World::local().await;
    let mut first = Client::connect(world.addr, Options::v4("dev").not_clean()).await;
    first.subscribe("kept/#", QoS::AtLeastOnce).await;
    first.disconnect(ReasonCode::Success).await;
    eventually("the session ends", || world.metrics.sessions.get() == 0).await;
    let again = Client::connect(world.addr, Options::v4("dev").not_clean()).await;
    assert!(!again.connack.unwrap().session_present);
    let mut other = world.client("other").await;
    assert_eq!(
        other.publish_acked("kept/x", b"").await,
        ReasonCode::NoMatchingSubscribers
    );
}

/// No Local holds across one client's own publishes only. [mqtt 5.3]
#[tokio::test]
async fn no_local_keeps_own_messages_away() {
    let world = World::local().await;
    let (mut a, mut b) = (world.client("a").await, world.client("b").await);
    let options = SubscribeOptions {
        no_local: true,
        ..SubscribeOptions::new(QoS::AtMostOnce)
    };
    a.subscribe_with("x", options, SubscribeProperties::default())
        .await;
    a.publish("x", b"own", QoS::AtMostOnce).await;
    b.publish("x", b"other", QoS::AtMostOnce).await;
    assert_eq!(&a.message().await.payload[..], b"other");
}

/// One copy with every identifier. [mqtt 5.4]
#[tokio::test]
async fn overlapping_subscriptions_give_one_copy_with_all_identifiers() {
    let world = World::local().await;
    let mut a = world.client("a").await;
    for (filter, id, qos) in [("x/#", 7, QoS::AtMostOnce), ("x/y", 9, QoS::AtLeastOnce)] {
        let subscription_id = SubscriptionId::new(id);
        let properties = SubscribeProperties {
            subscription_id,
            ..SubscribeProperties::default()
        };
        a.subscribe_with(filter, SubscribeOptions::new(qos), properties)
            .await;
    }
    let mut b = world.client("b").await;
    b.publish("x/y", b"1", QoS::AtLeastOnce).await;
    b.publish("x/z", b"2", QoS::AtLeastOnce).await;
    let both = a.message().await;
    let mut ids: Vec<u32> = both
        .properties
        .subscription_ids
        .as_slice()
        .iter()
        .map(|id| id.get())
        .collect();
    ids.sort_unstable();
    assert_eq!((ids, both.qos), (vec![7, 9], QoS::AtLeastOnce));
    assert_eq!(
        &a.message().await.payload[..],
        b"2",
        "no second copy of the first"
    );
}

/// Properties reach a subscriber unchanged and in order, the expiry counts down. [mqtt 3.3]
#[tokio::test]
async fn properties_are_forwarded_in_order_and_expiry_counts_down() {
    let world = World::local().await;
    let (mut a, mut b) = (world.client("a").await, world.client("b").await);
    let mut v4 = world.client_v4("v4").await;
    a.subscribe("x", QoS::AtLeastOnce).await;
    v4.subscribe("x", QoS::AtLeastOnce).await;
    let pairs = [("k", "1"), ("j", "2"), ("k", "3")];
    let mut publish = message("x", b"p", QoS::AtLeastOnce);
    let properties = &mut publish.properties.message;
    properties.user_properties = user_properties(&pairs);
    properties.content_type = Some(Utf8Bytes::parse("text/plain").unwrap());
    properties.payload_is_utf8 = Some(true);
    properties.message_expiry_secs = Some(100);
    properties.correlation_data = Some(Bytes::from_static(b"\x01\x02"));
    b.publish_with(publish.clone()).await;
    let got = a.message().await;
    let message = &got.properties.message;
    assert_eq!(message.user_properties.iter().collect::<Vec<_>>(), pairs);
    assert_eq!(
        message.content_type,
        publish.properties.message.content_type
    );
    assert_eq!(
        message.correlation_data,
        publish.properties.message.correlation_data
    );
    assert_eq!(message.payload_is_utf8, Some(true));
    assert!(matches!(message.message_expiry_secs, Some(99 | 100)));
    let plain = v4.message().await;
    assert_eq!(plain.properties, PublishProperties::default());
    assert_eq!(plain.payload, got.payload);
}

/// An expired copy that waits for the window is dropped before it is sent. [mqtt 3.3]
#[tokio::test]
async fn an_expired_copy_is_never_sent() {
    let world = World::local().await;
    let mut slow = Client::connect(world.addr, Options::v5("slow").receive_maximum(1)).await;
    slow.subscribe("x", QoS::AtLeastOnce).await;
    let mut b = world.client("b").await;
    b.publish_acked("x", b"first").await;
    let mut short = message("x", b"short", QoS::AtLeastOnce);
    short.properties.message.message_expiry_secs = Some(1);
    b.publish_with(short).await;
    b.publish("x", b"last", QoS::AtLeastOnce).await;
    let first = slow.message().await;
    slow.silent_for(Duration::from_millis(1200)).await;
    slow.acknowledge(&first).await;
    let last = slow.message().await;
    assert_eq!(&last.payload[..], b"last");
    assert_eq!(world.metrics.expired.get(), 1);
}

/// Never more in flight than the client's Receive Maximum. [mqtt 18 #38]
#[tokio::test]
async fn mqtt_18_38_the_clients_receive_maximum_is_obeyed() {
    let world = World::local().await;
    let mut slow = Client::connect(world.addr, Options::v5("slow").receive_maximum(3)).await;
    slow.subscribe("x", QoS::AtLeastOnce).await;
    let mut b = world.client("b").await;
    for at in 0..10u8 {
        assert_eq!(b.publish_acked("x", &[at]).await, ReasonCode::Success);
    }
    let mut window = Vec::new();
    for _ in 0..3 {
        window.push(slow.message().await);
    }
    slow.silent_for(Duration::from_millis(100)).await;
    let mut seen: Vec<u8> = window.iter().map(|p| p.payload[0]).collect();
    for publish in window {
        slow.acknowledge(&publish).await;
    }
    for _ in 0..7 {
        let publish = slow.message().await;
        seen.push(publish.payload[0]);
        slow.acknowledge(&publish).await;
    }
    assert_eq!(seen, (0..10).collect::<Vec<u8>>(), "order is kept");
    eventually("nothing is held", || {
        world.metrics.queue_messages.get() == 0
    })
    .await;
}

/// A copy above the client's Maximum Packet Size is not sent, counted, and the queue moves on.
/// [MQTT-3.1.2-24]
#[tokio::test]
async fn a_copy_too_large_for_the_client_is_skipped() {
    let world = World::local().await;
    let mut small = Client::connect(world.addr, Options::v5("small").max_packet(100)).await;
    small.subscribe("x", QoS::AtLeastOnce).await;
    let mut b = world.client("b").await;
    b.publish_acked("x", &[7; 200]).await;
    b.publish_acked("x", b"fits").await;
    assert_eq!(&small.message().await.payload[..], b"fits");
    assert_eq!(world.metrics.too_large_for_peer.get(), 1);
    assert_eq!(
        world.metrics.queue_messages.get(),
        1,
        "only the one in flight is held"
    );
}

/// Aliases in both directions. [mqtt 5.6]
#[tokio::test]
async fn topic_aliases_work_both_ways() {
    let world = World::local().await;
    let mut a = Client::connect(world.addr, Options::v5("a").aliases(5)).await;
    assert_eq!(
        a.connack.as_ref().unwrap().properties.topic_alias_maximum,
        Some(16)
    );
    a.subscribe("long/topic/name", QoS::AtMostOnce).await;
    let mut b = world.client("b").await;
    let alias = std::num::NonZeroU16::new(3);
    let mut first = message("long/topic/name", b"1", QoS::AtMostOnce);
    first.properties.topic_alias = alias;
    let mut second = first.clone();
    second.topic = weida_mqtt::codec::TopicName::default();
    second.payload = Bytes::from_static(b"2");
    b.publish_with(first).await;
    b.publish_with(second).await;
    let taught = a.message().await;
    let used = a.message().await;
    assert_eq!(taught.topic.as_str(), "long/topic/name");
    assert!(taught.properties.topic_alias.is_some());
    assert!(used.topic.is_empty());
    assert_eq!(used.properties.topic_alias, taught.properties.topic_alias);
    assert_eq!(&used.payload[..], b"2");
}

/// One UNSUBACK with a code per filter, and no copies afterwards. [mqtt 18 #20]
#[tokio::test]
async fn mqtt_18_20_one_unsuback_with_a_code_per_filter() {
    let world = World::local().await;
    let mut a = world.client("a").await;
    a.subscribe("x", QoS::AtMostOnce).await;
    a.subscribe("y", QoS::AtMostOnce).await;
    let unsuback = a.unsubscribe(&["x", "never"]).await;
    assert_eq!(
        unsuback.codes,
        [ReasonCode::Success, ReasonCode::NoSubscriptionExisted]
    );
    let mut b = world.client("b").await;
    b.publish("x", b"gone", QoS::AtMostOnce).await;
    b.publish("y", b"here", QoS::AtMostOnce).await;
    assert_eq!(&a.message().await.payload[..], b"here");
}

/// Leading wildcards do not see `$` topics, and clients may not publish there. [mqtt 18 #11]
#[tokio::test]
async fn mqtt_18_11_nothing_below_dollar_for_leading_wildcards() {
    let world = World::local().await;
    let mut a = world.client("a").await;
    a.subscribe("#", QoS::AtMostOnce).await;
    a.subscribe("+/x", QoS::AtMostOnce).await;
    let mut b = world.client("b").await;
    assert_eq!(b.publish_acked("ok/x", b"").await, ReasonCode::Success);
    assert_eq!(
        b.publish_acked("$SYS/x", b"").await,
        ReasonCode::NotAuthorized
    );
    assert_eq!(a.message().await.topic.as_str(), "ok/x");
    a.silent_for(Duration::from_millis(50)).await;
}

/// One bad filter costs itself only. [mqtt 18 #19] [S17-31]
#[tokio::test]
async fn mqtt_18_19_s17_31_one_bad_filter_keeps_the_others_and_the_connection() {
    let mut config = config();
    config.grants = vec![crate::common::allow("anonymous", &["#"], &["ok/#"])];
    let world = World::start(config, MemoryFabric::new()).await;
    let mut a = world.client("a").await;
    // ok/1 at QoS 1, a filter that is none, one that is not granted, a shared one, QoS 2.
    let mut bytes = vec![0x82, 0, 0, 1, 0];
    let filters: [(&str, u8); 5] = [
        ("ok/1", 1),
        ("a#", 0),
        ("secret", 0),
        ("$share/g/ok/1", 0),
        ("ok/2", 2),
    ];
    for (filter, options) in filters {
        bytes.extend((filter.len() as u16).to_be_bytes());
        bytes.extend(filter.as_bytes());
        bytes.push(options);
    }
    bytes[1] = u8::try_from(bytes.len() - 2).unwrap();
    a.send_raw(&bytes).await;
    let codes: Vec<u8> = a
        .suback()
        .await
        .codes
        .iter()
        .map(|code| code.code())
        .collect();
    assert_eq!(codes, [0x01, 0x8F, 0x87, 0x9E, 0x01]);
    a.ping().await;
    let mut v4 = world.client_v4("v4").await;
    bytes.remove(4);
    bytes[1] -= 1;
    v4.send_raw(&bytes).await;
    let codes: Vec<u8> = v4
        .suback()
        .await
        .codes
        .iter()
        .map(|code| code.code())
        .collect();
    assert_eq!(codes, [0x01, 0x80, 0x80, 0x80, 0x01]);
    v4.ping().await;
}

/// A topic that starts with a non-ASCII character, dots and spaces pass byte-equal.
/// [mqtt 18 #14]
#[tokio::test]
async fn mqtt_18_14_odd_names_pass_byte_equal() {
    let world = World::local().await;
    let mut a = world.client("a").await;
    a.subscribe("#", QoS::AtMostOnce).await;
    let mut b = world.client("b").await;
    for topic in [
        "spBv1.0/G/NDATA/n 1",
        "a b/c (d)",
        "énergie/1",
        "/",
        "//",
        "a//b/",
    ] {
        b.publish(topic, b"", QoS::AtMostOnce).await;
        assert_eq!(a.message().await.topic.as_str(), topic);
    }
}

/// A clean session after an earlier one with the same id gets its messages. [mqtt 18 #2]
#[tokio::test]
async fn mqtt_18_2_a_clean_session_after_another_one_receives() {
    let world = World::local().await;
    let mut first = Client::connect(world.addr, Options::v4("same").not_clean()).await;
    first.disconnect(ReasonCode::Success).await;
    let mut second = Client::connect(world.addr, Options::v4("same")).await;
    second.subscribe("x", QoS::AtMostOnce).await;
    let mut b = world.client("b").await;
    b.publish("x", b"here", QoS::AtMostOnce).await;
    assert_eq!(&second.message().await.payload[..], b"here");
}

/// Messages of one client on one topic keep their order at each QoS. [mqtt 4.6]
#[tokio::test]
async fn order_is_kept_per_client_topic_and_qos() {
    let world = World::local().await;
    let mut a = world.client("a").await;
    a.subscribe("x", QoS::AtLeastOnce).await;
    let mut b = world.client("b").await;
    for at in 0..500u16 {
        b.publish("x", &at.to_be_bytes(), QoS::AtMostOnce).await;
    }
    for at in 0..500u16 {
        assert_eq!(&a.message().await.payload[..], &at.to_be_bytes());
    }
    for chunk in 0..10u16 {
        for at in 0..50u16 {
            b.publish("x", &(chunk * 50 + at).to_be_bytes(), QoS::AtLeastOnce)
                .await;
        }
        for at in 0..50u16 {
            let got = a.message().await;
            assert_eq!(&got.payload[..], &(chunk * 50 + at).to_be_bytes());
            a.acknowledge(&got).await;
        }
        for _ in 0..50 {
            assert_eq!(b.puback().await.1, ReasonCode::Success);
        }
    }
    assert_eq!(
        world
            .metrics
            .published_in(QoS::AtLeastOnce, PublishResult::Ok)
            .get(),
        500
    );
}

/// The filter bounds cost the excess filters only. [mqtt 8.1]
#[tokio::test]
async fn filters_beyond_the_session_bound_are_refused_one_by_one() {
    let mut config = config();
    config.limits.max_filters_per_session = 3;
    let world = World::start(config, MemoryFabric::new()).await;
    let mut a = world.client("a").await;
    let packet_id = a.id();
    let filter = |at: usize| TopicFilter::parse(&format!("f/{at}")).unwrap();
    let filters = (0..5)
        .map(|at| (filter(at), SubscribeOptions::new(QoS::AtMostOnce)))
        .collect();
    let properties = SubscribeProperties::default();
    a.send(&Packet::Subscribe(Subscribe {
        packet_id,
        properties,
        filters,
    }))
    .await;
    let codes: Vec<u8> = a
        .suback()
        .await
        .codes
        .iter()
        .map(|code| code.code())
        .collect();
    assert_eq!(codes, [0, 0, 0, 0x97, 0x97]);
    assert_eq!(
        a.subscribe("f/0", QoS::AtLeastOnce).await,
        ReasonCode::GrantedQos1,
        "replacing"
    );
}

/// A client that stops is told goodbye, and the drain counts nobody cut. [mqtt 3.4]
#[tokio::test]
async fn shutdown_says_0x8b_and_cuts_nobody() {
    let world = World::local().await;
    let mut a = world.client("a").await;
    let mut v4 = world.client_v4("b").await;
    a.ping().await;
    let metrics = std::sync::Arc::clone(&world.metrics);
    let (drained, reason, silent) = tokio::join!(world.stop(), a.closed(), v4.closed());
    assert_eq!(reason, Some(ReasonCode::ServerShuttingDown));
    assert_eq!(silent, None);
    assert_eq!(drained.cut_connections, 0);
    assert_eq!(metrics.closed(Closed::Shutdown).get(), 2);
}
