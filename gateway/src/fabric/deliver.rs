//! The foot of an egress route's stack: the adapter's delivery queue.

use std::task::{Context, Poll};
use std::time::Duration;

use tower_service::Service;
use weida_bridge::{BoxFuture, DeliverySender, FabricError, FabricErrorKind, Outcome};

use crate::policy::message::Attempt;

/// Hands messages to the adapter and waits for its answer.
#[derive(Clone, Debug)]
pub(super) struct DeliverEgress {
    pub(super) sender: DeliverySender,
    /// Set for a reply route: the answer is waited for until then.
    pub(super) reply_within: Option<Duration>,
}

impl Service<Attempt> for DeliverEgress {
    type Response = Outcome;
    type Error = FabricError;
    type Future = BoxFuture<'static, Result<Outcome, FabricError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), FabricError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, attempt: Attempt) -> Self::Future {
        let sender = self.sender.clone();
        let wants_reply = self.reply_within.is_some();
        let reply_by = self
            .reply_within
            .map(|within| attempt.envelope.received_at + within);
        let deadline = match (reply_by, attempt.envelope.expires_at) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        Box::pin(async move {
            match sender
                .send(attempt.into_envelope(), wants_reply, deadline)
                .await
            {
                Ok(settled) => Ok(settled.await),
                Err(_closed) => Err(FabricErrorKind::Closed.into()),
            }
        })
    }
}
