//! TLS of a listener: files to a rustls configuration. [mqtt 3.1]
//!
//! The `ring` provider is named explicitly; nothing process-global is touched. [DESIGN D10]

use std::path::Path;
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::server::WebPkiClientVerifier;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};

use crate::config::{ClientAuth, TlsConfig};
use crate::error::TlsError;

/// TLS 1.2 and 1.3, tickets on, ALPN `mqtt` accepted and its absence too.
pub(crate) fn server_config(tls: &TlsConfig) -> Result<Arc<rustls::ServerConfig>, TlsError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions = [&rustls::version::TLS13, &rustls::version::TLS12];
    let builder = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&versions)?;
    let builder = match (tls.client_auth, &tls.client_ca_file) {
        (ClientAuth::None, _) | (_, None) => builder.with_no_client_auth(),
        (wanted, Some(anchors)) => {
            let mut roots = RootCertStore::empty();
            for anchor in certificates(anchors, "client anchors")? {
                roots.add(anchor)?;
            }
            let mut verifier =
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
            if let Some(path) = &tls.client_crl_file {
                verifier = verifier.with_crls(revocations(path)?);
            }
            if wanted == ClientAuth::Optional {
                verifier = verifier.allow_unauthenticated();
            }
            builder.with_client_cert_verifier(verifier.build()?)
        }
    };
    let chain = certificates(&tls.cert_file, "certificates")?;
    let key = PrivateKeyDer::from_pem_file(&tls.key_file)
        .map_err(|source| pem(&tls.key_file, "a private key", source))?;
    let mut config = builder.with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"mqtt".to_vec()];
    config.ticketer = rustls::crypto::ring::Ticketer::new()?;
    Ok(Arc::new(config))
}

fn certificates(path: &Path, what: &'static str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let found = read.map_err(|source| pem(path, what, source))?;
    if found.is_empty() {
        return Err(TlsError::Empty {
            path: path.into(),
            what,
        });
    }
    Ok(found)
}

fn revocations(path: &Path) -> Result<Vec<CertificateRevocationListDer<'static>>, TlsError> {
    let what = "revocation lists";
    let read = CertificateRevocationListDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let found = read.map_err(|source| pem(path, what, source))?;
    if found.is_empty() {
        return Err(TlsError::Empty {
            path: path.into(),
            what,
        });
    }
    Ok(found)
}

fn pem(path: &Path, what: &'static str, source: rustls_pki_types::pem::Error) -> TlsError {
    TlsError::Pem {
        path: path.into(),
        what,
        source,
    }
}
