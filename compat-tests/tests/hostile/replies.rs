//! A hostile replier: what is wrong on a reply half fails one exchange and
//! nothing else. `[wire 6, 17, 28 item 2]`, `[weida S17-21, S17-22]`

use crate::both;
use crate::raw::{data, error, frame, soon, stopped, subscription};
use crate::subject::{Subject, Tuning};
use crate::world::{Replying, frame_of_reply};

both! {
    wire_17_26_broken_reply_half
    wire_17_26_reply_cut_by_the_end
    wire_17_27_error_with_an_unknown_code
    wire_17_28_reply_reset_before_fin
    s17_21_a_reply_half_carries_one_frame
    s17_22_a_publisher_path_answers_unsupported
}

async fn wire_17_26_broken_reply_half(subject: Subject) {
    let world = Replying::new(subject).await;
    world.survives().await;
    for bad in [
        // Another kind.
        subscription(3, "/echo", ""),
        crate::raw::HELLO.to_vec(),
        frame(6, &[0xA1, 0x00, 0x01]),
        frame(8, &[0xA0]),
        frame(9, &[0xA0]),
        // Bad magic.
        vec![0x58, 0x01, 0x01, 0xA0],
        // A header that does not decode, or is longer than the cap.
        frame(1, &[0x80]),
        frame(1, &[]),
        frame(2, &[0xA0]),
        vec![0x57, 0x01, 0x80, 0x00, 0x40, 0x01],
    ] {
        assert_eq!(
            world.answered(&bad).await,
            Err("Protocol".into()),
            "{bad:02X?}"
        );
        world.survives().await;
    }
}

/// The requester wants nothing more of what it cannot read. `[wire 10]`
///
/// The published one stops with 0 here.
#[tokio::test]
async fn wire_17_26_the_rest_of_a_broken_reply_is_stopped() {
    let world = Replying::new(Subject::Ours).await;
    for bad in [
        frame(1, &[0x80]),
        frame(2, &[0xA0]),
        frame(9, &[0xA0]),
        frame(3, &[0xA0]),
        vec![0x58, 0x01, 0x01, 0xA0],
    ] {
        let (pending, mut reply) = world.asked().await;
        reply.write_all(&bad).await.unwrap();
        assert_eq!(soon(pending).await.unwrap(), Err("Protocol".into()));
        stopped(&reply, 3).await;
    }
    world.survives().await;
}

async fn wire_17_26_reply_cut_by_the_end(subject: Subject) {
    let world = Replying::new(subject).await;
    let whole = frame_of_reply();
    for cut in 0..whole.len() {
        let outcome = world.answered(&whole[..cut]).await;
        assert_eq!(outcome, Err("Protocol".into()), "cut at {cut}");
    }
    assert_eq!(world.answered(&whole).await, Ok(vec![]));
    world.survives().await;
}

async fn wire_17_27_error_with_an_unknown_code(subject: Subject) {
    let world = Replying::new(subject).await;
    for (code, outcome) in [
        (1, "UnknownEndpoint"),
        (2, "Rejected"),
        (3, "Unsupported"),
        (4, "Transport"),
        (5, "NoReply"),
    ] {
        assert_eq!(world.answered(&error(code)).await, Err(outcome.into()));
    }
    for code in [0, 6, 23] {
        let outcome = world.answered(&error(code)).await;
        assert_eq!(outcome, Err("Transport".into()), "code {code}");
    }
    world.survives().await;
}

async fn wire_17_28_reply_reset_before_fin(subject: Subject) {
    let world = Replying::new(subject).await;
    for bytes in [
        vec![],
        frame_of_reply(),
        [frame_of_reply(), b"half".to_vec()].concat(),
    ] {
        let (pending, mut reply) = world.asked().await;
        reply.write_all(&bytes).await.unwrap();
        reply.reset(3_u32.into()).unwrap();
        assert_eq!(soon(pending).await.unwrap(), Err("Canceled".into()));
    }
    world.survives().await;
}

/// After DATA everything is payload and after ERROR nothing counts: a second
/// frame on a reply half does not exist.
async fn s17_21_a_reply_half_carries_one_frame(subject: Subject) {
    let world = Replying::new(subject).await;
    let twice = [frame_of_reply(), error(2)].concat();
    assert_eq!(world.answered(&twice).await, Ok(error(2)));
    let after = [error(2), frame_of_reply(), b"late".to_vec()].concat();
    assert_eq!(world.answered(&after).await, Err("Rejected".into()));
    // The reply may come before the request half has ended, and with a path,
    // which is ignored there.
    assert_eq!(world.answered(&data("/other")).await, Ok(vec![]));
    world.survives().await;
}

async fn s17_22_a_publisher_path_answers_unsupported(subject: Subject) {
    let served = crate::subject::serve(subject, &Tuning::default()).await;
    let raw = crate::raw::Raw::dial(served.addr).await;
    let echo = [data("/echo"), b"ping".to_vec()].concat();
    assert!(raw.request(&echo).await.ends_with(b"ping"));
    let (request, mut reply) = raw.exchange(&data("/md")).await;
    // ERROR, and nothing after it but the FIN.
    assert_eq!(soon(reply.read_to_end(64)).await.unwrap(), error(3));
    stopped(&request, 9).await;
    assert!(raw.request(&echo).await.ends_with(b"ping"));
    raw.is_open();
}
