//! Self-signed identities. `[wire 2.2]`

use rcgen::{
    CertificateParams, DistinguishedName, DnType, KeyPair, PKCS_ECDSA_P256_SHA256, date_time_ymd,
};
use weida_core::{Error, Result};

use super::Identity;

/// A new P-256 key and a certificate for it that names `names` and lasts from
/// 1975 to 4096: where keys are pinned nobody consults dates, and where the
/// certificate itself is the anchor nothing could renew it.
pub(super) fn self_signed(names: Vec<String>) -> Result<Identity> {
    let failed = |what: &str, error: rcgen::Error| Error::Tls(format!("{what}: {error}"));
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)
        .map_err(|error| failed("cannot generate a key", error))?;
    let mut params = CertificateParams::new(names)
        .map_err(|error| failed("unusable certificate name", error))?;
    params.not_before = date_time_ymd(1975, 1, 1);
    params.not_after = date_time_ymd(4096, 1, 1);
    let mut subject = DistinguishedName::new();
    subject.push(DnType::CommonName, "weida peer");
    params.distinguished_name = subject;
    let cert = params
        .self_signed(&key)
        .map_err(|error| failed("cannot sign the certificate", error))?;
    Ok(Identity::from_pem(cert.pem(), key.serialize_pem()))
}
