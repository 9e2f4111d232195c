//! Floods: what a peer can make a runtime hold, and for how long.
//! `[weida 16: INV-1, INV-4, INV-11; S8-22]`

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use tokio::time::Instant;
use weida::{Identity, Runtime, RuntimeConfig};
use weida_core::codes;

use crate::everywhere;
use crate::raw::{
    Dial, Raw, data, eventually, frame, loopback, socket, soon, stopped, subscription,
};
use crate::subject::Tuning;
use crate::world::{Case, World};

everywhere! {
    inv_1_heads_beyond_the_slots_wait
    inv_1_more_stalled_heads_than_are_read
    inv_1_ten_thousand_garbage_streams
    inv_11_cursors_for_reports_nobody_ordered
}

/// Resident memory of this process, in bytes; both ends are in it.
fn resident() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = pages.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

/// Whether this test has its process for itself, as resident memory must be
/// read. Where a runner puts many tests into one process, it runs once more in
/// a process of its own, and that run is the one that counts.
async fn alone() -> bool {
    const ALONE: &str = "HOSTILE_ALONE";
    let thread = std::thread::current();
    let name = thread.name().unwrap_or("main");
    let given = |name| std::env::var_os(name).is_some();
    if given("NEXTEST") || given(ALONE) || name == "main" {
        return true;
    }
    let mut again = tokio::process::Command::new(std::env::current_exe().unwrap());
    again.args([name, "--exact"]).env(ALONE, "1");
    again.kill_on_drop(true);
    let output = soon(again.output()).await.unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}");
    assert!(said.contains("1 passed"), "{said}");
    false
}

fn grown_by(before: u64) -> u64 {
    resident().saturating_sub(before)
}

/// 1 MiB of heads at once plus what the windows admit, twice because the
/// sender is here too, with room for an allocator that keeps what it had.
const HEADS_BYTES: u64 = 48 << 20;

/// A head for which there is no slot is not read, whole as it may be, until the
/// time of a stalled one is over.
async fn inv_1_heads_beyond_the_slots_wait(case: Case) {
    let stall = Duration::from_millis(400);
    let tuning = Tuning {
        max_header_streams: 3,
        header_timeout_ms: 400,
        ..Tuning::default()
    };
    let mut world = World::tuned(case, &tuning).await;
    // One slot is left: nobody waits.
    let begun = Instant::now();
    let _two = [world.raw.uni(&[0x57]).await, world.raw.uni(&[0x57]).await];
    world.survives().await;
    assert!(begun.elapsed() < stall, "{:?}", begun.elapsed());

    let begun = Instant::now();
    let mut stalled = Vec::new();
    for _ in 0..3 {
        stalled.push(world.raw.uni(&[0x57]).await);
    }
    world.survives().await;
    assert!(begun.elapsed() >= stall, "{:?}", begun.elapsed());
    for stream in &stalled {
        stopped(stream, 3).await;
    }
}

async fn inv_1_more_stalled_heads_than_are_read(case: Case) {
    if !alone().await {
        return;
    }
    let tuning = Tuning {
        header_timeout_ms: 200,
        ..Tuning::default()
    };
    let mut world = World::tuned(case, &tuning).await;
    world.survives().await;
    let before = resident();
    // Nearly whole, and only announced: the announcement costs nothing.
    let mut nearly = frame(1, &[0; 16_384]);
    nearly.pop();
    let announced = &nearly[..7];
    let mut stalled = Vec::new();
    for at in 0..256 {
        let bytes = if at % 2 == 0 { &nearly[..] } else { announced };
        stalled.push(world.raw.uni(bytes).await);
    }
    // Behind them all, and read once their time is over.
    world.survives().await;
    assert!(grown_by(before) < HEADS_BYTES, "{}", grown_by(before));
    for stream in &stalled {
        stopped(stream, 3).await;
    }
    world.survives().await;
}

/// What is wrong with each stream costs that stream and nothing else.
async fn inv_1_ten_thousand_garbage_streams(case: Case) {
    if !alone().await {
        return;
    }
    let mut world = World::greeted(case).await;
    world.survives().await;
    let before = resident();
    let whole = data(world.path());
    for at in 0..10_000_usize {
        match at % 5 {
            0 => world.raw.say(&whole[..3 + at % 5]).await,
            1 => world.raw.say(&data(&format!("/nobody/{at}"))).await,
            2 => {
                world
                    .raw
                    .say(&subscription(4, "/md", &at.to_string()))
                    .await
            }
            3 => drop(world.raw.uni(&frame(6, &[0xA1, 0x00, 0x07])).await),
            _ => {
                let mut cut = world.raw.uni(&whole[..whole.len() - 1]).await;
                drop(cut.reset(3_u32.into()));
            }
        }
        if at % 64 == 0 {
            tokio::task::yield_now().await;
        }
    }
    world.survives().await;
    assert!(grown_by(before) < 32 << 20, "{}", grown_by(before));
    world.took_nothing();
}

async fn inv_11_cursors_for_reports_nobody_ordered(case: Case) {
    if !alone().await {
        return;
    }
    let mut world = World::greeted(case).await;
    world.survives().await;
    let before = resident();
    for id in 0..2_000_u32 {
        let head = [&[0xA1, 0x00, 0x1A][..], &id.to_be_bytes()].concat();
        let records = [0x02, 0x03, 0x06, 0x00, 0x10];
        let cursor = world
            .raw
            .uni(&[frame(6, &head), records.to_vec()].concat())
            .await;
        if id % 100 == 0 {
            stopped(&cursor, 3).await;
        }
    }
    world.survives().await;
    assert!(grown_by(before) < 16 << 20, "{}", grown_by(before));
}

/// Random bytes on both kinds of stream: whatever comes of the connection,
/// nobody else notices.
#[tokio::test]
async fn inv_1_random_bytes_cost_their_sender_alone() {
    if !alone().await {
        return;
    }
    let served = crate::subject::serve(crate::subject::Subject::Ours, &Tuning::default()).await;
    let honest = Raw::dial(served.addr).await;
    // One socket, so that what grows is the runtime's and not ours.
    let socket = socket();
    let mut before = 0;
    let mut random = StdRng::seed_from_u64(17);
    for round in 0..60 {
        // The first rounds fill the allocator and the buffers of sockets.
        if round == 30 {
            before = resident();
        }
        let dial = Dial {
            from: Some(socket.clone()),
            ..Dial::default()
        };
        let hostile = dial.dial(served.addr).await.unwrap().greeted().await;
        for _ in 0..50 {
            let mut bytes = vec![0; random.random_range(0..200)];
            random.fill(&mut bytes[..]);
            if random.random_bool(0.7) && bytes.len() > 3 {
                // Past the preamble more often than chance would have it.
                bytes[0] = 0x57;
                bytes[1] %= 9;
                bytes[2] %= 0x40;
            }
            hostile.say(&bytes).await;
        }
        hostile.closed_with(codes::PROTOCOL_VIOLATION).await;
    }
    let echo = [data("/echo"), b"ping".to_vec()].concat();
    assert!(honest.request(&echo).await.ends_with(b"ping"));
    honest.is_open();
    assert!(grown_by(before) < 16 << 20, "{}", grown_by(before));
}

/// Past the limit the connection goes, and every filter it held with it.
#[tokio::test]
async fn inv_4_s8_22_filters_end_with_their_connection() {
    let config = RuntimeConfig::default();
    assert_eq!(config.limits.max_subscriptions, 256);
    let runtime = Runtime::new(config).unwrap();
    let listener = runtime.listener();
    let publisher = listener.publisher("/md").unwrap();
    let identity = Identity::generate().unwrap();
    let binding = listener.bind_quic(loopback(), identity).await.unwrap();

    let modest = Raw::dial(binding.local_addr()).await;
    modest.say(&subscription(3, "/md", "a.b")).await;
    let greedy = Raw::dial(binding.local_addr()).await;
    for at in 0..256 {
        greedy
            .say(&subscription(3, "/md", &format!("a.{at}")))
            .await;
    }
    eventually(|| publisher.filter_count() == 257).await;
    assert_eq!(publisher.subscriber_count(), 2);
    greedy.is_open();

    greedy.say(&subscription(3, "/md", "one more")).await;
    greedy.closed_with(codes::LIMIT_EXCEEDED).await;
    eventually(|| publisher.filter_count() == 1).await;
    assert_eq!(publisher.subscriber_count(), 1);
    modest.is_open();

    // The other ends its connection itself.
    modest.connection.close(0_u32.into(), b"");
    eventually(|| publisher.filter_count() == 0).await;
    assert_eq!(publisher.subscriber_count(), 0);
}
