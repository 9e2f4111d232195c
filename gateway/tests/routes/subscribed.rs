//! Routes that subscribe at a remote weida publisher and share its connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use weida::{Admission, Limits, Runtime, RuntimeConfig};
use weida_bridge::{Fabric, RouteId};
use weida_gateway::config::{Input, load};

use crate::world::{Gate, Peer, eventually, quick, within};

fn route(name: &str, url: &str, filter: &str) -> String {
    format!(
        r#"
[[route]]
name = "{name}"
from = {{ weida = "{url}", pattern = "subscribe", filter = "{filter}" }}
to = {{ listen = "mqtt", topic = "{name}/{{topic}}" }}
delivery = "at-most-once"
"#
    )
}

/// 300 routes ask for 200 different filters: one connection, each filter once, and copies for everybody.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s17_35_300_filters_share_a_connection_and_do_not_kill_it() {
    let peer = Peer::new();
    let publisher = peer.listener.publisher("/md").unwrap();
    let binding = peer.bind(0).await;
    let url = peer.url(&binding, "/md");
    let tables: String = (0..300)
        .map(|n| route(&format!("r{n}"), &url, &format!("t.{}", n % 200)))
        .collect();
    let gate = Gate::start(&tables).await;
    eventually("every filter", || publisher.filter_count() == 200).await;
    assert_eq!(publisher.subscriber_count(), 1);
    let mut queues = [199, 7, 207].map(|n: u32| {
        let id = RouteId::new(&format!("r{n}"));
        gate.fabric.subscribe(&id).unwrap()
    });
    assert_eq!(publisher.publish("t.199", "last").unwrap(), 1);
    assert_eq!(publisher.publish("t.7", "shared").unwrap(), 1);
    for (queue, payload) in queues.iter_mut().zip(["last", "shared", "shared"]) {
        let delivery = within("the copy", queue.next()).await.unwrap();
        assert_eq!(delivery.envelope.payload, payload);
    }
    assert_eq!(
        (publisher.filter_count(), publisher.subscriber_count()),
        (200, 1)
    );
}

/// One more than a publisher takes is refused before anything is dialled.
#[test]
fn s17_35_the_257th_filter_of_an_address_is_refused_by_the_check() {
    let folder = tempfile::tempdir().unwrap();
    let codes = |count: usize| {
        let url = format!("weida://sha256:{}@127.0.0.1:7443/md", "ab".repeat(32));
        let routes: String = (0..count)
            .map(|n| route(&format!("r{n}"), &url, &format!("t.{n}")))
            .collect();
        let file = folder.path().join("gateway.toml");
        let text = format!(
            "[gateway]\ndata_dir = \"data\"\n[[listen]]\nname = \"mqtt\"\nprotocol = \"mqtt\"\n\
             bind = \"127.0.0.1:0\"\nauth = [\"anonymous\"]\n[admin]\nbind = \"127.0.0.1:0\"\n{routes}"
        );
        std::fs::write(&file, text).unwrap();
        let input = Input {
            file,
            environment: Vec::new(),
            allow_overcommit: true,
        };
        let report = match load(&input) {
            Ok((_, report)) | Err(report) => report,
        };
        let found = report.findings().iter().filter(|it| it.code == "E043");
        found.count()
    };
    assert_eq!((codes(256), codes(257), codes(300)), (0, 1, 1));
}

/// A publisher that takes fewer filters closes the connection. The routes do not die of it: once it takes them, copies come.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gateway_rule_7_a_publisher_that_closes_over_filters_is_tried_again() {
    let strict = RuntimeConfig {
        limits: Limits {
            max_subscriptions: 1,
            ..Limits::default()
        },
        ..quick()
    };
    let strict = Peer {
        runtime: Runtime::new(strict).unwrap(),
        ..Peer::new()
    };
    let strict = Peer {
        listener: strict.runtime.listener(),
        ..strict
    };
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let publisher = strict.listener.publisher("/md").unwrap();
    let _publisher = publisher.with_admission(move |_| {
        count.fetch_add(1, Ordering::Relaxed);
        Admission::Record
    });
    let binding = strict.bind(0).await;
    let port = binding.local_addr().port();
    let url = strict.url(&binding, "/md");
    let tables = [route("a", &url, "t.a"), route("b", &url, "t.b")].concat();
    let gate = Gate::start(&tables).await;
    let mut queue = gate.fabric.subscribe(&RouteId::new("b")).unwrap();
    // One filter is asked about on each connection, the second one ends it.
    eventually("closes", || asked.load(Ordering::Relaxed) >= 3).await;
    let identity = strict.identity.clone();
    within("the end", strict.runtime.shutdown()).await;

    let generous = Peer {
        identity,
        ..Peer::new()
    };
    let publisher = generous.listener.publisher("/md").unwrap();
    let _binding = generous.bind(port).await;
    eventually("both filters", || publisher.filter_count() == 2).await;
    assert_eq!(publisher.publish("t.b", "again").unwrap(), 1);
    let delivery = within("the copy", queue.next()).await.unwrap();
    assert_eq!(delivery.envelope.payload, "again");
}
