//! Choosing a live peer, and waiting for one.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use weida_core::{Error, Result};

use super::{Pick, Set, Slot};
use crate::connection::Connection;

/// Chooses live peers for one operation, waiting for redials in between.
pub(crate) struct Chooser {
    set: Arc<Set>,
    changes: watch::Receiver<u64>,
    deadline: Option<Instant>,
}

impl Chooser {
    pub(super) fn new(set: Arc<Set>, limit: Option<Duration>) -> Self {
        let deadline = limit.map(|limit| set.shared.exec.now() + limit);
        Self {
            changes: set.changes.subscribe(),
            set,
            deadline,
        }
    }

    /// The next live peer, round-robin. `[weida RD-1]`
    ///
    /// # Errors
    ///
    /// [`Error::NotConnected`] at once when nothing was ever connected; how the
    /// last slot ended when all gave up; [`Error::ConnectionLost`] when the
    /// deadline passed while every peer was down.
    pub(crate) async fn next(&mut self) -> Result<(Connection, Arc<Slot>)> {
        loop {
            self.changes.borrow_and_update();
            match self.set.pick() {
                Pick::Live(connection, slot) => return Ok((connection, slot)),
                Pick::Dead(error) => return Err(error),
                Pick::Never => return Err(Error::NotConnected),
                Pick::Down => self.wait().await?,
            }
        }
    }

    /// Waits until the slot no longer offers `connection`, which was found
    /// dead before anything was written on it.
    pub(crate) async fn lost(&mut self, connection: &Connection, slot: &Slot) -> Result<()> {
        loop {
            self.changes.borrow_and_update();
            if !slot.live().is_some_and(|live| live.is(connection)) {
                return Ok(());
            }
            self.wait().await?;
        }
    }

    async fn wait(&mut self) -> Result<()> {
        let changed = self.changes.changed();
        let result = match self.deadline {
            None => Some(changed.await),
            Some(deadline) => {
                let exec = &self.set.shared.exec;
                let left = deadline.saturating_duration_since(exec.now());
                exec.timeout(left, changed).await
            }
        };
        match result {
            Some(Ok(())) => Ok(()),
            // The set lives as long as this, so only the deadline is left.
            Some(Err(_)) | None => Err(Error::ConnectionLost(self.set.loss())),
        }
    }
}
