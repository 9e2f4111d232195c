//! Headers that do not decode, or that say something forbidden.
//! `[wire 7.2, 8, 17]`

use weida_core::codes;

use crate::everywhere;
use crate::raw::{data_with, error, frame, subscription, text};
use crate::subject::Tuning;
use crate::world::{Case, Role, World};

everywhere! {
    wire_17_07_a_header_that_does_not_decode
    wire_17_07_is_judged_after_hello
    wire_17_08_data_without_endpoint
    wire_17_09_s17_3_error_on_a_one_way_stream
    wire_17_15_s17_11_filter_outside_the_grammar
    wire_17_15_s17_11_filter_over_its_length
    wire_17_31_content_length_and_trace_may_lie
}

/// Sends `good`, which must leave the connection alone, and then `bad`.
async fn closes_unlike(case: Case, good: &[u8], bad: &[u8]) {
    let mut world = World::greeted(case).await;
    world.raw.say(good).await;
    world.survives().await;
    world.raw.say(bad).await;
    world.raw.closed_with(codes::PROTOCOL_VIOLATION).await;
}

async fn wire_17_07_a_header_that_does_not_decode(case: Case) {
    let endpoint = [&[0x00][..], &text("/nobody")].concat();
    // One of each kind that a peer may open a one-way stream with; the golden
    // vectors hold every way to be malformed.
    for (kind, good, bad) in [
        // DATA: a key twice.
        (1, vec![0x01, 0x05], vec![0x00, 0x60]),
        // SUBSCRIBE, UNSUBSCRIBE: the filter as bytes.
        (3, vec![0x01, 0x60], vec![0x01, 0x40]),
        (4, vec![0x01, 0x60], vec![0x01, 0x40]),
    ] {
        let good = frame(kind, &[&[0xA2][..], &endpoint, &good].concat());
        let bad = frame(kind, &[&[0xA2][..], &endpoint, &bad].concat());
        closes_unlike(case, &good, &bad).await;
    }
    // CREDIT: limit as text. CURSOR: no id.
    let credit = |limit: u8| {
        let filter = [0x01, 0x60, 0x02, limit];
        frame(5, &[&[0xA3][..], &endpoint, &filter].concat())
    };
    closes_unlike(case, &credit(0x01), &credit(0x60)).await;
    closes_unlike(case, &frame(6, &[0xA1, 0x00, 0x01]), &frame(6, &[0xA0])).await;
    // No header at all.
    closes_unlike(case, &data_with("/nobody", 0, &[]), &frame(1, &[])).await;
}

/// The header of a parked stream is not looked at before HELLO.
async fn wire_17_07_is_judged_after_hello(case: Case) {
    let world = World::silent(case, &Tuning::default()).await;
    world.raw.say(&frame(1, &[0x80])).await;
    world.raw.hears_hello().await;
    world.raw.hears_nothing().await;
    world.raw.is_open();
    world.raw.say(crate::raw::HELLO).await;
    world.raw.closed_with(codes::PROTOCOL_VIOLATION).await;
}

async fn wire_17_08_data_without_endpoint(case: Case) {
    for header in [&[0xA0][..], &[0xA1, 0x01, 0x05]] {
        closes_unlike(case, &crate::raw::data("/nobody"), &frame(1, header)).await;
    }
    let mut world = World::greeted(case).await;
    world.survives().await;
    let (_request, _reply) = world.raw.exchange(&frame(1, &[0xA0])).await;
    world.raw.closed_with(codes::PROTOCOL_VIOLATION).await;
}

async fn wire_17_09_s17_3_error_on_a_one_way_stream(case: Case) {
    // What it says is irrelevant, even whether it decodes.
    for bad in [error(5), error(99), frame(2, &[0xA0]), frame(2, &[0xFF])] {
        let mut world = World::greeted(case).await;
        world.survives().await;
        world.raw.say(&bad).await;
        world.raw.closed_with(codes::PROTOCOL_VIOLATION).await;
    }
    // Legal bytes in the wrong place: looked at after HELLO.
    let world = World::silent(case, &Tuning::default()).await;
    world.raw.say(&error(5)).await;
    world.raw.hears_hello().await;
    world.raw.hears_nothing().await;
    world.raw.say(crate::raw::HELLO).await;
    world.raw.closed_with(codes::PROTOCOL_VIOLATION).await;
}

fn credit(filter: &str) -> Vec<u8> {
    let mut header = vec![0xA3, 0x00];
    header.extend(text("/md"));
    header.push(0x01);
    header.extend(text(filter));
    header.extend([0x02, 0x01]);
    frame(5, &header)
}

/// Also `[wire 30]` item 8: a bad filter.
async fn wire_17_15_s17_11_filter_outside_the_grammar(case: Case) {
    let bad = ["a*b", "a.#.b", "a#", "**", "*.#x", "#.a", "x.*y"];
    for (at, bad) in bad.into_iter().enumerate() {
        let mut world = World::greeted(case).await;
        for good in ["*", "#", "a.*.b", "", "a..#"] {
            world.raw.say(&subscription(3, "/md", good)).await;
            world.raw.say(&subscription(4, "/md", good)).await;
            world.raw.say(&credit(good)).await;
        }
        world.survives().await;
        let bad = match at % 3 {
            0 => subscription(3, "/md", bad),
            1 => subscription(4, "/md", bad),
            _ => credit(bad),
        };
        world.raw.say(&bad).await;
        world.raw.closed_with(codes::PROTOCOL_VIOLATION).await;
    }
}

async fn wire_17_15_s17_11_filter_over_its_length(case: Case) {
    let (longest, over) = ("a".repeat(256), "a".repeat(257));
    for kind in [3, 4] {
        let good = subscription(kind, "/md", &longest);
        closes_unlike(case, &good, &subscription(kind, "/md", &over)).await;
    }
    closes_unlike(case, &credit(&longest), &credit(&over)).await;
}

async fn wire_17_31_content_length_and_trace_may_lie(case: Case) {
    let mut world = World::greeted(case).await;
    for claimed in [
        &[0x00][..],
        &[0x1B, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF],
    ] {
        let head = data_with(world.path(), 1, &[&[0x01][..], claimed].concat());
        world
            .takes(&[head, b"four".to_vec()].concat(), b"four")
            .await;
    }
    for trace in [
        "",
        "zzz",
        "00-00000000000000000000000000000000-0000000000000000-00",
    ] {
        let head = data_with(world.path(), 1, &[&[0x03][..], &text(trace)].concat());
        world
            .takes(&[head, trace.into()].concat(), trace.as_bytes())
            .await;
    }
    if case.role == Role::Server {
        // The same on an exchange: the reply is the body that came.
        let head = data_with("/echo", 1, &[0x01, 0x18, 0x63]);
        let reply = world.raw.request(&[head, b"ping".to_vec()].concat()).await;
        assert!(reply.ends_with(b"ping"), "{reply:02X?}");
    }
    world.survives().await;
}
