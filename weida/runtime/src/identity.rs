//! Who this endpoint is: PEM material, the key behind it, and its fingerprint.
//!
//! A peer is the key it proves, so an [`Identity`] is a private key with the
//! certificate that TLS wants around it. Where an identity comes from, and how
//! it changes under a live binding, is [`IdentitySource`]; whom we accept is
//! `trust.rs`; the TLS configurations built from both are `tls.rs`.
//! `[wire 2.2, 3.1]`, `[weida ID-1, ID-12]`.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use rustls::sign::CertifiedKey;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use weida_core::{Error, Fingerprint, Result};
use zeroize::Zeroizing;

use crate::reset::ResetKey;

mod events;
mod files;
#[cfg(feature = "generate")]
mod generate;
mod pem;
mod source;
#[cfg(test)]
#[cfg(feature = "generate")]
mod tests;

pub use events::{IdentityEvent, IdentityEvents};
pub use files::FilesOptions;
pub use source::{IdentitySource, WeakIdentitySource};

pub(crate) use events::Events;

/// Where PEM material comes from.
///
/// Memory and files are equal citizens: a secret manager or an environment
/// variable hands over bytes, an agent rewrites files. Bytes are held in a
/// buffer that is wiped when its last copy is dropped.
#[derive(Clone)]
pub enum Pem {
    /// PEM bytes already in memory.
    Bytes(Zeroizing<Vec<u8>>),
    /// A PEM file, read when the TLS configuration is built.
    File(PathBuf),
}

impl Pem {
    /// The bytes, read from the file if this names one.
    pub(crate) fn load(&self) -> Result<Zeroizing<Vec<u8>>> {
        match self {
            Self::Bytes(bytes) => Ok(bytes.clone()),
            Self::File(path) => std::fs::read(path).map(Zeroizing::new).map_err(|source| {
                Error::Tls(format!("cannot read {}: {}", path.display(), source.kind()))
            }),
        }
    }
}

/// Never prints the bytes: they may be a private key. `[weida ID-12]`
impl fmt::Debug for Pem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(_) => f.write_str("Pem::Bytes(..)"),
            Self::File(path) => f.debug_tuple("Pem::File").field(path).finish(),
        }
    }
}

impl PartialEq for Pem {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Bytes(ours), Self::Bytes(theirs)) => ours.as_slice() == theirs.as_slice(),
            (Self::File(ours), Self::File(theirs)) => ours == theirs,
            (Self::Bytes(_), Self::File(_)) | (Self::File(_), Self::Bytes(_)) => false,
        }
    }
}

impl Eq for Pem {}

impl Hash for Pem {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Self::Bytes(bytes) => {
                0u8.hash(state);
                bytes.as_slice().hash(state);
            }
            Self::File(path) => {
                1u8.hash(state);
                path.hash(state);
            }
        }
    }
}

impl From<PathBuf> for Pem {
    fn from(path: PathBuf) -> Self {
        Self::File(path)
    }
}

/// Who this endpoint is: a certificate chain and the private key behind it.
///
/// What others pin is [`Identity::fingerprint`], which is a digest of the
/// *public key*: renewing the certificate over the same key keeps it.
///
/// ```
/// # #[cfg(feature = "generate")] {
/// use weida::Identity;
///
/// let identity = Identity::generate()?;
/// let restored = Identity::from_pem(identity.to_pem()?, identity.to_pem()?);
/// assert_eq!(identity.fingerprint()?, restored.fingerprint()?);
/// # }
/// # Ok::<(), weida::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    /// The certificate chain, leaf first.
    pub cert_chain: Pem,
    /// The private key.
    pub key: Pem,
}

impl Identity {
    /// A fresh self-signed identity held only in memory: ECDSA P-256, no names,
    /// valid 1975–4096. `[wire 2.2]`
    ///
    /// It names nothing, so it can be trusted by fingerprint only. Write
    /// [`Identity::to_pem`] somewhere safe if it must survive a restart.
    ///
    /// # Errors
    ///
    /// [`Error::Tls`] if the random generator or the signer fails.
    #[cfg(feature = "generate")]
    pub fn generate() -> Result<Self> {
        generate::self_signed(Vec::new())
    }

    /// A fresh self-signed identity whose certificate names `names` (DNS names
    /// or IP literals), so that a peer may also trust the certificate itself as
    /// an anchor and verify the host it dialled.
    ///
    /// # Errors
    ///
    /// [`Error::Tls`] for a name no certificate can carry, or a failing signer.
    #[cfg(feature = "generate")]
    pub fn generate_for(names: impl IntoIterator<Item = impl Into<String>>) -> Result<Self> {
        generate::self_signed(names.into_iter().map(Into::into).collect())
    }

    /// An identity from PEM buffers in memory.
    ///
    /// Both arguments may be the same document: sections of the other kind are
    /// skipped. An owned `Vec` or `String` moves in without a copy and is wiped
    /// with the identity's last clone; a borrowed buffer is copied once and
    /// stays the caller's to wipe.
    pub fn from_pem(cert_chain: impl Into<Vec<u8>>, key: impl Into<Vec<u8>>) -> Self {
        Self {
            cert_chain: Pem::Bytes(Zeroizing::new(cert_chain.into())),
            key: Pem::Bytes(Zeroizing::new(key.into())),
        }
    }

    /// An identity from a chain file and a key file, read when it is used.
    pub fn from_pem_files(cert_chain: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        Self {
            cert_chain: Pem::File(cert_chain.into()),
            key: Pem::File(key.into()),
        }
    }

    /// An identity from one file holding chain and key, as
    /// [`Identity::to_pem`] writes it.
    pub fn from_pem_file(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Self::from_pem_files(path.clone(), path)
    }

    /// The fingerprint of this identity's public key: what peers pin.
    /// `[weida ID-1]`
    ///
    /// # Errors
    ///
    /// [`Error::Tls`] if the chain cannot be read or its leaf not parsed.
    pub fn fingerprint(&self) -> Result<Fingerprint> {
        let chain = self.load_chain()?;
        leaf_fingerprint(&chain[0])
    }

    /// The certificate chain as PEM. It holds no key and may be published.
    ///
    /// # Errors
    ///
    /// [`Error::Tls`] if the chain cannot be read.
    pub fn certificate_pem(&self) -> Result<String> {
        let mut out = String::new();
        for cert in self.load_chain()? {
            pem::encode_into(&mut out, "CERTIFICATE", &cert);
        }
        Ok(out)
    }

    /// Chain and private key as one PEM document.
    ///
    /// The returned `String` is an ordinary buffer with the key in it: wrap it
    /// in `zeroize::Zeroizing`, and store it readable by its owner only.
    ///
    /// # Errors
    ///
    /// [`Error::Tls`] if chain or key cannot be read.
    pub fn to_pem(&self) -> Result<String> {
        let mut out = self.certificate_pem()?;
        let key = SecretKey(self.load_key()?);
        // Reserved before the secret goes in, so that growing the string leaves
        // no unwiped copy of it behind.
        out.reserve(pem::encoded_len("RSA PRIVATE KEY", key.der().len()));
        pem::encode_into(&mut out, key.label(), key.der());
        Ok(out)
    }

    /// The chain, leaf first; never empty.
    fn load_chain(&self) -> Result<Vec<CertificateDer<'static>>> {
        let pem = self.cert_chain.load()?;
        let chain = CertificateDer::pem_slice_iter(&pem)
            .collect::<std::result::Result<Vec<_>, _>>()
            .map_err(|_| Error::Tls("certificate chain is not valid PEM".into()))?;
        if chain.is_empty() {
            return Err(Error::Tls("no certificate in the chain's PEM".into()));
        }
        Ok(chain)
    }

    fn load_key(&self) -> Result<PrivateKeyDer<'static>> {
        let pem = self.key.load()?;
        // The parser's error could quote the input; the input is a secret.
        PrivateKeyDer::from_pem_slice(&pem)
            .map_err(|_| Error::Tls("no private key in the key's PEM".into()))
    }

    /// Everything a handshake needs, checked: the chain parses, the key signs,
    /// and the two belong together.
    pub(crate) fn load(&self) -> Result<Material> {
        let chain = self.load_chain()?;
        let fingerprint = leaf_fingerprint(&chain[0])?;
        let key = SecretKey(self.load_key()?);
        let signer = rustls::crypto::ring::sign::any_supported_type(&key.0)
            .map_err(|_| Error::Tls("private key of an unsupported kind".into()))?;
        let certified = CertifiedKey::new(chain, signer);
        certified
            .keys_match()
            .map_err(|_| Error::Tls("private key does not belong to the certificate".into()))?;
        Ok(Material {
            fingerprint,
            certified: Arc::new(certified),
            key: Arc::new(key),
        })
    }
}

/// A private key in DER that wipes itself.
struct SecretKey(PrivateKeyDer<'static>);

impl SecretKey {
    fn der(&self) -> &[u8] {
        self.0.secret_der()
    }

    fn label(&self) -> &'static str {
        match &self.0 {
            PrivateKeyDer::Pkcs1(_) => "RSA PRIVATE KEY",
            PrivateKeyDer::Sec1(_) => "EC PRIVATE KEY",
            _ => "PRIVATE KEY",
        }
    }
}

impl Drop for SecretKey {
    fn drop(&mut self) {
        zeroize::Zeroize::zeroize(&mut self.0);
    }
}

/// A loaded identity: what a handshake presents and what peers will see.
#[derive(Clone)]
pub(crate) struct Material {
    /// Digest of the leaf's public key.
    pub(crate) fingerprint: Fingerprint,
    /// Chain and signer as rustls takes them.
    pub(crate) certified: Arc<CertifiedKey>,
    key: Arc<SecretKey>,
}

impl Material {
    /// The key of stateless resets for a binding at `at`.
    pub(crate) fn reset_key(&self, at: SocketAddr) -> ResetKey {
        ResetKey::new(self.key.der(), at)
    }
}

impl fmt::Debug for Material {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Material")
            .field("fingerprint", &self.fingerprint)
            .finish_non_exhaustive()
    }
}

/// SHA-256 over the DER SubjectPublicKeyInfo of a leaf, outer SEQUENCE
/// included. `[wire 3.1]`
///
/// # Errors
///
/// [`Error::Tls`] if the leaf is no X.509 v3 certificate webpki parses.
pub(crate) fn leaf_fingerprint(leaf: &CertificateDer<'_>) -> Result<Fingerprint> {
    let parsed = webpki::EndEntityCert::try_from(leaf)
        .map_err(|_| Error::Tls("leaf certificate cannot be parsed".into()))?;
    Ok(Fingerprint::of_spki(&parsed.subject_public_key_info()))
}
