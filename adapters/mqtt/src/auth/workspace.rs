//! The memory that password hashes work in: as much as may run at once, used again and again. [mqtt 9.1]
//!
//! A hash needs megabytes. Taken from the allocator for each login, on whatever thread comes, a storm of wrong passwords
//! leaves a piece of that size behind in every arena of the allocator, and the process never gets small again.

use std::sync::{Mutex, PoisonError};

use argon2::password_hash::{Output, PasswordHash};
use argon2::{Algorithm, Argon2, Block, Params, Version};

/// The largest workspace that is kept, in blocks of 1 KiB; the usual parameters need 19 MiB. Larger ones are given back
/// after each use.
const MAX_KEPT_BLOCKS: usize = 32 * 1024;

/// Workspaces that nobody uses right now.
///
/// # Limits
///
/// The caller bounds how many run at once; no more than that are ever kept.
#[derive(Default)]
pub(super) struct Workspaces {
    idle: Mutex<Vec<Vec<Block>>>,
}

impl Workspaces {
    /// Whether `password` is the one behind the PHC string. Blocks for tens of milliseconds.
    pub(super) fn matches(&self, hash: &str, password: &[u8]) -> bool {
        let Ok(parsed) = PasswordHash::new(hash) else {
            return false;
        };
        let (Ok(params), Some(salt), Some(wanted)) =
            (Params::try_from(&parsed), parsed.salt, parsed.hash)
        else {
            return false;
        };
        let mut salt_bytes = [0; 64];
        let Ok(salt) = salt.decode_b64(&mut salt_bytes) else {
            return false;
        };
        let mut blocks = self.take(params.block_count());
        let argon = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
        let computed = Output::init_with(wanted.len(), |out| {
            argon.hash_password_into_with_memory(password, salt, out, &mut blocks[..])?;
            Ok(())
        });
        self.give_back(blocks);
        // `Output` compares in constant time.
        computed.is_ok_and(|computed| computed == wanted)
    }

    fn take(&self, blocks: usize) -> Vec<Block> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let mut workspace = idle.pop().unwrap_or_default();
        drop(idle);
        if workspace.len() < blocks {
            // A fresh one: growing would copy what the hash overwrites anyway.
            workspace = vec![Block::default(); blocks];
        }
        workspace
    }

    fn give_back(&self, workspace: Vec<Block>) {
        if workspace.len() <= MAX_KEPT_BLOCKS {
            let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
            idle.push(workspace);
        }
    }

    #[cfg(test)]
    pub(super) fn kept(&self) -> usize {
        self.idle.lock().unwrap().len()
    }
}

#[cfg(test)]
mod tests {
    use argon2::password_hash::{PasswordHasher as _, SaltString};

    use super::*;

    fn hash(password: &str, params: Params) -> String {
        let salt = SaltString::encode_b64(&[7; 16]).unwrap();
        let argon = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
        let hash = argon.hash_password(password.as_bytes(), &salt).unwrap();
        hash.to_string()
    }

    #[test]
    fn a_workspace_serves_hashes_of_other_parameters() {
        let workspaces = Workspaces::default();
        for (memory, passes, lanes) in [(64, 1, 1), (8, 2, 1), (256, 1, 4), (64, 1, 1)] {
            let hash = hash("s3cret", Params::new(memory, passes, lanes, None).unwrap());
            assert!(workspaces.matches(&hash, b"s3cret"), "{hash}");
            assert!(!workspaces.matches(&hash, b"s3creT"), "{hash}");
            assert_eq!(workspaces.kept(), 1, "one at a time needs one");
        }
        assert!(!workspaces.matches("no hash", b""));
    }

    #[test]
    fn an_unusually_large_workspace_is_given_back() {
        let workspaces = Workspaces::default();
        let blocks = u32::try_from(MAX_KEPT_BLOCKS).unwrap() + 4;
        let hash = hash("x", Params::new(blocks, 1, 1, None).unwrap());
        assert!(workspaces.matches(&hash, b"x"));
        assert_eq!(workspaces.kept(), 0);
    }
}
