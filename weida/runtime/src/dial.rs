//! One dial: resolve, try addresses, handshake, HELLO.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quinn::{ConnectionError, Endpoint};
use weida_core::{EndpointAddr, Error, Fingerprint, Result, codes};

use crate::connection::{Connection, Proved, halves};
use crate::listener::table::Table;
use crate::resolver::{Lookup, dial_in_order};
use crate::shared::Shared;
use crate::socket::Socket;
use crate::tls::{self, ClientTls, DialCrypto, DialTerms};
use crate::transport::{self, Role};

/// Whom to dial, and on which terms.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Target {
    pub(crate) addr: EndpointAddr,
    pub(crate) tls: ClientTls,
}

/// Dials until HELLO is negotiated in both directions. `[weida CN-1]`
///
/// # Errors
///
/// The last address's failure; an untrusted key ends the dial at once and is
/// not tried elsewhere. `[wire 4]`
///
/// # Cancel safety
///
/// Dropping the future abandons the dial and closes what it had established.
pub(crate) async fn dial(
    shared: &Arc<Shared>,
    target: &Target,
    proved_before: Option<Fingerprint>,
) -> Result<Connection> {
    let config = &shared.config;
    config.check_guarantees()?;
    let EndpointAddr {
        host, port, peer, ..
    } = &target.addr;
    let crypto = tls::client_crypto(DialTerms {
        tls: &target.tls,
        named: *peer,
        proved_before,
    })?;
    let name = tls::server_name(host)?;
    let lookup = Lookup {
        resolver: &config.resolver,
        discovery: config.discovery,
        max_addresses: config.max_resolved_addresses,
    };
    let candidates = lookup.candidates(&shared.exec, host, *port).await?;
    let mut quic = quinn::ClientConfig::new(crypto.config.clone());
    quic.transport_config(transport::config(&config.limits, Role::Dialler));
    let attempt = config.connect_attempt_timeout;
    let connection = dial_in_order(&shared.exec, &candidates, attempt, |address| {
        handshake(shared, &crypto, quic.clone(), address, name)
    })
    .await?;
    greet(shared, connection, &crypto).await
}

/// The QUIC handshake with one address.
async fn handshake(
    shared: &Arc<Shared>,
    crypto: &DialCrypto,
    quic: quinn::ClientConfig,
    address: SocketAddr,
    name: &str,
) -> Result<quinn::Connection> {
    let endpoint = shared.sockets.endpoint(shared, address)?;
    let connecting = endpoint
        .connect_with(quic, address, name)
        .map_err(connect_error)?;
    connecting.await.map_err(|error| failed(crypto, &error))
}

/// HELLO on an established connection. A binding that wants a client
/// certificate refuses only now, so a close here is the dial's failure.
/// `[wire 3.3]`
async fn greet(
    shared: &Arc<Shared>,
    quic: quinn::Connection,
    crypto: &DialCrypto,
) -> Result<Connection> {
    let (peer, chain) = tls::proved_peer(&quic);
    let connection = Connection::start(shared, quic, Proved { peer, chain }, Table::dialled());
    let mut abandoned = Abandoned(Some(connection.clone()));
    let ready = connection.ready().await;
    abandoned.0 = None;
    if let Err(error) = ready {
        let tls = connection
            .quic()
            .close_reason()
            .and_then(|reason| crypto.failure(&reason));
        return Err(tls.unwrap_or(error));
    }
    Ok(connection)
}

/// Closes a connection whose dial was dropped half way.
struct Abandoned(Option<Connection>);

impl Drop for Abandoned {
    fn drop(&mut self) {
        if let Some(connection) = self.0.take() {
            connection.close(codes::SHUTDOWN, "dial abandoned");
        }
    }
}

fn failed(crypto: &DialCrypto, error: &ConnectionError) -> Error {
    crypto
        .failure(error)
        .unwrap_or_else(|| crate::connection::closing::lost_before_fin(error, None))
}

fn connect_error(error: quinn::ConnectError) -> Error {
    match error {
        quinn::ConnectError::EndpointStopping => {
            Error::ConnectionLost(weida_core::LossCause::LocallyClosed)
        }
        quinn::ConnectError::InvalidServerName(_)
        | quinn::ConnectError::InvalidRemoteAddress(_) => Error::InvalidAddress(error.to_string()),
        quinn::ConnectError::CidsExhausted
        | quinn::ConnectError::NoDefaultClientConfig
        | quinn::ConnectError::UnsupportedVersion => Error::Transport(error.to_string()),
    }
}

/// The sockets a runtime dials from: one per address family, made on first use.
#[derive(Default)]
pub(crate) struct ClientSockets {
    open: Mutex<Sockets>,
}

#[derive(Default)]
struct Sockets {
    v4: Option<Client>,
    v6: Option<Client>,
    closed: bool,
}

#[derive(Clone)]
struct Client {
    endpoint: Endpoint,
    socket: Arc<Socket>,
}

impl ClientSockets {
    fn lock(&self) -> MutexGuard<'_, Sockets> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn endpoint(&self, shared: &Shared, toward: SocketAddr) -> Result<Endpoint> {
        let mut sockets = self.lock();
        if sockets.closed {
            return Err(Error::ConnectionLost(weida_core::LossCause::LocallyClosed));
        }
        let (slot, any) = if toward.is_ipv4() {
            (
                &mut sockets.v4,
                SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
            )
        } else {
            (
                &mut sockets.v6,
                SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
            )
        };
        if let Some(client) = slot {
            return Ok(client.endpoint.clone());
        }
        let socket = Socket::bind(&shared.exec, any)?;
        let endpoint = Endpoint::new_with_abstract_socket(
            transport::endpoint_config(None),
            None,
            socket.clone(),
            shared.exec.quinn(),
        )?;
        *slot = Some(Client {
            endpoint: endpoint.clone(),
            socket,
        });
        Ok(endpoint)
    }

    fn all(&self) -> Vec<Client> {
        let sockets = self.lock();
        sockets.v4.iter().chain(&sockets.v6).cloned().collect()
    }

    /// Refuses further dials and closes what was dialled.
    pub(crate) fn close_now(&self) {
        self.lock().closed = true;
        for client in self.all() {
            client
                .endpoint
                .close(halves::varint(codes::SHUTDOWN), b"runtime shut down");
        }
    }

    /// Closes and waits until no connection is left.
    pub(crate) async fn close_and_wait(&self) {
        self.close_now();
        for client in self.all() {
            client.endpoint.wait_idle().await;
        }
    }

    /// Closes the descriptors under handles that survive.
    pub(crate) fn free_ports(&self) {
        for client in self.all() {
            client.socket.close();
        }
    }
}

impl fmt::Debug for ClientSockets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientSockets").finish_non_exhaustive()
    }
}
