//! Fan-out rules that need no socket. [mqtt 5.3] [mqtt 5.4]

use std::collections::VecDeque;

use super::*;
use crate::codec::{Publish, TopicName};
use crate::config::QueueLimits;
use crate::metrics::ListenerMetrics;
use crate::session::{Outbound, Pull};
use weida_bridge::{Principal, SessionKey, SessionRef};

fn session(id: &str) -> Arc<Session> {
    let shown = SessionRef {
        adapter: "mqtt",
        listener: "l".into(),
        principal: Some(Principal::anonymous()),
        foreign: id.into(),
        address: None,
    };
    Arc::new(Session::new(
        SessionKey::new("g", Principal::anonymous(), id),
        crate::acl::Access::default(),
        Arc::new(shown),
        "127.0.0.1:1".parse().unwrap(),
        Outbound::new(QueueLimits::default(), Arc::new(ListenerMetrics::default())),
    ))
}

fn subscribe(router: &Router, session: &Arc<Session>, filter: &str, qos: QoS, id: Option<u32>) {
    subscribe_with(router, session, filter, SubscribeOptions::new(qos), id);
}

fn subscribe_with(
    router: &Router,
    session: &Arc<Session>,
    filter: &str,
    options: SubscribeOptions,
    id: Option<u32>,
) {
    let subscription = Subscription {
        session: Arc::clone(session),
        options,
        id: id.and_then(SubscriptionId::new),
        filtered: false,
    };
    let filter = TopicFilter::parse(filter).unwrap();
    router.subscribe(&filter, subscription, 100).unwrap();
}

fn publish(router: &Router, topic: &str, qos: QoS, origin: u64) -> Delivered {
    let topic = TopicName::parse(topic).unwrap();
    let bytes = topic.clone();
    let make = || {
        let publish = Publish {
            qos,
            topic,
            retain: true,
            ..Publish::default()
        };
        Arc::new(Message::new(publish, tokio::time::Instant::now()))
    };
    router.publish(bytes.as_bytes(), origin, make, None, |_| {})
}

fn received(session: &Session) -> Vec<(QoS, Vec<u32>, bool)> {
    let mut copies = VecDeque::new();
    session.outbound().pull(
        Pull {
            bytes: usize::MAX,
            window: 100,
        },
        &mut copies,
    );
    let ids = |copy: &MessageCopy| {
        let mut ids: Vec<u32> = copy
            .subscription_ids
            .as_slice()
            .iter()
            .map(|id| id.get())
            .collect();
        ids.sort_unstable();
        ids
    };
    copies
        .iter()
        .map(|copy| (copy.qos, ids(copy), copy.retain))
        .collect()
}

#[test]
fn mqtt_5_4_overlapping_filters_give_one_copy_with_all_identifiers() {
    let router = Router::default();
    let (a, b) = (session("a"), session("b"));
    subscribe(&router, &a, "x/#", QoS::AtMostOnce, Some(1));
    subscribe(&router, &a, "x/+", QoS::AtLeastOnce, Some(2));
    subscribe(&router, &a, "x/y", QoS::AtMostOnce, None);
    subscribe(&router, &b, "x/y", QoS::AtLeastOnce, None);
    assert_eq!(publish(&router, "x/y", QoS::AtLeastOnce, 0).matched, 2);
    assert_eq!(received(&a), [(QoS::AtLeastOnce, vec![1, 2], false)]);
    assert_eq!(received(&b), [(QoS::AtLeastOnce, vec![], false)]);
}

/// Never higher than published, never higher than granted. [mqtt 4.4]
#[test]
fn mqtt_4_4_the_copy_takes_the_smaller_qos() {
    let router = Router::default();
    let a = session("a");
    subscribe(&router, &a, "x", QoS::AtLeastOnce, None);
    publish(&router, "x", QoS::AtMostOnce, 0);
    assert_eq!(received(&a), [(QoS::AtMostOnce, vec![], false)]);
}

#[test]
fn mqtt_5_3_no_local_and_retain_as_published() {
    let router = Router::default();
    let a = session("a");
    let options = SubscribeOptions {
        no_local: true,
        retain_as_published: true,
        ..SubscribeOptions::new(QoS::AtLeastOnce)
    };
    subscribe_with(&router, &a, "x", options, None);
    assert_eq!(
        publish(&router, "x", QoS::AtMostOnce, a.number()).matched,
        0
    );
    assert_eq!(publish(&router, "x", QoS::AtMostOnce, 0).matched, 1);
    assert_eq!(received(&a), [(QoS::AtMostOnce, vec![], true)]);
}

/// Resubscribing replaces; nothing is lost or doubled. [MQTT-3.8.4-3]
#[test]
fn mqtt_5_3_resubscribe_replaces_atomically() {
    let router = Router::default();
    let a = session("a");
    subscribe(&router, &a, "x", QoS::AtMostOnce, Some(1));
    subscribe(&router, &a, "x", QoS::AtLeastOnce, Some(2));
    assert_eq!(router.len(), 1);
    publish(&router, "x", QoS::AtLeastOnce, 0);
    assert_eq!(received(&a), [(QoS::AtLeastOnce, vec![2], false)]);
    router.unsubscribe(&a, [&b"x"[..]]);
    assert_eq!(
        publish(&router, "x", QoS::AtLeastOnce, 0),
        Delivered::default()
    );
}

#[test]
fn mqtt_8_1_the_total_of_filters_is_bounded() {
    let router = Router::default();
    let a = session("a");
    let subscription = |session: &Arc<Session>| Subscription {
        session: Arc::clone(session),
        options: SubscribeOptions::new(QoS::AtMostOnce),
        id: None,
        filtered: false,
    };
    let filter = |text: &str| TopicFilter::parse(text).unwrap();
    assert_eq!(
        router.subscribe(&filter("x"), subscription(&a), 1),
        Ok(true)
    );
    assert_eq!(
        router.subscribe(&filter("x"), subscription(&a), 1),
        Ok(false),
        "replacing is free"
    );
    assert_eq!(
        router.subscribe(&filter("y"), subscription(&a), 1),
        Err(Full)
    );
    assert_eq!(publish(&router, "y", QoS::AtMostOnce, 0).matched, 0);
}

#[tokio::test]
async fn a_settlement_waits_for_every_qos1_copy() {
    let router = Router::default();
    let (a, b) = (session("a"), session("b"));
    subscribe(&router, &a, "x", QoS::AtLeastOnce, None);
    subscribe(&router, &b, "x", QoS::AtMostOnce, None);
    let settlement = Settlement::new();
    let make = || test_message("x");
    let delivered = router.publish(b"x", 0, make, Some(&settlement), |_| {});
    assert_eq!(delivered.matched, 2);
    let mut copies = VecDeque::new();
    a.outbound().pull(
        Pull {
            bytes: 1 << 20,
            window: 1,
        },
        &mut copies,
    );
    copies.pop_front().unwrap().ticket.unwrap().acked();
    assert_eq!(
        settlement.finished().await,
        Tally {
            acked: 1,
            refused: 0,
            lost: 0
        }
    );
}
