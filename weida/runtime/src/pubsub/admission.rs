//! The application's say in whose copies are sent. `[weida PS-16]`, DESIGN D12
//!
//! A decision here is local. Nothing on the wire answers a SUBSCRIBE, a
//! declined filter stays recorded and keeps its place under
//! `max_subscriptions`, and the connection lives. `[weida S17-13, S17-14]`

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

use weida_core::PeerIdentity;

use crate::tls::PeerChain;

/// One filter a subscriber asks for. Peer and chain are what the transport
/// proved; nothing in here is a claim about who somebody is.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct SubscriptionRequest<'a> {
    /// Who asks; `None` if the peer proved nothing. Two `None` are two peers.
    pub peer: Option<&'a PeerIdentity>,
    /// The certificate chain behind a proved key, if it was small enough to be
    /// kept.
    pub peer_chain: Option<&'a PeerChain>,
    /// The publisher's path.
    pub path: &'a str,
    /// The filter, well-formed. It selects topics; it grants nothing.
    pub filter: &'a str,
}

/// What becomes of a filter's copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Recorded, and its copies are sent.
    Record,
    /// Recorded, and its copies are not sent but counted as
    /// [`TopicDrops::declined`](crate::TopicDrops::declined).
    DeclineCopies,
}

type Decide = dyn Fn(&SubscriptionRequest<'_>) -> Admission + Send + Sync;

/// An installed decision. One call at a time.
pub(super) struct Hook(Mutex<Box<Decide>>);

impl Hook {
    pub(super) fn new(
        decide: impl Fn(&SubscriptionRequest<'_>) -> Admission + Send + Sync + 'static,
    ) -> Self {
        Self(Mutex::new(Box::new(decide)))
    }

    /// Whether the application declines the copies. A panic declines: what
    /// cannot decide must not let anybody in.
    pub(super) fn declines(&self, request: &SubscriptionRequest<'_>) -> bool {
        let decide = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = catch_unwind(AssertUnwindSafe(|| decide(request)));
        if answer.is_err() {
            tracing::error!(
                path = request.path,
                "admission panicked, its copies are declined"
            );
        }
        !matches!(answer, Ok(Admission::Record))
    }
}

impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hook").finish_non_exhaustive()
    }
}
