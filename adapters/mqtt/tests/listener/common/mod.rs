//! A world of one adapter over a fabric in memory, and clients that speak bytes.

pub(crate) mod client;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use weida_bridge::{
    AckOn, DeliveryClass, Direction, Envelope, MemoryFabric, MemoryStore, Pattern, RetainPolicy,
    Route, RouteId, Template, WEIDA,
};
use weida_core::Topic;
use weida_mqtt::config::{
    AuthMethod, Config, CredentialFile, EgressRoute, Grant, GrantFilter, IngressRoute,
    ListenerConfig, TopicFilter, Who,
};
use weida_mqtt::metrics::ListenerMetrics;
use weida_mqtt::{Drained, MQTT, MqttAdapter, RunError};

pub(crate) use client::{Client, Options};

/// A running adapter; dropping it stops everything.
pub(crate) struct World {
    pub(crate) addr: SocketAddr,
    pub(crate) addrs: Vec<SocketAddr>,
    pub(crate) metrics: Arc<ListenerMetrics>,
    stop: CancellationToken,
    tasks: JoinSet<Result<Drained, RunError>>,
}

/// A configuration with one anonymous loopback listener called `mqtt`.
pub(crate) fn config() -> Config {
    let mut listener = ListenerConfig::new("mqtt", "127.0.0.1:0".parse().unwrap());
    listener.auth = vec![AuthMethod::Anonymous];
    let mut config = Config {
        listeners: vec![listener],
        grants: vec![allow("anonymous", &["#"], &["#"])],
        gateway_id: [0xab; 8],
        drain_timeout: Duration::from_secs(5),
        ..Config::default()
    };
    config.limits.per_ip_exempt_loopback = true;
    config
}

pub(crate) fn allow(who: &str, publish: &[&str], subscribe: &[&str]) -> Grant {
    Grant {
        who: vec![Who::new(who)],
        publish: filters(publish),
        subscribe: filters(subscribe),
        ..Grant::default()
    }
}

pub(crate) fn filters(texts: &[&str]) -> Vec<GrantFilter> {
    texts
        .iter()
        .map(|text| GrantFilter::parse(text).unwrap())
        .collect()
}

pub(crate) fn route(id: &str, pattern: Pattern, ack_on: AckOn) -> Route {
    let direction = pattern.direction();
    let space = if direction == Direction::Ingress {
        WEIDA
    } else {
        MQTT
    };
    Route {
        id: RouteId::new(id),
        direction,
        pattern,
        delivery: match ack_on {
            AckOn::Sent => DeliveryClass::AtMostOnce,
            _ => DeliveryClass::AtLeastOnce,
        },
        ack_on,
        topic: Template::parse("{topic}", &space).unwrap(),
        labels: false,
        retain: RetainPolicy::AsPublished,
        max_message_bytes: 1 << 20,
        timeout: Some(Duration::from_secs(2)),
        loss: Vec::new(),
    }
}

pub(crate) fn ingress(id: &str, filter: &str, pattern: Pattern, ack_on: AckOn) -> IngressRoute {
    IngressRoute::new(
        route(id, pattern, ack_on),
        "mqtt",
        TopicFilter::parse(filter).unwrap(),
    )
}

pub(crate) fn push(id: &str, filter: &str) -> IngressRoute {
    ingress(id, filter, Pattern::Push, AckOn::Receipt)
}

pub(crate) fn egress(id: &str, pattern: Pattern, ack_on: AckOn) -> EgressRoute {
    EgressRoute::new(route(id, pattern, ack_on), "mqtt")
}

pub(crate) fn envelope(route: &str, topic: &str, payload: &[u8]) -> Envelope {
    let topic = Topic::new(topic.to_owned()).unwrap();
    Envelope::new(
        RouteId::new(route),
        topic,
        Bytes::copy_from_slice(payload),
        Instant::now(),
    )
}

impl World {
    /// Local exchange only.
    pub(crate) async fn local() -> Self {
        Self::start(config(), MemoryFabric::new()).await
    }

    pub(crate) async fn start(config: Config, fabric: MemoryFabric) -> Self {
        let store = Arc::new(MemoryStore::new(1000, 1 << 20));
        let adapter = MqttAdapter::new(config, Arc::new(fabric.clone()), store).unwrap();
        let bound = adapter.bind().await.unwrap();
        let addrs: Vec<SocketAddr> = bound.local_addrs().iter().map(|bound| bound.addr).collect();
        let metrics = Arc::clone(&bound.metrics()[0].1);
        let stop = CancellationToken::new();
        let mut tasks = JoinSet::new();
        tasks.spawn(bound.run(stop.clone()));
        Self {
            addr: addrs[0],
            addrs,
            metrics,
            stop,
            tasks,
        }
    }

    pub(crate) async fn client(&self, id: &str) -> Client {
        Client::connect(self.addr, Options::v5(id)).await
    }

    pub(crate) async fn client_v4(&self, id: &str) -> Client {
        Client::connect(self.addr, Options::v4(id)).await
    }

    /// Stops the adapter and returns its report.
    pub(crate) async fn stop(mut self) -> Drained {
        self.stop.cancel();
        let joined = tokio::time::timeout(Duration::from_secs(20), self.tasks.join_next()).await;
        joined.unwrap().unwrap().unwrap().unwrap()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Waits until `condition` holds, with a deadline.
pub(crate) async fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !condition() {
        assert!(Instant::now() < deadline, "never happened: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// A configuration whose listener wants passwords, with one user per name; each password is the
/// name. The file lives as long as the guard.
pub(crate) fn with_passwords(users: &[&str]) -> (Config, tempfile::TempDir) {
    use argon2::password_hash::{PasswordHasher, SaltString};
    use argon2::{Algorithm, Argon2, Params, Version};
    let cheap = Params::new(8, 1, 1, None).unwrap();
    let argon = Argon2::new(Algorithm::Argon2id, Version::V0x13, cheap);
    let salt = SaltString::encode_b64(&[7; 16]).unwrap();
    let mut lines = String::new();
    for user in users {
        let hash = argon.hash_password(user.as_bytes(), &salt).unwrap();
        lines.push_str(&format!("{user}:{hash}\n"));
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("passwd");
    std::fs::write(&path, lines).unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
    let mut config = config();
    config.listeners[0].auth = vec![AuthMethod::Password];
    config.credentials = vec![CredentialFile { path, tenant: None }];
    config.grants = vec![allow("user:*", &["#"], &["#"])];
    (config, dir)
}
