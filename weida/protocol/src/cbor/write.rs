//! Writing one header: definite lengths, shortest forms, keys as the caller orders them.

use std::convert::Infallible;

use bytes::BufMut;
use ciborium_ll::{Encoder, Header};

/// Appends CBOR items to a buffer; growing memory cannot fail, so neither does this.
pub(crate) struct Writer<'a, B: BufMut>(Encoder<Append<'a, B>>);

impl<'a, B: BufMut> Writer<'a, B> {
    pub(crate) fn new(out: &'a mut B) -> Self {
        Self(Encoder::from(Append(out)))
    }

    pub(crate) fn map(&mut self, pairs: usize) {
        self.push(Header::Map(Some(pairs)));
    }

    pub(crate) fn array(&mut self, items: usize) {
        self.push(Header::Array(Some(items)));
    }

    pub(crate) fn uint(&mut self, value: u64) {
        self.push(Header::Positive(value));
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.push(Header::Text(Some(text.len())));
        self.raw(text.as_bytes());
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.push(Header::Bytes(Some(bytes.len())));
        self.raw(bytes);
    }

    /// Items that are encoded already.
    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        let Ok(()) = ciborium_io::Write::write_all(&mut self.0, bytes);
    }

    pub(crate) fn uint_key(&mut self, key: u64, value: u64) {
        self.uint(key);
        self.uint(value);
    }

    pub(crate) fn text_key(&mut self, key: u64, text: &str) {
        self.uint(key);
        self.text(text);
    }

    #[inline]
    fn push(&mut self, header: Header) {
        // Almost every head of ours is one byte; the encoder's general path costs several times
        // as much and writes the same.
        let short = match header {
            Header::Positive(value) if value < 24 => Some(value),
            Header::Text(Some(len)) if len < 24 => Some(0x60 | len as u64),
            Header::Map(Some(len)) if len < 24 => Some(0xA0 | len as u64),
            _ => None,
        };
        match short.and_then(|initial| u8::try_from(initial).ok()) {
            Some(initial) => self.raw(&[initial]),
            None => {
                let Ok(()) = self.0.push(header);
            }
        }
    }
}

struct Append<'a, B>(&'a mut B);

impl<B: BufMut> ciborium_io::Write for Append<'_, B> {
    type Error = Infallible;

    #[inline]
    fn write_all(&mut self, data: &[u8]) -> Result<(), Infallible> {
        self.0.put_slice(data);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_heads_are_what_the_encoder_writes() {
        for len in 0..30 {
            for header in [
                Header::Positive(len as u64),
                Header::Text(Some(len)),
                Header::Map(Some(len)),
            ] {
                let (mut ours, mut theirs) = (Vec::new(), Vec::new());
                Writer::new(&mut ours).push(header);
                let Ok(()) = Encoder::from(Append(&mut theirs)).push(header);
                assert_eq!(ours, theirs, "{header:?}");
            }
        }
    }
}
