//! A publisher's runtime and the runtimes of its subscribers, on loopback.

use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;

use weida::{
    Binding, Fingerprint, Identity, IncomingTransfer, Limits, Listener, Runtime, RuntimeConfig,
    ServerTls, Subscriber, Trust,
};

/// Anything that takes longer is a failure.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// The serving side.
pub(crate) struct World {
    pub(crate) runtime: Runtime,
    pub(crate) listener: Listener,
    pub(crate) binding: Binding,
    pub(crate) key: Fingerprint,
    pub(crate) identity: Identity,
    /// Subscribers get a runtime each, so each has a connection of its own.
    config: RuntimeConfig,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with_limits(Limits::default()).await
    }

    pub(crate) async fn with_limits(limits: Limits) -> Self {
        let identity = Identity::generate().unwrap();
        Self::serving(limits, identity.clone().into(), identity, loopback()).await
    }

    pub(crate) async fn serving(
        limits: Limits,
        tls: ServerTls,
        identity: Identity,
        addr: SocketAddr,
    ) -> Self {
        let config = RuntimeConfig {
            limits,
            ..RuntimeConfig::default()
        };
        let runtime = Runtime::new(config.clone()).unwrap();
        let listener = runtime.listener();
        let binding = listener.bind_quic(addr, tls).await.unwrap();
        Self {
            runtime,
            listener,
            binding,
            key: identity.fingerprint().unwrap(),
            identity,
            config,
        }
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.binding.local_addr()
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("weida://{}@{}{path}", self.key, self.addr())
    }

    /// A runtime for one more subscriber.
    pub(crate) fn client(&self) -> Runtime {
        Runtime::new(self.config.clone()).unwrap()
    }

    /// A subscriber connected to `path` with `filters`.
    pub(crate) async fn subscriber(&self, path: &str, filters: &[&str]) -> Client {
        let runtime = self.client();
        let subscriber = runtime.subscriber(Trust::by_address());
        for filter in filters {
            soon(subscriber.subscribe(filter)).await.unwrap();
        }
        soon(subscriber.connect(&self.url(path))).await.unwrap();
        Client {
            subscriber,
            _runtime: runtime,
        }
    }
}

/// A subscriber and the runtime it lives in.
pub(crate) struct Client {
    pub(crate) subscriber: Subscriber,
    _runtime: Runtime,
}

impl Client {
    /// The next message: topic and payload.
    pub(crate) async fn next(&self) -> (String, Vec<u8>) {
        let transfer = soon(self.subscriber.recv()).await.unwrap();
        taken(transfer).await
    }

    /// Up to `count` messages, sorted: copies come in any order.
    pub(crate) async fn topics(&self, count: usize) -> Vec<String> {
        let mut topics = Vec::new();
        for _ in 0..count {
            topics.push(self.next().await.0);
        }
        topics.sort_unstable();
        topics
    }

    /// Fails if anything arrives within a moment.
    pub(crate) async fn hears_nothing(&self) {
        let moment = Duration::from_millis(150);
        let heard = tokio::time::timeout(moment, self.subscriber.recv()).await;
        assert!(heard.is_err(), "{heard:?}");
    }
}

pub(crate) async fn taken(transfer: IncomingTransfer) -> (String, Vec<u8>) {
    let topic = transfer.meta().topic.clone().unwrap().to_string();
    let payload = soon(transfer.collect(64 << 20)).await.unwrap();
    (topic, payload.to_vec())
}

pub(crate) fn loopback() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

/// Fails the test instead of hanging it.
pub(crate) async fn soon<F: Future>(what: F) -> F::Output {
    let what = tokio::time::timeout(PATIENCE, what).await;
    what.expect("took too long")
}

/// Waits until `condition` holds.
pub(crate) async fn eventually(mut condition: impl FnMut() -> bool) {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while !condition() {
        let left = tokio::time::Instant::now() < deadline;
        assert!(left, "the condition never held");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
