//! What the sources and the public surface must not have. Rules that forbid something are checked where it would appear.

use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_owned()
}

/// Every source file below `folder`, without its tests: name and text.
fn sources(folder: &str) -> Vec<(String, String)> {
    let mut folders = vec![root().join(folder)];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.to_string_lossy().into_owned();
            if name.ends_with(".rs") && !name.ends_with("tests.rs") && !name.contains("/tests/") {
                let text = std::fs::read_to_string(&path).unwrap();
                let code = text.split("#[cfg(test)]\nmod ").next().unwrap().to_owned();
                found.push((name, code));
            }
        }
    }
    assert!(found.len() > 5, "{folder}: the scan found the sources");
    found
}

/// Names after `keyword` in the public declarations of `text`.
fn public(text: &str, keyword: &str) -> Vec<String> {
    let mut names = Vec::new();
    for line in text.lines() {
        let line = line.trim_start();
        let Some(rest) = line.strip_prefix("pub ") else {
            continue;
        };
        let rest = rest
            .trim_start_matches("const ")
            .trim_start_matches("async ");
        if let Some(name) = rest.strip_prefix(keyword) {
            let end = name.find(|c: char| !c.is_alphanumeric() && c != '_');
            names.push(name[..end.unwrap_or(name.len())].to_owned());
        }
    }
    names
}

/// Every public name of the runtime and of what it re-exports.
fn api() -> Vec<String> {
    let mut names = Vec::new();
    for folder in ["weida/runtime/src", "weida/core/src"] {
        for (_, text) in sources(folder) {
            for keyword in ["fn ", "struct ", "enum ", "trait ", "type ", "mod "] {
                names.extend(public(&text, keyword));
            }
        }
    }
    assert!(names.len() > 200, "{}", names.len());
    for known in ["publish", "IncomingRequest", "LossCause", "codes"] {
        assert!(
            names.iter().any(|name| name == known),
            "{known} was not found"
        );
    }
    names
}

/// Methods of `type` in one file.
fn methods(file: &str) -> Vec<String> {
    let text = std::fs::read_to_string(root().join(file)).unwrap();
    let mut names = public(&text, "fn ");
    names.sort_unstable();
    names.dedup();
    names
}

#[track_caller]
fn nowhere(names: &[String], words: &[&str]) {
    for name in names {
        let lower = name.to_lowercase();
        for word in words {
            assert!(
                !lower.contains(word),
                "{name} is public and contains {word}"
            );
        }
    }
}

/// Trust is what the application names: no root store of the platform or of a list, and nothing that skips the check.
#[test]
fn id_4_no_root_store_and_no_bypass() {
    let lock = std::fs::read_to_string(root().join("Cargo.lock")).unwrap();
    assert!(
        lock.contains("name = \"rustls\""),
        "the scan reads the lock file"
    );
    for store in [
        "webpki-roots",
        "webpki-root-certs",
        "rustls-native-certs",
        "rustls-platform-verifier",
    ] {
        let ours = ["weida/runtime", "weida/core", "gateway", "adapters/mqtt"]
            .map(|it| std::fs::read_to_string(root().join(it).join("Cargo.toml")).unwrap());
        assert!(ours.iter().all(|it| !it.contains(store)), "{store}");
    }
    nowhere(
        &api(),
        &[
            "insecure",
            "danger",
            "no_verif",
            "skip_verif",
            "accept_any",
            "accept_all",
            "native_roots",
        ],
    );
    // The one place where a verifier is plugged in, the runtime's own.
    let plugged: Vec<_> = sources("weida/runtime/src")
        .into_iter()
        .filter(|(_, text)| text.contains("with_custom_certificate_verifier"))
        .map(|(name, _)| name)
        .collect();
    assert!(
        plugged.iter().all(|name| name.ends_with("src/tls.rs")) && plugged.len() == 1,
        "{plugged:?}"
    );
}

/// A process-wide default is neither installed nor read.
#[test]
fn rt_5_no_source_touches_the_process_default_of_the_provider() {
    for folder in ["weida/runtime/src", "adapters/mqtt/src"] {
        for (name, text) in sources(folder) {
            for word in [
                "install_default",
                "get_default",
                "ClientConfig::builder()",
                "ServerConfig::builder()",
            ] {
                assert!(!text.contains(word), "{word} in {name}");
            }
        }
    }
}

/// An exchange has one reply: answering consumes the request, and no other type answers.
#[test]
fn rr_6_no_second_reply_and_no_router() {
    let text =
        std::fs::read_to_string(root().join("weida/runtime/src/transfer/exchange.rs")).unwrap();
    for answer in [
        "pub async fn reply(mut self, ",
        "pub async fn refuse(mut self, ",
    ] {
        assert!(text.contains(answer), "{answer}");
    }
    nowhere(&api(), &["router", "dealer", "correlation", "envelope"]);
}

/// Messages are dealt in turn: there is no knob for another choice.
#[test]
fn pp_2_no_capacity_based_spreading_is_offered() {
    assert_eq!(
        methods("weida/runtime/src/endpoint/push.rs"),
        [
            "connect",
            "connection_stats",
            "disconnect",
            "dropped",
            "events",
            "open",
            "peer_count",
            "send",
            "send_with"
        ]
    );
    nowhere(&api(), &["weight", "least_", "balanc", "capacity"]);
}

/// What was negotiated equals what was configured, so nothing reports it.
#[test]
fn gs_4_no_accessor_for_what_was_negotiated() {
    let runtime = sources("weida/runtime/src");
    let names: Vec<_> = runtime
        .iter()
        .flat_map(|(_, text)| public(text, "fn "))
        .collect();
    nowhere(&names, &["negotiated", "agreed", "guarantees", "effective"]);
}

/// What a publisher can do about a subscription is local: count, and decline copies. It answers nobody.
#[test]
fn s17_23_a_publisher_decides_locally_and_answers_nobody() {
    assert_eq!(
        methods("weida/runtime/src/endpoint/publish.rs"),
        [
            "drops",
            "dropped",
            "dropped_on",
            "filter_count",
            "open",
            "open_with_trace",
            "path",
            "publish",
            "publish_with",
            "publish_with_trace",
            "subscriber_count",
            "with_admission"
        ]
        .map(str::to_owned)
        .into_iter()
        .collect::<std::collections::BTreeSet<_>>()
        .into_iter()
        .collect::<Vec<_>>()
    );
    let admission =
        std::fs::read_to_string(root().join("weida/runtime/src/pubsub/admission.rs")).unwrap();
    let answers = admission.split("pub enum Admission {").nth(1).unwrap();
    let answers = answers.split('}').next().unwrap();
    let variants: Vec<_> = answers
        .lines()
        .map(str::trim)
        .filter(|line| line.ends_with(',') && !line.starts_with("//"))
        .collect();
    assert_eq!(variants, ["Record,", "DeclineCopies,"]);
}

/// No bound and no table for sessions: nothing outlives a connection, and nobody may relax that without writing down why.
#[test]
fn s8_29_no_bound_is_there_for_sessions() {
    let knobs = format!("{:?}", weida::RuntimeConfig::default()).to_lowercase();
    assert!(knobs.contains("max_subscriptions"), "{knobs}");
    assert!(
        !knobs.contains("session") && !knobs.contains("resum"),
        "{knobs}"
    );
    let folder = root().join("docs/decisions");
    let mut read = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        read += 1;
        assert!(
            !text.contains("outlives its connection") && !text.contains("session expiry interval"),
            "{} would be the decision that relaxes it: change this check with it",
            path.display()
        );
    }
    assert!(read > 1);
}

/// Nothing of a broker is approximated: the runtime neither holds a message nor acknowledges a subscription.
#[test]
fn s17_29_no_source_acknowledges_a_subscription() {
    nowhere(
        &api(),
        &[
            "suback",
            "subscribed_ok",
            "resume",
            "durable_sub",
            "session",
        ],
    );
}
