//! Two runtimes on loopback, and patience with a deadline.
#![expect(dead_code, reason = "each test file uses its part")]

pub(crate) mod raw;
pub(crate) mod relay;

use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;

use weida::{Binding, Fingerprint, Identity, Listener, Runtime, RuntimeConfig};

/// Anything that takes longer than this is a failure.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// One serving runtime: a listener bound on loopback.
pub(crate) struct Server {
    pub(crate) runtime: Runtime,
    pub(crate) listener: Listener,
    pub(crate) binding: Binding,
    pub(crate) identity: Identity,
    pub(crate) fingerprint: Fingerprint,
}

impl Server {
    pub(crate) async fn start() -> Self {
        Self::with(RuntimeConfig::default()).await
    }

    pub(crate) async fn with(config: RuntimeConfig) -> Self {
        let identity = Identity::generate().unwrap();
        Self::bound(config, identity, loopback()).await
    }

    pub(crate) async fn bound(config: RuntimeConfig, identity: Identity, addr: SocketAddr) -> Self {
        let runtime = Runtime::new(config).unwrap();
        let listener = runtime.listener();
        let binding = listener.bind_quic(addr, identity.clone()).await.unwrap();
        Self {
            fingerprint: identity.fingerprint().unwrap(),
            runtime,
            listener,
            binding,
            identity,
        }
    }

    /// The dialable address of `path`, pinning this server's key.
    pub(crate) fn url(&self, path: &str) -> String {
        format!(
            "weida://{}@{}{path}",
            self.fingerprint,
            self.binding.local_addr()
        )
    }

    /// The same address reached at `via`, for a relay in between.
    pub(crate) fn url_via(&self, via: SocketAddr, path: &str) -> String {
        format!("weida://{}@{via}{path}", self.fingerprint)
    }
}

pub(crate) fn loopback() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

pub(crate) fn client() -> Runtime {
    Runtime::new(RuntimeConfig::default()).unwrap()
}

/// Fails the test instead of hanging it.
pub(crate) async fn soon<F: Future>(what: F) -> F::Output {
    tokio::time::timeout(PATIENCE, what)
        .await
        .expect("took too long")
}

/// Waits until `condition` holds.
pub(crate) async fn eventually(mut condition: impl FnMut() -> bool) {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while !condition() {
        assert!(
            tokio::time::Instant::now() < deadline,
            "the condition never held"
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Whether `future` is still waiting after a moment in which it could have run.
pub(crate) async fn stays_pending<F: Future>(future: F) -> bool {
    tokio::time::timeout(Duration::from_millis(200), future)
        .await
        .is_err()
}
