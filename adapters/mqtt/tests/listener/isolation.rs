//! One bad client does not cost the others: round trips stay short, rates stay up, memory stays
//! bounded. [mqtt 8.2] [issue 2 item 15]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;
use weida_bridge::MemoryFabric;
use weida_mqtt::codec::{QoS, ReasonCode, Version};
use weida_mqtt::metrics::Closed;

use crate::common::{Client, Options, World, config, eventually};

/// A session that measures its own round trips.
async fn probe(world: &World) -> Client {
    let mut client = world.client("probe").await;
    client.subscribe("probe", QoS::AtLeastOnce).await;
    client
}

/// Measures quiet and disturbed stretches in turn, so that the machine's own load meets both: the
/// rate keeps 80 % and the 99th percentile stays below a second. Other work on the machine may
/// spoil one comparison, not all of them.
async fn unharmed(client: &mut Client, disturb: &AtomicBool) {
    let mut last = String::new();
    for _ in 0..6 {
        let (mut quiet, mut busy) = (Vec::new(), Vec::new());
        for round in 0..10 {
            disturb.store(round % 2 == 1, Ordering::Relaxed);
            let trips = if round % 2 == 1 {
                &mut busy
            } else {
                &mut quiet
            };
            let until = Instant::now() + Duration::from_millis(80);
            while Instant::now() < until {
                let started = Instant::now();
                client.publish("probe", b"x", QoS::AtMostOnce).await;
                client.message().await;
                trips.push(started.elapsed());
            }
        }
        busy.sort_unstable();
        let p99 = busy[busy.len() * 99 / 100];
        assert!(p99 < Duration::from_secs(1), "{p99:?}");
        if busy.len() * 10 >= quiet.len() * 8 {
            return;
        }
        last = format!("{} of {} round trips", busy.len(), quiet.len());
    }
    panic!("{last}");
}

/// A subscriber that never reads loses QoS 0 copies, counted; the publisher and others do not
/// notice. The flood is paced so that the machine itself is not the limit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_reader_costs_only_itself() {
    let world = World::local().await;
    let mut probe = probe(&world).await;
    let mut lazy = world.client("lazy").await;
    lazy.subscribe("flood/#", QoS::AtLeastOnce).await;
    let disturb = Arc::new(AtomicBool::new(true));
    let mut tasks = JoinSet::new();
    let (addr, on) = (world.addr, Arc::clone(&disturb));
    tasks.spawn(async move {
        let mut source = Client::connect(addr, Options::v5("source")).await;
        let payload = vec![7; 4096];
        loop {
            if on.load(Ordering::Relaxed) {
                for _ in 0..10 {
                    source.publish("flood/0", &payload, QoS::AtMostOnce).await;
                }
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    eventually("copies are dropped", || {
        world.metrics.qos0_dropped.get() > 0
    })
    .await;
    unharmed(&mut probe, &disturb).await;
    tasks.shutdown().await;
    assert_eq!(
        world.metrics.closed(Closed::WriteStall).get(),
        0,
        "not stalled for 30 s yet"
    );
}

/// QoS 1 toward a client that never acknowledges is bounded by the queue, and counted. [N5]
#[tokio::test]
async fn mqtt_18_21_a_client_that_never_acknowledges_is_bounded() {
    let mut config = config();
    config.listeners[0].queue.messages = 100;
    let world = World::start(config, MemoryFabric::new()).await;
    let mut lazy = world.client("lazy").await;
    lazy.subscribe("x", QoS::AtLeastOnce).await;
    let mut source = world.client("source").await;
    for _ in 0..300 {
        assert_eq!(
            source.publish_acked("x", &[0; 100]).await,
            ReasonCode::Success
        );
    }
    assert_eq!(world.metrics.queue_messages.get(), 100);
    let policy = weida_mqtt::config::QueueFull::DropNewest;
    assert_eq!(world.metrics.queue_dropped(policy).get(), 200);
    lazy.send(&weida_mqtt::codec::Packet::Pingreq).await;
    drop(lazy);
    eventually("the queue is given back", || {
        world.metrics.queue_messages.get() == 0
    })
    .await;
}

/// With `end-session` the client is told and starts again. [mqtt 18 #31]
#[tokio::test]
async fn mqtt_18_31_end_session_tells_the_client() {
    let mut config = config();
    config.listeners[0].queue.messages = 10;
    config.listeners[0].queue.full = weida_mqtt::config::QueueFull::EndSession;
    let world = World::start(config, MemoryFabric::new()).await;
    let mut lazy = world.client("lazy").await;
    lazy.subscribe("x", QoS::AtLeastOnce).await;
    let mut source = world.client("source").await;
    for _ in 0..11 {
        source.publish_acked("x", b"").await;
    }
    assert_eq!(lazy.closed().await, Some(ReasonCode::QuotaExceeded));
    assert_eq!(world.metrics.closed(Closed::QueueFull).get(), 1);
}

/// UNSUBACK and PINGRESP come although the queue is full and the window closed. [mqtt 18 #32]
#[tokio::test]
async fn mqtt_18_32_the_control_lane_is_never_dropped() {
    let world = World::local().await;
    let mut client = Client::connect(world.addr, Options::v5("c").receive_maximum(1)).await;
    client.subscribe("x", QoS::AtLeastOnce).await;
    let mut source = world.client("source").await;
    for _ in 0..1010 {
        source.publish("x", b"", QoS::AtLeastOnce).await;
        source.puback().await;
    }
    let first = client.message().await;
    client.ping().await;
    let unsuback = client.unsubscribe(&["x"]).await;
    assert_eq!(unsuback.codes, [ReasonCode::Success]);
    client.acknowledge(&first).await;
}

/// A flood of connections, half of them silent, leaves another client's round trips alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_connects_costs_nobody_else() {
    let mut config = config();
    config.limits.per_ip_exempt_loopback = false;
    config.listeners[0].handshake_timeout = Duration::from_millis(500);
    let world = World::start(config, MemoryFabric::new()).await;
    let mut probe = probe(&world).await;
    let disturb = Arc::new(AtomicBool::new(true));
    let mut tasks = JoinSet::new();
    let (addr, on) = (world.addr, Arc::clone(&disturb));
    tasks.spawn(async move {
        let mut held = std::collections::VecDeque::new();
        loop {
            if on.load(Ordering::Relaxed) {
                let mut stranger = Client::open(addr, Version::V5).await;
                if held.len() % 2 == 0 {
                    stranger
                        .send_hex("10 0e 0004 4d515454 05 02 003c 00 0001")
                        .await;
                }
                held.push_back(stranger);
                if held.len() > 200 {
                    held.pop_front();
                }
            }
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
    });
    eventually("strangers are turned away", || {
        world.metrics.refused_total() > 20
    })
    .await;
    unharmed(&mut probe, &disturb).await;
    tasks.shutdown().await;
}
