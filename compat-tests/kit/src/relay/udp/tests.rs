use super::*;
use crate::wait::eventually;

const SOON: Duration = Duration::from_secs(10);

struct World {
    server: UdpSocket,
    client: UdpSocket,
    relay: UdpRelay,
}

async fn world(seed: u64) -> World {
    let server = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let client = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let relay = UdpRelay::start(server.local_addr().unwrap(), seed)
        .await
        .unwrap();
    client.connect(relay.addr()).await.unwrap();
    World {
        server,
        client,
        relay,
    }
}

impl World {
    /// Sends numbered datagrams, one at a time, and gives the numbers in the order the server saw them.
    async fn send_numbers(&self, count: u32) -> Vec<u32> {
        let mut seen = Vec::new();
        for number in 0..count {
            self.client.send(&number.to_be_bytes()).await.unwrap();
            // Settled one by one: no kernel buffer decides what only the seed should.
            let done = || {
                let counts = self.relay.counts(Direction::Up);
                counts.forwarded + counts.lost == counts.received + counts.duplicated
                    && counts.received == u64::from(number) + 1
            };
            assert!(eventually_fast(done).await);
            self.drain(&mut seen);
        }
        let all = || seen_all(&self.relay, &self.server, &mut seen);
        assert!(eventually_mut(all).await);
        seen
    }

    fn drain(&self, seen: &mut Vec<u32>) {
        let mut number = [0; 4];
        while let Ok(4) = self.server.try_recv(&mut number) {
            seen.push(u32::from_be_bytes(number));
        }
    }

    async fn silent(&self) -> bool {
        let mut buffer = [0; 16];
        tokio::time::timeout(
            Duration::from_millis(200),
            self.server.recv_from(&mut buffer),
        )
        .await
        .is_err()
    }
}

fn seen_all(relay: &UdpRelay, server: &UdpSocket, seen: &mut Vec<u32>) -> bool {
    let mut number = [0; 4];
    while let Ok(4) = server.try_recv(&mut number) {
        seen.push(u32::from_be_bytes(number));
    }
    seen.len() as u64 == relay.counts(Direction::Up).forwarded
}

async fn eventually_mut(mut done: impl FnMut() -> bool) -> bool {
    eventually(&mut done, SOON).await
}

/// As `eventually`, without a pause between looks.
async fn eventually_fast(mut done: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + SOON;
    while !done() {
        if Instant::now() >= deadline {
            return false;
        }
        tokio::task::yield_now().await;
    }
    true
}

#[tokio::test]
async fn without_faults_datagrams_pass_both_ways() {
    let world = world(1).await;
    world.client.send(b"ping").await.unwrap();
    let mut buffer = [0; 16];
    let (length, relay) = world.server.recv_from(&mut buffer).await.unwrap();
    assert_eq!(&buffer[..length], b"ping");
    world.server.send_to(b"pong", relay).await.unwrap();
    assert_eq!(world.client.recv(&mut buffer).await.unwrap(), 4);
    assert_eq!(
        world.relay.counts(Direction::Down),
        UdpCounts {
            received: 1,
            forwarded: 1,
            ..UdpCounts::default()
        }
    );
}

#[tokio::test]
async fn loss_is_seeded_and_reproducible() {
    let mut runs = Vec::new();
    for seed in [7, 7, 8] {
        let world = world(seed).await;
        world.relay.faults(|faults| faults.loss = 0.3);
        let seen = world.send_numbers(1000).await;
        let counts = world.relay.counts(Direction::Up);
        assert_eq!(
            (counts.received, counts.lost as usize),
            (1000, 1000 - seen.len())
        );
        assert!((230..370).contains(&counts.lost), "{counts:?}");
        runs.push(seen);
    }
    assert_eq!(runs[0], runs[1], "the same seed loses the same datagrams");
    assert_ne!(runs[0], runs[2]);
}

#[tokio::test]
async fn duplicates_arrive_twice() {
    let world = world(3).await;
    world.relay.faults(|faults| faults.duplicate = 1.0);
    let seen = world.send_numbers(50).await;
    let expected: Vec<u32> = (0..50).flat_map(|number| [number, number]).collect();
    assert_eq!(seen, expected);
    assert_eq!(world.relay.counts(Direction::Up).duplicated, 50);
}

#[tokio::test]
async fn reordered_datagrams_are_overtaken_and_none_is_lost() {
    let world = world(5).await;
    world.relay.faults(|faults| {
        faults.reorder = 0.2;
        faults.reorder_by = Duration::from_millis(50);
    });
    for number in 0..200u32 {
        world.client.send(&number.to_be_bytes()).await.unwrap();
        let relay = &world.relay;
        assert!(
            eventually_fast(|| relay.counts(Direction::Up).received == u64::from(number) + 1).await
        );
    }
    let mut seen = Vec::new();
    assert!(
        eventually(
            || {
                world.drain(&mut seen);
                seen.len() == 200
            },
            SOON
        )
        .await
    );
    assert!(
        seen.windows(2).any(|pair| pair[0] > pair[1]),
        "something was overtaken"
    );
    seen.sort_unstable();
    assert_eq!(seen, (0..200).collect::<Vec<_>>());
    assert!((20..60).contains(&world.relay.counts(Direction::Up).reordered));
}

#[tokio::test]
async fn delay_and_rate_hold_datagrams() {
    let world = world(1).await;
    world
        .relay
        .faults(|faults| faults.delay = Duration::from_millis(80));
    let begun = Instant::now();
    world.client.send(b"x").await.unwrap();
    let mut buffer = [0; 2048];
    world.server.recv(&mut buffer).await.unwrap();
    assert!(begun.elapsed() >= Duration::from_millis(80));
    world.relay.restore();
    world
        .relay
        .faults(|faults| faults.bytes_per_second = Some(10_000));
    let begun = Instant::now();
    for _ in 0..5 {
        world.client.send(&[0; 1000]).await.unwrap();
    }
    for _ in 0..5 {
        world.server.recv(&mut buffer).await.unwrap();
    }
    assert!(begun.elapsed() >= Duration::from_millis(450));
}

#[tokio::test]
async fn a_frozen_relay_keeps_datagrams_in_the_kernel_and_a_cut_one_loses_them() {
    let world = world(1).await;
    world.client.send(b"first").await.unwrap();
    let mut buffer = [0; 16];
    world.server.recv(&mut buffer).await.unwrap();
    world.relay.freeze();
    world.client.send(b"frozen").await.unwrap();
    assert!(world.silent().await);
    world.relay.thaw();
    let length = world.server.recv(&mut buffer).await.unwrap();
    assert_eq!(&buffer[..length], b"frozen");
    world.relay.cut();
    world.client.send(b"lost").await.unwrap();
    assert!(world.silent().await);
    world.relay.restore();
    world.client.send(b"after").await.unwrap();
    let length = world.server.recv(&mut buffer).await.unwrap();
    assert_eq!(&buffer[..length], b"after");
    assert_eq!(world.relay.counts(Direction::Up).lost, 1);
}

#[tokio::test]
async fn one_direction_is_cut_alone() {
    let world = world(1).await;
    world.relay.cut_only(Direction::Down);
    world.client.send(b"ping").await.unwrap();
    let mut buffer = [0; 16];
    let (_, relay) = world.server.recv_from(&mut buffer).await.unwrap();
    world.server.send_to(b"pong", relay).await.unwrap();
    let answer =
        tokio::time::timeout(Duration::from_millis(200), world.client.recv(&mut buffer)).await;
    assert!(answer.is_err());
    assert_eq!(world.relay.counts(Direction::Down).lost, 1);
}

#[tokio::test]
async fn a_rebound_relay_comes_from_another_port_and_the_old_one_is_dead() {
    let world = world(1).await;
    world.client.send(b"one").await.unwrap();
    let mut buffer = [0; 16];
    let (_, before) = world.server.recv_from(&mut buffer).await.unwrap();
    world.relay.rebind();
    world.client.send(b"two").await.unwrap();
    let (_, after) = world.server.recv_from(&mut buffer).await.unwrap();
    assert_ne!(before, after);
    world
        .server
        .send_to(b"to the old one", before)
        .await
        .unwrap();
    world
        .server
        .send_to(b"to the new one", after)
        .await
        .unwrap();
    let length = world.client.recv(&mut buffer).await.unwrap();
    assert_eq!(&buffer[..length], b"to the new one");
}
