//! The one message type between every adapter and the fabric [gateway 1].
//!
//! The payload is never copied: cloning an [`Envelope`] (a retry does) is a few reference counts.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use tokio::time::Instant;
use weida_core::{PeerIdentity, Topic};

use crate::limits;
use crate::route::RouteId;

/// One message on its way through one route.
#[derive(Debug, Clone)]
pub struct Envelope {
    /// The route it travels.
    pub route: RouteId,
    /// Opaque bytes; never logged.
    pub payload: Bytes,
    /// The topic in weida spelling.
    pub topic: Topic,
    /// Media type, at most 256 bytes.
    pub content_type: Option<Box<str>>,
    /// Trace context, as the source sent it.
    pub trace: Option<Box<Trace>>,
    /// When its own lifetime ends.
    pub expires_at: Option<Instant>,
    /// What must stay in order with each other on an ordered route.
    pub ordering_key: Option<Bytes>,
    /// Headers that cross the route.
    pub meta: Meta,
    /// Who brought it: a claim to display and log, nothing else.
    pub session: Option<Arc<SessionRef>>,
    /// Egress only: the peer that proved its key.
    pub peer: Option<PeerIdentity>,
    /// The gateways it went through.
    pub via: Via,
    /// How many attempts were made before this one; 0 at first.
    pub attempt: u32,
    /// When it entered this process.
    pub received_at: Instant,
}

impl Envelope {
    /// A message with nothing but its payload and name; the fields are public for the rest.
    #[must_use]
    pub fn new(route: RouteId, topic: Topic, payload: Bytes, received_at: Instant) -> Self {
        Self {
            route,
            payload,
            topic,
            content_type: None,
            trace: None,
            expires_at: None,
            ordering_key: None,
            meta: Meta::new(),
            session: None,
            peer: None,
            via: Via::new(),
            attempt: 0,
            received_at,
        }
    }

    /// True when its own lifetime ended at `now` or before.
    #[must_use]
    pub fn is_expired(&self, now: Instant) -> bool {
        self.expires_at.is_some_and(|at| at <= now)
    }
}

/// Trace context in its W3C text form; adapters hand it on unread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// `traceparent`.
    pub parent: String,
    /// `tracestate`.
    pub state: Option<String>,
}

/// Who brought a message: a claim of the foreign side to display and log. Nothing is decided on it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SessionRef {
    /// The adapter that wrote this.
    pub adapter: &'static str,
    /// The configured listener or broker.
    pub listener: Arc<str>,
    /// Who the adapter's authentication accepted.
    pub principal: Option<Principal>,
    /// What the foreign side calls itself; quoted wherever it is printed.
    pub foreign: Arc<str>,
    /// Its network address.
    pub address: Option<String>,
}

impl fmt::Display for SessionRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}/{} claims {:?}",
            self.adapter, self.listener, self.foreign
        )
    }
}

/// Who an adapter's own authentication accepted. Not a weida identity, and nothing converts it into one.
///
/// Spelled `user:NAME`, `cert:SHA256`, `anonymous` or `uid:N`, as grants spell it.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Principal(Arc<str>);

impl Principal {
    /// A login that gave the right secret.
    #[must_use]
    pub fn user(name: &str) -> Self {
        Self(format!("user:{name}").into())
    }

    /// A client certificate, by the SHA-256 of its key or of itself, as the listener is configured.
    #[must_use]
    pub fn certificate(sha256: &[u8; 32]) -> Self {
        let mut text = String::with_capacity(5 + 64);
        text.push_str("cert:");
        push_hex(&mut text, sha256);
        Self(text.into())
    }

    /// Nobody in particular; exists only where the configuration spells anonymous access out.
    #[must_use]
    pub fn anonymous() -> Self {
        Self(Arc::from("anonymous"))
    }

    /// A local user, proved by the kernel.
    #[must_use]
    pub fn uid(uid: u32) -> Self {
        Self(format!("uid:{uid}").into())
    }

    /// The spelling of grants and logs.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The login, for a principal that has one.
    #[must_use]
    pub fn user_name(&self) -> Option<&str> {
        self.0.strip_prefix("user:")
    }

    /// True for [`Principal::anonymous`].
    #[must_use]
    pub fn is_anonymous(&self) -> bool {
        &*self.0 == "anonymous"
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Principal({:?})", self.0)
    }
}

// === impl Meta ===

/// Headers that cross a route: ordered, repeats kept, bounded; no allocation while empty.
///
/// # Limits
/// [`limits::MAX_META_ENTRIES`] entries and [`limits::MAX_META_BYTES`] bytes of names and values together.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Meta {
    entries: Vec<(Box<str>, Box<str>)>,
    bytes: usize,
}

impl Meta {
    /// No headers.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            entries: Vec::new(),
            bytes: 0,
        }
    }

    /// Appends a header; an equal name before it stays.
    ///
    /// # Errors
    /// [`MetaError`] when it would pass a bound; the headers are unchanged then.
    pub fn push(
        &mut self,
        name: impl Into<Box<str>>,
        value: impl Into<Box<str>>,
    ) -> Result<(), MetaError> {
        let (name, value) = (name.into(), value.into());
        let got_bytes = self.bytes + name.len() + value.len();
        if self.entries.len() >= limits::MAX_META_ENTRIES {
            return Err(MetaError::TooMany {
                max_entries: limits::MAX_META_ENTRIES,
            });
        }
        if got_bytes > limits::MAX_META_BYTES {
            return Err(MetaError::TooLarge {
                got_bytes,
                max_bytes: limits::MAX_META_BYTES,
            });
        }
        self.bytes = got_bytes;
        self.entries.push((name, value));
        Ok(())
    }

    /// Removes the headers for which `keep` is false and says how many went.
    pub fn retain(&mut self, mut keep: impl FnMut(&str, &str) -> bool) -> usize {
        let before = self.entries.len();
        self.entries.retain(|(name, value)| keep(name, value));
        self.bytes = self
            .entries
            .iter()
            .map(|(name, value)| name.len() + value.len())
            .sum();
        before - self.entries.len()
    }

    /// Value of the first header of exactly this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.iter()
            .find(|(have, _)| *have == name)
            .map(|(_, value)| value)
    }

    /// Every header in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.entries.iter().map(|(name, value)| (&**name, &**value))
    }

    /// How many headers there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.entries.len()
    }

    /// True without headers.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Bytes of all names and values.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }
}

/// More headers than cross a route; counted as `meta_too_large`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MetaError {
    /// One entry too many.
    #[error("more than {max_entries} metadata entries")]
    TooMany {
        /// The bound.
        max_entries: usize,
    },
    /// Too many bytes in names and values.
    #[error("{got_bytes} bytes of metadata, at most {max_bytes} cross a route")]
    TooLarge {
        /// What it would be with the new entry.
        got_bytes: usize,
        /// The bound.
        max_bytes: usize,
    },
}

// === impl Via ===

/// Id of a gateway in the loop mark: the first 8 bytes of its fingerprint.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GatewayId(pub [u8; 8]);

impl From<[u8; 8]> for GatewayId {
    fn from(bytes: [u8; 8]) -> Self {
        Self(bytes)
    }
}

impl fmt::Display for GatewayId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", u64::from_be_bytes(self.0))
    }
}

impl fmt::Debug for GatewayId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GatewayId({self})")
    }
}

/// The gateways a message went through, oldest first [gateway 8.2]; no allocation while empty.
///
/// Its text form is a comma list of 16 lower-case hex digits each.
///
/// # Limits
/// [`limits::MAX_VIA`] ids; a longer list is a loop.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Via(Vec<GatewayId>);

impl Via {
    /// Went through nobody yet.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Reads the text form; spaces around commas are allowed, upper-case digits are not.
    ///
    /// # Errors
    /// [`ViaError::Malformed`] for anything that is not such a list, [`ViaError::TooLong`] past the bound.
    pub fn parse(text: &str) -> Result<Self, ViaError> {
        let mut via = Self::new();
        for item in text.split(',').map(|item| item.trim_matches(' ')) {
            let digits =
                item.len() == 16 && item.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
            let id = u64::from_str_radix(item, 16).ok().filter(|_| digits);
            via.push(id.ok_or(ViaError::Malformed)?.to_be_bytes())?;
        }
        Ok(via)
    }

    /// Appends the newest gateway.
    ///
    /// # Errors
    /// [`ViaError::TooLong`] when the list is full; the message is a loop then.
    pub fn push(&mut self, id: impl Into<GatewayId>) -> Result<(), ViaError> {
        if self.0.len() >= limits::MAX_VIA {
            return Err(ViaError::TooLong {
                max: limits::MAX_VIA,
            });
        }
        self.0.push(id.into());
        Ok(())
    }

    /// True when that gateway saw the message before.
    #[must_use]
    pub fn contains(&self, id: impl Into<GatewayId>) -> bool {
        let id = id.into();
        self.0.contains(&id)
    }

    /// The ids, oldest first.
    #[must_use]
    pub fn as_slice(&self) -> &[GatewayId] {
        &self.0
    }

    /// How many gateways it went through: the hop count.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// True before the first gateway.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Via {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, id) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str(",")?;
            }
            write!(f, "{id}")?;
        }
        Ok(())
    }
}

/// A loop mark that cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ViaError {
    /// Not a comma list of 16 lower-case hex digits each.
    #[error("not a list of gateway ids")]
    Malformed,
    /// More gateways than any message may pass.
    #[error("more than {max} gateways passed")]
    TooLong {
        /// The bound.
        max: usize,
    },
}

fn push_hex(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        for nibble in [byte >> 4, byte & 15] {
            text.push(char::from_digit(u32::from(nibble), 16).unwrap_or('0'));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gateway_10_meta_is_bounded_by_entries_and_bytes() {
        let mut meta = Meta::new();
        for _ in 0..limits::MAX_META_ENTRIES {
            meta.push("k", "v").unwrap();
        }
        let before = meta.clone();
        assert!(matches!(
            meta.push("k", "v"),
            Err(MetaError::TooMany { max_entries: 32 })
        ));
        assert_eq!(meta, before);

        let mut meta = Meta::new();
        meta.push("k", "v".repeat(limits::MAX_META_BYTES - 1))
            .unwrap();
        assert_eq!(meta.bytes(), limits::MAX_META_BYTES);
        let refused = meta.push("k", "").unwrap_err();
        assert_eq!(
            refused,
            MetaError::TooLarge {
                got_bytes: 8193,
                max_bytes: 8192
            }
        );
        assert_eq!(meta.len(), 1);
    }

    #[test]
    fn meta_keeps_order_and_repeats() {
        let mut meta = Meta::new();
        for (name, value) in [("site", "1"), ("x", "2"), ("site", "3")] {
            meta.push(name, value).unwrap();
        }
        assert_eq!(
            meta.iter().collect::<Vec<_>>(),
            [("site", "1"), ("x", "2"), ("site", "3")]
        );
        assert_eq!(meta.get("site"), Some("1"));
        assert_eq!(meta.retain(|name, _| name != "site"), 2);
        assert_eq!((meta.len(), meta.bytes()), (1, 2));
    }

    #[test]
    fn gateway_8_2_via_text_maps_both_ways() {
        let text = "00000000000000ff,0123456789abcdef";
        let via = Via::parse(text).unwrap();
        assert_eq!(via.to_string(), text);
        assert!(via.contains([0, 0, 0, 0, 0, 0, 0, 0xff]));
        assert!(!via.contains([1; 8]));
        assert_eq!(
            Via::parse("00000000000000ff, 0123456789abcdef").unwrap(),
            via
        );
        for bad in [
            "",
            ",",
            "ff",
            "00000000000000FF",
            "+0000000000000ff",
            "00000000000000ff,",
            "ééééèèèè",
        ] {
            assert_eq!(Via::parse(bad), Err(ViaError::Malformed), "{bad:?}");
        }
    }

    #[test]
    fn gateway_8_2_via_longer_than_16_is_refused() {
        let ids = |n: usize| vec!["0123456789abcdef"; n].join(",");
        assert_eq!(Via::parse(&ids(16)).unwrap().len(), 16);
        assert_eq!(Via::parse(&ids(17)), Err(ViaError::TooLong { max: 16 }));
    }

    #[test]
    fn principals_spell_themselves_as_grants_do() {
        assert_eq!(Principal::user("ann").as_str(), "user:ann");
        assert_eq!(Principal::user("ann").user_name(), Some("ann"));
        assert_eq!(Principal::uid(1000).as_str(), "uid:1000");
        assert_eq!(Principal::anonymous().as_str(), "anonymous");
        assert!(!Principal::user("anonymous").is_anonymous());
        let cert = Principal::certificate(&[0xab; 32]);
        assert_eq!(cert.as_str(), format!("cert:{}", "ab".repeat(32)));
    }

    /// Everything the foreign side chose is printed quoted and escaped.
    #[test]
    fn a_claim_is_printed_quoted() {
        let session = SessionRef {
            adapter: "x",
            listener: "edge".into(),
            principal: None,
            foreign: "a\n\"b".into(),
            address: None,
        };
        assert_eq!(session.to_string(), r#"x/edge claims "a\n\"b""#);
    }
}
