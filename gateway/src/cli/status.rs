//! `status`: asks the admin address of a running gateway. `[gateway.md 3, 4]`

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde_json::Value;

use super::http::{self, Answer};
use super::{Common, FAILED, NOT_READY, OK, UNREACHABLE, terminal};
use crate::config::{Input, load};

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Admin address; default: the one of the configuration, else http://127.0.0.1:7480.
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Only the exit code: 0 ready, 8 not ready, 7 not reachable.
    #[arg(long, conflicts_with_all = ["live", "json"])]
    ready: bool,
    /// Only the exit code: 0 alive, 8 not alive, 7 not reachable.
    #[arg(long, conflicts_with = "json")]
    live: bool,
    /// One JSON object.
    #[arg(long)]
    json: bool,
    /// File with the admin token.
    #[arg(long, value_name = "FILE", env = "WEIDA_GATEWAY_TOKEN_FILE")]
    token_file: Option<PathBuf>,
}

pub(super) fn run(common: &Common, arguments: &Arguments) -> u8 {
    let token = match &arguments.token_file {
        None => None,
        Some(file) => match std::fs::read_to_string(file) {
            Ok(token) => Some(token.trim_end_matches('\n').to_owned()),
            Err(error) => return terminal::fail_with(format!("{}: {error}", file.display())),
        },
    };
    let url = arguments.url.clone().unwrap_or_else(|| configured(common));
    let ask = |path: &str| http::get(&url, path, token.as_deref());
    if arguments.live || arguments.ready {
        return match ask(if arguments.live { "/livez" } else { "/readyz" }) {
            Ok(Answer { status: 200, .. }) => OK,
            Ok(Answer { status: 503, .. }) => NOT_READY,
            Ok(answer) => refused(&url, &answer),
            Err(error) => unreachable(&error),
        };
    }
    let (live, ready) = match ask("/livez").and_then(|live| Ok((live, ask("/readyz?verbose")?))) {
        Ok(answers) => answers,
        Err(error) => return unreachable(&error),
    };
    if !matches!(ready.status, 200 | 503) {
        return refused(&url, &ready);
    }
    let code = if ready.status == 200 { OK } else { NOT_READY };
    if arguments.json {
        let detail = serde_json::from_str::<Value>(&ready.body)
            .unwrap_or_else(|_| Value::String(ready.body.trim().to_owned()));
        terminal::out(serde_json::json!({
            "schema": 1,
            "url": url,
            "live": live.status == 200,
            "ready": ready.status == 200,
            "detail": detail,
        }));
        return code;
    }
    let yes = |answer: &Answer| if answer.status == 200 { "yes" } else { "no" };
    terminal::out(format!(
        "admin     {url}\nalive     {}\nready     {}",
        yes(&live),
        yes(&ready)
    ));
    match serde_json::from_str(&ready.body) {
        Ok(detail) => terminal::out_bytes(screen(&detail).as_bytes()),
        Err(_) => terminal::out(ready.body.trim()),
    };
    code
}

/// The verbose answer of `/readyz` on one screen. What a field is missing is left out: an older gateway may be asked.
fn screen(detail: &Value) -> String {
    let mut out = String::new();
    let mut line = |key: &str, value: &str| {
        if !value.is_empty() {
            // Writing to a string cannot fail.
            let _: std::fmt::Result = writeln!(out, "{key:<9} {value}");
        }
    };
    for reason in list(&detail["reasons"]) {
        line("not ready", &plain(reason));
    }
    let status = &detail["status"];
    line("name", &plain(&status["name"]));
    line("state", &plain(&status["state"]));
    line("version", &plain(&status["version"]));
    if let Some(seconds) = status["uptime_seconds"].as_u64() {
        line(
            "up",
            &humantime::format_duration(Duration::from_secs(seconds)).to_string(),
        );
    }
    line("key", &plain(&status["fingerprint"]));
    for it in list(&status["listeners"]) {
        let (name, protocol) = (plain(&it["name"]), plain(&it["protocol"]));
        line(
            "listener",
            &format!("{name} ({protocol}) {}", plain(&it["address"])),
        );
    }
    for it in list(&status["routes"]) {
        let reason = match plain(&it["reason"]) {
            reason if reason.is_empty() => reason,
            reason => format!(" ({reason})"),
        };
        let dropped: u64 = it["dropped"]
            .as_object()
            .map_or(0, |it| it.values().filter_map(Value::as_u64).sum());
        let counts: String = [
            "received",
            "delivered",
            "filtered",
            "expired",
            "queued",
            "in_flight",
        ]
        .iter()
        .filter_map(|key| Some((key, it[*key].as_u64()?)))
        .map(|(key, count)| format!(", {} {count}", key.replace('_', " ")))
        .collect();
        let (name, state) = (plain(&it["name"]), plain(&it["state"]));
        line(
            "route",
            &format!("{name} {state}{reason}{counts}, dropped {dropped}"),
        );
    }
    out
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// A text without anything that a terminal would obey.
fn plain(value: &Value) -> String {
    let text = value.as_str().unwrap_or_default();
    text.chars().filter(|it| !it.is_control()).collect()
}

/// The admin address of the configuration; where it listens everywhere, loopback reaches it.
fn configured(common: &Common) -> String {
    let local = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7480);
    let mut bind = load(&Input::from_process(common.file())).map_or(local, |it| it.0.admin.bind);
    if bind.ip().is_unspecified() {
        bind.set_ip(local.ip());
    }
    format!("http://{bind}")
}

fn refused(url: &str, answer: &Answer) -> u8 {
    let hint = if answer.status == 401 {
        "; give --token-file"
    } else {
        ""
    };
    terminal::fail_with(format!("{url} answered {}{hint}", answer.status));
    FAILED
}

fn unreachable(error: &http::HttpError) -> u8 {
    terminal::fail(error);
    UNREACHABLE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_screen_says_what_moves_and_why_not() {
        let detail = serde_json::json!({
            "ready": false,
            "reasons": ["draining"],
            "status": {
                "name": "plant-7", "state": "draining", "version": "0.2.0", "uptime_seconds": 3661,
                "fingerprint": "sha256:ab",
                "listeners": [{ "name": "mqtt", "protocol": "mqtt", "address": "127.0.0.1:1883" }],
                "routes": [{
                    "name": "in", "state": "retrying", "reason": "not\u{1b}connected", "received": 5,
                    "delivered": 2, "queued": 1, "in_flight": 0, "dropped": { "queue_full": 1, "loop": 1 },
                }],
            },
        });
        assert_eq!(
            screen(&detail),
            "not ready draining\nname      plant-7\nstate     draining\nversion   0.2.0\nup        1h 1m 1s\n\
             key       sha256:ab\nlistener  mqtt (mqtt) 127.0.0.1:1883\n\
             route     in retrying (notconnected), received 5, delivered 2, queued 1, in flight 0, dropped 2\n"
        );
    }

    #[test]
    fn an_answer_without_fields_is_no_panic() {
        for detail in [
            serde_json::json!({}),
            serde_json::json!([]),
            serde_json::json!({ "status": 7 }),
        ] {
            assert_eq!(screen(&detail), "");
        }
    }
}
