//! Req/Rep: the stream is the correlation, and every exchange ends. `[weida 9]`

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod common;

use common::{Server, client, soon, stays_pending};
use tokio::io::AsyncReadExt as _;
use weida::{Error, ErrorCode, Replier, TransferMeta, Trust};

/// Answers every request with its body until the replier ends.
async fn echo(replier: Replier) {
    while let Ok(mut request) = replier.accept().await {
        let body = request.body().read_capped(1 << 20).await.unwrap();
        let mut reply = request.reply(TransferMeta::default()).await.unwrap();
        reply.write_all(&body).await.unwrap();
        reply.finish().unwrap();
    }
}

#[tokio::test]
async fn a_request_is_answered_and_carries_both_identities() {
    let server = Server::start().await;
    let replier = server.listener.replier("/echo").unwrap();
    let runtime = client();
    let requester = runtime.requester(Trust::by_address());
    soon(requester.connect(&server.url("/echo"))).await.unwrap();
    assert_eq!(requester.peer_count(), 1);
    let answering = tokio::task::JoinSet::from_iter([echo(replier)]);
    let reply = soon(requester.request(b"hello")).await.unwrap();
    let proved = reply.meta().peer.as_ref().and_then(|peer| peer.key());
    assert_eq!(proved, Some(server.fingerprint), "ID-10");
    assert_eq!(reply.meta().endpoint, None);
    assert_eq!(soon(reply.collect(64)).await.unwrap(), b"hello");
    drop(answering);
}

#[tokio::test]
async fn rr_1_concurrent_exchanges_do_not_interleave() {
    let server = Server::start().await;
    let replier = server.listener.replier("/echo").unwrap();
    let _answering = tokio::task::JoinSet::from_iter([echo(replier)]);
    let runtime = client();
    let requester = runtime.requester(Trust::by_address());
    soon(requester.connect(&server.url("/echo"))).await.unwrap();
    let one = |n: u32| {
        let requester = &requester;
        async move {
            let reply = requester.request(&n.to_be_bytes()).await.unwrap();
            assert_eq!(reply.collect(4).await.unwrap(), n.to_be_bytes());
        }
    };
    soon(futures_util::future::join_all((0..200).map(one))).await;
}

#[tokio::test]
async fn rr_2_a_dropped_request_is_no_reply() {
    let server = Server::start().await;
    let replier = server.listener.replier("/x").unwrap();
    let runtime = client();
    let requester = runtime.requester(Trust::by_address());
    soon(requester.connect(&server.url("/x"))).await.unwrap();
    let (asked, request) = tokio::join!(soon(requester.request(b"?")), async {
        drop(soon(replier.accept()).await.unwrap());
    });
    let () = request;
    let error = asked.unwrap_err();
    assert!(matches!(error, Error::NoReply), "{error}");
    assert!(!error.is_definite_failure());
}

#[tokio::test]
async fn rr_4_a_refusal_says_the_chosen_code() {
    let server = Server::start().await;
    let replier = server.listener.replier("/x").unwrap();
    let runtime = client();
    let requester = runtime.requester(Trust::by_address());
    soon(requester.connect(&server.url("/x"))).await.unwrap();
    for code in [
        ErrorCode::Rejected,
        ErrorCode::UnknownEndpoint,
        ErrorCode::Unsupported,
        ErrorCode::NoReply,
    ] {
        let (asked, ()) = tokio::join!(soon(requester.request(&[7; 4096])), async {
            soon(replier.accept()).await.unwrap().refuse(code).await;
        });
        let expected = Error::from(code).to_string();
        assert_eq!(asked.unwrap_err().to_string(), expected);
    }
}

#[tokio::test]
async fn unknown_and_wrong_paths_are_typed_refusals() {
    let server = Server::start().await;
    let _puller = server.listener.puller("/pull").unwrap();
    let _publisher = server.listener.publisher("/pub").unwrap();
    let runtime = client();
    for (path, expected) in [
        ("/nope", Error::UnknownEndpoint),
        ("/pull", Error::Unsupported),
        ("/pub", Error::Unsupported),
    ] {
        let requester = runtime.requester(Trust::by_address());
        soon(requester.connect(&server.url(path))).await.unwrap();
        for body in [&b"small"[..], &[0; 2 << 20]] {
            let error = soon(requester.request(body)).await.unwrap_err();
            assert_eq!(error.to_string(), expected.to_string(), "{path}");
        }
        assert_eq!(requester.peer_count(), 1, "a refusal closes nothing");
    }
}

#[tokio::test]
async fn rr_3_an_unread_body_is_refused_by_the_reply() {
    let server = Server::start().await;
    let replier = server.listener.replier("/x").unwrap();
    let runtime = client();
    let requester = runtime.requester(Trust::by_address());
    soon(requester.connect(&server.url("/x"))).await.unwrap();
    let (mut request, reply) = soon(requester.open(TransferMeta::default())).await.unwrap();
    request.write_all(b"first").await.unwrap();
    let incoming = soon(replier.accept()).await.unwrap();
    let mut answer = soon(incoming.reply(TransferMeta::default())).await.unwrap();
    let error = soon(async {
        loop {
            if let Err(error) = request.write_all(&[0; 4096]).await {
                break error;
            }
        }
    })
    .await;
    assert!(matches!(error, Error::Rejected), "{error}");
    answer.write_all(b"done").await.unwrap();
    answer.finish().unwrap();
    let body = soon(soon(reply.recv()).await.unwrap().collect(16)).await;
    assert_eq!(body.unwrap(), b"done");
}

#[tokio::test]
async fn lg_2_both_halves_stream_at_once() {
    let server = Server::start().await;
    let replier = server.listener.replier("/x").unwrap();
    let runtime = client();
    let requester = runtime.requester(Trust::by_address());
    soon(requester.connect(&server.url("/x"))).await.unwrap();
    let serve = async {
        let mut incoming = soon(replier.accept()).await.unwrap();
        let mut body = incoming.take_body();
        let mut answer = incoming.reply(TransferMeta::default()).await.unwrap();
        let mut byte = [0];
        while soon(body.read(&mut byte)).await.unwrap() == 1 {
            answer.write_all(&byte).await.unwrap();
        }
        answer.finish().unwrap();
    };
    let ask = async {
        let (mut request, reply) = soon(requester.open(TransferMeta::default())).await.unwrap();
        request.write_all(b"0").await.unwrap();
        let mut reply = soon(reply.recv()).await.unwrap();
        for n in b'1'..b'9' {
            // The next byte goes out only after the last one came back.
            let mut back = [0];
            soon(reply.read_exact(&mut back)).await.unwrap();
            assert_eq!(back, [n - 1]);
            request.write_all(&[n]).await.unwrap();
        }
        request.finish().unwrap();
        assert_eq!(soon(reply.read_chunk(16)).await.unwrap().unwrap(), "8");
        assert_eq!(soon(reply.read_chunk(16)).await.unwrap(), None);
    };
    tokio::join!(serve, ask);
}

#[tokio::test]
async fn rr_5_canceled_resolves_when_the_requester_leaves() {
    let server = Server::start().await;
    let replier = server.listener.replier("/x").unwrap();
    let runtime = client();
    let requester = runtime.requester(Trust::by_address());
    soon(requester.connect(&server.url("/x"))).await.unwrap();
    let (mut request, reply) = soon(requester.open(TransferMeta::default())).await.unwrap();
    request.write_all(b"?").await.unwrap();
    let incoming = soon(replier.accept()).await.unwrap();
    let mut canceled = Box::pin(incoming.canceled());
    assert!(stays_pending(&mut canceled).await);
    let mut answer = incoming.reply(TransferMeta::default()).await.unwrap();
    drop(reply);
    soon(canceled).await;
    let error = soon(async {
        loop {
            if let Err(error) = answer.write_all(b"more").await {
                break error;
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert!(matches!(error, Error::Canceled), "{error}");
}

#[tokio::test]
async fn a_reply_inherits_the_trace_unless_it_has_its_own() {
    let server = Server::start().await;
    let replier = server.listener.replier("/x").unwrap();
    let runtime = client();
    let requester = runtime.requester(Trust::by_address());
    soon(requester.connect(&server.url("/x"))).await.unwrap();
    let trace = weida::new_trace();
    let meta = TransferMeta::default().with_trace(trace);
    let (reply, ()) = tokio::join!(soon(requester.request_with(meta, b"")), async {
        let incoming = soon(replier.accept()).await.unwrap();
        assert_eq!(incoming.meta().trace, Some(trace));
        let meta = TransferMeta::default();
        incoming.reply(meta).await.unwrap().finish().unwrap();
    });
    assert_eq!(reply.unwrap().meta().trace, Some(trace));
    let (reply, ()) = tokio::join!(soon(requester.request(b"")), async {
        let incoming = soon(replier.accept()).await.unwrap();
        assert_eq!(incoming.meta().trace, None, "none is minted");
        let meta = TransferMeta::default();
        incoming.reply(meta).await.unwrap().finish().unwrap();
    });
    assert_eq!(reply.unwrap().meta().trace, None);
}

#[tokio::test]
async fn fc_4_a_full_accept_queue_makes_requesters_wait() {
    let config = weida::RuntimeConfig {
        endpoint_queue: 2,
        ..weida::RuntimeConfig::default()
    };
    let server = Server::with(config).await;
    let replier = server.listener.replier("/x").unwrap();
    let runtime = client();
    let requester = runtime.requester(Trust::by_address());
    soon(requester.connect(&server.url("/x"))).await.unwrap();
    let mut asking: Vec<_> = (0..8).map(|_| Box::pin(requester.request(b"?"))).collect();
    for request in &mut asking {
        assert!(stays_pending(request).await, "nobody answers yet");
    }
    // Nothing was dropped or refused: each one is answered.
    let serve = async {
        for _ in 0..8 {
            let incoming = soon(replier.accept()).await.unwrap();
            let meta = TransferMeta::default();
            incoming.reply(meta).await.unwrap().finish().unwrap();
        }
    };
    let (answers, ()) = tokio::join!(soon(futures_util::future::join_all(asking)), serve);
    assert!(answers.iter().all(Result::is_ok));
}
