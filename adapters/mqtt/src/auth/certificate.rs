//! What a verified client certificate says: its key and its subject. [mqtt 9.1]
//!
//! The certificate was verified by the TLS handshake before it comes here; this file only finds
//! two fields in it. Everything is bounds-checked: an odd encoding gives no subject, never a panic.

use sha2::{Digest, Sha256};

/// Key and names of the certificate a client proved possession of.
#[derive(Debug, Clone)]
pub(crate) struct ClientCertificate {
    spki_sha256: [u8; 32],
    common_name: Option<Box<str>>,
    alternative_name: Option<Box<str>>,
}

impl ClientCertificate {
    /// Reads a DER certificate; `None` when it has no recognisable shape.
    pub(crate) fn parse(der: &[u8]) -> Option<Self> {
        let (certificate, _) = element(der, SEQUENCE)?;
        let (tbs, _) = element(certificate, SEQUENCE)?;
        let rest = skip_if(tbs, CONTEXT_0);
        let (_, rest) = element(rest, INTEGER)?;
        let (_, rest) = element(rest, SEQUENCE)?;
        let (_, rest) = element(rest, SEQUENCE)?;
        let (_, rest) = element(rest, SEQUENCE)?;
        let (subject, rest) = element(rest, SEQUENCE)?;
        let (_, after_spki) = element(rest, SEQUENCE)?;
        let spki = rest.get(..rest.len() - after_spki.len())?;
        Some(Self {
            spki_sha256: Sha256::digest(spki).into(),
            common_name: common_name(subject),
            alternative_name: alternative_name(after_spki),
        })
    }

    pub(crate) fn spki_sha256(&self) -> &[u8; 32] {
        &self.spki_sha256
    }

    /// Common name, else the first alternative name.
    pub(crate) fn subject(&self) -> Option<&str> {
        self.common_name
            .as_deref()
            .or(self.alternative_name.as_deref())
    }

    /// How grants may call the holder besides `cert:`.
    pub(crate) fn spellings(&self) -> Vec<Box<str>> {
        let mut spellings = Vec::new();
        if let Some(name) = &self.common_name {
            spellings.push(format!("cert-subject:CN={name}").into());
        }
        if let Some(name) = &self.alternative_name {
            spellings.push(format!("cert-subject:SAN={name}").into());
        }
        spellings
    }
}

const INTEGER: u8 = 0x02;
const BOOLEAN: u8 = 0x01;
const OCTET_STRING: u8 = 0x04;
const OBJECT_IDENTIFIER: u8 = 0x06;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const CONTEXT_0: u8 = 0xa0;
const CONTEXT_3: u8 = 0xa3;
const DNS_NAME: u8 = 0x82;
const URI: u8 = 0x86;
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
const SUBJECT_ALT_NAME: &[u8] = &[0x55, 0x1d, 0x11];

/// Content of the element at the front, and what follows it.
fn element(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (found, content, rest) = any_element(bytes)?;
    (found == tag).then_some((content, rest))
}

fn any_element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (tag, rest) = bytes.split_first()?;
    let (first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(*first), rest),
        0x81..=0x83 => {
            let count = usize::from(first & 0x7f);
            let digits = rest.get(..count)?;
            let length = digits.iter().fold(0, |n, d| (n << 8) | usize::from(*d));
            (length, rest.get(count..)?)
        }
        _ => return None,
    };
    Some((*tag, rest.get(..length)?, rest.get(length..)?))
}

fn skip_if(bytes: &[u8], tag: u8) -> &[u8] {
    element(bytes, tag).map_or(bytes, |(_, rest)| rest)
}

/// A name as grants may spell it: text without anything that could be taken for structure.
fn text(bytes: &[u8]) -> Option<Box<str>> {
    let text = std::str::from_utf8(bytes).ok()?;
    let clean = !text.is_empty() && text.len() <= 256 && !text.contains(char::is_control);
    clean.then(|| text.into())
}

fn common_name(mut subject: &[u8]) -> Option<Box<str>> {
    let mut found = None;
    while let Some((mut set, rest)) = element(subject, SET) {
        while let Some((attribute, more)) = element(set, SEQUENCE) {
            if let Some((COMMON_NAME, value)) = element(attribute, OBJECT_IDENTIFIER) {
                let (_, name, _) = any_element(value)?;
                // The most specific one stands last.
                found = text(name);
            }
            set = more;
        }
        subject = rest;
    }
    found
}

fn alternative_name(mut after_spki: &[u8]) -> Option<Box<str>> {
    while let Some((tag, content, rest)) = any_element(after_spki) {
        if tag == CONTEXT_3 {
            let (mut extensions, _) = element(content, SEQUENCE)?;
            while let Some((extension, more)) = element(extensions, SEQUENCE) {
                if let Some((SUBJECT_ALT_NAME, value)) = element(extension, OBJECT_IDENTIFIER) {
                    let (octets, _) = element(skip_if(value, BOOLEAN), OCTET_STRING)?;
                    let (mut names, _) = element(octets, SEQUENCE)?;
                    while let Some((tag, name, others)) = any_element(names) {
                        if matches!(tag, DNS_NAME | URI) {
                            return text(name);
                        }
                        names = others;
                    }
                }
                extensions = more;
            }
        }
        after_spki = rest;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn certificate(common_name: &str, alternative: &[&str]) -> (Vec<u8>, Vec<u8>) {
        let key = rcgen::KeyPair::generate().unwrap();
        let names: Vec<String> = alternative.iter().map(|&n| n.into()).collect();
        let mut params = rcgen::CertificateParams::new(names).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params
            .distinguished_name
            .push(rcgen::DnType::OrganizationName, "factory");
        params
            .distinguished_name
            .push(rcgen::DnType::CommonName, common_name);
        let signed = params.self_signed(&key).unwrap();
        (
            signed.der().to_vec(),
            rcgen::PublicKeyData::subject_public_key_info(&key),
        )
    }

    #[test]
    fn mqtt_9_1_key_and_subject_are_found() {
        let (der, spki) = certificate("press-7", &["press-7.plant.example"]);
        let parsed = ClientCertificate::parse(&der).unwrap();
        assert_eq!(
            parsed.spki_sha256(),
            &<[u8; 32]>::from(Sha256::digest(spki))
        );
        assert_eq!(parsed.subject(), Some("press-7"));
        assert_eq!(
            parsed.spellings(),
            [
                Box::from("cert-subject:CN=press-7"),
                Box::from("cert-subject:SAN=press-7.plant.example")
            ]
        );
    }

    /// Every prefix and every single flipped byte of a certificate is survived.
    #[test]
    fn odd_encodings_never_panic() {
        let (der, _) = certificate("press-7", &["a.example"]);
        for end in 0..der.len() {
            let _: Option<ClientCertificate> = ClientCertificate::parse(&der[..end]);
        }
        for at in 0..der.len() {
            let mut odd = der.clone();
            odd[at] ^= 0xff;
            let _: Option<ClientCertificate> = ClientCertificate::parse(&odd);
        }
    }
}
