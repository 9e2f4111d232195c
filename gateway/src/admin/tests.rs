use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use weida_bridge::{GatewayId, metrics as names};
use weida_core::Fingerprint;

use super::*;
use crate::config::valid::Secret;
use crate::config::{Config, Input, load};
use crate::grants::Refusals;
use crate::policy::stats::RetryCause;
use crate::route::RouteHandle;
use crate::state::Bound;

const FILE: &str = r##"
[gateway]
data_dir = "data"
[[listen]]
name = "weida"
protocol = "weida"
bind = "127.0.0.1:0"
[[listen]]
name = "mqtt"
protocol = "mqtt"
bind = "127.0.0.1:0"
auth = ["anonymous"]
[[grant]]
who = ["anonymous"]
listen = "mqtt"
publish = ["#"]
[[route]]
name = "up"
from = { listen = "mqtt", filter = "plant/#" }
to = { weida = "/mqtt", pattern = "publish" }
delivery = "at-most-once"
"##;

fn config() -> Config {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gateway.toml");
    std::fs::write(&file, FILE).unwrap();
    let input = Input {
        file,
        environment: Vec::new(),
        allow_overcommit: true,
    };
    load(&input)
        .unwrap_or_else(|report| panic!("{:#?}", report.findings()))
        .0
}

fn state() -> Arc<State> {
    let config = config();
    let now = tokio::time::Instant::now();
    let cut = CancellationToken::new();
    let route = RouteHandle::new(config.routes[0].clone(), GatewayId([1; 8]), cut, now);
    let refusals = Arc::new(Refusals::new("weida".into()));
    State::new(
        "plant-7".into(),
        Fingerprint::of_spki(b"k"),
        vec![route],
        vec![refusals],
    )
}

fn admin(token: Option<&str>, metrics_auth: bool) -> valid::Admin {
    valid::Admin {
        bind: "127.0.0.1:0".parse().unwrap(),
        token: token.map(|token| Secret::new(token.into())),
        metrics_auth,
    }
}

fn get(address: SocketAddr, path: &str, header: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{header}\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let code = answer.split(' ').nth(1).unwrap().parse().unwrap();
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    (code, body.to_owned())
}

/// Ready follows the start and the drain, and says what is missing.
#[test]
fn gateway_7_2_readyz_follows_the_life_of_the_process() {
    let state = state();
    let server = Admin::start(&admin(None, false), Arc::clone(&state)).unwrap();
    let ready = |path| get(server.address(), path, "");
    let (code, body) = ready("/readyz");
    assert_eq!(code, 503);
    assert!(body.contains("not all listeners are bound"), "{body}");
    let bound = Bound {
        name: "weida".into(),
        protocol: "weida",
        address: "127.0.0.1:7443".parse().unwrap(),
    };
    state.set_bound(vec![bound]);
    assert_eq!(ready("/readyz").0, 503);
    state.set_ready();
    assert_eq!(ready("/readyz").0, 200);
    let (code, body) = ready("/readyz?verbose");
    let page: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!(code, 200);
    assert_eq!(page["checks"]["draining"], "ok");
    assert_eq!(page["status"]["routes"][0]["state"], "idle");
    state.set_draining();
    let (code, body) = ready("/readyz");
    assert_eq!((code, body.contains("draining")), (503, true));
    assert_eq!(ready("/livez").0, 200, "draining is alive");
}

#[test]
fn gateway_4_status_is_one_page() {
    let state = state();
    let server = Admin::start(&admin(None, false), state).unwrap();
    let (code, body) = get(server.address(), "/api/v1/status", "");
    let page: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!(code, 200);
    assert_eq!(page["schema"], 1);
    assert_eq!(page["name"], "plant-7");
    assert_eq!(page["state"], "starting");
    assert_eq!(page["routes"][0]["name"], "up");
    assert_eq!(page["routes"][0]["difference"], 0);
    assert_eq!(get(server.address(), "/nothing", "").0, 404);
}

/// Every series of a configured object is there before anything happened, with 0, under its listed name.
#[test]
fn gateway_6_all_series_exist_from_the_start() {
    let state = state();
    let text = crate::metrics::render(&state).unwrap();
    for line in [
        r#"weida_gateway_route_received_total{route="up"} 0"#,
        r#"weida_gateway_route_dropped_total{route="up",cause="queue_full"} 0"#,
        r#"weida_gateway_route_copies_dropped_total{route="up",cause="declined"} 0"#,
        r#"weida_gateway_route_retries_total{route="up",cause="disconnected"} 0"#,
        r#"weida_gateway_route_duplicates_possible_total{route="up"} 0"#,
        r#"weida_gateway_route_conservation_difference{route="up"} 0.0"#,
        r#"weida_gateway_route_state{route="up",state="idle"} 1.0"#,
        r#"weida_gateway_route_state{route="up",state="broken"} 0.0"#,
        r#"weida_gateway_route_latency_seconds_count{route="up"} 0"#,
        r#"weida_gateway_loop_suppressed_total{route="up",how="via"} 0"#,
        r#"weida_gateway_listener_refused_total{listener="weida",op="subscribe",cause="not_authorized"} 0"#,
        "weida_gateway_ready 0.0",
    ] {
        assert!(
            text.lines().any(|have| have == line),
            "missing: {line}\n{text}"
        );
    }
    for cause in weida_bridge::DropCause::ALL {
        let series = format!(
            r#"route_dropped_total{{route="up",cause="{}"}} 0"#,
            cause.as_str()
        );
        assert!(text.contains(&series), "{series}");
    }
    assert!(text.ends_with("# EOF\n"));
}

/// No name of ours stands on the page that the list of names does not hold.
#[test]
fn gateway_6_only_listed_names_are_scraped() {
    let text = crate::metrics::render(&state()).unwrap();
    let mut seen = 0;
    for line in text.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let stem = line.split(' ').next().unwrap();
        if !stem.starts_with(names::PREFIX) {
            assert!(stem.starts_with("process_"), "{stem}");
            continue;
        }
        seen += 1;
        assert!(
            names::ALL.iter().any(|metric| metric.base_name() == stem),
            "{stem}"
        );
    }
    assert!(seen > 25, "{seen} families");
}

/// What a route counts is what the page shows.
#[test]
fn gateway_6_counts_are_shown() {
    let state = state();
    let parts = state.routes()[0].parts();
    parts.ledger.born(10).delivered();
    parts
        .ledger
        .born(5)
        .dropped(weida_bridge::DropCause::QueueFull);
    parts.stats.retry(RetryCause::Timeout);
    parts.stats.ended(Duration::from_millis(3));
    let text = crate::metrics::render(&state).unwrap();
    for line in [
        r#"weida_gateway_route_received_total{route="up"} 2"#,
        r#"weida_gateway_route_received_bytes_total{route="up"} 15"#,
        r#"weida_gateway_route_delivered_bytes_total{route="up"} 10"#,
        r#"weida_gateway_route_dropped_total{route="up",cause="queue_full"} 1"#,
        r#"weida_gateway_route_retries_total{route="up",cause="timeout"} 1"#,
        r#"weida_gateway_route_latency_seconds_bucket{route="up",le="0.0025"} 0"#,
        r#"weida_gateway_route_latency_seconds_bucket{route="up",le="0.005"} 1"#,
        r#"weida_gateway_route_latency_seconds_bucket{route="up",le="+Inf"} 1"#,
        r#"weida_gateway_route_latency_seconds_sum{route="up"} 0.003"#,
    ] {
        let found = text.lines().any(|have| {
            // Labels of a histogram may stand in either order.
            have == line
                || have
                    == line
                        .replace(r#"{route="up",le="#, r#"{le="#)
                        .replace("} ", r#",route="up"} "#)
        });
        assert!(found, "missing: {line}\n{text}");
    }
}

/// With a token the API asks for it, and the probes only when told to.
#[test]
fn gateway_4_the_token_guards_the_api() {
    let bearer = "authorization: Bearer secret\r\n";
    let open = Admin::start(&admin(Some("secret"), false), state()).unwrap();
    assert_eq!(get(open.address(), "/metrics", "").0, 200);
    assert_eq!(get(open.address(), "/api/v1/status", "").0, 401);
    assert_eq!(
        get(
            open.address(),
            "/api/v1/status",
            "authorization: Bearer Secret\r\n"
        )
        .0,
        401
    );
    assert_eq!(get(open.address(), "/api/v1/status", bearer).0, 200);
    let shut = Admin::start(&admin(Some("secret"), true), state()).unwrap();
    assert_eq!(get(shut.address(), "/metrics", "").0, 401);
    assert_eq!(get(shut.address(), "/livez", "").0, 401);
    assert_eq!(get(shut.address(), "/metrics", bearer).0, 200);
}

/// 64 connections that say nothing do not stop the process from answering: the next one hears 503, and places come back.
#[test]
fn gateway_10_one_connection_too_many_is_answered_503() {
    let server = Admin::start(&admin(None, false), state()).unwrap();
    let mut held: Vec<_> = (0..MAX_CONNECTIONS)
        .map(|_| TcpStream::connect(server.address()).unwrap())
        .collect();
    // Connections are accepted in the order they came, so when this one is answered all others have a place.
    assert_eq!(get(server.address(), "/livez", "").0, 503);
    held.pop();
    let begun = tokio::time::Instant::now();
    while get(server.address(), "/livez", "").0 != 200 {
        assert!(
            begun.elapsed() < Duration::from_secs(10),
            "no place came back"
        );
    }
}

/// The thread ends with its owner, and the address is free again.
#[test]
fn gateway_7_3_the_admin_thread_ends_with_its_owner() {
    let server = Admin::start(&admin(None, false), state()).unwrap();
    let address = server.address();
    let _silent = TcpStream::connect(address).unwrap();
    drop(server);
    let again = valid::Admin {
        bind: address,
        token: None,
        metrics_auth: false,
    };
    assert!(Admin::start(&again, state()).is_ok());
}

/// What an operator needs to see of the weida side: drops and refusals by cause, unknown ends apart from failures, retries by
/// what ended the attempt, and the live connections of each binding.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn obs_1_the_weida_side_is_exported() {
    let state = state();
    let runtime = weida::Runtime::new(weida::RuntimeConfig::default()).unwrap();
    let identity = weida::Identity::generate().unwrap();
    let key = identity.fingerprint().unwrap();
    let any = ([127, 0, 0, 1], 0).into();
    let binding = runtime.listener().bind_quic(any, identity).await.unwrap();
    let url = format!("weida://{key}@{}/x", binding.local_addr());
    state.set_bindings(vec![("weida".into(), binding)]);
    let shows = |line: &str| {
        let text = crate::metrics::render(&state).unwrap();
        assert!(
            text.lines().any(|it| it == line),
            "{line} is not in\n{text}"
        );
    };
    let sessions = "weida_gateway_listener_sessions{listener=\"weida\"}";
    shows(&format!("{sessions} 0.0"));
    let dialler = weida::Runtime::new(weida::RuntimeConfig::default()).unwrap();
    let peer = dialler.peer(weida::Trust::by_address());
    peer.connect(&url).await.unwrap();
    // The binding enters it a moment after the dialler heard its HELLO.
    let deadline = tokio::time::Instant::now() + Duration::from_secs(10);
    while state.weida_connections().all(|(_, count)| count == 0) {
        assert!(tokio::time::Instant::now() < deadline, "never counted");
        tokio::task::yield_now().await;
    }
    shows(&format!("{sessions} 1.0"));
    shows("weida_gateway_peer_connections{direction=\"accepted\"} 1.0");

    let route = &state.routes()[0];
    route.parts().stats.retry(RetryCause::Disconnected);
    route.parts().ledger.count_indeterminate();
    let refusals = &state.refusals()[0];
    refusals.count(
        names::RefusedOp::Subscribe,
        names::RefusedCause::NotAuthorized,
    );
    for line in [
        "route_retries_total{route=\"up\",cause=\"disconnected\"} 1",
        "route_indeterminate_total{route=\"up\"} 1",
        "route_dropped_total{route=\"up\",cause=\"refused_by_destination\"} 0",
        "route_copies_dropped_total{route=\"up\",cause=\"declined\"} 0",
        "route_copies_dropped_total{route=\"up\",cause=\"subscriber_queue\"} 0",
        "route_queued{route=\"up\"} 0.0",
        "listener_refused_total{listener=\"weida\",op=\"subscribe\",cause=\"not_authorized\"} 1",
    ] {
        shows(&format!("weida_gateway_{line}"));
    }
}

/// Half a request gives its place back soon: a probe is kept out for moments, not for the life of a connection.
#[test]
fn gateway_10_half_requests_do_not_keep_a_probe_out() {
    let server = Admin::start(&admin(None, false), state()).unwrap();
    let halves: Vec<_> = (0..MAX_CONNECTIONS)
        .map(|_| {
            let mut stream = TcpStream::connect(server.address()).unwrap();
            stream.write_all(b"GET /livez HTTP/1.1\r\nhost: ").unwrap();
            stream
        })
        .collect();
    // Each of them hears that its time is over; nobody has to leave first.
    for mut stream in halves {
        stream
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        let mut rest = Vec::new();
        let _: std::io::Result<usize> = stream.read_to_end(&mut rest);
        assert!(!rest.starts_with(b"HTTP/1.1 200"));
    }
    assert_ne!(get(server.address(), "/readyz", "").1, "");
}
