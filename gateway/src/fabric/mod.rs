//! The fabric: routes between what adapters hand over and the weida runtime (`gateway.md` 2.3, [weida 7.6]).
//!
//! | Pattern | Form | Gateway |
//! | --- | --- | --- |
//! | to: publish | path | binds one publisher per path and weida listener; routes share it |
//! | to: push, request | URL | dials, keeps dialled |
//! | from: subscribe | URL | dials; routes with one URL share the subscriber |
//! | from: pull, reply | path | binds on every weida listener |
//!
//! Each weida listener is a namespace of its own, so that its grants are its own and the path it was reached at is known.

mod deliver;
mod dial;
mod errors;
mod extension;
mod inbound;
mod outbound;
mod pump;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use weida::{Admission, ClientTls, Publisher, Runtime};
use weida_bridge::fabric::deliveries;
use weida_bridge::{
    Deliveries, DeliverySender, Direction, Fabric, FabricError, FabricErrorKind, GatewayId,
    Ingress, Pattern, RouteId, Scope,
};

use self::deliver::DeliverEgress;
use self::dial::keep_dialled;
use self::extension::Stamp;
use self::outbound::{PublishEgress, PushEgress, RequestEgress};
use self::pump::{Feed, PullPump, ReplyPump, SubscribePump};
use crate::config::valid::{Config, RouteConfig, WeidaEnd};
use crate::grants::WeidaGrants;
use crate::policy;
use crate::policy::presence::Presence;
use crate::route::RouteHandle;

/// One weida listener before it is bound: its namespace and who may use it.
#[derive(Clone, Debug)]
pub struct WeidaSide {
    /// Name in the configuration.
    pub name: Arc<str>,
    /// The namespace; its bindings come last, when everything behind it is there.
    pub listener: weida::Listener,
    /// Its grants.
    pub grants: WeidaGrants,
}

/// The routes of one process.
pub struct GatewayFabric {
    routes: HashMap<RouteId, Entry>,
    handles: Vec<Arc<RouteHandle>>,
    sides: Vec<WeidaSide>,
    pending: Mutex<Vec<Task>>,
}

/// The adapter's end of one route; each taken under a lock that is held for a moment at start.
enum Entry {
    Ingress(Mutex<Ingress>),
    Egress(Mutex<Option<Deliveries>>),
}

type Task = Box<dyn FnOnce(&mut Scope, &mut Scope) + Send>;

/// A route that cannot be built; the check should have refused it.
#[derive(Debug, thiserror::Error)]
#[error("route {route}: {what}")]
pub struct BuildError {
    /// Which one.
    pub route: RouteId,
    /// What was being built.
    pub what: &'static str,
    /// What the runtime said.
    #[source]
    pub source: Option<weida::Error>,
}

impl GatewayFabric {
    /// Builds every route of a checked configuration; opens and dials nothing yet.
    ///
    /// `cut` ends every message at once.
    ///
    /// # Errors
    /// A path that the runtime does not take.
    pub fn build(
        config: &Config,
        runtime: &Runtime,
        tls: &ClientTls,
        own: GatewayId,
        cut: &CancellationToken,
    ) -> Result<Arc<Self>, BuildError> {
        let sides: Vec<_> = config
            .weida_listeners()
            .map(|(name, _)| WeidaSide {
                name: Arc::clone(name),
                listener: runtime.listener(),
                grants: WeidaGrants::new(name, &config.grants),
            })
            .collect();
        let now = Instant::now();
        let handles: Vec<_> = config
            .routes
            .iter()
            .map(|route| RouteHandle::new(route.clone(), own, cut.clone(), now))
            .collect();
        let mut builder = Builder {
            runtime,
            tls,
            sides: &sides,
            publishers: HashMap::new(),
            tasks: Vec::new(),
        };
        let mut routes = HashMap::new();
        let mut subscribers: Vec<(Arc<str>, Vec<Feed>)> = Vec::new();
        for handle in &handles {
            let entry = match handle.config().route.direction {
                Direction::Ingress => builder.ingress(handle)?,
                Direction::Egress => builder.egress(handle, &mut subscribers)?,
            };
            routes.insert(handle.id().clone(), entry);
        }
        for (url, feeds) in subscribers {
            builder.subscribe(url, feeds);
        }
        let pending = Mutex::new(builder.tasks);
        Ok(Arc::new(Self {
            routes,
            handles,
            sides,
            pending,
        }))
    }

    /// Starts what reads and what dials, each in its own scope: a drain ends reading first.
    pub fn start(&self, sources: &mut Scope, dials: &mut Scope) {
        let tasks =
            std::mem::take(&mut *self.pending.lock().unwrap_or_else(PoisonError::into_inner));
        for task in tasks {
            task(sources, dials);
        }
    }

    /// Every route, in file order.
    #[must_use]
    pub fn routes(&self) -> &[Arc<RouteHandle>] {
        &self.handles
    }

    /// The weida listeners, in file order.
    #[must_use]
    pub fn sides(&self) -> &[WeidaSide] {
        &self.sides
    }

    fn entry(&self, route: &RouteId) -> Result<&Entry, FabricError> {
        self.routes
            .get(route)
            .ok_or_else(|| FabricErrorKind::UnknownRoute.into())
    }
}

impl Fabric for GatewayFabric {
    fn ingress(&self, route: &RouteId) -> Result<Ingress, FabricError> {
        match self.entry(route)? {
            Entry::Ingress(stack) => {
                Ok(stack.lock().unwrap_or_else(PoisonError::into_inner).clone())
            }
            Entry::Egress(_) => Err(FabricErrorKind::UnknownRoute.into()),
        }
    }

    fn subscribe(&self, route: &RouteId) -> Result<Deliveries, FabricError> {
        match self.entry(route)? {
            Entry::Egress(queue) => {
                let taken = queue.lock().unwrap_or_else(PoisonError::into_inner).take();
                taken.ok_or_else(|| FabricErrorKind::Configuration.into())
            }
            Entry::Ingress(_) => Err(FabricErrorKind::UnknownRoute.into()),
        }
    }
}

impl fmt::Debug for GatewayFabric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GatewayFabric")
            .field("routes", &self.handles.len())
            .finish_non_exhaustive()
    }
}

/// What routes share while they are built.
struct Builder<'a> {
    runtime: &'a Runtime,
    tls: &'a ClientTls,
    sides: &'a [WeidaSide],
    publishers: HashMap<String, Arc<[Publisher]>>,
    tasks: Vec<Task>,
}

impl Builder<'_> {
    fn ingress(&mut self, handle: &Arc<RouteHandle>) -> Result<Entry, BuildError> {
        let config = handle.config();
        let stamp = Arc::new(Stamp::default());
        let presence = Arc::clone(&handle.parts().presence);
        let stack = match (&config.weida, config.route.pattern) {
            (WeidaEnd::Bind { path }, Pattern::Publish) => {
                let publishers = self.publishers(handle, path)?;
                handle.set_publishers(Arc::clone(&publishers));
                policy::direct(
                    handle.parts(),
                    handle.terms(),
                    PublishEgress { publishers, stamp },
                )
            }
            (WeidaEnd::Dial { address, .. }, Pattern::Push) => {
                let pusher = Arc::new(self.runtime.pusher(self.tls.clone()));
                let presences = vec![Arc::clone(&presence)];
                self.dial(Arc::clone(&pusher), address.to_string().into(), presences);
                let ack_on = config.route.ack_on;
                let egress = PushEgress {
                    pusher,
                    stamp,
                    presence,
                    ack_on,
                };
                policy::waiting(handle.parts(), handle.terms(), egress)
            }
            (WeidaEnd::Dial { address, .. }, Pattern::Request) => {
                let requester = Arc::new(self.runtime.requester(self.tls.clone()));
                let presences = vec![Arc::clone(&presence)];
                self.dial(
                    Arc::clone(&requester),
                    address.to_string().into(),
                    presences,
                );
                let max_reply_bytes = config.route.max_message_bytes;
                let egress = RequestEgress {
                    requester,
                    stamp,
                    presence,
                    max_reply_bytes,
                };
                policy::waiting(handle.parts(), handle.terms(), egress)
            }
            _ => return Err(mismatch(config)),
        };
        Ok(Entry::Ingress(Mutex::new(stack)))
    }

    fn egress(
        &mut self,
        handle: &Arc<RouteHandle>,
        subscribers: &mut Vec<(Arc<str>, Vec<Feed>)>,
    ) -> Result<Entry, BuildError> {
        let config = handle.config();
        let (sender, queue) = deliveries(config.in_flight.max(1));
        let stack = delivering(handle, sender);
        match (&config.weida, config.route.pattern) {
            (WeidaEnd::Bind { path }, Pattern::Pull) => self.pull(handle, path, &stack)?,
            (WeidaEnd::Bind { path }, Pattern::Reply) => self.reply(handle, path, &stack)?,
            (WeidaEnd::Dial { address, filter }, Pattern::Subscribe) => {
                let url: Arc<str> = address.to_string().into();
                let feed = Feed::new(Arc::clone(handle), filter.clone(), stack);
                match subscribers.iter_mut().find(|(known, _)| *known == url) {
                    Some((_, feeds)) => feeds.push(feed),
                    None => subscribers.push((url, vec![feed])),
                }
            }
            _ => return Err(mismatch(config)),
        }
        Ok(Entry::Egress(Mutex::new(Some(queue))))
    }

    fn publishers(
        &mut self,
        handle: &RouteHandle,
        path: &str,
    ) -> Result<Arc<[Publisher]>, BuildError> {
        if let Some(publishers) = self.publishers.get(path) {
            return Ok(Arc::clone(publishers));
        }
        let publishers: Arc<[Publisher]> = self
            .sides
            .iter()
            .map(|side| {
                let grants = side.grants.clone();
                let publisher = side.listener.publisher(path)?;
                // Recorded either way: a decline is never a wire answer [weida S17-13], [weida S17-14].
                Ok(publisher.with_admission(move |request| {
                    if grants.may_subscribe(request.peer, request.path) {
                        Admission::Record
                    } else {
                        Admission::DeclineCopies
                    }
                }))
            })
            .collect::<Result<_, _>>()
            .map_err(|source| failed(handle, "cannot publish at its path", source))?;
        self.publishers
            .insert(path.to_owned(), Arc::clone(&publishers));
        Ok(publishers)
    }

    fn pull(
        &mut self,
        handle: &Arc<RouteHandle>,
        path: &str,
        stack: &Ingress,
    ) -> Result<(), BuildError> {
        for side in self.sides {
            let puller = side
                .listener
                .puller(path)
                .map_err(|source| failed(handle, "cannot pull at its path", source))?;
            let pump = PullPump {
                route: Arc::clone(handle),
                puller,
                grants: side.grants.clone(),
                stack: stack.clone(),
            };
            self.tasks.push(Box::new(move |sources, _| {
                let stop = sources.token().clone();
                sources.spawn(pump.run(stop));
            }));
        }
        Ok(())
    }

    fn reply(
        &mut self,
        handle: &Arc<RouteHandle>,
        path: &str,
        stack: &Ingress,
    ) -> Result<(), BuildError> {
        for side in self.sides {
            let replier = side
                .listener
                .replier(path)
                .map_err(|source| failed(handle, "cannot reply at its path", source))?;
            let pump = ReplyPump {
                route: Arc::clone(handle),
                replier,
                grants: side.grants.clone(),
                stack: stack.clone(),
            };
            self.tasks.push(Box::new(move |sources, _| {
                let stop = sources.token().clone();
                sources.spawn(pump.run(stop));
            }));
        }
        Ok(())
    }

    fn subscribe(&mut self, url: Arc<str>, feeds: Vec<Feed>) {
        let subscriber = Arc::new(self.runtime.subscriber(self.tls.clone()));
        let mut filters: Vec<_> = feeds.iter().map(|feed| feed.filter.clone()).collect();
        // One filter for however many routes: the publisher counts them [weida S17-35].
        filters.sort_unstable_by(|a, b| a.as_str().cmp(b.as_str()));
        filters.dedup();
        let reader = Arc::clone(&subscriber);
        self.tasks.push(Box::new(move |sources, dials| {
            let stop = dials.token().clone();
            let wanted = Arc::clone(&subscriber);
            dials.spawn(async move {
                // Before any connection: remembered, and sent with every connect [weida PS-5].
                for filter in filters {
                    if let Err(error) = wanted.subscribe(filter.as_str()).await {
                        tracing::error!(code = "WEI004", err = %error, "a filter is not taken");
                    }
                }
                keep_dialled(wanted, url, Vec::new(), stop).await;
            });
            let stop = sources.token().clone();
            sources.spawn(
                SubscribePump {
                    subscriber: reader,
                    feeds,
                }
                .run(stop),
            );
        }));
    }

    fn dial(&mut self, endpoint: impl dial::Dials, url: Arc<str>, presences: Vec<Arc<Presence>>) {
        self.tasks.push(Box::new(move |_, dials| {
            let stop = dials.token().clone();
            dials.spawn(keep_dialled(endpoint, url, presences, stop));
        }));
    }
}

/// The stack of an egress route, with the adapter's queue at its foot.
fn delivering(handle: &RouteHandle, sender: DeliverySender) -> Ingress {
    let route = &handle.config().route;
    let reply_within = (route.pattern == Pattern::Reply)
        .then_some(route.timeout)
        .flatten();
    let egress = DeliverEgress {
        sender,
        reply_within,
    };
    policy::waiting(handle.parts(), handle.terms(), egress)
}

fn mismatch(config: &RouteConfig) -> BuildError {
    BuildError {
        route: config.route.id.clone(),
        what: "the pattern does not fit the weida address",
        source: None,
    }
}

fn failed(handle: &RouteHandle, what: &'static str, source: weida::Error) -> BuildError {
    BuildError {
        route: handle.id().clone(),
        what,
        source: Some(source),
    }
}
