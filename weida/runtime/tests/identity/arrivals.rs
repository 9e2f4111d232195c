//! What an arrival says about its sender.

use weida::{
    ClientTls, ClientTrust, Fingerprint, Identity, IncomingMeta, Limits, PeerIdentity, ServerTls,
    TransferMeta, Trust,
};

use crate::raw::{Raw, head};
use crate::world::{World, loopback, soon};

async fn requiring(identity: &Identity, trust: impl Into<ClientTrust>) -> World {
    let tls = ServerTls::new(identity.clone()).require_client(trust);
    World::serving(Limits::default(), tls, identity.clone(), loopback()).await
}

fn key(meta: &IncomingMeta) -> Option<Fingerprint> {
    meta.peer.as_ref().and_then(PeerIdentity::key)
}

/// A header that names another peer in every field a sender controls, and an
/// honest one: the peer is the same, because neither field makes it.
#[tokio::test]
async fn s8_2_identity_comes_from_the_transport_and_never_from_a_header() {
    let world = World::new().await;
    let puller = world.listener.puller("/p").unwrap();
    let raw = Raw::dial(world.addr()).await;
    let victim = Identity::generate().unwrap().fingerprint().unwrap();
    let named = victim.to_string(); // sha256:… is 71 bytes
    let mut forged = b"\xA4\x00\x62/p\x02\x78\x47".to_vec();
    forged.extend(named.as_bytes());
    forged.extend(b"\x05\x78\x47");
    forged.extend(named.as_bytes());
    forged.extend(b"\x07\x58\x20");
    forged.extend(victim.as_bytes());
    raw.say(&[head(1, b"\xA1\x00\x62/p"), named.clone().into_bytes()].concat())
        .await;
    raw.say(&[head(1, &forged), named.clone().into_bytes()].concat())
        .await;
    for _ in 0..2 {
        let transfer = soon(puller.recv()).await.unwrap();
        assert_eq!(transfer.meta().peer, None);
        assert_eq!(transfer.meta().peer_chain, None);
        assert_eq!(soon(transfer.collect(128)).await.unwrap(), named.as_bytes());
    }

    // Nor does it change a peer that did prove a key.
    let (server, client) = (Identity::generate().unwrap(), Identity::generate().unwrap());
    let world = requiring(&server, ClientTrust::AnyKey).await;
    let puller = world.listener.puller("/p").unwrap();
    let runtime = world.client();
    let tls = ClientTls::new(Trust::by_address()).with_identity(client.clone());
    let pusher = runtime.pusher(tls);
    soon(pusher.connect(&world.url("/p"))).await.unwrap();
    let claims = TransferMeta::default()
        .with_content_type(named.as_str())
        .with_topic(named.as_str());
    soon(pusher.send_with(claims, b"x")).await.unwrap();
    let transfer = soon(puller.recv()).await.unwrap();
    assert_eq!(key(transfer.meta()), Some(client.fingerprint().unwrap()));
}

/// The raw digest, 32 bytes, or nothing. [wire 8.2]
#[tokio::test]
async fn s8_16_s8_18_a_producer_name_is_32_raw_bytes() {
    let world = World::new().await;
    let puller = world.listener.puller("/p").unwrap();
    let producer = |len: usize| {
        let mut header = b"\xA2\x00\x62/p\x07\x58".to_vec();
        header.push(u8::try_from(len).unwrap());
        header.resize(header.len() + len, 7);
        head(1, &header)
    };
    for len in [31, 33] {
        let raw = Raw::dial(world.addr()).await;
        raw.say(&producer(32)).await;
        soon(puller.recv()).await.unwrap();
        raw.is_open();
        raw.say(&producer(len)).await;
        assert_eq!(raw.closed().await.0, weida::codes::PROTOCOL_VIOLATION);
    }
}

/// What a runtime writes by itself names nobody: no producer key, no sequence,
/// no fingerprint text. [weida S8-7, S8-17, S8-19, S8-20]
#[tokio::test]
async fn s8_17_s8_19_s8_20_a_copy_and_a_push_carry_no_name() {
    let world = World::new().await;
    let publisher = world.listener.publisher("/p").unwrap();
    let raw = Raw::dial(world.addr()).await;
    raw.subscribe("/p", "").await;
    crate::world::eventually(|| publisher.filter_count() == 1).await;
    publisher.publish("t", "x").unwrap();
    assert_eq!(
        raw.heard().await,
        b"\x57\x01\x0A\xA3\x00\x62/p\x01\x01\x05\x61tx"
    );
    let server = crate::raw::RawServer::bind();
    let runtime = world.client();
    let pusher = runtime
        .pusher(ClientTls::new(Trust::by_address()).with_identity(Identity::generate().unwrap()));
    let url = server.url("/jobs6");
    let (connected, raw) = tokio::join!(pusher.connect(&url), server.accept());
    connected.unwrap();
    soon(pusher.send(&[9; 64])).await.unwrap();
    let heard = raw.heard().await;
    // 64 bytes on a 6-byte path cost 12 bytes of frame. [weida PF-4]
    assert_eq!(heard.len(), 64 + 12);
    assert_eq!(&heard[..12], b"\x57\x01\x09\xA1\x00\x66/jobs6");
}

#[tokio::test]
async fn s8_3_id_9_peer_and_chain_of_every_kind_of_client() {
    let (server, client) = (Identity::generate().unwrap(), Identity::generate().unwrap());
    let client_key = client.fingerprint().unwrap();
    let pinned = ClientTrust::from(Trust::pin(client_key));
    for trust in [None, Some(ClientTrust::AnyKey), Some(pinned)] {
        let world = match trust.clone() {
            None => World::new().await,
            Some(trust) => requiring(&server, trust).await,
        };
        let replier = world.listener.replier("/r").unwrap();
        let runtime = world.client();
        let tls = ClientTls::new(Trust::by_address()).with_identity(client.clone());
        let requester = runtime.requester(tls);
        soon(requester.connect(&world.url("/r"))).await.unwrap();
        let answer = async {
            let request = replier.accept().await.unwrap();
            let (seen, chain) = (key(request.meta()), request.meta().peer_chain.clone());
            match &trust {
                None => assert_eq!((seen, chain), (None, None)),
                Some(_) => {
                    assert_eq!(seen, Some(client_key));
                    assert_eq!(chain.map(|chain| chain.certs().len()), Some(1));
                }
            }
            let reply = request.reply(TransferMeta::default()).await.unwrap();
            reply.finish().unwrap();
        };
        let (reply, ()) = soon(async { tokio::join!(requester.request(b"?"), answer) }).await;
        // The requester learns who answered, and its chain. [weida ID-10]
        let reply = reply.unwrap();
        assert_eq!(key(reply.meta()), Some(world.key));
        assert!(reply.meta().peer_chain.is_some());
    }
}

/// The key of the second connection is the key of the first, and gives nothing:
/// a path that refuses this peer refuses it again. [weida S8-6, S8-27]
#[tokio::test]
async fn s8_27_being_recognised_grants_nothing() {
    let (server, client) = (Identity::generate().unwrap(), Identity::generate().unwrap());
    let denied = client.fingerprint().unwrap();
    let world = requiring(&server, ClientTrust::AnyKey).await;
    let replier = world.listener.replier("/r").unwrap();
    let mut serving = tokio::task::JoinSet::new();
    serving.spawn(async move {
        while let Ok(request) = replier.accept().await {
            if key(request.meta()) == Some(denied) {
                request.refuse(weida::ErrorCode::Rejected).await;
            } else {
                let reply = request.reply(TransferMeta::default()).await.unwrap();
                reply.finish().unwrap();
            }
        }
    });
    let ask = async |who: Identity| {
        let runtime = world.client();
        let tls = ClientTls::new(Trust::by_address()).with_identity(who);
        let requester = runtime.requester(tls);
        soon(requester.connect(&world.url("/r"))).await.unwrap();
        soon(requester.request(b"?")).await.map(drop)
    };
    assert!(ask(Identity::generate().unwrap()).await.is_ok());
    for _ in 0..2 {
        let refused = ask(client.clone()).await;
        assert!(
            matches!(refused, Err(weida::Error::Rejected)),
            "{refused:?}"
        );
    }
}
