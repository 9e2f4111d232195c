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
        let Ok(()) = self.0.push(header);
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
