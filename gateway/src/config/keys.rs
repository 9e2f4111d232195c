//! Every key the configuration knows, as data: type, bounds, whether this version has it, one line of documentation.
//!
//! The loader, the environment overrides, the reference page and the "not available" test all read this one table.
//! A key of a later version stands here as [`State::Later`]: it is refused by name, never ignored.

/// What a key holds.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    /// Text.
    Str,
    /// Texts.
    StrList,
    /// `true` or `false`.
    Bool,
    /// A whole number within bounds.
    Int(i64, i64),
    /// A number within bounds.
    Float(f64, f64),
    /// A text with a unit of time, within bounds in milliseconds.
    Duration(u64, u64),
    /// A text with a unit of bytes, within bounds in bytes.
    Size(u64, u64),
    /// One of some words.
    Choice(&'static [Word]),
    /// Several of some words.
    Choices(&'static [Word]),
    /// A table.
    Table(&'static [Key]),
    /// An array of tables.
    Tables(&'static [Key]),
    /// Anything: the check of that key decides, or it belongs to a later version.
    Any,
}

/// One word of a choice.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Word {
    pub(crate) word: &'static str,
    pub(crate) later: bool,
}

/// Whether this version has a key.
#[derive(Debug, Clone, Copy)]
pub(crate) enum State {
    /// It does.
    Now,
    /// It doesn't, except for the values listed, which ask for what this version does anyway.
    Later(&'static [&'static str]),
    /// Its place is elsewhere; the text says where.
    Gone(&'static str),
}

/// One key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) state: State,
    /// Protocols of a `[[listen]]` it belongs to; empty = all.
    pub(crate) only: &'static [&'static str],
    /// Default as the reference page shows it.
    pub(crate) default: &'static str,
    pub(crate) doc: &'static str,
}

const fn now(name: &'static str, kind: Kind, default: &'static str, doc: &'static str) -> Key {
    Key {
        name,
        kind,
        state: State::Now,
        only: &[],
        default,
        doc,
    }
}

const fn of(
    only: &'static [&'static str],
    name: &'static str,
    kind: Kind,
    default: &'static str,
    doc: &'static str,
) -> Key {
    Key {
        name,
        kind,
        state: State::Now,
        only,
        default,
        doc,
    }
}

const fn later(name: &'static str, kind: Kind) -> Key {
    later_but(name, kind, &[])
}

const fn later_but(name: &'static str, kind: Kind, same: &'static [&'static str]) -> Key {
    Key {
        name,
        kind,
        state: State::Later(same),
        only: &[],
        default: "",
        doc: "",
    }
}

const fn gone(name: &'static str, place: &'static str) -> Key {
    Key {
        name,
        kind: Kind::Any,
        state: State::Gone(place),
        only: &[],
        default: "",
        doc: "",
    }
}

const fn has(word: &'static str) -> Word {
    Word { word, later: false }
}

const fn soon(word: &'static str) -> Word {
    Word { word, later: true }
}

/// Longest time any key takes: a year. Longer is a slip of the pen, and sums of times stay far from their limits.
const YEAR: u64 = 365 * 24 * 3600 * 1000;
const HOUR: u64 = 3600 * 1000;
const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;
const GIB: u64 = 1024 * MIB;
const MQTT: &[&str] = &["mqtt"];
const WEIDA: &[&str] = &["weida"];

/// The whole document.
pub(crate) const ROOT: &[Key] = &[
    now("gateway", Kind::Table(GATEWAY), "", "The process itself."),
    now(
        "identity",
        Kind::Table(IDENTITY),
        "",
        "The only thing weida peers see of this process.",
    ),
    now(
        "listen",
        Kind::Tables(LISTEN),
        "",
        "One bound address each, and what is served there.",
    ),
    now(
        "route",
        Kind::Tables(ROUTE),
        "",
        "One source, one destination each.",
    ),
    now(
        "credential",
        Kind::Tables(CREDENTIAL),
        "",
        "Password files.",
    ),
    now(
        "grant",
        Kind::Tables(GRANT),
        "",
        "Who may do what. Denied by default; the first grant whose `who` and `listen` match decides alone.",
    ),
    now("limits", Kind::Table(LIMITS), "", "Bounds of the process."),
    now(
        "admin",
        Kind::Table(ADMIN),
        "",
        "Health and metrics over HTTP.",
    ),
    now("telemetry", Kind::Table(TELEMETRY), "", "Logs."),
    later("broker", Kind::Tables(&[])),
    later("tenant", Kind::Tables(&[])),
    later("store", Kind::Table(STORE)),
    later("ha", Kind::Table(&[])),
];

const GATEWAY: &[Key] = &[
    now(
        "name",
        Kind::Str,
        "`\"weida-gateway\"`",
        "Label in logs and metrics; not an identity.",
    ),
    now(
        "worker_threads",
        Kind::Int(0, 1024),
        "`0`",
        "Threads of the runtime; 0 = one per core.",
    ),
    now(
        "data_dir",
        Kind::Str,
        "required",
        "Folder of the identity; relative paths start at the file's folder.",
    ),
    now(
        "drain_timeout",
        Kind::Duration(1, HOUR),
        "`\"8s\"`",
        "Bound of the whole drain.",
    ),
    now(
        "drain_delay",
        Kind::Duration(0, HOUR),
        "`\"0s\"`",
        "How long a drain goes on serving, unready.",
    ),
    now(
        "allow_inline_secrets",
        Kind::Bool,
        "`false`",
        "Accept secrets written into the file, with a warning.",
    ),
    later_but("strict_start", Kind::Bool, &["false"]),
    later_but(
        "readiness",
        Kind::Choice(&[has("started"), has("strict")]),
        &["started"],
    ),
];

const IDENTITY: &[Key] = &[
    now(
        "key_file",
        Kind::Str,
        "`<data_dir>/identity.key`",
        "PEM private key; created with mode 0600 when absent.",
    ),
    now(
        "cert_file",
        Kind::Str,
        "none",
        "PEM chain of a CA-issued identity.",
    ),
    now(
        "trust",
        Kind::StrList,
        "`[]`",
        "`sha256:HEX` pins and `ca:FILE` anchors. Empty: any proved key may connect (grants decide), and dialled \
         addresses must name their key.",
    ),
];

/// Words of `listen.protocol`.
pub(crate) const PROTOCOLS: &[Word] = &[
    has("weida"),
    has("mqtt"),
    soon("amqp10"),
    soon("zmq"),
    soon("amqp091"),
    soon("nats"),
];

const LISTEN: &[Key] = &[
    now(
        "name",
        Kind::Str,
        "required",
        "Unique name: letters, digits, `-`, `_`, `.`.",
    ),
    now(
        "protocol",
        Kind::Choice(PROTOCOLS),
        "required",
        "`weida` or `mqtt`.",
    ),
    now(
        "bind",
        Kind::Str,
        "required",
        "`HOST:PORT`; HOST is an IP address or `localhost`, port 0 lets the system choose.",
    ),
    of(
        WEIDA,
        "require_client_identity",
        Kind::Bool,
        "`true`",
        "False lets peers in that prove no key: they are `anonymous`.",
    ),
    Key {
        only: WEIDA,
        ..later_but("shards", Kind::Int(1, 1024), &["1"])
    },
    of(MQTT, "tls", Kind::Table(SERVER_TLS), "none", "Serve TLS."),
    of(
        MQTT,
        "auth",
        Kind::Choices(&[
            has("client-cert"),
            has("password"),
            has("anonymous"),
            soon("scram"),
            soon("token"),
        ]),
        "required",
        "Methods in the order they are tried. `anonymous` must be spelled out.",
    ),
    of(
        MQTT,
        "allow_plaintext_password",
        Kind::Bool,
        "`false`",
        "Accept passwords on plain TCP beyond loopback.",
    ),
    of(
        MQTT,
        "max_sessions",
        Kind::Int(1, 1_000_000),
        "`10000`",
        "Sessions of this listener.",
    ),
    of(
        MQTT,
        "handshake_timeout",
        Kind::Duration(100, HOUR),
        "`\"5s\"`",
        "Accept until CONNECT is complete, TLS included.",
    ),
    of(
        MQTT,
        "keep_alive_max",
        Kind::Duration(1000, 65_535_000),
        "`\"1200s\"`",
        "Longest keep-alive a client gets.",
    ),
    of(
        MQTT,
        "legacy_refusal",
        Kind::Choice(&[has("close"), has("swallow")]),
        "`\"close\"`",
        "What a refused 3.1.1 publish gets: `swallow` acknowledges, drops and counts.",
    ),
    of(
        MQTT,
        "label_policy",
        Kind::Choice(&[has("one-principal"), has("any")]),
        "`\"one-principal\"`",
        "`any`: equal client ids of different principals are separate sessions.",
    ),
    now(
        "max_message_bytes",
        Kind::Size(KIB, GIB),
        "`limits.max_message_bytes`",
        "Largest payload.",
    ),
    of(
        MQTT,
        "mqtt",
        Kind::Table(LISTEN_MQTT),
        "",
        "Keys only MQTT has.",
    ),
    Key {
        only: MQTT,
        ..later_but("session_expiry_max", Kind::Duration(0, YEAR), &["0s"])
    },
    Key {
        only: MQTT,
        ..later_but("anonymous_sessions", Kind::Bool, &["false"])
    },
    Key {
        only: MQTT,
        ..later_but("proxy_protocol", Kind::Any, &["false"])
    },
    later("tenant", Kind::Str),
    later("amqp", Kind::Table(&[])),
    later("nats", Kind::Table(&[])),
    later("zmq", Kind::Table(&[])),
    later("pattern", Kind::Any),
    later("curve", Kind::Any),
    later("plain", Kind::Any),
];

const SERVER_TLS: &[Key] = &[
    now("cert_file", Kind::Str, "required", "PEM chain, leaf first."),
    now(
        "key_file",
        Kind::Str,
        "required",
        "PEM private key; not world-readable.",
    ),
    now(
        "client_ca_file",
        Kind::Str,
        "none",
        "PEM authorities of client certificates.",
    ),
    now(
        "client_auth",
        Kind::Choice(&[has("none"), has("optional"), has("required")]),
        "`\"optional\"` with `client_ca_file`, else `\"none\"`",
        "Whether clients present a certificate.",
    ),
    later("client_crl_file", Kind::Str),
];

const LISTEN_MQTT: &[Key] = &[
    now(
        "group",
        Kind::Str,
        "the listener's name",
        "Listeners of one group share sessions and client-to-client traffic.",
    ),
    now(
        "routes_only",
        Kind::Bool,
        "`false`",
        "True switches client-to-client exchange off.",
    ),
    now(
        "queue_messages",
        Kind::Int(1, 1_000_000),
        "`1000`",
        "Outbound queue of one session.",
    ),
    now(
        "queue_bytes",
        Kind::Size(KIB, GIB),
        "`\"8MiB\"`",
        "The same in bytes.",
    ),
    now(
        "queue_full",
        Kind::Choice(&[
            has("drop-newest"),
            has("drop-oldest"),
            soon("drop-oldest-qos0-first"),
            has("end-session"),
            soon("block"),
        ]),
        "`\"drop-newest\"`",
        "What happens to a message for a full queue.",
    ),
    now(
        "receive_maximum",
        Kind::Int(1, 65_535),
        "`64`",
        "Receive Maximum announced.",
    ),
    now(
        "max_inflight_out",
        Kind::Int(1, 65_535),
        "`64`",
        "Unacknowledged publishes sent to one client.",
    ),
    now(
        "topic_alias_max",
        Kind::Int(0, 65_535),
        "`16`",
        "Topic aliases each way.",
    ),
    now(
        "max_topic_bytes",
        Kind::Int(1, 65_535),
        "`1024`",
        "Longest MQTT topic.",
    ),
    now(
        "max_levels",
        Kind::Int(1, 128),
        "`32`",
        "Most topic levels.",
    ),
    now(
        "max_client_id_bytes",
        Kind::Int(1, 65_535),
        "`128`",
        "Longest client id.",
    ),
    now(
        "keep_alive_zero",
        Kind::Choice(&[has("replace"), has("allow")]),
        "`\"replace\"`",
        "What keep-alive 0 of a client means.",
    ),
    now(
        "idle_max",
        Kind::Duration(1000, YEAR),
        "`\"1h\"`",
        "Longest silence of a 3.1.1 client with keep-alive 0.",
    ),
    now(
        "write_stall",
        Kind::Duration(100, HOUR),
        "`\"30s\"`",
        "No progress on a socket with data pending: closed.",
    ),
    now(
        "auth_cache",
        Kind::Duration(0, 24 * HOUR),
        "`\"10m\"`",
        "How long a verified password is remembered.",
    ),
    later_but("max_qos", Kind::Int(0, 2), &["1"]),
    later_but("retain", Kind::Bool, &["false"]),
    later("websocket", Kind::Any),
    later_but("strict_utf8", Kind::Bool, &["true"]),
    later_but("validate_payload_utf8", Kind::Any, &["false"]),
    later_but("v3_session_expiry", Kind::Duration(0, YEAR), &["0s"]),
    later_but("sessions", Kind::Any, &["never"]),
    later("durable_sessions", Kind::Any),
    later("qos2_transient_dedup", Kind::Any),
    later("queue_qos0", Kind::Any),
    later("queue_cache", Kind::Any),
    later("share_strategy", Kind::Any),
    later("reassign", Kind::Any),
    later("check_retain_source", Kind::Any),
    later("will_on_shutdown", Kind::Any),
    later("qos0_refusal", Kind::Any),
    later("qos0_block", Kind::Any),
    later_but("response_information", Kind::Any, &["false"]),
    later_but("sys_topics", Kind::Any, &["false"]),
];

const ROUTE: &[Key] = &[
    now(
        "name",
        Kind::Str,
        "required",
        "Unique name: letters, digits, `-`, `_`, `.`.",
    ),
    now("from", Kind::Table(FROM), "required", "The source."),
    now("to", Kind::Table(TO), "required", "The destination."),
    now(
        "delivery",
        Kind::Choice(&[has("at-least-once"), has("at-most-once")]),
        "`\"at-least-once\"`",
        "A route that can't give at-least-once must say at-most-once.",
    ),
    now(
        "ack_on",
        Kind::Choice(&[
            has("sent"),
            has("receipt"),
            has("accepted"),
            has("stored"),
            has("processed"),
            has("reply"),
        ]),
        "`receipt` (at-least-once), `sent` (at-most-once)",
        "Level at which the source is settled.",
    ),
    now(
        "where",
        Kind::Tables(CONDITION),
        "`[]`",
        "All must hold, else the message is `filtered`.",
    ),
    now("set", Kind::Table(SET), "none", "Changes of metadata."),
    now(
        "overflow",
        Kind::Choice(&[
            has("block"),
            has("reject"),
            has("drop-newest"),
            has("drop-oldest"),
            soon("spill"),
        ]),
        "`\"block\"`",
        "What happens to a message that finds the route full.",
    ),
    now(
        "labels",
        Kind::Bool,
        "`false`",
        "True adds unproved labels (client id, principal) to the metadata.",
    ),
    now(
        "retain",
        Kind::Choice(&[has("as-published"), has("strip"), has("never-forward")]),
        "`\"as-published\"`",
        "What happens to a retained message.",
    ),
    now(
        "max_message_bytes",
        Kind::Size(1, GIB),
        "`limits.max_message_bytes`",
        "Largest payload of this route.",
    ),
    now(
        "timeout",
        Kind::Duration(1, YEAR),
        "none (at-least-once), `\"10s\"` (others)",
        "Whole life of a message in the gateway.",
    ),
    now(
        "attempt_timeout",
        Kind::Duration(1, HOUR),
        "`\"2s\"`",
        "Bound of one try.",
    ),
    now(
        "in_flight",
        Kind::Int(1, 65_536),
        "`256`",
        "Messages at the destination at once.",
    ),
    now(
        "buffer",
        Kind::Table(BUFFER),
        "",
        "Bounds of the route's queue.",
    ),
    now(
        "retry",
        Kind::Table(RETRY),
        "",
        "Budget of tries beyond the first.",
    ),
    now(
        "dead_letter",
        Kind::Table(DEAD_LETTER),
        "",
        "What ends a message that can't be delivered.",
    ),
    now(
        "idempotent",
        Kind::Bool,
        "`false`",
        "Whether a request may be tried again.",
    ),
    now(
        "max_pending_replies",
        Kind::Int(1, 1_000_000),
        "`4096`",
        "Requests waiting for their reply.",
    ),
    now(
        "max_hops",
        Kind::Int(1, 16),
        "`4`",
        "Gateways a message may have passed.",
    ),
    now(
        "allow_cycle",
        Kind::Bool,
        "`false`",
        "Accept a cycle in the route graph.",
    ),
    later_but(
        "ordering",
        Kind::Choice(&[has("none"), has("per-key"), has("total")]),
        &["none"],
    ),
    later("key", Kind::Str),
    later_but(
        "names",
        Kind::Choice(&[has("weida"), has("nats-server")]),
        &["weida"],
    ),
    later_but("rate", Kind::Table(RATE), &[]),
    later("breaker", Kind::Table(&[])),
    later("dedup", Kind::Table(&[])),
    later_but(
        "on_unroutable",
        Kind::Choice(&[has("dead"), has("hold")]),
        &["dead"],
    ),
    later("tenant", Kind::Str),
    later_but("cross_tenant", Kind::Bool, &["false"]),
    gone("guarantee", "the key is `delivery`"),
    gone("best_effort", "write `delivery = \"at-most-once\"`"),
    gone("complete_at", "the key is `ack_on`"),
    gone("loop_guard", "the key is `allow_cycle`"),
    gone("max_in_flight", "the key is `in_flight`"),
    gone("confirm_timeout", "the key is `attempt_timeout`"),
    gone("publish_timeout", "the key is `attempt_timeout`"),
    gone("max_pending_requests", "the key is `max_pending_replies`"),
    gone("ordered", "the key is `ordering`"),
];

const RATE: &[Key] = &[
    later_but("per_second", Kind::Int(0, i64::MAX), &["0"]),
    later_but("burst", Kind::Int(0, i64::MAX), &["0"]),
];

const FROM: &[Key] = &[
    now(
        "listen",
        Kind::Str,
        "",
        "Name of an MQTT listener; with `filter`, `qos`.",
    ),
    now(
        "filter",
        Kind::Str,
        "`\"#\"` (weida subscribe); required (MQTT)",
        "MQTT or weida filter.",
    ),
    now(
        "qos",
        Kind::Int(0, 2),
        "`1`",
        "Highest QoS taken from the clients of a listener (0 or 1 in this version).",
    ),
    now(
        "weida",
        Kind::Str,
        "",
        "`/path` (bound here) or `weida://...` (dialled); with `pattern`.",
    ),
    now(
        "pattern",
        Kind::Choice(&[has("subscribe"), has("pull"), has("reply"), soon("queue")]),
        "",
        "`pull` and `reply` take a path, `subscribe` a URL.",
    ),
    later("broker", Kind::Str),
    later("socket", Kind::Str),
    later("shared", Kind::Str),
    later("queue", Kind::Str),
    later("topology", Kind::Any),
    later("declare", Kind::Any),
    later("bind", Kind::Any),
    later("prefetch", Kind::Any),
    later("max_hold", Kind::Any),
    later("address", Kind::Any),
    later("credit", Kind::Any),
    later("settle", Kind::Any),
    later("subject", Kind::Any),
    later("stream", Kind::Any),
    later("consumer", Kind::Any),
    later("filter_subject", Kind::Any),
    later("provision", Kind::Any),
    later("ack_mode", Kind::Any),
    later("ack_wait", Kind::Any),
    later("batch", Kind::Any),
    later("max_deliver", Kind::Any),
    later("backoff", Kind::Any),
    later("hold", Kind::Any),
    later("bucket", Kind::Any),
    later("watch", Kind::Any),
    later("prefix", Kind::Any),
    later("prefix_match", Kind::Any),
    later("demand", Kind::Any),
    later("frames", Kind::Any),
    later("topic_encoding", Kind::Any),
    later("on_error", Kind::Any),
    later("max_pending_per_peer", Kind::Any),
];

const TO: &[Key] = &[
    now(
        "listen",
        Kind::Str,
        "",
        "Name of an MQTT listener; with `topic`, `qos`, `reply`.",
    ),
    now(
        "topic",
        Kind::Str,
        "`\"{topic}\"`",
        "Template of the name at the destination.",
    ),
    now(
        "qos",
        Kind::Int(0, 2),
        "`1`",
        "QoS of the copies (0 or 1 in this version).",
    ),
    now(
        "reply",
        Kind::Choice(&[
            has("response-topic"),
            has("none"),
            soon("direct"),
            soon("exclusive"),
            soon("dynamic"),
            soon("first"),
            soon("many"),
        ]),
        "`\"response-topic\"`",
        "How the answer to a weida request is found.",
    ),
    now(
        "weida",
        Kind::Str,
        "",
        "`/path` (bound here) or `weida://...` (dialled); with `pattern`.",
    ),
    now(
        "pattern",
        Kind::Choice(&[has("publish"), has("push"), has("request"), soon("queue")]),
        "",
        "`publish` takes a path, `push` and `request` a URL.",
    ),
    later_but("retain", Kind::Bool, &["false"]),
    later("broker", Kind::Str),
    later("socket", Kind::Str),
    later("exchange", Kind::Any),
    later("routing_key", Kind::Any),
    later("persistent", Kind::Any),
    later("mandatory", Kind::Any),
    later("topology", Kind::Any),
    later("sink_durability", Kind::Any),
    later("address", Kind::Any),
    later("durable", Kind::Any),
    later("settled", Kind::Any),
    later("subject", Kind::Any),
    later("expect_stream", Kind::Any),
    later("dedup", Kind::Any),
    later("bucket", Kind::Any),
    later("kv", Kind::Any),
    later("max_replies", Kind::Any),
    later("window", Kind::Any),
    later("frames", Kind::Any),
    later("topic_encoding", Kind::Any),
];

const CONDITION: &[Key] = &[
    now(
        "content_type",
        Kind::Str,
        "",
        "The content type is exactly this one.",
    ),
    now(
        "max_payload",
        Kind::Size(0, GIB),
        "",
        "The payload is at most this long.",
    ),
];

const SET: &[Key] = &[
    now(
        "content_type",
        Kind::Str,
        "none",
        "Replaces the content type.",
    ),
    now(
        "meta",
        Kind::Any,
        "none",
        "Entries to add: a table of texts.",
    ),
    now(
        "drop_meta",
        Kind::StrList,
        "`[]`",
        "Names to remove; a trailing `*` is a prefix match.",
    ),
];

const BUFFER: &[Key] = &[
    now(
        "messages",
        Kind::Int(1, 1_000_000),
        "`4096`",
        "Messages waiting.",
    ),
    now(
        "bytes",
        Kind::Size(KIB, 64 * GIB),
        "`\"16MiB\"`",
        "Bytes waiting.",
    ),
];

const RETRY: &[Key] = &[
    now(
        "budget_ratio",
        Kind::Float(0.0, 10.0),
        "`0.2`",
        "Share of the traffic that may be retries.",
    ),
    now(
        "min_per_second",
        Kind::Int(0, 100_000),
        "`10`",
        "Retries per second beside the share.",
    ),
    now(
        "window",
        Kind::Duration(1000, 60_000),
        "`\"10s\"`",
        "Time over which the share is counted.",
    ),
    now(
        "backoff_min",
        Kind::Duration(1, HOUR),
        "`\"50ms\"`",
        "First wait.",
    ),
    now(
        "backoff_max",
        Kind::Duration(1, HOUR),
        "`\"5s\"`",
        "Longest wait.",
    ),
];

const DEAD_LETTER: &[Key] = &[
    now(
        "to",
        Kind::Any,
        "`\"discard\"`",
        "`discard`: the source is told, the loss is counted.",
    ),
    now(
        "max_attempts",
        Kind::Int(1, 1_000_000),
        "`16`",
        "Tries of one message.",
    ),
    later("max_messages", Kind::Any),
    later("max_bytes", Kind::Any),
    later("on_full", Kind::Any),
    later("asserted", Kind::Any),
];

/// Words of `dead_letter.to`; a table in its place belongs to a later version.
pub(crate) const DEAD_LETTER_TO: &[Word] =
    &[has("discard"), soon("store"), soon("broker"), soon("stop")];

const CREDENTIAL: &[Key] = &[
    now(
        "file",
        Kind::Str,
        "required",
        "The file that `weida-gateway passwd` edits; not world-readable.",
    ),
    later("tenant", Kind::Str),
];

const GRANT: &[Key] = &[
    now(
        "who",
        Kind::StrList,
        "required",
        "`user:NAME`, `cert:SHA256`, `cert-subject:CN=NAME`, `peer:sha256:HEX`, `peer:*`, `anonymous`; a trailing `*` \
         is a prefix match.",
    ),
    now(
        "listen",
        Kind::Str,
        "every listener",
        "The listener it holds on.",
    ),
    now(
        "publish",
        Kind::StrList,
        "`[]`",
        "MQTT filters; weida paths (push, request) or `*`.",
    ),
    now(
        "subscribe",
        Kind::StrList,
        "`[]`",
        "MQTT filters; weida paths (subscribe) or `*`.",
    ),
    now(
        "deny_publish",
        Kind::StrList,
        "`[]`",
        "MQTT only: exceptions from `publish`.",
    ),
    now(
        "deny_subscribe",
        Kind::StrList,
        "`[]`",
        "MQTT only: exceptions from `subscribe`.",
    ),
    now(
        "will",
        Kind::StrList,
        "as `publish`",
        "MQTT only: topics of wills.",
    ),
    now(
        "client_id",
        Kind::StrList,
        "any",
        "MQTT only: client ids; a trailing `*` is a prefix match.",
    ),
    later("retain", Kind::StrList),
    now(
        "rate",
        Kind::Table(GRANT_RATE),
        "off",
        "MQTT only: what one session may publish.",
    ),
];

const GRANT_RATE: &[Key] = &[
    now(
        "messages_per_second",
        Kind::Int(1, 10_000_000),
        "off",
        "Messages, with a burst of one second.",
    ),
    now(
        "bytes_per_second",
        Kind::Size(1, 64 * GIB),
        "off",
        "Bytes, with a burst of one second.",
    ),
];

const STORE: &[Key] = &[later("engine", Kind::Any)];

const LIMITS: &[Key] = &[
    now(
        "max_message_bytes",
        Kind::Size(KIB, GIB),
        "`\"1MiB\"`",
        "Largest payload.",
    ),
    now(
        "max_sessions",
        Kind::Int(1, 1_000_000),
        "what open files allow, at most `20000`",
        "Sessions of all listeners.",
    ),
    now(
        "max_connections_per_ip",
        Kind::Int(1, 1_000_000),
        "`256`",
        "Connections of one address; loopback is exempt.",
    ),
    now(
        "new_connections_per_second",
        Kind::Int(1, 1_000_000),
        "`1000`",
        "Accepted connections.",
    ),
    now(
        "max_filters_per_session",
        Kind::Int(1, 100_000),
        "`128`",
        "Filters of one session.",
    ),
    now(
        "max_filters_total",
        Kind::Int(1, 10_000_000),
        "`100000`",
        "Filters of all sessions.",
    ),
    now(
        "max_meta_entries",
        Kind::Int(0, 32),
        "`32`",
        "Metadata entries that cross a route.",
    ),
    now(
        "max_meta_bytes",
        Kind::Size(0, 8 * KIB),
        "`\"8KiB\"`",
        "The same in bytes.",
    ),
    now(
        "max_topic_bytes",
        Kind::Int(1, 256),
        "`256`",
        "Longest mapped weida topic.",
    ),
    later_but("max_retained", Kind::Int(0, i64::MAX), &["0"]),
    later_but("max_retained_bytes", Kind::Size(0, u64::MAX), &["0B"]),
    later("memory_high", Kind::Any),
    later("memory_max", Kind::Any),
];

const ADMIN: &[Key] = &[
    now(
        "bind",
        Kind::Str,
        "`\"127.0.0.1:7480\"`",
        "`HOST:PORT`; beyond loopback it needs a token.",
    ),
    now(
        "token_file",
        Kind::Str,
        "none",
        "File holding the bearer token; not world-readable.",
    ),
    now(
        "token_env",
        Kind::Str,
        "none",
        "Environment variable holding it.",
    ),
    now(
        "token",
        Kind::Str,
        "none",
        "The token itself; needs `gateway.allow_inline_secrets`.",
    ),
    now(
        "metrics_auth",
        Kind::Bool,
        "`false`",
        "Whether `/metrics`, `/livez`, `/readyz` want the token too.",
    ),
    later_but("dashboard", Kind::Bool, &["false"]),
    later("socket", Kind::Str),
    later("client_ca_file", Kind::Str),
];

const TELEMETRY: &[Key] = &[
    now("log", Kind::Table(LOG), "", "Log output, always on stderr."),
    later("audit", Kind::Table(&[])),
    later_but("otlp", Kind::Table(OTLP), &[]),
];

const LOG: &[Key] = &[
    now(
        "format",
        Kind::Choice(&[has("text"), has("json")]),
        "`\"text\"`",
        "Shape of a line.",
    ),
    now(
        "level",
        Kind::Str,
        "`\"info\"`",
        "`error`, `warn`, `info`, `debug`, `trace`, or a filter per target.",
    ),
    later("rate_limit_per_site", Kind::Any),
];

const OTLP: &[Key] = &[
    later_but("endpoint", Kind::Str, &[""]),
    later_but("protocol", Kind::Any, &["grpc"]),
    later_but("sample_ratio", Kind::Float(0.0, 1.0), &["0", "0.0"]),
];

/// A key of a table by its name.
pub(crate) fn find(keys: &'static [Key], name: &str) -> Option<&'static Key> {
    keys.iter().find(|key| key.name == name)
}
