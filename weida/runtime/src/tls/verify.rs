//! The judges: who may be the server of a dial, who may be a client of a
//! binding. `[wire 3.3]`
//!
//! A judge decides about a certificate; that the peer *holds the key* is proved
//! by the handshake signature, which both judges check in every mode.
//! `[weida S8-4]`

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, PeerIncompatible, RootCertStore,
    SignatureScheme,
};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use weida_core::{Error, Fingerprint, Result};

use super::{DialTerms, chain_fits, provider};
use crate::identity::{Pem, leaf_fingerprint};
use crate::trust::{ClientTrust, Snapshot, TrustSource};

/// Judges the server of one dial.
pub(super) struct JudgeServer {
    named: Option<Fingerprint>,
    proved_before: Option<Fingerprint>,
    pins: Vec<Fingerprint>,
    anchors: Option<Arc<WebPkiServerVerifier>>,
    refused: OnceLock<Fingerprint>,
}

impl JudgeServer {
    pub(super) fn new(dial: &DialTerms<'_>) -> Result<Self> {
        let Snapshot { trust, .. } = dial.tls.trust.snapshot();
        if dial.named.is_none() && trust.is_empty() {
            return Err(Error::Tls(
                "nothing is trusted and the address names no fingerprint".into(),
            ));
        }
        // A named key overrides the anchors, so they need not even load.
        let anchors = if dial.named.is_some() || trust.anchors.is_empty() {
            None
        } else {
            let roots = load_anchors(&trust.anchors)?;
            let verifier =
                WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(provider()))
                    .build()
                    .map_err(super::unusable)?;
            Some(verifier)
        };
        Ok(Self {
            named: dial.named,
            proved_before: dial.proved_before,
            pins: trust.pins.clone(),
            anchors,
            refused: OnceLock::new(),
        })
    }

    pub(super) fn refused_key(&self) -> Option<Fingerprint> {
        self.refused.get().copied()
    }

    /// Whether the certificate is one this dial accepts; `Err` says why not.
    fn judge(
        &self,
        presented: Fingerprint,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        now: UnixTime,
    ) -> Result<(), rustls::Error> {
        if self.proved_before.is_some_and(|key| key != presented) {
            return Err(refusal());
        }
        if let Some(named) = self.named {
            return if named == presented {
                Ok(())
            } else {
                Err(refusal())
            };
        }
        if self.pins.contains(&presented) {
            return Ok(());
        }
        match &self.anchors {
            None => Err(refusal()),
            Some(anchors) => anchors
                .verify_server_cert(end_entity, intermediates, server_name, &[], now)
                .map(drop),
        }
    }
}

impl ServerCertVerifier for JudgeServer {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let presented = fingerprint_of(end_entity)?;
        match self.judge(presented, end_entity, intermediates, server_name, now) {
            Ok(()) => Ok(ServerCertVerified::assertion()),
            Err(why) => {
                let _: Result<(), Fingerprint> = self.refused.set(presented); // one handshake per judge
                Err(why)
            }
        }
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(PeerIncompatible::Tls12NotOffered.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        supported_schemes()
    }
}

impl fmt::Debug for JudgeServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JudgeServer")
            .field("named", &self.named)
            .field("proved_before", &self.proved_before)
            .field("pins", &self.pins.len())
            .field("anchors", &self.anchors.is_some())
            .finish_non_exhaustive()
    }
}

/// Judges the clients of a binding that requires them.
pub(super) struct JudgeClients {
    trust: ClientTrust,
    /// The trust of the last handshake, made ready to use.
    ready: Mutex<Option<Arc<ReadyTrust>>>,
}

/// A trust whose anchors are loaded.
struct ReadyTrust {
    version: u64,
    pins: Vec<Fingerprint>,
    anchors: Option<Arc<dyn ClientCertVerifier>>,
}

impl JudgeClients {
    pub(super) fn new(trust: ClientTrust) -> Result<Self> {
        let ready = match &trust {
            ClientTrust::AnyKey => None,
            ClientTrust::Trusted(source) => {
                let snapshot = source.snapshot();
                if snapshot.trust.is_empty() {
                    return Err(Error::Tls(
                        "clients are required but the client trust is empty".into(),
                    ));
                }
                Some(Arc::new(ReadyTrust::load(&snapshot)?))
            }
        };
        Ok(Self {
            trust,
            ready: Mutex::new(ready),
        })
    }

    /// The source's trust of the moment. Anchors that do not load let nobody
    /// in: a broken refresh must not revive what it replaced.
    fn ready(&self, source: &TrustSource) -> Result<Arc<ReadyTrust>> {
        let snapshot = source.snapshot();
        let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        match &*ready {
            Some(ready) if ready.version == snapshot.version => Ok(Arc::clone(ready)),
            _ => {
                let loaded = Arc::new(ReadyTrust::load(&snapshot)?);
                *ready = Some(Arc::clone(&loaded));
                Ok(loaded)
            }
        }
    }
}

impl ReadyTrust {
    fn load(snapshot: &Snapshot) -> Result<Self> {
        let anchors = if snapshot.trust.anchors.is_empty() {
            None
        } else {
            let roots = load_anchors(&snapshot.trust.anchors)?;
            let verifier =
                WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(provider()))
                    .build()
                    .map_err(super::unusable)?;
            Some(verifier)
        };
        Ok(Self {
            version: snapshot.version,
            pins: snapshot.trust.pins.clone(),
            anchors,
        })
    }
}

impl ClientCertVerifier for JudgeClients {
    /// Empty, so that a client always offers what it has. `[wire 2]`
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn client_auth_mandatory(&self) -> bool {
        true
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        let presented = fingerprint_of(end_entity)?;
        let source = match &self.trust {
            ClientTrust::AnyKey if chain_fits(end_entity, intermediates) => {
                return Ok(ClientCertVerified::assertion());
            }
            ClientTrust::AnyKey => return Err(refusal()),
            ClientTrust::Trusted(source) => source,
        };
        let trust = self.ready(source).map_err(|error| {
            tracing::warn!(%error, "client trust cannot be loaded, refusing clients");
            refusal()
        })?;
        if trust.pins.contains(&presented) {
            return Ok(ClientCertVerified::assertion());
        }
        match &trust.anchors {
            None => Err(refusal()),
            Some(anchors) => anchors.verify_client_cert(end_entity, intermediates, now),
        }
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(PeerIncompatible::Tls12NotOffered.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        supported_schemes()
    }
}

impl fmt::Debug for JudgeClients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JudgeClients")
            .field("trust", &self.trust)
            .finish_non_exhaustive()
    }
}

fn fingerprint_of(end_entity: &CertificateDer<'_>) -> Result<Fingerprint, rustls::Error> {
    leaf_fingerprint(end_entity)
        .map_err(|_| rustls::Error::InvalidCertificate(CertificateError::BadEncoding))
}

fn refusal() -> rustls::Error {
    rustls::Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure)
}

fn verify_signature(
    message: &[u8],
    cert: &CertificateDer<'_>,
    dss: &DigitallySignedStruct,
) -> Result<HandshakeSignatureValid, rustls::Error> {
    let algorithms = &provider().signature_verification_algorithms;
    rustls::crypto::verify_tls13_signature(message, cert, dss, algorithms)
}

fn supported_schemes() -> Vec<SignatureScheme> {
    provider()
        .signature_verification_algorithms
        .supported_schemes()
}

fn load_anchors(anchors: &[Pem]) -> Result<Arc<RootCertStore>> {
    let mut roots = RootCertStore::empty();
    for anchor in anchors {
        let pem = anchor.load()?;
        let before = roots.len();
        for cert in CertificateDer::pem_slice_iter(&pem) {
            let cert = cert.map_err(|_| Error::Tls("trust anchor is not valid PEM".into()))?;
            roots
                .add(cert)
                .map_err(|error| Error::Tls(format!("unusable trust anchor: {error}")))?;
        }
        if roots.len() == before {
            return Err(Error::Tls("no certificate in a trust anchor's PEM".into()));
        }
    }
    Ok(Arc::new(roots))
}
