//! TLS of diallers and bindings, and the one place where a proved key becomes a
//! [`PeerIdentity`]. `[wire 2, 3]`
//!
//! Every connection is a full TLS 1.3 handshake with the ring provider, named
//! explicitly: no process default is read or installed, no ticket is issued,
//! kept or redeemed, and no early data exists. So every certificate chain is
//! judged anew, by what the sources hold at that moment. `[weida RT-5, S8-25]`

use std::fmt;
use std::sync::{Arc, OnceLock};

use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use rustls::crypto::CryptoProvider;
use rustls::sign::CertifiedKey;
use rustls_pki_types::{CertificateDer, ServerName};
use weida_core::identity::TransportProof;
use weida_core::{Error, Fingerprint, PeerIdentity, Result};

use crate::identity::{Identity, IdentitySource, leaf_fingerprint};
use crate::trust::{ClientTrust, Trust, TrustSource};

#[cfg(test)]
#[cfg(feature = "generate")]
mod tests;
mod verify;

use verify::{JudgeClients, JudgeServer};

/// ALPN token of application connections. `[wire 2]`
pub const ALPN: &[u8] = b"weida/0";
/// ALPN token of consensus connections: same framing, never mixed with
/// application traffic on one connection. `[wire 2]`
pub const RAFT_ALPN: &[u8] = b"weida-raft/0";

/// Certificates of a presented chain that are kept at most. `[weida INV-10]`
pub(crate) const MAX_CHAIN_CERTS: usize = 8;
/// DER bytes of a presented chain that are kept at most. `[weida INV-10]`
pub(crate) const MAX_CHAIN_BYTES: usize = 32 * 1024;
/// Bytes of a peer's handshake error text that reach an error. `[weida ID-12]`
const MAX_PEER_TEXT_BYTES: usize = 256;

/// The ALPN token a binding offers or a dial asks for: exactly one, so that a
/// mismatch fails the handshake. `[wire 2]`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Alpn {
    /// `weida/0`: application connections.
    #[default]
    Weida,
    /// `weida-raft/0`: consensus connections.
    Raft,
}

impl Alpn {
    /// The token as it goes on the wire.
    pub const fn token(self) -> &'static [u8] {
        match self {
            Self::Weida => ALPN,
            Self::Raft => RAFT_ALPN,
        }
    }
}

/// TLS terms of a dialling endpoint: what it trusts and who it is.
///
/// Two endpoints share a pooled connection only if these are equal.
/// `[weida 6.1, S8-8]`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ClientTls {
    /// Whom to accept as the peer.
    pub trust: TrustSource,
    /// Who to be. `None` dials anonymously, which a binding that requires
    /// clients refuses.
    pub identity: Option<IdentitySource>,
    /// The ALPN token to ask for.
    pub alpn: Alpn,
}

impl ClientTls {
    /// Dials anonymously under `trust`.
    pub fn new(trust: impl Into<TrustSource>) -> Self {
        Self {
            trust: trust.into(),
            identity: None,
            alpn: Alpn::default(),
        }
    }

    /// Presents `identity` to every peer that asks.
    #[must_use]
    pub fn with_identity(mut self, identity: impl Into<IdentitySource>) -> Self {
        self.identity = Some(identity.into());
        self
    }

    /// Asks for `alpn` instead of [`Alpn::Weida`].
    #[must_use]
    pub fn with_alpn(mut self, alpn: Alpn) -> Self {
        self.alpn = alpn;
        self
    }
}

impl From<Trust> for ClientTls {
    fn from(trust: Trust) -> Self {
        Self::new(trust)
    }
}

impl From<TrustSource> for ClientTls {
    fn from(trust: TrustSource) -> Self {
        Self::new(trust)
    }
}

/// TLS terms of a binding: who it is and whom it lets in.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ServerTls {
    /// The identity presented to every dialling peer, read at each handshake.
    pub identity: IdentitySource,
    /// When set, every peer must prove a key that this accepts. When `None`,
    /// peers are anonymous and `IncomingMeta::peer` is `None`.
    pub client_trust: Option<ClientTrust>,
    /// The one ALPN token this binding offers.
    pub alpn: Alpn,
}

impl ServerTls {
    /// Serves as `identity` and accepts anonymous peers.
    pub fn new(identity: impl Into<IdentitySource>) -> Self {
        Self {
            identity: identity.into(),
            client_trust: None,
            alpn: Alpn::default(),
        }
    }

    /// Requires every peer to prove a key: one that a [`Trust`] or
    /// [`TrustSource`] accepts or, with [`ClientTrust::AnyKey`], any.
    #[must_use]
    pub fn require_client(mut self, trust: impl Into<ClientTrust>) -> Self {
        self.client_trust = Some(trust.into());
        self
    }

    /// Offers `alpn` instead of [`Alpn::Weida`].
    #[must_use]
    pub fn with_alpn(mut self, alpn: Alpn) -> Self {
        self.alpn = alpn;
        self
    }
}

impl From<Identity> for ServerTls {
    fn from(identity: Identity) -> Self {
        Self::new(identity)
    }
}

impl From<IdentitySource> for ServerTls {
    fn from(identity: IdentitySource) -> Self {
        Self::new(identity)
    }
}

/// The certificate chain a peer presented: DER, leaf first, as it arrived.
///
/// Only the leaf's public key, whose fingerprint is the peer, was interpreted;
/// what the rest certifies is the application's to read. At most 8 certificates
/// and 32 KiB; a clone is a reference count. `[weida ID-9]`
#[derive(Clone, PartialEq, Eq)]
pub struct PeerChain(Arc<[CertificateDer<'static>]>);

impl PeerChain {
    fn within_bounds(chain: &[CertificateDer<'static>]) -> Option<Self> {
        let (leaf, rest) = chain.split_first()?;
        chain_fits(leaf, rest).then(|| Self(chain.into()))
    }

    /// The leaf, whose public key is the peer's fingerprint.
    pub fn leaf(&self) -> &[u8] {
        &self.0[0]
    }

    /// Every certificate, leaf first.
    pub fn certs(&self) -> impl ExactSizeIterator<Item = &[u8]> + '_ {
        self.0.iter().map(|cert| &**cert)
    }
}

impl fmt::Debug for PeerChain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes: usize = self.certs().map(<[u8]>::len).sum();
        f.debug_struct("PeerChain")
            .field("certs", &self.0.len())
            .field("bytes", &bytes)
            .finish()
    }
}

/// Whether a presented chain is small enough to be kept.
fn chain_fits(leaf: &CertificateDer<'_>, rest: &[CertificateDer<'_>]) -> bool {
    let bytes = rest.iter().fold(leaf.len(), |sum, cert| sum + cert.len());
    rest.len() < MAX_CHAIN_CERTS && bytes <= MAX_CHAIN_BYTES
}

/// One dial, as far as TLS is concerned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DialTerms<'a> {
    /// What the endpoint trusts and who it is.
    pub(crate) tls: &'a ClientTls,
    /// The key named by the dialled address: overrides pins and anchors.
    pub(crate) named: Option<Fingerprint>,
    /// The key this slot proved before, on a redial: required *beside* what the
    /// trust of the moment says. `[weida RD-2]`
    pub(crate) proved_before: Option<Fingerprint>,
}

/// The TLS side of one dial: its configuration, and what came of it.
pub(crate) struct DialCrypto {
    /// For `quinn::ClientConfig::new`.
    pub(crate) config: Arc<QuicClientConfig>,
    judge: Arc<JudgeServer>,
}

impl DialCrypto {
    /// The key that was refused, if this dial refused one. `[weida ID-5]`
    pub(crate) fn refused_key(&self) -> Option<Fingerprint> {
        self.judge.refused_key()
    }

    /// What a failed dial is to the caller: [`Error::Untrusted`] with the
    /// presented key if the key was the reason, [`Error::Tls`] for another
    /// handshake failure (also one the peer reports after our side of the
    /// handshake looked complete), `None` if TLS had nothing to do with it.
    pub(crate) fn failure(&self, error: &quinn::ConnectionError) -> Option<Error> {
        match self.refused_key() {
            Some(presented) => Some(Error::Untrusted(presented)),
            None => handshake_failure(error),
        }
    }
}

impl fmt::Debug for DialCrypto {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DialCrypto")
            .field("refused_key", &self.refused_key())
            .finish_non_exhaustive()
    }
}

/// Builds the TLS side of a dial from what the sources hold now.
///
/// # Errors
///
/// [`Error::Tls`], before any packet: an empty trust without a named key
/// `[weida ID-3]`, or material that does not load.
pub(crate) fn client_crypto(dial: DialTerms<'_>) -> Result<DialCrypto> {
    let judge = Arc::new(JudgeServer::new(&dial)?);
    let builder = rustls::ClientConfig::builder_with_provider(Arc::clone(provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(unusable)?
        .dangerous()
        .with_custom_certificate_verifier(judge.clone());
    let mut config = match &dial.tls.identity {
        None => builder.with_no_client_auth(),
        Some(source) => {
            let presented = source.material()?.certified;
            builder.with_client_cert_resolver(Arc::new(PresentOne(presented)))
        }
    };
    config.alpn_protocols = vec![dial.tls.alpn.token().to_vec()];
    config.resumption = rustls::client::Resumption::disabled();
    config.enable_early_data = false;
    let config = QuicClientConfig::try_from(config).map_err(unusable)?;
    Ok(DialCrypto {
        config: Arc::new(config),
        judge,
    })
}

/// Builds the TLS side of a binding. It reads `tls`'s sources at each
/// handshake, so a renewal or a changed trust needs no second bind.
///
/// # Errors
///
/// [`Error::Tls`]: identity or anchors do not load, or a client trust is empty
/// and would let nobody in. `[weida ID-6]`
pub(crate) fn server_crypto(tls: &ServerTls) -> Result<Arc<QuicServerConfig>> {
    tls.identity.material()?;
    let builder = rustls::ServerConfig::builder_with_provider(Arc::clone(provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(unusable)?;
    let builder = match &tls.client_trust {
        None => builder.with_no_client_auth(),
        Some(trust) => {
            let judge = JudgeClients::new(trust.clone())?;
            builder.with_client_cert_verifier(Arc::new(judge))
        }
    };
    let mut config = builder.with_cert_resolver(Arc::new(PresentCurrent(tls.identity.clone())));
    config.alpn_protocols = vec![tls.alpn.token().to_vec()];
    config.session_storage = Arc::new(rustls::server::NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    config.max_early_data_size = 0;
    let config = QuicServerConfig::try_from(config).map_err(unusable)?;
    Ok(Arc::new(config))
}

/// The server name to dial `host` under: the host text exactly, without the
/// brackets of an IPv6 literal. A DNS name becomes the SNI and the name that
/// anchors verify; an IP literal is verified and not sent. `[wire 2]`
///
/// # Errors
///
/// [`Error::InvalidAddress`] for a host that is neither.
pub(crate) fn server_name(host: &str) -> Result<&str> {
    let bare = host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .unwrap_or(host);
    match ServerName::try_from(bare) {
        Ok(_) => Ok(bare),
        Err(_) => Err(Error::InvalidAddress(format!(
            "{host:?} is neither a DNS name nor an IP address"
        ))),
    }
}

/// Who is at the other end, and the chain it presented if that is small enough
/// to keep. Both `None` for a client that was not asked or asked in vain.
///
/// The only function that makes a [`PeerIdentity::Key`]. The handshake behind
/// `connection` is complete, so its `CertificateVerify` was checked in every
/// mode. `[weida S8-1, S8-4]`
pub(crate) fn proved_peer(
    connection: &quinn::Connection,
) -> (Option<PeerIdentity>, Option<PeerChain>) {
    let chain = connection
        .peer_identity()
        .and_then(|any| any.downcast::<Vec<CertificateDer<'static>>>().ok());
    let Some(chain) = chain else {
        return (None, None);
    };
    let Some(fingerprint) = chain.first().and_then(|leaf| leaf_fingerprint(leaf).ok()) else {
        return (None, None);
    };
    let proof = TransportProof::HandshakeKey(fingerprint);
    #[expect(
        clippy::disallowed_methods,
        reason = "the handshake just verified this proof"
    )]
    let peer = PeerIdentity::__from_proof_verified_by_the_transport(proof);
    (Some(peer), PeerChain::within_bounds(&chain))
}

/// [`Error::Tls`] if `error` is a TLS failure of either side.
pub(crate) fn handshake_failure(error: &quinn::ConnectionError) -> Option<Error> {
    let (code, reason) = match error {
        quinn::ConnectionError::TransportError(error) => (error.code, error.reason.clone()),
        quinn::ConnectionError::ConnectionClosed(close) => (
            close.error_code,
            String::from_utf8_lossy(&close.reason).into_owned(),
        ),
        quinn::ConnectionError::VersionMismatch
        | quinn::ConnectionError::ApplicationClosed(_)
        | quinn::ConnectionError::Reset
        | quinn::ConnectionError::TimedOut
        | quinn::ConnectionError::LocallyClosed
        | quinn::ConnectionError::CidsExhausted => return None,
    };
    // RFC 9001 4.8: a TLS alert is the low byte of 0x0100..=0x01ff.
    let alert = u64::from(code)
        .checked_sub(0x100)
        .filter(|it| *it < 0x100)?;
    let what = match alert {
        42 => "bad certificate",
        48 => "unknown certificate authority",
        49 => "access denied",
        116 => "the peer requires a client certificate",
        120 => "the peer does not speak this protocol (ALPN)",
        _ => "handshake failed",
    };
    let mut text = format!("{what} (alert {alert})");
    if !reason.is_empty() {
        let kept = reason.floor_char_boundary(MAX_PEER_TEXT_BYTES.min(reason.len()));
        text.push_str(": ");
        text.extend(reason[..kept].escape_debug());
    }
    Some(Error::Tls(text))
}

/// ring's algorithms, made once. Private to this library: nothing is installed.
pub(crate) fn provider() -> &'static Arc<CryptoProvider> {
    static RING: OnceLock<Arc<CryptoProvider>> = OnceLock::new();
    RING.get_or_init(|| Arc::new(rustls::crypto::ring::default_provider()))
}

fn unusable(error: impl fmt::Display) -> Error {
    Error::Tls(format!("unusable TLS configuration: {error}"))
}

/// A dial's certificate, read from its source when the dial began. It is
/// offered whatever authorities the binding lists.
#[derive(Debug)]
struct PresentOne(Arc<CertifiedKey>);

impl rustls::client::ResolvesClientCert for PresentOne {
    fn resolve(
        &self,
        _root_hint_subjects: &[&[u8]],
        _sigschemes: &[rustls::SignatureScheme],
    ) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }

    fn has_certs(&self) -> bool {
        true
    }
}

/// A binding's certificate: whatever its source holds at this handshake.
#[derive(Debug)]
struct PresentCurrent(IdentitySource);

impl rustls::server::ResolvesServerCert for PresentCurrent {
    fn resolve(&self, _hello: rustls::server::ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.material().ok().map(|material| material.certified)
    }
}
