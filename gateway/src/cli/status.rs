//! `status`: asks the admin address of a running gateway. `[gateway.md 3, 4]`

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::Args;

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
        let detail = serde_json::from_str::<serde_json::Value>(&ready.body)
            .unwrap_or_else(|_| serde_json::Value::String(ready.body.trim().to_owned()));
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
        "admin  {url}\nalive  {}\nready  {}",
        yes(&live),
        yes(&ready)
    ));
    if !ready.body.trim().is_empty() {
        terminal::out(ready.body.trim());
    }
    code
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
