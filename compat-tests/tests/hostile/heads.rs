//! Frame heads that are wrong, cut or late. `[wire 6, 17]`, `[weida INV-1]`

use std::time::Duration;

use weida_core::codes;

use crate::raw::{data, frame, soon, stopped, subscription, was_reset};
use crate::subject::Tuning;
use crate::world::{Case, World};
use crate::{everywhere, ours};

everywhere! {
    wire_17_01_first_byte
    wire_17_02_unknown_kind
    wire_17_03_header_over_the_cap
    wire_17_04_fin_before_a_complete_preamble
    wire_17_05_fin_inside_the_header
    wire_17_06_late_head_on_a_one_way_stream
    wire_17_06_late_head_on_an_exchange
    wire_17_06_a_head_in_single_bytes_is_in_time
    wire_17_24_bytes_after_a_header_only_frame
}

ours! {
    wire_17_06_a_late_head_is_stopped_before_hello_too
    wire_17_03_header_at_the_cap
}

/// Bad bytes are a violation on a negotiated connection and, being judged
/// without waiting for HELLO, on one that is not.
async fn closes_before_and_after_hello(case: Case, bad: &[u8], finished: bool) {
    let mut world = World::greeted(case).await;
    world.survives().await;
    throw(&world, bad, finished).await;
    world.raw.closed_with(codes::PROTOCOL_VIOLATION).await;
    world.took_nothing();

    let mut world = World::silent(case, &Tuning::default()).await;
    throw(&world, bad, finished).await;
    world.raw.closed_with(codes::PROTOCOL_VIOLATION).await;
    // The connection is never handed out.
    world.dial_failed("Protocol").await;
}

async fn throw(world: &World, bytes: &[u8], finished: bool) {
    let mut stream = world.raw.uni(bytes).await;
    if finished {
        drop(stream.finish());
    } else {
        // Kept open: the other side must not need the FIN to decide.
        soon(world.raw.connection.closed()).await;
    }
}

async fn wire_17_01_first_byte(case: Case) {
    let mut bad = data("/jobs");
    bad[0] = 0x58;
    closes_before_and_after_hello(case, &bad, false).await;
}

async fn wire_17_02_unknown_kind(case: Case) {
    for kind in [9, 10, 63, 64, 128, 255] {
        closes_before_and_after_hello(case, &frame(kind, &[0xA0]), false).await;
    }
}

async fn wire_17_03_header_over_the_cap(case: Case) {
    // 16 385, and every longer form of a length. Nothing follows, so whoever
    // waited for the header would wait for ever.
    for length in [
        &[0x80, 0x00, 0x40, 0x01][..],
        &[0xBF, 0xFF, 0xFF, 0xFF],
        &[0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF],
    ] {
        let bad = [&[0x57, 0x01][..], length].concat();
        closes_before_and_after_hello(case, &bad, false).await;
    }
}

/// A header as long as the cap is read; the skipped key makes up the length.
async fn wire_17_03_header_at_the_cap(case: Case) {
    let mut world = World::greeted(case).await;
    for header_bytes in [16_383, 16_384] {
        let path = crate::raw::text(world.path());
        let mut header = [&[0xA2, 0x00][..], &path, &[0x18, 0x40]].concat();
        let filler = header_bytes - header.len() - 3;
        header.push(0x59);
        header.extend(u16::try_from(filler).unwrap().to_be_bytes());
        header.resize(header_bytes, 0);
        let whole = [frame(1, &header), b"long".to_vec()].concat();
        world.takes(&whole, b"long").await;
    }
    world.survives().await;
}

async fn wire_17_04_fin_before_a_complete_preamble(case: Case) {
    // An empty stream is known to the other side by its FIN alone.
    for bad in [
        &[][..],
        &[0x57],
        &[0x57, 0x01],
        &[0x57, 0x01, 0x80],
        &[0x57, 0x01, 0x80, 0x00, 0x00],
        &[0x57, 0x01, 0xC0, 0, 0, 0, 0, 0, 0],
    ] {
        closes_before_and_after_hello(case, bad, true).await;
    }
}

async fn wire_17_05_fin_inside_the_header(case: Case) {
    let mut world = World::greeted(case).await;
    let whole = data(world.path());
    world.takes(&whole, b"").await;
    for cut in 3..whole.len() {
        world.raw.say(&whole[..cut]).await;
        let (mut request, _reply) = world.raw.exchange(&whole[..cut]).await;
        request.finish().unwrap();
    }
    world.survives().await;
    world.took_nothing();
}

fn hurried() -> Tuning {
    Tuning {
        header_timeout_ms: 150,
        ..Tuning::default()
    }
}

/// Where a head can stall: in the preamble and in the header.
fn stalls(world: &World) -> [Vec<u8>; 4] {
    let whole = data(world.path());
    [
        whole[..1].to_vec(),
        whole[..2].to_vec(),
        whole[..3].to_vec(),
        whole[..whole.len() - 1].to_vec(),
    ]
}

/// Also `[wire 30]` item 10.
async fn wire_17_06_late_head_on_a_one_way_stream(case: Case) {
    let mut world = World::tuned(case, &hurried()).await;
    for stall in stalls(&world) {
        let mut stream = world.raw.uni(&stall).await;
        stopped(&stream, 3).await;
        // It is too late now, whatever comes.
        drop(stream.write_all(&data(world.path())[stall.len()..]).await);
    }
    world.survives().await;
    world.took_nothing();
}

/// The neighbour: slow, and with the longest form of its length, but in time.
async fn wire_17_06_a_head_in_single_bytes_is_in_time(case: Case) {
    let mut world = World::greeted(case).await;
    let whole = world.transfer(b"slow");
    let length = [0xC0, 0, 0, 0, 0, 0, 0, whole[2]];
    let whole = [&whole[..2], &length, &whole[3..]].concat();
    let mut stream = world.raw.uni(&[]).await;
    for byte in whole {
        stream.write_all(&[byte]).await.unwrap();
        // A packet of its own.
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    stream.finish().unwrap();
    assert_eq!(world.arrival().await, Ok(b"slow".to_vec()));
    world.survives().await;
}

async fn wire_17_06_late_head_on_an_exchange(case: Case) {
    let mut world = World::tuned(case, &hurried()).await;
    for stall in stalls(&world) {
        let (request, mut reply) = world.raw.exchange(&stall).await;
        stopped(&request, 3).await;
        was_reset(&mut reply, 3).await;
    }
    world.survives().await;
}

async fn wire_17_06_a_late_head_is_stopped_before_hello_too(case: Case) {
    let mut world = World::silent(case, &hurried()).await;
    let stream = world.raw.uni(&[0x57, 0x01]).await;
    stopped(&stream, 3).await;
    // A head whose preamble is there waits for HELLO, and its time with it.
    let nobody = data("/nobody");
    let mut parked = world.raw.uni(&nobody[..3]).await;
    let twice_its_time = Duration::from_millis(300);
    let early = tokio::time::timeout(twice_its_time, parked.stopped()).await;
    assert!(early.is_err(), "{early:?}");
    parked.write_all(&nobody[3..]).await.unwrap();
    world.greet().await;
    stopped(&parked, 8).await;
    world.survives().await;
}

async fn wire_17_24_bytes_after_a_header_only_frame(case: Case) {
    let mut world = World::tuned(case, &hurried()).await;
    for kind in [3, 4] {
        let whole = subscription(kind, "/md", "a");
        world.raw.say(&whole).await;
        world.raw.say(&[&whole[..], &[0xFF; 4096]].concat()).await;
        world
            .raw
            .say(&[&whole[..], &vec![0; 256 << 10]].concat())
            .await;
    }
    world.survives().await;
    // No FIN, ever: the stream may be given up, the connection is not.
    let unfinished = world.raw.uni(&subscription(3, "/md", "b")).await;
    let given_up = tokio::time::timeout(Duration::from_millis(400), unfinished.stopped());
    drop(given_up.await);
    world.survives().await;
}
