//! The receipt of a finished transfer.

use std::fmt;
use std::pin::pin;

use tokio::time::Instant;
use weida_core::{Error, Result};

use super::failure::{TransferFailure, stop_of};
use crate::connection::{Connection, SendHalf, closing};

/// The transport receipt of a finished transfer.
///
/// [`Delivery::delivered`] resolving with `Ok` means that the peer's
/// *transport* holds every byte and the FIN. It does not mean that anybody read
/// them: the application may still refuse or drop the transfer, and nobody is
/// told afterwards. Whoever needs an answer asks with a request.
/// `[weida TX-3, TX-6]`
///
/// Dropping it waits for nothing. The receipt is then kept for
/// [`Runtime::drain`](crate::Runtime::drain) to count.
pub struct Delivery {
    stream: Option<SendHalf>,
    connection: Connection,
    deadline: Option<Instant>,
}

impl Delivery {
    pub(super) fn new(stream: SendHalf, connection: Connection, deadline: Option<Instant>) -> Self {
        Self {
            stream: Some(stream),
            connection,
            deadline,
        }
    }

    /// Waits until the peer's transport holds the whole payload.
    ///
    /// # Errors
    ///
    /// What the peer stopped the stream with; [`Error::Indeterminate`] when the
    /// connection was lost first; [`Error::Expired`] when the transfer's
    /// deadline passed first.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future observes nothing and changes nothing: the payload is
    /// on its way.
    pub async fn delivered(self) -> Result<()> {
        self.settled().await.map_err(Error::from)
    }

    /// [`Delivery::delivered`], with the reason the peer gave on the stream.
    ///
    /// # Errors
    ///
    /// The same outcomes; [`TransferFailure::is_shutdown`] tells a peer that
    /// drains from one that declines, which both are [`Error::Rejected`].
    ///
    /// # Cancel safety
    ///
    /// As [`Delivery::delivered`].
    pub async fn settled(mut self) -> Result<(), TransferFailure> {
        let stream = self.stream.take().expect("taken only here and on drop");
        let waiting = Waiting {
            stream: Some(stream),
            delivery: &self,
        };
        waiting.settle().await
    }
}

/// Puts the stream back under the drain's eye when the wait is dropped.
struct Waiting<'a> {
    stream: Option<SendHalf>,
    delivery: &'a Delivery,
}

impl Waiting<'_> {
    async fn settle(mut self) -> Result<(), TransferFailure> {
        let stream = self.stream.as_mut().expect("present until settled");
        let connection = &self.delivery.connection;
        let settled = match self.delivery.deadline {
            None => stream.settled().await,
            Some(deadline) => {
                let exec = connection.shared().exec.clone();
                let mut expired = pin!(exec.sleep_until(deadline));
                let mut settled = pin!(stream.settled());
                tokio::select! {
                    biased;
                    settled = &mut settled => settled,
                    () = &mut expired => {
                        stream.reset(weida_core::codes::CANCELED);
                        self.stream = None;
                        connection.shared().count_expired();
                        return Err(Error::Expired.into());
                    }
                }
            }
        };
        self.stream = None;
        settled.map_err(|fail| {
            let stop = stop_of(&fail);
            TransferFailure::new(closing::receipt_error(fail), stop)
        })
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(stream) = self.stream.take() {
            park(&self.delivery.connection, stream, self.delivery.deadline);
        }
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        if let Some(stream) = self.stream.take() {
            park(&self.connection, stream, self.deadline);
        }
    }
}

/// Leaves a finished stream to the drain; one with a deadline is watched until
/// then, because the deadline holds after the FIN too. `[weida TX-8]`
fn park(connection: &Connection, mut stream: SendHalf, deadline: Option<Instant>) {
    let Some(deadline) = deadline else {
        return connection.park_receipt(stream);
    };
    let connection = connection.clone();
    let shared = connection.shared().clone();
    shared.tasks.spawn(async move {
        let exec = &connection.shared().exec;
        let settled = stream.settled();
        tokio::select! {
            biased;
            _ = settled => {}
            () = exec.sleep_until(deadline) => {
                stream.reset(weida_core::codes::CANCELED);
                connection.shared().count_expired();
            }
        }
    });
}

impl fmt::Debug for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Delivery")
            .field("connection", &self.connection.id())
            .finish_non_exhaustive()
    }
}
