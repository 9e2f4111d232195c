//! Foreign to weida: the three destinations at the foot of a route's stack [weida 7.6].
//!
//! | Pattern | Calls | Outcome |
//! | --- | --- | --- |
//! | publish | `publish_with`, on every weida listener | `Fanned`; zero copies: `Dropped(NoSubscriber)` |
//! | push, `sent` | `send_with` | `Fanned`, one copy handed over |
//! | push, `receipt` | `open`, write, `finish`, `delivered` | `Receipt` |
//! | request | `open`, write, `finish`; then the reply | `Reply` |

use std::future::{Ready, ready};
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio::time::Instant;
use tower_service::Service;
use weida::{Acknowledgement, Publisher, Pusher, Requester, StopReason};
use weida_bridge::{
    AckOn, BoxFuture, DropCause, FabricError, FabricErrorKind, Level, Outcome, Refusal, Reply,
};

use super::errors::sort;
use super::extension::{Stamp, describe};
use crate::policy::message::{Attempt, Message};
use crate::policy::presence::Presence;

type Answer = Result<Outcome, FabricError>;

/// Publishes at one path of every weida listener.
#[derive(Clone, Debug)]
pub(super) struct PublishEgress {
    pub(super) publishers: Arc<[Publisher]>,
    pub(super) stamp: Arc<Stamp>,
}

impl PublishEgress {
    fn publish(&self, message: Message) -> Outcome {
        let envelope = message.envelope;
        let meta = match self.stamp.meta(&envelope, Instant::now()) {
            Ok(meta) => meta,
            Err(cause) => return Outcome::Dropped(cause),
        };
        let (mut copies, mut dropped) = (0, 0);
        for publisher in &*self.publishers {
            match publisher.publish_with(envelope.topic.as_str(), &meta, envelope.payload.clone()) {
                Ok(sent) => {
                    copies += sent.copies;
                    dropped += sent.dropped;
                }
                // Larger than a subscriber's budget or a header: it could never be handed to anybody.
                Err(_over) => return Outcome::Refused(Refusal::TooLarge),
            }
        }
        if copies == 0 && dropped == 0 {
            return Outcome::Dropped(DropCause::NoSubscriber);
        }
        Outcome::Fanned { copies, dropped }
    }
}

impl Service<Message> for PublishEgress {
    type Response = Outcome;
    type Error = FabricError;
    type Future = Ready<Answer>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), FabricError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, message: Message) -> Self::Future {
        ready(Ok(self.publish(message)))
    }
}

/// Pushes to one address.
#[derive(Clone, Debug)]
pub(super) struct PushEgress {
    pub(super) pusher: Arc<Pusher>,
    pub(super) stamp: Arc<Stamp>,
    pub(super) presence: Arc<Presence>,
    pub(super) ack_on: AckOn,
}

impl PushEgress {
    async fn push(self, attempt: &Attempt) -> Answer {
        let envelope = &attempt.envelope;
        let meta = match self.stamp.meta(envelope, Instant::now()) {
            Ok(meta) => meta.with_topic(envelope.topic.as_str()),
            Err(cause) => return Ok(Outcome::Dropped(cause)),
        };
        if self.ack_on == AckOn::Sent {
            let sent = unless_away(
                &self.presence,
                self.pusher.send_with(meta, &envelope.payload),
            );
            return match sent.await? {
                Ok(()) => Ok(Outcome::Fanned {
                    copies: 1,
                    dropped: 0,
                }),
                Err(error) => sort(error, &attempt.mark),
            };
        }
        let visit = self.presence.visit();
        let mut transfer = match unless_away(&self.presence, self.pusher.open(meta)).await? {
            Ok(transfer) => transfer,
            Err(error) => return sort(error, &attempt.mark),
        };
        if let Err(error) = transfer.write_chunk(envelope.payload.clone()).await {
            if transfer.stop_reason() == Some(StopReason::ShuttingDown) {
                return Err(goodbye(&self.presence, visit, error));
            }
            return sort(error, &attempt.mark);
        }
        let delivery = match transfer.finish() {
            Ok(delivery) => delivery,
            Err(error) => return sort(error, &attempt.mark),
        };
        match delivery.settled().await {
            Ok(()) => Ok(Outcome::Receipt),
            Err(failure) if failure.is_shutdown() => Err(goodbye(&self.presence, visit, failure)),
            Err(failure) => sort(failure.into_error(), &attempt.mark),
        }
    }
}

impl Service<Attempt> for PushEgress {
    type Response = Outcome;
    type Error = FabricError;
    type Future = BoxFuture<'static, Answer>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), FabricError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, attempt: Attempt) -> Self::Future {
        let egress = self.clone();
        Box::pin(async move { egress.push(&attempt).await })
    }
}

/// Asks one address.
#[derive(Clone, Debug)]
pub(super) struct RequestEgress {
    pub(super) requester: Arc<Requester>,
    pub(super) stamp: Arc<Stamp>,
    pub(super) presence: Arc<Presence>,
    pub(super) max_reply_bytes: usize,
}

impl RequestEgress {
    async fn ask(self, attempt: &Attempt) -> Answer {
        let envelope = &attempt.envelope;
        let meta = match self.stamp.meta(envelope, Instant::now()) {
            Ok(meta) => meta.with_topic(envelope.topic.as_str()),
            Err(cause) => return Ok(Outcome::Dropped(cause)),
        };
        let visit = self.presence.visit();
        let opened = unless_away(&self.presence, self.requester.open(meta)).await?;
        let (mut transfer, reply) = match opened {
            Ok(exchange) => exchange,
            Err(error) => return sort(error, &attempt.mark),
        };
        let sent = async {
            if let Err(error) = transfer.write_chunk(envelope.payload.clone()).await {
                return Err((error, transfer.stop_reason()));
            }
            // The reply says more than the receipt would.
            transfer.finish().map(drop).map_err(|error| (error, None))
        };
        // A replier may answer, or refuse, before it has read everything: both halves run at once [weida LG-3].
        let (sent, reply) = tokio::join!(sent, reply.answer());
        let mut reply = match (reply, sent) {
            (Ok(reply), _) => reply,
            // One that drains stops the request and abandons the reply half; either may be seen first.
            (Err(failure), Err((_, Some(StopReason::ShuttingDown)))) => {
                return Err(goodbye(&self.presence, visit, failure));
            }
            (Err(failure), _) if failure.is_shutdown() => {
                return Err(goodbye(&self.presence, visit, failure));
            }
            // A connection lost while the request was being written is definite; the wait for its reply is not.
            (Err(failure), Err((error, _)))
                if matches!(failure.error(), weida::Error::Indeterminate) =>
            {
                return sort(error, &attempt.mark);
            }
            (Err(failure), _) => return sort(failure.into_error(), &attempt.mark),
        };
        let achieved = reply.meta().achieved.map(level);
        let peer = reply.meta().peer;
        let described = match describe(reply.meta(), Instant::now()) {
            Ok(described) => described,
            Err(_cause) => return Ok(Outcome::Refused(Refusal::Unsupported)),
        };
        match reply.read_capped(self.max_reply_bytes).await {
            Ok(payload) => Ok(Outcome::Reply(Box::new(Reply {
                payload: Bytes::from(payload),
                content_type: described.content_type,
                meta: described.meta,
                achieved,
                peer,
            }))),
            Err(weida::Error::LimitExceeded(None)) => Ok(Outcome::Refused(Refusal::TooLarge)),
            // The answer existed and broke off: the request was acted on, so nothing is definite.
            Err(_broken) => {
                attempt
                    .mark
                    .last_cause(crate::policy::stats::RetryCause::Error);
                Ok(Outcome::Indeterminate)
            }
        }
    }
}

impl Service<Attempt> for RequestEgress {
    type Response = Outcome;
    type Error = FabricError;
    type Future = BoxFuture<'static, Answer>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), FabricError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, attempt: Attempt) -> Self::Future {
        let egress = self.clone();
        Box::pin(async move { egress.ask(&attempt).await })
    }
}

/// The peer refused because it drains: not a verdict about the message, but the way missing until a successor is there.
///
/// The destination counts as away at once, because a draining peer's transport still gives receipts for short transfers that
/// nobody will read [weida DR-4, TX-6].
fn goodbye(
    presence: &Presence,
    visit: u64,
    why: impl std::error::Error + Send + Sync + 'static,
) -> FabricError {
    presence.leaves(visit, Instant::now());
    FabricError::with_source(FabricErrorKind::Away, why)
}

/// Waits for what has not sent anything yet, as long as the destination is there.
///
/// With every peer down the runtime waits for the redial inside `open`; an attempt must not look slow for that.
async fn unless_away<T>(
    presence: &Presence,
    opening: impl Future<Output = T>,
) -> Result<T, FabricError> {
    tokio::select! {
        biased;
        opened = opening => Ok(opened),
        () = presence.changed_from(true) => Err(FabricErrorKind::Away.into()),
    }
}

/// What a reply's `achieved` says, as a level of ours [reconciled R5].
pub(super) fn level(achieved: Acknowledgement) -> Level {
    match achieved {
        Acknowledgement::None | Acknowledgement::TransportReceipt => Level::Receipt,
        Acknowledgement::Accepted => Level::Accepted,
        Acknowledgement::Stored | Acknowledgement::Replicated => Level::Stored,
        Acknowledgement::Processed => Level::Processed,
    }
}
