//! The process-level container: where everything starts and ends.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use weida_core::Result;

use crate::config::RuntimeConfig;
use crate::drain::{self, Drained};
use crate::endpoint::{Pusher, Requester, Subscriber};
use crate::exec::{Exec, Reactor};
use crate::listener::Listener;
use crate::shared::{Life, Shared};
use crate::stream::Peer;
use crate::tls::ClientTls;

/// A process-level container of executor, sockets, connections and counters.
///
/// Clones are the same runtime; a process may have several, which share
/// nothing. Every task, timer and lookup runs on the Tokio runtime it holds, so
/// the futures it hands out may be driven by any executor. `[weida 4]`
///
/// Dropping the last handle, endpoints included, closes everything abortively
/// like [`Runtime::shutdown`] without waiting.
#[derive(Clone, Debug)]
pub struct Runtime {
    life: Arc<Life>,
}

impl Runtime {
    /// A runtime on the Tokio runtime of the calling thread.
    ///
    /// # Errors
    ///
    /// [`Error::Runtime`](crate::Error::Runtime) when there is none.
    pub fn new(config: RuntimeConfig) -> Result<Self> {
        Ok(Self::with_exec(Exec::ambient()?, config, None))
    }

    /// A runtime on the Tokio runtime `handle` names.
    pub fn with_handle(handle: Handle, config: RuntimeConfig) -> Self {
        Self::with_exec(Exec::from_handle(handle), config, None)
    }

    /// A runtime with a reactor of its own, of
    /// [`RuntimeConfig::worker_threads`] threads, which stops in the background
    /// with the last handle. `[weida RT-3]`
    ///
    /// # Errors
    ///
    /// [`Error::Runtime`](crate::Error::Runtime) for zero threads, or when the
    /// system refuses them.
    pub fn owned(config: RuntimeConfig) -> Result<Self> {
        let reactor = Reactor::new(config.worker_threads)?;
        Ok(Self::with_exec(reactor.exec(), config, Some(reactor)))
    }

    fn with_exec(exec: Exec, config: RuntimeConfig, reactor: Option<Reactor>) -> Self {
        Self {
            life: Life::new(Shared::new(exec, config), reactor),
        }
    }

    /// Outgoing transfers reset because their deadline passed.
    pub fn expired_transfers(&self) -> u64 {
        self.shared().expired()
    }

    /// Repeated messages that were read and thrown away under bounded
    /// deduplication. Always 0 in this version, which negotiates none.
    pub fn suppressed_duplicates(&self) -> u64 {
        0
    }

    /// An empty namespace of endpoint paths; nothing is bound yet.
    pub fn listener(&self) -> Listener {
        Listener::new(Arc::clone(&self.life))
    }

    /// A raw dialling peer, below the patterns.
    pub fn peer(&self, tls: impl Into<ClientTls>) -> Peer {
        Peer::new(Arc::clone(&self.life), tls.into())
    }

    /// A requester that dials on the terms of `tls`; a bare
    /// [`Trust`](crate::Trust) dials anonymously.
    pub fn requester(&self, tls: impl Into<ClientTls>) -> Requester {
        Requester::new(Arc::clone(&self.life), tls.into())
    }

    /// A pusher that dials on the terms of `tls`.
    pub fn pusher(&self, tls: impl Into<ClientTls>) -> Pusher {
        Pusher::new(Arc::clone(&self.life), tls.into())
    }

    /// A subscriber that dials on the terms of `tls`.
    ///
    /// Copies queue up to [`RuntimeConfig::endpoint_queue`]; one that stops
    /// reading loses messages at the publisher and slows nobody.
    pub fn subscriber(&self, tls: impl Into<ClientTls>) -> Subscriber {
        Subscriber::new(Arc::clone(&self.life), tls.into())
    }

    /// Closes everything with SHUTDOWN and waits, at most
    /// [`RuntimeConfig::shutdown_timeout`] for the whole call, for the sockets
    /// to go idle.
    ///
    /// Abortive: what is in flight may never arrive. When it returns, every
    /// port is free again even if handles survive. `[weida DR-1, DR-7]`
    pub async fn shutdown(self) {
        let limit = self.shared().config.shutdown_timeout;
        drain::close(self.shared(), limit).await;
    }

    /// Stops admission, gives transfers already finished until `deadline` to
    /// reach the peer's transport, then closes as [`Runtime::shutdown`] does in
    /// what is left of it, and in 100 ms at least, so that peers hear of it.
    ///
    /// What was delivered is a count of transport receipts, never an
    /// acknowledgement; what is outstanding is a number, not an error.
    /// Unfinished transfers are the application's and not part of it.
    /// `[weida DR-2, DR-3, DR-5, DR-8]`
    pub async fn drain(self, deadline: Duration) -> Drained {
        drain::drain(self.shared(), deadline).await
    }

    /// The configuration this runtime was created with.
    pub fn config(&self) -> &RuntimeConfig {
        &self.shared().config
    }

    /// The executor this runtime drives its work on.
    pub fn exec(&self) -> &Exec {
        &self.shared().exec
    }

    fn shared(&self) -> &Arc<Shared> {
        &self.life.shared
    }
}
