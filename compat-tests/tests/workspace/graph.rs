//! The dependency graph of the workspace, read from `cargo metadata`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::OnceLock;

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, PackageId};

/// Which crates of the workspace a crate may depend on, in normal and build dependencies.
const ARROWS: &[(&str, &[&str])] = &[
    ("weida-core", &[]),
    ("weida-protocol", &["weida-core"]),
    ("weida", &["weida-core", "weida-protocol"]),
    ("weida-bridge", &["weida-core"]),
    ("weida-mqtt", &["weida-core", "weida-bridge"]),
    (
        "weida-gateway",
        &["weida-core", "weida", "weida-bridge", "weida-mqtt"],
    ),
    ("weida-testkit", &["weida-core", "weida-bridge"]),
    ("weida-identity-tests", &[]),
    ("weida-compat-tests", &[]),
];

/// Crates that must not be reachable from another one by normal dependencies.
const UNREACHABLE: &[(&str, &[&str])] = &[
    ("weida-core", &["tokio", "quinn", "rustls"]),
    ("weida-protocol", &["tokio", "quinn", "rustls", "ciborium"]),
    ("weida-bridge", &["quinn", "rustls", "weida"]),
    ("weida-mqtt", &["quinn", "weida", "weida-protocol"]),
    ("weida", &["weida-bridge", "weida-mqtt", "axum", "tower"]),
    (
        "weida-gateway",
        &[
            "weida-runtime",
            "aws-lc-sys",
            "openssl-sys",
            "rumqttd",
            "zeromq",
        ],
    ),
];

fn metadata() -> &'static Metadata {
    static METADATA: OnceLock<Metadata> = OnceLock::new();
    METADATA.get_or_init(|| {
        MetadataCommand::new()
            .manifest_path(concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml"))
            .other_options(["--locked".to_owned(), "--offline".to_owned()])
            .exec()
            .expect("cargo metadata works in this workspace")
    })
}

fn members() -> BTreeMap<&'static str, &'static PackageId> {
    let metadata = metadata();
    metadata
        .workspace_packages()
        .iter()
        .map(|package| (package.name.as_str(), &package.id))
        .collect()
}

/// Names reachable from a workspace crate by normal and build dependencies, the published runtime's as `name@version`.
fn reachable(from: &str) -> BTreeSet<String> {
    let metadata = metadata();
    let resolve = metadata.resolve.as_ref().expect("a resolved graph");
    let nodes: BTreeMap<_, _> = resolve.nodes.iter().map(|node| (&node.id, node)).collect();
    let mut queue = VecDeque::from([members()[from]]);
    let mut seen = BTreeSet::new();
    let mut names = BTreeSet::new();
    while let Some(id) = queue.pop_front() {
        for dependency in &nodes[id].deps {
            let shipped = dependency
                .dep_kinds
                .iter()
                .any(|kind| matches!(kind.kind, DependencyKind::Normal | DependencyKind::Build));
            if shipped && seen.insert(&dependency.pkg) {
                names.insert(metadata[&dependency.pkg].name.to_string());
                queue.push_back(&dependency.pkg);
            }
        }
    }
    names
}

#[test]
fn every_arrow_points_up() {
    let metadata = metadata();
    let allowed: BTreeMap<_, _> = ARROWS.iter().copied().collect();
    let members = members();
    assert_eq!(
        members.keys().copied().collect::<BTreeSet<_>>(),
        allowed.keys().copied().collect::<BTreeSet<_>>(),
        "a crate joined or left the workspace: draw its arrows here"
    );
    for (name, id) in &members {
        for dependency in &metadata[*id].dependencies {
            let inside =
                dependency.path.is_some() && members.contains_key(dependency.name.as_str());
            if inside && dependency.kind != DependencyKind::Development {
                assert!(
                    allowed[name].contains(&dependency.name.as_str()),
                    "{name} must not depend on {}",
                    dependency.name
                );
            }
        }
    }
}

#[test]
fn siblings_and_lower_floors_stay_unreachable() {
    for (from, forbidden) in UNREACHABLE {
        let names = reachable(from);
        for name in *forbidden {
            assert!(!names.contains(*name), "{from} reaches {name}");
        }
    }
}

#[test]
fn the_valid_neighbour_of_the_reachability_law_passes() {
    assert!(reachable("weida").contains("quinn"));
    assert!(reachable("weida-gateway").contains("tower"));
    assert!(reachable("weida-mqtt").contains("weida-bridge"));
}

#[test]
fn there_is_one_of_each_stack() {
    let metadata = metadata();
    for name in [
        "rustls",
        "quinn",
        "quinn-proto",
        "tokio",
        "ring",
        "tower",
        "axum",
        "bytes",
    ] {
        let versions: Vec<_> = metadata
            .packages
            .iter()
            .filter(|package| package.name.as_str() == name)
            .map(|package| package.version.to_string())
            .collect();
        assert_eq!(
            versions.len(),
            1,
            "{name} stands {versions:?} in the lock file"
        );
    }
}

#[test]
fn s8_30_the_runtime_has_no_session_type() {
    let runtime = concat!(env!("CARGO_MANIFEST_DIR"), "/../weida");
    let mut files = Vec::new();
    collect(runtime.as_ref(), &mut files);
    assert!(files.len() > 10, "the runtime's sources were found");
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        for word in ["struct Session", "enum Session", "SessionKey", "ClientId"] {
            assert!(!text.contains(word), "{} names {word}", file.display());
        }
    }
}

fn collect(folder: &std::path::Path, files: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs")
            && path.components().any(|part| part.as_os_str() == "src")
        {
            files.push(path);
        }
    }
}
