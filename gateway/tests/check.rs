//! What `check` says about broken files, word for word. `[gateway.md 2.1, 2.3, 11] [mqtt 14]`
//!
//! Every `tests/check/NAME.toml` has its `NAME.stderr`. With `BLESS=1` the goldens are written anew: read the
//! difference before you commit it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

/// `weida-gateway check` in a folder, without this machine's environment.
fn check(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_weida-gateway"))
        .arg("check")
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .output()
        .expect("tests can start the binary and read their own files")
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone())
        .expect("tests can start the binary and read their own files")
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone())
        .expect("tests can start the binary and read their own files")
}

fn toml_files(folder: &Path) -> Vec<String> {
    let mut files: Vec<String> = std::fs::read_dir(folder)
        .expect("tests can start the binary and read their own files")
        .map(|entry| {
            entry
                .expect("tests can start the binary and read their own files")
                .file_name()
                .into_string()
                .expect("tests can start the binary and read their own files")
        })
        .filter(|name| name.ends_with(".toml"))
        .collect();
    files.sort();
    files
}

#[test]
fn every_broken_file_is_answered_as_its_golden_says() {
    let folder = tests().join("check");
    let files = toml_files(&folder);
    assert!(files.len() >= 40, "{} files", files.len());
    let mut failures = String::new();
    for name in files {
        let output = check(&folder, &["--config", &name]);
        let warning = name.starts_with('w');
        assert_eq!(
            output.status.code(),
            Some(if warning { 0 } else { 3 }),
            "{name}"
        );
        let got = stderr(&output);
        let code = name.split('-').next().unwrap().to_uppercase();
        if code.starts_with(['E', 'W']) && code.len() == 4 {
            assert!(
                got.contains(&format!("[{code}]")),
                "{name} does not show {code}:\n{got}"
            );
        }
        let golden = folder.join(name.replace(".toml", ".stderr"));
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&golden, &got).unwrap();
        }
        let wanted = std::fs::read_to_string(&golden).unwrap_or_default();
        if got != wanted {
            writeln!(failures, "--- {name}: wanted\n{wanted}+++ got\n{got}").unwrap();
        }
    }
    assert!(failures.is_empty(), "{failures}");
}

/// A limit per peer on a listener whose peers need not prove who they are: there is nobody to limit. The same file is good once
/// they must.
#[test]
fn s8_12_a_limit_per_peer_needs_peers_that_are_proved() {
    let name = "e024-per-peer-limit-S8-12.toml";
    let text = std::fs::read_to_string(tests().join("check").join(name)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let found = |text: &str| {
        std::fs::write(folder.path().join("gateway.toml"), text).unwrap();
        stderr(&check(folder.path(), &["--config", "gateway.toml"])).contains("[E024]")
    };
    assert!(found(&text));
    let proved = text.replace(
        "require_client_identity = false",
        "require_client_identity = true",
    );
    assert_ne!(text, proved);
    assert!(!found(&proved));
}

/// The neighbours of the broken files: without them a check that refuses everything would pass.
#[test]
fn every_good_file_is_good_and_silent() {
    let folder = tests().join("good");
    let files = toml_files(&folder);
    assert!(files.len() >= 2);
    for name in files {
        let output = check(&folder, &["--strict", "--config", &name]);
        assert_eq!(
            (output.status.code(), stderr(&output)),
            (Some(0), String::new()),
            "{name}"
        );
        assert!(
            stdout(&output).contains(": good; "),
            "{name}: {}",
            stdout(&output)
        );
    }
}

#[test]
fn json_gives_every_finding_with_its_place() {
    let folder = tests().join("check");
    let output = check(
        &folder,
        &["--format", "json", "--config", "e003-unknown-key.toml"],
    );
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(stderr(&output), "");
    let findings: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let first = findings
        .as_array()
        .unwrap()
        .iter()
        .find(|it| it["code"] == "E003")
        .unwrap();
    assert_eq!(first["severity"], "error");
    assert_eq!(first["file"], "e003-unknown-key.toml");
    assert_eq!(first["path"], "listen.mqtt.bnid");
    assert_eq!(first["help"], "did you mean `bind`?");
    assert!(first["line"].as_u64().unwrap() > 1);
    assert_eq!(first["col"], 1);
    let good = check(
        &tests().join("good"),
        &["--format", "json", "--config", "smallest.toml"],
    );
    assert_eq!((good.status.code(), stdout(&good).trim()), (Some(0), "[]"));
}

#[test]
fn strict_makes_a_warning_an_error() {
    let folder = tests().join("check");
    let name = "w010-grant-matches-nothing.toml";
    let lax = check(&folder, &["--config", name]);
    assert_eq!(lax.status.code(), Some(0));
    assert!(stderr(&lax).contains("warning[W010]"));
    let strict = check(&folder, &["--strict", "--config", name]);
    assert_eq!(strict.status.code(), Some(3));
    assert!(stderr(&strict).contains("error[W010]"));
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let output = check(&tests(), &["--config", "no-such.toml"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(
        stderr(&output).contains("error[E001]: can't read no-such.toml"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_usage_error_exits_2() {
    for arguments in [&["--format", "yaml"][..], &["--nope"]] {
        assert_eq!(check(&tests(), arguments).status.code(), Some(2));
    }
}

/// A secret never reaches a report, in whatever form it is wrong.
#[test]
fn no_finding_repeats_a_secret() {
    let folder = tests().join("check");
    for format in ["text", "json"] {
        let output = check(
            &folder,
            &["--format", format, "--config", "e012-inline-secret.toml"],
        );
        let shown = stdout(&output) + &stderr(&output);
        assert!(shown.contains("E012"));
        let excerpt: Vec<&str> = shown
            .lines()
            .filter(|line| line.contains("horse"))
            .collect();
        assert!(excerpt.is_empty(), "{excerpt:?}");
    }
}
