//! One ClientID, two connections: the same principal moves, another one is refused. [mqtt 4.7]

use std::time::Duration;

use tokio::time::Instant;
use weida_bridge::MemoryFabric;
use weida_mqtt::codec::{QoS, ReasonCode, Version};
use weida_mqtt::metrics::{Cause, Closed, Op};

use crate::common::{Client, Options, World, config, with_passwords};

/// The old client reads 0x8E, the new one starts clean. [mqtt 18 #35]
#[tokio::test]
async fn mqtt_18_35_takeover_by_same_principal_is_told_0x8e() {
    let world = World::local().await;
    let mut old = world.client("same").await;
    old.subscribe("x", QoS::AtLeastOnce).await;
    let new = world.client("same").await;
    assert!(!new.connack.as_ref().unwrap().session_present);
    assert_eq!(old.closed().await, Some(ReasonCode::SessionTakenOver));
    let mut other = world.client("other").await;
    let code = other.publish_acked("x", b"").await;
    assert_eq!(
        code,
        ReasonCode::NoMatchingSubscribers,
        "nothing was inherited"
    );
    assert_eq!(world.metrics.takeovers_same.get(), 1);
    assert_eq!(world.metrics.closed(Closed::TakenOver).get(), 1);
    assert_eq!(world.metrics.sessions.get(), 2);
}

/// 3.1.1 is closed without a word.
#[tokio::test]
async fn takeover_closes_a_v4_client_without_a_word() {
    let world = World::local().await;
    let mut old = world.client_v4("same").await;
    let _new = world.client("same").await;
    assert_eq!(old.closed().await, None);
}

/// An expiry-0 session is not inherited by whoever takes it over. [mqtt 18 #6]
#[tokio::test]
async fn mqtt_18_6_an_expiry_0_session_is_not_inherited() {
    let world = World::local().await;
    let mut old = Client::connect(world.addr, Options::v5("same").not_clean()).await;
    old.subscribe("x", QoS::AtMostOnce).await;
    let mut new = Client::connect(world.addr, Options::v5("same").not_clean()).await;
    assert!(!new.connack.as_ref().unwrap().session_present);
    new.publish("x", b"", QoS::AtMostOnce).await;
    new.ping().await;
}

/// Every combination of versions and clean starts: another principal gets nothing, and the owner
/// notices nothing. [mqtt 9.4] [S8-34]
#[tokio::test]
async fn s8_34_other_principal_is_refused_in_every_combination() {
    let (mut config, _passwords) = with_passwords(&["ann", "bob"]);
    config.limits.takeovers_per_minute = 100;
    let world = World::start(config, MemoryFabric::new()).await;
    let versions = [Version::V311, Version::V5];
    for owner_version in versions {
        for other_version in versions {
            for clean in [true, false] {
                let mut options = Options::new(owner_version, "sensor-7").login("ann", "ann");
                options.connect.clean_start = clean;
                let mut owner = Client::connect(world.addr, options).await;
                owner.subscribe("mine/#", QoS::AtLeastOnce).await;
                let mut options = Options::new(other_version, "sensor-7").login("bob", "bob");
                options.connect.clean_start = clean;
                let other = Client::try_connect(world.addr, options).await;
                assert_eq!(other.refusal(), Some(ReasonCode::ClientIdentifierNotValid));
                owner
                    .publish("mine/x", b"still here", QoS::AtMostOnce)
                    .await;
                assert_eq!(&owner.message().await.payload[..], b"still here");
                // The same id is free again once its owner is gone, and nothing of it is left.
                owner.disconnect(ReasonCode::Success).await;
                owner.closed().await;
                let mut options = Options::new(other_version, "sensor-7").login("bob", "bob");
                options.connect.clean_start = clean;
                let mut heir = Client::connect(world.addr, options).await;
                heir.publish("mine/x", b"", QoS::AtMostOnce).await;
                heir.ping().await;
                heir.disconnect(ReasonCode::Success).await;
                heir.closed().await;
            }
        }
    }
    assert_eq!(world.metrics.takeovers_other.get(), 8);
    assert_eq!(
        world.metrics.refused(Op::Connect, Cause::LabelInUse).get(),
        8
    );
}

/// A refused login never disturbs the incumbent. [mqtt 4.7]
#[tokio::test]
async fn s8_34_a_wrong_credential_takes_nothing_over() {
    let (config, _passwords) = with_passwords(&["ann"]);
    let world = World::start(config, MemoryFabric::new()).await;
    let mut owner = Client::connect(world.addr, Options::v5("id").login("ann", "ann")).await;
    let thief = Client::try_connect(world.addr, Options::v5("id").login("ann", "guess")).await;
    assert_eq!(thief.refusal(), Some(ReasonCode::BadUserNameOrPassword));
    owner.ping().await;
    assert_eq!(world.metrics.takeovers_same.get(), 0);
}

/// With `label_policy = any` equal ids of different principals are different sessions.
#[tokio::test]
async fn label_policy_any_keeps_equal_ids_apart() {
    let (mut config, _passwords) = with_passwords(&["ann", "bob"]);
    config.listeners[0].label_policy = weida_mqtt::config::LabelPolicy::Any;
    let world = World::start(config, MemoryFabric::new()).await;
    let mut ann = Client::connect(world.addr, Options::v5("id").login("ann", "ann")).await;
    let mut bob = Client::connect(world.addr, Options::v5("id").login("bob", "bob")).await;
    ann.ping().await;
    bob.ping().await;
}

/// The sixth takeover within a minute bans the newest address for that key; the owner stays.
#[tokio::test]
async fn mqtt_4_7_flapping_bans_the_newest_address() {
    let mut config = config();
    config.limits.per_ip_exempt_loopback = false;
    config.limits.new_connections_per_second_per_ip = 1000;
    let world = World::start(config, MemoryFabric::new()).await;
    let mut owner = world.client("flap").await;
    for _ in 0..5 {
        owner = world.client("flap").await;
    }
    let sixth = Client::try_connect(world.addr, Options::v5("flap")).await;
    assert_eq!(sixth.refusal(), Some(ReasonCode::Banned));
    owner.ping().await;
    let again = Client::try_connect(world.addr, Options::v5("flap")).await;
    assert_eq!(again.refusal(), Some(ReasonCode::Banned));
    let v4 = Client::try_connect(world.addr, Options::v4("flap")).await;
    assert_eq!(v4.refusal(), None, "3.1.1 has no code for it: closed");
    let _another_id = world.client("other").await;
}

/// Racing connections of one id: exactly one stays, each other one is told. [mqtt 4.7]
#[tokio::test]
async fn racing_connects_of_one_id_leave_exactly_one() {
    let mut config = config();
    config.limits.takeovers_per_minute = 1000;
    let world = World::start(config, MemoryFabric::new()).await;
    let mut clients: Vec<Client> = Vec::new();
    let racing = (0..8).map(|_| Client::connect(world.addr, Options::v5("race")));
    clients.extend(futures_util::future::join_all(racing).await);
    let mut told = 0;
    let mut alive = 0;
    for client in &mut clients {
        client.send(&weida_mqtt::codec::Packet::Pingreq).await;
        let deadline = Instant::now() + Duration::from_secs(5);
        loop {
            assert!(Instant::now() < deadline);
            match client.next().await {
                Some(weida_mqtt::codec::Packet::Pingresp) => {
                    alive += 1;
                    break;
                }
                Some(weida_mqtt::codec::Packet::Disconnect(d)) => {
                    assert_eq!(d.reason, ReasonCode::SessionTakenOver);
                    told += 1;
                    break;
                }
                None => break,
                Some(_) => {}
            }
        }
    }
    assert!(alive >= 1);
    assert_eq!(told + alive, 8);
    crate::common::eventually("one stays", || world.metrics.sessions.get() == 1).await;
}

/// A takeover is logged with both addresses and the claim quoted. [S8-35]
#[test]
fn s8_35_a_takeover_is_logged_with_both_addresses() {
    use std::fmt::Write;
    use std::sync::{Arc, Mutex};
    use tracing::field::{Field, Visit};
    use tracing::span::{Attributes, Id, Record};
    use tracing::{Event, Metadata, Subscriber};

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<String>>>);
    struct Text(String);
    impl Visit for Text {
        fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
            let _ = write!(self.0, "{}={value:?} ", field.name());
        }
    }
    impl Subscriber for Lines {
        fn enabled(&self, metadata: &Metadata<'_>) -> bool {
            *metadata.level() <= tracing::Level::INFO
        }
        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }
        fn record(&self, _: &Id, _: &Record<'_>) {}
        fn record_follows_from(&self, _: &Id, _: &Id) {}
        fn event(&self, event: &Event<'_>) {
            let mut text = Text(String::new());
            event.record(&mut text);
            self.0.lock().unwrap().push(text.0);
        }
        fn enter(&self, _: &Id) {}
        fn exit(&self, _: &Id) {}
    }

    let lines = Lines::default();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    tracing::subscriber::with_default(lines.clone(), || {
        runtime.block_on(async {
            let world = World::local().await;
            let old = world.client("same\"id").await;
            let new = world.client("same\"id").await;
            let (old, new) = (
                old.stream.local_addr().unwrap(),
                new.stream.local_addr().unwrap(),
            );
            let lines = lines.0.lock().unwrap();
            let line = lines
                .iter()
                .find(|line| line.contains("session taken over"))
                .unwrap();
            assert!(line.contains(&format!("old_address={old}")), "{line}");
            assert!(line.contains(&format!("new_address={new}")), "{line}");
            assert!(line.contains(r#"claimed_id="same\"id""#), "{line}");
        });
    });
}
