//! Foreign to weida: publish, push, request.

use std::time::Duration;

use weida::{ErrorCode, ExtensionItem, ExtensionValue, TransferMeta};
use weida_bridge::{DropCause, Level, Outcome, Refusal};

use crate::world::{ANY_PEER, Gate, Peer, eventually, message, within};

fn publish_route() -> String {
    format!(
        r##"
[[route]]
name = "up"
from = {{ listen = "mqtt", filter = "plant/#" }}
to = {{ weida = "/mqtt", pattern = "publish" }}
delivery = "at-most-once"
{ANY_PEER}
"##
    )
}

fn dialled(pattern: &str, url: &str, rest: &str) -> String {
    format!(
        r##"
[[route]]
name = "up"
from = {{ listen = "mqtt", filter = "plant/#" }}
to = {{ weida = "{url}", pattern = "{pattern}" }}
{rest}
"##
    )
}

/// A publish reaches a subscriber with topic, content type and headers; one that nobody wants is a counted drop.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gateway_2_3_publish_reaches_weida_subscribers() {
    let gate = Gate::start(&publish_route()).await;
    let nobody = gate
        .send("up", message("up", "plant.7.temp", "21.5"))
        .await
        .unwrap();
    assert_eq!(nobody, Outcome::Dropped(DropCause::NoSubscriber));

    let peer = Peer::new();
    let reader = peer.runtime.subscriber(peer.client(&gate));
    reader.subscribe("plant.*.temp").await.unwrap();
    within("connect", reader.connect(&gate.url("/mqtt")))
        .await
        .unwrap();
    let route = gate.route("up");
    eventually("the subscription", || {
        route.publishers()[0].subscriber_count() == 1
    })
    .await;

    let mut with_meta = message("up", "plant.7.temp", "21.5");
    with_meta.content_type = Some("text/plain".into());
    with_meta.meta.push("site", "plant-7").unwrap();
    with_meta.expires_at = Some(with_meta.received_at + Duration::from_secs(60));
    let sent = gate.send("up", with_meta).await.unwrap();
    assert_eq!(
        sent,
        Outcome::Fanned {
            copies: 1,
            dropped: 0
        }
    );

    let copy = within("the copy", reader.recv()).await.unwrap();
    let meta = copy.meta().clone();
    assert_eq!(meta.topic.as_deref(), Some("plant.7.temp"));
    assert_eq!(meta.content_type.as_deref(), Some("text/plain"));
    assert_eq!(meta.peer.and_then(|peer| peer.key()), Some(gate.key));
    // The keys of gateway.md 8.3, as a peer that knows them reads them.
    let item = |key| match meta.extension(key) {
        Some(ExtensionValue::Item(item)) => Some(item),
        _ => None,
    };
    assert_eq!(item(64), Some(ExtensionItem::Uint(1)));
    let own = ExtensionItem::Bytes(&gate.key.as_bytes()[..8]);
    assert_eq!(meta.extension(65), Some(ExtensionValue::List(vec![own])));
    let site = vec![ExtensionItem::Text("site"), ExtensionItem::Text("plant-7")];
    assert_eq!(meta.extension(66), Some(ExtensionValue::List(site)));
    assert_eq!(item(67), Some(ExtensionItem::Text("mqtt/mqtt")));
    let Some(ExtensionItem::Uint(left)) = item(68) else {
        panic!("no lifetime")
    };
    assert!((1..=60_000).contains(&left), "{left} ms");
    assert_eq!(copy.collect(1024).await.unwrap(), b"21.5");

    let row = gate.row("up");
    assert_eq!((row.received, row.delivered, row.difference()), (2, 1, 0));
    assert_eq!(row.dropped.of(DropCause::NoSubscriber), 1);
}

/// What a foreign client calls itself is a label: the peer that weida sees is the gateway's key, and the producer key is not
/// written. [weida S8-31]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s8_31_a_foreign_id_never_becomes_the_peer() {
    let gate = Gate::start(&publish_route()).await;
    let peer = Peer::new();
    let reader = peer.runtime.subscriber(peer.client(&gate));
    reader.subscribe("#").await.unwrap();
    within("connect", reader.connect(&gate.url("/mqtt")))
        .await
        .unwrap();
    let route = gate.route("up");
    eventually("the subscription", || {
        route.publishers()[0].subscriber_count() == 1
    })
    .await;
    let mut forged = message("up", "plant.1", "x");
    // Text shaped like another peer's fingerprint.
    let session = weida_bridge::SessionRef {
        foreign: peer.key().to_string().into(),
        ..(**forged.session.as_ref().unwrap()).clone()
    };
    forged.session = Some(session.into());
    gate.send("up", forged).await.unwrap();
    let copy = within("the copy", reader.recv()).await.unwrap();
    assert_eq!(copy.meta().peer.and_then(|peer| peer.key()), Some(gate.key));
}

/// A push is answered by the receipt of the other side's transport, and not before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runtime_7_6_push_with_receipt() {
    let peer = Peer::new();
    let puller = peer.listener.puller("/sink").unwrap();
    let binding = peer.bind(0).await;
    let gate = Gate::start(&dialled("push", &peer.url(&binding, "/sink"), "")).await;
    gate.reached("up").await;
    let outcome = gate
        .send("up", message("up", "plant.7.temp", "21.5"))
        .await
        .unwrap();
    assert_eq!(outcome, Outcome::Receipt);
    let transfer = within("the transfer", puller.recv()).await.unwrap();
    assert_eq!(transfer.meta().topic.as_deref(), Some("plant.7.temp"));
    assert_eq!(transfer.collect(1024).await.unwrap(), b"21.5");
}

/// A payload larger than the stream window has no receipt while nobody reads, so a path that nobody serves is a certain no.
/// [weida TX-6]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tx_6_a_large_push_to_an_unknown_path_is_refused() {
    let peer = Peer::new();
    let binding = peer.bind(0).await;
    let url = peer.url(&binding, "/nothing");
    let gate = Gate::start(&dialled("push", &url, "")).await;
    gate.reached("up").await;
    let mut refused = 0;
    for _ in 0..20 {
        let outcome = gate
            .send("up", message("up", "plant.1", vec![0; 1 << 20]))
            .await
            .unwrap();
        match outcome {
            Outcome::Refused(Refusal::UnknownEndpoint) => refused += 1,
            Outcome::Receipt => {}
            other => panic!("{other:?}"),
        }
    }
    assert!(refused > 0);
    assert_eq!(gate.row("up").dropped.of(DropCause::Unroutable), refused);
}

/// A push with `sent` hands one copy over and waits for nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runtime_7_6_push_with_sent() {
    let peer = Peer::new();
    let puller = peer.listener.puller("/sink").unwrap();
    let binding = peer.bind(0).await;
    let rest = "delivery = \"at-most-once\"\nack_on = \"sent\"";
    let gate = Gate::start(&dialled("push", &peer.url(&binding, "/sink"), rest)).await;
    gate.reached("up").await;
    let outcome = gate
        .send("up", message("up", "plant.1", "x"))
        .await
        .unwrap();
    assert_eq!(
        outcome,
        Outcome::Fanned {
            copies: 1,
            dropped: 0
        }
    );
    assert_eq!(
        within("the transfer", puller.recv())
            .await
            .unwrap()
            .collect(9)
            .await
            .unwrap(),
        b"x"
    );
}

fn request_rest() -> &'static str {
    "delivery = \"at-most-once\"\nack_on = \"reply\"\ntimeout = \"5s\""
}

/// A request is answered with the reply, its content type, its headers and the level the replier states.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runtime_7_6_request_is_answered_with_the_reply() {
    let peer = Peer::new();
    let replier = peer.listener.replier("/ask").unwrap();
    let binding = peer.bind(0).await;
    let gate = Gate::start(&dialled(
        "request",
        &peer.url(&binding, "/ask"),
        request_rest(),
    ))
    .await;
    gate.reached("up").await;
    let serving = async {
        let mut request = replier.accept().await.unwrap();
        assert_eq!(request.meta().topic.as_deref(), Some("plant.q"));
        assert_eq!(request.body().read_capped(100).await.unwrap(), b"how hot?");
        let meta = TransferMeta::default()
            .with_content_type("text/plain")
            .with_achieved(weida::Acknowledgement::Accepted);
        let mut reply = request.reply(meta).await.unwrap();
        reply.write_all(b"21.5").await.unwrap();
        reply.finish().unwrap().delivered().await.unwrap();
    };
    let (outcome, ()) = tokio::join!(
        gate.send("up", message("up", "plant.q", "how hot?")),
        serving
    );
    let outcome = outcome.unwrap();
    assert_eq!(outcome.reached(), Some(Level::Accepted));
    let Outcome::Reply(reply) = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(reply.payload, "21.5");
    assert_eq!(reply.content_type.as_deref(), Some("text/plain"));
    assert_eq!(reply.peer.and_then(|peer| peer.key()), Some(peer.key()));
}

/// Each way a replier says no keeps its name; one that drops the request leaves the outcome unknown. [weida BR-19]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn br_19_refused_requests_keep_their_kind() {
    let peer = Peer::new();
    let replier = peer.listener.replier("/ask").unwrap();
    let binding = peer.bind(0).await;
    let gate = Gate::start(&dialled(
        "request",
        &peer.url(&binding, "/ask"),
        request_rest(),
    ))
    .await;
    gate.reached("up").await;
    for (code, outcome) in [
        (
            Some(ErrorCode::Rejected),
            Outcome::Refused(Refusal::Rejected),
        ),
        (
            Some(ErrorCode::UnknownEndpoint),
            Outcome::Refused(Refusal::UnknownEndpoint),
        ),
        (None, Outcome::Indeterminate),
    ] {
        let serving = async {
            let request = replier.accept().await.unwrap();
            match code {
                Some(code) => request.refuse(code).await,
                None => drop(request),
            }
        };
        let (answer, ()) = tokio::join!(gate.send("up", message("up", "plant.q", "?")), serving);
        assert_eq!(answer.unwrap(), outcome);
    }
}

/// A replier that never answers costs the requester its timeout and no more; the outcome is unknown.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r6_a_request_without_an_answer_ends_at_its_timeout() {
    let peer = Peer::new();
    let replier = peer.listener.replier("/ask").unwrap();
    let binding = peer.bind(0).await;
    let rest = "delivery = \"at-most-once\"\nack_on = \"reply\"\ntimeout = \"300ms\"";
    let gate = Gate::start(&dialled("request", &peer.url(&binding, "/ask"), rest)).await;
    gate.reached("up").await;
    let holding = async {
        let request = replier.accept().await.unwrap();
        request.canceled().await;
        drop(request);
    };
    let (outcome, ()) = tokio::join!(gate.send("up", message("up", "plant.q", "?")), holding);
    assert_eq!(outcome.unwrap(), Outcome::Indeterminate);
}
