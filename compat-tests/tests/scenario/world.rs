//! What the scenarios share: a running gateway, the commands beside it, and what its metrics say.

use std::path::{Path, PathBuf};
use std::time::Duration;

use weida_testkit::{Process, Ready, bin, eventually_some};

/// Longest that a step of a scenario may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A gateway process and where it can be reached.
pub(crate) struct Gateway {
    pub(crate) process: Process,
    pub(crate) mqtt_port: u16,
    /// `weida://sha256:...@127.0.0.1:PORT`, without a path.
    pub(crate) weida: String,
    pub(crate) fingerprint: String,
    admin: String,
}

impl Gateway {
    /// `quickstart` in a fresh folder, every port chosen by the system.
    pub(crate) async fn quickstart(extra: &[&str]) -> Self {
        let process = Process::builder(bin("weida-gateway").unwrap())
            .args(["quickstart", "--data-dir", "data", "--json"])
            .args([
                "--mqtt",
                "127.0.0.1:0",
                "--weida",
                "127.0.0.1:0",
                "--admin",
                "127.0.0.1:0",
            ])
            .args(extra)
            .ready(Ready::Line("\"schema\"".to_owned()))
            .ready_within(PATIENCE)
            .grace(Duration::from_secs(12))
            .spawn()
            .await
            .unwrap();
        let line = process
            .stdout()
            .into_iter()
            .find(|line| line.starts_with('{'))
            .unwrap();
        let ready: serde_json::Value = serde_json::from_str(&line).unwrap();
        let text = |key: &str| {
            ready[key]
                .as_str()
                .unwrap_or_else(|| panic!("no {key} in {line}"))
                .to_owned()
        };
        let mqtt = text("mqtt");
        Self {
            mqtt_port: mqtt.rsplit(':').next().unwrap().parse().unwrap(),
            weida: text("weida"),
            fingerprint: text("fingerprint"),
            admin: text("admin"),
            process,
        }
    }

    /// `run` with this configuration; listeners in it bind port 0 and are found through the admin API.
    pub(crate) async fn run(configuration: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self::run_in(folder.keep(), configuration).await
    }

    /// The same in a folder that outlives the process.
    pub(crate) async fn run_in(folder: PathBuf, configuration: &str) -> Self {
        std::fs::write(folder.join("gateway.toml"), configuration).unwrap();
        let process = Process::builder(bin("weida-gateway").unwrap())
            .args([
                "--config",
                "gateway.toml",
                "--log-format",
                "json",
                "--log",
                "info",
                "run",
            ])
            .current_dir(&folder)
            .ready(Ready::Line("ready".to_owned()))
            .ready_within(PATIENCE)
            .grace(Duration::from_secs(12))
            .spawn()
            .await
            .unwrap();
        let admin = admin_address(configuration);
        let status = http_get(&admin, "/api/v1/status").await;
        let status: serde_json::Value = serde_json::from_str(&status).unwrap();
        let bound = |protocol: &str| {
            status["listeners"]
                .as_array()
                .unwrap()
                .iter()
                .find(|listener| listener["protocol"] == protocol)
                .map(|listener| listener["address"].as_str().unwrap().to_owned())
        };
        let fingerprint = status["fingerprint"].as_str().unwrap().to_owned();
        let mqtt = bound("mqtt").expect("an MQTT listener");
        let weida =
            bound("weida").map_or_else(String::new, |at| format!("weida://{fingerprint}@{at}"));
        Self {
            mqtt_port: mqtt.rsplit(':').next().unwrap().parse().unwrap(),
            weida,
            fingerprint,
            admin,
            process,
        }
    }

    /// One series of `/metrics`: name and labels as they stand there.
    pub(crate) async fn metric(&self, series: &str) -> Option<f64> {
        let text = http_get(&self.admin, "/metrics").await;
        text.lines().find_map(|line| {
            line.strip_prefix(series)?
                .trim()
                .split(' ')
                .next()?
                .parse()
                .ok()
        })
    }

    /// Waits until a series has at least this value.
    pub(crate) async fn metric_reaches(&self, series: &str, value: f64) {
        let reached = eventually_some(
            || async { self.metric(series).await.filter(|now| *now >= value) },
            PATIENCE,
        )
        .await;
        if reached.is_none() {
            panic!("{series} is {:?}, not {value}", self.metric(series).await);
        }
    }

    /// The conservation row of every route: what came in has ended in exactly one place.
    pub(crate) async fn law_holds(&self) {
        let text = http_get(&self.admin, "/metrics").await;
        let sum = |name: &str| -> f64 {
            text.lines()
                .filter(|line| {
                    line.strip_prefix("weida_gateway_")
                        .and_then(|rest| rest.strip_prefix(name))
                        .is_some_and(|rest| rest.starts_with('{'))
                })
                .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
                .sum()
        };
        let received = sum("route_received_total");
        let ended = sum("route_delivered_total")
            + sum("route_filtered_total")
            + sum("route_dropped_total")
            + sum("route_dead_lettered_total")
            + sum("route_expired_total");
        let here = sum("route_in_flight") + sum("route_queued");
        assert!(
            (received - ended - here).abs() < 0.5,
            "received {received}, ended {ended}, here {here}\n{text}"
        );
    }
}

fn admin_address(configuration: &str) -> String {
    // The listeners' ports come from the system; the admin's is named by the scenario.
    let named = configuration
        .lines()
        .skip_while(|line| line.trim() != "[admin]")
        .find_map(|line| {
            line.trim()
                .strip_prefix("bind = \"")
                .and_then(|rest| rest.strip_suffix('"'))
        });
    let address = named.expect("a scenario's configuration names the admin address");
    assert!(
        !address.ends_with(":0"),
        "the admin port is taken before the start"
    );
    format!("http://{address}")
}

/// A free admin port, given back just before the gateway takes it.
pub(crate) fn admin_port() -> u16 {
    let port = weida_testkit::FreePort::take().unwrap();
    port.release().unwrap().port()
}

/// GET over a fresh connection; the body.
pub(crate) async fn http_get(base: &str, path: &str) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let address = base.strip_prefix("http://").unwrap();
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{path}: {head}");
    if head
        .to_ascii_lowercase()
        .contains("transfer-encoding: chunked")
    {
        unchunk(body)
    } else {
        body.to_owned()
    }
}

fn unchunk(mut body: &str) -> String {
    let mut whole = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).unwrap();
        if size == 0 {
            break;
        }
        whole.push_str(&rest[..size]);
        body = &rest[size + 2..];
    }
    whole
}

/// A command that runs to its end: exit code, stdout, stderr.
pub(crate) async fn finish(
    program: impl AsRef<std::ffi::OsStr>,
    arguments: &[&str],
    stdin: &[u8],
) -> (Option<i32>, String, String) {
    let mut process = Process::builder(program)
        .args(arguments)
        .spawn()
        .await
        .unwrap();
    // A command that was refused ends without reading the rest.
    let _: std::io::Result<()> = process.write_stdin(stdin);
    process.close_stdin();
    let status = process
        .wait(PATIENCE)
        .await
        .unwrap()
        .expect("the command ends");
    // The readers have seen the end of both pipes once the process is reaped; give the last lines their moment.
    let quiet = weida_testkit::eventually(|| !process.is_running(), PATIENCE).await;
    assert!(quiet);
    (
        status.code(),
        process.stdout().join("\n"),
        process.stderr().join("\n"),
    )
}

/// The Python of the test environment.
pub(crate) fn python() -> PathBuf {
    let venv = std::env::var_os("WEIDA_VENV").map_or_else(
        || {
            let cache = std::env::var_os("XDG_CACHE_HOME").map_or_else(
                || PathBuf::from(std::env::var_os("HOME").expect("HOME is set")).join(".cache"),
                PathBuf::from,
            );
            cache.join("weida/venv")
        },
        PathBuf::from,
    );
    let python = venv.join("bin/python");
    assert!(
        python.exists(),
        "{} is missing: run compat-tests/install",
        python.display()
    );
    python
}

/// A client script of this package.
pub(crate) fn script(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("clients")
        .join(name)
        .to_str()
        .unwrap()
        .to_owned()
}
