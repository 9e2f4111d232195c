//! Stateless resets that a restarted process can still send. `[RFC 9000 10.3]`
//!
//! A process that was killed says no goodbye. Its successor on the same
//! address gets the packets of connections it does not know; what it answers
//! ends them at once, but only if it can compute the token that the dead
//! process gave out. So the key behind the tokens comes from the identity and
//! the address, which both have in common, and not from chance. Without it a
//! dialler talks to nobody for a whole idle timeout.

use std::fmt;
use std::net::SocketAddr;

use quinn::ConnectionId;
use quinn::ConnectionIdGenerator;
use quinn::crypto::{CryptoError, HmacKey};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

/// HMAC-SHA-256 under a key of one identity at one address.
///
/// Two bindings with one key would let an observer have one of them compute
/// the tokens of the other, hence the address in it. `[RFC 9000 21.11]`
pub(crate) struct ResetKey(Zeroizing<[u8; 32]>);

impl ResetKey {
    /// `private_key` is the identity's, in DER.
    pub(crate) fn new(private_key: &[u8], at: SocketAddr) -> Self {
        let root = Zeroizing::new(digest(&[b"weida stateless reset key\0", private_key]));
        let whole = at.to_string();
        Self(Zeroizing::new(hmac(&root, whole.as_bytes())))
    }
}

impl HmacKey for ResetKey {
    fn sign(&self, data: &[u8], signature_out: &mut [u8]) {
        signature_out.copy_from_slice(&hmac(&self.0, data));
    }

    fn signature_len(&self) -> usize {
        32
    }

    fn verify(&self, data: &[u8], signature: &[u8]) -> Result<(), CryptoError> {
        let right = hmac(&self.0, data);
        let differs = right.len() != signature.len()
            || right
                .iter()
                .zip(signature)
                .fold(0, |all, (a, b)| all | (a ^ b))
                != 0;
        if differs { Err(CryptoError) } else { Ok(()) }
    }
}

impl fmt::Debug for ResetKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ResetKey(..)")
    }
}

/// Random ids: the default ones carry a mark of the process that made them,
/// and packets with the mark of another one are dropped before they could be
/// answered.
#[derive(Debug)]
pub(crate) struct RandomIds;

impl ConnectionIdGenerator for RandomIds {
    fn generate_cid(&mut self) -> ConnectionId {
        ConnectionId::new(&rand::random::<[u8; ID_BYTES]>())
    }

    fn cid_len(&self) -> usize {
        ID_BYTES
    }

    fn cid_lifetime(&self) -> Option<std::time::Duration> {
        None
    }
}

/// As long as quinn's own.
const ID_BYTES: usize = 8;

fn digest(parts: &[&[u8]]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part);
    }
    hash.finalize().into()
}

/// `[RFC 2104]`; the key is shorter than a block.
fn hmac(key: &[u8; 32], data: &[u8]) -> [u8; 32] {
    let pad = |byte: u8| {
        let mut block = Zeroizing::new([byte; 64]);
        for (at, key) in block.iter_mut().zip(key) {
            *at ^= key;
        }
        block
    };
    let inner = digest(&[&*pad(0x36), data]);
    digest(&[&*pad(0x5c), &inner])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Test case 2 of RFC 4231; zeros behind a short key make the same block.
    #[test]
    fn hmac_matches_the_published_vector() {
        let mut key = [0; 32];
        key[..4].copy_from_slice(b"Jefe");
        let mac = hmac(&key, b"what do ya want for nothing?");
        assert_eq!(mac[..4], [0x5b, 0xdc, 0xc1, 0x46]);
        assert_eq!(mac[28..], [0x64, 0xec, 0x38, 0x43]);
    }

    #[test]
    fn tokens_depend_on_identity_and_address_alone() {
        let token = |key: &[u8], at: &str| {
            let mut token = [0; 32];
            let key = ResetKey::new(key, at.parse().unwrap());
            key.sign(b"connection", &mut token);
            assert!(key.verify(b"connection", &token).is_ok());
            assert!(key.verify(b"connectiom", &token).is_err());
            assert!(key.verify(b"connection", &token[1..]).is_err());
            token
        };
        let one = token(b"one", "127.0.0.1:7443");
        assert_eq!(one, token(b"one", "127.0.0.1:7443"));
        assert_ne!(one, token(b"two", "127.0.0.1:7443"));
        assert_ne!(one, token(b"one", "127.0.0.1:7444"));
    }
}
