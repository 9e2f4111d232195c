//! Checked configuration: what the rest of the gateway is built on. `[gateway.md 2]`
//!
//! Every value here is typed, has its default filled in and passed every cross check; references between tables are by
//! name and are known to resolve. Secrets print as `[hidden]`.

mod access;
mod listen;
mod route;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use weida_core::Fingerprint;

pub use access::{Allow, Credential, Glob, Grant, Rate, Who};
pub use listen::{
    AuthMethod, ClientAuth, KeepAliveZero, LabelPolicy, LegacyRefusal, Listen, ListenKind,
    MqttListen, QueueFull, ServerTls, WeidaListen,
};
pub use route::{
    Buffer, Condition, DeadLetter, DeadLetterTo, ForeignEnd, MqttEnd, MqttReply, Overflow, Retry,
    RouteConfig, Transform, WeidaEnd,
};

/// One complete, checked configuration.
#[derive(Debug, Clone)]
pub struct Config {
    /// The process itself.
    pub gateway: Gateway,
    /// Who this process is on the weida side.
    pub identity: Identity,
    /// Listeners in file order; names are unique.
    pub listen: Vec<Listen>,
    /// Routes in file order; names are unique.
    pub routes: Vec<RouteConfig>,
    /// Password files.
    pub credentials: Vec<Credential>,
    /// Grants in file order: the first whose `who` and `listen` match decides alone; none = denied.
    pub grants: Vec<Grant>,
    /// Bounds of the process.
    pub limits: Limits,
    /// Health, metrics.
    pub admin: Admin,
    /// Logs.
    pub telemetry: Telemetry,
}

impl Config {
    /// The listener of that name.
    #[must_use]
    pub fn listener(&self, name: &str) -> Option<&Listen> {
        self.listen.iter().find(|listen| &*listen.name == name)
    }

    /// MQTT listeners in file order, with their names.
    pub fn mqtt_listeners(&self) -> impl Iterator<Item = (&Arc<str>, &MqttListen)> {
        self.listen.iter().filter_map(|listen| match &listen.kind {
            ListenKind::Mqtt(mqtt) => Some((&listen.name, &**mqtt)),
            ListenKind::Weida(_) => None,
        })
    }

    /// weida bindings in file order, with their names.
    pub fn weida_listeners(&self) -> impl Iterator<Item = (&Arc<str>, &WeidaListen)> {
        self.listen.iter().filter_map(|listen| match &listen.kind {
            ListenKind::Weida(weida) => Some((&listen.name, weida)),
            ListenKind::Mqtt(_) => None,
        })
    }

    /// Grants that hold on the listener of that name, in file order.
    pub fn grants_on<'a>(&'a self, listener: &'a str) -> impl Iterator<Item = &'a Grant> {
        self.grants
            .iter()
            .filter(move |grant| grant.holds_on(listener))
    }
}

/// `[gateway]`: the process itself.
#[derive(Debug, Clone)]
pub struct Gateway {
    /// Label in logs and metrics; never an identity. Default `weida-gateway`.
    pub name: Arc<str>,
    /// Runtime threads; 0 = one per core.
    pub worker_threads: usize,
    /// Folder of the identity and, later, of the store.
    pub data_dir: PathBuf,
    /// Bound of the whole drain. Default 8 s. `[gateway.md 7.3]`
    pub drain_timeout: Duration,
    /// How long to go on serving, unready, before the drain stops accepting. Default 0.
    pub drain_delay: Duration,
}

/// `[identity]`: the only thing weida peers see.
#[derive(Debug, Clone)]
pub struct Identity {
    /// PEM file holding the private key (and, without `cert_file`, the self-signed certificate).
    pub key_file: PathBuf,
    /// PEM file holding a CA-issued chain.
    pub cert_file: Option<PathBuf>,
    /// Whom we accept when dialled and when dialling. Empty: inbound any proved key (grants decide), outbound only what
    /// the dialled address names.
    pub trust: Vec<TrustEntry>,
}

/// One entry of `identity.trust`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrustEntry {
    /// `sha256:...`: this public key.
    Pin(Fingerprint),
    /// `ca:PATH`: certificate authorities of a PEM file.
    Anchors(PathBuf),
}

/// `[limits]`: bounds of the process. `[gateway.md 10]`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Largest payload. Default 1 MiB.
    pub max_message_bytes: usize,
    /// Sessions of all listeners together. Default what the open-file limit allows, at most 20 000.
    pub max_sessions: usize,
    /// Connections of one IP address; loopback is exempt. Default 256.
    pub max_connections_per_ip: usize,
    /// Accepted connections per second. Default 1000.
    pub new_connections_per_second: u32,
    /// Filters of one session. Default 128.
    pub max_filters_per_session: usize,
    /// Filters of all sessions. Default 100 000.
    pub max_filters_total: usize,
    /// Entries of `meta`. Default and most 32.
    pub max_meta_entries: usize,
    /// Bytes of `meta`. Default and most 8 KiB.
    pub max_meta_bytes: usize,
    /// Bytes of a mapped weida topic. Default and most 256.
    pub max_topic_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_message_bytes: 1024 * 1024,
            max_sessions: 20_000,
            max_connections_per_ip: 256,
            new_connections_per_second: 1000,
            max_filters_per_session: 128,
            max_filters_total: 100_000,
            max_meta_entries: 32,
            max_meta_bytes: 8 * 1024,
            max_topic_bytes: 256,
        }
    }
}

/// `[admin]`: `/livez`, `/readyz`, `/metrics`.
#[derive(Debug, Clone)]
pub struct Admin {
    /// Address; port 0 lets the system choose. Default `127.0.0.1:7480`.
    pub bind: SocketAddr,
    /// SHA-256 of the bearer token; set whenever `bind` is not loopback or `metrics_auth` is true.
    pub token: Option<Secret>,
    /// Whether `/metrics`, `/livez` and `/readyz` want the token too.
    pub metrics_auth: bool,
}

/// `[telemetry]`: log output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Telemetry {
    /// Text for people or JSON lines. Default text.
    pub format: LogFormat,
    /// Filter as `tracing` writes it: `info`, `weida_mqtt=debug,info`. Default `info`.
    pub level: String,
}

/// Shape of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object per line.
    Json,
}

/// A value that never prints and is wiped when dropped.
#[derive(Clone)]
pub struct Secret(zeroize::Zeroizing<String>);

impl Secret {
    /// Takes the text over.
    #[must_use]
    pub fn new(text: String) -> Self {
        Self(zeroize::Zeroizing::new(text))
    }

    /// The text itself; never log it.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[hidden]")
    }
}
