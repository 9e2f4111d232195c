//! What clients do in anger, and that it costs what it may cost and is counted.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::world::{Gateway, PATIENCE, admin_port, finish};
use weida_testkit::bin;

/// CONNECT of MQTT 3.1.1 with a clean session; a login makes it longer.
fn connect(client: &str, login: Option<(&str, &str)>) -> Vec<u8> {
    let flags = if login.is_some() { 0xC2 } else { 0x02 };
    let mut body = text("MQTT");
    body.extend([4, flags, 0, 60]);
    body.extend(text(client));
    if let Some((user, password)) = login {
        body.extend(text(user));
        body.extend(text(password));
    }
    packet(0x10, &body)
}

fn text(text: &str) -> Vec<u8> {
    let length = u16::try_from(text.len()).unwrap();
    [&length.to_be_bytes(), text.as_bytes()].concat()
}

fn packet(first: u8, body: &[u8]) -> Vec<u8> {
    let mut packet = vec![first];
    let mut rest = body.len();
    loop {
        let low = u8::try_from(rest % 128).unwrap();
        rest /= 128;
        packet.push(if rest > 0 { low | 0x80 } else { low });
        if rest == 0 {
            break;
        }
    }
    packet.extend_from_slice(body);
    packet
}

/// A connected client, and the return code that it got.
async fn session(port: u16, connect: &[u8]) -> (TcpStream, u8) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    stream.write_all(connect).await.unwrap();
    let mut connack = [0; 4];
    let answered = tokio::time::timeout(PATIENCE, stream.read_exact(&mut connack));
    answered.await.unwrap().unwrap();
    (stream, connack[3])
}

#[tokio::test(flavor = "multi_thread")]
async fn copies_that_a_client_who_does_not_read_loses_are_scraped() {
    let gateway = Gateway::quickstart(&[]).await;
    let (mut deaf, _) = session(gateway.mqtt_port, &connect("deaf", None)).await;
    for (id, qos) in [(1, 0), (2, 1)] {
        let filter = format!("big/{qos}");
        let body = [&[0, id][..], &text(&filter), &[qos]].concat();
        deaf.write_all(&packet(0x82, &body)).await.unwrap();
        let mut suback = [0; 5];
        deaf.read_exact(&mut suback).await.unwrap();
        assert_eq!(suback[4], qos);
    }
    let (mut publisher, _) = session(gateway.mqtt_port, &connect("loud", None)).await;
    let payload = vec![b'x'; 200_000];
    for id in 1..=150_u16 {
        let quiet = [&text("big/0")[..], &payload].concat();
        let sure = [&text("big/1")[..], &id.to_be_bytes(), &payload].concat();
        publisher.write_all(&packet(0x30, &quiet)).await.unwrap();
        publisher.write_all(&packet(0x32, &sure)).await.unwrap();
        let mut puback = [0; 4];
        publisher.read_exact(&mut puback).await.unwrap();
    }
    for policy in ["qos0-oldest", "drop-newest"] {
        let series = format!(
            "weida_gateway_mqtt_queue_dropped_total{{listener=\"mqtt\",policy=\"{policy}\"}}"
        );
        gateway.metric_reaches(&series, 1.0).await;
    }
    drop(deaf);
    for gauge in ["queue_messages", "queue_bytes"] {
        let series = format!("weida_gateway_mqtt_{gauge}{{listener=\"mqtt\"}}");
        let empty = weida_testkit::eventually_some(
            || async { gateway.metric(&series).await.filter(|now| *now < 0.5) },
            PATIENCE,
        )
        .await;
        assert!(empty.is_some(), "{series} does not come back to 0");
    }
    gateway.law_holds().await;
}

/// A hash works in 19 MiB; two per core at once is the bound, however many ask.
#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_wrong_passwords_leaves_no_memory_behind() {
    const MIB: f64 = 1024.0 * 1024.0;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("passwd");
    let file = file.to_str().unwrap();
    let binary = bin("weida-gateway").unwrap();
    let set = finish(
        &binary,
        &["passwd", "--file", file, "set", "ann"],
        b"s3cret\n",
    )
    .await;
    assert_eq!(set.0, Some(0), "{}", set.2);
    let admin = admin_port();
    let gateway = Gateway::run(&format!(
        "[gateway]
data_dir = \"data\"
[[listen]]
name = \"mqtt\"
protocol = \"mqtt\"
bind = \"127.0.0.1:0\"
auth = [\"password\"]
[[credential]]
file = {file:?}
[[grant]]
who = [\"user:*\"]
publish = [\"#\"]
subscribe = [\"#\"]
[admin]
bind = \"127.0.0.1:{admin}\"
"
    ))
    .await;
    let port = gateway.mqtt_port;
    let good = connect("good", Some(("ann", "s3cret")));
    let (_stays, code) = session(port, &good).await;
    assert_eq!(code, 0, "the right password is let in");
    let before = gateway
        .metric("process_resident_memory_bytes")
        .await
        .unwrap();

    let mut flood = tokio::task::JoinSet::new();
    for at in 0..240 {
        let wrong = connect(&format!("wrong{at}"), Some(("ann", &format!("guess {at}"))));
        flood.spawn(async move { session(port, &wrong).await.1 });
    }
    while let Some(code) = flood.join_next().await {
        assert_eq!(code.unwrap(), 4, "bad user name or password");
    }
    let after = gateway
        .metric("process_resident_memory_bytes")
        .await
        .unwrap();
    let at_once = std::thread::available_parallelism().unwrap().get() * 2;
    let bound = 19.0 * MIB * f64::from(u32::try_from(at_once).unwrap()) + 48.0 * MIB;
    assert!(
        after - before < bound,
        "{} MiB more, at most {}",
        (after - before) / MIB,
        bound / MIB
    );
    tokio::time::timeout(Duration::from_secs(2), session(port, &good))
        .await
        .expect("a remembered login needs no hash");
}
