//! How adapters run tasks: owned, told to stop, joined, and cut at a deadline.

use std::future::Future;
use std::time::Duration;

use tokio::task::{AbortHandle, JoinError, JoinSet};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

/// Tasks with one owner and one end.
///
/// Dropping a scope cuts its tasks at their next `.await`. [`Scope::finish`] is the polite way: the token tells every task
/// to end, the deadline cuts those that do not.
///
/// ```
/// use std::time::Duration;
/// use tokio_util::sync::CancellationToken;
/// use weida_bridge::Scope;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let process = CancellationToken::new();
/// let mut scope = Scope::new(&process, Duration::from_secs(8));
/// let stop = scope.token().clone();
/// scope.spawn(async move { stop.cancelled().await });
/// process.cancel();
/// assert_eq!(scope.finish().await.cut, 0);
/// # }
/// ```
#[derive(Debug)]
pub struct Scope {
    tasks: JoinSet<()>,
    token: CancellationToken,
    drain: Duration,
    panicked: usize,
    ended: usize,
}

impl Scope {
    /// A scope below `parent`: cancelling the parent tells this scope's tasks to end. They have `drain` from the call of
    /// [`finish`](Self::finish) on.
    #[must_use]
    pub fn new(parent: &CancellationToken, drain: Duration) -> Self {
        Self {
            tasks: JoinSet::new(),
            token: parent.child_token(),
            drain,
            panicked: 0,
            ended: 0,
        }
    }

    /// The token that tells this scope's tasks to end politely.
    #[must_use]
    pub const fn token(&self) -> &CancellationToken {
        &self.token
    }

    /// Starts a task of this scope.
    ///
    /// # Limits
    /// The caller bounds the number of tasks with [`running`](Self::running), by not accepting more work.
    pub fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        self.tasks.spawn(task)
    }

    /// How many tasks have not been joined yet.
    #[must_use]
    pub fn running(&self) -> usize {
        self.tasks.len()
    }

    /// Waits until one task ends; `None` when there is none. Polling it in the owner's loop keeps the scope small.
    ///
    /// # Cancel safety
    /// Safe: a task that ended is reported by a later call.
    pub async fn join_next(&mut self) -> Option<Result<(), JoinError>> {
        let joined = self.tasks.join_next().await?;
        self.note(&joined);
        Some(joined)
    }

    /// Tells every task to end, waits until the deadline, cuts the rest, and says how it went.
    ///
    /// # Cancel safety
    /// Dropped before it is done, the remaining tasks are cut.
    pub async fn finish(self) -> Finished {
        let deadline = Instant::now() + self.drain;
        self.finish_by(deadline).await
    }

    /// As [`finish`](Self::finish) with a deadline that several scopes share.
    pub async fn finish_by(mut self, deadline: Instant) -> Finished {
        self.token.cancel();
        let drained = timeout_at(deadline, async {
            while let Some(joined) = self.tasks.join_next().await {
                self.panicked += usize::from(joined.as_ref().is_err_and(JoinError::is_panic));
                self.ended += 1;
            }
        })
        .await;
        if drained.is_ok() {
            return Finished {
                ended: self.ended,
                cut: 0,
                panicked: self.panicked,
            };
        }
        let mut cut = 0;
        self.tasks.abort_all();
        while let Some(joined) = self.tasks.join_next().await {
            match joined {
                Err(error) if error.is_cancelled() => cut += 1,
                joined => self.note(&joined),
            }
        }
        Finished {
            ended: self.ended,
            cut,
            panicked: self.panicked,
        }
    }

    fn note(&mut self, joined: &Result<(), JoinError>) {
        self.ended += 1;
        self.panicked += usize::from(joined.as_ref().is_err_and(JoinError::is_panic));
    }
}

/// How a scope ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "tasks that were cut are worth a log line"]
pub struct Finished {
    /// Tasks that ended by themselves over the scope's life, those that panicked included.
    pub ended: usize,
    /// Tasks that the deadline cut.
    pub cut: usize,
    /// Tasks that panicked.
    pub panicked: usize,
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::sync::Arc;

    use super::*;

    fn scope() -> (CancellationToken, Scope) {
        let parent = CancellationToken::new();
        let scope = Scope::new(&parent, Duration::from_secs(8));
        (parent, scope)
    }

    #[tokio::test(start_paused = true)]
    async fn polite_tasks_end_and_stubborn_ones_are_cut_at_the_deadline() {
        let (_parent, mut scope) = scope();
        for _ in 0..3 {
            let stop = scope.token().clone();
            scope.spawn(async move { stop.cancelled().await });
        }
        for _ in 0..2 {
            scope.spawn(pending());
        }
        let begun = Instant::now();
        let finished = scope.finish().await;
        assert_eq!(
            finished,
            Finished {
                ended: 3,
                cut: 2,
                panicked: 0
            }
        );
        assert_eq!(begun.elapsed(), Duration::from_secs(8));
    }

    #[tokio::test(start_paused = true)]
    async fn a_scope_of_polite_tasks_ends_at_once() {
        let (parent, mut scope) = scope();
        let stop = scope.token().clone();
        scope.spawn(async move { stop.cancelled().await });
        parent.cancel();
        assert!(scope.join_next().await.unwrap().is_ok());
        let begun = Instant::now();
        assert_eq!(
            scope.finish().await,
            Finished {
                ended: 1,
                cut: 0,
                panicked: 0
            }
        );
        assert_eq!(begun.elapsed(), Duration::ZERO);
    }

    #[tokio::test]
    async fn dropping_a_scope_cuts_its_tasks() {
        let (_parent, mut scope) = scope();
        let held = Arc::new(());
        let inside = Arc::clone(&held);
        scope.spawn(async move {
            pending::<()>().await;
            drop(inside);
        });
        tokio::task::yield_now().await;
        assert_eq!(Arc::strong_count(&held), 2);
        drop(scope);
        while Arc::strong_count(&held) > 1 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_panic_is_reported_and_takes_nobody_along() {
        let (_parent, mut scope) = scope();
        scope.spawn(async { panic!("on purpose") });
        let stop = scope.token().clone();
        scope.spawn(async move { stop.cancelled().await });
        assert!(scope.join_next().await.unwrap().unwrap_err().is_panic());
        assert_eq!(scope.running(), 1);
        assert_eq!(
            scope.finish().await,
            Finished {
                ended: 2,
                cut: 0,
                panicked: 1
            }
        );
    }
}
