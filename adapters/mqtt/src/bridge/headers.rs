//! Message properties to metadata and back. [mqtt 11.3]

use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;
use weida_bridge::{Envelope, GatewayId, Meta, MetaError, Reply, Trace, Via, ViaError};

use super::names::{ERROR, PEER, VIA, is_reserved};
use crate::codec::{MessageProperties, QoS, TopicName, UserProperties, Utf8Bytes};

const PFI: &str = "mqtt.pfi";
const CORRELATION: &str = "mqtt.correlation";
const RESPONSE_TOPIC: &str = "mqtt.response-topic";
const CONTENT_TYPE: &str = "mqtt.content-type";
const QOS: &str = "mqtt.qos";
const MAX_CONTENT_TYPE: usize = 256;

/// Why the headers of a publish cannot cross.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HeaderError {
    /// More than crosses a route: 0x97.
    Meta,
    /// More gateways passed than any message may: a loop.
    Loop,
}

impl From<MetaError> for HeaderError {
    fn from(_: MetaError) -> Self {
        Self::Meta
    }
}

/// Removes reserved names; says how many went. Order and repeats of the rest stay.
pub(super) fn remove_reserved(properties: &mut UserProperties) -> u64 {
    if !properties.iter().any(|(name, _)| is_reserved(name)) {
        return 0;
    }
    let mut kept = UserProperties::default();
    let mut removed = 0;
    for (name, value) in properties.iter() {
        if is_reserved(name) {
            removed += 1;
        } else {
            push(&mut kept, name, value);
        }
    }
    *properties = kept;
    removed
}

/// Fills the envelope from what the publisher sent; the reserved names are gone already.
pub(super) fn to_envelope(
    message: &MessageProperties,
    qos: QoS,
    rpc: bool,
    envelope: &mut Envelope,
) -> Result<(), HeaderError> {
    if let Some(secs) = message.message_expiry_secs {
        envelope.expires_at = Some(envelope.received_at + Duration::from_secs(secs.into()));
    }
    let meta = &mut envelope.meta;
    if let Some(text) = &message.content_type {
        let text = text.as_str();
        if text.len() <= MAX_CONTENT_TYPE {
            envelope.content_type = Some(text.into());
        } else {
            meta.push(CONTENT_TYPE, text)?;
        }
    }
    let mut parent = None;
    let mut state = None;
    for (name, value) in message.user_properties.iter() {
        match name {
            "traceparent" if parent.is_none() && is_traceparent(value) => {
                parent = Some(value.to_owned());
            }
            "tracestate" if state.is_none() && value.len() <= 512 => {
                state = Some(value.to_owned());
            }
            VIA => match Via::parse(value) {
                Ok(via) => envelope.via = via,
                Err(ViaError::TooLong { .. }) => return Err(HeaderError::Loop),
                // Not a mark of any gateway: it suppresses nothing and does not cross.
                Err(_) => {}
            },
            _ => meta.push(name, value)?,
        }
    }
    envelope.trace = parent.map(|parent| Box::new(Trace { parent, state }));
    if message.payload_is_utf8 == Some(true) {
        meta.push(PFI, "1")?;
    }
    if let Some(data) = &message.correlation_data {
        meta.push(CORRELATION, base64url(data))?;
    }
    if let Some(topic) = message.response_topic.as_ref().filter(|_| !rpc) {
        meta.push(RESPONSE_TOPIC, topic.as_str())?;
    }
    // QoS 0 is the absence of the header, so that the fast path carries none.
    if qos != QoS::AtMostOnce {
        meta.push(QOS, if qos == QoS::AtLeastOnce { "1" } else { "2" })?;
    }
    Ok(())
}

/// Properties of a message that comes from weida, with the proved peer and our mark.
///
/// `None` when the message went through too many gateways, or through this one already.
pub(super) fn from_envelope(
    envelope: &Envelope,
    gateway: GatewayId,
    max_hops: usize,
    now: Instant,
) -> Option<MessageProperties> {
    let mut properties = MessageProperties {
        content_type: text(envelope.content_type.as_deref()),
        message_expiry_secs: envelope.expires_at.map(|at| seconds_up(at, now)),
        ..MessageProperties::default()
    };
    restore(&envelope.meta, &mut properties);
    if let Some(trace) = &envelope.trace {
        push(
            &mut properties.user_properties,
            "traceparent",
            &trace.parent,
        );
        if let Some(state) = &trace.state {
            push(&mut properties.user_properties, "tracestate", state);
        }
    }
    if let Some(peer) = &envelope.peer {
        push(&mut properties.user_properties, PEER, &peer.to_string());
    }
    let mut via = envelope.via.clone();
    let marked = via.as_slice().last() == Some(&gateway);
    if !marked && (via.contains(gateway) || via.len() >= max_hops || via.push(gateway).is_err()) {
        return None;
    }
    push(&mut properties.user_properties, VIA, &via.to_string());
    Some(properties)
}

/// Properties of the answer to an MQTT requester.
pub(super) fn from_reply(reply: &Reply) -> MessageProperties {
    let mut properties = MessageProperties {
        content_type: text(reply.content_type.as_deref()),
        ..MessageProperties::default()
    };
    restore(&reply.meta, &mut properties);
    if let Some(peer) = &reply.peer {
        push(&mut properties.user_properties, PEER, &peer.to_string());
    }
    properties
}

/// Properties of the empty answer that says why there is none.
pub(super) fn error(word: &str) -> MessageProperties {
    let mut properties = MessageProperties::default();
    push(&mut properties.user_properties, ERROR, word);
    properties
}

/// The answer of an MQTT responder as weida sees it; headers past the bound stay out.
pub(super) fn to_reply(message: &MessageProperties, payload: Bytes) -> Reply {
    let mut reply = Reply {
        payload,
        ..Reply::default()
    };
    if let Some(text) = &message.content_type
        && text.len() <= MAX_CONTENT_TYPE
    {
        reply.content_type = Some(text.as_str().into());
    }
    for (name, value) in message.user_properties.iter() {
        if name != VIA && !is_reserved(name) && reply.meta.push(name, value).is_err() {
            break;
        }
    }
    reply
}

/// Bare names become user properties, our own come back as what they were, foreign ones stay out.
fn restore(meta: &Meta, properties: &mut MessageProperties) {
    for (name, value) in meta.iter() {
        match name {
            PFI => properties.payload_is_utf8 = (value == "1").then_some(true),
            CORRELATION => properties.correlation_data = from_base64url(value),
            RESPONSE_TOPIC => properties.response_topic = TopicName::parse(value).ok(),
            CONTENT_TYPE => properties.content_type = text(Some(value)),
            _ if is_reserved(name) && !name.starts_with("gateway.") => {}
            _ => push(&mut properties.user_properties, name, value),
        }
    }
}

fn push(properties: &mut UserProperties, name: &str, value: &str) {
    // A header with NUL or over 65 535 bytes has no MQTT spelling; it stays out.
    if let (Ok(name), Ok(value)) = (Utf8Bytes::parse(name), Utf8Bytes::parse(value)) {
        properties.push(&name, &value);
    }
}

fn text(text: Option<&str>) -> Option<Utf8Bytes> {
    text.and_then(|text| Utf8Bytes::parse(text).ok())
}

/// Rounded up: a live message never says 0. [mqtt 3.3]
pub(super) fn seconds_up(at: Instant, now: Instant) -> u32 {
    let left = at.saturating_duration_since(now);
    let secs = left.as_secs() + u64::from(left.subsec_nanos() > 0);
    u32::try_from(secs).unwrap_or(u32::MAX)
}

/// `00-` 32 hex `-` 16 hex `-` 2 hex, lower case. [gateway 6.2]
fn is_traceparent(value: &str) -> bool {
    let lengths = [2, 32, 16, 2];
    let lower_hex = |part: &str| part.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    let mut parts = value.split('-');
    let right = lengths.iter().all(|length| {
        parts
            .next()
            .is_some_and(|part| part.len() == *length && lower_hex(part))
    });
    right && parts.next().is_none() && !value.starts_with("ff")
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

fn base64url(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let shifted = |(at, byte): (usize, &u8)| u32::from(*byte) << (16 - 8 * at);
        let word = chunk
            .iter()
            .enumerate()
            .map(shifted)
            .fold(0, |word, part| word | part);
        for at in 0..=chunk.len() {
            out.push(char::from(ALPHABET[(word >> (18 - 6 * at)) as usize & 63]));
        }
    }
    out
}

fn from_base64url(text: &str) -> Option<Bytes> {
    let mut out = Vec::with_capacity(text.len() * 3 / 4);
    for chunk in text.as_bytes().chunks(4) {
        let mut word = 0u32;
        for (at, digit) in chunk.iter().enumerate() {
            let value = ALPHABET.iter().position(|letter| letter == digit)?;
            word |= u32::try_from(value).ok()? << (18 - 6 * at);
        }
        if chunk.len() < 2 {
            return None;
        }
        out.extend_from_slice(&word.to_be_bytes()[1..chunk.len()]);
    }
    Some(out.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use weida_bridge::RouteId;
    use weida_core::Topic;

    fn envelope() -> Envelope {
        let topic = Topic::new("a").unwrap();
        Envelope::new(RouteId::new("r"), topic, Bytes::new(), Instant::now())
    }

    fn user(pairs: &[(&str, &str)]) -> UserProperties {
        let mut properties = UserProperties::default();
        for (name, value) in pairs {
            push(&mut properties, name, value);
        }
        properties
    }

    #[test]
    fn mqtt_11_3_every_property_crosses_and_comes_back() {
        let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let pairs = [
            ("site", "1"),
            ("x", "2"),
            ("site", "3"),
            ("traceparent", trace),
        ];
        let sent = MessageProperties {
            payload_is_utf8: Some(true),
            message_expiry_secs: Some(30),
            content_type: text(Some("text/plain")),
            response_topic: Some(TopicName::parse("back/here").unwrap()),
            correlation_data: Some(Bytes::from_static(b"\x00\xff\x10")),
            user_properties: user(&pairs),
        };
        let mut crossed = envelope();
        to_envelope(&sent, QoS::AtLeastOnce, false, &mut crossed).unwrap();
        assert_eq!(crossed.content_type.as_deref(), Some("text/plain"));
        assert_eq!(crossed.trace.as_ref().unwrap().parent, trace);
        assert_eq!(crossed.meta.get("mqtt.qos"), Some("1"));
        let now = crossed.received_at;
        let back = from_envelope(&crossed, GatewayId([7; 8]), 4, now).unwrap();
        let mut expected = pairs.to_vec();
        expected.push(("weida-via", "0707070707070707"));
        assert_eq!(back.user_properties.iter().collect::<Vec<_>>(), expected);
        let bare = |message: MessageProperties| MessageProperties {
            user_properties: UserProperties::default(),
            ..message
        };
        assert_eq!(bare(back), bare(sent));
    }

    /// Named loss N6: one pair more than crosses.
    #[test]
    fn mqtt_n6_33_pairs_do_not_cross() {
        let with = |count| MessageProperties {
            user_properties: user(&vec![("k", "v"); count]),
            ..MessageProperties::default()
        };
        let cross = |count| to_envelope(&with(count), QoS::AtMostOnce, false, &mut envelope());
        assert_eq!(cross(32), Ok(()));
        assert_eq!(cross(33), Err(HeaderError::Meta));
    }

    #[test]
    fn mqtt_11_2_reserved_names_are_removed_and_counted() {
        let sent = [
            ("a", "1"),
            ("weida-peer", "me"),
            ("MQTT.retain", "1"),
            ("a", "2"),
        ];
        let mut properties = user(&sent);
        assert_eq!(remove_reserved(&mut properties), 2);
        assert_eq!(
            properties.iter().collect::<Vec<_>>(),
            [("a", "1"), ("a", "2")]
        );
    }

    #[test]
    fn gateway_8_2_the_mark_grows_by_us_and_stops_at_max_hops() {
        let us = GatewayId([1; 8]);
        let now = Instant::now();
        let mut crossed = envelope();
        for id in [2, 3, 4] {
            crossed.via.push([id; 8]).unwrap();
        }
        assert!(from_envelope(&crossed, us, 4, now).is_some());
        assert!(from_envelope(&crossed, us, 3, now).is_none());
        crossed.via = Via::new();
        crossed.via.push(us).unwrap();
        crossed.via.push([2; 8]).unwrap();
        assert!(
            from_envelope(&crossed, us, 16, now).is_none(),
            "it was here before"
        );
    }

    proptest! {
        #[test]
        fn base64url_is_a_bijection(bytes in proptest::collection::vec(any::<u8>(), 0..50)) {
            let text = base64url(&bytes);
            prop_assert!(!text.contains(['+', '/', '=']));
            prop_assert_eq!(from_base64url(&text).unwrap(), Bytes::from(bytes));
        }
    }
}
