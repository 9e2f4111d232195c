//! Who may do what on a weida listener: the `[[grant]]` table asked with proved facts only (`gateway.md` 11, [weida 5.3]).
//!
//! The answer depends on the peer that the transport proved and on the path. A topic, a header, a filter or a label is
//! never looked at [weida AZ-1]. Denied by default; the first grant whose `who` names the peer decides alone.
//!
//! | Refused | Answer |
//! | --- | --- |
//! | subscription | none on the wire: recorded, its copies declined and counted [weida S17-13, S17-14] |
//! | push | the transfer is stopped with REJECTED |
//! | request | ERROR REJECTED |

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tracing::info;
use weida_bridge::metrics::{RefusedCause, RefusedOp};
use weida_core::{Fingerprint, PeerIdentity};

use crate::config::valid::Grant;

/// Refusals of one listener by operation and cause.
#[derive(Debug)]
pub struct Refusals {
    listener: Arc<str>,
    counts: [[AtomicU64; RefusedCause::ALL.len()]; RefusedOp::ALL.len()],
}

impl Refusals {
    /// Nothing refused yet.
    #[must_use]
    pub fn new(listener: Arc<str>) -> Self {
        Self {
            listener,
            counts: Default::default(),
        }
    }

    /// The listener's name.
    #[must_use]
    pub fn listener(&self) -> &str {
        &self.listener
    }

    /// Counts one refusal.
    pub fn count(&self, op: RefusedOp, cause: RefusedCause) {
        self.counts[op as usize][cause as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// How often that was refused for that cause.
    #[must_use]
    pub fn of(&self, op: RefusedOp, cause: RefusedCause) -> u64 {
        self.counts[op as usize][cause as usize].load(Ordering::Relaxed)
    }
}

/// The grants of one weida listener.
#[derive(Clone, Debug)]
pub struct WeidaGrants {
    grants: Arc<[Grant]>,
    refusals: Arc<Refusals>,
}

impl WeidaGrants {
    /// Keeps what holds on this listener, in file order.
    #[must_use]
    pub fn new<'a>(listener: &Arc<str>, grants: impl IntoIterator<Item = &'a Grant>) -> Self {
        let grants = grants
            .into_iter()
            .filter(|grant| grant.holds_on(listener))
            .cloned()
            .collect();
        Self {
            grants,
            refusals: Arc::new(Refusals::new(Arc::clone(listener))),
        }
    }

    /// Whether that peer may get copies of what is published at `path`; a no is logged and counted.
    #[must_use]
    pub fn may_subscribe(&self, peer: Option<&PeerIdentity>, path: &str) -> bool {
        self.decide(RefusedOp::Subscribe, Proved::by(peer), path)
    }

    /// Whether that peer may push or request at `path`; a no is logged and counted.
    #[must_use]
    pub fn may_publish(&self, peer: Option<&PeerIdentity>, path: &str) -> bool {
        self.decide(RefusedOp::Publish, Proved::by(peer), path)
    }

    /// What was refused.
    #[must_use]
    pub fn refusals(&self) -> &Arc<Refusals> {
        &self.refusals
    }

    fn decide(&self, op: RefusedOp, proved: Proved, path: &str) -> bool {
        let key = match proved {
            Proved::Nothing => Some(None),
            Proved::Key(key) => Some(Some(key)),
            Proved::Principal => None,
        };
        let first = key.and_then(|key| {
            self.grants
                .iter()
                .find(|grant| grant.who.iter().any(|who| who.is_peer(key)))
        });
        let allowed = first.is_some_and(|grant| match op {
            RefusedOp::Connect => true,
            RefusedOp::Publish => grant.weida_may_publish(path),
            RefusedOp::Subscribe => grant.weida_may_subscribe(path),
        });
        if !allowed {
            self.refusals.count(op, RefusedCause::NotAuthorized);
            info!(
                code = "GRT001",
                listener = self.refusals.listener(),
                op = op.as_str(),
                path = ?path,
                peer = %proved,
                "no grant allows this"
            );
        }
        allowed
    }
}

/// What the transport proved of whoever asks.
#[derive(Clone, Copy, Debug)]
enum Proved {
    /// Nobody in particular: `anonymous`.
    Nothing,
    /// This key.
    Key(Fingerprint),
    /// A local principal: neither a key nor nobody, and no `who` of this version names one.
    Principal,
}

impl Proved {
    fn by(peer: Option<&PeerIdentity>) -> Self {
        match peer {
            None => Self::Nothing,
            Some(peer) => peer.key().map_or(Self::Principal, Self::Key),
        }
    }
}

impl std::fmt::Display for Proved {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Nothing => f.write_str("anonymous"),
            Self::Key(key) => key.fmt(f),
            Self::Principal => f.write_str("local principal"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::valid::{Allow, Who};

    fn grant(who: Who, publish: &[&str], subscribe: &[&str], listen: Option<&str>) -> Grant {
        let allow = |texts: &[&str]| texts.iter().map(|text| Allow::new(text)).collect();
        Grant {
            who: vec![who],
            listen: listen.map(Into::into),
            publish: allow(publish),
            deny_publish: Vec::new(),
            subscribe: allow(subscribe),
            deny_subscribe: Vec::new(),
            will: None,
            client_id: None,
            rate: None,
        }
    }

    fn key(n: u8) -> (Fingerprint, Proved) {
        let fingerprint = Fingerprint::of_spki(&[n]);
        (fingerprint, Proved::Key(fingerprint))
    }

    impl WeidaGrants {
        fn publishes(&self, proved: Proved, path: &str) -> bool {
            self.decide(RefusedOp::Publish, proved, path)
        }

        fn subscribes(&self, proved: Proved, path: &str) -> bool {
            self.decide(RefusedOp::Subscribe, proved, path)
        }
    }

    fn on_weida(grants: &[Grant]) -> WeidaGrants {
        WeidaGrants::new(&"weida".into(), grants)
    }

    /// Without a grant nobody may do anything, and each no is counted.
    #[test]
    fn gateway_11_denied_by_default() {
        let (_, peer) = key(1);
        let none = on_weida(&[]);
        assert!(!none.subscribes(peer, "/a"));
        assert!(!none.publishes(peer, "/a"));
        assert!(!none.publishes(Proved::Nothing, "/a"));
        let refused = |op| none.refusals().of(op, RefusedCause::NotAuthorized);
        assert_eq!(
            (refused(RefusedOp::Subscribe), refused(RefusedOp::Publish)),
            (1, 2)
        );
    }

    #[test]
    fn az_1_the_proved_key_and_the_path_decide() {
        let ((one, one_peer), (_, two_peer)) = (key(1), key(2));
        let grants = on_weida(&[grant(Who::Peer(one), &["/in"], &["/out"], None)]);
        assert!(grants.publishes(one_peer, "/in"));
        assert!(grants.subscribes(one_peer, "/out"));
        assert!(!grants.publishes(one_peer, "/out"));
        assert!(!grants.publishes(two_peer, "/in"));
        assert!(!grants.publishes(Proved::Nothing, "/in"));
    }

    /// A path is a name, not a place in a tree: nothing below, above or beside it follows, and what looks like a pattern is none.
    #[test]
    fn az_2_s17_27_a_grant_reads_no_structure_into_paths() {
        let (_, peer) = key(1);
        let grants = on_weida(&[grant(Who::AnyPeer, &["/in", "/a/*"], &["/out"], None)]);
        assert!(grants.publishes(peer, "/in") && grants.publishes(peer, "/a/*"));
        for other in ["/in/", "/in/x", "/IN", "/i", "/a/b", "/a/", "/%69n"] {
            assert!(!grants.publishes(peer, other), "{other}");
        }
        assert!(grants.subscribes(peer, "/out"));
        for other in ["/out/#", "/out.a", "/outer"] {
            assert!(!grants.subscribes(peer, other), "{other}");
        }
    }

    /// `peer:*` is everybody who proved a key; `anonymous` is everybody who did not.
    #[test]
    fn s8_3_anonymous_is_not_a_peer() {
        let (_, peer) = key(1);
        let any = on_weida(&[grant(Who::AnyPeer, &["*"], &[], None)]);
        assert!(any.publishes(peer, "/a"));
        assert!(!any.publishes(Proved::Nothing, "/a"));
        let anonymous = on_weida(&[grant(Who::Anonymous, &["*"], &[], None)]);
        assert!(anonymous.publishes(Proved::Nothing, "/a"));
        assert!(!anonymous.publishes(peer, "/a"));
    }

    /// The first grant that names the peer decides alone, even when a later one would say yes.
    #[test]
    fn gateway_11_the_first_matching_grant_decides_alone() {
        let ((one, one_peer), (_, two_peer)) = (key(1), key(2));
        let grants = on_weida(&[
            grant(Who::Peer(one), &[], &[], None),
            grant(Who::AnyPeer, &["/in"], &[], None),
        ]);
        assert!(grants.publishes(two_peer, "/in"));
        assert!(!grants.publishes(one_peer, "/in"));
    }

    /// A local principal proved something, so it is not anonymous, and no grant of this version names it.
    #[test]
    fn s8_1_a_local_principal_is_not_anonymous() {
        let grants = on_weida(&[
            grant(Who::Anonymous, &["*"], &[], None),
            grant(Who::AnyPeer, &["*"], &[], None),
        ]);
        assert!(grants.publishes(Proved::Nothing, "/in"));
        assert!(!grants.publishes(Proved::Principal, "/in"));
    }

    #[test]
    fn gateway_11_a_grant_holds_on_its_listener() {
        let (_, peer) = key(1);
        let grants = on_weida(&[
            grant(Who::AnyPeer, &["/other"], &[], Some("elsewhere")),
            grant(Who::AnyPeer, &["/in"], &[], Some("weida")),
        ]);
        assert!(grants.publishes(peer, "/in"));
        assert!(!grants.publishes(peer, "/other"));
    }
}
