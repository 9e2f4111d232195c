//! The accept side: a cap on connections and on the life of each.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep};

/// Answer to one connection too many; the client hears why instead of hanging.
const FULL: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
/// Turned-away connections kept open for a moment, oldest out.
const MAX_TURNED_AWAY: usize = 16;
/// A client that has not sent its whole request by then gives its place back: half a request must not keep a probe out.
const ASKING_TIME: Duration = Duration::from_secs(2);
/// After an error of the accept call, for instance "too many open files".
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Accepts at most so many connections at once.
#[derive(Debug)]
pub(super) struct Door {
    listener: TcpListener,
    places: Arc<Semaphore>,
    life: Duration,
    /// Answered and half closed: closing at once would reset them, and the answer could be lost on its way.
    turned_away: VecDeque<TcpStream>,
}

impl Door {
    pub(super) fn new(listener: TcpListener, max_connections: usize, life: Duration) -> Self {
        Self {
            listener,
            places: Arc::new(Semaphore::new(max_connections)),
            life,
            turned_away: VecDeque::with_capacity(MAX_TURNED_AWAY),
        }
    }
}

impl Door {
    /// Says "full" to one connection. A fresh socket takes these few bytes at once.
    fn turn_away(&mut self, stream: TcpStream) {
        let _: io::Result<usize> = stream.try_write(FULL);
        let _: io::Result<()> = socket2::SockRef::from(&stream).shutdown(std::net::Shutdown::Write);
        if self.turned_away.len() == MAX_TURNED_AWAY {
            self.turned_away.pop_front();
        }
        self.turned_away.push_back(stream);
    }
}

impl axum::serve::Listener for Door {
    type Io = Guest;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Guest, SocketAddr) {
        loop {
            let (stream, from) = match self.listener.accept().await {
                Ok(accepted) => accepted,
                Err(_temporary) => {
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            match Arc::clone(&self.places).try_acquire_owned() {
                Ok(place) => {
                    return (
                        Guest {
                            stream,
                            life: Box::pin(tokio::time::sleep(self.life.min(ASKING_TIME))),
                            answer_time: Some(self.life),
                            _place: place,
                        },
                        from,
                    );
                }
                Err(_full) => self.turn_away(stream),
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// One connection, for a limited time.
#[derive(Debug)]
pub(super) struct Guest {
    stream: TcpStream,
    life: Pin<Box<Sleep>>,
    /// How long it may live once the answer begins; taken then.
    answer_time: Option<Duration>,
    _place: OwnedSemaphorePermit,
}

impl Guest {
    /// An error once its time is over: a client that reads or writes one byte a minute holds no place.
    fn poll_over(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        self.life
            .as_mut()
            .poll(cx)
            .map(|()| io::ErrorKind::TimedOut.into())
    }
}

impl AsyncRead for Guest {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Poll::Ready(over) = self.poll_over(cx) {
            return Poll::Ready(Err(over));
        }
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Guest {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        if let Some(life) = self.answer_time.take() {
            self.life.as_mut().reset(Instant::now() + life);
        }
        if let Poll::Ready(over) = self.poll_over(cx) {
            return Poll::Ready(Err(over));
        }
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
