//! Whom we accept as a peer: pins, anchors, and their source. `[wire 3.3]`
//!
//! There is no platform root store and nothing that switches verification off.
//! `[weida ID-4]`

use std::fmt;
use std::hash::{Hash, Hasher};
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock, Weak};

use weida_core::Fingerprint;
use zeroize::Zeroizing;

use crate::identity::{Events, IdentityEvent, IdentityEvents, Pem};

/// Whom a peer is accepted as.
///
/// A peer is accepted if its key is pinned, **or** its certificate chains to an
/// anchor and (for a server) names the dialled host. A fingerprint in the
/// dialled address overrides both: then only that key is accepted on that
/// connection. `[weida AD-5, ID-2]`
///
/// An empty trust accepts only what the address names; dialling an address
/// without a fingerprint under it fails before a packet is sent. `[weida ID-3]`
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Trust {
    /// PEM sources of certificate-authority certificates.
    pub anchors: Vec<Pem>,
    /// Keys accepted outright.
    pub pins: Vec<Fingerprint>,
}

impl Trust {
    /// Only what each dialled address names.
    pub fn by_address() -> Self {
        Self::default()
    }

    /// One key.
    pub fn pin(fingerprint: Fingerprint) -> Self {
        Self::default().and_pin(fingerprint)
    }

    /// The certificate authorities in a PEM buffer.
    pub fn anchor(pem: impl Into<Vec<u8>>) -> Self {
        Self::default().and_anchor(pem)
    }

    /// The certificate authorities in a PEM file.
    pub fn anchor_file(path: impl Into<PathBuf>) -> Self {
        Self::default().and_anchor_file(path)
    }

    /// Adds a key.
    #[must_use]
    pub fn and_pin(mut self, fingerprint: Fingerprint) -> Self {
        self.pins.push(fingerprint);
        self
    }

    /// Adds the certificate authorities in a PEM buffer.
    #[must_use]
    pub fn and_anchor(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.anchors.push(Pem::Bytes(Zeroizing::new(pem.into())));
        self
    }

    /// Adds the certificate authorities in a PEM file.
    #[must_use]
    pub fn and_anchor_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.anchors.push(Pem::File(path.into()));
        self
    }

    /// True when nothing is trusted beyond what an address names.
    pub fn is_empty(&self) -> bool {
        self.anchors.is_empty() && self.pins.is_empty()
    }
}

/// Whom a binding lets in when it requires clients to present a key.
///
/// This type is not accepted anywhere on the dialling side: a dialler always
/// expects somebody. `[weida ID-8]`
///
/// ```compile_fail
/// let tls = weida::ClientTls::new(weida::ClientTrust::AnyKey);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ClientTrust {
    /// Keys this source trusts: pinned, or chaining to an anchor.
    Trusted(TrustSource),
    /// Any key the client proves it holds. Nothing else about it is judged: no
    /// pin, issuer, name or date. `[weida ID-7]`
    AnyKey,
}

impl From<Trust> for ClientTrust {
    fn from(trust: Trust) -> Self {
        Self::Trusted(trust.into())
    }
}

impl From<TrustSource> for ClientTrust {
    fn from(trust: TrustSource) -> Self {
        Self::Trusted(trust)
    }
}

/// A trust that may change under a live binding or endpoint; read at every
/// handshake.
///
/// Two fixed sources holding equal trusts are equal; an external one is equal
/// to its own clones only. The connection pool keys on this.
#[derive(Clone)]
pub struct TrustSource {
    inner: Arc<Inner>,
}

/// A handle to a [`TrustSource`] that does not keep it alive.
#[derive(Clone)]
pub struct WeakTrustSource {
    inner: Weak<Inner>,
}

struct Inner {
    external: bool,
    current: RwLock<Snapshot>,
    events: Events,
}

/// A trust and how many updates came before it.
#[derive(Clone)]
pub(crate) struct Snapshot {
    pub(crate) version: u64,
    pub(crate) trust: Arc<Trust>,
}

// === impl TrustSource ===

impl TrustSource {
    /// A source that holds `trust` and never changes.
    pub fn from_trust(trust: Trust) -> Self {
        Self::build(trust, false)
    }

    /// A source driven from outside through [`TrustSource::update`].
    pub fn external(initial: Trust) -> Self {
        Self::build(initial, true)
    }

    fn build(trust: Trust, external: bool) -> Self {
        Self {
            inner: Arc::new(Inner {
                external,
                current: RwLock::new(Snapshot {
                    version: 0,
                    trust: Arc::new(trust),
                }),
                events: Events::new(),
            }),
        }
    }

    /// The trust of the moment.
    pub fn current(&self) -> Trust {
        Trust::clone(&self.snapshot().trust)
    }

    /// Replaces the trust of an external source, reported as
    /// [`IdentityEvent::TrustRefreshed`]. The next handshake is judged by it;
    /// live connections stay. A withdrawal takes effect the same way.
    ///
    /// A fixed source is equal to others of the same content and therefore does
    /// not change: there the update is refused and reported as
    /// [`IdentityEvent::RenewalFailed`].
    pub fn update(&self, trust: Trust) {
        if !self.inner.external {
            self.report_failure("only an external trust source takes updates");
            return;
        }
        {
            let current = self.inner.current.write();
            let mut current = current.unwrap_or_else(PoisonError::into_inner);
            current.version += 1;
            current.trust = Arc::new(trust);
        }
        self.inner.events.emit(IdentityEvent::TrustRefreshed);
    }

    /// Reports a failed refresh; the trust in service is unchanged.
    pub fn report_failure(&self, reason: impl Into<String>) {
        self.inner
            .events
            .emit(IdentityEvent::RenewalFailed(reason.into()));
    }

    /// The events of this source from now on.
    pub fn events(&self) -> IdentityEvents {
        self.inner.events.subscribe()
    }

    /// True when nothing is trusted beyond what an address names.
    pub fn is_empty(&self) -> bool {
        self.snapshot().trust.is_empty()
    }

    /// A handle that does not keep this source alive.
    pub fn downgrade(&self) -> WeakTrustSource {
        WeakTrustSource {
            inner: Arc::downgrade(&self.inner),
        }
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        let current = self.inner.current.read();
        current.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl fmt::Debug for TrustSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TrustSource")
            .field("external", &self.inner.external)
            .field("trust", &self.snapshot().trust)
            .finish()
    }
}

impl PartialEq for TrustSource {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
            || (!self.inner.external
                && !other.inner.external
                && self.snapshot().trust == other.snapshot().trust)
    }
}

impl Eq for TrustSource {}

impl Hash for TrustSource {
    fn hash<H: Hasher>(&self, state: &mut H) {
        if self.inner.external {
            Arc::as_ptr(&self.inner).hash(state);
        } else {
            self.snapshot().trust.hash(state);
        }
    }
}

impl From<Trust> for TrustSource {
    fn from(trust: Trust) -> Self {
        Self::from_trust(trust)
    }
}

// === impl WeakTrustSource ===

impl WeakTrustSource {
    /// The source, while somebody still holds it.
    pub fn upgrade(&self) -> Option<TrustSource> {
        self.inner.upgrade().map(|inner| TrustSource { inner })
    }
}

impl fmt::Debug for WeakTrustSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakTrustSource").finish_non_exhaustive()
    }
}
