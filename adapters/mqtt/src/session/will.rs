//! The will of a connection as the message it becomes. [mqtt 7]
//!
//! Sessions of this version have expiry 0, so the effective delay, the smaller of Will Delay and
//! expiry, is always 0: a will that fires, fires at once.

use crate::codec::{Publish, PublishProperties, QoS, Will};

/// The will as a publish of its owner.
pub(crate) fn publication(will: &Will) -> Publish {
    Publish {
        dup: false,
        qos: will.qos.min(QoS::AtLeastOnce),
        retain: false,
        topic: will.topic.clone(),
        packet_id: None,
        properties: PublishProperties {
            message: will.properties.message.clone(),
            ..PublishProperties::default()
        },
        payload: will.payload.clone(),
    }
}
