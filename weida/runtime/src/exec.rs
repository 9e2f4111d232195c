//! The one place that spawns, sleeps and blocks.
//!
//! Everything else in this crate asks an [`Exec`], so that the library runs on
//! exactly one Tokio runtime, named by the caller, whatever executor drives
//! the futures handed back. `[weida RT-1, RT-4]`

use std::fmt;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio::time::{Instant, Sleep};
use weida_core::{Error, Result};

/// The executor a runtime drives its work on.
///
/// A binding of another language, or a custom resolver, spawns here so that one
/// process never holds two Tokio runtimes for one library. Applications have no
/// use for it: every future of this crate may be driven by any executor.
#[derive(Clone)]
pub struct Exec {
    handle: Handle,
}

impl Exec {
    /// An executor on the Tokio runtime `handle` names.
    pub fn from_handle(handle: Handle) -> Self {
        Self { handle }
    }

    /// The Tokio runtime the calling thread is inside of.
    ///
    /// # Errors
    ///
    /// [`Error::Runtime`] when there is none.
    pub(crate) fn ambient() -> Result<Self> {
        Handle::try_current()
            .map(Self::from_handle)
            .map_err(|_| Error::Runtime("no Tokio runtime on this thread".into()))
    }

    /// The Tokio handle behind this executor.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Waits for `duration` on this runtime's clock.
    pub fn sleep(&self, duration: Duration) -> Sleep {
        // A timer registers with the runtime it is created in, which need not
        // be the executor that will poll it.
        let _context = self.handle.enter();
        tokio::time::sleep(duration)
    }

    /// Waits until `deadline` on this runtime's clock.
    pub fn sleep_until(&self, deadline: Instant) -> Sleep {
        let _context = self.handle.enter();
        tokio::time::sleep_until(deadline)
    }

    /// Now, on this runtime's clock.
    pub fn now(&self) -> Instant {
        let _context = self.handle.enter();
        Instant::now()
    }

    /// Drives `future` for at most `limit`; `None` when time ran out.
    ///
    /// # Cancel safety
    ///
    /// As safe as `future`: it is dropped when time runs out.
    pub async fn timeout<F: Future>(&self, limit: Duration, future: F) -> Option<F::Output> {
        let mut future = pin!(future);
        let mut sleep = pin!(self.sleep(limit));
        std::future::poll_fn(|cx| {
            if let Poll::Ready(output) = future.as_mut().poll(cx) {
                return Poll::Ready(Some(output));
            }
            sleep.as_mut().poll(cx).map(|()| None)
        })
        .await
    }

    /// Runs `work` on the blocking pool.
    ///
    /// The future resolves to `None` if the work panicked or the runtime is
    /// stopping. Dropping it does not stop work that has begun.
    pub fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> impl Future<Output = Option<T>> + Send + 'static {
        let handle = self.handle.spawn_blocking(work);
        async move { handle.await.ok() }
    }

    /// An empty owner of tasks on this executor.
    pub(crate) fn scope(&self) -> Scope {
        Scope {
            exec: self.clone(),
            tasks: JoinSet::new(),
        }
    }

    /// An empty shared owner of tasks on this executor.
    pub(crate) fn tasks(&self) -> Tasks {
        Tasks {
            scope: Mutex::new(self.scope()),
        }
    }

    /// The same executor in the shape quinn asks for.
    pub(crate) fn quinn(&self) -> Arc<dyn quinn::Runtime> {
        Arc::new(QuinnExec(self.clone()))
    }
}

impl fmt::Debug for Exec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exec")
            .field("runtime", &self.handle.id())
            .finish()
    }
}

/// Tasks owned by one place; dropping it aborts them.
pub(crate) struct Scope {
    exec: Exec,
    tasks: JoinSet<()>,
}

impl Scope {
    /// Starts `future` as a task of this scope.
    pub(crate) fn spawn(&mut self, future: impl Future<Output = ()> + Send + 'static) {
        // Finished tasks are collected here, so an owner that never joins does
        // not grow.
        while self.tasks.try_join_next().is_some() {}
        self.tasks.spawn_on(future, &self.exec.handle);
    }

    /// Collects finished tasks until none is left or the limit passes.
    pub(crate) async fn wait_within(&mut self, limit: Duration) {
        let exec = self.exec.clone();
        let all = async { while self.tasks.join_next().await.is_some() {} };
        exec.timeout(limit, all).await;
    }

    /// Like [`Scope::wait_within`], then aborts the rest and returns how many
    /// that were.
    pub(crate) async fn finish_within(&mut self, limit: Duration) -> usize {
        self.wait_within(limit).await;
        let cut = self.tasks.len();
        self.tasks.abort_all();
        cut
    }
}

/// A [`Scope`] several handles share.
pub(crate) struct Tasks {
    scope: Mutex<Scope>,
}

impl Tasks {
    /// Starts `future` as a task of this owner.
    pub(crate) fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        self.scope
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .spawn(future);
    }
}

impl fmt::Debug for Tasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tasks").finish_non_exhaustive()
    }
}

/// A Tokio runtime this library created and stops with its last handle.
pub(crate) struct Reactor(Option<tokio::runtime::Runtime>);

impl Reactor {
    /// A multi-thread runtime with `workers` workers.
    pub(crate) fn new(workers: usize) -> Result<Self> {
        if workers == 0 {
            return Err(Error::Runtime("worker_threads must be at least 1".into()));
        }
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(workers)
            .thread_name("weida")
            .enable_all()
            .build()
            .map(|runtime| Self(Some(runtime)))
            .map_err(|error| Error::Runtime(format!("cannot start a runtime: {error}")))
    }

    pub(crate) fn exec(&self) -> Exec {
        let runtime = self.0.as_ref().expect("taken only by drop");
        Exec::from_handle(runtime.handle().clone())
    }
}

impl Drop for Reactor {
    fn drop(&mut self) {
        // Background, because the last handle may be dropped on one of this
        // reactor's own workers, where a blocking shutdown panics. [weida RT-3]
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl fmt::Debug for Reactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Reactor").finish()
    }
}

/// quinn's executor seam: its drivers run on our handle even when the call
/// that starts one comes from a foreign executor.
#[derive(Debug)]
struct QuinnExec(Exec);

impl quinn::Runtime for QuinnExec {
    fn new_timer(&self, deadline: std::time::Instant) -> Pin<Box<dyn quinn::AsyncTimer>> {
        let _context = self.0.handle.enter();
        quinn::TokioRuntime.new_timer(deadline)
    }

    fn spawn(&self, future: Pin<Box<dyn Future<Output = ()> + Send>>) {
        // quinn's drivers end with their endpoint or connection.
        drop(self.0.handle.spawn(future));
    }

    fn wrap_udp_socket(
        &self,
        socket: std::net::UdpSocket,
    ) -> std::io::Result<Arc<dyn quinn::AsyncUdpSocket>> {
        let _context = self.0.handle.enter();
        quinn::TokioRuntime.wrap_udp_socket(socket)
    }

    fn now(&self) -> std::time::Instant {
        self.0.now().into_std()
    }
}

/// Polls `future` once without arranging to be woken.
pub(crate) fn poll_once<F: Future>(future: F) -> Poll<F::Output> {
    let mut cx = Context::from_waker(std::task::Waker::noop());
    pin!(future).poll(&mut cx)
}
