//! MQTT into weida through the gateway, beside Mosquitto moving the same between two MQTT clients: one publisher, one
//! subscriber, 64 B, QoS 0 and 1.
//!
//! ```text
//! cargo bench -p weida-compat-tests --bench mqtt -- [--pairs N] [--seconds S] [--json FILE] [--smoke]
//! ```
#![expect(clippy::print_stdout, reason = "a benchmark reports to its terminal")]
#![expect(clippy::unwrap_used, reason = "a step that fails ends the benchmark")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::task::JoinSet;
use weida_testkit::load::{Length, Load, Run, Schedule, Target, alternate};
use weida_testkit::{FreePort, Process, Ready, bin, eventually};

mod client;

/// Payload of every message.
const PAYLOAD_BYTES: usize = 64;
/// Messages on their way at most: the publisher is paced by what the subscriber has, below every drop bound of both.
const ON_THE_WAY: u64 = 512;
/// Unacknowledged QoS 1 messages at most.
const WINDOW: u64 = 100;
const TOPIC: &str = "plant/7/temp";
const PUBLISH: u8 = 3;
const PUBACK: u8 = 4;

struct Publishing {
    publisher: client::Publisher,
    acknowledged: bool,
    sent: u64,
    received: Arc<client::Arrived>,
    acks: Arc<client::Arrived>,
}

impl Target for Publishing {
    type Error = std::io::Error;

    async fn op(&mut self, payload: &Bytes, _: u64) -> Result<(), std::io::Error> {
        self.publisher.queue(payload, self.acknowledged);
        self.sent += 1;
        self.publisher.flush(false).await?;
        let received = (self.sent + 1).saturating_sub(ON_THE_WAY);
        let acknowledged = if self.acknowledged {
            (self.sent + 1).saturating_sub(WINDOW)
        } else {
            0
        };
        if self.received.get() < received || self.acks.get() < acknowledged {
            self.publisher.flush(true).await?;
            self.received.reach(received).await;
            self.acks.reach(acknowledged).await;
        }
        Ok(())
    }
}

async fn publish(
    window: Duration,
    broker: SocketAddr,
    acknowledged: bool,
    received: Arc<client::Arrived>,
) -> Run {
    let (publisher, reading) = client::publisher(broker, TOPIC).await.unwrap();
    let acks = Arc::new(client::Arrived::default());
    let mut counting = JoinSet::new();
    counting.spawn(client::count(reading, None, PUBACK, acks.clone()));
    let mut publishing = Some(Publishing {
        publisher,
        acknowledged,
        sent: 0,
        received,
        acks,
    });
    let load = Load {
        schedule: Schedule::Closed,
        workers: 1,
        payload_bytes: PAYLOAD_BYTES,
        warm_up: 2000,
        length: Length::Time(window),
        at_most: window + Duration::from_secs(30),
    };
    let run = load.run(|_| publishing.take().unwrap()).await;
    counting.shutdown().await;
    run
}

async fn mosquitto(window: Duration, qos: u8) -> Run {
    let port = FreePort::take().unwrap();
    let address = port.release().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("m.conf");
    std::fs::write(
        &config,
        format!("listener {} 127.0.0.1\nallow_anonymous true\nuser root\nmax_queued_messages 0\nlog_dest none\n", address.port()),
    )
    .unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    let broker = Process::builder("mosquitto")
        .args(["-c", config.to_str().unwrap()])
        .env("PATH", format!("{path}:/usr/sbin"))
        .ready(Ready::Port(address))
        .spawn()
        .await
        .unwrap();
    let received = Arc::new(client::Arrived::default());
    let (reading, writing) = client::subscriber(address, qos).await.unwrap();
    let mut counting = JoinSet::new();
    counting.spawn(client::count(
        reading,
        Some(writing),
        PUBLISH,
        received.clone(),
    ));
    let run = publish(window, address, qos > 0, received).await;
    counting.shutdown().await;
    drop(broker);
    run
}

async fn gateway(window: Duration, qos: u8) -> Run {
    let gateway = Process::builder(bin("weida-gateway").unwrap())
        .args([
            "quickstart",
            "--data-dir",
            "data",
            "--json",
            "--log",
            "error",
        ])
        .args([
            "--mqtt",
            "127.0.0.1:0",
            "--weida",
            "127.0.0.1:0",
            "--admin",
            "127.0.0.1:0",
        ])
        .ready(Ready::Line("\"schema\"".to_owned()))
        .grace(Duration::from_secs(12))
        .spawn()
        .await
        .unwrap();
    let line = gateway
        .stdout()
        .into_iter()
        .find(|line| line.starts_with('{'))
        .unwrap();
    let ready: serde_json::Value = serde_json::from_str(&line).unwrap();
    let mqtt: SocketAddr = ready["mqtt"].as_str().unwrap().parse().unwrap();

    let runtime = weida::Runtime::new(weida::RuntimeConfig::default()).unwrap();
    let subscriber = runtime.subscriber(weida::Trust::by_address());
    subscriber.subscribe("").await.unwrap();
    subscriber
        .connect(ready["subscribe"].as_str().unwrap())
        .await
        .unwrap();
    let received = Arc::new(client::Arrived::default());
    let counted = received.clone();
    let mut counting = JoinSet::new();
    counting.spawn(async move {
        while let Ok(transfer) = subscriber.recv().await {
            transfer.collect(1 << 20).await.unwrap();
            counted.add(1);
        }
    });
    // A fan-out keeps nothing: publish until the subscription stands.
    let (mut probe, _reading) = client::publisher(mqtt, TOPIC).await.unwrap();
    let stands = async {
        while received.get() == 0 {
            probe.queue(b"probe", false);
            probe.flush(true).await.unwrap();
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), stands)
        .await
        .expect("the subscription stands");
    let quiet = AtomicU64::new(u64::MAX);
    eventually(
        || quiet.swap(received.get(), Ordering::Relaxed) == received.get(),
        Duration::from_secs(5),
    )
    .await;
    received.reset();
    let run = publish(window, mqtt, qos > 0, received).await;
    counting.shutdown().await;
    runtime.shutdown().await;
    drop(gateway);
    run
}

fn main() -> Result<(), String> {
    let (mut pairs, mut window, mut json) = (5, Duration::from_secs(4), None);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || {
            arguments
                .next()
                .ok_or_else(|| format!("{argument} takes a value"))
        };
        match argument.as_str() {
            "--pairs" => {
                pairs = value()?
                    .parse()
                    .map_err(|error| format!("--pairs: {error}"))?
            }
            "--seconds" => {
                window = Duration::from_secs_f64(
                    value()?
                        .parse()
                        .map_err(|error| format!("--seconds: {error}"))?,
                )
            }
            "--json" => json = Some(value()?),
            "--smoke" => (pairs, window) = (1, Duration::from_millis(100)),
            "--bench" | "--test" => {}
            other => return Err(format!("unknown argument {other}")),
        }
    }
    let reactor = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    let report = reactor.block_on(async {
        let mut report = Vec::new();
        for qos in [0u8, 1] {
            let name =
                format!("MQTT to weida, QoS {qos}, 64 B, 1 to 1 (theirs: Mosquitto, MQTT to MQTT)");
            let comparison = alternate(
                &name,
                pairs,
                || gateway(window, qos),
                || mosquitto(window, qos),
            )
            .await;
            println!("{comparison}");
            report.push(comparison);
        }
        report
    });
    if let Some(failed) = report.iter().find(|comparison| comparison.errors() > 0) {
        return Err(format!("{}: operations failed", failed.name));
    }
    if let Some(path) = json {
        let values: Vec<_> = report
            .iter()
            .map(weida_testkit::load::Comparison::to_json)
            .collect();
        std::fs::write(&path, serde_json::Value::Array(values).to_string())
            .map_err(|error| format!("{path}: {error}"))?;
    }
    Ok(())
}
