//! The life of the process: start order, signals, drain, exit code (`gateway.md` 7).
//!
//! Open files, the lock on the data folder, the identity, admin (live, not ready), routes and their destinations,
//! listeners, ready: in this order. A destination that is away holds nothing up: it is dialled for ever. A listener that
//! cannot be bound is fatal.

mod host;
mod weida_side;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};
use weida_bridge::{GatewayId, Scope};
use weida_core::Fingerprint;

pub use crate::state::Bound;

use self::host::DataDir;
use crate::admin::Admin;
use crate::config::Config;
use crate::drain::{DrainReport, Ending};
use crate::fabric::GatewayFabric;
use crate::state::State;
use crate::{identity, mqtt};

/// How often the main loop says that it comes round.
const TICK: Duration = Duration::from_secs(1);

/// What a started process tells whoever started it.
#[derive(Clone, Debug)]
pub struct Started {
    /// Who it is on the weida side.
    pub fingerprint: Fingerprint,
    /// Every listener, with its real port.
    pub listeners: Vec<Bound>,
    /// Where the admin pages are.
    pub admin: SocketAddr,
    /// What the process shows of itself.
    pub state: Arc<State>,
}

/// How a run ended.
#[derive(Debug)]
pub struct ExitReport {
    /// The exit code, by name.
    pub exit: Exit,
    /// Why it did not run, in one line.
    pub reason: Option<String>,
    /// How the drain went, if it came to one.
    pub drain: Option<DrainReport>,
}

/// The exit codes of `run` (`gateway.md` 3).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Exit {
    /// Drained.
    Drained,
    /// Fatal at run time.
    Fatal,
    /// The configuration cannot be honoured.
    Invalid,
    /// The drain's time was over with work left.
    DrainExpired,
    /// The data folder is locked or unusable.
    Storage,
}

impl Exit {
    /// The code itself.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Drained => 0,
            Self::Fatal => 1,
            Self::Invalid => 3,
            Self::DrainExpired => 4,
            Self::Storage => 5,
        }
    }
}

/// Runs a gateway until `stop` is cancelled or the process gets SIGTERM or SIGINT, and drains it then.
///
/// `ready` is called once, when everything is bound. Must be called inside a tokio runtime with time and I/O.
///
/// # Cancel safety
/// Not safe: a dropped call cuts everything without a drain.
pub async fn start(
    config: Config,
    stop: CancellationToken,
    ready: impl FnOnce(Started) + Send,
) -> ExitReport {
    match run(config, stop, ready).await {
        Ok(drain) => {
            let exit = if drain.is_complete() {
                Exit::Drained
            } else {
                Exit::DrainExpired
            };
            info!(
                code = "LIF004",
                delivered = drain.delivered,
                settled = drain.settled,
                dropped = drain.dropped,
                unsettled = drain.unsettled,
                took = ?drain.took,
                "drained"
            );
            ExitReport {
                exit,
                reason: None,
                drain: Some(drain),
            }
        }
        Err(failure) => {
            error!(code = "LIF005", err = %failure.reason, "not started");
            ExitReport {
                exit: failure.exit,
                reason: Some(failure.reason),
                drain: None,
            }
        }
    }
}

/// Why a run did not start.
#[derive(Debug)]
struct Failure {
    exit: Exit,
    reason: String,
}

impl Failure {
    fn new(exit: Exit, error: &dyn std::error::Error) -> Self {
        let mut reason = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            reason.push_str(": ");
            reason.push_str(&cause.to_string());
            source = cause.source();
        }
        Self { exit, reason }
    }
}

fn fatal<E: std::error::Error>(error: E) -> Failure {
    Failure::new(Exit::Fatal, &error)
}

async fn run(
    config: Config,
    stop: CancellationToken,
    ready: impl FnOnce(Started) + Send,
) -> Result<DrainReport, Failure> {
    host::raise_open_files(&config);
    let storage = |error| Failure::new(Exit::Storage, &error);
    let _lock = DataDir::lock(&config.gateway.data_dir).map_err(storage)?;
    let identity = identity::load_or_create(&config.identity).map_err(fatal)?;
    let fingerprint = identity.fingerprint().map_err(fatal)?;
    let own = gateway_id(fingerprint);
    let terms = weida_side::Terms::new(&config.identity, identity);
    let runtime = weida_side::runtime(&config).map_err(fatal)?;
    let cut = CancellationToken::new();
    let fabric = GatewayFabric::build(&config, &runtime, &terms.client(), own, &cut)
        .map_err(|error| Failure::new(Exit::Invalid, &error))?;
    let state = State::new(
        Arc::clone(&config.gateway.name),
        fingerprint,
        fabric.routes().to_vec(),
        fabric
            .sides()
            .iter()
            .map(|side| Arc::clone(side.grants.refusals()))
            .collect(),
    );
    state.tick();
    let admin = Admin::start(&config.admin, Arc::clone(&state)).map_err(fatal)?;

    let never = CancellationToken::new();
    let mut sources = Scope::new(&never, config.gateway.drain_timeout);
    let mut dials = Scope::new(&never, config.gateway.drain_timeout);
    let mut adapters = Scope::new(&never, config.gateway.drain_timeout);
    let failed = CancellationToken::new();
    fabric.start(&mut sources, &mut dials);
    let (mut bound, bindings) = weida_side::bind(&config, &fabric, &terms)
        .await
        .map_err(fatal)?;
    state.set_bindings(bindings);
    let served = mqtt::serve(&config, &fabric, own, &state, &mut adapters, &failed).await;
    bound.extend(served.map_err(|reason| Failure {
        exit: Exit::Fatal,
        reason,
    })?);
    state.set_bound(bound.clone());
    let signals = host::Signals::new().map_err(fatal)?;
    state.set_ready();
    info!(
        code = "LIF001",
        version = env!("CARGO_PKG_VERSION"),
        name = state.name(),
        %fingerprint,
        listeners = bound.len(),
        routes = state.routes().len(),
        admin = %admin.address(),
        "ready"
    );
    ready(Started {
        fingerprint,
        listeners: bound,
        admin: admin.address(),
        state: Arc::clone(&state),
    });

    let abort = CancellationToken::new();
    let mut signals = serve(&state, &stop, &failed, signals).await;
    info!(code = "LIF002", timeout = ?config.gateway.drain_timeout, "draining");
    let ending = Ending {
        state,
        sources,
        dials,
        adapters,
        runtime,
        cut,
        abort: abort.clone(),
    };
    let drain = ending.run(config.gateway.drain_timeout, config.gateway.drain_delay);
    tokio::pin!(drain);
    let report = loop {
        tokio::select! {
            biased;
            report = &mut drain => break report,
            name = signals.next() => {
                warn!(code = "LIF003", signal = name, "second signal, cutting what is left");
                abort.cancel();
            }
        }
    };
    if failed.is_cancelled() {
        return Err(Failure {
            exit: Exit::Fatal,
            reason: "a listener ended by itself".into(),
        });
    }
    drop(admin);
    Ok(report)
}

/// The main loop: comes round once a second until it is told to stop.
async fn serve(
    state: &State,
    stop: &CancellationToken,
    failed: &CancellationToken,
    mut signals: host::Signals,
) -> host::Signals {
    let mut ticks = tokio::time::interval(TICK);
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => return signals,
            () = failed.cancelled() => return signals,
            name = signals.next() => {
                info!(code = "LIF006", signal = name, "told to stop");
                return signals;
            }
            _ = ticks.tick() => state.tick(),
        }
    }
}

/// The mark of this gateway: the first eight bytes of its fingerprint (`gateway.md` 8.2).
fn gateway_id(fingerprint: Fingerprint) -> GatewayId {
    let mut id = [0; 8];
    id.copy_from_slice(&fingerprint.as_bytes()[..8]);
    GatewayId(id)
}
