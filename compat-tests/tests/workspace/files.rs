//! Files the workspace promises, and what must not stand in any of them.

use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_owned()
}

#[test]
fn the_promised_files_exist() {
    for name in [
        "README.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "LICENSE-APACHE",
        "LICENSE-MIT",
        "clippy.toml",
        "deny.toml",
        "rustfmt.toml",
        "rust-toolchain.toml",
        ".ci/run",
        "compat-tests/run",
    ] {
        assert!(root().join(name).is_file(), "{name} is missing");
    }
}

#[test]
fn no_test_is_ignored() {
    let output = Command::new("git")
        .args(["grep", "-n", "-E", r"#\[ignore", "--", "*.rs"])
        .current_dir(root())
        .output()
        .unwrap();
    let hits = String::from_utf8_lossy(&output.stdout);
    let hits: Vec<_> = hits
        .lines()
        .filter(|line| !line.starts_with("compat-tests/tests/workspace/files.rs"))
        .collect();
    assert!(hits.is_empty(), "ignored tests: {hits:?}");
}

#[test]
fn lint_exceptions_carry_a_reason() {
    let output = Command::new("git")
        .args(["grep", "-n", "-E", r"#!?\[allow\(", "--", "*.rs"])
        .current_dir(root())
        .output()
        .unwrap();
    let hits = String::from_utf8_lossy(&output.stdout);
    let hits: Vec<_> = hits
        .lines()
        .filter(|line| !line.starts_with("compat-tests/tests/workspace/files.rs"))
        .collect();
    assert!(
        hits.is_empty(),
        "use #[expect(lint, reason = \"...\")]: {hits:?}"
    );
}
