//! What a transfer says about itself, outgoing and incoming.

use rand::Rng as _;
use weida_core::{
    Acknowledgement, CursorLevel, Error, PeerIdentity, ReportMode, Result, TraceContext,
};
use weida_protocol::{DataHeader, ExtensionValue, ExtensionsBuf};

use crate::connection::Connection;
use crate::connection::head::Frame;
use crate::tls::PeerChain;

/// What the application says about a transfer it sends.
#[derive(Clone, Debug, Default)]
pub struct TransferMeta {
    /// Opaque content type, at most 256 bytes.
    pub content_type: Option<String>,
    /// Advisory payload length; nothing enforces it.
    pub content_len: Option<u64>,
    /// Trace context to propagate; the runtime never makes one up.
    pub trace: Option<TraceContext>,
    /// Topic this transfer is labelled with, at most 256 bytes. Always literal
    /// text: `*` in it is an ordinary byte.
    pub topic: Option<String>,
    /// Completion level this side reached for the message it answers; only on
    /// a reply.
    pub achieved: Option<Acknowledgement>,
    /// Levels the receiver is asked to report. This version orders no reports
    /// and refuses a transfer that names any.
    pub report: Vec<CursorLevel>,
    /// How often the receiver should report.
    pub report_mode: ReportMode,
    /// Header keys from 64, which no version of the protocol defines.
    pub extensions: ExtensionsBuf,
}

impl TransferMeta {
    /// Sets the content type.
    #[must_use]
    pub fn with_content_type(mut self, content_type: impl Into<String>) -> Self {
        self.content_type = Some(content_type.into());
        self
    }

    /// Sets the advisory content length.
    #[must_use]
    pub fn with_content_len(mut self, len: u64) -> Self {
        self.content_len = Some(len);
        self
    }

    /// Propagates a trace context.
    #[must_use]
    pub fn with_trace(mut self, trace: TraceContext) -> Self {
        self.trace = Some(trace);
        self
    }

    /// Labels the transfer with a topic.
    #[must_use]
    pub fn with_topic(mut self, topic: impl Into<String>) -> Self {
        self.topic = Some(topic.into());
        self
    }

    /// States the completion level this side reached. A claim the peer acts on:
    /// the runtime never sets it.
    #[must_use]
    pub fn with_achieved(mut self, level: Acknowledgement) -> Self {
        self.achieved = Some(level);
        self
    }

    /// Asks the receiver to report `levels`.
    #[must_use]
    pub fn with_report(mut self, levels: impl IntoIterator<Item = CursorLevel>) -> Self {
        self.report = levels.into_iter().collect();
        self.report.sort_unstable();
        self.report.dedup();
        self
    }

    /// Asks for progress, or for one record per level at the end.
    #[must_use]
    pub fn with_report_mode(mut self, mode: ReportMode) -> Self {
        self.report_mode = mode;
        self
    }

    /// Adds a header key of a private extension, 64 or above; a receiver that
    /// does not know it skips it.
    ///
    /// # Errors
    ///
    /// [`Error::LimitExceeded`] for a key below 64 or a value no receiver would
    /// accept.
    pub fn with_extension(mut self, key: u64, value: &ExtensionValue<'_>) -> Result<Self> {
        self.extensions
            .insert(key, value)
            .map_err(|_| Error::LimitExceeded(None))?;
        Ok(self)
    }

    /// Whether nothing is said, so that a head prepared for the path serves.
    pub(crate) fn is_plain(&self) -> bool {
        self.content_type.is_none()
            && self.content_len.is_none()
            && self.trace.is_none()
            && self.topic.is_none()
            && self.achieved.is_none()
            && self.report.is_empty()
            && self.extensions.as_extensions().is_empty()
    }

    /// The frame head of an initiating stream toward `path`.
    ///
    /// # Errors
    ///
    /// [`Error::LimitExceeded`] for a field above its cap,
    /// [`Error::Unsupported`] for an ordered report. Nothing is sent then.
    pub(crate) fn frame(&self, path: &str) -> Result<Frame> {
        self.encode(Some(path), self.trace, None)
    }

    /// The frame head of a reply; it carries the request's trace unless this
    /// has its own.
    pub(crate) fn reply_frame(
        &self,
        trace: Option<TraceContext>,
        tracestate: Option<&str>,
    ) -> Result<Frame> {
        self.encode(None, trace, tracestate)
    }

    fn encode(
        &self,
        path: Option<&str>,
        trace: Option<TraceContext>,
        tracestate: Option<&str>,
    ) -> Result<Frame> {
        if !self.report.is_empty() {
            return Err(Error::Unsupported);
        }
        let traceparent = trace.map(|trace| trace.to_traceparent());
        Frame::data(&DataHeader {
            endpoint: path,
            content_len: self.content_len,
            content_type: self.content_type.as_deref(),
            traceparent: traceparent.as_deref(),
            tracestate,
            topic: self.topic.as_deref(),
            achieved: self.achieved,
            report_mode: self.report_mode,
            extensions: self.extensions.as_extensions(),
            ..DataHeader::default()
        })
    }
}

/// What is known about an inbound transfer.
///
/// `peer` and `peer_chain` are proved by the handshake. Everything else is what
/// the sender wrote and may be any lie: authorize on `peer` and on the path the
/// transfer was dispatched to, never on a field. `[weida AZ-1, S8-2]`
#[derive(Clone, Debug)]
pub struct IncomingMeta {
    /// Endpoint path; absent on a reply.
    pub endpoint: Option<String>,
    /// Advisory payload length.
    pub content_len: Option<u64>,
    /// Opaque content type.
    pub content_type: Option<String>,
    /// Trace context; a malformed one is absent.
    pub trace: Option<TraceContext>,
    /// Opaque `tracestate`.
    pub tracestate: Option<String>,
    /// Topic.
    pub topic: Option<String>,
    /// Whom the handshake proved; `None` for an anonymous peer.
    pub peer: Option<PeerIdentity>,
    /// The certificate chain behind `peer`, when it fits the bound.
    pub peer_chain: Option<PeerChain>,
    /// The sender's sequence number, under negotiated ordering.
    pub sequence: Option<u64>,
    /// What went missing before this transfer, under negotiated ordering.
    pub gap: Option<Gap>,
    /// Completion level the sender reached, on a reply.
    pub achieved: Option<Acknowledgement>,
    /// Levels the sender ordered a report for.
    pub report: Vec<CursorLevel>,
    /// How often it asked to be told.
    pub report_mode: ReportMode,
    /// The sender's number for the report.
    pub report_id: Option<u64>,
    /// Segment number.
    pub segment: Option<u64>,
    /// Segment layer; `Some` exactly when `segment` is.
    pub layer: Option<u8>,
    extensions: ExtensionsBuf,
}

impl IncomingMeta {
    pub(crate) fn of(header: &DataHeader<'_>, connection: &Connection) -> Self {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        let mut extensions = ExtensionsBuf::new();
        for (key, value) in header.extensions.iter() {
            // Decoded a moment ago; a value of a kind we do not hand up is
            // skipped as any unknown key is.
            let _: std::result::Result<(), _> = extensions.insert(key, &value);
        }
        Self {
            endpoint: owned(header.endpoint),
            content_len: header.content_len,
            content_type: owned(header.content_type),
            trace: header
                .traceparent
                .and_then(|text| TraceContext::parse_traceparent(text).ok()),
            tracestate: owned(header.tracestate),
            topic: owned(header.topic),
            peer: connection.peer(),
            peer_chain: connection.chain(),
            // Ordering is not negotiated, and the key is then ignored. [wire 13]
            sequence: None,
            gap: None,
            achieved: header.achieved,
            report: header.report.clone(),
            report_mode: header.report_mode,
            report_id: header.report_id,
            segment: header.segment,
            layer: header.segment.map(|_| header.layer),
            extensions,
        }
    }

    /// The value of a header key of a private extension (64 and above).
    pub fn extension(&self, key: u64) -> Option<ExtensionValue<'_>> {
        self.extensions.as_extensions().get(key)
    }
}

/// What a receiver observed about a transfer's place in its sender's sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The number expected next.
    pub expected: u64,
    /// The number that arrived.
    pub seen: u64,
}

impl Gap {
    /// How many transfers are missing; at least one.
    pub fn missed(&self) -> u64 {
        self.seen.saturating_sub(self.expected)
    }
}

/// A fresh root trace context, sampled.
pub fn new_trace() -> TraceContext {
    loop {
        let (trace_id, span_id) = rand::rng().random::<([u8; 16], [u8; 8])>();
        // All-zero ids are invalid, and possible.
        if let Some(trace) = TraceContext::new(trace_id, span_id, weida_core::trace::FLAG_SAMPLED) {
            return trace;
        }
    }
}
