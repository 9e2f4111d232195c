//! Slots, redials, events and the outbox. `[weida 6.2, 6.3]`

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod common;

use std::time::Duration;

use common::raw::RawServer;
use common::relay::Relay;
use common::{Server, client, eventually, soon, stays_pending};
use weida::{
    Error, GiveUp, Identity, LossCause, OutboxFull, PeerEvent, PeerEvents, ReconnectPolicy,
    Runtime, RuntimeConfig, TransferMeta, Trust,
};

fn quick() -> RuntimeConfig {
    RuntimeConfig {
        reconnect: ReconnectPolicy {
            initial: Duration::from_millis(20),
            max: Duration::from_millis(200),
            ..ReconnectPolicy::default()
        },
        ..RuntimeConfig::default()
    }
}

async fn event(events: &mut PeerEvents) -> PeerEvent {
    soon(events.recv()).await.expect("the endpoint lives")
}

/// The next event that is not another attempt.
async fn settled(events: &mut PeerEvents) -> PeerEvent {
    loop {
        match event(events).await {
            PeerEvent::Retrying { .. } => {}
            other => return other,
        }
    }
}

/// A server that can be stopped and started again on its port.
struct Restartable {
    server: Option<Server>,
    identity: Identity,
    addr: std::net::SocketAddr,
}

impl Restartable {
    async fn start() -> Self {
        let server = Server::start().await;
        Self {
            identity: server.identity.clone(),
            addr: server.binding.local_addr(),
            server: Some(server),
        }
    }

    fn server(&self) -> &Server {
        self.server.as_ref().unwrap()
    }

    async fn stop(&mut self) {
        let server = self.server.take().unwrap();
        soon(server.runtime.shutdown()).await;
    }

    async fn start_again(&mut self) {
        self.start_as(self.identity.clone()).await;
    }

    async fn start_as(&mut self, identity: Identity) {
        let config = RuntimeConfig::default();
        self.server = Some(Server::bound(config, identity, self.addr).await);
    }
}

#[tokio::test]
async fn rd_1_never_connected_fails_at_once() {
    let runtime = client();
    let pusher = runtime.pusher(Trust::by_address());
    let requester = runtime.requester(Trust::by_address());
    for error in [
        pusher.send(b"").await.unwrap_err(),
        pusher
            .open(TransferMeta::default())
            .await
            .map(drop)
            .unwrap_err(),
        requester.request(b"").await.map(drop).unwrap_err(),
    ] {
        assert!(matches!(error, Error::NotConnected), "{error}");
    }
}

/// RD-1: down is not gone: an operation waits for the redial, and no longer
/// than `send_timeout`.
#[tokio::test]
async fn rd_1_an_operation_waits_for_the_redial() {
    let mut place = Restartable::start().await;
    let puller = place.server().listener.puller("/x").unwrap();
    let runtime = Runtime::new(quick()).unwrap();
    let impatient = Runtime::new(RuntimeConfig {
        send_timeout: Some(Duration::from_millis(150)),
        ..quick()
    })
    .unwrap();
    let url = place.server().url("/x");
    let patient = runtime.pusher(Trust::by_address());
    let hasty = impatient.pusher(Trust::by_address());
    soon(patient.connect(&url)).await.unwrap();
    soon(hasty.connect(&url)).await.unwrap();
    drop(puller);
    place.stop().await;
    eventually(|| hasty.peer_count() == 0 && patient.peer_count() == 0).await;
    let error = soon(hasty.open(TransferMeta::default()))
        .await
        .map(drop)
        .unwrap_err();
    assert!(
        matches!(error, Error::ConnectionLost(LossCause::PeerClosed(_))),
        "{error:?}"
    );
    let mut open = Box::pin(patient.open(TransferMeta::default()));
    assert!(stays_pending(&mut open).await);
    place.start_again().await;
    let puller = place.server().listener.puller("/x").unwrap();
    let mut transfer = soon(open).await.unwrap();
    transfer.write_all(b"late").await.unwrap();
    transfer.finish().unwrap();
    let arrived = soon(puller.recv()).await.unwrap();
    assert_eq!(soon(arrived.collect(8)).await.unwrap(), b"late");
}

/// A killed process says no goodbye; its successor ends the connections it
/// does not know, long before the idle timeout of 30 s would.
#[tokio::test]
async fn rd_1_a_peer_that_died_in_silence_is_redialled_as_soon_as_it_is_back() {
    let mut place = Restartable::start().await;
    let puller = place.server().listener.puller("/x").unwrap();
    let relay = Relay::start(place.addr).await;
    let runtime = Runtime::new(quick()).unwrap();
    let pusher = runtime.pusher(Trust::by_address());
    let url = place.server().url_via(relay.addr(), "/x");
    soon(pusher.connect(&url)).await.unwrap();
    let mut events = pusher.events();
    // Nothing that the server says while it stops gets through.
    relay.cut();
    drop(puller);
    place.stop().await;
    place.start_again().await;
    let puller = place.server().listener.puller("/x").unwrap();
    relay.heal();
    assert_eq!(pusher.peer_count(), 1, "the dialler knows nothing yet");
    let mut transfer = soon(pusher.open(TransferMeta::default())).await.unwrap();
    // Whether this one arrives is unknown to the dialler, and so it should be.
    let _: weida::Result<()> = transfer.write_all(&[0; 2000]).await;
    let lost = tokio::time::timeout(Duration::from_secs(8), events.recv());
    let lost = lost.await.expect("far less than the idle timeout");
    assert!(matches!(lost, Some(PeerEvent::Lost { .. })), "{lost:?}");
    soon(pusher.send(b"again")).await.unwrap();
    let arrived = soon(puller.recv()).await.unwrap();
    assert_eq!(soon(arrived.collect(8)).await.unwrap(), b"again");
}

/// RD-2: another key at the address ends the slot.
#[tokio::test]
async fn rd_2_a_slot_pins_the_key_it_proved_first() {
    let mut place = Restartable::start().await;
    let runtime = Runtime::new(quick()).unwrap();
    // Anchored trust would accept either key; the slot does not.
    let (one, two) = (
        Identity::generate_for(["localhost"]).unwrap(),
        Identity::generate_for(["localhost"]).unwrap(),
    );
    place.stop().await;
    place.start_as(one.clone()).await;
    let trust = Trust::pin(one.fingerprint().unwrap()).and_pin(two.fingerprint().unwrap());
    let requester = runtime.requester(trust);
    let url = format!("weida://{}/x", place.addr);
    soon(requester.connect(&url)).await.unwrap();
    let mut events = requester.events();
    place.stop().await;
    place.start_as(two.clone()).await;
    assert!(matches!(event(&mut events).await, PeerEvent::Lost { .. }));
    let PeerEvent::GaveUp { why, .. } = settled(&mut events).await else {
        panic!("a stranger was accepted");
    };
    let presented = Some(two.fingerprint().unwrap());
    assert_eq!(why, GiveUp::PeerChanged { presented });
    let error = soon(requester.request(b"")).await.map(drop).unwrap_err();
    assert!(
        matches!(error, Error::Untrusted(fp) if Some(fp) == presented),
        "{error}"
    );
}

/// RD-3: what this side closed is not redialled.
#[tokio::test]
async fn rd_3_a_locally_closed_connection_is_not_redialled() {
    let server = Server::start().await;
    let runtime = Runtime::new(quick()).unwrap();
    let peer = runtime.peer(Trust::by_address());
    soon(peer.connect(&server.url("/x"))).await.unwrap();
    let mut events = peer.events();
    soon(runtime.shutdown()).await;
    while let Some(event) = soon(events.recv()).await {
        assert!(!matches!(
            event,
            PeerEvent::Retrying { .. } | PeerEvent::Connected { .. }
        ));
        if let PeerEvent::GaveUp { .. } = event {
            break;
        }
        assert!(!peer.disconnect("nothing"));
        if peer.peer_count() == 0 {
            break;
        }
    }
    let error = soon(peer.open(TransferMeta::default()))
        .await
        .map(drop)
        .unwrap_err();
    assert!(
        matches!(error, Error::ConnectionLost(LossCause::LocallyClosed)),
        "{error}"
    );
}

/// RD-4 and RD-7: every transition is seen, in order, and only live slots count.
#[tokio::test]
async fn rd_4_rd_7_every_transition_is_observable() {
    let mut place = Restartable::start().await;
    let runtime = Runtime::new(quick()).unwrap();
    let pusher = runtime.pusher(Trust::by_address());
    let mut events = pusher.events();
    let url = place.server().url("/x");
    let fingerprint = place.server().fingerprint;
    soon(pusher.connect(&url)).await.unwrap();
    let PeerEvent::Connected { url: seen, peer } = event(&mut events).await else {
        panic!("first Connected");
    };
    assert_eq!(&*seen, url);
    assert_eq!(peer.and_then(|peer| peer.key()), Some(fingerprint));
    place.stop().await;
    let PeerEvent::Lost { cause, .. } = event(&mut events).await else {
        panic!("then Lost");
    };
    let LossCause::PeerClosed(Some(reason)) = cause else {
        panic!("a shutdown is a deliberate close: {cause:?}");
    };
    assert_eq!(reason.code(), weida::codes::SHUTDOWN);
    let PeerEvent::Retrying { attempt: 1, .. } = event(&mut events).await else {
        panic!("then Retrying");
    };
    assert_eq!(pusher.peer_count(), 0);
    assert!(pusher.connection_stats().is_empty());
    place.start_again().await;
    assert!(matches!(
        settled(&mut events).await,
        PeerEvent::Connected { .. }
    ));
    assert_eq!(pusher.peer_count(), 1);
    let stats = pusher.connection_stats();
    assert_eq!((&*stats[0].url, stats[0].redials), (url.as_str(), 1));
    assert!(stats[0].transport.unwrap().tx.datagrams > 0);
    drop(pusher);
    assert!(soon(events.recv()).await.is_none());
}

#[tokio::test]
async fn rd_never_gives_up_at_once() {
    let server = Server::start().await;
    let config = RuntimeConfig {
        reconnect: ReconnectPolicy::never(),
        ..RuntimeConfig::default()
    };
    let runtime = Runtime::new(config).unwrap();
    let peer = runtime.peer(Trust::by_address());
    soon(peer.connect(&server.url("/x"))).await.unwrap();
    let mut events = peer.events();
    soon(server.runtime.shutdown()).await;
    assert!(matches!(event(&mut events).await, PeerEvent::Lost { .. }));
    let PeerEvent::GaveUp { why, .. } = event(&mut events).await else {
        panic!("no redial");
    };
    assert_eq!(why, GiveUp::Policy { attempts: 0 });
    let error = soon(peer.open(TransferMeta::default()))
        .await
        .map(drop)
        .unwrap_err();
    assert!(
        matches!(error, Error::ConnectionLost(LossCause::PeerClosed(_))),
        "{error}"
    );
}

#[tokio::test]
async fn rd_a_policy_that_runs_out_says_how_often_it_tried() {
    let server = RawServer::start("/x");
    let config = RuntimeConfig {
        reconnect: ReconnectPolicy {
            initial: Duration::from_millis(5),
            max_attempts: Some(3),
            ..ReconnectPolicy::default()
        },
        ..RuntimeConfig::default()
    };
    let runtime = Runtime::new(config).unwrap();
    let peer = runtime.peer(Trust::by_address());
    let (connected, connection) = tokio::join!(soon(peer.connect(&server.url)), server.greeted());
    connected.unwrap();
    let mut events = peer.events();
    connection.close(0u32.into(), b"");
    assert!(matches!(event(&mut events).await, PeerEvent::Lost { .. }));
    for n in 1..=3 {
        let PeerEvent::Retrying { attempt, .. } = event(&mut events).await else {
            panic!("attempt {n}");
        };
        assert_eq!(attempt, n);
        // Refused before any state exists: a failed dial like any other.
        soon(server.endpoint.accept()).await.unwrap().refuse();
    }
    let PeerEvent::GaveUp { why, .. } = event(&mut events).await else {
        panic!("the policy ran out");
    };
    assert_eq!(why, GiveUp::Policy { attempts: 3 });
}

/// RD: a deliberate close ends the slot only when the policy says so; a restart
/// is redialled at once all the same.
#[tokio::test]
async fn rd_stop_on_peer_closed_spares_a_restart() {
    let server = RawServer::start("/x");
    let config = RuntimeConfig {
        reconnect: ReconnectPolicy {
            initial: Duration::from_secs(3600),
            max: Duration::from_secs(3600),
            stop_on_peer_closed: true,
            ..ReconnectPolicy::default()
        },
        ..RuntimeConfig::default()
    };
    let runtime = Runtime::new(config).unwrap();
    let peer = runtime.peer(Trust::by_address());
    let (connected, connection) = tokio::join!(soon(peer.connect(&server.url)), server.greeted());
    connected.unwrap();
    let mut events = peer.events();
    connection.close(10u32.into(), b"successor");
    let PeerEvent::Lost { cause, .. } = event(&mut events).await else {
        panic!("Lost first");
    };
    assert_eq!(cause, LossCause::PeerRestarting);
    let PeerEvent::Retrying { delay, .. } = event(&mut events).await else {
        panic!("redialled at once");
    };
    assert_eq!(delay, Duration::ZERO);
    let connection = server.greeted().await;
    assert!(matches!(
        event(&mut events).await,
        PeerEvent::Connected { .. }
    ));
    connection.close(0u32.into(), b"enough");
    assert!(matches!(event(&mut events).await, PeerEvent::Lost { .. }));
    assert!(matches!(event(&mut events).await, PeerEvent::GaveUp { .. }));
}

#[tokio::test]
async fn a_forgotten_address_is_gone() {
    let server = Server::start().await;
    let runtime = client();
    let pusher = runtime.pusher(Trust::by_address());
    let url = server.url("/x");
    soon(pusher.connect(&url)).await.unwrap();
    assert!(!pusher.disconnect("weida://elsewhere/x"));
    assert!(pusher.disconnect(&url));
    assert!(!pusher.disconnect(&url));
    assert_eq!(pusher.peer_count(), 0);
    let error = pusher.send(b"").await.unwrap_err();
    assert!(matches!(error, Error::NotConnected), "{error}");
}

/// OB-2: what is sent while the peer is away arrives after the redial, in order.
#[tokio::test]
async fn ob_2_the_outbox_is_written_in_order_after_the_redial() {
    let mut place = Restartable::start().await;
    let runtime = Runtime::new(quick()).unwrap();
    let pusher = runtime.pusher(Trust::by_address());
    soon(pusher.connect(&place.server().url("/x")))
        .await
        .unwrap();
    place.stop().await;
    eventually(|| pusher.peer_count() == 0).await;
    for n in 0..50u8 {
        soon(pusher.send(&[n])).await.unwrap();
    }
    place.start_again().await;
    let puller = place.server().listener.puller("/x").unwrap();
    // The path may be registered after the first bodies came back; those were
    // refused, so register before the redial lands: the initial delay is 20 ms.
    let mut last = None;
    while last != Some(49) {
        let arrived = soon(puller.recv()).await.unwrap();
        let body = soon(arrived.collect(1)).await.unwrap();
        assert!(last.is_none_or(|last| last < body[0]), "{last:?} {body:?}");
        last = Some(body[0]);
    }
    assert_eq!(pusher.dropped(), 0);
}

/// OB-3 and OB-4: two bounds, three answers.
#[tokio::test]
async fn ob_3_ob_4_inv_12_the_outbox_is_bounded_in_messages_and_bytes() {
    for policy in [OutboxFull::Block, OutboxFull::Drop, OutboxFull::Reject] {
        let mut place = Restartable::start().await;
        let config = RuntimeConfig {
            outbox_messages: 4,
            outbox_bytes: 1000,
            outbox_full: policy,
            ..quick()
        };
        let runtime = Runtime::new(config).unwrap();
        let pusher = runtime.pusher(Trust::by_address());
        soon(pusher.connect(&place.server().url("/x")))
            .await
            .unwrap();
        place.stop().await;
        eventually(|| pusher.peer_count() == 0).await;
        let too_big = soon(pusher.send(&[0; 1001])).await.unwrap_err();
        assert!(matches!(too_big, Error::LimitExceeded(None)), "{too_big}");
        // One body is in the hand of the task that waits for the redial.
        for _ in 0..5 {
            soon(pusher.send(&[1; 200])).await.unwrap();
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        let sixth = pusher.send(&[2; 200]);
        match policy {
            OutboxFull::Block => assert!(stays_pending(sixth).await),
            OutboxFull::Drop => {
                soon(sixth).await.unwrap();
                assert_eq!(pusher.dropped(), 1);
            }
            OutboxFull::Reject => {
                let error = soon(sixth).await.unwrap_err();
                assert!(matches!(error, Error::LimitExceeded(None)), "{error}");
            }
        }
    }
}

/// OB-6: once nobody is left to wait for, `send` fails.
#[tokio::test]
async fn ob_6_send_fails_once_every_address_gave_up() {
    let server = Server::start().await;
    let config = RuntimeConfig {
        reconnect: ReconnectPolicy::never(),
        ..RuntimeConfig::default()
    };
    let runtime = Runtime::new(config).unwrap();
    let pusher = runtime.pusher(Trust::by_address());
    soon(pusher.connect(&server.url("/x"))).await.unwrap();
    soon(server.runtime.shutdown()).await;
    eventually(|| pusher.peer_count() == 0).await;
    let failed = async {
        loop {
            match pusher.send(b"x").await {
                Err(error) => break error,
                Ok(()) => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    };
    let error = soon(failed).await;
    assert!(matches!(error, Error::ConnectionLost(_)), "{error}");
}

/// OB-5: a body written to a connection that dies is gone, not resent.
#[tokio::test]
async fn ob_5_a_written_body_is_never_resent() {
    let server = RawServer::start("/x");
    let runtime = Runtime::new(quick()).unwrap();
    let pusher = runtime.pusher(Trust::by_address());
    let (connected, connection) = tokio::join!(soon(pusher.connect(&server.url)), server.greeted());
    connected.unwrap();
    pusher.send(b"once").await.unwrap();
    let mut first = soon(connection.accept_uni()).await.unwrap();
    let mut head = [0; 8];
    soon(first.read_exact(&mut head)).await.unwrap();
    connection.close(0u32.into(), b"dies");
    let again = server.greeted().await;
    assert!(stays_pending(again.accept_uni()).await, "nothing is resent");
    pusher.send(b"next").await.unwrap();
    let mut second = soon(again.accept_uni()).await.unwrap();
    let bytes = soon(second.read_to_end(64)).await.unwrap();
    assert!(bytes.ends_with(b"next"));
}
