//! Dialling, pooling, caps and liveness. `[weida 3, 5, 6]`, `[weida S8]`

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod common;

use std::net::SocketAddr;
use std::time::Duration;

use common::raw::{HELLO, RawClient, RawServer, close_code, send_uni};
use common::{Server, client, eventually, soon, stays_pending};
use weida::{
    ClientTls, ClientTrust, Discovery, Error, Exec, Identity, Limits, LossCause, PeerEvent,
    Resolved, Resolver, Runtime, RuntimeConfig, ServerTls, SharedResolver, TransferMeta, Trust,
};

/// AD-8: the transport is part of the address; nothing falls back.
#[tokio::test]
async fn ad_8_a_local_address_is_refused_and_nothing_falls_back() {
    let runtime = client();
    let peer = runtime.peer(Trust::by_address());
    for url in [
        "weida+unix://%2Fnowhere%2Fw.sock/x",
        "weida+inproc://bus/x",
        "weida+pipe://name/x",
    ] {
        let error = soon(peer.connect(url)).await.unwrap_err();
        assert!(matches!(error, Error::InvalidAddress(_)), "{url}: {error}");
    }
    assert_eq!(peer.peer_count(), 0);
}

/// AD-11: a portless address is a set, unless sets are off.
#[tokio::test]
async fn ad_11_a_portless_address_may_be_switched_off() {
    let config = RuntimeConfig {
        discovery: Discovery::Single,
        ..RuntimeConfig::default()
    };
    let runtime = Runtime::new(config).unwrap();
    let fingerprint = Identity::generate().unwrap().fingerprint().unwrap();
    let peer = runtime.peer(Trust::by_address());
    let error = soon(peer.connect(&format!("weida://{fingerprint}@localhost/x")))
        .await
        .unwrap_err();
    assert!(matches!(error, Error::InvalidAddress(_)), "{error}");
}

#[derive(Debug)]
struct Table(Vec<SocketAddr>);

impl Resolver for Table {
    fn resolve<'a>(&'a self, _: &'a Exec, _: &'a str, _: Option<u16>, _: usize) -> Resolved<'a> {
        Box::pin(async { Ok(self.0.clone()) })
    }
}

/// AD-9 and AD-12: a silent first address costs the attempt timeout, not a
/// handshake timeout; where a name points is the resolver's to say.
#[tokio::test]
async fn ad_9_ad_12_a_silent_first_address_is_passed_over() {
    let server = Server::start().await;
    let silent = tokio::net::UdpSocket::bind(common::loopback())
        .await
        .unwrap();
    let config = RuntimeConfig {
        resolver: SharedResolver::new(Table(vec![
            silent.local_addr().unwrap(),
            server.binding.local_addr(),
        ])),
        ..RuntimeConfig::default()
    };
    let runtime = Runtime::new(config).unwrap();
    let peer = runtime.peer(Trust::by_address());
    let began = tokio::time::Instant::now();
    let url = format!("weida://{}@a.name.of.ours:1/x", server.fingerprint);
    soon(peer.connect(&url)).await.unwrap();
    let took = began.elapsed();
    assert!(took >= Duration::from_millis(250), "{took:?}");
    assert!(took < Duration::from_secs(2), "{took:?}");
}

/// ID-5: a wrong pin names the key that answered.
#[tokio::test]
async fn id_5_a_wrong_pin_is_untrusted_with_what_answered() {
    let server = Server::start().await;
    let runtime = client();
    let peer = runtime.peer(Trust::by_address());
    let stranger = Identity::generate().unwrap().fingerprint().unwrap();
    let url = format!("weida://{stranger}@{}/x", server.binding.local_addr());
    let error = soon(peer.connect(&url)).await.unwrap_err();
    assert!(
        matches!(error, Error::Untrusted(fp) if fp == server.fingerprint),
        "{error}"
    );
    assert_eq!(peer.peer_count(), 0, "a failed first dial leaves nothing");
}

/// 6.1 and S8-8: equal terms share a connection, different ones never do.
#[tokio::test]
async fn s8_8_only_equal_terms_share_a_connection() {
    let server = Server::start().await;
    let acceptor = server.listener.acceptor("/x").unwrap();
    let _other = server.listener.acceptor("/y").unwrap();
    let runtime = client();
    let pinned = || Trust::pin(server.fingerprint);
    let identity = Identity::generate().unwrap();
    let addr = server.binding.local_addr();
    let (plain, named) = (format!("weida://{addr}/x"), server.url("/x"));
    let peers = [
        (runtime.peer(pinned()), &plain),
        (runtime.peer(pinned()), &plain),
        (runtime.peer(Trust::by_address()), &named),
        (runtime.peer(pinned()), &named),
        (
            runtime.peer(ClientTls::new(pinned()).with_identity(identity)),
            &plain,
        ),
    ];
    let mut ids = Vec::new();
    for (peer, url) in &peers {
        soon(peer.connect(url)).await.unwrap();
        peer.send(TransferMeta::default(), b"x").await.unwrap();
        let weida::Incoming::Stream(stream) = soon(acceptor.accept()).await.unwrap() else {
            panic!("a one-way stream");
        };
        ids.push(stream.connection());
    }
    assert_eq!(ids[0], ids[1], "configured alike");
    let distinct: std::collections::HashSet<_> = ids.iter().collect();
    assert_eq!(distinct.len(), 4, "{ids:?}");
}

/// CN-4: two racing dials of one target end up on one connection.
#[tokio::test]
async fn cn_4_racing_dials_share_the_winner() {
    let server = Server::start().await;
    let acceptor = server.listener.acceptor("/x").unwrap();
    let runtime = client();
    let peers: Vec<_> = (0..8).map(|_| runtime.peer(Trust::by_address())).collect();
    let url = server.url("/x");
    let dials = peers.iter().map(|peer| peer.connect(&url));
    for dialled in soon(futures_util::future::join_all(dials)).await {
        dialled.unwrap();
    }
    let mut ids = std::collections::HashSet::new();
    for peer in &peers {
        peer.send(TransferMeta::default(), b"").await.unwrap();
        if let weida::Incoming::Stream(stream) = soon(acceptor.accept()).await.unwrap() {
            ids.insert(stream.connection());
        }
    }
    assert_eq!(ids.len(), 1);
}

/// CN-3 and S8-10: a second connection of the same authority and terms must
/// prove the key the live ones proved.
#[tokio::test]
async fn cn_3_s8_10_another_key_behind_the_address_is_refused() {
    let (one, two) = (Server::start().await, Server::start().await);
    // A name whose meaning changes between dials: a balancer in one address.
    #[derive(Debug)]
    struct Balancer(std::sync::Mutex<Vec<SocketAddr>>);
    impl Resolver for Balancer {
        fn resolve<'a>(
            &'a self,
            _: &'a Exec,
            _: &'a str,
            _: Option<u16>,
            _: usize,
        ) -> Resolved<'a> {
            let next = self.0.lock().unwrap().remove(0);
            Box::pin(async move { Ok(vec![next]) })
        }
    }
    let turns = vec![
        one.binding.local_addr(),
        two.binding.local_addr(),
        one.binding.local_addr(),
    ];
    let config = RuntimeConfig {
        resolver: SharedResolver::new(Balancer(std::sync::Mutex::new(turns))),
        ..RuntimeConfig::default()
    };
    let runtime = Runtime::new(config).unwrap();
    let trust = Trust::pin(one.fingerprint).and_pin(two.fingerprint);
    let peer = runtime.peer(trust);
    soon(peer.connect("weida://cluster:7443/a")).await.unwrap();
    let error = soon(peer.connect("weida://cluster:7443/b"))
        .await
        .unwrap_err();
    assert!(
        matches!(error, Error::Untrusted(fp) if fp == two.fingerprint),
        "{error}"
    );
    // S8-9: the same key on a further path needs nothing but the proof.
    soon(peer.connect("weida://cluster:7443/c")).await.unwrap();
    assert_eq!(peer.peer_count(), 2);
}

/// CN-5: unused, a pooled connection closes after the linger; a redial inside
/// it is the same connection.
#[tokio::test]
async fn cn_5_an_unused_connection_lingers_and_closes() {
    let server = Server::start().await;
    let acceptor = server.listener.acceptor("/x").unwrap();
    let config = RuntimeConfig {
        limits: Limits {
            idle_timeout: Duration::from_millis(600),
            keep_alive: Duration::from_millis(100),
            ..Limits::default()
        },
        ..RuntimeConfig::default()
    };
    let runtime = Runtime::new(config).unwrap();
    let url = server.url("/x");
    let connection_of = async |peer: &weida::Peer| {
        peer.send(TransferMeta::default(), b"").await.unwrap();
        match soon(acceptor.accept()).await.unwrap() {
            weida::Incoming::Stream(stream) => stream.connection(),
            other => panic!("{other:?}"),
        }
    };
    let peer = runtime.peer(Trust::by_address());
    soon(peer.connect(&url)).await.unwrap();
    let first = connection_of(&peer).await;
    assert!(peer.disconnect(&url));
    soon(peer.connect(&url)).await.unwrap();
    assert_eq!(connection_of(&peer).await, first, "inside the linger");
    drop(peer);
    // Subscribed events end with their connection: a way to see it close.
    tokio::time::sleep(Duration::from_millis(2000)).await;
    let peer = runtime.peer(Trust::by_address());
    soon(peer.connect(&url)).await.unwrap();
    assert_ne!(connection_of(&peer).await, first, "closed after the linger");
}

/// CN-7: only the dialler pings; a binding with a short idle time loses a
/// silent peer, and the cause is kept (CN-12).
#[tokio::test]
async fn cn_7_cn_12_the_smaller_idle_time_governs() {
    let config = RuntimeConfig {
        limits: Limits {
            idle_timeout: Duration::from_millis(500),
            ..Limits::default()
        },
        ..RuntimeConfig::default()
    };
    let server = Server::with(config).await;
    let runtime = client();
    let peer = runtime.peer(Trust::by_address());
    soon(peer.connect(&server.url("/x"))).await.unwrap();
    let mut events = peer.events();
    let Some(PeerEvent::Lost { cause, .. }) = soon(events.recv()).await else {
        panic!("lost");
    };
    assert_eq!(cause, LossCause::IdleTimeout);
    // A dialler that pings often enough keeps it.
    let config = RuntimeConfig {
        limits: Limits {
            keep_alive: Duration::from_millis(100),
            ..Limits::default()
        },
        ..RuntimeConfig::default()
    };
    let lively = Runtime::new(config).unwrap();
    let peer = lively.peer(Trust::by_address());
    soon(peer.connect(&server.url("/x"))).await.unwrap();
    tokio::time::sleep(Duration::from_millis(1200)).await;
    assert_eq!(peer.peer_count(), 1);
}

/// CN-8: past `max_connections` a dial is refused before any state exists.
#[tokio::test]
async fn cn_8_a_binding_refuses_past_its_cap() {
    let config = RuntimeConfig {
        max_connections: 2,
        ..RuntimeConfig::default()
    };
    let server = Server::with(config).await;
    let addr = server.binding.local_addr();
    let held = [
        RawClient::greeted(addr).await,
        RawClient::greeted(addr).await,
    ];
    let refused = soon(RawClient::dial(addr)).await.map(drop).unwrap_err();
    let code = match refused {
        quinn::ConnectionError::ConnectionClosed(close) => u64::from(close.error_code),
        other => panic!("{other}"),
    };
    assert_eq!(code, 2, "CONNECTION_REFUSED");
    let [one, _two] = held;
    one.connection.close(0u32.into(), b"");
    let again = async {
        loop {
            if let Ok(raw) = RawClient::dial(addr).await {
                break raw;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    soon(again).await;
}

/// CN-9 and S8-11: per proved key; anonymous clients are each their own peer.
#[tokio::test]
async fn cn_9_s8_11_a_proved_key_has_its_own_cap() {
    let config = RuntimeConfig {
        max_connections_per_peer: 2,
        ..RuntimeConfig::default()
    };
    let server = Server::with(config).await;
    let required = server
        .listener
        .bind_quic(
            common::loopback(),
            ServerTls::new(server.identity.clone()).require_client(ClientTrust::AnyKey),
        )
        .await
        .unwrap();
    let runtime = client();
    let identity = Identity::generate().unwrap();
    let peer = runtime.peer(ClientTls::new(Trust::by_address()).with_identity(identity));
    let url = |path: &str| {
        format!(
            "weida://{}@{}{path}",
            server.fingerprint,
            required.local_addr()
        )
    };
    soon(peer.connect(&url("/a"))).await.unwrap();
    soon(peer.connect(&url("/b"))).await.unwrap();
    let error = soon(peer.connect(&url("/c"))).await.unwrap_err();
    let reason = error.close_reason().map(str::to_owned);
    assert!(matches!(error, Error::LimitExceeded(Some(_))), "{error}");
    assert_eq!(
        reason.as_deref(),
        Some("more than 2 connections of one peer")
    );
    let stranger = Identity::generate().unwrap();
    let other = runtime.peer(ClientTls::new(Trust::by_address()).with_identity(stranger));
    soon(other.connect(&url("/a"))).await.unwrap();
    // Anonymous ones are not counted per peer.
    let anonymous = runtime.peer(Trust::by_address());
    for path in ["/a", "/b", "/c", "/d"] {
        soon(anonymous.connect(&server.url(path))).await.unwrap();
    }
}

/// CN-10: from the threshold on, an unproved address is answered by a Retry,
/// which a real client follows.
#[tokio::test]
async fn cn_10_a_retry_is_followed_and_handshakes_are_capped() {
    let config = RuntimeConfig {
        retry_above_handshakes: 0,
        ..RuntimeConfig::default()
    };
    let server = Server::with(config).await;
    let runtime = client();
    let peer = runtime.peer(Trust::by_address());
    soon(peer.connect(&server.url("/x"))).await.unwrap();

    let config = RuntimeConfig {
        max_handshakes: 0,
        ..RuntimeConfig::default()
    };
    let closed = Server::with(config).await;
    let error = soon(peer.connect(&closed.url("/x"))).await.unwrap_err();
    assert!(matches!(error, Error::ConnectionLost(_)), "{error}");
}

/// CN-11: no HELLO in time costs the connection, in both roles.
#[tokio::test]
async fn cn_11_a_peer_without_hello_is_dropped() {
    let config = || RuntimeConfig {
        limits: Limits {
            hello_timeout_ms: 200,
            ..Limits::default()
        },
        ..RuntimeConfig::default()
    };
    let server = Server::with(config()).await;
    let raw = soon(RawClient::dial(server.binding.local_addr()))
        .await
        .unwrap();
    assert_eq!(close_code(&raw.connection).await, 4);

    let silent = RawServer::start("/x");
    let runtime = Runtime::new(config()).unwrap();
    let peer = runtime.peer(Trust::by_address());
    let (dialled, connection) = tokio::join!(soon(peer.connect(&silent.url)), silent.accept());
    let error = dialled.unwrap_err();
    assert!(
        matches!(&error, Error::Negotiation(text) if text.contains("HELLO")),
        "{error}"
    );
    assert_eq!(close_code(&connection).await, 4);
}

/// CN-1: `connect` returns only once HELLO is negotiated.
#[tokio::test]
async fn cn_1_connect_waits_for_hello() {
    let server = RawServer::start("/x");
    let runtime = client();
    let peer = runtime.peer(Trust::by_address());
    let mut dialling = Box::pin(peer.connect(&server.url));
    let connection = tokio::select! {
        connection = server.accept() => connection,
        result = &mut dialling => panic!("early: {result:?}"),
    };
    assert!(stays_pending(&mut dialling).await);
    send_uni(&connection, HELLO).await;
    soon(dialling).await.unwrap();
    assert_eq!(peer.peer_count(), 1);
}

/// ID-11: every connection of one key on one binding, and nobody else's.
#[tokio::test]
async fn id_11_a_peer_is_disconnected_by_its_key() {
    let server = Server::start().await;
    let required = server
        .listener
        .bind_quic(
            common::loopback(),
            ServerTls::new(server.identity.clone()).require_client(ClientTrust::AnyKey),
        )
        .await
        .unwrap();
    let url = |path: &str| {
        format!(
            "weida://{}@{}{path}",
            server.fingerprint,
            required.local_addr()
        )
    };
    let (one, two) = (Identity::generate().unwrap(), Identity::generate().unwrap());
    let runtime = client();
    let dial = |identity: &Identity| {
        runtime.peer(ClientTls::new(Trust::by_address()).with_identity(identity.clone()))
    };
    let (a, b) = (dial(&one), dial(&two));
    soon(a.connect(&url("/a"))).await.unwrap();
    soon(a.connect(&url("/b"))).await.unwrap();
    soon(b.connect(&url("/a"))).await.unwrap();
    let mut events = a.events();
    let key = one.fingerprint().unwrap();
    let mut closed = 0;
    eventually(|| {
        closed += required.disconnect(key);
        closed >= 2
    })
    .await;
    assert_eq!(closed, 2);
    assert_eq!(server.binding.disconnect(key), 0, "another binding");
    let Some(PeerEvent::Lost { cause, .. }) = soon(events.recv()).await else {
        panic!("lost");
    };
    let LossCause::PeerClosed(Some(reason)) = cause else {
        panic!("{cause:?}");
    };
    assert_eq!(
        (reason.code(), reason.text()),
        (7, "disconnected by the application")
    );
    assert_eq!(b.peer_count(), 1);
    // Not a ban: it comes back by its own policy.
    eventually(|| a.peer_count() == 2).await;
}

/// S8-1, S8-6 and ID-9: a proved key is the peer, the same on every connection
/// and after a reconnect, and its chain comes with it.
#[tokio::test]
async fn s8_6_the_same_key_is_the_same_peer() {
    let server = Server::start().await;
    let required = server
        .listener
        .bind_quic(
            common::loopback(),
            ServerTls::new(server.identity.clone()).require_client(ClientTrust::AnyKey),
        )
        .await
        .unwrap();
    let puller = server.listener.puller("/x").unwrap();
    let url = format!("weida://{}@{}/x", server.fingerprint, required.local_addr());
    let identity = Identity::generate().unwrap();
    let key = identity.fingerprint().unwrap();
    for _ in 0..2 {
        let runtime = client();
        let pusher =
            runtime.pusher(ClientTls::new(Trust::by_address()).with_identity(identity.clone()));
        soon(pusher.connect(&url)).await.unwrap();
        // S8-2: what the header claims changes nothing.
        let claim = TransferMeta::default()
            .with_topic(server.fingerprint.to_string())
            .with_content_type(server.fingerprint.to_string());
        pusher.send_with(claim, b"x").await.unwrap();
        let arrived = soon(puller.recv()).await.unwrap();
        let meta = arrived.meta();
        assert_eq!(meta.peer.as_ref().and_then(|peer| peer.key()), Some(key));
        assert_eq!(meta.peer_chain.as_ref().unwrap().certs().len(), 1);
        soon(runtime.shutdown()).await;
    }
}

/// A binding that wants a key refuses after the client's side looks complete.
#[tokio::test]
async fn wire_3_3_an_anonymous_client_is_refused_as_a_tls_failure() {
    let server = Server::start().await;
    let required = server
        .listener
        .bind_quic(
            common::loopback(),
            ServerTls::new(server.identity.clone()).require_client(ClientTrust::AnyKey),
        )
        .await
        .unwrap();
    let runtime = client();
    let peer = runtime.peer(Trust::by_address());
    let url = format!("weida://{}@{}/x", server.fingerprint, required.local_addr());
    let error = soon(peer.connect(&url)).await.unwrap_err();
    assert!(matches!(error, Error::Tls(_)), "{error}");
}

/// INV-16: statistics name a connection by its URL only.
#[test]
fn inv_16_statistics_carry_no_socket_address() {
    let text = include_str!("../src/stats.rs");
    assert!(!text.contains("SocketAddr") && !text.contains("IpAddr"));
}

/// CN-6 and the raw core: an acceptor sees both stream kinds and subscription
/// events, and delivers on the connection they came on.
#[tokio::test]
async fn cn_6_a_raw_acceptor_sees_everything_and_answers_on_the_same_connection() {
    let server = Server::start().await;
    let acceptor = server.listener.acceptor("/q").unwrap();
    let raw = RawClient::greeted(server.binding.local_addr()).await;
    let other = RawClient::greeted(server.binding.local_addr()).await;
    // SUBSCRIBE /q "a", twice; CREDIT limit 5; UNSUBSCRIBE /q "a"; and of an
    // unknown filter.
    let subscribe = [0x57, 3, 8, 0xA2, 0, 0x62, b'/', b'q', 1, 0x61, b'a'];
    send_uni(&raw.connection, &subscribe).await;
    let weida::Incoming::Subscribed(consumer) = soon(acceptor.accept()).await.unwrap() else {
        panic!("subscribed");
    };
    assert_eq!((consumer.path(), consumer.filter()), ("/q", "a"));
    send_uni(&raw.connection, &subscribe).await;
    let credit = [0x57, 5, 10, 0xA3, 0, 0x62, b'/', b'q', 1, 0x61, b'a', 2, 5];
    send_uni(&raw.connection, &credit).await;
    let weida::Incoming::Credit(grant) = soon(acceptor.accept()).await.unwrap() else {
        panic!("a repeat is not announced again");
    };
    assert_eq!(
        (grant.id, &*grant.filter, grant.limit),
        (consumer.id(), "a", 5)
    );
    soon(consumer.deliver(TransferMeta::default().with_topic("a"), b"m"))
        .await
        .unwrap();
    let mut copy = soon(raw.connection.accept_uni()).await.unwrap();
    let bytes = soon(copy.read_to_end(64)).await.unwrap();
    assert!(bytes.ends_with(b"m"));
    assert!(stays_pending(other.connection.accept_uni()).await);
    let mut unknown = subscribe;
    unknown[1] = 4;
    unknown[10] = b'z';
    send_uni(&raw.connection, &unknown).await;
    let mut known = subscribe;
    known[1] = 4;
    send_uni(&raw.connection, &known).await;
    let event = soon(acceptor.accept()).await.unwrap();
    let weida::Incoming::Unsubscribed { filter, .. } = event else {
        panic!("{event:?}");
    };
    assert_eq!(filter.as_deref(), Some("a"));
    send_uni(&raw.connection, &subscribe).await;
    drop(soon(acceptor.accept()).await.unwrap());
    raw.connection.close(0u32.into(), b"");
    let event = soon(acceptor.accept()).await.unwrap();
    let weida::Incoming::Unsubscribed { id, filter } = event else {
        panic!("{event:?}");
    };
    assert_eq!((id, filter), (consumer.id(), None));
}
