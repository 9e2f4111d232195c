//! Weida to foreign: the tasks that read weida endpoints and feed the stacks of egress routes.
//!
//! A pump reads only what its route has room for: it asks for a place first and reads then, so with `overflow = block` the
//! weida stream windows close and the pusher waits. Payloads are collected beside each other, so one slow sender holds its own
//! place and nobody else's.

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Waker};

use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tower_service::Service;
use tracing::{debug, warn};
use weida::{
    Acknowledgement, ErrorCode, IncomingRequest, IncomingTransfer, Puller, Replier, Subscriber,
    TransferMeta,
};
use weida_bridge::{Backoff, DropCause, FabricError, Ingress, Level, Outcome, Refusal};
use weida_core::Filter;

use super::extension::Stamp;
use super::inbound::{Refused, collect, judge};
use crate::grants::WeidaGrants;
use crate::route::RouteHandle;

/// Payloads that one pump collects at once: with `max_message_bytes` its memory bound beside the route's own.
const MAX_COLLECTING: usize = 64;

/// Runs `work` here until it waits for the first time, and in `tasks` from then on.
fn begin<F>(tasks: &mut JoinSet<()>, work: F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let mut work = Box::pin(work);
    // The waker is of no use: what waits is polled again by its task.
    if work
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
        .is_pending()
    {
        tasks.spawn(work);
    }
}

/// Waits until fewer than `max` tasks run.
///
/// # Cancel safety
/// Nothing is lost when dropped.
async fn below(tasks: &mut JoinSet<()>, max: usize) {
    while tasks.try_join_next().is_some() {}
    while tasks.len() >= max {
        tasks.join_next().await;
    }
}

// === pull ===

/// Reads what weida peers push at one path of one listener.
pub(super) struct PullPump {
    pub(super) route: Arc<RouteHandle>,
    pub(super) puller: Puller,
    pub(super) grants: WeidaGrants,
    pub(super) stack: Ingress,
}

impl PullPump {
    pub(super) async fn run(self, stop: CancellationToken) {
        let mut tasks = JoinSet::new();
        loop {
            let mut place = self.stack.clone();
            let next = async {
                below(&mut tasks, MAX_COLLECTING).await;
                place.ready().await.map_err(drop)?;
                self.puller.recv().await.map_err(drop)
            };
            let transfer = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                next = next => match next {
                    Ok(transfer) => transfer,
                    Err(()) => break,
                },
            };
            if self
                .grants
                .may_publish(transfer.meta().peer.as_ref(), self.puller.path())
            {
                let (route, grants) = (Arc::clone(&self.route), self.grants.clone());
                begin(&mut tasks, async move {
                    if let Err(refused) = take(&route, transfer, place).await {
                        refused.tell(&route, &grants);
                    }
                });
            }
        }
        // What was being read when the drain began is read to its end, within the drain's time.
        while tasks.join_next().await.is_some() {}
    }
}

/// Takes one transfer into the stack, where it goes on by itself: a pusher has its receipt from its transport already.
async fn take(
    route: &RouteHandle,
    mut transfer: IncomingTransfer,
    mut place: Ingress,
) -> Result<(), Refused> {
    let received_at = Instant::now();
    let described = judge(route, transfer.meta(), received_at)?;
    let envelope = collect(route, described, &mut transfer, received_at).await?;
    let _outcome = place.call(envelope);
    Ok(())
}

// === subscribe ===

/// One route fed by a shared subscriber.
pub(super) struct Feed {
    pub(super) route: Arc<RouteHandle>,
    pub(super) filter: Filter,
    /// Cloned under the lock, once per message.
    stack: Mutex<Ingress>,
}

impl Feed {
    pub(super) fn new(route: Arc<RouteHandle>, filter: Filter, stack: Ingress) -> Self {
        Self {
            route,
            filter,
            stack: Mutex::new(stack),
        }
    }

    fn stack(&self) -> Ingress {
        self.stack
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// Reads the copies of one remote publisher for every route that subscribes there.
///
/// Routes with one address share the subscriber: a path of one connection belongs to one of them [weida PS-6]. Their filters
/// are united and matched again here (`gateway.md` 8.1).
pub(super) struct SubscribePump {
    pub(super) subscriber: Arc<Subscriber>,
    pub(super) feeds: Vec<Feed>,
}

impl SubscribePump {
    pub(super) async fn run(self, stop: CancellationToken) {
        let mut tasks = JoinSet::new();
        let feeds: Arc<[Feed]> = self.feeds.into();
        // A single route is asked for a place before anything is read for it.
        let alone = (feeds.len() == 1).then(|| feeds[0].stack());
        let mut backoff = Backoff::default();
        loop {
            let mut place = alone.clone();
            let next = async {
                below(&mut tasks, MAX_COLLECTING).await;
                if let Some(place) = &mut place {
                    place.ready().await.map_err(drop)?;
                }
                Ok(heard(&self.subscriber, &mut backoff).await)
            };
            let transfer = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                next = next => match next {
                    Ok(Some(transfer)) => transfer,
                    // The publisher's side failed; the address is dialled anew.
                    Ok(None) => continue,
                    // The route is closed.
                    Err(()) => break,
                },
            };
            let feeds = Arc::clone(&feeds);
            begin(&mut tasks, async move {
                if let Err(refused) = fan_in(&feeds, transfer, place).await {
                    debug!(?refused, "a copy of a weida publisher is not taken");
                }
            });
        }
        while tasks.join_next().await.is_some() {}
    }
}

/// The next copy. `None` after a wait when there is none to come for now: no fault of a publisher ends the pump, which
/// lives until it is stopped (`gateway.md` rule 7).
async fn heard(subscriber: &Subscriber, backoff: &mut Backoff) -> Option<IncomingTransfer> {
    match subscriber.recv().await {
        Ok(transfer) => {
            backoff.reset();
            Some(transfer)
        }
        Err(error) => {
            warn!(code = "WEI003", err = %error, "a subscription at a weida publisher is down");
            let wait = backoff.next(&mut rand::rng());
            tokio::time::sleep(wait).await;
            None
        }
    }
}

async fn fan_in(
    feeds: &[Feed],
    mut transfer: IncomingTransfer,
    mut place: Option<Ingress>,
) -> Result<(), Refused> {
    let received_at = Instant::now();
    let topic = transfer.meta().topic.clone().unwrap_or_default();
    let mut wanted = feeds.iter().filter(|feed| feed.filter.matches(&topic));
    let Some(first) = wanted.next() else {
        return Ok(());
    };
    let described = judge(&first.route, transfer.meta(), received_at)?;
    let envelope = collect(&first.route, described, &mut transfer, received_at).await?;
    for feed in wanted {
        let mut copy = envelope.clone();
        copy.route = feed.route.id().clone();
        enter(feed, copy, None).await;
    }
    enter(first, envelope, place.take()).await;
    Ok(())
}

async fn enter(feed: &Feed, envelope: weida_bridge::Envelope, place: Option<Ingress>) {
    let mut place = place.unwrap_or_else(|| feed.stack());
    if place.ready().await.is_ok() {
        // It goes on by itself.
        let _outcome = place.call(envelope);
    }
}

// === reply ===

/// Answers what weida peers request at one path of one listener.
pub(super) struct ReplyPump {
    pub(super) route: Arc<RouteHandle>,
    pub(super) replier: Replier,
    pub(super) grants: WeidaGrants,
    pub(super) stack: Ingress,
}

impl ReplyPump {
    pub(super) async fn run(self, stop: CancellationToken) {
        let mut tasks = JoinSet::new();
        let config = self.route.config();
        let max_pending = config.in_flight.min(config.max_pending_replies).max(1);
        let stamp = Arc::new(Stamp::default());
        loop {
            let mut place = self.stack.clone();
            let next = async {
                below(&mut tasks, max_pending).await;
                place.ready().await.map_err(drop)?;
                self.replier.accept().await.map_err(drop)
            };
            let request = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                next = next => match next {
                    Ok(request) => request,
                    Err(()) => break,
                },
            };
            let allowed = self
                .grants
                .may_publish(request.meta().peer.as_ref(), self.replier.path());
            let (route, grants) = (Arc::clone(&self.route), self.grants.clone());
            let stamp = Arc::clone(&stamp);
            begin(&mut tasks, async move {
                if !allowed {
                    return request.refuse(ErrorCode::Rejected).await;
                }
                if let Err(refused) = answer(&route, request, place, &stamp).await {
                    refused.tell(&route, &grants);
                }
            });
        }
        while tasks.join_next().await.is_some() {}
    }
}

/// Carries one request to the foreign side and its answer back.
async fn answer(
    route: &RouteHandle,
    mut request: IncomingRequest,
    mut place: Ingress,
    stamp: &Stamp,
) -> Result<(), Refused> {
    let received_at = Instant::now();
    let taken = match judge(route, request.meta(), received_at) {
        Ok(described) => collect(route, described, request.body(), received_at).await,
        Err(refused) => Err(refused),
    };
    let envelope = match taken {
        Ok(envelope) => envelope,
        Err(refused) => {
            request.refuse(ErrorCode::Rejected).await;
            return Err(refused);
        }
    };
    let outcome = place.call(envelope).await;
    let mut gone = pin!(request.canceled());
    match verdict(outcome) {
        Ok((meta, payload)) => {
            let sent = async {
                let mut transfer = request.reply(meta(stamp)).await?;
                transfer.write_chunk(payload).await?;
                transfer.finish()?;
                Ok::<(), weida::Error>(())
            };
            tokio::select! {
                biased;
                sent = sent => if let Err(error) = sent {
                    debug!(route = %route.id(), err = %error, "the requester did not take the answer");
                },
                () = &mut gone => {}
            }
        }
        Err(code) => request.refuse(code).await,
    }
    Ok(())
}

type ReplyMeta = Box<dyn FnOnce(&Stamp) -> TransferMeta + Send>;

/// What the requester is told (`reconciled.md` 3, column "weida reply").
fn verdict(outcome: Result<Outcome, FabricError>) -> Result<(ReplyMeta, bytes::Bytes), ErrorCode> {
    let level = match &outcome {
        Ok(outcome) => outcome.reached(),
        Err(_) => None,
    };
    match outcome {
        Ok(Outcome::Reply(reply)) => {
            let reply = *reply;
            let payload = reply.payload.clone();
            Ok((Box::new(move |stamp| stamp.reply(&reply)), payload))
        }
        Ok(outcome) => match (outcome, level) {
            (_, Some(level)) => {
                let empty: ReplyMeta =
                    Box::new(move |_| TransferMeta::default().with_achieved(achieved(level)));
                Ok((empty, bytes::Bytes::new()))
            }
            (
                Outcome::Dropped(DropCause::NoSubscriber | DropCause::Unroutable)
                | Outcome::Fanned { .. }
                | Outcome::Refused(Refusal::UnknownEndpoint),
                _,
            ) => Err(ErrorCode::UnknownEndpoint),
            (Outcome::Refused(Refusal::Unsupported), _) => Err(ErrorCode::Unsupported),
            (Outcome::Refused(_) | Outcome::DeadLettered(_) | Outcome::Filtered, _) => {
                Err(ErrorCode::Rejected)
            }
            (Outcome::Dropped(cause), _) if cause != DropCause::Expired => Err(ErrorCode::Rejected),
            _ => Err(ErrorCode::NoReply),
        },
        Err(_) => Err(ErrorCode::NoReply),
    }
}

/// A level of ours as a reply's `achieved`.
fn achieved(level: Level) -> Acknowledgement {
    match level {
        Level::Sent | Level::Receipt => Acknowledgement::TransportReceipt,
        Level::Accepted => Acknowledgement::Accepted,
        Level::Stored => Acknowledgement::Stored,
        Level::Processed => Acknowledgement::Processed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weida_bridge::{FabricErrorKind, Reply};

    fn code(outcome: Outcome) -> Option<ErrorCode> {
        verdict(Ok(outcome)).err()
    }

    /// Each row of the table says one word outward.
    #[test]
    fn reconciled_3_the_requester_hears_the_row_of_the_table() {
        assert_eq!(code(Outcome::Reply(Box::default())), None);
        assert_eq!(code(Outcome::Receipt), None);
        assert_eq!(
            code(Outcome::Dropped(DropCause::NoSubscriber)),
            Some(ErrorCode::UnknownEndpoint)
        );
        assert_eq!(
            code(Outcome::Refused(Refusal::Rejected)),
            Some(ErrorCode::Rejected)
        );
        assert_eq!(
            code(Outcome::Refused(Refusal::QueueFull)),
            Some(ErrorCode::Rejected)
        );
        assert_eq!(
            code(Outcome::Refused(Refusal::NotAuthorized)),
            Some(ErrorCode::Rejected)
        );
        assert_eq!(
            code(Outcome::Dropped(DropCause::QueueFull)),
            Some(ErrorCode::Rejected)
        );
        assert_eq!(code(Outcome::Indeterminate), Some(ErrorCode::NoReply));
        assert_eq!(code(Outcome::Expired), Some(ErrorCode::NoReply));
        assert_eq!(
            code(Outcome::Dropped(DropCause::Expired)),
            Some(ErrorCode::NoReply)
        );
        let away = verdict(Err(FabricErrorKind::Away.into())).err();
        assert_eq!(away, Some(ErrorCode::NoReply));
    }

    /// A one-way answer names the level that was reached and nothing more. [weida BR-6]
    #[test]
    fn r6_a_one_way_answer_carries_the_level_reached() {
        let (meta, payload) = verdict(Ok(Outcome::Stored)).ok().unwrap();
        assert_eq!(
            meta(&Stamp::default()).achieved,
            Some(Acknowledgement::Stored)
        );
        assert!(payload.is_empty());
        let reply = Reply {
            payload: bytes::Bytes::from_static(b"x"),
            ..Reply::default()
        };
        let (meta, payload) = verdict(Ok(Outcome::Reply(Box::new(reply)))).ok().unwrap();
        assert_eq!(meta(&Stamp::default()).achieved, None);
        assert_eq!(payload, "x");
    }
}
