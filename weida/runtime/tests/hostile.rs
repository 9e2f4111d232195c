//! Malformed input: every row of wire 17, from a raw peer, in both roles. Each
//! test first shows that the valid neighbour passes.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod common;

use common::raw::{
    HELLO, RawClient, RawServer, alive, close_code, open_uni, send_bi, send_uni, stop_code,
};
use common::{Server, client, soon, stays_pending};
use quinn::Connection;
use weida::{Error, Limits, Puller, Replier, Runtime, RuntimeConfig, TransferMeta, Trust};

/// Something that answers, so that a living connection can be told from a dead
/// one.
struct World {
    server: Server,
    _echo: tokio::task::JoinSet<()>,
    puller: Puller,
}

async fn echo(replier: Replier) {
    while let Ok(request) = replier.accept().await {
        if let Ok(reply) = request.reply(TransferMeta::default()).await {
            drop(reply.finish());
        }
    }
}

impl World {
    async fn start() -> Self {
        Self::with(Limits::default()).await
    }

    async fn with(limits: Limits) -> Self {
        let config = RuntimeConfig {
            limits,
            ..RuntimeConfig::default()
        };
        let server = Server::with(config).await;
        let replier = server.listener.replier("/e").unwrap();
        let puller = server.listener.puller("/p").unwrap();
        Self {
            server,
            _echo: tokio::task::JoinSet::from_iter([echo(replier)]),
            puller,
        }
    }

    async fn raw(&self) -> RawClient {
        RawClient::greeted(self.server.binding.local_addr()).await
    }
}

/// DATA {endpoint /p} and a payload.
const PUSH: &[u8] = &[0x57, 1, 5, 0xA1, 0, 0x62, b'/', b'p', b'x'];

/// Sends `bytes` on a fresh greeted connection of each role and expects the
/// close code.
async fn closes(bytes: &[u8], code: u64) {
    let world = World::start().await;
    let raw = world.raw().await;
    send_uni(&raw.connection, PUSH).await;
    soon(world.puller.recv()).await.unwrap();
    assert!(alive(&raw.connection, "/e").await, "the valid neighbour");
    send_uni(&raw.connection, bytes).await;
    assert_eq!(
        close_code(&raw.connection).await,
        code,
        "as server: {bytes:02X?}"
    );

    let server = RawServer::start("/x");
    let runtime = client();
    let peer = runtime.peer(Trust::by_address());
    let (dialled, connection) = tokio::join!(soon(peer.connect(&server.url)), server.greeted());
    dialled.unwrap();
    send_uni(&connection, bytes).await;
    assert_eq!(
        close_code(&connection).await,
        code,
        "as client: {bytes:02X?}"
    );
}

/// The same before HELLO: what is wrong is judged without waiting for it.
async fn closes_before_hello(bytes: &[u8], code: u64) {
    let server = Server::start().await;
    let raw = soon(RawClient::dial(server.binding.local_addr()))
        .await
        .unwrap();
    send_uni(&raw.connection, bytes).await;
    assert_eq!(close_code(&raw.connection).await, code, "{bytes:02X?}");
}

#[tokio::test]
async fn wire_17_bad_preambles_close_before_hello() {
    for bytes in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        &[0x57, 9, 1, 0xA0],
        &[0x57, 255, 1, 0xA0],
        // header_len 16385
        &[0x57, 1, 0x80, 0, 0x40, 1],
        // FIN inside the preamble, and an empty stream
        &[0x57],
        &[0x57, 1],
        &[],
    ] {
        closes_before_hello(bytes, 2).await;
        closes(bytes, 2).await;
    }
}

/// INV-1: a header length past the cap is refused before anything is held;
/// exactly the cap is legal.
#[tokio::test]
async fn inv_1_a_header_of_exactly_the_cap_is_legal() {
    let world = World::start().await;
    let raw = world.raw().await;
    // Key 64: a byte string that fills the header to 16384.
    let mut header = vec![0xA2, 0, 0x62, b'/', b'p', 0x18, 0x40, 0x59];
    let fill = 16_384 - header.len() - 2;
    header.extend_from_slice(&(fill as u16).to_be_bytes());
    header.resize(16_384, 0);
    let mut frame = vec![0x57, 1, 0x80, 0, 0x40, 0];
    frame.extend_from_slice(&header);
    frame.extend_from_slice(b"payload");
    send_uni(&raw.connection, &frame).await;
    let arrived = soon(world.puller.recv()).await.unwrap();
    assert_eq!(soon(arrived.collect(64)).await.unwrap(), b"payload");
}

#[tokio::test]
async fn wire_17_undecodable_headers_close() {
    for header in [
        // empty, not a map, indefinite, duplicate key, trailing byte
        &[][..],
        &[0x80],
        &[0xBF, 0xFF],
        &[0xA2, 0, 0x62, b'/', b'p', 0, 0x62, b'/', b'p'],
        &[0xA1, 0, 0x62, b'/', b'p', 0],
        // no endpoint
        &[0xA0],
        // producer of 31 bytes
        &[0xA2, 0, 0x62, b'/', b'p', 7, 0x41, 0],
    ] {
        let mut frame = vec![0x57, 1, header.len() as u8];
        frame.extend_from_slice(header);
        closes(&frame, 2).await;
    }
}

#[tokio::test]
async fn wire_17_frames_in_the_wrong_place_close() {
    // S17-3: ERROR on a one-way stream.
    closes(&[0x57, 2, 3, 0xA1, 0, 5], 2).await;
    // Second HELLO.
    closes(HELLO, 2).await;
    // FLOW and REPORT without their capability.
    closes(&[0x57, 7, 7, 0xA2, 0, 0x62, b'/', b'v', 1, 7], 2).await;
    closes(&[0x57, 8, 1, 0xA0], 2).await;
}

/// S17-21: an exchange opens with DATA, judged before HELLO.
#[tokio::test]
async fn s17_21_an_exchange_opens_with_data() {
    let frames: [&[u8]; 3] = [
        HELLO,
        &[0x57, 3, 8, 0xA2, 0, 0x62, b'/', b'q', 1, 0x61, b'a'],
        &[0x57, 2, 3, 0xA1, 0, 5],
    ];
    for frame in frames {
        let server = Server::start().await;
        let raw = soon(RawClient::dial(server.binding.local_addr()))
            .await
            .unwrap();
        drop(send_bi(&raw.connection, frame).await);
        assert_eq!(close_code(&raw.connection).await, 2, "{frame:02X?}");
    }
}

/// S17-11, S17-15: a malformed filter closes; a valid one does not.
#[tokio::test]
async fn s17_11_a_malformed_filter_closes() {
    let subscribe = |kind: u8, filter: &str| {
        let mut header = vec![0xA2, 0, 0x62, b'/', b't', 1];
        if filter.len() < 24 {
            header.push(0x60 | filter.len() as u8);
        } else {
            header.extend_from_slice(&[0x79]);
            header.extend_from_slice(&(filter.len() as u16).to_be_bytes());
        }
        header.extend_from_slice(filter.as_bytes());
        let mut frame = vec![0x57, kind];
        if header.len() < 64 {
            frame.push(header.len() as u8);
        } else {
            frame.extend_from_slice(&(0x4000 | header.len() as u16).to_be_bytes());
        }
        frame.extend_from_slice(&header);
        frame
    };
    let world = World::start().await;
    let raw = world.raw().await;
    for (kind, filter) in [(3, ""), (3, "#"), (3, "a.*.b"), (4, "never.held")] {
        send_uni(&raw.connection, &subscribe(kind, filter)).await;
    }
    assert!(alive(&raw.connection, "/e").await);
    let long = "a".repeat(257);
    for filter in ["a*b", "a#", "#.b", &long] {
        closes(&subscribe(3, filter), 2).await;
        closes(&subscribe(4, filter), 2).await;
    }
}

/// S17-12 and INV-4: one filter too many closes with 5 and a reason.
#[tokio::test]
async fn s17_12_one_subscription_too_many_closes_with_a_reason() {
    let limits = Limits {
        max_subscriptions: 3,
        ..Limits::default()
    };
    let world = World::with(limits).await;
    let raw = world.raw().await;
    let subscribe = |path: u8, filter: u8| [0x57, 3, 8, 0xA2, 0, 0x62, b'/', path, 1, 0x61, filter];
    for (path, filter) in [(b'a', b'1'), (b'a', b'2'), (b'b', b'1'), (b'a', b'1')] {
        send_uni(&raw.connection, &subscribe(path, filter)).await;
    }
    assert!(
        alive(&raw.connection, "/e").await,
        "a repeat is counted once"
    );
    send_uni(&raw.connection, &subscribe(b'c', b'9')).await;
    let reason = soon(raw.connection.closed()).await;
    let quinn::ConnectionError::ApplicationClosed(close) = reason else {
        panic!("{reason}");
    };
    assert_eq!(close.error_code, 5u32.into());
    assert!(!close.reason.is_empty());
}

/// Everything the table ignores or answers on the stream leaves the connection
/// alive.
#[tokio::test]
async fn wire_17_what_is_ignored_or_stopped_leaves_the_connection() {
    let world = World::start().await;
    let raw = world.raw().await;
    // CURSOR for an unknown id, whatever follows: STOP(3).
    let cursor = open_uni(&raw.connection, &[0x57, 6, 3, 0xA1, 0, 1, 6, 0]).await;
    assert_eq!(stop_code(&cursor).await, Some(3));
    // CREDIT where no queue serves the path; UNSUBSCRIBE of the unknown.
    let credit = [0x57, 5, 10, 0xA3, 0, 0x62, b'/', b'p', 1, 0x61, b'a', 2, 5];
    send_uni(&raw.connection, &credit).await;
    send_uni(
        &raw.connection,
        &[0x57, 4, 8, 0xA2, 0, 0x62, b'/', b'q', 1, 0x61, b'a'],
    )
    .await;
    // Bytes after a header-only frame.
    let mut extra = vec![0x57, 3, 8, 0xA2, 0, 0x62, b'/', b'q', 1, 0x61, b'a'];
    extra.extend_from_slice(&[0xFF; 100]);
    send_uni(&raw.connection, &extra).await;
    // A control frame is received whole: its stream is not stopped.
    let whole = [0x57, 3, 8, 0xA2, 0, 0x62, b'/', b'q', 1, 0x61, b'b'];
    let mut late = open_uni(&raw.connection, &whole).await;
    assert!(
        alive(&raw.connection, "/e").await,
        "it was read without its FIN"
    );
    late.finish().unwrap();
    assert_eq!(stop_code(&late).await, None);
    let at_once = send_uni(&raw.connection, &whole).await;
    assert_eq!(stop_code(&at_once).await, None);
    // FIN inside a header: the stream is given up.
    send_uni(&raw.connection, &[0x57, 1, 9, 0xA1, 0]).await;
    // Misrouted DATA.
    let unknown = open_uni(&raw.connection, &[0x57, 1, 5, 0xA1, 0, 0x62, b'/', b'z']).await;
    assert_eq!(stop_code(&unknown).await, Some(8));
    let wrong = open_uni(&raw.connection, &[0x57, 1, 5, 0xA1, 0, 0x62, b'/', b'e']).await;
    assert_eq!(stop_code(&wrong).await, Some(9));
    // An endpoint no path could be: unknown, not malformed.
    let odd = open_uni(&raw.connection, &[0x57, 1, 4, 0xA1, 0, 0x61, b'j']).await;
    assert_eq!(stop_code(&odd).await, Some(8));
    // Misrouted exchanges: ERROR, FIN, and a stop of the request half.
    for (path, error, stop) in [(b'z', 1, 8), (b'p', 3, 9)] {
        let (mut send, mut recv) = soon(raw.connection.open_bi()).await.unwrap();
        send.write_all(&[0x57, 1, 5, 0xA1, 0, 0x62, b'/', path])
            .await
            .unwrap();
        let answer = soon(recv.read_to_end(64)).await.unwrap();
        assert_eq!(answer, [0x57, 2, 3, 0xA1, 0, error]);
        assert_eq!(stop_code(&send).await, Some(stop));
    }
    // content_len that lies, traceparent that does not parse, unknown keys.
    let odd = [
        0x57, 1, 15, 0xA4, 0, 0x62, b'/', b'p', 1, 0x19, 0xFF, 0xFF, 3, 0x61, b'?', 0x18, 0x63,
        0xF6, 0,
    ];
    send_uni(&raw.connection, &odd).await;
    let arrived = soon(world.puller.recv()).await.unwrap();
    assert_eq!(arrived.meta().content_len, Some(65_535));
    assert_eq!(arrived.meta().trace, None);
    assert_eq!(soon(arrived.collect(8)).await.unwrap(), [0]);
    // An empty payload.
    send_uni(&raw.connection, &PUSH[..8]).await;
    let arrived = soon(world.puller.recv()).await.unwrap();
    assert_eq!(soon(arrived.collect(8)).await.unwrap(), b"");
    assert!(alive(&raw.connection, "/e").await);
}

/// INV-1: stalled heads cost their streams, not the connection, and no more
/// than the slots are read at once.
#[tokio::test]
async fn inv_1_stalled_heads_are_stopped_and_the_connection_lives() {
    let limits = Limits {
        header_timeout_ms: 300,
        max_header_streams: 2,
        ..Limits::default()
    };
    let world = World::with(limits).await;
    let raw = world.raw().await;
    let mut stalled = Vec::new();
    for head in [
        &[0x57][..],
        &[0x57, 1],
        &[0x57, 1, 9, 0xA1],
        &[0x57, 1, 9, 0xA1],
    ] {
        stalled.push(open_uni(&raw.connection, head).await);
    }
    for stream in &stalled {
        assert_eq!(stop_code(stream).await, Some(3));
    }
    let (mut send, mut recv) = soon(raw.connection.open_bi()).await.unwrap();
    send.write_all(&[0x57, 1]).await.unwrap();
    assert_eq!(stop_code(&send).await, Some(3));
    let reset = soon(recv.read_to_end(8)).await.unwrap_err();
    let quinn::ReadToEndError::Read(quinn::ReadError::Reset(code)) = reset else {
        panic!("{reset}");
    };
    assert_eq!(code, 3u32.into());
    assert!(alive(&raw.connection, "/e").await);
}

/// CN-11: streams that arrive before HELLO are parked, even in a crowd that
/// fills every head slot.
#[tokio::test]
async fn cn_11_streams_before_hello_are_parked() {
    let limits = Limits {
        max_header_streams: 2,
        ..Limits::default()
    };
    let world = World::with(limits).await;
    let raw = soon(RawClient::dial(world.server.binding.local_addr()))
        .await
        .unwrap();
    for _ in 0..10 {
        send_uni(&raw.connection, PUSH).await;
    }
    assert!(
        stays_pending(world.puller.recv()).await,
        "not interpreted yet"
    );
    send_uni(&raw.connection, HELLO).await;
    for _ in 0..10 {
        let arrived = soon(world.puller.recv()).await.unwrap();
        assert_eq!(soon(arrived.collect(8)).await.unwrap(), b"x");
    }
}

/// A HELLO, a push and a close in one breath: the push is delivered.
#[tokio::test]
async fn tx_10_a_push_before_an_immediate_close_is_delivered() {
    let world = World::start().await;
    let raw = soon(RawClient::dial(world.server.binding.local_addr()))
        .await
        .unwrap();
    send_uni(&raw.connection, HELLO).await;
    let push = send_uni(&raw.connection, PUSH).await;
    assert_eq!(stop_code(&push).await, None, "the server's QUIC has it");
    raw.connection.close(0u32.into(), b"bye");
    let arrived = soon(world.puller.recv()).await.unwrap();
    assert_eq!(soon(arrived.collect(8)).await.unwrap(), b"x");
}

/// Negotiation: no common version, a capability we lack, a guarantee we do not
/// offer; and HELLOs that are malformed instead.
#[tokio::test]
async fn wire_17_hello_negotiation_and_violation_codes() {
    let rejected: [(&[u8], u64); 7] = [
        // N1, N2, N3 of wire 25.3.
        (
            &[
                0x57, 0, 0x0E, 0xA5, 0, 0x81, 1, 1, 0x19, 0x40, 0, 2, 1, 3, 0x80, 4, 0x80,
            ],
            4,
        ),
        (
            &[
                0x57, 0, 0x0F, 0xA5, 0, 0x81, 0, 1, 0x19, 0x40, 0, 2, 1, 3, 0x80, 4, 0x81, 7,
            ],
            4,
        ),
        (
            &[
                0x57, 0, 0x16, 0xA7, 0, 0x81, 0, 1, 0x19, 0x40, 0, 2, 1, 3, 0x80, 4, 0x80, 5, 0xA1,
                4, 1, 6, 0xA1, 4, 1,
            ],
            4,
        ),
        // No versions at all is legal CBOR and fails negotiation.
        (
            &[
                0x57, 0, 0x0D, 0xA5, 0, 0x80, 1, 0x19, 0x40, 0, 2, 1, 3, 0x80, 4, 0x80,
            ],
            4,
        ),
        // Key 4 missing; requires more than it offers; ordering level 9.
        (
            &[
                0x57, 0, 0x0C, 0xA4, 0, 0x81, 0, 1, 0x19, 0x40, 0, 2, 1, 3, 0x80,
            ],
            2,
        ),
        (
            &[
                0x57, 0, 0x12, 0xA6, 0, 0x81, 0, 1, 0x19, 0x40, 0, 2, 1, 3, 0x80, 4, 0x80, 6, 0xA1,
                4, 1,
            ],
            2,
        ),
        (
            &[
                0x57, 0, 0x12, 0xA6, 0, 0x81, 0, 1, 0x19, 0x40, 0, 2, 1, 3, 0x80, 4, 0x80, 5, 0xA1,
                4, 9,
            ],
            2,
        ),
    ];
    for (hello, code) in rejected {
        let server = Server::start().await;
        let raw = soon(RawClient::dial(server.binding.local_addr()))
            .await
            .unwrap();
        send_uni(&raw.connection, hello).await;
        assert_eq!(
            close_code(&raw.connection).await,
            code,
            "as server {hello:02X?}"
        );

        let server = RawServer::start("/x");
        let runtime = client();
        let peer = runtime.peer(Trust::by_address());
        let say = async {
            let connection = server.accept().await;
            send_uni(&connection, hello).await;
            close_code(&connection).await
        };
        let (dialled, closed) = tokio::join!(soon(peer.connect(&server.url)), say);
        assert_eq!(closed, code, "as client {hello:02X?}");
        let error = dialled.unwrap_err();
        match code {
            4 => assert!(matches!(error, Error::Negotiation(_)), "{error}"),
            _ => assert!(matches!(error, Error::Protocol(_)), "{error}"),
        }
    }
}

/// A peer's close is read by its code, and its sentence kept (S17-30).
#[tokio::test]
async fn s17_30_a_close_is_read_by_its_code_and_keeps_its_sentence() {
    type Check = fn(&Error) -> bool;
    let checks: [(u32, Check); 4] = [
        (2, |error| matches!(error, Error::Protocol(_))),
        (4, |error| matches!(error, Error::Negotiation(_))),
        (5, |error| matches!(error, Error::LimitExceeded(Some(_)))),
        (7, |error| matches!(error, Error::ConnectionLost(_))),
    ];
    for (code, expected) in checks {
        let server = RawServer::start("/x");
        let config = RuntimeConfig {
            reconnect: weida::ReconnectPolicy::never(),
            ..RuntimeConfig::default()
        };
        let runtime = Runtime::new(config).unwrap();
        let peer = runtime.peer(Trust::by_address());
        let (dialled, connection) = tokio::join!(soon(peer.connect(&server.url)), server.greeted());
        dialled.unwrap();
        let mut transfer = soon(peer.open(TransferMeta::default())).await.unwrap();
        connection.close(code.into(), b"because\nof this");
        let error = soon(async {
            loop {
                if let Err(error) = transfer.write_all(b"x").await {
                    break error;
                }
                tokio::task::yield_now().await;
            }
        })
        .await;
        assert!(expected(&error), "{code}: {error:?}");
        assert_eq!(error.close_reason(), Some("because\nof this"), "{code}");
        assert!(
            !error.to_string().contains('\n') || code == 2 || code == 4,
            "{code}"
        );
    }
}

/// A bad answer fails its exchange and nothing else.
#[tokio::test]
async fn wire_17_a_bad_reply_fails_one_exchange_only() {
    let server = RawServer::start("/x");
    let runtime = client();
    let requester = runtime.requester(Trust::by_address());
    let (dialled, connection) =
        tokio::join!(soon(requester.connect(&server.url)), server.greeted());
    dialled.unwrap();
    async fn answer(connection: &Connection, bytes: &[u8]) {
        let (mut send, _recv) = soon(connection.accept_bi()).await.unwrap();
        send.write_all(bytes).await.unwrap();
        drop(send.finish());
        drop(soon(send.stopped()).await);
    }
    let bad: [&[u8]; 7] = [
        b"HTTP",
        &[],
        &[0x57],
        &[0x57, 1, 9, 0xA0],
        &[0x57, 1, 2, 0xA1, 0],
        &[0x57, 0, 1, 0xA0],
        &[0x57, 3, 1, 0xA0],
    ];
    for bytes in bad {
        let (reply, ()) = tokio::join!(soon(requester.request(b"?")), answer(&connection, bytes));
        let error = reply.map(drop).unwrap_err();
        assert!(matches!(error, Error::Protocol(_)), "{bytes:02X?}: {error}");
    }
    // A code nobody defined fails generically; NO_REPLY is typed.
    let (reply, ()) = tokio::join!(
        soon(requester.request(b"?")),
        answer(&connection, &[0x57, 2, 4, 0xA1, 0, 0x18, 99])
    );
    assert!(matches!(reply.map(drop).unwrap_err(), Error::Transport(_)));
    // A reset before the head.
    let reset = async {
        let (mut send, _recv) = soon(connection.accept_bi()).await.unwrap();
        send.reset(3u32.into()).unwrap();
    };
    let (reply, ()) = tokio::join!(soon(requester.request(b"?")), reset);
    assert!(matches!(reply.map(drop).unwrap_err(), Error::Canceled));
    // The connection lives: a good answer still comes through.
    let (reply, ()) = tokio::join!(
        soon(requester.request(b"?")),
        answer(&connection, &[0x57, 1, 1, 0xA0, b'o', b'k'])
    );
    assert_eq!(soon(reply.unwrap().collect(8)).await.unwrap(), b"ok");
    // The endpoint key is ignored on a reply half.
    let (reply, ()) = tokio::join!(
        soon(requester.request(b"?")),
        answer(&connection, &[0x57, 1, 5, 0xA1, 0, 0x62, b'/', b'q'])
    );
    assert_eq!(reply.unwrap().meta().endpoint, None);
}

/// An ALPN of somebody else fails the handshake.
#[tokio::test]
async fn wire_2_another_alpn_fails_the_handshake() {
    let server = Server::start().await;
    let addr = server.binding.local_addr();
    for alpn in [&b"h3"[..], b"weida-raft/0"] {
        let error = soon(RawClient::dial_with(addr, alpn))
            .await
            .map(drop)
            .unwrap_err();
        let code = match error {
            quinn::ConnectionError::ConnectionClosed(close) => u64::from(close.error_code),
            quinn::ConnectionError::TransportError(error) => u64::from(error.code),
            other => panic!("{other}"),
        };
        assert_eq!(code, 0x178, "no_application_protocol");
    }
    soon(RawClient::dial(addr)).await.unwrap();
}

/// A flood of garbage on many connections leaves another client's exchange
/// working.
#[tokio::test]
async fn a_hostile_crowd_does_not_stop_a_neighbour() {
    let world = World::start().await;
    let neighbour = world.raw().await;
    for n in 0..20u8 {
        let raw = world.raw().await;
        for _ in 0..5 {
            drop(open_uni(&raw.connection, &[0x57, 1, 0x40]).await);
        }
        send_uni(&raw.connection, &[n; 64]).await;
        assert_eq!(close_code(&raw.connection).await, 2);
        assert!(alive(&neighbour.connection, "/e").await);
    }
}
