//! The two proofs of who a peer is: a key and a kernel principal.
//!
//! Nothing in this module can be built from text a peer sent. A [`Fingerprint`] is only a value to
//! compare with; a [`PeerIdentity`] is a statement of fact, and only the transport makes it.

use std::{fmt, ops::Deref, str::FromStr};

use sha2::{Digest, Sha256};

use crate::error::Error;

/// SHA-256 digest of a public key: the DER `SubjectPublicKeyInfo` of a leaf certificate. [wire 3.1]
///
/// Text form: `sha256:` and 64 lowercase hex digits. Parsing takes hex of either case, nothing
/// else. Holding a fingerprint proves nothing; see [`PeerIdentity`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// Wraps a digest that was computed elsewhere.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Digest of a DER `SubjectPublicKeyInfo`, its outer SEQUENCE included.
    pub fn of_spki(der: &[u8]) -> Self {
        Self(Sha256::digest(der).into())
    }

    /// The raw 32 bytes, as DATA key 7 carries them.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl FromStr for Fingerprint {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let invalid = || Error::InvalidFingerprint(text.chars().take(80).collect());
        let hex = text
            .strip_prefix(TEXT_PREFIX)
            .ok_or_else(invalid)?
            .as_bytes();
        if hex.len() != 64 {
            return Err(invalid());
        }
        let mut digest = [0; 32];
        for (byte, pair) in digest.iter_mut().zip(hex.chunks_exact(2)) {
            let (Some(high), Some(low)) = (hex_digit(pair[0]), hex_digit(pair[1])) else {
                return Err(invalid());
            };
            *byte = high << 4 | low;
        }
        Ok(Self(digest))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(TEXT_PREFIX)?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

/// A principal the kernel attributed to the process at the other end of a local connection.
///
/// Captured at connect time and fixed for the life of the connection. [wire 20.1]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LocalPrincipal {
    /// Effective user id. This is what to authorize on.
    pub uid: u32,
    /// Primary group id.
    pub gid: u32,
    /// Process id where the platform reports one. An observation; never authorize on it.
    pub pid: Option<u32>,
}

/// Who a peer is, once it has been proved. [weida S8-1]
///
/// Two proofs exist: a key shown in the TLS handshake, and a principal the kernel vouches for. A
/// peer that proved nothing is `None` wherever a `PeerIdentity` is optional, never an empty value
/// of this type.
///
/// The variants can be matched, and what they hold reads like the fingerprint or principal it is,
/// but [`Proved`] has no constructor outside the transport, so no claim that a foreign client makes
/// of itself can become one:
///
/// ```compile_fail
/// # use weida_core::{Fingerprint, PeerIdentity};
/// let claimed: Fingerprint = Fingerprint::from_bytes([7; 32]);
/// let forged = PeerIdentity::Key(claimed);
/// ```
///
/// ```compile_fail
/// # use weida_core::{Fingerprint, PeerIdentity};
/// let forged: PeerIdentity = Fingerprint::from_bytes([7; 32]).into();
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PeerIdentity {
    /// The key whose possession the TLS handshake proved.
    Key(Proved<Fingerprint>),
    /// The principal the kernel proved on a local transport.
    Local(Proved<LocalPrincipal>),
}

/// A fact that the transport verified. It reads like the fact itself and is made nowhere else.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Proved<T>(T);

impl<T> Deref for Proved<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: PartialEq> PartialEq<T> for Proved<T> {
    fn eq(&self, other: &T) -> bool {
        self.0 == *other
    }
}

impl<T: fmt::Display> fmt::Display for Proved<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T: fmt::Debug> fmt::Debug for Proved<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl PeerIdentity {
    /// States a fact the transport has just verified.
    ///
    /// For the TLS and the local-credential path of the runtime only; `clippy.toml` bans it
    /// everywhere else.
    #[doc(hidden)]
    pub const fn __from_proof_verified_by_the_transport(proof: TransportProof) -> Self {
        match proof {
            TransportProof::HandshakeKey(fingerprint) => Self::Key(Proved(fingerprint)),
            TransportProof::KernelPrincipal(principal) => Self::Local(Proved(principal)),
        }
    }

    /// The proved key, if a key is what was proved.
    pub const fn key(&self) -> Option<Fingerprint> {
        match self {
            Self::Key(Proved(fingerprint)) => Some(*fingerprint),
            Self::Local(_) => None,
        }
    }

    /// The proved local principal, if the kernel is what vouched.
    pub const fn local(&self) -> Option<LocalPrincipal> {
        match self {
            Self::Key(_) => None,
            Self::Local(Proved(principal)) => Some(*principal),
        }
    }
}

impl fmt::Display for PeerIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(fingerprint) => fingerprint.fmt(f),
            Self::Local(Proved(LocalPrincipal {
                uid,
                gid,
                pid: None,
            })) => write!(f, "uid:{uid},gid:{gid}"),
            Self::Local(Proved(LocalPrincipal {
                uid,
                gid,
                pid: Some(pid),
            })) => {
                write!(f, "uid:{uid},gid:{gid},pid:{pid}")
            }
        }
    }
}

/// What the transport verified. See [`PeerIdentity`].
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub enum TransportProof {
    /// CertificateVerify was checked under this key.
    HandshakeKey(Fingerprint),
    /// `SO_PEERCRED` said so.
    KernelPrincipal(LocalPrincipal),
}

const TEXT_PREFIX: &str = "sha256:";

pub(crate) const fn hex_digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";

    /// The digest of the ASCII text `test`, a public constant.
    #[test]
    fn ad_4_text_form_round_trips_and_prints_lower_case() {
        let fingerprint: Fingerprint = TEXT.parse().unwrap();
        assert_eq!(fingerprint, Fingerprint::of_spki(b"test"));
        assert_eq!(fingerprint.to_string(), TEXT);
        let upper = format!("sha256:{}", TEXT[7..].to_uppercase());
        assert_eq!(upper.parse::<Fingerprint>().unwrap().to_string(), TEXT);
    }

    #[test]
    fn ad_4_anything_else_is_an_invalid_fingerprint() {
        assert!(TEXT.parse::<Fingerprint>().is_ok());
        let upper_prefix = TEXT.replace("sha256", "SHA256");
        let long = format!("{TEXT}0");
        let inner_space = TEXT.replace("9f86", " f86");
        let plus = TEXT.replace("9f86", "+f86");
        for bad in [
            "",
            "sha256:",
            &TEXT[..TEXT.len() - 1],
            &TEXT[7..],
            &upper_prefix,
            &long,
            &inner_space,
            &plus,
            "sha1:9f86",
        ] {
            let got = bad.parse::<Fingerprint>();
            assert!(matches!(got, Err(Error::InvalidFingerprint(_))), "{bad:?}");
        }
    }

    #[test]
    fn a_proof_is_one_kind_only() {
        let fingerprint = Fingerprint::of_spki(b"k");
        let principal = LocalPrincipal {
            uid: 1,
            gid: 2,
            pid: None,
        };
        assert_eq!(
            PeerIdentity::Key(Proved(fingerprint)).key(),
            Some(fingerprint)
        );
        assert_eq!(PeerIdentity::Key(Proved(fingerprint)).local(), None);
        assert_eq!(
            PeerIdentity::Local(Proved(principal)).local(),
            Some(principal)
        );
        assert_eq!(PeerIdentity::Local(Proved(principal)).key(), None);
        assert_eq!(
            PeerIdentity::Local(Proved(principal)).to_string(),
            "uid:1,gid:2"
        );
    }
}
