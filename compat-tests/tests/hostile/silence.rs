//! A SUBSCRIBE is never answered, and late streams of a drain are.
//! `[wire 21, 22]`, `[weida 21]`

use std::net::SocketAddr;

use weida::{Admission, Identity, Listener, Runtime, RuntimeConfig};

use crate::raw::{
    Dial, HELLO, Raw, data, eventually, loopback, soon, stopped, subscription, was_reset,
};
use crate::relay::Relay;
use crate::subject::{self, Subject, Tuning};
use crate::world::{Case, World};
use crate::{both, everywhere};

everywhere! {
    s17_1_a_subscription_is_never_answered
}

both! {
    wire_30_17_late_streams_while_draining
}

async fn s17_1_a_subscription_is_never_answered(case: Case) {
    let mut world = World::greeted(case).await;
    for kind in [3, 3, 4, 4] {
        for filter in ["", "a.*", "plant.#"] {
            for path in ["/md", "/nobody", "/jobs"] {
                let mut stream = world.raw.uni(&subscription(kind, path, filter)).await;
                stream.finish().unwrap();
                // Received whole, neither stopped nor answered.
                let end = soon(stream.stopped()).await;
                assert_eq!(end, Ok(None));
            }
        }
    }
    world.raw.hears_nothing().await;
    world.survives().await;
}

/// A namespace that is bound, and what keeps it so.
async fn bound(listener: &Listener) -> (SocketAddr, weida::Binding) {
    let identity = Identity::generate().unwrap();
    let binding = listener.bind_quic(loopback(), identity).await.unwrap();
    (binding.local_addr(), binding)
}

/// Everything a server does that its subscriber can see.
async fn trace(server: SocketAddr, publish: impl FnOnce()) -> Vec<String> {
    let raw = Dial::default().dial(server).await.unwrap();
    raw.say(HELLO).await;
    let mut seen = vec![format!("{:02X?}", raw.hears().await)];
    let mut stream = raw.uni(&subscription(3, "/md", "a.*")).await;
    stream.finish().unwrap();
    seen.push(format!("{:?}", soon(stream.stopped()).await));
    // Answered after the SUBSCRIBE, so by now that is dealt with.
    seen.push(format!("{:02X?}", raw.request(&data("/nobody")).await));
    publish();
    raw.hears_nothing().await;
    seen.push(format!("{:?}", raw.connection.close_reason()));
    seen
}

/// Recorded without a match, ignored, and every copy declined look the same.
#[tokio::test]
async fn s17_8_three_silences_are_one() {
    let runtime = Runtime::new(RuntimeConfig::default()).unwrap();

    let listener = runtime.listener();
    let publisher = listener.publisher("/md").unwrap();
    let (server, _binding) = bound(&listener).await;
    let recorded = trace(server, || {
        assert_eq!(publisher.publish("b.c", "no match").unwrap(), 0);
    })
    .await;

    let other = runtime.listener();
    let _puller = other.puller("/jobs").unwrap();
    let (server, _binding) = bound(&other).await;
    let ignored = trace(server, || {}).await;

    let third = runtime.listener();
    let publisher = third.publisher("/md").unwrap();
    let publisher = publisher.with_admission(|_| Admission::DeclineCopies);
    let (server, _binding) = bound(&third).await;
    let declined = trace(server, || {
        publisher.publish("a.b", "declined").unwrap();
    })
    .await;
    assert_eq!(publisher.dropped_on("a.b").unwrap().declined, 1);

    assert_eq!(recorded, ignored);
    assert_eq!(recorded, declined);
}

/// A finished reply whose receipt is kept from the binding holds the drain
/// open; what arrives meanwhile is refused. `[weida DR-4]`
async fn wire_30_17_late_streams_while_draining(subject: Subject) {
    let served = subject::serve(subject, &Tuning::default()).await;
    let raw = Raw::dial(served.addr).await;
    // Before the drain both kinds are taken.
    let (early, _reply) = raw.exchange(&data("/nobody")).await;
    stopped(&early, 8).await;

    let relay = Relay::toward(served.addr).await;
    relay.open(true);
    let slow = Raw::dial(relay.addr).await;
    relay.open(false);
    let (mut send, mut reply) = slow.exchange(&data("/echo")).await;
    send.finish().unwrap();
    // The reply, and the reply again because nobody acknowledged it.
    relay.answered(3).await;

    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(served.drain);
    // Until admission has ended, a stream is refused for where it goes.
    let code = loop {
        let late = raw.uni(&data("/nobody")).await;
        let code = soon(late.stopped()).await.unwrap();
        if code != Some(8_u32.into()) {
            break code;
        }
    };
    assert_eq!(code, Some(6_u32.into()));
    // Control frames included.
    let late = raw.uni(&subscription(3, "/md", "")).await;
    stopped(&late, 6).await;
    let (late, mut answer) = raw.exchange(&data("/echo")).await;
    stopped(&late, 6).await;
    was_reset(&mut answer, 6).await;
    // A late dial is refused before its handshake.
    assert!(Dial::default().dial(served.addr).await.is_err());
    raw.is_open();
    // What was finished is delivered, and with that the drain is over.
    relay.open(true);
    let reply = soon(reply.read_to_end(64)).await.unwrap();
    assert_eq!(reply, b"\x57\x01\x01\xA0");
    raw.closed_with(6).await;
    slow.closed_with(6).await;
    drop(served.guard);
}

/// The neighbour of everything above: a copy does arrive.
#[tokio::test]
async fn s17_1_a_copy_is_all_that_ever_comes() {
    let runtime = Runtime::new(RuntimeConfig::default()).unwrap();
    let listener = runtime.listener();
    let publisher = listener.publisher("/md").unwrap();
    let (server, _binding) = bound(&listener).await;
    let raw = Raw::dial(server).await;
    raw.say(&subscription(3, "/md", "a.*")).await;
    eventually(|| publisher.subscriber_count() == 1).await;
    assert_eq!(publisher.publish("a.b", "x").unwrap(), 1);
    let copy = crate::raw::data_with("/md", 2, b"\x01\x01\x05\x63a.b");
    assert_eq!(raw.hears().await, [&copy[..], b"x"].concat());
    raw.hears_nothing().await;
}
