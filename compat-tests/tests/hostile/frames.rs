//! Frames where they do not belong, or that nobody asked for.
//! `[wire 10, 17, 21]`

use weida_core::codes;
use weida_protocol::Hello;

use crate::raw::{data, error, frame, soon, stopped, subscription, text};
use crate::subject::Tuning;
use crate::world::{Case, Role, World};
use crate::{everywhere, ours};

everywhere! {
    wire_17_10_s17_21_an_exchange_opens_with_data
    wire_17_16_s17_12_one_filter_too_many
    wire_17_17_flow_without_the_capability
    wire_17_17_report_without_the_capability
    wire_17_19_report_that_is_wrong
    wire_17_20_cursor_for_an_unknown_id
    wire_17_22_credit_where_no_queue_is
    wire_17_23_s17_16_unsubscribe_of_what_is_not_held
    wire_17_25_misrouted_streams
    wire_17_28_reset_before_fin
    wire_17_29_datagram_for_no_flow
    wire_17_30_no_datagrams_are_advertised
}

ours! {
    wire_17_18_flow_with_a_byte_too_many_or_an_id_in_use
    s17_12_the_close_says_why
    s17_16_a_withdrawal_frees_only_what_was_held
}

async fn wire_17_10_s17_21_an_exchange_opens_with_data(case: Case) {
    for bad in [
        subscription(3, "/md", ""),
        subscription(4, "/md", ""),
        error(5),
        crate::raw::HELLO.to_vec(),
        frame(6, &[0xA1, 0x00, 0x01]),
        frame(7, &[0xFF]),
        frame(8, &[0xA0]),
    ] {
        let mut world = World::greeted(case).await;
        let (good, _reply) = world.raw.exchange(&data("/nobody")).await;
        stopped(&good, 8).await;
        world.survives().await;
        let (_request, _reply) = world.raw.exchange(&bad).await;
        world.raw.closed_with(codes::PROTOCOL_VIOLATION).await;

        let world = World::silent(case, &Tuning::default()).await;
        let (_request, _reply) = world.raw.exchange(&bad).await;
        world.raw.closed_with(codes::PROTOCOL_VIOLATION).await;
    }
}

fn few_filters() -> Tuning {
    Tuning {
        max_subscriptions: 4,
        ..Tuning::default()
    }
}

/// Also `[wire 30]` item 8: the filter past the limit.
async fn wire_17_16_s17_12_one_filter_too_many(case: Case) {
    let mut world = World::tuned(case, &few_filters()).await;
    // Summed over all paths; a repeat is one filter.
    for (path, filter) in [("/md", "a"), ("/md", "b"), ("/x", "a"), ("/y", "a")] {
        world.raw.say(&subscription(3, path, filter)).await;
        world.raw.say(&subscription(3, path, filter)).await;
    }
    world.survives().await;
    world.raw.say(&subscription(3, "/z", "a")).await;
    match case.role {
        Role::Server => world.raw.closed_with(codes::LIMIT_EXCEEDED).await,
        // A dialler publishes nothing, holds no subscription and has no limit
        // that one could pass.
        Role::Client => world.survives().await,
    }
}

async fn s17_12_the_close_says_why(case: Case) {
    let mut world = World::tuned(case, &few_filters()).await;
    for at in 0..4 {
        world
            .raw
            .say(&subscription(3, "/md", &at.to_string()))
            .await;
    }
    world.survives().await;
    for at in 4..9 {
        world
            .raw
            .say(&subscription(3, "/md", &at.to_string()))
            .await;
    }
    if case.role == Role::Server {
        let (code, reason) = world.raw.closed().await;
        assert_eq!(code, codes::LIMIT_EXCEEDED);
        assert_eq!(reason, "more than 4 subscriptions on one connection");
    } else {
        world.survives().await;
    }
}

async fn s17_16_a_withdrawal_frees_only_what_was_held(case: Case) {
    let mut world = World::tuned(case, &few_filters()).await;
    for at in 0..4 {
        world
            .raw
            .say(&subscription(3, "/md", &at.to_string()))
            .await;
    }
    world.survives().await;
    // None of these is held: no place becomes free.
    for (path, filter) in [("/md", "none"), ("/none", "0"), ("/md", ""), ("/none", "")] {
        world.raw.say(&subscription(4, path, filter)).await;
    }
    world.survives().await;
    // This one is.
    world.raw.say(&subscription(4, "/md", "0")).await;
    world.survives().await;
    world.raw.say(&subscription(3, "/md", "new")).await;
    world.survives().await;
    world.raw.say(&subscription(3, "/md", "one more")).await;
    match case.role {
        Role::Server => world.raw.closed_with(codes::LIMIT_EXCEEDED).await,
        Role::Client => world.survives().await,
    }
}

async fn wire_17_17_flow_without_the_capability(case: Case) {
    let header = [&[0xA2, 0x00][..], &text("/md"), &[0x01, 0x00]].concat();
    let mut world = World::greeted(case).await;
    world.survives().await;
    let _flow = world.raw.uni(&frame(7, &header)).await;
    world.raw.closed_with(codes::PROTOCOL_VIOLATION).await;
}

async fn wire_17_17_report_without_the_capability(case: Case) {
    let mut world = World::greeted(case).await;
    world.survives().await;
    let _report = world.raw.uni(&frame(8, &[0xA0])).await;
    world.raw.closed_with(codes::PROTOCOL_VIOLATION).await;
}

async fn wire_17_20_cursor_for_an_unknown_id(case: Case) {
    let mut world = World::greeted(case).await;
    for (id, records) in [
        (0x00, &[][..]),
        (0x01, &[0x02, 0x03]),
        // Whatever follows: a level that is none, and half a record.
        (0x01, &[0x06, 0x00]),
        (0x17, &[0x02]),
    ] {
        let bytes = [frame(6, &[0xA1, 0x00, id]), records.to_vec()].concat();
        let cursor = world.raw.uni(&bytes).await;
        stopped(&cursor, 3).await;
    }
    world.survives().await;
}

async fn wire_17_22_credit_where_no_queue_is(case: Case) {
    let mut world = World::greeted(case).await;
    for path in ["/md", "/jobs", "/echo", "/nobody"] {
        let header = [&[0xA3, 0x00][..], &text(path), &[0x01, 0x60, 0x02, 0x05]].concat();
        world.raw.say(&frame(5, &header)).await;
    }
    world.survives().await;
    world.raw.hears_nothing().await;
}

async fn wire_17_23_s17_16_unsubscribe_of_what_is_not_held(case: Case) {
    let mut world = World::greeted(case).await;
    world.raw.say(&subscription(3, "/md", "a")).await;
    for (path, filter) in [("/md", "b"), ("/nobody", "a"), ("/jobs", ""), ("/md", "")] {
        world.raw.say(&subscription(4, path, filter)).await;
    }
    world.survives().await;
    world.raw.hears_nothing().await;
}

/// A request to nowhere, or to what takes none: ERROR and FIN on the reply
/// half, STOP on the request half.
async fn refused(world: &World, path: &str, stop: u32, code: u8) {
    let (request, mut reply) = world.raw.exchange(&data(path)).await;
    let answer = soon(reply.read_to_end(64)).await.unwrap();
    assert_eq!(answer, error(code), "{path}");
    stopped(&request, stop).await;
}

async fn wire_17_25_misrouted_streams(case: Case) {
    let mut world = World::greeted(case).await;
    let (one_way, exchanges): (&[_], &[_]) = match case.role {
        Role::Server => (
            &[
                ("/nobody", 8),
                ("", 8),
                ("jobs", 8),
                ("/echo", 9),
                ("/md", 9),
            ],
            &[("/nobody", 8, 1), ("/jobs", 9, 3), ("/md", 9, 3)],
        ),
        // A dialler's namespace holds what it registered there and no more.
        Role::Client => (
            &[("/nobody", 8), ("/echo", 8), ("/md/", 8)],
            &[("/nobody", 8, 1), ("/md", 9, 3)],
        ),
    };
    for (path, code) in one_way {
        let stream = world.raw.uni(&data(path)).await;
        stopped(&stream, *code).await;
    }
    for (path, stop, code) in exchanges {
        refused(&world, path, *stop, *code).await;
    }
    world.survives().await;
}

async fn wire_17_28_reset_before_fin(case: Case) {
    let mut world = World::greeted(case).await;
    // In the head: nobody hears of it.
    let mut cut = world.raw.uni(&data(world.path())[..4]).await;
    cut.reset(3_u32.into()).unwrap();
    // In the payload: what came is not a whole one. More than a stream's
    // window, so that once it is written the application is reading it.
    let transfer = world.transfer(&vec![7; 3 << 20]);
    let mut cut = world.raw.uni(&transfer).await;
    cut.reset(3_u32.into()).unwrap();
    assert_eq!(world.arrival().await, Err("Canceled".into()));
    world.survives().await;
}

/// Whoever sends one all the same is answered by the QUIC stack, which knows
/// only what was advertised.
async fn wire_17_30_no_datagrams_are_advertised(case: Case) {
    let mut world = World::greeted(case).await;
    let sent = world
        .raw
        .connection
        .send_datagram(b"\x00hi".to_vec().into());
    assert_eq!(sent, Err(quinn::SendDatagramError::UnsupportedByPeer));
    world.survives().await;
}

/// A connection on which the hostile peer offered flows (1) and path reports
/// (2), and which of them the runtime offers too.
async fn capable(case: Case) -> (World, Vec<u64>) {
    let tuning = Tuning {
        flows_and_reports: true,
        ..Tuning::default()
    };
    let mut world = World::silent(case, &tuning).await;
    let all = [
        0xA5, 0x00, 0x81, 0x00, 0x01, 0x19, 0x40, 0x00, 0x02, 0x01, 0x03, 0x82, 0x01, 0x02, 0x04,
        0x80,
    ];
    world.raw.say(&frame(0, &all)).await;
    // A REPORT may be opened before HELLO, and stays open.
    let theirs = loop {
        let mut stream = soon(world.raw.connection.accept_uni()).await.unwrap();
        let mut preamble = [0; 3];
        soon(stream.read_exact(&mut preamble)).await.unwrap();
        if preamble[1] == 0 {
            break soon(stream.read_to_end(1024)).await.unwrap();
        }
    };
    if let Some(outcome) = world.dialled().await {
        assert_eq!(outcome, Ok(()));
    }
    world.survives().await;
    (world, Hello::decode(&theirs).unwrap().capabilities)
}

fn flow(id: u8) -> Vec<u8> {
    let header = [&[0xA2, 0x00][..], &text("/raw"), &[0x01, id]].concat();
    frame(7, &header)
}

/// A runtime without flows closes for the FLOW itself; one with them takes the
/// flow and closes for what is wrong with it.
async fn wire_17_18_flow_with_a_byte_too_many_or_an_id_in_use(case: Case) {
    for repeated in [false, true] {
        let (mut world, offered) = capable(case).await;
        let mut flow = world.raw.uni(&flow(0)).await;
        if offered.contains(&1) {
            // Held open, it is taken, and one beside it.
            let _beside = world.raw.uni(&self::flow(1)).await;
            world.survives().await;
        }
        let _again;
        if repeated {
            _again = world.raw.uni(&self::flow(0)).await;
        } else {
            drop(flow.write_all(&[0x00]).await);
        }
        world.raw.closed_with(codes::PROTOCOL_VIOLATION).await;
    }
}

/// Only a binding has a path that takes flows.
#[tokio::test]
async fn wire_17_18_published_server() {
    wire_17_18_flow_with_a_byte_too_many_or_an_id_in_use(crate::PUBLISHED_SERVER).await;
}

/// As for flows.
async fn wire_17_19_report_that_is_wrong(case: Case) {
    let head = frame(8, &[0xA0]);
    for bad in [
        // 257 bytes, a map with bytes left over, a key twice, cut at FIN.
        [&[0x41, 0x01, 0xA0][..], &[0; 256]].concat(),
        vec![0x03, 0xA0, 0x00, 0x00],
        vec![0x05, 0xA2, 0x00, 0x01, 0x00, 0x01],
        vec![0x03, 0xA1, 0x00],
    ] {
        let (mut world, offered) = capable(case).await;
        if offered.contains(&2) {
            let mut good = world.raw.uni(&head).await;
            good.write_all(&[0x01, 0xA0, 0x03, 0xA1, 0x00, 0x05])
                .await
                .unwrap();
            world.survives().await;
            good.write_all(&bad).await.unwrap();
            good.finish().unwrap();
        } else {
            world.raw.say(&[&head[..], &bad].concat()).await;
        }
        world.raw.closed_with(codes::PROTOCOL_VIOLATION).await;
    }
    // A second stream of reports.
    let (world, _) = capable(case).await;
    let _first = world.raw.uni(&head).await;
    let _second = world.raw.uni(&head).await;
    world.raw.closed_with(codes::PROTOCOL_VIOLATION).await;
}

/// A runtime without flows takes no datagram at all, which is row 30.
async fn wire_17_29_datagram_for_no_flow(case: Case) {
    let (mut world, offered) = capable(case).await;
    for datagram in [&b"\x3Fnobody"[..], b"", b"\x40", b"\xC0\x00"] {
        let sent = world.raw.connection.send_datagram(datagram.to_vec().into());
        if offered.contains(&1) {
            assert_eq!(sent, Ok(()));
        } else {
            assert_eq!(sent, Err(quinn::SendDatagramError::UnsupportedByPeer));
        }
    }
    world.survives().await;
}
