//! Rep: a path that answers. `[weida 9]`

use std::fmt;
use std::sync::Arc;

use weida_core::Result;

use super::Replier;
use crate::listener::table::{Claim, Route, Table};
use crate::queue::Queue;
use crate::shared::Life;
use crate::stream;
use crate::transfer::IncomingRequest;

/// What a replier holds.
#[expect(unnameable_types, reason = "sealed: only a type alias names it")]
pub struct RepState {
    claim: Claim,
    queue: Arc<Queue<IncomingRequest>>,
    life: Arc<Life>,
}

impl fmt::Debug for RepState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RepState")
            .field("path", &self.claim.path())
            .finish_non_exhaustive()
    }
}

impl Drop for RepState {
    fn drop(&mut self) {
        // Each request left unanswered says NO_REPLY as it is dropped.
        drop(self.queue.close());
    }
}

impl Replier {
    pub(crate) fn register(life: Arc<Life>, table: &Arc<Table>, path: &str) -> Result<Self> {
        let queue = Arc::new(Queue::new(life.shared.config.endpoint_queue));
        let claim = table.claim(path, Route::Replier(Arc::clone(&queue)))?;
        Ok(Self {
            state: RepState { claim, queue, life },
        })
    }

    /// The path this replier serves.
    pub fn path(&self) -> &str {
        self.state.claim.path()
    }

    /// Waits for the next request. Any number of handlers may wait at once.
    ///
    /// # Errors
    ///
    /// [`Error::ConnectionLost`](crate::Error::ConnectionLost) once the runtime
    /// is closed.
    ///
    /// # Cancel safety
    ///
    /// Safe: nothing is lost.
    pub async fn accept(&self) -> Result<IncomingRequest> {
        stream::next(&self.state.queue, &self.state.life).await
    }
}
