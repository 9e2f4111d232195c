//! No foreign label reaches an identity field. [gateway 17.22]

use std::time::Duration;

use weida::{Identity, PeerIdentity, Runtime, RuntimeConfig, ServerTls};

use crate::world::{Gateway, PATIENCE, admin_port, finish};

/// A ClientID equal to the text form of a real fingerprint is a label: the weida peer sees the gateway's key.
#[tokio::test(flavor = "multi_thread")]
async fn done_when_5_a_client_id_shaped_like_a_fingerprint_is_a_label() {
    let runtime = Runtime::new(RuntimeConfig::default()).unwrap();
    let listener = runtime.listener();
    let puller = listener.puller("/readings").unwrap();
    let identity = Identity::generate().unwrap();
    let fingerprint = identity.fingerprint().unwrap().to_string();
    // Any key, so that the gateway proves its own and the peer can see which.
    let tls = ServerTls::new(identity).require_client(weida::ClientTrust::AnyKey);
    let binding = listener
        .bind_quic("127.0.0.1:0".parse().unwrap(), tls)
        .await
        .unwrap();
    let admin = admin_port();
    let gateway = Gateway::run(&format!(
        r##"
[gateway]
data_dir = "data"
[identity]
key_file = "data/identity.key"
[[listen]]
name = "mqtt"
protocol = "mqtt"
bind = "127.0.0.1:0"
auth = ["anonymous"]
[[route]]
name = "readings"
from = {{ listen = "mqtt", filter = "#", qos = 1 }}
to = {{ weida = "weida://{fingerprint}@{}/readings", pattern = "push" }}
[[grant]]
who = ["anonymous"]
listen = "mqtt"
publish = ["#"]
[admin]
bind = "127.0.0.1:{admin}"
"##,
        binding.local_addr()
    ))
    .await;
    let port = gateway.mqtt_port.to_string();
    // Two claims: the weida peer's own fingerprint, and a made-up one with a user property that names a peer.
    for claim in [
        fingerprint.as_str(),
        "sha256:0000000000000000000000000000000000000000000000000000000000000000",
    ] {
        let publishing = async {
            let (code, _, stderr) = finish(
                "mosquitto_pub",
                &[
                    "-V",
                    "5",
                    "-p",
                    &port,
                    "-i",
                    claim,
                    "-t",
                    "a/b",
                    "-m",
                    "x",
                    "-q",
                    "1",
                    "-D",
                    "publish",
                    "user-property",
                    "weida-peer",
                    claim,
                ],
                b"",
            )
            .await;
            assert_eq!(code, Some(0), "{stderr}");
        };
        let arriving = async {
            let transfer = tokio::time::timeout(PATIENCE, puller.recv())
                .await
                .unwrap()
                .unwrap();
            let meta = transfer.meta().clone();
            assert_eq!(transfer.collect(16).await.unwrap(), b"x");
            meta
        };
        let ((), meta) = tokio::join!(publishing, arriving);
        let Some(PeerIdentity::Key(peer)) = &meta.peer else {
            panic!("the gateway proves its key")
        };
        assert_eq!(peer.to_string(), gateway.fingerprint);
        assert_ne!(peer.to_string(), claim);
        let text = format!("{meta:?}");
        assert_eq!(
            text.matches(claim).count(),
            0,
            "the claim stands in what the peer sees: {text}"
        );
    }
    gateway.law_holds().await;
}

/// Two clients with one id and different principals: the second is refused, the first lives on.
#[tokio::test(flavor = "multi_thread")]
async fn done_when_6_one_id_belongs_to_one_principal() {
    let folder = tempfile::tempdir().unwrap().keep();
    let binary = weida_testkit::bin("weida-gateway").unwrap();
    let passwd = folder.join("passwd");
    let admin = admin_port();
    let configuration = format!(
        r##"
[gateway]
data_dir = "data"
[identity]
key_file = "data/identity.key"
[[listen]]
name = "mqtt"
protocol = "mqtt"
bind = "127.0.0.1:0"
auth = ["password"]
[[credential]]
file = "passwd"
[[grant]]
who = ["user:*"]
listen = "mqtt"
publish = ["{{user}}/#"]
subscribe = ["{{user}}/#"]
[admin]
bind = "127.0.0.1:{admin}"
"##
    );
    std::fs::write(folder.join("gateway.toml"), &configuration).unwrap();
    let config = folder.join("gateway.toml");
    for (user, password) in [("ann", "first"), ("bob", "second")] {
        let (code, _, stderr) = finish(
            &binary,
            &[
                "--config",
                config.to_str().unwrap(),
                "passwd",
                "--file",
                passwd.to_str().unwrap(),
                "set",
                user,
            ],
            format!("{password}\n").as_bytes(),
        )
        .await;
        assert_eq!(code, Some(0), "{stderr}");
    }
    let gateway = Gateway::run_in(folder, &configuration).await;
    let port = gateway.mqtt_port.to_string();
    let ann = weida_testkit::Process::builder("stdbuf")
        .args([
            "-oL",
            "mosquitto_sub",
            "-V",
            "5",
            "-p",
            &port,
            "-i",
            "press-1",
            "-u",
            "ann",
            "-P",
            "first",
            "-d",
            "-t",
            "ann/#",
        ])
        .spawn()
        .await
        .unwrap();
    assert!(ann.line("Subscribed", PATIENCE).await.is_some());
    let (code, _, stderr) = finish(
        "mosquitto_pub",
        &[
            "-V", "5", "-p", &port, "-i", "press-1", "-u", "bob", "-P", "second", "-t", "bob/x",
            "-m", "1", "-q", "1",
        ],
        b"",
    )
    .await;
    assert_ne!(code, Some(0), "another principal must not take the id");
    assert!(
        stderr.contains("Client Identifier not valid") || stderr.contains("133"),
        "{stderr}"
    );
    // The same id with a wrong password says nothing about who owns it.
    let (code, _, stderr) = finish(
        "mosquitto_pub",
        &[
            "-V", "5", "-p", &port, "-i", "press-1", "-u", "ann", "-P", "wrong", "-t", "ann/x",
            "-m", "1", "-q", "1",
        ],
        b"",
    )
    .await;
    assert_ne!(code, Some(0));
    assert!(
        stderr.to_lowercase().contains("not authorised")
            || stderr.contains("134")
            || stderr.to_lowercase().contains("user name"),
        "{stderr}"
    );
    // Ann is undisturbed.
    let (code, _, stderr) = finish(
        "mosquitto_pub",
        &[
            "-V",
            "5",
            "-p",
            &port,
            "-i",
            "press-2",
            "-u",
            "ann",
            "-P",
            "first",
            "-t",
            "ann/x",
            "-m",
            "still here",
            "-q",
            "1",
        ],
        b"",
    )
    .await;
    assert_eq!(code, Some(0), "{stderr}");
    assert!(
        ann.line("still here", Duration::from_secs(10))
            .await
            .is_some()
    );
}
