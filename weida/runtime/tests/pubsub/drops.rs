//! What a slow subscriber costs, whom, and how it is counted.

use weida::{Limits, TopicDrops};

use crate::raw::Raw;
use crate::world::{World, eventually};

/// A subscriber that grants no stream credit, so nothing leaves its queue.
async fn stalled(world: &World, path: &str, filter: &str) -> Raw {
    let mut transport = quinn::TransportConfig::default();
    // One for HELLO, which is not given back while it is unread.
    transport.max_concurrent_uni_streams(1u32.into());
    let raw = Raw::stalled(world.addr(), transport).await;
    raw.subscribe(path, filter).await;
    raw
}

fn only(drops: Option<TopicDrops>) -> TopicDrops {
    drops.expect("something was dropped")
}

#[tokio::test]
async fn ps_8_small_copies_stop_at_the_queue_and_large_ones_at_the_budget() {
    let world = World::new().await;
    for (path, size, taken) in [("/small", 1 << 10, 1025), ("/large", 64 << 10, 128)] {
        let publisher = world.listener.publisher(path).unwrap();
        let _raw = stalled(&world, path, "").await;
        eventually(|| publisher.filter_count() == 1).await;
        let payload = bytes::Bytes::from(vec![7; size]);
        // The first copy leaves the queue for the writer's hand.
        assert_eq!(publisher.publish("t", payload.clone()).unwrap(), 1);
        let mut queued = 1;
        for _ in 0..2000 {
            tokio::task::yield_now().await;
            queued += publisher.publish("t", payload.clone()).unwrap();
        }
        assert_eq!(queued, taken, "{path}");
        let drops = only(publisher.dropped_on("t"));
        let lost = 2001 - taken as u64;
        assert_eq!((publisher.dropped(), drops.total()), (lost, lost));
        match path {
            "/small" => assert_eq!(drops.subscriber_queue, lost),
            _ => assert_eq!(drops.subscriber_budget, lost),
        }
    }
}

#[tokio::test]
async fn ps_9_drops_are_told_apart_by_topic_up_to_a_bound() {
    let limits = Limits {
        subscriber_buffer_bytes: 10,
        max_sequence_scopes: 2,
        ..Limits::default()
    };
    let world = World::with_limits(limits).await;
    let publisher = world.listener.publisher("/p").unwrap();
    let _raw = stalled(&world, "/p", "").await;
    eventually(|| publisher.filter_count() == 1).await;
    assert_eq!(publisher.publish("a", "0123456789").unwrap(), 1);
    assert_eq!(publisher.dropped_on("a"), None);
    for topic in ["a", "b", "c", "a"] {
        assert_eq!(publisher.publish(topic, "x").unwrap(), 0);
    }
    assert_eq!(publisher.dropped(), 4);
    assert_eq!(only(publisher.dropped_on("a")).subscriber_budget, 2);
    assert_eq!(only(publisher.dropped_on("b")).subscriber_budget, 1);
    assert_eq!(publisher.dropped_on("c"), None);
    let mut topics: Vec<_> = publisher.drops().into_iter().map(|it| it.topic).collect();
    topics.sort_unstable();
    assert_eq!(topics, ["a".into(), "b".into()]);
}

/// The byte budget is one per connection, over all its paths. [wire 11]
#[tokio::test]
async fn inv_5_the_budget_is_shared_by_the_paths_of_a_connection() {
    let limits = Limits {
        subscriber_buffer_bytes: 10,
        ..Limits::default()
    };
    let world = World::with_limits(limits).await;
    let one = world.listener.publisher("/one").unwrap();
    let two = world.listener.publisher("/two").unwrap();
    let raw = stalled(&world, "/one", "").await;
    raw.subscribe("/two", "").await;
    eventually(|| one.filter_count() + two.filter_count() == 2).await;
    assert_eq!(one.publish("t", "123456").unwrap(), 1);
    assert_eq!(two.publish("t", "12345").unwrap(), 0);
    assert_eq!(two.publish("t", "1234").unwrap(), 1);
    assert_eq!(only(two.dropped_on("t")).subscriber_budget, 1);
    assert_eq!(one.dropped(), 0);
    // A zero-byte flood ends at the queue. [weida INV-14]
    let queued: usize = (0..1100).map(|_| one.publish("t", "").unwrap()).sum();
    assert!((1023..=1024).contains(&queued), "{queued}");
    assert!(only(one.dropped_on("t")).subscriber_queue > 0);
}

/// Leaving and coming back gives a stalled subscriber no second queue.
#[tokio::test]
async fn inv_5_coming_and_going_multiplies_nothing() {
    let limits = Limits {
        subscriber_buffer_bytes: 10,
        ..Limits::default()
    };
    let world = World::with_limits(limits).await;
    let publisher = world.listener.publisher("/p").unwrap();
    let raw = stalled(&world, "/p", "").await;
    eventually(|| publisher.filter_count() == 1).await;
    assert_eq!(publisher.publish("t", "0123456789").unwrap(), 1);
    for _ in 0..5 {
        raw.unsubscribe("/p", "").await;
        eventually(|| publisher.filter_count() == 0).await;
        raw.subscribe("/p", "").await;
        eventually(|| publisher.filter_count() == 1).await;
        assert_eq!(publisher.publish("t", "x").unwrap(), 0);
    }
    assert_eq!(publisher.dropped(), 5);
}

#[tokio::test]
async fn ps_10_s17_17_a_stalled_subscriber_costs_its_neighbours_nothing() {
    let world = World::new().await;
    let publisher = world.listener.publisher("/p").unwrap();
    let raw = stalled(&world, "/p", "").await;
    let client = world.subscriber("/p", &[""]).await;
    eventually(|| publisher.subscriber_count() == 2).await;
    for n in 0..3000u32 {
        publisher.publish("t", n.to_be_bytes().to_vec()).unwrap();
        // Reading along, so that the reader's own bounds play no part.
        assert_eq!(client.next().await.1, n.to_be_bytes());
    }
    let drops = only(publisher.dropped_on("t"));
    assert_eq!(drops.total(), drops.subscriber_queue);
    assert_eq!(drops.subscriber_queue, 3000 - 1025);

    // The subscription survived its drops: with credit it is served again.
    raw.recover();
    raw.heard().await; // HELLO
    let first = raw.heard().await;
    assert!(first.ends_with(&0u32.to_be_bytes()));
    for _ in 1..1025 {
        raw.heard().await;
    }
    eventually(|| publisher.publish("t", "again").unwrap() == 2).await;
    assert!(raw.heard().await.ends_with(b"again"));
}

/// A subscriber that stops one copy loses that copy and no other.
#[tokio::test]
async fn wire_11_a_stop_ends_one_copy_only() {
    let world = World::new().await;
    let publisher = world.listener.publisher("/p").unwrap();
    let raw = Raw::dial(world.addr()).await;
    raw.subscribe("/p", "").await;
    eventually(|| publisher.filter_count() == 1).await;
    // Larger than a stream's window, so that it cannot be written unread.
    publisher.publish("t", vec![0; 2 << 20]).unwrap();
    let mut copy = raw.connection.accept_uni().await.unwrap();
    copy.stop(7u32.into()).unwrap();
    publisher.publish("t", "next").unwrap();
    assert!(raw.heard().await.ends_with(b"next"));
    raw.is_open();
    assert_eq!(publisher.dropped(), 0);
}

/// A subscriber that reads no head this large gets no copy. [wire 5.2]
#[tokio::test]
async fn wire_5_2_a_head_above_the_subscribers_cap_is_a_counted_drop() {
    let world = World::new().await;
    let publisher = world.listener.publisher("/p").unwrap();
    // HELLO with max_header_bytes 10.
    let hello = b"\x57\x00\x0E\xA5\x00\x81\x00\x01\x0A\x02\x19\x08\x00\x03\x80\x04\x80";
    let raw = Raw::dial_with(world.addr(), quinn::TransportConfig::default(), hello).await;
    raw.subscribe("/p", "").await;
    eventually(|| publisher.filter_count() == 1).await;
    assert_eq!(publisher.publish("", "fits").unwrap(), 1);
    assert!(raw.heard().await.ends_with(b"fits"));
    assert_eq!(publisher.publish("a.b.c", "does not").unwrap(), 0);
    assert_eq!(only(publisher.dropped_on("a.b.c")).too_large, 1);
    assert_eq!(publisher.open("a.b.c").subscribers(), 0);
    raw.hears_nothing().await;
}

/// Nobody who reads loses anything, at every width.
async fn nothing_is_dropped(width: usize, messages: u32) {
    let world = World::new().await;
    let publisher = world.listener.publisher("/p").unwrap();
    let mut clients = Vec::new();
    for _ in 0..width {
        clients.push(world.subscriber("/p", &["t.#"]).await);
    }
    eventually(|| publisher.subscriber_count() == width).await;
    for n in 0..messages {
        let sent = publisher.publish("t.x", n.to_be_bytes().to_vec());
        assert_eq!(sent.unwrap(), width);
    }
    for client in &clients {
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..messages {
            seen.insert(client.next().await.1);
        }
        assert_eq!(seen.len(), messages as usize);
    }
    assert_eq!(publisher.dropped(), 0);
}

#[tokio::test]
async fn pf_6_nothing_is_dropped_when_every_subscriber_keeps_up() {
    nothing_is_dropped(16, 100).await;
}

#[tokio::test]
async fn pf_6_nothing_is_dropped_for_one_subscriber() {
    nothing_is_dropped(1, 1000).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pf_6_nothing_is_dropped_for_256_subscribers() {
    nothing_is_dropped(256, 8).await;
}

/// A payload that says when its last holder lets go.
struct Watched(Vec<u8>, std::sync::Arc<std::sync::atomic::AtomicBool>);

impl AsRef<[u8]> for Watched {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.1.store(true, std::sync::atomic::Ordering::Relaxed);
    }
}

/// Sixteen copies that cannot leave hold the caller's one buffer: had it been
/// copied for them, nobody would hold it after the publish.
#[tokio::test]
async fn ps_11_all_copies_share_one_buffer() {
    let world = World::new().await;
    let publisher = world.listener.publisher("/p").unwrap();
    let mut subscribers = Vec::new();
    for _ in 0..16 {
        subscribers.push(stalled(&world, "/p", "").await);
    }
    eventually(|| publisher.subscriber_count() == 16).await;
    let gone = std::sync::Arc::default();
    let payload = Watched(vec![1; 64 << 10], std::sync::Arc::clone(&gone));
    let payload = bytes::Bytes::from_owner(payload);
    assert_eq!(publisher.publish("t", payload).unwrap(), 16);
    let freed = || gone.load(std::sync::atomic::Ordering::Relaxed);
    assert!(!freed());
    let last = subscribers.pop().unwrap();
    drop(subscribers);
    eventually(|| publisher.subscriber_count() == 1).await;
    assert!(!freed());
    drop(last);
    eventually(freed).await;
}
