//! Pub: fan-out to whoever subscribed.

use std::fmt;
use std::sync::Arc;

use weida_core::Result;

use super::Publisher;
use crate::listener::table::{Claim, Route, Table};
use crate::shared::Life;

/// What a publisher holds.
#[expect(unnameable_types, reason = "sealed: only a type alias names it")]
pub struct PubState {
    claim: Claim,
    _life: Arc<Life>,
}

impl fmt::Debug for PubState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PubState")
            .field("path", &self.claim.path())
            .finish_non_exhaustive()
    }
}

impl Publisher {
    pub(crate) fn register(life: Arc<Life>, table: &Arc<Table>, path: &str) -> Result<Self> {
        let claim = table.claim(path, Route::Publisher)?;
        Ok(Self {
            state: PubState { claim, _life: life },
        })
    }

    /// The path this publisher serves.
    pub fn path(&self) -> &str {
        self.state.claim.path()
    }
}
