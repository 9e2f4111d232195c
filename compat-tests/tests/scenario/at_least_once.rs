//! A push route with QoS 1: nothing acknowledged is missing, whatever happens to the weida peer's connection.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::task::JoinSet;
use weida::{Identity, Runtime, RuntimeConfig};
use weida_testkit::{Process, UdpRelay, eventually};

use crate::world::{Gateway, PATIENCE, admin_port, python, script};

/// Numbered messages, as the issue asks.
const MESSAGES: usize = 10_000;
/// Unacknowledged messages at once, below the Receive Maximum that the gateway announces: Paho takes a window that it is given
/// although the server granted less, and is then disconnected with 0x93.
const WINDOW: usize = 50;

/// A weida peer that counts what it gets.
struct Peer {
    seen: Arc<Mutex<BTreeMap<u32, u32>>>,
    address: std::net::SocketAddr,
    fingerprint: String,
    _runtime: Runtime,
    _binding: weida::Binding,
    _reading: JoinSet<()>,
}

impl Peer {
    async fn start() -> Self {
        let runtime = Runtime::new(RuntimeConfig::default()).unwrap();
        let listener = runtime.listener();
        let puller = listener.puller("/readings").unwrap();
        let identity = Identity::generate().unwrap();
        let fingerprint = identity.fingerprint().unwrap().to_string();
        let binding = listener
            .bind_quic("127.0.0.1:0".parse().unwrap(), identity)
            .await
            .unwrap();
        let seen = Arc::new(Mutex::new(BTreeMap::new()));
        let counted = seen.clone();
        let mut reading = JoinSet::new();
        reading.spawn(async move {
            while let Ok(transfer) = puller.recv().await {
                assert_eq!(transfer.meta().topic.as_deref(), Some("plant.7.count"));
                // A transfer that was cut is not a message.
                if let Ok(body) = transfer.collect(64).await {
                    let number = std::str::from_utf8(&body).unwrap().parse().unwrap();
                    *counted.lock().unwrap().entry(number).or_default() += 1;
                }
            }
        });
        Self {
            seen,
            address: binding.local_addr(),
            fingerprint,
            _runtime: runtime,
            _binding: binding,
            _reading: reading,
        }
    }

    fn distinct(&self) -> usize {
        self.seen.lock().unwrap().len()
    }
}

fn configuration(url: &str) -> String {
    let admin = admin_port();
    format!(
        r#"
[gateway]
data_dir = "data"
[identity]
key_file = "data/identity.key"
[[listen]]
name = "mqtt"
protocol = "mqtt"
bind = "127.0.0.1:0"
auth = ["anonymous"]
[[route]]
name = "readings"
from = {{ listen = "mqtt", filter = "plant/#", qos = 1 }}
to = {{ weida = "{url}", pattern = "push" }}
delivery = "at-least-once"
ack_on = "receipt"
attempt_timeout = "2s"
[[grant]]
who = ["anonymous"]
listen = "mqtt"
publish = ["plant/#"]
[admin]
bind = "127.0.0.1:{admin}"
"#
    )
}

async fn publisher(port: u16) -> Process {
    let arguments = [
        script("publish_numbered.py"),
        port.to_string(),
        "plant/7/count".to_owned(),
        MESSAGES.to_string(),
        WINDOW.to_string(),
        "counter".to_owned(),
    ];
    Process::builder(python())
        .args(arguments)
        .spawn()
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn done_when_3_ten_thousand_arrive_exactly_once_when_nothing_fails() {
    let peer = Peer::start().await;
    let gateway = Gateway::run(&configuration(&format!(
        "weida://{}@{}/readings",
        peer.fingerprint, peer.address
    )))
    .await;
    let mut publisher = publisher(gateway.mqtt_port).await;
    let status = publisher
        .wait(Duration::from_secs(60))
        .await
        .unwrap()
        .expect("every message is acknowledged");
    assert_eq!(status.code(), Some(0), "{:?}", publisher.stderr());
    assert!(
        eventually(|| peer.distinct() == MESSAGES, PATIENCE).await,
        "{} arrived",
        peer.distinct()
    );
    let repeated = peer
        .seen
        .lock()
        .unwrap()
        .values()
        .filter(|times| **times > 1)
        .count();
    assert_eq!(repeated, 0, "nothing arrives twice");
    gateway
        .metric_reaches(
            r#"weida_gateway_route_delivered_total{route="readings"}"#,
            MESSAGES as f64,
        )
        .await;
    gateway.law_holds().await;
}

/// The peer's connection is cut and redialled in mid-flow: none that was acknowledged is missing, and what may have arrived
/// twice is counted.
#[tokio::test(flavor = "multi_thread")]
async fn done_when_4_a_cut_in_mid_flow_loses_nothing_that_was_acknowledged() {
    let peer = Peer::start().await;
    let relay = UdpRelay::start(peer.address, 7).await.unwrap();
    let url = format!("weida://{}@{}/readings", peer.fingerprint, relay.addr());
    let gateway = Gateway::run(&configuration(&url)).await;
    let mut publisher = publisher(gateway.mqtt_port).await;
    for cut in 1..=2 {
        assert!(
            eventually(|| peer.distinct() > cut * MESSAGES / 5, PATIENCE).await,
            "the flow runs before cut {cut}"
        );
        relay.cut();
        // Long enough that attempts fail while it lasts.
        tokio::time::sleep(Duration::from_secs(3)).await;
        relay.restore();
    }
    let status = publisher
        .wait(Duration::from_secs(90))
        .await
        .unwrap()
        .expect("every message is acknowledged in the end");
    assert_eq!(status.code(), Some(0), "{:?}", publisher.stderr());
    let acked: Vec<u32> = publisher
        .stdout()
        .iter()
        .map(|line| line.parse().unwrap())
        .collect();
    assert_eq!(acked.len(), MESSAGES);
    assert!(eventually(|| peer.distinct() == MESSAGES, PATIENCE).await);
    let seen = peer.seen.lock().unwrap().clone();
    let missing: Vec<_> = acked
        .iter()
        .filter(|number| !seen.contains_key(number))
        .collect();
    assert!(missing.is_empty(), "acknowledged and missing: {missing:?}");
    let extra: u32 = seen.values().map(|times| times - 1).sum();
    let counted = gateway
        .metric(r#"weida_gateway_route_duplicates_possible_total{route="readings"}"#)
        .await
        .unwrap();
    assert!(
        counted >= f64::from(extra),
        "{extra} arrived twice, {counted} were counted as possible"
    );
    gateway.law_holds().await;
}
