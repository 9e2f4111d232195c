//! One hop through the listener over loopback: client to client and client to weida, 64 B.
//!
//! The figures depend on the machine and are only compared within one run. [mqtt 19]

#![expect(
    clippy::unwrap_used,
    reason = "a benchmark that cannot start should say so"
)]

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tower_service::Service;
use weida_bridge::{
    AckOn, Deliveries, DeliveryClass, Direction, Envelope, Fabric, FabricError, FabricErrorKind,
    Ingress, MemoryStore, Outcome, Pattern, RetainPolicy, Route, RouteId, Template, WEIDA,
};
use weida_mqtt::MqttAdapter;
use weida_mqtt::codec::{
    ClientId, Connect, Encoder, Packet, PacketId, Publish, QoS, Subscribe, SubscribeOptions,
    SubscribeProperties, TopicFilter, TopicName, Version,
};
use weida_mqtt::config::{
    AuthMethod, Config, Grant, GrantFilter, IngressRoute, ListenerConfig, Who,
};

const MESSAGES: u64 = 20_000;
const WINDOW: u64 = 60;

/// A route whose far side takes everything at once.
#[derive(Debug, Clone)]
struct Sink;

impl Service<Envelope> for Sink {
    type Response = Outcome;
    type Error = FabricError;
    type Future = std::future::Ready<Result<Outcome, FabricError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), FabricError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, envelope: Envelope) -> Self::Future {
        drop(envelope);
        std::future::ready(Ok(Outcome::Receipt))
    }
}

impl Fabric for Sink {
    fn ingress(&self, _: &RouteId) -> Result<Ingress, FabricError> {
        Ok(Ingress::new(Self))
    }

    fn subscribe(&self, _: &RouteId) -> Result<Deliveries, FabricError> {
        Err(FabricError::new(FabricErrorKind::UnknownRoute))
    }
}

async fn start(tasks: &mut JoinSet<()>, stop: &CancellationToken) -> SocketAddr {
    let mut listener = ListenerConfig::new("mqtt", "127.0.0.1:0".parse().unwrap());
    listener.auth = vec![AuthMethod::Anonymous];
    let everything = vec![GrantFilter::parse("#").unwrap()];
    let grant = Grant {
        who: vec![Who::new("anonymous")],
        publish: everything.clone(),
        subscribe: everything,
        ..Grant::default()
    };
    let route = Route {
        id: RouteId::new("in"),
        direction: Direction::Ingress,
        pattern: Pattern::Push,
        delivery: DeliveryClass::AtLeastOnce,
        ack_on: AckOn::Receipt,
        topic: Template::parse("{topic}", &WEIDA).unwrap(),
        labels: false,
        retain: RetainPolicy::AsPublished,
        max_message_bytes: 1 << 20,
        timeout: None,
        loss: Vec::new(),
    };
    let filter = TopicFilter::parse("weida/#").unwrap();
    let mut config = Config {
        listeners: vec![listener],
        grants: vec![grant],
        ingress: vec![IngressRoute::new(route, "mqtt", filter)],
        ..Config::default()
    };
    config.limits.per_ip_exempt_loopback = true;
    let store = Arc::new(MemoryStore::new(10, 1024));
    let adapter = MqttAdapter::new(config, Arc::new(Sink), store).unwrap();
    let bound = adapter.bind().await.unwrap();
    let addr = bound.local_addrs()[0].addr;
    let stop = stop.clone();
    tasks.spawn(async move { drop(bound.run(stop).await) });
    addr
}

fn encoded(packet: &Packet) -> BytesMut {
    let mut bytes = BytesMut::new();
    Encoder::new(Version::V311)
        .encode(packet, &mut bytes)
        .unwrap();
    bytes
}

async fn connect(addr: SocketAddr, id: &str) -> (OwnedReadHalf, OwnedWriteHalf) {
    let mut stream = TcpStream::connect(addr).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let connect = Connect::new(Version::V311, ClientId::parse(id).unwrap());
    stream
        .write_all(&encoded(&Packet::Connect(Box::new(connect))))
        .await
        .unwrap();
    let mut connack = [0; 4];
    stream.read_exact(&mut connack).await.unwrap();
    stream.into_split()
}

fn publish(topic: &str, qos: QoS, id: u64) -> BytesMut {
    let packet_id = PacketId::new(u16::try_from(id % 65_535 + 1).unwrap());
    encoded(&Packet::Publish(Publish {
        qos,
        topic: TopicName::parse(topic).unwrap(),
        packet_id: packet_id.filter(|_| qos != QoS::AtMostOnce),
        payload: Bytes::from_static(&[7; 64]),
        ..Publish::default()
    }))
}

/// Counts packets of one known size; at QoS 1 each is acknowledged.
async fn count(
    mut read: OwnedReadHalf,
    mut write: OwnedWriteHalf,
    size: usize,
    ack_at: Option<usize>,
    seen: Arc<AtomicU64>,
) {
    let mut buffer = BytesMut::with_capacity(256 << 10);
    let mut acks = BytesMut::new();
    while read
        .read_buf(&mut buffer)
        .await
        .is_ok_and(|count| count > 0)
    {
        while buffer.len() >= size {
            let packet = buffer.split_to(size);
            if let Some(at) = ack_at {
                acks.extend_from_slice(&[0x40, 2, packet[at], packet[at + 1]]);
            }
            seen.fetch_add(1, Ordering::Relaxed);
        }
        if !acks.is_empty() {
            write.write_all(&acks.split()).await.unwrap();
        }
    }
}

/// Time for [`MESSAGES`] publishes of one client to be seen by whoever counts.
async fn exchange(addr: SocketAddr, topic: &str, qos: QoS, to_client: bool) -> Duration {
    let mut tasks = JoinSet::new();
    let received = Arc::new(AtomicU64::new(0));
    let acked = Arc::new(AtomicU64::new(0));
    let size = publish(topic, qos, 0).len();
    if to_client {
        let (mut read, mut write) = connect(addr, "subscriber").await;
        let filter = TopicFilter::parse(topic).unwrap();
        let subscribe = Packet::Subscribe(Subscribe {
            packet_id: PacketId::new(1).unwrap(),
            properties: SubscribeProperties::default(),
            filters: std::iter::once((filter, SubscribeOptions::new(qos))).collect(),
        });
        write.write_all(&encoded(&subscribe)).await.unwrap();
        let mut suback = [0; 5];
        read.read_exact(&mut suback).await.unwrap();
        let ack_at = (qos != QoS::AtMostOnce).then_some(2 + 2 + topic.len());
        tasks.spawn(count(read, write, size, ack_at, Arc::clone(&received)));
    }
    let (mut read, mut write) = connect(addr, "publisher").await;
    let counted = Arc::clone(&acked);
    tasks.spawn(async move {
        let mut buffer = BytesMut::with_capacity(64 << 10);
        while read
            .read_buf(&mut buffer)
            .await
            .is_ok_and(|count| count > 0)
        {
            let whole = buffer.len() / 4;
            drop(buffer.split_to(whole * 4));
            counted.fetch_add(whole as u64, Ordering::Relaxed);
        }
    });
    // A PUBACK says that the queue took it, not that the subscriber did: who receives decides.
    let done = if to_client { &received } else { &acked };
    let window = if qos == QoS::AtMostOnce { 1000 } else { WINDOW };
    let unlimited = qos == QoS::AtMostOnce && !to_client;
    let started = Instant::now();
    let mut sent = 0;
    let mut batch = BytesMut::new();
    while sent < MESSAGES {
        let room = window.saturating_sub(sent - done.load(Ordering::Relaxed).min(sent));
        let count = if unlimited { 500 } else { room }.min(MESSAGES - sent);
        if count == 0 {
            tokio::task::yield_now().await;
            continue;
        }
        for _ in 0..count {
            batch.extend_from_slice(&publish(topic, qos, sent));
            sent += 1;
        }
        write.write_all(&batch.split()).await.unwrap();
    }
    if unlimited {
        // A ping behind the last publish: its answer says that all were taken.
        write.write_all(&[0xc0, 0, 0xc0, 0]).await.unwrap();
        while acked.load(Ordering::Relaxed) < 1 {
            tokio::task::yield_now().await;
        }
    } else {
        while done.load(Ordering::Relaxed) < MESSAGES {
            tokio::task::yield_now().await;
        }
    }
    started.elapsed()
}

fn listener(criterion: &mut Criterion) {
    let runtime = Runtime::new().unwrap();
    let mut tasks = JoinSet::new();
    let stop = CancellationToken::new();
    let addr = runtime.block_on(start(&mut tasks, &stop));
    let mut group = criterion.benchmark_group("listener");
    group
        .sample_size(10)
        .throughput(Throughput::Elements(MESSAGES));
    group
        .measurement_time(Duration::from_secs(3))
        .warm_up_time(Duration::from_millis(500));
    let cases = [
        ("client_to_client_qos0", "local/x", QoS::AtMostOnce, true),
        ("client_to_client_qos1", "local/x", QoS::AtLeastOnce, true),
        ("client_to_weida_qos0", "weida/x", QoS::AtMostOnce, false),
        ("client_to_weida_qos1", "weida/x", QoS::AtLeastOnce, false),
    ];
    for (name, topic, qos, to_client) in cases {
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|rounds| {
                let mut total = Duration::ZERO;
                for _ in 0..rounds {
                    total += runtime.block_on(exchange(addr, topic, qos, to_client));
                }
                total
            });
        });
    }
    group.finish();
    stop.cancel();
    runtime.block_on(async { while tasks.join_next().await.is_some() {} });
}

criterion_group!(benches, listener);
criterion_main!(benches);
