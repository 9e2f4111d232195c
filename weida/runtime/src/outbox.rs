//! Bodies a sender holds while no peer is live. `[weida 6.3]`
//!
//! Local to the sender and dead with the process: it is not negotiated, issues
//! no confirm and resends nothing. Responsibility ends when a body is written
//! to a connection. `[weida OB-5, OB-7]`

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::Notify;
use weida_core::{Error, Result};

use crate::connection::{Connection, SendFail, whole_transfer};
use crate::reconnect::OutboxFull;
use crate::slot::{Chooser, Dialler, Pick, Slot};
use crate::transfer::TransferMeta;

/// The sending half of a dialling endpoint: straight through while a peer is
/// live, queued otherwise.
#[derive(Debug)]
pub(crate) struct Outbox {
    dialler: Dialler,
    queue: Arc<Queued>,
}

#[derive(Debug, Default)]
struct Queued {
    state: Mutex<State>,
    room: Notify,
    dropped: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    bodies: VecDeque<(TransferMeta, Bytes)>,
    bytes: usize,
    /// A task empties the queue. While it does, nothing may overtake it.
    draining: bool,
}

impl Outbox {
    pub(crate) fn new(dialler: Dialler) -> Self {
        Self {
            dialler,
            queue: Arc::default(),
        }
    }

    pub(crate) fn dialler(&self) -> &Dialler {
        &self.dialler
    }

    /// Bodies discarded at the bound, or given up with the last address.
    pub(crate) fn dropped(&self) -> u64 {
        self.queue.dropped.load(Ordering::Relaxed)
    }

    /// Sends `body` as one transfer and owns it from here.
    ///
    /// # Errors
    ///
    /// As [`Peer::send`](crate::Peer::send).
    ///
    /// # Cancel safety
    ///
    /// While it waits for stream credit or room nothing is sent yet; once the
    /// first byte is written, dropping the future resets the transfer.
    pub(crate) async fn send(&self, meta: TransferMeta, body: &[u8]) -> Result<()> {
        let waiting = self.queue.lock().draining;
        if !waiting {
            match self.dialler.pick() {
                Pick::Live(connection, slot) => {
                    match write(&connection, &slot, &meta, body).await {
                        Ok(()) => return Ok(()),
                        Err(Unwritten::Error(error)) => return Err(error),
                        // Nothing left this process: the body still is ours.
                        Err(Unwritten::Lost) => {}
                    }
                }
                Pick::Down => {}
                Pick::Dead(error) => return Err(ended(error)),
                Pick::Never => return Err(Error::NotConnected),
            }
        }
        if let Some(error) = self.dialler.ended() {
            return Err(ended(error));
        }
        self.enqueue(meta, body).await
    }

    async fn enqueue(&self, meta: TransferMeta, body: &[u8]) -> Result<()> {
        let config = &self.dialler.shared().config;
        if body.len() > config.outbox_bytes {
            return Err(Error::LimitExceeded(None));
        }
        // Checked here, because the task that writes it later can tell nobody.
        drop(meta.frame("/")?);
        let mut changes = self.dialler.changes();
        loop {
            let room = self.queue.room.notified();
            {
                let mut state = self.queue.lock();
                if state.bodies.len() < config.outbox_messages
                    && state.bytes + body.len() <= config.outbox_bytes
                {
                    state.bytes += body.len();
                    state.bodies.push_back((meta, Bytes::copy_from_slice(body)));
                    if !state.draining {
                        state.draining = true;
                        let queue = Arc::clone(&self.queue);
                        let chooser = self.dialler.patient_chooser();
                        self.dialler.shared().tasks.spawn(drain(queue, chooser));
                    }
                    return Ok(());
                }
            }
            match config.outbox_full {
                OutboxFull::Drop => {
                    self.queue.dropped.fetch_add(1, Ordering::Relaxed);
                    return Ok(());
                }
                OutboxFull::Reject => return Err(Error::LimitExceeded(None)),
                OutboxFull::Block => {}
            }
            if let Some(error) = self.dialler.ended() {
                return Err(ended(error));
            }
            tokio::select! {
                () = room => {}
                _ = changes.changed() => {}
            }
        }
    }
}

impl Queued {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The oldest body; ends the drain when there is none.
    fn next(&self) -> Option<(TransferMeta, Bytes)> {
        let mut state = self.lock();
        let Some((meta, body)) = state.bodies.pop_front() else {
            state.draining = false;
            return None;
        };
        state.bytes -= body.len();
        drop(state);
        self.room.notify_one();
        Some((meta, body))
    }

    /// Gives up what is left: nothing would ever write it. `[weida OB-6]`
    fn abandon(&self) {
        let mut state = self.lock();
        let left = state.bodies.len() as u64 + 1;
        state.bodies.clear();
        state.bytes = 0;
        state.draining = false;
        drop(state);
        self.dropped.fetch_add(left, Ordering::Relaxed);
        self.room.notify_waiters();
    }
}

/// Writes queued bodies in order until none is left. `[weida OB-2]`
async fn drain(queue: Arc<Queued>, mut chooser: Chooser) {
    while let Some((meta, body)) = queue.next() {
        loop {
            let Ok((connection, slot)) = chooser.next().await else {
                return queue.abandon();
            };
            match write(&connection, &slot, &meta, &body).await {
                Ok(()) => break,
                Err(Unwritten::Lost) => {
                    if chooser.lost(&connection, &slot).await.is_err() {
                        return queue.abandon();
                    }
                }
                Err(Unwritten::Error(error)) => {
                    // Written in part and lost, or refused: at most once.
                    tracing::debug!(%error, "a queued body was lost");
                    queue.dropped.fetch_add(1, Ordering::Relaxed);
                    break;
                }
            }
        }
    }
}

/// Why a body was not written.
enum Unwritten {
    /// The connection was gone before the first byte.
    Lost,
    Error(Error),
}

/// Writes one whole transfer: head, body and FIN, in as few frames as possible.
async fn write(
    connection: &Connection,
    slot: &Slot,
    meta: &TransferMeta,
    body: &[u8],
) -> std::result::Result<(), Unwritten> {
    let head = slot.head(meta).map_err(Unwritten::Error)?;
    connection
        .check_header(head.header_bytes())
        .map_err(Unwritten::Error)?;
    let Ok(mut stream) = connection.open_uni().await else {
        return Err(Unwritten::Lost);
    };
    let mut chunks = whole_transfer(head.as_bytes(), body);
    match stream.write_chunks(&mut chunks).await {
        Ok(()) => {}
        Err(fail @ SendFail::Lost(_)) => {
            return Err(Unwritten::Error(connection.send_error(fail)));
        }
        Err(fail) => return Err(Unwritten::Error(connection.send_error(fail))),
    }
    stream
        .finish()
        .map_err(|fail| Unwritten::Error(connection.send_error(fail)))?;
    connection.park_receipt(stream);
    Ok(())
}

/// What `send` says once every address gave up.
fn ended(error: Error) -> Error {
    match error {
        error @ (Error::ConnectionLost(_) | Error::LimitExceeded(_)) => error,
        _ => Error::ConnectionLost(weida_core::LossCause::PeerClosed(None)),
    }
}
