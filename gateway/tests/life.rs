//! The life of the process: start order, ready, drain, exit codes (`gateway.md` 7).

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::path::Path;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use weida_gateway::config::{Config, Input, load};
use weida_gateway::supervisor::{Exit, Started, start};

const PATIENCE: Duration = Duration::from_secs(30);

fn configure(folder: &Path, weida: &str) -> Config {
    let file = folder.join("gateway.toml");
    let text = format!(
        r##"
[gateway]
data_dir = "{data}"
drain_timeout = "4s"
[[listen]]
name = "weida"
protocol = "weida"
bind = "{weida}"
[[listen]]
name = "mqtt"
protocol = "mqtt"
bind = "127.0.0.1:0"
auth = ["anonymous"]
[[grant]]
who = ["anonymous"]
listen = "mqtt"
publish = ["#"]
subscribe = ["#"]
[[route]]
name = "up"
from = {{ listen = "mqtt", filter = "plant/#" }}
to = {{ weida = "/mqtt", pattern = "publish" }}
delivery = "at-most-once"
[[route]]
name = "down"
from = {{ weida = "/to-mqtt", pattern = "pull" }}
to = {{ listen = "mqtt", topic = "{{topic}}" }}
[admin]
bind = "127.0.0.1:0"
"##,
        data = folder.join("data").display(),
    );
    std::fs::write(&file, text).unwrap();
    let input = Input {
        file,
        environment: Vec::new(),
        allow_overcommit: true,
    };
    load(&input)
        .unwrap_or_else(|report| panic!("{:#?}", report.findings()))
        .0
}

async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.unwrap()
}

/// Everything is bound before ready is called, the identity is made on the first start and kept on the second, and an idle
/// drain ends with exit 0 and nothing left.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gateway_7_1_it_starts_is_ready_and_drains() {
    let folder = tempfile::tempdir().unwrap();
    let mut keys = Vec::new();
    for _ in 0..2 {
        let stop = CancellationToken::new();
        let (told, hears) = oneshot::channel::<Started>();
        let config = configure(folder.path(), "127.0.0.1:0");
        let running = start(config, stop.clone(), |started| told.send(started).unwrap());
        let watching = async {
            let started = hears.await.unwrap();
            let names: Vec<_> = started.listeners.iter().map(|it| it.protocol).collect();
            assert_eq!(names, ["weida", "mqtt"]);
            assert!(started.listeners.iter().all(|it| it.address.port() != 0));
            assert!(started.state.is_ready() && started.state.is_alive());
            tokio::net::TcpStream::connect(started.listeners[1].address)
                .await
                .unwrap();
            stop.cancel();
            started
        };
        let (report, started) = within(Box::pin(async { tokio::join!(running, watching) })).await;
        assert_eq!(
            (report.exit, report.exit.code()),
            (Exit::Drained, 0),
            "{report:?}"
        );
        let drain = report.drain.unwrap();
        assert!(drain.is_complete());
        assert_eq!(
            drain.to_string(),
            "delivered 0, settled 0, dropped 0, unsettled 0"
        );
        assert!(started.state.is_draining());
        keys.push(started.fingerprint);
    }
    assert_eq!(keys[0], keys[1]);
}

/// A folder that another process holds is exit 5; an address that is taken is exit 1. Nothing hangs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gateway_3_exit_codes_name_what_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("data")).unwrap();
    let lock = std::fs::File::create(folder.path().join("data/lock")).unwrap();
    lock.try_lock().unwrap();
    let refuse = || async {
        let taken = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap().to_string();
        let config = configure(folder.path(), &address);
        within(start(config, CancellationToken::new(), |_| {
            panic!("not ready")
        }))
        .await
    };
    let report = refuse().await;
    assert_eq!((report.exit.code(), report.drain), (5, None), "{report:?}");
    assert!(report.reason.unwrap().contains("locked"));
    drop(lock);
    let report = refuse().await;
    assert_eq!(report.exit.code(), 1, "{report:?}");
    assert!(report.reason.unwrap().contains("weida"));
}
