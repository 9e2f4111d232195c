//! Constant memory: a body far larger than the bound goes both ways through processes of their own.

use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::process::Command;
use weida_testkit::{Process, Ready, bin};

/// Peak resident memory that either process may reach.
const PEAK_BYTES: u64 = 64 << 20;

/// Bytes echoed: 4 GiB in the long tier, a share of it with the same assertions in the short one.
fn body_bytes() -> u64 {
    if std::env::var_os("WEIDA_LONG").is_some() {
        4 << 30
    } else {
        256 << 20
    }
}

/// Peak resident memory of a live process.
fn peak_bytes(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace()
        .nth(1)?
        .parse::<u64>()
        .ok()
        .map(|kib| kib * 1024)
}

#[tokio::test(flavor = "multi_thread")]
async fn item_7_an_echo_of_any_size_stays_below_64_mib() {
    let weida = bin("weida").unwrap();
    let server = Process::builder(&weida)
        .args(["serve", "--echo", "weida://127.0.0.1:0/echo"])
        .ready(Ready::Line("weida://".to_owned()))
        .spawn()
        .await
        .unwrap();
    let address = server.stdout().into_iter().next().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let body = folder.path().join("body");
    // Sparse: the file costs nothing, its bytes are read all the same.
    std::fs::File::create(&body)
        .unwrap()
        .set_len(body_bytes())
        .unwrap();

    let mut client = Command::new(&weida)
        .arg("request")
        .arg(&address)
        .arg(&body)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let pid = client.id().unwrap();
    let mut stdout = client.stdout.take().unwrap();
    let counting = async {
        let mut buffer = vec![0; 1 << 20];
        let (mut received, mut peak) = (0u64, 0u64);
        loop {
            match stdout.read(&mut buffer).await.unwrap() {
                0 => break (received, peak),
                read => received += read as u64,
            }
            peak = peak.max(peak_bytes(pid).unwrap_or(0));
        }
    };
    let (received, client_peak) = tokio::time::timeout(Duration::from_secs(150), counting)
        .await
        .expect("the echo ends");
    assert!(client.wait().await.unwrap().success());
    assert_eq!(received, body_bytes());
    assert!(
        client_peak > 0 && client_peak < PEAK_BYTES,
        "the client peaked at {client_peak} bytes"
    );
    let server_peak = server.peak_resident_bytes().unwrap();
    assert!(
        server_peak < PEAK_BYTES,
        "the server peaked at {server_peak} bytes"
    );
}
