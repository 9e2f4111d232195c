//! The identity file: created once with mode 0600, never overwritten. `[gateway.md 3, identity]`

use std::path::{Path, PathBuf};

use weida::Fingerprint;
use zeroize::Zeroizing;

use crate::config::valid;

/// Why there is no identity.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IdentityError {
    /// A file stands there already; it is never overwritten.
    #[error("{} exists and is never overwritten", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The file can't be written or read.
    #[error("{}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file holds no usable key and certificate, or none can be made.
    #[error("{} is no identity", path.display())]
    Key {
        /// The file.
        path: PathBuf,
        /// Why.
        source: weida::Error,
    },
}

/// Makes a new identity and writes it to `path`, readable by its owner only. Folders on the way are made, for the owner
/// only too.
///
/// # Errors
///
/// [`IdentityError::Exists`] when anything stands at `path`.
pub fn create(path: &Path) -> Result<Fingerprint, IdentityError> {
    let io = |source| IdentityError::Io {
        path: path.to_owned(),
        source,
    };
    let key = |source| IdentityError::Key {
        path: path.to_owned(),
        source,
    };
    if path.symlink_metadata().is_ok() {
        return Err(IdentityError::Exists {
            path: path.to_owned(),
        });
    }
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    make_folder(folder).map_err(io)?;
    let names = ["localhost", "127.0.0.1", "::1"];
    let identity = weida::Identity::generate_for(names).map_err(key)?;
    let pem = Zeroizing::new(identity.to_pem().map_err(key)?);
    // A temporary file has mode 0600 from its first moment, and only a complete one gets the name.
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(io)?;
    std::io::Write::write_all(&mut file, pem.as_bytes()).map_err(io)?;
    file.as_file().sync_all().map_err(io)?;
    file.persist_noclobber(path)
        .map_err(|error| match error.error.kind() {
            std::io::ErrorKind::AlreadyExists => IdentityError::Exists {
                path: path.to_owned(),
            },
            _ => io(error.error),
        })?;
    std::fs::File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(io)?;
    identity.fingerprint().map_err(key)
}

/// The identity of the configuration; on the first start it is made.
///
/// # Errors
///
/// When the file can't be made, read or understood.
pub fn load_or_create(config: &valid::Identity) -> Result<weida::Identity, IdentityError> {
    match create(&config.key_file) {
        Ok(_) | Err(IdentityError::Exists { .. }) => {}
        Err(error) => return Err(error),
    }
    load(config)
}

/// The identity of the configuration as it stands on disk.
///
/// # Errors
///
/// When a file is missing or holds no key and certificate.
pub fn load(config: &valid::Identity) -> Result<weida::Identity, IdentityError> {
    let identity = match &config.cert_file {
        Some(chain) => weida::Identity::from_pem_files(chain, &config.key_file),
        None => weida::Identity::from_pem_file(&config.key_file),
    };
    let key = |source| IdentityError::Key {
        path: config.key_file.clone(),
        source,
    };
    identity.fingerprint().map_err(key)?;
    Ok(identity)
}

/// Makes a folder, and those above it, for the owner only; leaves one that exists as it is.
///
/// # Errors
///
/// As the system says.
pub(crate) fn make_folder(folder: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}
