//! Configuration of a runtime.

use std::time::Duration;

use weida_core::{Error, GuaranteeSet, Limits, Result};

use crate::reconnect::{OutboxFull, ReconnectPolicy};
use crate::resolver::{Discovery, SharedResolver};

/// Configuration of one [`Runtime`](crate::Runtime). `[weida 15.1]`
#[derive(Clone, Debug)]
pub struct RuntimeConfig {
    /// Bounds of every connection this runtime dials or accepts.
    pub limits: Limits,
    /// Connections one binding holds at once. 1024. At the cap a dial is
    /// refused before any state exists for it. `[weida CN-8]`
    pub max_connections: usize,
    /// Connections one proved key holds on one binding at once. 64. Anonymous
    /// connections count against `max_connections` only, because two of them
    /// cannot be shown to be one peer. `[weida CN-9]`
    pub max_connections_per_peer: usize,
    /// Arrivals queued per registered path. 256. A full queue is not grown and
    /// drops nothing: its senders wait. `[weida FC-4]`
    pub endpoint_queue: usize,
    /// Addresses tried for one name, in resolver order. 8.
    pub max_resolved_addresses: usize,
    /// Threads of the reactor [`Runtime::owned`](crate::Runtime::owned) starts.
    /// 1; zero is refused.
    pub worker_threads: usize,
    /// Longest a close waits for its sockets to go idle. 1 s, one budget for
    /// the whole call. `[weida DR-1]`
    pub shutdown_timeout: Duration,
    /// What this runtime offers and at once requires. Core. A level this
    /// version cannot honour is refused at the first bind or connect, before
    /// any traffic. `[weida GS-1, GS-9]`
    pub guarantees: GuaranteeSet,
    /// Whether an address without a port may name a set of nodes. It may.
    pub discovery: Discovery,
    /// What a host name means. The system's resolver.
    pub resolver: SharedResolver,
    /// How long a dial waits on one resolved address before it tries the next;
    /// the last one keeps the whole handshake budget. 250 ms. `[weida AD-9]`
    pub connect_attempt_timeout: Duration,
    /// How a lost address is redialled. 100 ms doubling to 30 s, with jitter,
    /// for ever.
    pub reconnect: ReconnectPolicy,
    /// How long an `open` waits for a lost peer to come back; `None`, the
    /// default, waits as long as the redial does. `[weida RD-1]`
    pub send_timeout: Option<Duration>,
    /// Bodies an outbox holds while no peer is live. 1000.
    pub outbox_messages: usize,
    /// Bytes those bodies may sum to. 8 MiB.
    pub outbox_bytes: usize,
    /// What a `send` does at either bound. It waits.
    pub outbox_full: OutboxFull,
    /// Handshakes one binding runs at once. 256. `[weida CN-10]`
    pub max_handshakes: usize,
    /// Handshakes in progress from which an address that has not proved itself
    /// is answered with a stateless Retry. 64; zero always, `usize::MAX` never.
    pub retry_above_handshakes: usize,
}

impl RuntimeConfig {
    /// Refuses guarantees this build does not honour. `[weida GS-9]`
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] for a level that is not built,
    /// [`Error::Negotiation`] for a set that contradicts itself.
    pub(crate) fn check_guarantees(&self) -> Result<()> {
        self.guarantees
            .validate()
            .map_err(|error| Error::Negotiation(error.to_string()))?;
        if self.guarantees.is_core() {
            Ok(())
        } else {
            Err(Error::Unsupported)
        }
    }
}

impl Default for RuntimeConfig {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            max_connections: 1024,
            max_connections_per_peer: 64,
            endpoint_queue: 256,
            max_resolved_addresses: 8,
            worker_threads: 1,
            shutdown_timeout: Duration::from_secs(1),
            guarantees: GuaranteeSet::CORE,
            discovery: Discovery::default(),
            resolver: SharedResolver::default(),
            connect_attempt_timeout: Duration::from_millis(250),
            reconnect: ReconnectPolicy::default(),
            send_timeout: None,
            outbox_messages: 1000,
            outbox_bytes: 8 << 20,
            outbox_full: OutboxFull::Block,
            max_handshakes: 256,
            retry_above_handshakes: 64,
        }
    }
}
