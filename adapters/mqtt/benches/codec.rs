//! Floor 1: what one PUBLISH of 64 bytes costs to read and to write. Aims: 100 ns and 60 ns.

use std::hint::black_box;

use bytes::{Bytes, BytesMut};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use weida_mqtt::codec::{
    Decoded, Decoder, Encoder, Limits, Packet, PacketId, Publish, QoS, TopicFilter, TopicName,
    Version,
};

fn publish(qos: QoS) -> Publish {
    Publish {
        qos,
        topic: TopicName::parse("plant/7/line/3/temperature").expect("a topic"),
        packet_id: (qos != QoS::AtMostOnce).then(|| PacketId::new(7)).flatten(),
        payload: Bytes::from_static(&[b'x'; 64]),
        ..Publish::default()
    }
}

/// As a server reads: one buffer with many packets in it.
fn decode(c: &mut Criterion) {
    let mut group = c.benchmark_group("decode");
    for (name, version, qos) in CASES {
        let mut wire = BytesMut::new();
        for _ in 0..PACKETS {
            Encoder::new(version)
                .encode_publish(&publish(qos), &mut wire)
                .expect("it fits");
        }
        let wire = wire.freeze();
        let decoder = Decoder::client(version, Limits::default());
        group.throughput(Throughput::Elements(PACKETS));
        group.bench_function(name, |b| {
            b.iter_batched(
                || (decoder.clone(), BytesMut::from(&wire[..])),
                |(mut decoder, mut buffer)| {
                    while let Ok(Decoded::Packet(packet)) = decoder.decode(&mut buffer) {
                        black_box::<Packet>(packet);
                    }
                },
                BatchSize::SmallInput,
            );
        });
    }
    group.finish();
}

/// As a writer coalesces: many packets into one buffer.
fn encode(c: &mut Criterion) {
    let mut group = c.benchmark_group("encode");
    for (name, version, qos) in CASES {
        let publish = publish(qos);
        let encoder = Encoder::new(version);
        let mut buffer = BytesMut::with_capacity(64 * 1024);
        group.throughput(Throughput::Elements(PACKETS));
        group.bench_function(name, |b| {
            b.iter(|| {
                buffer.clear();
                for _ in 0..PACKETS {
                    let written = encoder.encode_publish(black_box(&publish), &mut buffer);
                    black_box(written.expect("it fits"));
                }
            });
        });
    }
    group.finish();
}

fn matching(c: &mut Criterion) {
    let topic = TopicName::parse("plant/7/line/3/temperature").expect("a topic");
    let filter = TopicFilter::parse("plant/+/line/+/#").expect("a filter");
    c.bench_function("match one filter", |b| {
        b.iter(|| black_box(&filter).matches(black_box(&topic)));
    });
}

const PACKETS: u64 = 100;

const CASES: [(&str, Version, QoS); 4] = [
    ("3.1.1 qos 0", Version::V311, QoS::AtMostOnce),
    ("3.1.1 qos 1", Version::V311, QoS::AtLeastOnce),
    ("5.0 qos 0", Version::V5, QoS::AtMostOnce),
    ("5.0 qos 1", Version::V5, QoS::AtLeastOnce),
];

criterion_group!(benches, decode, encode, matching);
criterion_main!(benches);
