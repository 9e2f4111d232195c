//! What all connections of one listener share.

use std::num::{NonZeroU16, NonZeroU32};
use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::gate::Gate;
use crate::auth::Passwords;
use crate::codec::QoS;
use crate::config::{Grant, KeepAliveZero, Limits, ListenerConfig};
use crate::metrics::ListenerMetrics;
use crate::router::Router;
use crate::session::Sessions;
use crate::state::{Terms, ZeroKeepAlive};

/// One listener at run time; everything in it is shared or immutable.
pub(crate) struct Host<I> {
    pub(crate) config: ListenerConfig,
    pub(crate) limits: Limits,
    pub(crate) terms: Terms,
    pub(crate) name: Arc<str>,
    pub(crate) group: Arc<str>,
    pub(crate) metrics: Arc<ListenerMetrics>,
    pub(crate) router: Arc<Router>,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) grants: Arc<[Grant]>,
    pub(crate) passwords: Option<Arc<Passwords>>,
    pub(crate) tls: Option<TlsAcceptor>,
    pub(crate) handshakes: Arc<Semaphore>,
    /// Connections that are only told why they are turned away.
    pub(crate) turned_away: Arc<Semaphore>,
    /// Whether anything could ever reach a subscriber here.
    pub(crate) receives: bool,
    pub(crate) finisher: Arc<Finisher>,
    pub(crate) intakes: Arc<I>,
}

impl<I> std::fmt::Debug for Host<I> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Host")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// Where the routes' answers are awaited after their client left.
///
/// # Limits
///
/// [`Limits::max_finishing`] publishes; beyond it the connection's own task stays until its
/// answers came, which holds its place among the listener's connections.
#[derive(Debug)]
pub(crate) struct Finisher {
    pub(crate) tasks: TaskTracker,
    pub(crate) room: Arc<Semaphore>,
    /// Cancelled when a drain gives up.
    pub(crate) abort: CancellationToken,
}

impl Finisher {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            tasks: TaskTracker::new(),
            room: Arc::new(Semaphore::new(
                limits.max_finishing.min(Semaphore::MAX_PERMITS),
            )),
            abort: CancellationToken::new(),
        }
    }
}

/// What a listener announces and enforces, for the connection machine.
pub(crate) fn terms(config: &ListenerConfig, limits: &Limits) -> Terms {
    let packet = u32::try_from(config.max_packet_bytes()).unwrap_or(u32::MAX);
    Terms {
        receive_maximum: NonZeroU16::new(config.receive_maximum).unwrap_or(NonZeroU16::MIN),
        max_packet_bytes: NonZeroU32::new(packet).unwrap_or(NonZeroU32::MIN),
        max_connect_bytes: 64 << 10,
        topic_alias_maximum: config.topic_alias_max,
        max_qos: QoS::from_bits(config.max_qos).unwrap_or_default(),
        retain_available: false,
        wildcard_subscriptions: true,
        subscription_ids: true,
        shared_subscriptions: false,
        keep_alive_max_secs: u16::try_from(config.keep_alive_max.as_secs()).unwrap_or(u16::MAX),
        keep_alive_zero: match config.keep_alive_zero {
            KeepAliveZero::Allow => ZeroKeepAlive::Allow,
            KeepAliveZero::Replace => ZeroKeepAlive::Replace,
        },
        idle_max: config.idle_max,
        max_topic_bytes: config.max_topic_bytes,
        max_topic_levels: config.max_levels,
        max_user_properties: limits.max_meta_entries,
        max_user_property_bytes: limits.max_meta_bytes,
        max_inflight_out: config.max_inflight_out,
        max_inflight_out_v311: config.max_inflight_out.min(20),
        strict_utf8: config.strict_utf8,
    }
}
