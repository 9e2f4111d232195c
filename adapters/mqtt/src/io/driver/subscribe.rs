//! SUBSCRIBE and UNSUBSCRIBE: one code per filter, on our own knowledge only. [S17-31] [S17-32]

use std::sync::Arc;

use tracing::info;

use super::super::intake::Intakes;
use super::{Driver, End};
use crate::acl::SubscribeVerdict;
use crate::codec::{
    AckProperties, Packet, QoS, ReasonCode, Suback, Subscribe, SubscribeProperties, Subscription,
    Unsuback, Unsubscribe,
};
use crate::metrics::{Cause, Op};
use crate::router;

impl<I: Intakes> Driver<I> {
    pub(super) fn on_subscribe(&mut self, subscribe: &Subscribe) -> Result<(), End> {
        let mut codes = Vec::with_capacity(subscribe.filters.count().min(1024));
        for (at, subscription) in subscribe.filters.iter().enumerate() {
            let code = if at < self.host.limits.max_filters_per_packet {
                self.subscribe_one(&subscription, &subscribe.properties)
            } else {
                Err((ReasonCode::QuotaExceeded, Cause::Limit))
            };
            let code = code.unwrap_or_else(|(code, cause)| {
                self.host.metrics.refused(Op::Subscribe, cause).add(1);
                info!(
                    claimed_id = ?self.session.key().foreign_id,
                    principal = %self.session.key().principal,
                    code = code.code(),
                    cause = cause.as_str(),
                    "filter refused"
                );
                if self.is_v5() {
                    code
                } else {
                    ReasonCode::UnspecifiedError
                }
            });
            self.host.metrics.suback(code);
            codes.push(code);
        }
        self.answer(&Packet::Suback(Suback {
            packet_id: subscribe.packet_id,
            properties: AckProperties::default(),
            codes,
        }))
    }

    fn subscribe_one(
        &mut self,
        subscription: &Subscription,
        properties: &SubscribeProperties,
    ) -> Result<ReasonCode, (ReasonCode, Cause)> {
        let terms = self.connection.terms();
        if let Some(code) = terms.refuse_subscription(subscription, properties) {
            let cause = match code {
                ReasonCode::TopicFilterInvalid => Cause::BadName,
                _ => Cause::Unsupported,
            };
            return Err((code, cause));
        }
        let Ok(filter) = &subscription.filter else {
            return Err((ReasonCode::TopicFilterInvalid, Cause::BadName));
        };
        if !self.host.receives {
            // Nothing could ever come: no local exchange and no route to here. [S17-33]
            return Err((ReasonCode::ImplementationSpecificError, Cause::Unsupported));
        }
        let filtered = match self.session.access().subscribe(filter) {
            SubscribeVerdict::Granted => false,
            SubscribeVerdict::Filtered => true,
            SubscribeVerdict::Refused => {
                return Err((ReasonCode::NotAuthorized, Cause::NotAuthorized));
            }
        };
        let known = self.subscriptions.contains(filter);
        if !known && self.subscriptions.len() >= self.host.limits.max_filters_per_session {
            return Err((ReasonCode::QuotaExceeded, Cause::Limit));
        }
        let mut options = subscription.options;
        options.max_qos = options.max_qos.min(terms_max(self.host.terms.max_qos));
        let granted = options.max_qos;
        let kept = router::Subscription {
            session: Arc::clone(&self.session),
            options,
            id: properties.subscription_id,
            filtered,
        };
        // Active in the router before the SUBACK is even written. [mqtt 3.2]
        self.host
            .router
            .subscribe(filter, kept, self.host.limits.max_filters_total)
            .map_err(|router::Full| (ReasonCode::QuotaExceeded, Cause::Limit))?;
        self.subscriptions.insert(filter);
        Ok(match granted {
            QoS::AtMostOnce => ReasonCode::Success,
            QoS::AtLeastOnce => ReasonCode::GrantedQos1,
            QoS::ExactlyOnce => ReasonCode::GrantedQos2,
        })
    }

    pub(super) fn on_unsubscribe(&mut self, unsubscribe: &Unsubscribe) -> Result<(), End> {
        let mut gone = Vec::new();
        let mut codes = Vec::with_capacity(unsubscribe.filters.count().min(1024));
        for filter in unsubscribe.filters.iter() {
            codes.push(match filter {
                Err(_) => ReasonCode::TopicFilterInvalid,
                Ok(filter) if self.subscriptions.remove(&filter) => {
                    gone.push(filter);
                    ReasonCode::Success
                }
                Ok(_) => ReasonCode::NoSubscriptionExisted,
            });
        }
        if !gone.is_empty() {
            let filters = gone.iter().map(|filter| filter.as_bytes());
            self.host.router.unsubscribe(&self.session, filters);
        }
        self.answer(&Packet::Unsuback(Unsuback {
            packet_id: unsubscribe.packet_id,
            properties: AckProperties::default(),
            codes,
        }))
    }
}

/// This version serves QoS 0 and 1; a request for 2 is granted 1. [MQTT5 3.9.3]
fn terms_max(max_qos: QoS) -> QoS {
    max_qos.min(QoS::AtLeastOnce)
}
