//! Cuts and redials in the middle of the flow, and the drain.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tower_service::Service;
use weida_bridge::metrics::RouteState;
use weida_bridge::{DropCause, FabricErrorKind, Outcome};

use crate::world::{Gate, Peer, eventually, message, within};

const MESSAGES: u32 = 10_000;

fn push_route(url: &str, rest: &str) -> String {
    format!(
        r##"
[[route]]
name = "up"
from = {{ listen = "mqtt", filter = "plant/#" }}
to = {{ weida = "{url}", pattern = "push" }}
{rest}
"##
    )
}

/// Counts how often each number arrives.
fn count(peer: &Peer) -> (Arc<std::sync::Mutex<BTreeMap<u32, u32>>>, JoinSet<()>) {
    let seen = Arc::new(std::sync::Mutex::new(BTreeMap::new()));
    let puller = peer.listener.puller("/sink").unwrap();
    let into = Arc::clone(&seen);
    let mut reader = JoinSet::new();
    reader.spawn(async move {
        while let Ok(transfer) = puller.recv().await {
            // A transfer that broke off is none.
            let Ok(payload) = transfer.collect(16).await else {
                continue;
            };
            let number = u32::from_be_bytes(payload[..4].try_into().unwrap());
            *into.lock().unwrap().entry(number).or_insert(0) += 1;
        }
    });
    (seen, reader)
}

/// Sends numbered messages, up to 512 at once, and says which ones were acknowledged.
async fn send_all(gate: &Gate, messages: u32) -> Vec<u32> {
    let mut ends = JoinSet::new();
    let mut acknowledged = Vec::new();
    let note = |(number, outcome): (u32, Outcome), acknowledged: &mut Vec<u32>| {
        if outcome == Outcome::Receipt {
            acknowledged.push(number);
        }
    };
    for number in 0..messages {
        while ends.len() >= 512 {
            note(ends.join_next().await.unwrap().unwrap(), &mut acknowledged);
        }
        let mut ingress = gate.ingress("up");
        ingress.ready().await.unwrap();
        let end = ingress.call(message("up", "plant.1", number.to_be_bytes().to_vec()));
        ends.spawn(async move { (number, end.await.unwrap()) });
    }
    while let Some(end) = ends.join_next().await {
        note(end.unwrap(), &mut acknowledged);
    }
    acknowledged
}

/// 10 000 numbered messages on a push route arrive exactly once when nothing fails.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn issue_2_numbered_pushes_arrive_exactly_once() {
    let peer = Peer::new();
    let (seen, _reader) = count(&peer);
    let binding = peer.bind(0).await;
    let gate = Gate::start(&push_route(&peer.url(&binding, "/sink"), "")).await;
    gate.reached("up").await;
    let acknowledged = tokio::time::timeout(Duration::from_secs(120), send_all(&gate, MESSAGES));
    assert_eq!(acknowledged.await.unwrap().len(), MESSAGES as usize);
    eventually("all of them", || {
        seen.lock().unwrap().len() == MESSAGES as usize
    })
    .await;
    assert!(seen.lock().unwrap().values().all(|times| *times == 1));
    let row = gate.row("up");
    assert_eq!(
        (row.delivered, row.indeterminate, row.difference()),
        (u64::from(MESSAGES), 0, 0)
    );
    assert_eq!(gate.route("up").parts().stats.duplicates_possible(), 0);
}

/// The peer cuts the connection again and again: nothing that was acknowledged is missing, and what may have arrived twice is
/// counted as possible duplicates. [weida BR-12] [weida BR-18]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn issue_2_nothing_acknowledged_is_missing_when_the_connection_is_cut() {
    let peer = Peer::new();
    let (seen, _reader) = count(&peer);
    let binding = Arc::new(peer.bind(0).await);
    let gate = Gate::start(&push_route(&peer.url(&binding, "/sink"), "in_flight = 64")).await;
    gate.reached("up").await;
    let mut cutter = JoinSet::new();
    let (cuts, key) = (Arc::clone(&binding), gate.key);
    cutter.spawn(async move {
        for _ in 0..5 {
            tokio::time::sleep(Duration::from_millis(60)).await;
            cuts.disconnect(key);
        }
    });
    let acknowledged = tokio::time::timeout(Duration::from_secs(120), send_all(&gate, MESSAGES));
    let acknowledged = acknowledged.await.unwrap();
    within("the cuts", cutter.join_all()).await;
    assert_eq!(
        acknowledged.len(),
        MESSAGES as usize,
        "at-least-once gives none up"
    );
    eventually("all of them", || {
        let seen = seen.lock().unwrap();
        acknowledged.iter().all(|number| seen.contains_key(number))
    })
    .await;
    let twice = seen
        .lock()
        .unwrap()
        .values()
        .filter(|times| **times > 1)
        .count() as u64;
    let route = gate.route("up");
    let stats = &route.parts().stats;
    assert!(twice <= stats.duplicates_possible(), "{twice} came twice");
    assert!(stats.duplicates_possible() <= gate.row("up").indeterminate);
    let row = gate.row("up");
    assert_eq!(
        (row.delivered, row.dropped.total(), row.difference()),
        (u64::from(MESSAGES), 0, 0)
    );
}

/// A destination that is not there yet is dialled until it is; the route says so meanwhile, and loses nothing.
/// (`gateway.md` rules 6 and 7)
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gateway_rule_7_a_destination_that_comes_late_is_found() {
    let peer = Peer::new();
    let port = {
        let probe = peer.bind(0).await;
        let port = probe.local_addr().port();
        probe.close().await;
        port
    };
    let url = format!("weida://{}@127.0.0.1:{port}/sink", peer.key());
    let gate = Gate::start(&push_route(&url, "")).await;
    let mut ingress = gate.ingress("up");
    ingress.ready().await.unwrap();
    let end = ingress.call(message("up", "plant.1", 7_u32.to_be_bytes().to_vec()));
    let route = gate.route("up");
    let now = tokio::time::Instant::now();
    assert_eq!(route.state(now).0, RouteState::Retrying);
    assert_eq!(gate.row("up").queued, 1);
    let (seen, _reader) = count(&peer);
    let _binding = peer.bind(port).await;
    assert_eq!(within("the receipt", end).await.unwrap(), Outcome::Receipt);
    eventually("the message", || seen.lock().unwrap().contains_key(&7)).await;
    assert_eq!(
        route.state(tokio::time::Instant::now()).0,
        RouteState::Flowing
    );
    assert_eq!(
        route.parts().stats.duplicates_possible(),
        0,
        "nothing had been sent before"
    );
}

/// A message whose destination is away at the end of the drain is counted under `shutdown`, and its source hears no success.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gateway_7_3_a_drain_ends_with_every_message_accounted_for() {
    let peer = Peer::new();
    let url = format!("weida://{}@127.0.0.1:9/sink", peer.key());
    let gate = Gate::start(&push_route(&url, "")).await;
    let mut ends = Vec::new();
    for number in 0..100_u32 {
        let mut ingress = gate.ingress("up");
        ingress.ready().await.unwrap();
        ends.push(ingress.call(message("up", "plant.1", number.to_be_bytes().to_vec())));
    }
    assert_eq!(gate.row("up").queued, 100);
    gate.cut.cancel();
    for end in ends {
        let error = within("the end", end).await.unwrap_err();
        assert_eq!(error.kind(), FabricErrorKind::Closed);
    }
    let row = gate.row("up");
    assert_eq!(
        (
            row.received,
            row.dropped.of(DropCause::Shutdown),
            row.difference()
        ),
        (100, 100, 0)
    );
    assert_eq!((row.queued, row.in_flight), (0, 0));
}
