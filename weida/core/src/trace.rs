//! W3C trace context, carried and never made up. [wire 8.2]

use std::fmt;

use crate::identity::hex_digit;

/// Longest `traceparent` on the wire, in bytes.
pub const MAX_TRACEPARENT_BYTES: usize = 128;
/// Longest `tracestate` on the wire, in bytes.
pub const MAX_TRACESTATE_BYTES: usize = 512;
/// The `sampled` bit of [`TraceContext::flags`].
pub const FLAG_SAMPLED: u8 = 0x01;

/// A W3C `traceparent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TraceContext {
    /// Trace id, never all zero when it was parsed or checked.
    pub trace_id: [u8; 16],
    /// Span id of the sender, never all zero when it was parsed or checked.
    pub span_id: [u8; 8],
    /// Flags; bit 0 is `sampled`.
    pub flags: u8,
}

/// Why a text is not a `traceparent`. Never a violation: an unparsable one counts as absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    /// Not 55 bytes.
    #[error("a traceparent has 55 bytes")]
    Length,
    /// Hyphens are not where they belong.
    #[error("a traceparent has hyphens at 2, 35 and 52")]
    Layout,
    /// A byte is not a lowercase hex digit.
    #[error("a traceparent field is not lowercase hex")]
    NotHex,
    /// Version `ff`.
    #[error("traceparent version ff is forbidden")]
    ForbiddenVersion,
    /// Trace id or span id is all zero.
    #[error("a traceparent id is all zero")]
    ZeroId,
}

impl TraceContext {
    /// A context from raw ids; `None` if either is all zero.
    pub const fn new(trace_id: [u8; 16], span_id: [u8; 8], flags: u8) -> Option<Self> {
        if u128::from_ne_bytes(trace_id) == 0 || u64::from_ne_bytes(span_id) == 0 {
            return None;
        }
        Some(Self {
            trace_id,
            span_id,
            flags,
        })
    }

    /// Parses a `traceparent` of version 00 layout.
    ///
    /// # Errors
    ///
    /// [`TraceError`] with the first rule that is broken.
    pub fn parse_traceparent(value: &str) -> Result<Self, TraceError> {
        let bytes: &[u8; 55] = value
            .as_bytes()
            .try_into()
            .map_err(|_| TraceError::Length)?;
        if [2, 35, 52].iter().any(|&at| bytes[at] != b'-') {
            return Err(TraceError::Layout);
        }
        let [version] = hex(&bytes[..2])?;
        let trace_id = hex(&bytes[3..35])?;
        let span_id = hex(&bytes[36..52])?;
        let [flags] = hex(&bytes[53..])?;
        if version == 0xFF {
            return Err(TraceError::ForbiddenVersion);
        }
        Self::new(trace_id, span_id, flags).ok_or(TraceError::ZeroId)
    }

    /// The version 00 text, 55 bytes.
    pub fn to_traceparent(&self) -> String {
        self.to_string()
    }

    /// Trace id as 32 lowercase hex digits.
    pub fn trace_id_hex(&self) -> String {
        Hex(&self.trace_id).to_string()
    }

    /// Span id as 16 lowercase hex digits.
    pub fn span_id_hex(&self) -> String {
        Hex(&self.span_id).to_string()
    }

    /// Whether the `sampled` flag is set.
    pub const fn is_sampled(&self) -> bool {
        self.flags & FLAG_SAMPLED != 0
    }

    /// The same trace under another span; `None` for an all-zero span id.
    pub const fn with_span_id(&self, span_id: [u8; 8]) -> Option<Self> {
        Self::new(self.trace_id, span_id, self.flags)
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "00-{}-{}-{:02x}",
            Hex(&self.trace_id),
            Hex(&self.span_id),
            self.flags
        )
    }
}

struct Hex<'a>(&'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

fn hex<const N: usize>(digits: &[u8]) -> Result<[u8; N], TraceError> {
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let digit = |at: usize| {
            hex_digit(pair[at])
                .filter(|_| !pair[at].is_ascii_uppercase())
                .ok_or(TraceError::NotHex)
        };
        *byte = digit(0)? << 4 | digit(1)?;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the W3C recommendation.
    const TEXT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_traceparent_round_trips() {
        let context = TraceContext::parse_traceparent(TEXT).unwrap();
        assert_eq!(context.to_traceparent(), TEXT);
        assert_eq!(context.trace_id_hex(), &TEXT[3..35]);
        assert_eq!(context.span_id_hex(), &TEXT[36..52]);
        assert!(context.is_sampled());
        assert_eq!(context.with_span_id([0; 8]), None);
    }

    #[test]
    fn each_rule_has_its_error() {
        let parse = TraceContext::parse_traceparent;
        assert!(parse(TEXT).is_ok());
        assert_eq!(parse(&TEXT[1..]), Err(TraceError::Length));
        assert_eq!(parse(&TEXT.replace('-', "0")), Err(TraceError::Layout));
        assert_eq!(parse(&TEXT.to_uppercase()), Err(TraceError::NotHex));
        assert_eq!(
            parse(&TEXT.replacen("00", "ff", 1)),
            Err(TraceError::ForbiddenVersion)
        );
        let zero = format!("00-{}-00f067aa0ba902b7-01", "0".repeat(32));
        assert_eq!(parse(&zero), Err(TraceError::ZeroId));
    }
}
