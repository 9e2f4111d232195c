//! What happens to an identity or a trust while it is in service.

use tokio::sync::broadcast;
use weida_core::Fingerprint;

/// Events a reader may fall behind before it is told how many it missed.
/// `[weida INV-12]`
const MAX_PENDING_EVENTS: usize = 64;

/// One transition of an [`IdentitySource`](crate::IdentitySource) or a
/// [`TrustSource`](crate::TrustSource).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IdentityEvent {
    /// A reload found the same certificate and the same key.
    Loaded {
        /// The key's fingerprint.
        fingerprint: Fingerprint,
    },
    /// The certificate changed, the key did not: peers that pin notice nothing.
    Renewed {
        /// The key's fingerprint, unchanged.
        fingerprint: Fingerprint,
    },
    /// The key changed: for everyone who pinned the old one this is a stranger.
    /// `[weida S8-28]`
    KeyChanged {
        /// The fingerprint that was.
        from: Fingerprint,
        /// The fingerprint that is.
        to: Fingerprint,
    },
    /// A reload, renewal or refresh failed; what was in service stays.
    RenewalFailed(String),
    /// A hand-off credential had been redeemed by somebody else; the process
    /// should not continue. Reported by an external source.
    HandoffStolen,
    /// A trust source was given new anchors or pins.
    TrustRefreshed,
    /// The reader fell behind by this many events, which are gone.
    Missed(u64),
}

/// The events of one source, from the moment this reader was made.
#[derive(Debug)]
pub struct IdentityEvents {
    receiver: broadcast::Receiver<IdentityEvent>,
}

impl IdentityEvents {
    /// The next event, or `None` once the source is gone.
    ///
    /// Cancel safe: a dropped call loses no event.
    pub async fn recv(&mut self) -> Option<IdentityEvent> {
        match self.receiver.recv().await {
            Ok(event) => Some(event),
            Err(broadcast::error::RecvError::Lagged(missed)) => Some(IdentityEvent::Missed(missed)),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}

/// The sending side, held by a source.
#[derive(Debug)]
pub(crate) struct Events(broadcast::Sender<IdentityEvent>);

impl Events {
    pub(crate) fn new() -> Self {
        Self(broadcast::Sender::new(MAX_PENDING_EVENTS))
    }

    pub(crate) fn emit(&self, event: IdentityEvent) {
        let _: Result<usize, _> = self.0.send(event); // nobody listens, nobody is owed it
    }

    pub(crate) fn subscribe(&self) -> IdentityEvents {
        IdentityEvents {
            receiver: self.0.subscribe(),
        }
    }
}
