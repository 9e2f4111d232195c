//! Cases of the interop checklist [wire 30]; `server` and `client` are two implementations with one API.

use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;

use super::{client, server};

/// Longest that any single step may take before the case fails.
const PATIENCE: Duration = Duration::from_secs(20);

async fn soon<T>(what: &str, step: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, step).await {
        Ok(value) => value,
        Err(_) => panic!("{what} took longer than {PATIENCE:?}"),
    }
}

/// Polls until `condition` holds.
async fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    soon(what, async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

fn loopback() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

/// A serving side with one binding.
struct Server {
    runtime: server::Runtime,
    listener: server::Listener,
    binding: server::Binding,
    fingerprint: String,
}

impl Server {
    async fn start() -> Self {
        Self::with(
            server::RuntimeConfig::default(),
            server::Identity::generate().unwrap(),
            |identity| identity.into(),
            loopback(),
        )
        .await
    }

    async fn with(
        config: server::RuntimeConfig,
        identity: server::Identity,
        tls: impl FnOnce(server::Identity) -> server::ServerTls,
        bind: SocketAddr,
    ) -> Self {
        let runtime = server::Runtime::new(config).unwrap();
        let listener = runtime.listener();
        let fingerprint = identity.fingerprint().unwrap().to_string();
        let binding = listener.bind_quic(bind, tls(identity)).await.unwrap();
        Self {
            runtime,
            listener,
            binding,
            fingerprint,
        }
    }

    fn url(&self, path: &str) -> String {
        format!(
            "weida://{}@{}{path}",
            self.fingerprint,
            self.binding.local_addr()
        )
    }
}

fn dialler() -> client::Runtime {
    dialler_with(|_| {})
}

fn dialler_with(adjust: impl FnOnce(&mut client::RuntimeConfig)) -> client::Runtime {
    let mut config = client::RuntimeConfig::default();
    config.reconnect.initial = Duration::from_millis(20);
    adjust(&mut config);
    client::Runtime::new(config).unwrap()
}

/// Bytes that differ everywhere, the same for the same length.
fn pattern(len: usize) -> Vec<u8> {
    (0..len)
        .map(|i| (i as u32).wrapping_mul(2_654_435_761).rotate_left(9) as u8)
        .collect()
}

mod requests {
    use super::*;

    async fn echo(replier: server::Replier) {
        loop {
            let Ok(mut request) = replier.accept().await else {
                return;
            };
            let mut meta = server::TransferMeta::default();
            if let Some(content_type) = request.meta().content_type.clone() {
                meta = meta.with_content_type(content_type);
            }
            if let Some(topic) = request.meta().topic.clone() {
                meta = meta.with_topic(topic);
            }
            let mut body = request.take_body();
            let mut reply = request.reply(meta).await.unwrap();
            tokio::io::copy(&mut body, &mut reply).await.unwrap();
            drop(reply.finish().unwrap());
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn wire_30_5_small_empty_and_labelled_bodies_come_back() {
        let server = Server::start().await;
        let serving = echo(server.listener.replier("/echo").unwrap());
        let client = dialler();
        let requester = client.requester(client::Trust::by_address());
        let asking = async {
            soon("connect", requester.connect(&server.url("/echo")))
                .await
                .unwrap();
            for len in [0, 1, 64, 16_383, 16_384, 1_048_576] {
                let body = pattern(len);
                let meta = client::TransferMeta::default()
                    .with_content_type("x/y")
                    .with_topic("a.k")
                    .with_content_len(len as u64);
                let reply = soon("reply", requester.request_with(meta, &body))
                    .await
                    .unwrap();
                assert_eq!(reply.meta().content_type.as_deref(), Some("x/y"));
                assert_eq!(reply.meta().topic.as_deref(), Some("a.k"));
                assert!(
                    soon("body", reply.collect(len + 1)).await.unwrap() == body,
                    "{len} bytes"
                );
            }
        };
        tokio::select! {
            () = serving => panic!("the replier ended"),
            () = asking => {}
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn wire_30_20_both_directions_of_one_exchange_carry_more_than_a_connection_window() {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let server = Server::start().await;
        let serving = echo(server.listener.replier("/echo").unwrap());
        let client = dialler();
        let requester = client.requester(client::Trust::by_address());
        let asking = async {
            soon("connect", requester.connect(&server.url("/echo")))
                .await
                .unwrap();
            let body = pattern(20 * 1024 * 1024);
            let (mut transfer, reply) = requester
                .open(client::TransferMeta::default())
                .await
                .unwrap();
            let sending = async {
                AsyncWriteExt::write_all(&mut transfer, &body)
                    .await
                    .unwrap();
                transfer.finish().unwrap().delivered().await.unwrap();
            };
            let receiving = async {
                let mut incoming = reply.recv().await.unwrap();
                let mut received = Vec::new();
                incoming.read_to_end(&mut received).await.unwrap();
                received
            };
            let ((), received) = soon("echo", async { tokio::join!(sending, receiving) }).await;
            assert!(received == body);
        };
        tokio::select! {
            () = serving => panic!("the replier ended"),
            () = asking => {}
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn wire_30_5_every_refusal_keeps_its_name() {
        let server = Server::start().await;
        let replier = server.listener.replier("/ask").unwrap();
        let _puller = server.listener.puller("/jobs").unwrap();
        let _publisher = server.listener.publisher("/md").unwrap();
        let client = dialler();

        let ask = async |path: &str| {
            let requester = client.requester(client::Trust::by_address());
            soon("connect", requester.connect(&server.url(path)))
                .await
                .unwrap();
            soon("outcome", requester.request(b"x")).await
        };
        assert!(matches!(
            ask("/nope").await,
            Err(client::Error::UnknownEndpoint)
        ));
        assert!(matches!(
            ask("/ask/").await,
            Err(client::Error::UnknownEndpoint)
        ));
        assert!(matches!(
            ask("/jobs").await,
            Err(client::Error::Unsupported)
        ));
        assert!(matches!(ask("/md").await, Err(client::Error::Unsupported)));

        let answers = async {
            replier
                .accept()
                .await
                .unwrap()
                .refuse(server::ErrorCode::Rejected)
                .await;
            replier
                .accept()
                .await
                .unwrap()
                .refuse(server::ErrorCode::UnknownEndpoint)
                .await;
            drop(replier.accept().await.unwrap());
            replier
                .accept()
                .await
                .unwrap()
                .reply(server::TransferMeta::default())
                .await
                .unwrap()
                .finish()
                .unwrap()
        };
        let asks = async {
            assert!(matches!(ask("/ask").await, Err(client::Error::Rejected)));
            assert!(matches!(
                ask("/ask").await,
                Err(client::Error::UnknownEndpoint)
            ));
            assert!(matches!(ask("/ask").await, Err(client::Error::NoReply)));
            let reply = ask("/ask").await.unwrap();
            assert_eq!(soon("empty reply", reply.collect(10)).await.unwrap(), b"");
        };
        let (_delivery, ()) = tokio::join!(answers, asks);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_trace_comes_back_with_the_reply() {
        let server = Server::start().await;
        let replier = server.listener.replier("/ask").unwrap();
        let client = dialler();
        let requester = client.requester(client::Trust::by_address());
        soon("connect", requester.connect(&server.url("/ask")))
            .await
            .unwrap();
        let trace = client::new_trace();
        let meta = client::TransferMeta::default().with_trace(trace);
        let answer = async {
            let request = replier.accept().await.unwrap();
            assert_eq!(
                request.meta().trace.as_ref().map(ToString::to_string),
                Some(trace.to_string())
            );
            request
                .reply(server::TransferMeta::default())
                .await
                .unwrap()
                .finish()
                .unwrap()
        };
        let (_delivery, reply) = soon("exchange", async {
            tokio::join!(answer, requester.request_with(meta, b"x"))
        })
        .await;
        assert_eq!(
            reply
                .unwrap()
                .meta()
                .trace
                .as_ref()
                .map(ToString::to_string),
            Some(trace.to_string())
        );
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_dropped_reply_stream_cancels_the_exchange() {
        let server = Server::start().await;
        let replier = server.listener.replier("/ask").unwrap();
        let client = dialler();
        let requester = client.requester(client::Trust::by_address());
        soon("connect", requester.connect(&server.url("/ask")))
            .await
            .unwrap();
        let (transfer, reply) = requester
            .open(client::TransferMeta::default())
            .await
            .unwrap();
        drop(transfer.finish().unwrap());
        let request = soon("request", replier.accept()).await.unwrap();
        let canceled = request.canceled();
        drop(reply);
        soon("the cancel", canceled).await;
    }
}

mod pushes {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn wire_30_6_pushes_arrive_with_their_labels() {
        let server = Server::start().await;
        let puller = server.listener.puller("/jobs").unwrap();
        let client = dialler();
        let pusher = client.pusher(client::Trust::by_address());
        soon("connect", pusher.connect(&server.url("/jobs")))
            .await
            .unwrap();
        for len in [0, 1, 64, 1024, 70_000] {
            let meta = client::TransferMeta::default()
                .with_topic("cmd.7")
                .with_content_type("t/x");
            soon("send", pusher.send_with(meta, &pattern(len)))
                .await
                .unwrap();
            let transfer = soon("arrival", puller.recv()).await.unwrap();
            assert_eq!(transfer.meta().endpoint.as_deref(), Some("/jobs"));
            assert_eq!(transfer.meta().topic.as_deref(), Some("cmd.7"));
            assert_eq!(transfer.meta().content_type.as_deref(), Some("t/x"));
            assert!(
                transfer.meta().peer.is_none(),
                "an anonymous dialler is nobody"
            );
            assert!(soon("body", transfer.collect(len + 1)).await.unwrap() == pattern(len));
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_thousand_small_pushes_arrive_once_each() {
        let server = Server::start().await;
        let puller = server.listener.puller("/jobs").unwrap();
        let client = dialler();
        let pusher = client.pusher(client::Trust::by_address());
        soon("connect", pusher.connect(&server.url("/jobs")))
            .await
            .unwrap();
        let sending = async {
            for number in 0..1000u32 {
                pusher.send(&number.to_be_bytes()).await.unwrap();
            }
        };
        let receiving = async {
            let mut seen = std::collections::BTreeSet::new();
            while seen.len() < 1000 {
                let body = puller.recv().await.unwrap().collect(16).await.unwrap();
                assert!(
                    seen.insert(u32::from_be_bytes(body.try_into().unwrap())),
                    "no duplicate"
                );
            }
        };
        soon("a thousand", async { tokio::join!(sending, receiving) }).await;
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn wire_30_6_a_refused_large_push_learns_why() {
        let server = Server::start().await;
        let _replier = server.listener.replier("/ask").unwrap();
        let puller = server.listener.puller("/jobs").unwrap();
        let client = dialler();
        let push = async |path: &str| {
            let pusher = client.pusher(client::Trust::by_address());
            soon("connect", pusher.connect(&server.url(path)))
                .await
                .unwrap();
            let mut transfer = pusher.open(client::TransferMeta::default()).await.unwrap();
            // Larger than the peer's stream window: the refusal is certain to be seen.
            let written = soon("the write", transfer.write_all(&pattern(2 * 1024 * 1024))).await;
            match written {
                Ok(()) => soon("the receipt", transfer.finish().unwrap().delivered()).await,
                Err(error) => Err(error),
            }
        };
        assert!(matches!(
            push("/nope").await,
            Err(client::Error::UnknownEndpoint)
        ));
        assert!(matches!(
            push("/ask").await,
            Err(client::Error::Unsupported)
        ));
        let dropping = async { drop(puller.recv().await.unwrap()) };
        let ((), refused) = tokio::join!(dropping, push("/jobs"));
        assert!(
            matches!(refused, Err(client::Error::Rejected)),
            "{refused:?}"
        );
        let capped = async { puller.recv().await.unwrap().collect(1000).await };
        let (over, refused) = tokio::join!(capped, push("/jobs"));
        assert!(over.is_err());
        assert!(
            matches!(refused, Err(client::Error::Rejected)),
            "{refused:?}"
        );
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_canceled_push_is_an_error_and_never_an_end() {
        let server = Server::start().await;
        let puller = server.listener.puller("/jobs").unwrap();
        let client = dialler();
        let pusher = client.pusher(client::Trust::by_address());
        soon("connect", pusher.connect(&server.url("/jobs")))
            .await
            .unwrap();
        let mut transfer = pusher.open(client::TransferMeta::default()).await.unwrap();
        transfer.write_all(&pattern(4096)).await.unwrap();
        let arrived = soon("arrival", puller.recv()).await.unwrap();
        transfer.cancel();
        assert!(matches!(
            soon("the end", arrived.collect(1 << 20)).await,
            Err(server::Error::Canceled)
        ));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_large_stream_arrives_whole() {
        use tokio::io::AsyncReadExt;
        let server = Server::start().await;
        let puller = server.listener.puller("/jobs").unwrap();
        let client = dialler();
        let pusher = client.pusher(client::Trust::by_address());
        soon("connect", pusher.connect(&server.url("/jobs")))
            .await
            .unwrap();
        let body = pattern(64 * 1024 * 1024);
        let sending = async {
            let mut transfer = pusher.open(client::TransferMeta::default()).await.unwrap();
            for chunk in body.chunks(256 * 1024) {
                transfer.write_all(chunk).await.unwrap();
            }
            transfer.finish().unwrap().delivered().await.unwrap();
        };
        let receiving = async {
            let mut received = Vec::new();
            puller
                .recv()
                .await
                .unwrap()
                .read_to_end(&mut received)
                .await
                .unwrap();
            received
        };
        let ((), received) = soon("64 MiB", async { tokio::join!(sending, receiving) }).await;
        assert!(received == body);
    }
}

mod fan_out {
    use super::*;

    async fn next(subscriber: &client::Subscriber) -> (String, Vec<u8>) {
        let transfer = soon("a copy", subscriber.recv()).await.unwrap();
        let topic = transfer.meta().topic.clone().unwrap();
        (
            topic,
            soon("its body", transfer.collect(1 << 20)).await.unwrap(),
        )
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn wire_30_7_filters_select_and_overlap_gives_one_copy() {
        let server = Server::start().await;
        let publisher = server.listener.publisher("/md").unwrap();
        let client = dialler();
        let subscriber = client.subscriber(client::Trust::by_address());
        subscriber.subscribe("px.*").await.unwrap();
        subscriber.subscribe("px.#").await.unwrap();
        subscriber.subscribe("px.#").await.unwrap();
        soon("connect", subscriber.connect(&server.url("/md")))
            .await
            .unwrap();
        eventually("two filters", || publisher.filter_count() == 2).await;
        assert_eq!(publisher.subscriber_count(), 1);
        assert_eq!(publisher.publish("fx.eur", "no").unwrap(), 0);
        assert_eq!(publisher.publish("px.eur", "1.08").unwrap(), 1);
        assert_eq!(
            next(&subscriber).await,
            ("px.eur".to_owned(), b"1.08".to_vec())
        );
        assert_eq!(publisher.publish("px", "parent").unwrap(), 1);
        assert_eq!(next(&subscriber).await.0, "px");
        subscriber.unsubscribe("px.#").await.unwrap();
        eventually("one filter", || publisher.filter_count() == 1).await;
        assert_eq!(publisher.publish("px.a.b", "no").unwrap(), 0);
        assert_eq!(publisher.publish("px.", "").unwrap(), 1);
        assert_eq!(next(&subscriber).await, ("px.".to_owned(), Vec::new()));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn wire_30_7_a_subscription_waits_for_its_publisher() {
        let server = Server::start().await;
        let client = dialler();
        let subscriber = client.subscriber(client::Trust::by_address());
        subscriber.subscribe("").await.unwrap();
        soon("connect", subscriber.connect(&server.url("/late")))
            .await
            .unwrap();
        // Something that needs a round trip on the same connection orders the SUBSCRIBE before the registration often enough;
        // what must hold is that it is served whichever came first.
        let publisher = server.listener.publisher("/late").unwrap();
        eventually("the recorded filter", || publisher.filter_count() == 1).await;
        assert_eq!(publisher.publish("any.topic", "x").unwrap(), 1);
        assert_eq!(next(&subscriber).await.0, "any.topic");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_streamed_copy_arrives_whole() {
        let server = Server::start().await;
        let publisher = server.listener.publisher("/md").unwrap();
        let client = dialler();
        let subscriber = client.subscriber(client::Trust::by_address());
        subscriber.subscribe("big").await.unwrap();
        soon("connect", subscriber.connect(&server.url("/md")))
            .await
            .unwrap();
        eventually("the filter", || publisher.filter_count() == 1).await;
        let body = pattern(3 * 1024 * 1024);
        let sending = async {
            let mut fan_out = publisher.open("big");
            for chunk in body.chunks(100_000) {
                fan_out
                    .write_within(chunk.to_vec(), PATIENCE)
                    .await
                    .unwrap();
            }
            assert_eq!(fan_out.finish(), 1);
        };
        let receiving = async {
            let transfer = subscriber.recv().await.unwrap();
            transfer.collect(4 << 20).await.unwrap()
        };
        let ((), received) = soon("the stream", async { tokio::join!(sending, receiving) }).await;
        assert!(received == body);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn wire_30_16_a_redial_sends_the_filters_again() {
        let identity = server::Identity::generate().unwrap();
        let first = Server::with(
            server::RuntimeConfig::default(),
            identity.clone(),
            |identity| identity.into(),
            loopback(),
        )
        .await;
        let publisher = first.listener.publisher("/md").unwrap();
        let client = dialler();
        let subscriber = client.subscriber(client::Trust::by_address());
        subscriber.subscribe("px.*").await.unwrap();
        soon("connect", subscriber.connect(&first.url("/md")))
            .await
            .unwrap();
        eventually("the filter", || publisher.filter_count() == 1).await;
        let bind = first.binding.local_addr();
        drop(publisher);
        soon("shutdown", first.runtime.shutdown()).await;

        let second = Server::with(
            server::RuntimeConfig::default(),
            identity,
            |identity| identity.into(),
            bind,
        )
        .await;
        let publisher = second.listener.publisher("/md").unwrap();
        eventually("the filter again", || publisher.filter_count() == 1).await;
        publisher.publish("px.eur", "back").unwrap();
        assert_eq!(
            next(&subscriber).await,
            ("px.eur".to_owned(), b"back".to_vec())
        );
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_stalled_subscriber_loses_copies_that_are_counted() {
        let mut config = server::RuntimeConfig::default();
        config.limits.subscriber_buffer_bytes = 256 * 1024;
        let server = Server::with(
            config,
            server::Identity::generate().unwrap(),
            |identity| identity.into(),
            loopback(),
        )
        .await;
        let publisher = server.listener.publisher("/md").unwrap();
        let client = dialler_with(|config| {
            config.endpoint_queue = 4;
            config.limits.max_concurrent_uni_streams = 8;
        });
        let subscriber = client.subscriber(client::Trust::by_address());
        subscriber.subscribe("").await.unwrap();
        soon("connect", subscriber.connect(&server.url("/md")))
            .await
            .unwrap();
        eventually("the filter", || publisher.filter_count() == 1).await;
        let payload = bytes::Bytes::from(pattern(16 * 1024));
        for _ in 0..500 {
            publisher.publish("flood", payload.clone()).unwrap();
        }
        assert!(publisher.dropped() > 0);
        assert_eq!(
            publisher.dropped_on("flood").unwrap().total(),
            publisher.dropped()
        );
        // The subscription survives its drops.
        assert_eq!(publisher.filter_count(), 1);
        assert_eq!(next(&subscriber).await.1.len(), 16 * 1024);
    }
}

mod identities {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn wire_30_12_an_any_key_binding_names_the_proved_key() {
        let server = Server::with(
            server::RuntimeConfig::default(),
            server::Identity::generate().unwrap(),
            |identity| server::ServerTls::new(identity).require_client(server::ClientTrust::AnyKey),
            loopback(),
        )
        .await;
        let puller = server.listener.puller("/jobs").unwrap();
        let client = dialler();
        let identity = client::Identity::generate().unwrap();
        let proved = identity.fingerprint().unwrap().to_string();
        let pusher = client
            .pusher(client::ClientTls::new(client::Trust::by_address()).with_identity(identity));
        soon("connect", pusher.connect(&server.url("/jobs")))
            .await
            .unwrap();
        soon("send", pusher.send(b"x")).await.unwrap();
        let transfer = soon("arrival", puller.recv()).await.unwrap();
        let Some(server::PeerIdentity::Key(fingerprint)) = &transfer.meta().peer else {
            panic!("no key")
        };
        assert_eq!(fingerprint.to_string(), proved);
        assert!(transfer.meta().peer_chain.is_some());
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn wire_30_12_an_anonymous_client_is_refused_where_keys_are_required() {
        let server = Server::with(
            server::RuntimeConfig::default(),
            server::Identity::generate().unwrap(),
            |identity| server::ServerTls::new(identity).require_client(server::ClientTrust::AnyKey),
            loopback(),
        )
        .await;
        let _puller = server.listener.puller("/jobs").unwrap();
        let client = dialler();
        let pusher = client.pusher(client::Trust::by_address());
        assert!(
            soon("the refusal", pusher.connect(&server.url("/jobs")))
                .await
                .is_err()
        );
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn wire_30_12_a_trusted_pin_admits_its_key_alone() {
        let known = client::Identity::generate().unwrap();
        let pin = known
            .fingerprint()
            .unwrap()
            .to_string()
            .parse::<server::Fingerprint>()
            .unwrap();
        let server = Server::with(
            server::RuntimeConfig::default(),
            server::Identity::generate().unwrap(),
            |identity| server::ServerTls::new(identity).require_client(server::Trust::pin(pin)),
            loopback(),
        )
        .await;
        let _puller = server.listener.puller("/jobs").unwrap();
        let client = dialler();
        let dial = async |identity: client::Identity| {
            let pusher = client.pusher(
                client::ClientTls::new(client::Trust::by_address()).with_identity(identity),
            );
            soon("the verdict", pusher.connect(&server.url("/jobs"))).await
        };
        dial(known).await.unwrap();
        assert!(dial(client::Identity::generate().unwrap()).await.is_err());
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn wire_30_13_a_wrong_pin_is_untrusted_with_the_presented_key() {
        let server = Server::start().await;
        let _puller = server.listener.puller("/jobs").unwrap();
        let client = dialler();
        let other = client::Identity::generate().unwrap().fingerprint().unwrap();
        let pusher = client.pusher(client::Trust::by_address());
        let url = format!("weida://{other}@{}/jobs", server.binding.local_addr());
        match soon("the verdict", pusher.connect(&url)).await {
            Err(client::Error::Untrusted(presented)) => {
                assert_eq!(presented.to_string(), server.fingerprint)
            }
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn an_anchor_accepts_its_name_and_no_other() {
        let identity = server::Identity::generate_for(["localhost", "127.0.0.1"]).unwrap();
        let pem = identity.certificate_pem().unwrap();
        let server = Server::with(
            server::RuntimeConfig::default(),
            identity,
            |identity| identity.into(),
            "0.0.0.0:0".parse().unwrap(),
        )
        .await;
        let _puller = server.listener.puller("/jobs").unwrap();
        let client = dialler();
        let port = server.binding.local_addr().port();
        let dial = async |host: &str| {
            let pusher = client.pusher(client::Trust::anchor(pem.clone()));
            soon(
                "the verdict",
                pusher.connect(&format!("weida://{host}:{port}/jobs")),
            )
            .await
        };
        dial("127.0.0.1").await.unwrap();
        dial("localhost").await.unwrap();
        assert!(dial("127.0.0.2").await.is_err());
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_reply_names_the_server() {
        let server = Server::start().await;
        let replier = server.listener.replier("/ask").unwrap();
        let client = dialler();
        let requester = client.requester(client::Trust::by_address());
        soon("connect", requester.connect(&server.url("/ask")))
            .await
            .unwrap();
        let answer = async {
            replier
                .accept()
                .await
                .unwrap()
                .reply(server::TransferMeta::default())
                .await
                .unwrap()
                .finish()
                .unwrap()
        };
        let (_delivery, reply) = soon("exchange", async {
            tokio::join!(answer, requester.request(b"who"))
        })
        .await;
        let reply = reply.unwrap();
        let Some(client::PeerIdentity::Key(fingerprint)) = &reply.meta().peer else {
            panic!("no key")
        };
        assert_eq!(fingerprint.to_string(), server.fingerprint);
    }
}

mod closing {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn a_drain_lets_finished_pushes_arrive() {
        let server = Server::start().await;
        let puller = server.listener.puller("/jobs").unwrap();
        let client = dialler();
        let pusher = client.pusher(client::Trust::by_address());
        soon("connect", pusher.connect(&server.url("/jobs")))
            .await
            .unwrap();
        for number in 0..100u8 {
            pusher.send(&[number]).await.unwrap();
        }
        drop(pusher);
        let drained = soon("the drain", client.drain(Duration::from_secs(10))).await;
        assert_eq!(drained.outstanding, 0);
        let mut seen = 0;
        while seen < 100 {
            soon("arrival", puller.recv())
                .await
                .unwrap()
                .collect(8)
                .await
                .unwrap();
            seen += 1;
        }
    }

    /// The handle of a binding is not the binding: it serves until it is closed, or its runtime ends.
    #[tokio::test(flavor = "multi_thread")]
    async fn a_binding_outlives_its_handle_and_ends_with_its_runtime() {
        let server = Server::start().await;
        let puller = server.listener.puller("/jobs").unwrap();
        let url = server.url("/jobs");
        let Server {
            runtime,
            listener,
            binding,
            ..
        } = server;
        let client = dialler();
        let pusher = client.pusher(client::Trust::by_address());
        soon("connect", pusher.connect(&url)).await.unwrap();
        drop(binding);
        soon("send", pusher.send(b"old")).await.unwrap();
        drop(soon("arrival", puller.recv()).await.unwrap());
        let other = dialler();
        let late = other.pusher(client::Trust::by_address());
        soon("connect", late.connect(&url)).await.unwrap();
        soon("send", late.send(b"new")).await.unwrap();
        drop(soon("arrival", puller.recv()).await.unwrap());

        drop((puller, listener));
        soon("the end", runtime.shutdown()).await;
        eventually("both to notice", || {
            pusher.peer_count() + late.peer_count() == 0
        })
        .await;
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_server_that_leaves_while_asked_leaves_the_outcome_unknown() {
        let server = Server::start().await;
        let replier = server.listener.replier("/ask").unwrap();
        let client = dialler();
        let requester = client.requester(client::Trust::by_address());
        soon("connect", requester.connect(&server.url("/ask")))
            .await
            .unwrap();
        let leaving = async {
            let mut request = replier.accept().await.unwrap();
            request.body().read_capped(64).await.unwrap();
            server.binding.close().await;
            drop(request);
        };
        let ((), outcome) = soon("the outcome", async {
            tokio::join!(leaving, requester.request(b"x"))
        })
        .await;
        assert!(
            matches!(outcome, Err(client::Error::Indeterminate)),
            "{outcome:?}"
        );
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_disconnected_peer_hears_of_it_and_may_return() {
        let server = Server::with(
            server::RuntimeConfig::default(),
            server::Identity::generate().unwrap(),
            |identity| server::ServerTls::new(identity).require_client(server::ClientTrust::AnyKey),
            loopback(),
        )
        .await;
        let puller = server.listener.puller("/jobs").unwrap();
        let client = dialler();
        let identity = client::Identity::generate().unwrap();
        let key = identity
            .fingerprint()
            .unwrap()
            .to_string()
            .parse::<server::Fingerprint>()
            .unwrap();
        let pusher = client
            .pusher(client::ClientTls::new(client::Trust::by_address()).with_identity(identity));
        let mut events = pusher.events();
        soon("connect", pusher.connect(&server.url("/jobs")))
            .await
            .unwrap();
        soon("send", pusher.send(b"1")).await.unwrap();
        drop(soon("arrival", puller.recv()).await.unwrap());
        assert_eq!(server.binding.disconnect(key), 1);
        soon("the redial", async {
            let mut lost = false;
            loop {
                match events.recv().await.expect("the endpoint lives") {
                    client::PeerEvent::Lost { .. } => lost = true,
                    client::PeerEvent::Connected { .. } if lost => break,
                    _ => {}
                }
            }
        })
        .await;
        soon("send", pusher.send(b"2")).await.unwrap();
        assert_eq!(
            soon("arrival", puller.recv())
                .await
                .unwrap()
                .collect(8)
                .await
                .unwrap(),
            b"2"
        );
    }
}
