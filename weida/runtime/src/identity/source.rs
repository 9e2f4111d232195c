//! Where an identity comes from, and the identity of the moment.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock, Weak};

use weida_core::{Error, Fingerprint, Result};

use super::files::{FilesOptions, FilesWatch};
use super::{Events, Identity, IdentityEvent, IdentityEvents, Material};

/// Where an identity comes from, and the identity of the moment.
///
/// A binding reads its source at every handshake and a dial at every
/// connection, so a renewed certificate is served without binding again. Live
/// connections keep the key they proved. `[weida 5.1, S8-5]`
///
/// Clones share the source. Two fixed sources holding equal identities are
/// equal; every other source is equal to its own clones only. The connection
/// pool keys on this.
#[derive(Clone)]
pub struct IdentitySource {
    inner: Arc<Inner>,
}

/// A handle to an [`IdentitySource`] that does not keep it alive: what a
/// renewing task holds, so that it ends when the application lets go.
#[derive(Clone)]
pub struct WeakIdentitySource {
    inner: Weak<Inner>,
}

struct Inner {
    origin: Origin,
    current: RwLock<Current>,
    events: Events,
}

enum Origin {
    Fixed,
    External,
    Files(FilesWatch),
}

struct Current {
    identity: Identity,
    /// `None` only for a fixed value nobody has used yet.
    material: Option<Material>,
}

// === impl IdentitySource ===

impl IdentitySource {
    /// A source that holds `identity` and never changes.
    ///
    /// # Errors
    ///
    /// [`Error::Tls`] if the material cannot be read or does not fit together:
    /// a wrong path is found here and not in a handshake.
    pub fn from_identity(identity: Identity) -> Result<Self> {
        let material = identity.load()?;
        Ok(Self::build(Origin::Fixed, identity, Some(material)))
    }

    /// A self-signed identity for `names`, generated in memory and gone with
    /// the process.
    ///
    /// # Errors
    ///
    /// As [`Identity::generate_for`].
    #[cfg(feature = "generate")]
    pub fn ephemeral(names: impl IntoIterator<Item = impl Into<String>>) -> Result<Self> {
        Self::from_identity(Identity::generate_for(names)?)
    }

    /// A source driven from outside: `initial` until
    /// [`IdentitySource::update`].
    ///
    /// # Errors
    ///
    /// As [`IdentitySource::from_identity`].
    pub fn external(initial: Identity) -> Result<Self> {
        let material = initial.load()?;
        Ok(Self::build(Origin::External, initial, Some(material)))
    }

    /// A directory holding `cert.pem` and `key.pem`, loaded again when either
    /// changes.
    ///
    /// The modification times are looked at when the identity is used, at most
    /// once per [`FilesOptions::poll`]; no task and no timer is involved. A
    /// change that does not load leaves the identity in service and is reported
    /// as [`IdentityEvent::RenewalFailed`]. Replace both files atomically, or
    /// the certificate first: a pair that does not fit is never served.
    ///
    /// If neither file exists (and feature `generate` is on), a self-signed
    /// identity for [`FilesOptions::names`] is written first: directory 0700,
    /// files 0600.
    ///
    /// # Errors
    ///
    /// [`Error::Tls`] for a missing half, unreadable files or material that
    /// does not fit together; [`Error::Io`] if the first identity cannot be
    /// written.
    pub fn files(dir: impl Into<PathBuf>, options: FilesOptions) -> Result<Self> {
        let (watch, identity, material) = FilesWatch::open(dir.into(), options)?;
        Ok(Self::build(Origin::Files(watch), identity, Some(material)))
    }

    fn build(origin: Origin, identity: Identity, material: Option<Material>) -> Self {
        Self {
            inner: Arc::new(Inner {
                origin,
                current: RwLock::new(Current { identity, material }),
                events: Events::new(),
            }),
        }
    }

    /// The identity of the moment. On a file source a due check of the files
    /// runs here.
    pub fn current(&self) -> Identity {
        self.poll_files();
        self.read(|current| current.identity.clone())
    }

    /// The fingerprint of the current key.
    ///
    /// # Errors
    ///
    /// [`Error::Tls`], and only on a fixed value that was never checked (made by
    /// `From<Identity>`) and does not load.
    pub fn fingerprint(&self) -> Result<Fingerprint> {
        self.material().map(|material| material.fingerprint)
    }

    /// Replaces the identity of an external source: reported as
    /// [`IdentityEvent::Renewed`] when the key is the same and as
    /// [`IdentityEvent::KeyChanged`] when it is not.
    ///
    /// # Errors
    ///
    /// [`Error::Tls`], and nothing changes: if the material does not load (also
    /// reported as [`IdentityEvent::RenewalFailed`]), or if this source is a
    /// fixed value or a directory.
    pub fn update(&self, identity: Identity) -> Result<()> {
        if !matches!(self.inner.origin, Origin::External) {
            return Err(Error::Tls(
                "only an external identity source takes updates".into(),
            ));
        }
        match identity.load() {
            Ok(material) => {
                self.install(identity, material);
                Ok(())
            }
            Err(error) => {
                self.report_failure(error.to_string());
                Err(error)
            }
        }
    }

    /// Reports a renewal that failed before it produced material. The identity
    /// in service is unchanged.
    pub fn report_failure(&self, reason: impl Into<String>) {
        self.inner
            .events
            .emit(IdentityEvent::RenewalFailed(reason.into()));
    }

    /// Reports that this process's hand-off credential had been redeemed by
    /// somebody else. The identity in service is unchanged; the caller is
    /// expected to stop.
    pub fn report_handoff_stolen(&self) {
        self.inner.events.emit(IdentityEvent::HandoffStolen);
    }

    /// Loads a directory's files now, whatever the poll interval says:
    /// `Ok(true)` when they had changed, `Ok(false)` when not, and always
    /// `Ok(false)` on other sources.
    ///
    /// # Errors
    ///
    /// [`Error::Tls`] if they changed and do not load; also reported as
    /// [`IdentityEvent::RenewalFailed`].
    pub fn reload(&self) -> Result<bool> {
        let Origin::Files(watch) = &self.inner.origin else {
            return Ok(false);
        };
        self.settle(watch.check_now())
    }

    /// The events of this source from now on; each call is a reader of its own,
    /// which may fall 64 events behind.
    pub fn events(&self) -> IdentityEvents {
        self.inner.events.subscribe()
    }

    /// A handle that does not keep this source alive.
    pub fn downgrade(&self) -> WeakIdentitySource {
        WeakIdentitySource {
            inner: Arc::downgrade(&self.inner),
        }
    }

    /// What the next handshake presents.
    pub(crate) fn material(&self) -> Result<Material> {
        self.poll_files();
        if let Some(material) = self.read(|current| current.material.clone()) {
            return Ok(material);
        }
        let material = self.read(|current| current.identity.clone()).load()?;
        self.write(|current| current.material = Some(material.clone()));
        Ok(material)
    }

    /// Presents whatever the test says, fitting or not.
    #[cfg(test)]
    pub(crate) fn present_for_test(&self, certified: Arc<rustls::sign::CertifiedKey>) {
        self.write(|current| {
            let material = current.material.as_mut().expect("a loaded source");
            material.certified = certified;
        });
    }

    fn poll_files(&self) {
        if let Origin::Files(watch) = &self.inner.origin {
            // A failure was reported as an event; what is loaded stays.
            let _: Result<bool> = self.settle(watch.check_if_due());
        }
    }

    /// Turns one look at the files into state and events.
    fn settle(&self, look: super::files::Look) -> Result<bool> {
        match look {
            super::files::Look::Unchanged => Ok(false),
            super::files::Look::Changed(identity, material) => {
                self.install(identity, material);
                Ok(true)
            }
            super::files::Look::Failed { error, repeated } => {
                if !repeated {
                    self.report_failure(error.to_string());
                }
                Err(error)
            }
        }
    }

    fn install(&self, identity: Identity, material: Material) {
        let to = material.fingerprint;
        let before = self.write(|current| {
            let before = std::mem::replace(
                current,
                Current {
                    identity,
                    material: Some(material),
                },
            );
            let same_chain = before.material.as_ref().map(|old| &old.certified.cert)
                == current.material.as_ref().map(|new| &new.certified.cert);
            (before.material.map(|old| old.fingerprint), same_chain)
        });
        self.inner.events.emit(match before {
            (Some(from), _) if from != to => IdentityEvent::KeyChanged { from, to },
            (_, true) => IdentityEvent::Loaded { fingerprint: to },
            (_, false) => IdentityEvent::Renewed { fingerprint: to },
        });
    }

    fn read<T>(&self, look: impl FnOnce(&Current) -> T) -> T {
        let current = self.inner.current.read();
        look(&current.unwrap_or_else(PoisonError::into_inner))
    }

    fn write<T>(&self, change: impl FnOnce(&mut Current) -> T) -> T {
        let current = self.inner.current.write();
        change(&mut current.unwrap_or_else(PoisonError::into_inner))
    }
}

impl fmt::Debug for IdentitySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let origin = match &self.inner.origin {
            Origin::Fixed => "fixed",
            Origin::External => "external",
            Origin::Files(_) => "files",
        };
        f.debug_struct("IdentitySource")
            .field("origin", &origin)
            .field(
                "fingerprint",
                &self.read(|current| current.material.as_ref().map(|it| it.fingerprint)),
            )
            .finish_non_exhaustive()
    }
}

impl PartialEq for IdentitySource {
    fn eq(&self, other: &Self) -> bool {
        if Arc::ptr_eq(&self.inner, &other.inner) {
            return true;
        }
        match (&self.inner.origin, &other.inner.origin) {
            (Origin::Fixed, Origin::Fixed) => {
                self.read(|ours| other.read(|theirs| ours.identity == theirs.identity))
            }
            _ => false,
        }
    }
}

impl Eq for IdentitySource {}

impl Hash for IdentitySource {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match &self.inner.origin {
            Origin::Fixed => self.read(|current| current.identity.hash(state)),
            Origin::External | Origin::Files(_) => Arc::as_ptr(&self.inner).hash(state),
        }
    }
}

impl From<Identity> for IdentitySource {
    /// A fixed source. The material is read at its first use.
    fn from(identity: Identity) -> Self {
        Self::build(Origin::Fixed, identity, None)
    }
}

// === impl WeakIdentitySource ===

impl WeakIdentitySource {
    /// The source, while somebody still holds it.
    pub fn upgrade(&self) -> Option<IdentitySource> {
        self.inner.upgrade().map(|inner| IdentitySource { inner })
    }
}

impl fmt::Debug for WeakIdentitySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakIdentitySource").finish_non_exhaustive()
    }
}
