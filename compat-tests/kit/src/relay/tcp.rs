//! A TCP relay: delay, jitter, rate, freeze, half-open, cut.

use std::future::pending;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::{Dice, Direction};

/// A relay in front of one TCP server. Dropping it resets every connection through it.
#[derive(Debug)]
pub struct TcpRelay {
    addr: SocketAddr,
    shared: Arc<Shared>,
    _tasks: JoinSet<()>,
}

/// What a [`TcpRelay`] does to the bytes. Bytes are never lost or reordered: TCP would not let them.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct TcpFaults {
    /// How long every piece is held.
    pub delay: Duration,
    /// Up to this much more, by chance; order is kept.
    pub jitter: Duration,
    /// Bytes per second of each direction of each connection; `None` is as fast as it goes.
    pub bytes_per_second: Option<u64>,
    /// Directions that are not read: the sender's window fills, as behind a reader that hangs.
    pub frozen: [bool; 2],
    /// Directions whose bytes are read and thrown away, ends too: as behind a firewall that forgot the connection.
    pub swallowed: [bool; 2],
    /// New connections are reset at once.
    pub refusing: bool,
}

#[derive(Debug)]
struct Shared {
    upstream: Mutex<SocketAddr>,
    faults: watch::Sender<TcpFaults>,
    /// Cancelled to reset every connection of now; a new one takes its place.
    cut: Mutex<CancellationToken>,
    half_open: Mutex<CancellationToken>,
    accepted: AtomicU64,
    bytes: [AtomicU64; 2],
    seed: u64,
}

impl TcpRelay {
    /// Listens on a loopback port and relays to `upstream`; the seed decides about jitter.
    ///
    /// # Errors
    /// When the port cannot be opened.
    pub async fn start(upstream: SocketAddr, seed: u64) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let addr = listener.local_addr()?;
        let shared = Arc::new(Shared {
            upstream: Mutex::new(upstream),
            faults: watch::Sender::new(TcpFaults::default()),
            cut: Mutex::default(),
            half_open: Mutex::default(),
            accepted: AtomicU64::new(0),
            bytes: [const { AtomicU64::new(0) }; 2],
            seed,
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, Arc::clone(&shared)));
        Ok(Self {
            addr,
            shared,
            _tasks: tasks,
        })
    }

    /// Where clients connect.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Changes the faults; it holds at once, for connections that exist too.
    pub fn faults(&self, change: impl FnOnce(&mut TcpFaults)) {
        self.shared.faults.send_modify(change);
    }

    /// Stops reading both directions.
    pub fn freeze(&self) {
        self.faults(|faults| faults.frozen = [true; 2]);
    }

    /// Reads both directions again.
    pub fn thaw(&self) {
        self.faults(|faults| faults.frozen = [false; 2]);
    }

    /// Stops reading one direction.
    pub fn freeze_only(&self, direction: Direction) {
        self.faults(|faults| faults.frozen[direction.index()] = true);
    }

    /// Throws away what comes, in both directions and silently, until [`restore`](Self::restore).
    pub fn swallow(&self) {
        self.faults(|faults| faults.swallowed = [true; 2]);
    }

    /// No faults any more; connections that were cut stay cut.
    pub fn restore(&self) {
        self.faults(|faults| *faults = TcpFaults::default());
    }

    /// Resets every connection of now, on both sides (RST).
    pub fn cut(&self) {
        renew(&self.shared.cut);
    }

    /// Resets the server's side of every connection of now; the client's side stays open and silent.
    pub fn half_open(&self) {
        renew(&self.shared.half_open);
    }

    /// Sends new connections to another server, as after a restart on another port.
    pub fn redirect(&self, upstream: SocketAddr) {
        *self
            .shared
            .upstream
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = upstream;
    }

    /// Connections accepted since the start.
    #[must_use]
    pub fn accepted(&self) -> u64 {
        self.shared.accepted.load(Relaxed)
    }

    /// Bytes written on in one direction since the start.
    #[must_use]
    pub fn forwarded(&self, direction: Direction) -> u64 {
        self.shared.bytes[direction.index()].load(Relaxed)
    }
}

fn renew(token: &Mutex<CancellationToken>) {
    std::mem::take(&mut *token.lock().unwrap_or_else(PoisonError::into_inner)).cancel();
}

fn current(token: &Mutex<CancellationToken>) -> CancellationToken {
    token.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            Some(_) = connections.join_next() => {}
            accepted = listener.accept(), if connections.len() < MAX_CONNECTIONS => {
                let Ok((client, _)) = accepted else { continue };
                let number = shared.accepted.fetch_add(1, Relaxed);
                if shared.faults.borrow().refusing {
                    drop(ResetOnDrop::new(client));
                    continue;
                }
                // Taken here, not in the task: a cut right after the connect must reach this one.
                let (cut, half_open) = (current(&shared.cut), current(&shared.half_open));
                connections.spawn(relay(client, Arc::clone(&shared), number, cut, half_open));
            }
        }
    }
}

async fn relay(
    client: TcpStream,
    shared: Arc<Shared>,
    number: u64,
    cut: CancellationToken,
    half_open: CancellationToken,
) {
    let mut client = ResetOnDrop::new(client);
    let upstream = *shared
        .upstream
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    let Ok(server) = TcpStream::connect(upstream).await else {
        return;
    };
    let mut server = ResetOnDrop::new(server);
    let ended = {
        let (from_client, to_client) = client.stream.split();
        let (from_server, to_server) = server.stream.split();
        let both = async {
            tokio::join!(
                pump(from_client, to_server, &shared, number, Direction::Up),
                pump(from_server, to_client, &shared, number, Direction::Down),
            )
        };
        tokio::select! {
            biased;
            () = cut.cancelled() => End::Cut,
            () = half_open.cancelled() => End::HalfOpen,
            (up, down) = both => if up.and(down).is_ok() { End::Done } else { End::Cut },
        }
    };
    match ended {
        End::Done => {
            client.polite = true;
            server.polite = true;
        }
        End::Cut => {}
        End::HalfOpen => {
            drop(server);
            cut.cancelled().await;
        }
    }
}

/// A socket whose end is a reset (RST) unless both directions ended by themselves; also when its task is cut.
struct ResetOnDrop {
    stream: TcpStream,
    polite: bool,
}

impl ResetOnDrop {
    fn new(stream: TcpStream) -> Self {
        let _: io::Result<()> = stream.set_nodelay(true); // a relay that cannot is only slower
        Self {
            stream,
            polite: false,
        }
    }
}

impl Drop for ResetOnDrop {
    fn drop(&mut self) {
        if !self.polite {
            let _: io::Result<()> = self.stream.set_zero_linger(); // closed with zero linger is RST, without it FIN
        }
    }
}

enum End {
    Done,
    Cut,
    HalfOpen,
}

/// Moves one direction: a reader that stamps each piece, a bounded line, a writer that waits for the stamp.
async fn pump(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    shared: &Shared,
    number: u64,
    direction: Direction,
) -> io::Result<()> {
    let (line, mut pieces) = mpsc::channel::<(Instant, Bytes)>(LINE);
    let reader = async {
        let line = line;
        let mut dice = Dice::new(shared.seed, number, direction);
        let mut faults = shared.faults.subscribe();
        let mut last = Instant::now();
        let mut buffer = BytesMut::new();
        loop {
            thawed(&mut faults, direction).await;
            buffer.reserve(PIECE_BYTES);
            let read = tokio::select! {
                biased;
                _ = faults.changed() => continue,
                read = from.read_buf(&mut buffer) => read?,
            };
            let (delay, swallowed) = {
                let now = faults.borrow();
                (
                    dice.delay(now.delay, now.jitter),
                    now.swallowed[direction.index()],
                )
            };
            if read == 0 {
                if swallowed {
                    pending::<()>().await;
                }
                return Ok::<(), io::Error>(());
            }
            let piece = buffer.split().freeze();
            if swallowed {
                continue;
            }
            // Jitter never lets a piece overtake the one before.
            last = last.max(Instant::now() + delay);
            if line.send((last, piece)).await.is_err() {
                return Ok(());
            }
        }
    };
    let writer = async {
        let mut faults = shared.faults.subscribe();
        let mut pace = Instant::now();
        while let Some((at, mut piece)) = pieces.recv().await {
            sleep_until(at).await;
            while !piece.is_empty() {
                thawed(&mut faults, direction).await;
                let rate = faults.borrow().bytes_per_second;
                // A fiftieth of a second at a time, so that a change of the rate is felt soon.
                let most = rate.map_or(PIECE_BYTES as u64, |rate| (rate / 50).max(1));
                let part =
                    piece.split_to(piece.len().min(usize::try_from(most).unwrap_or(usize::MAX)));
                if let Some(rate) = rate {
                    pace = pace.max(Instant::now())
                        + Duration::from_secs_f64(part.len() as f64 / rate.max(1) as f64);
                    sleep_until(pace).await;
                }
                to.write_all(&part).await?;
                shared.bytes[direction.index()].fetch_add(part.len() as u64, Relaxed);
            }
        }
        to.shutdown().await
    };
    let (read, written) = tokio::join!(reader, writer);
    read.and(written)
}

async fn thawed(faults: &mut watch::Receiver<TcpFaults>, direction: Direction) {
    // Fails only when the relay is gone, and then the task is, too.
    let _: Result<_, _> = faults
        .wait_for(|faults| !faults.frozen[direction.index()])
        .await;
}

const MAX_CONNECTIONS: usize = 4096;
/// Pieces between reader and writer of one direction; with a piece this is what a delay can hold: 4 MiB.
const LINE: usize = 256;
const PIECE_BYTES: usize = 16 * 1024;

#[cfg(test)]
mod tests;
