//! The raw stream core: below the patterns, exactly what QUIC guarantees.

use std::fmt;
use std::sync::Arc;

use weida_core::{Error, Result};

use crate::connection::whole_transfer;
use crate::connection::{Connection, ConnectionId, SendHalf};
use crate::listener::table::{Claim, Route, Table};
use crate::outbox::Outbox;
use crate::queue::Queue;
use crate::reconnect::PeerEvents;
use crate::shared::Life;
use crate::slot::Dialler;
use crate::stats::ConnectionStats;
use crate::tls::ClientTls;
use crate::transfer::{
    IncomingRequest, IncomingTransfer, OutgoingTransfer, ReplyStream, TransferMeta,
};

/// The dialling side of the stream core.
///
/// It owns a set of dialled addresses and opens streams on their connections,
/// round-robin. An address, once dialled, is kept: a lost connection is redialled
/// under [`RuntimeConfig::reconnect`](crate::RuntimeConfig::reconnect).
pub struct Peer {
    outbox: Outbox,
    life: Arc<Life>,
}

impl Peer {
    pub(crate) fn new(life: Arc<Life>, tls: ClientTls) -> Self {
        let dialler = Dialler::new(&life.shared, tls, None);
        Self {
            outbox: Outbox::new(dialler),
            life,
        }
    }

    fn dialler(&self) -> &Dialler {
        self.outbox.dialler()
    }

    /// Dials `weida://[fingerprint@]host[:port]/path` and keeps the address.
    ///
    /// Returns once HELLO is negotiated, so the first stream cannot race it.
    /// Endpoints with equal terms share the connection of an address.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidAddress`]; [`Error::Untrusted`] with the key that
    /// answered; [`Error::Tls`]; [`Error::Negotiation`];
    /// [`Error::ConnectionLost`]. A failed first dial leaves nothing behind.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future abandons the dial.
    pub async fn connect(&self, url: &str) -> Result<()> {
        self.dialler().connect(url).await
    }

    /// Forgets `url`; whether it was known. The pooled connection closes once
    /// nothing used it for [`Limits::idle_timeout`](crate::Limits::idle_timeout).
    pub fn disconnect(&self, url: &str) -> bool {
        self.dialler().disconnect(url)
    }

    /// Addresses whose connection is open.
    pub fn peer_count(&self) -> usize {
        self.dialler().peer_count()
    }

    /// One record per live connection.
    pub fn connection_stats(&self) -> Vec<ConnectionStats> {
        self.dialler().stats()
    }

    /// The event stream of this peer's addresses, from now on.
    pub fn events(&self) -> PeerEvents {
        self.dialler().events()
    }

    /// Bodies the outbox discarded.
    pub fn dropped(&self) -> u64 {
        self.outbox.dropped()
    }

    /// Opens a one-way stream to the next peer; its head is written before this
    /// returns.
    ///
    /// With every peer down it waits for the redial, at most
    /// [`RuntimeConfig::send_timeout`](crate::RuntimeConfig::send_timeout); at
    /// the peer's stream budget it waits for credit. `[weida RD-1, FC-2]`
    ///
    /// # Errors
    ///
    /// [`Error::NotConnected`] when nothing was ever dialled;
    /// [`Error::ConnectionLost`] when the wait ran out or every address gave up;
    /// [`Error::LimitExceeded`] for metadata above a cap, before a stream is
    /// opened.
    ///
    /// # Cancel safety
    ///
    /// Safe: a dropped wait opens nothing.
    pub async fn open(&self, meta: TransferMeta) -> Result<OutgoingTransfer> {
        open_uni(self.dialler(), &meta).await
    }

    /// Opens an exchange to the next peer; waits and fails as [`Peer::open`].
    ///
    /// # Errors
    ///
    /// As [`Peer::open`].
    pub async fn open_bi(&self, meta: TransferMeta) -> Result<(OutgoingTransfer, ReplyStream)> {
        open_bi(self.dialler(), &meta).await
    }

    /// Sends `body` as one whole one-way transfer and owns it from here.
    ///
    /// With a live peer and an empty outbox the body is written directly, with
    /// no copy of ours. Otherwise it is copied to the outbox and written in
    /// order after the redial. At a bound of the outbox
    /// [`RuntimeConfig::outbox_full`](crate::RuntimeConfig::outbox_full)
    /// decides. A body written to a connection that then dies is gone.
    /// `[weida OB-1..6]`
    ///
    /// # Errors
    ///
    /// [`Error::NotConnected`]; [`Error::LimitExceeded`] for a body above
    /// `outbox_bytes` that must be queued, or at the bound under `Reject`;
    /// [`Error::ConnectionLost`] once every address gave up.
    pub async fn send(&self, meta: TransferMeta, body: &[u8]) -> Result<()> {
        self.outbox.send(meta, body).await
    }
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peer")
            .field("life", &Arc::strong_count(&self.life))
            .finish_non_exhaustive()
    }
}

/// Opens a one-way stream on the next live peer and writes its head.
pub(crate) async fn open_uni(dialler: &Dialler, meta: &TransferMeta) -> Result<OutgoingTransfer> {
    let mut chooser = dialler.chooser();
    loop {
        let (connection, slot) = chooser.next().await?;
        let head = slot.head(meta)?;
        connection.check_header(head.header_bytes())?;
        let Ok(mut stream) = connection.open_uni().await else {
            // Lost before anything was written: another peer, or the redial.
            chooser.lost(&connection, &slot).await?;
            continue;
        };
        let written = stream.write_chunks(&mut [head.into_bytes()]).await;
        written.map_err(|fail| connection.send_error(fail))?;
        return Ok(OutgoingTransfer::new(stream, connection, meta.trace));
    }
}

/// Opens an exchange on the next live peer and writes its head.
pub(crate) async fn open_bi(
    dialler: &Dialler,
    meta: &TransferMeta,
) -> Result<(OutgoingTransfer, ReplyStream)> {
    let (stream, reply, connection) = start_exchange(dialler, meta, None).await?;
    let request = OutgoingTransfer::new(stream, connection, meta.trace);
    Ok((request, reply))
}

/// Opens an exchange and writes its head; with `body` also the whole request
/// and the FIN, in as few frames as possible.
pub(crate) async fn start_exchange(
    dialler: &Dialler,
    meta: &TransferMeta,
    body: Option<&[u8]>,
) -> Result<(SendHalf, ReplyStream, Connection)> {
    let mut chooser = dialler.chooser();
    loop {
        let (connection, slot) = chooser.next().await?;
        let head = slot.head(meta)?;
        connection.check_header(head.header_bytes())?;
        let Ok((mut stream, recv)) = connection.open_bi().await else {
            chooser.lost(&connection, &slot).await?;
            continue;
        };
        let reply = ReplyStream::new(recv, connection.clone());
        let mut chunks = whole_transfer(head.as_bytes(), body.unwrap_or_default());
        let written = stream.write_chunks(&mut chunks).await;
        match (written, body) {
            (Ok(()), None) => {}
            (Ok(()), Some(_)) => {
                stream
                    .finish()
                    .map_err(|fail| connection.send_error(fail))?;
            }
            // The answer says why the request was stopped. [weida RR-4]
            (Err(crate::connection::SendFail::Stopped(_)), Some(_)) => {}
            (Err(fail), _) => return Err(connection.send_error(fail)),
        }
        return Ok((stream, reply, connection));
    }
}

/// The bound side of the stream core: one path, both stream kinds, one queue.
pub struct Acceptor {
    claim: Claim,
    queue: Arc<Queue<Incoming>>,
    life: Arc<Life>,
}

impl Acceptor {
    pub(crate) fn register(life: Arc<Life>, table: &Arc<Table>, path: &str) -> Result<Self> {
        let queue = Arc::new(Queue::new(life.shared.config.endpoint_queue));
        let claim = table.claim(path, Route::Raw(Arc::clone(&queue)))?;
        Ok(Self { claim, queue, life })
    }

    /// The path this acceptor serves.
    pub fn path(&self) -> &str {
        self.claim.path()
    }

    /// Waits for the next arrival.
    ///
    /// # Errors
    ///
    /// [`Error::ConnectionLost`] once the runtime is closed.
    ///
    /// # Cancel safety
    ///
    /// Safe: nothing is lost.
    pub async fn accept(&self) -> Result<Incoming> {
        next(&self.queue, &self.life).await
    }
}

impl fmt::Debug for Acceptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acceptor")
            .field("path", &self.path())
            .finish_non_exhaustive()
    }
}

impl Drop for Acceptor {
    fn drop(&mut self) {
        for left in self.queue.close() {
            if let Incoming::Stream(transfer) = left {
                transfer.refuse(weida_core::codes::UNKNOWN_ENDPOINT);
            }
        }
    }
}

/// The next item of an endpoint's queue, until the runtime closes.
pub(crate) async fn next<T>(queue: &Queue<T>, life: &Life) -> Result<T> {
    if let Some(item) = queue.try_pop() {
        return Ok(item);
    }
    tokio::select! {
        biased;
        item = queue.pop() => item.ok_or(Error::NotConnected),
        () = life.shared.stop.cancelled() => {
            Err(Error::ConnectionLost(weida_core::LossCause::LocallyClosed))
        }
    }
}

/// One arrival at a raw acceptor's path.
///
/// Subscription events arrive in the order the peer caused them, as far as its
/// streams have one.
#[derive(Debug)]
#[non_exhaustive]
pub enum Incoming {
    /// A one-way stream.
    Stream(IncomingTransfer),
    /// An exchange, which owes an answer.
    Exchange(IncomingRequest),
    /// A consumer subscribed to this path with one filter it did not hold.
    Subscribed(Consumer),
    /// A consumer stated its delivery limit for one subscription.
    Credit(CreditGrant),
    /// A subscription ended.
    Unsubscribed {
        /// Which consumer.
        id: ConsumerId,
        /// Which filter; `None` when its connection closed, which ends all.
        filter: Option<String>,
    },
}

/// Identifies one consuming connection; equal to its [`ConnectionId`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConsumerId(ConnectionId);

impl From<ConnectionId> for ConsumerId {
    fn from(id: ConnectionId) -> Self {
        Self(id)
    }
}

/// One subscription of one consumer, and the way to deliver to it.
#[derive(Clone, Debug)]
pub struct Consumer {
    connection: Connection,
    path: Arc<str>,
    filter: Arc<str>,
}

impl Consumer {
    pub(crate) fn new(connection: Connection, path: &str, filter: &str) -> Self {
        Self {
            connection,
            path: path.into(),
            filter: filter.into(),
        }
    }

    /// Which consuming connection this is.
    pub fn id(&self) -> ConsumerId {
        self.connection.id().into()
    }

    /// The filter this subscription was made with.
    pub fn filter(&self) -> &str {
        &self.filter
    }

    /// The path it subscribed on.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Opens one delivery, on the connection the subscription arrived on.
    /// `[weida CN-6]`
    ///
    /// # Errors
    ///
    /// [`Error::LimitExceeded`] for metadata above a cap; what the connection
    /// was lost to.
    pub async fn open(&self, meta: TransferMeta) -> Result<OutgoingTransfer> {
        let head = meta.frame(&self.path)?;
        self.connection.check_header(head.header_bytes())?;
        let mut stream = self.connection.open_uni().await?;
        let written = stream.write_chunks(&mut [head.into_bytes()]).await;
        written.map_err(|fail| self.connection.send_error(fail))?;
        Ok(OutgoingTransfer::new(
            stream,
            self.connection.clone(),
            meta.trace,
        ))
    }

    /// Delivers `body` as one whole transfer.
    ///
    /// # Errors
    ///
    /// As [`Consumer::open`].
    pub async fn deliver(&self, meta: TransferMeta, body: &[u8]) -> Result<()> {
        let mut transfer = self.open(meta).await?;
        transfer.write_all(body).await?;
        drop(transfer.finish()?);
        Ok(())
    }

    /// Closes the connection this consumer subscribed on, with everything on
    /// it. `code` is one of [`codes`](crate::codes).
    pub fn close(&self, code: u64, reason: &str) {
        self.connection.close(code, reason);
    }
}

/// A consumer's absolute delivery limit for one subscription.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreditGrant {
    /// Which consumer granted it.
    pub id: ConsumerId,
    /// The filter it was granted for.
    pub filter: String,
    /// Messages the subscription takes in total; the highest one holds.
    pub limit: u64,
}
