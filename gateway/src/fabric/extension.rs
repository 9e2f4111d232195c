//! What the gateway writes into and reads from a weida header: topic, content type, trace, and its own keys 64–68
//! (`gateway.md` 8.3, DESIGN D15). Peers that do not know the keys skip them.
//!
//! | Key | Meaning |
//! | --- | --- |
//! | 64 | hops: length of 65 |
//! | 65 | via: ids of the gateways passed, 8 bytes each |
//! | 66 | headers: name, value, name, value, … |
//! | 67 | source label `protocol/listener`, informative, unproved |
//! | 68 | remaining lifetime in ms |

use std::sync::OnceLock;
use std::time::Duration;

use tokio::time::Instant;
use weida::{
    ExtensionItem, ExtensionValue, ExtensionsBuf, IncomingMeta, TraceContext, TransferMeta,
};
use weida_bridge::{DropCause, Envelope, Meta, Reply, SessionRef, Trace, Via};
use weida_core::Topic;

const HOPS: u64 = 64;
const VIA: u64 = 65;
const META: u64 = 66;
const LABEL: u64 = 67;
const LIFETIME: u64 = 68;

/// Longest source label, in bytes.
const MAX_LABEL_BYTES: usize = 128;

/// Writes headers for one route; what is the same for all of its messages is encoded once.
#[derive(Debug, Default)]
pub(super) struct Stamp {
    base: OnceLock<Base>,
}

/// Keys 64, 65 and 67 of a message that came straight from a foreign session.
#[derive(Debug)]
struct Base {
    source: Option<(&'static str, Box<str>)>,
    via: Via,
    extensions: ExtensionsBuf,
}

impl Stamp {
    /// The header of a message on its way to weida, without its topic.
    ///
    /// # Errors
    /// What cannot be written into a header: more or longer entries than it takes.
    pub(super) fn meta(
        &self,
        envelope: &Envelope,
        now: Instant,
    ) -> Result<TransferMeta, DropCause> {
        let mut meta = TransferMeta {
            content_type: envelope.content_type.as_deref().map(str::to_owned),
            trace: envelope
                .trace
                .as_deref()
                .and_then(|trace| TraceContext::parse_traceparent(&trace.parent).ok()),
            extensions: self.base(envelope)?,
            ..TransferMeta::default()
        };
        if !envelope.meta.is_empty() {
            insert(&mut meta.extensions, META, &list(&envelope.meta))?;
        }
        if let Some(at) = envelope.expires_at {
            let left = at.saturating_duration_since(now);
            // Rounded up: a message that still lives must not leave with a lifetime of 0.
            let millis = u64::try_from(left.as_micros().div_ceil(1000)).unwrap_or(u64::MAX);
            insert(&mut meta.extensions, LIFETIME, &uint(millis))?;
        }
        Ok(meta)
    }

    /// The header of an answer on its way back to weida. Headers that do not fit are left out: the answer itself counts.
    pub(super) fn reply(&self, reply: &Reply) -> TransferMeta {
        let mut meta = TransferMeta {
            content_type: reply.content_type.as_deref().map(str::to_owned),
            ..TransferMeta::default()
        };
        if !reply.meta.is_empty() {
            let mut extensions = ExtensionsBuf::new();
            if insert(&mut extensions, META, &list(&reply.meta)).is_ok() {
                meta.extensions = extensions;
            }
        }
        meta
    }

    fn base(&self, envelope: &Envelope) -> Result<ExtensionsBuf, DropCause> {
        let session = envelope.session.as_deref();
        if let Some(base) = self.base.get()
            && base.via == envelope.via
            && is_from(base.source.as_ref(), session)
        {
            return Ok(base.extensions.clone());
        }
        let extensions = encode_base(&envelope.via, session)?;
        let source = session.map(|session| (session.adapter, session.listener.as_ref().into()));
        // Only the first shape is kept; it is the common one.
        let _first = self.base.get_or_init(|| Base {
            source,
            via: envelope.via.clone(),
            extensions: extensions.clone(),
        });
        Ok(extensions)
    }
}

fn is_from(source: Option<&(&'static str, Box<str>)>, session: Option<&SessionRef>) -> bool {
    match (source, session) {
        (None, None) => true,
        (Some((adapter, listener)), Some(session)) => {
            *adapter == session.adapter && **listener == *session.listener
        }
        _ => false,
    }
}

fn encode_base(via: &Via, session: Option<&SessionRef>) -> Result<ExtensionsBuf, DropCause> {
    let mut extensions = ExtensionsBuf::new();
    if !via.is_empty() {
        insert(&mut extensions, HOPS, &uint(via.len() as u64))?;
        let ids = via
            .as_slice()
            .iter()
            .map(|id| ExtensionItem::Bytes(&id.0))
            .collect();
        insert(&mut extensions, VIA, &ExtensionValue::List(ids))?;
    }
    if let Some(session) = session {
        let mut label = format!("{}/{}", session.adapter, session.listener);
        if label.len() > MAX_LABEL_BYTES {
            let cut = (0..=MAX_LABEL_BYTES)
                .rev()
                .find(|at| label.is_char_boundary(*at));
            label.truncate(cut.unwrap_or(0));
        }
        insert(
            &mut extensions,
            LABEL,
            &ExtensionValue::Item(ExtensionItem::Text(&label)),
        )?;
    }
    Ok(extensions)
}

fn insert(
    extensions: &mut ExtensionsBuf,
    key: u64,
    value: &ExtensionValue<'_>,
) -> Result<(), DropCause> {
    extensions
        .insert(key, value)
        .map_err(|_over| DropCause::MetaTooLarge)
}

fn list(meta: &Meta) -> ExtensionValue<'_> {
    let texts = |(name, value)| [ExtensionItem::Text(name), ExtensionItem::Text(value)];
    ExtensionValue::List(meta.iter().flat_map(texts).collect())
}

const fn uint(value: u64) -> ExtensionValue<'static> {
    ExtensionValue::Item(ExtensionItem::Uint(value))
}

/// What a weida header says about a message that comes in.
#[derive(Debug, Default)]
pub(super) struct Described {
    /// `None` when the sender gave none.
    pub(super) topic: Option<Topic>,
    pub(super) content_type: Option<Box<str>>,
    pub(super) trace: Option<Box<Trace>>,
    pub(super) expires_at: Option<Instant>,
    pub(super) meta: Meta,
    pub(super) via: Via,
    /// Reserved names that were removed.
    pub(super) removed: usize,
}

/// Reads a header. Everything in it is the sender's claim; nothing here decides who it is [weida S8-2].
///
/// # Errors
/// The cause under which the message is refused. A key of ours in a shape we never write counts as absent.
pub(super) fn describe(meta: &IncomingMeta, now: Instant) -> Result<Described, DropCause> {
    let mut described = Described {
        topic: match meta.topic.as_deref() {
            Some(topic) => Some(Topic::try_from(topic).map_err(|_long| DropCause::NameTooLong)?),
            None => None,
        },
        content_type: meta.content_type.as_deref().map(Into::into),
        trace: meta.trace.map(|trace| {
            Box::new(Trace {
                parent: trace.to_traceparent(),
                state: meta.tracestate.clone(),
            })
        }),
        ..Described::default()
    };
    if let Some(ExtensionValue::List(ids)) = meta.extension(VIA) {
        for id in ids {
            let ExtensionItem::Bytes(bytes) = id else {
                continue;
            };
            let Ok(id) = <[u8; 8]>::try_from(bytes) else {
                continue;
            };
            described.via.push(id).map_err(|_long| DropCause::Loop)?;
        }
    }
    if let Some(ExtensionValue::List(items)) = meta.extension(META) {
        for pair in items.chunks_exact(2) {
            let [ExtensionItem::Text(name), ExtensionItem::Text(value)] = pair else {
                continue;
            };
            if is_reserved(name) {
                described.removed += 1;
                continue;
            }
            described
                .meta
                .push(*name, *value)
                .map_err(|_over| DropCause::MetaTooLarge)?;
        }
    }
    if let Some(ExtensionValue::Item(ExtensionItem::Uint(millis))) = meta.extension(LIFETIME) {
        described.expires_at = now.checked_add(Duration::from_millis(millis));
    }
    Ok(described)
}

/// Names that the gateway alone writes on the foreign side: a peer that sent one could pose as somebody else there.
fn is_reserved(name: &str) -> bool {
    ["weida-", "x-weida-"].iter().any(|prefix| {
        name.get(..prefix.len())
            .is_some_and(|head| head.eq_ignore_ascii_case(prefix))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The proved peer goes outward under these names, so nobody may bring them along.
    #[test]
    fn gateway_8_3_reserved_names_are_known_in_any_case() {
        for name in ["weida-peer", "Weida-Peer", "X-WEIDA-via", "weida-"] {
            assert!(is_reserved(name), "{name}");
        }
        for name in ["weida", "weid\u{e4}-peer", "mqtt.retain", "site", "x-weida"] {
            assert!(!is_reserved(name), "{name}");
        }
    }
}
