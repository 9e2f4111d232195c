//! The outermost layer: a message that was taken goes on, whoever stops waiting for it.
//!
//! A foreign session may end right after its last publish; the messages it brought must still be delivered, and a
//! drain must be able to wait for them. So a message that is not done at once moves into a task of the route. One that
//! is done at once (a fan-out always is) never costs a task.
//!
//! A panic below ends one message, is counted, and never reaches the session that called.

use std::collections::{BTreeMap, VecDeque};
use std::future::{Future, ready};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower_layer::Layer;
use tower_service::Service;
use weida_bridge::fabric::IngressFuture;
use weida_bridge::{Envelope, FabricError, FabricErrorKind, Outcome};

/// Owner of the messages of one route.
#[derive(Debug)]
pub struct Crew {
    tasks: TaskTracker,
    /// Ends every message at once: the drain deadline has passed.
    cut: CancellationToken,
    panics: Mutex<VecDeque<Instant>>,
    /// When each message in a task was read from its source; ids rise, so the first is about the oldest.
    ages: Mutex<BTreeMap<u64, Instant>>,
    next: AtomicU64,
}

/// So many panics within [`PANIC_WINDOW`] make a route `broken` (`gateway.md` 14).
const PANICS_BROKEN: usize = 5;
const PANIC_WINDOW: Duration = Duration::from_secs(60);

impl Crew {
    /// Nobody at work yet; `cut` ends what is left when a drain's time is over.
    #[must_use]
    pub fn new(cut: CancellationToken) -> Arc<Self> {
        Arc::new(Self {
            tasks: TaskTracker::new(),
            cut,
            panics: Mutex::new(VecDeque::with_capacity(PANICS_BROKEN)),
            ages: Mutex::new(BTreeMap::new()),
            next: AtomicU64::new(0),
        })
    }

    /// Messages in tasks, now.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Whether no message is in a task.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Waits until no message is in a task; new ones may follow.
    ///
    /// # Cancel safety
    /// Nothing is lost when dropped.
    pub async fn finished(&self) {
        self.tasks.close();
        self.tasks.wait().await;
        self.tasks.reopen();
    }

    /// Whether the route panics all the time.
    #[must_use]
    pub fn is_broken(&self, now: Instant) -> bool {
        let panics = self.panics.lock().unwrap_or_else(PoisonError::into_inner);
        panics.len() == PANICS_BROKEN
            && panics
                .front()
                .is_some_and(|oldest| now.saturating_duration_since(*oldest) < PANIC_WINDOW)
    }

    /// How long the oldest message in a task has been here.
    #[must_use]
    pub fn oldest_age(&self, now: Instant) -> Duration {
        let ages = self.ages.lock().unwrap_or_else(PoisonError::into_inner);
        ages.first_key_value().map_or(Duration::ZERO, |(_, since)| {
            now.saturating_duration_since(*since)
        })
    }

    fn enter(self: &Arc<Self>, received_at: Instant) -> Entry {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        self.ages
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(id, received_at);
        Entry {
            crew: Arc::clone(self),
            id,
        }
    }

    fn panicked(&self) -> FabricError {
        let mut panics = self.panics.lock().unwrap_or_else(PoisonError::into_inner);
        if panics.len() == PANICS_BROKEN {
            panics.pop_front();
        }
        panics.push_back(Instant::now());
        FabricErrorKind::Internal.into()
    }
}

/// A message in a task.
#[derive(Debug)]
struct Entry {
    crew: Arc<Crew>,
    id: u64,
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.crew
            .ages
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&self.id);
    }
}

/// Builds [`Detach`] services.
#[derive(Clone, Debug)]
pub struct DetachLayer(pub Arc<Crew>);

impl<S> Layer<S> for DetachLayer {
    type Service = Detach<S>;

    fn layer(&self, inner: S) -> Detach<S> {
        Detach {
            crew: Arc::clone(&self.0),
            inner,
        }
    }
}

/// Runs each message to its end.
#[derive(Clone, Debug)]
pub struct Detach<S> {
    crew: Arc<Crew>,
    inner: S,
}

impl<S> Service<Envelope> for Detach<S>
where
    S: Service<Envelope, Response = Outcome, Error = FabricError>,
    S::Future: Send + Unpin + 'static,
{
    type Response = Outcome;
    type Error = FabricError;
    type Future = IngressFuture;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), FabricError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, envelope: Envelope) -> Self::Future {
        let inner = &mut self.inner;
        let received_at = envelope.received_at;
        // The waker is of no use: whoever is not ready is polled again by its task.
        let begun = catch_unwind(AssertUnwindSafe(|| {
            let mut future = inner.call(envelope);
            match Pin::new(&mut future).poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(result) => Ok(result),
                Poll::Pending => Err(future),
            }
        }));
        let future = match begun {
            Ok(Ok(result)) => return Box::pin(ready(result)),
            Ok(Err(future)) => future,
            Err(_panic) => return Box::pin(ready(Err(self.crew.panicked()))),
        };
        let cut = self.crew.cut.clone();
        let entry = self.crew.enter(received_at);
        let task = self.crew.tasks.spawn(async move {
            let _entry = entry;
            tokio::select! {
                biased;
                // First: what one message gives back when it is cut must not start the next one.
                () = cut.cancelled() => Err(FabricErrorKind::Closed.into()),
                result = future => result,
            }
        });
        let crew = Arc::clone(&self.crew);
        Box::pin(async move {
            match task.await {
                Ok(result) => result,
                Err(error) if error.is_panic() => Err(crew.panicked()),
                Err(_aborted) => Err(FabricErrorKind::Closed.into()),
            }
        })
    }
}
