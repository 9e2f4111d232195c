//! Commands that need no running gateway: exit codes, files and their modes. `[gateway.md 3]`

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn gateway(folder: &Path, arguments: &[&str], stdin: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_weida-gateway"))
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut pipe = child.stdin.take().expect("stdin is piped");
    // A command that reads nothing may be gone already.
    let _: std::io::Result<()> = pipe.write_all(stdin.as_bytes());
    drop(pipe);
    child.wait_with_output().expect("the binary ends")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("output is UTF-8")
}

#[cfg(unix)]
fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path)
        .expect("the file is there")
        .permissions()
        .mode()
        & 0o777
}

#[test]
fn identity_init_writes_once_for_the_owner_only() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a/b/identity.key");
    let arguments = ["identity", "init", "--key-file", "a/b/identity.key"];
    let first = gateway(folder.path(), &arguments, "");
    assert_eq!(first.status.code(), Some(0), "{}", text(&first.stderr));
    let fingerprint = text(&first.stdout).trim().to_owned();
    assert!(
        fingerprint.starts_with("sha256:") && fingerprint.len() == 71,
        "{fingerprint}"
    );
    assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
    let before = std::fs::read(&file).unwrap();

    let again = gateway(folder.path(), &arguments, "");
    assert_eq!(again.status.code(), Some(1));
    assert!(text(&again.stderr).contains("exists and is never overwritten"));
    assert_eq!(std::fs::read(&file).unwrap(), before);

    let show = gateway(
        folder.path(),
        &["identity", "show", "--key-file", "a/b/identity.key"],
        "",
    );
    assert_eq!(text(&show.stdout).trim(), fingerprint);
    let json = gateway(
        folder.path(),
        &[
            "identity",
            "show",
            "--json",
            "--key-file",
            "a/b/identity.key",
        ],
        "",
    );
    let value: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(
        (&value["schema"], value["fingerprint"].as_str()),
        (&1.into(), Some(&*fingerprint))
    );
    assert!(!text(&json.stdout).contains("PRIVATE KEY"));
}

#[test]
fn identity_init_does_not_follow_a_dangling_link() {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("elsewhere", folder.path().join("identity.key")).unwrap();
    let output = gateway(
        folder.path(),
        &["identity", "init", "--key-file", "identity.key"],
        "",
    );
    assert_eq!(output.status.code(), Some(1));
    assert!(!folder.path().join("elsewhere").exists());
}

#[test]
fn identity_show_of_nothing_fails() {
    let folder = tempfile::tempdir().unwrap();
    let output = gateway(
        folder.path(),
        &["identity", "show", "--key-file", "no.key"],
        "",
    );
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output.stderr).starts_with("error: "),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn passwd_sets_verifies_lists_and_deletes() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str], stdin: &str| {
        let all = [&["passwd", "--file", "passwd"], arguments].concat();
        gateway(folder.path(), &all, stdin)
    };
    let file = folder.path().join("passwd");
    assert_eq!(run(&["set", "alice"], "s3cret\n").status.code(), Some(0));
    assert_eq!(mode(&file), 0o600);
    let line = std::fs::read_to_string(&file).unwrap();
    assert!(
        line.starts_with("alice:$argon2id$v=19$m=19456,t=2,p=1$"),
        "{line}"
    );
    assert_eq!(run(&["set", "bob"], "other").status.code(), Some(0));
    assert_eq!(text(&run(&["list"], "").stdout), "alice\nbob\n");
    assert_eq!(run(&["verify", "alice"], "s3cret\n").status.code(), Some(0));
    assert_eq!(run(&["verify", "alice"], "S3cret\n").status.code(), Some(1));
    assert_eq!(run(&["verify", "carol"], "s3cret\n").status.code(), Some(1));

    assert_eq!(run(&["set", "alice"], "new\r\n").status.code(), Some(0));
    assert_eq!(run(&["verify", "alice"], "new").status.code(), Some(0));
    assert_eq!(
        text(&run(&["list"], "").stdout),
        "alice\nbob\n",
        "a user keeps the place"
    );
    assert_eq!(run(&["delete", "alice"], "").status.code(), Some(0));
    assert_eq!(run(&["delete", "alice"], "").status.code(), Some(1));
    assert_eq!(text(&run(&["list"], "").stdout), "bob\n");
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "no temporary file stays behind");
}

#[test]
fn passwd_refuses_names_and_passwords_that_no_login_could_use() {
    let folder = tempfile::tempdir().unwrap();
    let set = |user: &str, password: &str| {
        gateway(
            folder.path(),
            &["passwd", "--file", "passwd", "set", user],
            password,
        )
    };
    for user in ["", "a:b", "a\tb", " a", "a ", &"x".repeat(129)] {
        assert_eq!(set(user, "good").status.code(), Some(1), "{user:?}");
    }
    let long = "x".repeat(513);
    for password in ["", "\n", &long, &format!("{long}\n")] {
        assert_eq!(
            set("alice", password).status.code(),
            Some(1),
            "{} bytes",
            password.len()
        );
    }
    assert!(!folder.path().join("passwd").exists());
    assert_eq!(set("alice", &"x".repeat(512)).status.code(), Some(0));
}

/// A file half understood would lock out, or let in, the wrong people: it is left as it is.
#[test]
fn passwd_leaves_a_file_with_a_bad_line_alone() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("passwd");
    for bad in ["alice:plain\n", "\n", "# users\n", "alice\n"] {
        std::fs::write(&file, bad).unwrap();
        let output = gateway(
            folder.path(),
            &["passwd", "--file", "passwd", "set", "bob"],
            "x\n",
        );
        assert_eq!(output.status.code(), Some(1), "{bad:?}");
        assert!(
            text(&output.stderr).contains("line 1"),
            "{}",
            text(&output.stderr)
        );
        assert_eq!(std::fs::read_to_string(&file).unwrap(), bad);
    }
}

#[test]
fn passwd_keeps_the_mode_that_the_owner_chose() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("passwd");
    std::fs::write(&file, "").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
    let output = gateway(
        folder.path(),
        &["passwd", "--file", "passwd", "set", "bob"],
        "x\n",
    );
    assert_eq!((output.status.code(), mode(&file)), (Some(0), 0o640));
}

/// A password never stands in the arguments, where everybody on the machine could read it.
#[test]
fn passwd_takes_no_password_as_an_argument() {
    let folder = tempfile::tempdir().unwrap();
    let output = gateway(
        folder.path(),
        &["passwd", "--file", "passwd", "set", "bob", "s3cret"],
        "",
    );
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn passwd_finds_the_file_of_the_configuration() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("gateway.toml"),
        "[[credential]]\nfile = \"users\"\n",
    )
    .unwrap();
    let output = gateway(
        folder.path(),
        &["-c", "gateway.toml", "passwd", "set", "bob"],
        "x\n",
    );
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(folder.path().join("users").exists());
}

#[test]
fn status_says_when_nobody_answers() {
    let folder = tempfile::tempdir().unwrap();
    // A port that was free a moment ago and that nobody is told about.
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let url = format!("http://127.0.0.1:{port}");
    for flags in [&[][..], &["--ready"], &["--live"], &["--json"]] {
        let all = [&["status", "--url", &*url], flags].concat();
        assert_eq!(
            gateway(folder.path(), &all, "").status.code(),
            Some(7),
            "{flags:?}"
        );
    }
}

#[test]
fn completions_are_printed_for_every_shell() {
    let folder = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let output = gateway(folder.path(), &["completions", shell], "");
        assert_eq!(output.status.code(), Some(0), "{shell}");
        assert!(text(&output.stdout).contains("weida-gateway"), "{shell}");
    }
}

#[test]
fn no_arguments_and_wrong_ones_exit_2() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [
        &[][..],
        &["frobnicate"],
        &["identity"],
        &["completions", "cmd.exe"],
    ] {
        assert_eq!(
            gateway(folder.path(), arguments, "").status.code(),
            Some(2),
            "{arguments:?}"
        );
    }
    assert_eq!(
        gateway(folder.path(), &["--version"], "").status.code(),
        Some(0)
    );
}

/// A pipe is no terminal: whoever reads it gets no escape sequence.
#[test]
fn colours_are_for_terminals() {
    let folder = tempfile::tempdir().unwrap();
    let output = gateway(folder.path(), &["-c", "no-such.toml", "check"], "");
    assert!(text(&output.stderr).contains("error[E001]"));
    assert!(!output.stderr.contains(&0x1b));
}

#[test]
fn passwd_changes_made_at_once_are_all_kept() {
    let folder = tempfile::tempdir().unwrap();
    let users: Vec<String> = (0..8).map(|at| format!("user{at}")).collect();
    std::thread::scope(|scope| {
        for user in &users {
            scope.spawn(|| {
                let arguments = ["passwd", "--file", "passwd", "set", user];
                let set = gateway(folder.path(), &arguments, "s3cret\n");
                assert_eq!(set.status.code(), Some(0), "{}", text(&set.stderr));
            });
        }
    });
    let list = gateway(folder.path(), &["passwd", "--file", "passwd", "list"], "");
    let mut known: Vec<&str> = text(&list.stdout).lines().collect();
    known.sort_unstable();
    assert_eq!(known, users);
}
