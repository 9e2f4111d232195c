//! Who gets in: ALPN, the caps on connections and handshakes, chains, tickets.
//! `[wire 2, 3, 30]`, `[weida CN-8, CN-9, CN-10, INV-3, INV-10, S8-25]`

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use quinn::ConnectionError;
use rustls::NamedGroup;
use rustls::client::Tls13ClientSessionValue;
use rustls::client::{ClientSessionStore, Resumption, Tls12ClientSessionValue};
use rustls::server::StoresServerSessions;
use rustls_pki_types::ServerName;
use tokio::task::JoinSet;
use weida_core::codes;

use crate::both;
use crate::raw::{Dial, Key, Raw, RawServer, data, soon};
use crate::relay::Relay;
use crate::subject::{self, Served, Subject, Tuning};

both! {
    wire_30_1_a_binding_refuses_another_alpn
    wire_30_1_a_dialler_refuses_another_alpn
    cn_8_a_binding_at_its_cap_refuses_the_first_packet
    cn_9_a_key_at_its_cap_is_closed
    cn_9_az_4_anonymous_clients_are_not_counted_together
    cn_10_handshakes_at_the_cap_are_refused
    cn_10_many_handshakes_are_asked_to_retry
    cn_10_a_flood_of_handshakes_keeps_nobody_out
    inv_3_a_flood_of_dials
    inv_10_a_long_chain_is_no_client
    s8_25_a_binding_issues_no_ticket
    s8_25_a_dialler_resumes_nothing
}

/// CONNECTION_REFUSED of QUIC, which comes instead of a handshake.
const CONNECTION_REFUSED: u64 = 0x02;
/// no_application_protocol, as QUIC carries a TLS alert.
const NO_APPLICATION_PROTOCOL: u64 = 0x178;

async fn serve(subject: Subject, tuning: &Tuning) -> Served {
    subject::serve(subject, tuning).await
}

/// The transport error the other side answers a dial with.
fn refusal(dialled: Result<Raw, ConnectionError>) -> u64 {
    match dialled.map(drop) {
        Err(ConnectionError::ConnectionClosed(close)) => close.error_code.into(),
        other => panic!("{other:?}"),
    }
}

/// The connection takes a request and answers it.
async fn works(raw: &Raw) {
    let reply = raw
        .request(&[data("/echo"), b"ping".to_vec()].concat())
        .await;
    assert!(reply.ends_with(b"ping"), "{reply:02X?}");
}

/// A dial that keeps being refused until a place is free.
async fn dial_until_let_in(server: SocketAddr) -> Raw {
    soon(async {
        loop {
            if let Ok(raw) = Dial::default().dial(server).await {
                return raw;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await
}

async fn wire_30_1_a_binding_refuses_another_alpn(subject: Subject) {
    let served = serve(subject, &Tuning::default()).await;
    for alpn in [&b"weida/1"[..], b"weida-raft/0", b"h3", b"weida/00"] {
        let dial = Dial {
            alpn,
            ..Dial::default()
        };
        assert_eq!(
            refusal(dial.dial(served.addr).await),
            NO_APPLICATION_PROTOCOL
        );
    }
    works(&Raw::dial(served.addr).await).await;
}

async fn wire_30_1_a_dialler_refuses_another_alpn(subject: Subject) {
    for alpn in [&b"weida/1"[..], b"weida-raft/0"] {
        let server = RawServer::bind_with(alpn, |_| {});
        let dialled = subject::subscribe(subject, &Tuning::default(), server.url("/md"));
        assert!(server.accept().await.is_err());
        assert_eq!(soon(dialled.connected).await.unwrap(), Err("Tls".into()));
    }
}

async fn cn_8_a_binding_at_its_cap_refuses_the_first_packet(subject: Subject) {
    let tuning = Tuning {
        max_connections: 2,
        ..Tuning::default()
    };
    let served = serve(subject, &tuning).await;
    let first = Raw::dial(served.addr).await;
    let second = Raw::dial(served.addr).await;
    for _ in 0..3 {
        let dialled = Dial::default().dial(served.addr).await;
        assert_eq!(refusal(dialled), CONNECTION_REFUSED);
    }
    works(&first).await;
    works(&second).await;
    // A place that becomes free is given away again.
    first.connection.close(0_u32.into(), b"");
    let third = dial_until_let_in(served.addr).await;
    third.greet().await;
    works(&third).await;
    works(&second).await;
}

fn with_key(key: &Key) -> Dial {
    Dial {
        key: Some(key.clone()),
        ..Dial::default()
    }
}

async fn cn_9_a_key_at_its_cap_is_closed(subject: Subject) {
    let tuning = Tuning {
        max_connections_per_peer: 3,
        any_key: true,
        ..Tuning::default()
    };
    let served = serve(subject, &tuning).await;
    let (greedy, modest) = (Key::generate(), Key::generate());
    let mut held = Vec::new();
    for _ in 0..3 {
        let raw = with_key(&greedy).dial(served.addr).await.unwrap();
        raw.greet().await;
        works(&raw).await;
        held.push(raw);
    }
    // The handshake itself succeeds: only then is the key known.
    for _ in 0..2 {
        let raw = with_key(&greedy).dial(served.addr).await.unwrap();
        raw.closed_with(codes::LIMIT_EXCEEDED).await;
    }
    let other = with_key(&modest).dial(served.addr).await.unwrap();
    other.greet().await;
    works(&other).await;
    for raw in &held {
        works(raw).await;
    }
    // One of its places becomes free.
    held.pop().unwrap().connection.close(0_u32.into(), b"");
    soon(async {
        loop {
            let raw = with_key(&greedy).dial(served.addr).await.unwrap();
            raw.say(crate::raw::HELLO).await;
            if raw.connection.accept_uni().await.is_ok() {
                return works(&raw).await;
            }
        }
    })
    .await;
}

/// The default figure: the 65th connection of one key.
#[tokio::test]
async fn cn_9_the_65th_connection_of_a_key_is_closed() {
    let tuning = Tuning {
        any_key: true,
        ..Tuning::default()
    };
    let served = serve(Subject::Ours, &tuning).await;
    let key = Key::generate();
    let from = crate::raw::socket();
    let dial = || Dial {
        from: Some(from.clone()),
        ..with_key(&key)
    };
    let mut held = Vec::new();
    for _ in 0..64 {
        held.push(dial().dial(served.addr).await.unwrap().greeted().await);
    }
    let (code, reason) = dial().dial(served.addr).await.unwrap().closed().await;
    assert_eq!(code, codes::LIMIT_EXCEEDED);
    assert_eq!(reason, "more than 64 connections of one peer");
    for raw in &held {
        raw.is_open();
    }
    works(&held[63]).await;
}

async fn cn_9_az_4_anonymous_clients_are_not_counted_together(subject: Subject) {
    let tuning = Tuning {
        max_connections_per_peer: 1,
        ..Tuning::default()
    };
    let served = serve(subject, &tuning).await;
    let mut held = Vec::new();
    for _ in 0..4 {
        held.push(Raw::dial(served.addr).await);
    }
    for raw in &held {
        works(raw).await;
    }
}

async fn cn_10_handshakes_at_the_cap_are_refused(subject: Subject) {
    let tuning = Tuning {
        max_handshakes: 3,
        retry_above_handshakes: usize::MAX,
        idle_timeout: Duration::from_secs(2),
        ..Tuning::default()
    };
    let served = serve(subject, &tuning).await;
    let relay = Relay::toward(served.addr).await;
    let mut begun = relay.begin(2).await;
    // Below the cap: one more is let in, and is no handshake once it is done.
    let inside = Raw::dial(served.addr).await;
    let third = relay.begin(1).await;
    let dialled = Dial::default().dial(served.addr).await;
    assert_eq!(refusal(dialled), CONNECTION_REFUSED);
    works(&inside).await;
    // Whoever is connected is not touched, and handshakes that lead nowhere
    // end by themselves.
    begun.abort_all();
    drop((begun, third));
    let after = dial_until_let_in(served.addr).await;
    after.greet().await;
    works(&after).await;
}

async fn cn_10_many_handshakes_are_asked_to_retry(subject: Subject) {
    let tuning = Tuning {
        retry_above_handshakes: 2,
        ..Tuning::default()
    };
    let served = serve(subject, &tuning).await;
    let relay = Relay::toward(served.addr).await;
    let _begun = relay.begin(2).await;
    assert_eq!(relay.retries(), 0);
    let _more = relay.begin(3).await;
    crate::raw::eventually(|| relay.retries() >= 3).await;
    // Whoever is where it says it is gets in all the same.
    works(&Raw::dial(served.addr).await).await;
}

/// At the figures every binding starts with: hundreds of handshakes that never
/// go on. From the 65th on an unproved source is asked again, which costs the
/// binding nothing; whoever answers gets in, and who was in notices nothing.
async fn cn_10_a_flood_of_handshakes_keeps_nobody_out(subject: Subject) {
    const FLOOD: usize = 300;
    let served = serve(subject, &Tuning::default()).await;
    let settled = Raw::dial(served.addr).await;
    let relay = Relay::toward(served.addr).await;
    let _begun = relay.begin(FLOOD).await;
    crate::raw::eventually(|| relay.retries() >= FLOOD - 64).await;
    works(&settled).await;
    for _ in 0..3 {
        works(&Raw::dial(served.addr).await).await;
    }
    works(&settled).await;
}

async fn inv_3_a_flood_of_dials(subject: Subject) {
    let tuning = Tuning {
        max_connections: 8,
        ..Tuning::default()
    };
    let served = serve(subject, &tuning).await;
    let settled = Raw::dial(served.addr).await;
    let mut dials = JoinSet::new();
    for _ in 0..48 {
        let addr = served.addr;
        dials.spawn(async move { Dial::default().dial(addr).await });
    }
    let dialled = soon(dials.join_all()).await;
    let (inside, refused): (Vec<_>, Vec<_>) = dialled.into_iter().partition(Result::is_ok);
    assert_eq!((inside.len(), refused.len()), (7, 41));
    for dialled in refused {
        assert_eq!(refusal(dialled), CONNECTION_REFUSED);
    }
    works(&settled).await;
    drop(inside);
    works(&dial_until_let_in(served.addr).await.greeted().await).await;
}

async fn inv_10_a_long_chain_is_no_client(subject: Subject) {
    let tuning = Tuning {
        any_key: true,
        ..Tuning::default()
    };
    let served = serve(subject, &tuning).await;
    let key = Key::generate();
    let longest = key.clone().behind(7);
    let raw = with_key(&longest).dial(served.addr).await.unwrap();
    raw.greet().await;
    works(&raw).await;
    let large = key.clone().behind_large(2, 12 << 10);
    let raw_large = with_key(&large).dial(served.addr).await.unwrap();
    raw_large.greet().await;
    works(&raw_large).await;
    // Too many certificates, and too many bytes of them.
    for key in [
        key.clone().behind(8),
        key.clone().behind(100),
        key.behind_large(3, 12 << 10),
    ] {
        // The client's handshake looks complete before the binding judges it.
        let error = match with_key(&key).dial(served.addr).await {
            Ok(raw) => soon(raw.connection.closed()).await,
            Err(error) => error,
        };
        let code: u64 = match error {
            ConnectionError::ConnectionClosed(close) => close.error_code.into(),
            other => panic!("{other}"),
        };
        assert!((0x100..0x200).contains(&code), "a TLS alert, not {code:#x}");
    }
    works(&raw).await;
}

/// Counts what a resumption would need and keeps none of it.
#[derive(Debug, Default)]
struct Tickets {
    received: AtomicUsize,
}

impl ClientSessionStore for Tickets {
    fn set_kx_hint(&self, _: ServerName<'static>, _: NamedGroup) {}

    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        None
    }

    fn set_tls12_session(&self, _: ServerName<'static>, _: Tls12ClientSessionValue) {}

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        None
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {}

    fn insert_tls13_ticket(&self, _: ServerName<'static>, _: Tls13ClientSessionValue) {
        self.received.fetch_add(1, Ordering::Relaxed);
    }

    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        None
    }
}

async fn s8_25_a_binding_issues_no_ticket(subject: Subject) {
    let dial = |tickets: &Arc<Tickets>| {
        let mut tls = Dial::default().tls();
        tls.resumption = Resumption::store(Arc::clone(tickets) as Arc<dyn ClientSessionStore>);
        tls.enable_early_data = true;
        tls
    };
    // A server that resumes gives this client tickets.
    let tickets = Arc::<Tickets>::default();
    let generous = RawServer::bind();
    let dialling = Dial::default().dial_tls(dial(&tickets), generous.addr());
    let (dialled, _accepted) = tokio::join!(dialling, generous.accept());
    let _dialled = dialled.unwrap();
    crate::raw::eventually(|| tickets.received.load(Ordering::Relaxed) > 0).await;

    let tickets = Arc::<Tickets>::default();
    let served = serve(subject, &Tuning::default()).await;
    let dialled = Dial::default().dial_tls(dial(&tickets), served.addr).await;
    let raw = dialled.unwrap();
    raw.greet().await;
    works(&raw).await;
    assert_eq!(tickets.received.load(Ordering::Relaxed), 0);
}

/// Counts the sessions a server hands out and those asked back for.
#[derive(Debug, Default)]
struct Sessions {
    kept: Mutex<Vec<(Vec<u8>, Vec<u8>)>>,
    asked: AtomicUsize,
}

impl StoresServerSessions for Sessions {
    fn put(&self, key: Vec<u8>, value: Vec<u8>) -> bool {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push((key, value));
        true
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let found = kept.iter().find(|(known, _)| known == key);
        found.map(|(_, value)| value.clone())
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.get(key)
    }

    fn can_cache(&self) -> bool {
        true
    }
}

async fn s8_25_a_dialler_resumes_nothing(subject: Subject) {
    let sessions = Arc::<Sessions>::default();
    let server = RawServer::bind_with(b"weida/0", |tls| {
        tls.session_storage = Arc::clone(&sessions) as Arc<dyn StoresServerSessions>;
        tls.max_early_data_size = u32::MAX;
    });
    // Whoever resumes is seen to ask for its session.
    let tls = Dial::default().tls();
    for _ in 0..2 {
        let dialling = Dial::default().dial_tls(tls.clone(), server.addr());
        let (dialled, accepted) = tokio::join!(dialling, server.accept());
        let accepted = accepted.unwrap();
        accepted.say(crate::raw::HELLO).await;
        dialled.unwrap().hears_hello().await;
    }
    assert!(sessions.asked.swap(0, Ordering::Relaxed) > 0);

    // One runtime that dials, is closed and dials again.
    let mut dialled = subject::redial(subject, server.url("/md"));
    for _ in 0..3 {
        let accepted = server.accept().await.unwrap();
        accepted.greet().await;
        assert_eq!(soon(dialled.connected.recv()).await, Some(Ok(())));
        accepted.connection.close(10_u32.into(), b"restarting");
    }
    assert_eq!(sessions.asked.load(Ordering::Relaxed), 0);
}
