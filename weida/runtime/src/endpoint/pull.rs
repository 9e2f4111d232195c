//! Pull: a path that receives. `[weida 10]`

use std::fmt;
use std::sync::Arc;

use weida_core::{Result, codes};

use super::Puller;
use crate::listener::table::{Claim, Route, Table};
use crate::queue::Queue;
use crate::shared::Life;
use crate::stream;
use crate::transfer::IncomingTransfer;

/// What a puller holds.
#[expect(unnameable_types, reason = "sealed: only a type alias names it")]
pub struct PullState {
    claim: Claim,
    queue: Arc<Queue<IncomingTransfer>>,
    life: Arc<Life>,
}

impl fmt::Debug for PullState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PullState")
            .field("path", &self.claim.path())
            .finish_non_exhaustive()
    }
}

impl Drop for PullState {
    fn drop(&mut self) {
        for left in self.queue.close() {
            left.refuse(codes::UNKNOWN_ENDPOINT);
        }
    }
}

impl Puller {
    pub(crate) fn register(life: Arc<Life>, table: &Arc<Table>, path: &str) -> Result<Self> {
        let queue = Arc::new(Queue::new(life.shared.config.endpoint_queue));
        let claim = table.claim(path, Route::Puller(Arc::clone(&queue)))?;
        Ok(Self {
            state: PullState { claim, queue, life },
        })
    }

    /// The path this puller serves.
    pub fn path(&self) -> &str {
        self.state.claim.path()
    }

    /// Waits for the next transfer.
    ///
    /// # Errors
    ///
    /// [`Error::ConnectionLost`](crate::Error::ConnectionLost) once the runtime
    /// is closed.
    ///
    /// # Cancel safety
    ///
    /// Safe: nothing is lost.
    pub async fn recv(&self) -> Result<IncomingTransfer> {
        stream::next(&self.state.queue, &self.state.life).await
    }
}
