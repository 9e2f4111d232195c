//! What a newcomer does: quickstart, and a message each way with the stock clients.

use weida_testkit::{Process, bin};

use crate::world::{Gateway, PATIENCE, finish};

/// `mosquitto_pub -t plant/7/temp -m 21.5 -q 1` makes `weida sub` print it with topic `plant.7.temp`.
#[tokio::test(flavor = "multi_thread")]
async fn done_when_1_a_message_crosses_from_mqtt_to_weida() {
    let gateway = Gateway::quickstart(&[]).await;
    let subscriber = Process::builder(bin("weida").unwrap())
        .args(["sub", "--count", "1", &format!("{}/mqtt", gateway.weida)])
        .spawn()
        .await
        .unwrap();
    let port = gateway.mqtt_port.to_string();
    // A fan-out keeps nothing: publish until the subscription stands and a copy was taken.
    let crossing = async {
        loop {
            let (code, _, stderr) = finish(
                "mosquitto_pub",
                &["-p", &port, "-t", "plant/7/temp", "-m", "21.5", "-q", "1"],
                b"",
            )
            .await;
            assert_eq!(code, Some(0), "{stderr}");
            if subscriber
                .line("21.5", std::time::Duration::from_millis(300))
                .await
                .is_some()
            {
                break;
            }
        }
    };
    tokio::time::timeout(PATIENCE, crossing)
        .await
        .expect("a message crosses");
    assert_eq!(subscriber.stdout(), ["21.5"]);
    assert_eq!(subscriber.stderr(), ["plant.7.temp"]);
    let connects =
        r#"weida_gateway_mqtt_connects_total{listener="mqtt",version="3.1.1",result="success"}"#;
    gateway.metric_reaches(connects, 1.0).await;
    gateway.law_holds().await;
}

/// `weida send --topic cmd.7.open` to `/to-mqtt` reaches `mosquitto_sub -t 'cmd/#'`; one without a topic is refused with the
/// reason.
#[tokio::test(flavor = "multi_thread")]
async fn done_when_2_a_message_crosses_from_weida_to_mqtt() {
    let gateway = Gateway::quickstart(&[]).await;
    let port = gateway.mqtt_port.to_string();
    let subscriber = Process::builder("stdbuf")
        .args([
            "-oL",
            "mosquitto_sub",
            "-p",
            &port,
            "-v",
            "-d",
            "-t",
            "cmd/#",
        ])
        .spawn()
        .await
        .unwrap();
    assert!(subscriber.line("Subscribed", PATIENCE).await.is_some());
    let to_mqtt = format!("{}/to-mqtt", gateway.weida);
    let weida = bin("weida").unwrap();
    let (code, _, stderr) =
        finish(&weida, &["send", "--topic", "cmd.7.open", &to_mqtt], b"now").await;
    assert_eq!(code, Some(0), "{stderr}");
    assert!(subscriber.line("cmd/7/open now", PATIENCE).await.is_some());

    // Longer than the stream window, so that the refusal is sure to be seen by its sender.
    let long = vec![b'x'; 3 << 20];
    let (code, _, stderr) = finish(&weida, &["send", &to_mqtt], &long).await;
    assert_eq!(code, Some(3), "{stderr}");
    let refused =
        r#"weida_gateway_listener_refused_total{listener="weida",op="publish",cause="bad_name"}"#;
    gateway.metric_reaches(refused, 1.0).await;
    assert!(
        gateway
            .process
            .line("names no topic", PATIENCE)
            .await
            .is_some(),
        "the reason is logged"
    );
    gateway.law_holds().await;
}

/// `--demo` shows a message each way without any foreign client.
#[tokio::test(flavor = "multi_thread")]
async fn item_16_the_demo_publishes_and_receives_by_itself() {
    let gateway = Gateway::quickstart(&["--demo"]).await;
    let line = gateway
        .process
        .stdout()
        .into_iter()
        .find(|line| line.starts_with('{'))
        .unwrap();
    let ready: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(ready["demo"].as_array().unwrap().len(), 2, "{line}");
    gateway.law_holds().await;
}
