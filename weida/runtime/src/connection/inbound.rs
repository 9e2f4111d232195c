//! Accepting what the peer opens, for the life of one connection.
//!
//! One task per connection accepts streams and, on the fast path, does the rest
//! itself: the frame head usually arrived with the stream's first packet, so it
//! is read and dispatched without a task of its own. Only a stream whose head is
//! not there yet, or that must wait for HELLO, gets one; those are bounded by
//! the stream budgets, and the heads being read by `max_header_streams`.
//!
//! After a loss the loop goes on until every stream that had arrived was seen:
//! a transfer that is here in full is still delivered. `[weida TX-10]`

use std::future::{Future as _, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use quinn::{ConnectionError, RecvStream, SendStream};

use super::arrival::Arrival;
use super::{Connection, Phase, RecvHalf, SendHalf, closing, hello};
use crate::exec::Scope;

/// How long streams of a lost connection may wait for room in the queue of a
/// living endpoint before they are given up.
const DELIVER_AFTER_LOSS: Duration = Duration::from_secs(10);

/// How long the HELLO of a lost connection may take to be read.
const GREET_AFTER_LOSS: Duration = Duration::from_millis(100);

/// Streams accepted in a row before other tasks get a turn.
const BATCH: u32 = 64;

/// Serves `connection` until it is gone and what had arrived is dispatched.
pub(super) async fn serve(connection: Connection) {
    let mut scope = connection.shared().exec.scope();
    scope.spawn(hello::greet(connection.clone()));
    let error = accept(&connection, &mut scope).await;
    let cause = closing::loss_cause(&error);
    tracing::debug!(connection = %connection.id(), %cause, "connection closed");
    if matches!(*connection.0.phase.borrow(), Phase::Greeting) {
        // HELLO itself may be among what arrived; without it nothing may be
        // interpreted.
        scope.wait_within(GREET_AFTER_LOSS).await;
    }
    connection.0.phase.send_replace(Phase::Closed(cause));
    connection.table().connection_closed(&connection);
    connection.shared().untrack(&connection);
    let cut = scope.finish_within(DELIVER_AFTER_LOSS).await;
    if cut > 0 {
        tracing::warn!(connection = %connection.id(), cut, "arrivals given up after the loss");
    }
}

/// Accepts until both kinds of stream are exhausted; returns why.
async fn accept(connection: &Connection, scope: &mut Scope) -> ConnectionError {
    let quic = connection.quic();
    let mut uni = pin!(quic.accept_uni());
    let mut bi = pin!(quic.accept_bi());
    let mut uni_over = None;
    let mut bi_over = None;
    let mut batch = 0;
    loop {
        let next = poll_fn(|cx| {
            if uni_over.is_none()
                && let Poll::Ready(stream) = uni.as_mut().poll(cx)
            {
                return Poll::Ready(Opened::Uni(stream));
            }
            if bi_over.is_none()
                && let Poll::Ready(stream) = bi.as_mut().poll(cx)
            {
                return Poll::Ready(Opened::Bi(stream));
            }
            Poll::Pending
        })
        .await;
        let waiting = match next {
            Opened::Uni(Ok(recv)) => {
                uni.set(quic.accept_uni());
                Arrival::one_way(RecvHalf::Quic(recv)).enter(connection, scope)
            }
            Opened::Bi(Ok((send, recv))) => {
                bi.set(quic.accept_bi());
                Arrival::exchange(SendHalf::quic(send), RecvHalf::Quic(recv))
                    .enter(connection, scope)
            }
            Opened::Uni(Err(error)) => {
                uni_over = Some(error);
                None
            }
            Opened::Bi(Err(error)) => {
                bi_over = Some(error);
                None
            }
        };
        if let Some(waiting) = waiting {
            // The reader is usually just behind: one turn of the scheduler is
            // cheaper than a task for each arrival.
            tokio::task::yield_now().await;
            if let Some(waiting) = waiting.retry() {
                waiting.forward(scope);
            }
        }
        if let (Some(_), Some(error)) = (&uni_over, &bi_over) {
            return error.clone();
        }
        batch += 1;
        if batch == BATCH {
            batch = 0;
            tokio::task::yield_now().await;
        }
    }
}

enum Opened {
    Uni(Result<RecvStream, ConnectionError>),
    Bi(Result<(SendStream, RecvStream), ConnectionError>),
}
