//! One concrete transport of a listener, here QUIC.

use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quinn::{Endpoint, Incoming};
use tokio_util::sync::CancellationToken;
use weida_core::{Error, Fingerprint, PeerIdentity, Result, codes};

use super::doorway::{Doorway, Handshaking, Place};
use super::table::Table;
use crate::connection::{Connection, ConnectionId, Proved, WeakConnection, halves};
use crate::shared::{Life, Shared};
use crate::socket::Socket;
use crate::tls::{self, ServerTls};
use crate::transport::{self, Role};

/// One concrete transport binding of a [`Listener`](crate::Listener).
///
/// It serves until [`Binding::close`] or the end of its runtime; dropping this
/// handle changes nothing, as in the published crate.
pub struct Binding {
    inner: Arc<BindingInner>,
    life: Arc<Life>,
}

impl Binding {
    /// Starts serving `table` on `socket`.
    pub(super) fn serve(
        life: &Arc<Life>,
        table: &Arc<Table>,
        socket: Arc<Socket>,
        tls: &ServerTls,
    ) -> Result<Self> {
        let shared = &life.shared;
        shared.config.check_guarantees()?;
        if shared.is_draining() {
            return Err(Error::ConnectionLost(weida_core::LossCause::LocallyClosed));
        }
        let mut config = quinn::ServerConfig::with_crypto(tls::server_crypto(tls)?);
        config.transport_config(transport::config(&shared.config.limits, Role::Binding));
        let local_addr = quinn::AsyncUdpSocket::local_addr(&*socket)?;
        let reset = tls.identity.material()?.reset_key(local_addr);
        let endpoint = Endpoint::new_with_abstract_socket(
            transport::endpoint_config(Some(reset)),
            Some(config),
            socket.clone(),
            shared.exec.quinn(),
        )?;
        let inner = Arc::new(BindingInner {
            endpoint,
            socket,
            local_addr,
            stop: shared.stop.child_token(),
            doorway: Arc::default(),
            shared: Arc::clone(shared),
            table: Arc::clone(table),
            live: Mutex::default(),
        });
        shared.track_binding(&inner);
        shared.tasks.spawn(accept(Arc::clone(&inner)));
        Ok(Self {
            inner,
            life: Arc::clone(life),
        })
    }

    /// The address bound, with the port the system picked.
    pub fn local_addr(&self) -> SocketAddr {
        self.inner.local_addr
    }

    /// Stops accepting, closes this binding's connections with SHUTDOWN, and
    /// waits for the socket to go idle for at most
    /// [`RuntimeConfig::shutdown_timeout`](crate::RuntimeConfig::shutdown_timeout).
    ///
    /// When it returns, the port is free again even if handles survive.
    /// `[weida DR-7]`
    pub async fn close(&self) {
        self.inner.close_now();
        let shared = &self.life.shared;
        let limit = shared.config.shutdown_timeout;
        shared.exec.timeout(limit, self.inner.wait_idle()).await;
        self.inner.free_port();
    }

    /// Connections of this binding that are open now, those of anonymous
    /// clients included.
    pub fn connection_count(&self) -> usize {
        let connections = self.inner.connections();
        connections.iter().filter(|it| it.is_live()).count()
    }

    /// Closes every live connection of `peer` on this binding with REJECTED and
    /// returns how many there were.
    ///
    /// Not a ban: the dialler sees a deliberate close and redials by its own
    /// policy. An anonymous client cannot be named. `[weida ID-11]`
    pub fn disconnect(&self, peer: Fingerprint) -> usize {
        let mut closed = 0;
        for connection in self.inner.connections() {
            let proved = connection.peer().as_ref().and_then(PeerIdentity::key);
            if proved == Some(peer) && connection.is_live() {
                connection.close(codes::REJECTED, "disconnected by the application");
                closed += 1;
            }
        }
        closed
    }
}

impl fmt::Debug for Binding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Binding")
            .field("local_addr", &self.inner.local_addr)
            .finish_non_exhaustive()
    }
}

pub(crate) struct BindingInner {
    endpoint: Endpoint,
    socket: Arc<Socket>,
    local_addr: SocketAddr,
    stop: CancellationToken,
    doorway: Arc<Doorway>,
    shared: Arc<Shared>,
    table: Arc<Table>,
    /// Bounded by `max_connections`: an entry goes with its place.
    live: Mutex<HashMap<ConnectionId, WeakConnection>>,
}

impl BindingInner {
    fn live(&self) -> MutexGuard<'_, HashMap<ConnectionId, WeakConnection>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn connections(&self) -> Vec<Connection> {
        self.live()
            .values()
            .filter_map(WeakConnection::upgrade)
            .collect()
    }

    /// Ends acceptance and every connection, without waiting.
    pub(crate) fn close_now(&self) {
        self.stop.cancel();
        self.endpoint
            .close(halves::varint(codes::SHUTDOWN), b"binding closed");
    }

    /// Waits until the last connection of this socket is gone.
    pub(crate) async fn wait_idle(&self) {
        self.endpoint.wait_idle().await;
    }

    /// Closes the descriptor under handles that survive.
    pub(crate) fn free_port(&self) {
        self.socket.close();
    }
}

/// Admits dials until the binding stops.
async fn accept(binding: Arc<BindingInner>) {
    let mut dials = binding.shared.exec.scope();
    loop {
        let incoming = tokio::select! {
            biased;
            () = binding.stop.cancelled() => break,
            incoming = binding.endpoint.accept() => incoming,
        };
        let Some(incoming) = incoming else {
            break;
        };
        if let Some((admitted, place, shaking)) = binding.admit(incoming) {
            dials.spawn(serve(Arc::clone(&binding), admitted, place, shaking));
        }
    }
    // The endpoint closed every connection; what is left ends by itself within
    // the time a lost connection is given.
    dials
        .wait_within(binding.shared.config.shutdown_timeout)
        .await;
}

impl BindingInner {
    /// Decides about a dial before any state exists for it. `[weida CN-8, CN-10]`
    fn admit(&self, incoming: Incoming) -> Option<(Incoming, Place, Handshaking)> {
        let config = &self.shared.config;
        if self.shared.is_draining() {
            incoming.refuse();
            return None;
        }
        if !incoming.remote_address_validated()
            && self.doorway.handshakes() >= config.retry_above_handshakes
        {
            // Only an unvalidated source can be asked again, which is what was
            // just checked.
            drop(incoming.retry());
            return None;
        }
        let place = self.doorway.enter(config.max_connections);
        let shaking = self.doorway.shake(config.max_handshakes);
        match (place, shaking) {
            (Some(place), Some(shaking)) => Some((incoming, place, shaking)),
            (Some(_), None) | (None, Some(_)) | (None, None) => {
                tracing::debug!(binding = %self.local_addr, "dial refused at a cap");
                incoming.refuse();
                None
            }
        }
    }
}

/// One dial, from its first packet to the end of its connection.
async fn serve(binding: Arc<BindingInner>, incoming: Incoming, place: Place, shaking: Handshaking) {
    let quic = match incoming.accept() {
        Ok(connecting) => connecting.await,
        Err(error) => Err(error),
    };
    drop(shaking);
    let quic = match quic {
        Ok(quic) => quic,
        Err(error) => {
            tracing::debug!(binding = %binding.local_addr, %error, "handshake failed");
            return;
        }
    };
    let (peer, chain) = tls::proved_peer(&quic);
    let shared = &binding.shared;
    // Anonymous clients are each their own peer. [weida S8-11]
    let peer_place = match peer.as_ref().and_then(PeerIdentity::key) {
        None => None,
        Some(key) => {
            let max = shared.config.max_connections_per_peer;
            let Some(held) = binding.doorway.admit_peer(key, max) else {
                let reason = format!("more than {max} connections of one peer");
                quic.close(halves::varint(codes::LIMIT_EXCEEDED), reason.as_bytes());
                return;
            };
            Some(held)
        }
    };
    let table = Arc::clone(&binding.table);
    let connection = Connection::start(shared, quic, Proved { peer, chain }, table);
    binding
        .live()
        .insert(connection.id(), connection.downgrade());
    connection.closed().await;
    binding.live().remove(&connection.id());
    drop((place, peer_place));
}
