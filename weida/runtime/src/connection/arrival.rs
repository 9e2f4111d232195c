//! One stream the peer opened, until its frame head is read.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use tokio::sync::OwnedSemaphorePermit;
use weida_core::codes;
use weida_protocol::Head;

use super::dispatch;
use super::halves::RecvFail;
use super::head::{Parsed, Reader};
use super::{Connection, Phase, RecvHalf, SendHalf};
use crate::exec::Scope;
use crate::listener::table::Delivered;

/// A stream whose head is not read yet.
pub(super) struct Arrival {
    pub(super) recv: RecvHalf,
    /// The reply half, when the peer opened an exchange.
    pub(super) reply: Option<SendHalf>,
}

impl Arrival {
    pub(super) fn one_way(recv: RecvHalf) -> Self {
        Self { recv, reply: None }
    }

    pub(super) fn exchange(reply: SendHalf, recv: RecvHalf) -> Self {
        Self {
            recv,
            reply: Some(reply),
        }
    }

    /// Takes the stream in: dispatched here if its head is already there.
    /// Gives back a delivery whose queue is full.
    pub(super) fn enter(mut self, connection: &Connection, scope: &mut Scope) -> Option<Delivered> {
        if connection.shared().is_draining() {
            self.refuse_draining();
            return None;
        }
        let mut reader = Reader::new(connection.shared().config.limits.max_header_bytes);
        let ready = matches!(*connection.0.phase.borrow(), Phase::Ready);
        // Without a free slot nothing is read, so that what heads may hold
        // stays bounded. [weida INV-1]
        if ready && connection.head_slots().available_permits() > 0 && connection.may_read_ahead() {
            let mut cx = Context::from_waker(Waker::noop());
            match self.recv.poll_chunk(&mut cx, usize::MAX) {
                Poll::Ready(chunk) => match reader.feed(chunk, self.reply.is_some()) {
                    Parsed::Done(head, rest) => {
                        return dispatch::dispatch(connection, self, head, rest);
                    }
                    Parsed::More => {}
                    Parsed::Failed(failure) => {
                        self.fail(connection, &failure);
                        return None;
                    }
                },
                Poll::Pending => {}
            }
        }
        let permit = Arc::clone(connection.head_slots()).try_acquire_owned().ok();
        let connection = connection.clone();
        let task = async move {
            if let Some((arrival, head, rest)) = self.read(&connection, reader, permit).await {
                dispatch::dispatch_waiting(&connection, arrival, head, rest).await;
            }
        };
        scope.spawn(task);
        None
    }

    /// Reads the head, waiting for its bytes, for a slot and for HELLO.
    async fn read(
        mut self,
        connection: &Connection,
        mut reader: Reader,
        permit: Option<OwnedSemaphorePermit>,
    ) -> Option<(Self, Head, Bytes)> {
        let limits = &connection.shared().config.limits;
        let exec = &connection.shared().exec;
        let mut permit = match permit {
            Some(permit) => permit,
            None => slot(connection).await?,
        };
        let read = exec.timeout(
            limits.header_timeout(),
            reader.read_preamble(&mut self.recv),
        );
        match read.await {
            Some(Ok(())) => {}
            Some(Err(failure)) => {
                self.fail(connection, &failure);
                return None;
            }
            None => {
                self.abandon();
                return None;
            }
        }
        if let Err(failure) = reader.check_opening(self.reply.is_some()) {
            self.fail(connection, &failure);
            return None;
        }
        // Parked: checked as far as it may be before HELLO, and holding no
        // slot, so that streams opened early cannot keep HELLO out.
        if !reader.is_hello() && connection.agreed().is_none() {
            drop(permit);
            let mut phase = connection.phase();
            let settled = phase
                .wait_for(|phase| !matches!(phase, Phase::Greeting))
                .await
                .is_ok();
            if !settled || connection.agreed().is_none() {
                return None;
            }
            permit = slot(connection).await?;
        }
        let read = exec.timeout(limits.header_timeout(), reader.read_header(&mut self.recv));
        let read = read.await;
        drop(permit);
        match read {
            Some(Ok((head, rest))) => Some((self, head, rest)),
            Some(Err(failure)) => {
                self.fail(connection, &failure);
                None
            }
            None => {
                self.abandon();
                None
            }
        }
    }

    /// The head cannot be read.
    fn fail(mut self, connection: &Connection, failure: &Failure) {
        match failure {
            Failure::Violation(what) => connection.violation(what),
            // The peer gave the stream up; so does this side.
            Failure::Gone(_) | Failure::Cut => {
                self.recv.stop(codes::CANCELED);
                if let Some(mut reply) = self.reply {
                    reply.reset(codes::CANCELED);
                }
            }
        }
    }

    /// The head did not arrive in time: the stream goes, the connection stays.
    fn abandon(mut self) {
        self.recv.stop(codes::CANCELED);
        if let Some(mut reply) = self.reply {
            reply.reset(codes::CANCELED);
        }
    }

    /// A late stream while draining. `[weida DR-4]`, `[wire 22]`
    fn refuse_draining(mut self) {
        self.recv.stop(codes::SHUTDOWN);
        if let Some(mut reply) = self.reply {
            reply.reset(codes::SHUTDOWN);
        }
    }
}

/// Why a head could not be read.
#[derive(Debug)]
pub(crate) enum Failure {
    /// What was read breaks the protocol.
    Violation(String),
    /// The FIN came inside the header. `[wire 17]`
    Cut,
    /// The stream or its connection ended.
    Gone(RecvFail),
}

/// A place among the heads being read; `None` once the connection is gone.
async fn slot(connection: &Connection) -> Option<OwnedSemaphorePermit> {
    Arc::clone(connection.head_slots())
        .acquire_owned()
        .await
        .ok()
}
