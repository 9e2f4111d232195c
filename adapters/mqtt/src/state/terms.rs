//! The two sides of a CONNECT/CONNACK agreement: what we offer and what the client takes.

use std::num::{NonZeroU16, NonZeroU32};
use std::time::Duration;

use super::ZeroKeepAlive;
use super::keepalive::negotiate;
use crate::codec::{
    Connack, ConnackProperties, Connect, Publish, QoS, ReasonCode, SubscribeProperties,
    Subscription, TopicName, Version, Violation,
};

/// What a listener announces and enforces on each connection. [mqtt 8.1]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// Receive Maximum. Default 64.
    pub receive_maximum: NonZeroU16,
    /// Largest packet, fixed header included. Default 1 MiB + 64 KiB.
    pub max_packet_bytes: NonZeroU32,
    /// Largest CONNECT. Default 64 KiB.
    pub max_connect_bytes: u32,
    /// Topic Alias Maximum, and our own cap on what we use of the client's. Default 16.
    pub topic_alias_maximum: u16,
    /// Maximum QoS. Default 2.
    pub max_qos: QoS,
    /// Retain Available. Default true.
    pub retain_available: bool,
    /// Wildcard Subscription Available. Default true.
    pub wildcard_subscriptions: bool,
    /// Subscription Identifier Available. Default true.
    pub subscription_ids: bool,
    /// Shared Subscription Available. Default true.
    pub shared_subscriptions: bool,
    /// Longest Keep Alive. Default 1200 s.
    pub keep_alive_max_secs: u16,
    /// What a Keep Alive of 0 means. Default replace.
    pub keep_alive_zero: ZeroKeepAlive,
    /// Longest silence of a client without Keep Alive. Default 1 h.
    pub idle_max: Duration,
    /// Topic length in bytes. Default 1024.
    pub max_topic_bytes: usize,
    /// Topic levels. Default 32, at most [`MAX_LEVELS`](crate::codec::MAX_LEVELS).
    pub max_topic_levels: usize,
    /// User Properties of a message. Default 32.
    pub max_user_properties: usize,
    /// Their bytes. Default 8 KiB.
    pub max_user_property_bytes: usize,
    /// In flight toward a 5.0 client, below its own Receive Maximum. Default 64.
    pub max_inflight_out: u16,
    /// In flight toward a 3.1.1 client, which cannot say. Default 20.
    pub max_inflight_out_v311: u16,
    /// Text rules beyond the standard's. Default on.
    pub strict_utf8: bool,
}

impl Default for Terms {
    fn default() -> Self {
        Self {
            receive_maximum: NonZeroU16::new(64).unwrap_or(NonZeroU16::MIN),
            max_packet_bytes: NonZeroU32::new(1_114_112).unwrap_or(NonZeroU32::MIN),
            max_connect_bytes: 65_536,
            topic_alias_maximum: 16,
            max_qos: QoS::ExactlyOnce,
            retain_available: true,
            wildcard_subscriptions: true,
            subscription_ids: true,
            shared_subscriptions: true,
            keep_alive_max_secs: 1200,
            keep_alive_zero: ZeroKeepAlive::Replace,
            idle_max: Duration::from_secs(3600),
            max_topic_bytes: 1024,
            max_topic_levels: 32,
            max_user_properties: 32,
            max_user_property_bytes: 8192,
            max_inflight_out: 64,
            max_inflight_out_v311: 20,
            strict_utf8: true,
        }
    }
}

impl Terms {
    /// What CONNECT may not ask of this listener.
    pub(super) fn judge_connect(&self, connect: &Connect) -> Result<(), Violation> {
        if connect.version == Version::V311 && connect.client_id.is_empty() && !connect.clean_start
        {
            return Err(Violation::EmptyClientId);
        }
        if connect.properties.authentication_method.is_some() {
            return Err(Violation::AuthMethodUnsupported);
        }
        match &connect.will {
            Some(will) if will.qos > self.max_qos => Err(Violation::QosNotSupported {
                max_qos: self.max_qos,
            }),
            Some(will) if will.retain && !self.retain_available => {
                Err(Violation::RetainNotSupported)
            }
            Some(will) => self
                .judge_topic(&will.topic)
                .map_err(|_| Violation::WillTopic),
            None => Ok(()),
        }
    }

    /// What PUBLISH may not ask, beside its topic: [MQTT-3.2.2-11], [MQTT-3.2.2-14].
    pub(super) fn judge_publish(&self, publish: &Publish) -> Result<(), Violation> {
        if publish.qos > self.max_qos {
            return Err(Violation::QosNotSupported {
                max_qos: self.max_qos,
            });
        }
        if publish.retain && !self.retain_available {
            return Err(Violation::RetainNotSupported);
        }
        Ok(())
    }

    /// More User Properties than we carry.
    pub(super) fn judge_user_properties(&self, publish: &Publish) -> Result<(), Violation> {
        let properties = &publish.properties.message.user_properties;
        if properties.is_empty() {
            return Ok(());
        }
        let packet_id = publish.packet_id;
        let (got, max) = (properties.wire_bytes(), self.max_user_property_bytes);
        if got > max {
            return Err(Violation::UserPropertyQuota {
                got,
                max,
                unit: "bytes",
                packet_id,
            });
        }
        let (got, max) = (properties.pairs(), self.max_user_properties);
        if got > max {
            return Err(Violation::UserPropertyQuota {
                got,
                max,
                unit: "pairs",
                packet_id,
            });
        }
        Ok(())
    }

    /// Topics longer or deeper than we take.
    pub(super) fn judge_topic(&self, topic: &TopicName) -> Result<(), Violation> {
        let (got, max) = (topic.len(), self.max_topic_bytes);
        if got > max {
            return Err(Violation::TopicTooBig {
                got,
                max,
                unit: "bytes",
                packet_id: None,
            });
        }
        let (got, max) = (topic.levels(), self.max_topic_levels);
        if got > max {
            return Err(Violation::TopicTooBig {
                got,
                max,
                unit: "levels",
                packet_id: None,
            });
        }
        Ok(())
    }

    /// The SUBACK code that this listener's switches and bounds give one filter, before grants are looked at; `None`
    /// when it stands. [mqtt 3.4]
    #[must_use]
    pub fn refuse_subscription(
        &self,
        subscription: &Subscription,
        properties: &SubscribeProperties,
    ) -> Option<ReasonCode> {
        let Ok(filter) = &subscription.filter else {
            return Some(ReasonCode::TopicFilterInvalid);
        };
        if filter.pattern().len() > self.max_topic_bytes || filter.levels() > self.max_topic_levels
        {
            return Some(ReasonCode::TopicFilterInvalid);
        }
        if filter.is_shared() && !self.shared_subscriptions {
            return Some(ReasonCode::SharedSubscriptionsNotSupported);
        }
        if properties.subscription_id.is_some() && !self.subscription_ids {
            return Some(ReasonCode::SubscriptionIdentifiersNotSupported);
        }
        if filter.has_wildcard() && !self.wildcard_subscriptions {
            return Some(ReasonCode::WildcardSubscriptionsNotSupported);
        }
        None
    }

    /// CONNACK properties that tell a 5.0 client all of it; what equals the standard's default is left out.
    pub(super) fn announce(&self, peer: &Peer) -> ConnackProperties {
        let off = |available: bool| (!available).then_some(false);
        ConnackProperties {
            receive_maximum: Some(self.receive_maximum),
            maximum_qos: (self.max_qos != QoS::ExactlyOnce).then_some(self.max_qos),
            retain_available: off(self.retain_available),
            maximum_packet_bytes: Some(self.max_packet_bytes),
            topic_alias_maximum: (self.topic_alias_maximum > 0).then_some(self.topic_alias_maximum),
            wildcard_subscription_available: off(self.wildcard_subscriptions),
            subscription_id_available: off(self.subscription_ids),
            shared_subscription_available: off(self.shared_subscriptions),
            server_keep_alive_secs: peer.server_keep_alive_secs,
            ..ConnackProperties::default()
        }
    }
}

/// What the client's CONNECT says about how it wants to be served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// Version of the connection.
    pub version: Version,
    /// How many messages of ours it takes at once; our own cap included.
    pub send_window: u16,
    /// Its Maximum Packet Size; `u32::MAX` for none.
    pub max_packet_bytes: u32,
    /// How many aliases we may use; our own cap included.
    pub topic_alias_maximum: u16,
    /// Request Problem Information.
    pub problem_information: bool,
    /// Session Expiry Interval it asked for.
    pub session_expiry_secs: u32,
    /// Keep Alive in force.
    pub keep_alive_secs: u16,
    /// What Server Keep Alive has to say.
    pub server_keep_alive_secs: Option<u16>,
}

impl Peer {
    pub(super) fn new(connect: &Connect, terms: &Terms) -> Self {
        let properties = &connect.properties;
        let (keep_alive_secs, server_keep_alive_secs) = negotiate(
            connect.keep_alive_secs,
            terms.keep_alive_max_secs,
            terms.keep_alive_zero,
            connect.version,
        );
        let send_window = match connect.version {
            Version::V311 => terms.max_inflight_out_v311,
            Version::V5 => properties
                .receive_maximum
                .map_or(u16::MAX, NonZeroU16::get)
                .min(terms.max_inflight_out),
        };
        Self {
            version: connect.version,
            send_window,
            max_packet_bytes: properties
                .maximum_packet_bytes
                .map_or(u32::MAX, NonZeroU32::get),
            topic_alias_maximum: properties
                .topic_alias_maximum
                .unwrap_or_default()
                .min(terms.topic_alias_maximum),
            problem_information: properties.request_problem_information.unwrap_or(true),
            session_expiry_secs: properties.session_expiry_secs.unwrap_or_default(),
            keep_alive_secs,
            server_keep_alive_secs,
        }
    }

    /// CONNACK for a refusal, or `None` where the version only has a close.
    pub(super) fn refusal(version: Version, reason: ReasonCode) -> Option<Connack> {
        match version {
            Version::V311 => reason
                .connect_return_code()
                .map(|_| Connack::refusal(reason)),
            Version::V5 => Some(Connack::refusal(reason)),
        }
    }
}
