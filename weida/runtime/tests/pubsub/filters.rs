//! What is sent to whom.

use weida::{Error, Trust};

use crate::raw::{Raw, frame};
use crate::world::{World, eventually, soon};

/// The published capture, byte for byte. [wire 26.3]
#[tokio::test]
async fn ps_1_only_matching_copies_cross_the_network() {
    let world = World::new().await;
    let publisher = world.listener.publisher("/md").unwrap();
    let raw = Raw::dial(world.addr()).await;
    assert_eq!(
        frame(3, "/md", "px.*"),
        b"\x57\x03\x0C\xA2\x00\x63/md\x01\x64px.*"
    );
    raw.subscribe("/md", "px.*").await;
    eventually(|| publisher.filter_count() == 1).await;
    assert_eq!(publisher.publish("fx.eur", "x").unwrap(), 0);
    assert_eq!(publisher.publish("px", "x").unwrap(), 0);
    assert_eq!(publisher.publish("px.eur", "1.08").unwrap(), 1);
    assert_eq!(
        raw.heard().await,
        b"\x57\x01\x10\xA3\x00\x63/md\x01\x04\x05\x66px.eur1.08"
    );
    let mut streamed = publisher.open("px.usd");
    assert_eq!(streamed.write_now("ab").unwrap(), 1);
    assert_eq!(streamed.write_now("cd").unwrap(), 1);
    assert_eq!(streamed.finish(), 1);
    assert_eq!(
        raw.heard().await,
        b"\x57\x01\x0E\xA2\x00\x63/md\x05\x66px.usdabcd"
    );
    raw.hears_nothing().await;
    assert_eq!(publisher.dropped(), 0);
}

#[tokio::test]
async fn ps_2_overlapping_filters_of_one_connection_get_one_copy() {
    let world = World::new().await;
    let publisher = world.listener.publisher("/p").unwrap();
    let client = world
        .subscriber("/p", &["a.b", "a.*", "a.#", "", "#", "x"])
        .await;
    let other = world.subscriber("/p", &["a.b"]).await;
    eventually(|| publisher.filter_count() == 7).await;
    assert_eq!(publisher.subscriber_count(), 2);
    assert_eq!(publisher.publish("a.b", "once").unwrap(), 2);
    assert_eq!(publisher.publish("q", "").unwrap(), 1);
    assert_eq!(client.topics(2).await, ["a.b", "q"]);
    assert_eq!(other.next().await, ("a.b".into(), b"once".to_vec()));
    client.hears_nothing().await;
    other.hears_nothing().await;
}

#[tokio::test]
async fn ps_3_an_illegal_filter_fails_before_it_travels() {
    let world = World::new().await;
    let publisher = world.listener.publisher("/p").unwrap();
    let client = world.subscriber("/p", &[]).await;
    let long = "x".repeat(257);
    soon(client.subscriber.subscribe(&long[..256]))
        .await
        .unwrap();
    eventually(|| publisher.filter_count() == 1).await;
    for bad in ["a#", "#.b", "a*b", &long] {
        for refused in [
            client.subscriber.subscribe(bad).await,
            client.subscriber.unsubscribe(bad).await,
        ] {
            assert!(
                matches!(refused, Err(Error::Protocol(_))),
                "{bad}: {refused:?}"
            );
        }
    }
    assert_eq!(client.subscriber.filter_count(), 1);
    assert_eq!(client.subscriber.peer_count(), 1);
}

#[tokio::test]
async fn ps_4_s17_16_repeats_and_unknown_withdrawals_change_nothing() {
    let world = World::new().await;
    let publisher = world.listener.publisher("/p").unwrap();
    let raw = Raw::dial(world.addr()).await;
    for _ in 0..3 {
        raw.subscribe("/p", "a").await;
    }
    raw.subscribe("/p", "b").await;
    for (path, filter) in [("/p", "c"), ("/q", "a"), ("/p", "")] {
        raw.unsubscribe(path, filter).await;
    }
    eventually(|| publisher.filter_count() == 2).await;
    assert_eq!(publisher.publish("a", "1").unwrap(), 1);
    assert!(raw.heard().await.ends_with(b"1"));
    raw.hears_nothing().await;

    raw.unsubscribe("/p", "a").await;
    eventually(|| publisher.filter_count() == 1).await;
    assert_eq!(publisher.publish("a", "2").unwrap(), 0);
    assert_eq!(publisher.publish("b", "3").unwrap(), 1);
    raw.unsubscribe("/p", "b").await;
    eventually(|| publisher.subscriber_count() == 0).await;
    raw.is_open();

    let client = world.subscriber("/p", &["a"]).await;
    client.subscriber.subscribe("a").await.unwrap();
    client.subscriber.unsubscribe("never").await.unwrap();
    assert_eq!(client.subscriber.filter_count(), 1);
}

/// A filter taken back and asked for again ends as asked for, however often.
#[tokio::test]
async fn wire_11_the_last_word_about_a_filter_wins() {
    let world = World::new().await;
    let publisher = world.listener.publisher("/p").unwrap();
    let client = world.subscriber("/p", &[]).await;
    for _ in 0..10 {
        client.subscriber.subscribe("a").await.unwrap();
        client.subscriber.unsubscribe("a").await.unwrap();
    }
    client.subscriber.subscribe("b").await.unwrap();
    client.subscriber.subscribe("a").await.unwrap();
    eventually(|| publisher.filter_count() == 2).await;
    client.subscriber.unsubscribe("b").await.unwrap();
    eventually(|| publisher.filter_count() == 1).await;
    assert_eq!(publisher.publish("a", "1").unwrap(), 1);
    assert_eq!(client.next().await.0, "a");
}

#[tokio::test]
async fn ps_6_one_connection_has_one_taker_of_a_path() {
    let world = World::new().await;
    let publisher = world.listener.publisher("/p").unwrap();
    let runtime = world.client();
    let first = runtime.subscriber(Trust::by_address());
    let second = runtime.subscriber(Trust::by_address());
    first.subscribe("a").await.unwrap();
    second.subscribe("a").await.unwrap();
    soon(first.connect(&world.url("/p"))).await.unwrap();
    let refused = soon(second.connect(&world.url("/p"))).await;
    assert!(
        matches!(refused, Err(Error::AlreadyRegistered)),
        "{refused:?}"
    );
    assert_eq!(second.peer_count(), 0);
    // Other terms are another connection.
    let other = runtime.subscriber(Trust::pin(world.key));
    other.subscribe("a").await.unwrap();
    soon(other.connect(&world.url("/p"))).await.unwrap();
    eventually(|| publisher.subscriber_count() == 2).await;

    // The path is free once its holder has left, and its filters do not
    // disturb the successor's.
    drop(first);
    soon(second.connect(&world.url("/p"))).await.unwrap();
    eventually(|| publisher.subscriber_count() == 2).await;
    assert_eq!(publisher.publish("a", "x").unwrap(), 2);
    soon(second.recv()).await.unwrap();
}

#[tokio::test]
async fn ps_7_what_fits_nobody_is_refused_before_it_is_sent() {
    let limits = weida::Limits {
        subscriber_buffer_bytes: 1000,
        ..weida::Limits::default()
    };
    let world = World::with_limits(limits).await;
    let publisher = world.listener.publisher("/p").unwrap();
    let client = world.subscriber("/p", &[""]).await;
    eventually(|| publisher.filter_count() == 1).await;
    let topic = "t".repeat(257);
    assert_eq!(publisher.publish(&topic[..256], vec![0; 1000]).unwrap(), 1);
    assert_eq!(client.next().await.1.len(), 1000);
    let too_large = publisher.publish("t", vec![0; 1001]);
    assert!(matches!(too_large, Err(Error::LimitExceeded(None))));
    let too_long = publisher.publish(&topic, "");
    assert!(matches!(too_long, Err(Error::LimitExceeded(None))));
    client.hears_nothing().await;
    assert_eq!(publisher.dropped(), 0);
}

#[tokio::test]
async fn a_trace_context_crosses_only_when_the_caller_gives_one() {
    let world = World::new().await;
    let publisher = world.listener.publisher("/p").unwrap();
    let client = world.subscriber("/p", &[""]).await;
    eventually(|| publisher.filter_count() == 1).await;
    publisher.publish("plain", "").unwrap();
    let plain = soon(client.subscriber.recv()).await.unwrap();
    assert_eq!(plain.meta().trace, None);
    let trace = weida::new_trace();
    publisher.publish_with_trace("traced", "", trace).unwrap();
    let traced = soon(client.subscriber.recv()).await.unwrap();
    assert_eq!(traced.meta().trace, Some(trace));
    let streamed = publisher.open_with_trace("streamed", trace);
    assert_eq!(streamed.finish(), 1);
    let streamed = soon(client.subscriber.recv()).await.unwrap();
    assert_eq!(streamed.meta().trace, Some(trace));
}
