//! What a connection's end takes with it, and what a redial brings back.

use weida::{Identity, Limits, PeerEvent, Trust};

use crate::raw::Raw;
use crate::world::{World, eventually, loopback, soon};

#[tokio::test]
async fn ps_14_s8_22_s17_26_a_closed_connection_takes_every_filter_along() {
    let world = World::new().await;
    let publisher = world.listener.publisher("/p").unwrap();
    let second = world.listener.publisher("/q").unwrap();
    let raw = Raw::dial(world.addr()).await;
    for filter in ["a", "b.*", ""] {
        raw.subscribe("/p", filter).await;
        raw.subscribe("/q", filter).await;
    }
    let stays = world.subscriber("/p", &["a"]).await;
    eventually(|| publisher.filter_count() == 4 && second.filter_count() == 3).await;
    raw.connection.close(0u32.into(), b"");
    eventually(|| publisher.filter_count() == 1 && second.filter_count() == 0).await;
    assert_eq!(
        (publisher.subscriber_count(), second.subscriber_count()),
        (1, 0)
    );
    assert_eq!(publisher.publish("a", "x").unwrap(), 1);
    assert_eq!(stays.next().await.1, b"x");
}

/// Nothing is kept for a peer that comes back, whoever it is. [weida S8-21]
#[tokio::test]
async fn s8_21_a_second_connection_starts_from_nothing() {
    let world = World::new().await;
    let publisher = world.listener.publisher("/p").unwrap();
    let identity = Identity::generate().unwrap();
    let tls = || weida::ClientTls::new(Trust::by_address()).with_identity(identity.clone());
    let runtime = world.client();
    let first = runtime.subscriber(tls());
    first.subscribe("a").await.unwrap();
    soon(first.connect(&world.url("/p"))).await.unwrap();
    eventually(|| publisher.filter_count() == 1).await;
    drop(first);
    runtime.shutdown().await;
    eventually(|| publisher.subscriber_count() == 0).await;
    let runtime = world.client();
    let again = runtime.subscriber(tls());
    soon(again.connect(&world.url("/p"))).await.unwrap();
    soon(again.subscribe("b")).await.unwrap();
    eventually(|| publisher.filter_count() == 1).await;
    assert_eq!(publisher.publish("a", "").unwrap(), 0);
    assert_eq!(publisher.publish("b", "").unwrap(), 1);
}

#[tokio::test]
async fn ps_5_s8_23_rd_5_filters_are_sent_again_and_missed_messages_are_gone() {
    let world = World::new().await;
    let addr = world.addr();
    let publisher = world.listener.publisher("/p").unwrap();
    let client = world.subscriber("/p", &["a"]).await;
    soon(client.subscriber.subscribe("b.#")).await.unwrap();
    let mut events = client.subscriber.events();
    eventually(|| publisher.filter_count() == 2).await;
    assert_eq!(publisher.publish("a", "before").unwrap(), 1);
    assert_eq!(client.next().await.1, b"before");

    // The server restarts on its port, with its key and nothing else.
    let identity = world.identity.clone();
    drop(publisher);
    world.runtime.clone().shutdown().await;
    assert!(matches!(
        soon(events.recv()).await,
        Some(PeerEvent::Lost { .. })
    ));
    // Filters may change while nobody is there.
    soon(client.subscriber.subscribe("c")).await.unwrap();
    soon(client.subscriber.unsubscribe("b.#")).await.unwrap();
    let reborn = World::serving(Limits::default(), identity.clone().into(), identity, addr).await;
    let publisher = reborn.listener.publisher("/p").unwrap();
    assert_eq!(publisher.publish("a", "nobody is back yet").unwrap(), 0);
    eventually(|| publisher.filter_count() == 2).await;
    assert_eq!(publisher.publish("b.x", "").unwrap(), 0);
    assert_eq!(publisher.publish("c", "after").unwrap(), 1);
    assert_eq!(client.next().await, ("c".into(), b"after".to_vec()));
    loop {
        match soon(events.recv()).await.unwrap() {
            PeerEvent::Retrying { .. } => {}
            PeerEvent::Connected { peer, .. } => {
                assert_eq!(peer.and_then(|peer| peer.key()), Some(world.key));
                break;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(client.subscriber.peer_count(), 1);
}

#[tokio::test]
async fn a_forgotten_address_is_unsubscribed_and_the_others_go_on() {
    let one = World::new().await;
    let two = World::new().await;
    let first = one.listener.publisher("/p").unwrap();
    let second = two.listener.publisher("/p").unwrap();
    let client = one.subscriber("/p", &["a", "b"]).await;
    soon(client.subscriber.connect(&two.url("/p")))
        .await
        .unwrap();
    eventually(|| first.filter_count() == 2 && second.filter_count() == 2).await;
    assert_eq!(client.subscriber.connection_stats().len(), 2);
    assert!(client.subscriber.disconnect(&one.url("/p")));
    assert!(!client.subscriber.disconnect(&one.url("/p")));
    eventually(|| first.filter_count() == 0).await;
    assert_eq!(first.publish("a", "").unwrap(), 0);
    assert_eq!(second.publish("a", "two").unwrap(), 1);
    assert_eq!(client.next().await.1, b"two");
    // And back.
    soon(client.subscriber.connect(&one.url("/p")))
        .await
        .unwrap();
    eventually(|| first.filter_count() == 2).await;
    assert_eq!(first.publish("a", "one").unwrap(), 1);
    assert_eq!(client.next().await.1, b"one");
}

#[tokio::test]
async fn a_dropped_subscriber_takes_its_filters_back() {
    let world = World::new().await;
    let publisher = world.listener.publisher("/p").unwrap();
    let runtime = world.client();
    let subscriber = runtime.subscriber(Trust::by_address());
    subscriber.subscribe("a").await.unwrap();
    soon(subscriber.connect(&world.url("/p"))).await.unwrap();
    eventually(|| publisher.filter_count() == 1).await;
    drop(subscriber);
    eventually(|| publisher.filter_count() == 0).await;
}

/// Two anonymous connections are two subscribers, never one. [weida S8-11]
#[tokio::test]
async fn s8_11_anonymous_connections_are_counted_apart() {
    let world = World::new().await;
    let publisher = world.listener.publisher("/p").unwrap();
    let one = Raw::dial(world.addr()).await;
    let two = Raw::dial(world.addr()).await;
    one.subscribe("/p", "a").await;
    two.subscribe("/p", "a").await;
    eventually(|| publisher.subscriber_count() == 2).await;
    one.unsubscribe("/p", "a").await;
    eventually(|| publisher.subscriber_count() == 1).await;
    assert_eq!(publisher.publish("a", "x").unwrap(), 1);
    assert!(two.heard().await.ends_with(b"x"));
}

/// A drain waits for copies that were handed to the transport. [weida DR-2]
#[tokio::test]
async fn dr_2_published_copies_are_part_of_a_drain() {
    let world = World::new().await;
    let publisher = world.listener.publisher("/p").unwrap();
    let client = world.subscriber("/p", &["a"]).await;
    eventually(|| publisher.filter_count() == 1).await;
    for _ in 0..200 {
        publisher.publish("a", vec![1; 4096]).unwrap();
    }
    let (drained, topics) = tokio::join!(
        world
            .runtime
            .clone()
            .drain(std::time::Duration::from_secs(10)),
        client.topics(200)
    );
    assert_eq!(topics.len(), 200);
    assert_eq!(drained.outstanding, 0);
}

/// The same server bound elsewhere is a place like any other.
#[tokio::test]
async fn a_listener_with_two_bindings_serves_one_set_of_subscriptions() {
    let world = World::new().await;
    let second = world
        .listener
        .bind_quic(loopback(), world.identity.clone())
        .await
        .unwrap();
    let publisher = world.listener.publisher("/p").unwrap();
    let one = Raw::dial(world.addr()).await;
    let two = Raw::dial(second.local_addr()).await;
    one.subscribe("/p", "a").await;
    two.subscribe("/p", "a").await;
    eventually(|| publisher.subscriber_count() == 2).await;
    assert_eq!(publisher.publish("a", "x").unwrap(), 2);
}
