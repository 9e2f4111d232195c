//! Writing PEM sections. Reading them is `rustls-pki-types`.

/// Characters of one PEM line.
const LINE: usize = 64;
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Appends `der` as one PEM section named `label`.
pub(super) fn encode_into(out: &mut String, label: &str, der: &[u8]) {
    out.reserve(encoded_len(label, der.len()));
    for part in ["-----BEGIN ", label, "-----\n"] {
        out.push_str(part);
    }
    let mut column = 0;
    for group in der.chunks(3) {
        let bits = group
            .iter()
            .chain(&[0, 0])
            .take(3)
            .fold(0u32, |bits, byte| bits << 8 | u32::from(*byte));
        for place in 0..4 {
            // n bytes fill n + 1 characters; the rest of the four is padding.
            if place <= group.len() {
                let index = (bits >> (18 - 6 * place)) & 0x3f;
                out.push(char::from(ALPHABET[index as usize]));
            } else {
                out.push('=');
            }
        }
        column += 4;
        if column == LINE {
            out.push('\n');
            column = 0;
        }
    }
    if column > 0 {
        out.push('\n');
    }
    for part in ["-----END ", label, "-----\n"] {
        out.push_str(part);
    }
}

/// Bytes [`encode_into`] appends at most for `der_len` bytes under `label`.
pub(super) fn encoded_len(label: &str, der_len: usize) -> usize {
    let body = der_len.div_ceil(3) * 4;
    body + body.div_ceil(LINE) + 2 * label.len() + 32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rustls_pki_types::CertificateDer;
    use rustls_pki_types::pem::PemObject;

    #[test]
    fn short_inputs_are_padded_as_rfc_4648_shows() {
        for (der, text) in [
            (&b"f"[..], "Zg=="),
            (b"fo", "Zm8="),
            (b"foo", "Zm9v"),
            (b"foob", "Zm9vYg=="),
        ] {
            let mut out = String::new();
            encode_into(&mut out, "X", der);
            assert_eq!(out, format!("-----BEGIN X-----\n{text}\n-----END X-----\n"));
        }
    }

    proptest! {
        /// Whatever we write, the reader reads back, and the bound holds.
        #[test]
        fn written_sections_read_back(der in prop::collection::vec(any::<u8>(), 1..400)) {
            let mut out = String::new();
            encode_into(&mut out, "CERTIFICATE", &der);
            prop_assert!(out.len() <= encoded_len("CERTIFICATE", der.len()));
            let read = CertificateDer::from_pem_slice(out.as_bytes()).unwrap();
            prop_assert_eq!(read.as_ref(), &der[..]);
        }
    }
}
