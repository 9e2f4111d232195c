//! The adapter's whole public face: make, bind, run.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use weida_bridge::{Deliveries, Fabric, GatewayId, Store};

use crate::auth::{PasswordFile, Passwords};
use crate::bridge::{Egress, IngressRoutes, Replies, RouteDoor};
use crate::config::{Config, ConfigError, Grant, ListenerConfig, Refused};
use crate::error::{BindError, RunError};
use crate::io::{Finisher, Gate, Host, Listener, server_config, terms};
use crate::metrics::ListenerMetrics;
use crate::router::Router;
use crate::session::{Ending, Sessions};

/// MQTT listeners with their routes, ready to be bound.
#[derive(Debug)]
pub struct MqttAdapter {
    hosts: Vec<Arc<Host<IngressRoutes>>>,
    egress: Vec<(Egress, Deliveries)>,
    sessions: Arc<Sessions>,
    finisher: Arc<Finisher>,
    drain: Duration,
}

/// What the listeners of one group and tenant share.
#[derive(Debug)]
struct Group {
    name: Arc<str>,
    router: Arc<Router>,
    replies: Arc<Replies>,
}

impl MqttAdapter {
    /// Checks everything and opens nothing: ranges, routes, password files, certificates.
    ///
    /// `store` is where sessions will live; this version keeps none beyond its connection.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] with every reason found.
    pub fn new(
        config: Config,
        fabric: Arc<dyn Fabric>,
        store: Arc<dyn Store>,
    ) -> Result<Self, ConfigError> {
        config.check()?;
        // Kept out until sessions outlive their connection.
        drop(store);
        let mut refused = Vec::new();
        let gateway = GatewayId(config.gateway_id);
        let gate = Gate::new(config.limits.clone());
        let sessions = Arc::new(Sessions::new(&config.limits));
        let finisher = Arc::new(Finisher::new(&config.limits));
        let grants: Arc<[Grant]> = config.grants.clone().into();
        let mut groups = HashMap::new();
        let mut hosts = Vec::new();
        for listener in &config.listeners {
            let group = group_of(&mut groups, listener, gateway);
            let metrics = Arc::new(ListenerMetrics::default());
            let doors = doors(&config, listener, &*fabric, &mut refused);
            let routes = IngressRoutes {
                doors,
                replies: Arc::clone(&group.replies),
                router: Arc::clone(&group.router),
                metrics: Arc::clone(&metrics),
                gateway,
                max_hops: config.limits.max_hops,
                tenant: listener.tenant.clone(),
                qos0_block: listener.qos0_block,
            };
            let same_group = |route: &crate::config::EgressRoute| {
                config
                    .listener(&route.listener)
                    .is_some_and(|other| same_group(other, listener))
            };
            hosts.push(Arc::new(Host {
                terms: terms(listener, &config.limits),
                name: (*listener.name).into(),
                group: Arc::clone(&group.name),
                metrics,
                router: Arc::clone(&group.router),
                sessions: Arc::clone(&sessions),
                gate: Arc::clone(&gate),
                grants: Arc::clone(&grants),
                passwords: passwords(&config, listener, &mut refused),
                tls: tls(listener, &mut refused),
                handshakes: Arc::new(Semaphore::new(config.limits.max_handshakes)),
                turned_away: Arc::new(Semaphore::new(64)),
                finisher: Arc::clone(&finisher),
                intakes: Arc::new(routes),
                receives: !listener.routes_only || config.egress.iter().any(same_group),
                limits: config.limits.clone(),
                config: listener.clone(),
            }));
        }
        let egress = egress(&config, &*fabric, &groups, gateway, &mut refused);
        if !refused.is_empty() {
            return Err(ConfigError { refused });
        }
        Ok(Self {
            hosts,
            egress,
            sessions,
            finisher,
            drain: config.drain_timeout,
        })
    }

    /// Counters of every listener, by name. They outlive the adapter.
    pub fn metrics(&self) -> Vec<(Arc<str>, Arc<ListenerMetrics>)> {
        self.hosts
            .iter()
            .map(|host| (Arc::clone(&host.name), Arc::clone(&host.metrics)))
            .collect()
    }

    /// Binds every listener; none accepts yet.
    ///
    /// # Errors
    ///
    /// [`BindError`] for the first address that cannot be bound; nothing stays bound then.
    #[expect(
        clippy::unused_async,
        reason = "the shape all adapters share; others resolve names"
    )]
    pub async fn bind(self) -> Result<Bound, BindError> {
        let mut listeners = Vec::new();
        for host in &self.hosts {
            listeners.push(Listener::bind(Arc::clone(host))?);
        }
        Ok(Bound {
            adapter: self,
            listeners,
        })
    }

    /// Binds, serves, drains, returns.
    ///
    /// # Errors
    ///
    /// [`RunError`] when a listener cannot be bound or stops by itself.
    pub async fn run(self, stop: CancellationToken) -> Result<Drained, RunError> {
        self.bind().await?.run(stop).await
    }
}

/// Listeners that are bound and wait for [`run`](Self::run).
#[derive(Debug)]
pub struct Bound {
    adapter: MqttAdapter,
    listeners: Vec<Listener<IngressRoutes>>,
}

/// Where one listener is bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoundAddr {
    /// The listener's name.
    pub listener: Box<str>,
    /// Its address with the port that the system gave.
    pub addr: SocketAddr,
}

/// How a stop went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Drained {
    /// Connections that were cut at the deadline.
    pub cut_connections: usize,
    /// Publishes whose route outcome was not awaited to the end.
    pub cut_publishes: usize,
}

impl Bound {
    /// Bound addresses, in the order of the configuration.
    pub fn local_addrs(&self) -> Vec<BoundAddr> {
        let addr = |listener: &Listener<_>| BoundAddr {
            listener: listener.name().into(),
            addr: listener.local_addr(),
        };
        self.listeners.iter().map(addr).collect()
    }

    /// Counters of every listener, by name.
    pub fn metrics(&self) -> Vec<(Arc<str>, Arc<ListenerMetrics>)> {
        self.adapter.metrics()
    }

    /// Serves until `stop`, then says goodbye, drains and reports.
    ///
    /// Stop order: no new connections, DISCONNECT 0x8B to every client, routes' answers awaited,
    /// then whatever is left is cut at the drain deadline.
    ///
    /// # Errors
    ///
    /// [`RunError`] when a listener stops by itself; the others are drained first.
    ///
    /// # Cancel safety
    ///
    /// Dropped, every connection is cut and every task ends.
    pub async fn run(self, stop: CancellationToken) -> Result<Drained, RunError> {
        let Self { adapter, listeners } = self;
        let MqttAdapter {
            hosts,
            egress,
            sessions,
            finisher,
            drain,
        } = adapter;
        let stop = stop.child_token();
        let mut serving = JoinSet::new();
        let mut delivering = JoinSet::new();
        for listener in listeners {
            info!(listener = listener.name(), addr = %listener.local_addr(), "listening");
            serving.spawn(listener.run(stop.clone(), drain));
        }
        for (route, deliveries) in egress {
            delivering.spawn(route.run(deliveries, stop.clone(), drain));
        }
        let mut drained = Drained::default();
        let mut verdict = Ok(());
        let mut told = false;
        while !serving.is_empty() {
            tokio::select! {
                biased;
                () = stop.cancelled(), if !told => {
                    told = true;
                    info!(sessions = sessions.len(), "stopping");
                    sessions.end_all(Ending::Shutdown);
                }
                Some(ended) = serving.join_next() => {
                    // One that stops by itself takes the others with it.
                    stop.cancel();
                    match ended {
                        Ok(Ok(cut)) => drained.cut_connections += cut,
                        Ok(Err(error)) => verdict = Err(error),
                        Err(error) => warn!(%error, "a listener's task failed"),
                    }
                }
            }
        }
        let deadline = Instant::now() + drain;
        finisher.tasks.close();
        if timeout_at(deadline, finisher.tasks.wait()).await.is_err() {
            drained.cut_publishes = finisher.tasks.len();
            warn!(
                cut = drained.cut_publishes,
                "drain deadline passed with publishes on their way"
            );
            finisher.abort.cancel();
            finisher.tasks.wait().await;
        }
        while delivering.join_next().await.is_some() {}
        drop(hosts);
        verdict.map(|()| drained)
    }
}

fn same_group(a: &ListenerConfig, b: &ListenerConfig) -> bool {
    a.group == b.group && a.tenant == b.tenant
}

type Groups = HashMap<(Box<str>, Option<Box<str>>), Group>;

fn group_of<'a>(
    groups: &'a mut Groups,
    listener: &ListenerConfig,
    gateway: GatewayId,
) -> &'a Group {
    let key = (listener.group.clone(), listener.tenant.clone());
    groups
        .entry(key)
        .or_insert_with_key(|(group, tenant)| Group {
            // Tenants never meet, even when their groups have one name.
            name: match tenant {
                Some(tenant) => format!("{tenant}/{group}").into(),
                None => (**group).into(),
            },
            router: Arc::default(),
            replies: Arc::new(Replies::new(gateway)),
        })
}

fn doors(
    config: &Config,
    listener: &ListenerConfig,
    fabric: &dyn Fabric,
    refused: &mut Vec<Refused>,
) -> Vec<RouteDoor> {
    let mut doors = Vec::new();
    for route in config
        .ingress
        .iter()
        .filter(|route| route.listener == listener.name)
    {
        match fabric.ingress(&route.route.id) {
            Ok(service) => doors.push(RouteDoor::new(route.clone(), service)),
            Err(source) => {
                refused.push(Refused::Fabric {
                    route: route.route.id.as_str().into(),
                    source,
                });
            }
        }
    }
    doors
}

fn egress(
    config: &Config,
    fabric: &dyn Fabric,
    groups: &Groups,
    gateway: GatewayId,
    refused: &mut Vec<Refused>,
) -> Vec<(Egress, Deliveries)> {
    let mut egress = Vec::new();
    for route in &config.egress {
        let Some(listener) = config.listener(&route.listener) else {
            continue;
        };
        let key = (listener.group.clone(), listener.tenant.clone());
        let Some(group) = groups.get(&key) else {
            continue;
        };
        match fabric.subscribe(&route.route.id) {
            Ok(deliveries) => egress.push((
                Egress {
                    route: route.clone(),
                    router: Arc::clone(&group.router),
                    replies: Arc::clone(&group.replies),
                    gateway,
                    max_hops: config.limits.max_hops,
                    max_message_bytes: listener.max_message_bytes,
                    tenant: listener.tenant.clone(),
                },
                deliveries,
            )),
            Err(source) => {
                refused.push(Refused::Fabric {
                    route: route.route.id.as_str().into(),
                    source,
                });
            }
        }
    }
    egress
}

fn passwords(
    config: &Config,
    listener: &ListenerConfig,
    refused: &mut Vec<Refused>,
) -> Option<Arc<Passwords>> {
    if !listener.auth.contains(&crate::config::AuthMethod::Password) {
        return None;
    }
    let mut users = PasswordFile::default();
    for file in config
        .credentials
        .iter()
        .filter(|file| file.tenant == listener.tenant)
    {
        match PasswordFile::load(&file.path) {
            Ok(more) => users.merge(more),
            Err(source) => refused.push(Refused::Password {
                path: file.path.clone(),
                source,
            }),
        }
    }
    let queue = config.limits.auth_queue;
    Some(Arc::new(Passwords::new(users, queue, listener.auth_cache)))
}

fn tls(listener: &ListenerConfig, refused: &mut Vec<Refused>) -> Option<TlsAcceptor> {
    match server_config(listener.tls.as_ref()?) {
        Ok(config) => Some(TlsAcceptor::from(config)),
        Err(source) => {
            refused.push(Refused::Tls {
                listener: listener.name.clone(),
                source,
            });
            None
        }
    }
}
