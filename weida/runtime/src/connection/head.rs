//! Frame heads: reading one off a stream, and encoding the ones we send.

use bytes::{Bytes, BytesMut};
use weida_core::{Error, ErrorCode, Result};
use weida_protocol::{
    DataHeader, DecodeError, ErrorHeader, FrameHeader, FrameKind, Head, HeadDecoder,
    MAX_PREAMBLE_LEN, Position, encode_frame,
};

use super::RecvHalf;
use super::arrival::Failure;
use super::halves::RecvFail;

/// Where reading a head stands.
#[derive(Debug)]
pub(crate) enum Parsed {
    /// The head, and the payload bytes that came with it.
    Done(Head, Bytes),
    /// More bytes are needed.
    More,
    /// There will be no head.
    Failed(Failure),
}

/// Reads one head off the front of a stream half.
#[derive(Debug)]
pub(crate) struct Reader {
    decoder: HeadDecoder,
    /// The raw head once it is whole, and what came after it.
    whole: Option<(Head, Bytes)>,
}

impl Reader {
    pub(crate) fn new(max_header_bytes: u64) -> Self {
        Self {
            decoder: HeadDecoder::new(max_header_bytes),
            whole: None,
        }
    }

    /// Takes one read's worth of an initiating half.
    pub(super) fn feed(
        &mut self,
        chunk: std::result::Result<Option<Bytes>, RecvFail>,
        exchange: bool,
    ) -> Parsed {
        if let Err(failure) = self.take(chunk) {
            return Parsed::Failed(failure);
        }
        if self.kind().is_none() {
            return Parsed::More;
        }
        if let Err(failure) = self.check_opening(exchange) {
            return Parsed::Failed(failure);
        }
        match self.whole.take() {
            None => Parsed::More,
            Some((head, rest)) => Parsed::Done(head, rest),
        }
    }

    fn take(
        &mut self,
        chunk: std::result::Result<Option<Bytes>, RecvFail>,
    ) -> std::result::Result<(), Failure> {
        match chunk {
            Ok(Some(mut chunk)) => {
                if let Some(head) = self.decoder.feed(&mut chunk).map_err(violation)? {
                    self.whole = Some((head, chunk));
                }
                Ok(())
            }
            Ok(None) => match self.decoder.at_fin() {
                Ok(()) => Err(Failure::Cut),
                Err(error) => Err(violation(error)),
            },
            Err(fail) => Err(Failure::Gone(fail)),
        }
    }

    fn kind(&self) -> Option<FrameKind> {
        match &self.whole {
            Some((head, _)) => Some(head.kind),
            None => self.decoder.preamble().map(|preamble| preamble.kind),
        }
    }

    /// Whether the frame is HELLO; meaningful once the preamble is read.
    pub(super) fn is_hello(&self) -> bool {
        self.kind() == Some(FrameKind::Hello)
    }

    /// Judges the kind by what it opens, as far as that is done before HELLO:
    /// an exchange opens with DATA. `[wire 17]`
    pub(super) fn check_opening(&self, exchange: bool) -> std::result::Result<(), Failure> {
        match self.kind() {
            Some(kind) if exchange => kind.check_position(Position::Exchange).map_err(violation),
            Some(_) | None => Ok(()),
        }
    }

    /// Reads until the preamble is there and checked.
    pub(super) async fn read_preamble(
        &mut self,
        stream: &mut RecvHalf,
    ) -> std::result::Result<(), Failure> {
        while self.kind().is_none() {
            let chunk = stream.chunk(MAX_PREAMBLE_LEN).await;
            self.take(chunk)?;
        }
        Ok(())
    }

    /// Reads the rest of the head.
    pub(super) async fn read_header(
        &mut self,
        stream: &mut RecvHalf,
    ) -> std::result::Result<(Head, Bytes), Failure> {
        loop {
            if let Some(whole) = self.whole.take() {
                return Ok(whole);
            }
            // Only what the header lacks, so that nothing of the payload is
            // taken out of the stream's window here.
            let missing = self
                .decoder
                .preamble()
                .map_or(MAX_PREAMBLE_LEN, |preamble| {
                    let len = usize::try_from(preamble.header_len).unwrap_or(usize::MAX);
                    len.saturating_sub(self.decoder.buffered_bytes()).max(1)
                });
            let chunk = stream.chunk(missing).await;
            self.take(chunk)?;
        }
    }
}

/// What opens a reply half. `[wire 6]`
#[derive(Debug)]
pub(crate) enum ReplyHead {
    /// The reply: its header's bytes, and the payload that came with them.
    Data(Bytes, Bytes),
    /// A typed refusal.
    Error(Error),
}

/// Reads the head of a reply half.
///
/// # Errors
///
/// Everything wrong fails this exchange and nothing else. `[wire 17]`
pub(crate) async fn read_reply(
    stream: &mut RecvHalf,
    max_header_bytes: u64,
) -> std::result::Result<ReplyHead, Failure> {
    let mut reader = Reader::new(max_header_bytes);
    while reader.whole.is_none() {
        // The head of a reply nearly always comes with the first bytes.
        let chunk = stream.chunk(usize::MAX).await;
        reader.take(chunk)?;
    }
    let (head, rest) = reader.read_header(stream).await?;
    head.kind
        .check_position(Position::Reply)
        .map_err(violation)?;
    if head.kind == FrameKind::Data {
        return Ok(ReplyHead::Data(head.header, rest));
    }
    let header = ErrorHeader::decode(&head.header).map_err(violation)?;
    Ok(ReplyHead::Error(match header.error_code() {
        Some(code) => code.into(),
        None => Error::Transport(format!("the peer failed with code {}", header.code)),
    }))
}

pub(crate) fn violation(error: DecodeError) -> Failure {
    Failure::Violation(error.to_string())
}

/// An encoded head, ready to be written as often as needed.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    bytes: Bytes,
    header_bytes: usize,
}

impl Frame {
    /// # Errors
    ///
    /// [`Error::LimitExceeded`] when a field is above its cap, before anything
    /// is sent.
    pub(crate) fn encode(kind: FrameKind, header: &impl FrameHeader) -> Result<Self> {
        let mut bytes = BytesMut::with_capacity(64);
        encode_frame(kind, header, &mut bytes).map_err(|_| Error::LimitExceeded(None))?;
        let preamble_bytes = match weida_protocol::decode_preamble(&bytes, u64::MAX) {
            Ok(weida_protocol::Decoded::Value { consumed, .. }) => consumed,
            Ok(weida_protocol::Decoded::NeedMore(_)) | Err(_) => 0,
        };
        Ok(Self {
            header_bytes: bytes.len() - preamble_bytes,
            bytes: bytes.freeze(),
        })
    }

    pub(crate) fn data(header: &DataHeader<'_>) -> Result<Self> {
        Self::encode(FrameKind::Data, header)
    }

    pub(crate) fn error(code: ErrorCode) -> Self {
        Self::encode(FrameKind::Error, &ErrorHeader::new(code)).expect("a code is within every cap")
    }

    pub(crate) fn as_bytes(&self) -> &Bytes {
        &self.bytes
    }

    pub(crate) fn into_bytes(self) -> Bytes {
        self.bytes
    }

    /// Length of the CBOR header, which the peer's cap counts.
    pub(crate) fn header_bytes(&self) -> usize {
        self.header_bytes
    }
}
