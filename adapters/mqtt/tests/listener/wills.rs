//! When a will is published. [mqtt 7]

use std::time::Duration;

use weida_bridge::{AckOn, MemoryFabric, Outcome, Pattern};
use weida_mqtt::codec::{Publish, QoS, ReasonCode};

use crate::common::{Client, Options, World, allow, config, ingress};

async fn watcher(world: &World) -> Client {
    let mut watch = world.client("watch").await;
    watch.subscribe("will/#", QoS::AtLeastOnce).await;
    watch
}

async fn will_of(watch: &mut Client) -> Publish {
    let will = watch.message().await;
    watch.acknowledge(&will).await;
    will
}

/// Network loss, 0x04, an error code of the client, a protocol error: now. Plain DISCONNECT: never.
#[tokio::test]
async fn a_will_is_published_unless_the_client_says_goodbye() {
    let world = World::local().await;
    let mut watch = watcher(&world).await;
    let with_will = || Options::v5("dying").will("will/x", "gone", None);
    let lost = Client::connect(world.addr, with_will()).await;
    drop(lost);
    let will = will_of(&mut watch).await;
    assert_eq!(
        (&will.payload[..], will.qos, will.retain),
        (&b"gone"[..], QoS::AtLeastOnce, false)
    );
    for reason in [ReasonCode::DisconnectWithWill, ReasonCode::UnspecifiedError] {
        let mut client = Client::connect(world.addr, with_will()).await;
        client.disconnect(reason).await;
        will_of(&mut watch).await;
    }
    let mut rude = Client::connect(world.addr, with_will()).await;
    rude.send_hex("00 00").await;
    will_of(&mut watch).await;
    let mut polite = Client::connect(world.addr, with_will()).await;
    polite.disconnect(ReasonCode::Success).await;
    polite.closed().await;
    let mut v4 = Client::connect(world.addr, Options::v4("dying").will("will/x", "v4", None)).await;
    v4.disconnect(ReasonCode::Success).await;
    v4.closed().await;
    watch.silent_for(Duration::from_millis(100)).await;
}

/// Expiry 0 with a delay: at once. [mqtt 18 #4]
#[tokio::test]
async fn mqtt_18_4_a_delay_longer_than_the_session_fires_at_its_end() {
    let world = World::local().await;
    let mut watch = watcher(&world).await;
    let options = Options::v5("dying").will("will/x", "gone", Some(30));
    drop(Client::connect(world.addr, options).await);
    will_of(&mut watch).await;
}

/// Takeover of an expiry-0 session with a delayed will: seen once, at once. [mqtt 18 #5] [mqtt 18 #7]
#[tokio::test]
async fn mqtt_18_5_a_takeover_publishes_the_will_once() {
    let world = World::local().await;
    let mut watch = watcher(&world).await;
    let _old = Client::connect(
        world.addr,
        Options::v5("same").will("will/x", "v5", Some(30)),
    )
    .await;
    let _new = Client::connect(world.addr, Options::v4("same").will("will/x", "v4", None)).await;
    assert_eq!(&will_of(&mut watch).await.payload[..], b"v5");
    let _newest = Client::connect(world.addr, Options::v4("same")).await;
    assert_eq!(&will_of(&mut watch).await.payload[..], b"v4");
    watch.silent_for(Duration::from_millis(100)).await;
}

/// Keep-alive timeout publishes the will.
#[tokio::test]
async fn a_silent_client_is_closed_and_its_will_published() {
    let world = World::local().await;
    let mut watch = watcher(&world).await;
    let options = Options::v5("silent")
        .keep_alive(1)
        .will("will/x", "silent", None);
    let mut client = Client::connect(world.addr, options).await;
    let started = tokio::time::Instant::now();
    assert_eq!(client.closed().await, Some(ReasonCode::KeepAliveTimeout));
    let waited = started.elapsed();
    assert!(waited >= Duration::from_millis(1400), "{waited:?}");
    assert!(waited < Duration::from_millis(2800), "{waited:?}");
    will_of(&mut watch).await;
    assert_eq!(world.metrics.keepalive_timeouts.get(), 1);
}

/// A will goes through routes like any publish; one that is not granted is refused at CONNECT.
#[tokio::test]
async fn a_will_is_authorised_and_routed() {
    let fabric = MemoryFabric::new();
    let probe = fabric.add_ingress("in", Outcome::Receipt);
    let mut config = config();
    config.grants = vec![allow("anonymous", &["will/#"], &["#"])];
    config.ingress = vec![ingress("in", "will/#", Pattern::Push, AckOn::Receipt)];
    let world = World::start(config, fabric).await;
    drop(Client::connect(world.addr, Options::v5("a").will("will/x", "routed", None)).await);
    assert_eq!(&probe.next().await.payload[..], b"routed");
    for options in [Options::v5("b"), Options::v4("b")] {
        let refused = Client::try_connect(world.addr, options.will("secret", "", None)).await;
        assert_eq!(refused.refusal(), Some(ReasonCode::NotAuthorized));
    }
}
