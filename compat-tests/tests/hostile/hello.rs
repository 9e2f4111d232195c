//! HELLO: late, twice, contradictory, and what may come before it.
//! `[wire 5, 17]`, `[weida CN-11]`

use std::time::Duration;

use weida_core::codes;

use crate::raw::{HELLO, data, frame, stopped, subscription};
use crate::subject::Tuning;
use crate::world::{Case, Role, World};
use crate::{everywhere, ours};

everywhere! {
    wire_17_11_second_hello
    wire_17_12_no_common_version
    wire_17_12_capability_we_lack
    wire_17_12_guarantee_we_lack
    wire_17_13_hello_that_contradicts_itself
    wire_17_14_no_hello_in_time
    cn_11_what_comes_before_hello_is_parked
}

ours! {
    cn_11_parked_streams_of_every_kind
}

/// Also `[wire 30]` item 11.
async fn wire_17_11_second_hello(case: Case) {
    let mut world = World::greeted(case).await;
    world.survives().await;
    world.raw.say(HELLO).await;
    world.raw.closed_with(codes::PROTOCOL_VIOLATION).await;
    world.took_nothing();
}

/// A HELLO with the parts that vary.
fn hello(versions: &[u8], required: &[u8], more: u8, guarantees: &[u8]) -> Vec<u8> {
    let mut header = vec![0xA5 + more, 0x00];
    header.extend_from_slice(versions);
    header.extend([0x01, 0x19, 0x40, 0x00, 0x02, 0x01, 0x03, 0x80, 0x04]);
    header.extend_from_slice(required);
    header.extend_from_slice(guarantees);
    frame(0, &header)
}

/// `good` is agreed with; `bad` is answered with CLOSE(`code`).
async fn greeting(case: Case, good: &[u8], bad: &[u8], code: u64) {
    let mut world = World::silent(case, &Tuning::default()).await;
    world.raw.say(good).await;
    world.raw.hears_hello().await;
    if let Some(outcome) = world.dialled().await {
        assert_eq!(outcome, Ok(()));
    }
    world.survives().await;

    let mut world = World::silent(case, &Tuning::default()).await;
    let transfer = world.transfer(b"never taken");
    world.raw.say(&transfer).await;
    world.raw.say(bad).await;
    world.raw.closed_with(code).await;
    world.took_nothing();
    let why = match code {
        codes::NEGOTIATION_FAILED => "Negotiation",
        _ => "Protocol",
    };
    world.dial_failed(why).await;
}

async fn wire_17_12_no_common_version(case: Case) {
    // [0, 1] has one in common; [1], [] and a version before a capability not.
    let good = hello(&[0x82, 0x00, 0x01], &[0x80], 0, &[]);
    for bad in [
        hello(&[0x81, 0x01], &[0x80], 0, &[]),
        hello(&[0x80], &[0x80], 0, &[]),
        hello(&[0x81, 0x01], &[0x81, 0x07], 0, &[]),
    ] {
        greeting(case, &good, &bad, codes::NEGOTIATION_FAILED).await;
    }
}

async fn wire_17_12_capability_we_lack(case: Case) {
    let v0 = [0x81, 0x00];
    let mut optional = hello(&v0, &[0x80], 0, &[]);
    // Capability 7 offered and not required is nothing to us.
    let at = optional.len() - 3;
    optional[at] = 0x81;
    optional.insert(at + 1, 0x07);
    optional[2] += 1;
    for required in [&[0x81, 0x07][..], &[0x81, 0x01], &[0x81, 0x02]] {
        let bad = hello(&v0, required, 0, &[]);
        greeting(case, &optional, &bad, codes::NEGOTIATION_FAILED).await;
    }
}

async fn wire_17_12_guarantee_we_lack(case: Case) {
    let v0 = [0x81, 0x00];
    // Offered ordering meets a core peer; required ordering does not.
    let offered = [0x05, 0xA1, 0x04, 0x01];
    let good = hello(&v0, &[0x80], 1, &offered);
    let both = [&offered[..], &[0x06, 0xA1, 0x04, 0x01]].concat();
    let bad = hello(&v0, &[0x80], 2, &both);
    greeting(case, &good, &bad, codes::NEGOTIATION_FAILED).await;
    // An unordered dimension that differs, honestly required.
    let drops = [0x05, 0xA1, 0x07, 0x02, 0x06, 0xA1, 0x07, 0x02];
    let bad = hello(&v0, &[0x80], 2, &drops);
    greeting(case, &good, &bad, codes::NEGOTIATION_FAILED).await;
}

async fn wire_17_13_hello_that_contradicts_itself(case: Case) {
    let v0 = [0x81, 0x00];
    let good = hello(&v0, &[0x80], 1, &[0x05, 0xA2, 0x05, 0x01, 0x06, 0x18, 0x64]);
    for (more, guarantees) in [
        // Requires more than it offers.
        (1, &[0x06, 0xA1, 0x04, 0x01][..]),
        // A level that is none.
        (1, &[0x05, 0xA1, 0x04, 0x09]),
        // A window without deduplication, and the reverse.
        (1, &[0x05, 0xA1, 0x06, 0x01]),
        (1, &[0x05, 0xA1, 0x05, 0x01]),
    ] {
        let bad = hello(&v0, &[0x80], more, guarantees);
        greeting(case, &good, &bad, codes::PROTOCOL_VIOLATION).await;
    }
    // A key is missing.
    let bad = frame(
        0,
        &[0xA4, 0x00, 0x81, 0x00, 0x01, 0x01, 0x02, 0x01, 0x03, 0x80],
    );
    greeting(case, &good, &bad, codes::PROTOCOL_VIOLATION).await;
}

/// Also `[wire 30]` item 9.
async fn wire_17_14_no_hello_in_time(case: Case) {
    let hurried = Tuning {
        hello_timeout_ms: 400,
        ..Tuning::default()
    };
    // In time is in time.
    let mut world = World::silent(case, &hurried).await;
    world.greet().await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    world.survives().await;

    // Anything else said meanwhile is no HELLO.
    let mut world = World::silent(case, &hurried).await;
    let transfer = world.transfer(b"never taken");
    world.raw.say(&transfer).await;
    world.raw.closed_with(codes::NEGOTIATION_FAILED).await;
    world.took_nothing();
    world.dial_failed("Negotiation").await;
}

/// Also `[wire 30]` item 3.
async fn cn_11_what_comes_before_hello_is_parked(case: Case) {
    let mut world = World::silent(case, &Tuning::default()).await;
    let parked = world.raw.uni(&data("/nobody")).await;
    if case.role == Role::Server {
        // A dialler's path is registered only once it is connected.
        for body in [b"one", b"two"] {
            let transfer = world.transfer(body);
            world.raw.say(&transfer).await;
        }
    }
    world.raw.hears_hello().await;
    world.raw.hears_nothing().await;
    world.took_nothing();
    let early = tokio::time::timeout(Duration::from_millis(100), parked.stopped()).await;
    assert!(early.is_err(), "{early:?}");
    world.raw.say(HELLO).await;
    stopped(&parked, 8).await;
    if case.role == Role::Server {
        let mut bodies = [
            world.arrival().await.unwrap(),
            world.arrival().await.unwrap(),
        ];
        bodies.sort();
        assert_eq!(bodies, [b"one".to_vec(), b"two".to_vec()]);
    }
    if let Some(outcome) = world.dialled().await {
        assert_eq!(outcome, Ok(()));
    }
    world.survives().await;
}

/// More streams than heads may be read at once, of every kind, all before
/// HELLO: they are parked without keeping HELLO out.
async fn cn_11_parked_streams_of_every_kind(case: Case) {
    let tuning = Tuning {
        max_header_streams: 4,
        ..Tuning::default()
    };
    let mut world = World::silent(case, &tuning).await;
    let mut parked = Vec::new();
    for at in 0..40_u8 {
        match at % 4 {
            0 => world.raw.say(&subscription(3, "/md", "a")).await,
            1 => world.raw.say(&subscription(4, "/md", "a")).await,
            2 => parked.push((world.raw.uni(&data("/nobody")).await, 8)),
            _ => parked.push((world.raw.uni(&frame(6, &[0xA1, 0x00, 0x01])).await, 3)),
        }
    }
    world.greet().await;
    for (stream, code) in &parked {
        stopped(stream, *code).await;
    }
    world.survives().await;
}
