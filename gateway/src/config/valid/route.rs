//! Checked `[[route]]` tables: the common half is [`weida_bridge::Route`]. `[gateway.md 2.2, 2.3, 9]`

use std::sync::Arc;
use std::time::Duration;

use weida_bridge::Route;
use weida_core::{EndpointAddr, EndpointPath, Filter};

/// One route with everything its service stack needs.
#[derive(Debug, Clone)]
pub struct RouteConfig {
    /// What adapters see of it: id, direction, pattern, delivery, `ack_on`, topic, bounds.
    pub route: Route,
    /// The weida half.
    pub weida: WeidaEnd,
    /// The foreign half.
    pub foreign: ForeignEnd,
    /// All must hold, else the message is `filtered`.
    pub conditions: Vec<Condition>,
    /// Changes of metadata.
    pub transform: Transform,
    /// What happens to a message that finds the stack full. Default block.
    pub overflow: Overflow,
    /// Bound of one try. Default 2 s.
    pub attempt_timeout: Duration,
    /// Messages at the destination at once. Default 256.
    pub in_flight: usize,
    /// The queue in front of it.
    pub buffer: Buffer,
    /// Tries beyond the first.
    pub retry: Retry,
    /// Requests waiting for their reply. Default 4096.
    pub max_pending_replies: usize,
    /// Whether a request may be tried again. Default false.
    pub idempotent: bool,
    /// Gateways a message may have passed. Default 4, at most 16.
    pub max_hops: u8,
    /// What ends a message that can't be delivered.
    pub dead_letter: DeadLetter,
}

/// The weida half of a route: a path binds, a URL dials. `[reconciled R3]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WeidaEnd {
    /// Bound on every weida listener of this gateway.
    Bind {
        /// Where weida peers find it.
        path: EndpointPath,
    },
    /// Dialled by this gateway.
    Dial {
        /// Validated address with its path.
        address: EndpointAddr,
        /// What a `subscribe` route asks for; `#` when the file says nothing. Unused by push and request.
        filter: Filter,
    },
}

/// The foreign half of a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ForeignEnd {
    /// The clients of an MQTT listener.
    Mqtt(MqttEnd),
}

/// MQTT as source or destination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MqttEnd {
    /// Name of an MQTT listener.
    pub listen: Arc<str>,
    /// MQTT topic filter; set when MQTT is the source (the topic of a destination is `route.topic`).
    pub filter: Option<String>,
    /// Source: cap, default 1 (2 is not in this version). Destination: QoS of the copies, default 1.
    pub qos: u8,
    /// How a weida requester gets its answer; set for pattern reply only.
    pub reply: Option<MqttReply>,
}

/// How the answer of an MQTT responder is found. `[reconciled R6]`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MqttReply {
    /// Response Topic and Correlation Data of MQTT 5.
    ResponseTopic,
    /// One way: the requester gets an empty reply that names the level reached.
    None,
}

/// One entry of `where`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// The content type is exactly this one.
    ContentType(String),
    /// The payload has at most this many bytes.
    MaxPayloadBytes(usize),
}

/// `set`: changes of metadata, in the order drop, then add.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Transform {
    /// Replaces the content type.
    pub content_type: Option<String>,
    /// Entries added; an entry of the same name is replaced.
    pub meta: Vec<(Box<str>, Box<str>)>,
    /// Names removed; a trailing `*` removes every name with that beginning.
    pub drop_meta: Vec<Box<str>>,
}

/// What happens to a message that finds the route full. `[gateway.md 9, layer 4]`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overflow {
    /// The source isn't read until there is room.
    Block,
    /// The source is told no.
    Reject,
    /// The new message is dropped and counted.
    DropNewest,
    /// The oldest queued message is dropped and counted.
    DropOldest,
}

/// `buffer`: bounds of the route's queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Buffer {
    /// Default 4096.
    pub messages: usize,
    /// Default 16 MiB; bytes, not counts, protect memory.
    pub bytes: usize,
}

/// `retry`: the budget of tries beyond the first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Retry {
    /// Share of the traffic that may be retries. Default 0.2.
    pub budget_ratio: f32,
    /// Retries per second allowed beside the share. Default 10.
    pub min_per_second: u32,
    /// Over which time the share is counted. Default 10 s.
    pub window: Duration,
    /// First wait. Default 50 ms.
    pub backoff_min: Duration,
    /// Longest wait. Default 5 s.
    pub backoff_max: Duration,
}

/// `dead_letter`: what ends a message that can't be delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeadLetter {
    /// Where it goes.
    pub to: DeadLetterTo,
    /// Tries of one message. Default 16.
    pub max_attempts: u32,
}

/// Where a message ends that can't be delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeadLetterTo {
    /// Nowhere: the source is told, the loss is counted.
    Discard,
}

impl Default for Buffer {
    fn default() -> Self {
        Self {
            messages: 4096,
            bytes: 16 * 1024 * 1024,
        }
    }
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            budget_ratio: 0.2,
            min_per_second: 10,
            window: Duration::from_secs(10),
            backoff_min: Duration::from_millis(50),
            backoff_max: Duration::from_secs(5),
        }
    }
}

impl Default for DeadLetter {
    fn default() -> Self {
        Self {
            to: DeadLetterTo::Discard,
            max_attempts: 16,
        }
    }
}
