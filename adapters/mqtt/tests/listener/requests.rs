//! Request and reply in both directions. [mqtt 11.4]

use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;
use weida_bridge::{AckOn, DropCause, MemoryFabric, Outcome, Pattern, Refusal, Reply};
use weida_mqtt::codec::{Publish, QoS, ReasonCode, TopicName};

use crate::common::client::{message, user_properties};
use crate::common::{World, allow, config, egress, envelope, eventually, ingress};

fn request(topic: &str, back: &str) -> Publish {
    let mut publish = message(topic, b"question", QoS::AtLeastOnce);
    publish.properties.message.response_topic = Some(TopicName::parse(back).unwrap());
    publish.properties.message.correlation_data = Some(Bytes::from_static(b"c-1"));
    publish
}

/// The answer of weida comes to the Response Topic with the same Correlation Data.
#[tokio::test]
async fn an_mqtt_requester_gets_the_weida_answer() {
    let fabric = MemoryFabric::new();
    let answer = Reply {
        payload: Bytes::from_static(b"42"),
        ..Reply::default()
    };
    let probe = fabric.add_ingress("ask", Outcome::Reply(Box::new(answer)));
    let mut config = config();
    config.ingress = vec![ingress("ask", "ask/#", Pattern::Request, AckOn::Reply)];
    let world = World::start(config, fabric).await;
    let mut client = world.client("c").await;
    client.subscribe("back/c", QoS::AtLeastOnce).await;
    client.publish_with(request("ask/life", "back/c")).await;
    let (mut acked, mut got) = (None, None);
    for _ in 0..2 {
        match client.next().await.unwrap() {
            weida_mqtt::codec::Packet::PubAck(ack) => acked = Some(ack.reason),
            weida_mqtt::codec::Packet::Publish(publish) => got = Some(publish),
            other => panic!("unexpected {other:?}"),
        }
    }
    let got = got.unwrap();
    assert_eq!(acked, Some(ReasonCode::Success));
    assert_eq!(
        (got.topic.as_str(), &got.payload[..]),
        ("back/c", &b"42"[..])
    );
    assert_eq!(
        got.properties.message.correlation_data.as_deref(),
        Some(&b"c-1"[..])
    );
    assert_eq!(probe.next().await.topic.as_str(), "ask.life");
}

/// Every failure is an empty answer with the word, never a hang. [reconciled R6]
#[tokio::test]
async fn a_failed_request_is_answered_with_its_word() {
    let fabric = MemoryFabric::new();
    let probe = fabric.add_ingress("ask", Outcome::Indeterminate);
    let mut config = config();
    config.ingress = vec![ingress("ask", "ask/#", Pattern::Request, AckOn::Sent)];
    let world = World::start(config, fabric).await;
    let mut client = world.client("c").await;
    let mut watch = world.client("watch").await;
    watch.subscribe("back/#", QoS::AtMostOnce).await;
    let rows = [
        (
            Outcome::Refused(Refusal::UnknownEndpoint),
            "unknown-endpoint",
        ),
        (Outcome::Refused(Refusal::Rejected), "rejected"),
        (Outcome::Refused(Refusal::TooLarge), "too-large"),
        (Outcome::Expired, "no-reply"),
        (Outcome::Indeterminate, "indeterminate"),
    ];
    for (outcome, word) in rows {
        probe.answer(outcome);
        client.publish_with(request("ask/x", "back/c")).await;
        assert_eq!(
            client.puback().await.1,
            ReasonCode::Success,
            "sent = the exchange is open"
        );
        let got = watch.message().await;
        assert!(got.payload.is_empty());
        let pairs: Vec<_> = got.properties.message.user_properties.iter().collect();
        assert_eq!(pairs, [("weida-error", word)]);
    }
}

/// No Response Topic, one the client may not publish to, too many open: refused.
#[tokio::test]
async fn a_request_must_be_answerable_by_its_sender() {
    let fabric = MemoryFabric::new();
    let probe = fabric.add_ingress("ask", Outcome::Indeterminate);
    let mut config = config();
    config.grants = vec![allow("anonymous", &["ask/#", "back/#"], &["#"])];
    config.ingress = vec![ingress("ask", "ask/#", Pattern::Request, AckOn::Sent)];
    config.ingress[0].max_pending_replies = 1;
    let world = World::start(config, fabric).await;
    let mut client = world.client("c").await;
    probe.hold();
    client.publish_with(request("ask/x", "back/c")).await;
    assert_eq!(client.puback().await.1, ReasonCode::Success);
    assert_eq!(
        client.publish_acked("ask/x", b"").await,
        ReasonCode::TopicNameInvalid
    );
    client.publish_with(request("ask/x", "secret/door")).await;
    assert_eq!(client.puback().await.1, ReasonCode::NotAuthorized);
    client.publish_with(request("ask/x", "back/c")).await;
    assert_eq!(client.puback().await.1, ReasonCode::QuotaExceeded);
    probe.release_all();
    eventually("only one was asked", || probe.seen() == 1).await;
}

/// A weida requester gets the first right answer of an MQTT responder.
#[tokio::test]
async fn a_weida_requester_gets_the_mqtt_answer() {
    let fabric = MemoryFabric::new();
    let probe = fabric.add_egress("rpc", 4);
    let mut config = config();
    config.egress = vec![egress("rpc", Pattern::Reply, AckOn::Reply)];
    let world = World::start(config, fabric).await;
    let mut responder = world.client("device").await;
    let mut stranger = world.client("stranger").await;
    responder.subscribe("rpc/#", QoS::AtLeastOnce).await;
    let deadline = Instant::now() + Duration::from_secs(5);
    let settled = probe
        .request(envelope("rpc", "rpc.7", b"state?"), deadline)
        .await
        .unwrap();
    let asked = responder.message().await;
    responder.acknowledge(&asked).await;
    let back = asked.properties.message.response_topic.clone().unwrap();
    assert!(back.as_str().starts_with("$reply/abababababababab/"));
    assert!(asked.properties.message.message_expiry_secs.is_some());
    let mut answer = message("x", b"open", QoS::AtLeastOnce);
    answer.topic = back;
    answer.properties.message.user_properties = user_properties(&[("site", "7")]);
    // Without the correlation, and from a session that was not asked: refused.
    responder.publish_with(answer.clone()).await;
    assert_eq!(responder.puback().await.1, ReasonCode::NotAuthorized);
    answer.properties.message.correlation_data = asked.properties.message.correlation_data.clone();
    stranger.publish_with(answer.clone()).await;
    assert_eq!(stranger.puback().await.1, ReasonCode::NotAuthorized);
    responder.publish_with(answer.clone()).await;
    assert_eq!(responder.puback().await.1, ReasonCode::Success);
    let Outcome::Reply(reply) = settled.await else {
        panic!("no reply")
    };
    assert_eq!(&reply.payload[..], b"open");
    assert_eq!(reply.meta.get("site"), Some("7"));
    responder.publish_with(answer).await;
    assert_eq!(
        responder.puback().await.1,
        ReasonCode::NoMatchingSubscribers,
        "one shot"
    );
    assert_eq!(world.metrics.late_reply.get(), 1);
}

/// Nobody subscribed: the requester hears at once. Nobody answers: it hears at the deadline.
#[tokio::test]
async fn a_weida_requester_never_hangs() {
    let fabric = MemoryFabric::new();
    let probe = fabric.add_egress("rpc", 4);
    let mut config = config();
    config.egress = vec![egress("rpc", Pattern::Reply, AckOn::Reply)];
    let world = World::start(config, fabric).await;
    let started = Instant::now();
    let deadline = started + Duration::from_secs(5);
    let settled = probe
        .request(envelope("rpc", "rpc.7", b""), deadline)
        .await
        .unwrap();
    assert_eq!(settled.await, Outcome::Dropped(DropCause::NoSubscriber));
    assert!(started.elapsed() < Duration::from_secs(1));
    let mut mute = world.client("mute").await;
    mute.subscribe("rpc/#", QoS::AtLeastOnce).await;
    let deadline = Instant::now() + Duration::from_millis(200);
    let settled = probe
        .request(envelope("rpc", "rpc.7", b""), deadline)
        .await
        .unwrap();
    assert_eq!(settled.await, Outcome::Indeterminate);
}
