//! Strangers before CONNECT: slow, huge, many. [mqtt 18 #44]

use std::time::Duration;

use tokio::time::Instant;
use weida_bridge::MemoryFabric;
use weida_mqtt::codec::{QoS, ReasonCode, Version};
use weida_mqtt::metrics::Closed;

use crate::common::{Client, World, config, eventually};

/// A CONNECT that trickles in is cut at the deadline, whatever it sent. [mqtt 3.1]
#[tokio::test]
async fn a_slow_loris_connect_is_cut_at_the_deadline() {
    let mut config = config();
    config.listeners[0].handshake_timeout = Duration::from_millis(400);
    let world = World::start(config, MemoryFabric::new()).await;
    let _valid = world.client("ok").await;
    let started = Instant::now();
    let mut loris = Client::open(world.addr, Version::V5).await;
    let mut silent = Client::open(world.addr, Version::V5).await;
    let trickle = async {
        for byte in [
            "10", "0e", "00", "04", "4d", "51", "54", "54", "05", "02", "00", "3c",
        ] {
            loris.send_hex(byte).await;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let (closed, ()) = tokio::join!(silent.closed(), trickle);
    assert_eq!(closed, None);
    assert_eq!(loris.closed().await, None);
    assert!(started.elapsed() < Duration::from_secs(3));
    eventually("both are counted", || {
        world.metrics.closed(Closed::Handshake).get() == 2
    })
    .await;
}

/// CVE-2017-7651 class: a Remaining Length reserves nothing before CONNECT is whole.
#[tokio::test]
async fn mqtt_18_44_a_huge_connect_is_refused_unread() {
    let world = World::local().await;
    let before = resident_kib();
    let mut strangers = Vec::new();
    for _ in 0..200 {
        let mut stranger = Client::open(world.addr, Version::V5).await;
        // 256 MiB announced.
        stranger
            .send_hex("10 ff ff ff 7f 00 04 4d 51 54 54 05")
            .await;
        strangers.push(stranger);
    }
    for stranger in &mut strangers {
        stranger.closed().await;
    }
    let grown = resident_kib().saturating_sub(before);
    assert!(grown < 200 * 64, "{grown} KiB for 200 strangers");
    let _valid = world.client("ok").await;
}

/// A client that floods pings and never reads is stopped by TCP, and its memory is bounded.
#[tokio::test]
async fn pings_that_nobody_reads_stop_their_sender() {
    let mut config = config();
    config.listeners[0].write_stall = Duration::from_millis(600);
    let world = World::start(config, MemoryFabric::new()).await;
    let mut flood = world.client("flood").await;
    let pings = [0xc0, 0].repeat(32 << 10);
    let sent = async {
        for _ in 0..400 {
            flood.send_raw(&pings).await;
        }
    };
    let _cut: Result<(), _> = tokio::time::timeout(Duration::from_secs(20), sent).await;
    eventually("it is closed for not reading", || {
        world.metrics.closed(Closed::WriteStall).get() == 1
    })
    .await;
    let _valid = world.client("ok").await;
}

/// Packets over the handshake bound never reach the listener's own maximum.
#[tokio::test]
async fn a_connect_over_64_kib_is_refused() {
    let world = World::local().await;
    let mut client = Client::open(world.addr, Version::V5).await;
    client.send_hex("10 81 80 04").await;
    client.send_raw(&[0; 4096]).await;
    assert_eq!(client.closed().await, None);
    let mut fits = world.client("ok").await;
    fits.ping().await;
    assert_eq!(
        fits.subscribe("x", QoS::AtMostOnce).await,
        ReasonCode::Success
    );
}

fn resident_kib() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok())
        .unwrap_or_default()
}
