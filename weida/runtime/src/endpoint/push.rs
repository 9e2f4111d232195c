//! Push: one live peer per message, round-robin. `[weida 10]`

use std::fmt;
use std::sync::Arc;

use weida_core::Result;

use super::Pusher;
use crate::outbox::Outbox;
use crate::reconnect::PeerEvents;
use crate::shared::Life;
use crate::slot::Dialler;
use crate::stats::ConnectionStats;
use crate::stream;
use crate::tls::ClientTls;
use crate::transfer::{OutgoingTransfer, TransferMeta};

/// What a pusher holds.
#[expect(unnameable_types, reason = "sealed: only a type alias names it")]
pub struct PushState {
    outbox: Outbox,
    _life: Arc<Life>,
}

impl fmt::Debug for PushState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PushState").finish_non_exhaustive()
    }
}

impl Pusher {
    pub(crate) fn new(life: Arc<Life>, tls: ClientTls) -> Self {
        let dialler = Dialler::new(&life.shared, tls, None);
        Self {
            state: PushState {
                outbox: Outbox::new(dialler),
                _life: life,
            },
        }
    }

    fn dialler(&self) -> &Dialler {
        self.state.outbox.dialler()
    }

    /// Dials a puller and keeps the address; see [`Peer::connect`](crate::Peer::connect).
    ///
    /// # Errors
    ///
    /// As [`Peer::connect`](crate::Peer::connect).
    pub async fn connect(&self, url: &str) -> Result<()> {
        self.dialler().connect(url).await
    }

    /// Forgets a dialled address; whether it was known.
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

    /// The event stream of this pusher's addresses.
    pub fn events(&self) -> PeerEvents {
        self.dialler().events()
    }

    /// Bodies the outbox discarded.
    pub fn dropped(&self) -> u64 {
        self.state.outbox.dropped()
    }

    /// Opens a one-way transfer to the next peer; use it when the receipt
    /// matters or the body streams.
    ///
    /// # Errors
    ///
    /// As [`Peer::open`](crate::Peer::open).
    pub async fn open(&self, meta: TransferMeta) -> Result<OutgoingTransfer> {
        stream::open_uni(self.dialler(), &meta).await
    }

    /// Sends `body` as one message and drops the receipt: no round trip, at most
    /// once, and only failures this side knows about are reported. A path that
    /// refuses it may still have said `Ok`. `[weida PP-3]`
    ///
    /// # Errors
    ///
    /// As [`Peer::send`](crate::Peer::send).
    pub async fn send(&self, body: &[u8]) -> Result<()> {
        self.send_with(TransferMeta::default(), body).await
    }

    /// [`Pusher::send`] with metadata.
    ///
    /// # Errors
    ///
    /// As [`Peer::send`](crate::Peer::send).
    pub async fn send_with(&self, meta: TransferMeta, body: &[u8]) -> Result<()> {
        self.state.outbox.send(meta, body).await
    }
}
