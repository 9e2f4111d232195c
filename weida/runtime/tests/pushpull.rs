//! Push/Pull, and the flow control under it. `[weida 8, 10]`

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod common;

use std::time::Duration;

use common::{Server, client, eventually, soon, stays_pending};
use weida::{Error, Limits, Puller, Pusher, Runtime, RuntimeConfig, TransferMeta, Trust};

async fn pair(server: &Server, runtime: &Runtime, path: &str) -> (Pusher, Puller) {
    let puller = server.listener.puller(path).unwrap();
    let pusher = runtime.pusher(Trust::by_address());
    soon(pusher.connect(&server.url(path))).await.unwrap();
    (pusher, puller)
}

#[tokio::test]
async fn a_pushed_body_arrives_once_with_its_metadata() {
    let server = Server::start().await;
    let runtime = client();
    let (pusher, puller) = pair(&server, &runtime, "/jobs").await;
    let meta = TransferMeta::default()
        .with_content_type("text/plain")
        .with_content_len(5)
        .with_topic("a.b")
        .with_extension(
            64,
            &weida::ExtensionValue::Item(weida::ExtensionItem::Uint(3)),
        )
        .unwrap();
    pusher.send_with(meta, b"job-1").await.unwrap();
    let transfer = soon(puller.recv()).await.unwrap();
    let meta = transfer.meta();
    assert_eq!(meta.endpoint.as_deref(), Some("/jobs"));
    assert_eq!(meta.content_type.as_deref(), Some("text/plain"));
    assert_eq!(meta.content_len, Some(5));
    assert_eq!(meta.topic.as_deref(), Some("a.b"));
    assert_eq!(
        meta.extension(64).and_then(|value| value.as_uint()),
        Some(3)
    );
    assert_eq!(meta.extension(65), None);
    assert_eq!(meta.peer, None, "S8-3: an anonymous client is nobody");
    assert_eq!(meta.trace, None, "no trace is minted");
    assert_eq!(soon(transfer.collect(64)).await.unwrap(), b"job-1");
    assert!(stays_pending(puller.recv()).await, "PP-4: no duplicate");
}

#[tokio::test]
async fn pp_1_eight_sends_over_two_pullers_split_evenly() {
    let (one, two) = (Server::start().await, Server::start().await);
    let (a, b) = (
        one.listener.puller("/jobs").unwrap(),
        two.listener.puller("/jobs").unwrap(),
    );
    let runtime = client();
    let pusher = runtime.pusher(Trust::by_address());
    soon(pusher.connect(&one.url("/jobs"))).await.unwrap();
    soon(pusher.connect(&two.url("/jobs"))).await.unwrap();
    assert_eq!(pusher.peer_count(), 2);
    for n in 0..8u8 {
        pusher.send(&[n]).await.unwrap();
    }
    for puller in [&a, &b] {
        for _ in 0..4 {
            soon(puller.recv()).await.unwrap();
        }
        assert!(stays_pending(puller.recv()).await);
    }
}

#[tokio::test]
async fn ten_thousand_small_pushes_all_arrive_exactly_once() {
    let server = Server::start().await;
    let runtime = client();
    let (pusher, puller) = pair(&server, &runtime, "/jobs").await;
    let send = async {
        for n in 0..10_000u32 {
            pusher.send(&n.to_be_bytes()).await.unwrap();
        }
    };
    let receive = async {
        let mut seen = vec![false; 10_000];
        for _ in 0..10_000 {
            let body = puller.recv().await.unwrap().collect(4).await.unwrap();
            let n = u32::from_be_bytes(body.try_into().unwrap()) as usize;
            assert!(!std::mem::replace(&mut seen[n], true), "{n} twice");
        }
    };
    soon(async { tokio::join!(send, receive) }).await;
}

fn streams(uni: u32) -> RuntimeConfig {
    RuntimeConfig {
        limits: Limits {
            max_concurrent_uni_streams: uni,
            ..Limits::default()
        },
        endpoint_queue: 8,
        ..RuntimeConfig::default()
    }
}

/// FC-2 and FC-3: a queued transfer still owns its stream, so a deeper queue
/// does not raise the budget; reading one to its end gives the credit back.
#[tokio::test]
async fn fc_2_fc_3_the_stream_budget_is_the_message_credit() {
    // One of the budget's three streams carries HELLO and is given back.
    let server = Server::with(streams(2)).await;
    let runtime = client();
    let (pusher, puller) = pair(&server, &runtime, "/jobs").await;
    for n in 0..2u8 {
        soon(pusher.send(&[n])).await.unwrap();
    }
    let mut third = Box::pin(pusher.open(TransferMeta::default()));
    assert!(stays_pending(&mut third).await, "the budget is used up");
    let first = soon(puller.recv()).await.unwrap();
    assert!(stays_pending(&mut third).await, "taken is not read");
    soon(first.collect(16)).await.unwrap();
    soon(third).await.unwrap();
}

#[tokio::test]
async fn fc_5_a_dropped_wait_leaks_no_slot() {
    let server = Server::with(streams(2)).await;
    let runtime = client();
    let (pusher, puller) = pair(&server, &runtime, "/jobs").await;
    for n in 0..2u8 {
        soon(pusher.send(&[n])).await.unwrap();
    }
    for _ in 0..5 {
        assert!(stays_pending(pusher.open(TransferMeta::default())).await);
    }
    for _ in 0..2 {
        soon(soon(puller.recv()).await.unwrap().collect(16))
            .await
            .unwrap();
    }
    for n in 0..2u8 {
        soon(pusher.send(&[n])).await.unwrap();
    }
    for _ in 0..2 {
        soon(puller.recv()).await.unwrap();
    }
}

/// FC-1: streams share the connection's window: with 64 KiB per stream and
/// 256 KiB in all, unread 32 KiB payloads stall once the sum is used up, and
/// one read releases the next.
#[tokio::test]
async fn fc_1_unread_streams_share_the_connection_window() {
    let config = RuntimeConfig {
        limits: Limits {
            stream_receive_window: 64 << 10,
            connection_receive_window: 256 << 10,
            ..Limits::default()
        },
        ..RuntimeConfig::default()
    };
    let server = Server::with(config).await;
    let runtime = client();
    let (pusher, puller) = pair(&server, &runtime, "/jobs").await;
    let body = vec![7; 32 << 10];
    let one = async || {
        let mut transfer = pusher.open(TransferMeta::default()).await?;
        transfer.write_all(&body).await?;
        transfer.finish()?.delivered().await
    };
    let mut stalled = None;
    for n in 1..=12 {
        let mut sending = Box::pin(one());
        let limit = Duration::from_millis(500);
        match tokio::time::timeout(limit, &mut sending).await {
            Ok(receipt) => receipt.unwrap(),
            Err(_) => {
                stalled = Some((n, sending));
                break;
            }
        }
    }
    let (n, sending) = stalled.expect("the window must end");
    assert!((7..=9).contains(&n), "stalled at stream {n}");
    let read = async {
        for _ in 0..2 {
            let transfer = soon(puller.recv()).await.unwrap();
            assert_eq!(soon(transfer.collect(64 << 10)).await.unwrap(), body);
        }
    };
    let (receipt, ()) = tokio::join!(soon(sending), read);
    receipt.unwrap();
}

/// LG-4: the head shares the window with the payload.
#[tokio::test]
async fn lg_4_a_payload_of_exactly_the_window_waits_for_its_reader() {
    let config = RuntimeConfig {
        limits: Limits {
            stream_receive_window: 64 << 10,
            ..Limits::default()
        },
        ..RuntimeConfig::default()
    };
    let server = Server::with(config).await;
    let runtime = client();
    let (pusher, puller) = pair(&server, &runtime, "/jobs").await;
    let mut transfer = soon(pusher.open(TransferMeta::default())).await.unwrap();
    let body = vec![1; 64 << 10];
    let send = async {
        transfer.write_all(&body).await?;
        transfer.finish()?.delivered().await
    };
    let mut send = Box::pin(send);
    assert!(stays_pending(&mut send).await, "nobody reads yet");
    let arrived = soon(puller.recv()).await.unwrap();
    let (receipt, read) = tokio::join!(soon(send), soon(arrived.collect(64 << 10)));
    receipt.unwrap();
    assert_eq!(read.unwrap(), body);
}

/// CN-2: one connection per dialled path.
#[tokio::test]
async fn cn_2_a_stalled_path_does_not_stall_another() {
    let server = Server::start().await;
    let runtime = client();
    let (stalled, _never_read) = pair(&server, &runtime, "/stalled").await;
    let (lively, puller) = pair(&server, &runtime, "/lively").await;
    // Fills the path's whole connection window with unread payload.
    let body = vec![0; 1 << 20];
    let fill = async || {
        let mut transfer = stalled.open(TransferMeta::default()).await.unwrap();
        transfer.write_all(&body).await.unwrap();
        std::future::pending::<()>().await;
    };
    let mut filling: Vec<_> = (0..18).map(|_| Box::pin(fill())).collect();
    for transfer in &mut filling {
        let limit = Duration::from_millis(50);
        assert!(tokio::time::timeout(limit, transfer).await.is_err());
    }
    for n in 0..100u8 {
        soon(lively.send(&[n])).await.unwrap();
        soon(soon(puller.recv()).await.unwrap().collect(1))
            .await
            .unwrap();
    }
}

/// PP-3 and TX-6: a small push to nobody may say `Ok`; a large one never does.
#[tokio::test]
async fn pp_3_tx_6_a_large_push_to_nobody_always_fails() {
    let server = Server::start().await;
    let _replier = server.listener.replier("/rep").unwrap();
    let _publisher = server.listener.publisher("/pub").unwrap();
    let runtime = client();
    for (path, expected) in [
        ("/nope", Error::UnknownEndpoint),
        ("/rep", Error::Unsupported),
        ("/pub", Error::Unsupported),
    ] {
        let pusher = runtime.pusher(Trust::by_address());
        soon(pusher.connect(&server.url(path))).await.unwrap();
        let mut transfer = soon(pusher.open(TransferMeta::default())).await.unwrap();
        let body = vec![0; 2 << 20];
        let outcome = match soon(transfer.write_all(&body)).await {
            Ok(()) => soon(transfer.finish().unwrap().delivered()).await,
            Err(error) => Err(error),
        };
        assert_eq!(outcome.unwrap_err().to_string(), expected.to_string());
        pusher.send(b"small").await.unwrap();
        assert_eq!(pusher.peer_count(), 1, "a refusal closes nothing");
    }
}

/// AD-2: a path is matched byte for byte.
#[tokio::test]
async fn ad_2_a_path_is_matched_byte_for_byte() {
    let server = Server::start().await;
    let _a = server.listener.replier("/a").unwrap();
    let runtime = client();
    for path in ["/a/", "/a/b", "/A", "/a%20"] {
        let requester = runtime.requester(Trust::by_address());
        soon(requester.connect(&server.url(path))).await.unwrap();
        let error = soon(requester.request(b"")).await.unwrap_err();
        assert!(matches!(error, Error::UnknownEndpoint), "{path}: {error}");
    }
}

/// AD-3: one owner per path, whatever the pattern; free again once dropped.
#[tokio::test]
async fn ad_3_a_path_has_one_owner() {
    let server = Server::start().await;
    let held = server.listener.replier("/x").unwrap();
    let taken = |result: Result<(), Error>| matches!(result, Err(Error::AlreadyRegistered));
    assert!(taken(server.listener.puller("/x").map(drop)));
    assert!(taken(server.listener.replier("/x").map(drop)));
    assert!(taken(server.listener.publisher("/x").map(drop)));
    assert!(taken(server.listener.acceptor("/x").map(drop)));
    drop(held);
    assert!(server.listener.puller("/x").is_ok());
    for bad in ["", "x", "/a\u{1}"] {
        let refused = server.listener.puller(bad).map(drop);
        assert!(
            matches!(refused, Err(Error::InvalidEndpointPath)),
            "{bad:?}"
        );
    }
}

#[tokio::test]
async fn a_vanished_puller_answers_as_an_empty_path() {
    let config = RuntimeConfig {
        endpoint_queue: 1,
        ..RuntimeConfig::default()
    };
    let server = Server::with(config).await;
    let runtime = client();
    let (pusher, puller) = pair(&server, &runtime, "/x").await;
    let mut transfers = Vec::new();
    for _ in 0..3 {
        let mut transfer = soon(pusher.open(TransferMeta::default())).await.unwrap();
        transfer.write_all(b"head").await.unwrap();
        transfers.push(transfer);
    }
    // One is queued, the others wait for room.
    tokio::time::sleep(Duration::from_millis(100)).await;
    drop(puller);
    for mut transfer in transfers {
        let error = soon(async {
            loop {
                if let Err(error) = transfer.write_all(&[0; 1024]).await {
                    break error;
                }
                tokio::task::yield_now().await;
            }
        })
        .await;
        assert!(matches!(error, Error::UnknownEndpoint), "{error}");
    }
    eventually(|| pusher.peer_count() == 1).await;
}
