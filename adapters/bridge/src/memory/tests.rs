use bytes::Bytes;
use weida_core::Topic;

use super::*;
use crate::outcome::Refusal;

fn envelope(route: &str, payload: &'static str) -> Envelope {
    let topic = Topic::new("a.b").unwrap();
    Envelope::new(route.into(), topic, Bytes::from(payload), Instant::now())
}

async fn call(ingress: &mut Ingress, payload: &'static str) -> Result<Outcome, FabricError> {
    ingress.ready().await?.call(envelope("in", payload)).await
}

fn fabric() -> (MemoryFabric, IngressProbe, Ingress) {
    let fabric = MemoryFabric::new();
    let probe = fabric.add_ingress("in", Outcome::Receipt);
    let ingress = fabric.ingress(&"in".into()).unwrap();
    (fabric, probe, ingress)
}

#[tokio::test]
async fn scripted_answers_come_first_and_in_order() {
    let (_fabric, probe, mut ingress) = fabric();
    probe
        .then(Outcome::Refused(Refusal::Rejected))
        .then_fail(FabricErrorKind::Away);
    assert_eq!(
        call(&mut ingress, "1").await.unwrap(),
        Outcome::Refused(Refusal::Rejected)
    );
    assert_eq!(
        call(&mut ingress, "2").await.unwrap_err().kind(),
        FabricErrorKind::Away
    );
    assert_eq!(call(&mut ingress, "3").await.unwrap(), Outcome::Receipt);
    assert_eq!(probe.seen(), 3);
    for expected in ["1", "2", "3"] {
        assert_eq!(probe.next().await.payload, expected);
    }
    assert!(probe.try_next().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_stalled_route_is_not_ready_until_resumed() {
    let (_fabric, probe, mut ingress) = fabric();
    probe.stall();
    let waited = tokio::time::timeout(std::time::Duration::from_secs(60), ingress.ready()).await;
    assert!(waited.is_err());
    let resumes = probe.clone();
    let (outcome, ()) = tokio::join!(call(&mut ingress, "1"), async move { resumes.resume() });
    assert_eq!(outcome.unwrap(), Outcome::Receipt);
}

#[tokio::test(start_paused = true)]
async fn held_receipts_are_released_one_by_one() {
    let (_fabric, probe, mut ingress) = fabric();
    probe.hold();
    let mut first = ingress.ready().await.unwrap().call(envelope("in", "1"));
    let mut second = ingress.ready().await.unwrap().call(envelope("in", "2"));
    let early = tokio::time::timeout(std::time::Duration::from_secs(60), &mut first).await;
    assert!(early.is_err());
    assert_eq!((probe.held(), probe.seen()), (2, 2));
    probe.release(1);
    assert_eq!((&mut first).await.unwrap(), Outcome::Receipt);
    assert_eq!(probe.held(), 1);
    probe.release_all();
    assert_eq!((&mut second).await.unwrap(), Outcome::Receipt);
    assert_eq!(call(&mut ingress, "3").await.unwrap(), Outcome::Receipt);
}

#[tokio::test]
async fn deliveries_reach_the_adapter_and_their_outcome_comes_back() {
    let fabric = MemoryFabric::new();
    let probe = fabric.add_egress("out", 4);
    let mut deliveries = fabric.subscribe(&"out".into()).unwrap();
    let settled = probe.push(envelope("out", "1")).await.unwrap();
    let delivery = deliveries.next().await.unwrap();
    assert!(!delivery.wants_reply());
    assert_eq!(delivery.envelope.payload, "1");
    delivery.settle(Outcome::Stored);
    assert_eq!(settled.await, Outcome::Stored);

    let deadline = Instant::now() + std::time::Duration::from_secs(10);
    let settled = probe.request(envelope("out", "2"), deadline).await.unwrap();
    let delivery = deliveries.next().await.unwrap();
    assert!(delivery.wants_reply());
    assert_eq!(delivery.deadline(), Some(deadline));
    drop(delivery);
    assert_eq!(settled.await, Outcome::Indeterminate);
}

#[test]
fn unknown_and_doubly_subscribed_routes_are_refused() {
    let fabric = MemoryFabric::new();
    fabric.add_ingress("in", Outcome::Receipt);
    fabric.add_egress("out", 1);
    let kind = |result: Result<Deliveries, FabricError>| result.map(drop).unwrap_err().kind();
    assert!(fabric.ingress(&"in".into()).is_ok());
    assert_eq!(
        fabric.ingress(&"out".into()).unwrap_err().kind(),
        FabricErrorKind::UnknownRoute
    );
    assert_eq!(
        kind(fabric.subscribe(&"in".into())),
        FabricErrorKind::UnknownRoute
    );
    assert!(fabric.subscribe(&"out".into()).is_ok());
    assert_eq!(
        kind(fabric.subscribe(&"out".into())),
        FabricErrorKind::Configuration
    );
}

#[tokio::test]
async fn a_removed_route_ends_for_those_who_hold_it() {
    let (fabric, _probe, mut ingress) = fabric();
    let egress = fabric.add_egress("out", 1);
    fabric.remove("in");
    fabric.remove("out");
    assert_eq!(
        call(&mut ingress, "1").await.unwrap_err().kind(),
        FabricErrorKind::Closed
    );
    assert!(egress.push(envelope("out", "1")).await.is_err());
}
