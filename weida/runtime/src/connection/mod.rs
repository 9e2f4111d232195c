//! One live connection: its proved peer, its namespace, and what ends with it.
//!
//! A [`Connection`] is what every other part holds. It opens streams that
//! already carry their frame head, knows who the peer proved to be, and is the
//! place where a close is decided and explained. Reading what the peer sends is
//! `inbound.rs`; what a head means is `dispatch.rs`.
//!
//! ```text
//! greeting ──HELLO negotiated──▶ ready ──close or loss──▶ closed
//!     └───────────violation, timeout, loss──────────────────▲
//! ```
//!
//! Nothing of it survives the close: no session, no subscription, no counter.
//! `[weida S8-21]`

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bytes::Bytes;
use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;
use weida_core::{Error, LossCause, PeerIdentity, Result, codes};
use weida_protocol::Agreed;

use crate::listener::table::Table;
use crate::shared::Shared;
use crate::tls::PeerChain;

mod arrival;
pub(crate) mod closing;
mod dispatch;
pub(crate) mod halves;
pub(crate) mod head;
mod hello;
mod inbound;
mod receipts;

pub(crate) use arrival::Failure as ArrivalFailure;
pub(crate) use closing::LocalClose;
pub(crate) use halves::{RecvFail, RecvHalf, SendFail, SendHalf};
pub(crate) use receipts::Receipts;

/// Identifies one connection of this process.
///
/// A serial the process gave the connection, never reused while it lives. It
/// tells connections apart without saying where they are or who is on them;
/// that is [`IncomingMeta::peer`](crate::IncomingMeta::peer).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(u64);

impl ConnectionId {
    pub(crate) fn next() -> Self {
        static SERIAL: AtomicU64 = AtomicU64::new(1);
        Self(SERIAL.fetch_add(1, Ordering::Relaxed))
    }
}

impl fmt::Display for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// How far a connection got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Waiting for the peer's HELLO.
    Greeting,
    /// HELLO negotiated: frames may be interpreted.
    Ready,
    /// Gone, and every stream that had arrived has been dispatched.
    Closed(LossCause),
}

/// What is known about a connection when its handshake is done.
#[derive(Debug)]
pub(crate) struct Proved {
    /// Whom the handshake proved; `None` for an anonymous client.
    pub(crate) peer: Option<PeerIdentity>,
    /// The chain behind it, when it fits the bound.
    pub(crate) chain: Option<PeerChain>,
}

/// A handle on one live connection; clones are the same connection.
#[derive(Clone)]
pub(crate) struct Connection(Arc<Inner>);

struct Inner {
    id: ConnectionId,
    quic: quinn::Connection,
    proved: Proved,
    shared: Arc<Shared>,
    /// The namespace this connection serves: a listener's, or the dialler's own
    /// (empty until a subscriber claims its path on it).
    table: Arc<Table>,
    established: Instant,
    agreed: OnceLock<Agreed>,
    /// Our own HELLO is written.
    greeted: AtomicBool,
    phase: watch::Sender<Phase>,
    local_close: OnceLock<LocalClose>,
    /// Streams that may be reading a head at once. `[weida INV-1]`
    head_slots: Arc<Semaphore>,
    /// Payload bytes read together with heads and not consumed yet.
    ahead: AtomicUsize,
    receipts: Mutex<Receipts>,
}

impl Connection {
    /// Takes over an established QUIC connection and starts serving it: HELLO
    /// goes out, arrivals are read. Returns before the peer's HELLO is in; see
    /// [`Connection::ready`].
    pub(crate) fn start(
        shared: &Arc<Shared>,
        quic: quinn::Connection,
        proved: Proved,
        table: Arc<Table>,
    ) -> Self {
        let limits = &shared.config.limits;
        let connection = Self(Arc::new(Inner {
            id: ConnectionId::next(),
            quic,
            proved,
            shared: Arc::clone(shared),
            table,
            established: shared.exec.now(),
            agreed: OnceLock::new(),
            greeted: AtomicBool::new(false),
            phase: watch::Sender::new(Phase::Greeting),
            local_close: OnceLock::new(),
            head_slots: Arc::new(Semaphore::new(limits.header_slots())),
            ahead: AtomicUsize::new(0),
            receipts: Mutex::new(Receipts::new(
                limits.max_concurrent_uni_streams as usize
                    + limits.max_concurrent_bidi_streams as usize,
            )),
        }));
        shared.track(&connection);
        shared.tasks.spawn(inbound::serve(connection.clone()));
        connection
    }

    pub(crate) fn id(&self) -> ConnectionId {
        self.0.id
    }

    /// Whom the handshake proved; fixed for the connection's life.
    /// `[weida S8-5]`
    pub(crate) fn peer(&self) -> Option<PeerIdentity> {
        self.0.proved.peer
    }

    /// The certificate chain behind [`Connection::peer`].
    pub(crate) fn chain(&self) -> Option<PeerChain> {
        self.0.proved.chain.clone()
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.0.shared
    }

    /// The namespace served on this connection.
    pub(crate) fn table(&self) -> &Arc<Table> {
        &self.0.table
    }

    pub(crate) fn established(&self) -> Instant {
        self.0.established
    }

    pub(crate) fn quic(&self) -> &quinn::Connection {
        &self.0.quic
    }

    fn head_slots(&self) -> &Arc<Semaphore> {
        &self.0.head_slots
    }

    /// Whether payload may be read together with a head. Such bytes are out of
    /// the transport's window, so they have a bound of their own: 1/64 of the
    /// connection window, and at most one packet more.
    fn may_read_ahead(&self) -> bool {
        let window = self.0.shared.config.limits.connection_receive_window;
        (self.0.ahead.load(Ordering::Relaxed) as u64) < window / READ_AHEAD_SHARE
    }

    /// Counts payload that was read with its head.
    pub(crate) fn read_ahead(&self, bytes: usize) {
        if bytes > 0 {
            self.0.ahead.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    /// Payload read ahead was consumed or dropped.
    pub(crate) fn consumed_ahead(&self, bytes: usize) {
        if bytes > 0 {
            self.0.ahead.fetch_sub(bytes, Ordering::Relaxed);
        }
    }

    /// What HELLO settled; `None` before it did.
    pub(crate) fn agreed(&self) -> Option<&Agreed> {
        self.0.agreed.get()
    }

    /// Follows this connection's phase.
    pub(crate) fn phase(&self) -> watch::Receiver<Phase> {
        self.0.phase.subscribe()
    }

    /// Whether frames may still be sent: negotiated, and not lost or closed.
    pub(crate) fn is_live(&self) -> bool {
        matches!(*self.0.phase.borrow(), Phase::Ready) && self.0.quic.close_reason().is_none()
    }

    /// Waits until HELLO is negotiated in both directions.
    ///
    /// # Errors
    ///
    /// What ended the connection instead. `[weida CN-1]`
    pub(crate) async fn ready(&self) -> Result<()> {
        let mut phase = self.phase();
        let settled = phase
            .wait_for(|phase| !matches!(phase, Phase::Greeting))
            .await
            .map(|phase| phase.clone());
        match settled {
            Ok(Phase::Ready) if self.0.quic.close_reason().is_none() => Ok(()),
            Ok(Phase::Greeting | Phase::Ready | Phase::Closed(_)) | Err(_) => {
                Err(self.loss_error())
            }
        }
    }

    /// Waits until the connection is gone; resolves with the cause.
    pub(crate) async fn closed(&self) -> LossCause {
        let mut phase = self.phase();
        let settled = phase
            .wait_for(|phase| matches!(phase, Phase::Closed(_)))
            .await
            .map(|phase| phase.clone());
        match settled {
            Ok(Phase::Closed(cause)) => cause,
            Ok(Phase::Greeting | Phase::Ready) | Err(_) => LossCause::LocallyClosed,
        }
    }

    /// The outcome of an operation that finds the connection gone before its
    /// FIN.
    pub(crate) fn loss_error(&self) -> Error {
        match self.0.quic.close_reason() {
            Some(error) => closing::lost_before_fin(&error, self.0.local_close.get()),
            None => Error::ConnectionLost(LossCause::LocallyClosed),
        }
    }

    /// A failed write on this connection as an outcome.
    pub(crate) fn send_error(&self, fail: SendFail) -> Error {
        closing::send_error(fail, self.0.local_close.get())
    }

    /// A failed read on this connection as an outcome.
    pub(crate) fn recv_error(&self, fail: RecvFail) -> Error {
        closing::recv_error(fail, self.0.local_close.get())
    }

    /// Closes with `code` and a sentence for the peer's log.
    pub(crate) fn close(&self, code: u64, reason: &str) {
        self.close_for(LocalClose::Decided, code, reason);
    }

    /// Closes because the peer broke the protocol. `[wire 17]`
    pub(crate) fn violation(&self, what: &str) {
        tracing::debug!(connection = %self.0.id, what, "protocol violation");
        self.close_for(
            LocalClose::Violation(what.into()),
            codes::PROTOCOL_VIOLATION,
            what,
        );
    }

    /// Closes because the two sides could not agree. `[wire 5.2]`
    fn negotiation_failed(&self, what: &str) {
        self.close_for(
            LocalClose::Negotiation(what.into()),
            codes::NEGOTIATION_FAILED,
            what,
        );
    }

    fn close_for(&self, why: LocalClose, code: u64, reason: &str) {
        if self.0.quic.close_reason().is_none() {
            // The first reason is the one that took effect.
            let _: std::result::Result<(), LocalClose> = self.0.local_close.set(why);
        }
        self.0.quic.close(halves::varint(code), reason.as_bytes());
    }

    /// Refuses a frame the peer would not read. `[wire 5.2]`
    ///
    /// # Errors
    ///
    /// [`Error::LimitExceeded`] when `header_bytes` passes the peer's cap,
    /// before anything is sent.
    pub(crate) fn check_header(&self, header_bytes: usize) -> Result<()> {
        match self.agreed() {
            Some(agreed) if header_bytes as u64 > agreed.send_max_header_bytes => {
                Err(Error::LimitExceeded(None))
            }
            Some(_) => Ok(()),
            None => Err(self.loss_error()),
        }
    }

    /// Opens a one-way stream, waiting for the peer's stream credit.
    ///
    /// Nothing is written: the peer learns of the stream from its first bytes,
    /// so the caller writes a whole frame head first.
    ///
    /// # Cancel safety
    ///
    /// Safe: dropping the wait opens nothing. `[weida FC-2, FC-5]`
    pub(crate) async fn open_uni(&self) -> Result<SendHalf> {
        match self.0.quic.open_uni().await {
            Ok(stream) => Ok(SendHalf::quic(stream)),
            Err(error) => Err(self.send_error(SendFail::Lost(error))),
        }
    }

    /// Opens an exchange; see [`Connection::open_uni`].
    pub(crate) async fn open_bi(&self) -> Result<(SendHalf, RecvHalf)> {
        match self.0.quic.open_bi().await {
            Ok((send, recv)) => Ok((SendHalf::quic(send), RecvHalf::Quic(recv))),
            Err(error) => Err(self.send_error(SendFail::Lost(error))),
        }
    }

    /// Sends one header-only frame on a stream of its own and finishes it.
    /// Returns the stream for whoever wants its receipt.
    ///
    /// # Errors
    ///
    /// [`Error::LimitExceeded`] for a header above the peer's cap; otherwise
    /// what ended the connection.
    pub(crate) async fn send_frame(&self, frame: head::Frame) -> Result<SendHalf> {
        self.check_header(frame.header_bytes())?;
        let mut stream = self.open_uni().await?;
        let written = stream.write_chunks(&mut [frame.into_bytes()]).await;
        written.map_err(|fail| self.send_error(fail))?;
        stream.finish().map_err(|fail| self.send_error(fail))?;
        Ok(stream)
    }

    /// Keeps a finished stream so that a drain can wait for its receipt.
    /// `[weida DR-6]`
    pub(crate) fn park_receipt(&self, stream: SendHalf) {
        self.0
            .receipts
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .park(stream);
    }

    /// Hands over every parked receipt, and how many were evicted unsettled.
    pub(crate) fn take_receipts(&self) -> (Vec<SendHalf>, u64) {
        self.0
            .receipts
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    /// Stream frames moved so far; unchanged means unused.
    pub(crate) fn activity(&self) -> u64 {
        let stats = self.0.quic.stats();
        stats.frame_tx.stream + stats.frame_rx.stream
    }

    /// Whether two handles are the same connection.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(crate) fn downgrade(&self) -> WeakConnection {
        WeakConnection(Arc::downgrade(&self.0))
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("id", &self.0.id)
            .field("peer", &self.0.proved.peer)
            .finish_non_exhaustive()
    }
}

/// A handle that does not keep its connection.
#[derive(Clone)]
pub(crate) struct WeakConnection(std::sync::Weak<Inner>);

impl WeakConnection {
    pub(crate) fn upgrade(&self) -> Option<Connection> {
        self.0.upgrade().map(Connection)
    }
}

impl fmt::Debug for WeakConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakConnection").finish_non_exhaustive()
    }
}

/// Part of the connection window that may be read ahead.
const READ_AHEAD_SHARE: u64 = 64;

/// Head and body of a whole transfer as the fewest chunks worth writing.
///
/// Below the threshold one allocation holds both, so that one STREAM frame and
/// one lock carry the message; above it the body is one chunk of its own and
/// copied once.
pub(crate) fn whole_transfer(head: &[u8], body: &[u8]) -> [Bytes; 2] {
    const ONE_CHUNK_BYTES: usize = 16 << 10;
    if head.len() + body.len() <= ONE_CHUNK_BYTES {
        let mut chunk = Vec::with_capacity(head.len() + body.len());
        chunk.extend_from_slice(head);
        chunk.extend_from_slice(body);
        [chunk.into(), Bytes::new()]
    } else {
        [Bytes::copy_from_slice(head), Bytes::copy_from_slice(body)]
    }
}
