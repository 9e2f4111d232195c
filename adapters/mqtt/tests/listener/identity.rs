//! What a client may call itself and what it may do: logins, ClientIDs, grants. [mqtt 9]

use std::time::Duration;

use weida_bridge::MemoryFabric;
use weida_mqtt::codec::{QoS, ReasonCode};
use weida_mqtt::config::{AuthMethod, Glob, Qos0Refusal};
use weida_mqtt::metrics::{Cause, Op};

use crate::common::{Client, Options, World, allow, config, eventually, filters, with_passwords};

/// 0x86 in 5.0, return code 4 in 3.1.1, for a wrong password and for an unknown user.
#[tokio::test]
async fn a_wrong_login_is_refused_with_its_code() {
    let (config, _passwords) = with_passwords(&["ann"]);
    let world = World::start(config, MemoryFabric::new()).await;
    let _valid = Client::connect(world.addr, Options::v5("a").login("ann", "ann")).await;
    let wrong = [
        Options::v5("b").login("ann", "guess"),
        Options::v4("b").login("ann", "guess"),
        Options::v5("b").login("nobody", "x"),
        Options::v5("b"),
    ];
    for options in wrong {
        let refused = Client::try_connect(world.addr, options).await;
        assert_eq!(refused.refusal(), Some(ReasonCode::BadUserNameOrPassword));
    }
    assert_eq!(
        world
            .metrics
            .refused(Op::Connect, Cause::NotAuthenticated)
            .get(),
        4
    );
}

/// No grant for this listener: 0x87 / return code 5. Nothing is granted by default. [mqtt 9.2]
#[tokio::test]
async fn without_a_grant_nobody_gets_in() {
    let mut config = config();
    config.grants.clear();
    let world = World::start(config, MemoryFabric::new()).await;
    for options in [Options::v5("a"), Options::v4("a")] {
        let refused = Client::try_connect(world.addr, options).await;
        assert_eq!(refused.refusal(), Some(ReasonCode::NotAuthorized));
    }
}

/// A publish without a grant: PUBACK 0x87; QoS 0 dropped and counted, or 0x87 disconnect.
#[tokio::test]
async fn an_ungranted_publish_is_refused_per_message() {
    let mut config = config();
    config.grants = vec![allow("anonymous", &["ok/#"], &["#"])];
    let world = World::start(config.clone(), MemoryFabric::new()).await;
    let mut a = world.client("a").await;
    let mut watch = world.client("watch").await;
    watch.subscribe("#", QoS::AtMostOnce).await;
    assert_eq!(a.publish_acked("ok/x", b"").await, ReasonCode::Success);
    assert_eq!(
        a.publish_acked("secret", b"").await,
        ReasonCode::NotAuthorized
    );
    a.publish("secret", b"", QoS::AtMostOnce).await;
    a.ping().await;
    assert_eq!(watch.message().await.topic.as_str(), "ok/x");
    watch.silent_for(Duration::from_millis(50)).await;
    assert_eq!(
        world
            .metrics
            .refused(Op::Publish, Cause::NotAuthorized)
            .get(),
        2
    );
    config.listeners[0].qos0_refusal = Qos0Refusal::Disconnect;
    let world = World::start(config, MemoryFabric::new()).await;
    let mut a = world.client("a").await;
    a.publish("secret", b"", QoS::AtMostOnce).await;
    assert_eq!(a.closed().await, Some(ReasonCode::NotAuthorized));
}

/// A deny filter that only touches a subscription is applied to every copy. [mqtt 9.2]
#[tokio::test]
async fn a_touching_deny_filter_withholds_copies() {
    let mut config = config();
    let mut reader = allow("anonymous", &["#"], &["s/#"]);
    reader.deny_subscribe = filters(&["s/secret/#"]);
    config.grants = vec![reader];
    let world = World::start(config, MemoryFabric::new()).await;
    let mut a = world.client("a").await;
    assert_eq!(
        a.subscribe("s/secret/x", QoS::AtMostOnce).await,
        ReasonCode::NotAuthorized
    );
    assert_eq!(
        a.subscribe("s/#", QoS::AtMostOnce).await,
        ReasonCode::Success
    );
    a.publish("s/secret/x", b"hidden", QoS::AtMostOnce).await;
    a.publish("s/open", b"seen", QoS::AtMostOnce).await;
    assert_eq!(&a.message().await.payload[..], b"seen");
}

/// CVE-2017-7650 class: a login or ClientID with wildcard bytes never matches an expanding
/// pattern. [mqtt 18 #47]
#[tokio::test]
async fn mqtt_18_47_a_wildcard_in_the_login_opens_nothing() {
    let (mut config, _passwords) = with_passwords(&["ann", "#", "+"]);
    config.grants = vec![allow("user:*", &["own/{user}/#"], &["own/{user}/#"])];
    let world = World::start(config, MemoryFabric::new()).await;
    let mut ann = Client::connect(world.addr, Options::v5("a").login("ann", "ann")).await;
    assert_eq!(
        ann.subscribe("own/ann/#", QoS::AtMostOnce).await,
        ReasonCode::Success
    );
    for hostile in ["#", "+"] {
        let options = Options::v5("b").login(hostile, hostile);
        let mut client = Client::connect(world.addr, options).await;
        for filter in ["own/#", "own/+/#", "own/ann/#"] {
            assert_eq!(
                client.subscribe(filter, QoS::AtMostOnce).await,
                ReasonCode::NotAuthorized
            );
        }
        assert_eq!(
            client.publish_acked("own/ann/x", b"").await,
            ReasonCode::NotAuthorized
        );
        client.disconnect(ReasonCode::Success).await;
        client.closed().await;
    }
}

/// The ClientID is bound to the login where the grant says so; one code for all refusals.
#[tokio::test]
async fn mqtt_9_4_a_client_id_is_bound_to_its_login() {
    let (mut config, _passwords) = with_passwords(&["ann"]);
    config.grants[0].client_id = Some(vec![Glob::new("{user}"), Glob::new("{user}-*")]);
    let world = World::start(config, MemoryFabric::new()).await;
    for id in ["ann", "ann-7"] {
        let _in = Client::connect(world.addr, Options::v5(id).login("ann", "ann")).await;
    }
    for id in ["bob", "annx", ""] {
        let refused = Client::try_connect(world.addr, Options::v5(id).login("ann", "ann")).await;
        assert_eq!(
            refused.refusal(),
            Some(ReasonCode::ClientIdentifierNotValid),
            "{id:?}"
        );
    }
}

/// Failed logins ban the user from that address, and only that. [mqtt 8.1]
#[tokio::test]
async fn mqtt_8_1_a_login_storm_is_banned() {
    let (mut config, _passwords) = with_passwords(&["ann", "bob"]);
    config.limits.per_ip_exempt_loopback = false;
    config.limits.new_connections_per_second_per_ip = 1000;
    let world = World::start(config, MemoryFabric::new()).await;
    for _ in 0..5 {
        let refused = Client::try_connect(world.addr, Options::v5("x").login("ann", "no")).await;
        assert_eq!(refused.refusal(), Some(ReasonCode::BadUserNameOrPassword));
    }
    let right = Client::try_connect(world.addr, Options::v5("x").login("ann", "ann")).await;
    assert_eq!(right.refusal(), Some(ReasonCode::Banned));
    let _bob = Client::connect(world.addr, Options::v5("y").login("bob", "bob")).await;
}

/// Anonymous only where it is spelled out, and never after a failed password.
#[tokio::test]
async fn anonymous_is_never_a_fallback() {
    let (mut config, _passwords) = with_passwords(&["ann"]);
    config.listeners[0].auth = vec![AuthMethod::Password, AuthMethod::Anonymous];
    config.grants.push(allow("anonymous", &[], &["#"]));
    let world = World::start(config, MemoryFabric::new()).await;
    let mut nobody = world.client("n").await;
    assert_eq!(
        nobody.publish_acked("x", b"").await,
        ReasonCode::NotAuthorized
    );
    let wrong = Client::try_connect(world.addr, Options::v5("w").login("ann", "no")).await;
    assert_eq!(wrong.refusal(), Some(ReasonCode::BadUserNameOrPassword));
}

/// A grant's publish rate stops reading the socket; nothing is lost. [mqtt 8.1]
#[tokio::test]
async fn a_granted_rate_slows_and_loses_nothing() {
    use weida_mqtt::config::PublishRate;
    let mut config = config();
    config.grants[0].rate = Some(PublishRate {
        messages_per_second: 50,
        bytes_per_second: 0,
    });
    let world = World::start(config, MemoryFabric::new()).await;
    let mut a = world.client("a").await;
    let started = tokio::time::Instant::now();
    for _ in 0..80 {
        a.publish("x", b"", QoS::AtMostOnce).await;
    }
    a.ping().await;
    let took = started.elapsed();
    assert!(took >= Duration::from_millis(500), "{took:?}");
    let seen = weida_mqtt::metrics::PublishResult::NoSubscriber;
    eventually("all were taken", || {
        world.metrics.published_in(QoS::AtMostOnce, seen).get() == 80
    })
    .await;
}
