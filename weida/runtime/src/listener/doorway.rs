//! Who may come in: the caps a binding applies before and after a handshake.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use weida_core::Fingerprint;

/// Counts of one binding. `[weida CN-8, CN-9, CN-10]`
#[derive(Debug, Default)]
pub(super) struct Doorway {
    connections: AtomicUsize,
    handshakes: AtomicUsize,
    per_peer: Mutex<HashMap<Fingerprint, usize>>,
}

/// A place among a binding's connections; dropping it frees the place.
#[derive(Debug)]
pub(super) struct Place(Arc<Doorway>);

/// A place among a binding's handshakes.
#[derive(Debug)]
pub(super) struct Handshaking(Arc<Doorway>);

/// A place among one key's connections.
#[derive(Debug)]
pub(super) struct PeerPlace {
    doorway: Arc<Doorway>,
    peer: Fingerprint,
}

impl Doorway {
    pub(super) fn enter(self: &Arc<Self>, max: usize) -> Option<Place> {
        take(&self.connections, max).then(|| Place(Arc::clone(self)))
    }

    pub(super) fn shake(self: &Arc<Self>, max: usize) -> Option<Handshaking> {
        take(&self.handshakes, max).then(|| Handshaking(Arc::clone(self)))
    }

    pub(super) fn handshakes(&self) -> usize {
        self.handshakes.load(Ordering::Relaxed)
    }

    /// A place for `peer`, unless it holds `max` already.
    pub(super) fn admit_peer(self: &Arc<Self>, peer: Fingerprint, max: usize) -> Option<PeerPlace> {
        let mut held = self.per_peer.lock().unwrap_or_else(PoisonError::into_inner);
        // No entry for a key that is not let in: anybody can make up keys.
        let count = held.get(&peer).copied().unwrap_or(0);
        if count >= max {
            return None;
        }
        held.insert(peer, count + 1);
        Some(PeerPlace {
            doorway: Arc::clone(self),
            peer,
        })
    }
}

fn take(count: &AtomicUsize, max: usize) -> bool {
    count
        .fetch_update(Ordering::AcqRel, Ordering::Acquire, |now| {
            (now < max).then_some(now + 1)
        })
        .is_ok()
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Drop for Handshaking {
    fn drop(&mut self) {
        self.0.handshakes.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Drop for PeerPlace {
    fn drop(&mut self) {
        let mut held = self
            .doorway
            .per_peer
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = held.get_mut(&self.peer) {
            *count -= 1;
            if *count == 0 {
                held.remove(&self.peer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cn_9_a_key_that_is_not_let_in_leaves_nothing_behind() {
        let doorway = Arc::<Doorway>::default();
        let peer = Fingerprint::from_bytes([7; 32]);
        let first = doorway.admit_peer(peer, 1);
        assert!(first.is_some());
        assert!(doorway.admit_peer(peer, 1).is_none());
        drop(first);
        assert!(doorway.admit_peer(peer, 0).is_none());
        assert!(doorway.per_peer.lock().unwrap().is_empty());
    }
}
