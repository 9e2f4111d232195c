//! What a 3.1.1 client, which hears no announcement and no code, meets. [mqtt 3.4] [gateway 2.5]

use weida_bridge::{MemoryFabric, Outcome, Refusal};
use weida_mqtt::codec::{QoS, ReasonCode};
use weida_mqtt::config::LegacyRefusal;
use weida_mqtt::metrics::{Cause, Closed, Op};

use crate::common::client::message;
use crate::common::{World, allow, config, push};

/// QoS 2 and RETAIN: 3.1.1 is closed, 5.0 hears 0x9B and 0x9A. [issue 2 item 14]
#[tokio::test]
async fn qos_2_and_retain_are_refused_honestly() {
    let world = World::local().await;
    let mut retained = message("x", b"", QoS::AtMostOnce);
    retained.retain = true;
    let double = message("x", b"", QoS::ExactlyOnce);
    for (publish, code) in [
        (double, ReasonCode::QosNotSupported),
        (retained, ReasonCode::RetainNotSupported),
    ] {
        let mut v5 = world.client("v5").await;
        v5.publish_with(publish.clone()).await;
        assert_eq!(v5.closed().await, Some(code));
        let mut v4 = world.client_v4("v4").await;
        v4.ping().await;
        v4.publish_with(publish).await;
        assert_eq!(v4.closed().await, None);
    }
    assert_eq!(world.metrics.closed(Closed::Unsupported).get(), 4);
    assert_eq!(world.metrics.malformed_count("mqtt_3_5_19"), 4);
}

/// A refused 3.1.1 publish closes by default; `swallow` acknowledges, drops and counts.
#[tokio::test]
async fn a_refused_v4_publish_closes_or_is_swallowed() {
    let mut config = config();
    config.grants = vec![allow("anonymous", &["ok/#"], &["#"])];
    let world = World::start(config.clone(), MemoryFabric::new()).await;
    let mut v4 = world.client_v4("v4").await;
    v4.publish_acked("ok/x", b"").await;
    v4.publish("secret", b"", QoS::AtMostOnce).await;
    v4.ping().await;
    v4.publish("secret", b"", QoS::AtLeastOnce).await;
    assert_eq!(v4.closed().await, None);
    assert_eq!(world.metrics.closed(Closed::Refused).get(), 1);
    config.listeners[0].legacy_refusal = LegacyRefusal::Swallow;
    let world = World::start(config, MemoryFabric::new()).await;
    let mut v4 = world.client_v4("v4").await;
    assert_eq!(v4.publish_acked("secret", b"").await, ReasonCode::Success);
    assert_eq!(
        world
            .metrics
            .refused(Op::Publish, Cause::NotAuthorized)
            .get(),
        1
    );
}

/// A definite no of a route is a close too; an unknown end is silence. [reconciled 3]
#[tokio::test]
async fn a_route_refusal_follows_legacy_refusal() {
    let fabric = MemoryFabric::new();
    let probe = fabric.add_ingress("in", Outcome::Receipt);
    let mut config = config();
    config.ingress = vec![push("in", "#")];
    let world = World::start(config, fabric).await;
    let mut v4 = world.client_v4("v4").await;
    v4.publish_acked("x", b"").await;
    probe.answer(Outcome::Refused(Refusal::UnknownEndpoint));
    v4.publish_acked("x", b"").await;
    probe.answer(Outcome::Indeterminate);
    v4.publish("x", b"", QoS::AtLeastOnce).await;
    v4.ping().await;
    probe.answer(Outcome::Refused(Refusal::Rejected));
    v4.publish("x", b"", QoS::AtLeastOnce).await;
    assert_eq!(v4.closed().await, None);
    assert_eq!(world.metrics.closed(Closed::Refused).get(), 1);
}

/// A 3.1.1 publisher that repeats an identifier is heard again, not refused. [mqtt 3.4]
#[tokio::test]
async fn a_repeated_v4_identifier_is_heard_again() {
    let fabric = MemoryFabric::new();
    let probe = fabric.add_ingress("in", Outcome::Receipt);
    let mut config = config();
    config.ingress = vec![push("in", "#")];
    let world = World::start(config, fabric).await;
    let (mut v4, mut v5) = (world.client_v4("v4").await, world.client("v5").await);
    probe.hold();
    let mut publish = message("x", b"", QoS::AtLeastOnce);
    publish.packet_id = weida_mqtt::codec::PacketId::new(7);
    v4.publish_with(publish.clone()).await;
    publish.dup = true;
    v4.publish_with(publish.clone()).await;
    publish.dup = false;
    v5.publish_with(publish.clone()).await;
    v5.publish_with(publish.clone()).await;
    assert_eq!(
        v5.puback().await,
        (
            publish.packet_id.unwrap(),
            ReasonCode::PacketIdentifierInUse
        )
    );
    crate::common::eventually("three were heard", || probe.seen() == 3).await;
    probe.release_all();
    assert_eq!(v5.puback().await.1, ReasonCode::Success);
    v4.puback().await;
    v4.puback().await;
    assert_eq!(world.metrics.dup_in.get(), 1);
}
