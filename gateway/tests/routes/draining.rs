//! A weida peer that drains: what it refuses for that is sent to its successor.

use std::time::Duration;

use tokio::task::JoinSet;
use tower_service::Service;
use weida::{Binding, Runtime, TransferMeta, Trust};
use weida_bridge::{DropCause, Outcome, Refusal};
use weida_gateway::policy::stats::RetryCause;
use weida_testkit::UdpRelay;

use crate::world::{Gate, Peer, eventually, message, within};

fn route(pattern: &str, url: &str, rest: &str) -> String {
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

/// Keeps a runtime's drain from ending: a finished transfer that its peer never acknowledges.
struct Stuck {
    _sink: (Peer, Binding),
    _relay: UdpRelay,
}

impl Stuck {
    async fn on(runtime: &Runtime) -> Self {
        let sink = Peer::new();
        let _puller = sink.listener.puller("/sink").unwrap();
        let tls = sink.identity.clone();
        let address = ([127, 0, 0, 1], 0).into();
        let binding = sink.listener.bind_quic(address, tls).await.unwrap();
        let relay = UdpRelay::start(binding.local_addr(), 1).await.unwrap();
        let pusher = runtime.pusher(Trust::by_address());
        let url = format!("weida://{}@{}/sink", sink.key(), relay.addr());
        within("the sink", pusher.connect(&url)).await.unwrap();
        relay.cut();
        pusher.send(b"stuck").await.unwrap();
        Self {
            _sink: (sink, binding),
            _relay: relay,
        }
    }
}

/// A push that the peer stops because it drains is not refused: it waits, and its successor has it, once. [weida DR-4]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dr_4_a_push_refused_by_a_draining_peer_reaches_its_successor() {
    let peer = Peer::new();
    let _puller = peer.listener.puller("/sink").unwrap();
    let binding = peer.bind(0).await;
    let port = binding.local_addr().port();
    let gate = Gate::start(&route("push", &peer.url(&binding, "/sink"), "")).await;
    gate.reached("up").await;
    let _stuck = Stuck::on(&peer.runtime).await;

    // Larger than a first flight, so that the stop comes before the receipt can. [weida TX-6]
    let body = vec![7; 512 * 1024];
    let mut ingress = gate.ingress("up");
    within("room", ingress.ready()).await.unwrap();
    let mut end = None;
    let late = async {
        end = Some(ingress.call(message("up", "plant.1", body.clone())));
        let stats = gate.route("up");
        eventually("the refusal", || {
            stats.parts().stats.retries(RetryCause::Disconnected) > 0
        })
        .await;
    };
    let draining = peer.runtime.clone().drain(Duration::from_secs(1));
    let (drained, ()) = tokio::join!(draining, late);
    let end = end.unwrap();
    assert_eq!(drained.outstanding, 1);

    let successor = Peer {
        identity: peer.identity.clone(),
        ..Peer::new()
    };
    let puller = successor.listener.puller("/sink").unwrap();
    let _binding = successor.bind(port).await;
    assert_eq!(within("the receipt", end).await.unwrap(), Outcome::Receipt);
    let got = within("the transfer", puller.recv()).await.unwrap();
    assert_eq!(got.collect(1 << 20).await.unwrap(), body);
    let row = gate.row("up");
    assert_eq!((row.delivered, row.dropped.total()), (1, 0));
    let stats = gate.route("up");
    assert_eq!(
        stats.parts().stats.duplicates_possible(),
        0,
        "a drain takes nothing"
    );
}

/// The same for a request, although the route may not repeat one: nothing was taken.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dr_4_a_request_refused_by_a_draining_peer_reaches_its_successor() {
    let peer = Peer::new();
    let _replier = peer.listener.replier("/ask").unwrap();
    let binding = peer.bind(0).await;
    let port = binding.local_addr().port();
    let gate = Gate::start(&route(
        "request",
        &peer.url(&binding, "/ask"),
        r#"delivery = "at-most-once""#,
    ))
    .await;
    gate.reached("up").await;
    let _stuck = Stuck::on(&peer.runtime).await;

    let mut ingress = gate.ingress("up");
    within("room", ingress.ready()).await.unwrap();
    let mut end = None;
    let late = async {
        end = Some(ingress.call(message("up", "plant.1", "open")));
        let stats = gate.route("up");
        eventually("the refusal", || {
            stats.parts().stats.retries(RetryCause::Disconnected) > 0
        })
        .await;
    };
    let draining = peer.runtime.clone().drain(Duration::from_secs(1));
    let (drained, ()) = tokio::join!(draining, late);
    let end = end.unwrap();
    assert_eq!(drained.outstanding, 1);

    let successor = Peer {
        identity: peer.identity.clone(),
        ..Peer::new()
    };
    let replier = successor.listener.replier("/ask").unwrap();
    let _binding = successor.bind(port).await;
    let mut answers = JoinSet::new();
    answers.spawn(async move {
        let request = replier.accept().await.unwrap();
        let mut reply = request.reply(TransferMeta::default()).await.unwrap();
        reply.write_all(b"opened").await.unwrap();
        reply.finish().unwrap().delivered().await.unwrap();
    });
    let outcome = within("the reply", end).await.unwrap();
    let Outcome::Reply(reply) = outcome else {
        panic!("no reply but {outcome:?}; {:?}", gate.route("up"))
    };
    assert_eq!(reply.payload, "opened");
    assert_eq!(gate.row("up").delivered, 1);
}

/// The neighbour: a peer that declines is a refusal, at once and for good.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn br_19_a_push_that_a_peer_declines_is_refused_for_good() {
    let peer = Peer::new();
    let puller = peer.listener.puller("/sink").unwrap();
    let binding = peer.bind(0).await;
    let gate = Gate::start(&route("push", &peer.url(&binding, "/sink"), "")).await;
    gate.reached("up").await;
    let decline = async {
        // Dropped unread: REJECTED.
        drop(within("the transfer", puller.recv()).await.unwrap());
    };
    // Beyond the stream window no receipt can come first. [weida TX-6]
    let body = vec![7; 1024 * 1024];
    let (outcome, ()) = tokio::join!(gate.send("up", message("up", "plant.1", body)), decline);
    assert_eq!(outcome.unwrap(), Outcome::Refused(Refusal::Rejected));
    assert_eq!(
        gate.row("up").dropped.of(DropCause::RefusedByDestination),
        1
    );
    let stats = gate.route("up");
    assert!(
        RetryCause::ALL
            .iter()
            .all(|cause| stats.parts().stats.retries(*cause) == 0)
    );
}
