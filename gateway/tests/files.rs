//! Files that a configuration names: secrets, keys, certificates, logins, and the limits of the machine.

use std::path::Path;

use rcgen::{CertificateParams, KeyPair};
use weida_gateway::config::passwd::File;
use weida_gateway::config::{Input, Report, load};

const BASE: &str = r##"
[gateway]
data_dir = "data"
[[listen]]
name = "mqtt"
protocol = "mqtt"
bind = "127.0.0.1:1883"
auth = ["anonymous"]
[[grant]]
who = ["anonymous"]
publish = ["#"]
"##;

const TLS: &str = r##"
[[listen]]
name = "tls"
protocol = "mqtt"
bind = "127.0.0.1:8883"
auth = ["anonymous"]
tls = { cert_file = "tls.crt", key_file = "tls.key" }
"##;

/// Codes that `check` finds in a folder, after writing `text` as its configuration.
fn codes(folder: &Path, text: &str) -> Vec<&'static str> {
    let report = report(folder, text);
    report
        .findings()
        .iter()
        .map(|finding| finding.code)
        .collect()
}

fn report(folder: &Path, text: &str) -> Report {
    let file = folder.join("gateway.toml");
    std::fs::write(&file, text).expect("the file can be written");
    match load(&Input {
        file,
        ..Input::default()
    }) {
        Ok((_, report)) | Err(report) => report,
    }
}

fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("it is ours");
}

/// Writes a secret for the owner only.
fn write_secret(path: &Path, text: &str) {
    std::fs::write(path, text).expect("the file can be written");
    set_mode(path, 0o600);
}

/// Writes `tls.crt` and `tls.key`; the certificate ends on that day.
fn write_pair(folder: &Path, (year, month, day): (i32, u8, u8)) {
    let key = KeyPair::generate().expect("a key");
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
    params.not_before = rcgen::date_time_ymd(2020, 1, 1);
    params.not_after = rcgen::date_time_ymd(year, month, day);
    let certificate = params.self_signed(&key).expect("a certificate");
    std::fs::write(folder.join("tls.crt"), certificate.pem()).expect("the file can be written");
    write_secret(&folder.join("tls.key"), &key.serialize_pem());
}

/// The day so many days from now.
fn days_from_now(days: u64) -> (i32, u8, u8) {
    let then = std::time::SystemTime::now() + std::time::Duration::from_secs(days * 86_400);
    let text = humantime::format_rfc3339(then).to_string();
    let mut parts = text.split(['-', 'T']);
    let mut next = || parts.next().expect("a date has three parts");
    let year = next().parse().expect("a year");
    (
        year,
        next().parse().expect("a month"),
        next().parse().expect("a day"),
    )
}

#[test]
fn a_good_pair_is_good() {
    let folder = tempfile::tempdir().unwrap();
    write_pair(folder.path(), (2090, 1, 1));
    assert!(codes(folder.path(), &format!("{BASE}{TLS}")).is_empty());
}

#[test]
fn a_certificate_that_ends_soon_is_a_warning_and_one_that_ended_an_error() {
    let folder = tempfile::tempdir().unwrap();
    for (day, expected) in [
        (days_from_now(5), vec!["W011"]),
        (days_from_now(20), vec![]),
        ((2021, 1, 1), vec!["E027"]),
    ] {
        write_pair(folder.path(), day);
        assert_eq!(
            codes(folder.path(), &format!("{BASE}{TLS}")),
            expected,
            "{day:?}"
        );
    }
}

#[test]
fn the_key_of_another_certificate_is_found() {
    let folder = tempfile::tempdir().unwrap();
    write_pair(folder.path(), (2090, 1, 1));
    let key = folder.path().join("tls.key");
    let first = std::fs::read_to_string(&key).unwrap();
    write_pair(folder.path(), (2090, 1, 1));
    write_secret(&key, &first);
    assert_eq!(codes(folder.path(), &format!("{BASE}{TLS}")), ["E026"]);
}

#[test]
fn a_key_that_everybody_reads_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    write_pair(folder.path(), (2090, 1, 1));
    for (mode, expected) in [
        (0o644, vec!["E012"]),
        (0o604, vec!["E012"]),
        (0o640, vec![]),
    ] {
        set_mode(&folder.path().join("tls.key"), mode);
        assert_eq!(
            codes(folder.path(), &format!("{BASE}{TLS}")),
            expected,
            "{mode:o}"
        );
    }
}

#[test]
fn client_certificates_need_an_authority() {
    let folder = tempfile::tempdir().unwrap();
    write_pair(folder.path(), (2090, 1, 1));
    let with = |keys: &str| format!("{BASE}{}", TLS.replace(" }", &format!(", {keys} }}")));
    assert_eq!(
        codes(folder.path(), &with("client_auth = \"required\"")),
        ["E028"]
    );
    assert!(
        codes(
            folder.path(),
            &with("client_auth = \"required\", client_ca_file = \"tls.crt\"")
        )
        .is_empty()
    );
    std::fs::write(folder.path().join("ca.pem"), "no certificate").unwrap();
    assert_eq!(
        codes(folder.path(), &with("client_ca_file = \"ca.pem\"")),
        ["E025"]
    );
}

#[test]
fn an_identity_of_an_authority_is_checked_like_any_pair() {
    let folder = tempfile::tempdir().unwrap();
    write_pair(folder.path(), (2090, 1, 1));
    let text = format!("{BASE}[identity]\ncert_file = \"tls.crt\"\nkey_file = \"tls.key\"\n");
    assert!(codes(folder.path(), &text).is_empty());
    std::fs::remove_file(folder.path().join("tls.key")).unwrap();
    assert_eq!(codes(folder.path(), &text), ["E013"]);
}

#[test]
fn the_admin_token_comes_from_a_private_file() {
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    let text = format!("{BASE}[admin]\nbind = \"0.0.0.0:7480\"\ntoken_file = \"token\"\n");
    write_secret(&token, "0123456789abcdef0123456789abcdef\n");
    assert!(codes(folder.path(), &text).is_empty());
    set_mode(&token, 0o644);
    assert_eq!(codes(folder.path(), &text), ["E012"]);
    write_secret(&token, "short\n");
    assert_eq!(codes(folder.path(), &text), ["E060"]);
    write_secret(&token, "");
    assert_eq!(codes(folder.path(), &text), ["E013"]);
}

#[test]
fn an_inline_secret_is_a_warning_where_it_is_allowed_and_never_shown() {
    let folder = tempfile::tempdir().unwrap();
    let text = BASE.replace("data_dir", "allow_inline_secrets = true\ndata_dir")
        + "[admin]\ntoken = \"correct-horse-battery-staple\"\n";
    let report = report(folder.path(), &text);
    assert!(!report.has_errors());
    assert_eq!(report.findings()[0].code, "W001");
    assert!(!(report.to_text(true) + &report.to_json()).contains("horse"));
    let file = folder.path().join("gateway.toml");
    let (config, _) = load(&Input {
        file,
        ..Input::default()
    })
    .unwrap();
    assert!(
        !format!("{config:?}").contains("horse"),
        "Debug of a configuration shows a secret"
    );
    assert_eq!(
        config.admin.token.unwrap().reveal(),
        "correct-horse-battery-staple"
    );
}

/// One odd line makes the whole password file refused. `[mqtt 9.1]`
#[test]
fn every_line_of_a_password_file_is_a_login() {
    let mut users = File::default();
    users.set("alice", "s3cret").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("passwd");
    users.save(&file).unwrap();
    let good = std::fs::read_to_string(&file).unwrap();
    let hash = good.trim().strip_prefix("alice:").unwrap().to_owned();
    assert!(
        File::parse(good.as_bytes())
            .unwrap()
            .verify("alice", "s3cret")
    );
    assert!(File::parse(b"").unwrap().names().next().is_none());

    let other = |from: &str, to: &str| format!("alice:{}\n", hash.replace(from, to));
    for (bad, line) in [
        (format!("{good}\n"), 2),
        (format!("\n{good}"), 1),
        (format!("# comment\n{good}"), 1),
        (format!("{good}{good}"), 2),
        (format!("{good}bob:plain\n"), 2),
        (format!("{good}bob:\n"), 2),
        (format!("{good}bob\n"), 2),
        (format!(":{hash}\n"), 1),
        (format!(" alice:{hash}\n"), 1),
        (format!("alice:{hash} \n"), 1),
        (format!("alice:{hash}\r\n"), 1),
        (other("argon2id", "argon2i"), 1),
        (other("argon2id", "argon2d"), 1),
        (other("argon2id", "scrypt"), 1),
        (other("v=19", "v=16"), 1),
        (other("v=19$", ""), 1),
        (other("m=19456", "m=99999999"), 1),
        (other("m=19456", "m=1"), 1),
        (other("t=2", "t=1000"), 1),
        (format!("alice:{}\n", &hash[..hash.rfind('$').unwrap()]), 1),
        ("alice:$2b$12$abcdefghijklmnopqrstuv\n".to_owned(), 1),
    ] {
        let error = File::parse(bad.as_bytes()).expect_err(&bad).to_string();
        assert!(
            error.starts_with(&format!("line {line}: ")),
            "{error}\n{bad}"
        );
        assert!(!error.contains(&hash), "{error}");
    }
    let not_text = [good.as_bytes(), b"\xff:x\n"].concat();
    assert_eq!(
        File::parse(&not_text).unwrap_err().to_string(),
        "line 2: not UTF-8"
    );
}

#[test]
fn a_password_listener_wants_a_good_private_file() {
    let folder = tempfile::tempdir().unwrap();
    let text = BASE
        .replace("[\"anonymous\"]\n[[grant]]", "[\"password\"]\n[[grant]]")
        .replace("who = [\"anonymous\"]", "who = [\"user:*\"]")
        + "[[credential]]\nfile = \"passwd\"\n";
    let file = folder.path().join("passwd");
    assert_eq!(codes(folder.path(), &text), ["E013"]);
    let mut users = File::default();
    users.set("alice", "s3cret").unwrap();
    users.save(&file).unwrap();
    assert!(codes(folder.path(), &text).is_empty());
    set_mode(&file, 0o644);
    assert_eq!(codes(folder.path(), &text), ["E012"]);
    write_secret(&file, "alice:plain\n");
    assert_eq!(codes(folder.path(), &text), ["E052"]);
}

/// A default is lowered to what open files allow; a spelled-out value above it is refused. `[reconciled R2]`
#[test]
fn r2_sessions_fit_into_the_open_files() {
    let folder = tempfile::tempdir().unwrap();
    assert!(codes(folder.path(), BASE).is_empty());
    let many = format!("{BASE}[limits]\nmax_sessions = 1000000\n");
    let found = report(folder.path(), &many);
    if found.has_errors() {
        assert_eq!(found.findings()[0].code, "E070");
        assert!(found.findings()[0].message.contains("open files"));
    }
    let over =
        BASE.replace("auth =", "max_sessions = 20\nauth =") + "[limits]\nmax_sessions = 10\n";
    assert_eq!(codes(folder.path(), &over), ["E070"]);
}

/// Bounds that were spelled out must fit the machine, unless somebody says otherwise. `[mqtt R10]`
#[test]
fn mqtt_r10_spelled_out_bounds_fit_the_memory() {
    let folder = tempfile::tempdir().unwrap();
    let text = BASE.replace(
        "auth =",
        "max_sessions = 10000\nmqtt = { queue_bytes = \"1GiB\" }\nauth =",
    );
    assert_eq!(codes(folder.path(), &text), ["E071"]);
    let file = folder.path().join("gateway.toml");
    assert!(
        load(&Input {
            file,
            allow_overcommit: true,
            ..Input::default()
        })
        .is_ok()
    );
    let small = text.replace("1GiB", "1KiB").replace("10000", "10");
    assert!(codes(folder.path(), &small).is_empty());
}
