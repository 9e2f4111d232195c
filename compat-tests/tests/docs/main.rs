//! What the documents must say, checked as text.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod surface;

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

/// "The transport holds it", wherever a receipt is explained, and never that it was read.
#[test]
fn tx_3_a_receipt_is_the_transports_everywhere() {
    says(
        "docs/concepts.md",
        &[
            "A **receipt** means the peer's transport holds every byte. It does not mean read, accepted, stored or processed.",
        ],
    );
    for (name, sentence) in [
        ("README.md", "transport holds"),
        (
            "docs/protocols/mqtt.md",
            "weida's transport holds every byte",
        ),
        ("docs/protocols/mqtt.md", "a receipt is not processing"),
        ("weida/runtime/src/lib.rs", "transport* holds every byte"),
        (
            "weida/runtime/src/transfer/delivery.rs",
            "It does not mean that anybody read",
        ),
    ] {
        says(name, &[sentence]);
    }
    for name in [
        "README.md",
        "docs/concepts.md",
        "docs/architecture.md",
        "docs/protocols/mqtt.md",
        "docs/configuration.md",
    ] {
        let text = doc(name).to_lowercase();
        for wrong in [
            "receipt means the peer read",
            "receipt means it was read",
            "receipt proves that",
            "receipt confirms processing",
        ] {
            assert!(!text.contains(wrong), "{name}: {wrong}");
        }
    }
}

#[test]
fn fc_8_no_application_credit_below_a_queue() {
    says(
        "docs/concepts.md",
        &[
            "The stream budget is the only credit",
            "`Subscriber::grant` matters only where a queue serves the path",
        ],
    );
    says(
        "weida/runtime/src/endpoint/subscribe.rs",
        &["It matters only where a *queue* serves the path; a publisher ignores it."],
    );
}

#[test]
fn fc_7_overload_discards_only_in_fan_out_and_by_choice_in_the_outbox() {
    says(
        "docs/concepts.md",
        &[
            "Overload discards in two places only: fan-out, and an outbox whose owner chose `OutboxFull::Drop`; both are counted",
        ],
    );
}

#[test]
fn ob_7_the_outbox_is_the_senders_own() {
    says(
        "docs/concepts.md",
        &[
            "The outbox is the sender's own: not negotiated, it confirms nothing, and it ends with the process",
        ],
    );
}

#[test]
fn dr_8_a_drain_is_no_acknowledgement() {
    says("docs/concepts.md", &["A drain is never an acknowledgement"]);
    says(
        "weida/runtime/src/runtime.rs",
        &["What was delivered is a count of transport receipts, never an"],
    );
}

#[test]
fn az_3_a_refusal_of_one_way_traffic_may_go_unseen() {
    says(
        "docs/concepts.md",
        &[
            "A refusal of one-way traffic may go unseen",
            "who must hear it uses a request",
        ],
    );
}

#[test]
fn lg_3_a_large_request_reads_its_reply_meanwhile() {
    says(
        "docs/concepts.md",
        &["A requester with a body larger than the windows reads the reply while it writes"],
    );
    says(
        "weida/runtime/examples/large_request.rs",
        &["tokio::join!(write, read)"],
    );
}

#[test]
fn s17_5_a_subscription_that_closes_nothing_was_received_and_not_refused() {
    says(
        "docs/concepts.md",
        &[
            "A SUBSCRIBE that closes no connection was received and not refused: that is all it tells",
        ],
    );
}

#[test]
fn s17_10_the_companion_path_has_an_example() {
    says("docs/concepts.md", &["`examples/companion.rs`"]);
    says(
        "weida/runtime/examples/companion.rs",
        &["with_admission", "may-i"],
    );
}

#[test]
fn s8_26_resumption_is_left_to_a_broker_layer() {
    says(
        "docs/concepts.md",
        &[
            "would have to define how a session binds to (fingerprint, application-chosen name), how long it outlives a connection, and what a resumed position means",
        ],
    );
}

/// Every adapter document says where session state lives, its bound, its lifetime and what a restart loses.
#[test]
fn s8_41_every_adapter_document_says_where_session_state_lives() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .join("docs/protocols");
    let mut read = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let section = text.split("## Where session state lives").nth(1);
        let section = section.unwrap_or_else(|| panic!("{}", path.display()));
        let section = section.split("\n## ").next().unwrap();
        for word in ["memory", "Bounds:", "as long as", "restart"] {
            assert!(section.contains(word), "{}: {word}", path.display());
        }
        read += 1;
    }
    assert!(read >= 1);
}

/// A subscription at a remote publisher has no verdict; the adapter's document says what a client's SUBACK is worth.
#[test]
fn s17_36_the_lack_of_a_verdict_is_named() {
    says(
        "docs/protocols/mqtt.md",
        &[
            "SUBACK says that the listener holds the filter, no more",
            "SUBACK does not mean that anything will come",
        ],
    );
    says(
        "docs/configuration.md",
        &["A `subscribe` route has no verdict"],
    );
}

#[test]
fn gs_4_what_was_negotiated_is_what_was_configured() {
    says(
        "docs/concepts.md",
        &["What two sides agreed on is what this side configured, or there is no connection"],
    );
}

/// The gateway ends its routes before the runtime, each with its own count.
#[test]
fn dr_9_the_routes_are_drained_before_the_runtime() {
    let text = doc("gateway/src/drain.rs");
    let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what}"));
    let order = [
        at("sources.finish_by(half)"),
        at("finished(routes, Direction::Egress)"),
        at("finished(routes, Direction::Ingress)"),
        at("state.totals().unsettled"),
        at("dials.finish_by(deadline)"),
        at("runtime.drain(left)"),
    ];
    assert!(order.is_sorted(), "{order:?}");
    says(
        "gateway/src/drain.rs",
        &["pub unsettled: u64", "pub weida_outstanding: u64"],
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
