//! The `weida` command from outside: exit codes, streams, what is printed where.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::io::Write;
use std::process::{Output, Stdio};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use weida::{Identity, Runtime, RuntimeConfig};

const PATIENCE: Duration = Duration::from_secs(20);

fn weida() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weida"));
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

/// A running `weida serve` and the address it printed.
struct Served {
    address: String,
    child: Child,
    stdout: Lines<BufReader<ChildStdout>>,
}

impl Served {
    async fn start(arguments: &[&str], path: &str) -> Self {
        Self::start_with(arguments, path, Stdio::null()).await
    }

    async fn start_with(arguments: &[&str], path: &str, stdin: Stdio) -> Self {
        let url = format!("weida://127.0.0.1:0{path}");
        let mut child = weida()
            .arg("serve")
            .args(arguments)
            .arg(&url)
            .stdin(stdin)
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap()).lines();
        let address = tokio::time::timeout(PATIENCE, stdout.next_line())
            .await
            .unwrap()
            .unwrap()
            .unwrap();
        assert!(address.starts_with("weida://sha256:"), "{address}");
        Self {
            address,
            child,
            stdout,
        }
    }

    fn other_path(&self, path: &str) -> String {
        let slash = "weida://".len() + self.address["weida://".len()..].find('/').unwrap();
        format!("{}{path}", &self.address[..slash])
    }

    fn with_wrong_pin(&self) -> String {
        let mut address = self.address.clone();
        let at = "weida://sha256:".len();
        let digit = if &address[at..=at] == "0" { "1" } else { "0" };
        address.replace_range(at..=at, digit);
        address
    }
}

async fn run(arguments: &[&str], stdin: &[u8]) -> Output {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(stdin).unwrap();
    std::io::Seek::rewind(&mut file).unwrap();
    let child = weida().args(arguments).stdin(file).spawn().unwrap();
    tokio::time::timeout(PATIENCE, child.wait_with_output())
        .await
        .expect("the command ends")
        .unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[tokio::test]
async fn cli_1_exit_0_and_a_receipt() {
    let mut sink = Served::start(&["--sink"], "/jobs").await;
    let output = run(&["send", "--topic", "cmd.7", &sink.address], b"open").await;
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(output.stdout.is_empty(), "stdout is for payload");
    assert!(stderr(&output).contains("4 bytes"));
    let printed = tokio::time::timeout(PATIENCE, sink.stdout.next_line())
        .await
        .unwrap()
        .unwrap()
        .unwrap();
    assert_eq!(printed, "open");
}

#[tokio::test]
async fn cli_1_exit_2_for_usage() {
    for arguments in [
        &["send"][..],
        &["request", "http://x/"],
        &["send", "weida://127.0.0.1:1"],
        &["serve", "weida://127.0.0.1:0/x"],
    ] {
        let output = run(arguments, b"").await;
        assert_eq!(
            output.status.code(),
            Some(2),
            "{arguments:?}: {}",
            stderr(&output)
        );
    }
}

/// Said before anything is dialled; what is right beside it gets as far as the dial.
#[tokio::test]
async fn cli_1_exit_2_for_a_filter_or_an_anchor_that_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ca.pem");
    std::fs::write(&file, "no certificate\n").unwrap();
    let file = file.to_str().unwrap();
    let url = format!("weida://sha256:{}@127.0.0.1:1/x", "0".repeat(64));
    for (option, value, code) in [
        ("--filter", "a.#", 7),
        ("--filter", "#.a", 2),
        ("--ca", file, 2),
    ] {
        let output = run(&["sub", "--connect-timeout", "1", option, value, &url], b"").await;
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{option} {value}: {said}");
    }
}

#[tokio::test]
async fn cli_1_exit_4_for_an_unknown_endpoint() {
    let served = Served::start(&["--echo"], "/echo").await;
    let output = run(&["request", &served.other_path("/nope")], b"x").await;
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
}

#[tokio::test]
async fn cli_1_exit_1_for_another_pattern() {
    let served = Served::start(&["--sink"], "/jobs").await;
    let output = run(&["request", &served.address], b"x").await;
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("another pattern"));
}

#[tokio::test]
async fn cli_1_exit_7_when_no_connection_is_established() {
    let served = Served::start(&["--sink"], "/jobs").await;
    let address = served.address.clone();
    let mut child = served.child;
    child.kill().await.unwrap();
    let output = run(&["send", "--connect-timeout", "1", &address], b"x").await;
    assert_eq!(output.status.code(), Some(7), "{}", stderr(&output));
}

#[tokio::test]
async fn cli_4_a_wrong_pin_exits_6_and_prints_what_answered() {
    let served = Served::start(&["--echo"], "/echo").await;
    let presented = &served.address["weida://".len()..served.address.find('@').unwrap()];
    let output = run(&["request", &served.with_wrong_pin()], b"x").await;
    assert_eq!(output.status.code(), Some(6), "{}", stderr(&output));
    assert!(stderr(&output).contains(presented));
}

#[tokio::test]
async fn cli_5_indeterminate_has_no_code_of_its_own() {
    let runtime = Runtime::new(RuntimeConfig::default()).unwrap();
    let listener = runtime.listener();
    let replier = listener.replier("/slow").unwrap();
    let identity = Identity::generate().unwrap();
    let fingerprint = identity.fingerprint().unwrap();
    let binding = listener
        .bind_quic("127.0.0.1:0".parse().unwrap(), identity)
        .await
        .unwrap();
    let address = format!("weida://{fingerprint}@{}/slow", binding.local_addr());

    // The request arrives whole; then the connection goes away instead of an answer.
    let serving = async {
        let mut request = replier.accept().await.unwrap();
        assert_eq!(request.body().read_capped(64).await.unwrap(), b"begun");
        binding.close().await;
        drop(request);
    };
    let arguments = ["request", &address];
    let (output, ()) = tokio::join!(run(&arguments, b"begun"), serving);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("may or may not have happened"),
        "{}",
        stderr(&output)
    );
}

#[tokio::test]
async fn cli_2_a_file_comes_back_byte_for_byte() {
    let served = Served::start(&["--echo"], "/echo").await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("body");
    let body: Vec<u8> = (0..5_000_000u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    std::fs::write(&path, &body).unwrap();
    let output = run(&["request", &served.address, path.to_str().unwrap()], b"").await;
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(output.stdout == body, "the reply differs");
    let from_stdin = run(&["request", &served.address], &body).await;
    assert!(
        from_stdin.stdout == body,
        "the reply to a body from stdin differs"
    );
}

#[tokio::test]
async fn sub_prints_payloads_on_stdout_and_escaped_topics_on_stderr() {
    let mut served = Served::start_with(&["--pub"], "/md", Stdio::piped()).await;
    let mut stdin = served.child.stdin.take().unwrap();
    let subscriber = weida()
        .args(["sub", "--filter", "a.#", "--count", "2", &served.address])
        .spawn()
        .unwrap();
    let mut reports = BufReader::new(served.child.stderr.take().unwrap()).lines();
    // Publish until the first copy is taken: only then the subscription is known to stand.
    let publishing = async {
        let mut copies = 0;
        while copies < 2 {
            tokio::io::AsyncWriteExt::write_all(&mut stdin, b"a.\x1b[2J 21.5\n")
                .await
                .unwrap();
            if reports.next_line().await.unwrap().unwrap() == "published to 1" {
                copies += 1;
            }
        }
    };
    tokio::time::timeout(PATIENCE, publishing).await.unwrap();
    let output = tokio::time::timeout(PATIENCE, subscriber.wait_with_output())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(output.stdout, b"21.5\n21.5\n");
    assert!(
        stderr(&output).contains("a.\\u{1b}[2J"),
        "{}",
        stderr(&output)
    );
}

#[tokio::test]
async fn an_identity_file_keeps_the_address() {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key.pem");
    let key = key.to_str().unwrap();
    let fingerprint =
        |served: &Served| served.address[..served.address.find('@').unwrap()].to_owned();
    let first = Served::start(&["--echo", "--identity", key], "/echo").await;
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(key).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    let second = Served::start(&["--echo", "--identity", key], "/echo").await;
    assert_eq!(fingerprint(&first), fingerprint(&second));
}

#[tokio::test]
async fn completions_name_every_command() {
    let output = run(&["completions", "bash"], b"").await;
    let script = String::from_utf8(output.stdout).unwrap();
    for command in ["send", "request", "sub", "serve"] {
        assert!(script.contains(command), "{command}");
    }
}
