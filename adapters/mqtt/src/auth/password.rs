//! Password files of argon2id strings and the bounded pool that checks against them. [mqtt 9.1]

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use argon2::password_hash::{PasswordHash, PasswordHasher, SaltString};
use argon2::{Algorithm, Argon2, Params, Version};
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::Denied;
use super::workspace::Workspaces;

/// A password file that cannot be trusted; nothing of it is used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PasswordFileError {
    /// The file cannot be read.
    #[error("cannot be read")]
    Read(#[from] std::io::Error),
    /// Others may read it: whoever can guess at leisure will.
    #[error("is readable by others (mode {mode:04o}); chmod o-rwx")]
    WorldReadable {
        /// Permission bits found.
        mode: u32,
    },
    /// A line without user or hash; also an empty line.
    #[error("line {line} is not NAME:HASH")]
    Malformed {
        /// Counted from 1.
        line: usize,
    },
    /// Only argon2id, version 19.
    #[error("line {line} is not an argon2id hash of version 19")]
    Algorithm {
        /// Counted from 1.
        line: usize,
    },
    /// Parameters that would let one login take the machine.
    #[error("line {line} costs {memory_kib} KiB and {passes} passes, at most 1048576 KiB and 64")]
    TooCostly {
        /// Counted from 1.
        line: usize,
        /// `m` of the hash.
        memory_kib: u32,
        /// `t` of the hash.
        passes: u32,
    },
    /// One user, one line.
    #[error("line {line} names a user again")]
    Duplicate {
        /// Counted from 1.
        line: usize,
    },
}

/// Users and their hashes, checked whole.
#[derive(Default)]
pub(crate) struct PasswordFile {
    users: HashMap<Box<str>, Arc<str>>,
}

impl std::fmt::Debug for PasswordFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PasswordFile")
            .field("users", &self.users.len())
            .finish_non_exhaustive()
    }
}

impl PasswordFile {
    pub(crate) fn load(path: &Path) -> Result<Self, PasswordFileError> {
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = std::fs::metadata(path)?.permissions().mode() & 0o7777;
            if mode & 0o007 != 0 {
                return Err(PasswordFileError::WorldReadable { mode });
            }
        }
        Self::parse(&std::fs::read_to_string(path)?)
    }

    fn parse(text: &str) -> Result<Self, PasswordFileError> {
        let mut users = HashMap::new();
        for (at, content) in text.lines().enumerate() {
            let line = at + 1;
            let (name, hash) = content
                .split_once(':')
                .ok_or(PasswordFileError::Malformed { line })?;
            let unclean = |t: &str| t.is_empty() || t.trim() != t || t.contains('\0');
            if unclean(name) || unclean(hash) {
                return Err(PasswordFileError::Malformed { line });
            }
            check_hash(hash, line)?;
            if users.insert(name.into(), hash.into()).is_some() {
                return Err(PasswordFileError::Duplicate { line });
            }
        }
        Ok(Self { users })
    }

    /// Takes the users of another file of the same tenant; its own names win.
    pub(crate) fn merge(&mut self, other: Self) {
        for (name, hash) in other.users {
            self.users.entry(name).or_insert(hash);
        }
    }
}

fn check_hash(hash: &str, line: usize) -> Result<(), PasswordFileError> {
    let malformed = PasswordFileError::Malformed { line };
    let Ok(parsed) = PasswordHash::new(hash) else {
        return Err(malformed);
    };
    if parsed.algorithm.as_str() != "argon2id" || parsed.version != Some(19) {
        return Err(PasswordFileError::Algorithm { line });
    }
    let Ok(params) = Params::try_from(&parsed) else {
        return Err(malformed);
    };
    let (memory_kib, passes) = (params.m_cost(), params.t_cost());
    if memory_kib > 1 << 20 || passes > 64 {
        return Err(PasswordFileError::TooCostly {
            line,
            memory_kib,
            passes,
        });
    }
    match (parsed.salt, parsed.hash) {
        (Some(_), Some(_)) => Ok(()),
        _ => Err(malformed),
    }
}

/// Checks passwords: a bounded blocking pool behind a positive cache.
///
/// # Limits
///
/// Two checks per core at once, [`crate::config::Limits::auth_queue`] waiting; the cache holds at
/// most one entry per user of the file. Memory for as many hashes as ran at once is kept.
pub(crate) struct Passwords {
    file: PasswordFile,
    /// Checked for users that do not exist, so that their refusal takes as long.
    dummy: Arc<str>,
    pool: Arc<Semaphore>,
    workspaces: Arc<Workspaces>,
    waiting: AtomicUsize,
    max_waiting: usize,
    cache: Mutex<HashMap<Box<str>, Remembered>>,
    cache_for: Duration,
    key: [u8; 32],
}

struct Remembered {
    mac: [u8; 32],
    until: Instant,
}

impl std::fmt::Debug for Passwords {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Passwords")
            .field("file", &self.file)
            .finish_non_exhaustive()
    }
}

impl Passwords {
    pub(crate) fn new(file: PasswordFile, max_waiting: usize, cache_for: Duration) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            file,
            dummy: dummy_hash(),
            pool: Arc::new(Semaphore::new(cores * 2)),
            workspaces: Arc::default(),
            waiting: AtomicUsize::new(0),
            max_waiting,
            cache: Mutex::default(),
            cache_for,
            key: rand::random(),
        }
    }

    /// Whether `password` is that user's.
    ///
    /// # Errors
    ///
    /// [`Denied::Busy`] when the queue is full, else [`Denied::NotAuthenticated`].
    ///
    /// # Cancel safety
    ///
    /// A dropped check still finishes in the pool and keeps its place until then.
    pub(crate) async fn verify(&self, user: &str, password: &[u8]) -> Result<(), Denied> {
        let known = self.file.users.get_key_value(user);
        let mac = hmac_sha256(&self.key, &[user.as_bytes(), b"\0", password]);
        if known.is_some() && self.remembered(user, &mac) {
            return Ok(());
        }
        let hash = known.map_or_else(|| Arc::clone(&self.dummy), |(_, hash)| Arc::clone(hash));
        let matches = self.hash_in_pool(hash, password).await?;
        if known.is_some() && matches {
            self.remember(user, mac);
            return Ok(());
        }
        Err(Denied::NotAuthenticated)
    }

    async fn hash_in_pool(&self, hash: Arc<str>, password: &[u8]) -> Result<bool, Denied> {
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= self.max_waiting {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            return Err(Denied::Busy);
        }
        let _waiting = Waiting(&self.waiting);
        let permit = Arc::clone(&self.pool)
            .acquire_owned()
            .await
            .map_err(|_| Denied::Busy)?;
        let password = zeroize::Zeroizing::new(password.to_vec());
        let workspaces = Arc::clone(&self.workspaces);
        let check = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            workspaces.matches(&hash, &password)
        });
        check.await.map_err(|_| Denied::Busy)
    }

    fn remembered(&self, user: &str, mac: &[u8; 32]) -> bool {
        let cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        cache
            .get(user)
            .is_some_and(|r| r.until > Instant::now() && same(&r.mac, mac))
    }

    fn remember(&self, user: &str, mac: [u8; 32]) {
        if !self.cache_for.is_zero() {
            let until = Instant::now() + self.cache_for;
            let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
            cache.insert(user.into(), Remembered { mac, until });
        }
    }
}

struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A hash of nobody's password at the recommended cost.
fn dummy_hash() -> Arc<str> {
    let salt = SaltString::encode_b64(&rand::random::<[u8; 16]>());
    let secret: [u8; 32] = rand::random();
    let argon = Argon2::new(Algorithm::Argon2id, Version::V0x13, Params::DEFAULT);
    let hashed = salt.and_then(|salt| argon.hash_password(&secret, &salt).map(|h| h.to_string()));
    hashed.unwrap_or_default().into()
}

/// [RFC 2104] over SHA-256; the key is 32 bytes, shorter than a block.
fn hmac_sha256(key: &[u8; 32], parts: &[&[u8]]) -> [u8; 32] {
    let pad = |byte: u8| {
        let mut block = [byte; 64];
        for (b, k) in block.iter_mut().zip(key) {
            *b ^= k;
        }
        block
    };
    let mut inner = Sha256::new().chain_update(pad(0x36));
    for part in parts {
        inner.update(part);
    }
    Sha256::new()
        .chain_update(pad(0x5c))
        .chain_update(inner.finalize())
        .finalize()
        .into()
}

fn same(a: &[u8; 32], b: &[u8; 32]) -> bool {
    a.iter()
        .zip(b)
        .fold(0, |difference, (x, y)| difference | (x ^ y))
        == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cheap parameters: the tests are about rules, not about cost.
    fn hash(password: &str) -> String {
        let salt = SaltString::encode_b64(&[7; 16]).unwrap();
        let params = Params::new(8, 1, 1, None).unwrap();
        let argon = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
        argon
            .hash_password(password.as_bytes(), &salt)
            .unwrap()
            .to_string()
    }

    fn passwords(text: &str, queue: usize) -> Passwords {
        let file = PasswordFile::parse(text).unwrap();
        Passwords::new(file, queue, Duration::from_secs(600))
    }

    #[tokio::test]
    async fn mqtt_9_1_right_and_wrong_password() {
        let passwords = passwords(&format!("ann:{}\n", hash("s3cret")), 256);
        assert_eq!(passwords.verify("ann", b"s3cret").await, Ok(()));
        assert_eq!(
            passwords.verify("ann", b"s3cret").await,
            Ok(()),
            "from the cache"
        );
        assert_eq!(
            passwords.verify("ann", b"wrong").await,
            Err(Denied::NotAuthenticated)
        );
        assert_eq!(
            passwords.verify("bob", b"s3cret").await,
            Err(Denied::NotAuthenticated)
        );
        assert_eq!(
            passwords.cache.lock().unwrap().len(),
            1,
            "only successes are remembered"
        );
    }

    #[tokio::test]
    async fn mqtt_9_1_a_full_queue_is_busy() {
        let passwords = passwords(&format!("ann:{}\n", hash("x")), 0);
        assert_eq!(passwords.verify("ann", b"x").await, Err(Denied::Busy));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn mqtt_9_1_a_storm_of_logins_keeps_memory_for_those_that_run_at_once() {
        let passwords = Arc::new(passwords(&format!("ann:{}\n", hash("x")), 256));
        let mut storm = tokio::task::JoinSet::new();
        for at in 0..64 {
            let passwords = Arc::clone(&passwords);
            let wrong = format!("wrong {at}");
            storm.spawn(async move { passwords.verify("ann", wrong.as_bytes()).await });
        }
        while let Some(ended) = storm.join_next().await {
            assert_eq!(ended.unwrap(), Err(Denied::NotAuthenticated));
        }
        let at_once = std::thread::available_parallelism().unwrap().get() * 2;
        let kept = passwords.workspaces.kept();
        assert!((1..=at_once).contains(&kept), "{kept} of {at_once}");
    }

    /// CVE-2017-7652 class: a line that is not understood is never a login.
    #[test]
    fn mqtt_18_47_a_bad_line_refuses_the_whole_file() {
        let good = hash("x");
        assert!(PasswordFile::parse(&format!("ann:{good}\nbob:{good}\n")).is_ok());
        type Want = fn(&PasswordFileError) -> bool;
        let bad: [(String, Want); 9] = [
            (format!("ann:{good}\n\n"), |e| {
                matches!(e, PasswordFileError::Malformed { line: 2 })
            }),
            ("ann\n".into(), |e| {
                matches!(e, PasswordFileError::Malformed { line: 1 })
            }),
            ("ann:\n".into(), |e| {
                matches!(e, PasswordFileError::Malformed { .. })
            }),
            (format!(":{good}\n"), |e| {
                matches!(e, PasswordFileError::Malformed { .. })
            }),
            ("ann:plain\n".into(), |e| {
                matches!(e, PasswordFileError::Malformed { .. })
            }),
            (format!(" ann:{good}\n"), |e| {
                matches!(e, PasswordFileError::Malformed { .. })
            }),
            (format!("ann:{good}\nann:{good}\n"), |e| {
                matches!(e, PasswordFileError::Duplicate { line: 2 })
            }),
            (
                format!("ann:{}\n", good.replace("argon2id", "argon2i")),
                |e| matches!(e, PasswordFileError::Algorithm { line: 1 }),
            ),
            (
                format!("ann:{}\n", good.replace("m=8,t=1", "m=9999999,t=1")),
                |e| {
                    matches!(
                        e,
                        PasswordFileError::TooCostly {
                            memory_kib: 9_999_999,
                            ..
                        }
                    )
                },
            ),
        ];
        for (text, want) in bad {
            let error = PasswordFile::parse(&text).unwrap_err();
            assert!(want(&error), "{text:?} gave {error:?}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn mqtt_9_1_a_world_readable_file_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("passwd");
        std::fs::write(&path, format!("ann:{}\n", hash("x"))).unwrap();
        let mode = |bits| std::fs::Permissions::from_mode(bits);
        std::fs::set_permissions(&path, mode(0o640)).unwrap();
        assert!(PasswordFile::load(&path).is_ok());
        std::fs::set_permissions(&path, mode(0o644)).unwrap();
        let error = PasswordFile::load(&path).unwrap_err();
        assert!(matches!(
            error,
            PasswordFileError::WorldReadable { mode: 0o644 }
        ));
    }

    /// Test case 2 of RFC 4231, with the key padded by zeros to 32 bytes (the same key block).
    #[test]
    fn hmac_matches_the_published_vector() {
        let mut key = [0; 32];
        key[..4].copy_from_slice(b"Jefe");
        let mac = hmac_sha256(&key, &[b"what do ya want ", b"for nothing?"]);
        let hex: String = mac.iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(
            hex,
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
    }
}
