//! The runtimes under test: ours, and the published one the expectations were
//! observed at. One body for both; only the crate differs.

use std::any::Any;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use crate::raw::Key;

/// Which runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    Ours,
    Published,
}

/// What a test sets; everything else is the runtime's default.
#[derive(Clone, Debug)]
pub(crate) struct Tuning {
    pub(crate) hello_timeout_ms: u64,
    pub(crate) header_timeout_ms: u64,
    pub(crate) idle_timeout: Duration,
    pub(crate) max_header_bytes: u64,
    pub(crate) max_header_streams: usize,
    pub(crate) max_subscriptions: usize,
    pub(crate) max_connections: usize,
    pub(crate) max_connections_per_peer: usize,
    pub(crate) max_handshakes: usize,
    pub(crate) retry_above_handshakes: usize,
    /// The binding lets in any key, and nobody without one.
    pub(crate) any_key: bool,
    /// Datagram flows and path reports are on, where the runtime has them.
    pub(crate) flows_and_reports: bool,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            hello_timeout_ms: 10_000,
            header_timeout_ms: 10_000,
            idle_timeout: Duration::from_secs(30),
            max_header_bytes: 16_384,
            max_header_streams: 64,
            max_subscriptions: 256,
            max_connections: 1024,
            max_connections_per_peer: 64,
            max_handshakes: 256,
            retry_above_handshakes: 64,
            any_key: false,
            flows_and_reports: false,
        }
    }
}

/// What arrived at a puller or subscriber: the body, or the name of the error.
pub(crate) type Arrival = Result<Vec<u8>, String>;

type Drain = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A binding with a replier at `/echo`, a puller at `/jobs`, a publisher at
/// `/md` and a raw acceptor at `/raw`.
pub(crate) struct Served {
    pub(crate) addr: SocketAddr,
    pub(crate) arrivals: mpsc::Receiver<Arrival>,
    /// Drains the runtime, given time for what is outstanding.
    pub(crate) drain: Drain,
    pub(crate) guard: Box<dyn Any + Send>,
}

/// A subscriber that is dialling.
pub(crate) struct Dialled {
    pub(crate) connected: oneshot::Receiver<Result<(), String>>,
    pub(crate) arrivals: mpsc::Receiver<Arrival>,
    pub(crate) guard: Box<dyn Any + Send>,
}

/// A question to a requester, and where its outcome goes.
pub(crate) type Ask = (Vec<u8>, oneshot::Sender<Result<Vec<u8>, String>>);

/// A requester that is dialling.
pub(crate) struct Asking {
    pub(crate) connected: oneshot::Receiver<Result<(), String>>,
    pub(crate) asks: mpsc::Sender<Ask>,
    pub(crate) guard: Box<dyn Any + Send>,
}

/// A requester that dials again whenever its connection is gone.
pub(crate) struct Redialling {
    pub(crate) connected: mpsc::Receiver<Result<(), String>>,
    _guard: Box<dyn Any + Send>,
}

/// The variant of an error without what is in it.
fn name(error: &impl std::fmt::Debug) -> String {
    let text = format!("{error:?}");
    let end = text.find(|c: char| !c.is_alphanumeric());
    text[..end.unwrap_or(text.len())].to_owned()
}

macro_rules! subject {
    ($module:ident, $weida:ident) => {
        mod $module {
            use std::sync::Arc;
            use std::time::Duration;

            use tokio::sync::{mpsc, oneshot};
            use tokio::task::JoinSet;
            use $weida::{
                ClientTrust, Identity, Limits, ReconnectPolicy, Runtime, RuntimeConfig, ServerTls,
                TransferMeta, Trust,
            };

            use super::{Ask, Asking, Dialled, Redialling, Served, Tuning, name};
            use crate::raw::{Key, loopback};

            const BODY_BYTES: usize = 4 << 20;

            fn runtime(tuning: &Tuning) -> Runtime {
                let limits = Limits {
                    hello_timeout_ms: tuning.hello_timeout_ms,
                    header_timeout_ms: tuning.header_timeout_ms,
                    idle_timeout: tuning.idle_timeout,
                    max_header_bytes: tuning.max_header_bytes,
                    max_header_streams: tuning.max_header_streams,
                    max_subscriptions: tuning.max_subscriptions,
                    datagram_receive_bytes: if tuning.flows_and_reports { 65_536 } else { 0 },
                    path_report: tuning.flows_and_reports,
                    ..Limits::default()
                };
                let config = RuntimeConfig {
                    limits,
                    max_connections: tuning.max_connections,
                    max_connections_per_peer: tuning.max_connections_per_peer,
                    max_handshakes: tuning.max_handshakes,
                    retry_above_handshakes: tuning.retry_above_handshakes,
                    reconnect: ReconnectPolicy::never(),
                    shutdown_timeout: Duration::from_millis(200),
                    ..RuntimeConfig::default()
                };
                Runtime::new(config).unwrap()
            }

            pub(super) async fn serve(tuning: &Tuning, key: &Key) -> Served {
                let runtime = runtime(tuning);
                let listener = runtime.listener();
                let identity = Identity::from_pem(key.pem.0.clone(), key.pem.1.clone());
                let mut tls = ServerTls::new(identity);
                if tuning.any_key {
                    tls = tls.require_client(ClientTrust::AnyKey);
                }
                let replier = listener.replier("/echo").unwrap();
                let puller = listener.puller("/jobs").unwrap();
                let publisher = listener.publisher("/md").unwrap();
                let acceptor = listener.acceptor("/raw").unwrap();
                let binding = listener.bind_quic(loopback(), tls).await.unwrap();
                let addr = binding.local_addr();
                let (tell, arrivals) = mpsc::channel(4096);
                let mut tasks = JoinSet::new();
                tasks.spawn(async move {
                    let mut bodies = JoinSet::new();
                    while let Ok(transfer) = puller.recv().await {
                        let tell = tell.clone();
                        bodies.spawn(async move {
                            let body = transfer.collect(BODY_BYTES).await;
                            drop(tell.send(body.map_err(|error| name(&error))).await);
                        });
                    }
                });
                tasks.spawn(async move {
                    let mut answers = JoinSet::new();
                    while let Ok(mut request) = replier.accept().await {
                        answers.spawn(async move {
                            let Ok(body) = request.body().read_capped(BODY_BYTES).await else {
                                return;
                            };
                            let Ok(mut reply) = request.reply(TransferMeta::default()).await else {
                                return;
                            };
                            if reply.write_all(&body).await.is_ok() {
                                drop(reply.finish());
                            }
                        });
                    }
                });
                tasks.spawn(async move {
                    // Held, neither read nor refused.
                    let mut held = Vec::new();
                    while let Ok(incoming) = acceptor.accept().await {
                        held.push(incoming);
                    }
                });
                let draining = runtime.clone();
                Served {
                    addr,
                    arrivals,
                    drain: Box::pin(async move {
                        let _drained = draining.drain(Duration::from_millis(1500)).await;
                    }),
                    guard: Box::new((binding, publisher, listener, tasks, runtime)),
                }
            }

            pub(super) fn subscribe(tuning: &Tuning, url: String) -> Dialled {
                let runtime = runtime(tuning);
                let (connecting, connected) = oneshot::channel();
                let (tell, arrivals) = mpsc::channel(4096);
                let subscriber = Arc::new(runtime.subscriber(Trust::by_address()));
                let mut tasks = JoinSet::new();
                tasks.spawn(async move {
                    let outcome = subscriber.connect(&url).await;
                    let failed = outcome.is_err();
                    drop(connecting.send(outcome.map_err(|error| name(&error))));
                    if failed {
                        return;
                    }
                    let mut bodies = JoinSet::new();
                    while let Ok(transfer) = subscriber.recv().await {
                        let tell = tell.clone();
                        bodies.spawn(async move {
                            let body = transfer.collect(BODY_BYTES).await;
                            drop(tell.send(body.map_err(|error| name(&error))).await);
                        });
                    }
                });
                Dialled {
                    connected,
                    arrivals,
                    guard: Box::new((tasks, runtime)),
                }
            }

            pub(super) fn redial(url: String) -> Redialling {
                let config = RuntimeConfig {
                    reconnect: ReconnectPolicy::never(),
                    ..RuntimeConfig::default()
                };
                let runtime = Runtime::new(config).unwrap();
                let (tell, connected) = mpsc::channel(8);
                let mut tasks = JoinSet::new();
                let dialling = runtime.clone();
                tasks.spawn(async move {
                    loop {
                        let requester = dialling.requester(Trust::by_address());
                        let outcome = requester.connect(&url).await;
                        drop(tell.send(outcome.map_err(|error| name(&error))).await);
                        // Until this connection is gone and the next one is new.
                        while requester.peer_count() > 0 {
                            tokio::time::sleep(Duration::from_millis(2)).await;
                        }
                    }
                });
                Redialling {
                    connected,
                    _guard: Box::new((tasks, runtime)),
                }
            }

            pub(super) fn request(tuning: &Tuning, url: String) -> Asking {
                let runtime = runtime(tuning);
                let (connecting, connected) = oneshot::channel();
                let (asks, mut asked) = mpsc::channel::<Ask>(16);
                let requester = Arc::new(runtime.requester(Trust::by_address()));
                let mut tasks = JoinSet::new();
                tasks.spawn(async move {
                    let outcome = requester.connect(&url).await;
                    let failed = outcome.is_err();
                    drop(connecting.send(outcome.map_err(|error| name(&error))));
                    if failed {
                        return;
                    }
                    let mut requests = JoinSet::new();
                    while let Some((body, tell)) = asked.recv().await {
                        let requester = Arc::clone(&requester);
                        requests.spawn(async move {
                            let outcome = async {
                                let reply = requester.request(&body).await?;
                                reply.collect(BODY_BYTES).await
                            };
                            let outcome = outcome.await;
                            drop(tell.send(outcome.map_err(|error| name(&error))));
                        });
                    }
                });
                Asking {
                    connected,
                    asks,
                    guard: Box::new((tasks, runtime)),
                }
            }
        }
    };
}

subject!(ours, weida);
subject!(published, weida_published);

pub(crate) async fn serve(subject: Subject, tuning: &Tuning) -> Served {
    let key = Key::generate();
    match subject {
        Subject::Ours => ours::serve(tuning, &key).await,
        Subject::Published => published::serve(tuning, &key).await,
    }
}

pub(crate) fn subscribe(subject: Subject, tuning: &Tuning, url: String) -> Dialled {
    match subject {
        Subject::Ours => ours::subscribe(tuning, url),
        Subject::Published => published::subscribe(tuning, url),
    }
}

pub(crate) fn request(subject: Subject, tuning: &Tuning, url: String) -> Asking {
    match subject {
        Subject::Ours => ours::request(tuning, url),
        Subject::Published => published::request(tuning, url),
    }
}

pub(crate) fn redial(subject: Subject, url: String) -> Redialling {
    match subject {
        Subject::Ours => ours::redial(url),
        Subject::Published => published::redial(url),
    }
}
