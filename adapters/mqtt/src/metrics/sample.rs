//! The counters of one listener as the gateway exports them. [gateway 6] [mqtt 16]
//!
//! General series take their name from `weida-bridge`; the `mqtt_` series are named here, and
//! nowhere else, behind the same prefix. Every series of the closed labels is there from the
//! start; codes and rules appear with their first use.

use std::borrow::Cow;
use std::sync::PoisonError;

use weida_bridge::metrics as general;

use super::{Cause, Closed, Counter, ListenerMetrics, Op, PublishResult};
use crate::codec::QoS;
use crate::config::QueueFull;

/// A series value with its labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// Full name.
    pub name: Cow<'static, str>,
    /// Counter or gauge.
    pub kind: Kind,
    /// Label keys and values; the first is the listener, except for series of a route.
    pub labels: Vec<(&'static str, Cow<'static, str>)>,
    /// The value.
    pub value: u64,
}

/// What a value means when it is read twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It only grows.
    Counter,
    /// It goes up and down.
    Gauge,
}

/// Packet type names by their wire number.
const TYPES: [&str; 16] = [
    "reserved",
    "connect",
    "connack",
    "publish",
    "puback",
    "pubrec",
    "pubrel",
    "pubcomp",
    "subscribe",
    "suback",
    "unsubscribe",
    "unsuback",
    "pingreq",
    "pingresp",
    "disconnect",
    "auth",
];
const QOS: [(QoS, &str); 3] = [
    (QoS::AtMostOnce, "0"),
    (QoS::AtLeastOnce, "1"),
    (QoS::ExactlyOnce, "2"),
];
const POLICIES: [QueueFull; 3] = [
    QueueFull::DropNewest,
    QueueFull::DropOldest,
    QueueFull::EndSession,
];

impl ListenerMetrics {
    /// Every value now, labelled with `listener`.
    pub fn snapshot(&self, listener: &str) -> Vec<Sample> {
        let mut out = Samples {
            listener,
            samples: Vec::with_capacity(160),
        };
        self.general(&mut out);
        self.protocol(&mut out);
        out.samples
    }

    fn general(&self, out: &mut Samples<'_>) {
        out.gauge(general::LISTENER_SESSIONS.name, &self.sessions, []);
        out.counter(general::LISTENER_ACCEPTED.name, &self.accepted, []);
        for op in Op::ALL {
            for cause in Cause::ALL {
                let labels = [("op", op.as_str()), ("cause", cause.as_str())];
                out.counter(
                    general::LISTENER_REFUSED.name,
                    self.refused(*op, *cause),
                    labels,
                );
            }
        }
        for reason in Closed::ALL {
            let labels = [("reason", reason.as_str())];
            out.counter(general::LISTENER_CLOSED.name, self.closed(*reason), labels);
        }
        let takeovers = general::SESSION_TAKEOVERS.name;
        out.counter(takeovers, &self.takeovers_same, [("same_principal", "yes")]);
        out.counter(takeovers, &self.takeovers_other, [("same_principal", "no")]);
    }

    fn protocol(&self, out: &mut Samples<'_>) {
        for (counter, version) in self.connected.iter().zip(["3.1.1", "5"]) {
            let labels = [("version", version), ("result", "success")];
            out.mqtt("connects_total", Kind::Counter, counter.get(), &labels);
        }
        let directions = [(&self.packets_in, "in"), (&self.packets_out, "out")];
        for (counters, dir) in directions {
            for (counter, kind) in counters.iter().zip(TYPES).skip(1) {
                let labels = [("type", kind), ("dir", dir)];
                out.mqtt("packets_total", Kind::Counter, counter.get(), &labels);
            }
        }
        for (qos, level) in QOS {
            for result in PublishResult::ALL {
                let both = [
                    (self.published_in(qos, *result), "in"),
                    (self.published_out(qos, *result), "out"),
                ];
                for (counter, dir) in both {
                    let labels = [("qos", level), ("dir", dir), ("result", result.as_str())];
                    out.mqtt("publish_total", Kind::Counter, counter.get(), &labels);
                }
            }
        }
        for policy in POLICIES {
            let value = self.queue_dropped(policy).get();
            out.mqtt(
                "queue_dropped_total",
                Kind::Counter,
                value,
                &[("policy", policy.as_str())],
            );
        }
        let qos0 = [("policy", "qos0-oldest")];
        out.mqtt(
            "queue_dropped_total",
            Kind::Counter,
            self.qos0_dropped.get(),
            &qos0,
        );
        out.mqtt(
            "queue_messages",
            Kind::Gauge,
            self.queue_messages.get(),
            &[],
        );
        out.mqtt("queue_bytes", Kind::Gauge, self.queue_bytes.get(), &[]);
        out.mqtt("inflight", Kind::Gauge, self.inflight.get(), &[]);
        out.mqtt(
            "expired_total",
            Kind::Counter,
            self.expired.get(),
            &[("where", "queue")],
        );
        let plain = [
            ("dup_in_total", &self.dup_in),
            ("too_large_for_peer_total", &self.too_large_for_peer),
            ("keepalive_timeouts_total", &self.keepalive_timeouts),
            ("late_reply_total", &self.late_reply),
            ("reserved_meta_removed_total", &self.reserved_meta_removed),
        ];
        for (name, counter) in plain {
            out.mqtt(name, Kind::Counter, counter.get(), &[]);
        }
        for (code, count) in &*self.suback.lock().unwrap_or_else(PoisonError::into_inner) {
            let code = Cow::Owned(format!("0x{code:02x}"));
            out.push(
                format!("{}mqtt_suback_total", general::PREFIX).into(),
                Kind::Counter,
                *count,
                vec![("code", code)],
            );
        }
        for (rule, count) in &*self
            .malformed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
        {
            out.mqtt("malformed_total", Kind::Counter, *count, &[("rule", rule)]);
        }
    }
}

struct Samples<'a> {
    listener: &'a str,
    samples: Vec<Sample>,
}

impl Samples<'_> {
    fn counter<const N: usize>(
        &mut self,
        name: &'static str,
        counter: &Counter,
        labels: [(&'static str, &'static str); N],
    ) {
        let labels = labels
            .into_iter()
            .map(|(key, value)| (key, Cow::Borrowed(value)))
            .collect();
        self.push(Cow::Borrowed(name), Kind::Counter, counter.get(), labels);
    }

    fn gauge<const N: usize>(
        &mut self,
        name: &'static str,
        counter: &Counter,
        labels: [(&'static str, &'static str); N],
    ) {
        let labels = labels
            .into_iter()
            .map(|(key, value)| (key, Cow::Borrowed(value)))
            .collect();
        self.push(Cow::Borrowed(name), Kind::Gauge, counter.get(), labels);
    }

    fn mqtt(
        &mut self,
        name: &str,
        kind: Kind,
        value: u64,
        labels: &[(&'static str, &'static str)],
    ) {
        let labels = labels
            .iter()
            .map(|(key, value)| (*key, Cow::Borrowed(*value)))
            .collect();
        self.push(
            format!("{}mqtt_{name}", general::PREFIX).into(),
            kind,
            value,
            labels,
        );
    }

    fn push(
        &mut self,
        name: Cow<'static, str>,
        kind: Kind,
        value: u64,
        labels: Vec<(&'static str, Cow<'static, str>)>,
    ) {
        let mut all = vec![("listener", Cow::Owned(self.listener.to_owned()))];
        all.extend(labels);
        self.samples.push(Sample {
            name,
            kind,
            labels: all,
            value,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// Every series is there from the start, once, under the prefix; counters end in `_total`.
    #[test]
    fn gateway_6_series_exist_from_the_start() {
        let metrics = ListenerMetrics::default();
        let before = metrics.snapshot("edge");
        let mut seen = HashSet::new();
        for sample in &before {
            assert!(sample.name.starts_with("weida_gateway_"), "{}", sample.name);
            assert_eq!(
                sample.kind == Kind::Counter,
                sample.name.ends_with("_total"),
                "{}",
                sample.name
            );
            assert_eq!(sample.labels[0], ("listener", "edge".into()));
            assert!(
                seen.insert((sample.name.clone(), sample.labels.clone())),
                "{sample:?} twice"
            );
            assert_eq!(sample.value, 0);
        }
        metrics.refused(Op::Publish, Cause::Limit).add(3);
        metrics.malformed("mqtt_3_5_01");
        let after = metrics.snapshot("edge");
        assert_eq!(
            after.len(),
            before.len() + 1,
            "only a rule appears with its first use"
        );
        let counted: u64 = after.iter().map(|sample| sample.value).sum();
        assert_eq!(counted, 4);
    }
}
