//! The application's say in whose copies are sent. [weida PS-16]

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use weida::{Admission, ClientTls, ClientTrust, Identity, Limits, ServerTls, Subscriber, Trust};

use crate::raw::Raw;
use crate::world::{World, eventually, loopback, soon, taken};

/// A binding that knows its clients, and two of them on connections of their own.
async fn known() -> (World, Identity, Identity) {
    let identity = Identity::generate().unwrap();
    let tls = ServerTls::new(identity.clone()).require_client(ClientTrust::AnyKey);
    let world = World::serving(Limits::default(), tls, identity, loopback()).await;
    let clients = [(); 2].map(|()| Identity::generate().unwrap());
    let [alice, bob] = clients;
    (world, alice, bob)
}

async fn subscriber(
    world: &World,
    who: &Identity,
    filters: &[&str],
) -> (weida::Runtime, Subscriber) {
    let runtime = world.client();
    let tls = ClientTls::new(Trust::by_address()).with_identity(who.clone());
    let subscriber = runtime.subscriber(tls);
    for filter in filters {
        subscriber.subscribe(filter).await.unwrap();
    }
    soon(subscriber.connect(&world.url("/p"))).await.unwrap();
    (runtime, subscriber)
}

/// The denied peer's connection, its other filters, and its neighbour live.
#[tokio::test]
async fn ps_16_s17_14_a_declined_filter_costs_its_copies_and_nothing_else() {
    let (world, alice, bob) = known().await;
    let denied = bob.fingerprint().unwrap();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&asked);
    let publisher = world
        .listener
        .publisher("/p")
        .unwrap()
        .with_admission(move |request| {
            let key = request.peer.and_then(|peer| peer.key());
            let chain = request.peer_chain.map(|chain| chain.certs().len());
            let what = (
                key,
                chain,
                request.path.to_owned(),
                request.filter.to_owned(),
            );
            log.lock().unwrap().push(what);
            if key == Some(denied) && request.filter.starts_with("secret") {
                Admission::DeclineCopies
            } else {
                Admission::Record
            }
        });
    let (_a, alice_sub) = subscriber(&world, &alice, &["secret.#"]).await;
    let (_b, bob_sub) = subscriber(&world, &bob, &["secret.#", "open.*", "*.both"]).await;
    eventually(|| publisher.filter_count() == 4).await;

    // Only a declined filter of bob matches; alice gets hers.
    assert_eq!(publisher.publish("secret.a", "1").unwrap(), 1);
    let drops = publisher.dropped_on("secret.a").unwrap();
    assert_eq!((drops.declined, drops.total()), (1, 1));
    assert_eq!(publisher.open("secret.a").subscribers(), 1);
    assert_eq!(publisher.dropped_on("secret.a").unwrap().declined, 2);
    // Another filter of bob matches too, or alone.
    assert_eq!(publisher.publish("secret.both", "2").unwrap(), 2);
    assert_eq!(publisher.publish("open.b", "3").unwrap(), 1);
    assert_eq!(publisher.dropped(), 2);

    let mut topics = Vec::new();
    for _ in 0..2 {
        topics.push(taken(soon(bob_sub.recv()).await.unwrap()).await.0);
    }
    topics.sort_unstable();
    assert_eq!(topics, ["open.b", "secret.both"]);
    assert_eq!(
        taken(soon(alice_sub.recv()).await.unwrap()).await.1.len(),
        1
    );
    assert_eq!((bob_sub.peer_count(), publisher.subscriber_count()), (1, 2));

    // Proved facts only, and every filter was asked about.
    let asked = asked.lock().unwrap();
    let of = |who: &Identity| {
        let key = who.fingerprint().unwrap();
        asked.iter().filter(|it| it.0 == Some(key)).count()
    };
    assert_eq!((of(&alice), of(&bob), asked.len()), (1, 3, 4));
    assert!(asked.iter().all(|it| it.1 == Some(1) && it.2 == "/p"));
}

#[tokio::test]
async fn ps_16_the_latest_answer_holds() {
    let world = World::new().await;
    let allow = Arc::new(AtomicBool::new(false));
    let answer = Arc::clone(&allow);
    let publisher = world
        .listener
        .publisher("/p")
        .unwrap()
        .with_admission(move |request| {
            assert_eq!((request.peer, request.peer_chain.is_none()), (None, true));
            if answer.load(Ordering::Relaxed) {
                Admission::Record
            } else {
                Admission::DeclineCopies
            }
        });
    let raw = Raw::dial(world.addr()).await;
    raw.subscribe("/p", "a").await;
    eventually(|| publisher.filter_count() == 1).await;
    assert_eq!(publisher.publish("a", "").unwrap(), 0);
    allow.store(true, Ordering::Relaxed);
    raw.subscribe("/p", "a").await;
    eventually(|| publisher.publish("a", "").unwrap() == 1).await;
    allow.store(false, Ordering::Relaxed);
    raw.subscribe("/p", "a").await;
    eventually(|| publisher.publish("a", "").unwrap() == 0).await;
    assert_eq!(
        (publisher.filter_count(), publisher.subscriber_count()),
        (1, 1)
    );
    raw.is_open();
}

#[tokio::test]
async fn ps_16_installing_screens_what_is_held_and_replaces_what_was_decided() {
    let world = World::new().await;
    let raw = Raw::dial(world.addr()).await;
    raw.subscribe("/p", "a").await;
    raw.subscribe("/p", "b").await;
    let publisher = world.listener.publisher("/p").unwrap();
    eventually(|| publisher.filter_count() == 2).await;
    assert_eq!(publisher.publish("a", "").unwrap(), 1);
    let only_b = |request: &weida::SubscriptionRequest<'_>| match request.filter {
        "b" => Admission::Record,
        _ => Admission::DeclineCopies,
    };
    let publisher = publisher.with_admission(only_b);
    assert_eq!(publisher.publish("a", "").unwrap(), 0);
    assert_eq!(publisher.publish("b", "").unwrap(), 1);
    let publisher = publisher.with_admission(|_| Admission::Record);
    assert_eq!(publisher.publish("a", "").unwrap(), 1);
    let publisher = publisher.with_admission(|_| Admission::DeclineCopies);
    assert_eq!(publisher.publish("b", "").unwrap(), 0);
    // A successor inherits the subscriptions and no decision.
    drop(publisher);
    let publisher = world.listener.publisher("/p").unwrap();
    assert_eq!(publisher.publish("b", "").unwrap(), 1);
    assert_eq!(publisher.dropped(), 0);
}

#[tokio::test]
async fn ps_16_a_panic_declines_and_the_publisher_lives() {
    let world = World::new().await;
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let publisher = world
        .listener
        .publisher("/p")
        .unwrap()
        .with_admission(move |request| {
            counted.fetch_add(1, Ordering::Relaxed);
            assert_ne!(request.filter, "boom");
            Admission::Record
        });
    let raw = Raw::dial(world.addr()).await;
    raw.subscribe("/p", "boom").await;
    eventually(|| publisher.filter_count() == 1).await;
    assert_eq!(publisher.publish("boom", "").unwrap(), 0);
    raw.subscribe("/p", "fine").await;
    eventually(|| publisher.filter_count() == 2).await;
    assert_eq!(publisher.publish("fine", "").unwrap(), 1);
    assert_eq!(calls.load(Ordering::Relaxed), 2);
    raw.is_open();
}

/// A declined filter keeps its place under the limit, and declining is never
/// what closes a connection. [weida S17-13]
#[tokio::test]
async fn ps_16_s17_13_declining_frees_no_place_and_closes_nothing() {
    let limits = Limits {
        max_subscriptions: 3,
        ..Limits::default()
    };
    let world = World::with_limits(limits).await;
    let publisher = world
        .listener
        .publisher("/p")
        .unwrap()
        .with_admission(|_| Admission::DeclineCopies);
    let raw = Raw::dial(world.addr()).await;
    for filter in ["a", "b", "c"] {
        raw.subscribe("/p", filter).await;
    }
    eventually(|| publisher.filter_count() == 3).await;
    raw.hears_nothing().await;
    raw.subscribe("/p", "d").await;
    assert_eq!(raw.closed().await.0, weida::codes::LIMIT_EXCEEDED);
}
