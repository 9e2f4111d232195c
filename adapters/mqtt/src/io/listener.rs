//! The accept loop: bounded, owned, drained. [style 8]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, debug, info_span, warn};

use super::admit::drive;
use super::host::Host;
use super::intake::Intakes;
use crate::error::{BindError, RunError};

/// Pause after the system had no file descriptor or memory for a connection.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// One bound address that does not accept yet.
#[derive(Debug)]
pub(crate) struct Listener<I> {
    host: Arc<Host<I>>,
    socket: TcpListener,
    addr: SocketAddr,
}

impl<I: Intakes> Listener<I> {
    pub(crate) fn bind(host: Arc<Host<I>>) -> Result<Self, BindError> {
        let addr = host.config.bind;
        let bound = bind(addr).and_then(|socket| {
            let addr = socket.local_addr()?;
            Ok((socket, addr))
        });
        match bound {
            Ok((socket, addr)) => Ok(Self { host, socket, addr }),
            Err(source) => Err(BindError {
                listener: host.config.name.clone(),
                addr,
                source,
            }),
        }
    }

    pub(crate) fn local_addr(&self) -> SocketAddr {
        self.addr
    }

    pub(crate) fn name(&self) -> &str {
        &self.host.name
    }

    /// Accepts until `stop`, then lets the connections end until `drain` has passed, then cuts.
    /// Returns how many were cut.
    pub(crate) async fn run(
        self,
        stop: CancellationToken,
        drain: Duration,
    ) -> Result<usize, RunError> {
        let Self { host, socket, addr } = self;
        let max = host
            .config
            .max_sessions
            .saturating_add(host.limits.max_handshakes);
        let mut connections = JoinSet::new();
        let verdict = loop {
            if let Some(pause) = host.gate.pause(Instant::now()) {
                tokio::select! {
                    biased;
                    () = stop.cancelled() => break Ok(()),
                    Some(joined) = connections.join_next() => report(joined),
                    () = sleep(pause) => {}
                }
                continue;
            }
            let accepted = loop {
                tokio::select! {
                    biased;
                    () = stop.cancelled() => break None,
                    Some(joined) = connections.join_next() => report(joined),
                    accepted = socket.accept(), if connections.len() < max => break Some(accepted),
                }
            };
            match accepted {
                None => break Ok(()),
                Some(Ok((socket, from))) => {
                    host.metrics.accepted.add(1);
                    prepare(&socket);
                    let driven = drive(Arc::clone(&host), socket, from, stop.child_token());
                    let span = info_span!("connection", listener = %host.name, %from);
                    connections.spawn(driven.instrument(span));
                }
                Some(Err(error)) if is_temporary(&error) => {
                    host.metrics.accept_retries.add(1);
                    debug!(%addr, %error, "accept failed, trying again");
                    sleep(ACCEPT_RETRY).await;
                }
                Some(Err(source)) => {
                    break Err(RunError::Accept {
                        listener: host.config.name.clone(),
                        source,
                    });
                }
            }
        };
        drop(socket);
        stop.cancel();
        let deadline = Instant::now() + drain;
        let ended = async { while connections.join_next().await.is_some() {} };
        let cut = match timeout_at(deadline, ended).await {
            Ok(()) => 0,
            Err(_) => {
                warn!(listener = %host.name, cut = connections.len(), "drain deadline passed");
                connections.len()
            }
        };
        connections.shutdown().await;
        verdict.map(|()| cut)
    }
}

fn report(joined: Result<(), tokio::task::JoinError>) {
    if let Err(error) = joined
        && error.is_panic()
    {
        tracing::error!(%error, "a connection's task panicked");
    }
}

fn bind(addr: SocketAddr) -> std::io::Result<TcpListener> {
    use socket2::{Domain, Protocol, Socket, Type};
    let socket = Socket::new(Domain::for_address(addr), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    socket.set_reuse_address(true)?;
    if addr.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    socket.bind(&addr.into())?;
    socket.listen(1024)?;
    TcpListener::from_std(socket.into())
}

/// Small packets leave at once, and clients behind a dead NAT entry are found. [mqtt 3.1]
fn prepare(socket: &TcpStream) {
    let keepalive = TcpKeepalive::new()
        .with_time(Duration::from_secs(60))
        .with_interval(Duration::from_secs(15))
        .with_retries(4);
    let set = socket
        .set_nodelay(true)
        .and_then(|()| SockRef::from(socket).set_tcp_keepalive(&keepalive));
    if let Err(error) = set {
        debug!(%error, "socket options not set");
    }
}

/// Whether the next accept may well succeed.
fn is_temporary(error: &std::io::Error) -> bool {
    // EMFILE and ENFILE have no kind of their own.
    matches!(error.raw_os_error(), Some(23 | 24 | 12 | 105))
        || matches!(
            error.kind(),
            std::io::ErrorKind::ConnectionAborted
                | std::io::ErrorKind::ConnectionReset
                | std::io::ErrorKind::Interrupted
                | std::io::ErrorKind::WouldBlock
                | std::io::ErrorKind::TimedOut
        )
}
