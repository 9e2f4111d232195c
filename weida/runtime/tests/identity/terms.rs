//! Terms of a dial and of a binding, and what changes under live ones.

use std::time::Duration;

use weida::{
    ClientTls, ClientTrust, Error, Identity, IdentityEvent, IdentitySource, Limits, ServerTls,
    Trust, TrustSource,
};

use crate::world::{World, loopback, soon};

/// Not one packet leaves. [weida ID-3]
#[tokio::test]
async fn id_3_nothing_trusted_and_nothing_named_sends_no_packet() {
    let listening = tokio::net::UdpSocket::bind(loopback()).await.unwrap();
    let addr = listening.local_addr().unwrap();
    let world = World::new().await;
    let runtime = world.client();
    let pusher = runtime.pusher(Trust::by_address());
    let refused = soon(pusher.connect(&format!("weida://{addr}/p"))).await;
    assert!(matches!(refused, Err(Error::Tls(_))), "{refused:?}");
    let mut packet = [0; 2048];
    let moment = Duration::from_millis(100);
    let heard = tokio::time::timeout(moment, listening.recv(&mut packet)).await;
    assert!(heard.is_err());
    // With a key in the address the first packet comes at once.
    let named = format!("weida://{}@{addr}/p", world.key);
    let dialling = pusher.connect(&named);
    tokio::select! {
        heard = listening.recv(&mut packet) => assert!(heard.unwrap() >= 1200),
        outcome = dialling => panic!("{outcome:?}"),
    }
}

#[tokio::test]
async fn id_6_an_empty_client_trust_is_refused_at_bind() {
    let world = World::new().await;
    let bind = async |trust: Trust| {
        let tls = ServerTls::new(world.identity.clone()).require_client(trust);
        world.listener.bind_quic(loopback(), tls).await.map(drop)
    };
    assert!(bind(Trust::pin(world.key)).await.is_ok());
    let refused = bind(Trust::by_address()).await;
    assert!(matches!(refused, Err(Error::Tls(_))), "{refused:?}");
    let broken = bind(Trust::anchor("no certificate")).await;
    assert!(matches!(broken, Err(Error::Tls(_))), "{broken:?}");
}

/// A renewal is served without a second bind, a live connection keeps what it
/// proved, and whoever pinned the old key refuses the new one.
#[tokio::test]
async fn s8_5_s8_28_a_rotation_is_a_new_peer_for_the_next_connection_only() {
    let (old, new) = (Identity::generate().unwrap(), Identity::generate().unwrap());
    let source = IdentitySource::external(old.clone()).unwrap();
    let tls = ServerTls::new(source.clone());
    let world = World::serving(Limits::default(), tls, old.clone(), loopback()).await;
    let _puller = world.listener.puller("/p").unwrap();
    let runtime = world.client();
    let both = Trust::pin(old.fingerprint().unwrap()).and_pin(new.fingerprint().unwrap());
    let url = format!("weida://{}/p", world.addr());
    let replier = world.listener.replier("/r").unwrap();
    let requester = runtime.requester(both.clone());
    let answer = async || {
        let request = replier.accept().await.unwrap();
        let reply = request.reply(weida::TransferMeta::default()).await.unwrap();
        reply.finish().unwrap();
    };
    let asked = format!("weida://{}/r", world.addr());
    soon(requester.connect(&asked)).await.unwrap();
    let mut events = source.events();
    source.update(new.clone()).unwrap();
    let (from, to) = (old.fingerprint().unwrap(), new.fingerprint().unwrap());
    let changed = Some(IdentityEvent::KeyChanged { from, to });
    assert_eq!(events.recv().await, changed);

    let (reply, ()) = soon(async { tokio::join!(requester.request(b"?"), answer()) }).await;
    let peer = reply.unwrap().meta().peer;
    assert_eq!(peer.and_then(|peer| peer.key()), Some(from));

    // A fresh runtime has no live connection to compare with.
    let fresh = world.client();
    let knows_both = fresh.pusher(both);
    soon(knows_both.connect(&url)).await.unwrap();
    let knows_old = world.client();
    let knows_old = knows_old.pusher(Trust::pin(from));
    let refused = soon(knows_old.connect(&url)).await;
    assert!(
        matches!(refused, Err(Error::Untrusted(key)) if key == to),
        "{refused:?}"
    );
}

/// A trust that is withdrawn refuses the next connection of a peer that was
/// welcome a moment ago: nothing was kept for it. [weida S8-25]
#[tokio::test]
async fn s8_25_a_withdrawn_trust_refuses_who_was_welcome_before() {
    let (server, client) = (Identity::generate().unwrap(), Identity::generate().unwrap());
    let trust = TrustSource::external(Trust::pin(client.fingerprint().unwrap()));
    let tls = ServerTls::new(server.clone()).require_client(ClientTrust::Trusted(trust.clone()));
    let world = World::serving(Limits::default(), tls, server, loopback()).await;
    let _puller = world.listener.puller("/p").unwrap();
    let runtime = world.client();
    let tls = ClientTls::new(Trust::by_address()).with_identity(client);
    let dial = async || {
        let pusher = runtime.pusher(tls.clone());
        soon(pusher.connect(&world.url("/p"))).await
    };
    dial().await.unwrap();
    trust.update(Trust::pin(world.key));
    let another_path = runtime.pusher(tls.clone());
    let refused = soon(another_path.connect(&world.url("/q"))).await;
    assert!(matches!(refused, Err(Error::Tls(_))), "{refused:?}");
}
