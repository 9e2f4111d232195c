//! Every metric name and label key, with help text [gateway 6]. Nothing else may spell one.
//!
//! Label values come from the configuration or from the closed enums here and in [`outcome`](crate::outcome), never from a
//! topic, a foreign id, an address or a fingerprint: the number of series is known from the configuration.

/// What every name begins with, except the standard `process_` series.
pub const PREFIX: &str = "weida_gateway_";

/// One metric: its full name, kind, label keys and help text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// Full name, as it is scraped; a counter's ends in `_total`.
    pub name: &'static str,
    /// How its value moves.
    pub kind: Kind,
    /// Label keys, in order.
    pub labels: &'static [&'static str],
    /// Help text, one phrase.
    pub help: &'static str,
}

impl Metric {
    /// The name to register where a library adds `_total` to counters by itself.
    #[must_use]
    pub fn base_name(&self) -> &'static str {
        match self.kind {
            Kind::Counter => self.name.strip_suffix("_total").unwrap_or(self.name),
            Kind::Gauge | Kind::Histogram => self.name,
        }
    }
}

/// How a metric's value moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only up.
    Counter,
    /// Up and down.
    Gauge,
    /// Observations in buckets.
    Histogram,
}

/// Label keys.
pub mod label {
    /// The configured route.
    pub const ROUTE: &str = "route";
    /// The configured listener.
    pub const LISTENER: &str = "listener";
    /// The configured broker.
    pub const BROKER: &str = "broker";
    /// Why: [`DropCause`](crate::DropCause), or the closed enum of the series.
    pub const CAUSE: &str = "cause";
    /// State of a route or breaker.
    pub const STATE: &str = "state";
    /// Why a connection ended.
    pub const REASON: &str = "reason";
    /// What was refused: [`RefusedOp`](super::RefusedOp).
    pub const OP: &str = "op";
    /// How a loop was seen: `via`, `hops` or `echo`.
    pub const HOW: &str = "how";
    /// `dialled` or `accepted`; of traffic: `sent` or `received`.
    pub const DIRECTION: &str = "direction";
    /// `yes` or `no`.
    pub const SAME_PRINCIPAL: &str = "same_principal";
    /// Result of a reload: `applied`, `rejected` or `unchanged`.
    pub const RESULT: &str = "result";
    /// Kind of a store error.
    pub const KIND: &str = "kind";
    /// Handler of the admin service.
    pub const HANDLER: &str = "handler";
    /// HTTP status.
    pub const CODE: &str = "code";
    /// Version of this build.
    pub const VERSION: &str = "version";
    /// Commit of this build.
    pub const COMMIT: &str = "commit";
    /// Target triple of this build.
    pub const TARGET: &str = "target";
}

macro_rules! metrics {
    ($($id:ident: $kind:ident $name:literal [$($label:ident),*] $help:literal;)+) => {
        $(
            #[doc = $help]
            pub const $id: Metric = Metric {
                name: concat!("weida_gateway_", $name),
                kind: Kind::$kind,
                labels: &[$(label::$label),*],
                help: $help,
            };
        )+

        /// Every metric here, in the order of the table.
        pub const ALL: &[Metric] = &[$($id),+];
    };
}

metrics! {
    BUILD_INFO: Gauge "build_info" [VERSION, COMMIT, TARGET] "Always 1; the labels say what runs.";
    START_TIME: Gauge "start_time_seconds" [] "When this process started, in seconds since 1970.";
    READY: Gauge "ready" [] "1 when the gateway takes traffic.";
    DRAINING: Gauge "draining" [] "1 while the gateway is ending.";
    CONFIG_GENERATION: Gauge "config_generation" [] "Number of the configuration that runs.";
    CONFIG_LAST_RELOAD_SUCCESS: Gauge "config_last_reload_success" [] "1 when the last reload was applied.";
    CONFIG_LAST_RELOAD_TIMESTAMP: Gauge "config_last_reload_timestamp_seconds" [] "When the last reload was tried, in seconds since 1970.";
    RELOADS: Counter "reloads_total" [RESULT] "Reloads by result.";

    ROUTE_RECEIVED: Counter "route_received_total" [ROUTE] "Messages that entered the route.";
    ROUTE_RECEIVED_BYTES: Counter "route_received_bytes_total" [ROUTE] "Payload bytes that entered the route.";
    ROUTE_DELIVERED: Counter "route_delivered_total" [ROUTE] "Messages that reached what the route asks for.";
    ROUTE_DELIVERED_BYTES: Counter "route_delivered_bytes_total" [ROUTE] "Payload bytes that reached what the route asks for.";
    ROUTE_FILTERED: Counter "route_filtered_total" [ROUTE] "Messages for which the route's condition did not hold.";
    ROUTE_DROPPED: Counter "route_dropped_total" [ROUTE, CAUSE] "Messages lost here, by cause.";
    ROUTE_DEAD_LETTERED: Counter "route_dead_lettered_total" [ROUTE, CAUSE] "Messages kept aside for an operator, by cause.";
    ROUTE_EXPIRED: Counter "route_expired_total" [ROUTE] "Messages whose own lifetime ended before delivery.";
    ROUTE_RETRIES: Counter "route_retries_total" [ROUTE, CAUSE] "Attempts after the first one, by what ended the one before.";
    ROUTE_RETRY_BUDGET_EXHAUSTED: Counter "route_retry_budget_exhausted_total" [ROUTE] "Times the retry budget made a message wait.";
    ROUTE_DUPLICATES_POSSIBLE: Counter "route_duplicates_possible_total" [ROUTE] "Messages sent again that may have arrived before.";
    ROUTE_INDETERMINATE: Counter "route_indeterminate_total" [ROUTE] "Attempts of unknown outcome.";
    ROUTE_COPIES_DROPPED: Counter "route_copies_dropped_total" [ROUTE, CAUSE] "Single copies of a fan-out that were dropped, by cause.";
    ROUTE_IN_FLIGHT: Gauge "route_in_flight" [ROUTE] "Messages on their way to the destination.";
    ROUTE_QUEUED: Gauge "route_queued" [ROUTE] "Messages that wait in the route.";
    ROUTE_QUEUED_BYTES: Gauge "route_queued_bytes" [ROUTE] "Payload bytes that wait in the route.";
    ROUTE_SPOOLED_BYTES: Gauge "route_spooled_bytes" [ROUTE] "Payload bytes of the route in the store.";
    ROUTE_OLDEST_AGE: Gauge "route_oldest_age_seconds" [ROUTE] "Age of the oldest message in the route.";
    ROUTE_DIFFERENCE: Gauge "route_conservation_difference" [ROUTE] "What the accounting law leaves over; a lasting value other than 0 is a bug.";
    ROUTE_STATE: Gauge "route_state" [ROUTE, STATE] "1 for the state the route is in.";
    ROUTE_BREAKER_STATE: Gauge "route_breaker_state" [ROUTE, STATE] "1 for the state the route's breaker is in.";
    ROUTE_LATENCY: Histogram "route_latency_seconds" [ROUTE] "From ingress to settled.";
    ROUTE_ATTEMPT: Histogram "route_attempt_seconds" [ROUTE] "Duration of single attempts.";
    LOOP_SUPPRESSED: Counter "loop_suppressed_total" [ROUTE, HOW] "Messages that had been here before.";
    NAMES_RESPELLED: Counter "names_respelled_total" [ROUTE] "Names whose spelling is outside the bijection and changed.";

    LISTENER_SESSIONS: Gauge "listener_sessions" [LISTENER] "Sessions of the listener.";
    LISTENER_ACCEPTED: Counter "listener_accepted_total" [LISTENER] "Connections that opened.";
    LISTENER_CLOSED: Counter "listener_closed_total" [LISTENER, REASON] "Connections that ended, by reason.";
    LISTENER_REFUSED: Counter "listener_refused_total" [LISTENER, OP, CAUSE] "Refusals to clients.";
    LISTENER_HANDSHAKE: Histogram "listener_handshake_seconds" [LISTENER] "From accept to open.";
    SESSION_TAKEOVERS: Counter "session_takeovers_total" [LISTENER, SAME_PRINCIPAL] "Live sessions that a new connection took over or tried to.";

    BROKER_UP: Gauge "broker_up" [BROKER] "1 while connected.";
    BROKER_CONNECTS: Counter "broker_connects_total" [BROKER] "Connections that opened.";
    BROKER_DISCONNECTS: Counter "broker_disconnects_total" [BROKER, REASON] "Connections that ended, by reason.";
    BROKER_RTT: Gauge "broker_rtt_seconds" [BROKER] "Last round trip of the protocol's own ping.";
    BROKER_IN_FLIGHT: Gauge "broker_in_flight" [BROKER] "Messages the broker has not answered for.";
    BROKER_SEND_WINDOW: Gauge "broker_send_window" [BROKER] "Messages the broker allows to be unanswered.";

    PEER_CONNECTIONS: Gauge "peer_connections" [DIRECTION] "Connections to weida peers.";
    PEER_STREAMS: Gauge "peer_streams" [DIRECTION] "Open streams of weida peers.";
    QUIC_PACKETS_LOST: Counter "quic_packets_lost_total" [DIRECTION] "Packets that loss detection gave up.";
    QUIC_UDP_BYTES: Counter "quic_udp_bytes_total" [DIRECTION] "Bytes of UDP payload.";
    QUIC_UDP_DATAGRAMS: Counter "quic_udp_datagrams_total" [DIRECTION] "UDP datagrams.";
    QUIC_UDP_IOS: Counter "quic_udp_ios_total" [DIRECTION] "System calls for UDP; datagrams over this is the batching factor.";

    STORE_WRITE: Histogram "store_write_seconds" [] "Duration of store writes without their sync.";
    STORE_SYNC: Histogram "store_sync_seconds" [] "Duration of store syncs.";
    STORE_BATCH_MESSAGES: Histogram "store_batch_messages" [] "Messages that one sync served.";
    STORE_BYTES: Gauge "store_bytes" [] "Bytes in the store.";
    STORE_MESSAGES: Gauge "store_messages" [] "Messages in the store.";
    STORE_FREE_DISK_BYTES: Gauge "store_free_disk_bytes" [] "Free bytes where the store lives.";
    STORE_ERRORS: Counter "store_errors_total" [KIND] "Store operations that failed.";

    TLS_CERTIFICATE_EXPIRY: Gauge "tls_certificate_expiry_timestamp_seconds" [LISTENER] "When the listener's certificate ends, in seconds since 1970.";
    MEMORY_PRESSURE: Gauge "memory_pressure" [] "0 none, 1 refusing new sessions, 2 reading stopped.";
    ADMIN_REQUESTS: Counter "admin_requests_total" [HANDLER, CODE] "Requests to the admin service.";
    LOG_SUPPRESSED: Counter "log_suppressed_total" [] "Log lines that repeated too fast.";
    AUDIT_LINES: Counter "audit_lines_total" [] "Audit lines written.";
}

/// Upper bounds of the latency buckets, in seconds: 50 us to 10 s, each 2 or 2.5 times the one before.
pub const LATENCY_BUCKETS: [f64; 17] = [
    0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0,
    2.5, 5.0, 10.0,
];

/// Gives a closed set of label values a type.
macro_rules! values {
    ($(#[$doc:meta])* $type:ident: $($(#[$variant_doc:meta])* $variant:ident = $value:literal,)+) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $type {
            $($(#[$variant_doc])* $variant),+
        }

        impl $type {
            /// Every value, so that each series exists from the start.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The label value.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $value),+
                }
            }
        }
    };
}

values! {
    /// What a listener refused to a client.
    RefusedOp:
    /// To connect.
    Connect = "connect",
    /// To publish.
    Publish = "publish",
    /// To subscribe.
    Subscribe = "subscribe",
}

values! {
    /// Why a listener refused something to a client.
    RefusedCause:
    /// It did not prove who it is.
    NotAuthenticated = "not_authenticated",
    /// A grant says no.
    NotAuthorized = "not_authorized",
    /// A name that cannot be carried.
    BadName = "bad_name",
    /// A name longer than the other side takes.
    NameTooLong = "name_too_long",
    /// A message over the bound.
    TooLarge = "too_large",
    /// More metadata than crosses a route.
    MetaTooLarge = "meta_too_large",
    /// A count is at its bound.
    Limit = "limit",
    /// Faster than allowed.
    RateLimited = "rate_limited",
    /// The label belongs to another principal now.
    LabelInUse = "label_in_use",
    /// An operator banned it.
    Banned = "banned",
    /// The gateway is ending.
    Draining = "draining",
    /// Something this version does not have.
    Unsupported = "unsupported",
    /// Bytes that break the protocol.
    Malformed = "malformed",
    /// A fault of ours.
    Internal = "internal",
}

values! {
    /// What a route is doing [gateway rule 6].
    RouteState:
    /// Messages move.
    Flowing = "flowing",
    /// Nothing to move.
    Idle = "idle",
    /// The destination takes nothing more for now.
    Blocked = "blocked",
    /// Attempts fail and go on.
    Retrying = "retrying",
    /// An operator paused it.
    Paused = "paused",
    /// It cannot go on by itself.
    Broken = "broken",
}

values! {
    /// What ended an attempt that is tried again.
    RetryCause:
    /// It took too long.
    Timeout = "timeout",
    /// The destination said not now.
    Refused = "refused",
    /// The connection ended.
    Disconnected = "disconnected",
    /// The destination gave it back.
    Nack = "nack",
    /// Anything else.
    Error = "error",
}

values! {
    /// Why a single copy of a fan-out was dropped.
    CopyDropCause:
    /// The subscriber's share of memory is used up.
    SubscriberBudget = "subscriber_budget",
    /// The subscriber's queue is full.
    SubscriberQueue = "subscriber_queue",
    /// No connection of the subscriber is open.
    NoParkedConnection = "no_parked_connection",
    /// Our grants decline its copies.
    Declined = "declined",
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn gateway_6_names_are_well_formed_and_unique() {
        let mut names = BTreeSet::new();
        for metric in ALL {
            assert!(names.insert(metric.name), "{} twice", metric.name);
            let bare = metric.name.strip_prefix(PREFIX).unwrap();
            assert!(
                bare.bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte == b'_'),
                "{bare}"
            );
            assert_eq!(
                metric.kind == Kind::Counter,
                metric.name.ends_with("_total"),
                "{bare}"
            );
            assert!(
                metric.help.ends_with('.') && metric.help.len() > 10,
                "{bare}"
            );
            let distinct: BTreeSet<_> = metric.labels.iter().collect();
            assert_eq!(distinct.len(), metric.labels.len(), "{bare}");
        }
    }

    /// The route and listener part of the table, name by name with its labels.
    #[test]
    fn gateway_6_route_and_listener_series() {
        let of = |prefix: &str| -> Vec<String> {
            ALL.iter()
                .filter_map(|metric| {
                    let bare = metric.name.strip_prefix(PREFIX)?;
                    bare.starts_with(prefix)
                        .then(|| format!("{bare}({})", metric.labels.join(",")))
                })
                .collect()
        };
        assert_eq!(
            of("route_").join(" "),
            "route_received_total(route) route_received_bytes_total(route) route_delivered_total(route) \
             route_delivered_bytes_total(route) route_filtered_total(route) route_dropped_total(route,cause) \
             route_dead_lettered_total(route,cause) route_expired_total(route) route_retries_total(route,cause) \
             route_retry_budget_exhausted_total(route) route_duplicates_possible_total(route) \
             route_indeterminate_total(route) route_copies_dropped_total(route,cause) route_in_flight(route) \
             route_queued(route) route_queued_bytes(route) route_spooled_bytes(route) \
             route_oldest_age_seconds(route) route_conservation_difference(route) route_state(route,state) \
             route_breaker_state(route,state) \
             route_latency_seconds(route) route_attempt_seconds(route)"
        );
        assert_eq!(
            of("listener_").join(" "),
            "listener_sessions(listener) listener_accepted_total(listener) listener_closed_total(listener,reason) \
             listener_refused_total(listener,op,cause) listener_handshake_seconds(listener)"
        );
    }

    #[test]
    fn gateway_6_refused_causes_are_the_closed_list() {
        let values: Vec<_> = RefusedCause::ALL
            .iter()
            .map(|cause| cause.as_str())
            .collect();
        assert_eq!(
            values.join(" "),
            "not_authenticated not_authorized bad_name name_too_long too_large meta_too_large limit \
             rate_limited label_in_use banned draining unsupported malformed internal"
        );
    }

    #[test]
    fn gateway_rule_6_there_are_six_route_states() {
        let values: Vec<_> = RouteState::ALL.iter().map(|state| state.as_str()).collect();
        assert_eq!(
            values,
            ["flowing", "idle", "blocked", "retrying", "paused", "broken"]
        );
    }

    #[test]
    fn latency_buckets_rise_from_50_us_to_10_s() {
        assert_eq!((LATENCY_BUCKETS[0], LATENCY_BUCKETS[16]), (0.00005, 10.0));
        assert!(
            LATENCY_BUCKETS
                .windows(2)
                .all(|pair| (1.9..2.6).contains(&(pair[1] / pair[0])))
        );
    }

    #[test]
    fn base_names_leave_total_to_the_library() {
        assert_eq!(ROUTE_RECEIVED.base_name(), "weida_gateway_route_received");
        assert_eq!(ROUTE_IN_FLIGHT.base_name(), "weida_gateway_route_in_flight");
    }
}
