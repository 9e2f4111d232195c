//! Between MQTT clients and weida: when PUBACK leaves, what back-pressure does, what is settled.

use std::time::Duration;

use tokio::time::{Instant, timeout};
use weida_bridge::{
    AckOn, DropCause, FabricErrorKind, MemoryFabric, Outcome, Pattern, Principal, Refusal,
    Template, WEIDA,
};
use weida_mqtt::codec::{QoS, ReasonCode};
use weida_mqtt::metrics::{Cause, Closed, Op, PublishResult};

use crate::common::client::{message, user_properties};
use crate::common::{
    Client, Options, World, config, egress, envelope, eventually, ingress, push, route,
};

const QUIET: Duration = Duration::from_millis(100);

/// A QoS 1 publisher hears PUBACK only after weida reports the receipt. [MQTT5 4.3.2]
#[tokio::test]
async fn puback_waits_for_the_receipt() {
    let fabric = MemoryFabric::new();
    let probe = fabric.add_ingress("in", Outcome::Receipt);
    let mut config = config();
    config.ingress = vec![push("in", "plant/+/temp")];
    let world = World::start(config, fabric).await;
    let mut sensor = world.client("sensor-7").await;
    probe.hold();
    let id = sensor
        .publish("plant/7/temp", b"21.5", QoS::AtLeastOnce)
        .await;
    let got = probe.next().await;
    assert_eq!(
        (got.topic.as_str(), &got.payload[..]),
        ("plant.7.temp", &b"21.5"[..])
    );
    sensor.silent_for(QUIET).await;
    probe.release_all();
    assert_eq!(sensor.puback().await, (id.unwrap(), ReasonCode::Success));
}

/// The whole MQTT column of the table, at 5.0 and at 3.1.1. [reconciled 3]
#[tokio::test]
async fn reconciled_3_every_outcome_reaches_the_publisher() {
    let fabric = MemoryFabric::new();
    let probe = fabric.add_ingress("in", Outcome::Receipt);
    let mut config = config();
    config.ingress = vec![push("in", "#")];
    let world = World::start(config, fabric).await;
    let mut client = world.client("c").await;
    let rows = [
        (Outcome::Receipt, 0x00),
        (Outcome::Processed, 0x00),
        (Outcome::Dropped(DropCause::NoSubscriber), 0x10),
        (Outcome::DeadLettered(DropCause::RefusedByDestination), 0x00),
        (Outcome::DeadLettered(DropCause::Unroutable), 0x10),
        (Outcome::Refused(Refusal::Rejected), 0x83),
        (Outcome::Refused(Refusal::UnknownEndpoint), 0x10),
        (Outcome::Refused(Refusal::NotAuthorized), 0x87),
        (Outcome::Refused(Refusal::QueueFull), 0x97),
        (Outcome::Filtered, 0x00),
    ];
    for (outcome, code) in rows {
        probe.answer(outcome.clone());
        assert_eq!(
            client.publish_acked("x", b"").await.code(),
            code,
            "{outcome:?}"
        );
    }
    assert_eq!(world.metrics.inflight.get(), 0);
}

/// Indeterminate: no PUBACK, and the connection lives. [BR-18]
#[tokio::test]
async fn br_18_indeterminate_is_never_acknowledged() {
    let fabric = MemoryFabric::new();
    let probe = fabric.add_ingress("in", Outcome::Receipt);
    probe
        .then(Outcome::Indeterminate)
        .then_fail(FabricErrorKind::Away);
    let mut config = config();
    config.ingress = vec![push("in", "#")];
    let world = World::start(config, fabric).await;
    let mut client = world.client("c").await;
    client.publish("x", b"1", QoS::AtLeastOnce).await;
    client.publish("x", b"2", QoS::AtLeastOnce).await;
    let third = client.publish("x", b"3", QoS::AtLeastOnce).await.unwrap();
    assert_eq!(client.puback().await, (third, ReasonCode::Success));
    client.ping().await;
    let counted = world
        .metrics
        .published_in(QoS::AtLeastOnce, PublishResult::Indeterminate);
    assert_eq!(counted.get(), 2);
}

/// PUBACKs leave in the order the publishes came, whatever order the routes answer in.
/// [MQTT5 4.6]
#[tokio::test]
async fn pubacks_leave_in_receipt_order() {
    let fabric = MemoryFabric::new();
    let slow = fabric.add_ingress("slow", Outcome::Receipt);
    let _fast = fabric.add_ingress("fast", Outcome::Receipt);
    let mut config = config();
    config.ingress = vec![push("slow", "slow"), push("fast", "fast")];
    let world = World::start(config, fabric).await;
    let mut client = world.client("c").await;
    slow.hold();
    let first = client.publish("slow", b"", QoS::AtLeastOnce).await.unwrap();
    let second = client.publish("fast", b"", QoS::AtLeastOnce).await.unwrap();
    client.silent_for(QUIET).await;
    slow.release_all();
    assert_eq!(client.puback().await.0, first);
    assert_eq!(client.puback().await.0, second);
}

/// A full route stops that client's publishes, never its pings, acknowledgements or subscribes;
/// named loss N15: when the window is full, publishes to other routes wait too. [BR-10]
#[tokio::test]
async fn mqtt_n15_a_blocked_route_stops_publishes_and_nothing_else() {
    let fabric = MemoryFabric::new();
    let blocked = fabric.add_ingress("blocked", Outcome::Receipt);
    let free = fabric.add_ingress("free", Outcome::Receipt);
    let mut config = config();
    config.listeners[0].receive_maximum = 4;
    config.ingress = vec![push("blocked", "blocked"), push("free", "free")];
    let world = World::start(config, fabric).await;
    let mut client = world.client("c").await;
    let mut other = world.client("other").await;
    blocked.stall();
    for _ in 0..3 {
        client.publish("blocked", b"", QoS::AtLeastOnce).await;
    }
    client.publish("free", b"goes on", QoS::AtLeastOnce).await;
    assert_eq!(
        &free.next().await.payload[..],
        b"goes on",
        "the window is not full yet"
    );
    let started = Instant::now();
    client.ping().await;
    assert_eq!(
        client.subscribe("x", QoS::AtLeastOnce).await,
        ReasonCode::GrantedQos1
    );
    other.publish("x", b"in", QoS::AtLeastOnce).await;
    let got = client.message().await;
    client.acknowledge(&got).await;
    assert_eq!(other.puback().await.1, ReasonCode::Success);
    assert!(started.elapsed() < Duration::from_secs(1));
    assert_eq!(other.publish_acked("free", b"").await, ReasonCode::Success);
    assert_eq!(blocked.seen(), 0);
    blocked.resume();
    for _ in 0..4 {
        assert_eq!(client.puback().await.1, ReasonCode::Success);
    }
    assert_eq!(blocked.seen(), 3);
}

/// QoS 0 into a full route stops its client for `qos0_block`, then it is dropped and counted.
/// [mqtt 11.1]
#[tokio::test]
async fn qos0_into_a_full_route_waits_a_second_then_drops() {
    let fabric = MemoryFabric::new();
    let probe = fabric.add_ingress("in", Outcome::Receipt);
    let mut config = config();
    config.listeners[0].qos0_block = Duration::from_millis(300);
    config.ingress = vec![push("in", "#")];
    let world = World::start(config, fabric).await;
    let mut client = world.client("c").await;
    probe.stall();
    let started = Instant::now();
    client.publish("x", b"", QoS::AtMostOnce).await;
    // Time for the driver to meet the full route: what comes in the same read is still handled.
    tokio::time::sleep(Duration::from_millis(50)).await;
    for _ in 0..4 {
        client.publish("x", b"", QoS::AtMostOnce).await;
    }
    client.ping().await;
    let waited = started.elapsed();
    assert!(
        waited >= Duration::from_millis(250),
        "the socket was not read: {waited:?}"
    );
    assert!(waited < Duration::from_secs(2));
    client.publish("x", b"at once", QoS::AtMostOnce).await;
    let again = Instant::now();
    client.ping().await;
    assert!(
        again.elapsed() < Duration::from_millis(200),
        "no second wait while it stays full"
    );
    assert_eq!(
        world
            .metrics
            .published_in(QoS::AtMostOnce, PublishResult::Dropped)
            .get(),
        6
    );
    probe.resume();
    client.publish("x", b"later", QoS::AtLeastOnce).await;
    assert_eq!(client.puback().await.1, ReasonCode::Success);
    assert_eq!(&probe.next().await.payload[..], b"later");
}

/// What a route took over is seen through although its client left. [gateway rule 2]
#[tokio::test]
async fn route_calls_outlive_their_client() {
    let fabric = MemoryFabric::new();
    let probe = fabric.add_ingress("in", Outcome::Receipt);
    let mut config = config();
    config.ingress = vec![push("in", "#")];
    let world = World::start(config, fabric).await;
    let mut client = world.client("c").await;
    probe.hold();
    probe.stall();
    client.publish("x", b"parked", QoS::AtLeastOnce).await;
    client.ping().await;
    drop(client);
    eventually("the session ends", || world.metrics.sessions.get() == 0).await;
    probe.resume();
    assert_eq!(&probe.next().await.payload[..], b"parked");
    eventually("it is held", || probe.held() == 1).await;
    probe.release_all();
    let drained = world.stop().await;
    assert_eq!(drained.cut_publishes, 0);
}

/// Labels are claims in the metadata, only when the route says so. [mqtt 11.2] [S8-31]
#[tokio::test]
async fn s8_31_a_client_id_is_a_label_and_nothing_else() {
    let fabric = MemoryFabric::new();
    let labelled = fabric.add_ingress("labelled", Outcome::Receipt);
    let plain = fabric.add_ingress("plain", Outcome::Receipt);
    let mut config = config();
    config.ingress = vec![push("labelled", "l/#"), push("plain", "p/#")];
    config.ingress[0].route.labels = true;
    let world = World::start(config, fabric).await;
    let fingerprint = "sha256:9f2c4e6a8b0d1f3355779900aabbccddeeff00112233445566778899aabbccdd";
    let mut client = world.client(fingerprint).await;
    client.publish("l/x", b"", QoS::AtMostOnce).await;
    client.publish("p/x", b"", QoS::AtMostOnce).await;
    let got = labelled.next().await;
    assert_eq!(got.meta.get("mqtt.client-id"), Some(fingerprint));
    assert_eq!(got.meta.get("gateway.principal"), Some("anonymous"));
    assert_eq!(got.peer, None);
    let got = plain.next().await;
    assert!(got.meta.is_empty());
    assert_eq!(got.peer, None);
    let shown = got.session.unwrap();
    assert_eq!(shown.principal, Some(Principal::anonymous()));
    assert_eq!(&*shown.foreign, fingerprint, "shown as a claim");
}

/// Reserved names from a client are removed and counted; the mark is read. [mqtt 11.2]
#[tokio::test]
async fn mqtt_11_2_reserved_names_cannot_be_forged() {
    let fabric = MemoryFabric::new();
    let probe = fabric.add_ingress("in", Outcome::Receipt);
    let mut config = config();
    config.ingress = vec![push("in", "#")];
    let world = World::start(config, fabric).await;
    let (mut a, mut b) = (world.client("a").await, world.client("b").await);
    b.subscribe("x", QoS::AtMostOnce).await;
    let mut publish = message("x", b"", QoS::AtMostOnce);
    let pairs = [
        ("weida-peer", "sha256:00"),
        ("mqtt.retain", "1"),
        ("site", "1"),
    ];
    publish.properties.message.user_properties = user_properties(&pairs);
    a.publish_with(publish).await;
    let crossed = probe.next().await;
    assert_eq!(crossed.meta.iter().collect::<Vec<_>>(), [("site", "1")]);
    let local = b.message().await;
    assert_eq!(
        local
            .properties
            .message
            .user_properties
            .iter()
            .collect::<Vec<_>>(),
        [("site", "1")]
    );
    assert_eq!(world.metrics.reserved_meta_removed.get(), 2);
    let mut looped = message("x", b"", QoS::AtLeastOnce);
    looped.properties.message.user_properties =
        user_properties(&[("weida-via", "abababababababab")]);
    a.publish_with(looped).await;
    assert_eq!(a.puback().await.1, ReasonCode::Success);
    assert_eq!(
        probe.seen(),
        1,
        "a message that came round is not forwarded again"
    );
}

/// Names map by template and bijection; one that cannot cross is refused. [mqtt 10]
#[tokio::test]
async fn mqtt_10_names_cross_or_are_refused() {
    let fabric = MemoryFabric::new();
    let probe = fabric.add_ingress("in", Outcome::Receipt);
    let mut config = config();
    config.ingress = vec![push("in", "plant/+/#")];
    config.ingress[0].route.topic = Template::parse("site.{1}.{rest}", &WEIDA).unwrap();
    let world = World::start(config, fabric).await;
    let mut client = world.client("c").await;
    for (topic, mapped) in [
        ("plant/7.1/temp/a", "site.7%2E1.temp.a"),
        ("plant/7.1/temp/a", "site.7%2E1.temp.a"),
        ("plant/8/x", "site.8.x"),
    ] {
        assert_eq!(client.publish_acked(topic, b"").await, ReasonCode::Success);
        assert_eq!(probe.next().await.topic.as_str(), mapped);
    }
    let long = format!("plant/{}/x", "n".repeat(300));
    assert_eq!(
        client.publish_acked(&long, b"").await,
        ReasonCode::TopicNameInvalid
    );
    assert_eq!(
        world.metrics.refused(Op::Publish, Cause::NameTooLong).get(),
        1
    );
}

/// A delivery reaches the matching sessions with the proved mark, and is settled by their
/// acknowledgements. [mqtt 11.1]
#[tokio::test]
async fn a_delivery_is_settled_when_every_session_acknowledged() {
    let fabric = MemoryFabric::new();
    let probe = fabric.add_egress("out", 16);
    let mut config = config();
    config.egress = vec![egress("out", Pattern::Pull, AckOn::Receipt)];
    let world = World::start(config, fabric).await;
    let (mut a, mut b) = (world.client("a").await, world.client_v4("b").await);
    a.subscribe("cmd/#", QoS::AtLeastOnce).await;
    b.subscribe("cmd/7/open", QoS::AtLeastOnce).await;
    let settled = probe
        .push(envelope("out", "cmd.7.open", b"now"))
        .await
        .unwrap();
    let mut settled = Box::pin(settled);
    let (first, second) = (a.message().await, b.message().await);
    assert_eq!(
        (first.topic.as_str(), &first.payload[..]),
        ("cmd/7/open", &b"now"[..])
    );
    let pairs: Vec<_> = first.properties.message.user_properties.iter().collect();
    assert_eq!(pairs, [("weida-via", "abababababababab")]);
    a.acknowledge(&first).await;
    assert!(
        timeout(QUIET, &mut settled).await.is_err(),
        "one session has not answered"
    );
    b.acknowledge(&second).await;
    assert_eq!(settled.await, Outcome::Receipt);
}

/// Nobody matched, a session that left, a message that is too large, a name that is none.
#[tokio::test]
async fn deliveries_that_do_not_arrive_say_why() {
    let fabric = MemoryFabric::new();
    let probe = fabric.add_egress("out", 16);
    let mut config = config();
    config.listeners[0].max_message_bytes = 2048;
    config.egress = vec![egress("out", Pattern::Pull, AckOn::Receipt)];
    let world = World::start(config, fabric).await;
    let push = |topic: &'static str, payload: Vec<u8>| {
        let envelope = envelope("out", topic, &payload);
        let probe = &probe;
        async move { probe.push(envelope).await.unwrap().await }
    };
    assert_eq!(
        push("x", vec![]).await,
        Outcome::Dropped(DropCause::NoSubscriber)
    );
    assert_eq!(push("", vec![]).await, Outcome::Dropped(DropCause::BadName));
    let mut a = world.client("a").await;
    a.subscribe("x", QoS::AtLeastOnce).await;
    let (outcome, ()) = tokio::join!(push("x", vec![0; 2048]), async {
        let got = a.message().await;
        a.acknowledge(&got).await;
    });
    assert_eq!(outcome, Outcome::Receipt, "exactly the bound passes");
    let one_over = push("x", vec![0; 2049]).await;
    assert_eq!(one_over, Outcome::Refused(Refusal::TooLarge));
    let (outcome, _) = tokio::join!(push("x", vec![1]), async {
        a.message().await;
        drop(a);
    });
    assert_eq!(outcome, Outcome::Indeterminate);
}

/// Named loss N4: a weida payload one byte over the cap is refused whole, never cut.
#[tokio::test]
async fn mqtt_n4_one_byte_over_the_cap_is_refused() {
    let fabric = MemoryFabric::new();
    let probe = fabric.add_egress("out", 16);
    let mut config = config();
    config.listeners[0].max_message_bytes = 4096;
    config.egress = vec![egress("out", Pattern::Pull, AckOn::Sent)];
    let world = World::start(config, fabric).await;
    let mut a = world.client("a").await;
    a.subscribe("#", QoS::AtMostOnce).await;
    let settled = probe
        .push(envelope("out", "x", &[7; 4096]))
        .await
        .unwrap()
        .await;
    assert_eq!(
        settled,
        Outcome::Fanned {
            copies: 1,
            dropped: 0
        }
    );
    assert_eq!(a.message().await.payload.len(), 4096);
    let settled = probe
        .push(envelope("out", "x", &[7; 4097]))
        .await
        .unwrap()
        .await;
    assert_eq!(settled, Outcome::Refused(Refusal::TooLarge));
    a.silent_for(QUIET).await;
}

/// Named loss N3: a receipt is not processing. The publisher hears success although the consumer
/// never looked at the message.
#[tokio::test]
async fn mqtt_n3_receipt_is_not_processing() {
    let fabric = MemoryFabric::new();
    let probe = fabric.add_ingress("in", Outcome::Receipt);
    let mut config = config();
    config.ingress = vec![push("in", "#")];
    let world = World::start(config, fabric).await;
    let mut client = world.client("c").await;
    assert_eq!(
        client.publish_acked("x", b"unread").await,
        ReasonCode::Success
    );
    // The consumer dies here: nobody ever calls next() on the probe.
    assert_eq!(probe.seen(), 1);
    drop(probe);
    client.ping().await;
}

/// Named loss N11: SUBACK says that we registered the filter, not that anything will ever come.
/// [S17-32]
#[tokio::test]
async fn s17_32_suback_is_given_on_local_knowledge() {
    let fabric = MemoryFabric::new();
    let probe = fabric.add_egress("out", 4);
    let mut config = config();
    config.egress = vec![egress("out", Pattern::Subscribe, AckOn::Sent)];
    let world = World::start(config, fabric).await;
    let mut a = world.client("a").await;
    assert_eq!(
        a.subscribe("silent/path", QoS::AtLeastOnce).await,
        ReasonCode::GrantedQos1
    );
    a.silent_for(QUIET).await;
    let settled = probe
        .push(envelope("out", "silent.path", b"late"))
        .await
        .unwrap();
    assert_eq!(&a.message().await.payload[..], b"late");
    assert_eq!(
        settled.await,
        Outcome::Fanned {
            copies: 1,
            dropped: 0
        }
    );
}

/// Where nothing could ever come, a filter is refused instead of granted in silence. [S17-33]
#[tokio::test]
async fn s17_33_a_filter_that_nothing_can_reach_is_refused() {
    let mut config = config();
    config.listeners[0].routes_only = true;
    let fabric = MemoryFabric::new();
    let world = World::start(config.clone(), fabric).await;
    let mut a = world.client("a").await;
    let code = a.subscribe("x", QoS::AtLeastOnce).await;
    assert_eq!(code, ReasonCode::ImplementationSpecificError);
    let fabric = MemoryFabric::new();
    let _probe = fabric.add_egress("out", 4);
    config.egress = vec![egress("out", Pattern::Subscribe, AckOn::Sent)];
    let world = World::start(config, fabric).await;
    let mut a = world.client("a").await;
    assert_eq!(
        a.subscribe("x", QoS::AtLeastOnce).await,
        ReasonCode::GrantedQos1
    );
    let mut b = world.client("b").await;
    let code = b.publish_acked("x", b"").await;
    assert_eq!(
        code,
        ReasonCode::NoMatchingSubscribers,
        "routes_only: no local exchange"
    );
}

/// Local subscribers and routes both get a message; one refusal is what the publisher hears.
#[tokio::test]
async fn the_most_serious_answer_of_routes_and_sessions_decides() {
    let fabric = MemoryFabric::new();
    let _good = fabric.add_ingress("good", Outcome::Receipt);
    let bad = fabric.add_ingress("bad", Outcome::Refused(Refusal::Rejected));
    let mut config = config();
    config.ingress = vec![push("good", "#"), push("bad", "#")];
    let world = World::start(config, fabric).await;
    let mut a = world.client("a").await;
    let mut b = world.client("b").await;
    b.subscribe("x", QoS::AtMostOnce).await;
    let code = a.publish_acked("x", b"").await;
    assert_eq!(code, ReasonCode::ImplementationSpecificError);
    assert_eq!(b.message().await.topic.as_str(), "x");
    bad.answer(Outcome::Receipt);
    assert_eq!(a.publish_acked("x", b"").await, ReasonCode::Success);
}

/// A route of pattern publish is settled by the fan-out itself. [mqtt 11.1]
#[tokio::test]
async fn a_fan_out_route_acknowledges_at_sent() {
    let fabric = MemoryFabric::new();
    let probe = fabric.add_ingress(
        "pub",
        Outcome::Fanned {
            copies: 3,
            dropped: 0,
        },
    );
    let mut config = config();
    config.ingress = vec![ingress("pub", "#", Pattern::Publish, AckOn::Sent)];
    let world = World::start(config, fabric).await;
    let mut client = world.client("c").await;
    assert_eq!(client.publish_acked("x", b"").await, ReasonCode::Success);
    probe.answer(Outcome::Fanned {
        copies: 0,
        dropped: 0,
    });
    assert_eq!(
        client.publish_acked("x", b"").await,
        ReasonCode::NoMatchingSubscribers
    );
}

/// A route only takes what its own listener accepted. [mqtt 2]
#[tokio::test]
async fn a_route_takes_only_what_its_listener_accepted() {
    let fabric = MemoryFabric::new();
    let probe = fabric.add_ingress("in", Outcome::Receipt);
    let mut config = config();
    let mut second = config.listeners[0].clone();
    second.name = "second".into();
    config.listeners.push(second);
    config.ingress = vec![push("in", "#")];
    let world = World::start(config, fabric).await;
    let mut here = world.client("here").await;
    let mut there = Client::connect(world.addrs[1], Options::v5("there")).await;
    here.subscribe("x", QoS::AtMostOnce).await;
    there.publish("x", b"local only", QoS::AtMostOnce).await;
    assert_eq!(
        &here.message().await.payload[..],
        b"local only",
        "one group, one exchange"
    );
    here.publish("y", b"routed", QoS::AtMostOnce).await;
    assert_eq!(&probe.next().await.payload[..], b"routed");
    assert_eq!(probe.seen(), 1);
}

/// A configuration that cannot be honoured is refused with every reason. [mqtt 14]
#[tokio::test]
async fn mqtt_14_check_refuses_what_cannot_be_honoured() {
    use std::sync::Arc;
    use weida_bridge::MemoryStore;
    use weida_mqtt::MqttAdapter;
    let refused = |config| {
        let store = Arc::new(MemoryStore::new(10, 1000));
        let made = MqttAdapter::new(config, Arc::new(MemoryFabric::new()), store);
        made.err().map_or(0, |error| error.refused.len())
    };
    assert_eq!(refused(config()), 0);
    let mut bad = config();
    bad.ingress = vec![
        ingress("fan", "#", Pattern::Publish, AckOn::Receipt),
        ingress("wrong", "#", Pattern::Pull, AckOn::Receipt),
    ];
    bad.ingress[0].listener = "elsewhere".into();
    bad.listeners[0].receive_maximum = 0;
    bad.listeners[0].max_qos = 2;
    bad.egress = vec![egress("out", Pattern::Pull, AckOn::Stored)];
    bad.egress[0].retain = true;
    assert!(refused(bad) >= 7, "all at once");
    let mut unknown = config();
    unknown.ingress = vec![push("nobody-knows", "#")];
    assert_eq!(refused(unknown), 1, "the fabric does not know the route");
    assert_eq!(route("r", Pattern::Push, AckOn::Receipt).id.as_str(), "r");
}

/// A drain with a stuck route ends at its bound and says what was cut. [gateway rule 10]
#[tokio::test]
async fn a_drain_is_bounded_and_reports() {
    let fabric = MemoryFabric::new();
    let probe = fabric.add_ingress("in", Outcome::Receipt);
    let mut config = config();
    config.drain_timeout = Duration::from_millis(300);
    config.ingress = vec![push("in", "#")];
    let world = World::start(config, fabric).await;
    let mut client = world.client("c").await;
    probe.hold();
    client.publish("x", b"", QoS::AtLeastOnce).await;
    probe.next().await;
    let metrics = std::sync::Arc::clone(&world.metrics);
    let started = Instant::now();
    let (drained, _) = tokio::join!(world.stop(), client.closed());
    assert!(started.elapsed() < Duration::from_secs(5));
    assert_eq!(drained.cut_publishes, 1);
    assert_eq!(metrics.closed(Closed::Shutdown).get(), 1);
}
