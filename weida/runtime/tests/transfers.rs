//! What a transfer promises, and what its end means. `[weida 7]`

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod common;

use std::time::Duration;

use common::raw::{RawServer, stop_code};
use common::{Server, client, eventually, soon, stays_pending};
use weida::{
    Acknowledgement, CursorLevel, Error, Limits, LossCause, Puller, Pusher, Runtime, RuntimeConfig,
    TransferMeta, Trust,
};

async fn pair(server: &Server, runtime: &Runtime) -> (Pusher, Puller) {
    let puller = server.listener.puller("/x").unwrap();
    let pusher = runtime.pusher(Trust::by_address());
    soon(pusher.connect(&server.url("/x"))).await.unwrap();
    (pusher, puller)
}

/// TX-1: after `finish` only the connection is needed.
#[tokio::test]
async fn tx_1_finish_is_a_commitment() {
    let server = Server::start().await;
    let runtime = client();
    let (pusher, puller) = pair(&server, &runtime).await;
    let mut transfer = soon(pusher.open(TransferMeta::default())).await.unwrap();
    let body = vec![9; 300_000];
    transfer.write_all(&body).await.unwrap();
    drop(transfer.finish().unwrap());
    drop(pusher);
    let arrived = soon(puller.recv()).await.unwrap();
    assert_eq!(soon(arrived.collect(1 << 20)).await.unwrap(), body);
}

/// TX-2: the receipt is the transport's: before anybody reads inside the
/// window, and not before the reader consumed the rest beyond it.
#[tokio::test]
async fn tx_2_the_receipt_is_the_transports() {
    let config = RuntimeConfig {
        limits: Limits {
            stream_receive_window: 64 << 10,
            ..Limits::default()
        },
        ..RuntimeConfig::default()
    };
    let server = Server::with(config).await;
    let runtime = client();
    let (pusher, puller) = pair(&server, &runtime).await;
    let mut small = soon(pusher.open(TransferMeta::default())).await.unwrap();
    small.write_all(&[1; 1000]).await.unwrap();
    soon(small.finish().unwrap().delivered()).await.unwrap();

    let mut large = soon(pusher.open(TransferMeta::default())).await.unwrap();
    let body = vec![2; 160 << 10];
    let send = async {
        large.write_all(&body).await.unwrap();
        large.finish().unwrap().delivered().await
    };
    let mut send = Box::pin(send);
    assert!(stays_pending(&mut send).await);
    drop(soon(puller.recv()).await.unwrap());
    let arrived = soon(puller.recv()).await.unwrap();
    let (receipt, read) = tokio::join!(soon(send), soon(arrived.collect(1 << 20)));
    receipt.unwrap();
    assert_eq!(read.unwrap(), body);
}

/// TX-4 and TX-5: an abandoned payload is an error, never an end, and what had
/// arrived may still be read.
#[tokio::test]
async fn tx_4_tx_5_an_abandoned_payload_is_never_an_end() {
    let server = Server::start().await;
    let runtime = client();
    let (pusher, puller) = pair(&server, &runtime).await;
    for by_drop in [false, true] {
        let mut transfer = soon(pusher.open(TransferMeta::default())).await.unwrap();
        transfer.write_all(&[5; 8192]).await.unwrap();
        let mut arrived = soon(puller.recv()).await.unwrap();
        let mut half = [0; 4096];
        soon(tokio::io::AsyncReadExt::read_exact(&mut arrived, &mut half))
            .await
            .unwrap();
        if by_drop {
            drop(transfer);
        } else {
            transfer.cancel();
        }
        let mut rest = Vec::new();
        let error = soon(tokio::io::AsyncReadExt::read_to_end(
            &mut arrived,
            &mut rest,
        ))
        .await
        .unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
        assert!(matches!(Error::from(error), Error::Canceled), "TX-9");
        let again = soon(arrived.read_chunk(1)).await.unwrap_err();
        assert!(
            matches!(again, Error::Canceled),
            "it never turns into an end"
        );
    }
}

/// A future dropped in the middle of a write must not turn a cut payload into a
/// whole one.
#[tokio::test]
async fn tx_4_a_dropped_write_is_a_reset() {
    let server = Server::start().await;
    let runtime = client();
    let (pusher, puller) = pair(&server, &runtime).await;
    let mut send = Box::pin(pusher.send(&[0; 3 << 20]));
    assert!(stays_pending(&mut send).await, "beyond the window");
    let arrived = soon(puller.recv()).await.unwrap();
    drop(send);
    let error = soon(arrived.collect(4 << 20)).await.unwrap_err();
    assert!(matches!(error, Error::Canceled), "{error}");
}

/// TX-12 and the outcome table: what a stop says is what the sender hears.
#[tokio::test]
async fn tx_12_an_unread_transfer_is_rejected() {
    let server = Server::start().await;
    let runtime = client();
    let (pusher, puller) = pair(&server, &runtime).await;
    let mut transfer = soon(pusher.open(TransferMeta::default())).await.unwrap();
    transfer.write_all(b"start").await.unwrap();
    drop(soon(puller.recv()).await.unwrap());
    let error = soon(async {
        loop {
            if let Err(error) = transfer.write_all(&[0; 1024]).await {
                break error;
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert!(matches!(error, Error::Rejected), "{error}");
    assert!(error.is_definite_failure());
    // Read to its end, nothing is sent: the sender has its receipt.
    let mut transfer = soon(pusher.open(TransferMeta::default())).await.unwrap();
    transfer.write_all(b"whole").await.unwrap();
    let receipt = transfer.finish().unwrap();
    soon(soon(puller.recv()).await.unwrap().collect(16))
        .await
        .unwrap();
    soon(receipt.delivered()).await.unwrap();
}

/// TX-11: a cap is a cap, whatever length the sender claims.
#[tokio::test]
async fn tx_11_reading_is_capped_whatever_the_sender_claims() {
    let server = Server::start().await;
    let runtime = client();
    let (pusher, puller) = pair(&server, &runtime).await;
    let claim = TransferMeta::default().with_content_len(u64::MAX);
    pusher.send_with(claim, b"tiny").await.unwrap();
    let arrived = soon(puller.recv()).await.unwrap();
    assert_eq!(soon(arrived.collect(4)).await.unwrap(), b"tiny");

    let claim = TransferMeta::default().with_content_len(1);
    let mut transfer = soon(pusher.open(claim)).await.unwrap();
    transfer.write_all(&[0; 5000]).await.unwrap();
    let arrived = soon(puller.recv()).await.unwrap();
    let mut arrived = arrived;
    let error = soon(arrived.read_capped(4999)).await.unwrap_err();
    assert!(matches!(error, Error::LimitExceeded(None)), "{error}");
    let again = soon(arrived.read_chunk(1)).await.unwrap_err();
    assert!(
        matches!(again, Error::Canceled),
        "refused is not ended: {again}"
    );
    let error = soon(async {
        loop {
            if let Err(error) = transfer.write_all(&[0; 1024]).await {
                break error;
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert!(matches!(error, Error::Rejected), "{error}");
}

/// TX-8: the deadline holds while writing and after the FIN.
#[tokio::test]
async fn tx_8_an_expired_transfer_is_reset_and_counted() {
    let server = Server::start().await;
    let runtime = client();
    let relay = common::relay::Relay::start(server.binding.local_addr()).await;
    let puller = server.listener.puller("/x").unwrap();
    let pusher = runtime.pusher(Trust::by_address());
    soon(pusher.connect(&server.url_via(relay.addr(), "/x")))
        .await
        .unwrap();
    let soon_after = || (tokio::time::Instant::now() + Duration::from_millis(150)).into_std();
    let mut writing = soon(pusher.open(TransferMeta::default())).await.unwrap();
    writing.expire_at(soon_after());
    let error = soon(writing.write_all(&vec![0; 8 << 20]))
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Expired), "{error}");
    assert!(!error.is_definite_failure());

    // After the FIN, with somebody waiting for the receipt and with nobody.
    relay.cut();
    let mut finished = soon(pusher.open(TransferMeta::default())).await.unwrap();
    finished.expire_at(soon_after());
    finished.write_all(b"whole").await.unwrap();
    let error = soon(finished.finish().unwrap().delivered())
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Expired), "{error}");
    let mut left = soon(pusher.open(TransferMeta::default())).await.unwrap();
    left.expire_at(soon_after());
    left.write_all(b"whole").await.unwrap();
    drop(left.finish().unwrap());
    eventually(|| runtime.expired_transfers() == 3).await;
    relay.heal();
    let arrived = soon(puller.recv()).await.unwrap();
    let error = soon(arrived.collect(16 << 20)).await.unwrap_err();
    assert!(matches!(error, Error::Canceled), "never an end: {error}");
}

/// RT-2: both I/O trait families.
#[tokio::test]
async fn rt_2_transfers_are_tokio_and_futures_io() {
    let server = Server::start().await;
    let runtime = client();
    let (pusher, puller) = pair(&server, &runtime).await;
    let mut tokio_out = soon(pusher.open(TransferMeta::default())).await.unwrap();
    tokio::io::copy(&mut &b"through tokio"[..], &mut tokio_out)
        .await
        .unwrap();
    tokio::io::AsyncWriteExt::shutdown(&mut tokio_out)
        .await
        .unwrap();
    let mut text = String::new();
    let mut arrived = soon(puller.recv()).await.unwrap();
    soon(futures_util::AsyncReadExt::read_to_string(
        &mut arrived,
        &mut text,
    ))
    .await
    .unwrap();
    assert_eq!(text, "through tokio");

    let mut futures_out = soon(pusher.open(TransferMeta::default())).await.unwrap();
    futures_util::AsyncWriteExt::write_all(&mut futures_out, b"through futures")
        .await
        .unwrap();
    futures_util::AsyncWriteExt::close(&mut futures_out)
        .await
        .unwrap();
    let mut text = String::new();
    let mut arrived = soon(puller.recv()).await.unwrap();
    soon(tokio::io::AsyncReadExt::read_to_string(
        &mut arrived,
        &mut text,
    ))
    .await
    .unwrap();
    assert_eq!(text, "through futures");
}

#[tokio::test]
async fn a_chunk_is_written_without_a_copy_and_priorities_are_accepted() {
    let server = Server::start().await;
    let runtime = client();
    let (pusher, puller) = pair(&server, &runtime).await;
    let mut transfer = soon(pusher.open(TransferMeta::default())).await.unwrap();
    transfer.set_priority(7);
    transfer
        .write_chunk(bytes::Bytes::from_static(b"chunk"))
        .await
        .unwrap();
    transfer.finish().unwrap();
    let arrived = soon(puller.recv()).await.unwrap();
    assert_eq!(soon(arrived.collect(16)).await.unwrap(), b"chunk");
}

/// A header above the peer's cap, or a field above its own, is refused here and
/// opens no stream.
#[tokio::test]
async fn wire_5_2_a_header_nobody_would_read_is_refused_locally() {
    let server = RawServer::start("/x");
    let runtime = client();
    let pusher = runtime.pusher(Trust::by_address());
    let accept = async {
        let connection = server.accept().await;
        // A HELLO that takes headers of 16 bytes.
        let hello = [
            0x57, 0x00, 0x0C, 0xA5, 0x00, 0x81, 0x00, 0x01, 0x10, 0x02, 0x01, 0x03, 0x80, 0x04,
            0x80,
        ];
        common::raw::send_uni(&connection, &hello).await;
        connection
    };
    let (connected, connection) = tokio::join!(soon(pusher.connect(&server.url)), accept);
    connected.unwrap();
    let long = TransferMeta::default().with_topic("a.topic.that.is.long");
    for error in [
        pusher.send_with(long.clone(), b"").await.unwrap_err(),
        pusher.open(long).await.map(drop).unwrap_err(),
        pusher
            .send_with(TransferMeta::default().with_topic("x".repeat(257)), b"")
            .await
            .unwrap_err(),
    ] {
        assert!(matches!(error, Error::LimitExceeded(None)), "{error}");
    }
    pusher.send(b"plain").await.unwrap();
    let _hello = soon(connection.accept_uni()).await.unwrap();
    let mut data = soon(connection.accept_uni()).await.unwrap();
    let bytes = soon(data.read_to_end(64)).await.unwrap();
    assert_eq!(
        bytes,
        [&[0x57, 1, 5, 0xA1, 0, 0x62, b'/', b'x'][..], b"plain"].concat()
    );
}

#[tokio::test]
async fn a_report_this_version_cannot_follow_is_refused_before_any_traffic() {
    let server = Server::start().await;
    let runtime = client();
    let (pusher, _puller) = pair(&server, &runtime).await;
    let meta = TransferMeta::default().with_report([CursorLevel::from(Acknowledgement::Accepted)]);
    let error = pusher.open(meta).await.map(drop).unwrap_err();
    assert!(matches!(error, Error::Unsupported), "{error}");
}

/// The stop codes of wire 16.2, as a sender hears them.
#[tokio::test]
async fn wire_16_2_stop_codes_are_typed_outcomes() {
    let server = RawServer::start("/x");
    let runtime = client();
    let pusher = runtime.pusher(Trust::by_address());
    let (connected, connection) = tokio::join!(soon(pusher.connect(&server.url)), server.greeted());
    connected.unwrap();
    for (code, expected) in [
        (3u32, Error::Canceled),
        (5, Error::LimitExceeded(None)),
        (6, Error::Rejected),
        (7, Error::Rejected),
        (8, Error::UnknownEndpoint),
        (9, Error::Unsupported),
    ] {
        let mut transfer = soon(pusher.open(TransferMeta::default())).await.unwrap();
        let mut stream = soon(connection.accept_uni()).await.unwrap();
        stream.stop(code.into()).unwrap();
        let error = soon(async {
            loop {
                if let Err(error) = transfer.write_all(&[0; 64]).await {
                    break error;
                }
                tokio::task::yield_now().await;
            }
        })
        .await;
        assert_eq!(error.to_string(), expected.to_string(), "code {code}");
    }
}

/// Lost before the FIN is definite; after it nobody can know; awaiting a reply
/// it is never "lost".
#[tokio::test]
async fn tx_outcomes_of_a_lost_connection() {
    let server = RawServer::start("/x");
    let config = RuntimeConfig {
        reconnect: weida::ReconnectPolicy::never(),
        ..RuntimeConfig::default()
    };
    let runtime = Runtime::new(config).unwrap();
    let peer = runtime.peer(Trust::by_address());
    let (connected, connection) = tokio::join!(soon(peer.connect(&server.url)), server.greeted());
    connected.unwrap();
    let mut writing = soon(peer.open(TransferMeta::default())).await.unwrap();
    let mut finished = soon(peer.open(TransferMeta::default())).await.unwrap();
    // More than a raw peer's window, so that it cannot be acknowledged.
    let body = vec![0; 4 << 20];
    let stuck = tokio::time::timeout(Duration::from_millis(200), finished.write_all(&body));
    assert!(stuck.await.is_err());
    let (mut request, reply) = soon(peer.open_bi(TransferMeta::default())).await.unwrap();
    request.write_all(b"?").await.unwrap();
    request.finish().unwrap();
    let reply = reply.recv();
    tokio::pin!(reply);
    assert!(stays_pending(&mut reply).await);
    connection.close(0u32.into(), b"gone");
    let error = soon(reply).await.unwrap_err();
    assert!(matches!(error, Error::Indeterminate), "{error}");
    let error = soon(writing.write_all(b"more")).await.unwrap_err();
    let lost = matches!(&error, Error::ConnectionLost(LossCause::PeerClosed(Some(reason)))
        if reason.text() == "gone");
    assert!(lost, "D13: the phrase is kept: {error:?}");
    assert!(error.is_definite_failure());
    let error = finished.finish().map(drop).unwrap_err();
    assert!(matches!(error, Error::ConnectionLost(_)), "{error}");
}

/// After the FIN and before the receipt a loss decides nothing.
#[tokio::test]
async fn tx_13_lost_after_the_fin_is_indeterminate() {
    let server = Server::start().await;
    let relay = common::relay::Relay::start(server.binding.local_addr()).await;
    let limits = Limits {
        idle_timeout: Duration::from_millis(700),
        keep_alive: Duration::from_millis(200),
        ..Limits::default()
    };
    let config = RuntimeConfig {
        limits,
        ..RuntimeConfig::default()
    };
    let runtime = Runtime::new(config).unwrap();
    let _puller = server.listener.puller("/x").unwrap();
    let pusher = runtime.pusher(Trust::by_address());
    soon(pusher.connect(&server.url_via(relay.addr(), "/x")))
        .await
        .unwrap();
    let mut transfer = soon(pusher.open(TransferMeta::default())).await.unwrap();
    transfer.write_all(b"body").await.unwrap();
    relay.cut();
    transfer.write_all(b" and more").await.unwrap();
    let error = soon(transfer.finish().unwrap().delivered())
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Indeterminate), "{error}");
    assert!(!error.is_definite_failure());
}

/// TX-10: what arrived whole is delivered to a living puller after the loss;
/// what did not is an error, never a short payload.
#[tokio::test]
async fn tx_10_whole_transfers_survive_the_loss_of_their_connection() {
    let config = RuntimeConfig {
        endpoint_queue: 4,
        limits: Limits {
            idle_timeout: Duration::from_millis(600),
            ..Limits::default()
        },
        ..RuntimeConfig::default()
    };
    let server = Server::with(config).await;
    let puller = server.listener.puller("/x").unwrap();
    let relay = common::relay::Relay::start(server.binding.local_addr()).await;
    let runtime = client();
    let pusher = runtime.pusher(Trust::by_address());
    soon(pusher.connect(&server.url_via(relay.addr(), "/x")))
        .await
        .unwrap();
    let mut receipts = Vec::new();
    for n in 0..12u8 {
        let mut transfer = soon(pusher.open(TransferMeta::default())).await.unwrap();
        transfer.write_all(&vec![n; 10_000]).await.unwrap();
        receipts.push(transfer.finish().unwrap());
    }
    for receipt in receipts {
        soon(receipt.delivered()).await.unwrap();
    }
    let mut partial = soon(pusher.open(TransferMeta::default())).await.unwrap();
    partial.write_all(&[99; 2000]).await.unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    relay.cut();
    // The server's side of the connection times out.
    tokio::time::sleep(Duration::from_millis(900)).await;
    let (mut whole, mut broken) = (0, 0);
    for _ in 0..13 {
        let arrived = soon(puller.recv()).await.unwrap();
        match soon(arrived.collect(1 << 20)).await {
            Ok(body) => {
                assert_eq!(body.len(), 10_000);
                whole += 1;
            }
            Err(error) => {
                assert!(matches!(error, Error::ConnectionLost(_)), "{error}");
                broken += 1;
            }
        }
    }
    assert_eq!((whole, broken), (12, 1));
}

/// The reader's stop reaches a raw sender with the code of the table.
#[tokio::test]
async fn wire_10_application_refusals_carry_rejected() {
    let server = Server::start().await;
    let puller = server.listener.puller("/x").unwrap();
    let raw = common::raw::RawClient::greeted(server.binding.local_addr()).await;
    let head = [0x57, 1, 5, 0xA1, 0, 0x62, b'/', b'x'];
    let stream = common::raw::open_uni(&raw.connection, &head).await;
    drop(soon(puller.recv()).await.unwrap());
    assert_eq!(stop_code(&stream).await, Some(7));
}

/// TX-7: a higher priority is sent first, within one path's connection.
#[tokio::test]
async fn tx_7_a_higher_priority_goes_first() {
    let server = Server::start().await;
    let relay = common::relay::Relay::start(server.binding.local_addr()).await;
    let puller = server.listener.puller("/x").unwrap();
    let runtime = client();
    let pusher = runtime.pusher(Trust::by_address());
    soon(pusher.connect(&server.url_via(relay.addr(), "/x")))
        .await
        .unwrap();
    // More than a congestion window is queued before anything gets through, so
    // that the order is the sender's choice.
    relay.cut();
    let body = vec![0; 400 << 10];
    for (priority, topic) in [(0, "low"), (9, "high")] {
        let mut transfer = soon(pusher.open(TransferMeta::default().with_topic(topic)))
            .await
            .unwrap();
        transfer.set_priority(priority);
        soon(transfer.write_all(&body)).await.unwrap();
        transfer.finish().unwrap();
    }
    relay.heal();
    let (one, two) = (
        soon(puller.recv()).await.unwrap(),
        soon(puller.recv()).await.unwrap(),
    );
    let done = async |transfer: weida::IncomingTransfer| {
        let topic = transfer.meta().topic.clone().unwrap();
        transfer.collect(1 << 20).await.unwrap();
        (topic, tokio::time::Instant::now())
    };
    let (one, two) = tokio::join!(soon(done(one)), soon(done(two)));
    let first = if one.1 <= two.1 { one.0 } else { two.0 };
    assert_eq!(first, "high");
}

/// TX-14: a refused or lost request is not tried again by the library.
#[tokio::test]
async fn tx_14_nothing_is_retried() {
    let server = RawServer::start("/x");
    let config = RuntimeConfig {
        reconnect: weida::ReconnectPolicy {
            initial: Duration::from_millis(10),
            ..weida::ReconnectPolicy::default()
        },
        ..RuntimeConfig::default()
    };
    let runtime = Runtime::new(config).unwrap();
    let requester = runtime.requester(Trust::by_address());
    let (connected, connection) =
        tokio::join!(soon(requester.connect(&server.url)), server.greeted());
    connected.unwrap();
    let lose = async {
        drop(soon(connection.accept_bi()).await.unwrap());
        connection.close(0u32.into(), b"lost");
    };
    let (lost, ()) = tokio::join!(soon(requester.request(b"once")), lose);
    assert!(matches!(
        lost.map(drop).unwrap_err(),
        Error::Indeterminate | Error::Canceled
    ));
    let again = server.greeted().await;
    assert!(
        stays_pending(again.accept_bi()).await,
        "not retried after the redial"
    );
}
