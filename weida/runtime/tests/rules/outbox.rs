//! What the outbox is and is not. [weida 6.3]

use std::time::Duration;

use weida::{
    Error, OutboxFull, PeerEvent, PeerEvents, ReconnectPolicy, Runtime, RuntimeConfig,
    TransferMeta, Trust,
};

use crate::common::{Server, eventually, soon, stays_pending};

fn config() -> RuntimeConfig {
    RuntimeConfig {
        reconnect: ReconnectPolicy {
            initial: Duration::from_millis(20),
            max: Duration::from_millis(100),
            ..ReconnectPolicy::default()
        },
        ..RuntimeConfig::default()
    }
}

/// Stops the server; a second one with its key may take its place.
async fn stopped(server: Server) -> impl AsyncFn() -> Server {
    let (identity, addr) = (server.identity.clone(), server.binding.local_addr());
    soon(server.runtime.shutdown()).await;
    async move || Server::bound(RuntimeConfig::default(), identity.clone(), addr).await
}

async fn until_connected(events: &mut PeerEvents) {
    while !matches!(
        soon(events.recv()).await.unwrap(),
        PeerEvent::Connected { .. }
    ) {}
}

/// With a live peer the outbox is passed by: a body that it could never hold
/// arrives. The same body is refused once there is something to wait for.
#[tokio::test]
async fn ob_1_a_live_peer_is_written_to_directly() {
    let server = Server::start().await;
    let puller = server.listener.puller("/x").unwrap();
    let config = RuntimeConfig {
        outbox_messages: 1,
        outbox_bytes: 16,
        outbox_full: OutboxFull::Reject,
        ..config()
    };
    let runtime = Runtime::new(config).unwrap();
    let pusher = runtime.pusher(Trust::by_address());
    soon(pusher.connect(&server.url("/x"))).await.unwrap();
    let body = vec![5; 64 << 10];
    for _ in 0..3 {
        soon(pusher.send(&body)).await.unwrap();
        let got = soon(puller.recv()).await.unwrap();
        assert_eq!(soon(got.collect(1 << 20)).await.unwrap(), body);
    }
    let _again = stopped(server).await;
    eventually(|| pusher.peer_count() == 0).await;
    let refused = soon(pusher.send(&body)).await.unwrap_err();
    assert!(matches!(refused, Error::LimitExceeded(None)), "{refused}");
    soon(pusher.send(b"fits")).await.unwrap();
    assert_eq!(pusher.dropped(), 0);
}

/// A queue of this process: not written down, not resumed by the next one.
#[tokio::test]
async fn ob_7_s8_24_what_is_queued_dies_with_its_runtime() {
    let server = Server::start().await;
    let url = server.url("/x");
    let runtime = Runtime::new(config()).unwrap();
    let pusher = runtime.pusher(Trust::by_address());
    soon(pusher.connect(&url)).await.unwrap();
    let again = stopped(server).await;
    eventually(|| pusher.peer_count() == 0).await;
    soon(pusher.send(b"queued")).await.unwrap();
    drop(pusher);
    soon(runtime.shutdown()).await;

    let server = again().await;
    let puller = server.listener.puller("/x").unwrap();
    let runtime = Runtime::new(config()).unwrap();
    let pusher = runtime.pusher(Trust::by_address());
    soon(pusher.connect(&url)).await.unwrap();
    soon(pusher.send(b"fresh")).await.unwrap();
    let got = soon(puller.recv()).await.unwrap();
    assert_eq!(soon(got.collect(16)).await.unwrap(), b"fresh");
    assert!(stays_pending(puller.recv()).await);
}

/// Streams stay the application's: `open` and `request` wait for the redial and
/// fail, and nothing of them is kept. The neighbour, `send`, is.
#[tokio::test]
async fn ob_8_open_and_request_keep_nothing() {
    let server = Server::start().await;
    let url = server.url("/x");
    let config = RuntimeConfig {
        send_timeout: Some(Duration::from_millis(100)),
        ..config()
    };
    let runtime = Runtime::new(config).unwrap();
    let pusher = runtime.pusher(Trust::by_address());
    soon(pusher.connect(&url)).await.unwrap();
    let requester = runtime.requester(Trust::by_address());
    soon(requester.connect(&server.url("/ask"))).await.unwrap();
    let again = stopped(server).await;
    eventually(|| pusher.peer_count() + requester.peer_count() == 0).await;
    let opened = soon(pusher.open(TransferMeta::default())).await;
    assert!(
        matches!(opened, Err(Error::ConnectionLost(_))),
        "{opened:?}"
    );
    let asked = soon(requester.request(b"lost")).await;
    assert!(matches!(asked, Err(Error::ConnectionLost(_))), "{asked:?}");
    soon(pusher.send(b"kept")).await.unwrap();

    let mut events = (pusher.events(), requester.events());
    let server = again().await;
    let puller = server.listener.puller("/x").unwrap();
    let replier = server.listener.replier("/ask").unwrap();
    until_connected(&mut events.1).await;
    let got = soon(puller.recv()).await.unwrap();
    assert_eq!(soon(got.collect(16)).await.unwrap(), b"kept");
    assert!(stays_pending(puller.recv()).await);
    assert!(stays_pending(replier.accept()).await);
    drop(events.0);
}
