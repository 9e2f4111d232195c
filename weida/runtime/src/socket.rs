//! One UDP socket under a QUIC endpoint, closable while handles survive.
//!
//! quinn keeps the socket alive as long as any handle of any of its
//! connections exists. A port that is promised to be free again needs a
//! socket that can be shut under them, which is what [`Socket`] adds.
//! `[weida DR-7]`

use std::fmt;
use std::future::Future;
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, PoisonError, RwLock};
use std::task::{Context, Poll, ready};

use quinn::udp::{RecvMeta, Transmit, UdpSocketState};
use quinn::{AsyncUdpSocket, UdpPoller};
use tokio::io::Interest;
use tokio::net::UdpSocket;

use crate::exec::Exec;

/// Kernel buffer asked for in each direction. A burst of one connection's
/// congestion window then fits while the process is not scheduled; the kernel
/// clamps it to its own maximum.
const SOCKET_BUFFER_BYTES: usize = 4 << 20;

/// A UDP socket whose descriptor can be closed at any time.
pub(crate) struct Socket {
    /// `None` once closed: sends vanish and nothing arrives.
    io: RwLock<Option<Arc<UdpSocket>>>,
    state: UdpSocketState,
    local_addr: SocketAddr,
}

impl Socket {
    /// Binds `addr` with large kernel buffers.
    pub(crate) fn bind(exec: &Exec, addr: SocketAddr) -> io::Result<Arc<Self>> {
        let socket = socket2::Socket::new(
            socket2::Domain::for_address(addr),
            socket2::Type::DGRAM,
            Some(socket2::Protocol::UDP),
        )?;
        if addr.is_ipv6() {
            // One family per socket: what an IPv4 address means must not
            // depend on whether the system has IPv6.
            socket.set_only_v6(true)?;
        }
        for (direction, result) in [
            ("receive", socket.set_recv_buffer_size(SOCKET_BUFFER_BYTES)),
            ("send", socket.set_send_buffer_size(SOCKET_BUFFER_BYTES)),
        ] {
            if let Err(error) = result {
                tracing::warn!(%addr, direction, %error, "kernel refused the socket buffer size");
            }
        }
        socket.bind(&addr.into())?;
        Self::from_std(exec, socket.into())
    }

    /// Takes a socket that is already bound, as it is.
    pub(crate) fn from_std(exec: &Exec, socket: std::net::UdpSocket) -> io::Result<Arc<Self>> {
        socket.set_nonblocking(true)?;
        let state = UdpSocketState::new((&socket).into())?;
        let local_addr = socket.local_addr()?;
        let _context = exec.handle().enter();
        let io = UdpSocket::from_std(socket)?;
        Ok(Arc::new(Self {
            io: RwLock::new(Some(Arc::new(io))),
            state,
            local_addr,
        }))
    }

    /// Closes the descriptor. Everything sent from here on is discarded.
    pub(crate) fn close(&self) {
        drop(
            self.io
                .write()
                .unwrap_or_else(PoisonError::into_inner)
                .take(),
        );
    }

    fn open(&self) -> Option<Arc<UdpSocket>> {
        self.io
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl AsyncUdpSocket for Socket {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Box::pin(Writable {
            socket: self,
            waiting: None,
        })
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        let guard = self.io.read().unwrap_or_else(PoisonError::into_inner);
        let Some(io) = guard.as_ref() else {
            return Ok(());
        };
        io.try_io(Interest::WRITABLE, || {
            self.state.send((&**io).into(), transmit)
        })
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let guard = self.io.read().unwrap_or_else(PoisonError::into_inner);
        let Some(io) = guard.as_ref() else {
            return Poll::Pending;
        };
        loop {
            ready!(io.poll_recv_ready(cx))?;
            if let Ok(count) = io.try_io(Interest::READABLE, || {
                self.state.recv((&**io).into(), bufs, meta)
            }) {
                return Poll::Ready(Ok(count));
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.local_addr)
    }

    fn max_transmit_segments(&self) -> usize {
        self.state.max_gso_segments()
    }

    fn max_receive_segments(&self) -> usize {
        self.state.gro_segments()
    }

    fn may_fragment(&self) -> bool {
        self.state.may_fragment()
    }
}

impl fmt::Debug for Socket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Socket")
            .field("local_addr", &self.local_addr)
            .finish_non_exhaustive()
    }
}

type Ready = Pin<Box<dyn Future<Output = io::Result<()>> + Send + Sync>>;

/// Waits for room in the kernel's send buffer, for one connection.
struct Writable {
    socket: Arc<Socket>,
    /// Present only while waiting, so a poller at rest holds no descriptor.
    waiting: Option<Ready>,
}

impl UdpPoller for Writable {
    fn poll_writable(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let waiting = match &mut this.waiting {
            Some(waiting) => waiting,
            None => {
                let Some(io) = this.socket.open() else {
                    return Poll::Ready(Ok(()));
                };
                this.waiting
                    .insert(Box::pin(async move { io.writable().await }))
            }
        };
        let result = ready!(waiting.as_mut().poll(cx));
        this.waiting = None;
        Poll::Ready(result)
    }
}

impl fmt::Debug for Writable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writable").finish_non_exhaustive()
    }
}
