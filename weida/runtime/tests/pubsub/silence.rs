//! What a SUBSCRIBE is answered with: nothing, or the end of the connection.
//! [weida 21]

use weida::{Admission, Error, Limits};

use crate::raw::{Raw, RawServer, frame, head, text};
use crate::world::{World, eventually, soon};

/// Header-only, two keys, FIN right behind; and nothing in it names a
/// subscription. [wire 26.3]
#[tokio::test]
async fn s17_1_s17_2_what_a_subscriber_writes() {
    let server = RawServer::bind();
    let world = World::new().await;
    let runtime = world.client();
    let subscriber = runtime.subscriber(weida::Trust::by_address());
    subscriber.subscribe("px.*").await.unwrap();
    subscriber.subscribe("").await.unwrap();
    let url = server.url("/md");
    let (connected, raw) = tokio::join!(subscriber.connect(&url), server.accept());
    connected.unwrap();
    assert_eq!(
        raw.heard().await,
        b"\x57\x03\x0C\xA2\x00\x63/md\x01\x64px.*"
    );
    assert_eq!(raw.heard().await, b"\x57\x03\x08\xA2\x00\x63/md\x01\x60");
    soon(subscriber.unsubscribe("px.*")).await.unwrap();
    assert_eq!(
        raw.heard().await,
        b"\x57\x04\x0C\xA2\x00\x63/md\x01\x64px.*"
    );
    raw.hears_nothing().await;
}

/// Recorded with a publisher, recorded without one, ignored, and declined: the
/// same silence. [weida S17-5, S17-8, S17-20]
#[tokio::test]
async fn s17_4_s17_5_s17_8_s17_20_every_kind_of_yes_and_no_looks_the_same() {
    let world = World::new().await;
    let recorded = world.listener.publisher("/recorded").unwrap();
    let declining = world.listener.publisher("/declining").unwrap();
    let declining = declining.with_admission(|_| Admission::DeclineCopies);
    let _puller = world.listener.puller("/puller").unwrap();
    for path in ["/recorded", "/declining", "/puller", "/nobody"] {
        let raw = Raw::dial(world.addr()).await;
        raw.subscribe(path, "a").await;
        raw.hears_nothing().await;
    }
    let held = || recorded.filter_count() + declining.filter_count();
    eventually(|| held() == 0 || held() == 2).await;
}

#[tokio::test]
async fn s17_6_ps_5_a_subscription_waits_for_its_publisher() {
    let world = World::new().await;
    let client = world.subscriber("/late", &["a"]).await;
    let raw = Raw::dial(world.addr()).await;
    raw.subscribe("/late", "a").await;
    raw.hears_nothing().await;
    let publisher = world.listener.publisher("/late").unwrap();
    eventually(|| publisher.subscriber_count() == 2).await;
    assert_eq!(publisher.publish("a", "now").unwrap(), 2);
    assert_eq!(client.next().await.1, b"now");
    assert!(raw.heard().await.ends_with(b"now"));
    // And for its successor.
    drop(publisher);
    let successor = world.listener.publisher("/late").unwrap();
    assert_eq!(successor.publish("a", "again").unwrap(), 2);
    assert_eq!(client.next().await.1, b"again");
}

/// A dialler publishes nothing and ignores what it is asked. [weida S17-7]
#[tokio::test]
async fn s17_7_a_side_that_publishes_nothing_ignores_subscriptions() {
    let server = RawServer::bind();
    let world = World::new().await;
    let runtime = world.client();
    let pusher = runtime.pusher(weida::Trust::by_address());
    let url = server.url("/q");
    let (connected, raw) = tokio::join!(pusher.connect(&url), server.accept());
    connected.unwrap();
    raw.subscribe("/q", "a").await;
    raw.unsubscribe("/q", "b").await;
    raw.hears_nothing().await;
    soon(pusher.send(b"alive")).await.unwrap();
    assert!(raw.heard().await.ends_with(b"alive"));
    // Malformed is a violation all the same.
    raw.subscribe("/q", "a#").await;
    assert_eq!(raw.closed().await.0, weida::codes::PROTOCOL_VIOLATION);
}

#[tokio::test]
async fn s17_3_nothing_may_answer_a_subscribe() {
    let server = RawServer::bind();
    let world = World::new().await;
    let runtime = world.client();
    let subscriber = runtime.subscriber(weida::Trust::by_address());
    subscriber.subscribe("a").await.unwrap();
    let url = server.url("/p");
    let (connected, raw) = tokio::join!(subscriber.connect(&url), server.accept());
    connected.unwrap();
    raw.heard().await;
    raw.say(b"\x57\x01\x08\xA2\x00\x62/p\x05\x61a").await; // a copy is fine
    soon(subscriber.recv()).await.unwrap();
    raw.say(b"\x57\x02\x03\xA1\x00\x02").await; // ERROR REJECTED is not
    assert_eq!(raw.closed().await.0, weida::codes::PROTOCOL_VIOLATION);
}

#[tokio::test]
async fn s17_11_s17_15_malformed_content_closes_with_a_violation() {
    let world = World::new().await;
    let publisher = world.listener.publisher("/p").unwrap();
    let long = "x".repeat(257);
    for bad in ["a*b", "a.#.b", "a#", "#.a", long.as_str()] {
        for kind in [3, 4] {
            let raw = Raw::dial(world.addr()).await;
            let before = publisher.subscriber_count();
            raw.say(&frame(3, "/p", "a.*.#")).await;
            raw.say(&frame(4, "/p", "never.#")).await;
            eventually(|| publisher.subscriber_count() == before + 1).await;
            raw.say(&frame(kind, "/p", bad)).await;
            assert_eq!(
                raw.closed().await.0,
                weida::codes::PROTOCOL_VIOLATION,
                "{bad}"
            );
        }
    }
    // A filter is missing, or the path above its cap.
    let mut no_filter = vec![0xA1, 0x00];
    text(&mut no_filter, "/p");
    for bad in [head(3, &no_filter), frame(3, &"/".repeat(513), "a")] {
        let raw = Raw::dial(world.addr()).await;
        raw.say(&frame(3, &"/".repeat(512), "a")).await;
        raw.say(&bad).await;
        assert_eq!(raw.closed().await.0, weida::codes::PROTOCOL_VIOLATION);
    }
}

/// Summed over all paths, and with a sentence. [wire 17]
#[tokio::test]
async fn s17_12_one_filter_past_the_limit_closes_with_a_reason() {
    let world = World::new().await;
    let publisher = world.listener.publisher("/p").unwrap();
    let raw = Raw::dial(world.addr()).await;
    for n in 0..128 {
        raw.subscribe("/p", &n.to_string()).await;
        raw.subscribe(&format!("/other/{n}"), "").await;
    }
    eventually(|| publisher.filter_count() == 128).await;
    // Repeats are not more, and a withdrawal frees its place.
    raw.subscribe("/p", "0").await;
    raw.unsubscribe("/p", "0").await;
    eventually(|| publisher.filter_count() == 127).await;
    raw.subscribe("/p", "0").await;
    eventually(|| publisher.filter_count() == 128).await;
    raw.hears_nothing().await;
    raw.subscribe("/p", "one more").await;
    let (code, reason) = raw.closed().await;
    assert_eq!(code, weida::codes::LIMIT_EXCEEDED);
    assert!(reason.contains("256"), "{reason}");
    eventually(|| publisher.filter_count() == 0).await;
}

/// Withdrawing what another path or connection holds frees nothing.
#[tokio::test]
async fn s17_16_an_unknown_withdrawal_frees_no_reservation() {
    let limits = Limits {
        max_subscriptions: 2,
        ..Limits::default()
    };
    let world = World::with_limits(limits).await;
    let publisher = world.listener.publisher("/p").unwrap();
    let neighbour = Raw::dial(world.addr()).await;
    neighbour.subscribe("/p", "n").await;
    let raw = Raw::dial(world.addr()).await;
    raw.subscribe("/p", "a").await;
    raw.subscribe("/p", "b").await;
    eventually(|| publisher.filter_count() == 3).await;
    for (path, filter) in [("/p", "n"), ("/p", "c"), ("/q", "a")] {
        raw.unsubscribe(path, filter).await;
    }
    raw.hears_nothing().await;
    assert_eq!(publisher.filter_count(), 3);
    raw.subscribe("/p", "c").await;
    assert_eq!(raw.closed().await.0, weida::codes::LIMIT_EXCEEDED);
    eventually(|| publisher.filter_count() == 1).await;
    neighbour.is_open();
}

/// The subscriber that went too far hears why and does not try for ever.
#[tokio::test]
async fn rd_8_s17_12_s17_30_the_subscriber_learns_the_limit_and_its_reason() {
    let limits = Limits {
        max_subscriptions: 2,
        ..Limits::default()
    };
    let world = World::with_limits(limits).await;
    let publisher = world.listener.publisher("/p").unwrap();
    let client = world.subscriber("/p", &["a", "b"]).await;
    let mut events = client.subscriber.events();
    eventually(|| publisher.filter_count() == 2).await;
    assert_eq!(publisher.publish("a", "kept").unwrap(), 1);
    assert_eq!(client.next().await.1, b"kept");

    soon(client.subscriber.subscribe("c")).await.unwrap();
    let refused = soon(client.subscriber.recv()).await;
    let Err(Error::LimitExceeded(Some(reason))) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!(reason.code(), weida::codes::LIMIT_EXCEEDED);
    assert!(reason.text().contains('2'), "{reason}");
    let again = soon(client.subscriber.subscribe("d")).await;
    assert!(
        matches!(again, Err(Error::LimitExceeded(Some(_)))),
        "{again:?}"
    );
    assert_eq!(client.subscriber.filter_count(), 3);
    assert_eq!(client.subscriber.peer_count(), 0);

    let mut gave_up = false;
    while !gave_up {
        match soon(events.recv()).await.unwrap() {
            weida::PeerEvent::GaveUp { why, .. } => {
                assert!(matches!(why, weida::GiveUp::Failed(_)), "{why:?}");
                gave_up = true;
            }
            weida::PeerEvent::Lost { cause, .. } => {
                assert!(cause.to_string().contains('2'), "{cause}");
            }
            other => panic!("{other:?}"),
        }
    }
    // Fewer filters, and the address is good again.
    client.subscriber.disconnect(&world.url("/p"));
    client.subscriber.unsubscribe("c").await.unwrap();
    soon(client.subscriber.connect(&world.url("/p")))
        .await
        .unwrap();
    eventually(|| publisher.filter_count() == 2).await;
}

/// The sentence of a server that closes reaches `recv` and the events.
#[tokio::test]
async fn s17_30_the_close_reason_reaches_the_application() {
    let server = RawServer::bind();
    let world = World::new().await;
    let runtime = world.client();
    let subscriber = runtime.subscriber(weida::Trust::by_address());
    subscriber.subscribe("a").await.unwrap();
    let url = server.url("/p");
    let (connected, raw) = tokio::join!(subscriber.connect(&url), server.accept());
    connected.unwrap();
    raw.connection
        .close(5u32.into(), b"come back with one filter");
    let refused = soon(subscriber.recv()).await.unwrap_err();
    assert_eq!(refused.close_reason(), Some("come back with one filter"));
}

/// [weida S17-21, S17-22]
#[tokio::test]
async fn s17_22_a_request_to_a_publisher_is_unsupported() {
    let world = World::new().await;
    let _publisher = world.listener.publisher("/p").unwrap();
    let raw = Raw::dial(world.addr()).await;
    raw.subscribe("/p", "a").await;
    let (mut request, mut reply) = raw.connection.open_bi().await.unwrap();
    request
        .write_all(b"\x57\x01\x05\xA1\x00\x62/p")
        .await
        .unwrap();
    let stopped = soon(request.stopped()).await.unwrap();
    assert_eq!(
        stopped.map(quinn::VarInt::into_inner),
        Some(weida::codes::UNSUPPORTED)
    );
    let answer = soon(reply.read_to_end(64)).await.unwrap();
    assert_eq!(answer, b"\x57\x02\x03\xA1\x00\x03");
    raw.hears_nothing().await;
    // A push to it is stopped, and a SUBSCRIBE opening an exchange is a violation.
    let mut push = raw.connection.open_uni().await.unwrap();
    push.write_all(b"\x57\x01\x05\xA1\x00\x62/p").await.unwrap();
    let stopped = soon(push.stopped()).await.unwrap();
    assert_eq!(
        stopped.map(quinn::VarInt::into_inner),
        Some(weida::codes::UNSUPPORTED)
    );
    raw.is_open();
    let (mut exchange, _reply) = raw.connection.open_bi().await.unwrap();
    exchange.write_all(&frame(3, "/p", "a")).await.unwrap();
    assert_eq!(raw.closed().await.0, weida::codes::PROTOCOL_VIOLATION);
}

/// Keys from 64 on are an extension's and change nothing; the dish's keys 2 and
/// 3 are legal and mean nothing to a publisher. [weida S17-28]
#[tokio::test]
async fn s17_28_extension_keys_of_a_subscribe_are_skipped() {
    let world = World::new().await;
    let publisher = world.listener.publisher("/p").unwrap();
    let raw = Raw::dial(world.addr()).await;
    raw.say(&head(3, b"\xA3\x00\x62/p\x01\x61a\x18\x40\x62ok"))
        .await;
    raw.say(&head(3, b"\xA4\x00\x62/p\x01\x61b\x02\x05\x03\x00"))
        .await;
    eventually(|| publisher.filter_count() == 2).await;
    assert_eq!(publisher.publish("a", "x").unwrap(), 1);
    assert!(raw.heard().await.ends_with(b"x"));
    raw.is_open();
}
