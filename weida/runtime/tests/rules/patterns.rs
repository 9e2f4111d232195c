//! What the patterns promise and what they leave out. [weida 5.3, 9, 10, 11, 21]

use std::time::Duration;

use weida::{Admission, Error, Limits, OrderingMode, RuntimeConfig, TransferMeta, Trust};

use crate::common::raw::RawServer;
use crate::common::{Server, client, eventually, soon, stays_pending};

#[path = "../../examples/large_request.rs"]
mod large_request;

/// Messages are dealt round and round whatever the room: a puller that has none
/// keeps its turn and is waited for, and nothing is moved to its neighbour.
#[tokio::test]
async fn pp_2_a_slow_puller_keeps_its_turn() {
    let tight = RuntimeConfig {
        limits: Limits {
            max_concurrent_uni_streams: 4,
            ..Limits::default()
        },
        ..RuntimeConfig::default()
    };
    let (slow, fast) = (Server::with(tight).await, Server::start().await);
    let (slow_puller, fast_puller) = (
        slow.listener.puller("/x").unwrap(),
        fast.listener.puller("/x").unwrap(),
    );
    let runtime = client();
    let pusher = runtime.pusher(Trust::by_address());
    for server in [&slow, &fast] {
        soon(pusher.connect(&server.url("/x"))).await.unwrap();
    }
    let quick = async {
        let mut got = 0_u32;
        while let Ok(transfer) = fast_puller.recv().await {
            transfer.collect(16).await.unwrap();
            got += 1;
            if got == 4 {
                break;
            }
        }
        got
    };
    let send = async {
        let mut sent = 0_u32;
        let moment = Duration::from_millis(300);
        while let Ok(done) = tokio::time::timeout(moment, pusher.send(b"x")).await {
            done.unwrap();
            sent += 1;
            assert!(sent < 100, "the slow one was skipped");
        }
        sent
    };
    let (quick, sent) = tokio::join!(soon(quick), soon(send));
    // Four each; the ninth is the slow one's and waits, although the fast one is idle.
    assert_eq!((quick, sent), (4, 8));
    assert!(stays_pending(fast_puller.recv()).await);
    for _ in 0..4 {
        let transfer = soon(slow_puller.recv()).await.unwrap();
        transfer.collect(16).await.unwrap();
    }
    soon(pusher.send(b"x")).await.unwrap();
}

/// A requester that writes everything before it reads stands still; one that
/// reads meanwhile does not.
#[tokio::test]
async fn lg_3_a_large_request_needs_its_reply_read_meanwhile() {
    let server = Server::with(large_request::narrow()).await;
    let replier = server.listener.replier("/echo").unwrap();
    let runtime = weida::Runtime::new(large_request::narrow()).unwrap();
    let requester = runtime.requester(Trust::by_address());
    soon(requester.connect(&server.url("/echo"))).await.unwrap();
    let body = vec![3; 2 << 20];

    let (mut request, reply) = soon(requester.open(TransferMeta::default())).await.unwrap();
    let both = async { tokio::join!(request.write_all(&body), large_request::echo(&replier)) };
    assert!(stays_pending(both).await, "both halves of it fit somewhere");
    drop((request, reply));

    let asking = large_request::ask(&requester, &body, 4 << 20);
    let (answer, echoed) = tokio::join!(soon(asking), soon(large_request::echo(&replier)));
    echoed.unwrap();
    assert_eq!(answer.unwrap(), body);
}

/// SUBSCRIBE rides the connection of its path, and no other.
#[tokio::test]
async fn s17_25_a_path_scoped_frame_rides_its_paths_connection() {
    let server = RawServer::start("/one");
    let runtime = client();
    let subscriber = runtime.subscriber(Trust::by_address());
    soon(subscriber.subscribe("x")).await.unwrap();
    let other = server.url.replace("/one", "/two");
    let mut connections = Vec::new();
    for url in [&server.url, &other] {
        let (connected, connection) = tokio::join!(soon(subscriber.connect(url)), server.greeted());
        connected.unwrap();
        connections.push(connection);
    }
    for (connection, path) in connections.iter().zip(["/one", "/two"]) {
        let mut stream = soon(connection.accept_uni()).await.unwrap();
        let frame = soon(stream.read_to_end(1024)).await.unwrap();
        let expected = [
            &b"\x57\x03\x0A\xA2\x00\x64"[..],
            path.as_bytes(),
            b"\x01\x61x",
        ]
        .concat();
        assert_eq!(frame, expected);
        assert!(stays_pending(connection.accept_uni()).await);
        assert!(stays_pending(connection.accept_bi()).await);
    }
}

/// The core half of S17-18: whoever misses a copy sees no trace of it in the
/// next one. Numbers, and so gaps, come only with an ordering guarantee.
#[tokio::test]
async fn s17_18_under_core_a_declined_copy_leaves_no_trace() {
    let server = Server::start().await;
    assert_eq!(
        server.runtime.config().guarantees.ordering,
        OrderingMode::None
    );
    let publisher = server.listener.publisher("/p").unwrap();
    let publisher = publisher.with_admission(|request| match request.filter {
        "secret" => Admission::DeclineCopies,
        _ => Admission::Record,
    });
    let runtime = client();
    let subscriber = runtime.subscriber(Trust::by_address());
    for filter in ["secret", "open"] {
        soon(subscriber.subscribe(filter)).await.unwrap();
    }
    soon(subscriber.connect(&server.url("/p"))).await.unwrap();
    eventually(|| publisher.filter_count() == 2).await;
    assert_eq!(publisher.publish("open", "1").unwrap(), 1);
    assert_eq!(publisher.publish("secret", "2").unwrap(), 0);
    assert_eq!(publisher.publish("open", "3").unwrap(), 1);
    assert_eq!(publisher.dropped_on("secret").unwrap().declined, 1);
    for _ in 0..2 {
        let copy = soon(subscriber.recv()).await.unwrap();
        assert_eq!(copy.meta().topic.as_deref(), Some("open"));
        assert!(copy.meta().sequence.is_none() && copy.meta().gap.is_none());
    }
    assert!(stays_pending(subscriber.recv()).await);
}

/// A refusal about a path reaches its sender on that path's connection; the
/// peer's other connection hears nothing of it and lives.
#[tokio::test]
async fn az_5_a_verdict_travels_on_its_paths_connection() {
    let server = Server::start().await;
    let closed = server.listener.puller("/closed").unwrap();
    let open = server.listener.puller("/open").unwrap();
    let runtime = client();
    let (refused, welcome) = (
        runtime.pusher(Trust::by_address()),
        runtime.pusher(Trust::by_address()),
    );
    soon(refused.connect(&server.url("/closed"))).await.unwrap();
    soon(welcome.connect(&server.url("/open"))).await.unwrap();
    soon(welcome.send(b"before")).await.unwrap();
    let before = soon(open.recv()).await.unwrap().connection();
    let mut events = welcome.events();

    let mut transfer = soon(refused.open(TransferMeta::default())).await.unwrap();
    let judge = async { drop(soon(closed.recv()).await.unwrap()) };
    let write = async {
        loop {
            if let Err(error) = transfer.write_all(&[0; 4096]).await {
                return error;
            }
            tokio::task::yield_now().await;
        }
    };
    let ((), error) = tokio::join!(judge, soon(write));
    assert!(matches!(error, Error::Rejected), "{error}");
    assert_eq!(
        refused.peer_count(),
        1,
        "a stream was refused, no connection"
    );

    soon(welcome.send(b"after")).await.unwrap();
    assert_eq!(soon(open.recv()).await.unwrap().connection(), before);
    assert!(stays_pending(events.recv()).await);
}
