//! What stands behind a listener besides its own sessions: the floor above, seen from below.
//!
//! The driver knows no route. It hands every accepted publish to an [`Intake`] and hears later
//! what became of it.

use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::time::Instant;

use super::acks::{Refused, Verdict};
use crate::codec::Publish;
use crate::session::Session;

/// Makes one [`Intake`] per session.
pub(crate) trait Intakes: Send + Sync + 'static {
    type Intake: Intake;

    fn open(self: &Arc<Self>, session: &Arc<Session>) -> Self::Intake;
}

/// Where the publishes of one session go besides local subscribers.
pub(crate) trait Intake: Send + 'static {
    /// Looks at a publish before anybody gets it: takes reserved names off, or refuses it.
    fn admit(&mut self, publish: &mut Publish) -> Result<(), Refused>;

    /// A publish below `$`, which only open requests may take.
    fn admit_reply(&mut self, publish: &Publish) -> Verdict;

    /// Hands a publish on. Returns how many answers with `serial` will follow; QoS 0 has no
    /// serial and no answers.
    fn offer(&mut self, publish: &Publish, serial: Option<u64>, now: Instant) -> u32;

    /// The next answer. `Pending` also when nothing is awaited.
    fn poll_settled(&mut self, cx: &mut Context<'_>) -> Poll<(u64, Verdict)>;

    /// Until when the source should not be read: a QoS 0 message waits in front of a full route.
    fn paused_until(&self) -> Option<Instant>;

    /// Bytes that wait in front of full routes.
    fn parked_bytes(&self) -> usize;

    /// The time of [`paused_until`](Self::paused_until) has come.
    fn give_up_waiting(&mut self, now: Instant);

    /// How many publishes are on their way through routes.
    fn awaited(&self) -> u32;

    /// Whether nothing is.
    fn is_idle(&self) -> bool {
        self.awaited() == 0
    }

    /// Sees everything through that was handed on, without its session.
    fn finish(self) -> impl Future<Output = ()> + Send;
}
