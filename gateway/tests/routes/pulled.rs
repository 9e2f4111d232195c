//! Weida to foreign: pull, reply, subscribe.

use std::time::Duration;

use weida::{ExtensionItem, ExtensionValue, TransferMeta};
use weida_bridge::{DropCause, Fabric, Level, Outcome, Reply, RouteId};

use crate::world::{ANY_PEER, Gate, Peer, eventually, within};

fn pull_route(rest: &str) -> String {
    format!(
        r#"
[[route]]
name = "down"
from = {{ weida = "/to-mqtt", pattern = "pull" }}
to = {{ listen = "mqtt", topic = "{{topic}}", qos = 1 }}
{rest}
{ANY_PEER}
"#
    )
}

fn reply_route(rest: &str) -> String {
    format!(
        r#"
[[route]]
name = "down"
from = {{ weida = "/devices", pattern = "reply" }}
to = {{ listen = "mqtt", topic = "rpc/{{topic}}", reply = "response-topic" }}
delivery = "at-most-once"
{rest}
{ANY_PEER}
"#
    )
}

/// A pushed transfer becomes one delivery: topic from DATA key 5, headers from key 66, the proved peer beside them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gateway_2_3_pull_delivers_what_peers_push() {
    let gate = Gate::start(&pull_route("")).await;
    let mut queue = gate.fabric.subscribe(&RouteId::new("down")).unwrap();
    let peer = Peer::new();
    let pusher = peer.runtime.pusher(peer.client(&gate));
    within("connect", pusher.connect(&gate.url("/to-mqtt")))
        .await
        .unwrap();
    let headers = [
        ExtensionItem::Text("site"),
        ExtensionItem::Text("plant-7"),
        // A peer may not pose as somebody else on the foreign side.
        ExtensionItem::Text("weida-peer"),
        ExtensionItem::Text("sha256:0000"),
    ];
    let meta = TransferMeta::default()
        .with_topic("cmd.7.open")
        .with_content_type("text/plain")
        .with_extension(66, &ExtensionValue::List(headers.to_vec()))
        .unwrap()
        .with_extension(68, &ExtensionValue::Item(ExtensionItem::Uint(60_000)))
        .unwrap();
    pusher.send_with(meta, b"now").await.unwrap();
    let delivery = within("the delivery", queue.next()).await.unwrap();
    let envelope = &delivery.envelope;
    assert_eq!(envelope.topic.as_str(), "cmd.7.open");
    assert_eq!(envelope.payload, "now");
    assert_eq!(envelope.content_type.as_deref(), Some("text/plain"));
    assert_eq!(
        envelope.meta.iter().collect::<Vec<_>>(),
        [("site", "plant-7")]
    );
    assert_eq!(envelope.peer.and_then(|peer| peer.key()), Some(peer.key()));
    let left = envelope.expires_at.unwrap() - envelope.received_at;
    assert_eq!(left, Duration::from_secs(60));
    // Our own mark is in it before it goes out.
    assert_eq!(envelope.via.as_slice()[0].0, gate.key.as_bytes()[..8]);
    assert!(!delivery.wants_reply());
    delivery.settle(Outcome::Receipt);
    eventually("the end", || gate.row("down").delivered == 1).await;
    assert_eq!(gate.row("down").difference(), 0);
    assert_eq!(gate.route("down").parts().stats.reserved_names(), 1);
}

/// Without a topic nothing can be named on the foreign side: the transfer is stopped with REJECTED before it is read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gateway_2_3_a_transfer_without_a_topic_is_rejected() {
    let gate = Gate::start(&pull_route("")).await;
    let mut queue = gate.fabric.subscribe(&RouteId::new("down")).unwrap();
    let peer = Peer::new();
    let pusher = peer.runtime.pusher(peer.client(&gate));
    within("connect", pusher.connect(&gate.url("/to-mqtt")))
        .await
        .unwrap();
    // Too large for the stream window, so the refusal is certain to be heard [weida TX-6].
    let mut transfer = pusher.open(TransferMeta::default()).await.unwrap();
    let heard = within("the refusal", async {
        loop {
            if let Err(error) = transfer.write_all(&[0; 64 << 10]).await {
                return error;
            }
        }
    })
    .await;
    assert!(matches!(heard, weida::Error::Rejected), "{heard:?}");
    let side = &gate.fabric.sides()[0];
    let refused = || {
        use weida_bridge::metrics::{RefusedCause, RefusedOp};
        side.grants
            .refusals()
            .of(RefusedOp::Publish, RefusedCause::BadName)
    };
    assert_eq!(refused(), 1);
    assert_eq!(
        gate.row("down").received,
        0,
        "it was no message of the route"
    );
    // The valid neighbour.
    pusher
        .send_with(TransferMeta::default().with_topic("cmd.1"), b"x")
        .await
        .unwrap();
    let delivery = within("the delivery", queue.next()).await.unwrap();
    assert_eq!(delivery.envelope.topic.as_str(), "cmd.1");
    delivery.settle(Outcome::Receipt);
}

/// One byte over `max_message_bytes` is refused, and the stream is stopped while the peer still writes. [weida BR-13]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn br_13_a_payload_over_the_cap_is_rejected() {
    let gate = Gate::start(&pull_route("")).await;
    let mut queue = gate.fabric.subscribe(&RouteId::new("down")).unwrap();
    let peer = Peer::new();
    let pusher = peer.runtime.pusher(peer.client(&gate));
    within("connect", pusher.connect(&gate.url("/to-mqtt")))
        .await
        .unwrap();
    let max = gate.route("down").config().route.max_message_bytes;
    let meta = || TransferMeta::default().with_topic("a");
    let mut fits = pusher.open(meta()).await.unwrap();
    fits.write_all(&vec![7; max]).await.unwrap();
    let receipt = fits.finish().unwrap();
    let delivery = within("the delivery", queue.next()).await.unwrap();
    assert_eq!(delivery.envelope.payload.len(), max);
    delivery.settle(Outcome::Receipt);
    within("the receipt", receipt.delivered()).await.unwrap();

    let mut over = pusher.open(meta()).await.unwrap();
    let heard = within("the refusal", async {
        loop {
            if let Err(error) = over.write_all(&vec![7; 256 << 10]).await {
                return error;
            }
        }
    })
    .await;
    assert!(matches!(heard, weida::Error::Rejected), "{heard:?}");
}

/// What was here before is not sent round again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gateway_8_2_a_message_with_our_own_mark_is_a_loop() {
    let gate = Gate::start(&pull_route("")).await;
    let mut queue = gate.fabric.subscribe(&RouteId::new("down")).unwrap();
    let peer = Peer::new();
    let pusher = peer.runtime.pusher(peer.client(&gate));
    within("connect", pusher.connect(&gate.url("/to-mqtt")))
        .await
        .unwrap();
    let marked = |id: &[u8]| {
        let list = ExtensionValue::List(vec![ExtensionItem::Bytes(id)]);
        TransferMeta::default()
            .with_topic("a")
            .with_extension(65, &list)
            .unwrap()
    };
    pusher
        .send_with(marked(&gate.key.as_bytes()[..8]), b"ours")
        .await
        .unwrap();
    eventually("the loop", || {
        gate.row("down").dropped.of(DropCause::Loop) == 1
    })
    .await;
    pusher.send_with(marked(&[9; 8]), b"theirs").await.unwrap();
    let delivery = within("the delivery", queue.next()).await.unwrap();
    assert_eq!(delivery.envelope.payload, "theirs");
    assert_eq!(delivery.envelope.via.len(), 2);
    delivery.settle(Outcome::Receipt);
}

/// A full route is not read: the pushers wait and nothing is lost. [weida BR-8]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn br_8_a_blocked_route_holds_its_pushers() {
    let rest = "in_flight = 2\nbuffer = { messages = 2, bytes = \"1MiB\" }";
    let gate = Gate::start(&pull_route(rest)).await;
    let mut queue = gate.fabric.subscribe(&RouteId::new("down")).unwrap();
    let peer = Peer::new();
    let pusher = peer.runtime.pusher(peer.client(&gate));
    within("connect", pusher.connect(&gate.url("/to-mqtt")))
        .await
        .unwrap();
    for number in 0..500_u32 {
        let meta = TransferMeta::default().with_topic("a");
        pusher.send_with(meta, &number.to_be_bytes()).await.unwrap();
    }
    let route = gate.route("down");
    eventually("the block", || route.parts().stats.blocked() > 0).await;
    assert!(gate.row("down").received <= 4, "room for four");
    let mut seen = std::collections::BTreeSet::new();
    while seen.len() < 500 {
        let delivery = within("the next delivery", queue.next()).await.unwrap();
        seen.insert(u32::from_be_bytes(
            delivery.envelope.payload[..].try_into().unwrap(),
        ));
        delivery.settle(Outcome::Receipt);
    }
    eventually("the end", || gate.row("down").delivered == 500).await;
    let row = gate.row("down");
    assert_eq!(
        (row.received, row.dropped.total(), row.difference()),
        (500, 0, 0)
    );
}

/// A requester gets what the foreign side answers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r6_reply_carries_the_foreign_answer_back() {
    let gate = Gate::start(&reply_route("timeout = \"5s\"")).await;
    let mut queue = gate.fabric.subscribe(&RouteId::new("down")).unwrap();
    let peer = Peer::new();
    let requester = peer.runtime.requester(peer.client(&gate));
    within("connect", requester.connect(&gate.url("/devices")))
        .await
        .unwrap();
    let asking = async {
        let meta = TransferMeta::default().with_topic("7.state");
        let reply = requester.request_with(meta, b"?").await.unwrap();
        let content_type = reply.meta().content_type.clone();
        (content_type, reply.collect(100).await.unwrap())
    };
    let answering = async {
        let delivery = queue.next().await.unwrap();
        assert!(delivery.wants_reply());
        assert!(delivery.deadline().is_some());
        assert_eq!(delivery.envelope.topic.as_str(), "7.state");
        let reply = Reply {
            payload: "open".into(),
            content_type: Some("text/plain".into()),
            ..Reply::default()
        };
        delivery.settle(Outcome::Reply(Box::new(reply)));
    };
    let ((content_type, answer), ()) =
        within("the exchange", async { tokio::join!(asking, answering) }).await;
    assert_eq!(
        (content_type.as_deref(), &answer[..]),
        (Some("text/plain"), &b"open"[..])
    );
    eventually("the end", || gate.row("down").delivered == 1).await;
}

/// What the foreign side cannot answer is an error at once or at the timeout, never a hang.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reconciled_3_a_requester_never_hangs() {
    let gate = Gate::start(&reply_route("timeout = \"300ms\"")).await;
    let mut queue = gate.fabric.subscribe(&RouteId::new("down")).unwrap();
    let peer = Peer::new();
    let requester = peer.runtime.requester(peer.client(&gate));
    within("connect", requester.connect(&gate.url("/devices")))
        .await
        .unwrap();
    let ask = || async {
        let meta = TransferMeta::default().with_topic("7.state");
        requester.request_with(meta, b"?").await.map(drop)
    };
    let nobody = async {
        queue
            .next()
            .await
            .unwrap()
            .settle(Outcome::Dropped(DropCause::NoSubscriber));
        let refused = queue.next().await.unwrap();
        refused.settle(Outcome::Refused(weida_bridge::Refusal::Rejected));
        // The third one is held and never answered.
        queue.next().await.unwrap()
    };
    let asking = async {
        let heard = [ask().await, ask().await, ask().await];
        heard.map(|result| result.unwrap_err())
    };
    let ([first, second, third], _held) =
        within("the exchanges", async { tokio::join!(asking, nobody) }).await;
    assert!(matches!(first, weida::Error::UnknownEndpoint), "{first:?}");
    assert!(matches!(second, weida::Error::Rejected), "{second:?}");
    assert!(matches!(third, weida::Error::NoReply), "{third:?}");
}

/// A one-way reply route answers with the level that was reached, and no bytes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r6_a_one_way_reply_names_the_level() {
    let tables = reply_route("timeout = \"5s\"").replace("\"response-topic\"", "\"none\"");
    let gate = Gate::start(&tables).await;
    let mut queue = gate.fabric.subscribe(&RouteId::new("down")).unwrap();
    let peer = Peer::new();
    let requester = peer.runtime.requester(peer.client(&gate));
    within("connect", requester.connect(&gate.url("/devices")))
        .await
        .unwrap();
    let asking = async {
        let meta = TransferMeta::default().with_topic("7.open");
        requester.request_with(meta, b"!").await.unwrap()
    };
    let answering = async { queue.next().await.unwrap().settle(Outcome::Receipt) };
    let (reply, ()) = within("the exchange", async { tokio::join!(asking, answering) }).await;
    assert_eq!(
        reply.meta().achieved,
        Some(weida::Acknowledgement::TransportReceipt)
    );
    assert_eq!(Outcome::Receipt.reached(), Some(Level::Receipt));
    assert!(reply.collect(1).await.unwrap().is_empty());
}

/// Routes with one address share a subscriber; each gets what its own filter selects.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gateway_8_1_routes_with_one_address_share_a_subscriber() {
    let peer = Peer::new();
    let publisher = peer.listener.publisher("/status").unwrap();
    let binding = peer.bind(0).await;
    let url = peer.url(&binding, "/status");
    let route = |name: &str, filter: &str| {
        format!(
            r#"
[[route]]
name = "{name}"
from = {{ weida = "{url}", pattern = "subscribe", filter = "{filter}" }}
to = {{ listen = "mqtt", topic = "{name}/{{topic}}" }}
delivery = "at-most-once"
"#
        )
    };
    let gate = Gate::start(&(route("all", "plant.#") + &route("temps", "plant.*.temp"))).await;
    let mut all = gate.fabric.subscribe(&RouteId::new("all")).unwrap();
    let mut temps = gate.fabric.subscribe(&RouteId::new("temps")).unwrap();
    eventually("both filters", || publisher.filter_count() == 2).await;
    assert_eq!(
        publisher.publish("plant.7.temp", "21.5").unwrap(),
        1,
        "one copy for both"
    );
    assert_eq!(publisher.publish("plant.7.state", "on").unwrap(), 1);
    let mut topics = Vec::new();
    for _ in 0..2 {
        let delivery = within("a copy", all.next()).await.unwrap();
        topics.push(delivery.envelope.topic.as_str().to_owned());
        delivery.settle(Outcome::Receipt);
    }
    topics.sort();
    assert_eq!(topics, ["plant.7.state", "plant.7.temp"]);
    let delivery = within("a copy", temps.next()).await.unwrap();
    assert_eq!(delivery.envelope.topic.as_str(), "plant.7.temp");
    assert_eq!(delivery.envelope.route.as_str(), "temps");
    assert_eq!(
        delivery.envelope.peer.and_then(|p| p.key()),
        Some(peer.key())
    );
    delivery.settle(Outcome::Receipt);
    assert!(temps.try_next().is_none());
}

/// An adapter asks once for its queue, and only for routes of its direction.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_seam_gives_each_queue_once() {
    use weida_bridge::FabricErrorKind::{Configuration, UnknownRoute};
    let gate = Gate::start(&pull_route("")).await;
    let down = RouteId::new("down");
    assert_eq!(gate.fabric.ingress(&down).unwrap_err().kind(), UnknownRoute);
    assert_eq!(
        gate.fabric
            .subscribe(&RouteId::new("x"))
            .unwrap_err()
            .kind(),
        UnknownRoute
    );
    let _queue = gate.fabric.subscribe(&down).unwrap();
    assert_eq!(
        gate.fabric.subscribe(&down).unwrap_err().kind(),
        Configuration
    );
}
