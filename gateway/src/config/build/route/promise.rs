//! What a route may promise: delivery class and acknowledgement level against what both ends can give.
//! `[reconciled 4, R4, R5] [mqtt R2]`

use std::time::Duration;

use weida_bridge::{AckOn, DeliveryClass, NamedLoss, Pattern};

use super::super::super::report::Report;
use super::super::super::valid::MqttReply;
use super::super::view::View;
use super::ends::Ends;

/// Delivery and level that both ends can keep.
#[derive(Debug, Clone, Copy)]
pub(super) struct Promise {
    pub(super) delivery: DeliveryClass,
    pub(super) ack_on: AckOn,
}

impl Promise {
    /// Off for at-least-once, 10 s otherwise; never off where somebody waits for an answer. `[reconciled R6, R8]`
    pub(super) fn default_timeout(self, ends: &Ends) -> Option<Duration> {
        let waits = matches!(ends.pattern, Pattern::Request | Pattern::Reply);
        (waits || self.delivery == DeliveryClass::AtMostOnce).then_some(Duration::from_secs(10))
    }

    /// What is lost by configuration, for display.
    pub(super) fn losses(self, ends: &Ends) -> Vec<NamedLoss> {
        let _: &Ends = ends;
        Vec::new()
    }
}

pub(super) fn promise(view: &View<'_>, ends: &Ends, report: &mut Report) -> Option<Promise> {
    let delivery = delivery(view, ends, report);
    let ack_on = ack_on(view, ends, delivery, report)?;
    Some(Promise { delivery, ack_on })
}

fn delivery(view: &View<'_>, ends: &Ends, report: &mut Report) -> DeliveryClass {
    if view
        .text("delivery")
        .is_some_and(|it| it.text == "at-most-once")
    {
        return DeliveryClass::AtMostOnce;
    }
    // A word that is none was told already.
    if view.has("delivery")
        && view
            .text("delivery")
            .is_none_or(|it| it.text != "at-least-once")
    {
        return DeliveryClass::AtLeastOnce;
    }
    let idempotent = view.bool("idempotent").unwrap_or(false);
    let answers = matches!(ends.pattern, Pattern::Request | Pattern::Reply);
    let reason = match ends.pattern {
        Pattern::Publish => Some("a fan-out is not acknowledged by anybody"),
        Pattern::Subscribe => Some("a subscription delivers once and can't be asked again"),
        Pattern::Request | Pattern::Reply if !idempotent => {
            Some("a request that is tried again may be done twice")
        }
        _ if ends.mqtt().qos == 0 && ends.ingress => {
            Some("a QoS 0 publisher doesn't wait for an acknowledgement")
        }
        _ if ends.mqtt().qos == 0 => Some("a QoS 0 copy is not acknowledged by the client"),
        _ => None,
    };
    if let Some(reason) = reason {
        let spelled = view.has("delivery");
        let (at, path) = if spelled {
            (view.at("delivery"), view.key_path("delivery"))
        } else {
            (view.at, view.path.clone())
        };
        let default = if spelled { "" } else { " (the default)" };
        let message = format!("at-least-once{default} can't be kept here: {reason}");
        let help = if answers {
            "say `delivery = \"at-most-once\"`, or `idempotent = true` when doing it twice is harmless"
        } else {
            "say `delivery = \"at-most-once\"`"
        };
        report.error("E038", at, &path, message, help.to_owned());
    }
    DeliveryClass::AtLeastOnce
}

fn ack_on(
    view: &View<'_>,
    ends: &Ends,
    delivery: DeliveryClass,
    report: &mut Report,
) -> Option<AckOn> {
    let one_way = ends.mqtt().reply == Some(MqttReply::None);
    let Some(text) = view.text("ack_on") else {
        return Some(match (ends.pattern, delivery) {
            // The requester waits for the answer itself.
            (Pattern::Reply, _) if !one_way => AckOn::Reply,
            (_, DeliveryClass::AtLeastOnce) => AckOn::Receipt,
            (_, DeliveryClass::AtMostOnce) => AckOn::Sent,
        });
    };
    let (at, path) = (text.at, view.key_path("ack_on"));
    let level = match text.text {
        "sent" => AckOn::Sent,
        "receipt" => AckOn::Receipt,
        "accepted" => AckOn::Accepted,
        "stored" => AckOn::Stored,
        "processed" => AckOn::Processed,
        "reply" => AckOn::Reply,
        _ => return None,
    };
    if level == AckOn::Sent && delivery == DeliveryClass::AtLeastOnce {
        let message = "`sent` says nothing about arrival: it goes with at-most-once only";
        let help = "`ack_on = \"receipt\"`, or `delivery = \"at-most-once\"`".to_owned();
        report.error("E037", at, &path, message, help);
        return None;
    }
    match limit(ends, level) {
        Verdict::Can => Some(level),
        Verdict::Never(reason, best) => {
            let message = format!("`{}` can't be reached: {reason}", text.text);
            report.error("E037", at, &path, message, format!("`ack_on = \"{best}\"`"));
            None
        }
        Verdict::Later(reason, best) => {
            let message = format!(
                "`ack_on = \"{}\"` is not available in this version: {reason}",
                text.text
            );
            report.error("E004", at, &path, message, format!("`ack_on = \"{best}\"`"));
            None
        }
    }
}

/// Whether a level can be asked of a destination.
enum Verdict {
    Can,
    Never(&'static str, &'static str),
    Later(&'static str, &'static str),
}

fn limit(ends: &Ends, level: AckOn) -> Verdict {
    use AckOn::{Accepted, Processed, Receipt, Reply, Sent, Stored};
    use Verdict::{Can, Later, Never};

    match (ends.pattern, level) {
        (Pattern::Publish, Sent) | (Pattern::Subscribe, Sent) => Can,
        (Pattern::Publish, _) => {
            Never("a fan-out has no single receiver that could answer", "sent")
        }
        (Pattern::Subscribe, _) => Never("the weida publisher doesn't wait for anything", "sent"),
        (Pattern::Push, Sent | Receipt) => Can,
        (Pattern::Push, Accepted | Processed) => Later(
            "a peer says so by a cursor, which is not ordered yet",
            "receipt",
        ),
        (Pattern::Push, Stored) => Later("it needs a cursor or `overflow = \"spill\"`", "receipt"),
        (Pattern::Push, Reply) => Never("a push has no answer; pattern \"request\" has", "receipt"),
        (Pattern::Request, Sent | Receipt | Reply) => Can,
        (Pattern::Request, Accepted | Stored | Processed) => {
            Later("the level in a reply is not read yet", "reply")
        }
        (Pattern::Pull, Sent) => Can,
        (Pattern::Pull | Pattern::Reply, Receipt) if ends.mqtt().qos == 0 => {
            Never("a QoS 0 copy is not acknowledged by the client", "sent")
        }
        (Pattern::Pull, Receipt) => Can,
        (Pattern::Pull, Accepted | Processed) => Never(
            "an MQTT client acknowledges the packet, nothing more",
            "receipt",
        ),
        (Pattern::Pull | Pattern::Reply, Stored) => Later(
            "it needs stored sessions or `overflow = \"spill\"`",
            "receipt",
        ),
        (Pattern::Pull, Reply) => Never("a pushed message has no answer", "receipt"),
        (Pattern::Reply, Reply) if ends.mqtt().reply != Some(MqttReply::None) => Can,
        (Pattern::Reply, Reply) => Never("`reply = \"none\"` says that no answer comes", "receipt"),
        (Pattern::Reply, Sent | Receipt) if ends.mqtt().reply == Some(MqttReply::None) => Can,
        (Pattern::Reply, Sent | Receipt) => Never(
            "the requester waits for the answer, which is `reply`",
            "reply",
        ),
        (Pattern::Reply, Accepted | Processed) => Never(
            "an MQTT client acknowledges the packet, nothing more",
            "reply",
        ),
    }
}
