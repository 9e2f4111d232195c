//! Layer 2: what is decided from the message alone, before any queue: loops, size, `where`, `set`.
//!
//! Pure and synchronous. A message that ends here costs no room, no permit and no wake-up.

use std::future::{Ready, ready};
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::future::Either;
use tokio::time::Instant;
use tower_layer::Layer;
use tower_service::Service;
use weida_bridge::{DropCause, Envelope, FabricError, GatewayId, Outcome, Refusal};

use super::message::Message;
use super::stats::{LoopKind, RouteStats};
use crate::config::valid::{Condition, Transform};

/// The rules of one route.
#[derive(Debug)]
pub struct Rules {
    /// All must hold.
    pub conditions: Vec<Condition>,
    /// What is changed then.
    pub transform: Transform,
    /// Largest payload.
    pub max_message_bytes: usize,
    /// Our own mark.
    pub own: GatewayId,
    /// Gateways a message may have passed before this one.
    pub max_hops: usize,
    /// Where loops are counted.
    pub stats: Arc<RouteStats>,
}

impl Rules {
    /// Judges and changes one message.
    ///
    /// # Errors
    /// The outcome of a message that ends here.
    pub fn apply(&self, envelope: &mut Envelope, now: Instant) -> Result<(), Outcome> {
        if envelope.payload.len() > self.max_message_bytes {
            return Err(Outcome::Refused(Refusal::TooLarge));
        }
        if envelope.is_expired(now) {
            return Err(Outcome::Expired);
        }
        self.mark_passage(envelope)?;
        if !self
            .conditions
            .iter()
            .all(|condition| holds(condition, envelope))
        {
            return Err(Outcome::Filtered);
        }
        self.change(envelope)
    }

    /// Refuses a message that was here before and marks one that was not (`gateway.md` 8.2).
    fn mark_passage(&self, envelope: &mut Envelope) -> Result<(), Outcome> {
        let suppressed = |kind| {
            self.stats.loop_suppressed(kind);
            Outcome::Dropped(DropCause::Loop)
        };
        if envelope.via.contains(self.own) {
            return Err(suppressed(LoopKind::Via));
        }
        if envelope.via.len() > self.max_hops {
            return Err(suppressed(LoopKind::Hops));
        }
        envelope
            .via
            .push(self.own)
            .map_err(|_full| suppressed(LoopKind::Hops))
    }

    fn change(&self, envelope: &mut Envelope) -> Result<(), Outcome> {
        let set = &self.transform;
        if let Some(content_type) = &set.content_type {
            envelope.content_type = Some(content_type.as_str().into());
        }
        if !set.drop_meta.is_empty() && !envelope.meta.is_empty() {
            envelope
                .meta
                .retain(|name, _| !set.drop_meta.iter().any(|drop| names(drop, name)));
        }
        if !set.meta.is_empty() {
            envelope
                .meta
                .retain(|name, _| !set.meta.iter().any(|(new, _)| &**new == name));
            for (name, value) in &set.meta {
                envelope
                    .meta
                    .push(name.clone(), value.clone())
                    .map_err(|_full| Outcome::Dropped(DropCause::MetaTooLarge))?;
            }
        }
        Ok(())
    }
}

fn holds(condition: &Condition, envelope: &Envelope) -> bool {
    match condition {
        Condition::ContentType(wanted) => envelope.content_type.as_deref() == Some(wanted.as_str()),
        Condition::MaxPayloadBytes(max_bytes) => envelope.payload.len() <= *max_bytes,
    }
}

/// Whether the pattern of `drop_meta` names this header.
fn names(pattern: &str, name: &str) -> bool {
    pattern
        .strip_suffix('*')
        .map_or_else(|| pattern == name, |head| name.starts_with(head))
}

/// Builds [`FilterTransform`] services.
#[derive(Clone, Debug)]
pub struct FilterLayer(pub Arc<Rules>);

impl<S> Layer<S> for FilterLayer {
    type Service = FilterTransform<S>;

    fn layer(&self, inner: S) -> FilterTransform<S> {
        FilterTransform {
            rules: Arc::clone(&self.0),
            inner,
        }
    }
}

/// Applies [`Rules`].
#[derive(Clone, Debug)]
pub struct FilterTransform<S> {
    rules: Arc<Rules>,
    inner: S,
}

impl<S> Service<Message> for FilterTransform<S>
where
    S: Service<Message, Response = Outcome, Error = FabricError>,
{
    type Response = Outcome;
    type Error = FabricError;
    type Future = Either<Ready<Result<Outcome, FabricError>>, S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), FabricError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut message: Message) -> Self::Future {
        let now = message.mark.born().unwrap_or_else(Instant::now);
        match self.rules.apply(&mut message.envelope, now) {
            Ok(()) => Either::Right(self.inner.call(message)),
            Err(outcome) => Either::Left(ready(Ok(outcome))),
        }
    }
}
