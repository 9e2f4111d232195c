//! Runtimes: where they run, what a close frees, what a drain counts.
//! `[weida 4, 15]`

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod common;

use std::time::Duration;

use common::{Server, client, eventually, soon, stays_pending};
use weida::{
    Acknowledgement, Backpressure, Deduplication, DeliveryLevel, Discovery, Drained, Error,
    GuaranteeSet, Identity, Limits, LossCause, OrderingMode, OutboxFull, ProducerNaming,
    ReconnectPolicy, Runtime, RuntimeConfig, TransferMeta, Trust,
};

/// RT-1: an owned reactor, and futures driven by somebody else's executor.
#[test]
fn rt_1_a_foreign_executor_drives_every_future() {
    let runtime = Runtime::owned(RuntimeConfig::default()).unwrap();
    let identity = Identity::generate().unwrap();
    let fingerprint = identity.fingerprint().unwrap();
    let listener = runtime.listener();
    let body = futures_executor_block_on(async {
        let binding = listener
            .bind_quic(common::loopback(), identity)
            .await
            .unwrap();
        let replier = listener.replier("/rep").unwrap();
        let puller = listener.puller("/pull").unwrap();
        let url = |path| format!("weida://{fingerprint}@{}{path}", binding.local_addr());
        let requester = runtime.requester(Trust::by_address());
        requester.connect(&url("/rep")).await.unwrap();
        let serve = async {
            let request = replier.accept().await.unwrap();
            let mut reply = request.reply(TransferMeta::default()).await.unwrap();
            reply.write_all(b"pong").await.unwrap();
            reply.finish().unwrap();
        };
        let (reply, ()) = tokio::join!(requester.request(b"ping"), serve);
        assert_eq!(reply.unwrap().collect(8).await.unwrap(), b"pong");
        let pusher = runtime.pusher(Trust::by_address());
        pusher.connect(&url("/pull")).await.unwrap();
        pusher.send(b"pushed").await.unwrap();
        let body = puller.recv().await.unwrap().collect(8).await.unwrap();
        binding.close().await;
        body
    });
    assert_eq!(body, b"pushed");
}

/// A minimal executor of its own: no Tokio context anywhere.
fn futures_executor_block_on<F: Future>(future: F) -> F::Output {
    use std::sync::Arc;
    use std::task::{Context, Poll, Wake, Waker};
    struct Unpark(std::thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut cx = Context::from_waker(&waker);
    let mut future = std::pin::pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut cx) {
            return output;
        }
        std::thread::park_timeout(common::PATIENCE);
    }
}

#[test]
fn rt_no_reactor_is_an_error_and_zero_workers_too() {
    let error = Runtime::new(RuntimeConfig::default())
        .map(drop)
        .unwrap_err();
    assert!(matches!(error, Error::Runtime(_)), "{error}");
    let config = RuntimeConfig {
        worker_threads: 0,
        ..RuntimeConfig::default()
    };
    let error = Runtime::owned(config).map(drop).unwrap_err();
    assert!(matches!(error, Error::Runtime(_)), "{error}");
}

/// RT-3: the last handle of an owned reactor may go on one of its own workers.
#[test]
fn rt_3_an_owned_reactor_may_be_dropped_by_its_own_worker() {
    let runtime = Runtime::owned(RuntimeConfig::default()).unwrap();
    let handle = runtime.exec().handle().clone();
    let (done, wait) = std::sync::mpsc::channel();
    handle.spawn(async move {
        drop(runtime);
        done.send(()).unwrap();
    });
    wait.recv_timeout(common::PATIENCE).unwrap();
}

/// RT-4: nothing outside the executor seam spawns or sleeps.
#[test]
fn rt_4_one_type_spawns_and_sleeps() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut folders = vec![root.clone()];
    let mut read = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                if !path.ends_with("bin") {
                    folders.push(path);
                }
                continue;
            }
            if path == root.join("exec.rs") || path.ends_with("tests.rs") {
                continue;
            }
            read += 1;
            let text = std::fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]").next().unwrap();
            for banned in [
                "tokio::spawn",
                "task::spawn",
                "spawn_blocking",
                "time::sleep",
                "time::timeout",
                "time::interval",
                "JoinSet",
                "lookup_host",
            ] {
                assert!(!code.contains(banned), "{banned} in {}", path.display());
            }
        }
    }
    assert!(read > 20, "the scan found the sources");
}

/// DR-1: abortive and bounded, even towards a peer that answers nothing.
#[tokio::test]
async fn dr_1_shutdown_returns_within_its_budget() {
    let server = Server::start().await;
    let relay = common::relay::Relay::start(server.binding.local_addr()).await;
    let config = RuntimeConfig {
        shutdown_timeout: Duration::from_millis(300),
        ..RuntimeConfig::default()
    };
    let runtime = Runtime::new(config).unwrap();
    let pusher = runtime.pusher(Trust::by_address());
    let url = server.url_via(relay.addr(), "/x");
    soon(pusher.connect(&url)).await.unwrap();
    relay.cut();
    let began = tokio::time::Instant::now();
    runtime.clone().shutdown().await;
    assert!(began.elapsed() < Duration::from_secs(2));
    let error = pusher
        .open(TransferMeta::default())
        .await
        .map(drop)
        .unwrap_err();
    assert!(
        matches!(error, Error::ConnectionLost(LossCause::LocallyClosed)),
        "{error}"
    );
}

/// DR-2 and DR-6: what was finished arrives under a drain, and is counted.
#[tokio::test]
async fn dr_2_dr_6_a_drain_waits_for_finished_transfers() {
    let server = Server::start().await;
    let puller = server.listener.puller("/x").unwrap();
    let relay = common::relay::Relay::start(server.binding.local_addr()).await;
    let runtime = client();
    let pusher = runtime.pusher(Trust::by_address());
    let url = server.url_via(relay.addr(), "/x");
    soon(pusher.connect(&url)).await.unwrap();
    let mut unfinished = soon(pusher.open(TransferMeta::default())).await.unwrap();
    unfinished.write_all(b"open").await.unwrap();
    let _open = soon(puller.recv()).await.unwrap();
    relay.cut();
    for _ in 0..3 {
        pusher.send(b"finished").await.unwrap();
    }
    let mut drain = Box::pin(runtime.clone().drain(Duration::from_secs(15)));
    assert!(stays_pending(&mut drain).await, "nothing gets through yet");
    relay.heal();
    let drained = soon(drain).await;
    // DR-5: the unfinished one is no part of it.
    assert_eq!(
        drained,
        Drained {
            delivered: 3,
            outstanding: 0
        }
    );
    for _ in 0..3 {
        let arrived = soon(puller.recv()).await.unwrap();
        assert_eq!(soon(arrived.collect(16)).await.unwrap(), b"finished");
    }
}

/// DR-3: an expired drain is a number.
#[tokio::test]
async fn dr_3_an_expired_drain_is_a_number() {
    let server = Server::start().await;
    let _never_read = server.listener.puller("/x").unwrap();
    let relay = common::relay::Relay::start(server.binding.local_addr()).await;
    let runtime = client();
    let pusher = runtime.pusher(Trust::by_address());
    let url = server.url_via(relay.addr(), "/x");
    soon(pusher.connect(&url)).await.unwrap();
    relay.cut();
    for _ in 0..3 {
        pusher.send(b"never acknowledged").await.unwrap();
    }
    let began = tokio::time::Instant::now();
    let drained = soon(runtime.clone().drain(Duration::from_millis(300))).await;
    assert_eq!(
        drained,
        Drained {
            delivered: 0,
            outstanding: 3
        }
    );
    assert!(began.elapsed() < Duration::from_secs(3));
}

/// DR-4: late work is refused on old connections, and no new one is accepted.
#[tokio::test]
async fn dr_4_a_draining_side_refuses_late_streams() {
    let server = Server::start().await;
    let _replier = server.listener.replier("/rep").unwrap();
    let _puller = server.listener.puller("/pull").unwrap();
    let runtime = client();
    let requester = runtime.requester(Trust::by_address());
    soon(requester.connect(&server.url("/rep"))).await.unwrap();
    let pusher = runtime.pusher(Trust::by_address());
    soon(pusher.connect(&server.url("/pull"))).await.unwrap();
    // Something unacknowledged keeps the drain going: a push of the server's
    // own toward a reader that never reads.
    let sink = Server::start().await;
    let _sink = sink.listener.puller("/sink").unwrap();
    let relay = common::relay::Relay::start(sink.binding.local_addr()).await;
    let own = server.runtime.pusher(Trust::by_address());
    soon(own.connect(&sink.url_via(relay.addr(), "/sink")))
        .await
        .unwrap();
    relay.cut();
    own.send(b"stuck").await.unwrap();
    let draining = server.runtime.clone().drain(Duration::from_secs(3));
    let url = server.url("/rep");
    let late = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let error = soon(requester.request(b"late"))
            .await
            .map(drop)
            .unwrap_err();
        assert!(
            matches!(error, Error::Rejected | Error::Canceled),
            "{error}"
        );
        let mut transfer = soon(pusher.open(TransferMeta::default())).await.unwrap();
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
        let fresh = client();
        let newcomer = fresh.requester(Trust::by_address());
        let error = soon(newcomer.connect(&url)).await.unwrap_err();
        assert!(matches!(error, Error::ConnectionLost(_)), "{error}");
    };
    let (drained, ()) = tokio::join!(soon(draining), late);
    assert_eq!(drained.outstanding, 1);
}

/// DR-7: the port is free once a close returns, even under surviving handles.
#[tokio::test]
async fn dr_7_a_closed_binding_frees_its_port() {
    let server = Server::start().await;
    let puller = server.listener.puller("/x").unwrap();
    let runtime = client();
    let pusher = runtime.pusher(Trust::by_address());
    soon(pusher.connect(&server.url("/x"))).await.unwrap();
    let mut transfer = soon(pusher.open(TransferMeta::default())).await.unwrap();
    transfer.write_all(b"x").await.unwrap();
    let held = soon(puller.recv()).await.unwrap();
    let addr = server.binding.local_addr();
    soon(server.binding.close()).await;
    let again = server
        .listener
        .bind_quic(addr, server.identity.clone())
        .await
        .unwrap();
    assert_eq!(again.local_addr(), addr);
    soon(server.runtime.clone().shutdown()).await;
    std::net::UdpSocket::bind(addr).unwrap();
    drop(held);
}

#[tokio::test]
async fn a_dropped_runtime_closes_everything() {
    let server = Server::start().await;
    let runtime = client();
    let peer = runtime.peer(Trust::by_address());
    soon(peer.connect(&server.url("/x"))).await.unwrap();
    let Server {
        runtime: serving,
        listener,
        binding,
        ..
    } = server;
    drop((serving, listener, binding));
    eventually(|| peer.peer_count() == 0).await;
}

#[tokio::test]
async fn waiting_endpoints_hear_of_a_shutdown() {
    let server = Server::start().await;
    let puller = server.listener.puller("/x").unwrap();
    let mut waiting = Box::pin(puller.recv());
    assert!(stays_pending(&mut waiting).await);
    soon(server.runtime.shutdown()).await;
    let error = soon(waiting).await.map(drop).unwrap_err();
    assert!(
        matches!(error, Error::ConnectionLost(LossCause::LocallyClosed)),
        "{error}"
    );
}

/// GS-9: a level this build cannot honour is refused before any traffic.
#[tokio::test]
async fn gs_9_an_unbuilt_guarantee_is_refused_before_any_traffic() {
    let core = GuaranteeSet::CORE;
    let sets = [
        GuaranteeSet {
            delivery: DeliveryLevel::AtMostOnce,
            ..core
        },
        GuaranteeSet {
            delivery: DeliveryLevel::AtLeastOnce,
            ..core
        },
        GuaranteeSet {
            acknowledgement: Acknowledgement::Accepted,
            ..core
        },
        GuaranteeSet {
            ordering: OrderingMode::PerKey,
            ..core
        },
        GuaranteeSet {
            ordering: OrderingMode::Total,
            ..core
        },
        GuaranteeSet {
            deduplication: Deduplication::Durable,
            ..core
        },
        GuaranteeSet {
            backpressure: Backpressure::Spill,
            ..core
        },
        GuaranteeSet {
            backpressure: Backpressure::Coalesce,
            ..core
        },
        GuaranteeSet {
            producer_naming: ProducerNaming::Stable,
            ..core
        },
        GuaranteeSet {
            control_isolated: true,
            ..core
        },
    ];
    for guarantees in sets {
        let config = RuntimeConfig {
            guarantees,
            ..RuntimeConfig::default()
        };
        let runtime = Runtime::new(config).unwrap();
        let identity = Identity::generate().unwrap();
        let bound = runtime
            .listener()
            .bind_quic(common::loopback(), identity)
            .await;
        assert!(bound.is_err(), "{guarantees:?}");
        let pusher = runtime.pusher(Trust::by_address());
        // A port nobody serves: an attempt to dial would take its time.
        let fingerprint = Identity::generate().unwrap().fingerprint().unwrap();
        let url = format!("weida://{fingerprint}@127.0.0.1:9/x");
        let error = tokio::time::timeout(Duration::from_millis(200), pusher.connect(&url))
            .await
            .expect("refused at once")
            .unwrap_err();
        assert!(
            matches!(error, Error::Unsupported | Error::Negotiation(_)),
            "{error}"
        );
    }
}

/// 15.4: documents and code cannot drift.
#[test]
fn every_default_of_the_runtime_configuration_is_pinned() {
    let config = RuntimeConfig::default();
    assert_eq!(config.limits, Limits::default());
    assert_eq!(config.max_connections, 1024);
    assert_eq!(config.max_connections_per_peer, 64);
    assert_eq!(config.max_handshakes, 256);
    assert_eq!(config.retry_above_handshakes, 64);
    assert_eq!(config.endpoint_queue, 256);
    assert_eq!(config.worker_threads, 1);
    assert_eq!(config.shutdown_timeout, Duration::from_secs(1));
    assert!(config.guarantees.is_core());
    assert_eq!(config.connect_attempt_timeout, Duration::from_millis(250));
    assert_eq!(config.max_resolved_addresses, 8);
    assert_eq!(config.discovery, Discovery::Aware);
    assert_eq!(config.send_timeout, None);
    assert_eq!(
        (config.outbox_messages, config.outbox_bytes),
        (1000, 8 << 20)
    );
    assert_eq!(config.outbox_full, OutboxFull::Block);
    let policy = ReconnectPolicy {
        initial: Duration::from_millis(100),
        max: Duration::from_secs(30),
        jitter: true,
        max_attempts: None,
        stop_on_peer_closed: false,
    };
    assert_eq!(config.reconnect, policy);
}
