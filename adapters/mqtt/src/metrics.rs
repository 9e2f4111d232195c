//! Counters of one listener: atomics that the connections write and the gateway reads.
//!
//! Labels come from closed enums and from configuration, never from a client. [gateway 6]

mod sample;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

pub use sample::{Kind, Sample};

use crate::codec::{PacketType, QoS, ReasonCode, Version};
use crate::config::QueueFull;

/// A number that only grows, or a gauge; relaxed because nothing is ordered by it.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, count: u64) {
        if count > 0 {
            self.0.fetch_add(count, Ordering::Relaxed);
        }
    }

    pub(crate) fn sub(&self, count: u64) {
        if count > 0 {
            self.0.fetch_sub(count, Ordering::Relaxed);
        }
    }

    /// The value now.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Declares a closed label: variants, texts and index cannot drift apart.
macro_rules! labels {
    ($(#[$doc:meta])* $name:ident { $($(#[$each:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name { $($(#[$each])* $variant),+ }

        impl $name {
            /// Every value.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The label as metrics and logs spell it.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }

            pub(crate) const fn index(self) -> usize {
                self as usize
            }
        }
    };
}

labels! {
    /// What a client was refused. [gateway 6]
    Op {
        /// CONNECT.
        Connect = "connect",
        /// PUBLISH.
        Publish = "publish",
        /// One filter of a SUBSCRIBE.
        Subscribe = "subscribe",
    }
}

labels! {
    /// Why a client was refused: the closed list of [gateway 6].
    Cause {
        /// Wrong or missing proof.
        NotAuthenticated = "not_authenticated",
        /// No grant.
        NotAuthorized = "not_authorized",
        /// A name that cannot be used.
        BadName = "bad_name",
        /// A name longer than allowed.
        NameTooLong = "name_too_long",
        /// A packet or payload larger than allowed.
        TooLarge = "too_large",
        /// More user properties than cross.
        MetaTooLarge = "meta_too_large",
        /// A configured bound is reached.
        Limit = "limit",
        /// Too many at once.
        RateLimited = "rate_limited",
        /// The ClientID belongs to another principal.
        LabelInUse = "label_in_use",
        /// The address is banned.
        Banned = "banned",
        /// The gateway is stopping.
        Draining = "draining",
        /// Not in this version, or not in this protocol version.
        Unsupported = "unsupported",
        /// Not MQTT, or not legal MQTT.
        Malformed = "malformed",
        /// Our own fault.
        Internal = "internal",
    }
}

labels! {
    /// Why a connection ended. [mqtt 16]
    Closed {
        /// DISCONNECT of the client.
        Client = "client",
        /// DISCONNECT 0x04 or an error code of the client.
        ClientWithWill = "client_with_will",
        /// The network went away.
        Lost = "lost",
        /// One and a half keep-alives of silence.
        KeepAlive = "keep_alive",
        /// Malformed packet.
        Malformed = "malformed",
        /// Protocol error.
        ProtocolError = "protocol_error",
        /// A packet above our maximum.
        TooLarge = "too_large",
        /// More unacknowledged publishes than announced.
        ReceiveMaximum = "receive_maximum",
        /// A topic alias that is not there.
        Alias = "alias",
        /// QoS or RETAIN that was announced unavailable.
        Unsupported = "unsupported",
        /// The same principal connected again.
        TakenOver = "taken_over",
        /// 3.1.1 has no other way to refuse a publish.
        Refused = "refused",
        /// A grant is missing and the listener disconnects for it.
        NotAuthorized = "not_authorized",
        /// The session's queue was full.
        QueueFull = "queue_full",
        /// The client did not read.
        WriteStall = "write_stall",
        /// The gateway stops.
        Shutdown = "shutdown",
        /// It never became a session.
        Handshake = "handshake",
    }
}

labels! {
    /// Result of one publish. [mqtt 16]
    PublishResult {
        /// Taken, or handed to the client.
        Ok = "ok",
        /// Nobody wanted it.
        NoSubscriber = "no_subscriber",
        /// Refused by a code or a close.
        Refused = "refused",
        /// Dropped and counted.
        Dropped = "dropped",
        /// The end is unknown.
        Indeterminate = "indeterminate",
    }
}

const CAUSES: usize = Cause::ALL.len();
const CLOSED: usize = Closed::ALL.len();
const RESULTS: usize = PublishResult::ALL.len();
const TYPES: usize = 16;

/// Everything one listener counts.
#[derive(Debug, Default)]
pub struct ListenerMetrics {
    /// Sessions now.
    pub sessions: Counter,
    /// Connections taken from the system.
    pub accepted: Counter,
    /// CONNECT answered with success: 3.1.1, 5.0.
    connected: [Counter; 2],
    refused: [[Counter; CAUSES]; 3],
    closed: [Counter; CLOSED],
    packets_in: [Counter; TYPES],
    packets_out: [Counter; TYPES],
    published_in: [[Counter; RESULTS]; 3],
    published_out: [[Counter; RESULTS]; 3],
    queue_dropped: [Counter; 3],
    /// QoS 0 copies dropped because their client reads too slowly.
    pub qos0_dropped: Counter,
    /// QoS 1 messages that wait or are in flight.
    pub queue_messages: Counter,
    /// Bytes of those.
    pub queue_bytes: Counter,
    /// Copies that expired before they were sent.
    pub expired: Counter,
    /// Publishes of clients that are not acknowledged yet.
    pub inflight: Counter,
    /// PUBLISH packets with DUP.
    pub dup_in: Counter,
    suback: Mutex<BTreeMap<u8, u64>>,
    loops: Mutex<BTreeMap<(Box<str>, &'static str), u64>>,
    malformed: Mutex<BTreeMap<&'static str, u64>>,
    /// Copies above the client's Maximum Packet Size.
    pub too_large_for_peer: Counter,
    /// Connections closed for silence.
    pub keepalive_timeouts: Counter,
    /// Answers that came after another one or too late.
    pub late_reply: Counter,
    /// User properties with reserved names that were removed.
    pub reserved_meta_removed: Counter,
    /// Takeovers by the same principal.
    pub takeovers_same: Counter,
    /// Takeovers refused because the principal differs.
    pub takeovers_other: Counter,
    /// Temporary failures of the accept call.
    pub accept_retries: Counter,
}

impl ListenerMetrics {
    pub(crate) fn connected(&self, version: Version) -> &Counter {
        &self.connected[usize::from(version.is_v5())]
    }

    /// Refusals of one kind.
    pub fn refused(&self, op: Op, cause: Cause) -> &Counter {
        &self.refused[op.index()][cause.index()]
    }

    /// Connections ended for one reason.
    pub fn closed(&self, reason: Closed) -> &Counter {
        &self.closed[reason.index()]
    }

    pub(crate) fn packets_in(&self, packet: PacketType) -> &Counter {
        &self.packets_in[type_index(packet)]
    }

    pub(crate) fn packets_out(&self, packet: PacketType) -> &Counter {
        &self.packets_out[type_index(packet)]
    }

    /// Publishes of clients, by QoS and result.
    pub fn published_in(&self, qos: QoS, result: PublishResult) -> &Counter {
        &self.published_in[usize::from(qos.bits())][result.index()]
    }

    /// Copies toward clients, by QoS and result.
    pub fn published_out(&self, qos: QoS, result: PublishResult) -> &Counter {
        &self.published_out[usize::from(qos.bits())][result.index()]
    }

    /// QoS 1 messages that a full session queue cost.
    pub fn queue_dropped(&self, policy: QueueFull) -> &Counter {
        &self.queue_dropped[match policy {
            QueueFull::DropNewest => 0,
            QueueFull::DropOldest => 1,
            QueueFull::EndSession => 2,
        }]
    }

    pub(crate) fn suback(&self, code: ReasonCode) {
        let mut codes = self.suback.lock().unwrap_or_else(PoisonError::into_inner);
        *codes.entry(code.code()).or_default() += 1;
    }

    /// A publish that came round and does not enter `route` again; routes come from configuration.
    pub(crate) fn loop_suppressed(&self, route: &str, how: &'static str) {
        let mut loops = self.loops.lock().unwrap_or_else(PoisonError::into_inner);
        *loops.entry((route.into(), how)).or_default() += 1;
    }

    /// `rule` is one of the codec's constants, so the map is as bounded as their list.
    pub(crate) fn malformed(&self, rule: &'static str) {
        let mut rules = self
            .malformed
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *rules.entry(rule).or_default() += 1;
    }

    /// How often a rule of the bad-input table was broken. [mqtt 3.5]
    pub fn malformed_count(&self, rule: &str) -> u64 {
        let rules = self
            .malformed
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        rules.get(rule).copied().unwrap_or_default()
    }
}

/// All refusals of one listener, for a test or a status line.
impl ListenerMetrics {
    /// Refusals of every kind together.
    pub fn refused_total(&self) -> u64 {
        self.refused.iter().flatten().map(Counter::get).sum()
    }
}

fn type_index(packet: PacketType) -> usize {
    usize::from(packet.first_byte(0) >> 4)
}
