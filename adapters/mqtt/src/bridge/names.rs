//! How MQTT spells names, and which header names no client may use. [mqtt 10] [gateway 8.3]

use weida_bridge::Space;

/// MQTT topic names: levels at `/`, wildcards `+` and final `#`, never empty.
///
/// ```
/// use weida_bridge::WEIDA;
/// use weida_mqtt::MQTT;
///
/// assert_eq!(MQTT.name_to(&WEIDA, "spBv1.0/G/n 1")?, "spBv1%2E0.G.n 1");
/// assert_eq!(WEIDA.name_to(&MQTT, "a.%2A.b")?, "a/*/b");
/// # Ok::<(), weida_bridge::NameError>(())
/// ```
pub const MQTT: Space = Space::new('/')
    .one("+")
    .rest("#")
    .reserve("+#\0")
    .refuse_empty()
    .max_bytes(65_535);

/// The mark that is read on every input and may therefore stay.
pub(crate) const VIA: &str = "weida-via";
/// The proved peer, as subscribers see it.
pub(crate) const PEER: &str = "weida-peer";
/// Why a request got no answer.
pub(crate) const ERROR: &str = "weida-error";

const RESERVED: [&str; 7] = [
    "mqtt.", "amqp.", "nats.", "zmq.", "gateway.", "weida-", "x-weida-",
];

/// Whether a client may not send this name: subscribers trust whoever writes it.
pub(crate) fn is_reserved(name: &str) -> bool {
    let starts = |prefix: &str| {
        name.get(..prefix.len())
            .is_some_and(|front| front.eq_ignore_ascii_case(prefix))
    };
    name != VIA && RESERVED.iter().any(|prefix| starts(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;
    use weida_bridge::WEIDA;

    /// Every row of the table maps as written and back. [mqtt 10]
    #[test]
    fn mqtt_10_golden_names() {
        let rows = [
            ("a/b/c", "a.b.c"),
            ("/a//b/", ".a..b."),
            ("/", "."),
            ("spBv1.0/G/NDATA/n 1", "spBv1%2E0.G.NDATA.n 1"),
            ("a/*/b", "a.%2A.b"),
            ("a/x*y", "a.x*y"),
            ("100%/x", "100%.x"),
            ("a/%2E", "a.%252E"),
            ("a/%252E", "a.%25252E"),
            ("a/%41", "a.%41"),
            ("a/A", "a.A"),
            ("a/%2Fb", "a./b"),
            ("$SYS/x", "$SYS.x"),
            ("ä/💡", "ä.💡"),
        ];
        for (mqtt, weida) in rows {
            assert_eq!(MQTT.name_to(&WEIDA, mqtt).unwrap(), weida);
            assert_eq!(WEIDA.name_to(&MQTT, weida).unwrap(), mqtt);
        }
        assert!(
            WEIDA.name_to(&MQTT, "").is_err(),
            "the empty topic cannot cross"
        );
    }

    /// Named loss N16: visually equal topics stay different names.
    #[test]
    fn mqtt_n16_no_unicode_normalisation() {
        let (composed, combining) = ("caf\u{e9}", "cafe\u{301}");
        let map = |name| MQTT.name_to(&WEIDA, name).unwrap();
        assert_ne!(map(composed), map(combining));
        assert_eq!(WEIDA.name_to(&MQTT, &map(combining)).unwrap(), combining);
    }

    #[test]
    fn gateway_8_3_reserved_header_names_in_any_case() {
        for name in [
            "weida-peer",
            "Weida-Peer",
            "mqtt.retain",
            "AMQP.x",
            "x-weida-error",
        ] {
            assert!(is_reserved(name), "{name}");
        }
        for name in [
            "weida-via",
            "site",
            "weida",
            "mqtt",
            "x-other",
            "traceparent",
        ] {
            assert!(!is_reserved(name), "{name}");
        }
    }
}
