//! Namespaces of endpoint paths, and the bindings that make them reachable.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;

use weida_core::Result;

use crate::endpoint::{Publisher, Puller, Replier};
use crate::pubsub::Registry;
use crate::shared::Life;
use crate::socket::Socket;
use crate::stream::Acceptor;
use crate::tls::ServerTls;

pub(crate) mod binding;
mod doorway;
pub(crate) mod table;

pub use binding::Binding;
use table::Table;

/// One externally reachable namespace of endpoint paths.
///
/// Not a socket and not a transport: it owns the table of paths and no
/// credentials. Several bindings may serve it, each with an identity and a
/// client trust of its own, and all of them reach the same endpoints.
/// `[weida 2.1]`
#[derive(Clone, Debug)]
pub struct Listener {
    life: Arc<Life>,
    table: Arc<Table>,
}

impl Listener {
    pub(crate) fn new(life: Arc<Life>) -> Self {
        Self {
            life,
            table: Table::serving(Arc::new(Registry::default())),
        }
    }

    /// Binds this namespace to a UDP address, port 0 for one the system picks.
    ///
    /// A bare [`Identity`](crate::Identity) accepts anonymous clients; a
    /// [`ServerTls`] may require them to prove a key.
    ///
    /// # Errors
    ///
    /// [`Error::Tls`](crate::Error::Tls) for material that does not load or an empty client trust;
    /// [`Error::Io`](crate::Error::Io) when the address cannot be bound; [`Error::Unsupported`](crate::Error::Unsupported)
    /// for a guarantee this version does not honour.
    pub async fn bind_quic(&self, addr: SocketAddr, tls: impl Into<ServerTls>) -> Result<Binding> {
        let socket = Socket::bind(&self.life.shared.exec, addr)?;
        self.bind(socket, &tls.into()).await
    }

    /// Binds this namespace to a UDP socket that is bound already, as it is.
    ///
    /// # Errors
    ///
    /// As [`Listener::bind_quic`].
    pub async fn bind_quic_socket(
        &self,
        socket: UdpSocket,
        tls: impl Into<ServerTls>,
    ) -> Result<Binding> {
        let socket = Socket::from_std(&self.life.shared.exec, socket)?;
        self.bind(socket, &tls.into()).await
    }

    #[expect(
        clippy::unused_async,
        reason = "published signature; reading key files may move off the reactor"
    )]
    async fn bind(&self, socket: Arc<Socket>, tls: &ServerTls) -> Result<Binding> {
        Binding::serve(&self.life, &self.table, socket, tls)
    }

    /// Registers a replier at `path`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidEndpointPath`](crate::Error::InvalidEndpointPath);
    /// [`Error::AlreadyRegistered`](crate::Error::AlreadyRegistered) whatever
    /// pattern holds the path. `[weida AD-3]`
    pub fn replier(&self, path: &str) -> Result<Replier> {
        Replier::register(Arc::clone(&self.life), &self.table, path)
    }

    /// Registers a puller at `path`; errors as [`Listener::replier`].
    ///
    /// # Errors
    ///
    /// As [`Listener::replier`].
    pub fn puller(&self, path: &str) -> Result<Puller> {
        Puller::register(Arc::clone(&self.life), &self.table, path)
    }

    /// Registers a publisher at `path`. Subscriptions that arrived before are
    /// served from now on. `[weida S17-6]`
    ///
    /// # Errors
    ///
    /// As [`Listener::replier`].
    pub fn publisher(&self, path: &str) -> Result<Publisher> {
        Publisher::register(Arc::clone(&self.life), &self.table, path)
    }

    /// Registers a raw acceptor at `path`: both stream kinds, no pattern.
    ///
    /// # Errors
    ///
    /// As [`Listener::replier`].
    pub fn acceptor(&self, path: &str) -> Result<Acceptor> {
        Acceptor::register(Arc::clone(&self.life), &self.table, path)
    }
}
