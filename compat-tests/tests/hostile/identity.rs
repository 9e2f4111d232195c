//! Who a hostile peer can pass for, and what a runtime writes about itself.
//! `[weida 20]`

use bytes::Bytes;
use weida::{
    ClientTrust, Fingerprint, Identity, IncomingTransfer, Runtime, RuntimeConfig, ServerTls, Trust,
};
use weida_core::codes;

use crate::everywhere;
use crate::raw::{
    Dial, HELLO, Key, RawServer, data, data_with, eventually, loopback, soon, subscription, text,
};
use crate::world::{Case, World};

everywhere! {
    s8_18_a_producer_is_exactly_32_bytes
}

async fn s8_18_a_producer_is_exactly_32_bytes(case: Case) {
    let producer = |len: u8| [&[0x07, 0x58, len][..], &vec![0xAB; usize::from(len)]].concat();
    for len in [31, 33, 0] {
        let mut world = World::greeted(case).await;
        let good = data_with(world.path(), 1, &producer(32));
        world.takes(&good, b"").await;
        let bad = data_with(world.path(), 1, &producer(len));
        world.raw.say(&bad).await;
        world.raw.closed_with(codes::PROTOCOL_VIOLATION).await;
    }
    // Nor is the text form one.
    let mut world = World::greeted(case).await;
    world.survives().await;
    let name = Key::generate().fingerprint().to_string();
    let written = [&[0x07][..], &text(&name)].concat();
    world.raw.say(&data_with(world.path(), 1, &written)).await;
    world.raw.closed_with(codes::PROTOCOL_VIOLATION).await;
}

/// DATA that says in every field it has that it comes from `other`.
fn impostor(other: Fingerprint) -> Vec<u8> {
    let name = text(&other.to_string());
    let mut more = vec![0x02];
    more.extend(&name);
    more.push(0x05);
    more.extend(&name);
    more.extend([0x07, 0x58, 0x20]);
    more.extend(other.as_bytes());
    data_with("/jobs", 3, &more)
}

fn proved(transfer: &IncomingTransfer) -> Option<Fingerprint> {
    transfer.meta().peer.as_ref().and_then(|peer| peer.key())
}

#[tokio::test]
async fn s8_2_no_field_of_a_header_makes_a_peer() {
    let runtime = Runtime::new(RuntimeConfig::default()).unwrap();
    let listener = runtime.listener();
    let puller = listener.puller("/jobs").unwrap();
    let tls = ServerTls::new(Identity::generate().unwrap()).require_client(ClientTrust::AnyKey);
    let known = listener.bind_quic(loopback(), tls).await.unwrap();
    let identity = Identity::generate().unwrap();
    let anonymous = listener.bind_quic(loopback(), identity).await.unwrap();
    let (own, other) = (Key::generate(), Key::generate().fingerprint());

    let dial = Dial {
        key: Some(own.clone()),
        ..Dial::default()
    };
    let raw = dial.dial(known.local_addr()).await.unwrap();
    raw.greet().await;
    for bytes in [data("/jobs"), impostor(other)] {
        raw.say(&bytes).await;
        let transfer = soon(puller.recv()).await.unwrap();
        assert_eq!(proved(&transfer), Some(own.fingerprint()));
    }

    let raw = crate::raw::Raw::dial(anonymous.local_addr()).await;
    raw.say(&impostor(other)).await;
    let transfer = soon(puller.recv()).await.unwrap();
    assert_eq!(transfer.meta().peer, None);
    assert_eq!(transfer.meta().topic.as_deref(), Some(&*other.to_string()));
}

/// A runtime's own frames: what is in them, byte by byte.
#[tokio::test]
async fn s8_17_s8_19_s8_20_a_runtime_names_nobody_in_its_frames() {
    let server = RawServer::bind();
    let runtime = Runtime::new(RuntimeConfig::default()).unwrap();
    // Dials with the fingerprint in the address and a key of its own, so
    // that there would be something to write.
    let tls =
        weida::ClientTls::new(Trust::by_address()).with_identity(Identity::generate().unwrap());
    let pusher = runtime.pusher(tls.clone());
    let url = server.url("/jobs");
    assert!(url.contains("sha256:"));
    let accepting = async {
        let raw = server.accept().await.unwrap();
        raw.say(HELLO).await;
        raw
    };
    let (raw, connected) = tokio::join!(accepting, pusher.connect(&url));
    connected.unwrap();
    let mut written = vec![raw.hears().await];
    assert_eq!(written[0], HELLO);

    let body = [0x55; 64];
    pusher.send(&body).await.unwrap();
    written.push(raw.hears().await);
    // Preamble, path, body: neither a sequence nor a producer.
    assert_eq!(written[1], [data("/jobs"), body.to_vec()].concat());
    assert_eq!(written[1].len(), 64 + 3 + 8);

    let requester = runtime.requester(tls.clone());
    requester.connect(&url).await.unwrap();
    let asking = requester.request(b"ping");
    let answering = async {
        let (mut reply, mut request) = raw.accepts_exchange().await;
        let asked = soon(request.read_to_end(1024)).await.unwrap();
        reply.write_all(&[0x57, 0x01, 0x01, 0xA0]).await.unwrap();
        reply.finish().unwrap();
        asked
    };
    let (reply, asked) = tokio::join!(asking, answering);
    reply.unwrap();
    assert_eq!(asked, [data("/jobs"), b"ping".to_vec()].concat());
    written.push(asked);

    let subscriber = runtime.subscriber(tls);
    subscriber.subscribe("a.*").await.unwrap();
    let subscribing = subscriber.connect(&url);
    soon(subscribing).await.unwrap();
    written.push(raw.hears().await);
    assert_eq!(written[3], subscription(3, "/jobs", "a.*"));
    for frame in &written {
        assert!(!frame.windows(7).any(|word| word == b"sha256:"));
    }
}

/// The same for what a binding writes.
#[tokio::test]
async fn s8_17_s8_19_s8_20_a_copy_and_a_reply_name_nobody() {
    let runtime = Runtime::new(RuntimeConfig::default()).unwrap();
    let listener = runtime.listener();
    let publisher = listener.publisher("/md").unwrap();
    let replier = listener.replier("/echo").unwrap();
    let tls = ServerTls::new(Identity::generate().unwrap()).require_client(ClientTrust::AnyKey);
    let binding = listener.bind_quic(loopback(), tls).await.unwrap();
    let dial = Dial {
        key: Some(Key::generate()),
        ..Dial::default()
    };
    let raw = dial.dial(binding.local_addr()).await.unwrap();
    raw.greet().await;

    raw.say(&subscription(3, "/md", "#")).await;
    eventually(|| publisher.subscriber_count() == 1).await;
    publisher.publish("t", Bytes::from_static(b"xy")).unwrap();
    let copy = data_with("/md", 2, &[0x01, 0x02, 0x05, 0x61, b't']);
    assert_eq!(raw.hears().await, [&copy[..], b"xy"].concat());

    let answering = async {
        let request = soon(replier.accept()).await.unwrap();
        let mut reply = request.reply(weida::TransferMeta::default()).await.unwrap();
        reply.write_all(b"pong").await.unwrap();
        drop(reply.finish().unwrap());
    };
    let request = data("/echo");
    let ((), reply) = tokio::join!(answering, raw.request(&request));
    assert_eq!(reply, b"\x57\x01\x01\xA0pong");
}
