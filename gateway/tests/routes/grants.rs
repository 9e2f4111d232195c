//! Who may do what on the weida listener, over real connections.

use weida::TransferMeta;
use weida_bridge::metrics::{RefusedCause, RefusedOp};
use weida_bridge::{Fabric, Outcome, RouteId};

use crate::world::{Gate, Peer, eventually, message, within};

fn routes(grants: &str) -> String {
    format!(
        r##"
[[route]]
name = "up"
from = {{ listen = "mqtt", filter = "plant/#" }}
to = {{ weida = "/mqtt", pattern = "publish" }}
delivery = "at-most-once"
[[route]]
name = "down"
from = {{ weida = "/to-mqtt", pattern = "pull" }}
to = {{ listen = "mqtt", topic = "{{topic}}" }}
[[route]]
name = "ask"
from = {{ weida = "/devices", pattern = "reply" }}
to = {{ listen = "mqtt", topic = "rpc/{{topic}}", reply = "response-topic" }}
delivery = "at-most-once"
timeout = "5s"
{grants}
"##
    )
}

fn grant(peer: &Peer, publish: &str, subscribe: &str) -> String {
    format!(
        r#"
[[grant]]
who = ["peer:{}"]
listen = "weida"
publish = [{publish}]
subscribe = [{subscribe}]
"#,
        peer.key()
    )
}

fn refused(gate: &Gate, op: RefusedOp) -> u64 {
    gate.fabric.sides()[0]
        .grants
        .refusals()
        .of(op, RefusedCause::NotAuthorized)
}

/// A subscription without a grant is recorded and its copies declined and counted; the connection lives, and so do the
/// subscriptions of others. [weida S17-13] [weida S17-14]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s17_14_an_ungranted_subscription_is_recorded_and_its_copies_declined() {
    let (friend, stranger) = (Peer::new(), Peer::new());
    let gate = Gate::start(&routes(&grant(&friend, "", "\"/mqtt\""))).await;
    let mut readers = Vec::new();
    for peer in [&friend, &stranger] {
        let reader = peer.runtime.subscriber(peer.client(&gate));
        reader.subscribe("#").await.unwrap();
        within("connect", reader.connect(&gate.url("/mqtt")))
            .await
            .unwrap();
        readers.push(reader);
    }
    let route = gate.route("up");
    let publisher = &route.publishers()[0];
    eventually("both subscriptions", || publisher.subscriber_count() == 2).await;
    for number in 0..10_u8 {
        let sent = gate
            .send("up", message("up", "plant.1", vec![number]))
            .await
            .unwrap();
        assert_eq!(
            sent,
            Outcome::Fanned {
                copies: 1,
                dropped: 1
            }
        );
    }
    for number in 0..10 {
        let copy = within("a copy", readers[0].recv()).await.unwrap();
        assert_eq!(copy.collect(9).await.unwrap(), [number]);
    }
    assert_eq!(publisher.dropped_on("plant.1").unwrap().declined, 10);
    assert_eq!(refused(&gate, RefusedOp::Subscribe), 1);
    // The stranger's connection is open, and it hears nothing.
    assert_eq!(readers[1].peer_count(), 1);
    let silence = tokio::time::timeout(std::time::Duration::from_millis(100), readers[1].recv());
    assert!(silence.await.is_err());
    let row = gate.row("up");
    assert_eq!((row.delivered, row.difference()), (10, 0));
}

/// A push without a grant is stopped with REJECTED and never becomes a message.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gateway_11_an_ungranted_push_is_rejected() {
    let (friend, stranger) = (Peer::new(), Peer::new());
    let gate = Gate::start(&routes(&grant(&friend, "\"/to-mqtt\"", ""))).await;
    let mut queue = gate.fabric.subscribe(&RouteId::new("down")).unwrap();
    let pusher = stranger.runtime.pusher(stranger.client(&gate));
    within("connect", pusher.connect(&gate.url("/to-mqtt")))
        .await
        .unwrap();
    let mut transfer = pusher
        .open(TransferMeta::default().with_topic("a"))
        .await
        .unwrap();
    let heard = within("the refusal", async {
        loop {
            if let Err(error) = transfer.write_all(&[0; 64 << 10]).await {
                return error;
            }
        }
    })
    .await;
    assert!(matches!(heard, weida::Error::Rejected), "{heard:?}");
    assert_eq!(refused(&gate, RefusedOp::Publish), 1);
    assert_eq!(pusher.peer_count(), 1, "the connection lives");

    let pusher = friend.runtime.pusher(friend.client(&gate));
    within("connect", pusher.connect(&gate.url("/to-mqtt")))
        .await
        .unwrap();
    pusher
        .send_with(TransferMeta::default().with_topic("a"), b"x")
        .await
        .unwrap();
    let delivery = within("the delivery", queue.next()).await.unwrap();
    assert_eq!(
        delivery.envelope.peer.and_then(|peer| peer.key()),
        Some(friend.key())
    );
    delivery.settle(Outcome::Receipt);
    assert_eq!(gate.row("down").received, 1);
}

/// A request without a grant is answered REJECTED.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gateway_11_an_ungranted_request_is_rejected() {
    let (friend, stranger) = (Peer::new(), Peer::new());
    let gate = Gate::start(&routes(&grant(&friend, "\"/devices\"", ""))).await;
    let _queue = gate.fabric.subscribe(&RouteId::new("ask")).unwrap();
    let requester = stranger.runtime.requester(stranger.client(&gate));
    within("connect", requester.connect(&gate.url("/devices")))
        .await
        .unwrap();
    let meta = TransferMeta::default().with_topic("7");
    let heard = within("the answer", requester.request_with(meta, b"?"))
        .await
        .unwrap_err();
    assert!(matches!(heard, weida::Error::Rejected), "{heard:?}");
    assert_eq!(refused(&gate, RefusedOp::Publish), 1);
    assert_eq!(gate.row("ask").received, 0);
}
