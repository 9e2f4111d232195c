//! `[gateway]`, `[identity]`, `[limits]`, `[admin]`, `[telemetry]`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use super::super::report::{Report, Severity};
use super::super::valid::{Admin, Gateway, Identity, Limits, LogFormat, Telemetry, TrustEntry};
use super::Folder;
use super::files;
use super::listen::Built;
use super::view::View;

pub(super) fn gateway(
    root: &View<'_>,
    folder: &Folder<'_>,
    report: &mut Report,
) -> Option<Gateway> {
    let view = root.table_or_empty("gateway");
    let data_dir = view.need(
        "data_dir",
        "the folder of the identity: `data_dir = \"./data\"`",
        report,
    );
    let drain_timeout = view
        .duration("drain_timeout")
        .unwrap_or(Duration::from_secs(8));
    let drain_delay = view.duration("drain_delay").unwrap_or_default();
    if drain_delay >= drain_timeout && view.has("drain_delay") {
        report.error(
            "E041",
            view.at("drain_delay"),
            &view.key_path("drain_delay"),
            "`drain_delay` leaves nothing of `drain_timeout`",
            "raise `drain_timeout`, and the orchestrator's grace period with it".to_owned(),
        );
    }
    let name = view.text("name").map_or("weida-gateway", |name| name.text);
    if name.is_empty() || name.len() > 64 || name.chars().any(char::is_control) {
        let help = "1 to 64 printable characters".to_owned();
        report.error(
            "E011",
            view.at("name"),
            &view.key_path("name"),
            format!("{name:?} is no name"),
            help,
        );
    }
    let data_dir = data_dir?;
    if data_dir.text.is_empty() {
        report.error(
            "E011",
            data_dir.at,
            &view.key_path("data_dir"),
            "`data_dir` is empty",
            None,
        );
    }
    Some(Gateway {
        name: name.into(),
        worker_threads: view.int("worker_threads").unwrap_or(0),
        data_dir: folder.path(data_dir.text),
        drain_timeout,
        drain_delay,
    })
}

pub(super) fn identity(
    root: &View<'_>,
    folder: &Folder<'_>,
    gateway: Option<&Gateway>,
    report: &mut Report,
) -> Option<Identity> {
    let view = root.table_or_empty("identity");
    let key_file = view.text("key_file").map(|it| folder.path(it.text));
    let key_file = key_file.or_else(|| Some(gateway?.data_dir.join("identity.key")))?;
    let cert_file = view.text("cert_file").map(|it| folder.path(it.text));
    let at = view.at("key_file");
    if key_file.exists() {
        files::private(&key_file, at, &view.key_path("key_file"), report);
        if let Some(chain) = &cert_file {
            files::pair(
                chain,
                &key_file,
                (&view, "cert_file"),
                (&view, "key_file"),
                report,
            );
        }
    } else if cert_file.is_some() {
        let message = format!("{}: no such file", key_file.display());
        let help = "a CA-issued identity needs its key beside it".to_owned();
        report.error("E013", at, &view.key_path("key_file"), message, help);
    }
    let mut trust = Vec::new();
    for entry in view.list("trust") {
        let path = view.key_path("trust");
        if let Some(file) = entry.text.strip_prefix("ca:") {
            let file = folder.path(file);
            if files::certificates(&file, entry.at, &path, report).is_some() {
                trust.push(TrustEntry::Anchors(file));
            }
        } else {
            match entry.text.parse() {
                Ok(pin) => trust.push(TrustEntry::Pin(pin)),
                Err(_) => {
                    let message = format!("{:?} is no trust entry", entry.text);
                    let help = "`sha256:` and 64 hexadecimal digits, or `ca:FILE`".to_owned();
                    report.error("E080", entry.at, &path, message, help);
                }
            }
        }
    }
    Some(Identity {
        key_file,
        cert_file,
        trust,
    })
}

pub(super) fn limits(root: &View<'_>, _report: &mut Report) -> Limits {
    let view = root.table_or_empty("limits");
    let default = Limits::default();
    Limits {
        max_message_bytes: view
            .bytes("max_message_bytes")
            .unwrap_or(default.max_message_bytes),
        max_sessions: view.int("max_sessions").unwrap_or(default.max_sessions),
        max_connections_per_ip: view
            .int("max_connections_per_ip")
            .unwrap_or(default.max_connections_per_ip),
        new_connections_per_second: view
            .int("new_connections_per_second")
            .unwrap_or(default.new_connections_per_second),
        max_filters_per_session: view
            .int("max_filters_per_session")
            .unwrap_or(default.max_filters_per_session),
        max_filters_total: view
            .int("max_filters_total")
            .unwrap_or(default.max_filters_total),
        max_meta_entries: view
            .int("max_meta_entries")
            .unwrap_or(default.max_meta_entries),
        max_meta_bytes: view
            .bytes("max_meta_bytes")
            .unwrap_or(default.max_meta_bytes),
        max_topic_bytes: view
            .int("max_topic_bytes")
            .unwrap_or(default.max_topic_bytes),
    }
}

/// Sockets beside the sessions: listeners, admin, files, timers. `[gateway.md 7.1]`
const SPARE_FILES: u64 = 64;

/// Lowers the default of `max_sessions` to what open files allow; refuses a spelled-out value above. `[reconciled R2]`
pub(super) fn fit_open_files(
    root: &View<'_>,
    mut limits: Limits,
    listen: &[Built],
    report: &mut Report,
) -> Limits {
    let Some(open_files) = files::open_file_limit() else {
        return limits;
    };
    let room = open_files.saturating_sub(SPARE_FILES);
    let room = usize::try_from(room).unwrap_or(usize::MAX);
    let view = root.table_or_empty("limits");
    if limits.max_sessions > room {
        if view.int::<usize>("max_sessions").is_some() {
            let message = format!(
                "{} sessions need {} open files, the system allows {open_files}",
                limits.max_sessions,
                limits.max_sessions as u64 + SPARE_FILES,
            );
            let help =
                "raise the hard limit (`ulimit -Hn`, `LimitNOFILE=`) or lower `max_sessions`"
                    .to_owned();
            report.error(
                "E070",
                view.at("max_sessions"),
                &view.key_path("max_sessions"),
                message,
                help,
            );
        } else {
            limits.max_sessions = room.max(1);
        }
    }
    for listener in listen {
        if let Some(at) = &listener.max_sessions_at
            && listener.max_sessions() > limits.max_sessions
        {
            let message = format!(
                "{} sessions on one listener, {} in the whole process",
                listener.max_sessions(),
                limits.max_sessions
            );
            let help = "raise `limits.max_sessions` (and the open-file limit) or lower this one"
                .to_owned();
            let path = format!("listen.{}.max_sessions", listener.listen.name);
            report.error("E070", at, &path, message, help);
        }
    }
    limits
}

pub(super) fn admin(
    root: &View<'_>,
    folder: &Folder<'_>,
    inline: bool,
    report: &mut Report,
) -> Option<Admin> {
    let view = root.table_or_empty("admin");
    let bind = match view.text("bind") {
        None => SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7480),
        Some(text) => super::listen::bind(text, &view.key_path("bind"), report)?,
    };
    let given = ["token", "token_file", "token_env"]
        .iter()
        .any(|key| view.has(key));
    let token = files::secret(&view, "token", folder, inline, report);
    let metrics_auth = view.bool("metrics_auth").unwrap_or(false);
    if !given && !bind.ip().is_loopback() {
        report.error(
            "E060",
            view.at("bind"),
            &view.key_path("bind"),
            "the admin address is reachable from other machines and has no token",
            "set `token_file`, or bind it to 127.0.0.1".to_owned(),
        );
    }
    if !given && metrics_auth {
        report.error(
            "E060",
            view.at("metrics_auth"),
            &view.key_path("metrics_auth"),
            "`metrics_auth` without a token would lock everybody out",
            "set `token_file`".to_owned(),
        );
    }
    if let Some(token) = &token
        && token.reveal().len() < 16
    {
        let help = "16 characters or more, for example from `openssl rand -hex 32`".to_owned();
        let key = ["token_file", "token_env", "token"]
            .into_iter()
            .find(|key| view.has(key))?;
        report.about_secret(
            "E060",
            Severity::Error,
            view.key_at(key),
            &view.key_path(key),
            "the token is too short to be one",
            help,
        );
    }
    Some(Admin {
        bind,
        token,
        metrics_auth,
    })
}

pub(super) fn telemetry(root: &View<'_>, report: &mut Report) -> Telemetry {
    let log = root.table_or_empty("telemetry").table_or_empty("log");
    let format = match log.text("format").map(|it| it.text) {
        Some("json") => LogFormat::Json,
        _ => LogFormat::Text,
    };
    let level = log.text("level").map_or("info", |it| it.text);
    if let Err(error) = crate::logging::parse_filter(level) {
        let help = "`info`, or per target: `info,weida_mqtt=debug`".to_owned();
        let message = format!("{level:?} is no log level: {error}");
        report.error(
            "E008",
            log.at("level"),
            &log.key_path("level"),
            message,
            help,
        );
    }
    Telemetry {
        format,
        level: level.to_owned(),
    }
}
