//! Req: exchanges, round-robin over connected peers. `[weida 9]`

use std::fmt;
use std::sync::Arc;

use weida_core::Result;

use super::Requester;
use crate::reconnect::PeerEvents;
use crate::shared::Life;
use crate::slot::Dialler;
use crate::stats::ConnectionStats;
use crate::stream;
use crate::tls::ClientTls;
use crate::transfer::{IncomingTransfer, OutgoingTransfer, ReplyStream, TransferMeta};

/// What a requester holds.
#[expect(unnameable_types, reason = "sealed: only a type alias names it")]
pub struct ReqState {
    dialler: Dialler,
    _life: Arc<Life>,
}

impl fmt::Debug for ReqState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReqState").finish_non_exhaustive()
    }
}

impl Requester {
    pub(crate) fn new(life: Arc<Life>, tls: ClientTls) -> Self {
        let dialler = Dialler::new(&life.shared, tls, None);
        Self {
            state: ReqState {
                dialler,
                _life: life,
            },
        }
    }

    /// Dials a replier and keeps the address; see [`Peer::connect`](crate::Peer::connect).
    ///
    /// # Errors
    ///
    /// As [`Peer::connect`](crate::Peer::connect).
    pub async fn connect(&self, url: &str) -> Result<()> {
        self.state.dialler.connect(url).await
    }

    /// Forgets a dialled address; whether it was known.
    pub fn disconnect(&self, url: &str) -> bool {
        self.state.dialler.disconnect(url)
    }

    /// Addresses whose connection is open.
    pub fn peer_count(&self) -> usize {
        self.state.dialler.peer_count()
    }

    /// One record per live connection.
    pub fn connection_stats(&self) -> Vec<ConnectionStats> {
        self.state.dialler.stats()
    }

    /// The event stream of this requester's addresses.
    pub fn events(&self) -> PeerEvents {
        self.state.dialler.events()
    }

    /// Opens one exchange: the request half, and the reply half to wait on.
    ///
    /// Whoever sends a large request must read the reply at the same time:
    /// otherwise both sides end up waiting for the other's window, correctly and
    /// for ever. `[weida LG-3]`
    ///
    /// # Errors
    ///
    /// As [`Peer::open`](crate::Peer::open).
    pub async fn open(&self, meta: TransferMeta) -> Result<(OutgoingTransfer, ReplyStream)> {
        stream::open_bi(&self.state.dialler, &meta).await
    }

    /// Sends `body` as one request and waits for the reply, whose payload then
    /// streams.
    ///
    /// No timeout of its own: it ends with the answer, the connection or the
    /// caller. Never retried. `[weida TX-14]`
    ///
    /// # Errors
    ///
    /// As [`Requester::open`] and [`ReplyStream::recv`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives the reply up; the request may have had an
    /// effect.
    pub async fn request(&self, body: &[u8]) -> Result<IncomingTransfer> {
        self.request_with(TransferMeta::default(), body).await
    }

    /// [`Requester::request`] with metadata.
    ///
    /// # Errors
    ///
    /// As [`Requester::request`].
    pub async fn request_with(&self, meta: TransferMeta, body: &[u8]) -> Result<IncomingTransfer> {
        let (request, reply, connection) =
            stream::start_exchange(&self.state.dialler, &meta, Some(body)).await?;
        // The reply is the stronger answer; a drain still waits for the
        // request's receipt.
        connection.park_receipt(request);
        reply.recv().await
    }
}
