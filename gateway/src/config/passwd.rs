//! The password file: one `NAME:HASH` line per user, hashed with argon2id. `[mqtt 9.1]`
//!
//! Anything but a good line makes the whole file refused: a file half understood would lock out, or let in, the wrong
//! people.

use std::io::Write as _;
use std::path::Path;

use argon2::password_hash::rand_core::OsRng;
use argon2::password_hash::{PasswordHash, PasswordHasher as _, PasswordVerifier as _, SaltString};
use argon2::{Algorithm, Argon2, Params, Version};

/// Memory of one hash, in KiB.
const MEMORY_KIB: u32 = 19_456;
/// Passes of one hash.
const PASSES: u32 = 2;
/// Lanes of one hash.
const LANES: u32 = 1;
/// Longest user name. `[mqtt 8.1]`
pub const MAX_NAME_BYTES: usize = 128;
/// Longest password. `[mqtt 8.1]`
pub const MAX_PASSWORD_BYTES: usize = 512;

/// Users and their hashes, in file order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct File {
    users: Vec<(String, String)>,
}

/// Why a password file or a password is refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PasswdError {
    /// Not text.
    #[error("line {line}: not UTF-8")]
    NotUtf8 {
        /// 1-based.
        line: usize,
    },
    /// A line is no `NAME:$argon2id$...`.
    #[error("line {line}: {reason}")]
    Line {
        /// 1-based.
        line: usize,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A user stands twice.
    #[error("line {line}: the user stands on line {first} already")]
    Twice {
        /// 1-based.
        line: usize,
        /// 1-based.
        first: usize,
    },
    /// A name that no client could send, or that a grant would misread.
    #[error("{name:?} is no user name: {reason}")]
    Name {
        /// As given.
        name: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The password is empty or too long.
    #[error("a password has 1 to {MAX_PASSWORD_BYTES} bytes, this one has {got_bytes}")]
    Length {
        /// Its length.
        got_bytes: usize,
    },
    /// Hashing failed.
    #[error("can't hash: {0}")]
    Hash(argon2::password_hash::Error),
    /// The file could not be written.
    #[error("can't write the file")]
    Io(#[from] std::io::Error),
}

impl File {
    /// Reads the lines of a password file. No blank line, no comment: every line is a user.
    ///
    /// # Errors
    ///
    /// The first line that is no user.
    pub fn parse(bytes: &[u8]) -> Result<Self, PasswdError> {
        let mut users: Vec<(String, String)> = Vec::new();
        let body = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        if bytes.is_empty() {
            return Ok(Self::default());
        }
        for (index, raw) in body.split(|byte| *byte == b'\n').enumerate() {
            let line = index + 1;
            let text = std::str::from_utf8(raw).map_err(|_| PasswdError::NotUtf8 { line })?;
            let reason = |reason| PasswdError::Line { line, reason };
            let (name, hash) = text
                .split_once(':')
                .ok_or_else(|| reason("no `:` after the user name"))?;
            check_name(name).map_err(|_| reason("not a user name in front of `:`"))?;
            check_hash(hash).map_err(reason)?;
            if let Some(first) = users.iter().position(|(known, _)| known == name) {
                return Err(PasswdError::Twice {
                    line,
                    first: first + 1,
                });
            }
            users.push((name.to_owned(), hash.to_owned()));
        }
        Ok(Self { users })
    }

    /// Names in file order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.users.iter().map(|(name, _)| name.as_str())
    }

    /// Whether there is such a user.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.users.iter().any(|(known, _)| known == name)
    }

    /// Sets or replaces the password of a user.
    ///
    /// # Errors
    ///
    /// [`PasswdError::Name`], [`PasswdError::Length`], [`PasswdError::Hash`].
    pub fn set(&mut self, name: &str, password: &str) -> Result<(), PasswdError> {
        check_name(name)?;
        let hash = hash(password)?;
        match self.users.iter_mut().find(|(known, _)| known == name) {
            Some((_, old)) => *old = hash,
            None => self.users.push((name.to_owned(), hash)),
        }
        Ok(())
    }

    /// Removes a user; false when there was none.
    pub fn delete(&mut self, name: &str) -> bool {
        let before = self.users.len();
        self.users.retain(|(known, _)| known != name);
        self.users.len() != before
    }

    /// Whether the password is the user's. Takes tens of milliseconds.
    #[must_use]
    pub fn verify(&self, name: &str, password: &str) -> bool {
        let Some((_, hash)) = self.users.iter().find(|(known, _)| known == name) else {
            return false;
        };
        PasswordHash::new(hash).is_ok_and(|hash| {
            Argon2::default()
                .verify_password(password.as_bytes(), &hash)
                .is_ok()
        })
    }

    /// Keeps other editors out from before a file is read until after it is saved: without it, two of them at once would
    /// both answer "done" and one change would be gone. Waits for the other one.
    ///
    /// The lock is on the folder, because saving puts another file in the place of this one.
    ///
    /// # Errors
    ///
    /// When the folder cannot be opened.
    pub fn lock(path: &Path) -> std::io::Result<Lock> {
        let folder = std::fs::File::open(folder_of(path))?;
        folder.lock()?;
        Ok(Lock { _folder: folder })
    }

    /// Replaces the file at once: written beside it, synced, renamed. Mode 0600 when new, else as it was.
    ///
    /// # Errors
    ///
    /// [`PasswdError::Io`].
    pub fn save(&self, path: &Path) -> Result<(), PasswdError> {
        let folder = folder_of(path);
        // A temporary file has mode 0600 from its first moment.
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        for (name, hash) in &self.users {
            writeln!(file, "{name}:{hash}")?;
        }
        if let Ok(meta) = std::fs::metadata(path) {
            file.as_file().set_permissions(meta.permissions())?;
        }
        file.as_file().sync_all()?;
        file.persist(path).map_err(|error| error.error)?;
        std::fs::File::open(folder)?.sync_all()?;
        Ok(())
    }
}

/// The right to edit the password files of a folder; given up when dropped.
#[derive(Debug)]
pub struct Lock {
    _folder: std::fs::File,
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

fn check_name(name: &str) -> Result<(), PasswdError> {
    let reason = if name.is_empty() {
        "it is empty"
    } else if name.len() > MAX_NAME_BYTES {
        "it has more than 128 bytes"
    } else if name.contains(':') {
        "it contains `:`"
    } else if name.chars().any(char::is_control) {
        "it contains a control character"
    } else if name.trim() != name {
        "it starts or ends with a space"
    } else {
        return Ok(());
    };
    Err(PasswdError::Name {
        name: name.to_owned(),
        reason,
    })
}

/// A PHC string of argon2id with salt and output; other algorithms are refused at load.
fn check_hash(hash: &str) -> Result<(), &'static str> {
    let parsed = PasswordHash::new(hash).map_err(|_| "no hash after `:`")?;
    if parsed.algorithm != argon2::ARGON2ID_IDENT {
        return Err("the hash is not argon2id");
    }
    if parsed.version != Some(u32::from(Version::V0x13)) {
        return Err("the hash is not of version 19");
    }
    let params = Params::try_from(&parsed).map_err(|_| "the parameters of the hash are odd")?;
    // A line of a file must not be able to make every login take a gigabyte.
    if params.m_cost() > 1024 * 1024 || params.t_cost() > 64 || params.p_cost() > 16 {
        return Err("the parameters of the hash are too large");
    }
    if parsed.salt.is_none() || parsed.hash.is_none() {
        return Err("the hash has no salt or no output");
    }
    Ok(())
}

fn hash(password: &str) -> Result<String, PasswdError> {
    let got_bytes = password.len();
    if got_bytes == 0 || got_bytes > MAX_PASSWORD_BYTES {
        return Err(PasswdError::Length { got_bytes });
    }
    let params = Params::new(MEMORY_KIB, PASSES, LANES, None)
        .map_err(|error| PasswdError::Hash(error.into()))?;
    let salt = SaltString::generate(&mut OsRng);
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
        .hash_password(password.as_bytes(), &salt)
        .map(|hash| hash.to_string())
        .map_err(PasswdError::Hash)
}
