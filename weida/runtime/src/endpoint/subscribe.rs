//! Sub: filters on publishers' paths, one queue of copies.

use std::fmt;
use std::sync::Arc;

use weida_core::Result;

use super::Subscriber;
use crate::shared::Life;
use crate::slot::Dialler;
use crate::tls::ClientTls;

/// What a subscriber holds.
#[expect(unnameable_types, reason = "sealed: only a type alias names it")]
pub struct SubState {
    dialler: Dialler,
    _life: Arc<Life>,
}

impl fmt::Debug for SubState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SubState").finish_non_exhaustive()
    }
}

impl Subscriber {
    pub(crate) fn new(life: Arc<Life>, tls: ClientTls) -> Self {
        let dialler = Dialler::new(&life.shared, tls, None);
        Self {
            state: SubState {
                dialler,
                _life: life,
            },
        }
    }

    /// Dials a publisher and keeps the address.
    ///
    /// # Errors
    ///
    /// As [`Peer::connect`](crate::Peer::connect).
    pub async fn connect(&self, url: &str) -> Result<()> {
        self.state.dialler.connect(url).await
    }
}
