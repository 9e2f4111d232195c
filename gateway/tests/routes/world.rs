//! Two weida runtimes and a gateway between the test and one of them.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tempfile::TempDir;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tower_service::Service;
use weida::{
    Binding, ClientTls, ClientTrust, Identity, Listener, ReconnectPolicy, Runtime, RuntimeConfig,
    ServerTls, Trust,
};
use weida_bridge::{
    Envelope, Fabric, FabricError, GatewayId, Ingress, LedgerSnapshot, Outcome, RouteId, Scope,
    SessionRef,
};
use weida_core::{Fingerprint, Topic};
use weida_gateway::config::{Config, Input, load};
use weida_gateway::fabric::GatewayFabric;
use weida_gateway::route::RouteHandle;

/// How long anything may take on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Waits until `condition` holds.
pub(crate) async fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(
            Instant::now() < deadline,
            "{what} did not come true within {PATIENCE:?}"
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Waits for a future that must come to an end.
pub(crate) async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, future).await {
        Ok(value) => value,
        Err(_) => panic!("{what} took longer than {PATIENCE:?}"),
    }
}

pub(crate) fn quick() -> RuntimeConfig {
    RuntimeConfig {
        reconnect: ReconnectPolicy {
            initial: Duration::from_millis(20),
            max: Duration::from_millis(200),
            ..ReconnectPolicy::default()
        },
        ..RuntimeConfig::default()
    }
}

/// A weida peer of the gateway: dials it, and is dialled by it.
pub(crate) struct Peer {
    pub(crate) runtime: Runtime,
    pub(crate) listener: Listener,
    pub(crate) identity: Identity,
}

impl Peer {
    pub(crate) fn new() -> Self {
        let runtime = Runtime::new(quick()).unwrap();
        let listener = runtime.listener();
        Self {
            runtime,
            listener,
            identity: Identity::generate().unwrap(),
        }
    }

    pub(crate) fn key(&self) -> Fingerprint {
        self.identity.fingerprint().unwrap()
    }

    /// Binds on a port, 0 for any; clients prove some key.
    pub(crate) async fn bind(&self, port: u16) -> Binding {
        let tls = ServerTls::new(self.identity.clone()).require_client(ClientTrust::AnyKey);
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        self.listener.bind_quic(address, tls).await.unwrap()
    }

    /// The URL of one of its paths.
    pub(crate) fn url(&self, binding: &Binding, path: &str) -> String {
        format!("weida://{}@{}{path}", self.key(), binding.local_addr())
    }

    /// How it dials the gateway, as itself.
    pub(crate) fn client(&self, gate: &Gate) -> ClientTls {
        ClientTls::new(Trust::pin(gate.key)).with_identity(self.identity.clone())
    }
}

/// A running gateway without adapters: the test is the adapter.
pub(crate) struct Gate {
    pub(crate) fabric: Arc<GatewayFabric>,
    pub(crate) key: Fingerprint,
    pub(crate) address: SocketAddr,
    _sources: Scope,
    _dials: Scope,
    _runtime: Runtime,
    pub(crate) cut: CancellationToken,
    _bindings: Vec<Binding>,
    _folder: TempDir,
}

/// Checks a configuration: the tables given, beside listeners, a grant for MQTT and what else every file needs.
pub(crate) fn configure(folder: &Path, tables: &str) -> Config {
    let file = folder.join("gateway.toml");
    let text = format!(
        r#"
[gateway]
data_dir = "{data}"
[[listen]]
name = "weida"
protocol = "weida"
bind = "127.0.0.1:0"
[[listen]]
name = "mqtt"
protocol = "mqtt"
bind = "127.0.0.1:0"
auth = ["anonymous"]
[admin]
bind = "127.0.0.1:0"
{tables}
"#,
        data = folder.join("data").display(),
    );
    std::fs::write(&file, text).unwrap();
    let input = Input {
        file,
        environment: Vec::new(),
        allow_overcommit: true,
    };
    match load(&input) {
        Ok((config, _warnings)) => config,
        Err(report) => panic!("refused: {:#?}", report.findings()),
    }
}

impl Gate {
    /// Starts a gateway with these `[[route]]` and `[[grant]]` tables.
    pub(crate) async fn start(tables: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = configure(folder.path(), tables);
        let identity = Identity::generate().unwrap();
        let key = identity.fingerprint().unwrap();
        let runtime = Runtime::new(quick()).unwrap();
        let tls = ClientTls::new(Trust::by_address()).with_identity(identity.clone());
        let cut = CancellationToken::new();
        let own = GatewayId(key.as_bytes()[..8].try_into().unwrap());
        let fabric = GatewayFabric::build(&config, &runtime, &tls, own, &cut).unwrap();
        let parent = CancellationToken::new();
        let mut sources = Scope::new(&parent, Duration::from_secs(5));
        let mut dials = Scope::new(&parent, Duration::from_secs(5));
        fabric.start(&mut sources, &mut dials);
        let mut bindings = Vec::new();
        for side in fabric.sides() {
            let tls = ServerTls::new(identity.clone()).require_client(ClientTrust::AnyKey);
            let address = SocketAddr::from(([127, 0, 0, 1], 0));
            bindings.push(side.listener.bind_quic(address, tls).await.unwrap());
        }
        Self {
            fabric,
            key,
            address: bindings[0].local_addr(),
            _sources: sources,
            _dials: dials,
            _runtime: runtime,
            cut,
            _bindings: bindings,
            _folder: folder,
        }
    }

    /// URL of one of the gateway's own paths.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("weida://{}@{}{path}", self.key, self.address)
    }

    pub(crate) fn route(&self, name: &str) -> Arc<RouteHandle> {
        let found = self
            .fabric
            .routes()
            .iter()
            .find(|route| route.id().as_str() == name);
        Arc::clone(found.unwrap())
    }

    pub(crate) fn row(&self, name: &str) -> LedgerSnapshot {
        self.route(name).parts().ledger.snapshot()
    }

    pub(crate) fn ingress(&self, name: &str) -> Ingress {
        self.fabric.ingress(&RouteId::new(name)).unwrap()
    }

    /// Waits until the route's destination is connected.
    pub(crate) async fn reached(&self, name: &str) {
        let route = self.route(name);
        eventually("the destination", || route.parts().presence.is_here()).await;
    }

    /// Hands one message in as an adapter does, and waits for its end.
    pub(crate) async fn send(&self, name: &str, message: Envelope) -> Result<Outcome, FabricError> {
        let mut ingress = self.ingress(name);
        within("room", ingress.ready()).await.unwrap();
        within("the outcome", ingress.call(message)).await
    }
}

/// A message as an MQTT session would bring it.
pub(crate) fn message(route: &str, topic: &str, payload: impl Into<Bytes>) -> Envelope {
    let topic = Topic::try_from(topic).unwrap();
    let mut envelope = Envelope::new(RouteId::new(route), topic, payload.into(), Instant::now());
    envelope.session = Some(Arc::new(SessionRef {
        adapter: "mqtt",
        listener: "mqtt".into(),
        principal: None,
        foreign: "sensor-7".into(),
        address: None,
    }));
    envelope
}

/// A grant for everybody who proves a key.
pub(crate) const ANY_PEER: &str = r#"
[[grant]]
who = ["peer:*"]
listen = "weida"
publish = ["*"]
subscribe = ["*"]
"#;
