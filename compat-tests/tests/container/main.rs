//! The container image: built from the staged context, started read-only and unprivileged, stopped in time.
//!
//! `compat-tests/run` stages the context (`docker/build --stage-only`) and names it in `WEIDA_IMAGE_CONTEXT`.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

/// Engine settings that work without an init system and with low limits.
const CONTAINERS_CONF: &str = r#"
[containers]
log_driver = "k8s-file"
default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
runtime = "runc"
"#;

/// A private image store; everything in it is gone when the test ends.
struct Engine {
    root: tempfile::TempDir,
}

impl Engine {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("containers.conf"), CONTAINERS_CONF).unwrap();
        Self { root }
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .env("CONTAINERS_CONF", self.root.path().join("containers.conf"))
            .arg("--root")
            .arg(self.root.path().join("storage"))
            .arg("--runroot")
            .arg(self.root.path().join("run"))
            .args(["--storage-driver", "overlay"]);
        command
    }

    fn run(&self, program: &str, arguments: &[&str]) -> Output {
        self.command(program)
            .args(arguments)
            .output()
            .unwrap_or_else(|error| {
                panic!("{program} cannot be started ({error}): run compat-tests/install")
            })
    }

    fn ok(&self, program: &str, arguments: &[&str]) -> String {
        let output = self.run(program, arguments);
        assert!(
            output.status.success(),
            "{program} {arguments:?}: {}\n{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let _: Output = self.run("podman", &["rm", "--all", "--force", "--time", "1"]);
        // Overlay mounts keep the folder busy until the store is reset.
        let _: Output = self.run("podman", &["system", "reset", "--force"]);
    }
}

fn context() -> PathBuf {
    match std::env::var_os("WEIDA_IMAGE_CONTEXT") {
        Some(path) => PathBuf::from(path),
        None => panic!("WEIDA_IMAGE_CONTEXT is not set: run the tests through compat-tests/run"),
    }
}

fn eventually<T>(what: &str, within: Duration, mut probe: impl FnMut() -> Option<T>) -> T {
    let attempts = within.as_millis() / 100;
    for _ in 0..attempts {
        if let Some(value) = probe() {
            return value;
        }
        #[expect(
            clippy::disallowed_methods,
            reason = "a plain thread polls an outside process"
        )]
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("{what} did not happen within {within:?}");
}

/// Builds, starts with a read-only root, no capabilities and an unprivileged user, sees the ready line, asks the health check,
/// stops inside the drain bound.
#[test]
fn item_20_the_image_runs_quickstart() {
    let engine = Engine::new();
    let context = context();
    let context = Path::new(&context).to_str().unwrap();
    engine.ok(
        "buildah",
        &[
            "bud",
            "--isolation",
            "chroot",
            "--format",
            "docker",
            "--pull=never",
            "--tag",
            "weida-gateway:test",
            context,
        ],
    );

    let data = engine.root.path().join("data");
    std::fs::create_dir(&data).unwrap();
    std::os::unix::fs::chown(&data, Some(65532), Some(65532)).unwrap();
    let volume = format!("{}:/var/lib/weida-gateway", data.display());
    let id = engine.ok(
        "podman",
        &[
            "run",
            "--detach",
            "--no-healthcheck",
            "--network",
            "host",
            "--read-only",
            "--cap-drop",
            "all",
            "--security-opt",
            "no-new-privileges",
            "--volume",
            &volume,
            "weida-gateway:test",
            "quickstart",
            "--data-dir",
            "/var/lib/weida-gateway",
            "--mqtt",
            "127.0.0.1:0",
            "--weida",
            "127.0.0.1:0",
            "--admin",
            "127.0.0.1:0",
            "--json",
        ],
    );
    let id = id.trim();

    let line = eventually("the ready line", Duration::from_secs(20), || {
        let output = engine.run("podman", &["logs", id]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.lines()
            .find(|line| line.starts_with('{'))
            .map(str::to_owned)
    });
    let ready: serde_json::Value = serde_json::from_str(&line).unwrap();
    let address = ready["weida"].as_str().unwrap_or_default();
    assert!(
        address.starts_with("weida://sha256:"),
        "no dialable address in {line}"
    );
    assert!(
        data.join("identity.key").is_file(),
        "the key is kept in the volume"
    );

    let admin = ready["admin"].as_str().unwrap();
    let probe = engine.run(
        "podman",
        &[
            "exec",
            id,
            "/weida-gateway",
            "status",
            "--ready",
            "--url",
            admin,
        ],
    );
    assert_eq!(
        probe.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&probe.stderr)
    );

    engine.ok("podman", &["stop", "--time", "10", id]);
    let code = engine.ok(
        "podman",
        &["inspect", "--format", "{{.State.ExitCode}}", id],
    );
    assert_eq!(code.trim(), "0", "stopped inside its drain bound");
}
