//! Why a connection is gone. [weida CN-12]

use std::time::Duration;

use quinn::{Endpoint, EndpointConfig};
use weida::{
    Error, Limits, LossCause, PeerEvent, PeerEvents, ReconnectPolicy, Runtime, RuntimeConfig,
    TransferMeta, Trust,
};
use weida_testkit::UdpRelay;

use crate::common::raw::RawServer;
use crate::common::soon;

/// A dialler that does not redial, so that the first loss is the only one.
fn runtime(limits: Limits) -> Runtime {
    let config = RuntimeConfig {
        limits,
        reconnect: ReconnectPolicy::never(),
        ..RuntimeConfig::default()
    };
    Runtime::new(config).unwrap()
}

async fn lost(events: &mut PeerEvents) -> LossCause {
    loop {
        if let PeerEvent::Lost { cause, .. } = soon(events.recv()).await.unwrap() {
            return cause;
        }
    }
}

/// Every cause once, each by the event that makes it; and the operation that
/// meets it afterwards says the same.
#[tokio::test]
async fn cn_12_each_cause_is_kept() {
    // Closes on purpose, with a reason and as a restart.
    for (code, text) in [(6_u32, "bye"), (10, "successor")] {
        let server = RawServer::start("/x");
        let runtime = runtime(Limits::default());
        let peer = runtime.peer(Trust::by_address());
        let (connected, connection) =
            tokio::join!(soon(peer.connect(&server.url)), server.greeted());
        connected.unwrap();
        let mut events = peer.events();
        connection.close(code.into(), text.as_bytes());
        let cause = lost(&mut events).await;
        match &cause {
            LossCause::PeerClosed(Some(reason)) => {
                assert_eq!((reason.code(), reason.text()), (6, "bye"));
            }
            LossCause::PeerRestarting => assert_eq!(code, 10),
            other => panic!("{other}"),
        }
    }

    // Says nothing any more.
    let server = RawServer::start("/x");
    let quick = Limits {
        idle_timeout: Duration::from_millis(300),
        ..Limits::default()
    };
    let idle = runtime(quick);
    let peer = idle.peer(Trust::by_address());
    let (connected, _connection) = tokio::join!(soon(peer.connect(&server.url)), server.greeted());
    connected.unwrap();
    let mut events = peer.events();
    assert_eq!(lost(&mut events).await, LossCause::IdleTimeout);
    let error = soon(peer.open(TransferMeta::default())).await.unwrap_err();
    assert!(
        matches!(error, Error::ConnectionLost(LossCause::IdleTimeout)),
        "{error}"
    );

    // This side closes.
    let server = RawServer::start("/x");
    let closing = runtime(Limits::default());
    let peer = closing.peer(Trust::by_address());
    let (connected, _connection) = tokio::join!(soon(peer.connect(&server.url)), server.greeted());
    connected.unwrap();
    soon(closing.shutdown()).await;
    let error = soon(peer.open(TransferMeta::default())).await.unwrap_err();
    assert!(
        matches!(error, Error::ConnectionLost(LossCause::LocallyClosed)),
        "{error}"
    );

    // QUIC itself refuses.
    let server = RawServer::start("/x");
    let refused = runtime(Limits::default());
    let peer = refused.peer(Trust::by_address());
    let refuse = async { soon(server.endpoint.accept()).await.unwrap().refuse() };
    let (connected, ()) = tokio::join!(soon(peer.connect(&server.url)), refuse);
    let error = connected.unwrap_err();
    assert!(
        matches!(error, Error::ConnectionLost(LossCause::TransportError)),
        "{error}"
    );
}

/// Connection ids that any endpoint takes for one of its own.
struct Ids(u64);

impl quinn::ConnectionIdGenerator for Ids {
    fn generate_cid(&mut self) -> quinn::ConnectionId {
        self.0 += 1;
        quinn::ConnectionId::new(&self.0.to_be_bytes())
    }

    fn cid_len(&self) -> usize {
        8
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

/// A server that came back without its connections: it cannot close what it
/// does not know, so it resets.
#[tokio::test]
async fn cn_12_a_forgotten_connection_is_a_reset() {
    let mut shared = EndpointConfig::default();
    // Ids that only their own endpoint recognises would be ignored instead.
    shared.cid_generator(|| Box::new(Ids(0)));
    let server = RawServer::start_with("/x", shared.clone());
    let relay = UdpRelay::start(server.endpoint.local_addr().unwrap(), 1)
        .await
        .unwrap();
    let runtime = runtime(Limits::default());
    let peer = runtime.peer(Trust::by_address());
    let url = server.url_via(relay.addr());
    let (connected, _connection) = tokio::join!(soon(peer.connect(&url)), server.greeted());
    connected.unwrap();
    let mut events = peer.events();
    // The same secret for resets, none of the state: what a restart leaves.
    let socket = std::net::UdpSocket::bind(crate::common::loopback()).unwrap();
    let quic = quinn::default_runtime().unwrap();
    let restarted = Endpoint::new(shared, None, socket, quic).unwrap();
    relay.redirect(restarted.local_addr().unwrap());
    soon(peer.send(TransferMeta::default(), &[0; 1000]))
        .await
        .unwrap();
    assert_eq!(lost(&mut events).await, LossCause::Reset);
}
