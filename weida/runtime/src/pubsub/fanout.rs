//! A streamed publish: one payload written chunk by chunk to a stream per
//! subscriber, never held whole. `[weida PS-12]`

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use tokio_util::sync::CancellationToken;
use weida_core::{Error, Result, TraceContext};

use super::budget::Budget;
use super::path::Target;
use super::{DropCause, DropTable, Path};
use crate::connection::Connection;
use crate::exec::Exec;

/// Chunks one copy may have waiting. `[wire 18]`
const MAX_QUEUED_CHUNKS: usize = 1024;

/// A publish in progress.
///
/// The subscribers are fixed when it is opened; who comes later gets the next
/// message. A subscriber that cannot take a chunk loses *this* message: its
/// stream is reset, so that a part is never taken for the whole, and it is
/// counted. The others go on, and its subscription stays.
///
/// The chunk, not the payload, is bounded by
/// [`Limits::subscriber_buffer_bytes`](weida_core::Limits::subscriber_buffer_bytes).
/// One `Bytes` is shared by all copies. Dropping the handle before
/// [`FanOut::finish`] aborts every copy. `[weida S17-19]`
#[must_use = "a fan-out that is dropped is aborted"]
pub struct FanOut {
    topic: Arc<str>,
    copies: Vec<Arc<Feed>>,
    drops: Arc<DropTable>,
    exec: Exec,
    max_chunk_bytes: usize,
    /// The topic is above its cap: nobody is reached and every write fails.
    refused: bool,
    /// A `write_within` was dropped midway: who has the chunk is not known.
    broken: bool,
}

impl FanOut {
    pub(crate) fn open(
        path: &Path,
        topic: &str,
        trace: Option<TraceContext>,
        drops: &Arc<DropTable>,
        exec: &Exec,
    ) -> Self {
        let (copies, refused) = match path.open(topic, trace, drops) {
            Ok((head, targets)) => {
                let start = |target| Feed::start(target, head.clone());
                (targets.into_iter().map(start).collect(), false)
            }
            Err(_) => (Vec::new(), true),
        };
        Self {
            topic: topic.into(),
            copies,
            drops: Arc::clone(drops),
            exec: exec.clone(),
            max_chunk_bytes: path.max_payload_bytes(),
            refused,
            broken: false,
        }
    }

    /// The topic this is published on.
    pub fn topic(&self) -> &str {
        &self.topic
    }

    /// Subscribers still receiving. It only falls.
    pub fn subscribers(&self) -> usize {
        self.copies.iter().filter(|copy| !copy.is_over()).count()
    }

    /// Writes `chunk` to every subscriber still receiving, waits up to `limit`
    /// for those without room, and returns how many are left. `limit` is for
    /// the whole call: the slow ones are waited for together.
    ///
    /// # Errors
    ///
    /// [`Error::LimitExceeded`] for a chunk above the budget of a subscriber,
    /// or any chunk under a topic above 256 bytes: nothing is written or
    /// aborted. [`Error::Canceled`] after a call that was dropped midway.
    ///
    /// # Cancel safety
    ///
    /// Not safe: a dropped call abandons the message for everybody, because
    /// some have the chunk and some do not.
    pub async fn write_within(
        &mut self,
        chunk: impl Into<Bytes>,
        limit: Duration,
    ) -> Result<usize> {
        let chunk = chunk.into();
        self.check(&chunk)?;
        self.copies.retain(|copy| !copy.is_over());
        let mut waiting = Vec::new();
        for copy in &self.copies {
            if let Err(cause) = copy.push(&chunk) {
                waiting.push((Arc::clone(copy), cause));
            }
        }
        if !waiting.is_empty() {
            self.broken = true;
            let room = poll_fn(|cx| {
                waiting.retain_mut(|(copy, cause)| match copy.poll_push(cx, &chunk) {
                    Ok(()) => false,
                    Err(now) => {
                        *cause = now;
                        true
                    }
                });
                if waiting.is_empty() {
                    Poll::Ready(())
                } else {
                    Poll::Pending
                }
            });
            let in_time = self.exec.timeout(limit, room).await;
            self.broken = false;
            if in_time.is_none() {
                for (copy, cause) in waiting {
                    self.lose(&copy, cause);
                }
            }
        }
        self.copies.retain(|copy| !copy.is_over());
        Ok(self.copies.len())
    }

    /// Writes `chunk` without ever waiting: a subscriber without room right now
    /// loses the message. Returns how many are left. For payloads that a later
    /// one supersedes.
    ///
    /// # Errors
    ///
    /// As [`FanOut::write_within`].
    pub fn write_now(&mut self, chunk: impl Into<Bytes>) -> Result<usize> {
        let chunk = chunk.into();
        self.check(&chunk)?;
        for copy in &self.copies {
            if let Err(cause) = copy.push(&chunk) {
                self.lose(copy, cause);
            }
        }
        self.copies.retain(|copy| !copy.is_over());
        Ok(self.copies.len())
    }

    /// Ends the message and returns how many subscribers were handed all of it,
    /// as far as this side can tell: every chunk and the FIN are queued. No
    /// receipt comes back.
    pub fn finish(mut self) -> usize {
        if self.broken {
            return 0; // dropping self resets every copy
        }
        let copies = std::mem::take(&mut self.copies);
        copies.iter().filter(|copy| copy.finish()).count()
    }

    fn check(&self, chunk: &Bytes) -> Result<()> {
        if self.broken {
            return Err(Error::Canceled);
        }
        if self.refused || chunk.len() > self.max_chunk_bytes {
            return Err(Error::LimitExceeded(None));
        }
        Ok(())
    }

    fn lose(&self, copy: &Feed, cause: DropCause) {
        // One that ended by itself, by a stop or a loss, is not our drop.
        if copy.abort() {
            self.drops.count(&self.topic, cause);
        }
    }
}

impl Drop for FanOut {
    fn drop(&mut self) {
        for copy in &self.copies {
            copy.abort();
        }
    }
}

impl fmt::Debug for FanOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FanOut")
            .field("topic", &self.topic)
            .field("subscribers", &self.subscribers())
            .finish_non_exhaustive()
    }
}

/// One copy: the chunks on their way to one subscriber, and the task that
/// writes them.
struct Feed {
    connection: Connection,
    budget: Arc<Budget>,
    abort: CancellationToken,
    state: Mutex<FeedState>,
}

#[derive(Default)]
struct FeedState {
    chunks: VecDeque<Bytes>,
    /// The task's, while it waits for a chunk.
    waker: Option<Waker>,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Open,
    /// The FIN follows what is queued.
    Finished,
    /// Aborted here, stopped by the subscriber, or lost.
    Over,
}

impl Feed {
    fn start(target: Target, head: Bytes) -> Arc<Self> {
        let Target { connection, budget } = target;
        let feed = Arc::new(Self {
            connection,
            budget,
            abort: CancellationToken::new(),
            state: Mutex::default(),
        });
        let task = Arc::clone(&feed);
        feed.connection.shared().tasks.spawn(async move {
            tokio::select! {
                biased;
                // The stream is dropped unfinished, which resets it.
                () = task.abort.cancelled() => {}
                () = task.write(head) => {}
            }
            task.end();
        });
        feed
    }

    /// Queues `chunk`; one that is over swallows it.
    fn push(&self, chunk: &Bytes) -> Result<(), DropCause> {
        let mut state = self.lock();
        if state.phase != Phase::Open || chunk.is_empty() {
            return Ok(());
        }
        if state.chunks.len() >= MAX_QUEUED_CHUNKS {
            return Err(DropCause::Queue);
        }
        if !self.budget.try_charge(chunk.len()) {
            return Err(DropCause::Budget);
        }
        state.chunks.push_back(chunk.clone());
        wake(state);
        Ok(())
    }

    /// [`Feed::push`] that wakes `cx` once there may be room.
    fn poll_push(&self, cx: &Context<'_>, chunk: &Bytes) -> Result<(), DropCause> {
        self.budget.wake_on_room(cx.waker());
        self.push(chunk)
    }

    /// Whether the FIN is queued behind every chunk.
    fn finish(&self) -> bool {
        let mut state = self.lock();
        if state.phase != Phase::Open {
            return false;
        }
        state.phase = Phase::Finished;
        self.connection.shared().copies.add();
        wake(state);
        true
    }

    /// Whether this call is what ended the copy.
    fn abort(&self) -> bool {
        let mut state = self.lock();
        let open = state.phase == Phase::Open;
        if open {
            state.phase = Phase::Over;
            self.abort.cancel();
        }
        open
    }

    fn is_over(&self) -> bool {
        self.lock().phase == Phase::Over
    }

    /// Gives back what will not be written.
    fn end(&self) {
        let mut state = self.lock();
        let before = std::mem::replace(&mut state.phase, Phase::Over);
        let left: usize = state.chunks.drain(..).map(|chunk| chunk.len()).sum();
        drop(state);
        self.budget.release(left);
        if before == Phase::Finished {
            self.connection.shared().copies.settle(1);
        }
    }

    async fn write(&self, head: Bytes) {
        let Ok(mut stream) = self.connection.open_uni().await else {
            return;
        };
        // The head is the first write, and at once: it is how the subscriber
        // learns of the stream.
        let mut written = stream.write_chunks(&mut [head]).await;
        while written.is_ok()
            && let Some(chunk) = self.next().await
        {
            let charged = Charged(&self.budget, chunk.len());
            written = stream.write_chunks(&mut [chunk]).await;
            drop(charged);
        }
        if written.and_then(|()| stream.finish()).is_ok() {
            self.connection.park_receipt(stream);
        }
    }

    /// The next chunk; `None` is the FIN.
    async fn next(&self) -> Option<Bytes> {
        poll_fn(|cx| {
            let mut state = self.lock();
            match state.chunks.pop_front() {
                Some(chunk) => Poll::Ready(Some(chunk)),
                None if state.phase == Phase::Finished => Poll::Ready(None),
                None => {
                    state.waker = Some(cx.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }

    fn lock(&self) -> MutexGuard<'_, FeedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A chunk being written; its bytes go back however that ends.
struct Charged<'a>(&'a Budget, usize);

impl Drop for Charged<'_> {
    fn drop(&mut self) {
        self.0.release(self.1);
    }
}

fn wake(mut state: MutexGuard<'_, FeedState>) {
    let waker = state.waker.take();
    drop(state);
    if let Some(waker) = waker {
        waker.wake();
    }
}
