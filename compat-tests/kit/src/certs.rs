//! Certificates for tests: one authority, servers and clients below it, all of a few minutes' worth.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

/// A certificate authority of one test.
#[derive(Debug)]
pub struct TestCa {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
    der: Vec<u8>,
}

/// A certificate with its key, signed by a [`TestCa`].
#[derive(Clone)]
pub struct TestCert {
    /// The certificate.
    pub cert_pem: String,
    /// Its key, PKCS #8.
    pub key_pem: String,
    /// The certificate.
    pub cert_der: Vec<u8>,
    /// Its key, PKCS #8.
    pub key_der: Vec<u8>,
}

impl TestCa {
    /// A new authority with a key of its own.
    ///
    /// # Errors
    /// When the key or certificate cannot be made.
    pub fn new() -> Result<Self, rcgen::Error> {
        let mut params = CertificateParams::new(Vec::new())?;
        params
            .distinguished_name
            .push(DnType::CommonName, "test authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate()?;
        let cert = params.self_signed(&key)?;
        let (pem, der) = (cert.pem(), cert.der().to_vec());
        Ok(Self {
            issuer: Issuer::new(params, key),
            pem,
            der,
        })
    }

    /// A server certificate for these names; text that is an address becomes one.
    ///
    /// # Errors
    /// When a name cannot stand in a certificate.
    pub fn server(&self, names: &[&str]) -> Result<TestCert, rcgen::Error> {
        self.issue(
            names,
            names.first().copied().unwrap_or("server"),
            ExtendedKeyUsagePurpose::ServerAuth,
        )
    }

    /// A client certificate with this common name.
    ///
    /// # Errors
    /// When the name cannot stand in a certificate.
    pub fn client(&self, name: &str) -> Result<TestCert, rcgen::Error> {
        self.issue(&[], name, ExtendedKeyUsagePurpose::ClientAuth)
    }

    /// The authority's certificate.
    #[must_use]
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// The authority's certificate.
    #[must_use]
    pub fn der(&self) -> &[u8] {
        &self.der
    }

    /// Writes `ca.pem` into `dir` and gives its path.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write_to(&self, dir: &Path) -> io::Result<PathBuf> {
        let path = dir.join("ca.pem");
        fs::write(&path, &self.pem)?;
        Ok(path)
    }

    fn issue(
        &self,
        names: &[&str],
        common: &str,
        usage: ExtendedKeyUsagePurpose,
    ) -> Result<TestCert, rcgen::Error> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name.push(DnType::CommonName, common);
        params.extended_key_usages = vec![usage];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let cert = params.signed_by(&key, &self.issuer)?;
        Ok(TestCert {
            cert_pem: cert.pem(),
            key_pem: key.serialize_pem(),
            cert_der: cert.der().to_vec(),
            key_der: key.serialize_der(),
        })
    }
}

impl TestCert {
    /// Writes `NAME.pem` and `NAME.key` into `dir` and gives their paths.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn write_to(&self, dir: &Path, name: &str) -> io::Result<(PathBuf, PathBuf)> {
        let (cert, key) = (
            dir.join(format!("{name}.pem")),
            dir.join(format!("{name}.key")),
        );
        fs::write(&cert, &self.cert_pem)?;
        fs::write(&key, &self.key_pem)?;
        Ok((cert, key))
    }
}

impl std::fmt::Debug for TestCert {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TestCert")
            .field("cert_bytes", &self.cert_der.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_are_written_and_differ() {
        let ca = TestCa::new().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let server = ca.server(&["localhost", "127.0.0.1"]).unwrap();
        let client = ca.client("sensor-7").unwrap();
        assert_ne!(server.key_der, client.key_der);
        let (cert, key) = server.write_to(dir.path(), "server").unwrap();
        assert!(
            fs::read_to_string(cert)
                .unwrap()
                .starts_with("-----BEGIN CERTIFICATE-----")
        );
        assert!(
            fs::read_to_string(key)
                .unwrap()
                .starts_with("-----BEGIN PRIVATE KEY-----")
        );
        assert_eq!(
            fs::read_to_string(ca.write_to(dir.path()).unwrap()).unwrap(),
            ca.pem()
        );
        // The common name stands in the client's certificate, the address in the server's.
        let holds = |der: &[u8], part: &[u8]| der.windows(part.len()).any(|window| window == part);
        assert!(holds(&client.cert_der, b"sensor-7") && holds(&server.cert_der, &[127, 0, 0, 1]));
        assert!(!format!("{server:?}").contains("PRIVATE"));
    }
}
