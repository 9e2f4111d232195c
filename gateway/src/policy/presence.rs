//! Whether a route's destination is there, and the layer that waits for it.
//!
//! Waiting is not failing: while the destination as a whole is away no attempt is started, none is counted, and the
//! route's own clock stands still ([`super::deadline`]); only a message's `expires_at` runs on. The runtime redials for
//! ever, so this file only remembers what it reports.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use tower_layer::Layer;
use tower_service::Service;
use weida_bridge::{FabricError, Outcome};

use super::message::Attempt;

/// Whether one destination is connected, and how long it was not.
#[derive(Debug)]
pub struct Presence {
    here: watch::Sender<bool>,
    absence: Mutex<Absence>,
}

#[derive(Debug, Default)]
struct Absence {
    /// The last absences that ended, oldest first.
    past: VecDeque<(Instant, Instant)>,
    /// Start of the absence that is going on.
    since: Option<Instant>,
    /// How often it was reported to be there.
    visits: u64,
}

/// Absences remembered; of a message older than these the earlier ones are charged to its time.
const MAX_ABSENCES: usize = 16;

impl Presence {
    /// A destination that is there from the start.
    #[must_use]
    pub fn here() -> Arc<Self> {
        Arc::new(Self {
            here: watch::Sender::new(true),
            absence: Mutex::new(Absence::default()),
        })
    }

    /// A destination that has not been reached yet.
    #[must_use]
    pub fn away(now: Instant) -> Arc<Self> {
        Arc::new(Self {
            here: watch::Sender::new(false),
            absence: Mutex::new(Absence {
                since: Some(now),
                ..Absence::default()
            }),
        })
    }

    /// Records that the destination came or went; saying the same twice changes nothing.
    pub fn set(&self, here: bool, now: Instant) {
        {
            // The duration is settled before anybody can wake up and ask for it.
            let mut absence = self.lock();
            absence.visits += u64::from(here);
            match (here, absence.since) {
                (true, Some(since)) => {
                    if absence.past.len() == MAX_ABSENCES {
                        absence.past.pop_front();
                    }
                    absence.past.push_back((since, now));
                    absence.since = None;
                }
                (false, None) => absence.since = Some(now),
                (true, None) | (false, Some(_)) => {}
            }
        }
        self.here
            .send_if_modified(|old| std::mem::replace(old, here) != here);
    }

    /// Which stay of the destination this is; for [`Presence::leaves`].
    #[must_use]
    pub fn visit(&self) -> u64 {
        self.lock().visits
    }

    /// Records that the destination said goodbye during `visit`. It counts as away until it is reported again; when it was
    /// reported since, the goodbye is old news and changes nothing.
    pub fn leaves(&self, visit: u64, now: Instant) {
        {
            let mut absence = self.lock();
            if absence.visits != visit || absence.since.is_some() {
                return;
            }
            absence.since = Some(now);
        }
        self.here
            .send_if_modified(|old| std::mem::replace(old, false));
    }

    /// Whether it is there now.
    #[must_use]
    pub fn is_here(&self) -> bool {
        *self.here.borrow()
    }

    /// How long it was away between `from` and `now`, all absences together.
    #[must_use]
    pub fn away_between(&self, from: Instant, now: Instant) -> Duration {
        let absence = self.lock();
        let running = absence.since.map(|since| (since, now));
        let mut away = Duration::ZERO;
        for (start, end) in absence.past.iter().copied().chain(running) {
            away += end.min(now).saturating_duration_since(start.max(from));
        }
        away
    }

    /// Since when it is away; `None` while it is there.
    #[must_use]
    pub fn away_since(&self) -> Option<Instant> {
        self.lock().since
    }

    /// Waits until it is there.
    ///
    /// # Cancel safety
    /// Nothing is lost when dropped.
    pub async fn arrived(&self) {
        let mut here = self.here.subscribe();
        // The sender lives in `self`, so the wait cannot fail.
        let _: Result<_, watch::error::RecvError> = here.wait_for(|here| *here).await.map(|_| ());
    }

    /// Waits until it comes or goes.
    pub(crate) async fn changed_from(&self, was_here: bool) {
        let mut here = self.here.subscribe();
        let _: Result<_, watch::error::RecvError> =
            here.wait_for(|here| *here != was_here).await.map(|_| ());
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Absence> {
        self.absence.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Puts a [`Gate`] in front of a service.
#[derive(Clone, Debug)]
pub struct GateLayer(pub Arc<Presence>);

impl<S> Layer<S> for GateLayer {
    type Service = Gate<S>;

    fn layer(&self, inner: S) -> Gate<S> {
        Gate {
            presence: Arc::clone(&self.0),
            inner,
        }
    }
}

/// Holds an attempt back until the destination is there.
///
/// It stands outside the attempt timeout, so that waiting for a redial never looks like a slow attempt, and inside
/// the concurrency limit, so that at most `in_flight` messages leave at once when the destination returns.
#[derive(Clone, Debug)]
pub struct Gate<S> {
    presence: Arc<Presence>,
    inner: S,
}

impl<S> Service<Attempt> for Gate<S>
where
    S: Service<Attempt, Response = Outcome, Error = FabricError> + Clone + Send + 'static,
    S::Future: Send,
{
    type Response = Outcome;
    type Error = FabricError;
    type Future = Pin<Box<dyn Future<Output = Result<Outcome, FabricError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), FabricError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, attempt: Attempt) -> Self::Future {
        let clone = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, clone);
        let presence = Arc::clone(&self.presence);
        Box::pin(async move {
            if !presence.is_here() {
                attempt.mark.waiting();
                presence.arrived().await;
            }
            attempt.mark.attempting();
            let result = inner.call(attempt.clone()).await;
            attempt.mark.waiting();
            result
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Absences add up, and repeating a report changes nothing.
    #[tokio::test(start_paused = true)]
    async fn r8_absences_add_up() {
        let presence = Presence::here();
        let start = Instant::now();
        presence.set(true, start);
        assert_eq!(presence.away_between(start, start), Duration::ZERO);
        presence.set(false, start + Duration::from_secs(1));
        presence.set(false, start + Duration::from_secs(2));
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(presence.away_between(start, at(4)), Duration::from_secs(3));
        assert_eq!(presence.away_between(at(3), at(4)), Duration::from_secs(1));
        presence.set(true, start + Duration::from_secs(5));
        presence.set(true, start + Duration::from_secs(9));
        assert_eq!(presence.away_between(start, at(20)), Duration::from_secs(4));
        assert_eq!(presence.away_between(at(6), at(20)), Duration::ZERO);
        assert!(presence.away_since().is_none());
    }

    /// A goodbye holds for the stay it was said in, and a later arrival is not undone by it.
    #[tokio::test(start_paused = true)]
    async fn r8_an_old_goodbye_changes_nothing() {
        let presence = Presence::away(Instant::now());
        presence.set(true, Instant::now());
        let first = presence.visit();
        presence.leaves(first, Instant::now());
        assert!(!presence.is_here() && presence.away_since().is_some());
        presence.set(true, Instant::now());
        presence.leaves(first, Instant::now());
        assert!(presence.is_here() && presence.away_since().is_none());
    }

    /// A waiter wakes when the destination comes, not before.
    #[tokio::test(start_paused = true)]
    async fn r8_a_waiter_wakes_when_the_destination_returns() {
        let presence = Presence::away(Instant::now());
        let waiter = presence.arrived();
        tokio::pin!(waiter);
        assert!(
            tokio::time::timeout(Duration::from_secs(60), &mut waiter)
                .await
                .is_err()
        );
        presence.set(true, Instant::now());
        tokio::time::timeout(Duration::from_millis(1), waiter)
            .await
            .unwrap();
    }
}
