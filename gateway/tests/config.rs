//! What a good file becomes, what the environment may change, what later versions own. `[gateway.md 2.1]`

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use weida_bridge::{AckOn, DeliveryClass, Direction, Pattern};
use weida_gateway::config::valid::{ListenKind, MqttReply, Overflow, WeidaEnd, Who};
use weida_gateway::config::{Config, Input, Report, later_keys, load, reference};

const BASE: &str = r##"
[gateway]
data_dir = "data"
[[listen]]
name = "weida"
protocol = "weida"
bind = "127.0.0.1:7443"
[[listen]]
name = "mqtt-tls"
protocol = "mqtt"
bind = "127.0.0.1:1883"
auth = ["anonymous"]
[[route]]
name = "in"
from = { listen = "mqtt-tls", filter = "plant/#" }
to = { weida = "/mqtt", pattern = "publish" }
delivery = "at-most-once"
[[grant]]
who = ["anonymous"]
listen = "mqtt-tls"
publish = ["#"]
[[grant]]
who = ["peer:*"]
listen = "weida"
subscribe = ["/mqtt"]
"##;

fn good(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/good")
        .join(name)
}

fn load_with(text: &str, environment: &[(&str, &str)]) -> Result<(Config, Report), Report> {
    let folder = tempfile::tempdir().expect("a folder for the file");
    let file = folder.path().join("gateway.toml");
    std::fs::write(&file, text).expect("the file can be written");
    let environment = environment
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect();
    load(&Input {
        file,
        environment,
        allow_overcommit: false,
    })
}

/// Codes of everything that was found.
fn codes(result: Result<(Config, Report), Report>) -> Vec<&'static str> {
    let report = match result {
        Ok((_, report)) | Err(report) => report,
    };
    report
        .findings()
        .iter()
        .map(|finding| finding.code)
        .collect()
}

fn every_key() -> Config {
    let input = Input {
        file: good("every-key.toml"),
        ..Input::default()
    };
    match load(&input) {
        Ok((config, _)) => config,
        Err(report) => panic!("{}", report.to_text(false)),
    }
}

#[test]
fn the_smallest_file_gets_every_default() {
    let (config, report) = load(&Input {
        file: good("smallest.toml"),
        ..Input::default()
    })
    .unwrap();
    assert!(report.findings().is_empty());
    assert_eq!(config.gateway.drain_timeout, Duration::from_secs(8));
    assert_eq!(
        config.identity.key_file,
        config.gateway.data_dir.join("identity.key")
    );
    assert_eq!(config.admin.bind, SocketAddr::from(([127, 0, 0, 1], 7480)));
    let (_, mqtt) = config.mqtt_listeners().next().unwrap();
    assert_eq!((mqtt.receive_maximum, mqtt.queue_messages), (64, 1000));
    assert!(mqtt.max_sessions <= config.limits.max_sessions.max(10_000));
    let route = &config.routes[0];
    assert_eq!(route.route.direction, Direction::Ingress);
    assert_eq!(route.route.pattern, Pattern::Publish);
    assert_eq!(route.route.delivery, DeliveryClass::AtMostOnce);
    assert_eq!(route.route.ack_on, AckOn::Sent);
    assert_eq!(route.route.timeout, Some(Duration::from_secs(10)));
    assert_eq!(route.overflow, Overflow::Block);
    assert!(route.route.topic.is_identity());
}

#[test]
fn every_key_arrives_where_it_belongs() {
    let config = every_key();
    assert_eq!(
        (&*config.gateway.name, config.gateway.worker_threads),
        ("plant-7", 2)
    );
    assert_eq!(config.identity.trust.len(), 1);
    let (_, mqtt) = config.mqtt_listeners().next().unwrap();
    assert_eq!(mqtt.bind, SocketAddr::from(([127, 0, 0, 1], 1883)));
    assert_eq!(
        (&*mqtt.group, mqtt.routes_only, mqtt.max_levels),
        ("fleet", true, 16)
    );
    assert_eq!(mqtt.auth_cache, Duration::ZERO);
    let by_name = |name: &str| {
        config
            .routes
            .iter()
            .find(|it| it.route.id.as_str() == name)
            .unwrap_or_else(|| panic!("{name}"))
    };
    let push = by_name("push");
    assert_eq!(push.route.delivery, DeliveryClass::AtLeastOnce);
    assert_eq!(push.route.max_message_bytes, 32 * 1024);
    assert_eq!(
        (push.buffer.messages, push.in_flight, push.max_hops),
        (100, 64, 2)
    );
    assert_eq!(push.conditions.len(), 2);
    assert!(matches!(&push.weida, WeidaEnd::Dial { address, .. } if address.peer.is_some()));
    let subscribe = by_name("subscribe");
    assert!(
        matches!(&subscribe.weida, WeidaEnd::Dial { filter, .. } if filter.as_str() == "plant.#")
    );
    let reply = |name: &str| {
        let weida_gateway::config::valid::ForeignEnd::Mqtt(mqtt) = &by_name(name).foreign;
        (mqtt.reply, by_name(name).route.ack_on)
    };
    assert_eq!(reply("rpc"), (Some(MqttReply::ResponseTopic), AckOn::Reply));
    assert_eq!(reply("tell"), (Some(MqttReply::None), AckOn::Receipt));
    assert_eq!(by_name("ask").route.ack_on, AckOn::Reply);
    assert_eq!(config.limits.max_sessions, 200);
    assert!(matches!(
        config.grants[1].who[..],
        [Who::AnyPeer, Who::Peer(_)]
    ));
    assert!(
        config.grants[1].weida_may_publish("/tell") && !config.grants[1].weida_may_publish("/x")
    );
}

/// Request and reply routes always have an end. `[reconciled R6]`
#[test]
fn a_request_or_reply_route_never_waits_for_ever() {
    for route in every_key().routes {
        if matches!(route.route.pattern, Pattern::Request | Pattern::Reply) {
            assert!(route.route.timeout.is_some(), "{}", route.route.id);
        }
    }
}

#[test]
fn the_environment_overrides_by_type_and_by_name() {
    let (config, _) = load_with(
        BASE,
        &[
            ("WEIDA_GATEWAY__LIMITS__MAX_FILTERS_PER_SESSION", "7"),
            ("WEIDA_GATEWAY__LISTEN__MQTT_TLS__BIND", "127.0.0.1:11883"),
            ("WEIDA_GATEWAY__LISTEN__MQTT_TLS__MQTT__ROUTES_ONLY", "true"),
            ("WEIDA_GATEWAY__GATEWAY__DRAIN_TIMEOUT", "30s"),
            ("WEIDA_GATEWAY__TELEMETRY__LOG__LEVEL", "debug"),
            ("WEIDA_GATEWAY_CONFIG", "ignored here"),
            ("UNRELATED", "x"),
        ],
    )
    .unwrap();
    assert_eq!(config.limits.max_filters_per_session, 7);
    let (_, mqtt) = config.mqtt_listeners().next().unwrap();
    assert_eq!((mqtt.bind.port(), mqtt.routes_only), (11_883, true));
    assert_eq!(config.gateway.drain_timeout, Duration::from_secs(30));
    assert_eq!(config.telemetry.level, "debug");
}

#[test]
fn an_override_that_matches_nothing_is_an_error() {
    for (name, value, code) in [
        ("WEIDA_GATEWAY__LIMITS__MAX_SESIONS", "7", "E014"),
        ("WEIDA_GATEWAY__LISTEN__OTHER__BIND", "127.0.0.1:1", "E014"),
        ("WEIDA_GATEWAY__LIMITS", "7", "E014"),
        ("WEIDA_GATEWAY__LISTEN__MQTT_TLS", "7", "E014"),
        ("WEIDA_GATEWAY__GATEWAY__NAME__X", "7", "E014"),
        ("WEIDA_GATEWAY__LIMITS__MAX_SESSIONS", "many", "E005"),
        ("WEIDA_GATEWAY__GATEWAY__DRAIN_TIMEOUT", "8", "E006"),
        (
            "WEIDA_GATEWAY__GATEWAY__DRAIN_TIMEOUT",
            "8s\"\n[limits]",
            "E006",
        ),
        ("WEIDA_GATEWAY__STORE__ENGINE", "redb", "E004"),
    ] {
        let result = load_with(BASE, &[(name, value)]);
        let report = result.expect_err(name);
        let finding = &report.findings()[0];
        assert_eq!(
            (finding.code, finding.file.as_str()),
            (code, format!("${name}").as_str())
        );
    }
}

#[test]
fn two_names_that_spell_alike_can_not_be_overridden() {
    let text = BASE.to_owned()
        + "[[listen]]\nname = \"mqtt_tls\"\nprotocol = \"mqtt\"\nbind = \"127.0.0.1:1884\"\nauth = [\"anonymous\"]\n";
    assert!(load_with(&text, &[]).is_ok());
    let found = codes(load_with(
        &text,
        &[("WEIDA_GATEWAY__LISTEN__MQTT_TLS__BIND", "127.0.0.1:1")],
    ));
    assert!(found.contains(&"E014"), "{found:?}");
}

/// Every key that belongs to a later version is refused by name, wherever it stands.
#[test]
fn keys_of_later_versions_are_refused_never_ignored() {
    let keys = later_keys();
    assert!(keys.len() > 80, "{} keys", keys.len());
    for (path, value) in keys {
        let text = with_key(&path, &value);
        let report = load_with(&text, &[]).expect_err(&path);
        let told = report
            .findings()
            .iter()
            .any(|it| it.code == "E004" && it.message.contains("not available in this version"));
        assert!(told, "{path} = {value}\n{text}\n{}", report.to_text(false));
    }
}

/// [`BASE`] with one more key, put into the table it belongs to.
fn with_key(path: &str, value: &str) -> String {
    let words: Vec<&str> = path.split('.').collect();
    let (key, tables) = words.split_last().expect("a path has a key");
    let line = format!("{key} = {value}\n");
    let after = |marker: &str| {
        let kept: String = BASE
            .lines()
            .filter(|it| !it.starts_with(&format!("{key} =")))
            .fold(String::new(), |text, line| text + line + "\n");
        kept.replacen(marker, &format!("{marker}\n{line}"), 1)
    };
    match tables {
        [] => format!("{line}{BASE}"),
        ["gateway"] => after("[gateway]"),
        ["listen"] => {
            // The second listener is the MQTT one; `shards` belongs to weida.
            let (head, tail) =
                BASE.split_at(BASE.find("name = \"mqtt-tls\"").expect("it is there"));
            let tail: String = tail
                .split_inclusive('\n')
                .enumerate()
                .filter(|(index, it)| *index > 4 || !it.starts_with(&format!("{key} =")))
                .map(|(_, it)| it)
                .collect();
            if *key == "shards" {
                after("protocol = \"weida\"")
            } else {
                format!("{head}{line}{tail}")
            }
        }
        ["route"] => after("name = \"in\""),
        ["route", "from"] => BASE.replace(
            "filter = \"plant/#\" }",
            &format!("filter = \"plant/#\", {key} = {value} }}"),
        ),
        ["route", "to"] => BASE.replace(
            "pattern = \"publish\" }",
            &if *key == "pattern" {
                format!("pattern = {value} }}")
            } else {
                format!("pattern = \"publish\", {key} = {value} }}")
            },
        ),
        ["credential" | "grant" | "limits" | "admin" | "identity" | "telemetry"] => {
            let open = if matches!(tables[0], "credential" | "grant") {
                "[["
            } else {
                "["
            };
            let close = if open == "[[" { "]]" } else { "]" };
            format!("{BASE}{open}{}{close}\n{line}", tables[0])
        }
        [first, inner @ ..] => {
            let nested = inner.join(".");
            match *first {
                "listen" => BASE.replacen(
                    "auth = [\"anonymous\"]\n",
                    &format!("auth = [\"anonymous\"]\n{nested}.{line}"),
                    1,
                ),
                "route" => after_name(&format!("{nested}.{line}")),
                _ => format!("{BASE}[{first}]\n{nested}.{line}"),
            }
        }
    }
}

fn after_name(line: &str) -> String {
    BASE.replacen("name = \"in\"\n", &format!("name = \"in\"\n{line}"), 1)
}

/// Files of `conf.d` are joined in byte order; nothing is ever overridden.
#[test]
fn conf_d_adds_and_never_overrides() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gateway.toml");
    std::fs::write(&file, BASE).unwrap();
    let extra = folder.path().join("conf.d");
    std::fs::create_dir(&extra).unwrap();
    let route = |name: &str| {
        format!(
            "[[route]]\nname = \"{name}\"\nfrom = {{ weida = \"/{name}\", pattern = \"pull\" }}\nto = {{ listen = \"mqtt-tls\", topic = \"{name}/{{topic}}\" }}\n"
        )
    };
    std::fs::write(extra.join("20-b.toml"), route("b")).unwrap();
    std::fs::write(
        extra.join("10-a.toml"),
        route("a") + "[limits]\nmax_levels_typo = 1\n",
    )
    .unwrap();
    std::fs::write(extra.join("notes.txt"), "not toml").unwrap();
    let input = Input {
        file,
        ..Input::default()
    };
    let report = load(&input).unwrap_err();
    assert_eq!(report.counts(), (1, 0));
    assert!(
        report.findings()[0].file.ends_with("10-a.toml"),
        "{:?}",
        report.findings()[0]
    );

    std::fs::write(
        extra.join("10-a.toml"),
        route("a") + "[limits]\nmax_sessions = 9\n",
    )
    .unwrap();
    let (config, _) = load(&input).unwrap_or_else(|report| panic!("{}", report.to_text(false)));
    let names: Vec<&str> = config
        .routes
        .iter()
        .map(|it| it.route.id.as_str())
        .collect();
    assert_eq!(
        (names, config.limits.max_sessions),
        (vec!["in", "a", "b"], 9)
    );

    std::fs::write(
        extra.join("30-c.toml"),
        "[gateway]\ndata_dir = \"other\"\n".to_owned() + &route("in"),
    )
    .unwrap();
    let found: Vec<_> = load(&input)
        .unwrap_err()
        .findings()
        .iter()
        .map(|it| it.code)
        .collect();
    assert_eq!(found, ["E010", "E010"]);
}

/// Arbitrary bytes are answered, never panicked on.
#[test]
fn mangled_files_are_answered() {
    let bytes = std::fs::read(good("every-key.toml")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gateway.toml");
    let input = Input {
        file: file.clone(),
        ..Input::default()
    };
    for at in (0..bytes.len()).step_by(37) {
        for replacement in [&b"\xff"[..], b"", b"\"", b"[[", b"= {"] {
            let mangled = [&bytes[..at], replacement, &bytes[at + 1..]].concat();
            std::fs::write(&file, mangled).unwrap();
            if let Err(report) = load(&input) {
                assert!(report.has_errors());
                assert!(!report.to_text(true).is_empty() && report.to_json().starts_with('['));
            }
        }
    }
}

/// The reference page is the table of keys. `BLESS=1` writes it anew.
#[test]
fn the_reference_page_is_up_to_date() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/configuration.md");
    let text = std::fs::read_to_string(&page).unwrap();
    let marker = "<!-- generated from the table of keys; BLESS=1 writes it anew -->\n";
    let (head, old) = text.split_once(marker).expect("the page has the marker");
    let wanted = reference();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&page, format!("{head}{marker}{wanted}")).unwrap();
    } else {
        assert!(
            old == wanted,
            "docs/configuration.md differs from the table of keys: run with BLESS=1"
        );
    }
}

/// Every code that a golden shows is explained on the page, and the page explains none that is gone.
#[test]
fn every_error_code_is_explained() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("../docs/configuration.md")).unwrap();
    let mut source = String::new();
    let mut folders = vec![root.join("src/config")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                source += &std::fs::read_to_string(path).unwrap();
            }
        }
    }
    let is_code = |text: &&str| {
        text.len() == 4
            && text.starts_with(['E', 'W'])
            && text[1..].bytes().all(|it| it.is_ascii_digit())
    };
    let used: std::collections::BTreeSet<&str> = source.split('"').filter(is_code).collect();
    let told: std::collections::BTreeSet<&str> =
        page.split(['`', '|', ' ']).filter(is_code).collect();
    assert!(used.len() > 30, "{used:?}");
    assert_eq!(used, told);
}

/// The file that comes with the image is complete and good.
#[test]
fn the_file_of_the_image_is_good() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docker/gateway.toml");
    let (config, report) = load(&Input {
        file,
        ..Input::default()
    })
    .unwrap_or_else(|report| panic!("{}", report.to_text(false)));
    assert!(report.findings().is_empty(), "{}", report.to_text(false));
    assert!(config.routes.len() >= 4);
    assert!(
        config
            .listen
            .iter()
            .any(|it| matches!(it.kind, ListenKind::Mqtt(_)))
    );
}
