//! What a frame of this runtime costs and does not say. [weida 14, 20, 24.4]

use weida::{TransferMeta, Trust};

use crate::common::raw::{self, HELLO, RawClient, RawServer};
use crate::common::{Server, client, soon};

/// A 64-byte payload to a path of six bytes: twelve bytes are ours.
#[tokio::test]
async fn pf_4_a_small_message_costs_twelve_bytes() {
    let server = RawServer::start("/abcde");
    let runtime = client();
    let pusher = runtime.pusher(Trust::by_address());
    let (connected, connection) = tokio::join!(soon(pusher.connect(&server.url)), server.greeted());
    connected.unwrap();
    soon(pusher.send(&[7; 64])).await.unwrap();
    let mut stream = soon(connection.accept_uni()).await.unwrap();
    let frame = soon(stream.read_to_end(1024)).await.unwrap();
    assert_eq!(&frame[frame.len() - 64..], &[7; 64]);
    assert_eq!(frame.len() - 64, 12, "{:02X?}", &frame[..frame.len() - 64]);
}

/// Neither half of an exchange carries a number, a name or anything else that
/// was not asked for.
#[tokio::test]
async fn gs_8_exchanges_are_not_numbered() {
    let raw_server = RawServer::start("/abcde");
    let runtime = client();
    let requester = runtime.requester(Trust::by_address());
    let (connected, connection) = tokio::join!(
        soon(requester.connect(&raw_server.url)),
        raw_server.greeted()
    );
    connected.unwrap();
    for _ in 0..2 {
        let asking = requester.request(b"?");
        let asked = async {
            let (_reply, mut request) = soon(connection.accept_bi()).await.unwrap();
            soon(request.read_to_end(1024)).await.unwrap()
        };
        let (_dropped, request) = tokio::join!(soon(asking), asked);
        assert_eq!(request, b"\x57\x01\x09\xA1\x00\x66/abcde?");
    }

    let server = Server::start().await;
    let replier = server.listener.replier("/x").unwrap();
    let raw = RawClient::greeted(server.binding.local_addr()).await;
    for _ in 0..2 {
        let asked = b"\x57\x01\x05\xA1\x00\x62/x";
        let (_request, mut reply) = raw::send_bi(&raw.connection, asked).await;
        let answer = async {
            let request = soon(replier.accept()).await.unwrap();
            let mut reply = soon(request.reply(TransferMeta::default())).await.unwrap();
            reply.write_all(b"!").await.unwrap();
            reply.finish().unwrap();
        };
        let (reply, ()) = tokio::join!(soon(reply.read_to_end(1024)), answer);
        assert_eq!(reply.unwrap(), b"\x57\x01\x01\xA0!");
    }
}

/// A further path of one peer is another connection that proves the same key;
/// nothing on it names the first one.
#[tokio::test]
async fn s8_9_a_further_path_names_no_other_connection() {
    let server = RawServer::start("/one");
    let runtime = client();
    let peer = runtime.peer(Trust::by_address());
    let other = server.url.replace("/one", "/two");
    let mut held = Vec::new();
    for url in [&server.url, &other] {
        let hello = async {
            let connection = server.accept().await;
            let mut theirs = soon(connection.accept_uni()).await.unwrap();
            let hello = soon(theirs.read_to_end(1024)).await.unwrap();
            raw::send_uni(&connection, HELLO).await;
            (connection, hello)
        };
        let (connected, (connection, hello)) = tokio::join!(soon(peer.connect(url)), hello);
        connected.unwrap();
        assert_eq!(hello, HELLO, "the same for every connection");
        held.push(connection);
    }
    assert_eq!(peer.peer_count(), 2);
}
