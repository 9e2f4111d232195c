//! Start, probes, drain.

use std::time::Duration;

use tokio::time::Instant;

use weida_testkit::{Process, Signal, bin};

use crate::world::{Gateway, PATIENCE, finish};

#[tokio::test(flavor = "multi_thread")]
async fn item_16_status_answers_for_scripts() {
    let gateway = Gateway::quickstart(&[]).await;
    let binary = bin("weida-gateway").unwrap();
    let line = gateway
        .process
        .stdout()
        .into_iter()
        .find(|line| line.starts_with('{'))
        .unwrap();
    let ready: serde_json::Value = serde_json::from_str(&line).unwrap();
    let admin = ready["admin"].as_str().unwrap();
    for probe in ["--ready", "--live"] {
        let (code, out, stderr) = finish(&binary, &["status", probe, "--url", admin], b"").await;
        assert_eq!(code, Some(0), "{stderr}");
        assert!(out.is_empty(), "a probe is silent");
    }
    let (code, out, _) = finish(&binary, &["status", "--json", "--url", admin], b"").await;
    assert_eq!(code, Some(0));
    let status: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        status["detail"]["status"]["fingerprint"],
        gateway.fingerprint.as_str()
    );
    let (code, _, _) = finish(
        &binary,
        &["status", "--ready", "--url", "http://127.0.0.1:1"],
        b"",
    )
    .await;
    assert_eq!(code, Some(7), "nobody listens there");
}

/// SIGTERM under load: out inside the bound, with the protocol's goodbye and one summary line.
#[tokio::test(flavor = "multi_thread")]
async fn scenario_10_sigterm_drains_within_its_bound() {
    let mut gateway = Gateway::quickstart(&[]).await;
    let port = gateway.mqtt_port.to_string();
    let subscriber = Process::builder("stdbuf")
        .args([
            "-oL",
            "mosquitto_sub",
            "-V",
            "5",
            "-p",
            &port,
            "-d",
            "-t",
            "a/#",
        ])
        .spawn()
        .await
        .unwrap();
    assert!(subscriber.line("Subscribed", PATIENCE).await.is_some());
    let mut publisher = Process::builder("mosquitto_pub")
        .args(["-p", &port, "-t", "a/b", "-q", "1", "-l"])
        .spawn()
        .await
        .unwrap();
    for number in 0..500 {
        publisher
            .write_stdin(format!("{number}\n").as_bytes())
            .unwrap();
    }
    assert!(subscriber.line("499", PATIENCE).await.is_some());
    let begun = Instant::now();
    gateway.process.signal(Signal::Term).unwrap();
    let status = gateway
        .process
        .wait(Duration::from_secs(10))
        .await
        .unwrap()
        .expect("it ends inside the bound");
    assert_eq!(status.code(), Some(0));
    // A deadline promised to users: `docker stop` gives ten seconds.
    assert!(begun.elapsed() < Duration::from_secs(10));
    assert!(
        gateway
            .process
            .line("delivered", Duration::from_secs(2))
            .await
            .is_some(),
        "one summary line"
    );
}
