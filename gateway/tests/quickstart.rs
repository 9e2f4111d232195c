//! `quickstart` and `run` as processes: one line a script can read, messages that cross, an end on SIGTERM. `[issue F16]`

use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

/// How long a start with its demo, or a stop, may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(40);
const PORTS: [&str; 6] = [
    "--mqtt",
    "127.0.0.1:0",
    "--weida",
    "127.0.0.1:0",
    "--admin",
    "127.0.0.1:0",
];

/// A gateway process that dies with the test.
struct Gateway {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Gateway {
    fn start(arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_weida-gateway"))
            .args(arguments)
            .env_remove("WEIDA_GATEWAY_CONFIG")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the binary starts");
        let stdout = child.stdout.take().expect("stdout is piped");
        Self {
            child,
            lines: BufReader::new(stdout).lines(),
        }
    }

    async fn line(&mut self) -> String {
        let line = timeout(PATIENCE, self.lines.next_line())
            .await
            .expect("a line in time");
        line.expect("stdout can be read")
            .expect("a line before the end")
    }

    async fn json(&mut self) -> Value {
        serde_json::from_str(&self.line().await).expect("a line of JSON")
    }

    /// SIGTERM, then the end.
    async fn stop(mut self) -> ExitStatus {
        let pid = self.child.id().expect("it runs").to_string();
        let sent = Command::new("kill")
            .args(["-TERM", &pid])
            .status()
            .await
            .expect("kill is there");
        assert!(sent.success());
        self.wait().await
    }

    async fn wait(&mut self) -> ExitStatus {
        let ended = timeout(PATIENCE, self.child.wait())
            .await
            .expect("the gateway ends");
        ended.expect("the child is ours")
    }
}

fn quickstart<'a>(folder: &'a Path, more: &[&'a str]) -> Vec<&'a str> {
    let folder = folder.to_str().expect("temporary folders are UTF-8");
    [&["quickstart", "--data-dir", folder], &PORTS[..], more].concat()
}

async fn status(url: &str, flag: &str) -> Option<i32> {
    let output = Command::new(env!("CARGO_BIN_EXE_weida-gateway"))
        .args(["status", "--url", url, flag])
        .output()
        .await
        .expect("the binary starts");
    output.status.code()
}

#[tokio::test]
async fn quickstart_shows_a_message_crossing_each_way_and_stops_cleanly() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut gateway = Gateway::start(&quickstart(&data, &["--json", "--demo"]));
    let line = gateway.json().await;
    assert_eq!(line["schema"], 1);
    let fingerprint = line["fingerprint"].as_str().unwrap();
    assert!(
        line["weida"]
            .as_str()
            .unwrap()
            .starts_with(&format!("weida://{fingerprint}@127.0.0.1:"))
    );
    assert_ne!(line["mqtt"], "127.0.0.1:0");
    let demo = line["demo"].as_array().unwrap();
    assert_eq!(demo.len(), 2);
    let crossed: Vec<(&str, &str, &str)> = demo
        .iter()
        .map(|it| {
            (
                it["sent"].as_str().unwrap(),
                it["arrived"].as_str().unwrap(),
                it["payload"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        crossed,
        [
            ("demo/from-mqtt", "demo.from-mqtt", "21.5"),
            ("demo.from-weida", "demo/from-weida", "21.5")
        ]
    );

    let admin = line["admin"].as_str().unwrap();
    assert_eq!(
        (
            status(admin, "--ready").await,
            status(admin, "--live").await
        ),
        (Some(0), Some(0))
    );
    assert_eq!(status(admin, "--json").await, Some(0));
    let key = std::fs::metadata(data.join("identity.key")).unwrap();
    assert_eq!(
        std::os::unix::fs::PermissionsExt::mode(&key.permissions()) & 0o777,
        0o600
    );

    assert_eq!(gateway.stop().await.code(), Some(0));
    assert_eq!(status(admin, "--ready").await, Some(7));

    // The same folder is the same gateway, and its file runs without `quickstart` too.
    let mut again = Gateway::start(&quickstart(&data, &["--json"]));
    assert_eq!(again.json().await["fingerprint"], fingerprint);
    assert_eq!(again.stop().await.code(), Some(0));
}

#[tokio::test]
async fn quickstart_tells_people_what_to_try() {
    let folder = tempfile::tempdir().unwrap();
    let mut gateway = Gateway::start(&quickstart(folder.path(), &[]));
    let mut text = String::new();
    while !text.contains("weida send --topic") {
        text += &gateway.line().await;
        text.push('\n');
    }
    for command in [
        "weida sub 'weida://sha256:",
        "mosquitto_pub -h 127.0.0.1 -p ",
        "mosquitto_sub ",
    ] {
        assert!(text.contains(command), "{text}");
    }
    assert_eq!(gateway.stop().await.code(), Some(0));
}

#[tokio::test]
async fn quickstart_does_not_drop_an_address_in_silence() {
    let folder = tempfile::tempdir().unwrap();
    let mut gateway = Gateway::start(&quickstart(folder.path(), &["--json"]));
    gateway.json().await;
    assert_eq!(gateway.stop().await.code(), Some(0));
    let data = folder.path().to_str().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_weida-gateway"))
        .args(["quickstart", "--data-dir", data, "--mqtt", "127.0.0.1:1"])
        .output()
        .await
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(
        stderr.contains("is there already and says 127.0.0.1:0"),
        "{stderr}"
    );
}

/// `run` refuses exactly what `check` refuses, and opens nothing.
#[tokio::test]
async fn run_uses_the_same_check() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/check");
    let answer = async |command: &str| {
        Command::new(env!("CARGO_BIN_EXE_weida-gateway"))
            .args([command, "--config", "many-at-once.toml"])
            .current_dir(&folder)
            .env_clear()
            .output()
            .await
            .unwrap()
    };
    let (run, check) = (answer("run").await, answer("check").await);
    assert_eq!(run.status.code(), Some(3));
    assert_eq!(
        (run.status.code(), run.stderr),
        (check.status.code(), check.stderr)
    );
    assert!(!folder.join("data").exists());
}

/// A wrong `--log` is an error of usage, found before anything starts.
#[tokio::test]
async fn a_wrong_log_filter_exits_2() {
    let folder = tempfile::tempdir().unwrap();
    let mut gateway = Gateway::start(&quickstart(folder.path(), &["--log", "loud"]));
    assert_eq!(gateway.wait().await.code(), Some(2));
}
