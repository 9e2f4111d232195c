//! What is measured, once for each implementation: `imp` is the runtime under test, both ends in this process on one reactor.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::task::JoinSet;
use weida_testkit::load::{Length, Load, Run, Schedule, Target};

use super::imp;

/// Write size of the one-way stream case; a run of 4096 of them is 1 GiB.
const STREAM_CHUNK_BYTES: usize = 256 * 1024;
/// Messages that may be on their way: the sender is paced by what the receiver has read, so a rate is a received rate.
const ON_THE_WAY: u64 = 2048;
/// Publishes that may be on their way to each subscriber, below every drop bound.
const PUBLISHES_ON_THE_WAY: u64 = 64;
/// Largest body a receiver takes.
const MAX_BODY_BYTES: usize = 1 << 20;

fn load(window: Duration, payload_bytes: usize, workers: usize) -> Load {
    Load {
        schedule: Schedule::Closed,
        workers,
        payload_bytes,
        warm_up: 200,
        length: Length::Time(window),
        at_most: window + Duration::from_secs(30),
    }
}

/// Both ends of one connection.
struct Pair {
    server: imp::Runtime,
    client: imp::Runtime,
    listener: imp::Listener,
    binding: imp::Binding,
    fingerprint: String,
}

impl Pair {
    async fn new() -> Self {
        let server = imp::Runtime::new(imp::RuntimeConfig::default()).unwrap();
        let client = imp::Runtime::new(imp::RuntimeConfig::default()).unwrap();
        let listener = server.listener();
        let identity = imp::Identity::generate().unwrap();
        let fingerprint = identity.fingerprint().unwrap().to_string();
        let binding = listener
            .bind_quic("127.0.0.1:0".parse().unwrap(), identity)
            .await
            .unwrap();
        Self {
            server,
            client,
            listener,
            binding,
            fingerprint,
        }
    }

    fn url(&self, path: &str) -> String {
        format!(
            "weida://{}@{}{path}",
            self.fingerprint,
            self.binding.local_addr()
        )
    }

    async fn close(self) {
        self.client.shutdown().await;
        self.server.shutdown().await;
    }
}

struct Asking(Arc<imp::Requester>);

impl Target for Asking {
    type Error = imp::Error;

    async fn op(&mut self, payload: &Bytes, _: u64) -> Result<(), imp::Error> {
        self.0
            .request(payload)
            .await?
            .collect(MAX_BODY_BYTES)
            .await
            .map(drop)
    }
}

/// Requests answered by an echo, with `in_flight` of them open.
pub(crate) async fn request_reply(window: Duration, body_bytes: usize, in_flight: usize) -> Run {
    let pair = Pair::new().await;
    let replier = pair.listener.replier("/bench").unwrap();
    let mut serving = JoinSet::new();
    serving.spawn(async move {
        let mut answering = JoinSet::new();
        while let Ok(mut request) = replier.accept().await {
            while answering.try_join_next().is_some() {}
            answering.spawn(async move {
                let body = request.body().read_capped(MAX_BODY_BYTES).await.unwrap();
                let mut reply = request.reply(imp::TransferMeta::default()).await.unwrap();
                reply.write_all(&body).await.unwrap();
                drop(reply.finish().unwrap());
            });
        }
    });
    let requester = Arc::new(pair.client.requester(imp::Trust::by_address()));
    requester.connect(&pair.url("/bench")).await.unwrap();
    let run = load(window, body_bytes, in_flight)
        .run(|_| Asking(requester.clone()))
        .await;
    drop(requester);
    serving.shutdown().await;
    pair.close().await;
    run
}

struct Pushing {
    pusher: imp::Pusher,
    sent: u64,
    received: Arc<AtomicU64>,
}

impl Target for Pushing {
    type Error = imp::Error;

    async fn op(&mut self, payload: &Bytes, _: u64) -> Result<(), imp::Error> {
        while self.sent - self.received.load(Ordering::Relaxed) >= ON_THE_WAY {
            tokio::task::yield_now().await;
        }
        self.sent += 1;
        self.pusher.send(payload).await
    }
}

/// Pushes, paced by what the puller has read.
pub(crate) async fn push(window: Duration, body_bytes: usize) -> Run {
    let pair = Pair::new().await;
    let puller = pair.listener.puller("/bench").unwrap();
    let received = Arc::new(AtomicU64::new(0));
    let counted = received.clone();
    let mut receiving = JoinSet::new();
    receiving.spawn(async move {
        while let Ok(transfer) = puller.recv().await {
            transfer.collect(MAX_BODY_BYTES).await.unwrap();
            counted.fetch_add(1, Ordering::Relaxed);
        }
    });
    let pusher = pair.client.pusher(imp::Trust::by_address());
    pusher.connect(&pair.url("/bench")).await.unwrap();
    let mut pushing = Some(Pushing {
        pusher,
        sent: 0,
        received,
    });
    let run = load(window, body_bytes, 1)
        .run(|_| pushing.take().unwrap())
        .await;
    receiving.shutdown().await;
    pair.close().await;
    run
}

struct Streaming {
    transfer: imp::OutgoingTransfer,
}

impl Target for Streaming {
    type Error = imp::Error;

    async fn op(&mut self, payload: &Bytes, _: u64) -> Result<(), imp::Error> {
        self.transfer.write_all(payload).await
    }
}

/// Writes into one transfer whose reader keeps up.
pub(crate) async fn stream(window: Duration) -> Run {
    let pair = Pair::new().await;
    let puller = pair.listener.puller("/bench").unwrap();
    let pusher = pair.client.pusher(imp::Trust::by_address());
    pusher.connect(&pair.url("/bench")).await.unwrap();
    let mut receiving = JoinSet::new();
    receiving.spawn(async move {
        use tokio::io::AsyncReadExt;
        let mut transfer = puller.recv().await.unwrap();
        let mut buffer = vec![0; STREAM_CHUNK_BYTES];
        while let Ok(1..) = transfer.read(&mut buffer).await {}
    });
    let transfer = pusher.open(imp::TransferMeta::default()).await.unwrap();
    let mut streaming = Some(Streaming { transfer });
    let mut load = load(window, STREAM_CHUNK_BYTES, 1);
    // The figure is 1 GiB; a short window measures what it has time for.
    if window >= Duration::from_secs(3) {
        load.length = Length::Operations(4096);
    }
    let run = load.run(|_| streaming.take().unwrap()).await;
    receiving.shutdown().await;
    drop(pusher);
    pair.close().await;
    run
}

struct Publishing {
    publisher: imp::Publisher,
    width: u64,
    published: u64,
    received: Arc<AtomicU64>,
}

impl Target for Publishing {
    type Error = String;

    async fn op(&mut self, payload: &Bytes, _: u64) -> Result<(), String> {
        while self.published * self.width - self.received.load(Ordering::Relaxed)
            >= PUBLISHES_ON_THE_WAY * self.width
        {
            tokio::task::yield_now().await;
        }
        self.published += 1;
        self.publisher
            .publish("bench.topic", payload.clone())
            .map_err(|error| error.to_string())?;
        match self.publisher.dropped() {
            0 => Ok(()),
            dropped => Err(format!(
                "{dropped} copies dropped although every subscriber keeps up"
            )),
        }
    }
}

/// Publishes to `width` subscribers that all keep up.
pub(crate) async fn fan_out(window: Duration, body_bytes: usize, width: usize) -> Run {
    let pair = Pair::new().await;
    let publisher = pair.listener.publisher("/bench").unwrap();
    let received = Arc::new(AtomicU64::new(0));
    let mut receiving = JoinSet::new();
    let mut runtimes = Vec::new();
    for _ in 0..width {
        // A runtime each: subscribers of one runtime and address would share a connection.
        let runtime = imp::Runtime::new(imp::RuntimeConfig::default()).unwrap();
        let subscriber = runtime.subscriber(imp::Trust::by_address());
        subscriber.subscribe("").await.unwrap();
        subscriber.connect(&pair.url("/bench")).await.unwrap();
        runtimes.push(runtime);
        let counted = received.clone();
        receiving.spawn(async move {
            while let Ok(transfer) = subscriber.recv().await {
                transfer.collect(MAX_BODY_BYTES).await.unwrap();
                counted.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    assert!(
        weida_testkit::eventually(
            || publisher.filter_count() == width,
            Duration::from_secs(10)
        )
        .await,
        "every subscription stands"
    );
    let mut publishing = Some(Publishing {
        publisher,
        width: width as u64,
        published: 0,
        received,
    });
    let run = load(window, body_bytes, 1)
        .run(|_| publishing.take().unwrap())
        .await;
    receiving.shutdown().await;
    for runtime in runtimes {
        runtime.shutdown().await;
    }
    pair.close().await;
    run
}
