//! A payload of any size, written once. [weida PS-12]

use std::time::Duration;

use bytes::Bytes;
use weida::{Error, Limits};

use crate::raw::Raw;
use crate::world::{World, eventually, soon};

const LONG: Duration = Duration::from_secs(10);

fn budget(bytes: usize) -> Limits {
    Limits {
        subscriber_buffer_bytes: bytes,
        ..Limits::default()
    }
}

#[tokio::test]
async fn ps_12_a_payload_larger_than_the_budget_arrives_whole() {
    let world = World::with_limits(budget(64 << 10)).await;
    let publisher = world.listener.publisher("/p").unwrap();
    let client = world.subscriber("/p", &["big"]).await;
    let other = world.subscriber("/p", &["small"]).await;
    eventually(|| publisher.subscriber_count() == 2).await;
    let chunk = Bytes::from(vec![5; 48 << 10]);
    let mut fan_out = publisher.open("big");
    assert_eq!((fan_out.topic(), fan_out.subscribers()), ("big", 1));
    let read = async { client.next().await };
    let write = async {
        for _ in 0..100 {
            assert_eq!(fan_out.write_within(chunk.clone(), LONG).await.unwrap(), 1);
        }
        // A late subscriber gets the next message, not half of this one.
        soon(other.subscriber.subscribe("big")).await.unwrap();
        eventually(|| publisher.filter_count() == 3).await;
        assert_eq!(fan_out.subscribers(), 1);
        assert_eq!(fan_out.finish(), 1);
    };
    let ((topic, payload), ()) = tokio::join!(read, write);
    assert_eq!((topic.as_str(), payload.len()), ("big", 100 * (48 << 10)));
    assert!(payload.iter().all(|byte| *byte == 5));
    other.hears_nothing().await;
    assert_eq!(publisher.dropped(), 0);
}

/// A copy that lost a chunk is reset with CANCELED and never a short message.
#[tokio::test]
async fn ps_12_s17_19_who_misses_a_chunk_loses_that_message_only() {
    let world = World::with_limits(budget(1 << 20)).await;
    let publisher = world.listener.publisher("/p").unwrap();
    let raw = Raw::dial(world.addr()).await;
    raw.subscribe("/p", "").await;
    let client = world.subscriber("/p", &[""]).await;
    eventually(|| publisher.subscriber_count() == 2).await;
    let mut fan_out = publisher.open("t");
    let chunk = Bytes::from(vec![0; 1 << 20]);
    // The raw peer does not read: one stream window and one budget, then full.
    let fast = async { client.next().await.1.len() };
    let write = async {
        let mut written = 0;
        while fan_out.subscribers() == 2 {
            let limit = Duration::from_millis(200);
            assert!(fan_out.write_within(chunk.clone(), limit).await.unwrap() >= 1);
            written += 1;
            assert!(written < 20);
        }
        assert_eq!(fan_out.write_within("end", LONG).await.unwrap(), 1);
        assert_eq!(fan_out.finish(), 1);
        written * (1 << 20) + 3
    };
    let (received, sent) = tokio::join!(fast, write);
    assert_eq!(received, sent);
    let drops = publisher.dropped_on("t").unwrap();
    assert_eq!((drops.subscriber_budget, drops.total()), (1, 1));

    let mut cut = soon(raw.connection.accept_uni()).await.unwrap();
    match soon(cut.read_to_end(64 << 20)).await {
        Err(quinn::ReadToEndError::Read(quinn::ReadError::Reset(code))) => {
            assert_eq!(code.into_inner(), weida::codes::CANCELED);
        }
        other => panic!("{other:?}"),
    }
    // Its subscription stayed.
    assert_eq!(publisher.subscriber_count(), 2);
    assert_eq!(publisher.publish("t", "next").unwrap(), 2);
    assert!(raw.heard().await.ends_with(b"next"));
    assert_eq!(client.next().await.1, b"next");
}

#[tokio::test]
async fn ps_12_write_now_never_waits() {
    let world = World::with_limits(budget(10)).await;
    let publisher = world.listener.publisher("/p").unwrap();
    let mut transport = quinn::TransportConfig::default();
    transport.max_concurrent_uni_streams(1u32.into());
    let raw = Raw::stalled(world.addr(), transport).await;
    raw.subscribe("/p", "").await;
    eventually(|| publisher.filter_count() == 1).await;
    let mut fan_out = publisher.open("t");
    assert_eq!(fan_out.write_now("0123456789").unwrap(), 1);
    assert_eq!(fan_out.write_now("x").unwrap(), 0);
    assert_eq!(fan_out.finish(), 0);
    assert_eq!(publisher.dropped_on("t").unwrap().subscriber_budget, 1);
    // What the lost copy held is given back.
    eventually(|| publisher.publish("t", "0123456789").unwrap() == 1).await;
}

/// One limit for the whole call, however many are slow.
#[tokio::test]
async fn ps_12_the_slow_ones_are_waited_for_together() {
    let world = World::with_limits(budget(10)).await;
    let publisher = world.listener.publisher("/p").unwrap();
    let mut stalled = Vec::new();
    for _ in 0..5 {
        let mut transport = quinn::TransportConfig::default();
        transport.max_concurrent_uni_streams(1u32.into());
        let raw = Raw::stalled(world.addr(), transport).await;
        raw.subscribe("/p", "").await;
        stalled.push(raw);
    }
    eventually(|| publisher.filter_count() == 5).await;
    let mut fan_out = publisher.open("t");
    assert_eq!(fan_out.write_now("0123456789").unwrap(), 5);
    let started = tokio::time::Instant::now();
    let limit = Duration::from_millis(300);
    assert_eq!(fan_out.write_within("x", limit).await.unwrap(), 0);
    let took = started.elapsed();
    assert!(took >= limit && took < 3 * limit, "{took:?}");
    assert_eq!(publisher.dropped_on("t").unwrap().subscriber_budget, 5);
}

#[tokio::test]
async fn ps_12_a_dropped_handle_or_write_aborts_every_copy() {
    let world = World::with_limits(budget(10)).await;
    let publisher = world.listener.publisher("/p").unwrap();
    let raw = Raw::dial(world.addr()).await;
    raw.subscribe("/p", "").await;
    eventually(|| publisher.filter_count() == 1).await;
    let reset = async || {
        let mut copy = soon(raw.connection.accept_uni()).await.unwrap();
        let end = soon(copy.read_to_end(1 << 20)).await;
        assert!(
            matches!(
                &end,
                Err(quinn::ReadToEndError::Read(quinn::ReadError::Reset(_)))
            ),
            "{end:?}"
        );
    };
    let mut dropped = publisher.open("t");
    dropped.write_now("half").unwrap();
    // Reset only after it is on the wire, so that there is a copy to see.
    let mut copy = soon(raw.connection.accept_uni()).await.unwrap();
    drop(dropped);
    let end = soon(copy.read_to_end(1 << 20)).await;
    assert!(end.is_err(), "{end:?}");

    // A write that is dropped while it waits.
    let mut transport = quinn::TransportConfig::default();
    transport.max_concurrent_uni_streams(1u32.into());
    let stalled = Raw::stalled(world.addr(), transport).await;
    stalled.subscribe("/p", "").await;
    eventually(|| publisher.subscriber_count() == 2).await;
    let mut fan_out = publisher.open("t");
    assert_eq!(fan_out.write_within("0123456789", LONG).await.unwrap(), 2);
    let moment = Duration::from_millis(100);
    let waiting = tokio::time::timeout(moment, fan_out.write_within("x", LONG));
    assert!(waiting.await.is_err());
    let after = fan_out.write_within("y", LONG).await;
    assert!(matches!(after, Err(Error::Canceled)), "{after:?}");
    assert!(matches!(fan_out.write_now("y"), Err(Error::Canceled)));
    assert_eq!(fan_out.finish(), 0);
    reset().await;
    assert_eq!(publisher.dropped(), 0);
}

#[tokio::test]
async fn ps_7_a_chunk_or_topic_above_its_cap_is_refused() {
    let world = World::with_limits(budget(10)).await;
    let publisher = world.listener.publisher("/p").unwrap();
    let client = world.subscriber("/p", &[""]).await;
    eventually(|| publisher.filter_count() == 1).await;
    let mut fan_out = publisher.open(&"t".repeat(256));
    let refused = fan_out.write_now(vec![0; 11]);
    assert!(matches!(refused, Err(Error::LimitExceeded(None))));
    let refused = fan_out.write_within(vec![0; 11], LONG).await;
    assert!(matches!(refused, Err(Error::LimitExceeded(None))));
    // Nothing was written or aborted by that.
    assert_eq!(fan_out.write_now(vec![0; 10]).unwrap(), 1);
    assert_eq!(fan_out.finish(), 1);
    assert_eq!(client.next().await.1.len(), 10);

    let mut too_long = publisher.open(&"t".repeat(257));
    assert_eq!(too_long.subscribers(), 0);
    let refused = too_long.write_now("x");
    assert!(matches!(refused, Err(Error::LimitExceeded(None))));
    client.hears_nothing().await;
}

/// Keep-newest is the application's: one slot, `open`, `write_now`. [weida PS-15]
#[tokio::test]
async fn ps_15_the_newest_value_reaches_a_reader_that_lagged() {
    let world = World::with_limits(budget(8)).await;
    let publisher = world.listener.publisher("/p").unwrap();
    let client = world.subscriber("/p", &["v"]).await;
    eventually(|| publisher.filter_count() == 1).await;
    let mut sent = 0u64;
    for value in 0..1000u64 {
        let mut fan_out = publisher.open("v");
        if fan_out.write_now(value.to_be_bytes().to_vec()).unwrap() == 1 {
            sent += fan_out.finish() as u64;
        }
    }
    eventually(|| {
        let mut fan_out = publisher.open("v");
        fan_out.write_now(1000u64.to_be_bytes().to_vec()).unwrap() == 1 && fan_out.finish() == 1
    })
    .await;
    let mut newest = 0;
    for _ in 0..=sent {
        let payload: [u8; 8] = client.next().await.1.try_into().unwrap();
        newest = newest.max(u64::from_be_bytes(payload));
    }
    assert_eq!(newest, 1000);
}
