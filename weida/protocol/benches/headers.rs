//! Header cost per message: what a 64-byte push pays besides its payload.
//!
//! Aims on a desktop core: 60 ns to decode the smallest initiating header, 100 ns to encode one.

use std::hint::black_box;

use bytes::Bytes;
use criterion::{Criterion, criterion_group, criterion_main};
use weida_core::filter;
use weida_protocol::{
    DataHeader, FrameKind, HeadDecoder, SubscriptionHeader, decode_head, encode_frame,
};

fn minimal() -> DataHeader<'static> {
    DataHeader::addressed("/jobs")
}

fn published() -> DataHeader<'static> {
    DataHeader {
        content_len: Some(64),
        topic: Some("plant.7.temp"),
        sequence: Some(70_000),
        ..DataHeader::addressed("/readings")
    }
}

fn traced() -> DataHeader<'static> {
    DataHeader {
        content_type: Some("application/json"),
        traceparent: Some("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
        tracestate: Some("a=b"),
        ..published()
    }
}

fn frame(header: &DataHeader<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    encode_frame(FrameKind::Data, header, &mut out).expect("the header is legal");
    out
}

fn headers(bench: &mut Criterion) {
    for (name, header) in [
        ("minimal", minimal()),
        ("published", published()),
        ("traced", traced()),
    ] {
        let bytes = frame(&header);
        let at = bytes.len() - {
            let mut map = Vec::new();
            weida_protocol::FrameHeader::encode(&header, &mut map).expect("the header is legal");
            map.len()
        };
        bench.bench_function(&format!("decode/{name}"), |run| {
            run.iter(|| DataHeader::decode(black_box(&bytes[at..])));
        });
        bench.bench_function(&format!("decode_frame/{name}"), |run| {
            run.iter(|| decode_head(black_box(&bytes), 16_384));
        });
        let mut out = Vec::with_capacity(1024);
        bench.bench_function(&format!("encode_frame/{name}"), |run| {
            run.iter(|| {
                out.clear();
                encode_frame(FrameKind::Data, black_box(&header), &mut out)
            });
        });
    }
    let chunk = Bytes::from([frame(&minimal()), vec![0; 64]].concat());
    bench.bench_function("feed/minimal", |run| {
        run.iter(|| HeadDecoder::new(16_384).feed(&mut black_box(chunk.clone())));
    });
    let mut out = Vec::with_capacity(1024);
    bench.bench_function("encode_frame/subscribe", |run| {
        run.iter(|| {
            out.clear();
            let header = SubscriptionHeader::new(black_box("/md"), black_box("px.*"));
            encode_frame(FrameKind::Subscribe, &header, &mut out)
        });
    });
    bench.bench_function("filter/match", |run| {
        run.iter(|| {
            filter::matches(
                black_box("plant.7.line.3.temp"),
                black_box("plant.*.line.#"),
            )
        });
    });
}

criterion_group!(benches, headers);
criterion_main!(benches);
