use std::error::Error as _;
use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, timeout};
use weida_core::Topic;

use super::*;
use crate::outcome::Refusal;

fn envelope(payload: &'static [u8]) -> Envelope {
    Envelope::new(
        "r".into(),
        Topic::new("a").unwrap(),
        Bytes::from_static(payload),
        Instant::now(),
    )
}

/// A service in which readiness belongs to one clone and is used up by a call, as a concurrency limit's is.
#[derive(Debug, Default)]
struct OneShotReady {
    ready: bool,
    misused: Arc<AtomicBool>,
    calls: Arc<AtomicUsize>,
}

impl Clone for OneShotReady {
    fn clone(&self) -> Self {
        Self {
            ready: false,
            misused: Arc::clone(&self.misused),
            calls: Arc::clone(&self.calls),
        }
    }
}

impl Service<Envelope> for OneShotReady {
    type Response = Outcome;
    type Error = FabricError;
    type Future = std::future::Ready<Result<Outcome, FabricError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), FabricError>> {
        self.ready = true;
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Envelope) -> Self::Future {
        if !std::mem::take(&mut self.ready) {
            self.misused.store(true, SeqCst);
        }
        self.calls.fetch_add(1, SeqCst);
        ready(Ok(Outcome::Receipt))
    }
}

#[tokio::test]
async fn an_ingress_is_called_on_the_very_value_that_was_ready() {
    let service = OneShotReady::default();
    let (misused, calls) = (Arc::clone(&service.misused), Arc::clone(&service.calls));
    let mut ingress = Ingress::new(service);
    let spare = ingress.clone();
    // Clone, swap, call: the ready one is called, the fresh one waits for its own turn.
    ingress.ready().await.unwrap();
    let mut ready = std::mem::replace(&mut ingress, spare);
    assert_eq!(ready.call(envelope(b"x")).await.unwrap(), Outcome::Receipt);
    assert_eq!(
        ingress
            .ready()
            .await
            .unwrap()
            .call(envelope(b"x"))
            .await
            .unwrap(),
        Outcome::Receipt
    );
    assert!(!misused.load(SeqCst));
    assert_eq!(calls.load(SeqCst), 2);
    // The valid neighbour above; a fresh clone that is called at once is what the rule forbids.
    drop(ingress.clone().call(envelope(b"x")));
    assert!(misused.load(SeqCst));
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_makes_the_sender_wait_and_loses_nothing() {
    let (sender, mut deliveries) = deliveries(2);
    let first = sender.send(envelope(b"1"), false, None).await.unwrap();
    let _second = sender.send(envelope(b"2"), false, None).await.unwrap();
    assert_eq!((deliveries.queued(), sender.room()), (2, 0));
    let third = timeout(
        Duration::from_secs(60),
        sender.send(envelope(b"3"), false, None),
    )
    .await;
    assert!(third.is_err());
    assert!(matches!(
        sender.try_send(envelope(b"3"), false, None),
        Err(TrySendError::Full(_))
    ));
    deliveries.next().await.unwrap().settle(Outcome::Accepted);
    assert_eq!(first.await, Outcome::Accepted);
    let _third = sender.send(envelope(b"3"), false, None).await.unwrap();
    assert_eq!(deliveries.next().await.unwrap().envelope.payload, "2");
    assert_eq!(deliveries.next().await.unwrap().envelope.payload, "3");
}

#[tokio::test(start_paused = true)]
async fn d18_waiting_bytes_are_bounded_beside_waiting_messages() {
    static FOUR_KIB: [u8; 4096] = [0; 4096];
    static BIG: [u8; 100_000] = [0; 100_000];
    let (sender, mut deliveries) = deliveries_within(100, 10 * 1024);
    let _one = sender.send(envelope(&FOUR_KIB), false, None).await.unwrap();
    let _two = sender.send(envelope(&FOUR_KIB), false, None).await.unwrap();
    assert!(matches!(
        sender.try_send(envelope(&FOUR_KIB), false, None),
        Err(TrySendError::Full(_))
    ));
    let waits = timeout(
        Duration::from_secs(60),
        sender.send(envelope(&FOUR_KIB), false, None),
    )
    .await;
    assert!(waits.is_err());
    drop(deliveries.next().await);
    let _three = sender.send(envelope(&FOUR_KIB), false, None).await.unwrap();
    // Larger than the whole budget: it waits for an empty queue, and then goes through alone.
    let (big, ()) = tokio::join!(sender.send(envelope(&BIG), false, None), async {
        for _ in 0..3 {
            assert!(deliveries.next().await.unwrap().envelope.payload.len() >= 4096);
        }
    });
    assert!(big.is_ok());
}

#[tokio::test]
async fn br_18_an_unsettled_delivery_is_indeterminate() {
    let (sender, mut deliveries) = deliveries(4);
    let dropped = sender.send(envelope(b"1"), false, None).await.unwrap();
    let queued = sender.send(envelope(b"2"), false, None).await.unwrap();
    let split = sender.send(envelope(b"3"), true, None).await.unwrap();
    drop(deliveries.next().await.unwrap());
    assert_eq!(dropped.await, Outcome::Indeterminate);
    drop(deliveries.next().await.unwrap().into_parts().1);
    assert_eq!(queued.await, Outcome::Indeterminate);
    drop(deliveries);
    assert_eq!(split.await, Outcome::Indeterminate);
    let closed = sender.send(envelope(b"4"), false, None).await.unwrap_err();
    assert_eq!(closed.envelope.payload, "4");
}

#[tokio::test]
async fn a_split_delivery_settles_once_its_message_moved_on() {
    let (sender, mut deliveries) = deliveries(1);
    let settled = sender
        .send(envelope(b"1"), true, Some(Instant::now()))
        .await
        .unwrap();
    let (message, settle) = deliveries.next().await.unwrap().into_parts();
    assert_eq!(message.payload, "1");
    assert!(settle.wants_reply() && settle.deadline().is_some() && !settle.is_abandoned());
    settle.settle(Outcome::Refused(Refusal::Unsupported));
    assert_eq!(settled.await, Outcome::Refused(Refusal::Unsupported));

    let given_up = sender.send(envelope(b"2"), true, None).await.unwrap();
    let (_, settle) = deliveries.next().await.unwrap().into_parts();
    drop(given_up);
    assert!(settle.is_abandoned());
    settle.settle(Outcome::Receipt);
}

#[tokio::test]
async fn a_closed_queue_still_gives_what_it_holds() {
    let (sender, mut deliveries) = deliveries(4);
    let _settled = sender.send(envelope(b"1"), false, None).await.unwrap();
    deliveries.close();
    assert!(sender.send(envelope(b"2"), false, None).await.is_err());
    assert!(matches!(
        sender.try_send(envelope(b"2"), false, None),
        Err(TrySendError::Closed(_))
    ));
    assert_eq!(deliveries.next().await.unwrap().envelope.payload, "1");
    assert!(deliveries.next().await.is_none());
}

/// Polled and dropped a hundred times: nothing is taken and lost.
#[tokio::test]
async fn next_is_cancel_safe() {
    let (sender, mut deliveries) = deliveries(1);
    for _ in 0..100 {
        let polled = timeout(Duration::ZERO, deliveries.next()).await;
        assert!(polled.is_err());
    }
    let _settled = sender.send(envelope(b"1"), false, None).await.unwrap();
    assert_eq!(deliveries.next().await.unwrap().envelope.payload, "1");
}

#[tokio::test]
async fn deliveries_are_a_stream() {
    let (sender, mut deliveries) = deliveries(1);
    let _settled = sender.send(envelope(b"1"), false, None).await.unwrap();
    drop(sender);
    for expected in [true, false] {
        let next = poll_fn(|cx| futures_core::Stream::poll_next(Pin::new(&mut deliveries), cx));
        assert_eq!(next.await.is_some(), expected);
    }
}

/// Every kind answers both questions of floor 5. [style 7]
#[test]
fn style_7_errors_have_a_side_and_a_retry_answer() {
    use FabricErrorKind::{
        Away, Closed, Configuration, Internal, NotConnected, Timeout, UnknownRoute,
    };
    let rows = [
        (UnknownRoute, "us", "pointless"),
        (NotConnected, "weida", "safe"),
        (Away, "weida", "safe"),
        (Timeout, "weida", "unsafe"),
        (Closed, "us", "pointless"),
        (Configuration, "us", "pointless"),
        (Internal, "us", "unsafe"),
    ];
    for (kind, side, retry) in rows {
        let error = FabricError::from(kind);
        assert_eq!(
            (error.side().as_str(), error.retry().as_str()),
            (side, retry),
            "{kind:?}"
        );
        assert!(error.source().is_none());
    }
    let caused = FabricError::with_source(Timeout, std::io::Error::other("below"));
    assert_eq!(caused.to_string(), "the attempt timed out");
    assert_eq!(caused.source().unwrap().to_string(), "below");
}
