//! An identity that lives in a directory somebody else rewrites.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError, TryLockError};
use std::time::{Duration, SystemTime};

use tokio::time::Instant;
use weida_core::{Error, Result};

use super::{Identity, Material};

const CERT_FILE: &str = "cert.pem";
const KEY_FILE: &str = "key.pem";

/// How a directory source watches its files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilesOptions {
    /// Names in the certificate that is generated when the directory is empty.
    /// Unused when files exist.
    pub names: Vec<String>,
    /// How long one look at the files is good for. Default 10 s.
    pub poll: Duration,
}

impl Default for FilesOptions {
    fn default() -> Self {
        Self {
            names: Vec::new(),
            poll: Duration::from_secs(10),
        }
    }
}

/// The directory and what we know of it.
pub(super) struct FilesWatch {
    dir: PathBuf,
    poll: Duration,
    state: Mutex<State>,
}

struct State {
    due: Instant,
    /// The files as they were when the identity in service was read.
    loaded: Stamps,
    /// The files as they were at the last failure, so that one broken renewal
    /// is one event and not one per poll.
    failed: Option<Stamps>,
}

/// What one look at the directory found.
pub(super) enum Look {
    Unchanged,
    Changed(Identity, Material),
    Failed { error: Error, repeated: bool },
}

impl FilesWatch {
    pub(super) fn open(dir: PathBuf, options: FilesOptions) -> Result<(Self, Identity, Material)> {
        let (cert, key) = (dir.join(CERT_FILE), dir.join(KEY_FILE));
        match (cert.exists(), key.exists()) {
            (true, true) => {}
            (false, false) => bootstrap(&dir, options.names)?,
            (true, false) | (false, true) => {
                return Err(Error::Tls(format!(
                    "{} holds one of {CERT_FILE} and {KEY_FILE}, not both",
                    dir.display()
                )));
            }
        }
        // Stamped before reading: a change in between is seen at the next look.
        let loaded = Stamps::of(&dir);
        let (identity, material) = read(&dir)?;
        let watch = Self {
            dir,
            poll: options.poll,
            state: Mutex::new(State {
                due: Instant::now() + options.poll,
                loaded,
                failed: None,
            }),
        };
        Ok((watch, identity, material))
    }

    /// Looks if the last look is older than the interval. While another thread
    /// is looking, what is loaded is good enough.
    pub(super) fn check_if_due(&self) -> Look {
        let mut state = match self.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return Look::Unchanged,
        };
        if Instant::now() < state.due {
            return Look::Unchanged;
        }
        self.check(&mut state)
    }

    pub(super) fn check_now(&self) -> Look {
        self.check(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn check(&self, state: &mut State) -> Look {
        state.due = Instant::now() + self.poll;
        let stamps = Stamps::of(&self.dir);
        if stamps == state.loaded {
            return Look::Unchanged;
        }
        match read(&self.dir) {
            Ok((identity, material)) => {
                state.loaded = stamps;
                state.failed = None;
                Look::Changed(identity, material)
            }
            Err(error) => {
                let repeated = state.failed.replace(stamps) == Some(stamps);
                Look::Failed { error, repeated }
            }
        }
    }
}

/// Modification time and length of both files, as far as they can be read.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stamps([Option<(SystemTime, u64)>; 2]);

impl Stamps {
    fn of(dir: &Path) -> Self {
        Self([CERT_FILE, KEY_FILE].map(|name| {
            let metadata = std::fs::metadata(dir.join(name)).ok()?;
            Some((metadata.modified().ok()?, metadata.len()))
        }))
    }
}

/// Both files, into memory: what is in service must not depend on what is
/// written there next.
fn read(dir: &Path) -> Result<(Identity, Material)> {
    let on_disk = Identity::from_pem_files(dir.join(CERT_FILE), dir.join(KEY_FILE));
    let identity = Identity {
        cert_chain: super::Pem::Bytes(on_disk.cert_chain.load()?),
        key: super::Pem::Bytes(on_disk.key.load()?),
    };
    let material = identity.load()?;
    Ok((identity, material))
}

#[cfg(feature = "generate")]
fn bootstrap(dir: &Path, names: Vec<String>) -> Result<()> {
    use std::io::Write;
    use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};

    let identity = Identity::generate_for(names)?;
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true).mode(0o700).create(dir)?;
    // The key first: a crash in between leaves half an identity, which the next
    // start refuses rather than serving another key.
    for (name, pem) in [(KEY_FILE, &identity.key), (CERT_FILE, &identity.cert_chain)] {
        let mut options = std::fs::OpenOptions::new();
        let mut file = options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(dir.join(name))?;
        file.write_all(&pem.load()?)?;
        file.sync_all()?;
    }
    Ok(())
}

#[cfg(not(feature = "generate"))]
fn bootstrap(dir: &Path, _names: Vec<String>) -> Result<()> {
    Err(Error::Tls(format!(
        "{} holds neither {CERT_FILE} nor {KEY_FILE}",
        dir.display()
    )))
}
