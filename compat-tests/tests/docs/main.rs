//! What the documents must say, checked as text.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::path::Path;

fn doc(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
    // Line breaks carry no meaning in prose.
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn says(name: &str, sentences: &[&str]) {
    let text = doc(name);
    for sentence in sentences {
        assert!(text.contains(sentence), "{name} does not say: {sentence}");
    }
}

#[test]
fn s8_36_the_concepts_list_what_the_wire_leaves_open() {
    says(
        "docs/concepts.md",
        &[
            "Session state, session identifiers, subscription resumption and sequence resumption do not exist on the wire",
            "They belong to a broker layer",
            "another key is refused",
            "anonymous clients have not even that",
        ],
    );
}

#[test]
fn s8_37_the_concepts_say_what_persists() {
    says(
        "docs/concepts.md",
        &[
            "What persists is the peer's name and nothing else",
            "The fingerprint binds a peer's connections",
            "A producer's default name is the fingerprint",
            "two anonymous connections are two peers, never one",
        ],
    );
}

#[test]
fn s8_38_identity_is_per_connection_and_carries_no_session() {
    says(
        "docs/concepts.md",
        &[
            "Identity is per connection",
            "the same for every connection that proves the same key",
            "It carries no session",
        ],
    );
}

#[test]
fn s8_39_the_tie_is_the_proved_fingerprint() {
    says(
        "docs/architecture.md",
        &[
            "The tie between a peer's connections is the fingerprint it proved on each of them and nothing else",
        ],
    );
}

#[test]
fn s17_9_and_s17_37_silence_is_not_an_answer() {
    says(
        "docs/concepts.md",
        &[
            "SUBSCRIBE is never acknowledged",
            "Three silences look the same",
            "Silence is not an answer, in either direction",
            "that a publisher exists, that any message will come, that it is authorized, or that a missing copy was a decision",
            "LIMIT_EXCEEDED is overload only",
            "asks on a companion request path",
        ],
    );
}

#[test]
fn s17_38_the_concepts_say_what_would_reopen_it() {
    says(
        "docs/concepts.md",
        &[
            "The seam is open again only if",
            "cannot use a companion path",
            "while no drop is counted",
        ],
    );
}

#[test]
fn readme_shows_two_commands_on_its_first_screen() {
    let readme = std::fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .parent()
            .unwrap()
            .join("README.md"),
    )
    .unwrap();
    let first_screen: Vec<_> = readme.lines().take(40).collect();
    let first_screen = first_screen.join("\n");
    for needed in [
        "cargo run --release -p weida-gateway -- quickstart",
        "compat-tests/run",
        "mosquitto_pub -t plant/7/temp -m 21.5 -q 1",
    ] {
        assert!(
            first_screen.contains(needed),
            "the first screen lacks: {needed}"
        );
    }
    let block = first_screen
        .split("```sh")
        .nth(1)
        .unwrap()
        .split("```")
        .next()
        .unwrap();
    assert_eq!(
        block.lines().filter(|line| !line.trim().is_empty()).count(),
        2,
        "two commands do all set-up"
    );
}
