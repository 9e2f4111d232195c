//! What the adapter is told: plain values, already typed, checked together by [`Config::check`].
//!
//! Lives here: every key of the MQTT listener and of the MQTT half of a route, with its default
//! and its reason. Does not live here: TOML, files of the gateway, anything of a socket. The
//! gateway maps its configuration text into these structs; [`crate::MqttAdapter::new`] refuses
//! what cannot be honoured, all of it at once.

mod check;
mod grant;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use weida_bridge::Route;

pub use crate::codec::TopicFilter;
pub use check::{ConfigError, Refused};
pub(crate) use grant::Values;
pub use grant::{Glob, Grant, GrantFilter, PublishRate, Who};

/// Everything one MQTT adapter serves: its listeners, its routes, its logins and its grants.
#[derive(Debug, Clone)]
pub struct Config {
    /// Bound addresses, each with its own rules. At least one.
    pub listeners: Vec<ListenerConfig>,
    /// Routes from these listeners to weida.
    pub ingress: Vec<IngressRoute>,
    /// Routes from weida to the sessions of a listener group.
    pub egress: Vec<EgressRoute>,
    /// Who may do what, in file order; the first that matches decides alone. Empty denies all.
    pub grants: Vec<Grant>,
    /// Password files, read when the adapter is made.
    pub credentials: Vec<CredentialFile>,
    /// Bounds shared by all listeners.
    pub limits: Limits,
    /// First eight bytes of the gateway's fingerprint: the mark in `weida-via` and the name below
    /// `$reply/`. [gateway 8.2]
    pub gateway_id: [u8; 8],
    /// How long `run` may finish connections after its stop was cancelled.
    pub drain_timeout: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listeners: Vec::new(),
            ingress: Vec::new(),
            egress: Vec::new(),
            grants: Vec::new(),
            credentials: Vec::new(),
            limits: Limits::default(),
            gateway_id: [0; 8],
            drain_timeout: Duration::from_secs(8),
        }
    }
}

/// One bound address with its rules. [mqtt 13.1]
///
/// Start from [`ListenerConfig::new`] and change fields: every default is the specification's.
#[derive(Debug, Clone)]
pub struct ListenerConfig {
    /// Name in logs, metrics, grants and routes.
    pub name: Box<str>,
    /// Address to bind; port 0 lets the system choose.
    pub bind: SocketAddr,
    /// TLS, or `None` for plain TCP.
    pub tls: Option<TlsConfig>,
    /// Accepted proofs of who a client is, in the order they are tried. [mqtt 9.1]
    pub auth: Vec<AuthMethod>,
    /// Tenant label, also `{tenant}` of grants and templates.
    pub tenant: Option<Box<str>>,
    /// Listener group: listeners of one group and one tenant share sessions and local traffic.
    pub group: Box<str>,
    /// Switches the exchange between this listener's clients off; only routes carry messages.
    pub routes_only: bool,
    /// Connections and sessions of this listener. Default 10 000.
    pub max_sessions: usize,
    /// Largest payload of one PUBLISH. Default 1 MiB; a packet may be 64 KiB larger.
    pub max_message_bytes: usize,
    /// Largest keep-alive a client may ask for; told as Server Keep Alive. Default 1200 s.
    pub keep_alive_max: Duration,
    /// What keep-alive 0 means. Default: replaced by `keep_alive_max`.
    pub keep_alive_zero: KeepAliveZero,
    /// Longest silence of a 3.1.1 client whose keep-alive 0 cannot be replaced. Default 1 h.
    pub idle_max: Duration,
    /// From accept to a complete CONNECT, TLS included. Default 5 s.
    pub handshake_timeout: Duration,
    /// What a 3.1.1 publisher gets where 3.1.1 has no negative answer. Default close.
    pub legacy_refusal: LegacyRefusal,
    /// Whether one ClientID belongs to one principal. Default yes.
    pub label_policy: LabelPolicy,
    /// Accepts passwords without TLS off loopback.
    pub allow_plaintext_password: bool,
    /// Reads a PROXY v2 header from these addresses before anything else; others are not asked
    /// for one. Empty switches it off.
    pub proxy_from: Vec<std::net::IpAddr>,
    /// Also refuses control characters and noncharacters in strings. [MQTT5 5.4.9]
    pub strict_utf8: bool,
    /// Checks the payload when the publisher says that it is UTF-8. Default off.
    pub validate_payload_utf8: bool,
    /// Outbound queue of one session.
    pub queue: QueueLimits,
    /// Receive Maximum announced, and enforced exactly. Default 64.
    pub receive_maximum: u16,
    /// Unacknowledged publishes toward one client, at most its own Receive Maximum. Default 64.
    pub max_inflight_out: u16,
    /// Topic aliases in each direction. Default 16.
    pub topic_alias_max: u16,
    /// Longest topic or filter in bytes. Default 1024.
    pub max_topic_bytes: usize,
    /// Most levels of a topic or filter. Default 32, never above 128.
    pub max_levels: usize,
    /// Longest ClientID in bytes. Default 128.
    pub max_client_id_bytes: usize,
    /// Highest QoS of a publish or subscription. This version serves 0 and 1.
    pub max_qos: u8,
    /// No progress on a socket with data pending for this long closes it. Default 30 s.
    pub write_stall: Duration,
    /// What a QoS 0 publish that is not granted leads to. Default: dropped and counted.
    pub qos0_refusal: Qos0Refusal,
    /// How long a QoS 0 publish may stop its own connection when a route is full. Default 1 s.
    pub qos0_block: Duration,
    /// How long a verified password is remembered. Default 10 min; zero switches it off.
    pub auth_cache: Duration,
}

impl ListenerConfig {
    /// A plain TCP listener with the specification's defaults and no way to log in yet.
    pub fn new(name: &str, bind: SocketAddr) -> Self {
        Self {
            name: name.into(),
            bind,
            tls: None,
            auth: Vec::new(),
            tenant: None,
            group: "default".into(),
            routes_only: false,
            max_sessions: 10_000,
            max_message_bytes: 1 << 20,
            keep_alive_max: Duration::from_secs(1200),
            keep_alive_zero: KeepAliveZero::Replace,
            idle_max: Duration::from_secs(3600),
            handshake_timeout: Duration::from_secs(5),
            legacy_refusal: LegacyRefusal::Close,
            label_policy: LabelPolicy::OnePrincipal,
            allow_plaintext_password: false,
            proxy_from: Vec::new(),
            strict_utf8: true,
            validate_payload_utf8: false,
            queue: QueueLimits::default(),
            receive_maximum: 64,
            max_inflight_out: 64,
            topic_alias_max: 16,
            max_topic_bytes: 1024,
            max_levels: 32,
            max_client_id_bytes: 128,
            max_qos: 1,
            write_stall: Duration::from_secs(30),
            qos0_refusal: Qos0Refusal::Drop,
            qos0_block: Duration::from_secs(1),
            auth_cache: Duration::from_secs(600),
        }
    }

    /// Largest whole packet accepted: payload plus 64 KiB for topic and properties. [mqtt 8.1]
    pub fn max_packet_bytes(&self) -> usize {
        self.max_message_bytes.saturating_add(64 << 10)
    }
}

/// Certificate files of a TLS listener.
#[derive(Debug, Clone)]
pub struct TlsConfig {
    /// Certificate chain, PEM.
    pub cert_file: PathBuf,
    /// Private key, PEM.
    pub key_file: PathBuf,
    /// Anchors that client certificates are verified against, PEM.
    pub client_ca_file: Option<PathBuf>,
    /// Revoked client certificates, PEM.
    pub client_crl_file: Option<PathBuf>,
    /// Whether clients show a certificate.
    pub client_auth: ClientAuth,
}

/// Whether a TLS client shows a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ClientAuth {
    /// Never asked.
    #[default]
    None,
    /// Asked, not needed.
    Optional,
    /// The handshake fails without one.
    Required,
}

/// One accepted proof of who a client is. [mqtt 9.1]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthMethod {
    /// The TLS client certificate.
    ClientCert,
    /// User name and password.
    Password,
    /// Nobody in particular; only when spelled out, never a fallback of a failed login.
    Anonymous,
}

/// A password file and the tenant its users belong to.
#[derive(Debug, Clone)]
pub struct CredentialFile {
    /// `name:$argon2id$...` per line; mode without any right for others.
    pub path: PathBuf,
    /// Listeners of this tenant read it; `None` serves every listener without a tenant.
    pub tenant: Option<Box<str>>,
}

/// Bounds of one session's outbound side. [mqtt 8.1]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueLimits {
    /// QoS 1 messages waiting or in flight. Default 1000.
    pub messages: usize,
    /// Bytes of those messages. Default 8 MiB.
    pub bytes: usize,
    /// What happens one past it. Default drop-newest.
    pub full: QueueFull,
    /// Bytes of QoS 0 copies and encoded packets that wait for the socket. Default 256 KiB.
    pub write_buffer_bytes: usize,
}

impl Default for QueueLimits {
    fn default() -> Self {
        Self {
            messages: 1000,
            bytes: 8 << 20,
            full: QueueFull::DropNewest,
            write_buffer_bytes: 256 << 10,
        }
    }
}

/// What a full session queue does with a QoS 1 message. [mqtt 8.2]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueFull {
    /// The new message is dropped and counted.
    DropNewest,
    /// The oldest message that was not sent yet is dropped and counted.
    DropOldest,
    /// The session ends, so the client hears that it missed something.
    EndSession,
}

impl QueueFull {
    /// The policy as configuration and metrics spell it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::DropNewest => "drop-newest",
            Self::DropOldest => "drop-oldest",
            Self::EndSession => "end-session",
        }
    }
}

/// What keep-alive 0 means. [mqtt 8.3]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeepAliveZero {
    /// No MQTT timeout.
    Allow,
    /// Replaced by `keep_alive_max` and told to the client (5.0 only).
    Replace,
}

/// What a 3.1.1 publisher gets where 3.1.1 has no negative answer. [gateway 2.5]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LegacyRefusal {
    /// The connection is closed.
    Close,
    /// The publish is acknowledged, dropped and counted.
    Swallow,
}

/// Whether one ClientID belongs to one principal. [mqtt 4.1]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LabelPolicy {
    /// The first principal owns the id while its session lives; others are refused.
    OnePrincipal,
    /// Equal ids of different principals are different sessions.
    Any,
}

/// What a QoS 0 publish without a grant leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Qos0Refusal {
    /// Dropped and counted.
    Drop,
    /// DISCONNECT 0x87.
    Disconnect,
}

/// A route from a listener's clients to weida.
#[derive(Debug, Clone)]
pub struct IngressRoute {
    /// The half every adapter shares.
    pub route: Route,
    /// Only what this listener accepted enters the route.
    pub listener: Box<str>,
    /// Which topics.
    pub filter: TopicFilter,
    /// A publish above it enters as this QoS. Default 1.
    pub qos_cap: u8,
    /// Requests that wait for an answer at once, request routes only. Default 4096.
    pub max_pending_replies: usize,
    /// What an unknown destination means for the publisher. Default false: acknowledged 0x10.
    pub hold_unroutable: bool,
}

impl IngressRoute {
    /// A route with the specification's defaults.
    pub fn new(route: Route, listener: &str, filter: TopicFilter) -> Self {
        Self {
            route,
            listener: listener.into(),
            filter,
            qos_cap: 1,
            max_pending_replies: 4096,
            hold_unroutable: false,
        }
    }
}

/// A route from weida to the sessions of the group that a listener belongs to.
#[derive(Debug, Clone)]
pub struct EgressRoute {
    /// The half every adapter shares; its `topic` template makes the MQTT topic.
    pub route: Route,
    /// Any listener of the group that receives.
    pub listener: Box<str>,
    /// The weida filter of the route, which `{1}` and `{rest}` of its template refer to. Default
    /// `#`.
    pub filter: Box<str>,
    /// QoS of the publish. Default 1.
    pub qos: u8,
    /// Every message carries RETAIN. Refused in this version.
    pub retain: bool,
    /// How the answer of a reply route is found.
    pub reply: ReplyMode,
    /// Requests that wait for an answer at once, reply routes only. Default 4096.
    pub max_pending_replies: usize,
    /// How long `ack_on = receipt` waits for the acknowledgements of the sessions. Default 10 s.
    pub attempt_timeout: Duration,
    /// Deliveries whose acknowledgement is awaited at once. Default 256.
    pub in_flight: usize,
}

impl EgressRoute {
    /// A route with the specification's defaults.
    pub fn new(route: Route, listener: &str) -> Self {
        Self {
            route,
            listener: listener.into(),
            filter: "#".into(),
            qos: 1,
            retain: false,
            reply: ReplyMode::ResponseTopic,
            max_pending_replies: 4096,
            attempt_timeout: Duration::from_secs(10),
            in_flight: 256,
        }
    }
}

/// How a reply route finds the MQTT answer. [reconciled R6]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyMode {
    /// Response Topic `$reply/<gateway>/<random>` plus Correlation Data; the first answer wins.
    ResponseTopic,
    /// One way: the requester gets an empty reply with the level reached.
    None,
}

/// Bounds shared by all listeners of the adapter. [mqtt 8.1]
#[derive(Debug, Clone)]
pub struct Limits {
    /// Sessions over all listeners. Default 20 000.
    pub max_sessions: usize,
    /// Connections of one address. Default 256.
    pub max_connections_per_ip: usize,
    /// Sessions of one principal, `anonymous` excepted. Default 1000.
    pub max_sessions_per_principal: usize,
    /// New connections per second over all addresses, burst twice as many. Default 1000.
    pub new_connections_per_second: u32,
    /// New connections per second of one address, burst twice as many. Default 20.
    pub new_connections_per_second_per_ip: u32,
    /// Per-address limits and bans do not apply to loopback. Default false.
    pub per_ip_exempt_loopback: bool,
    /// Filters of one session. Default 128.
    pub max_filters_per_session: usize,
    /// Filters of one SUBSCRIBE. Default 64.
    pub max_filters_per_packet: usize,
    /// Filters over all sessions. Default 100 000.
    pub max_filters_total: usize,
    /// Failed logins per minute of one address. Default 10.
    pub login_failures_per_ip: u32,
    /// Failed logins per minute of one user from one address. Default 5.
    pub login_failures_per_user: u32,
    /// How long a ban for failed logins lasts. Default 60 s.
    pub login_ban: Duration,
    /// Takeovers of one key within 60 s before the newest address is banned. Default 5.
    pub takeovers_per_minute: u32,
    /// How long that ban lasts. Default 30 s.
    pub takeover_ban: Duration,
    /// Password checks that wait for a core. Default 256.
    pub auth_queue: usize,
    /// Publishes whose route outcome is awaited after their client left. Default 65 536.
    pub max_finishing: usize,
    /// TLS and CONNECT handshakes at once per listener. Default 1024.
    pub max_handshakes: usize,
    /// User property pairs of one message. Default 32.
    pub max_meta_entries: usize,
    /// Bytes of those pairs. Default 8 KiB.
    pub max_meta_bytes: usize,
    /// Longest `weida-via` list, at most 16. Default 4.
    pub max_hops: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_sessions: 20_000,
            max_connections_per_ip: 256,
            max_sessions_per_principal: 1000,
            new_connections_per_second: 1000,
            new_connections_per_second_per_ip: 20,
            per_ip_exempt_loopback: false,
            max_filters_per_session: 128,
            max_filters_per_packet: 64,
            max_filters_total: 100_000,
            login_failures_per_ip: 10,
            login_failures_per_user: 5,
            login_ban: Duration::from_secs(60),
            takeovers_per_minute: 5,
            takeover_ban: Duration::from_secs(30),
            auth_queue: 256,
            max_finishing: 65_536,
            max_handshakes: 1024,
            max_meta_entries: 32,
            max_meta_bytes: 8 << 10,
            max_hops: 4,
        }
    }
}
