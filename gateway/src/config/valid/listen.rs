//! Checked `[[listen]]` tables. `[gateway.md 2.2, 2.5] [mqtt 13.1]`

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// One bound address and what is served there.
#[derive(Debug, Clone)]
pub struct Listen {
    /// Unique name: what routes, grants, logs and metrics call it.
    pub name: Arc<str>,
    /// Protocol and its keys.
    pub kind: ListenKind,
}

/// What a listener serves.
#[derive(Debug, Clone)]
pub enum ListenKind {
    /// weida over QUIC.
    Weida(WeidaListen),
    /// MQTT 3.1.1 and 5.0 over TCP or TLS.
    Mqtt(Box<MqttListen>),
}

impl Listen {
    /// The address to bind.
    #[must_use]
    pub fn bind(&self) -> SocketAddr {
        match &self.kind {
            ListenKind::Weida(weida) => weida.bind,
            ListenKind::Mqtt(mqtt) => mqtt.bind,
        }
    }

    /// The word in `protocol`.
    #[must_use]
    pub fn protocol(&self) -> &'static str {
        match &self.kind {
            ListenKind::Weida(_) => "weida",
            ListenKind::Mqtt(_) => "mqtt",
        }
    }
}

/// A weida binding.
#[derive(Debug, Clone)]
pub struct WeidaListen {
    /// UDP address; port 0 lets the system choose.
    pub bind: SocketAddr,
    /// False lets peers in that prove no key; they are the principal `anonymous`. Default true.
    pub require_client_identity: bool,
    /// Largest streamed body taken from a peer. Default `limits.max_message_bytes`.
    pub max_message_bytes: usize,
}

/// An MQTT listener.
#[derive(Debug, Clone)]
pub struct MqttListen {
    /// TCP address; port 0 lets the system choose.
    pub bind: SocketAddr,
    /// Serve TLS instead of plain TCP.
    pub tls: Option<ServerTls>,
    /// Methods in the order they are tried; never empty.
    pub auth: Vec<AuthMethod>,
    /// Sessions of this listener. Default 10 000, never above `limits.max_sessions`.
    pub max_sessions: usize,
    /// Largest payload. Default `limits.max_message_bytes`.
    pub max_message_bytes: usize,
    /// Largest keep-alive a client gets. Default 1200 s.
    pub keep_alive_max: Duration,
    /// What keep-alive 0 means. Default replace.
    pub keep_alive_zero: KeepAliveZero,
    /// Longest silence of a 3.1.1 client with keep-alive 0. Default 1 h.
    pub idle_max: Duration,
    /// Accept until CONNECT is complete, TLS included. Default 5 s.
    pub handshake_timeout: Duration,
    /// What a refused 3.1.1 publish gets. Default close.
    pub legacy_refusal: LegacyRefusal,
    /// Whether one client id may belong to several principals. Default one-principal.
    pub label_policy: LabelPolicy,
    /// Listeners with one group share sessions; by default each is its own group, named like itself.
    pub group: Arc<str>,
    /// True switches client-to-client exchange off. `[DESIGN D7]`
    pub routes_only: bool,
    /// Outbound queue of one session. Default 1000.
    pub queue_messages: usize,
    /// The same in bytes. Default 8 MiB.
    pub queue_bytes: usize,
    /// What happens when that queue is full. Default drop-newest.
    pub queue_full: QueueFull,
    /// Receive Maximum announced. Default 64.
    pub receive_maximum: u16,
    /// Unacknowledged publishes sent to one client. Default 64.
    pub max_inflight_out: u16,
    /// Topic aliases each way. Default 16.
    pub topic_alias_max: u16,
    /// Longest MQTT topic. Default 1024.
    pub max_topic_bytes: usize,
    /// Most topic levels. Default 32, at most 128.
    pub max_levels: usize,
    /// Longest client id. Default 128.
    pub max_client_id_bytes: usize,
    /// No progress on a socket with data pending: closed. Default 30 s.
    pub write_stall: Duration,
    /// How long a verified password is remembered. Default 10 min.
    pub auth_cache: Duration,
}

/// Certificate and key of a TLS listener; both were read and match.
#[derive(Debug, Clone)]
pub struct ServerTls {
    /// PEM chain, leaf first.
    pub cert_file: PathBuf,
    /// PEM private key.
    pub key_file: PathBuf,
    /// Authorities for client certificates; set unless `client_auth` is none.
    pub client_ca_file: Option<PathBuf>,
    /// Whether clients present a certificate. Default none, or optional with `client_ca_file`.
    pub client_auth: ClientAuth,
}

/// Whether a TLS client presents a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientAuth {
    /// Not asked for.
    None,
    /// Checked when presented.
    Optional,
    /// The handshake fails without.
    Required,
}

/// One way to be accepted. `[mqtt 9.1]`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AuthMethod {
    /// The TLS client certificate: principal `cert:<sha256 of SPKI>`.
    ClientCert,
    /// User and password of a `[[credential]]` file: principal `user:NAME`.
    Password,
    /// Nobody asked: principal `anonymous`. Never a fallback of a failed password.
    Anonymous,
}

/// What a refused MQTT 3.1.1 publish gets, which has no negative answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LegacyRefusal {
    /// The connection is closed.
    Close,
    /// Acknowledged, dropped and counted.
    Swallow,
}

/// Who may use a client id that somebody else uses. `[mqtt 9.4]`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LabelPolicy {
    /// Only the principal that used it first.
    OnePrincipal,
    /// Equal ids of different principals are separate sessions.
    Any,
}

/// What the keep-alive value 0 of a client means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeepAliveZero {
    /// Replaced by `keep_alive_max` in the answer.
    Replace,
    /// No time limit.
    Allow,
}

/// What happens to a message for a full session queue. `[mqtt 8.2]`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueFull {
    /// The new message is dropped.
    DropNewest,
    /// The oldest queued message is dropped.
    DropOldest,
    /// The session ends, so that its client knows.
    EndSession,
}
