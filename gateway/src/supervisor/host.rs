//! What the process asks of the system: descriptors, the lock on its folder, signals.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing::warn;

use crate::config::Config;
use crate::identity::make_folder;

/// Descriptors beside sessions and connections: sockets of listeners, logs, the identity.
const SPARE_FILES: u64 = 64;

/// Raises the limit of open files as far as the system allows, and says when that is not enough.
pub(super) fn raise_open_files(config: &Config) {
    let wanted = config.limits.max_sessions as u64 + SPARE_FILES;
    let mut limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    if limit.current != limit.maximum {
        limit.current = limit.maximum;
        let raised = rustix::process::setrlimit(rustix::process::Resource::Nofile, limit);
        if let Err(error) = raised {
            warn!(code = "LIF007", err = %error, "the limit of open files stays as it is");
        }
    }
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    if let Some(limit) = limit.filter(|limit| *limit < wanted) {
        warn!(
            code = "LIF008",
            limit, wanted, "fewer open files than max_sessions may need"
        );
    }
}

/// The exclusive lock on the data folder; given up when dropped.
#[derive(Debug)]
pub(super) struct DataDir {
    _lock: File,
}

/// The data folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum DataDirError {
    /// Another process has it.
    #[error("{} is locked by another process", path.display())]
    Locked {
        /// The lock file.
        path: PathBuf,
    },
    /// It cannot be made or written.
    #[error("{} is not writable for uid {uid}", path.display())]
    Unusable {
        /// The folder.
        path: PathBuf,
        /// Who we are.
        uid: u32,
        /// What the system said.
        source: io::Error,
    },
}

impl DataDir {
    /// Makes the folder for its owner only, if it is not there, and locks it.
    pub(super) fn lock(folder: &Path) -> Result<Self, DataDirError> {
        let unusable = |source| DataDirError::Unusable {
            path: folder.to_owned(),
            uid: rustix::process::getuid().as_raw(),
            source,
        };
        make_folder(folder).map_err(unusable)?;
        let path = folder.join("lock");
        let lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(unusable)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(DataDirError::Locked { path }),
            Err(TryLockError::Error(source)) => Err(unusable(source)),
        }
    }
}

/// SIGTERM and SIGINT.
#[derive(Debug)]
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// The next one, by name.
    ///
    /// # Cancel safety
    /// Nothing is lost when dropped.
    pub(super) async fn next(&mut self) -> &'static str {
        tokio::select! {
            Some(()) = self.terminate.recv() => "SIGTERM",
            Some(()) = self.interrupt.recv() => "SIGINT",
            else => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two processes on one folder would both think they own what is in it.
    #[test]
    fn gateway_7_1_a_locked_folder_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let first = DataDir::lock(folder.path()).unwrap();
        assert!(matches!(
            DataDir::lock(folder.path()),
            Err(DataDirError::Locked { .. })
        ));
        drop(first);
        DataDir::lock(folder.path()).unwrap();
    }

    #[test]
    fn gateway_7_1_a_folder_is_made_and_a_file_is_none() {
        let folder = tempfile::tempdir().unwrap();
        DataDir::lock(&folder.path().join("a/b")).unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert!(matches!(
            DataDir::lock(&file),
            Err(DataDirError::Unusable { .. })
        ));
    }
}
